//! DRILL(d, m): each packet takes the shortest queue of d sampled and m remembered ones (Ghorbani et al., SIGCOMM
//! 2017).
//!
//! For every packet: draw `d` different next hops at random, add the `m` that were least loaded last time, send the
//! packet to the one with the fewest bytes queued, and remember the `m` least loaded of them all.
//!
//! Ties: a remembered port wins over a sampled one, and among the sampled ones the first drawn wins, which makes the
//! draw decide. A remembered port that is no next hop (it failed, or belongs to another group) is left out of this
//! choice and drops out of the memory. Loads are compared in bytes, not in time to drain: a slow port counts as a fast
//! one, as with queue lengths in the paper.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Packet;
use weft_units::Stream;

use crate::registry::Parameters;
use crate::{NextHops, ParameterError, PortId, SwitchBalancer, SwitchContext, SwitchInfo};

/// Parameters of DRILL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Next hops sampled for each packet, all different: 1 to 16. Source: DRILL(2, 1) as cited by TR and LBT; public
    /// ports default to 2.
    pub d: u8,
    /// Least loaded ports remembered from one packet to the next: 0 to 8. Source: DRILL(2, 1) as cited by TR and LBT.
    pub m: u8,
    /// Who shares a memory: `switch`, one for all packets of a switch; `rack`, one for each destination rack. Source:
    /// MEET and TR speak of one recorded port at a switch; a public port keeps one for each destination.
    pub memory: Memory,
}

/// Who shares a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// All packets of a switch.
    #[default]
    Switch,
    /// All packets of a switch to one rack.
    Rack,
}

const MAX_SAMPLES: usize = 16;
const MAX_REMEMBERED: usize = 8;

impl Default for Params {
    fn default() -> Self {
        Self { d: 2, m: 1, memory: Memory::Switch }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        if !(1..=MAX_SAMPLES).contains(&self.d.into()) {
            return Err(ParameterError { key: "d", found: self.d.to_string(), allowed: "1 to 16" });
        }
        if usize::from(self.m) > MAX_REMEMBERED {
            return Err(ParameterError { key: "m", found: self.m.to_string(), allowed: "0 to 8" });
        }
        Ok(())
    }
}

/// The least loaded candidates so far, least first.
struct Best {
    load: [u64; MAX_REMEMBERED],
    index: [u16; MAX_REMEMBERED],
    len: usize,
    keep: usize,
}

impl Best {
    #[inline]
    fn new(keep: usize) -> Self {
        Self { load: [u64::MAX; MAX_REMEMBERED], index: [0; MAX_REMEMBERED], len: 0, keep }
    }

    /// Puts a candidate behind those that are no more loaded than it. A port enters once.
    #[inline]
    fn offer(&mut self, index: u16, load: u64) {
        if self.index[..self.len].contains(&index) {
            return;
        }
        let mut at = self.len;
        while at > 0 && self.load[at - 1] > load {
            at -= 1;
        }
        if at == self.keep {
            return;
        }
        self.len = (self.len + 1).min(self.keep);
        for slot in (at + 1..self.len).rev() {
            (self.load[slot], self.index[slot]) = (self.load[slot - 1], self.index[slot - 1]);
        }
        (self.load[at], self.index[at]) = (load, index);
    }
}

/// Draws numbers below a bound, none of them twice, every order equally likely.
struct Draws {
    taken: [u16; MAX_SAMPLES],
    len: usize,
}

impl Draws {
    #[inline]
    fn new() -> Self {
        Self { taken: [0; MAX_SAMPLES], len: 0 }
    }

    /// The next number; fewer than `bound` must have been drawn.
    #[inline]
    fn next(&mut self, random: &mut Stream, bound: usize) -> u16 {
        // A number among those that are left; each one that is taken and not above it moves it up by one.
        let mut draw = random.below((bound - self.len) as u32) as u16;
        let mut below = 0;
        for &taken in &self.taken[..self.len] {
            let passed = taken <= draw;
            draw += u16::from(passed);
            below += usize::from(passed);
        }
        if self.len < MAX_SAMPLES {
            for slot in (below..self.len).rev() {
                self.taken[slot + 1] = self.taken[slot];
            }
            self.taken[below] = draw;
            self.len += 1;
        }
        draw
    }
}

