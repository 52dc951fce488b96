//! Programs on Linux hosts: what a spec says of them, and what came of each.

use weft_linux_hosts::{Error, Program, Report, Status, Stream};
use weft_packet::HostId;
use weft_traffic::ProgramSpec;
use weft_units::{Mistake, Span, Time};

use super::kernels::Kernels;
use super::sessions::address_of;
use crate::results::rows::ProgramRow;
use crate::spec::Spec;

/// The signals by which a program is ended (SIGTERM, SIGKILL), and how long after the instant each
/// comes.
const SIGNALS: [(u8, Span); 2] = [(15, Span::ZERO), (9, Span::from_ms(100))];

/// Refuses programs that cannot be started.
///
/// # Errors
/// The first such program.
pub(crate) fn check_programs(spec: &Spec) -> Result<(), Mistake> {
    for (index, program) in spec.traffic.program.iter().enumerate() {
        let key = format!("traffic.program[{index}]");
        if spec.hosts.linux().is_none() {
            let reason = " needs Linux hosts: hosts = \"linux\"";
            return Err(Mistake::at(key, reason));
        }
        let key = format!("{key}.command");
        let command = command_of(program, &key).map_err(Mistake::from)?;
        Program::new(0, 0, &command).map_err(|_| {
            let allowed = "up to 511 words and 4,000 bytes, with quotes that end";
            let found = format!("{:?}", program.command);
            Mistake::at(key, format!(" is {found}: allowed is {allowed}")).found(found).allowed(allowed)
        })?;
    }
    Ok(())
}

/// The command with addresses in place of hosts.
fn command_of(program: &ProgramSpec, key: &str) -> Result<String, weft_traffic::TrafficError> {
    program.command_with(key, |host| Ok(address_of(host).to_string()))
}

/// Results of a program.
#[derive(Debug, Clone)]
pub(crate) struct KnownProgram {
    number: usize,
    spec: ProgramSpec,
    output: Vec<u8>,
    errors: Vec<u8>,
    left_out_bytes: u64,
    ended: Option<(Time, Status)>,
}

/// The programs of a run.
#[derive(Debug)]
pub(super) struct Programs {
    all: Vec<KnownProgram>,
}

impl Programs {
    /// Programs of a spec, before the run.
    pub fn new(specs: &[ProgramSpec]) -> Self {
        let known = |(number, spec): (usize, &ProgramSpec)| KnownProgram {
            number,
            spec: spec.clone(),
            output: Vec::new(),
            errors: Vec::new(),
            left_out_bytes: 0,
            ended: None,
        };
        Self { all: specs.iter().enumerate().map(known).collect() }
    }

    /// Tells the kernels when each begins and is to end.
    ///
    /// # Errors
    /// A command that cannot be told.
    pub fn start(&self, kernels: &mut Kernels) -> Result<(), Error> {
        for KnownProgram { number, spec, .. } in &self.all {
            let command = command_of(spec, "command").unwrap_or_else(|_| spec.command.clone());
            let id = *number as u64;
            let host = HostId(spec.host);
            kernels.start_program(host, Program::new(id, 0, &command)?, spec.begins())?;
            for (signal, later) in SIGNALS {
                if let Some(stop) = spec.stop {
                    let at = Time::ZERO.saturating_add(stop).saturating_add(later);
                    kernels.signal_program(host, id, signal, at)?;
                }
            }
        }
        Ok(())
    }

    /// Takes a report of the kernel, if it is of a program.
    pub fn take(&mut self, at: Time, report: Report) {
        match report {
            Report::Output { program, stream, bytes } => {
                let Some(known) = self.numbered(program) else { return };
                let text = if stream == Stream::Output { &mut known.output } else { &mut known.errors };
                text.extend(bytes);
            }
            Report::Ended { program, status, left_out_bytes } => {
                let Some(known) = self.numbered(program) else { return };
                (known.ended, known.left_out_bytes) = (Some((at, status)), left_out_bytes);
            }
            _ => {}
        }
    }

    /// A kernel may say anything.
    fn numbered(&mut self, program: u64) -> Option<&mut KnownProgram> {
        self.all.get_mut(usize::try_from(program).ok()?)
    }

    /// Whether the run is to wait for one of them.
    pub fn are_busy(&self) -> bool {
        self.all.iter().any(|known| !known.spec.serves && known.ended.is_none())
    }

    /// When the last of those begins that the run waits for.
    pub fn last_start(&self) -> Time {
        let waited_for = self.all.iter().filter(|known| !known.spec.serves);
        waited_for.map(|known| known.spec.begins()).max().unwrap_or(Time::ZERO)
    }

    /// Results of each program.
    pub fn into_all(self) -> Vec<KnownProgram> {
        self.all
    }
}

impl KnownProgram {
    /// Whether it was ended as its spec asks.
    fn was_stopped(&self) -> bool {
        let stop = self.spec.stop.map(|stop| Time::ZERO.saturating_add(stop));
        let at = self.ended.as_ref().map(|(at, _)| *at);
        stop.is_some_and(|stop| at.is_some_and(|at| at >= stop))
    }

    /// How it ended, in a word.
    fn outcome(&self) -> &'static str {
        match &self.ended {
            Some((_, Status::NotStarted(_))) => "not started",
            Some(_) if self.was_stopped() => "stopped",
            Some((_, Status::Exited(_))) => "exited",
            Some((_, Status::Killed(_))) => "killed",
            None if self.spec.serves => "serves",
            None => "unfinished",
        }
    }

    /// Row of the program.
    pub fn row(&self) -> ProgramRow {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (exit_code, signal) = match self.ended.as_ref().map(|(_, status)| status) {
            Some(Status::Exited(code)) => (Some(u16::from(*code)), None),
            Some(Status::Killed(signal)) => (None, Some(u16::from(*signal))),
            _ => (None, None),
        };
        ProgramRow {
            program: self.number as u32,
            host: self.spec.host,
            command: self.spec.command.clone(),
            serves: self.spec.serves,
            start_us: self.spec.start.as_us(),
            end_us: self.ended.as_ref().map(|(at, _)| at.as_us()),
            outcome: self.outcome(),
            exit_code,
            signal,
            failed: self.failure().is_some(),
            output: text(&self.output),
            errors: text(&self.errors),
            left_out_bytes: self.left_out_bytes,
        }
    }

    /// Failure in a sentence, if the program failed.
    pub fn failure(&self) -> Option<String> {
        let how = match &self.ended {
            Some((_, status)) if status.is_success() => return None,
            Some((_, Status::NotStarted(why))) => format!("could not be started: {why}"),
            Some(_) if self.was_stopped() => return None,
            Some((at, status)) => format!("{status} at {} us", at.as_us()),
            None if self.spec.serves => return None,
            None => "had not ended when the run was over".to_owned(),
        };
        let KnownProgram { number, spec, .. } = self;
        let said = self.errors.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty());
        let said = said.map(|line| format!("; it says {:?}", String::from_utf8_lossy(line)));
        let said = said.unwrap_or_default();
        Some(format!("program {number} on host {} ({}) {how}{said}", spec.host, spec.command))
    }
}
