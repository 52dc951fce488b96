//! Fingerprints: a hash of every result table of every pinned spec, and a pin for whatever is
//! registered.
//!
//! A pass proves that no result moved, on this machine or another. It does not prove that results
//! are right. A change that moves one on purpose says so in CHANGELOG.md and writes the hashes
//! anew:
//!
//! ```text
//! WEFT_WRITE_PINS=1 cargo test -p weft-lab --test fingerprints
//! ```
//!
//! This never happens by itself, and such a run fails, so that no check takes it for a pass.

#[path = "../all/common.rs"]
mod common;
mod coverage;
mod partitions;
mod pins;

use std::num::NonZeroUsize;

use pins::Pins;
use weft_lab::Cores;

/// Asks for the hashes to be written, not compared.
const WRITE: &str = "WEFT_WRITE_PINS";

/// One partition and one thread.
const WHOLE: Cores = Cores::Exactly { partitions: 1, threads: NonZeroUsize::MIN };

#[test]
fn the_tables_of_pinned_specs_have_not_moved() {
    let pins = Pins::read();
    if std::env::var_os(WRITE).is_some() {
        pins.found().write();
        panic!("the pins were written anew: look at the difference, and run again without {WRITE}");
    }
    let moved: Vec<String> = pins.pins.iter().flat_map(|pin| pin.moved(WHOLE)).collect();
    assert!(
        moved.is_empty(),
        "results moved, or have no pin yet ({WRITE}=1 writes them):\n{}",
        moved.join("\n")
    );
}
