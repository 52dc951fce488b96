//! Rules of the classes of a port: limits, marks, and which packets they hold. Nearly all ports of
//! a fabric have the same, so it is in one place for all of them, which stays in the nearest cache.

use std::sync::Arc;

use weft_packet::{Class, Kind, Packet};
use weft_topology::{ClassSorting, ClassSpec, ClassesSpec, LinkSpec, QueueSpec};
use weft_units::Rate;

use super::classes::NEAR;
use crate::engine::admission::{Admission, Curve};
use crate::engine::link::Profile;

/// The most classes that a port may have: a port keeps one bit for each.
pub(super) const MOST: usize = u16::BITS as usize;

/// Rules of a class read first. As large as a port's state of it, so that one place tells both.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct FirstRules {
    /// A packet that takes no longer than this to send, in ps, is taken and not marked where
    /// nothing is queued.
    pub idle_takes_ps: u64,
    /// A packet that leaves less than this behind, in ps, gets no mark by it.
    pub marks_from_ps: u64,
    /// Whether packets are marked as they leave.
    pub marks_leaving: bool,
}

/// Other rules of a class.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(128))]
pub(super) struct ClassRules {
    /// Rule of admission.
    pub admission: Admission,
    /// Curve that marks packets that leave.
    pub leaving: Option<Curve>,
    /// Bytes that remain of a data packet that finds no room; 0 if it is dropped.
    pub trim_bytes: u16,
}

/// Rules of all classes of a port.
#[derive(Debug)]
pub(super) struct PortRules {
    sorting: Sorting,
    first: [FirstRules; MOST],
    classes: [ClassRules; MOST],
    /// The port's own classes, which are the last ones.
    own: Box<[ClassSpec]>,
    /// Origin of the rules.
    of: Origin,
}

/// Origin of the rules of a port.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Origin {
    /// Queue of the port, if the topology gives it no classes.
    pub queue: QueueSpec,
    /// The classes that it gives it.
    pub spec: Option<Arc<ClassesSpec>>,
    /// Whether pauses have a class.
    pub has_pauses: bool,
    /// How many credits wait at most, if they have a class.
    pub credits: Option<u32>,
    /// The rate at which full packets leave.
    pub drain: Rate,
}

impl Origin {
    /// Origin of the rules of a link with this profile.
    pub fn new(spec: &LinkSpec, has_pauses: bool, credits: Option<u32>, profile: &Profile) -> Self {
        Self { queue: spec.queue, spec: spec.classes.clone(), has_pauses, credits, drain: profile.drain }
    }

    /// The port's own classes: those that the topology gives it, or one.
    fn own(&self) -> Box<[ClassSpec]> {
        match self.spec.as_deref() {
            Some(spec) => spec.classes.as_slice().into(),
            None => Box::new([ClassSpec::plain(self.queue, 1)]),
        }
    }
}

impl ClassRules {
    /// Rules of a class that admits packets like this, and marks none that leave.
    const fn new(admission: Admission) -> Self {
        Self { admission, leaving: None, trim_bytes: 0 }
    }

    /// Rules of one of a port's own classes.
    fn own(class: &ClassSpec, profile: &Profile) -> Self {
        let leaving = Curve::of_leaving(&class.queue);
        let trim_bytes = class.trim_bytes.unwrap_or(0);
        Self { admission: Admission::own(&class.queue, profile.drain), leaving, trim_bytes }
    }

    /// Rules that are read first, and follow from the rest.
    fn first(&self, profile: &Profile) -> FirstRules {
        FirstRules {
            idle_takes_ps: self.admission.idle_takes_ps(),
            marks_from_ps: self.leaving.map_or(u64::MAX, |curve| Self::marks_from_ps(curve, profile)),
            marks_leaving: self.leaving.is_some(),
        }
    }

    /// Backlog that has to be left behind for a mark, in time of this profile.
    fn marks_from_ps(curve: Curve, profile: &Profile) -> u64 {
        let marks = |ps: u64| curve.may_hit(profile.bytes_in(ps));
        // The most significant bit first: the largest time at which it does not.
        let bits = (0..u64::BITS - 1).rev().map(|bit| 1 << bit);
        let longest = bits.fold(0, |ps, bit| if marks(ps | bit) { ps } else { ps | bit });
        if marks(0) { 0 } else { longest + 1 }
    }
}

