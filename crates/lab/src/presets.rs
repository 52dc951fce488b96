//! Presets: specs that stand for the set-ups of papers and of clusters, with the schemes to compare
//! there.

use serde::Deserialize;

use crate::spec::SpecError;

/// The files, by name.
const FILES: [(&str, &str); 13] = [
    ("ai-allreduce", include_str!("../../../data/presets/ai-allreduce.toml")),
    ("ai-moe", include_str!("../../../data/presets/ai-moe.toml")),
    ("lbt", include_str!("../../../data/presets/lbt.toml")),
    ("maxpass-large", include_str!("../../../data/presets/maxpass-large.toml")),
    ("maxpass-medium", include_str!("../../../data/presets/maxpass-medium.toml")),
    ("meet-asymmetric", include_str!("../../../data/presets/meet-asymmetric.toml")),
    ("meet-symmetric", include_str!("../../../data/presets/meet-symmetric.toml")),
    ("qall-asymmetric", include_str!("../../../data/presets/qall-asymmetric.toml")),
    ("qall-linux", include_str!("../../../data/presets/qall-linux.toml")),
    ("qall-symmetric", include_str!("../../../data/presets/qall-symmetric.toml")),
    ("tr-large", include_str!("../../../data/presets/tr-large.toml")),
    ("tr-linux", include_str!("../../../data/presets/tr-linux.toml")),
    ("tr-micro", include_str!("../../../data/presets/tr-micro.toml")),
];

/// A set-up to compare schemes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// Name of the preset, as in "tr-micro".
    pub name: &'static str,
    /// Title of the preset, in a line.
    pub title: String,
    /// The paper and its section.
    pub source: String,
    /// The schemes to compare if nobody says which.
    pub schemes: Vec<String>,
    /// The spec: TOML.
    pub spec: String,
    /// Notes on what the paper says and leaves open: the comment that the file begins with.
    pub notes: String,
    /// The choices that the paper left open, by name: each a table with its alternatives, as in the
    /// file, or in that of another preset of the paper that it names.
    pub open: toml::Table,
}

/// The `[preset]` table of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    title: String,
    source: String,
    schemes: Vec<String>,
}

/// Every preset, by name.
///
/// # Errors
/// A file that is not as it should be: a defect of Weft.
pub fn presets() -> Result<Vec<Preset>, SpecError> {
    FILES.iter().map(|&(name, text)| preset(name, text)).collect()
}

fn preset(name: &'static str, text: &str) -> Result<Preset, SpecError> {
    let broken = |error: &dyn std::fmt::Display| SpecError::new(format!("preset {name}: {error}"));
    let mut document: toml::Table = toml::from_str(text).map_err(|error| broken(&error))?;
    let head = document.remove("preset").ok_or_else(|| broken(&"the table [preset] is missing"))?;
    let Head { title, source, schemes } = head.try_into().map_err(|error| broken(&error))?;
    let open = match document.remove("open") {
        None => toml::Table::new(),
        Some(toml::Value::String(like)) => left_open(&like).map_err(|error| broken(&error))?,
        Some(open) => open.try_into().map_err(|error| broken(&error))?,
    };
    let comment = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
    let notes = comment.collect::<Vec<_>>().join("\n");
    let spec = toml::to_string(&document).map_err(|error| broken(&error))?;
    Ok(Preset { name, title, source, schemes, spec, notes, open })
}

/// Open choices of another preset of the same paper.
fn left_open(preset: &str) -> Result<toml::Table, SpecError> {
    let names = FILES.map(|(name, _)| name);
    let text = FILES.iter().find(|(name, _)| *name == preset).map(|(_, text)| *text);
    let text = text.ok_or_else(|| SpecError::unknown("preset", preset, names))?;
    let mut document: toml::Table =
        toml::from_str(text).map_err(|error| SpecError::new(format!("{preset}: {error}")))?;
    match document.remove("open") {
        Some(toml::Value::Table(open)) => Ok(open),
        _ => Err(SpecError::new(format!("{preset} has no table [open]"))),
    }
}

#[cfg(test)]
mod tests {
    use weft_units::Span;

    use super::*;
    use crate::{Prepared, SpecSource};

    #[test]
    fn every_preset_is_a_spec_that_can_run_with_schemes_that_there_are() {
        let schemes = weft_balance::schemes().iter().map(|info| info.name);
        let transports = weft_transport::TransportSpec::list().iter().map(|info| info.name);
        let variants: Vec<_> = schemes.chain(transports).collect();
        for preset in presets().unwrap() {
            let source = SpecSource::from_text(&preset.spec);
            let waits = preset.spec.contains("[[traffic.collective]]");
            let source = if waits { source } else { source.with("traffic.flows", "50") };
            Prepared::new(&source).unwrap_or_else(|error| panic!("{}: {error}", preset.name));
            assert!(
                preset.schemes.iter().all(|name| variants.contains(&name.as_str())),
                "{:?}",
                preset.schemes
            );
            assert!(preset.notes.contains("Left open"), "{} says what its paper leaves open", preset.name);
        }
    }

    #[test]
    fn every_file_of_presets_is_listed() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/presets");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort_unstable();
        assert_eq!(files, FILES.map(|(name, _)| name));
    }

    /// TR, Design motivation: the round trips of good and bad paths are 200 us and 2.5 times that.
    #[test]
    fn the_micro_benchmark_of_tr_has_the_round_trips_of_the_paper() {
        let preset = presets().unwrap().into_iter().find(|preset| preset.name == "tr-micro").unwrap();
        let prepared = Prepared::new(&SpecSource::from_text(&preset.spec)).unwrap();
        let topology = &prepared.fabric.topology;
        let delay = |from: &str, to: &str| {
            let name = format!("{from}>{to}");
            let link =
                (0..topology.links.len() as u32).find(|&link| topology.link_name(link) == name).unwrap();
            topology.links[link as usize].condition.delay
        };
        let round_trip = |spine: &str| {
            let there = delay("host0", "leaf0") + delay("leaf0", spine);
            (there + delay(spine, "leaf1") + delay("leaf1", "host10")) * 2
        };
        assert_eq!([round_trip("spine9"), round_trip("spine0")], [200, 500].map(Span::from_us));
    }
}
