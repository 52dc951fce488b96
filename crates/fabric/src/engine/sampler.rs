//! Looks at all links at a fixed interval: only if asked for.

use weft_units::{Span, Time};

use super::network::Network;

/// One link in one interval. An interval in which a link sent nothing and held nothing has no sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSample {
    /// The end of the interval.
    pub at: Time,
    /// The link, as the topology numbers it.
    pub link: u32,
    /// Bytes that left the queue in the interval; of the packet in service, what has left.
    pub sent_bytes: u64,
    /// Bytes that are queued at its end, with what is left of the packet in service.
    pub backlog_bytes: u64,
}

/// What was seen so far.
pub struct Sampler {
    every: Span,
    /// Bytes that had left each link by the last look.
    sent_before: Vec<u64>,
    samples: Vec<LinkSample>,
}

impl Sampler {
    /// Looks every so often; `every` is not zero.
    pub fn new(every: Span, links: usize) -> Self {
        Self { every, sent_before: vec![0; links], samples: Vec::new() }
    }

    /// Looks at all links now. Returns when to look again.
    pub fn look(&mut self, network: &Network<'_>) -> Time {
        for (link, sent_before) in self.sent_before.iter_mut().enumerate() {
            let backlog_bytes = network.backlog_bytes(link);
            let sent = network.links[link].bytes.saturating_sub(backlog_bytes);
            // What a link lost when it went down counts as sent, once.
            let sent_bytes = sent.saturating_sub(*sent_before);
            *sent_before = sent.max(*sent_before);
            if sent_bytes > 0 || backlog_bytes > 0 {
                self.samples.push(LinkSample {
                    at: network.now,
                    link: link as u32,
                    sent_bytes,
                    backlog_bytes,
                });
            }
        }
        network.now.saturating_add(self.every)
    }

    /// All samples, by time and link.
    pub fn into_samples(self) -> Vec<LinkSample> {
        self.samples
    }
}
