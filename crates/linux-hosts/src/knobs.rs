//! Knobs of a host, of its kernel, and of a flow: one table with the meaning of each number, its
//! range, and how it reaches the kernel.

use weft_units::Span;

use crate::error::Error;

/// Where a number goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobTarget {
    /// A file below `/proc/sys` of the host.
    Sysctl(&'static str),
    /// An attribute of the host's route to all others.
    Route(&'static str),
    /// The host's path manager of MPTCP.
    Multipath(&'static str),
    /// A parameter `MODULE/NAME` of the kernel; all of its hosts have the same.
    Module(&'static str),
    /// An option of a flow's socket.
    Socket(&'static str),
}

/// One thing that can be set.
#[derive(Debug, Clone, Copy)]
pub struct Knob {
    /// Name of the knob, with the unit.
    pub name: &'static str,
    /// Where it goes.
    pub place: KnobTarget,
    /// The least that is allowed.
    pub least: u64,
    /// The most that is allowed.
    pub most: u64,
    /// Behaviour of the kernel if nobody sets the knob.
    pub otherwise: &'static str,
    /// Meaning of the knob.
    pub doc: &'static str,
    /// How the kernel is told the number.
    text: fn(u64) -> String,
}

fn plain(value: u64) -> String {
    value.to_string()
}

fn inverted(value: u64) -> String {
    (1 - value.min(1)).to_string()
}

/// `tcp_early_retrans`: 3 or 0.
fn three_if_on(value: u64) -> String {
    (value.min(1) * 3).to_string()
}

fn send_buffer(most: u64) -> String {
    format!("{} {} {most}", most.min(4_096), most.min(16_384))
}

fn receive_buffer(most: u64) -> String {
    format!("{} {} {most}", most.min(4_096), most.min(131_072))
}

macro_rules! knobs {
    ($($name:literal $place:ident $path:literal $least:literal..=$most:literal $text:ident, $otherwise:literal, $doc:literal;)*) => {
        &[$(Knob {
            name: $name,
            place: KnobTarget::$place($path),
            least: $least,
            most: $most,
            otherwise: $otherwise,
            doc: $doc,
            text: $text,
        },)*]
    };
}

/// All that can be set.
#[rustfmt::skip]
pub const KNOBS: &[Knob] = knobs! {
    "initial_window" Route "initcwnd" 1..=1_000 plain, "10", "segments that a connection may send at first";
    "initial_receive_window" Route "initrwnd" 1..=1_000 plain, "by the receive buffer", "segments that a receiver offers at first";
    "min_rto_ms" Route "rto_min_ms" 1..=120_000 plain, "200", "the least retransmission timeout";
    "quick_ack" Route "quickack" 0..=1 plain, "0", "1: no acknowledgement is delayed";
    "route_ecn" Route "ecn" 0..=1 plain, "0", "1: connections of this route ask for ECN, whatever `ecn` says";
    "ecn" Sysctl "net/ipv4/tcp_ecn" 0..=2 plain, "2", "0: never; 1: asks for it; 2: only if the other asks";
    "ecn_fallback" Sysctl "net/ipv4/tcp_ecn_fallback" 0..=1 plain, "1", "1: a lost SYN is sent again without ECN";
    "send_buffer_max_bytes" Sysctl "net/ipv4/tcp_wmem" 4_608..=1_073_741_824 send_buffer, "by the memory", "to which send buffers grow";
    "receive_buffer_max_bytes" Sysctl "net/ipv4/tcp_rmem" 4_608..=1_073_741_824 receive_buffer, "by the memory", "to which receive buffers grow";
    "small_queue_bytes" Sysctl "net/ipv4/tcp_limit_output_bytes" 1_500..=1_073_741_824 plain, "1,048,576", "that a connection has in the queueing discipline and the card, at most";
    "sack" Sysctl "net/ipv4/tcp_sack" 0..=1 plain, "1", "selective acknowledgements";
    "dsack" Sysctl "net/ipv4/tcp_dsack" 0..=1 plain, "1", "duplicates are told to the sender";
    "timestamps" Sysctl "net/ipv4/tcp_timestamps" 0..=2 plain, "1", "0: none; 1: from a random offset; 2: from zero";
    "window_scaling" Sysctl "net/ipv4/tcp_window_scaling" 0..=1 plain, "1", "windows of more than 65,535 bytes";
    "tail_loss_probe" Sysctl "net/ipv4/tcp_early_retrans" 0..=1 three_if_on, "1", "probes for a lost tail, and early retransmission";
    "recovery" Sysctl "net/ipv4/tcp_recovery" 0..=7 plain, "1", "bits: 1 RACK, 2 with a fixed reordering window, 4 without counting duplicates";
    "reordering" Sysctl "net/ipv4/tcp_reordering" 1..=300 plain, "3", "segments by which one may be late at first";
    "max_reordering" Sysctl "net/ipv4/tcp_max_reordering" 1..=10_000 plain, "300", "to which that grows";
    "frto" Sysctl "net/ipv4/tcp_frto" 0..=2 plain, "2", "0: no undoing of timeouts that were wrong";
    "slow_start_after_idle" Sysctl "net/ipv4/tcp_slow_start_after_idle" 0..=1 plain, "1", "1: the window falls while nothing is sent";
    "keep_metrics" Sysctl "net/ipv4/tcp_no_metrics_save" 0..=1 inverted, "1", "1: a connection begins with what one to the same host learned";
    "pacing_slow_start_percent" Sysctl "net/ipv4/tcp_pacing_ss_ratio" 1..=1_000 plain, "200", "of the window a round trip, in slow start, where there is pacing";
    "pacing_percent" Sysctl "net/ipv4/tcp_pacing_ca_ratio" 1..=1_000 plain, "120", "the same after slow start";
    "compressed_acks" Sysctl "net/ipv4/tcp_comp_sack_nr" 0..=255 plain, "44", "selective acknowledgements that may be left out";
    "compressed_ack_delay_ns" Sysctl "net/ipv4/tcp_comp_sack_delay_ns" 0..=1_000_000_000 plain, "1,000,000", "for how long at most";
    "autocorking" Sysctl "net/ipv4/tcp_autocorking" 0..=1 plain, "1", "small writes wait for each other while others are in the queue";
    "min_tso_segments" Sysctl "net/ipv4/tcp_min_tso_segs" 1..=100 plain, "2", "of a large segment, at least";
    "mptcp_subflows" Multipath "subflows" 1..=8 plain, "1", "of a connection that the host begins, each from a port of its own; both ends must have it";
    "dctcp_shift_g" Module "tcp_dctcp/dctcp_shift_g" 0..=10 plain, "4", "DCTCP's g is 2 to the power of minus this";
    "dctcp_alpha_on_init" Module "tcp_dctcp/dctcp_alpha_on_init" 0..=1_024 plain, "1,024", "DCTCP's first alpha, in parts of 1,024";
    "cubic_hystart" Module "tcp_cubic/hystart" 0..=1 plain, "1", "cubic ends slow start before there is a loss";
    "cubic_hystart_detect" Module "tcp_cubic/hystart_detect" 1..=3 plain, "3", "bits: 1 by trains of acknowledgements, 2 by delay";
    "cubic_beta" Module "tcp_cubic/beta" 1..=1_023 plain, "717", "the window after a loss, in parts of 1,024";
    "cubic_fast_convergence" Module "tcp_cubic/fast_convergence" 0..=1 plain, "1", "cubic gives way to new flows";
    "send_buffer_bytes" Socket "send_buffer" 2_304..=1_073_741_823 plain, "grows", "a fixed send buffer; the kernel takes twice as many for its own needs";
    "receive_buffer_bytes" Socket "receive_buffer" 1_152..=1_073_741_823 plain, "grows", "a fixed receive buffer of the sending end; the kernel takes twice as many";
    "max_pacing_bytes_per_s" Socket "max_pacing_rate" 1..=1_000_000_000_000 plain, "none", "no faster than this";
    "no_delay" Socket "no_delay" 0..=1 plain, "0", "1: small segments do not wait (no Nagle)";
    "cork" Socket "cork" 0..=1 plain, "0", "1: only full segments are sent until the flow has no more to write";
    "max_segment_bytes" Socket "max_segment" 88..=32_767 plain, "by the MTU", "of a segment with its options";
    "user_timeout_ms" Socket "user_timeout_ms" 1..=2_147_483_647 plain, "none", "the flow fails if nothing is acknowledged for so long";
    "not_sent_low_bytes" Socket "not_sent_low" 1..=4_294_967_295 plain, "none", "the flow writes more only when fewer than this wait to be sent";
};

impl Knob {
    /// The knob of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<&'static Self, Error> {
        let found = KNOBS.iter().find(|knob| knob.name == name);
        found.ok_or_else(|| Error::NoSuchKnob { name: name.to_owned() })
    }

    /// How the kernel is told `value`.
    fn told(&self, value: u64) -> Result<String, Error> {
        if (self.least..=self.most).contains(&value) {
            Ok((self.text)(value))
        } else {
            Err(Error::Knob { name: self.name, found: value, least: self.least, most: self.most })
        }
    }

    /// The entry for [`Host::settings`](crate::Host::settings) that sets a host's knob, or one of
    /// the kernel, to `value`.
    ///
    /// # Errors
    /// A value out of range, or a knob of flows.
    pub fn setting(&self, value: u64) -> Result<(String, String), Error> {
        let path = match self.place {
            KnobTarget::Sysctl(path) => path.to_owned(),
            KnobTarget::Route(attribute) => format!("route/{attribute}"),
            KnobTarget::Multipath(what) => format!("mptcp/{what}"),
            KnobTarget::Module(parameter) => format!("module/{parameter}"),
            KnobTarget::Socket(_) => {
                return Err(Error::NoSuchKnob { name: format!("{} of a host", self.name) });
            }
        };
        Ok((path, self.told(value)?))
    }
}

/// Options of one flow beyond [`Flow`](crate::Flow).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowOptions {
    words: Vec<String>,
}

impl FlowOptions {
    /// Sets a knob of flows.
    ///
    /// # Errors
    /// There is none of this name for flows, or a value out of range.
    pub fn set(mut self, name: &str, value: u64) -> Result<Self, Error> {
        let knob = Knob::named(name)?;
        let KnobTarget::Socket(option) = knob.place else {
            return Err(Error::NoSuchKnob { name: format!("{name} of a flow") });
        };
        self.words.push(format!("{option}={}", knob.told(value)?));
        Ok(self)
    }

    /// Reports the kernel's counters after each `interval` as long as the flow lasts, as
    /// [`Report::Sample`](crate::Report::Sample). A part of a nanosecond does not count.
    ///
    /// # Errors
    /// Less than 1 us.
    pub fn sample_every(mut self, interval: Span) -> Result<Self, Error> {
        let ns = interval.as_ps() / 1_000;
        if ns < 1_000 {
            return Err(Error::Knob {
                name: "interval of samples in ns",
                found: ns,
                least: 1_000,
                most: u64::MAX,
            });
        }
        self.words.push(format!("sample_ns={ns}"));
        Ok(self)
    }

    /// Options behind a flow in its line.
    pub(crate) fn tail(&self) -> String {
        self.words.iter().fold(String::new(), |tail, word| tail + " " + word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_ranges_are_ranges() {
        for (number, knob) in KNOBS.iter().enumerate() {
            assert!(knob.least < knob.most, "{}", knob.name);
            assert!(KNOBS[..number].iter().all(|other| other.name != knob.name && other.place != knob.place));
        }
    }

    #[test]
    fn a_knob_says_where_its_number_goes_or_what_is_allowed() {
        let set = |name, value| Knob::named(name).and_then(|knob| knob.setting(value));
        assert_eq!(set("initial_window", 20).unwrap(), ("route/initcwnd".into(), "20".into()));
        assert_eq!(set("keep_metrics", 0).unwrap(), ("net/ipv4/tcp_no_metrics_save".into(), "1".into()));
        assert_eq!(set("tail_loss_probe", 1).unwrap().1, "3");
        assert_eq!(set("receive_buffer_max_bytes", 65_536).unwrap().1, "4096 65536 65536");
        assert_eq!(set("dctcp_shift_g", 5).unwrap(), ("module/tcp_dctcp/dctcp_shift_g".into(), "5".into()));
        let error = set("initial_window", 0).unwrap_err().to_string();
        assert_eq!(error, "initial_window of a Linux host is 0; allowed: 1 to 1000");
        assert!(set("no_such", 1).is_err());
        assert!(set("no_delay", 1).is_err(), "one of flows");
    }

    #[test]
    fn a_flow_takes_knobs_of_flows_only() {
        let options =
            FlowOptions::default().set("no_delay", 1).unwrap().set("max_segment_bytes", 536).unwrap();
        assert_eq!(
            options.sample_every(Span::from_us(5)).unwrap().tail(),
            " no_delay=1 max_segment=536 sample_ns=5000"
        );
        assert_eq!(FlowOptions::default().tail(), "");
        assert!(FlowOptions::default().set("initial_window", 10).is_err());
        assert!(FlowOptions::default().set("no_delay", 2).is_err());
        assert!(FlowOptions::default().sample_every(Span::from_ns(999)).is_err());
    }
}
