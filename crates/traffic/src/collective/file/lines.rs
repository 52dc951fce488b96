//! Lines of words.

use crate::error::did_you_mean;

/// Text of a line, and what is allowed there.
pub(crate) type Mistake = (String, String);

/// A line that is neither empty nor a comment, in words.
#[derive(Debug)]
pub(crate) struct Line<'t> {
    /// From 1.
    pub number: usize,
    pub words: Vec<&'t str>,
}

impl<'t> Line<'t> {
    /// Lines of a text, without anything behind `comment`.
    pub fn all(text: &'t str, comment: &str) -> impl Iterator<Item = Self> {
        let lines = text.trim_start_matches('\u{feff}').lines().zip(1..);
        lines.filter_map(move |(line, number)| {
            let line = line.split_once(comment).map_or(line, |(before, _)| before);
            let words: Vec<&str> = line.split_whitespace().collect();
            (!words.is_empty()).then_some(Self { number, words })
        })
    }

    /// All of it, for a message.
    pub fn text(&self) -> String {
        format!("{:?}", self.words.join(" "))
    }
}

/// A word that is none of these; `allowed` says what may be there.
pub(crate) fn unknown(found: String, word: &str, allowed: &str, known: &[&str]) -> Mistake {
    (found, format!("{allowed}{}", did_you_mean(word, known.iter().copied())))
}

/// A whole number from `least` to `most`; `what` names it in messages.
pub(crate) fn number(what: &str, text: &str, least: u64, most: u64) -> Result<u64, Mistake> {
    let value = text.parse::<u64>().ok().filter(|value| (least..=most).contains(value));
    value.ok_or_else(|| (format!("{what} {text:?}"), format!("a whole number, {least} to {most}")))
}
