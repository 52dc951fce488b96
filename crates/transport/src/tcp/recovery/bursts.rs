//! Segmentation offload of senders that count acknowledgements: new segments are handed over in
//! bursts, by the rules of the host's stack, which are the same as for those that go by time.

use super::LossDetection;
use super::sack::Scoreboard;
use crate::Outbox;
use crate::tcp::Tcp;
use crate::tcp::host_stack::{Bursts, Flow};
use crate::tcp::sender::{Phase, Sender};

impl Sender {
    /// From now on segments leave in bursts.
    pub(super) fn begin_bursts(&mut self, has_sack: bool) {
        let bursts = Bursts::default();
        let board = if has_sack {
            LossDetection::Sack(Scoreboard::with_bursts(self.una, bursts))
        } else {
            LossDetection::Bursts(bursts)
        };
        self.board = Some(Box::new(board));
    }

    /// Without SACK: sends what the window allows, new segments in bursts.
    pub(super) fn send_in_bursts(&mut self, tcp: &Tcp, bursts: &mut Bursts, out: &mut impl Outbox) {
        let window = self.window.segments().min(tcp.max_window);
        let end = self.una.saturating_add(window).min(self.segments);
        while self.next < end {
            let count = self.next_burst(tcp, bursts, self.next - self.una, out);
            if count == 0 {
                break;
            }
            for _ in 0..count {
                self.transmit(tcp, self.next, out);
                self.next += 1;
            }
        }
    }

    /// How many segments to hand over now from the next one on, with so many in the network: one
    /// that was sent before goes by itself, and of new ones it may be better to wait for more.
    /// There is room in the window.
    pub(super) fn next_burst(
        &self,
        tcp: &Tcp,
        bursts: &mut Bursts,
        in_network: u32,
        out: &impl Outbox,
    ) -> u32 {
        if self.next < self.max {
            return 1;
        }
        let smoothed_rtt = self.rtt.smoothed();
        bursts.follow(self.una, self.max, smoothed_rtt);
        let flow = Flow {
            window: &self.window,
            una: self.una,
            next: self.next,
            max: self.max,
            edge: self.una.saturating_add(tcp.max_window),
            segments: self.segments,
            in_network,
            smoothed_rtt,
            min_rtt: bursts.min_rtt,
            recovers: self.phase == Phase::Recovery,
            first_sent: bursts.first_sent(),
        };
        let count = tcp.stack.burst(&flow, &mut bursts.handed, out.now());
        if count > 0 {
            bursts.hands_over(self.next, out.now());
        }
        count
    }
}
