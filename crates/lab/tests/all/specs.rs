//! Specs: defaults, who gave which value, and an answer to every mistake.

#[allow(dead_code)]
use crate::common::{SMALL, small};
use weft_lab::{Prepared, Resolved, SpecError, SpecSource, Variant, catalog, schema};

fn message(source: &SpecSource) -> String {
    let Err(error) = Prepared::new(source) else { panic!("a mistake was not noticed: {source:?}") };
    let error = error.to_string();
    assert!(!error.contains('\n'), "one message is one line: {error}");
    error
}

#[test]
fn an_empty_spec_is_a_whole_run_of_defaults() {
    let resolved = Resolved::new(&SpecSource::from_text("")).unwrap();
    let origins = resolved.origins().unwrap();
    let given: Vec<&str> = origins.iter().map(|origin| origin.origin).collect();
    assert!(given.iter().all(|origin| *origin == "default"), "{origins:?}");
    for line in [
        "seed = 1",
        "kind = \"leaf-spine\"",
        "workload = \"web-search\"",
        "name = \"ecmp\"",
        "name = \"dctcp\"",
    ] {
        assert!(resolved.toml.contains(line), "{}", resolved.toml);
    }
}

fn resolved_text(text: &str) -> String {
    Resolved::new(&SpecSource::from_text(text)).unwrap_or_else(|error| panic!("{text}: {error}")).toml
}

/// The keys of the traffic that the spec without a word has, one by one, beside what belongs to
/// them.
#[test]
fn each_key_of_a_table_alone_leaves_the_others_their_defaults() {
    let all = resolved_text("");
    for (table, alone) in [
        ("traffic", "load = 0.6"),
        ("traffic", "workload = \"web-search\""),
        ("traffic", "flows = 2000"),
        ("traffic", "pairs = \"between-racks\""),
        ("traffic", "load_of = \"leaf-uplinks\""),
        ("traffic", "classes = { best_effort = 0.0 }"),
        ("traffic", "incast = []"),
        ("traffic", ""),
        ("scheme", "hash = \"per-switch\""),
        ("scheme", ""),
        ("transport", "min_rto = \"5ms\""),
        ("fabric", "spines = 8"),
        ("hosts", "receive_ring = 0"),
        ("run", "seed = 1"),
    ] {
        let text = format!("[{table}]\n{alone}");
        assert_eq!(resolved_text(&text), all, "{text}");
        // The same as one change, without a spec and after an empty table.
        if let Some((key, value)) = alone.split_once(" = ") {
            for empty in [String::new(), format!("[{table}]")] {
                let source = SpecSource::from_text(empty).with(&format!("{table}.{key}"), value);
                assert_eq!(Resolved::new(&source).unwrap().toml, all, "--set {table}.{alone}");
            }
        }
    }
}

#[test]
fn a_size_or_an_end_takes_the_place_of_the_workload_and_of_the_number_of_flows() {
    let resolved = resolved_text("[traffic]\nsize = \"20KB\"\nduration = \"1ms\"");
    assert!(!resolved.contains("workload") && !resolved.contains("flows ="), "{resolved}");
    assert!(resolved.contains("load = 0.6"), "{resolved}");
}

#[test]
fn other_traffic_alone_brings_no_random_flows() {
    for text in [
        "[[traffic.incast]]\nsenders = 4\nsize = \"20KB\"",
        "[traffic]\nduration = \"1ms\"\n[[traffic.incast]]\nsenders = 4\nsize = \"20KB\"\nload = 0.1",
        "[[traffic.long_lived]]\nsrc = 0\ndst = 100",
        "[traffic]\ntrace = \"flows.csv\"",
    ] {
        let resolved = resolved_text(text);
        assert!(!resolved.contains("workload") && !resolved.contains("flows ="), "{resolved}");
    }
    let both = resolved_text("[traffic]\nload = 0.3\n[[traffic.incast]]\nsenders = 4\nsize = \"20KB\"");
    assert!(both.contains("workload = \"web-search\"") && both.contains("flows = 2000"), "{both}");
}