/// The first two of [`Draws`], from the same random numbers. `bound` must be at least 2.
#[inline]
fn draw_two(random: &mut Stream, bound: u32) -> [usize; 2] {
    let first = random.below(bound);
    let second = random.below(bound - 1);
    [first as usize, (second + u32::from(first <= second)) as usize]
}

/// DRILL at one switch.
#[derive(Debug, Clone)]
pub struct Drill {
    samples: usize,
    remembered: usize,
    per_rack: bool,
    /// `remembered` ports for each memory; [`Drill::NOTHING`] where there is none.
    memory: Box<[u16]>,
}

impl Drill {
    /// Not a port: fabrics have fewer.
    const NOTHING: u16 = u16::MAX;
}

/// The index of the shortest queue of `samples` next hops and a remembered one.
#[inline]
fn shortest<C: SwitchContext + ?Sized>(
    cx: &mut C,
    packet: &Packet,
    hops: &NextHops<'_>,
    samples: usize,
    remembered: Option<PortId>,
) -> usize {
    let shorter = |cx: &C, best: (usize, u64), index: usize| {
        let load = cx.backlog_bytes_for(hops.ports[index], packet);
        if load < best.1 { (index, load) } else { best }
    };
    let known = remembered.and_then(|port| hops.index_of(port));
    let mut best =
        known.map_or((0, u64::MAX), |index| (index, cx.backlog_bytes_for(hops.ports[index], packet)));
    let choices = hops.ports.len();
    if samples == 2 && choices >= 2 {
        // The default, without a list of what is taken: a third of the time.
        let [first, second] = draw_two(cx.random(), choices as u32);
        return shorter(cx, shorter(cx, best, first), second).0;
    }
    let mut draws = Draws::new();
    for _ in 0..samples.min(choices) {
        let index = draws.next(cx.random(), choices);
        best = shorter(cx, best, usize::from(index));
    }
    best.0
}

/// As [`shortest`], with several remembered ports, which are replaced.
fn shortest_of_many<C: SwitchContext + ?Sized>(
    cx: &mut C,
    packet: &Packet,
    hops: &NextHops<'_>,
    samples: usize,
    memory: &mut [u16],
) -> usize {
    let mut best = Best::new(memory.len());
    for &port in memory.iter() {
        if let Some(index) = hops.index_of(PortId(port)) {
            best.offer(index as u16, cx.backlog_bytes_for(PortId(port), packet));
        }
    }
    let mut draws = Draws::new();
    for _ in 0..samples.min(hops.ports.len()) {
        let index = draws.next(cx.random(), hops.ports.len());
        best.offer(index, cx.backlog_bytes_for(hops.ports[usize::from(index)], packet));
    }
    memory.fill(Drill::NOTHING);
    for (slot, &index) in memory.iter_mut().zip(&best.index[..best.len]) {
        *slot = hops.ports[usize::from(index)].0;
    }
    usize::from(best.index[0])
}

impl SwitchBalancer for Drill {
    type Params = Params;

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let (remembered, per_rack) = (usize::from(params.m), params.memory == Memory::Rack);
        let memories = if per_rack { usize::from(info.racks) } else { 1 };
        Self {
            samples: usize::from(params.d),
            remembered,
            per_rack,
            memory: vec![Self::NOTHING; memories * remembered].into_boxed_slice(),
        }
    }

    #[inline(never)]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        let first = if self.per_rack { usize::from(hops.rack) * self.remembered } else { 0 };
        let memory = &mut self.memory[first..first + self.remembered];
        match memory {
            [] => shortest(cx, packet, hops, self.samples, None),
            [port] => {
                let index = shortest(cx, packet, hops, self.samples, Some(PortId(*port)));
                *port = hops.ports[index].0;
                index
            }
            ports => shortest_of_many(cx, packet, hops, self.samples, ports),
        }
    }

    fn settings(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        set("samples", 0, self.samples as u64);
        set("remembered", 0, self.remembered as u64);
        set("is_per_rack", 0, u64::from(self.per_rack));
    }

    /// Two bytes a remembered port.
    fn state_bytes(&self) -> u64 {
        self.memory.len() as u64 * 2
    }
}

#[cfg(test)]
mod tests {
    use weft_packet::{Class, PacketFlags};

