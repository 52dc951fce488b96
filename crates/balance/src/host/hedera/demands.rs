//! Natural demands of large flows: what each would take if only the hosts' own cables limited it
//! (Hedera, §4.2).

use std::collections::BTreeMap;

/// A large flow, as the estimator sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// The host that sends it.
    pub src: u16,
    /// The host that it goes to.
    pub dst: u16,
    /// Demand as a share of a host's cable, 0 to 1.
    pub share: f64,
    converged: bool,
    limited_by_receiver: bool,
}

impl Demand {
    /// A flow whose demand is not estimated yet.
    pub const fn between(src: u16, dst: u16) -> Self {
        Self { src, dst, share: 0.0, converged: false, limited_by_receiver: false }
    }
}

/// Estimates all demands. Senders share their cable among the flows that no receiver has limited,
/// receivers cut those that ask for more than a fair share, and so on in turns until nothing
/// changes: each turn of receivers settles at least one more flow, or the last one.
pub fn estimate(flows: &mut [Demand]) {
    let by = |end: fn(&Demand) -> u16| {
        let mut ends: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (index, flow) in flows.iter().enumerate() {
            ends.entry(end(flow)).or_default().push(index);
        }
        ends
    };
    let (senders, receivers) = (by(|flow| flow.src), by(|flow| flow.dst));
    loop {
        let before: Vec<f64> = flows.iter().map(|flow| flow.share).collect();
        for members in senders.values() {
            share_sender(flows, members);
        }
        for members in receivers.values() {
            limit_receiver(flows, members);
        }
        // Shares are quotients of small numbers: equal again means equal for ever.
        let settled = flows.iter().zip(&before).all(|(flow, &before)| (flow.share - before).abs() < 1e-9);
        if settled {
            return;
        }
    }
}

/// A sender gives what its settled flows leave to the others, evenly.
fn share_sender(flows: &mut [Demand], members: &[usize]) {
    let settled: f64 =
        members.iter().filter(|&&index| flows[index].converged).map(|&index| flows[index].share).sum();
    let open = members.iter().filter(|&&index| !flows[index].converged).count();
    let share = (1.0 - settled).max(0.0) / open.max(1) as f64;
    for &index in members.iter().filter(|&&index| !flows[index].converged).collect::<Vec<_>>() {
        flows[index].share = share;
    }
}

/// A receiver that is asked for more than its cable cuts the greedy ones to an equal share of what
/// the modest leave.
fn limit_receiver(flows: &mut [Demand], members: &[usize]) {
    let total: f64 = members.iter().map(|&index| flows[index].share).sum();
    if total <= 1.0 + 1e-9 {
        return;
    }
    for &index in members {
        flows[index].limited_by_receiver = true;
    }
    let mut share = 1.0 / members.len() as f64;
    loop {
        let modest = |flow: &Demand| flow.limited_by_receiver && flow.share < share;
        let freed: Vec<usize> = members.iter().copied().filter(|&index| modest(&flows[index])).collect();
        for &index in &freed {
            flows[index].limited_by_receiver = false;
        }
        let (limited, others): (Vec<usize>, Vec<usize>) =
            members.iter().partition(|&&index| flows[index].limited_by_receiver);
        let taken: f64 = others.iter().map(|&index| flows[index].share).sum();
        if limited.is_empty() {
            return;
        }
        share = (1.0 - taken) / limited.len() as f64;
        if freed.is_empty() {
            for index in limited {
                flows[index].share = share;
                flows[index].converged = true;
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn demands(pairs: &[(u16, u16)]) -> Vec<f64> {
        let mut flows: Vec<Demand> = pairs.iter().map(|&(src, dst)| Demand::between(src, dst)).collect();
        estimate(&mut flows);
        flows.iter().map(|flow| flow.share).collect()
    }

    fn assert_close(found: &[f64], expected: &[f64]) {
        let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(close && found.len() == expected.len(), "{found:?} is not {expected:?}");
    }

    #[test]
    fn demands_are_those_worked_by_hand() {
        // Alone; two from one sender; two to one receiver.
        assert_close(&demands(&[(0, 1)]), &[1.0]);
        assert_close(&demands(&[(0, 1), (0, 2)]), &[0.5, 0.5]);
        assert_close(&demands(&[(0, 2), (1, 2)]), &[0.5, 0.5]);
        // 0 and 1 send to 3; 1 also to 2. Senders first: 1, 1/2, 1/2. Receiver 3 is asked for 3/2:
        // both get 1/2.
        assert_close(&demands(&[(0, 3), (1, 3), (1, 2)]), &[0.5, 0.5, 0.5]);
        // Three senders to 9, of which 0 has two more flows. Senders: 1/3 each for 0, 1 and 1 for
        // the others. Receiver 9: a fair third leaves nobody modest, so all three get 1/3.
        assert_close(&demands(&[(0, 9), (0, 5), (0, 6), (1, 9), (2, 9)]), &[1.0 / 3.0; 5]);
        // 0 has four flows, one of them to 9: 1/4 is modest, and 1 gets the other 3/4.
        assert_close(&demands(&[(0, 9), (0, 5), (0, 6), (0, 7), (1, 9)]), &[0.25, 0.25, 0.25, 0.25, 0.75]);
        // What receiver 9 does not let 0 send, 0 gives to its other flow: 3 senders leave 1/3, so
        // 2/3 goes to 5.
        assert_close(
            &demands(&[(0, 9), (1, 9), (2, 9), (0, 5)]),
            &[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0],
        );
    }

    proptest! {
        #[test]
        fn no_cable_is_asked_for_more_than_it_has_and_no_flow_for_nothing(
            pairs in prop::collection::vec((0u16..8, 8u16..16), 1..40),
        ) {
            let found = demands(&pairs);
            for host in 0..16 {
                let at = |&(src, dst): &(u16, u16)| src == host || dst == host;
                let total: f64 = pairs.iter().zip(&found).filter(|(pair, _)| at(pair)).map(|(_, demand)| demand).sum();
                prop_assert!(total <= 1.0 + 1e-6, "host {} carries {}", host, total);
            }
            prop_assert!(found.iter().all(|&demand| demand > 0.0));
        }
    }
}
