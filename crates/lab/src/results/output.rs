//! The result directory: complete or not there.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::rows::TABLES;
use super::stored::Stored;

/// Results that could not be written.
#[derive(Debug, Error)]
pub enum OutputError {
    /// Something is there already.
    #[error("{path:?} exists already; choose another directory, or replace it with --force")]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// It cannot be replaced without a loss.
    #[error("{path:?} is not replaced: {reason}")]
    NotReplaced {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The operating system refused.
    #[error("cannot write results to {path:?}: {source}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// The resolved spec in a result directory.
pub const SPEC: &str = "spec.toml";
/// The summary in a result directory.
pub const SUMMARY: &str = "summary.json";

/// The files of a result directory, in the order in which they are written. The last one says that
/// all are there.
pub fn files() -> impl Iterator<Item = String> {
    let tables = TABLES.into_iter().map(|table| file_of(table.name));
    [SPEC.to_owned()].into_iter().chain(tables).chain([SUMMARY.to_owned()])
}

/// The file of a table.
pub fn file_of(table: &str) -> String {
    format!("{table}.parquet")
}

/// Content of a file in a result directory.
pub trait Content {
    /// Writes it.
    ///
    /// # Errors
    /// What the operating system says.
    fn write_to(&self, file: &mut File) -> io::Result<()>;
}

impl Content for &[u8] {
    fn write_to(&self, file: &mut File) -> io::Result<()> {
        file.write_all(self)
    }
}

impl Content for Stored {
    fn write_to(&self, file: &mut File) -> io::Result<()> {
        self.copy_to(file)
    }
}

/// Writes `files` (name and content) as the directory `target`: to a temporary sibling first, which
/// is renamed when all is on disk. If anything fails, nothing is left behind, and what was there
/// before is still there.
///
/// # Errors
/// A directory that exists and is not to be replaced, or what the operating system refuses. With
/// `force`, an empty directory and one that holds nothing but Weft's results are replaced.
pub fn write_directory(
    target: &Path,
    force: bool,
    files: &[(&str, &dyn Content)],
) -> Result<(), OutputError> {
    write_with(target, force, |folder| {
        files.iter().try_for_each(|(name, content)| write_file(&folder.join(name), *content))
    })
}

fn write_file(path: &Path, content: &dyn Content) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    content.write_to(&mut file)?;
    file.sync_all()
}

fn write_with(
    target: &Path,
    force: bool,
    fill: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), OutputError> {
    let io = |source| OutputError::Io { path: target.to_owned(), source };
    let target = std::path::absolute(target).map_err(io)?;
    check_replaceable(&target, force)?;
    let temporary = Temporary::beside(&target).map_err(io)?;
    fill(&temporary.path).map_err(io)?;
    sync(&temporary.path).map_err(io)?;
    temporary.become_target(&target).map_err(io)
}

fn check_replaceable(target: &Path, force: bool) -> Result<(), OutputError> {
    let path = || target.to_owned();
    let metadata = match fs::symlink_metadata(target) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(OutputError::Io { path: path(), source }),
    };
    if !force {
        return Err(OutputError::Exists { path: path() });
    }
    if !metadata.is_dir() {
        return Err(OutputError::NotReplaced { path: path(), reason: "it is not a directory".to_owned() });
    }
    let entries = fs::read_dir(target).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(|source| OutputError::Io { path: path(), source })?;
    let mut strangers: Vec<OsString> = entries.into_iter().map(|entry| entry.file_name()).collect();
    strangers.retain(|name| !files().any(|file| *name == *file));
    strangers.sort();
    match strangers.first() {
        Some(stranger) => {
            let reason = format!("it holds {}, which is not a result of Weft", stranger.display());
            Err(OutputError::NotReplaced { path: path(), reason })
        }
        None => Ok(()),
    }
}

/// Makes the entries of a directory last.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// A directory that is removed unless it becomes the target.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// A new directory in the same folder as `target`, which is made if it is missing.
    fn beside(target: &Path) -> io::Result<Self> {
        let (Some(parent), Some(_)) = (target.parent(), target.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no name of its own"));
        };
        fs::create_dir_all(parent)?;
        let path = hidden_sibling(target, "new");
        fs::create_dir(&path)?;
        Ok(Self { path })
    }

    /// Takes the place of `target`, and of what is there.
    fn become_target(self, target: &Path) -> io::Result<()> {
        let previous = hidden_sibling(target, "old");
        let had_previous = match fs::rename(target, &previous) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if let Err(error) = fs::rename(&self.path, target) {
            if had_previous {
                fs::rename(&previous, target)?;
            }
            return Err(error);
        }
        if had_previous {
            fs::remove_dir_all(&previous)?;
        }
        target.parent().map_or(Ok(()), sync)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is nothing to remove; after an error the first error is the one to
        // report.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A name beside `target` that no other process uses.
fn hidden_sibling(target: &Path, what: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{what}-{}", std::process::id()));
    target.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    const RESULT: [(&str, &dyn Content); 2] =
        [("spec.toml", &b"new".as_slice()), ("summary.json", &b"{}".as_slice())];

    #[test]
    fn a_directory_appears_complete_with_the_folders_that_lead_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a/b");
        write_directory(&target, false, &RESULT).unwrap();
        assert_eq!(names(&target), ["spec.toml", "summary.json"]);
        assert_eq!(names(target.parent().unwrap()), ["b"], "nothing temporary is left");
    }

    #[test]
    fn what_exists_is_replaced_only_when_forced_and_only_if_it_is_ours() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        fs::create_dir(&target).unwrap();
        assert!(matches!(write_directory(&target, false, &RESULT), Err(OutputError::Exists { .. })));
        write_directory(&target, true, &RESULT).unwrap();
        write_directory(&target, true, &[("spec.toml", &b"newer".as_slice())]).unwrap();
        assert_eq!(names(&target), ["spec.toml"], "the old result is gone as a whole");
        fs::write(target.join("thesis.tex"), "x").unwrap();
        let error = write_directory(&target, true, &RESULT).unwrap_err();
        assert!(error.to_string().contains("thesis.tex"), "{error}");
        assert_eq!(fs::read(target.join("spec.toml")).unwrap(), b"newer");
    }

    #[test]
    fn a_file_is_never_replaced_by_a_directory() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        fs::write(&target, "mine").unwrap();
        assert!(matches!(write_directory(&target, true, &RESULT), Err(OutputError::NotReplaced { .. })));
        let within = write_directory(&target.join("below"), false, &RESULT).unwrap_err();
        assert!(matches!(within, OutputError::Io { .. }), "{within}");
        assert_eq!(fs::read(&target).unwrap(), b"mine");
    }

    #[test]
    fn a_full_disk_leaves_what_was_there_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        write_directory(&target, false, &RESULT).unwrap();
        let error = write_with(&target, true, |temporary| {
            write_file(&temporary.join("spec.toml"), &b"newer".as_slice())?;
            // A write to this device fails as on a full disk.
            fs::OpenOptions::new().write(true).open("/dev/full")?.write_all(b"newer")
        });
        let error = error.unwrap_err();
        assert!(error.to_string().contains("No space left"), "{error}");
        assert_eq!(names(folder.path()), ["out"]);
        assert_eq!(fs::read(target.join("spec.toml")).unwrap(), b"new");
    }
}
