//! Looks at all links and receivers at a fixed interval: only if asked for.
//!
//! A run has no length known beforehand, and its memory must have a bound: when there are more than
//! [`MOST_ROWS`] rows, every two intervals become one, and from then on Weft looks half as often.

use weft_topology::Topology;
use weft_traffic::Flow;
use weft_units::{Span, Time};

use super::deliveries::{Deliveries, Delivery};
use super::network::{LinkDrops, LinkLook};

/// More rows than this, of links or of deliveries, are merged by two intervals. At 64 bytes a row:
/// 128 MB.
pub const MOST_ROWS: usize = 2_000_000;

/// One link in one interval. An interval in which a link did nothing, held nothing and was not
/// paused has no sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSample {
    /// The end of the interval.
    pub at: Time,
    /// The link, as the topology numbers them.
    pub link: u32,
    /// Packets dropped in the interval: the queue was full, the link down, or the wire lost them.
    /// At most 2^32 - 1, as `marked`.
    pub dropped: u32,
    /// Packets that got a congestion mark here in the interval.
    pub marked: u32,
    /// Bytes that left the queue in the interval; of the packet in service, what has left.
    pub sent_bytes: u64,
    /// Bytes that are queued at its end, with what is left of the packet in service.
    pub backlog_bytes: u64,
    /// The most that was queued at any instant of it, as for `backlog_bytes`.
    pub largest_backlog_bytes: u64,
    /// How long it was paused in the interval; of classes that were at one time each counts.
    pub paused: Span,
}

/// The memory of one switch in one interval. An interval in which nothing waited there has no
/// sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedBufferSample {
    /// The end of the interval.
    pub at: Time,
    /// The switch, as the topology numbers them.
    pub switch: u32,
    /// Bytes that wait at its end.
    pub held_bytes: u64,
    /// The most that waited at any instant of it.
    pub largest_bytes: u64,
}

/// A row that the next interval's row of the same link or receiver can be merged into.
pub trait Row: Copy {
    /// The end of the interval.
    fn at(&self) -> Time;
    /// Orders the rows of one interval.
    fn key(&self) -> u32;
    /// Makes the row end at `at`.
    fn end_at(&mut self, at: Time);
    /// Takes in the row of the interval that follows.
    fn absorb(&mut self, later: &Self);
}

/// Samples of a run, when it is over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Samples {
    /// Length of an interval; the last one may be shorter. `None`: nobody asked.
    pub every: Option<Span>,
    /// The links, by time and link.
    pub links: Vec<LinkSample>,
    /// Deliveries to receivers, by time and receiver.
    pub deliveries: Vec<Delivery>,
    /// The shared buffers of switches, by time and switch; empty where ports do not share any.
    pub shared_buffers: Vec<SharedBufferSample>,
}

/// Counts of a link at the last look.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    sent_bytes: u64,
    drops: LinkDrops,
    paused_ps: u64,
}

/// Whether the fabric rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quiescence {
    /// Something is queued or under way, or a port is paused.
    None,
    /// Nothing is, up to the next timer, if there is one.
    Until(Option<Time>),
}

/// Samples so far.
pub struct Sampler<'a> {
    every: Span,
    last_look: Time,
    before: Vec<Before>,
    links: Vec<LinkSample>,
    /// Deliveries to receivers.
    pub deliveries: Deliveries<'a>,
    shared_buffers: Vec<SharedBufferSample>,
}

impl<'a> Sampler<'a> {
    /// Looks every so often; `every` is not zero.
    pub fn new(every: Span, topology: &Topology, flows: &'a [Flow]) -> Self {
        Self {
            every,
            last_look: Time::ZERO,
            before: vec![Before::default(); topology.links.len()],
            links: Vec::new(),
            shared_buffers: Vec::new(),
            deliveries: Deliveries::new(topology.hosts, flows),
        }
    }

    /// Looks at all links at this instant, by `look`. Returns when to look again.
    pub fn look(&mut self, at: Time, rest: Quiescence, look: &mut dyn FnMut(usize) -> LinkLook) -> Time {
        self.note(at, look);
        let is_even = (at.as_ps() / self.every.as_ps()).is_multiple_of(2);
        if is_even && self.links.len().max(self.deliveries.rows.len()) > MOST_ROWS {
            self.every = self.every + self.every;
            merge_pairs(&mut self.links, self.every);
            merge_pairs(&mut self.deliveries.rows, self.every);
            merge_pairs(&mut self.shared_buffers, self.every);
        }
        self.next_look(at, rest)
    }

    /// An interval from now on; later, if nothing is queued or under way: up to the next timer
    /// nothing will be. Then the last look before that timer, or at the same time, sees what all
    /// those before it would have seen.
    fn next_look(&self, at: Time, rest: Quiescence) -> Time {
        let next = at.saturating_add(self.every);
        let Quiescence::Until(next_timer) = rest else { return next };
        let every = self.every.as_ps();
        let idle_until = next_timer.map_or(u64::MAX, Time::as_ps);
        next.max(Time::from_ps(idle_until / every * every))
    }

