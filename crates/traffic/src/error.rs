//! Mistakes in a traffic spec and in the files that it names.

use std::fmt::Display;

use thiserror::Error;
use weft_units::Mistake;

/// A mistake in the traffic spec, or in a file that it names: where it is, what was found, and what
/// is allowed.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum TrafficError {
    /// A value that is not allowed.
    #[error("{key} = {found}: allowed is {allowed}")]
    BadValue {
        /// The key, as in `traffic.incast[0].senders`.
        key: String,
        /// The value that was found.
        found: String,
        /// Values that are allowed in its place.
        allowed: String,
    },
    /// A key that has to be there.
    #[error("{key} is missing: {reason}")]
    Missing {
        /// The key.
        key: String,
        /// Why it is needed.
        reason: String,
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
    /// A workload that is neither built in nor a file.
    #[error("traffic.workload = {found:?} is not a built-in workload{}; known are {known}; a file's name ends in .csv",
        hint(nearest.as_deref()))]
    UnknownWorkload {
        /// The name that was found.
        found: String,
        /// The nearest built-in name, if one is near.
        nearest: Option<String>,
        /// All built-in names.
        known: String,
    },
    /// More load than the fabric can carry.
    #[error(
        "{key} = {load} offers {offered_gbps} Gbps, and {limit} carry {limit_gbps} Gbps: the largest load is {max_load}"
    )]
    Overload {
        /// The key.
        key: String,
        /// The load that was asked for.
        load: f64,
        /// The payload that it would offer to `limit`, in Gbit/s.
        offered_gbps: f64,
        /// Limit that the load would exceed.
        limit: &'static str,
        /// Capacity of that limit, in Gbit/s.
        limit_gbps: f64,
        /// The largest load allowed, rounded down.
        max_load: f64,
    },
    /// A spec from which no flow follows.
    #[error("there is no flow: {reason}")]
    NoFlows {
        /// Why there is none, and what to change.
        reason: String,
    },
    /// A file that cannot be read.
    #[error("{key}: cannot read {path:?}: {reason}")]
    Unreadable {
        /// The key that names the file.
        key: &'static str,
        /// The file.
        path: String,
        /// Error of the operating system.
        reason: String,
    },
    /// A line of a file that is not as it should be.
    #[error("{file}:{line}: found {found}: allowed is {allowed}")]
    BadLine {
        /// The file, or the name of the distribution.
        file: String,
        /// The line, from 1.
        line: usize,
        /// Text that was found.
        found: String,
        /// Text that is allowed there.
        allowed: String,
    },
    /// A message of a binary file that is not as it should be.
    #[error("{file}: message {message} at byte {offset}: found {found}: allowed is {allowed}")]
    BadMessage {
        /// The file.
        file: String,
        /// Which message, from 1.
        message: usize,
        /// The byte at which it begins, with its length, from 0.
        offset: usize,
        /// Text that was found.
        found: String,
        /// Text that is allowed there.
        allowed: String,
    },
    /// A file that lacks something as a whole.
    #[error("{file}: found {found}: allowed is {allowed}")]
    BadFile {
        /// The file, or the name of the distribution.
        file: String,
        /// Content that was found.
        found: String,
        /// Content that is allowed.
        allowed: String,
    },
    /// A fabric that traffic cannot be made for.
    #[error("the fabric's shape is not usable: {reason}")]
    Shape {
        /// Reason why the shape is not usable.
        reason: String,
    },
}

/// The nearest of these names, as a question behind what is allowed; nothing if none is near enough
/// to be meant.
pub(crate) fn did_you_mean<'n>(found: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    /// Below this likeness a suggestion would only puzzle.
    const NEAR: f64 = 0.75;
    let found = found.to_lowercase();
    let scored = known.into_iter().map(|name| (strsim::jaro_winkler(&found, &name.to_lowercase()), name));
    let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.filter(|best| best.0 >= NEAR).map(|best| format!("; did you mean {:?}?", best.1)).unwrap_or_default()
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|name| format!(" (did you mean {name:?}?)")).unwrap_or_default()
}

impl TrafficError {
    /// The value `found` of `key` where only `allowed` is.
    pub(crate) fn bad_value(key: impl Into<String>, found: impl Display, allowed: impl Into<String>) -> Self {
        Self::BadValue { key: key.into(), found: found.to_string(), allowed: allowed.into() }
    }

    /// `key` is not there, and why it has to be.
    pub(crate) fn missing(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Missing { key: key.into(), reason: reason.into() }
    }

    /// `key` stands beside `other`, and why it must not.
    pub(crate) fn conflict(
        key: impl Into<String>,
        other: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self::Conflict { key: key.into(), other: other.into(), reason: reason.into() }
    }

    /// More flows than [`crate::MAX_FLOWS`].
    pub(crate) fn too_many_flows(key: impl Into<String>, flows: f64) -> Self {
        Self::bad_value(key, format!("about {flows:.0} flows"), format!("at most {} flows", crate::MAX_FLOWS))
    }
}

impl From<TrafficError> for Mistake {
    fn from(error: TrafficError) -> Self {
        let sentence = error.to_string();
        // The sentence of an error at a key begins with that key.
        let at = |key: &str| Self::at(key, sentence.strip_prefix(key).unwrap_or(&sentence));
        match &error {
            TrafficError::BadValue { key, found, allowed } => at(key).found(found).allowed(allowed),
            TrafficError::Missing { key, .. } | TrafficError::Conflict { key, .. } => at(key),
            TrafficError::UnknownWorkload { found, nearest, known } => {
                at("traffic.workload").found(found).allowed(known).nearest(nearest.as_deref())
            }
            TrafficError::Overload { key, load, max_load, .. } => {
                at(key).found(load.to_string()).allowed(format!("at most {max_load}"))
            }
            TrafficError::Unreadable { key, path, .. } => at(key).found(path),
            TrafficError::BadLine { found, allowed, .. }
            | TrafficError::BadMessage { found, allowed, .. }
            | TrafficError::BadFile { found, allowed, .. } => {
                Self::new(&sentence).found(found).allowed(allowed)
            }
            TrafficError::NoFlows { .. } | TrafficError::Shape { .. } => Self::new(&sentence),
        }
    }
}
