//! Incast: many hosts answer one at the same time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Class, HostId};
use weft_units::{Bytes, Purpose, Span, Stream, Time};

use crate::hosts::{hosts_in, known_host};
use crate::load::check_incast_load;
use crate::spec::check_size;
use crate::{ClassName, ClassSpec, FabricShape, Flow, HostRange, MAX_FLOWS, TrafficError};

/// Requests, each answered by several hosts at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IncastSpec {
    /// How many hosts answer a request. They are drawn anew for each request, and all differ.
    pub senders: u32,
    /// Size of each response, in payload bytes.
    pub size: Bytes,
    /// The host that receives. Default: drawn anew for each request, every host equally likely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<u16>,
    /// The hosts that senders are drawn from, as in `[0, "8-15"]`. Default: all but the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<HostRange>>,
    /// When the first request is answered, default 0.
    #[serde(default)]
    pub start: Span,
    /// The time from one request to the next. Default: as `load` says; without either there is one
    /// request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Span>,
    /// In place of `period`: the share of the receiving links that the answers take on average, as
    /// payload. The receiving links are the receiver's own, or those of all hosts if the receiver
    /// is drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// How many requests there are. Default: as many as begin within `traffic.duration`, or,
    /// without it, not after the last random flow or row of the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// Each sender begins later than the request by a time drawn evenly from 0 to this, default 0:
    /// all at once.
    #[serde(default)]
    pub jitter: Span,
    /// The class of the flows. Default: by size, if `traffic.classes.short_below` is given, else
    /// `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassName>,
    /// The label of the transport that carries the flows. Default: as `traffic.classes.transport`
    /// says for their class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
}

/// Until when requests begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Horizon {
    /// `traffic.duration`: no flow begins at or after it.
    pub duration: Option<Span>,
    /// The start of the last random flow or row of the trace.
    pub last_start: Option<Time>,
}

/// An incast table that has passed its checks.
struct Incast<'a> {
    spec: &'a IncastSpec,
    receiver: Option<u16>,
    sources: Vec<u16>,
    class: Class,
    period: Option<Span>,
}

impl IncastSpec {
    /// The flows of table number `index`, those of one request after the other, sender after sender
    /// as drawn.
    pub(crate) fn generate(
        &self,
        index: usize,
        classes: &ClassSpec,
        horizon: Horizon,
        shape: &FabricShape,
        seed: u64,
    ) -> Result<Vec<Flow>, TrafficError> {
        let key = |name: &str| format!("traffic.incast[{index}].{name}");
        let incast = Incast::new(self, classes, shape, &key)?;
        let requests = incast.requests(horizon, &key)?;
        let flows = requests * u64::from(self.senders);
        if flows > MAX_FLOWS {
            return Err(TrafficError::too_many_flows(key("repeats"), flows as f64));
        }
        let random = Stream::new(seed, Purpose::Incast, index as u64);
        Ok(incast.flows(requests, flows as usize, horizon, shape, random))
    }
}

impl<'a> Incast<'a> {
    fn new(
        spec: &'a IncastSpec,
        classes: &ClassSpec,
        shape: &FabricShape,
        key: &impl Fn(&str) -> String,
    ) -> Result<Self, TrafficError> {
        check_size(key("size"), spec.size)?;
        let receiver = spec.receiver.map(|host| known_host(host, key("receiver"), shape)).transpose()?;
        let sources = match &spec.sources {
            Some(ranges) => hosts_in(ranges, &key("sources"), shape)?,
            None => shape.all_hosts(),
        };
        let may_receive = |host: u16| receiver.is_none_or(|receiver| receiver == host);
        let excluded = usize::from(sources.iter().any(|&host| may_receive(host)));
        let most = sources.len() - excluded;
        if !(1..=most).contains(&(spec.senders as usize)) {
            let allowed = format!("1 to {most}, the hosts that may send without the receiver");
            return Err(TrafficError::bad_value(key("senders"), spec.senders, allowed));
        }
        let class = spec.class.map_or_else(|| classes.by_size(spec.size.as_u64()), Class::from);
        let period = period(spec, receiver, shape, key)?;
        Ok(Self { spec, receiver, sources, class, period })
    }

