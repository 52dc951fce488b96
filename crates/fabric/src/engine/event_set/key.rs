//! Order of the events of one instant.

/// Who an event is for. The number orders events at the same instant: never renumber, only append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey(u64);

/// Kind of event that an [`EventKey`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// The packet at the head of a link reaches the far end.
    Arrival = 0,
    /// A link changes its state.
    Fault = 1,
    /// The whole fabric has learned of a fault.
    Reroute = 2,
    /// The next flow starts.
    FlowStart = 3,
    /// A sender's timer.
    Sender = 4,
    /// A receiver's timer.
    Receiver = 5,
    /// A host scheme's timer for a flow, at the sending end.
    SenderSchemeTimer = 6,
    /// A host scheme's timer for a flow, at the receiving end.
    ReceiverSchemeTimer = 7,
    /// A timer of a switch's scheme, or, behind all these, of a switch that is a program.
    Switch = 8,
    /// A look at all links.
    Sample = 9,
    /// A timer of a host's scheme, or, behind all these, of a host's card or CPU.
    Host = 10,
    /// A port of the second kind may send its next packet.
    Port = 11,
    /// An external host begins to send a packet.
    Guest = 12,
    /// A port obeys a pause.
    Pause = 13,
    /// A look for pauses that wait for each other.
    Deadlock = 14,
    /// The cable of a host's RDMA card can take a packet, or a queue pair's time has come.
    Card = 15,
    /// A flow that waited for others starts, or a computation is done, or ready for its turn.
    /// Behind all others of its instant: what they bring may be what was waited for.
    Ready = 16,
}

impl EventKind {
    pub(super) const ALL: [Self; 17] = [
        Self::Arrival,
        Self::Fault,
        Self::Reroute,
        Self::FlowStart,
        Self::Sender,
        Self::Receiver,
        Self::SenderSchemeTimer,
        Self::ReceiverSchemeTimer,
        Self::Switch,
        Self::Sample,
        Self::Host,
        Self::Port,
        Self::Guest,
        Self::Pause,
        Self::Deadlock,
        Self::Card,
        Self::Ready,
    ];
}

impl EventKey {
    const KIND_SHIFT: u32 = 56;
    /// Before any other of its instant.
    pub const FIRST: Self = Self(0);
    /// After any other of its instant.
    pub const LAST: Self = Self(u64::MAX);
    const NODE_SHIFT: u32 = 32;
    /// Bit beside a node's number: the event is no timer of its scheme. There are fewer nodes.
    const OF_MACHINE: u32 = 1 << 23;

    /// The event of this kind for the entity with this number.
    #[inline]
    pub const fn new(kind: EventKind, entity: u32) -> Self {
        Self((kind as u64) << Self::KIND_SHIFT | entity as u64)
    }

    /// The timer with this token of the scheme of a switch, which must be below 2^24.
    pub const fn switch_timer(switch: u32, token: u32) -> Self {
        let timer = Self::new(EventKind::Switch, token);
        Self(timer.0 | (switch as u64) << Self::NODE_SHIFT)
    }

    /// The timer with this token of the scheme of a host.
    pub const fn host_timer(host: u16, token: u32) -> Self {
        let timer = Self::new(EventKind::Host, token);
        Self(timer.0 | (host as u64) << Self::NODE_SHIFT)
    }

    /// The process of this switch has forwarded a packet. Before ports send: what it forwards may
    /// be among that.
    pub const fn forwarded(switch: u32) -> Self {
        Self::switch_timer(switch | Self::OF_MACHINE, 0)
    }

    /// The card of this host interrupts its CPU.
    pub const fn interrupt(host: u32) -> Self {
        Self::at_host(host | Self::OF_MACHINE, 0)
    }

    /// The CPU of this host is through with what it worked on.
    pub const fn worked(host: u32) -> Self {
        Self::at_host(host | Self::OF_MACHINE, 1)
    }

    const fn at_host(node: u32, token: u32) -> Self {
        Self(Self::new(EventKind::Host, token).0 | (node as u64) << Self::NODE_SHIFT)
    }

    /// The switch or host whose process, card or CPU it is of, if it is of one and not of a scheme.
    pub const fn machine(self) -> Option<u32> {
        let node = self.node();
        if node & Self::OF_MACHINE == 0 { None } else { Some(node & !Self::OF_MACHINE) }
    }

    /// Rank among others, as near to their order as 32 bits can be: of two keys the lesser has no
    /// greater rank. The rank of an arrival is the number of its link, and no timer has that rank.
    #[inline]
    pub const fn rank(self) -> u32 {
        const ENTITY_BITS: u32 = 26;
        const LAST: u64 = (1 << ENTITY_BITS) - 1;
        let kind = (self.0 >> Self::KIND_SHIFT) as u32;
        if kind == EventKind::Arrival as u32 {
            return self.entity();
        }
        let of_kind = self.0 & ((1 << Self::KIND_SHIFT) - 1);
        1 << 31 | kind << ENTITY_BITS | (if of_kind < LAST { of_kind } else { LAST }) as u32
    }

    /// Kind of the event.
    #[inline]
    pub const fn kind(self) -> EventKind {
        EventKind::ALL[(self.0 >> Self::KIND_SHIFT) as usize]
    }

    /// Number of the entity; the token of a scheme's timer.
    #[inline]
    pub const fn entity(self) -> u32 {
        self.0 as u32
    }

    /// The switch or host of a scheme's timer.
    pub const fn node(self) -> u32 {
        (self.0 >> Self::NODE_SHIFT) as u32 & 0x00ff_ffff
    }
}
