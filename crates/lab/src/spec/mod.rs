//! Specs: text, changes, types, and messages when one does not follow from the other.

mod carried;
mod decode;
mod defaults;
mod document;
mod error;
mod extent;
mod graph_file;
mod hints;
mod model;
mod path;
mod place;
mod python_class;
mod renamed;
mod resolve;
pub(crate) mod schema;
mod threads;
mod value;
mod variant;

pub use carried::Condition;
pub use document::{SpecSource, seed_error};
pub use error::{SpecError, nearest};
pub use extent::Extent;
pub use model::{RunSpec, Spec};
pub use renamed::convert;
pub use resolve::{Origin, Resolved, address};
pub use schema::schema;
pub use threads::Threads;
pub use variant::{Named, Part, Variant, check_variants, slug};

pub(crate) use decode::decode;
pub(crate) use document::parse_value;
pub(crate) use graph_file::check_graph_file;
pub(crate) use place::{blamed, in_graph_file, in_traffic_file};
pub(crate) use resolve::hex;
