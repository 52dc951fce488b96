//! Packet counts of the whole fabric, by outcome.

/// Packets in the whole fabric, from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketCounts {
    /// Put into a host's queue, or into a switch's by its scheme.
    pub sent: u64,
    /// Taken out at a host, or at a switch whose scheme it was for.
    pub delivered: u64,
    /// Dropped or lost anywhere.
    pub dropped: u64,
    /// Packets of `dropped` for which a switch had no way to their destination: on no link's
    /// account. Without credits.
    pub unroutable: u64,
    /// Packets of `dropped` that waited for a node itself, whose queue was full: on no link's
    /// account. Without credits.
    pub input_dropped: u64,
    /// Credits of `dropped`: their loss is how a receiver learns of congestion.
    pub credits_dropped: u64,
    /// Arrivals at the far end of a link.
    pub hops: u64,
    /// Bytes of packets of schemes, on every link that they took.
    pub control_bytes: u64,
}

impl PacketCounts {
    /// Adds those of another part.
    pub fn add(&mut self, other: &Self) {
        let Self {
            sent,
            delivered,
            dropped,
            unroutable,
            input_dropped,
            credits_dropped,
            hops,
            control_bytes,
        } = *other;
        self.sent += sent;
        self.delivered += delivered;
        self.dropped += dropped;
        self.unroutable += unroutable;
        self.input_dropped += input_dropped;
        self.credits_dropped += credits_dropped;
        self.hops += hops;
        self.control_bytes += control_bytes;
    }
}