#[test]
fn one_of_several_transports_has_a_default_name_too() {
    let text = "[[transport]]\nlabel = \"a\"\n[[transport]]\nname = \"tcp\"\n[traffic.classes]\ntransport = { short = \"tcp\" }";
    let resolved = resolved_text(text);
    assert!(resolved.contains("name = \"dctcp\"") && resolved.contains("label = \"a\""), "{resolved}");
}

#[test]
fn an_unknown_key_is_told_where_it_stands_or_whose_it_is() {
    for (key, value, expected, nearest) in [
        (
            "load",
            "0.5",
            "load is not a key; allowed here: run, fabric, traffic, hosts, transport, scheme; did you mean \"traffic.load\"?",
            Some("traffic.load"),
        ),
        (
            "buffer",
            "1KB",
            "did you mean \"fabric.switch_queue.buffer\" or \"fabric.host_queue.buffer\" or \"scheme.buffer\"?",
            Some("fabric.switch_queue.buffer"),
        ),
        ("traffic.seed", "1", "did you mean \"run.seed\"?", Some("run.seed")),
        ("scheme.gap", "500us", "scheme.gap is not a key of ecmp; letflow, qall, ", None),
        ("fabric.k", "8", "fabric.k is not a key of leaf-spine; fat-tree has it; ", None),
        ("run.sed", "1", "did you mean \"seed\"?", Some("seed")),
    ] {
        let error = refusal(&small(&[(key, value)]));
        assert!(error.to_string().contains(expected), "--set {key}: {error}");
        assert_eq!(error.mistake.nearest.as_deref(), nearest, "{error}");
        assert_eq!(error.mistake.path.as_deref(), Some(key));
    }
}

#[test]
fn every_value_says_who_gave_it_and_what_it_means() {
    let source = small(&[("traffic.load", "0.7")]).with_seed(5);
    let resolved = Resolved::new(&source).unwrap();
    let origins = resolved.origins().unwrap();
    let find = |key: &str| origins.iter().find(|origin| origin.key == key).unwrap();
    assert_eq!(find("traffic.load").origin, "--set");
    assert_eq!(find("run.seed").origin, "--seed");
    assert_eq!(find("fabric.leaves").origin, "spec file");
    assert_eq!(find("fabric.host_rate").origin, "default");
    assert_eq!(find("run.seed").value, 5);
    for origin in &origins {
        assert!(origin.doc.as_ref().is_some_and(|doc| doc.len() > 5), "{} has no doc", origin.key);
    }
}

