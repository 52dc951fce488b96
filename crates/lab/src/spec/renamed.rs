//! Keys that have another name in older specs: rejected with today's name, and rewritten by
//! `weft convert`.

use toml::de::{DeTable, DeValue};

use super::error::SpecError;
use super::path::{KeyPath, Step};
use super::place::syntax_error;

/// An old path, and the key that the last part of it is today.
const RENAMED: [(&[&str], &str); 2] = [(&["balancer"], "scheme"), (&["fabric", "memory"], "shared_buffer")];

/// Today's path of a key with an old name.
pub(super) fn name_today(path: &KeyPath) -> Option<KeyPath> {
    let (old, new) = RENAMED.iter().find(|(old, _)| is(path, old))?;
    let table = old[..old.len() - 1].iter().map(|&part| Step::Key(part.to_owned()));
    Some(KeyPath(table.chain([Step::Key((*new).to_owned())]).collect()))
}

fn is(path: &KeyPath, old: &[&str]) -> bool {
    path.0.len() == old.len()
        && path.0.iter().zip(old).all(|(step, part)| matches!(step, Step::Key(key) if key == part))
}

/// A spec with today's names of keys, everything else as it was, comments included. `origin` is
/// what a message calls the spec.
///
/// # Errors
/// Text that is no TOML.
pub fn convert(text: &str, origin: &str) -> Result<String, SpecError> {
    let mut text = text.to_owned();
    loop {
        let found = {
            let root = DeTable::parse(&text).map_err(|error| syntax_error(&text, origin, &error))?;
            RENAMED.iter().find_map(|(old, new)| Some((span(root.get_ref(), old)?, *new)))
        };
        // A table may be written in several places: each turn finds the first that is left.
        let Some((span, new)) = found else { return Ok(text) };
        text.replace_range(span, new);
    }
}

/// Where the last part of a path stands.
fn span(table: &DeTable<'_>, path: &[&str]) -> Option<std::ops::Range<usize>> {
    let (first, rest) = path.split_first()?;
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == first)?;
    match (rest, value.get_ref()) {
        ([], _) => Some(key.span()),
        (_, DeValue::Table(inner)) => span(inner, rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_an_old_key_gets_the_new_name_and_nothing_else_changes() {
        let old = "# balancer\nbalancer.name = \"drill\" # memory\nfabric.memory.size = \"1MB\"\n\
                   fabric.memory.alpha = 2\n[scheme_of_mine]\nmemory = 1\n";
        let new = "# balancer\nscheme.name = \"drill\" # memory\nfabric.shared_buffer.size = \"1MB\"\n\
                   fabric.shared_buffer.alpha = 2\n[scheme_of_mine]\nmemory = 1\n";
        assert_eq!(convert(old, "spec").unwrap(), new);
        assert_eq!(convert(new, "spec").unwrap(), new);
        let tables = "[fabric]\nmemory = { size = \"1MB\" }\n[[balancer]]\nname = \"ecmp\"\n[[balancer]]\n\
                      name = \"drill\"\nmemory = \"rack\"\n";
        let wanted = tables.replace("[[balancer]]", "[[scheme]]").replacen("memory", "shared_buffer", 1);
        assert_eq!(convert(tables, "spec").unwrap(), wanted);
        let headers = "[fabric.memory]\nsize = \"1MB\"\n[balancer]\nname = \"drill\"\n";
        let wanted = headers.replace("memory", "shared_buffer").replace("balancer", "scheme");
        assert_eq!(convert(headers, "spec").unwrap(), wanted);
    }

    #[test]
    fn what_is_no_toml_is_rejected_with_its_line() {
        assert!(convert("[run]\nseed = \n", "my.toml").unwrap_err().to_string().contains("my.toml:2"));
    }
}
