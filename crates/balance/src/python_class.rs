//! A scheme that is no part of this crate: a class in a file of Python. Here is what a spec says of
//! it; whoever has an interpreter makes an [`crate::ExternalScheme`] of it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weft_units::read_regular_file;

use crate::ParameterError;
use crate::registry::Parameters;

/// A class in a file of Python that balances load, with its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PythonClass {
    /// The file.
    pub file: String,
    /// The class in it.
    pub class: String,
    /// Source text of the file.
    #[serde(skip)]
    pub source: String,
    /// Keyword arguments of the class.
    #[serde(flatten)]
    pub parameters: BTreeMap<String, Value>,
}

impl Parameters for PythonClass {
    fn load(&mut self) -> Result<(), ParameterError> {
        match read_regular_file(Path::new(&self.file)) {
            Ok(source) => {
                self.source = source;
                Ok(())
            }
            Err(error) => Err(ParameterError {
                key: "file",
                found: format!("{:?}, which cannot be read ({error})", self.file),
                allowed: "allowed is a file of Python with a class in it, as in my.py:Least",
            }),
        }
    }

    fn validate(&self) -> Result<(), ParameterError> {
        let mut letters = self.class.chars();
        let begins = letters.next().is_some_and(|first| first == '_' || first.is_alphabetic());
        if begins && letters.all(|letter| letter == '_' || letter.is_alphanumeric()) {
            return Ok(());
        }
        let allowed = "allowed is the name of a class in the file, as in my.py:Least";
        Err(ParameterError { key: "class", found: format!("{:?}", self.class), allowed })
    }
}

#[cfg(test)]
mod tests {
    use crate::SchemeSpec;

    fn named(class: &str, file: &str) -> SchemeSpec {
        let spec =
            serde_json::json!({"name": "python", "file": file, "class": class, "gap": "3us", "ways": 2});
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn what_is_beside_file_and_class_is_a_parameter_of_the_class() {
        let spec = named("Least", "my.py");
        let class = spec.python_class().unwrap();
        assert_eq!((class.file.as_str(), class.class.as_str(), spec.name()), ("my.py", "Least", "python"));
        let parameters: Vec<_> =
            class.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(parameters, ["gap=\"3us\"", "ways=2"]);
        assert_eq!(serde_json::from_value::<SchemeSpec>(serde_json::to_value(&spec).unwrap()).unwrap(), spec);
    }

    #[test]
    fn a_class_has_a_name_and_its_file_is_read() {
        for class in ["Least", "_Least2"] {
            assert_eq!(named(class, "my.py").validate(), Ok(()));
        }
        for class in ["", "2", "a b", "a.b"] {
            assert_eq!(named(class, "my.py").validate().unwrap_err().key, "class");
        }
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/src/python_class.rs");
        let mut found = named("Least", own);
        found.load().unwrap();
        assert!(found.python_class().unwrap().source.starts_with("//! A scheme that is no part"));
        assert_eq!(named("Least", "/there/is/none.py").load().unwrap_err().key, "file");
    }
}
