//! The `[fabric]` table: defaults, documentation, refusals, and no panic for anything.

use std::path::Path;

use proptest::prelude::*;
use weft_topology::{FabricSpec, Limit, Marking, Scheduling, Threshold, Tier, Topology, fabrics};
use weft_units::Bytes;

fn topology(keys: &str) -> Topology {
    let spec: FabricSpec = toml::from_str(&format!("kind = 'leaf-spine'\n{keys}")).unwrap();
    spec.build(1, Path::new(".")).unwrap().topology
}

fn message(toml: &str) -> String {
    let built = toml::from_str::<FabricSpec>(toml).map_err(|e| e.message().to_owned());
    built.and_then(|spec| spec.build(1, Path::new(".")).map_err(|e| e.to_string())).unwrap_err()
}

fn queue(topology: &Topology, tier: Tier) -> (Limit, Marking) {
    let link = topology.links.iter().find(|link| link.tier == tier).unwrap();
    (link.queue.limit, link.queue.marking)
}

#[test]
fn queues_have_the_defaults_of_dctcp_at_ten_gigabit() {
    let fabric = topology("");
    let expected =
        (Limit::AtMost(Threshold::Bytes(250 * 1_500)), Marking::Step(Threshold::Bytes(65 * 1_500)));
    for tier in [Tier::Leaf, Tier::Spine, Tier::Last] {
        assert_eq!(queue(&fabric, tier), expected);
    }
    assert_eq!(queue(&fabric, Tier::Host), (Limit::Unlimited, Marking::Step(Threshold::Bytes(97_500))));
}

#[test]
fn one_key_of_a_queue_leaves_the_others_at_their_defaults() {
    let fabric = topology("switch_queue.buffer = '100packets'\nhost_queue.mark = '20packets'");
    let mark = Marking::Step(Threshold::Bytes(97_500));
    assert_eq!(queue(&fabric, Tier::Leaf), (Limit::AtMost(Threshold::Packets(100)), mark));
    assert_eq!(queue(&fabric, Tier::Host), (Limit::Unlimited, Marking::Step(Threshold::Packets(20))));
    assert_eq!(queue(&topology("switch_queue.mark = 'never'"), Tier::Leaf).1, Marking::Never);
    let red = topology("switch_queue.red = { min = '30KB', max = '90KB', probability = 0.1 }");
    let expected = Marking::Red { min: 30_000, max: 90_000, probability: 0.1 };
    assert_eq!(queue(&red, Tier::Leaf).1, expected, "instead of the default mark");
}

#[test]
fn a_resolved_spec_says_every_default_and_means_the_same() {
    let faults = "[[fault]]\nshare = 0.25\nrate = '1Gbps'";
    for kind in ["kind = 'leaf-spine'", "kind = 'fat-tree'\nk = 4", "kind = 'leaf-spine'\nswitch_queue = {}"]
    {
        let spec: FabricSpec = toml::from_str(&format!("{kind}\n{faults}")).unwrap();
        let resolved = spec.resolved();
        let text = toml::to_string(&resolved).unwrap();
        assert!(text.contains("mark = \"97500B\"") && text.contains("reroute_after = \"10ms\""), "{text}");
        assert_eq!(toml::from_str::<FabricSpec>(&text).unwrap(), resolved);
        let build = |spec: &FabricSpec| spec.build(7, Path::new(".")).unwrap();
        assert_eq!(build(&spec), build(&resolved));
    }
}

#[test]
fn every_key_is_documented_with_its_default() {
    for info in fabrics() {
        let properties = info.parameters["properties"].as_object().unwrap();
        assert!(properties.contains_key("fault") && properties.contains_key("switch_queue"));
        for (key, schema) in properties {
            let doc = schema["description"].as_str().unwrap_or_default();
            let required = key == "file";
            assert!(required || doc.contains("Default:"), "{}.{key}: {doc:?}", info.name);
        }
    }
}

