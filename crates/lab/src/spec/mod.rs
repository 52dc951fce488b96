//! Specs: text, changes, types, and messages when one does not follow from the other.

mod decode;
mod document;
mod error;
mod model;
mod path;
mod resolve;
pub(crate) mod schema;

pub use document::SpecSource;
pub use error::{SpecError, nearest};
pub use model::{RunSpec, Spec};
pub use resolve::{Origin, Resolved};
pub use schema::schema;

pub(crate) use decode::decode;
pub(crate) use document::parse_value;
pub(crate) use resolve::hex;