    use crate::testing::{CHI_SQUARE_7, FakeSwitch, Group, RACKS, chi_square, packet, with};

    use super::*;

    fn drill(d: u8, m: u8, memory: Memory) -> Drill {
        Drill::new(&Params { d, m, memory }, &FakeSwitch::new(8, 1).info(0, 0, 1))
    }

    fn choose(scheme: &mut Drill, switch: &mut FakeSwitch, group: &Group) -> u16 {
        group.ports[scheme.choose(switch, &mut packet(1), &group.hops())].0
    }

    #[test]
    fn the_least_loaded_come_first_and_ties_keep_their_order() {
        let mut best = Best::new(3);
        for (index, load) in [(4, 50), (1, 20), (2, 20), (4, 0), (3, 70), (5, 20), (6, 19)] {
            best.offer(index, load);
        }
        // 4 entered with 50 and is not taken twice; 3 never fits; 5 ties with 1 and 2 and comes after both.
        assert_eq!((&best.index[..3], &best.load[..3]), (&[6, 1, 2][..], &[19, 20, 20][..]));
    }

    #[test]
    fn draws_are_different_and_every_ordered_pair_is_equally_likely() {
        let mut random = Stream::new(3, weft_units::Purpose::SwitchBalancer, 0);
        let mut pairs = [0u64; 16];
        for _ in 0..120_000 {
            let mut draws = Draws::new();
            let [a, b] = [0; 2].map(|_| usize::from(draws.next(&mut random, 4)));
            pairs[a * 4 + b] += 1;
        }
        assert!((0..4).all(|i| pairs[i * 4 + i] == 0), "a port was drawn twice");
        let pairs: Vec<u64> = pairs.into_iter().filter(|&count| count > 0).collect();
        // Twelve ordered pairs: 31.26 is the 0.1 % point with 11 degrees of freedom.
        let chi = chi_square(&pairs, &[1; 12]);
        assert!(chi < 31.26, "chi-square {chi}: {pairs:?}");
    }