#[test]
fn mistakes_are_answered_with_what_is_allowed() {
    for (keys, expected) in [
        ("leaves = 0", "fabric.leaves = 0: allowed is at least 1"),
        ("spines = 0", "fabric.spines = 0: allowed is at least 1"),
        ("hosts_per_leaf = 0", "fabric.hosts_per_leaf = 0: allowed is at least 1"),
        ("links_per_pair = 0", "fabric.links_per_pair = 0: allowed is at least 1"),
        ("fabric_rate = '0bps'", "fabric.fabric_rate = 0bps: allowed is 1Mbps to 100Tbps"),
        ("host_delay = '11s'", "fabric.host_delay = 11s: allowed is at most 10s"),
        ("reroute_after = '11s'", "fabric.reroute_after = 11s: allowed is at most 10s"),
        ("overhead = '2KB'", "fabric.overhead = 2KB: allowed is at most 1KB"),
        (
            "overhead = '20B'\nswitch_queue.buffer = '1519B'",
            "fabric.switch_queue.buffer = 1519B: allowed is room for at least one packet of 1520 bytes",
        ),
        (
            "host_queue.buffer = '0packets'",
            "fabric.host_queue.buffer = 0packets: allowed is room for at least one packet of 1500 bytes",
        ),
        (
            "switch_queue = { mark = '9KB', red = { min = '1KB', max = '2KB', probability = 0.1 } }",
            "fabric.switch_queue.mark and fabric.switch_queue.red exclude each other: a queue marks by one rule",
        ),
        (
            "switch_queue.red = { min = '2KB', max = '2KB', probability = 0.1 }",
            "fabric.switch_queue.red.min = 2KB: allowed is less than fabric.switch_queue.red.max, which is 2KB",
        ),
        (
            "switch_queue.red = { min = '1KB', max = '2KB', probability = nan }",
            "fabric.switch_queue.red.probability = NaN: allowed is a number above 0 and up to 1",
        ),
        (
            "leaves = 4096\nhosts_per_leaf = 17",
            "the fabric has 69632 hosts: at most 65536 are possible; make fabric.leaves, fabric.spines, \
             fabric.hosts_per_leaf or fabric.links_per_pair smaller",
        ),
        (
            "spines = 40000\nleaves = 1",
            "the fabric has 40016 ports at one switch: at most 32767 are possible; make fabric.leaves, \
             fabric.spines, fabric.hosts_per_leaf or fabric.links_per_pair smaller",
        ),
    ] {
        assert_eq!(message(&format!("kind = 'leaf-spine'\n{keys}")), expected);
    }
    for k in [0, 3] {
        let expected = format!("fabric.k = {k}: allowed is an even number, at least 2");
        assert_eq!(message(&format!("kind = 'fat-tree'\nk = {k}")), expected);
    }
}

#[test]
fn classes_that_cannot_be_meant_are_refused_with_what_is_missing_or_double() {
    let class = |holds: &str| format!("[[switch_queue.class]]\nholds = {holds}\n");
    let (short, rest) = (class("['short']"), class("['long', 'unknown', 'best-effort']"));
    for (keys, expected) in [
        (
            format!("{short}{rest}"),
            "fabric.switch_queue.class and fabric.switch_queue.scheduler = \"fifo\" exclude each other: one queue holds \
             every packet; classes need \"strict\" or \"weighted\"",
        ),
        (
            "[switch_queue]\nscheduler = 'strict'\n".to_owned(),
            "fabric.switch_queue.class is missing: no class holds the packets of \"unknown\" flows",
        ),
        (
            format!("[switch_queue]\nscheduler = 'strict'\n{rest}"),
            "fabric.switch_queue.class is missing: no class holds the packets of \"short\" flows",
        ),
        (
            format!("[switch_queue]\nscheduler = 'strict'\n{short}{rest}{}", class("['schemes', 'long']")),
            "fabric.switch_queue.class[1].holds and fabric.switch_queue.class[2].holds exclude each other: both name \
             \"long\"",
        ),
        (
            format!("[switch_queue]\nscheduler = 'weighted'\n{short}weight = 0\n{rest}"),
            "fabric.switch_queue.class[0].weight = 0: allowed is 1 to 1000",
        ),
        (
            format!("[switch_queue]\nscheduler = 'strict'\n{short}{rest}weight = 2\n"),
            "fabric.switch_queue.class[1].weight and fabric.switch_queue.scheduler = \"strict\" exclude each other: the \
             order of classes decides",
        ),
        (
            format!("[switch_queue]\nscheduler = 'strict'\n{short}buffer = '1KB'\n{rest}"),
            "fabric.switch_queue.class[0].buffer = 1KB: allowed is room for at least one packet of 1500 bytes",
        ),
        (
            format!("[switch_queue]\nscheduler = 'strict'\n{short}{rest}{}", class("[]")),
            "fabric.switch_queue.class[2].holds = []: allowed is at least one of unknown, short, long, best-effort, tc4, tc5, \
             tc6, tc7, schemes, acks, notifications, trimmed",
        ),
    ] {
        assert_eq!(message(&format!("kind = 'leaf-spine'\n{keys}")), expected);
    }
}

