//! From a spec to results on disk: validation, runs, measurements, tables.
//!
//! A [`SpecSource`] is text with changes. [`Prepared::new`] makes a fabric and traffic of it, or
//! says what is wrong; [`Prepared::run`] simulates; the [`Outcome`] holds tables and a summary, and
//! writes itself as a directory.
//!
//! Invariant: a result table is declared here, once; a result directory is complete or absent.

mod application;
pub mod bench;
pub mod bins;
pub mod catalog;
pub mod clock;
mod code;
pub mod collectives;
pub mod congestion;
pub mod cores;
mod doubts;
mod external_scheme;
pub mod linux;
mod memory;
pub mod model;
pub mod observe;
mod outcome;
pub mod packets;
pub mod presets;
mod proportion;
pub mod record;
pub mod results;
mod rows;
pub mod run;
pub mod spec;
mod steady;
mod totals;
mod warnings;
mod watched;
mod window;

pub use bins::{BinSet, bin_sets};
pub use catalog::catalog;
pub use code::refuse_code;
pub use cores::{Cores, Decision};
pub use external_scheme::ExternalSchemeFactory;
pub use model::work_out;
pub use outcome::{Outcome, PacketBalance};
pub use presets::{Preset, presets};
pub use results::fingerprint::fingerprint;
pub use run::{Prepared, Report, RunError};
pub use spec::{
    Part, Resolved, Spec, SpecError, SpecSource, Variant, address, check_variants, convert, schema,
    seed_error, slug,
};

/// The version of Weft.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of the results: 64 bits of a hash of the sources of every crate that decides what a
/// run gives, their dependencies and data. Two builds of one hash give the same bytes for the same
/// spec; `build.rs` makes it.
pub const RESULTS_VERSION: &str = env!("WEFT_RESULTS_VERSION");

/// The build: cargo's profile `release` is optimised as a whole, `dev` has assertions on.
pub const BUILD: &str = if cfg!(debug_assertions) { "development" } else { "release" };

#[cfg(test)]
mod tests {
    #[test]
    fn the_results_version_is_not_the_hash_of_no_sources() {
        assert_ne!(super::RESULTS_VERSION, "e3b0c44298fc1c14");
    }
}
