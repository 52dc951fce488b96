//! The socket to a kernel. Only one side speaks at a time, so nothing is ever acknowledged.

use std::io::{self, BufReader, Read, Write};
use std::time::{Duration, Instant};

use crate::error::Fault;
use crate::process::Socket;
use crate::wire::{BATCH, HEAD, Head, Kind, VERSION, parse_head};

/// Bytes that a kernel may hand over in one step; no sound kernel comes near.
const STEP: usize = 256 * 1024 * 1024;

/// Why a step did not come to its end.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The other end is closed, or the socket does not work.
    Closed,
    /// No answer in time.
    Late,
    /// An answer that is none.
    Fault(Fault),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Late,
            _ => Self::Closed,
        }
    }
}

/// The link to one kernel.
#[derive(Debug)]
pub(crate) struct Link {
    stream: BufReader<Socket>,
    patience: Duration,
    body: Vec<u8>,
}

impl Link {
    /// A link over `stream` that waits no longer than `patience` for the end of a step.
    ///
    /// # Errors
    /// The socket does not take a limit.
    pub(crate) fn new(stream: Socket, patience: Duration) -> io::Result<Self> {
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { stream: BufReader::with_capacity(HEAD + BATCH, stream), patience, body: Vec::new() })
    }

    /// Waits for the kernel's first message and answers with `setup`, then waits until it waits for
    /// the first step. Returns its next event in ns.
    ///
    /// # Errors
    /// The kernel is gone, late or broken, or speaks another version.
    pub(crate) fn greet(&mut self, setup: &[u8]) -> Result<u64, Trouble> {
        match self.read_head()? {
            Head { kind: Kind::Hello { version: VERSION }, bytes: 0 } => {}
            Head { kind: Kind::Hello { version }, .. } => return Err(Fault::Version(version).into()),
            _ => return Err(Fault::MessageOrder.into()),
        }
        self.step(setup, |records| if records.is_empty() { Ok(()) } else { Err(Fault::MessageOrder) })
    }

    /// Sends the message for a step and reads until the kernel waits: `take` gets the records of
    /// each of its messages. Returns its next event in ns.
    ///
    /// # Errors
    /// The kernel is gone, late or broken, or `take` finds a fault.
    pub(crate) fn step(
        &mut self,
        message: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), Fault>,
    ) -> Result<u64, Trouble> {
        self.stream.get_mut().write_all(message)?;
        let began = Instant::now();
        let mut bytes = 0;
        loop {
            let head = self.read_head()?;
            bytes += HEAD + head.bytes;
            if bytes > STEP {
                return Err(Fault::StepLength(STEP).into());
            }
            self.body.resize(head.bytes, 0);
            self.stream.read_exact(&mut self.body)?;
            take(&self.body)?;
            match head.kind {
                Kind::Wait { next_ns } if self.stream.buffer().is_empty() => return Ok(next_ns),
                Kind::More if began.elapsed() < self.patience => {}
                Kind::More => return Err(Trouble::Late),
                Kind::Wait { .. } | Kind::Hello { .. } => return Err(Fault::MessageOrder.into()),
            }
        }
    }

    fn read_head(&mut self) -> Result<Head, Trouble> {
        let mut head = [0; HEAD];
        self.stream.read_exact(&mut head)?;
        Ok(parse_head(&head)?)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use proptest::prelude::*;

    use super::*;

    /// Result of a step when the kernel answers with `answer` and closes.
    fn step(answer: &[u8]) -> Result<u64, Trouble> {
        let (near, mut far) = Socket::pair().unwrap();
        let mut link = Link::new(near, Duration::from_secs(5)).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                let _ = far.write_all(answer);
                let _ = far.shutdown(std::net::Shutdown::Write);
                // Taking what comes: closing earlier would be another failure than the one that is
                // looked at.
                let _ = io::copy(&mut far, &mut io::sink());
            });
            let result = link.step(b"run", |_| Ok(()));
            drop(link);
            result
        })
    }

    fn message(kind: u32, time: u64, bytes: &[u8]) -> Vec<u8> {
        let length = bytes.len() as u32;
        [&kind.to_le_bytes()[..], &length.to_le_bytes(), &time.to_le_bytes(), bytes].concat()
    }

    #[test]
    fn a_step_ends_with_the_kernels_wait() {
        let answer = [message(3, 0, &[1; 16]), message(2, 77, &[2; 32])].concat();
        assert_eq!(step(&answer).unwrap(), 77);
    }

    #[test]
    fn a_link_that_closes_in_the_midst_is_told_from_one_that_is_wrong() {
        let answer = message(2, 77, &[0; 32]);
        assert!(matches!(step(&[]), Err(Trouble::Closed)));
        assert!(matches!(step(&answer[..20]), Err(Trouble::Closed)));
        let twice = [answer.clone(), answer].concat();
        assert!(
            matches!(step(&twice), Err(Trouble::Fault(Fault::MessageOrder))),
            "a kernel speaks when it is its turn"
        );
        assert!(matches!(step(&message(1, 1, &[])), Err(Trouble::Fault(Fault::MessageOrder))));
        assert!(matches!(step(&message(7, 1, &[])), Err(Trouble::Fault(Fault::MessageKind(7)))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn no_answer_makes_a_step_hang_or_crash(
            kinds in prop::collection::vec((0_u32..6, any::<u64>(), prop::collection::vec(any::<u8>(), 0..40)), 0..6),
            cut in 0_usize..200,
        ) {
            let mut answer: Vec<u8> = kinds.iter().flat_map(|(kind, time, bytes)| message(*kind, *time, bytes)).collect();
            answer.truncate(cut);
            let _ = step(&answer);
        }
    }
}
