//! Time, rates, sizes and named random streams.
//!
//! Everything is an integer: picoseconds, bits per second, bytes. Text forms carry their unit
//! (`"4us"`, `"10Gbps"`, `"375KB"`); a bare number is refused.
//!
//! Invariant: nothing here holds state or knows packets.

mod files;
mod mistake;
mod quantity;
mod random;
mod rate;
mod size;
mod time;
mod whole;

pub use files::{give_file, read_regular_bytes, read_regular_file, read_regular_lines};
pub use mistake::{Mistake, OneLine};
pub use quantity::QuantityError;
pub use random::{Purpose, Stream, mix64};
pub use rate::{PicosPerByte, Rate};
pub use size::Bytes;
pub use time::{Span, Time};
pub use whole::whole_number;
