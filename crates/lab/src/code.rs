//! Code that a spec names: what may run, and refusing it.

use std::sync::atomic::{AtomicBool, Ordering};

use weft_units::Mistake;

use crate::spec::Spec;

static REFUSED: AtomicBool = AtomicBool::new(false);

/// From now on this process takes no spec that runs code: a class in Python, Linux hosts, programs
/// on them.
pub fn refuse_code() {
    REFUSED.store(true, Ordering::Relaxed);
}

/// Refuses a spec that runs code, if that is refused.
pub(crate) fn check_code(spec: &Spec) -> Result<(), Mistake> {
    if REFUSED.load(Ordering::Relaxed) { code_of(spec).map_or(Ok(()), Err) } else { Ok(()) }
}

/// The first code that a spec runs, as a mistake.
fn code_of(spec: &Spec) -> Option<Mistake> {
    let refused = |key: &str, found: String, what: &str| {
        let said = format!(" is {found}, {what}: --no-code refuses it");
        Some(Mistake::at(key, said).found(found).allowed("what runs no code"))
    };
    if let Some(class) = spec.scheme.python_class() {
        let found = format!("{:?}", format!("{}:{}", class.file, class.class));
        return refused("scheme.name", found, "code in Python");
    }
    if let Some(program) = spec.traffic.program.first() {
        let found = serde_json::to_string(&program.command).unwrap_or_default();
        return refused("traffic.program[0].command", found, "a program to run");
    }
    if spec.hosts.linux().is_some() {
        return refused("hosts.kind", "\"linux\"".to_owned(), "which starts Linux kernels on this machine");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Resolved, SpecSource};

    fn code(text: &str) -> Option<String> {
        let resolved = Resolved::new(&SpecSource::from_text(text)).unwrap();
        code_of(&resolved.spec).map(|mistake| mistake.to_string())
    }

    #[test]
    fn whatever_runs_code_is_found_and_data_is_not() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/code.rs");
        let folder = tempfile::tempdir().unwrap();
        let scheme = folder.path().join("my.py");
        std::fs::copy(file, &scheme).unwrap();
        let python = format!("[scheme]\nname = \"{}:Least\"\n", scheme.display());
        let linux = "[hosts]\nkind = \"linux\"\n[transport]\nname = \"tcp\"\n";
        let program = format!("{linux}[[traffic.program]]\nhost = 0\ncommand = \"true\"\n");
        for (text, expected) in [
            (python.as_str(), "my.py:Least\", code in Python: --no-code refuses it"),
            (linux, "hosts.kind is \"linux\", which starts Linux kernels"),
            (program.as_str(), "traffic.program[0].command is "),
        ] {
            let said = code(text).unwrap_or_default();
            assert!(said.contains(expected), "{text}: {said}");
        }
        assert_eq!(code(""), None);
    }
}
