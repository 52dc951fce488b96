//! Identities that hold in every summary, whatever its spec: flows and losses that are counted in
//! several ways agree.
//!
//! A debug build checks them when a run ends, so all tests and the fuzzer do.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};

use super::bin::Bin;
use super::summary::Summary;

/// Returns a sentence for each identity that does not hold. `ending` flows end if they are let, and
/// `finished` of them did; `drops` is the table of losses.
pub(crate) fn of_summary(
    summary: &Summary,
    (ending, finished): (u64, u64),
    drops: &RecordBatch,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut equal = |what: &str, one: u64, other: u64| {
        if one != other {
            found.push(format!("{what}: {one} and {other}"));
        }
    };
    let beside = summary.unmeasured.unwrap_or_default();
    let open = summary.all.unfinished + summary.all.never_started + beside.unfinished + beside.never_started;
    equal("flows that end, and finished, unfinished and never started ones", ending, finished + open);
    let of_sizes = [&summary.small, &summary.medium, &summary.large];
    let of_classes = || summary.classes.iter().map(|class| &class.bin);
    for (what, count) in [
        ("flows", (|bin| bin.flows) as fn(&Bin) -> u64),
        ("unfinished flows", |bin| bin.unfinished),
        ("flows that never started", |bin| bin.never_started),
    ] {
        let all = count(&summary.all);
        equal(&format!("{what}, and those of all sizes"), all, of_sizes.map(count).iter().sum());
        if !summary.classes.is_empty() {
            equal(&format!("{what}, and those of all classes"), all, of_classes().map(count).sum());
        }
    }
    if summary.faults.is_empty() {
        return found;
    }
    let dropped = summary.totals.dropped_packets;
    let packets = || column::<UInt64Type>(drops, "packets").flatten();
    equal("packets dropped, and those of all places, reasons and times", dropped, packets().sum());
    let mut by_fault: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    for (fault, packets) in column::<UInt32Type>(drops, "fault").zip(packets()) {
        *by_fault.entry(fault).or_default() += packets;
    }
    let mut charged = by_fault.get(&None).copied().unwrap_or_default();
    for (number, fault) in (0..).zip(&summary.faults) {
        let own = fault.lost_packets + fault.unroutable_packets;
        charged += own;
        let of_rows = by_fault.get(&Some(number)).copied().unwrap_or_default();
        equal(&format!("packets lost into fault {number}, and those of its places"), own, of_rows);
    }
    equal("packets dropped, and those lost into faults and otherwise", dropped, charged);
    let mut by_cause: BTreeMap<&str, u64> = BTreeMap::new();
    let causes = drops.column_by_name("cause").map(AsArray::as_string::<i32>);
    for (cause, packets) in causes.into_iter().flatten().flatten().zip(packets()) {
        *by_cause.entry(cause).or_default() += packets;
    }
    let mut by_cause_of_phases: BTreeMap<&str, u64> = BTreeMap::new();
    for (cause, packets) in summary.phases.iter().flat_map(|phase| phase.lost.by_cause()) {
        *by_cause_of_phases.entry(cause).or_default() += packets;
    }
    for (cause, packets) in by_cause_of_phases {
        let of_rows = by_cause.remove(cause).unwrap_or_default();
        equal(&format!("packets lost by {cause}, and those of all phases"), of_rows, packets);
    }
    equal("packets lost by another reason", by_cause.values().sum(), 0);
    found
}

fn column<'t, T: arrow_array::types::ArrowPrimitiveType>(
    table: &'t RecordBatch,
    name: &str,
) -> impl Iterator<Item = Option<T::Native>> + 't {
    let values = table.column_by_name(name).map(AsArray::as_primitive::<T>);
    values.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::ops::ControlFlow;

    use super::*;
    use crate::{Cores, Prepared, SpecSource};

    #[test]
    fn a_flow_or_a_loss_that_is_on_no_account_is_named() {
        let fault = "[{ share = 1.0, loss = 0.2, at = '10us' }]";
        let source = SpecSource::from_text("[traffic]\nflows = 40\nload = 0.5\n[fabric]\nleaves = 2")
            .with("fabric.fault", fault);
        let outcome = Prepared::new(&source)
            .unwrap()
            .run(&mut |_| ControlFlow::Continue(()), None, Cores::UpTo(NonZeroUsize::MIN))
            .unwrap();
        let (drops, finished) = (outcome.table("drops").unwrap(), 40 - outcome.summary.all.unfinished);
        let found = |change: fn(&mut Summary)| {
            let mut summary = outcome.summary.clone();
            change(&mut summary);
            of_summary(&summary, (40, finished - summary.all.never_started), &drops).join("; ")
        };
        assert!(outcome.summary.totals.dropped_packets > 0);
        assert_eq!(found(|_| {}), "");
        assert!(found(|summary| summary.all.unfinished += 1).starts_with("flows that end, and finished"));
        assert!(found(|summary| summary.small.flows += 1).starts_with("flows, and those of all sizes"));
        assert!(found(|summary| summary.totals.dropped_packets += 1).contains("those lost into faults"));
        assert!(found(|summary| summary.faults[0].lost_packets += 1).contains("packets lost into fault 0"));
        assert!(found(|summary| summary.phases[0].lost.queue += 1).contains("packets lost by queue"));
    }
}
