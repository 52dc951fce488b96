//! A load balancer that is a class in a file of Python, as it is written: `my.py:Least`.

use std::path::Path;

use serde_json::{Value as Json, json};
use toml::Value;

const ENDING: &str = ".py:";

/// The part of `my.py:Least:gap=3us` that names the class, if it names one: `my.py:Least`.
pub(super) fn named(text: &str) -> Option<&str> {
    let class = text.find(ENDING)? + ENDING.len();
    let end = text[class..].find(':').map_or(text.len(), |length| class + length);
    Some(&text[..end])
}

/// Whether a text is the name of a file of Python, without a class.
pub(super) fn is_file_alone(text: &str) -> bool {
    Path::new(text).extension().is_some_and(|extension| extension == "py")
}

/// Name of the class, its file counted from this folder.
pub(super) fn rebased(name: &str, base_dir: &Path) -> String {
    let Some((file, class)) = split(name) else { return name.to_owned() };
    let file = base_dir.join(file);
    let file = std::path::absolute(&file).unwrap_or(file);
    format!("{}:{class}", file.display())
}

/// Counts the file of the load balancer from this folder, if a spec names one so.
pub(super) fn rebase(spec: &mut Value, base_dir: &Path) {
    if let Some(Value::String(name)) = spec.get_mut("scheme").and_then(|table| table.get_mut("name")) {
        *name = rebased(name, base_dir);
    }
}

/// Writes a name such as `my.py:Least` of the load balancer out: the name `python`, a file and a
/// class. Returns whether there was one.
pub(super) fn write_out(spec: &mut Value) -> bool {
    let Some(table) = spec.get_mut("scheme").and_then(Value::as_table_mut) else { return false };
    let name = table.get("name").and_then(Value::as_str).and_then(split);
    let Some((file, class)) = name.map(|(file, class)| (file.to_owned(), class.to_owned())) else {
        return false;
    };
    // In this order the resolved spec has them.
    table.insert("name".to_owned(), "python".into());
    table.insert("file".to_owned(), file.into());
    table.insert("class".to_owned(), class.into());
    true
}

/// Says in the schema of a spec that the load balancer may be such a class; its parameters are
/// those of the class.
pub(super) fn tell(schema: &mut Json) {
    let kinds = schema.pointer_mut("/$defs/SchemeSpec/oneOf").and_then(Json::as_array_mut);
    if let Some(kinds) = kinds {
        kinds.push(json!({
            "description": "A class in a file of Python, as in my.py:Least, with its parameters.",
            "type": "object",
            "required": ["name"],
            "patternProperties": { "^name$": { "anyOf": [{ "pattern": "\\.py:" }, { "const": "python" }] } },
        }));
    }
}

fn split(name: &str) -> Option<(&str, &str)> {
    let (file, class) = named(name)?.rsplit_once(':')?;
    Some((file, class.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_named_by_its_file_and_what_stands_behind_it_is_no_part() {
        for (text, expected) in [
            ("my.py:Least", Some("my.py:Least")),
            ("../a b/my.py:Least:gap=3us:file=x.py:Y", Some("../a b/my.py:Least")),
            ("my.py", None),
            ("letflow:gap=3us", None),
        ] {
            assert_eq!(named(text), expected, "{text}");
        }
        assert!(is_file_alone("a/my.py") && !is_file_alone("my.pyc") && !is_file_alone("letflow"));
    }

    #[test]
    fn the_schema_of_a_spec_has_a_kind_for_it_and_no_other_kind_takes_its_name() {
        let kinds = super::super::schema()["$defs"]["SchemeSpec"]["oneOf"].as_array().unwrap();
        let open: Vec<_> =
            kinds.iter().filter(|kind| kind["properties"]["name"]["const"].is_null()).collect();
        assert_eq!(open.len(), 1);
        assert_eq!(open[0]["patternProperties"]["^name$"]["anyOf"][0]["pattern"], "\\.py:");
    }

    #[test]
    fn a_file_is_counted_from_a_folder_and_one_that_is_absolute_stays() {
        assert_eq!(rebased("my.py:Least", Path::new("/specs")), "/specs/my.py:Least");
        assert_eq!(rebased("/my.py:Least", Path::new("/specs")), "/my.py:Least");
        assert_eq!(rebased("letflow", Path::new("/specs")), "letflow");
    }

    #[test]
    fn the_name_becomes_a_file_and_a_class_and_parameters_stay_where_they_are() {
        let mut spec = Value::from(toml::toml! { scheme = { name = "/my.py: Least", gap = "3us" } });
        assert!(write_out(&mut spec));
        let expected =
            toml::toml! { scheme = { name = "python", gap = "3us", file = "/my.py", class = "Least" } };
        assert_eq!(spec, Value::from(expected));
        assert!(!write_out(&mut spec), "once");
    }
}
