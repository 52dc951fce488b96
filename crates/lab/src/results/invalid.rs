//! Runs whose results answer nothing.

use weft_fabric::PacketCounts;
use weft_units::{Span, Time};

/// Why the results of a run answer nothing, a sentence each; nothing if they do. Of its `finite`
/// flows that can end, `finished` did until its end, which a time limit may have set.
pub fn invalid(
    packets: &PacketCounts,
    (finite, finished): (usize, u64),
    end: Time,
    cut_off_by: Option<Span>,
) -> Vec<String> {
    let PacketCounts { sent, unroutable, .. } = *packets;
    let mut reasons = Vec::new();
    if unroutable > sent / 2 {
        reasons.push(format!("{unroutable} of {sent} packets found no route to their host"));
    }
    if finite > 0 && finished == 0 {
        let flows = if finite == 1 { "its flow" } else { "any of its flows" };
        let end = end.since(Time::ZERO).rounded();
        let by = cut_off_by
            .map_or_else(String::new, |limit| format!(" (run.time_limit = {limit} after the last start)"));
        reasons.push(format!("the run ended at {end} before {flows} of finite size finished{by}"));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(sent: u64, unroutable: u64, finite: usize, finished: u64) -> Vec<String> {
        let packets = PacketCounts { sent, unroutable, ..PacketCounts::default() };
        let end = Time::ZERO + Span::from_ms(12);
        invalid(&packets, (finite, finished), end, Some(Span::from_ms(10)))
    }

    #[test]
    fn most_packets_without_a_route_and_no_flow_that_finishes_are_told() {
        let no_route = "8 of 14 packets found no route to their host";
        let none = "the run ended at 12 ms before any of its flows of finite size finished (run.time_limit = 10ms after the last start)";
        assert_eq!(told(14, 8, 3, 1), [no_route]);
        assert_eq!(told(14, 8, 3, 0), [no_route, none]);
        assert_eq!(told(14, 0, 1, 0), [none.replace("any of its flows", "its flow")]);
    }

    #[test]
    fn no_time_limit_is_blamed_where_another_reason_ended_the_run() {
        let found = invalid(&PacketCounts::default(), (2, 0), Time::ZERO + Span::from_ms(3), None);
        assert_eq!(found, ["the run ended at 3 ms before any of its flows of finite size finished"]);
    }

    #[test]
    fn runs_that_answer_something_are_not() {
        for (sent, unroutable, finite, finished) in
            [(14, 7, 3, 1), (14, 0, 0, 0), (0, 0, 0, 0), (14, 0, 50, 1)]
        {
            assert!(told(sent, unroutable, finite, finished).is_empty());
        }
    }
}