#[test]
fn every_mistake_gets_one_message_with_key_value_and_what_is_allowed() {
    // A change to the small spec, and what the message must hold.
    let table: [(&str, &str, &[&str]); 30] = [
        ("run.seed", "-1", &["run.seed = -1", "whole number, 0 or more"]),
        ("run.sed", "1", &["run.sed is not a key", "did you mean \"seed\""]),
        ("run.time_limit", "10", &["run.time_limit = 10", "a time with its unit"]),
        ("run.time_limit", "0s", &["run.time_limit is 0", "more than 0"]),
        ("run.threads", "0", &["run.threads = 0", "\"automatic\", or a whole number from 1 to 1024"]),
        ("run.threads", "2000", &["run.threads = 2000", "from 1 to 1024"]),
        ("run.threads", "auto", &["run.threads = \"auto\"", "\"automatic\""]),
        ("fabrik.leaves", "4", &["fabrik is not a key", "did you mean \"fabric\""]),
        ("balancer.name", "drill", &["balancer is scheme today", "`weft convert` rewrites"]),
        ("fabric.memory.size", "1MB", &["fabric.memory is fabric.shared_buffer today", "`weft convert`"]),
        ("fabric.kind", "leafspine", &["fabric.kind = \"leafspine\"", "did you mean \"leaf-spine\""]),
        ("fabric.leafs", "4", &["fabric.leafs is not a key", "did you mean \"leaves\""]),
        ("fabric.leaves", "four", &["fabric.leaves = \"four\"", "whole number"]),
        ("fabric.leaves", "0", &["fabric.leaves"]),
        ("fabric.hosts_per_leaf", "70000", &["fabric."]),
        ("fabric.host_rate", "10", &["fabric.host_rate = 10", "rate with its unit"]),
        ("fabric.host_rate", "10 gbps", &["fabric.host_rate", "10 gbps", "did you mean \"Gbps\""]),
        ("fabric.host_rate", "0Gbps", &["fabric.host_rate"]),
        ("fabric.switch_queue.buffer", "lots", &["fabric.switch_queue.buffer", "lots"]),
        ("fabric.switch_queue.bufer", "1KB", &["fabric.switch_queue.bufer", "did you mean \"buffer\""]),
        ("traffic.load", "1.4", &["traffic.load = 1.4", "largest load is 1"]),
        ("traffic.load", "nan", &["traffic.load"]),
        (
            "traffic.workload",
            "websearch",
            &["traffic.workload = \"websearch\"", "did you mean \"web-search\""],
        ),
        ("traffic.pairs", "between", &["traffic.pairs = \"between\"", "did you mean \"between-racks\""]),
        ("traffic.flows", "0", &["traffic.flows = 0", "a whole number from 1 to 4294967295"]),
        ("traffic.trace", "none.csv", &["traffic.trace", "exclude"]),
        ("transport.name", "dctpc", &["transport.name = \"dctpc\"", "did you mean \"dctcp\""]),
        ("transport.g", "2", &["transport.g is 2", "at most 1"]),
        ("scheme.name", "letflw", &["scheme.name = \"letflw\"", "did you mean \"letflow\""]),
        ("scheme.gap", "500us", &["scheme.gap is not a key of ecmp", "letflow, "]),
    ];
    for (key, value, expected) in table {
        let found = message(&small(&[(key, value)]));
        for part in expected {
            assert!(found.contains(part), "--set {key}={value} says {found:?}, without {part:?}");
        }
    }
}

#[test]
fn a_text_that_its_type_refuses_says_what_is_allowed_apart_from_the_sentence() {
    let table = [
        (
            "fabric.host_rate",
            "ten".to_owned(),
            "a number and a unit (Tbps, Gbps, Mbps, Kbps, bps), as in \"10Gbps\"",
        ),
        (
            "fabric.switch_queue.buffer",
            "lots".to_owned(),
            "a size (\"375KB\"), a number of packets (\"250packets\") or \"unlimited\"",
        ),
    ];
    for (key, value, allowed) in table {
        let error = refusal(&small(&[(key, &value)]));
        assert_eq!(error.mistake.path.as_deref(), Some(key));
        assert_eq!(error.mistake.allowed.as_deref(), Some(allowed), "{error}");
    }
}

#[test]
fn of_two_keys_that_do_not_fit_the_one_that_somebody_gave_is_the_mistake() {
    let said = |keys: &str| {
        let mut source = SpecSource::from_text(format!("[transport]\n{keys}\n"));
        source.origin = "my.toml".to_owned();
        Prepared::new(&source).map(drop).unwrap_err().to_string()
    };
    let cases = [
        ("min_rto = '200ms'", "min_rto is 200ms; allowed: at most initial_rto, 10ms"),
        ("initial_rto = '1us'", "initial_rto is 1us; allowed: min_rto to max_rto, 5ms to 60s"),
        ("max_rto = '1ms'", "max_rto is 1ms; allowed: min_rto, 5ms, or more"),
        ("max_rto = '7ms'", "max_rto is 7ms; allowed: initial_rto, 10ms, or more"),
        ("name = 'irn'\nrto_low = '1s'", "rto_low is 1s; allowed: at most rto_high, "),
        ("name = 'maxpass'\npaths = 1", "paths is 1; allowed: keep, "),
        ("name = 'mprdma'\nbitmap = 1", "bitmap is 1; allowed: delta, "),
        ("name = 'swift'\nmin_window = 1000.0", "min_window is 1000; allowed: at most "),
    ];
    for (keys, expected) in cases {
        let line = if keys.contains('\n') { 3 } else { 2 };
        let found = said(keys);
        assert!(found.starts_with(&format!("my.toml:{line}: transport.{expected}")), "{keys}: {found}");
    }
    let set = SpecSource::from_text("[transport]\n").with("transport.min_rto", "200ms");
    let found = Prepared::new(&set).map(drop).unwrap_err().to_string();
    assert!(found.starts_with("--set: transport.min_rto is 200ms"), "{found}");
}