    /// How many requests there are: at least one, at most one more than [`MAX_FLOWS`].
    fn requests(&self, horizon: Horizon, key: &impl Fn(&str) -> String) -> Result<u64, TrafficError> {
        let start = self.spec.start;
        if let Some(duration) = horizon.duration
            && start >= duration
        {
            let allowed = format!("less than traffic.duration, which is {duration}");
            return Err(TrafficError::bad_value(key("start"), start, allowed));
        }
        if self.spec.repeats == Some(0) {
            return Err(TrafficError::bad_value(key("repeats"), 0, "at least 1"));
        }
        let repeats = self.spec.repeats.map(u64::from);
        let Some(period) = self.period else {
            return match repeats {
                None | Some(1) => Ok(1),
                Some(_) => {
                    Err(TrafficError::missing(key("period"), "more than one request needs it, or a load"))
                }
            };
        };
        // Request k begins at start + k x period; a duration excludes its own end.
        let within = |span: Span| span.saturating_sub(start).as_ps() / period.as_ps() + 1;
        let by_duration = horizon.duration.map(|duration| within(duration.saturating_sub(Span::from_ps(1))));
        let by_last_start = || horizon.last_start.map(|last| within(last.since(Time::ZERO)));
        let by_time = by_duration.or_else(|| if repeats.is_none() { by_last_start() } else { None });
        let requests = repeats.into_iter().chain(by_time).min().ok_or_else(|| {
            TrafficError::missing(
                key("repeats"),
                "neither traffic.duration nor other flows say when the requests end",
            )
        })?;
        Ok(requests.min(MAX_FLOWS + 1))
    }

    fn flows(
        &self,
        requests: u64,
        capacity: usize,
        horizon: Horizon,
        shape: &FabricShape,
        mut random: Stream,
    ) -> Vec<Flow> {
        let mut flows = Vec::with_capacity(capacity);
        let mut candidates = self.sources.clone();
        let end = horizon.duration.map_or(Time::NEVER, |duration| Time::ZERO.saturating_add(duration));
        for request in 0..requests {
            let offset = self.period.unwrap_or(Span::ZERO).saturating_mul(request);
            let begin = Time::ZERO.saturating_add(self.spec.start).saturating_add(offset);
            let dst = self.receiver.unwrap_or_else(|| random.below(shape.hosts() as u32) as u16);
            draw_senders(&mut candidates, &self.sources, dst, self.spec.senders as usize, &mut random);
            for &src in &candidates[..self.spec.senders as usize] {
                let jitter = Span::from_ps((random.unit() * self.spec.jitter.as_ps() as f64) as u64);
                let start = begin.saturating_add(jitter);
                if start >= end {
                    continue;
                }
                flows.push(Flow {
                    start,
                    size_bytes: self.spec.size.as_u64(),
                    src: HostId(src),
                    dst: HostId(dst),
                    class: self.class,
                    background: false,
                    transport: 0,
                });
            }
        }
        flows
    }
}

/// Draws `count` different hosts other than `dst` from `sources` to the front of `candidates`: the
/// first `count` steps of a Fisher-Yates shuffle. Each request begins from the same order, so that
/// requests do not depend on each other.
fn draw_senders(candidates: &mut Vec<u16>, sources: &[u16], dst: u16, count: usize, random: &mut Stream) {
    candidates.clear();
    candidates.extend(sources.iter().copied().filter(|&host| host != dst));
    for place in 0..count {
        let other = place + random.below((candidates.len() - place) as u32) as usize;
        candidates.swap(place, other);
    }
}

/// The time between requests, as given or as the load makes it.
fn period(
    spec: &IncastSpec,
    receiver: Option<u16>,
    shape: &FabricShape,
    key: &impl Fn(&str) -> String,
) -> Result<Option<Span>, TrafficError> {
    let Some(load) = spec.load else {
        if spec.period == Some(Span::ZERO) {
            return Err(TrafficError::bad_value(key("period"), Span::ZERO, "more than 0"));
        }
        return Ok(spec.period);
    };
    if spec.period.is_some() {
        return Err(TrafficError::conflict(
            key("period"),
            key("load"),
            "each gives the time between requests",
        ));
    }
    let receivers = receiver.map_or_else(|| shape.all_hosts(), |host| vec![host]);
    let capacity_bps = shape.nic_bps(&receivers);
    check_incast_load(&key("load"), load, capacity_bps)?;
    let request_bits = 8.0 * f64::from(spec.senders) * spec.size.as_u64() as f64;
    Ok(Some(Span::from_s_f64(request_bits / (load * capacity_bps)).max(Span::from_ps(1))))
}

#[cfg(test)]
mod tests;
