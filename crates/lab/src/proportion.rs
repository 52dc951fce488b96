//! ECN thresholds and buffers that do not fit the rate of their ports.

use std::collections::BTreeMap;

use weft_topology::{Fabric, Limit, LinkSpec, Marking, QueueSpec, Threshold, Tier};

/// DCTCP's threshold: 65 packets of 1,500 bytes at 10 Gbit/s, 20 at 1 Gbit/s (Alizadeh et al.,
/// SIGCOMM 2010, §4.1). At one round-trip time, C x RTT / 7 (§3.4) and the bursts of a host grow
/// with the rate, and so does the threshold.
const MARK: u64 = 97_500;
const LEAST_MARK: u64 = 30_000;
/// The default buffer of a port, which is meant for 10 Gbit/s.
const BUFFER: u64 = 375_000;
const AT_BPS: u64 = 10_000_000_000;
/// A threshold is out of proportion if it is more than so many times too small or too large; a
/// buffer, if it is that much too small.
const TIMES: u64 = 4;

/// Settings out of proportion, by table and key in the spec and value: the rates of the ports, and
/// the bytes that would fit them.
type Found = BTreeMap<(&'static str, &'static str, u64), BTreeMap<u64, u64>>;

/// Says which buffers of switches, and which thresholds if a transport uses ECN, are out of
/// proportion to the rates of their ports.
pub(crate) fn out_of_proportion(fabric: &Fabric, full_bytes: u16, uses_ecn: bool) -> Vec<String> {
    let mut found = Found::new();
    // With one rack, nothing goes up.
    let one_rack = fabric.topology.racks() < 2;
    let used = |link: &&LinkSpec| !one_rack || matches!(link.tier, Tier::Host | Tier::Last);
    for link in fabric.topology.links.iter().filter(used) {
        let bps = link.condition.rate.as_bps();
        let mut check = |queue: &QueueSpec, trims: bool| {
            if uses_ecn && let Some(bytes) = threshold(queue.marking, full_bytes) {
                let fits = in_proportion(MARK, bps).max(LEAST_MARK);
                if bytes * TIMES < fits || bytes > fits * TIMES {
                    let table = if link.tier == Tier::Host { "host_queue" } else { "switch_queue" };
                    found.entry((table, "mark", bytes)).or_default().insert(bps, fits);
                }
            }
            if let Limit::AtMost(limit) = queue.limit
                && link.tier != Tier::Host
                && !trims
            {
                let (bytes, fits) = (in_bytes(limit, full_bytes), in_proportion(BUFFER, bps));
                if bytes * TIMES < fits {
                    found.entry(("switch_queue", "buffer", bytes)).or_default().insert(bps, fits);
                }
            }
        };
        match &link.classes {
            Some(spec) => {
                spec.classes.iter().for_each(|class| check(&class.queue, class.trim_bytes.is_some()));
            }
            None => check(&link.queue, false),
        }
    }
    found.iter().map(|(what, fits)| said(*what, fits)).collect()
}

fn said((table, key, bytes): (&str, &str, u64), fits: &BTreeMap<u64, u64>) -> String {
    let (reference, whose) = if key == "mark" { (MARK, "DCTCP's ") } else { (BUFFER, "") };
    let fits: Vec<String> =
        fits.iter().map(|(&bps, &fits)| format!("{} at {}", size(fits), scaled(bps, "bit/s"))).collect();
    format!(
        "fabric.{table}.{key} = {} does not fit the rate of its ports: {whose}{} at 10 Gbit/s correspond to {}",
        size(bytes),
        size(reference),
        fits.join(" and ")
    )
}

/// The backlog beyond which everything is marked.
fn threshold(marking: Marking, full_bytes: u16) -> Option<u64> {
    match marking {
        Marking::Never => None,
        Marking::Step(threshold) => Some(in_bytes(threshold, full_bytes)),
        Marking::Red { max, .. } | Marking::Leaving { max, .. } => Some(max),
    }
}

fn in_bytes(threshold: Threshold, full_bytes: u16) -> u64 {
    match threshold {
        Threshold::Bytes(bytes) => bytes,
        Threshold::Packets(packets) => u64::from(packets).saturating_mul(full_bytes.into()),
    }
}

fn in_proportion(bytes: u64, bps: u64) -> u64 {
    (u128::from(bytes) * u128::from(bps) / u128::from(AT_BPS)) as u64
}

