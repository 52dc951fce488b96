//! Whatever can be named in a spec and moves packets has a pin: the registries say what there is.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use arrow_array::cast::AsArray;
use schemars::schema_for;
use serde_json::Value;
use weft_balance::schemes;
use weft_lab::Resolved;
use weft_lab::spec::RunSpec;
use weft_topology::fabrics;
use weft_topology::spec::{ClassTable, FaultTable, PauseTable, SharedBufferTable, SoftwareSwitchTable};
use weft_transport::TransportSpec;

use crate::pins::{OBSERVATIONS, Pins, tables};

/// The resolved spec of each pin, as JSON.
static SPECS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let resolved = |pin: &crate::pins::Pin| {
        let resolved = Resolved::new(&pin.source()).unwrap_or_else(|error| panic!("{}: {error}", pin.name));
        serde_json::to_value(&resolved.spec).expect("a spec is plain data")
    };
    Pins::read().pins.iter().map(resolved).collect()
});

/// Refuses a registered name that no pin has at `pointer` of its spec.
fn check(what: &str, registered: &[&str], pointer: &str) {
    let pinned: BTreeSet<&str> = SPECS.iter().filter_map(|spec| spec.pointer(pointer)?.as_str()).collect();
    let missing: Vec<_> = registered.iter().filter(|name| !pinned.contains(*name)).collect();
    assert!(missing.is_empty(), "{what} {missing:?}: no pin. {ADVICE}");
}

const ADVICE: &str = "Add a [[pin]] with a `name` and `set` to crates/lab/tests/fingerprints/pins.toml, and write its \
                      hashes with WEFT_WRITE_PINS=1 cargo test -p weft-lab --test fingerprints";

#[test]
fn every_scheme_has_a_pin() {
    check("schemes", &schemes().iter().map(|info| info.name).collect::<Vec<_>>(), "/scheme/name");
}

#[test]
fn every_transport_has_a_pin() {
    check(
        "transports",
        &TransportSpec::list().iter().map(|info| info.name).collect::<Vec<_>>(),
        "/transport/name",
    );
}

/// The names of the transports of a spec that has several; none of a spec with one.
fn in_company(spec: &Value) -> Vec<String> {
    let tables = spec.pointer("/transport").and_then(Value::as_array).cloned().unwrap_or_default();
    tables.iter().filter_map(|table| Some(table.get("name")?.as_str()?.to_owned())).collect()
}

#[test]
fn every_transport_has_a_pin_beside_others() {
    let pinned: BTreeSet<String> = SPECS.iter().flat_map(in_company).collect();
    let all = TransportSpec::list();
    let missing: Vec<_> = all.iter().map(|info| info.name).filter(|&name| !pinned.contains(name)).collect();
    assert!(missing.is_empty(), "transports {missing:?} beside others: no pin. {ADVICE}");
}

#[test]
fn every_pin_with_several_transports_has_flows_of_each() {
    for pin in Pins::read().pins {
        let resolved = Resolved::new(&pin.source()).unwrap_or_else(|error| panic!("{}: {error}", pin.name));
        let labels: BTreeSet<String> = resolved.spec.transport.labels().into_iter().collect();
        if labels.is_empty() {
            continue;
        }
        let outcome = pin.run();
        let flows = outcome.flows.read().unwrap();
        let carriers = flows.column_by_name("transport").expect("several").as_string::<i32>();
        let found: BTreeSet<String> = carriers.iter().flatten().map(str::to_owned).collect();
        assert_eq!(found, labels, "{}", pin.name);
    }
}

#[test]
fn every_kind_of_fabric_has_a_pin() {
    check("fabrics", &fabrics().iter().map(|info| info.name).collect::<Vec<_>>(), "/fabric/kind");
}

