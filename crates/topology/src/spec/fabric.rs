//! A fabric with its faults, and what others ask of it.

use weft_traffic::FabricShape;
use weft_units::{Rate, Span};

use super::fault::FaultTable;
use super::timeline;
use crate::{
    FaultEvent, FaultSpan, Limit, LinkSpec, Marking, NotPooled, QueueSpec, Threshold, Tier, Topology, pooled,
};

/// A fabric that is ready to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Fabric {
    /// Nodes and links, in the condition that the run begins with.
    pub topology: Topology,
    /// Changes of links during the run, by time and link.
    pub faults: Vec<FaultEvent>,
    /// The faults of the spec, in its order.
    pub spans: Vec<FaultSpan>,
    /// How long it takes until all switches know that a link is down or up again; its own switch
    /// knows at once.
    pub reroute_after: Span,
    /// Warnings on values that are allowed and yet probably not meant.
    pub warnings: Vec<String>,
    /// The rate of each link without any fault.
    nominal_rates: Vec<Rate>,
}

impl Fabric {
    /// `topology` without faults, and the links that each fault hits.
    pub(super) fn new(
        mut topology: Topology,
        faults: &[FaultTable],
        links: &[Vec<u32>],
        reroute_after: Span,
    ) -> Self {
        let nominal_rates: Vec<Rate> = topology.links.iter().map(|link| link.condition.rate).collect();
        let mut warnings = queue_warnings(&topology);
        for (index, (fault, links)) in faults.iter().zip(links).enumerate() {
            let key = format!("fabric.fault[{index}]");
            if links.is_empty() {
                warnings.push(format!("{key}: its share rounds to no cable at all"));
            }
            let raises = |rate: Rate| links.iter().any(|&link| rate > nominal_rates[link as usize]);
            if let Some(rate) = fault.rate.filter(|&rate| raises(rate)) {
                warnings.push(format!("{key}.rate = {rate} is more than a link has without the fault"));
            }
        }
        let spans = faults.iter().zip(links).map(|(fault, links)| fault.span(links, &topology)).collect();
        let events = timeline::apply(faults, links, &mut topology);
        if let Some((from, to)) = cut_off(&topology) {
            let [from, to] = [from, to].map(|node| &topology.names[node]);
            warnings.push(format!("with the links that are down at the start, {from} does not reach {to}"));
        }
        Self { topology, faults: events, spans, reroute_after, warnings, nominal_rates }
    }

    /// The fabric with one queue for all that is between the racks: see [`pooled`](crate::pooled).
    ///
    /// # Errors
    /// A fabric for which that is no bound.
    pub fn pooled(&self) -> Result<Self, NotPooled> {
        let (topology, faults) = pooled(&self.topology, &self.faults)?;
        let nominal_rates = topology.links.iter().map(|link| link.condition.rate).collect();
        let (reroute_after, warnings) = (self.reroute_after, self.warnings.clone());
        // The links that they hit are not in it.
        let spans = self.spans.iter().map(|span| FaultSpan { links: Vec::new(), ..span.clone() }).collect();
        Ok(Self { topology, faults, spans, reroute_after, warnings, nominal_rates })
    }

    /// The fabric as traffic sees it. Rates are nominal, so that faults change no traffic.
    ///
    /// The bisection rate is half of what all racks' uplinks carry together, or of what the links
    /// from the second layer up carry if that is less, and so on. That is the bisection of a
    /// leaf-spine and of a fat-tree; of any other graph it is an upper bound.
    pub fn shape(&self) -> FabricShape {
        let topology = &self.topology;
        let layer = |node: usize| node.checked_sub(topology.hosts).map(|s| topology.tier_of_switch[s]);
        let mut rack_of_switch = vec![None; topology.switches];
        for (rack, &switch) in topology.switch_of_rack.iter().enumerate() {
            rack_of_switch[switch as usize] = Some(rack);
        }
        let mut uplinks = vec![0u64; topology.racks()];
        let mut upwards: Vec<u64> = Vec::new();
        for (link, rate) in topology.links.iter().zip(&self.nominal_rates) {
            let (from, to) = (link.from.0 as usize, link.to.0 as usize);
            if link.tier == Tier::Leaf
                && let Some(rack) = rack_of_switch[from - topology.hosts]
            {
                uplinks[rack] = uplinks[rack].saturating_add(rate.as_bps());
            }
            if let (Some(below), Some(above)) = (layer(from), layer(to))
                && above > below
            {
                upwards.resize(upwards.len().max(usize::from(above)), 0);
                upwards[usize::from(below)] = upwards[usize::from(below)].saturating_add(rate.as_bps());
            }
        }
        let all_uplinks = uplinks.iter().copied().fold(0, u64::saturating_add);
        let narrowest = upwards.into_iter().chain([all_uplinks]).min().unwrap_or_default();
        FabricShape {
            rack_of_host: topology.rack_of_host.clone(),
            host_rate: self.nominal_rates[..topology.hosts].to_vec(),
            rack_uplink_rate: uplinks.into_iter().map(Rate::from_bps).collect(),
            bisection_rate: Rate::from_bps(narrowest / 2),
        }
    }
}

fn queue_warnings(topology: &Topology) -> Vec<String> {
    let with_one = |tier: Tier| move |link: &&LinkSpec| link.tier == tier && link.classes.is_none();
    let queue = |tier: Tier| topology.links.iter().find(with_one(tier)).map(|link| &link.queue);
    let queues = [("fabric.switch_queue", queue(Tier::Last)), ("fabric.host_queue", queue(Tier::Host))];
    let never_marks = |queue: &QueueSpec| match (queue.limit, queue.marking) {
        (Limit::AtMost(Threshold::Bytes(buffer)), Marking::Step(Threshold::Bytes(mark))) => mark >= buffer,
        (Limit::AtMost(Threshold::Packets(buffer)), Marking::Step(Threshold::Packets(mark))) => {
            mark >= buffer
        }
        _ => false,
    };
    let silent = queues.iter().filter(|(_, queue)| queue.is_some_and(never_marks));
    silent.map(|(key, _)| format!("{key}.mark is not below {key}.buffer: nothing is ever marked")).collect()
}

/// Two nodes, the first of which does not reach the second over links that are up.
fn cut_off(topology: &Topology) -> Option<(usize, usize)> {
    if topology.links.iter().all(|link| link.condition.up) {
        return None;
    }
    let unreached = |backwards: bool| {
        let mut reached = vec![false; topology.names.len()];
        let mut queue = vec![0usize];
        while let Some(node) = queue.pop() {
            if std::mem::replace(&mut reached[node], true) {
                continue;
            }
            for link in topology.first_link[node]..topology.first_link[node + 1] {
                let used = if backwards { topology.reverse[link as usize] } else { link };
                let far_end = topology.links[link as usize].to.0 as usize;
                if topology.links[used as usize].condition.up && !reached[far_end] {
                    queue.push(far_end);
                }
            }
        }
        reached[..topology.hosts].iter().position(|reached| !reached)
    };
    unreached(false).map(|node| (0, node)).or_else(|| unreached(true).map(|node| (node, 0)))
}
