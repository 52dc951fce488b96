//! Where the built kernel is, with its agent beside it. `linux-hosts/build` puts them into the
//! cache under the hash of what Weft adds to the source and the version of the source; this finds
//! them again.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::Error;

/// The name of the agent's file, beside the kernel's.
pub(crate) const AGENT: &str = "agent";

/// The variable that names another kernel; its agent is the file `agent` beside it.
pub const VARIABLE: &str = "WEFT_LINUX_HOSTS";

/// Files that Weft adds to the source, in the order of `linux-hosts/build`.
const ADDED: [&[u8]; 24] = [
    include_bytes!("../../../linux-hosts/config"),
    include_bytes!("../../../linux-hosts/initramfs"),
    include_bytes!("../../../linux-hosts/kernel/Makefile"),
    include_bytes!("../../../linux-hosts/kernel/weft.h"),
    include_bytes!("../../../linux-hosts/kernel/weft_link.c"),
    include_bytes!("../../../linux-hosts/kernel/weft_link_user.c"),
    include_bytes!("../../../linux-hosts/kernel/weft_cards.c"),
    include_bytes!("../../../linux-hosts/kernel/weft_agent.c"),
    include_bytes!("../../../linux-hosts/patches/0001-clock.patch"),
    include_bytes!("../../../linux-hosts/patches/0002-seed.patch"),
    include_bytes!("../../../linux-hosts/patches/0003-weft-is-the-clock.patch"),
    include_bytes!("../../../linux-hosts/patches/0004-the-same-addresses.patch"),
    include_bytes!("../../../linux-hosts/patches/0005-nothing-stays-behind.patch"),
    include_bytes!("../../../linux-hosts/patches/0006-files-are-only-read.patch"),
    include_bytes!("../../../linux-hosts/patches/0007-the-agent-takes-no-time.patch"),
    include_bytes!("../../../linux-hosts/patches/0008-room-for-all-registers.patch"),
    include_bytes!("../../../linux-hosts/agent/agent.h"),
    include_bytes!("../../../linux-hosts/agent/flows.c"),
    include_bytes!("../../../linux-hosts/agent/hosts.c"),
    include_bytes!("../../../linux-hosts/agent/info.c"),
    include_bytes!("../../../linux-hosts/agent/main.c"),
    include_bytes!("../../../linux-hosts/agent/netlink.c"),
    include_bytes!("../../../linux-hosts/agent/programs.c"),
    include_bytes!("../../../linux-hosts/agent/subflows.c"),
];

/// The hash of what Weft adds to the source, 16 hexadecimal digits.
pub fn key() -> String {
    let mut hash = Sha256::new();
    for file in ADDED {
        hash.update(file);
    }
    digits(hash)
}

/// The hash of what a kernel and its agent are, 16 hexadecimal digits. Another compiler makes
/// another kernel of the same sources: it does the same, but its size decides where things lie in
/// memory, and that goes into its random numbers. So this, and not [`key`], says whose results are
/// the same to the byte.
///
/// # Errors
/// A file cannot be read.
pub fn fingerprint(image: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    for file in [image.to_owned(), image.with_file_name(AGENT)] {
        hash.update(fs::read(file)?);
    }
    Ok(digits(hash))
}

fn digits(hash: Sha256) -> String {
    hash.finalize().iter().take(8).fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// The kernel that the variable names, or the newest in the cache that was built for this Weft.
///
/// # Errors
/// There is none.
pub fn find() -> Result<PathBuf, Error> {
    if let Some(named) = env::var_os(VARIABLE) {
        return Ok(named.into());
    }
    let cache = cache();
    newest_in(&cache, &key()).ok_or(Error::NotBuilt { cache })
}

fn cache() -> PathBuf {
    let base = env::var_os("XDG_CACHE_HOME")
        .filter(|path| !path.is_empty())
        .map_or_else(|| PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache"), PathBuf::from);
    base.join("weft/linux-hosts")
}

fn newest_in(cache: &Path, key: &str) -> Option<PathBuf> {
    let mut versions: Vec<(Vec<u64>, PathBuf)> = fs::read_dir(cache)
        .ok()?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = path.file_name()?.to_str()?.strip_prefix(key)?.strip_prefix('-')?.to_owned();
            let numbers = version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
            Some((numbers.collect(), path.join("linux")))
        })
        .filter(|(_, image)| image.is_file())
        .collect();
    versions.sort();
    versions.pop().map(|(_, image)| image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_script_and_weft_mean_the_same_kernel() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../linux-hosts/build");
        let said = std::process::Command::new(script).arg("--key").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), key());
    }

    #[test]
    fn another_kernel_or_agent_is_another_fingerprint() {
        let cache = tempfile::tempdir().unwrap();
        let image = cache.path().join("linux");
        let with = |kernel: &str, agent: &str| {
            fs::write(&image, kernel).unwrap();
            fs::write(image.with_file_name(AGENT), agent).unwrap();
            fingerprint(&image).unwrap()
        };
        let first = with("k", "a");
        assert_eq!(first.len(), 16);
        assert_eq!(with("k", "a"), first);
        assert_ne!(with("l", "a"), first);
        assert_ne!(with("k", "b"), first);
        assert!(fingerprint(&cache.path().join("nowhere")).is_err());
    }

    #[test]
    fn the_newest_source_wins_and_another_key_is_not_taken() {
        let cache = tempfile::tempdir().unwrap();
        for version in ["abc-6.1.9-1", "abc-6.1.10-1", "abcd-6.2.0-1", "abc-6.1.11-1"] {
            fs::create_dir(cache.path().join(version)).unwrap();
            if version != "abc-6.1.11-1" {
                fs::write(cache.path().join(version).join("linux"), "").unwrap();
            }
        }
        assert_eq!(newest_in(cache.path(), "abc").unwrap(), cache.path().join("abc-6.1.10-1/linux"));
        assert_eq!(newest_in(cache.path(), "ab"), None);
    }
}
