//! Looking at links over time.

mod common;

use common::{Run, fabric, flow, link_named};
use weft_traffic::Flow;
use weft_units::Span;

const DCTCP: &str = r#"name = "dctcp""#;
const ECMP: &str = r#"name = "ecmp""#;

#[test]
fn samples_add_up_to_what_each_link_sent_and_change_no_result() {
    let fabric = fabric(common::SMALL);
    let flows: Vec<Flow> = (0..20).map(|index| flow(index * 30, (index % 2) as u16, 2, 100_000)).collect();
    let plain = Run::new(&fabric, DCTCP, ECMP);
    let sampled = Run { sample_every: Some(Span::from_us(50)), ..Run::new(&fabric, DCTCP, ECMP) };
    let results = sampled.flows(&flows);
    assert_eq!(results.flows, plain.flows(&flows).flows);
    assert!(plain.flows(&flows).samples.is_empty(), "nobody asked");
    for (link, totals) in results.links.iter().enumerate() {
        let mine = || results.samples.iter().filter(|sample| sample.link as usize == link);
        let sampled: u64 = mine().map(|sample| sample.sent_bytes).sum();
        assert!(sampled <= totals.bytes, "{sampled} of {}", totals.bytes);
        // What left after the last look is missing: less than an interval's worth.
        assert!(totals.bytes - sampled <= 62_500 + 1_500, "{sampled} of {}", totals.bytes);
        assert!(mine().all(|sample| sample.sent_bytes <= 62_501), "no more than the rate allows");
        assert!(mine().all(|sample| sample.at.as_ps() % Span::from_us(50).as_ps() == 0));
    }
    let busiest = link_named(&fabric, "leaf1>host2");
    assert!(
        results.samples.iter().any(|sample| sample.link as usize == busiest && sample.backlog_bytes > 10_000)
    );
}
