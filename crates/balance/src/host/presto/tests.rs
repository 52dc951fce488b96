//! Presto at both ends: cells and routes, gaps, timeouts, and no packet lost.

use proptest::prelude::*;

use crate::testing::{FakeHost, HEADER_BYTES, packet, with};

use super::*;

fn presto(params: &Params) -> Presto {
    Presto::new(params, &FakeHost::info(1))
}

/// Sends segments of `payload` bytes: the cell and the first digit of the route of each.
fn send(scheme: &mut Presto, host: &mut FakeHost, payload: u16, segments: u32) -> Vec<(u32, usize)> {
    let mut flow = Flow::default();
    (0..segments)
        .map(|seq| {
            let mut sent =
                with(packet(1), |sent| (sent.seq, sent.wire_bytes) = (seq, payload + HEADER_BYTES));
            scheme.on_send(host, &mut flow, &mut sent);
            (sent.scheme, sent.route.next_hop(usize::from(host.routes)).expect("a route is set"))
        })
        .collect()
}

/// Segment `seq` of a flow with `per_cell` segments a cell.
fn segment(seq: u32, per_cell: u32) -> Packet {
    with(packet(1), |packet| (packet.seq, packet.scheme) = (seq, seq / per_cell))
}

/// The receiving end of one flow.
struct Receiver {
    scheme: Presto,
    host: FakeHost,
    flow: Flow,
}

impl Receiver {
    fn new(params: &Params) -> Self {
        Self { scheme: presto(params), host: FakeHost::new(4, 1), flow: Flow::default() }
    }

    /// One segment a microsecond.
    fn arrive(&mut self, seqs: &[u32], per_cell: u32) {
        for &seq in seqs {
            self.host.now += Span::from_us(1);
            self.scheme.on_receive(&mut self.host, &mut self.flow, segment(seq, per_cell));
        }
    }

    /// Lets the timer go off; false if none is armed.
    fn wait(&mut self) -> bool {
        let armed = self.host.advance_to_timer();
        if armed {
            self.scheme.flow_timer(&mut self.host, &mut self.flow);
        }
        armed
    }

    /// The segments passed up so far, and how many are held.
    fn state(&self) -> (Vec<u32>, usize) {
        (self.host.delivered_seqs(), Presto::held(&self.flow))
    }
}

#[test]
fn a_cell_is_64_kib_of_payload_and_not_a_byte_more() {
    // 64 x 1,024 is 65,536 exactly; 44 x 1,460 is 64,240 and a 45th would be too much.
    for (payload, per_cell) in [(1_024, 64), (1_460, 44)] {
        let mut host = FakeHost::new(4, 3);
        let sent = send(&mut presto(&Params::default()), &mut host, payload, per_cell * 9);
        for (index, &(cell, route)) in sent.iter().enumerate() {
            assert_eq!(cell, index as u32 / per_cell);
            assert_eq!(route, (sent[0].1 + cell as usize) % 4, "routes are taken in turn");
        }
    }
}

#[test]
fn flows_start_on_any_route_and_their_acknowledgements_stay_on_one() {
    let mut host = FakeHost::new(8, 3);
    let mut scheme = presto(&Params::default());
    let mut starts = [false; 8];
    for _ in 0..200 {
        let acks = send(&mut scheme, &mut host, 0, 50);
        assert!(acks.iter().all(|&ack| ack == acks[0]));
        starts[acks[0].1] = true;
    }
    assert_eq!(starts, [true; 8]);
}

#[test]
fn a_cell_that_overtook_waits_for_the_one_before() {
    let mut end = Receiver::new(&Params::default());
    end.arrive(&[0, 1, 4, 5, 6, 8], 4);
    assert_eq!(end.state(), (vec![0, 1], 4));
    // With 2 and 3, cell 1 follows; 7 is still missing in front of cell 2.
    end.arrive(&[2, 3], 4);
    assert_eq!(end.state(), ((0..7).collect(), 1));
    end.arrive(&[7], 4);
    assert_eq!(end.state(), ((0..9).collect(), 0));
    let counts = end.scheme.counts;
    assert_eq!((counts.held, counts.gaps_filled, counts.timeouts), (4, 2, 0));
}

#[test]
fn a_gap_inside_a_cell_is_a_loss_and_holds_nothing() {
    let mut end = Receiver::new(&Params::default());
    end.arrive(&[0, 2, 3, 4, 6, 5], 4);
    assert_eq!(end.state(), (vec![0, 2, 3, 4, 6, 5], 0));
    assert_eq!((end.scheme.counts.held, end.host.timer), (0, None));
    // Sent again in cell 9: old, so at once, and no cell is newer for it.
    end.scheme.on_receive(&mut end.host, &mut end.flow, with(segment(1, 4), |again| again.scheme = 9));
    assert_eq!((end.host.delivered_seqs().last(), end.flow.arriving.cell), (Some(&1), 1));
}