#[test]
fn a_mistake_in_a_file_is_found_by_its_line() {
    let mut source = SpecSource::from_text(SMALL.replace("leaves = 4", "leafs = 4"));
    source.origin = "my.toml".to_owned();
    assert!(message(&source).starts_with("my.toml:4: fabric.leafs is not a key"), "{}", message(&source));
    let broken = SpecSource::from_text("[run\nseed = 1");
    assert!(message(&broken).starts_with("spec:1: not valid TOML"), "{}", message(&broken));
    let list = SpecSource::from_text("\n[[fabric]]\nkind = \"leaf-spine\"");
    assert_eq!(message(&list), "spec:2: fabric = a list: expected a table, as in [fabric]");
    let load = SpecSource::from_text(SMALL.replace("0.5", "1.5"));
    assert!(message(&load).starts_with("spec:10: traffic.load = 1.5"), "{}", message(&load));
}

#[test]
fn every_kind_of_fabric_can_be_named_in_a_spec() {
    for entry in catalog("fabrics").unwrap().as_array().unwrap() {
        let source = SpecSource::from_text("").with("fabric.kind", entry["name"].as_str().unwrap());
        match Prepared::new(&source) {
            Ok(prepared) => assert!(prepared.fabric.topology.hosts > 1),
            Err(error) => assert!(error.to_string().contains("fabric.file is missing"), "{error}"),
        }
    }
}

#[test]
fn every_catalog_lists_names_and_documented_parameters() {
    for kind in catalog::KINDS {
        let entries = catalog(kind).unwrap();
        let entries = entries.as_array().unwrap();
        assert!(!entries.is_empty(), "{kind}");
        for entry in entries {
            assert!(
                entry["name"].is_string() && entry["title"].as_str().is_some_and(|t| !t.is_empty()),
                "{entry}"
            );
            for parameter in entry["parameters"].as_array().unwrap() {
                for field in ["key", "type", "doc"] {
                    let text = parameter[field].as_str().unwrap();
                    assert!(!text.is_empty(), "{kind} {}: {parameter} has no {field}", entry["name"]);
                    let has_unit = parameter["unit"] != "";
                    assert!(!has_unit || parameter["type"] != "string", "{parameter} is a quantity");
                }
            }
        }
    }
    assert!(catalog("scheme").unwrap_err().to_string().contains("did you mean \"schemes\""));
}

#[test]
fn the_schema_describes_every_table_of_a_spec() {
    let tables = schema()["properties"].as_object().unwrap();
    let names: Vec<&String> = tables.keys().collect();
    assert_eq!(names, ["run", "fabric", "traffic", "hosts", "transport", "scheme"]);
    assert!(tables.values().all(|table| table["description"].is_string()));
}

fn refusal(source: &SpecSource) -> SpecError {
    Prepared::new(source).err().unwrap_or_else(|| panic!("a mistake was not noticed: {source:?}"))
}

