//! On how many threads a run works, and in how many partitions: decided here, once, for every run.
//!
//! No result depends on it.

use std::fmt;
use std::num::NonZeroUsize;

use weft_fabric::{PREFETCH_FROM, SHARE_FROM, SimulationInput, SinglePartition};
use weft_transport::TransportSpec;
use weft_units::Span;

use crate::spec::Threads;

/// With fewer hosts, a run that says nothing of threads has one: what partitions cost is about what
/// a second thread gives (`weft bench --threads 1,2`).
pub const HOSTS_FOR_THREADS: usize = 1_024;
/// With less time in which partitions need nothing of each other, so do they.
pub const LOOKAHEAD_FOR_THREADS: Span = Span::from_ns(50);
/// How many partitions there are at most for each thread, so that none waits long for the one with
/// the most work.
pub const PARTITIONS_PER_THREAD: usize = 4;
/// So many hosts a partition has at least, if there are enough partitions for all threads: one with
/// fewer has little to do between two windows.
pub const HOSTS_PER_PARTITION: usize = 64;
/// On one thread, too, a fabric is cut into partitions from so many hosts on, if the cards of its
/// hosts pull what they send: these send at line rate from the first packet on, so a window has so
/// much to do that what a partition takes to come into the caches is worth it. `benches/rdma.py`
/// measures such a run; windows of TCP at a usual load have a tenth to do, and lose by it.
pub const HOSTS_FOR_PARTITIONS: usize = 1_024;

/// Cores on which a run may work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    /// All that the process may use; as many threads as `run.threads` says, if it says so.
    All,
    /// At most so many, whatever `run.threads` says.
    UpTo(NonZeroUsize),
    /// Exactly so, as far as the run may work in partitions, and in each window, however little
    /// there is to do, as if the fabric were far larger than the caches: for tests.
    Exactly {
        /// Partitions, at most.
        partitions: usize,
        /// Threads.
        threads: NonZeroUsize,
    },
    /// On one thread, in the partitions that so many threads would work on: to count how well these
    /// would share the work.
    Predict(NonZeroUsize),
}

/// How the engine is to go about a run, beyond partitions and threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    pub share_from: u64,
    pub prefetch_from: usize,
    pub balance_of: Option<NonZeroUsize>,
}

impl Cores {
    pub(crate) const fn tuning(self) -> Tuning {
        let usual = Tuning { share_from: SHARE_FROM, prefetch_from: PREFETCH_FROM, balance_of: None };
        match self {
            Self::All | Self::UpTo(_) => usual,
            Self::Exactly { .. } => Tuning { share_from: 0, prefetch_from: 0, ..usual },
            Self::Predict(threads) => Tuning { balance_of: Some(threads), ..usual },
        }
    }
}

/// On how many threads a run works, in how many partitions, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Threads; no more than there are partitions.
    pub threads: usize,
    /// Groups of nodes; 1 if the fabric is whole.
    pub partitions: usize,
    /// Why, in words.
    pub reason: String,
}

impl Decision {
    /// `{"threads", "partitions", "reason", "text"}`: `text` is all of it in words.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let Self { threads, partitions, reason } = self;
        serde_json::json!({
            "threads": threads, "partitions": partitions, "reason": reason, "text": self.to_string(),
        })
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, partitions, reason } = self;
        write!(f, "{threads} thread{}", if *threads == 1 { "" } else { "s" })?;
        if *partitions > 1 {
            write!(f, " on {partitions} partitions")?;
        }
        write!(f, ": {reason}")
    }
}

/// Properties of a fabric that decide on threads and partitions.
#[derive(Debug, Clone, Copy)]
struct Offer {
    hosts: usize,
    /// Into how many partitions it can be cut.
    components: usize,
    lookahead: Span,
    /// Whether cards pull what hosts send.
    is_rnic_scheduled: bool,
}

/// Decides for a run whose spec asks for these threads. What the input says of partitions and
/// threads does not matter.
pub fn decide(asked: Threads, cores: Cores, input: &SimulationInput<'_>) -> Decision {
    let hosts = input.topology.hosts;
    match input.finest_partitioning() {
        Err(reason) => whole(reason),
        Ok(partitioning) => {
            let is_rnic_scheduled = input.transport.all().any(TransportSpec::is_rnic_scheduled);
            let (components, lookahead) = (partitioning.partitions.len(), partitioning.lookahead);
            Offer { hosts, components, lookahead, is_rnic_scheduled }.decide(asked, cores)
        }
    }
}

