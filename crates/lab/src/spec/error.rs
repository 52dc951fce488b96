//! Mistakes in a spec, each with one message.

use thiserror::Error;
use weft_units::{Mistake, OneLine};

/// A mistake in a spec: where it was written, which key, what was found, what is allowed, and the
/// nearest right name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{mistake}", place(origin.as_deref(), *line))]
pub struct SpecError {
    /// The file, the option, or whatever else the spec came from.
    pub origin: Option<String>,
    /// The line in it, from 1, where the key stands there.
    pub line: Option<usize>,
    /// Mistake in the spec.
    pub mistake: Box<Mistake>,
}

impl SpecError {
    /// A mistake that is in no particular place.
    pub fn new(message: impl Into<String>) -> Self {
        Mistake::new(message).into()
    }

    /// A name that nothing of this kind has: "there is no model \"lbtt\"".
    pub fn unknown<'a>(kind: &str, found: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let near = nearest(found, known.iter().copied());
        let allowed = known.join(", ");
        let sentence = format!("there is no {kind} {found:?}; allowed: {allowed}{}", did_you_mean(near));
        Mistake::new(sentence).found(found).allowed(allowed).nearest(near).into()
    }

    /// Adds the origin to the error.
    #[must_use]
    pub fn from_origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = Some(origin.into());
        self
    }
}

impl From<Mistake> for SpecError {
    fn from(mistake: Mistake) -> Self {
        Self { origin: None, line: None, mistake: Box::new(mistake) }
    }
}

fn place(origin: Option<&str>, line: Option<usize>) -> String {
    match (origin.map(OneLine), line) {
        (Some(origin), Some(line)) => format!("{origin}:{line}: "),
        (Some(origin), None) => format!("{origin}: "),
        (None, Some(line)) => format!("line {line}: "),
        (None, None) => String::new(),
    }
}

/// The question after the name that was found; nothing if no name is near.
pub(crate) fn did_you_mean<'a, S: AsRef<str> + 'a>(near: impl IntoIterator<Item = S>) -> String {
    let names: Vec<String> = near.into_iter().map(|name| format!("{:?}", name.as_ref())).collect();
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) }
}

/// The nearest of `known` to `found`, if any is near enough to be meant.
pub fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Below this likeness a suggestion would only puzzle.
    const NEAR: f64 = 0.75;
    let best = known.into_iter().map(|name| (likeness(found, name), name));
    let best = best.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.filter(|best| best.0 >= NEAR).map(|best| best.1)
}

/// How alike two names are, from 0 to 1: the same but for case, dashes and blanks.
pub(super) fn likeness(one: &str, other: &str) -> f64 {
    let simple = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    strsim::jaro_winkler(&simple(one), &simple(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_and_a_far_one_is_not() {
        let known = ["leaf-spine", "fat-tree", "graph"];
        assert_eq!(nearest("leafspine", known), Some("leaf-spine"));
        assert_eq!(nearest("Fat_Tree", known), Some("fat-tree"));
        assert_eq!(nearest("quux", known), None);
    }

    #[test]
    fn a_message_is_one_line_wherever_a_line_break_stands() {
        let error = SpecError::new("a\nb: no such file").from_origin("c\nd.toml");
        assert_eq!(error.to_string(), "c\\nd.toml: a\\nb: no such file");
    }
}
