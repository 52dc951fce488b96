//! The process that a kernel is: started with nothing but a socket and a log, ended with all that
//! it started.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::error::{Error, LogEnd};
use crate::process::{Socket, kill_group, spawn};

/// Bytes of a log that an error shows, at most.
const SHOWN: u64 = 1_500;

/// Options of a kernel when it starts.
#[derive(Debug)]
#[cfg_attr(not(unix), allow(dead_code))] // nobody starts one there
pub(crate) struct Options<'a> {
    pub(crate) memory_mib: u32,
    pub(crate) seed: u64,
    /// `MODULE.NAME=VALUE`.
    pub(crate) parameters: &'a [String],
}

/// A running kernel. It ends, with every process of its guests, when this is dropped, when the
/// other end of its link is closed, and when the thread that started it ends.
#[derive(Debug)]
pub(crate) struct Kernel {
    child: Child,
    log: File,
    log_path: Option<PathBuf>,
}

impl Kernel {
    /// Starts the kernel in the file `image`; `link` is all that it has of the world.
    ///
    /// # Errors
    /// The file cannot be started, or no log can be written.
    pub(crate) fn start(
        image: &Path,
        link: Socket,
        options: &Options<'_>,
        log_path: Option<&Path>,
    ) -> Result<Self, Error> {
        let log = open_log(log_path).map_err(|source| Error::Log {
            path: log_path.map_or_else(std::env::temp_dir, Path::to_owned),
            source,
        })?;
        let child = spawn(image, link, &log, options)
            .map_err(|source| Error::DoesNotStart { image: image.to_owned(), source })?;
        Ok(Self { child, log, log_path: log_path.map(Path::to_owned) })
    }

    /// Ends the kernel if it still runs, and says what became of it.
    pub(crate) fn end(&mut self) -> String {
        // One that ended by itself does so before the link is found closed; what it left behind in
        // its group goes too.
        let ended = self.child.try_wait();
        self.kill();
        match ended {
            Ok(Some(status)) => status.to_string(),
            _ => self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string()),
        }
    }

    fn kill(&mut self) {
        kill_group(self.child.id());
        let _ = self.child.kill();
    }

    /// The number of the process, and of its group.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// CPU seconds that it has taken, and its children: the processes of its hosts.
    pub(crate) fn cpu_s(&self) -> f64 {
        let own = self.child.id();
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        let all = children.split_whitespace().map(str::to_owned).chain([own.to_string()]);
        all.map(|process| cpu_ns(&process)).sum::<u64>() as f64 / 1e9
    }

    /// The last lines of what it said.
    pub(crate) fn log_end(&mut self) -> LogEnd {
        let mut lines = Vec::new();
        let read = (|| -> io::Result<()> {
            let length = self.log.seek(SeekFrom::End(0))?;
            self.log.seek(SeekFrom::Start(length.saturating_sub(SHOWN)))?;
            (&self.log).take(SHOWN).read_to_end(&mut lines)?;
            Ok(())
        })();
        let lines =
            if read.is_ok() { String::from_utf8_lossy(&lines).trim().to_owned() } else { String::new() };
        LogEnd { lines, path: self.log_path.clone() }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

/// CPU time of a process in ns; 0 if it is gone.
fn cpu_ns(process: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

fn open_log(path: Option<&Path>) -> io::Result<File> {
    match path {
        Some(path) => {
            File::create(path)?;
            // The kernel and its errors write to its end, wherever we read.
            File::options().read(true).append(true).open(path)
        }
        // A file without a name: nothing to be found when the run is over.
        None => tempfile::tempfile(),
    }
}
