//! Mistakes in something that a user wrote: the one type that every crate's errors become.

use std::fmt::{self, Write};

/// A mistake: at which key, what was found there, what is allowed, and the name that was probably
/// meant.
///
/// It prints as one sentence, which begins with the key where there is one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mistake {
    /// The key, as in `fabric.fault[0].at`; none if it is about no single key.
    pub path: Option<String>,
    /// Value that was found.
    pub found: Option<String>,
    /// Values that are allowed in its place.
    pub allowed: Option<String>,
    /// The nearest name that there is.
    pub nearest: Option<String>,
    /// This mistake at another key, for a text that has that key alone.
    pub or: Option<Box<Self>>,
    /// The sentence, without the key that it begins with.
    said: Box<str>,
}

impl Mistake {
    /// A mistake about no single key.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self { said: sentence.into().into(), ..Self::default() }
    }

    /// A mistake at a key; `said` is what comes after the key in the sentence, as in " is missing".
    pub fn at(path: impl Into<String>, said: impl Into<String>) -> Self {
        Self { path: Some(path.into()), said: said.into().into(), ..Self::default() }
    }

    /// This mistake, with the value that was found.
    #[must_use]
    pub fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    /// This mistake, with the values that are allowed.
    #[must_use]
    pub fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }

    /// This mistake, with the nearest name, if one is near enough to be meant.
    #[must_use]
    pub fn nearest(mut self, nearest: Option<impl Into<String>>) -> Self {
        self.nearest = nearest.map(Into::into);
        self
    }

    /// This mistake, with the other key that may be the mistaken one.
    #[must_use]
    pub fn or(mut self, other: Option<Self>) -> Self {
        self.or = other.map(Box::new);
        self
    }

    /// This mistake, with the key as one of this table: `gap` in `scheme` is `scheme.gap`.
    #[must_use]
    pub fn within(mut self, table: &str) -> Self {
        self.path = self.path.map(|path| format!("{table}.{path}"));
        self.or = self.or.map(|other| Box::new(other.within(table)));
        self
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", OneLine(self.path.as_deref().unwrap_or_default()), OneLine(&self.said))
    }
}

/// A text that prints as one line, whatever a key, a value or a file is called: control characters
/// are escaped.
#[derive(Debug, Clone, Copy)]
pub struct OneLine<'a>(pub &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            if character.is_control() {
                write!(f, "{}", character.escape_default())?;
            } else {
                f.write_char(character)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Mistake {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_table_is_named_with_it_and_begins_the_sentence() {
        let mistake = Mistake::at("gap", " is 0ps: more than nothing").found("0ps").within("scheme");
        assert_eq!(mistake.path.as_deref(), Some("scheme.gap"));
        assert_eq!(mistake.to_string(), "scheme.gap is 0ps: more than nothing");
        assert_eq!(Mistake::new("no file a\nb").to_string(), "no file a\\nb", "in one line");
        assert_eq!(Mistake::new("no flow").within("traffic").to_string(), "no flow");
    }
}
