//! Identity of this machine, as far as it decides the results of Linux hosts. It goes into the hash
//! of a spec, as the content of the files does that a spec names: so another kernel, or another
//! program by the same name, is another run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use weft_linux_hosts::{Program, find, fingerprint};

use crate::spec::{Spec, hex};

/// Where a kernel looks for programs that are named without a path.
const FOLDERS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// A file as it was when it was last read, and the fingerprint of the kernel in it.
type Seen = (PathBuf, Option<SystemTime>, String);

/// The fingerprint of the kernel that runs would have; none if there is none.
pub(crate) fn kernel() -> Option<String> {
    static SEEN: Mutex<Option<Seen>> = Mutex::new(None);
    let image = find().ok()?;
    let changed = fs::metadata(&image).ok().and_then(|data| data.modified().ok());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((path, at, known)) = seen.as_ref()
        && (path, at) == (&image, &changed)
    {
        return Some(known.clone());
    }
    let found = fingerprint(&image).ok()?;
    *seen = Some((image, changed, found.clone()));
    Some(found)
}

/// Requirements of a run that this machine lacks, in words that say how to get them; nothing for
/// simulated hosts.
pub(crate) fn missing_on_this_machine(spec: &Spec) -> Option<String> {
    spec.hosts.linux()?;
    find().err().map(|error| error.to_string())
}

/// Parts of this machine that decide the results of a spec: nothing for simulated hosts; else the
/// kernel, and the files that the commands of programs name.
pub(crate) fn of_machine(spec: &Spec) -> Vec<String> {
    if spec.hosts.linux().is_none() {
        return Vec::new();
    }
    let commands =
        spec.traffic.program.iter().filter_map(|program| Program::new(0, 0, &program.command).ok());
    let files = commands.flat_map(|program| {
        let mut words = program.words.into_iter();
        let first = words.next().and_then(|word| executable(&word));
        first.into_iter().chain(words.map(PathBuf::from)).filter(|path| path.is_absolute() && path.is_file())
    });
    let contents = files.filter_map(|path| Some(hex(&Sha256::digest(fs::read(path).ok()?)[..16])));
    kernel().into_iter().chain(contents).collect()
}

/// The file of a program.
fn executable(word: &str) -> Option<PathBuf> {
    if word.contains('/') {
        return Some(PathBuf::from(word));
    }
    FOLDERS.iter().map(|folder| Path::new(folder).join(word)).find(|path| path.is_file())
}
