//! MPTCP (RFC 8684): which subflows belong to which flow, and which bytes of the flow a segment of
//! one carries.
//!
//! A flow begins on one subflow. The ends tell each other keys; of the receiver's key follows the
//! token by which every further subflow names its connection (§3.2), of the sender's key the number
//! of the flow's first byte (§3.1). Data of a subflow says where it belongs by that number, the
//! same in every copy (§3.3.1). What comes without that belongs to a connection that has fallen
//! back to TCP (§3.7): then the flow's bytes are those of its first subflow.

use std::collections::BTreeMap;
use std::ops::Range;

use sha2::{Digest, Sha256};
use weft_fabric::Data;
use weft_linux_hosts::codec::{MpJoin, Mptcp, Sequence, Tcp, TcpOption};
use weft_packet::{FlowId, HostId};

use super::numbering::Numbering;

/// State of one flow.
#[derive(Debug)]
struct Whole {
    size: u64,
    from: HostId,
    /// The data sequence numbers, their lower 32 bits.
    numbers: Numbering,
    /// Number of its subflows so far.
    subflows: usize,
    fell_back: bool,
}

impl Whole {
    /// As many bytes of the flow as there are: its end takes a number, too (§3.3.3).
    fn cut(&self, byte: u64) -> u64 {
        if self.size == 0 { byte } else { byte.min(self.size) }
    }

    fn byte(&mut self, number: Sequence) -> Option<u64> {
        let low = match number {
            Sequence::Short(low) => low,
            Sequence::Long(number) => number as u32,
        };
        self.numbers.byte(low)
    }

    /// Which bytes of the flow these of a subflow are, as the segment's option says.
    fn mapped(&mut self, option: &Mptcp, bytes: &Range<u64>) -> Option<Range<u64>> {
        let (first, of_subflow, mapped) = match option {
            Mptcp::Data { mapping: Some(mapping), .. } => {
                (self.byte(mapping.sequence)?, mapping.subflow.wrapping_sub(1), mapping.bytes)
            }
            // The first data of a connection is its first (§3.1).
            Mptcp::Capable(capable) => (0, 0, capable.data?.0),
            _ => return None,
        };
        // One mapping may be that of several segments.
        let begin = u64::from((bytes.start as u32).wrapping_sub(of_subflow));
        let length = bytes.end - bytes.start;
        let fits = begin + length <= u64::from(mapped);
        fits.then(|| self.cut(first + begin)..self.cut(first + begin + length))
    }
}

/// The flows of a run, each of which is an MPTCP connection.
#[derive(Debug)]
pub(super) struct Multipath {
    /// How many flows there are: a subflow's number is that of its flow, and so much on for each
    /// one before it.
    flows: usize,
    /// Subflows of a flow at most.
    most: usize,
    wholes: BTreeMap<FlowId, Whole>,
    /// By receiver and token.
    tokens: BTreeMap<(HostId, u32), FlowId>,
}

/// The token and the first data sequence number that follow from a key (RFC 8684 §3.1, §3.2).
fn derived(key: u64) -> (u32, u64) {
    let hash = Sha256::digest(key.to_be_bytes());
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
    (number(&hash[..4]) as u32, number(&hash[24..]))
}

fn options(tcp: &Tcp) -> impl Iterator<Item = &Mptcp> {
    tcp.options.iter().filter_map(|option| match option {
        TcpOption::Mptcp(option) => Some(option),
        _ => None,
    })
}

fn is_mapping(option: &Mptcp) -> bool {
    match option {
        Mptcp::Data { mapping, .. } => mapping.is_some(),
        Mptcp::Capable(capable) => capable.data.is_some(),
        _ => false,
    }
}

fn sender_key(tcp: &Tcp) -> Option<u64> {
    options(tcp).find_map(|option| match option {
        Mptcp::Capable(capable) => capable.sender_key,
        _ => None,
    })
}

impl Multipath {
    /// So many flows, none of which has begun, with at most `most` subflows each.
    pub const fn new(flows: usize, most: usize) -> Self {
        Self { flows, most, wholes: BTreeMap::new(), tokens: BTreeMap::new() }
    }

    /// A flow begins on its first subflow.
    pub fn begin(&mut self, flow: FlowId, from: HostId, size: u64) {
        let numbers = Numbering::default();
        self.wholes.insert(flow, Whole { size, from, numbers, subflows: 1, fell_back: false });
    }

    /// The number of the subflow that a SYN opens from one host to another; none if it joins no
    /// flow.
    pub fn joins(&mut self, syn: &Tcp, from: HostId, to: HostId) -> Option<FlowId> {
        let token = options(syn).find_map(|option| match option {
            Mptcp::Join(MpJoin::Syn { token, .. }) => Some(*token),
            _ => None,
        });
        let flow = *self.tokens.get(&(to, token?))?;
        let whole = self.wholes.get_mut(&flow).filter(|whole| whole.from == from)?;
        let subflow = whole.subflows;
        whole.subflows += 1;
        (subflow < self.most).then(|| FlowId(flow.0 + (subflow * self.flows) as u32))
    }

    fn flow_of(&self, subflow: FlowId) -> (FlowId, bool) {
        (FlowId((subflow.index() % self.flows) as u32), subflow.index() < self.flows)
    }

    /// Data of the flow in a segment from its sender, which carries `bytes` of the subflow.
    pub fn carried(&mut self, subflow: FlowId, tcp: &Tcp, bytes: &Range<u64>) -> Data {
        let (flow, is_first) = self.flow_of(subflow);
        let Some(whole) = self.wholes.get_mut(&flow) else { return Data::default() };
        if let Some(key) = sender_key(tcp).filter(|_| is_first && !whole.numbers.has_begun()) {
            whole.numbers.begin(derived(key).1.wrapping_add(1) as u32);
        }
        if bytes.is_empty() {
            return Data::default();
        }
        let payload = if options(tcp).any(is_mapping) {
            options(tcp).find_map(|option| whole.mapped(option, bytes)).unwrap_or(0..0)
        } else if is_first {
            whole.fell_back = true;
            whole.cut(bytes.start)..whole.cut(bytes.end)
        } else {
            0..0
        };
        Data { payload, acknowledged: None }
    }

    /// Whether these bytes of a flow are its last.
    pub fn is_end(&self, subflow: FlowId, bytes: &Range<u64>) -> bool {
        let whole = self.wholes.get(&self.flow_of(subflow).0);
        !bytes.is_empty() && whole.is_some_and(|whole| bytes.end == whole.size)
    }

    /// Data of the flow that a segment of its receiver acknowledges, which acknowledges so many
    /// bytes of the subflow.
    pub fn acknowledged(&mut self, subflow: FlowId, to: HostId, tcp: &Tcp, bytes: u64) -> Data {
        let (flow, is_first) = self.flow_of(subflow);
        if let Some(key) = sender_key(tcp).filter(|_| is_first) {
            self.tokens.insert((to, derived(key).0), flow);
        }
        let Some(whole) = self.wholes.get_mut(&flow) else { return Data::default() };
        let told = options(tcp).find_map(|option| match option {
            Mptcp::Data { acknowledgement, .. } => *acknowledgement,
            _ => None,
        });
        let number = match told {
            Some(number) => whole.byte(number),
            None => (whole.fell_back && is_first).then_some(bytes),
        };
        Data { payload: 0..0, acknowledged: number.map(|byte| whole.cut(byte)) }
    }
}

#[cfg(test)]
#[path = "multipath_tests.rs"]
mod tests;
