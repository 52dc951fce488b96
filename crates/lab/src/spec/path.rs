//! Where in a spec something is: `fabric.fault[0].at`.

use std::fmt;

use toml::Value;

/// One step into a TOML value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Into a table.
    Key(String),
    /// Into an array.
    Index(usize),
}

/// A path into a TOML value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KeyPath(pub Vec<Step>);

impl KeyPath {
    /// Reads `fault.0.at` or `fault[0].at`. `None` if a part is empty.
    pub fn parse(text: &str) -> Option<Self> {
        let dotted = text.replace('[', ".").replace(']', "");
        let steps = dotted.split('.').map(|part| {
            let part = part.trim();
            let index = part.parse().map(Step::Index);
            (!part.is_empty()).then(|| index.unwrap_or_else(|_| Step::Key(part.to_owned())))
        });
        steps.collect::<Option<Vec<_>>>().map(Self)
    }

    /// This path and one step more.
    pub fn join(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The last key, if the path ends in one.
    pub fn last_key(&self) -> Option<&str> {
        match self.0.last() {
            Some(Step::Key(key)) => Some(key),
            _ => None,
        }
    }

    /// Whether `self` is `other` or lies below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The value that it leads to.
    pub fn get<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(root, |node, step| match step {
            Step::Key(key) => node.as_table()?.get(key),
            Step::Index(index) => node.as_array()?.get(*index),
        })
    }

    /// A copy of `root` without what it leads to.
    pub fn removed_from(&self, root: &Value) -> Option<Value> {
        let mut copy = root.clone();
        let (last, parents) = self.0.split_last()?;
        let parent = parents.iter().try_fold(&mut copy, |node, step| match step {
            Step::Key(key) => node.as_table_mut()?.get_mut(key),
            Step::Index(index) => node.as_array_mut()?.get_mut(*index),
        })?;
        match last {
            Step::Key(key) => parent.as_table_mut()?.remove(key).map(drop)?,
            Step::Index(index) => {
                let array = parent.as_array_mut()?;
                (*index < array.len()).then(|| array.remove(*index)).map(drop)?;
            }
        }
        Some(copy)
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if depth == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// The steps to the children of a table or an array; none for anything else.
pub(crate) fn children(value: &Value) -> Vec<Step> {
    match value {
        Value::Table(table) => table.keys().cloned().map(Step::Key).collect(),
        Value::Array(array) => (0..array.len()).map(Step::Index).collect(),
        _ => Vec::new(),
    }
}

/// Writes `value` at `path`, with the tables that lead there.
pub(super) fn insert(root: &mut Value, path: &KeyPath, value: Value) -> Result<(), String> {
    let mut node = root;
    for (depth, step) in path.0.iter().enumerate() {
        let here = KeyPath(path.0[..depth].to_vec());
        node = match (node, step) {
            (Value::Table(table), Step::Key(key)) => {
                let next = path.0.get(depth + 1);
                table.entry(key.clone()).or_insert_with(|| empty_for(next))
            }
            (Value::Array(array), Step::Index(index)) => {
                let length = array.len();
                if *index > length {
                    return Err(format!("{here} has {length} entries; the next one is {here}[{length}]"));
                }
                if *index == length {
                    array.push(empty_for(path.0.get(depth + 1)));
                }
                &mut array[*index]
            }
            (Value::Array(_), Step::Key(key)) => {
                return Err(format!(
                    "{here} is a list: write the entry's number before {key:?}, as in {here}.0.{key}"
                ));
            }
            (Value::Table(_), Step::Index(index)) => {
                return Err(format!("{here} is a table: it has no entry {index}"));
            }
            (other, _) => {
                return Err(format!("{here} is {other}, not a table: nothing can be set within it"));
            }
        };
    }
    *node = value;
    Ok(())
}

fn empty_for(next: Option<&Step>) -> Value {
    match next {
        Some(Step::Index(_)) => Value::Array(Vec::new()),
        _ => Value::Table(toml::Table::new()),
    }
}

/// Whether the text decides the value at `steps`: it has it, or something that is not a table on
/// the way.
pub(super) fn reaches(root: &Value, steps: &[Step]) -> bool {
    let mut node = root;
    for step in steps {
        let next = match (node, step) {
            (Value::Table(table), Step::Key(key)) => table.get(key),
            (Value::Array(array), Step::Index(index)) => array.get(*index),
            _ => return true,
        };
        match next {
            Some(next) => node = next,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_write_an_index_mean_the_same() {
        let path = KeyPath::parse("fabric.fault.0.at").unwrap();
        assert_eq!(Some(path.clone()), KeyPath::parse("fabric.fault[0].at"));
        assert_eq!(path.to_string(), "fabric.fault[0].at");
        assert_eq!(KeyPath::parse("a..b"), None);
        assert_eq!(KeyPath::parse(""), None);
    }

    #[test]
    fn removal_takes_one_entry_and_nothing_else() {
        let root: Value = toml::from_str::<toml::Table>("a = [1, 2]\nb = 3").unwrap().into();
        let removed = KeyPath::parse("a.0").unwrap().removed_from(&root).unwrap();
        assert_eq!(
            removed.to_string(),
            Value::from(toml::from_str::<toml::Table>("a = [2]\nb = 3").unwrap()).to_string()
        );
        assert_eq!(KeyPath::parse("a.2").unwrap().removed_from(&root), None);
    }
}
