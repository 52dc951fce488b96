//! The transports of one run: one, or several side by side.

use crate::registry::AnyProtocol;
use crate::{Multipath, Protocol};

/// The transports of a run, by number. One alone has every number, so that a run with one does not
/// ask which.
pub trait Transports: Send + Sync {
    /// Type of each of the transports.
    type Protocol: Multipath;

    /// The transport with this number.
    fn numbered(&self, number: u8) -> &Self::Protocol;

    /// All of them, by number.
    fn all(&self) -> impl Iterator<Item = &Self::Protocol>;

    /// All of them, by number, before the run begins.
    fn all_mut(&mut self) -> impl Iterator<Item = &mut Self::Protocol>;
}

impl<P: Multipath> Transports for P {
    type Protocol = P;

    #[inline]
    fn numbered(&self, _: u8) -> &P {
        self
    }

    fn all(&self) -> impl Iterator<Item = &P> {
        std::iter::once(self)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut P> {
        std::iter::once(self)
    }
}

/// A sender of one of these transports.
pub type SenderOf<T> = <<T as Transports>::Protocol as Protocol>::Sender;

/// A receiver of one of these transports.
pub type ReceiverOf<T> = <<T as Transports>::Protocol as Protocol>::Receiver;

/// Several transports in one run.
#[derive(Debug, Clone)]
pub struct Several {
    first: AnyProtocol,
    others: Vec<AnyProtocol>,
}

impl Several {
    /// These transports, numbered from 0 in this order.
    pub const fn new(first: AnyProtocol, others: Vec<AnyProtocol>) -> Self {
        Self { first, others }
    }
}

impl Transports for Several {
    type Protocol = AnyProtocol;

    /// The first one, if there are not so many.
    #[inline]
    fn numbered(&self, number: u8) -> &AnyProtocol {
        let other = usize::from(number).checked_sub(1);
        other.and_then(|other| self.others.get(other)).unwrap_or(&self.first)
    }

    fn all(&self) -> impl Iterator<Item = &AnyProtocol> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut AnyProtocol> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }
}
