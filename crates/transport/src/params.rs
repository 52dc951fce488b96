//! Errors in parameters.

use std::fmt::Display;

use thiserror::Error;
use weft_units::Mistake;

/// A parameter with a value that makes no sense: which one, what was found, what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key} is {found}; allowed: {allowed}")]
pub struct ParamError {
    /// The parameter, as it is written in a spec.
    pub key: &'static str,
    /// Rejected value, as it is written in a spec.
    pub found: String,
    /// Allowed values.
    pub allowed: String,
    /// This error reported at another parameter, for a spec that has that one alone.
    pub or: Option<Box<Self>>,
}

impl ParamError {
    /// An error about `key`.
    pub fn new(key: &'static str, found: impl Display, allowed: impl Into<String>) -> Self {
        Self { key, found: found.to_string(), allowed: allowed.into(), or: None }
    }

    /// Nothing if `holds`, else an error about `key`.
    pub(crate) fn unless(
        holds: bool,
        key: &'static str,
        found: impl Display,
        allowed: impl Into<String>,
    ) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::new(key, found, allowed)) }
    }

    /// Likewise, where two parameters do not fit together: an error about the one that a spec has.
    #[must_use]
    pub(crate) fn or(self, key: &'static str, found: impl Display, allowed: impl Into<String>) -> Self {
        Self { or: Some(Box::new(Self::new(key, found, allowed))), ..self }
    }
}

impl From<ParamError> for Mistake {
    fn from(error: ParamError) -> Self {
        let ParamError { key, found, allowed, or } = error;
        let mistake = Self::at(key, format!(" is {found}; allowed: {allowed}")).found(found).allowed(allowed);
        mistake.or(or.map(|other| Self::from(*other)))
    }
}
