//! Files that a spec names.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// The text of a regular file. A device or a pipe, which may never end, is refused before it is opened.
///
/// # Errors
/// What the operating system says, text that is not UTF-8, or something that is no regular file.
pub fn read_regular_file(path: &Path) -> Result<String> {
    if fs::metadata(path)?.is_file() {
        return fs::read_to_string(path);
    }
    Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_never_end_is_not_read() {
        let endless = read_regular_file(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(endless.to_string(), "it is not a regular file");
        assert!(read_regular_file(Path::new("/")).is_err());
        assert!(read_regular_file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).is_ok());
    }
}
