//! A run that is looked at gives what the same run gives that nobody looks at.

#![allow(clippy::unwrap_used)] // helpers of tests are not tests to clippy

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use weft_lab::{Cores, Prepared, SpecSource, Variant};
use weft_playground::{FLOW_NUMBERS, LINK_NUMBERS, PACKET_NUMBERS, Session};
use weft_units::Time;

const SPEC: &str = r#"
[fabric]
kind = "leaf-spine"
leaves = 3
spines = 3
hosts_per_leaf = 4
fault = [{ link = "leaf0-spine0", at = "200us", down = true }, { link = "leaf1-spine1", rate = "1Gbps" }]
reroute_after = "50us"

[traffic]
workload = "web-search"
load = 0.7
flows = 40

[transport]
name = "dctcp"
"#;

/// Every scheme that there is.
fn schemes() -> Vec<&'static str> {
    weft_balance::schemes().iter().map(|info| info.name).collect()
}

fn unwatched(scheme: &str) -> String {
    let source = SpecSource::from_text(SPEC).with_variant(Variant::parse(scheme).unwrap());
    let prepared = Prepared::new(&source).unwrap();
    let mut goes_on = |_: &_| ControlFlow::Continue(());
    prepared.run(&mut goes_on, None, Cores::UpTo(NonZeroUsize::MIN)).unwrap().fingerprint().unwrap()
}

#[test]
fn looking_following_and_small_steps_change_no_result_of_any_scheme() {
    for scheme in schemes() {
        let mut session = Session::begin(SPEC, scheme).unwrap();
        session.follow(Some(3));
        let (mut at, mut decided) = (0, 0);
        loop {
            at += 37_000_000;
            let state = session.advance(at, 1_000);
            if state == 1 {
                session.look(at);
                decided += session.decisions().as_array().unwrap().len();
            } else if state == 0 {
                at -= 37_000_000;
            } else {
                break;
            }
        }
        let found = session.finish().unwrap();
        assert_eq!(found["fingerprint"], unwatched(scheme).as_str(), "{scheme}");
        assert!(decided > 0, "{scheme} decided nothing about a flow between racks");
    }
}

#[test]
fn what_is_seen_adds_up() {
    let mut session = Session::begin(SPEC, "letflow").unwrap();
    let described = session.describe();
    let links = described["fabric"]["links"].as_array().unwrap().len();
    let flows = described["flows"].as_array().unwrap().len();
    let (mut seen_waiting, mut seen_done) = (false, 0);
    for step in 1..40 {
        let at = step * 50_000_000;
        while session.advance(at, 5_000) == 0 {}
        let frame = session.look(at);
        assert_eq!(frame.links.len(), links * LINK_NUMBERS);
        assert_eq!(frame.flows.len(), flows * FLOW_NUMBERS);
        for packet in frame.packets.chunks(PACKET_NUMBERS) {
            assert!((packet[0] as usize) < links && (packet[1] as usize) < flows);
            assert!(packet[7] >= 0.0 && packet[6] <= packet[7], "it is on its way: {packet:?}");
            seen_waiting |= frame.links[packet[0] as usize * LINK_NUMBERS] > packet[4];
        }
        let done = frame.flows.chunks(FLOW_NUMBERS).filter(|flow| flow[0] >= 0.0).count();
        assert!(done >= seen_done, "what is done stays done");
        seen_done = done;
    }
    assert!(seen_waiting && seen_done > 0, "queues and ends were seen");
    assert!(
        described["faults"]
            .as_array()
            .unwrap()
            .iter()
            .any(|fault| fault["at"] == Time::from_ps(200_000_000).as_ps())
    );
}

/// Decisions about flow 3, to the end of the run.
fn decisions(scheme: &str) -> Vec<serde_json::Value> {
    let mut session = Session::begin(SPEC, scheme).unwrap();
    session.follow(Some(3));
    while session.advance(u64::MAX >> 12, 1 << 20) < 2 {}
    session.decisions().as_array().unwrap().clone()
}

#[test]
fn letflow_says_which_gap_it_saw_and_drill_which_queues() {
    let reasons = |scheme: &str| -> Vec<String> {
        let text = |decision: &serde_json::Value| decision["reason"].as_str().unwrap_or_default().to_owned();
        decisions(scheme).iter().map(text).collect()
    };
    let letflow = reasons("letflow:gap=20us");
    assert!(letflow[0].starts_with("no flowlet yet, draws one of "), "{}", letflow[0]);
    assert!(
        letflow
            .iter()
            .any(|reason| reason.contains("<= 20") && reason.ends_with("the flowlet stays on its port"))
    );
    assert!(reasons("drill").iter().any(|reason| reason.contains("and remembered port ")));
}

#[test]
fn the_oracle_says_when_a_packet_would_be_there_by_each_port_and_takes_the_first() {
    let found = decisions("oracle");
    let chosen: Vec<_> = found.iter().filter(|decision| decision["link"].is_number()).collect();
    assert!(chosen.len() > 10, "{found:?}");
    for decision in chosen {
        let reason = decision["reason"].as_str().unwrap();
        let taken = format!("knows every queue: by port {} at leaf", decision["port"]);
        assert!(reason.starts_with(&taken), "{decision}");
        let named = reason.matches("port ").count();
        assert_eq!(named, decision["queues"].as_array().unwrap().len(), "each port is told: {reason}");
    }
}

#[test]
fn a_mistake_is_told_as_on_the_command_line() {
    let told = |spec: &str, scheme: &str| Session::begin(spec, scheme).err().map(|error| error.to_string());
    let unknown = told(SPEC, "letflw").unwrap();
    assert!(unknown.contains("did you mean \"letflow\"?"), "{unknown}");
    assert!(told("[traffic]\nlod = 1", "ecmp").unwrap().contains("traffic.lod"));
    assert!(told("hosts = \"linux\"", "ecmp").is_some(), "no kernel starts in a browser");
}
