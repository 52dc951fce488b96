//! Flows that never end, beside the rest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Class, HostId};
use weft_units::{Purpose, Span, Stream, Time};

use crate::hosts::known_host;
use crate::pairs::{PairPicker, stream};
use crate::{ClassName, ClassSpec, FabricShape, Flow, TrafficError};

/// Flows that begin once and never end. They have no completion time and count for no load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LongLivedSpec {
    /// How many flows, default 1.
    pub count: u32,
    /// The host that sends, together with `dst`. Default: each flow's pair is drawn by
    /// `traffic.pairs`; in a permutation every host gets a flow before one gets a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src: Option<u16>,
    /// The host that receives, together with `src`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst: Option<u16>,
    /// When they begin, default 0.
    pub start: Span,
    /// Their class. Default: `long` if `traffic.classes.short_below` is given, else `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassName>,
    /// The label of the transport that carries them. Default: as `traffic.classes.transport` says
    /// for their class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
}

impl Default for LongLivedSpec {
    fn default() -> Self {
        Self { count: 1, src: None, dst: None, start: Span::ZERO, class: None, transport: None }
    }
}

impl LongLivedSpec {
    /// Whether it needs a rule for pairs.
    pub(crate) fn draws_pairs(&self) -> bool {
        self.src.is_none() && self.dst.is_none()
    }

    /// The flows of table number `index`; `pairs` is there if the table [draws
    /// pairs](Self::draws_pairs).
    pub(crate) fn generate(
        &self,
        index: usize,
        pairs: Option<&PairPicker>,
        classes: &ClassSpec,
        shape: &FabricShape,
        seed: u64,
    ) -> Result<Vec<Flow>, TrafficError> {
        let key = |name: &str| format!("traffic.long_lived[{index}].{name}");
        if self.count == 0 {
            return Err(TrafficError::bad_value(key("count"), 0, "at least 1"));
        }
        if u64::from(self.count) > crate::MAX_FLOWS {
            return Err(TrafficError::too_many_flows(key("count"), f64::from(self.count)));
        }
        let fixed = self.fixed_pair(key, shape)?;
        let class = self.class.map_or_else(|| classes.by_size(u64::MAX), Class::from);
        let start = Time::ZERO.saturating_add(self.start);
        let mut random = Stream::new(seed, Purpose::Pairs, stream::LONG_LIVED + index as u64);
        let pair_of = |number| fixed.or_else(|| pairs.map(|pairs| pairs.pick_in_turn(number, &mut random)));
        let flow =
            |(src, dst)| Flow { start, size_bytes: 0, src, dst, class, background: true, transport: 0 };
        Ok((0..self.count).filter_map(pair_of).map(flow).collect())
    }

    /// The pair, if it is named.
    fn fixed_pair(
        &self,
        key: impl Fn(&str) -> String,
        shape: &FabricShape,
    ) -> Result<Option<(HostId, HostId)>, TrafficError> {
        let (src, dst) = match (self.src, self.dst) {
            (None, None) => return Ok(None),
            (Some(_), None) => return Err(TrafficError::missing(key("dst"), "src and dst stand together")),
            (None, Some(_)) => return Err(TrafficError::missing(key("src"), "src and dst stand together")),
            (Some(src), Some(dst)) => (src, dst),
        };
        let (src, dst) = (known_host(src, key("src"), shape)?, known_host(dst, key("dst"), shape)?);
        if src == dst {
            return Err(TrafficError::bad_value(key("dst"), dst, "a host other than src"));
        }
        Ok(Some((HostId(src), HostId(dst))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{generate, message};

    #[test]
    fn named_flows_go_where_they_are_told() {
        let text = "[[long_lived]]\nsrc = 1\ndst = 9\ncount = 2\nclass = 'best-effort'\nstart = '5us'";
        let flows = generate(text).unwrap().flows;
        let expected = Flow {
            start: Time::from_ps(5_000_000),
            size_bytes: 0,
            src: HostId(1),
            dst: HostId(9),
            class: Class::BestEffort,
            background: true,
            transport: 0,
        };
        assert_eq!(flows, [expected, expected]);
    }

    #[test]
    fn a_permutation_of_long_lived_flows_gives_each_host_one_to_send_and_one_to_receive() {
        let flows = generate("pairs = 'permutation'\n[[long_lived]]\ncount = 16").unwrap().flows;
        let mut ends = [Vec::new(), Vec::new()];
        for flow in &flows {
            ends[0].push(flow.src.0);
            ends[1].push(flow.dst.0);
        }
        for end in &mut ends {
            end.sort_unstable();
            assert_eq!(*end, (0..16).collect::<Vec<_>>());
        }
    }

    #[test]
    fn drawn_pairs_follow_the_rule() {
        let flows = generate("[[long_lived]]\ncount = 500").unwrap().flows;
        assert_eq!(flows.len(), 500);
        assert!(flows.iter().all(|flow| flow.src.0 / 4 != flow.dst.0 / 4 && flow.background));
    }

    #[test]
    fn mistakes_are_named_by_key() {
        let cases = [
            ("count = 0", "traffic.long_lived[0].count = 0: allowed is at least 1"),
            ("src = 1", "traffic.long_lived[0].dst is missing"),
            ("dst = 1", "traffic.long_lived[0].src is missing"),
            ("src = 1\ndst = 1", "traffic.long_lived[0].dst = 1: allowed is a host other than src"),
            ("src = 16\ndst = 1", "traffic.long_lived[0].src = 16: allowed is a host, 0 to 15"),
            ("count = 4_000_000_000", "traffic.long_lived[0].count = about 4000000000 flows"),
        ];
        for (keys, expected) in cases {
            let found = message(&format!("[[long_lived]]\n{keys}"));
            assert!(found.contains(expected), "{keys}: {found}");
        }
    }
}
