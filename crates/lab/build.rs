//! The version of the results: a hash of all that decides what a run gives.
//!
//! The version of the package changes with a release; results change with any line of the engine.
//! So runs that are kept are told apart by a hash of the sources of the crates that decide results,
//! of the versions of their dependencies, and of the data that they are built with. A change that
//! moves no result, as of a comment, makes another version, too: that costs a run, and the other
//! mistake a wrong figure.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The crates that decide results, below `crates/`. One that is not there (any more) counts as
/// empty.
const CRATES: [&str; 8] = ["units", "packet", "balance", "transport", "traffic", "topology", "fabric", "lab"];

fn main() -> Result<(), Box<dyn Error>> {
    // Asked for now: what was asked for at compile time names a folder that may be gone where a
    // target directory was moved.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?;
    let root = PathBuf::from(package).join("../..");
    let mut places: Vec<PathBuf> =
        CRATES.iter().map(|name| Path::new("crates").join(name).join("src")).collect();
    places.extend(["Cargo.lock", "data"].map(PathBuf::from));
    places.retain(|place| root.join(place).exists());
    if places.is_empty() {
        return Err(format!("{}: no sources to make a version of the results from", root.display()).into());
    }
    let mut hash = Sha256::new();
    for place in &places {
        println!("cargo:rerun-if-changed={}", root.join(place).display());
        add(&root, place, &mut hash)?;
    }
    println!("cargo:rerun-if-changed=build.rs");
    let first = hash.finalize().into_iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(byte));
    println!("cargo:rustc-env=WEFT_RESULTS_VERSION={first:016x}");
    Ok(())
}

/// Adds a file, or all files of a directory in the order of their names: name, length and content.
fn add(root: &Path, place: &Path, hash: &mut Sha256) -> Result<(), Box<dyn Error>> {
    let path = root.join(place);
    if path.is_dir() {
        let entries = fs::read_dir(&path)?.map(|entry| Ok(entry?.file_name()));
        let mut names = entries.collect::<Result<Vec<_>, std::io::Error>>()?;
        names.sort();
        return names.iter().try_for_each(|name| add(root, &place.join(name), hash));
    }
    // What tests expect, and what is only read by people, decides no result.
    let is_test = place.file_stem().is_some_and(|stem| stem == "tests");
    if is_test || place.extension().is_some_and(|extension| extension == "md") {
        return Ok(());
    }
    let content = fs::read(&path)?;
    let name =
        place.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
    hash.update(format!("{name} {}\n", content.len()));
    hash.update(content);
    Ok(())
}