/// On the whole fabric, for this reason.
fn whole(reason: SinglePartition) -> Decision {
    Decision { threads: 1, partitions: 1, reason: reason.to_string() }
}

impl Offer {
    fn decide(self, asked: Threads, cores: Cores) -> Decision {
        let (most, free) = match cores {
            Cores::All => (usize::MAX, available()),
            Cores::UpTo(most) => (most.get(), most.get()),
            Cores::Exactly { partitions, threads } => {
                let partitions = partitions.clamp(1, self.components);
                let reason = "as it was asked for".to_owned();
                return Decision { threads: threads.get().min(partitions), partitions, reason };
            }
            Cores::Predict(threads) => {
                return Decision { threads: 1, ..self.on(threads.get(), "as if there were more threads") };
            }
        };
        match asked {
            Threads::Fixed(count) if usize::from(count.get()) <= most => {
                self.on(count.get().into(), "as run.threads says")
            }
            Threads::Fixed(count) => {
                self.on(most, &format!("run.threads is {count}, for {}", of_cores(most)))
            }
            Threads::Automatic => self.automatic(free),
        }
    }

    /// Best division for so many cores.
    fn automatic(self, cores: usize) -> Decision {
        if self.hosts < HOSTS_FOR_THREADS {
            let reason =
                format!("with fewer than {HOSTS_FOR_THREADS} hosts, threads cost about what they give");
            return Decision { threads: 1, partitions: 1, reason };
        }
        if self.lookahead < LOOKAHEAD_FOR_THREADS {
            let reason = format!(
                "partitions need nothing of each other for {} only, which is less than {LOOKAHEAD_FOR_THREADS}",
                self.lookahead
            );
            return Decision { threads: 1, partitions: 1, reason };
        }
        self.on(cores, &of_cores(cores))
    }

    /// So many threads, or as many as there are components.
    fn on(self, threads: usize, why: &str) -> Decision {
        let threads = threads.clamp(1, self.components);
        let of_size = self.hosts / HOSTS_PER_PARTITION;
        let (partitions, reason) = if self.gains_by_partitions() {
            (
                of_size.clamp(threads, self.components),
                "hosts send at line rate, and partitions fit in caches".to_owned(),
            )
        } else if threads > 1 {
            let partitions = of_size.clamp(threads, PARTITIONS_PER_THREAD * threads).min(self.components);
            (partitions, format!("and partitions need nothing of each other for {}", self.lookahead))
        } else {
            return Decision { threads, partitions: 1, reason: why.to_owned() };
        };
        Decision { threads, partitions, reason: format!("{why}, {reason}") }
    }

    /// Whether partitions are worth their mail without a second thread: see
    /// [`HOSTS_FOR_PARTITIONS`].
    fn gains_by_partitions(self) -> bool {
        self.is_rnic_scheduled
            && self.hosts >= HOSTS_FOR_PARTITIONS
            && self.lookahead >= LOOKAHEAD_FOR_THREADS
    }
}

fn of_cores(count: usize) -> String {
    if count == 1 { "1 core".to_owned() } else { format!("{count} cores") }
}