#[test]
fn a_class_has_the_buffer_and_marks_of_its_port_unless_it_says_otherwise() {
    let toml = "kind = 'leaf-spine'\n[switch_queue]\nscheduler = 'weighted'\nbuffer = '100packets'\n\
                [[switch_queue.class]]\nholds = ['short']\nred = { min = '1KB', max = '2KB', probability = 0.5 }\n\
                [[switch_queue.class]]\nholds = ['long', 'unknown', 'best-effort']\nbuffer = '9KB'\nweight = 3\n";
    let spec: FabricSpec = toml::from_str(toml).unwrap();
    let resolved = spec.resolved();
    assert_eq!(resolved.resolved(), resolved);
    for spec in [spec, resolved] {
        let topology = spec.build(1, Path::new(".")).unwrap().topology;
        let port = topology.links.last().unwrap();
        let classes = port.classes.as_deref().unwrap();
        assert_eq!(
            (classes.scheduling, classes.sorting.of_flows, classes.sorting.schemes),
            (Scheduling::Weighted, [1, 0, 1, 1, 1, 1, 1, 1], 1)
        );
        let [short, rest] = classes.classes[..] else { panic!("two classes") };
        assert_eq!((short.weight, rest.weight), (1, 3));
        assert_eq!(short.queue.limit, Limit::AtMost(Threshold::Packets(100)));
        assert_eq!(short.queue.marking, Marking::Red { min: 1_000, max: 2_000, probability: 0.5 });
        assert_eq!(rest.queue.limit, Limit::AtMost(Threshold::Bytes(9_000)));
        assert_eq!(rest.queue.marking, Marking::Step(Threshold::Bytes(97_500)));
        assert_eq!(port.buffer(1_500), Some(Bytes::new(159_000)));
        assert!(topology.links[0].classes.is_none(), "hosts have one queue");
    }
}

#[test]
fn marks_at_departure_need_classes_and_bytes() {
    let classes = "scheduler = 'strict'\nmark_at = 'departure'\n[[switch_queue.class]]\nholds = ['acks']\nmark_at = 'arrival'\n\
                   [[switch_queue.class]]\nholds = ['short', 'long', 'unknown', 'best-effort']\n";
    let all = |keys: &str| format!("kind = 'leaf-spine'\n[switch_queue]\n{keys}{classes}");
    let built = |keys: &str| {
        let spec: FabricSpec = toml::from_str(&all(keys)).unwrap();
        let topology = spec.build(1, Path::new(".")).unwrap().topology;
        let classes = topology.links.last().unwrap().classes.clone().unwrap();
        [classes.classes[0].queue.marking, classes.classes[1].queue.marking]
    };
    let above = Marking::Leaving { min: 9_001, max: 9_001, probability: 1.0 };
    assert_eq!(built("mark = '9000B'\n"), [Marking::Step(Threshold::Bytes(9_000)), above]);
    let red = Marking::Leaving { min: 1_000, max: 2_000, probability: 0.5 };
    assert_eq!(built("red = { min = '1KB', max = '2KB', probability = 0.5 }\n")[1], red);
    assert_eq!(
        message(&all("mark = '9packets'\n")),
        "fabric.switch_queue.mark = 9packets: allowed is bytes, where fabric.switch_queue.mark_at is \"departure\""
    );
    assert_eq!(
        message("kind = 'leaf-spine'\nswitch_queue.mark_at = 'departure'"),
        "fabric.switch_queue.class is missing: fabric.switch_queue.mark_at = \"departure\" needs classes, or fabric.shared_buffer"
    );
}

#[test]
fn what_cannot_be_read_is_refused_with_what_is_allowed() {
    for (spec, expected) in [
        ("leaves = 8", "missing field `kind`"),
        (
            "kind = 'leafspine'",
            "unknown variant `leafspine`, expected one of `leaf-spine`, `fat-tree`, `rail`, `graph`",
        ),
        ("kind = 'fat-tree'\nhosts_per_egde = 3", "unknown field `hosts_per_egde`, expected one of `k`"),
        ("kind = 'leaf-spine'\nleaves = -1", "invalid value: integer `-1`, expected u32"),
        ("kind = 'leaf-spine'\nhost_rate = '10'", "\"10\" is not a rate: the unit is missing"),
        ("kind = 'leaf-spine'\nswitch_queue.buffer = 'x'", "\"x\" is not a size"),
        ("kind = 'leaf-spine'\n[[fault]]\nlos = 0.1", "unknown field `los`, expected one of `link`"),
        ("kind = 'graph'", "missing field `file`"),
    ] {
        let said = message(spec);
        assert!(said.contains(expected), "{spec}: {said}");
    }
}