#[test]
fn a_mistake_comes_in_parts_that_nobody_has_to_read_out_of_its_message() {
    let error = refusal(&small(&[("scheme.name", "letflw")]));
    let parts = |error: &SpecError| {
        let mistake = error.mistake.clone();
        (error.origin.clone(), mistake.path, mistake.found, mistake.nearest)
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(parts(&error), (text("--set"), text("scheme.name"), text("letflw"), text("letflow")));
    let error = refusal(&SpecSource::from_text(SMALL.replace("0.5", "1.5")));
    assert_eq!(parts(&error), (text("spec"), text("traffic.load"), text("1.5"), None));
    assert_eq!((error.line, error.mistake.allowed), (Some(10), text("at most 1")));
    let error = refusal(&small(&[("transport.g", "2")]));
    assert_eq!(parts(&error), (text("--set"), text("transport.g"), text("2"), None));
}

#[test]
fn what_a_load_balancer_asks_of_the_fabric_is_asked_before_the_run_at_hosts_and_at_switches() {
    let hermes = small(&[("scheme.name", "hermes"), ("scheme.probe_interval", "1us")]);
    assert_eq!(refusal(&hermes).mistake.path.as_deref(), Some("scheme.probe_interval"));
    let conga =
        |spines| small(&[("scheme.name", "conga"), ("fabric.spines", spines), ("traffic.load", "0.05")]);
    assert_eq!(Prepared::new(&conga("64")).err(), None);
    let message = refusal(&conga("65")).to_string();
    assert!(message.contains("scheme.name is conga at leaves of up to 65 uplinks: at most 64"), "{message}");
}

#[test]
fn a_file_that_may_never_end_is_refused_and_not_read() {
    for (key, more) in [("traffic.trace", ""), ("fabric.file", "graph")] {
        let mut source = SpecSource::from_text("").with(key, "/dev/zero");
        if !more.is_empty() {
            source = source.with("fabric.kind", more);
        }
        let message = refusal(&source).to_string();
        assert!(message.contains(key) && message.contains("not a regular file"), "{message}");
    }
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("sizes.csv");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let message = refusal(&small(&[("traffic.workload", pipe.to_str().unwrap())])).to_string();
    assert!(message.contains("traffic.workload") && message.contains("not a regular file"), "{message}");
}

#[test]
fn a_variant_takes_the_place_of_the_specs_parts_and_its_own_parameters_win() {
    let source = SpecSource::from_text(format!("{SMALL}\n[scheme]\nname = 'letflow'\ngap = '9us'\n"));
    let resolved = |text: &str, source: &SpecSource| {
        let variant = Variant::parse(text).unwrap();
        Resolved::new(&source.clone().with_variant(variant)).unwrap()
    };
    let value = |resolved: &Resolved, key: &str| {
        let origin = resolved.origins().unwrap().into_iter().find(|origin| origin.key == key);
        origin.map(|origin| (origin.value.as_str().unwrap_or_default().to_owned(), origin.origin))
    };
    let text = |text: &str, origin| Some((text.to_owned(), origin));
    assert_eq!(value(&resolved("letflow", &source), "scheme.gap"), text("9us", "spec file"));
    let set = source.with("scheme.gap", "7us");
    assert_eq!(value(&resolved("letflow", &set), "scheme.gap"), text("7us", "--set"));
    assert_eq!(value(&resolved("letflow:gap=5us", &set), "scheme.gap"), text("5us", "--schemes"));
    let both = resolved("mptcp+ecmp:hash=shared", &small(&[]));
    assert_eq!(value(&both, "transport.name"), text("mptcp", "--schemes"));
    assert_eq!(value(&both, "scheme.hash"), text("shared", "--schemes"));
    let wrong = small(&[]).with_variant(Variant::parse("letflow:gapp=1us").unwrap());
    let message = refusal(&wrong).to_string();
    assert!(message.starts_with("--schemes: scheme.gapp is not a key"), "{message}");
}

#[test]
fn a_table_can_be_written_by_a_name_wherever_a_spec_is() {
    let table = Resolved::new(&small(&[("scheme.name", "letflow"), ("scheme.gap", "5us")])).unwrap();
    let short = Resolved::new(&small(&[("scheme", "letflow:gap=5us")])).unwrap();
    let written = SpecSource::from_text(format!("scheme = 'letflow:gap=5us'\n{SMALL}"));
    assert_eq!(short.toml, table.toml);
    assert_eq!(Resolved::new(&written).unwrap().hash, table.hash);
    let wrong = SpecSource::from_text(format!("\ntransport = 'dctpc'\n{SMALL}"));
    let message = refusal(&wrong).to_string();
    assert!(message.starts_with("spec:2: there is no transport \"dctpc\""), "{message}");
}

/// 9,000 switches with a host each: 81 million pairs of racks, 3,000 links between two of them on
/// average.
#[test]
fn a_line_of_thousands_of_switches_whose_routes_take_for_ever_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let count = 9_000;
    let mut graph = format!(
        "rate = '10Gbps'\ndelay = '1us'\nhosts = [{{ prefix = 'h', count = {count} }}]\n\
         switches = [{{ prefix = 's', count = {count} }}]\n"
    );
    let to_host = |place: u32| format!("[[link]]\nfrom = 'h{place}'\nto = 's{place}'\n");
    let to_next = |place: u32| format!("[[link]]\nfrom = 's{}'\nto = 's{place}'\n", place - 1);
    graph.extend((0..count).map(to_host).chain((1..count).map(to_next)));
    std::fs::write(folder.path().join("line.toml"), graph).unwrap();
    let mut source = SpecSource::from_text("").with("fabric.kind", "graph").with("fabric.file", "line.toml");
    source.base_dir = folder.path().to_owned();
    let message = refusal(&source).to_string();
    assert!(message.contains("steps to find all routes"), "{message}");
    assert!(message.contains("at most 2000000000 are possible"), "{message}");
}