/// How many cores this process may use; 1 if nobody knows.
fn available() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Prepared, SpecSource};

    const fn offer(hosts: usize, components: usize) -> Offer {
        Offer { hosts, components, lookahead: Span::from_us(1), is_rnic_scheduled: false }
    }

    fn cores(count: usize) -> Cores {
        Cores::UpTo(NonZeroUsize::new(count).unwrap())
    }

    fn threads_and_groups(decision: &Decision) -> (usize, usize) {
        (decision.threads, decision.partitions)
    }

    #[test]
    fn one_thread_works_on_the_whole_of_a_fabric() {
        for hosts in [4_095, 4_096] {
            let decision = offer(hosts, 32).decide(Threads::fixed(1).unwrap(), Cores::All);
            assert_eq!(threads_and_groups(&decision), (1, 1), "{decision}");
        }
    }

    #[test]
    fn threads_get_up_to_four_groups_each_of_64_hosts_or_more_as_far_as_there_are_pieces() {
        for (hosts, components, threads, expected) in [
            (8_192, 64, 2, (2, 8)),
            (8_192, 64, 8, (8, 32)),
            (1_024, 64, 8, (8, 16)),
            (128, 8, 2, (2, 2)),
            (128, 8, 4, (4, 4)),
            (8_192, 5, 2, (2, 5)),
            (8_192, 3, 8, (3, 3)),
        ] {
            let decision = offer(hosts, components).decide(Threads::fixed(threads).unwrap(), Cores::All);
            assert_eq!(threads_and_groups(&decision), expected, "{decision}");
        }
    }

    #[test]
    fn large_fabrics_of_rdma_are_cut_on_one_thread_too() {
        for (hosts, components, threads, expected) in [
            (1_023, 16, 1, (1, 1)),
            (1_024, 16, 1, (1, 16)),
            (8_192, 32, 1, (1, 32)),
            (8_192, 32, 2, (2, 32)),
        ] {
            let offer = Offer { is_rnic_scheduled: true, ..offer(hosts, components) };
            let decision = offer.decide(Threads::fixed(threads).unwrap(), Cores::All);
            assert_eq!(threads_and_groups(&decision), expected, "{decision}");
        }
        let short = Offer { is_rnic_scheduled: true, lookahead: Span::from_ns(49), ..offer(8_192, 32) };
        assert_eq!(threads_and_groups(&short.decide(Threads::fixed(1).unwrap(), Cores::All)), (1, 1));
    }

    #[test]
    fn without_a_number_small_fabrics_and_short_links_have_one_thread() {
        let short = Offer { lookahead: Span::from_ns(49), ..offer(10_000, 8) };
        for (offer, expected) in [
            (offer(1_023, 8), "1 thread: with fewer than 1024 hosts, threads cost about what they give"),
            (short, "1 thread: partitions need nothing of each other for 49ns only, which is less than 50ns"),
            (
                offer(1_024, 8),
                "2 threads on 8 partitions: 2 cores, and partitions need nothing of each other for 1us",
            ),
        ] {
            assert_eq!(offer.decide(Threads::Automatic, cores(2)).to_string(), expected);
        }
    }

    #[test]
    fn no_run_works_on_more_cores_than_it_is_given() {
        let asked = Threads::fixed(8).unwrap();
        assert_eq!(offer(128, 8).decide(asked, cores(2)).threads, 2);
        assert_eq!(offer(5_000, 8).decide(Threads::Automatic, cores(3)).threads, 3);
        assert_eq!(
            offer(128, 8).decide(asked, Cores::All).threads,
            8,
            "what is asked for wins over what there is"
        );
    }

    #[test]
    fn any_kind_of_fabric_is_judged_by_its_hosts_and_the_delay_of_its_links() {
        let folder = tempfile::tempdir().unwrap();
        let cables = "hosts = ['h0', 'h1', 'h2']\nswitches = ['s0', 's1', 's2']\nrate = '10Gbps'\ndelay = '50us'\n\
                      [[link]]\nfrom = 'h0'\nto = 's0'\n[[link]]\nfrom = 'h1'\nto = 's1'\n[[link]]\nfrom = 'h2'\nto = 's2'\n\
                      [[link]]\nfrom = ['s0', 's1']\nto = 's2'\n[[link]]\nfrom = 's0'\nto = 's1'\n";
        let file = folder.path().join("ring.toml");
        std::fs::write(&file, cables).unwrap();
        let graph = format!("{{ kind = 'graph', file = '{}' }}", file.display());
        for kind in ["{ kind = 'leaf-spine' }", "{ kind = 'fat-tree', k = 8 }", &graph] {
            let source = SpecSource::from_text("[traffic]\nflows = 2\nload = 0.2\n").with("fabric", kind);
            let decision = Prepared::new(&source).unwrap().decision(cores(2)).to_string();
            assert!(decision.starts_with("1 thread: with fewer than 1024 hosts"), "{kind}: {decision}");
        }
    }

    #[test]
    fn what_cannot_run_in_groups_says_why() {
        let decision = |keys: &[(&str, &str)]| {
            let text = "[traffic]\nload = 0.4\nflows = 20\nworkload = 'web-search'\n[run]\nthreads = 2\n";
            let source =
                keys.iter().fold(SpecSource::from_text(text), |source, (key, value)| source.with(key, value));
            Prepared::new(&source).unwrap().decision(Cores::All).to_string()
        };
        assert!(
            decision(&[]).starts_with("2 threads on 2 partitions: as run.threads says"),
            "{}",
            decision(&[])
        );
        let traced = decision(&[("run.trace_flows", "3"), ("run.sample_every", "1ms")]);
        assert!(traced.starts_with("2 threads on 2 partitions: as run.threads says"), "{traced}");
        let within = [("traffic.pairs", "anywhere"), ("traffic.load_of", "host-links")];
        assert_eq!(
            decision(&[("fabric", "{ kind = 'leaf-spine', leaves = 1 }"), within[0], within[1]]),
            "1 thread: all hosts are at one switch"
        );
    }
}