#[test]
fn a_timeout_gives_up_one_gap_at_a_time() {
    let mut end = Receiver::new(&Params::default());
    // Gaps before 4 (cell 1) and before 12 (cell 3).
    end.arrive(&[4, 5, 12], 4);
    assert_eq!(end.host.timer, Some(Time::ZERO + Span::from_us(1 + 100)));
    assert!(end.wait());
    assert_eq!(end.state(), (vec![4, 5], 1));
    assert!(end.wait());
    assert_eq!(end.state(), (vec![4, 5, 12], 0));
    assert_eq!(end.scheme.counts.timeouts, 2);
}

#[test]
fn the_timeout_is_alpha_times_the_smoothed_time_within_its_limits() {
    let scheme = presto(&Params::default());
    let timeout = |measured: &[u64]| {
        let mut arriving = Arriving::default();
        for &us in measured {
            arriving.measure(Span::from_us(us));
        }
        scheme.timeout(&arriving)
    };
    assert_eq!(timeout(&[]), Span::from_us(100));
    assert_eq!(timeout(&[80]), Span::from_us(160));
    assert_eq!(timeout(&[80, 160]), Span::from_us(180), "(7 x 80 + 160) / 8 = 90");
    assert_eq!(timeout(&[3]), Span::from_us(50));
    assert_eq!(timeout(&[900]), Span::from_us(500));
}

#[test]
fn a_gap_that_is_filling_is_given_more_time() {
    let mut end = Receiver::new(&Params::default());
    end.arrive(&[4], 4);
    end.host.now = Time::ZERO + Span::from_us(90);
    end.arrive(&[0], 4);
    // Due at 101 us, but segment 0 came at 91 us, and half of the 100 us is 50 us.
    assert!(end.wait());
    assert_eq!(end.state(), (vec![0], 1));
    assert_eq!(end.host.timer, Some(Time::ZERO + Span::from_us(141)));
    assert!(end.wait());
    assert_eq!(end.state(), (vec![0, 4], 0));
}

#[test]
fn a_full_buffer_gives_up_the_first_gap() {
    let mut end = Receiver::new(&Params { hold_packets: 3, ..Params::default() });
    end.arrive(&[4, 5, 6], 4);
    assert_eq!(end.state(), (vec![], 3));
    end.arrive(&[12], 4);
    assert_eq!(end.state(), (vec![4, 5, 6], 1));
    assert_eq!(end.scheme.counts.overflows, 1);
}

#[test]
fn times_that_contradict_each_other_are_refused() {
    let refused = |params: Params| params.validate().unwrap_err().key;
    assert_eq!(refused(Params { hold: Span::from_us(1), ..Params::default() }), "hold");
    assert_eq!(refused(Params { hold_max: Span::from_us(60), ..Params::default() }), "hold");
    assert_eq!(refused(Params { hold_min: Span::ZERO, ..Params::default() }), "hold_min");
    assert_eq!(refused(Params { flowcell: Bytes::ZERO, ..Params::default() }), "flowcell");
    assert_eq!(refused(Params { beta: 0, ..Params::default() }), "beta");
    assert_eq!(refused(Params { hold_packets: 0, ..Params::default() }), "hold_packets");
}

/// Cells in order inside, interleaved at random: what paths without loss can do to a flow.
fn interleaved() -> impl Strategy<Value = Vec<u32>> {
    (proptest::collection::vec(0usize..6, 6 * 8)).prop_map(|order| {
        let mut cells = [0u32, 8, 16, 24, 32, 40].map(|first| first..first + 8);
        let next = |pick: usize| (0..6).find_map(|skip| cells[(pick + skip) % 6].next());
        order.into_iter().filter_map(next).collect()
    })
}

proptest! {
    #[test]
    fn overtaking_cells_without_loss_reach_the_transport_in_order(arrivals in interleaved()) {
        let mut end = Receiver::new(&Params::default());
        end.arrive(&arrivals, 8);
        prop_assert_eq!(end.state(), ((0..48).collect(), 0));
    }

    #[test]
    fn no_packet_is_lost_or_doubled_whatever_arrives(
        arrivals in proptest::collection::vec((0u32..60, 0u32..8, any::<bool>()), 0..150),
        hold_packets in 1u32..40,
    ) {
        let mut end = Receiver::new(&Params { hold_packets, ..Params::default() });
        for &(seq, cell, wait) in &arrivals {
            end.host.now += Span::from_us(3);
            let came = with(segment(seq, 8), |came| came.scheme = cell);
            end.scheme.on_receive(&mut end.host, &mut end.flow, came);
            prop_assert!(Presto::held(&end.flow) <= hold_packets as usize);
            prop_assert!(Presto::held(&end.flow) == 0 || end.host.timer.is_some(), "held for ever");
            if wait {
                end.wait();
            }
        }
        while end.wait() {}
        prop_assert_eq!(Presto::held(&end.flow), 0);
        let mut out: Vec<_> = end.host.delivered.iter().map(|packet| (packet.seq, packet.scheme)).collect();
        let mut came: Vec<_> = arrivals.into_iter().map(|(seq, cell, _)| (seq, cell)).collect();
        out.sort_unstable();
        came.sort_unstable();
        prop_assert_eq!(out, came);
    }
}