/// The small run over two transports: best-effort flows, half of all, over the second.
fn over_two() -> SpecSource {
    let traffic =
        "[traffic.classes]\nbest_effort = 0.5\n[traffic.classes.transport]\nbest-effort = \"mptcp\"\n";
    let transports = "[[transport]]\nname = \"tcp\"\n[[transport]]\nname = \"mptcp\"\nsubflows = 2\n";
    SpecSource::from_text(format!("{SMALL}{traffic}{transports}"))
}

#[test]
fn several_transports_are_resolved_described_and_set_one_by_one() {
    let resolved = Resolved::new(&over_two().with("transport.1.subflows", "3")).unwrap();
    let origins = resolved.origins().unwrap();
    let find = |key: &str| origins.iter().find(|origin| origin.key == key).unwrap();
    assert_eq!(
        (&find("transport[1].subflows").value, find("transport[1].subflows").origin),
        (&3.into(), "--set")
    );
    assert_eq!(find("transport[0].name").origin, "spec file");
    for origin in &origins {
        assert!(origin.doc.as_ref().is_some_and(|doc| doc.len() > 5), "{} has no doc", origin.key);
    }
    let again = Resolved::new(&SpecSource::from_text(resolved.toml.clone())).unwrap();
    assert_eq!((again.hash, again.spec), (resolved.hash, resolved.spec));
}

#[test]
fn every_mistake_with_several_transports_gets_one_message() {
    let table = [
        ("transport.1.subflow", "3", "transport[1].subflow is not a key"),
        ("transport.1.name", "mtcp", "transport[1].name = \"mtcp\" is not known; allowed: tcp, dctcp"),
        ("transport.1.subflows", "0", "transport[1].subflows = 0: expected a whole number from 1 to 64"),
        (
            "transport.1.subflows",
            "1000",
            "transport[1].subflows = 1000: expected a whole number from 1 to 64",
        ),
        ("transport.1.label", "tcp", "transport[1].label is \"tcp\"; allowed: a label of its own"),
        (
            "transport.1.label",
            "bulk",
            "traffic.classes.transport.best-effort = \"mptcp\": allowed is the label of a",
        ),
        (
            "transport.2.name",
            "dctcp",
            "transport[2].label = \"dctcp\": allowed is a label that traffic names",
        ),
        ("transport", "[]", "transport is a list of 0 transports; allowed: 1 to 256"),
        ("transport", "[1]", "transport = a list: expected a table, as in [transport]"),
        (
            "traffic.long_lived",
            "[{ src = 0, dst = 5, transport = 'quic' }]",
            "traffic.long_lived[0].transport = \"quic\": allowed is the label of a [[transport]]: \"tcp\", \"mptcp\"",
        ),
        ("transport", "{ name = 'tcp' }", "of which there are none: [transport] carries all flows"),
    ];
    for (key, value, expected) in table {
        let found = message(&over_two().with(key, value));
        assert!(found.contains(expected), "{key}={value}: {found}");
    }
}

