//! Hosts with a CPU: what arrives waits for an interrupt and then for the host's CPU, and what is
//! sent waits for the CPU.
//!
//! A host has one CPU, which does one thing after the other: it works on what the stack sends as
//! soon as it is free, and on what has arrived from an interrupt until the ring is empty. The rules
//! are those of the cards of Linux hosts, so that both kinds of hosts may have the same numbers.

use std::collections::VecDeque;

use weft_packet::{Kind, Packet, PacketFlags};
use weft_units::{Bytes, Span, Time};

use super::event_set::EventKey;
use super::network::Network;
use super::pool::{PacketIndex, Pool};

/// Rules of the card and the CPU of a host. By default they take no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostCpuSpec {
    /// Packets that wait for the CPU or are worked on, at most; 0: any number.
    pub receive_ring: u32,
    /// Whether segments that the CPU takes together are joined before the transport sees them.
    pub receive_offload: bool,
    /// From the first packet that waits to the interrupt.
    pub interrupt_delay: Span,
    /// So many packets that wait are an interrupt before that; 0: however many.
    pub interrupt_packets: u32,
    /// CPU time of a packet, one that arrives as well as one that is sent.
    pub cpu_per_packet: Span,
    /// And each byte of it.
    pub cpu_per_byte: Span,
}

/// Packets that the CPU takes out of the ring at once, at most, if it joins them: the weight of a
/// poll in Linux.
const BATCH: usize = 64;
/// Bytes of joined segments at most: those of an IP packet.
const MOST_JOINED: u32 = 65_535;

impl HostCpuSpec {
    /// Whether nothing ever waits.
    pub const fn takes_no_time(&self) -> bool {
        self.interrupt_delay.is_zero() && !self.has_costs()
    }

    const fn has_costs(&self) -> bool {
        !(self.cpu_per_packet.is_zero() && self.cpu_per_byte.is_zero())
    }

    const fn cost_ps(&self, bytes: u16) -> u64 {
        self.cpu_per_packet.as_ps() + self.cpu_per_byte.as_ps() * bytes as u64
    }
}

/// When the CPU looks into the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Interrupt {
    /// Some time after the next packet.
    #[default]
    Idle,
    /// At this time, in ps.
    At(u64),
    /// As soon as it has nothing to send, until the ring is empty.
    Polling,
}

/// Work that the CPU is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Work {
    #[default]
    None,
    /// The first packets of the ring, so many.
    Receiving(usize),
    /// The first packet that is to be sent.
    Sending,
}

/// One host's card and CPU.
#[derive(Debug, Default)]
struct HostCpu {
    ring: VecDeque<PacketIndex>,
    outgoing: VecDeque<PacketIndex>,
    interrupt: Interrupt,
    work: Work,
    /// When that is done, in ps.
    done_ps: u64,
}

/// CPUs of the hosts of a part.
#[derive(Debug)]
pub struct HostCpus {
    rules: HostCpuSpec,
    hosts: Vec<HostCpu>,
    /// Room for what the CPU has worked on.
    batch: Vec<PacketIndex>,
}

impl HostCpus {
    /// CPUs of so many hosts.
    pub fn new(rules: HostCpuSpec, hosts: usize) -> Self {
        let hosts = std::iter::repeat_with(HostCpu::default).take(hosts).collect();
        Self { rules, hosts, batch: Vec::new() }
    }
}

