//! Files that a spec names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Cursor, Error, ErrorKind, Result};
use std::path::Path;

thread_local! {
    /// Contents of given files, by name.
    static GIVEN: RefCell<BTreeMap<String, String>> = const { RefCell::new(BTreeMap::new()) };
}

/// Gives this thread a file of this name, whatever folder it is asked for in: for a page in a
/// browser, which has no files.
pub fn give_file(name: &str, text: &str) {
    GIVEN.with_borrow_mut(|files| files.insert(name.to_owned(), text.to_owned()));
}

/// The file that was given under the name at the end of a path.
fn given(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    GIVEN.with_borrow(|files| files.get(name).cloned())
}

/// The text of a regular file, or of one that was [given](give_file). A device or a pipe, which may
/// never end, is refused before it is opened.
///
/// # Errors
/// What the operating system says, text that is not UTF-8, or something that is no regular file.
pub fn read_regular_file(path: &Path) -> Result<String> {
    if let Some(text) = given(path) {
        return Ok(text);
    }
    check_regular(path)?;
    fs::read_to_string(path)
}

/// The bytes of a regular file, or of one that was [given](give_file).
///
/// # Errors
/// What the operating system says, or something that is no regular file.
pub fn read_regular_bytes(path: &Path) -> Result<Vec<u8>> {
    if let Some(text) = given(path) {
        return Ok(text.into_bytes());
    }
    check_regular(path)?;
    fs::read(path)
}

/// The lines of a regular file, or of one that was [given](give_file), read as far as they are
/// asked for.
///
/// # Errors
/// What the operating system says, something that is no regular file, or a line that is no text.
pub fn read_regular_lines(path: &Path) -> Result<std::io::Lines<Box<dyn BufRead>>> {
    let source: Box<dyn BufRead> = if let Some(text) = given(path) {
        Box::new(Cursor::new(text))
    } else {
        check_regular(path)?;
        Box::new(BufReader::new(fs::File::open(path)?))
    };
    Ok(source.lines())
}

fn check_regular(path: &Path) -> Result<()> {
    if fs::metadata(path)?.is_file() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_given_is_read_whatever_its_folder() {
        give_file("drawn.toml", "hosts = []");
        assert_eq!(read_regular_file(Path::new("./nowhere/drawn.toml")).unwrap(), "hosts = []");
        assert!(read_regular_file(Path::new("other.toml")).is_err());
    }

    #[test]
    fn what_may_never_end_is_not_read() {
        let endless = read_regular_file(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(endless.to_string(), "it is not a regular file");
        assert!(read_regular_file(Path::new("/")).is_err());
        assert!(read_regular_bytes(Path::new("/dev/zero")).is_err());
        assert!(read_regular_lines(Path::new("/dev/zero")).is_err());
        assert!(read_regular_file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).is_ok());
    }
}
