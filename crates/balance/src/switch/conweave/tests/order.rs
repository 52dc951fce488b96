//! Order over two leaves with random delays between.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// Two leaves, and between them four paths in which packets keep their order. What happens, by time
/// and in order of being put in.
struct World {
    sender: Sender,
    receiver: Receiver,
    events: BTreeMap<(Time, u64), Event>,
    number: u64,
    /// When the last packet of each path arrives, and of the way back.
    last: [Time; UPLINKS as usize + 1],
}

enum Event {
    Send(u32),
    Arrive(Packet),
    Answer(Packet),
}

impl World {
    fn put(&mut self, at: Time, event: Event) {
        self.events.insert((at, self.number), event);
        self.number += 1;
    }

    /// Something takes a way that packets do not overtake on.
    fn travel(&mut self, way: usize, delay: Span, event: Event) {
        let now = self.sender.switch.now;
        self.last[way] = self.last[way].max(now + delay);
        self.put(self.last[way], event);
    }

    /// Runs to the end of packets and timers. `delays` are taken in turn, in us.
    fn run(&mut self, delays: &[u64]) {
        let mut turn = 0;
        let mut delay = || {
            turn += 1;
            Span::from_ns(delays[turn % delays.len()] * 1_000 + turn as u64 % 7)
        };
        loop {
            let timer = self.receiver.switch.timers.iter().map(|&(at, _)| at).min();
            let event = self.events.keys().next().map(|&(at, _)| at);
            if let Some(timer) = timer
                && event.is_none_or(|event| timer < event)
            {
                self.set_clocks(timer);
                self.receiver.fire();
            } else if let Some(((at, _), event)) = self.events.pop_first() {
                self.set_clocks(at);
                match event {
                    Event::Send(seq) => {
                        let mut sent = with(packet(7), |sent| sent.seq = seq);
                        let hops = Group::of(0..UPLINKS);
                        let hop = self.sender.scheme.choose(&mut self.sender.switch, &mut sent, &hops.hops());
                        self.travel(hop, delay(), Event::Arrive(sent));
                    }
                    Event::Arrive(mut came) => {
                        let arrival =
                            self.receiver.scheme.on_arrival(&mut self.receiver.switch, &mut came, PortId(2));
                        self.receiver.switch.settle(Some((arrival, came)));
                    }
                    Event::Answer(mut answer) => {
                        answer.kind = Kind::Control;
                        self.sender.scheme.on_arrival(&mut self.sender.switch, &mut answer, PortId(0));
                    }
                }
            } else {
                return;
            }
            for (_, answer) in std::mem::take(&mut self.receiver.switch.outbox) {
                self.travel(usize::from(UPLINKS), delay(), Event::Answer(answer));
            }
        }
    }

    fn set_clocks(&mut self, at: Time) {
        self.sender.switch.now = at;
        self.receiver.switch.now = at;
    }
}

proptest! {
    /// No packet of a connection leaves the destination leaf out of order, if a queue was free and
    /// no timer ended; and in no case is one lost or kept.
    #[test]
    fn packets_leave_in_order_over_paths_of_any_delays(
        gaps in proptest::collection::vec(0u64..40, 20..120),
        delays in proptest::collection::vec(5u64..120, 3..40),
        samples in 1u8..17,
        resume_extra in 0u64..300,
    ) {
        // A pause longer than any difference of delays, as the paper asks.
        let params = Params { samples, resume_extra: Span::from_us(resume_extra), ..Params::default() };
        let mut world = World {
            sender: Sender::new(&params),
            receiver: Receiver::new(&params),
            events: BTreeMap::new(),
            number: 0,
            last: [Time::ZERO; UPLINKS as usize + 1],
        };
        let mut at = Time::ZERO + Span::from_us(1_000);
        for (seq, gap) in gaps.iter().enumerate() {
            at += Span::from_us(*gap);
            world.put(at, Event::Send(seq as u32));
        }
        world.run(&delays);
        let gone = world.receiver.gone();
        let counts = world.receiver.counts();
        prop_assert!(world.receiver.switch.held.is_empty(), "nothing is kept");
        if counts.resumed_by_timer == 0 && counts.passed_out_of_order == 0 {
            prop_assert_eq!(&gone, &(0..gaps.len() as u32).collect::<Vec<_>>());
        }
        let each: BTreeSet<u32> = gone.iter().copied().collect();
        prop_assert_eq!((gone.len(), each.len()), (gaps.len(), gaps.len()));
        prop_assert!(gone.len() == world.receiver.switch.gone.iter().filter(|packet| packet.wire_bytes == 1_500).count());
    }
}