impl Network<'_> {
    /// A packet reached its host: it waits in the ring there, or is dropped.
    #[inline(never)]
    pub fn arrive_at_machine(&mut self, index: PacketIndex) {
        let host = self.map.cable(self.pool[index].dst);
        let Some(HostCpus { rules, hosts, .. }) = self.host_cpus.as_deref_mut() else { return };
        let machine = &mut hosts[host as usize];
        if rules.receive_ring > 0 && machine.ring.len() >= rules.receive_ring as usize {
            return self.drop_at_input(u32::from(self.pool[index].dst.0), index);
        }
        machine.ring.push_back(index);
        let waiting = machine.ring.len();
        let is_full = rules.interrupt_packets > 0 && waiting >= rules.interrupt_packets as usize;
        match machine.interrupt {
            Interrupt::Polling => {}
            _ if is_full || rules.interrupt_delay.is_zero() => self.interrupt(host),
            Interrupt::At(_) => {}
            Interrupt::Idle => {
                let at = self.now.saturating_add(rules.interrupt_delay);
                machine.interrupt = Interrupt::At(at.as_ps());
                self.events.push_timer(at, EventKey::interrupt(host));
            }
        }
    }

    /// The time of an interrupt has come, unless there was one before.
    pub fn interrupt_is_due(&mut self, host: u32) {
        let now = self.now.as_ps();
        let machine = self.host_cpus.as_ref().and_then(|host_cpus| host_cpus.hosts.get(host as usize));
        if machine.is_some_and(|machine| machine.interrupt == Interrupt::At(now)) {
            self.interrupt(host);
        }
    }

    fn interrupt(&mut self, host: u32) {
        if let Some(host_cpus) = &mut self.host_cpus {
            let machine = &mut host_cpus.hosts[host as usize];
            machine.interrupt = Interrupt::Polling;
            if machine.work == Work::None {
                self.work_on_next(host);
            }
        }
    }

    /// A packet of a host goes into its output queue, when its CPU has worked on it.
    #[inline(never)]
    pub(super) fn leave_host(&mut self, link: u32, index: PacketIndex) {
        match &mut self.host_cpus {
            Some(host_cpus) if host_cpus.rules.has_costs() => {
                // A host's first link is its cable, so hosts have the numbers of their cables.
                let machine = &mut host_cpus.hosts[link as usize];
                machine.outgoing.push_back(index);
                if machine.work == Work::None {
                    self.work_on_next(link);
                }
            }
            _ => self.put_into_queue(link, index),
        }
    }

    /// The CPU of a host is free: it begins with what is next.
    fn work_on_next(&mut self, host: u32) {
        let Some(HostCpus { rules, hosts, .. }) = self.host_cpus.as_deref_mut() else { return };
        let (machine, pool) = (&mut hosts[host as usize], &self.pool);
        let cost = |index: &PacketIndex| rules.cost_ps(pool[*index].wire_bytes);
        let (work, takes_ps) = if let Some(first) = machine.outgoing.front() {
            (Work::Sending, cost(first))
        } else if machine.interrupt != Interrupt::Polling {
            (Work::None, 0)
        } else if machine.ring.is_empty() {
            machine.interrupt = Interrupt::Idle;
            (Work::None, 0)
        } else {
            let most = if rules.receive_offload { BATCH } else { 1 };
            let count = machine.ring.len().min(most);
            (Work::Receiving(count), machine.ring.iter().take(count).map(cost).sum())
        };
        machine.work = work;
        if work != Work::None {
            machine.done_ps = self.now.as_ps() + takes_ps;
            self.events.push_timer(Time::from_ps(machine.done_ps), EventKey::worked(host));
        }
    }

    /// The CPU of a host is through with what it worked on. What had arrived is handed out, to be
    /// given back with [`Self::begin_next`].
    pub fn end_work(&mut self, host: u32) -> Vec<PacketIndex> {
        let Some(HostCpus { rules, hosts, batch }) = self.host_cpus.as_deref_mut() else { return Vec::new() };
        let machine = &mut hosts[host as usize];
        let mut batch = std::mem::take(batch);
        match machine.work {
            Work::None => {}
            Work::Receiving(count) => {
                batch.extend(machine.ring.drain(..count));
                if rules.receive_offload {
                    join(&batch, &mut self.pool);
                }
            }
            Work::Sending => {
                if let Some(index) = machine.outgoing.pop_front() {
                    self.put_into_queue(host, index);
                }
            }
        }
        batch
    }

    /// The CPU goes on, after what it had worked on was taken in.
    pub fn begin_next(&mut self, host: u32, mut batch: Vec<PacketIndex>) {
        batch.clear();
        if let Some(host_cpus) = &mut self.host_cpus {
            host_cpus.batch = batch;
            host_cpus.hosts[host as usize].work = Work::None;
        }
        self.work_on_next(host);
    }

    /// When what a host has given its CPU to send will have left its cable, if the cable is free
    /// from `link_free` on: exactly, where one of the two is the slower one throughout.
    pub(super) fn sent_at(&self, link: u32, link_free: Time) -> Time {
        let machine = self.host_cpus.as_ref().and_then(|host_cpus| host_cpus.hosts.get(link as usize));
        let (Some(host_cpus), Some(machine)) = (&self.host_cpus, machine) else { return link_free };
        let Some(last) = machine.outgoing.back() else { return link_free };
        let bytes = |index: &PacketIndex| self.pool[*index].wire_bytes;
        let is_sending = usize::from(machine.work == Work::Sending);
        let waiting = machine.outgoing.iter().skip(is_sending);
        let cpu_ps: u64 = waiting.map(|index| host_cpus.rules.cost_ps(bytes(index))).sum();
        let all: u64 = machine.outgoing.iter().map(|index| u64::from(bytes(index))).sum();
        let service = |bytes: u64| self.pace(link).service_of(Bytes::new(bytes));
        let by_cpu = Time::from_ps(machine.done_ps + cpu_ps).saturating_add(service(u64::from(bytes(last))));
        by_cpu.max(link_free.saturating_add(service(all)))
    }
}

/// Tells of each segment whether the next one of its flow is joined to it: as far as they follow
/// each other without a gap, are of one size but the last, and have the same marks.
fn join(batch: &[PacketIndex], pool: &mut Pool) {
    let mut joined = [0u32; BATCH];
    for (place, &index) in batch.iter().enumerate() {
        let packet = pool[index];
        if packet.kind != Kind::Data {
            continue;
        }
        let bytes = joined[place].max(u32::from(packet.wire_bytes));
        let behind = &batch[place + 1..];
        let is_of_flow =
            |&&next: &&PacketIndex| pool[next].kind == Kind::Data && pool[next].flow == packet.flow;
        let Some(offset) = behind.iter().position(|next| is_of_flow(&next)) else { continue };
        let next = pool[behind[offset]];
        let sum = bytes + u32::from(next.wire_bytes);
        if follows(&packet, &next) && sum <= MOST_JOINED {
            joined[place + 1 + offset] = sum;
            pool[index].join();
        }
    }
}

/// Whether a segment is joined to the one before it.
fn follows(packet: &Packet, next: &Packet) -> bool {
    let marks = |packet: &Packet| {
        [PacketFlags::CE, PacketFlags::ECT, PacketFlags::CWR].map(|flag| packet.flags.has(flag))
    };
    next.seq == packet.seq + 1 && next.wire_bytes <= packet.wire_bytes && marks(packet) == marks(next)
}
