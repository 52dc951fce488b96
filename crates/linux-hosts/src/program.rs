//! Programs of the machine as traffic.

use crate::error::Error;

/// A program to be started on a host: any that the machine has. It runs in the host's network, and
/// its clock is that of the run. It sees the machine's files and can change none; `/tmp`, `/run`,
/// `/dev` and `/proc` are its host's own. It ends with its process, and what that has left behind
/// ends with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Any number that no other program of the run has; reports carry it.
    pub id: u64,
    /// The host.
    pub host: usize,
    /// The program, by its path or looked for where programs are, and its arguments.
    pub words: Vec<String>,
    /// The folder that it begins in.
    pub directory: String,
    /// How much of its output is reported; the rest is counted.
    pub output_limit_bytes: u64,
}

impl Program {
    /// How much of a program's output is kept if nobody says otherwise: 1 MiB.
    pub const OUTPUT_LIMIT_BYTES: u64 = 1 << 20;

    /// The program of a command, whose words and quotes are as in a shell; there is no shell, so
    /// nothing else is. It begins in `/tmp`.
    ///
    /// # Errors
    /// No word, a quote that does not end, or as
    /// [`Machine::start_program`](crate::Machine::start_program).
    pub fn new(id: u64, host: usize, command: &str) -> Result<Self, Error> {
        let words = shlex::split(command).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| Error::Untellable { what: command.to_owned() })?;
        let directory = "/tmp".to_owned();
        let program = Self { id, host, words, directory, output_limit_bytes: Self::OUTPUT_LIMIT_BYTES };
        crate::agent::program_line(&program)?;
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_as_a_shell_does() {
        let words = |command| Program::new(1, 2, command).map(|program| program.words);
        assert_eq!(words("iperf3 -c '10.0.0.7' \"a b\"").unwrap(), ["iperf3", "-c", "10.0.0.7", "a b"]);
        for bad in ["", "  ", "echo 'no end"] {
            assert!(matches!(words(bad), Err(Error::Untellable { .. })), "{bad}");
        }
    }
}
