//! Records as bytes: each number in as many as it needs, since most are small.

use weft_transport::{ReceiverStats, SenderStats, Stalls};
use weft_units::{Span, Time};

use crate::engine::fct_breakdown::FctBreakdown;
use crate::engine::results::{FlowRecord, Retransmissions};

/// Appends a record.
pub fn write(record: &FlowRecord, bytes: &mut Vec<u8>) {
    visit(&mut record.clone(), &mut |number| {
        write_number(number, bytes);
        number
    });
}

/// Takes a record off the front; none where the bytes end early.
pub fn read(bytes: &mut &[u8]) -> Option<FlowRecord> {
    let (mut record, mut is_whole) = (FlowRecord::default(), true);
    visit(&mut record, &mut |_| {
        let number = read_number(bytes);
        is_whole &= number.is_some();
        number.unwrap_or_default()
    });
    is_whole.then_some(record)
}

/// LEB128: seven bits a byte, the lowest first; the eighth says that more follow.
fn write_number(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Shows each number of a record, always in the same order, and puts in its place what comes back.
fn visit(record: &mut FlowRecord, number: &mut impl FnMut(u64) -> u64) {
    // By name, so that a field more is not forgotten here.
    let FlowRecord {
        started,
        delivered,
        acknowledged,
        ideal,
        delivered_bytes,
        dropped,
        trimmed: cut,
        retransmissions: Retransmissions { after_loss, after_reordering, after_timeout },
        sender:
            SenderStats {
                segments_sent,
                retransmissions,
                timeouts,
                fast_recoveries,
                duplicate_acks,
                marked_acks,
                wasted_credits,
                nacks,
                cnps,
                timed_out,
            },
        receiver:
            ReceiverStats {
                segments_received,
                out_of_order,
                duplicates,
                without_payload,
                marked,
                refused,
                trimmed,
                nacks_sent,
                cnps_sent,
                credits_sent,
                reselections,
                stalls: Stalls { by_reordering, by_loss, last_by_reordering, last_end },
            },
        path_changes,
        wait_ps: [host, leaf, spine, last],
        fct_breakdown:
            FctBreakdown {
                transmission,
                waits: [fct_host, fct_leaf, fct_spine, fct_last],
                reordering,
                timeouts: fct_timeouts,
                acknowledgement,
                window,
                trails: [leaf_trail, spine_trail],
                pause,
                paused_tier,
                paused_trail,
            },
    } = record;
    for time in [started, delivered, acknowledged] {
        // No run lasts to the end of time.
        *time = number(time.map_or(0, |time| time.as_ps() + 1)).checked_sub(1).map(Time::from_ps);
    }
    *last_end = Time::from_ps(number(last_end.as_ps()));
    for span in [ideal, timed_out, by_reordering, by_loss, last_by_reordering, transmission]
        .into_iter()
        .chain([fct_host, fct_leaf, fct_spine, fct_last, reordering, fct_timeouts])
        .chain([acknowledgement, window, pause])
    {
        *span = Span::from_ps(number(span.as_ps()));
    }
    for count in [delivered_bytes, segments_sent, wasted_credits, segments_received, credits_sent]
        .into_iter()
        .chain([host, leaf, spine, last])
    {
        *count = number(*count);
    }
    for count in [dropped, after_loss, after_reordering, after_timeout, retransmissions, timeouts]
        .into_iter()
        .chain([
            fast_recoveries,
            duplicate_acks,
            marked_acks,
            out_of_order,
            duplicates,
            without_payload,
            marked,
        ])
        .chain([reselections, path_changes, nacks, cnps, refused, trimmed, nacks_sent, cnps_sent, cut])
    {
        *count = number(u64::from(*count)) as u32;
    }
    for trail in [leaf_trail, spine_trail, paused_trail] {
        *trail = number(u64::from(*trail)) as u16;
    }
    *paused_tier = number(u64::from(*paused_tier)) as u8;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record in which every number differs from all others, and half of them take all their
    /// bytes.
    fn full() -> FlowRecord {
        let (mut record, mut next) = (FlowRecord::default(), 0u64);
        visit(&mut record, &mut |_| {
            next += 1;
            if next.is_multiple_of(2) { u64::MAX - next } else { next }
        });
        record
    }

    #[test]
    fn what_is_written_reads_as_the_same_record_whatever_is_in_it() {
        let mut bytes = Vec::new();
        for record in [&full(), &FlowRecord::default(), &full()] {
            write(record, &mut bytes);
        }
        let mut left = bytes.as_slice();
        let read: Vec<FlowRecord> = std::iter::from_fn(|| read(&mut left)).collect();
        assert_eq!((read, left.len()), (vec![full(), FlowRecord::default(), full()], 0));
    }

    #[test]
    fn a_record_that_ends_early_is_none() {
        let mut bytes = Vec::new();
        write(&full(), &mut bytes);
        for end in 0..bytes.len() {
            assert_eq!(read(&mut &bytes[..end]), None, "{end} bytes of {}", bytes.len());
        }
    }
}