#[test]
fn every_kind_of_the_schema_can_be_read_and_its_keys_are_the_known_ones() {
    let schema = schemars::schema_for!(FabricSpec).to_value().to_string();
    for info in fabrics() {
        assert!(schema.contains(&format!("\"{}\"", info.name)));
        for key in info.parameters["properties"].as_object().unwrap().keys() {
            let said = message(&format!("kind = '{}'\n{key} = [1]", info.name));
            assert!(said.starts_with("invalid type"), "{key}: {said}");
        }
    }
}

#[test]
fn a_mark_above_the_buffer_is_warned_of() {
    let toml = "kind = 'leaf-spine'\nswitch_queue.buffer = '90KB'";
    let spec: FabricSpec = toml::from_str(toml).unwrap();
    let warnings = spec.build(1, Path::new(".")).unwrap().warnings;
    assert_eq!(
        warnings,
        ["fabric.switch_queue.mark is not below fabric.switch_queue.buffer: nothing is ever marked"]
    );
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 1u32..9, 1 => Just(0), 1 => Just(40_000), 1 => Just(u32::MAX)]
}

fn time() -> impl Strategy<Value = String> {
    prop_oneof![8 => 0u64..1_000, 1 => any::<u64>()].prop_map(|ns| format!("{ns}ns"))
}

fn link() -> impl Strategy<Value = String> {
    let wild = "(leaf|spine|host|edge|agg)[0-9][->](leaf|spine|edge|agg|x)[0-9](\\.[0-9])?";
    prop_oneof![Just("leaf0-spine0".to_owned()), Just("edge0>agg0.0".to_owned()), wild]
}

proptest! {
    #[test]
    fn any_numbers_give_a_fabric_or_an_error(
        counts in prop::array::uniform4(count()),
        times in prop::array::uniform4(time()),
        bps in prop_oneof![1 => any::<u64>(), 8 => 1_000_000u64..1_000_000_000_000],
        share in prop_oneof![1 => any::<f64>(), 8 => 0.0..=1.0],
        link in link(),
        seed in any::<u64>(),
    ) {
        let [a, b, c, d] = counts;
        let [stack, switch, at, until] = times;
        let common = format!(
            "stack_delay = '{stack}'\nswitch_delay = '{switch}'\nfabric_rate = '{bps}bps'\n\
             [[fault]]\nlink = '{link}'\nat = '{at}'\nuntil = '{until}'\ndown = true\n\
             [[fault]]\nshare = {share:?}\nloss = {share:?}\n"
        );
        let leaf_spine = format!("leaves = {a}\nspines = {b}\nhosts_per_leaf = {c}\nlinks_per_pair = {d}");
        for own in [format!("kind = 'leaf-spine'\n{leaf_spine}"), format!("kind = 'fat-tree'\nk = {a}\nhosts_per_edge = {b}")] {
            if let Ok(spec) = toml::from_str::<FabricSpec>(&format!("{own}\n{common}"))
                && let Ok(fabric) = spec.build(seed, Path::new("."))
            {
                prop_assert_eq!(fabric.shape().hosts(), fabric.topology.hosts);
                prop_assert!(fabric.faults.iter().all(|event| (event.link as usize) < fabric.topology.links.len()));
            }
        }
    }
}

#[test]
fn a_fabric_trims_where_a_class_of_a_switch_port_does() {
    let plain = "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\n";
    let classes = |trim: &str| {
        format!(
            "{plain}[switch_queue]\nscheduler = 'strict'\n[[switch_queue.class]]\nholds = ['trimmed', 'acks']\n\
             [[switch_queue.class]]\nholds = ['unknown', 'short', 'long', 'best-effort']\n{trim}"
        )
    };
    for (keys, expected) in [(plain, false), (&classes(""), false), (&classes("trim = '64B'"), true)] {
        let spec: FabricSpec = toml::from_str(keys).unwrap();
        assert_eq!(spec.build(1, Path::new(".")).unwrap().topology.trims(), expected, "{keys}");
    }
}
