//! Equal-cost shortest paths, as each switch's table from destination rack to next hops.

mod compute;
mod trails;

use weft_packet::{PortId, Route};
use weft_units::Rate;

use super::Topology;

/// Entry of a switch's table for a rack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteEntry {
    /// No way leads there.
    None,
    /// One port.
    Port(PortId),
    /// Several: a group number, for [`Routes::group`].
    Group(u32),
}

/// State of the links as all switches know it: one entry per link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkKnowledge {
    /// Whether it works.
    pub up: Vec<bool>,
    /// Rate of each link.
    pub rate: Vec<Rate>,
}

impl LinkKnowledge {
    /// The conditions that the run begins with, known to all.
    pub fn at_start(topology: &Topology) -> Self {
        let conditions = || topology.links.iter().map(|link| link.condition);
        Self {
            up: conditions().map(|link| link.up).collect(),
            rate: conditions().map(|link| link.rate).collect(),
        }
    }
}

/// The tables of all switches.
#[derive(Debug, Clone, PartialEq)]
pub struct Routes {
    racks: usize,
    /// `[switch x racks + rack]`: a port if below 2^15; a group of that switch less 2^15; or 0xffff
    /// for none.
    table: Vec<u16>,
    /// First group of each switch.
    group_base: Vec<u32>,
    /// First member and number of members of each group.
    groups: Vec<(u32, u32)>,
    ports: Vec<PortId>,
    weights: Vec<u32>,
}

impl Routes {
    const NONE: u16 = u16::MAX;
    const GROUP: u16 = 1 << 15;

    /// The shortest paths, counted in hops, from every switch to every rack; hosts never forward.
    ///
    /// `known` says what all switches take each link to be: distances and weights follow from it.
    /// `local_up` says whether the switch that feeds a link takes it to be up: that switch chooses
    /// among those. So a port that dies leaves the groups of its own switch at once, and one that
    /// comes back enters them at once if it leads nearer to the rack by what all know. Every next
    /// hop is nearer than its switch by what all know, so no choice ever makes a loop. Nothing in a
    /// table leads from an edge switch to its own rack: that is [`Topology::link_to_host`].
    ///
    /// Takes time in proportion to racks times links.
    pub fn compute(topology: &Topology, known: &LinkKnowledge, local_up: &[bool]) -> Self {
        compute::compute(topology, known, local_up)
    }

    /// The shortest paths by the conditions that the run begins with.
    pub fn at_start(topology: &Topology) -> Self {
        let known = LinkKnowledge::at_start(topology);
        Self::compute(topology, &known, &known.up)
    }

    /// Entry of `switch` for packets to `rack`.
    #[inline]
    pub fn entry(&self, switch: usize, rack: usize) -> RouteEntry {
        match self.table[switch * self.racks + rack] {
            port if port < Self::GROUP => RouteEntry::Port(PortId(port)),
            Self::NONE => RouteEntry::None,
            group => RouteEntry::Group(self.group_base[switch] + u32::from(group - Self::GROUP)),
        }
    }

    /// The ports of a group, ascending, and the weight of each: Mbit/s towards the rack, at least
    /// 1.
    ///
    /// A weight is the traffic that the switch could send to the rack by this port if nobody else
    /// sent: at each hop the smaller of the cables' rate and what their far end can pass on, added
    /// up over its own next hops. Parallel cables to one next hop share what it can pass on, by
    /// their rates.
    #[inline]
    pub fn group(&self, group: u32) -> (&[PortId], &[u32]) {
        let (first, count) = self.groups[group as usize];
        let members = first as usize..(first + count) as usize;
        // There are as many weights as ports. Who does not look at them does not pay for a check.
        (&self.ports[members.clone()], self.weights.get(members).unwrap_or_default())
    }

    /// The tables of some switches, in their order: the first of them is switch 0 there.
    #[must_use]
    pub fn rows(&self, switches: &[u32]) -> Self {
        let mut rows = Self {
            racks: self.racks,
            table: Vec::with_capacity(switches.len() * self.racks),
            group_base: Vec::with_capacity(switches.len()),
            groups: Vec::new(),
            ports: Vec::new(),
            weights: Vec::new(),
        };
        for &switch in switches {
            let switch = switch as usize;
            rows.table.extend_from_slice(&self.table[switch * self.racks..(switch + 1) * self.racks]);
            rows.group_base.push(rows.groups.len() as u32);
            let last = self.group_base.get(switch + 1).map_or(self.groups.len(), |&next| next as usize);
            for group in self.group_base[switch]..last as u32 {
                let (ports, weights) = self.group(group);
                rows.groups.push((rows.ports.len() as u32, ports.len() as u32));
                rows.ports.extend_from_slice(ports);
                rows.weights.extend_from_slice(weights);
            }
        }
        rows
    }