fn size(bytes: u64) -> String {
    scaled(bytes, "B").replace("kB", "KB")
}

/// A value with its unit, as people read it: `97.5 KB`, `100 Gbit/s`.
fn scaled(value: u64, unit: &str) -> String {
    let scales = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0)];
    let (prefix, scale) = scales.into_iter().find(|(_, scale)| value as f64 >= *scale).unwrap_or(("", 1.0));
    let number = format!("{:.2}", value as f64 / scale);
    let number = number.trim_end_matches('0').trim_end_matches('.');
    format!("{number} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use crate::{Prepared, SpecSource};

    fn warnings(keys: &[(&str, &str)]) -> Vec<String> {
        let source = SpecSource::from_text("[traffic]\nsize = \"20KB\"\nload = 0.4\nflows = 20\n");
        let source = keys.iter().fold(source, |source, (key, value)| source.with(key, value));
        Prepared::new(&source).unwrap().fabric.warnings
    }

    fn rates(rate: &str) -> [(&'static str, &str); 2] {
        [("fabric.host_rate", rate), ("fabric.fabric_rate", rate)]
    }

    const BUFFER_AT_100: &str = "fabric.switch_queue.buffer = 375 KB does not fit the rate of its ports: 375 KB at 10 Gbit/s correspond to 3.75 MB \
                                 at 100 Gbit/s";

    #[test]
    fn thresholds_and_buffers_of_another_rate_are_named_with_those_that_fit() {
        assert_eq!(
            warnings(&rates("100Gbps")),
            [
                "fabric.host_queue.mark = 97.5 KB does not fit the rate of its ports: DCTCP's 97.5 KB at 10 Gbit/s correspond to 975 KB at 100 Gbit/s",
                BUFFER_AT_100,
                "fabric.switch_queue.mark = 97.5 KB does not fit the rate of its ports: DCTCP's 97.5 KB at 10 Gbit/s correspond to 975 KB at 100 Gbit/s",
            ]
        );
    }

    #[test]
    fn several_rates_of_one_queue_are_one_warning() {
        let found = warnings(&[
            ("fabric.host_rate", "100Gbps"),
            ("fabric.fabric_rate", "400Gbps"),
            ("fabric.host_queue.mark", "never"),
        ]);
        assert_eq!(found.len(), 2);
        assert!(found[0].ends_with("3.75 MB at 100 Gbit/s and 15 MB at 400 Gbit/s"), "{found:?}");
    }

    #[test]
    fn what_fits_its_rate_or_is_used_by_nobody_is_not_named() {
        for rate in ["1Gbps", "10Gbps", "25Gbps", "40Gbps"] {
            assert_eq!(warnings(&rates(rate)), Vec::<String>::new(), "{rate}");
        }
        let with = |more: &[(&str, &str)]| warnings(&[&rates("100Gbps"), more].concat());
        let queues = [
            ("fabric.switch_queue.mark", "975KB"),
            ("fabric.host_queue.mark", "never"),
            ("fabric.switch_queue.buffer", "3750KB"),
        ];
        assert_eq!(with(&queues), Vec::<String>::new());
        assert_eq!(with(&[("transport.name", "tcp")]), [BUFFER_AT_100], "no transport uses ECN");
        let red = ("fabric.switch_queue.red", "{ min = \"100KB\", max = \"400KB\", probability = 0.2 }");
        assert_eq!(with(&[red, queues[1], queues[2]]), Vec::<String>::new());
    }

    #[test]
    fn links_that_nothing_takes_are_not_asked() {
        let one_rack =
            [("fabric.leaves", "1"), ("fabric.host_rate", "1Gbps"), ("traffic.load_of", "host-links")];
        let small = [("fabric.switch_queue.buffer", "64KB"), ("fabric.switch_queue.mark", "20packets")];
        assert_eq!(
            warnings(&[one_rack, [small[0], small[1], ("traffic.pairs", "anywhere")]].concat()),
            Vec::<String>::new()
        );
    }

    #[test]
    fn thresholds_of_a_fast_port_at_a_slow_one_are_named() {
        let keys = [("fabric.switch_queue.mark", "300packets"), ("fabric.switch_queue.buffer", "1MB")];
        let found = warnings(&[&rates("1Gbps")[..], &keys].concat());
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("fabric.switch_queue.mark = 450 KB")
                && found[0].ends_with("correspond to 30 KB at 1 Gbit/s"),
            "{found:?}"
        );
    }
}
