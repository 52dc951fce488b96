//! Hints for an unknown key: who has it, and where one of this name is.

use serde_json::Value as Json;
use toml::Value;
use weft_units::Mistake;

use super::decode::{Misfit, unknown_key};
use super::error::likeness;
use super::path::{KeyPath, Step};
use super::renamed::name_today;
use super::schema;

/// So many names are offered at most.
const MOST: usize = 3;
/// Keys of other tables are offered if they are alike; this is stricter than within a table, of
/// which there are fewer.
const ALIKE: f64 = 0.9;

/// The mistake, with what else can be said if it is an unknown key of a spec.
pub(super) fn hinted(misfit: Misfit, spec: &Value) -> (KeyPath, Mistake) {
    let Misfit { path, known, mistake } = misfit;
    let (Some(known), Some(key)) = (known, path.last_key().map(str::to_owned)) else {
        return (path, *mistake);
    };
    if let Some(today) = name_today(&path) {
        let said = format!(" is {today} today; `weft convert` rewrites a spec");
        let mistake = Mistake::at(path.to_string(), said).found(key).allowed(today.to_string());
        return (path, mistake.nearest(Some(today.to_string())));
    }
    let table = KeyPath(path.0[..path.0.len() - 1].to_vec());
    let whose = others_with(&table, &key, spec).unwrap_or_default();
    let elsewhere = if whose.is_empty() { places(&key, mistake.nearest.is_some()) } else { Vec::new() };
    let near = if elsewhere.is_empty() { mistake.nearest.into_iter().collect() } else { elsewhere };
    let mistake = unknown_key(&path, &whose, known, &near);
    (path, mistake)
}

/// " of ecmp; letflow and plb have it": whose key it is not, and whose it is. None if it is
/// nobody's.
fn others_with(table: &KeyPath, key: &str, spec: &Value) -> Option<String> {
    let variants = schema::variants(table);
    let (tag, _) = schema::tag(variants.first()?)?;
    let own = table.get(spec)?.get(tag)?.as_str()?;
    let having = variants.iter().filter(|variant| variant["properties"].get(key).is_some());
    let names: Vec<&str> = having.filter_map(|variant| schema::tag(variant)).map(|(_, name)| name).collect();
    let has = if names.len() == 1 { "has" } else { "have" };
    (!names.is_empty()).then(|| format!(" of {own}; {} {has} it", names.join(", ")))
}

/// The keys of a spec whose last part is `key`, with all that leads there; without any, and if
/// nothing is near already, those that are alike.
fn places(key: &str, is_near: bool) -> Vec<String> {
    let root = schema::schema();
    let mut all = Vec::new();
    collect(root, root, &KeyPath::default(), &mut all);
    let best = |least: f64| {
        let mut alike: Vec<(f64, &KeyPath)> = all
            .iter()
            .map(|path| (path.last_key().map_or(0.0, |last| likeness(key, last)), path))
            .filter(|(likeness, _)| *likeness >= least)
            .collect();
        // Stable: names that are equally alike stay in the order of the schema.
        alike.sort_by(|a, b| b.0.total_cmp(&a.0));
        alike.iter().take(MOST).map(|(_, path)| path.to_string()).collect::<Vec<_>>()
    };
    let same = best(1.0);
    if same.is_empty() && !is_near { best(ALIKE) } else { same }
}

/// Every key below `node`, but for those in lists.
fn collect(root: &Json, node: &Json, at: &KeyPath, all: &mut Vec<KeyPath>) {
    for (key, property) in schema::alternatives(root, node)
        .into_iter()
        .filter_map(|schema| schema["properties"].as_object())
        .flatten()
    {
        let path = at.join(Step::Key(key.clone()));
        if !all.contains(&path) {
            all.push(path.clone());
            collect(root, property, &path, all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_its_table_is_offered_with_it() {
        assert_eq!(places("load", false), ["traffic.load"]);
        assert_eq!(places("seed", true), ["run.seed"]);
        let buffers = ["fabric.switch_queue.buffer", "fabric.host_queue.buffer", "scheme.buffer"];
        assert_eq!(places("buffer", false), buffers);
        assert_eq!(places("hostrate", false), ["fabric.host_rate"]);
        assert_eq!(places("loads", false), ["traffic.load"]);
        assert!(places("loads", true).is_empty(), "what is near in its own table is meant");
        assert!(places("quux", false).is_empty());
    }
}
