//! Specs: text, changes, types, and messages when one does not follow from the other.

mod contender;
mod decode;
mod defaults;
mod document;
mod error;
mod extent;
mod graph_file;
mod hints;
mod model;
mod path;
mod python_class;
mod resolve;
pub(crate) mod schema;
mod threads;
mod value;

pub use contender::{Contender, Named, Part, check_contenders, slug};
pub use document::{SpecSource, seed_error};
pub use error::{SpecError, nearest};
pub use extent::Extent;
pub use model::{RunSpec, Spec};
pub use resolve::{Origin, Resolved};
pub use schema::schema;
pub use threads::Threads;

pub(crate) use decode::decode;
pub(crate) use document::parse_value;
pub(crate) use graph_file::check_graph_file;
pub(crate) use resolve::hex;