    /// Adds the table of a switch of which only the ports from `first` on are there, `count` of
    /// them: they are numbered from 0, and no way leads over the others. Where a rack has several
    /// ways, none of them is there.
    pub fn push_some_ports(&mut self, all: &Self, switch: u32, first: u16, count: u16) {
        let entry = |rack: usize| match all.entry(switch as usize, rack) {
            RouteEntry::Port(port) if (first..first + count).contains(&port.0) => port.0 - first,
            _ => Self::NONE,
        };
        self.table.extend((0..self.racks).map(entry));
        self.group_base.push(self.groups.len() as u32);
    }

    /// Bytes of memory that the tables take.
    pub fn memory_bytes(&self) -> usize {
        self.table.capacity() * size_of::<u16>()
            + self.groups.capacity() * size_of::<(u32, u32)>()
            + self.ports.capacity() * (size_of::<PortId>() + size_of::<u32>())
    }

    /// The links that `switch` may send packets for `rack` on, in order of ports; none if no way
    /// leads there.
    pub fn next_links<'a>(
        &'a self,
        topology: &Topology,
        switch: usize,
        rack: usize,
    ) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        let first = topology.first_link[topology.hosts + switch];
        let (single, group): (_, &[PortId]) = match self.entry(switch, rack) {
            RouteEntry::None => (None, &[]),
            RouteEntry::Port(port) => (Some(port), &[]),
            RouteEntry::Group(group) => (None, self.group(group).0),
        };
        let count = group.len() + usize::from(single.is_some());
        (0..count).map(move |index| first + u32::from(single.unwrap_or_else(|| group[index]).0))
    }

    /// The links that an explicit route takes from one rack's edge switch to another's. They end
    /// early where no way leads.
    pub fn path(&self, topology: &Topology, src_rack: usize, dst_rack: usize, mut route: Route) -> Vec<u32> {
        let (mut switch, end) = (topology.switch_of_rack[src_rack], topology.switch_of_rack[dst_rack]);
        let mut path = Vec::new();
        while switch != end {
            let mut links = self.next_links(topology, switch as usize, dst_rack);
            let digit = if links.len() > 1 { route.next_hop(links.len()).unwrap_or_default() } else { 0 };
            let Some(link) = links.nth(digit) else { break };
            path.push(link);
            switch = topology.links[link as usize].to.0 - topology.hosts as u32;
        }
        path
    }

    /// How many explicit routes lead from one rack to another: the product of the choices along the
    /// first path, at most [`Route::LABELS`]. One within a rack, and where no way leads.
    pub fn routes_to(&self, topology: &Topology, src_rack: usize, dst_rack: usize) -> u32 {
        let (mut switch, end) = (topology.switch_of_rack[src_rack], topology.switch_of_rack[dst_rack]);
        let mut routes = 1u32;
        while switch != end {
            let mut links = self.next_links(topology, switch as usize, dst_rack);
            let choices = links.len() as u32;
            let Some(link) = links.next() else { break };
            routes = routes.saturating_mul(choices).min(Route::LABELS);
            switch = topology.links[link as usize].to.0 - topology.hosts as u32;
        }
        routes
    }

    /// The most choices on any way from one rack to another.
    pub fn most_choices(&self, topology: &Topology) -> u32 {
        (0..topology.racks()).map(|rack| self.most_choices_to(topology, rack)).max().unwrap_or_default()
    }

    /// The most choices on any way to this rack. Switches are left when all that they lead to are
    /// known; no way has a loop.
    fn most_choices_to(&self, topology: &Topology, rack: usize) -> u32 {
        const UNKNOWN: u32 = u32::MAX;
        let mut choices = vec![UNKNOWN; topology.switches];
        choices[topology.switch_of_rack[rack] as usize] = 0;
        let mut visit: Vec<usize> = topology.switch_of_rack.iter().map(|&switch| switch as usize).collect();
        while let Some(&switch) = visit.last() {
            let links = self.next_links(topology, switch, rack);
            let own = u32::from(links.len() > 1);
            let far_ends = || links_far_ends(topology, self.next_links(topology, switch, rack));
            if choices[switch] != UNKNOWN {
                visit.pop();
            } else if far_ends().all(|far| choices[far] != UNKNOWN) {
                choices[switch] = own + far_ends().map(|far| choices[far]).max().unwrap_or_default();
            } else {
                visit.extend(far_ends().filter(|&far| choices[far] == UNKNOWN));
            }
        }
        topology.switch_of_rack.iter().map(|&switch| choices[switch as usize]).max().unwrap_or_default()
    }

    /// The most explicit routes that lead from any rack to another; one if there is no choice.
    pub fn most_routes(&self, topology: &Topology) -> u32 {
        let racks = topology.racks();
        let pairs = (0..racks).flat_map(|from| (0..racks).map(move |to| (from, to)));
        pairs.map(|(from, to)| self.routes_to(topology, from, to)).max().unwrap_or(1)
    }
}

/// The switches that links to switches lead to.
fn links_far_ends(topology: &Topology, links: impl Iterator<Item = u32>) -> impl Iterator<Item = usize> {
    links.map(|link| topology.links[link as usize].to.0 as usize - topology.hosts)
}