    #[test]
    fn sampling_every_port_finds_the_shortest_queue() {
        let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(0..8));
        let mut scheme = drill(16, 0, Memory::Switch);
        for shortest in 0..8u16 {
            switch.backlogs = (0..8).map(|port| if port == shortest { 10 } else { 11 }).collect();
            assert_eq!(choose(&mut scheme, &mut switch, &group), shortest);
        }
    }

    #[test]
    fn a_packet_takes_the_queue_that_is_shortest_for_its_class() {
        let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(0..8));
        // Low priority waits on all ports but 7; high priority, on all but 2.
        switch.backlogs = vec![9_000, 9_000, 9_000, 9_000, 9_000, 9_000, 9_000, 1_500];
        switch.ahead.insert(Class::Short, vec![1_500, 1_500, 0, 1_500, 1_500, 1_500, 1_500, 1_500]);
        for mut scheme in [drill(16, 0, Memory::Switch), drill(16, 2, Memory::Rack)] {
            for (class, shortest) in [(Class::Short, 2), (Class::Long, 7)] {
                let mut packet = with(packet(1), |packet| packet.flags = PacketFlags::of_class(class));
                assert_eq!(scheme.choose(&mut switch, &mut packet, &group.hops()), shortest);
            }
        }
    }

    #[test]
    fn memory_finds_the_shortest_queue_and_keeps_to_it() {
        let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(0..8));
        switch.backlogs = vec![9_000, 9_000, 9_000, 1_500, 9_000, 9_000, 9_000, 9_000];
        let mut scheme = drill(2, 1, Memory::Switch);
        let choices: Vec<u16> = (0..100).map(|_| choose(&mut scheme, &mut switch, &group)).collect();
        let found = choices.iter().position(|&port| port == 3).expect("100 pairs of 8 contain each port");
        assert!(choices[found..].iter().all(|&port| port == 3));
        // Equal queues: the remembered port wins the tie, so packets do not wander for nothing.
        switch.backlogs = vec![0; 8];
        assert!((0..100).all(|_| choose(&mut scheme, &mut switch, &group) == 3));
    }

    #[test]
    fn without_memory_equal_queues_are_chosen_evenly() {
        let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(0..8));
        let (mut scheme, mut counts) = (drill(2, 0, Memory::Switch), [0; 8]);
        for _ in 0..80_000 {
            counts[usize::from(choose(&mut scheme, &mut switch, &group))] += 1;
        }
        let chi = chi_square(&counts, &[1; 8]);
        assert!(chi < CHI_SQUARE_7, "chi-square {chi}: {counts:?}");
    }

    #[test]
    fn two_choices_take_the_longest_queue_least() {
        // d = 2 of 4 ports, loads 0 < 1 < 2 < 3: the port of rank r wins the pairs with longer ones, (3 - r) of 6.
        let (mut switch, group) = (FakeSwitch::new(4, 1), Group::of(0..4));
        switch.backlogs = vec![0, 1, 2, 3];
        let (mut scheme, mut counts) = (drill(2, 0, Memory::Switch), [0; 4]);
        for _ in 0..60_000 {
            counts[usize::from(choose(&mut scheme, &mut switch, &group))] += 1;
        }
        // 13.82 is the 0.1 % point with 2 degrees of freedom.
        let chi = chi_square(&counts[..3], &[3, 2, 1]);
        assert!(chi < 13.82 && counts[3] == 0, "chi-square {chi}: {counts:?}");
    }

    #[test]
    fn a_remembered_port_that_is_no_next_hop_is_not_chosen() {
        let (mut switch, all) = (FakeSwitch::new(8, 1), Group::of(0..8));
        let mut scheme = drill(2, 1, Memory::Switch);
        let gone = choose(&mut scheme, &mut switch, &all);
        switch.backlogs = vec![1_500; 8];
        switch.backlogs[usize::from(gone)] = 0;
        let rest = Group::of((0..8).filter(|&port| port != gone));
        for _ in 0..200 {
            assert_ne!(choose(&mut scheme, &mut switch, &rest), gone);
        }
    }

    #[test]
    fn one_remembered_port_is_the_general_case_with_one() {
        let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(0..8));
        let mut memory = [Drill::NOTHING];
        for step in 0..3_000u64 {
            switch.backlogs[(step % 8) as usize] = step * step % 7 * 1_500;
            let samples = (step % 3 + 1) as usize;
            let remembered = (memory[0] != Drill::NOTHING).then_some(PortId(memory[0]));
            let packet = packet(0);
            let one = shortest(&mut switch.clone(), &packet, &group.hops(), samples, remembered);
            let many = shortest_of_many(&mut switch, &packet, &group.hops(), samples, &mut memory);
            assert_eq!((one, memory[0]), (many, group.ports[many].0));
        }
    }

    #[test]
    fn ports_that_are_no_next_hops_drop_out_of_the_memory() {
        let (mut switch, mut scheme) = (FakeSwitch::new(8, 1), drill(1, 2, Memory::Switch));
        for _ in 0..50 {
            choose(&mut scheme, &mut switch, &Group::of([0, 1]));
        }
        assert!(scheme.memory.iter().all(|&port| port < 2), "{:?}", scheme.memory);
        let sampled = choose(&mut scheme, &mut switch, &Group::of([5, 6]));
        assert_eq!(*scheme.memory, [sampled, Drill::NOTHING]);
    }

    #[test]
    fn a_memory_by_rack_is_not_read_for_another_rack() {
        let (mut switch, mut group) = (FakeSwitch::new(8, 1), Group::of(0..8));
        let mut scheme = drill(2, 1, Memory::Rack);
        assert_eq!(scheme.state_bytes(), u64::from(RACKS) * 2);
        let first = choose(&mut scheme, &mut switch, &group);
        group.rack = 2;
        let others: Vec<u16> = (0..50)
            .map(|_| {
                scheme.memory[2] = Drill::NOTHING;
                choose(&mut scheme, &mut switch, &group)
            })
            .collect();
        assert!(others.iter().any(|&port| port != first), "rack 2 chooses for itself");
        group.rack = 1;
        assert_eq!(choose(&mut scheme, &mut switch, &group), first, "rack 1 remembers");
    }

    #[test]
    fn more_samples_than_can_be_kept_are_refused() {
        let refused = |d, m| Params { d, m, ..Params::default() }.validate().unwrap_err().to_string();
        assert_eq!(refused(0, 1), "d is 0: 1 to 16");
        assert_eq!(refused(17, 1), "d is 17: 1 to 16");
        assert_eq!(refused(2, 9), "m is 9: 0 to 8");
    }
}