#[test]
fn applications_that_write_in_pieces_go_with_simulated_hosts_and_transports_without_credits() {
    let writing = |key: &str, value: &str| {
        small(&[("traffic.application", "{ write = \"20KB\", pause = \"100us\" }"), (key, value)])
    };
    for transport in ["expresspass", "maxpass"] {
        let said = message(&writing("transport", &format!("{{ name = \"{transport}\" }}")));
        let expected = format!(
            "traffic.application does not go with {transport}: allowed is a transport without credits"
        );
        assert!(said.contains(&expected), "{said}");
    }
    let linux =
        message(&writing("hosts", "\"linux\"").with("transport", "{ name = \"tcp\", handshake = true }"));
    assert!(linux.contains("traffic.application does not go with Linux hosts"), "{linux}");
    for transport in ["tcp", "dctcp", "mptcp"] {
        assert!(Prepared::new(&writing("transport.name", transport)).is_ok(), "{transport}");
    }
}

#[test]
fn a_mistake_is_blamed_on_the_file_and_line_that_it_comes_from_whatever_else_is_set() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name).display().to_string()
    };
    let cables =
        "hosts = [{ prefix = 'h', count = 2 }]\nswitches = ['s', 't']\nrate = '10Gbps'\ndelay = '1us'\n";
    let two = write("two.toml", &format!("{cables}\n[[link]]\nfrom = ['h0', 'h1']\nto = ['s', 't']\n"));
    let slow = write("slow.toml", &format!("{cables}[[link]]\nfrom = 'h0'\nto = 's'\nrate = '1bps'\n"));
    let sizes = write("sizes.csv", "size_bytes,cumulative_probability\n100,0\n90,1\n");
    let trace = write("trace.csv", "start_us,src,dst,size_bytes\n0,0,1,100\nx,0,1,100\n");
    let graph = |file: &str| format!("[fabric]\nkind = 'graph'\nfile = '{file}'\n");
    for (text, expected) in [
        (graph(&two), format!("{two}:6: host h0 has 2 cables")),
        (graph(&slow), format!("{slow}:8: link[0].rate = 1bps")),
        (format!("[traffic]\nworkload = '{sizes}'\n"), format!("{sizes}:3: ")),
        (format!("[traffic]\ntrace = '{trace}'\n"), format!("{trace}:3: ")),
        ("[run]\nseed = 3\n[traffic]\nload = 0\n".to_owned(), "spec:4: traffic.load".to_owned()),
    ] {
        for changes in
            [&[][..], &[("run.threads", "1")], &[("traffic.flows", "10"), ("run.time_limit", "1s")]]
        {
            let source = SpecSource::from_text(text.clone());
            let source = changes.iter().fold(source, |source, (key, value)| source.with(key, value));
            let message = message(&source);
            assert!(message.starts_with(&expected), "{changes:?}: {message}");
        }
    }
}

#[test]
fn a_mistake_around_a_changed_key_is_the_texts_only_if_it_has_it_without_the_change() {
    let text = "[[fabric.fault]]\nlink = 'leaf0-spine0'\nat = '2s'\nuntil = '3s'\ndown = true\n";
    let said = message(&SpecSource::from_text(text).with("fabric.fault.0.until", "1s"));
    assert!(said.starts_with("--set: "), "{said}");
    let said = message(&SpecSource::from_text(text.replace("3s", "1s")).with("fabric.leaves", "2"));
    assert!(said.starts_with("spec:"), "{said}");
}
