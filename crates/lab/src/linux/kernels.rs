//! The kernels of a run: one, or several beside each other, each with some of the Linux hosts.
//!
//! What a host begins to send is felt by no other one before the lookahead. So all kernels may go
//! on until the first thing that any of them has to do, and the lookahead beyond that, without a
//! word from each other; and the fabric waits for the slowest.

use std::thread;

use weft_linux_hosts::{Error, Flow, FlowOptions, Guest, MAX_HOSTS, Machine, Program, Report, Sent};
use weft_packet::HostId;
use weft_units::{Span, Time};

/// The kernels of a run.
pub(super) struct Kernels {
    machines: Vec<Machine>,
    /// By kernel: its hosts, in its order.
    hosts: Vec<Vec<HostId>>,
    /// By host of the fabric: its kernel, and its number there.
    places: Vec<Option<(usize, usize)>>,
    lookahead: Span,
    /// By kernel: room for what it sends.
    sent: Vec<Vec<Sent>>,
}

/// Deals hosts to kernels, in order, about as many to each; a rack stays whole where no kernel gets
/// too many by that.
pub(super) fn deal(hosts: &[HostId], rack_of_host: &[u16], kernels: usize) -> Vec<Vec<HostId>> {
    let rack = |place: usize| rack_of_host[hosts[place].index()];
    let even = |kernel: usize| kernel * hosts.len() / kernels;
    let by_rack = |kernel: usize| {
        let begins = |&place: &usize| place == 0 || place == hosts.len() || rack(place) != rack(place - 1);
        let at = even(kernel);
        let (before, after) = ((0..=at).rfind(begins), (at..=hosts.len()).find(begins));
        let near = [before, after].into_iter().flatten().min_by_key(|place| place.abs_diff(at));
        near.unwrap_or(at)
    };
    let shares = |cut: &dyn Fn(usize) -> usize| -> Vec<Vec<HostId>> {
        (0..kernels).map(|kernel| hosts[cut(kernel)..cut(kernel + 1)].to_vec()).collect()
    };
    let whole = shares(&by_rack);
    let fits = whole.iter().all(|hosts| (1..=MAX_HOSTS).contains(&hosts.len()));
    if fits { whole } else { shares(&even) }
}

impl Kernels {
    /// Kernels with these hosts, of a fabric with so many.
    pub fn new(machines: Vec<Machine>, hosts: Vec<Vec<HostId>>, fabric: usize, lookahead: Span) -> Self {
        let mut places = vec![None; fabric];
        for (kernel, hosts) in hosts.iter().enumerate() {
            for (number, host) in hosts.iter().enumerate() {
                places[host.index()] = Some((kernel, number));
            }
        }
        let sent = machines.iter().map(|_| Vec::new()).collect();
        Self { machines, hosts, places, lookahead, sent }
    }

    /// A flow begins at a host, which is its sender.
    ///
    /// # Errors
    /// As [`Machine::start_flow_with`], and if that is no host of theirs.
    pub fn start_flow(
        &mut self,
        from: HostId,
        flow: Flow,
        options: &FlowOptions,
        at: Time,
    ) -> Result<(), Error> {
        let (kernel, host) = self.place(from, at)?;
        self.machines[kernel].start_flow_with(&Flow { host, ..flow }, options, at)
    }

    /// A program begins on a host, in place of the one that it names.
    ///
    /// # Errors
    /// As [`Machine::start_program`], and if that is no host of theirs.
    pub fn start_program(&mut self, on: HostId, program: Program, at: Time) -> Result<(), Error> {
        let (kernel, host) = self.place(on, at)?;
        self.machines[kernel].start_program(&Program { host, ..program }, at)
    }

    /// A program on a host gets a signal.
    ///
    /// # Errors
    /// As [`Machine::signal_program`], and if that is no host of theirs.
    pub fn signal_program(&mut self, on: HostId, id: u64, signal: u8, at: Time) -> Result<(), Error> {
        let (kernel, _) = self.place(on, at)?;
        self.machines[kernel].signal_program(id, signal, at)
    }

    /// A packet reaches a host.
    ///
    /// # Errors
    /// As [`ExternalHosts::deliver`], and if that is no host of theirs.
    pub fn deliver(&mut self, to: HostId, bytes: &[u8], at: Time) -> Result<(), Error> {
        let (kernel, host) = self.place(to, at)?;
        self.machines[kernel].deliver(host, bytes, at)
    }

