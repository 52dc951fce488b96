//! Errors in a fabric spec and the files that it names.

use thiserror::Error;
use weft_units::Mistake;

/// A mistake in the `[fabric]` table, or in a file that it names: where it is, what was found, and
/// what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FabricError {
    /// A value that is not allowed.
    #[error("{key} = {found}: allowed is {allowed}")]
    BadValue {
        /// The key, as in `fabric.leaves`.
        key: String,
        /// The value that was found.
        found: String,
        /// Allowed values.
        allowed: String,
    },
    /// Two keys that exclude each other.
    #[error("{key} and {other} exclude each other: {reason}")]
    Conflict {
        /// One key.
        key: String,
        /// The other one.
        other: String,
        /// Why.
        reason: String,
    },
    /// A key that has to be there.
    #[error("{key} is missing: {reason}")]
    Missing {
        /// The key.
        key: String,
        /// Why it is needed.
        reason: String,
    },
    /// A fabric beyond what can be simulated.
    #[error("the fabric has {found} {what}: at most {most} are possible; make {keys} smaller")]
    TooLarge {
        /// Things of which there are too many.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there may be.
        most: u64,
        /// The keys that it follows from.
        keys: &'static str,
    },
    /// A name that nothing has.
    #[error("{key} names {found:?}, and there is no such {what}{}; there are {known}", did_you_mean(nearest.as_deref()))]
    UnknownName {
        /// The key.
        key: String,
        /// Kind of thing that it should name: "node" or "tier".
        what: &'static str,
        /// The name that was found.
        found: String,
        /// The nearest name, if one is near.
        nearest: Option<String>,
        /// The names that there are.
        known: String,
    },
    /// Two nodes that no cable connects.
    #[error("{key} = {found:?}: no such cable; {from} has cables to {neighbours}")]
    NoCable {
        /// The key.
        key: String,
        /// The cable that was asked for.
        found: String,
        /// The node at its first end.
        from: String,
        /// The nodes that this one is connected to.
        neighbours: String,
    },
    /// Two nodes of one name.
    #[error("the name {name:?} is given to two nodes: each needs its own")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A host without exactly one cable.
    #[error("host {host} has {cables} cables: a host has exactly one, to a switch")]
    HostCables {
        /// The host.
        host: String,
        /// How many it has.
        cables: usize,
    },
    /// A cable between two hosts, or from a node to itself.
    #[error("a cable connects {from} to {to}: {reason}")]
    BadCable {
        /// One end.
        from: String,
        /// The other end.
        to: String,
        /// Why that cannot be.
        reason: &'static str,
    },
    /// A fabric in parts.
    #[error("the fabric is not connected: no cables lead from {from} to {to}")]
    Disconnected {
        /// A node.
        from: String,
        /// One that it does not reach.
        to: String,
    },
    /// A file that cannot be read, or says something else than a graph.
    #[error("fabric.file: {path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// Cause of the error.
        reason: String,
    },
    /// A mistake in the file of a graph.
    #[error("{path}: {error}")]
    InFile {
        /// The file.
        path: String,
        /// The key in it that the mistake is at, as in `link[3]`, if it is at one.
        key: Option<String>,
        /// The error in the file.
        error: Box<FabricError>,
    },
}

impl FabricError {
    /// A value that is not allowed.
    pub(crate) fn bad(key: impl Into<String>, found: &impl ToString, allowed: impl Into<String>) -> Self {
        Self::BadValue { key: key.into(), found: found.to_string(), allowed: allowed.into() }
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!(" (did you mean {name:?}?)")).unwrap_or_default()
}

impl From<FabricError> for Mistake {
    fn from(error: FabricError) -> Self {
        let sentence = error.to_string();
        // The sentence of an error at a key begins with that key.
        let at = |key: &str| Self::at(key, sentence.strip_prefix(key).unwrap_or(&sentence));
        match &error {
            FabricError::BadValue { key, found, allowed } => at(key).found(found).allowed(allowed),
            FabricError::Missing { key, .. } | FabricError::Conflict { key, .. } => at(key),
            FabricError::UnknownName { key, found, nearest, known, .. } => {
                at(key).found(found).allowed(known).nearest(nearest.as_deref())
            }
            FabricError::NoCable { key, found, neighbours, .. } => at(key).found(found).allowed(neighbours),
            FabricError::File { path, .. } => at("fabric.file").found(path),
            FabricError::TooLarge { found, most, .. } => {
                Self::new(&sentence).found(found.to_string()).allowed(format!("at most {most}"))
            }
            FabricError::DuplicateName { name } => Self::new(&sentence).found(name),
            FabricError::InFile { .. }
            | FabricError::HostCables { .. }
            | FabricError::BadCable { .. }
            | FabricError::Disconnected { .. } => Self::new(&sentence),
        }
    }
}