/// Refuses a key that the schema has and no pin uses at one of the tables that `find` gives.
fn check_keys(what: &str, schema: &Value, find: impl Fn(&Value) -> Vec<Value>) {
    let used: BTreeSet<String> = SPECS
        .iter()
        .flat_map(&find)
        .filter_map(|table| Some(table.as_object()?.keys().cloned().collect::<Vec<_>>()))
        .flatten()
        .collect();
    let keys = schema["properties"].as_object().expect("a table");
    let missing: Vec<_> = keys.keys().filter(|key| !used.contains(*key)).collect();
    assert!(missing.is_empty(), "{what} {missing:?}: no pin. {ADVICE}");
}

#[test]
fn every_key_of_a_fault_has_a_pin() {
    check_keys("keys of a fault", &schema_for!(FaultTable).to_value(), |spec| {
        spec.pointer("/fabric/fault").and_then(Value::as_array).cloned().unwrap_or_default()
    });
}

#[test]
fn every_key_of_a_software_switch_has_a_pin() {
    check_keys("keys of a software switch", &schema_for!(SoftwareSwitchTable).to_value(), |spec| {
        spec.pointer("/fabric/software_switch").into_iter().cloned().collect()
    });
}

#[test]
fn every_key_of_shared_memory_and_of_pauses_has_a_pin() {
    for (what, schema, place) in [
        ("keys of shared buffer", schema_for!(SharedBufferTable), "/fabric/shared_buffer"),
        ("keys of pauses", schema_for!(PauseTable), "/fabric/pause"),
    ] {
        check_keys(what, &schema.to_value(), |spec| spec.pointer(place).into_iter().cloned().collect());
    }
}

#[test]
fn every_key_of_a_class_of_a_port_has_a_pin() {
    check_keys("keys of a class", &schema_for!(ClassTable).to_value(), |spec| {
        spec.pointer("/fabric/switch_queue/class").and_then(Value::as_array).cloned().unwrap_or_default()
    });
}

#[test]
fn every_key_of_simulated_hosts_has_a_pin() {
    let schema = weft_lab::schema();
    let kinds = schema["$defs"]["HostsSpec"]["oneOf"].as_array().expect("kinds");
    let simulated = kinds.iter().find(|kind| kind["properties"]["kind"]["const"] == "simulated");
    check_keys("keys of simulated hosts", simulated.expect("a kind"), |spec| {
        spec.get("hosts").filter(|hosts| hosts["kind"] == "simulated").into_iter().cloned().collect()
    });
}

#[test]
fn every_setting_of_a_run_has_a_pin() {
    check_keys("settings of a run", &schema_for!(RunSpec).to_value(), |spec| {
        spec.get("run").into_iter().cloned().collect()
    });
}

#[test]
fn a_pin_that_says_how_many_threads_work_has_the_hashes_of_the_one_that_does_not() {
    let pins = Pins::read().pins;
    let how = |change: &String| change.starts_with("run.threads=");
    let mut compared = 0;
    for pin in pins.iter().filter(|pin| pin.set.iter().any(how)) {
        let rest: Vec<_> = pin.set.iter().filter(|change| !how(change)).collect();
        let same = pins.iter().find(|other| other.set.iter().eq(rest.iter().copied()));
        let same = same.unwrap_or_else(|| panic!("{}: no pin has the rest of its changes", pin.name));
        assert_eq!(pin.tables, same.tables, "{} and {}", pin.name, same.name);
        compared += 1;
    }
    assert!(compared > 0, "{ADVICE}");
}

#[test]
fn every_table_has_rows_in_some_pin() {
    let pins = Pins::read().pins;
    let mut empty: BTreeSet<&str> = tables().collect();
    for pin in &pins {
        if empty.is_empty() {
            break;
        }
        let outcome = pin.run();
        empty.retain(|name| outcome.table(name).ok().is_none_or(|table| table.num_rows() == 0));
    }
    assert!(empty.is_empty(), "tables {empty:?} are empty in every pin. {ADVICE}");
    assert!(pins.iter().any(|pin| pin.observe.is_some()), "no pin has {OBSERVATIONS}");
}