    fn note(&mut self, at: Time, look: &mut dyn FnMut(usize) -> LinkLook) {
        if at == self.last_look {
            return;
        }
        self.last_look = at;
        for (link, before) in self.before.iter_mut().enumerate() {
            let LinkLook { bytes, drops, backlogs, paused_ps } = look(link);
            let (backlog_bytes, largest_backlog_bytes) = backlogs;
            let unsent = backlog_bytes + drops.never_sent_bytes;
            let sent = bytes.saturating_sub(unsent).max(before.sent_bytes);
            let sample = LinkSample {
                at,
                link: link as u32,
                dropped: capped(drops.dropped - before.drops.dropped),
                marked: capped(drops.marked - before.drops.marked),
                sent_bytes: sent - before.sent_bytes,
                backlog_bytes,
                largest_backlog_bytes,
                paused: Span::from_ps(paused_ps - before.paused_ps),
            };
            *before = Before { sent_bytes: sent, drops, paused_ps };
            let is_idle = sample.sent_bytes == 0 && sample.largest_backlog_bytes == 0 && sample.dropped == 0;
            if !is_idle || !sample.paused.is_zero() {
                self.links.push(sample);
            }
        }
        self.deliveries.note(at);
    }

    /// Notes that so many bytes wait in the memory of a switch now, and the most since this was
    /// last noted. Before [`Self::look`].
    pub fn note_memory(&mut self, at: Time, switch: u32, held_bytes: u64, largest_bytes: u64) {
        if largest_bytes > 0 && at > self.last_look {
            self.shared_buffers.push(SharedBufferSample { at, switch, held_bytes, largest_bytes });
        }
    }

    /// Looks a last time, at the end of the run, and hands all out.
    pub fn finish(mut self, at: Time, look: &mut dyn FnMut(usize) -> LinkLook) -> Samples {
        self.note(at, look);
        let (links, shared_buffers) = (self.links, self.shared_buffers);
        Samples { every: Some(self.every), links, deliveries: self.deliveries.rows, shared_buffers }
    }
}

/// Makes one interval of length `every` of each two. `rows` are in order of time and key, and stay
/// so.
fn merge_pairs<R: Row>(rows: &mut Vec<R>, every: Span) {
    let (mut begin, mut kept) = (0, 0);
    while begin < rows.len() {
        let end = rows[begin].at().as_ps().next_multiple_of(every.as_ps());
        let count = rows[begin..].partition_point(|row| row.at().as_ps() <= end);
        // Stable: of one key, the earlier row comes first.
        rows[begin..begin + count].sort_by_key(Row::key);
        let first_kept = kept;
        for index in begin..begin + count {
            let row = rows[index];
            if kept > first_kept && rows[kept - 1].key() == row.key() {
                rows[kept - 1].absorb(&row);
            } else {
                rows[kept] = row;
                kept += 1;
            }
        }
        rows[first_kept..kept].iter_mut().for_each(|row| row.end_at(Time::from_ps(end)));
        begin += count;
    }
    rows.truncate(kept);
}

/// A count as a row holds it.
fn capped(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Row for LinkSample {
    fn at(&self) -> Time {
        self.at
    }

    fn key(&self) -> u32 {
        self.link
    }

    fn end_at(&mut self, at: Time) {
        // A link without a row in the later interval held nothing at its end.
        if self.at != at {
            self.backlog_bytes = 0;
        }
        self.at = at;
    }

    fn absorb(&mut self, later: &Self) {
        *self = Self {
            dropped: self.dropped.saturating_add(later.dropped),
            marked: self.marked.saturating_add(later.marked),
            sent_bytes: self.sent_bytes + later.sent_bytes,
            largest_backlog_bytes: self.largest_backlog_bytes.max(later.largest_backlog_bytes),
            paused: self.paused + later.paused,
            ..*later
        };
    }
}

impl Row for SharedBufferSample {
    fn at(&self) -> Time {
        self.at
    }

    fn key(&self) -> u32 {
        self.switch
    }

    fn end_at(&mut self, at: Time) {
        // A switch without a row in the later interval held nothing at its end.
        if self.at != at {
            self.held_bytes = 0;
        }
        self.at = at;
    }

    fn absorb(&mut self, later: &Self) {
        *self = Self { largest_bytes: self.largest_bytes.max(later.largest_bytes), ..*later };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at_us: u64, link: u32, sent_bytes: u64, backlog_bytes: u64) -> LinkSample {
        LinkSample {
            at: Time::ZERO + Span::from_us(at_us),
            link,
            dropped: 1,
            marked: 2,
            sent_bytes,
            backlog_bytes,
            largest_backlog_bytes: backlog_bytes + 7,
            paused: Span::from_ns(at_us),
        }
    }

    #[test]
    fn two_intervals_become_one_with_the_sums_the_largest_backlog_and_the_last() {
        let mut rows =
            vec![row(1, 3, 10, 5), row(1, 4, 1, 9), row(2, 2, 2, 2), row(2, 3, 20, 1), row(4, 3, 6, 6)];
        merge_pairs(&mut rows, Span::from_us(2));
        let brief: Vec<_> = rows
            .iter()
            .map(|row| (row.at.as_ps() / 1_000_000, row.link, row.sent_bytes, row.backlog_bytes, row.dropped))
            .collect();
        assert_eq!(brief, [(2, 2, 2, 2, 1), (2, 3, 30, 1, 2), (2, 4, 1, 0, 1), (4, 3, 6, 6, 1)]);
        assert_eq!(rows[1].largest_backlog_bytes, 12);
        assert_eq!(rows[2].largest_backlog_bytes, 16);
        assert_eq!((rows[1].paused, rows[2].paused), (Span::from_ns(3), Span::from_ns(1)));
    }
}
