//! The keys of a TCP that is no subflow: losses by time, and what is built on that.

use weft_units::{Bytes, Span};

use super::compression::Compresses;
use super::host_stack::Stack;
use super::receive_window::Offers;
use super::recovery::{Probing, Recovery, Tolerance, UndoRules};
use crate::ParamError;

/// RACK-TLP keys of [`TcpConfig`](super::TcpConfig) and [`DctcpConfig`](super::DctcpConfig);
/// nothing is on by default.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools)] // Each is a key of its own, and all combinations make sense.
pub(super) struct ByTime {
    pub rack: bool,
    pub rack_window: f64,
    pub rack_adaptive: bool,
    pub rack_wait: Span,
    pub rack_echo_of_sacked: bool,
    pub tail_loss_probe: bool,
    pub probe_wait: Span,
    pub probe_wait_for_one: Span,
    pub prr: bool,
    pub timeout_keeps_network: bool,
    pub grow_beyond_holes: bool,
    pub undo: bool,
    pub eifel: bool,
    pub timestamp_tick: Span,
    pub frto: bool,
    pub segmentation_offload: Bytes,
    pub small_queue: Span,
    pub small_queue_most: Bytes,
    pub small_queue_overhead: Bytes,
    pub pacing: bool,
    pub write_ahead: bool,
    pub receive_window: Bytes,
    pub receive_window_most: Bytes,
    pub compressed_acks: u16,
    pub compression_delay: Span,
    pub compression_slack: Span,
    pub fin: bool,
    pub sender_acks: bool,
}

impl ByTime {
    /// How losses are found, with `sack` or without.
    pub fn recovery(&self, sack: bool) -> Recovery {
        match (sack, self.rack) {
            (true, true) => {
                Recovery::Rack(Tolerance { round_trips: self.rack_window, adapts: self.rack_adaptive })
            }
            (true, false) => Recovery::Sack,
            (false, _) => Recovery::NewReno,
        }
    }

    /// Host stack between the sender and its card; `mss` bytes are a full segment.
    pub fn stack(&self, mss: u16) -> Stack {
        Stack {
            mss: u64::from(mss),
            small_queue: self.small_queue,
            small_queue_most: self.small_queue_most.as_u64(),
            overhead: self.small_queue_overhead.as_u64(),
            burst: self.segmentation_offload.as_u64(),
            paces: self.pacing,
            writes_ahead: self.write_ahead,
        }
    }

    /// Receive windows that receivers offer, if they are limited.
    pub fn offers(&self, mss: Bytes) -> Result<Option<Offers>, ParamError> {
        let Self { receive_window: first, receive_window_most: most, .. } = *self;
        if first.as_u64() == 0 {
            return Ok(None);
        }
        ParamError::unless(first >= mss, "receive_window", first, format!("0B, or the mss, {mss}, or more"))?;
        let at_least = format!("receive_window, {first}, or more");
        ParamError::unless(most >= first, "receive_window_most", most, at_least)?;
        // An acknowledgement has 16 bits for it.
        let [first, most] = [first, most].map(|bytes| (bytes.as_u64() / mss.as_u64()).min(65_535) as u32);
        Ok(Some(Offers { first, most, tick: self.timestamp_tick }))
    }

    /// Which acknowledgements receivers leave out.
    pub fn compresses(&self) -> Option<Compresses> {
        let (delay, slack) = (self.compression_delay, self.compression_slack);
        (self.compressed_acks > 0).then_some(Compresses { most: self.compressed_acks, delay, slack })
    }

    /// When there are tail loss probes.
    pub fn probing(&self) -> Option<Probing> {
        self.tail_loss_probe
            .then_some(Probing { wait: self.probe_wait, wait_for_one: self.probe_wait_for_one })
    }

    /// Why reductions are taken back.
    pub const fn undo_rules(&self) -> UndoRules {
        UndoRules {
            by_dsack: self.undo,
            eifel: self.eifel,
            frto: self.frto,
            tick: self.timestamp_tick,
            of_sacked: self.rack_echo_of_sacked,
        }
    }

    /// Reads and checks the keys of a configuration.
    pub fn checked(config: impl Into<Self>, sack: bool) -> Result<Self, ParamError> {
        let found = config.into();
        ParamError::unless(!found.rack || sack, "rack", found.rack, "false, unless sack is true")?;
        let window = found.rack_window;
        ParamError::unless(window > 0.0 && window <= 100.0, "rack_window", window, "above 0, at most 100")?;
        let acks = found.compressed_acks;
        ParamError::unless(acks == 0 || sack, "compressed_acks", acks, "0, unless sack is true")?;
        found.check_needs()?;
        Ok(found)
    }

    /// Checks the keys that depend on loss detection by time.
    fn check_needs(&self) -> Result<(), ParamError> {
        let needs = |key, is_off: bool, value: &dyn std::fmt::Display, off: &str| {
            ParamError::unless(is_off || self.rack, key, value, format!("{off}, unless rack is true"))
        };
        needs("tail_loss_probe", !self.tail_loss_probe, &self.tail_loss_probe, "false")?;
        needs("prr", !self.prr, &self.prr, "false")?;
        needs("timeout_keeps_network", !self.timeout_keeps_network, &self.timeout_keeps_network, "false")?;
        needs("grow_beyond_holes", !self.grow_beyond_holes, &self.grow_beyond_holes, "false")?;
        needs("undo", !self.undo, &self.undo, "false")?;
        needs("eifel", !self.eifel, &self.eifel, "false")?;
        needs("write_ahead", !self.write_ahead, &self.write_ahead, "false")?;
        needs("pacing", !self.pacing, &self.pacing, "false")?;
        needs("frto", !self.frto, &self.frto, "false")?;
        needs("fin", !self.fin, &self.fin, "false")?;
        let Self { segmentation_offload: offload, small_queue, .. } = *self;
        needs("small_queue", small_queue.is_zero(), &small_queue, "0s")?;
        let window = self.receive_window;
        needs("receive_window", window.as_u64() == 0, &window, "0B")?;
        let most = Bytes::new(1 << 30);
        ParamError::unless(offload <= most, "segmentation_offload", offload, format!("at most {most}"))?;
        let overhead = self.small_queue_overhead;
        ParamError::unless(overhead <= most, "small_queue_overhead", overhead, format!("at most {most}"))
    }
}
