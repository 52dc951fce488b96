//! A small world to test schemes in: one switch or one host, whose clock, queues and timers the
//! test sets.
//!
//! A scheme knows its own node and what packets bring, so a test needs no simulator: it makes a
//! [`FakeSwitch`] or a [`FakeHost`], says what the scheme shall see, calls it, and looks at what it
//! chose, sent and asked for. Nothing moves by itself. The page of the guide is
//! `docs/schemes/testing.md`.
//!
//! Here is a scheme of somebody's own, and what must hold of it:
//!
//! ```
//! use weft_balance::testing::{FakeSwitch, Group, packet};
//! use weft_balance::{NextHops, SwitchScheme, SwitchContext, SwitchInfo};
//! use weft_packet::Packet;
//! use weft_units::{Rate, Span};
//!
//! /// Every packet takes the next hop that would send it first; choices are counted every 10 us.
//! struct Least {
//!     choices: u64,
//!     looks: u64,
//! }
//!
//! impl SwitchScheme for Least {
//!     type Params = ();
//!
//!     fn new(_: &(), _: &SwitchInfo<'_>) -> Self {
//!         Self { choices: 0, looks: 0 }
//!     }
//!
//!     fn start<C: SwitchContext + ?Sized>(&mut self, cx: &mut C) {
//!         cx.set_timer(Span::from_us(10), 7);
//!     }
//!
//!     fn choose<C: SwitchContext + ?Sized>(
//!         &mut self,
//!         cx: &mut C,
//!         packet: &mut Packet,
//!         hops: &NextHops<'_>,
//!     ) -> usize {
//!         self.choices += 1;
//!         let wait = |index: &usize| cx.drain_time_for(hops.ports[*index], packet);
//!         (0..hops.ports.len()).min_by_key(wait).unwrap_or(0)
//!     }
//!
//!     fn on_timer<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, token: u32) {
//!         self.looks += 1;
//!         cx.set_timer(Span::from_us(10), token);
//!     }
//!
//!     fn state_bytes(&self) -> u64 {
//!         16
//!     }
//! }
//!
//! let (mut switch, group) = (FakeSwitch::new(3, 1), Group::of(0..3));
//! let mut least = Least::new(&(), &switch.info(0, 0, 1));
//!
//! // 15,000 B at 10 Gbit/s take 12 us, 3,000 B at 1 Gbit/s 24 us, 18,000 B at 10 Gbit/s 14.4 us.
//! switch.backlogs = vec![18_000, 3_000, 15_000];
//! switch.rates[1] = Rate::from_gbps(1);
//! assert_eq!(least.choose(&mut switch, &mut packet(1), &group.hops()), 2);
//!
//! // The clock stands still until the test moves it.
//! least.start(&mut switch);
//! let token = switch.next_timer().expect("a timer is set");
//! assert_eq!((token, switch.now.as_us()), (7, 10.0));
//! least.on_timer(&mut switch, token);
//! assert_eq!(least.looks, 1);
//! ```

mod facts;
mod host;
#[cfg(test)]
mod statistics;
mod switch;

use weft_packet::{HostId, Kind, Packet};
use weft_units::Time;

pub use facts::GivenFacts;
pub use host::FakeHost;
#[cfg(test)]
pub(crate) use statistics::{CHI_SQUARE_3, CHI_SQUARE_7, chi_square};
pub use switch::{FakeSwitch, Group};

/// Hosts in a rack of the test world: hosts 0 to 15 are rack 0, and so on.
pub const HOSTS_PER_RACK: u16 = 16;
/// Racks in the test world.
pub const RACKS: u16 = 8;
/// Bytes of headers in each packet of the test world.
pub const HEADER_BYTES: u16 = 40;

/// A data packet from host 0 to host 16 (rack 1), full size.
pub fn packet(entropy: u32) -> Packet {
    with(Packet::default(), |packet| {
        packet.entropy = entropy;
        packet.dst = HostId(HOSTS_PER_RACK);
        packet.wire_bytes = 1_500;
        packet.kind = Kind::Data;
    })
}

/// A packet after a change.
pub fn with(mut packet: Packet, change: impl FnOnce(&mut Packet)) -> Packet {
    change(&mut packet);
    packet
}

/// Takes the earliest of these timers, and moves the clock to it.
fn take_earliest(now: &mut Time, timers: &mut Vec<(Time, u32)>) -> Option<u32> {
    let earliest = (0..timers.len()).min_by_key(|&index| timers[index].0)?;
    let (at, token) = timers.remove(earliest);
    *now = (*now).max(at);
    Some(token)
}

#[cfg(test)]
mod tests {
    use weft_units::Span;

    use super::*;
    use crate::{HostContext, SwitchContext};

    #[test]
    fn timers_go_off_by_time_and_those_of_one_time_in_the_order_of_asking() {
        let (mut switch, mut host) = (FakeSwitch::new(2, 1), FakeHost::new(4, 1));
        for (after_us, token) in [(5, 1), (3, 2), (5, 3)] {
            switch.set_timer(Span::from_us(after_us), token);
            host.set_host_timer(Span::from_us(after_us), token);
        }
        let at_switch = [(); 4].map(|()| (switch.next_timer(), switch.now.as_us()));
        let at_host = [(); 4].map(|()| (host.next_host_timer(), host.now.as_us()));
        assert_eq!(at_switch, [(Some(2), 3.0), (Some(1), 5.0), (Some(3), 5.0), (None, 5.0)]);
        assert_eq!(at_host, at_switch);
    }

    #[test]
    fn a_queue_drains_at_the_rate_of_its_port() {
        let mut switch = FakeSwitch::new(2, 1);
        switch.backlogs[1] = 12_500;
        assert_eq!(switch.drain_time(crate::PortId(1)), Span::from_us(10));
    }
}