impl PortRules {
    /// Those that follow from this; the profile has the same rate.
    fn new(of: Origin, profile: &Profile) -> Self {
        let sorting = of.spec.as_deref().map_or_else(ClassSorting::default, |spec| spec.sorting);
        let pauses = of.has_pauses.then(|| ClassRules::new(Admission::Waiting(u32::MAX)));
        let credits = of.credits.map(|most| ClassRules::new(Admission::Waiting(most)));
        let own = of.own();
        let mut classes = [ClassRules::new(Admission::Waiting(0)); MOST];
        let of_own = own.iter().map(|class| ClassRules::own(class, profile));
        let all = pauses.into_iter().chain(credits).chain(of_own);
        classes.iter_mut().zip(all).for_each(|(place, class)| *place = class);
        let first = classes.each_ref().map(|class| class.first(profile));
        Self { sorting: Sorting::new(of.has_pauses, of.credits.is_some(), sorting), first, classes, own, of }
    }

    /// Rules of a link with this profile, if these are the ones that it had with another one.
    pub fn follow(self: &Arc<Self>, profile: &Profile) -> Arc<Self> {
        if self.of.drain == profile.drain {
            return Arc::clone(self);
        }
        Arc::new(Self::new(Origin { drain: profile.drain, ..self.of.clone() }, profile))
    }

    /// Rules of a class that are read first.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub const fn first(&self, class: usize) -> &FirstRules {
        &self.first[class % MOST]
    }

    /// Other rules of a class.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub const fn class(&self, class: usize) -> &ClassRules {
        &self.classes[class % MOST]
    }

    /// The class that a packet belongs to.
    #[inline]
    pub fn class_of(&self, packet: &Packet) -> usize {
        usize::from(self.sorting.entry(packet) & !Sorting::OF_SCHEME)
    }

    /// The class that a packet belongs to, if it is a first one and no packet of a scheme.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn near_class_of(&self, packet: &Packet) -> Option<usize> {
        let entry = usize::from(self.sorting.entry(packet));
        (entry < NEAR).then_some(entry)
    }

    /// The port's own classes.
    pub fn own(&self) -> &[ClassSpec] {
        &self.own
    }
}

/// The rules of a network's ports: few, for nearly all ports have the same classes.
#[derive(Default)]
pub(super) struct KnownRules {
    known: Vec<Arc<PortRules>>,
}

impl KnownRules {
    /// So many that were found last are looked at again. Where more are in turn, equal ones are not
    /// one, and nothing else is different.
    const LOOKED_AT: usize = 16;

    /// Those that follow from this; the profile has the same rate.
    pub fn of(&mut self, origin: Origin, profile: &Profile) -> Arc<PortRules> {
        let mut last = self.known.iter().rev().take(Self::LOOKED_AT);
        if let Some(known) = last.find(|known| known.of == origin) {
            return Arc::clone(known);
        }
        let new = Arc::new(PortRules::new(origin, profile));
        self.known.push(Arc::clone(&new));
        new
    }
}

/// Which class a packet belongs to.
#[derive(Debug)]
struct Sorting {
    /// By the kind of the packet and the class of its flow; with [`Self::OF_SCHEME`], if it belongs
    /// to a scheme.
    classes: [u8; Self::PLACES],
}

impl Sorting {
    const PLACES: usize = 128;
    /// No class has this bit.
    const OF_SCHEME: u8 = 1 << 7;

    /// Where there are pauses or credits, they are the first classes; the port's own ones follow.
    fn new(has_pauses: bool, has_credits: bool, sorting: ClassSorting) -> Self {
        let before = u8::from(has_pauses) + u8::from(has_credits);
        let mut classes = [0; Self::PLACES];
        for kind in Kind::ALL {
            for flow in 0..Class::COUNT {
                let class = match kind {
                    Kind::Pause if has_pauses => 0,
                    Kind::Credit if has_credits => u8::from(has_pauses),
                    _ => before + Self::own(kind, flow, sorting),
                };
                let of_scheme = if kind.is_of_scheme() { Self::OF_SCHEME } else { 0 };
                classes[kind as usize * Class::COUNT + flow] = class | of_scheme;
            }
        }
        Self { classes }
    }

    /// Which of the port's own classes holds packets of this kind, of flows of this class.
    fn own(kind: Kind, flow: usize, sorting: ClassSorting) -> u8 {
        let with_flow = sorting.of_flows[flow];
        match kind {
            Kind::Control | Kind::Message | Kind::Pause => sorting.schemes,
            Kind::Ack | Kind::Nack | Kind::SenderAck => sorting.acks.unwrap_or(with_flow),
            Kind::Cnp => sorting.notifications.unwrap_or(with_flow),
            Kind::Trimmed => sorting.trimmed.unwrap_or(with_flow),
            Kind::Data | Kind::Syn | Kind::SynAck | Kind::Credit | Kind::CreditRequest | Kind::CreditStop => {
                with_flow
            }
        }
    }

    #[inline]
    const fn entry(&self, packet: &Packet) -> u8 {
        self.classes[packet.kind_and_class() as usize % Self::PLACES]
    }
}
