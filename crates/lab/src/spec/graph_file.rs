//! Mistakes in a file that lists nodes and links, told as those of a spec: line, key, what is
//! allowed, the nearest name.

use std::path::Path;

use toml::Value;
use weft_topology::{FabricSpec, GraphFile};
use weft_units::read_regular_file;

use super::decode::decode;
use super::document::SpecSource;
use super::error::SpecError;
use super::place::{line_of, syntax_error};

/// Refuses what does not fit in the file of a fabric that has one. A file that cannot be read is
/// for who builds the fabric to tell.
pub(crate) fn check_graph_file(fabric: &FabricSpec, base_dir: &Path) -> Result<(), SpecError> {
    let FabricSpec::Graph(graph) = fabric else { return Ok(()) };
    let Ok(text) = read_regular_file(&base_dir.join(&graph.file)) else { return Ok(()) };
    check(text, graph.file.display().to_string())
}

fn check(text: String, origin: String) -> Result<(), SpecError> {
    let source = SpecSource { origin, ..SpecSource::from_text(text) };
    let table: toml::Table =
        source.text.parse().map_err(|error| syntax_error(&source.text, &source.origin, &error))?;
    decode::<GraphFile>(&Value::Table(table)).map(drop).map_err(|misfit| {
        let line = line_of(&source, &misfit.path);
        SpecError { line, ..SpecError::from(*misfit.mistake).from_origin(&source.origin) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_told_as_those_of_a_spec() {
        let nodes = "hosts = [{ prefix = 'h', count = 2 }]\nswitches = ['s']\ndelay = '1us'\n";
        for (rest, expected) in [
            (
                "[[link]]\nfrom = 'h0'\nto = 's'\ncont = 2",
                "g.toml:7: link[0].cont is not a key; allowed here: from, to, rate, delay, count; did you mean \"count\"?",
            ),
            ("rate = '10Gbs'", "g.toml:4: rate: \"10Gbs\" is not a rate"),
            (
                "[[link]]\nfrom = 'h0'\nto = 3",
                "g.toml:6: link[0].to = 3: an end of a link is a name, or a list of names",
            ),
            ("[[link]]\nfrom = 'h0'", "g.toml:4: link[0].to is missing"),
            ("[[link]", "g.toml:4: not valid TOML: "),
        ] {
            let said = check(format!("{nodes}{rest}"), "g.toml".to_owned()).unwrap_err().to_string();
            assert!(said.starts_with(expected) && said.matches("10Gbs").count() < 2, "{said}");
        }
        assert_eq!(check(nodes.to_owned(), "g.toml".to_owned()), Ok(()));
    }
}