    /// Runs what is before `until`, or less; appends what was sent, kernel by kernel. Returns the
    /// instant before which everything has run.
    ///
    /// # Errors
    /// One of them is gone, or says what no kernel says.
    pub fn advance(&mut self, until: Time, sent: &mut Vec<(HostId, Sent)>) -> Result<Time, Error> {
        let reached = match &mut self.machines[..] {
            [machine] => machine.advance(until, &mut self.sent[0])?,
            _ => self.advance_together(until)?,
        };
        for (hosts, mine) in self.hosts.iter().zip(&mut self.sent) {
            // The machine has checked their numbers.
            sent.extend(mine.drain(..).map(|packet| (hosts[packet.host], packet)));
        }
        Ok(reached)
    }

    fn advance_together(&mut self, until: Time) -> Result<Time, Error> {
        let window = self.next_event().map_or(Time::NEVER, |next| next.saturating_add(self.lookahead));
        let until = until.min(window);
        let has_work = |machine: &Machine| machine.next_event().is_some_and(|next| next < until);
        let (busy, idle): (Vec<_>, Vec<_>) =
            self.machines.iter_mut().zip(&mut self.sent).partition(|(machine, _)| has_work(machine));
        for (machine, sent) in idle {
            // Once: there is nothing before then.
            machine.advance(until, sent)?;
        }
        let mut busy = busy.into_iter();
        let Some((first, its)) = busy.next() else { return Ok(until) };
        thread::scope(|scope| {
            let others: Vec<_> =
                busy.map(|(machine, sent)| scope.spawn(move || advance_to(machine, until, sent))).collect();
            let mut result = advance_to(first, until, its);
            for other in others {
                result = result.and(other.join().unwrap_or(Err(Error::Gone)));
            }
            result
        })?;
        Ok(until)
    }

    /// Takes the reports of the kernels' agents since the last call, kernel by kernel, each with
    /// its kernel's number and the instant.
    pub fn take_reports(&mut self) -> Vec<(usize, Time, Report)> {
        let mut all = Vec::new();
        for (kernel, machine) in self.machines.iter_mut().enumerate() {
            all.extend(machine.reports().map(|(at, report)| (kernel, at, report)));
        }
        all
    }

    /// Ends them.
    pub fn stop(&mut self) {
        self.machines.iter_mut().for_each(Machine::stop);
    }

    /// When something happens next in any of them.
    pub fn next_event(&self) -> Option<Time> {
        self.machines.iter().filter_map(Guest::next_event).min()
    }

    /// CPU seconds that they have taken so far, with all of their processes.
    pub fn cpu_s(&self) -> f64 {
        self.machines.iter().map(Machine::cpu_s).sum()
    }

    /// Whether this is a Linux host.
    pub fn has(&self, host: HostId) -> bool {
        self.places[host.index()].is_some()
    }

    /// The host with this number in this kernel, which may have named any.
    pub fn host(&self, kernel: usize, number: usize) -> Option<HostId> {
        self.hosts[kernel].get(number).copied()
    }

    fn place(&self, host: HostId, at: Time) -> Result<(usize, usize), Error> {
        let why = "it is no Linux host";
        self.places[host.index()].ok_or(Error::Undeliverable { host: host.index(), bytes: 0, at, why })
    }
}

/// Runs all that is before `until`, be it felt by other hosts of this kernel or not: it is not
/// before then.
fn advance_to(machine: &mut Machine, until: Time, sent: &mut Vec<Sent>) -> Result<(), Error> {
    while machine.advance(until, sent)? < until {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(racks: &[u16], kernels: usize) -> Vec<usize> {
        let hosts: Vec<HostId> = (0..racks.len() as u16).map(HostId).collect();
        let dealt = deal(&hosts, racks, kernels);
        assert_eq!(dealt.concat(), hosts, "each host once, in order");
        dealt.iter().map(Vec::len).collect()
    }

    #[test]
    fn hosts_are_dealt_by_rack_where_that_leaves_none_without_and_none_with_too_many() {
        let racks = |count: u16, hosts: usize| -> Vec<u16> {
            (0..count).flat_map(|rack| std::iter::repeat_n(rack, hosts)).collect()
        };
        assert_eq!(sizes(&racks(4, 4), 1), [16]);
        assert_eq!(sizes(&racks(4, 4), 2), [8, 8]);
        assert_eq!(sizes(&racks(3, 4), 2), [4, 8], "in the midst of a rack: the end that comes first");
        assert_eq!(sizes(&racks(1, 6), 2), [3, 3], "one rack is split");
        assert_eq!(sizes(&racks(2, 256), 2), [256, 256]);
        assert_eq!(sizes(&racks(3, 200), 3), [200, 200, 200]);
        assert_eq!(sizes(&racks(3, 170), 2), [255, 255], "340 would be too many");
    }
}
