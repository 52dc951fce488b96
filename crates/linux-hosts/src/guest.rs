//! Interface of hosts that a world does not simulate itself.

use weft_units::Time;

use crate::error::Error;

/// A packet that a host's card sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The host.
    pub host: usize,
    /// When its first bit leaves the card. The last one leaves
    /// [`Card::service`](crate::Card::service) later, and the card sends nothing else meanwhile.
    pub begins: Time,
    /// The IP packet.
    pub packet: Vec<u8>,
}

/// Hosts that take packets and give packets at instants. They live in a time of their own, which
/// the world lets go on bit by bit.
///
/// # The contract
///
/// The guest has run everything before an instant, at first [`Time::ZERO`], and nothing from there
/// on. [`Guest::advance`] moves that instant and says where it is now.
///
/// - The world **delivers** packets for instants that the guest has not reached. It may do so long
///   before. Two packets for one instant come in the order in which they were delivered.
/// - The world lets the guest go on **until** an instant only if it knows every packet that arrives
///   before it, except for what follows from packets that the guest sends on the way.
/// - For these, the world has promised a **lookahead**
///   ([`Card::lookahead`](crate::Card::lookahead)): nothing that a card begins to send at `t` is
///   felt by any host of the guest before `t` and the lookahead. So the guest stops that long after
///   the first packet that it sends, even before `until`, and the world looks at what was sent.
/// - What the guest sends in a step **begins** no earlier than where the step began, and from one
///   card in order, never two at a time. It may begin later than where the step ended: a card's
///   ring is filled faster than it is sent.
/// - The same deliveries give the same packets. How the world cuts the time into steps changes
///   nothing.
pub trait Guest {
    /// The earliest instant at which something happens inside with what has been delivered; `None`
    /// if nothing ever does.
    fn next_event(&self) -> Option<Time>;

    /// The last bit of `packet` reaches the card of `host` at `at`; a part of a nanosecond counts
    /// as a whole one.
    ///
    /// # Errors
    /// No such host, a packet that its card does not take, or an instant that the guest has passed.
    fn deliver(&mut self, host: usize, packet: &[u8], at: Time) -> Result<(), Error>;

    /// Runs what happens before `until`, but no further than the lookahead allows; appends what was
    /// sent to `sent`. Returns the instant before which everything has run: no packet that begins
    /// earlier will come.
    ///
    /// # Errors
    /// The guest ended, hangs, or is broken. It is gone then, with all of its processes.
    fn advance(&mut self, until: Time, sent: &mut Vec<Sent>) -> Result<Time, Error>;
}
