//! Schemes that estimate the use of a link count what its queue took, not what it dropped.
//!
//! Sixteen racks send one packet each to rack 0 at the same instant, again and again. The port to
//! rack 0 holds two: it takes the first two of each burst (beside a probe, if there is one) and
//! drops fourteen. So the link is used for 12 % of the time, and would be for 96 % if all of them
//! counted. What the scheme at the spine makes of that is read from the packets that it sends it
//! with, as another switch gets them.

use std::sync::{Arc, Mutex};

use crate::common::{Run, fabric, flow, link_named};
use weft_balance::switch::conga::{self, Conga};
use weft_balance::switch::hula::{self, Hula};
use weft_balance::{
    AnySwitchScheme, Arrival, ExternalScheme, NextHops, PortId, Queued, SwitchContext, SwitchHooks,
    SwitchInfo, SwitchScheme,
};
use weft_fabric::Results;
use weft_packet::{Kind, Packet};
use weft_traffic::Flow;
use weft_units::{Span, Time};

const SENDERS: u16 = 16;
const PACKET: u64 = 1_500;
/// Bytes that the link takes of each burst.
const TAKEN: f64 = 2.0 * PACKET as f64;
const PERIOD: Span = Span::from_us(20);
/// Bytes that a link of 10 Gbit/s sends in a microsecond.
const BYTES_A_US: f64 = 1_250.0;
const FABRIC: &str = "kind = 'leaf-spine'\nleaves = 17\nspines = 1\nhosts_per_leaf = 1\nhost_rate = '10Gbps'
fabric_rate = '10Gbps'\n[switch_queue]\nbuffer = '3064B'\nmark = 'never'";
const BURSTS: u64 = 200;

/// A scheme at a switch, and somebody who hears the packets that come in before it does.
struct Overheard<S> {
    scheme: S,
    heard: Option<Hear>,
}

type Hear = Box<dyn FnMut(Time, &Packet) + Send>;

impl<S: SwitchScheme + Send> ExternalScheme for Overheard<S> {
    fn hooks(&self) -> SwitchHooks {
        S::HOOKS
    }

    fn choose(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, hops: &NextHops<'_>) -> usize {
        self.scheme.choose(cx, packet, hops)
    }

    fn start(&mut self, cx: &mut dyn SwitchContext) {
        self.scheme.start(cx);
    }

    fn on_arrival(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, port: PortId) -> Arrival {
        if let Some(hear) = &mut self.heard {
            hear(cx.now(), packet);
        }
        self.scheme.on_arrival(cx, packet, port)
    }

    fn on_timer(&mut self, cx: &mut dyn SwitchContext, token: u32) {
        self.scheme.on_timer(cx, token);
    }

    fn on_enqueued(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, queued: Queued) {
        self.scheme.on_enqueued(cx, packet, queued);
    }
}

/// Runs the bursts with a scheme. Returns what `read` reads of packets that come to this rack from
/// `from` until bursts end, and the run.
fn run<S: SwitchScheme + Send + 'static>(
    params: &S::Params,
    rack: u16,
    from: Span,
    read: fn(&Packet) -> Option<f64>,
) -> (Vec<f64>, Results) {
    let fabric = fabric(FABRIC);
    let start = |burst: u64| Time::ZERO + PERIOD * burst;
    let one = |burst: u64, sender: u16| Flow { start: start(burst), ..flow(0, sender, 0, PACKET - 40) };
    let flows: Vec<Flow> =
        (0..BURSTS).flat_map(|burst| (1..=SENDERS).map(move |sender| one(burst, sender))).collect();
    let heard: Arc<Mutex<Vec<f64>>> = Arc::default();
    let mut make = |info: &SwitchInfo<'_>| {
        let noted = Arc::clone(&heard);
        let hear = move |now: Time, packet: &Packet| {
            let bursts = Time::ZERO + from..start(BURSTS);
            let value = read(packet).filter(|_| bursts.contains(&now));
            noted.lock().expect("one thread").extend(value);
        };
        let heard = (info.rack == Some(rack)).then(|| Box::new(hear) as Hear);
        AnySwitchScheme::External(Box::new(Overheard { scheme: S::new(params, info), heard }))
    };
    // No sender hears of a drop before the end.
    let transport = "name = 'dctcp'\ninitial_rto = '1s'";
    let run = Run { time_limit: PERIOD * BURSTS, ..Run::new(&fabric, transport, "name = 'ecmp'") };
    let (results, _) = run.with_external(&flows, Some(&mut make));
    let link = &results.links[link_named(&fabric, "spine0>leaf0")];
    assert!(link.dropped >= 14 * (BURSTS - 1), "{} dropped", link.dropped);
    let taken = 2 * PACKET * BURSTS;
    assert!((taken..=taken + results.packets.control_bytes).contains(&link.bytes), "{} bytes", link.bytes);
    let heard = heard.lock().expect("one thread").clone();
    assert!(!heard.is_empty());
    (heard, results)
}

/// The register grows by 3,000 B each `t_dre` of 20 us and loses an eighth of itself: in the end it
/// is 8 x 3,000 B when both packets are counted, of C tau = 200,000 B: 30.72 of 256.
#[test]
fn conga_collects_the_use_of_a_link_without_what_its_queue_dropped() {
    let params = conga::Params { metric_bits: 8, ..conga::Params::default() };
    // CE is in bits 6 to 13, and valid with bit 28.
    let congestion = |packet: &Packet| {
        let is_valid = packet.kind == Kind::Data && packet.scheme & 1 << 28 != 0;
        is_valid.then(|| f64::from(packet.scheme >> 6 & 0xff))
    };
    let (heard, _) = run::<Conga>(&params, 0, Span::from_ms(2), congestion);
    let most = heard.iter().copied().fold(0.0, f64::max);
    let exact = 8.0 * TAKEN / (160.0 * BYTES_A_US) * 256.0;
    assert_eq!(most as u32, exact as u32, "{exact}");
}

/// U = D + U (1 - dt / tau), tau = 400 us, C tau = 500,000 B. Each burst finds at least 0.95 and at
/// most e^-0.05 of what the one before left, since packets between two bursts can but lie between
/// these. So U is at least 0.95 x 3,000 B / (1 - 0.95), and at most 3,000 B / (1 - e^-0.05) and the
/// same of sixteen probes of 64 B each interval of 200 us.
#[test]
fn hula_reports_the_use_of_a_link_without_what_its_queue_dropped() {
    // The rack is in the low bits, the utilisation in 255ths in the high 8.
    let utilisation = |packet: &Packet| {
        let is_of_rack_0 = packet.kind == Kind::Control && packet.scheme as u16 == 0;
        is_of_rack_0.then(|| f64::from(packet.scheme >> 24))
    };
    let (heard, results) = run::<Hula>(&hula::Params::default(), 1, Span::from_ms(3), utilisation);
    assert!(results.packets.control_bytes > 0);
    let level = |bytes: f64| bytes / (400.0 * BYTES_A_US) * 255.0;
    let warm = 1.0 - 0.95f64.powi(3_000 / 20 - 1);
    let least = level(warm * 0.95 * TAKEN / (1.0 - 0.95)).floor();
    let probes = 16.0 * 64.0 / (1.0 - (-200.0f64 / 400.0).exp());
    let most = level(TAKEN / (1.0 - (-20.0f64 / 400.0).exp()) + probes);
    for utilisation in heard {
        assert!((least..=most).contains(&utilisation), "{utilisation}, not from {least} to {most}");
    }
}
