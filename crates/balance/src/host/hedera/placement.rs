//! Where large flows go: global first fit, and simulated annealing (Hedera, §4.3 and §4.4).

use std::collections::BTreeMap;

use weft_units::Stream;

/// A large flow that wants a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// The host that it goes to.
    pub dst: u16,
    /// Rate that the flow needs, in bit/s.
    pub bps: f64,
    /// The links of each path that it can take, by label.
    pub paths: Vec<Vec<Link>>,
    /// The label of the path that it was placed on before.
    pub placed: Option<u16>,
}

/// A link of the fabric, as the controller's map has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Number of the link.
    pub number: u32,
    /// Capacity of the link in bit/s.
    pub bps: f64,
}

/// Reserved rate of each link, in bit/s.
#[derive(Debug, Clone, Default)]
struct Reserved(BTreeMap<u32, f64>);

impl Reserved {
    fn of(&self, link: &Link) -> f64 {
        self.0.get(&link.number).copied().unwrap_or_default()
    }

    fn fits(&self, path: &[Link], bps: f64) -> bool {
        // One part in a million is rounding.
        path.iter().all(|link| self.of(link) + bps <= link.bps * (1.0 + 1e-6))
    }

    fn add(&mut self, path: &[Link], bps: f64) {
        for link in path {
            *self.0.entry(link.number).or_default() += bps;
        }
    }
}

/// Global first fit: a flow that was placed stays; a new one takes the first path whose links all
/// have room for it. What fits nowhere stays with ECMP (`None`).
pub fn first_fit(wishes: &[Wish]) -> Vec<Option<u16>> {
    let mut reserved = Reserved::default();
    for wish in wishes {
        if let Some(path) = wish.placed.and_then(|label| wish.paths.get(usize::from(label))) {
            reserved.add(path, wish.bps);
        }
    }
    let mut place = |wish: &Wish| {
        let stays = wish.placed.filter(|&label| usize::from(label) < wish.paths.len());
        stays.or_else(|| {
            let label = wish.paths.iter().position(|path| reserved.fits(path, wish.bps))?;
            reserved.add(&wish.paths[label], wish.bps);
            Some(label as u16)
        })
    };
    wishes.iter().map(&mut place).collect()
}

/// Simulated annealing. As in the paper, all flows to one host take one number (there a core
/// switch), which cuts the search space; a flow's label is that number modulo its paths. A step
/// exchanges the numbers of two hosts. The energy is what the links are asked for beyond their
/// capacity.
#[derive(Debug, Clone, Default)]
pub struct Annealing {
    /// By destination host: the numbers that the last search ended with, where the next one begins.
    numbers: BTreeMap<u16, u16>,
}

impl Annealing {
    /// Searches for `steps` steps, at temperatures from `steps` down to 1. The best that was met,
    /// never worse than the start.
    pub fn search(&mut self, wishes: &[Wish], steps: u32, random: &mut Stream) -> Vec<Option<u16>> {
        let most = wishes.iter().map(|wish| wish.paths.len()).max().unwrap_or(1).max(1) as u32;
        let mut hosts: Vec<u16> = wishes.iter().map(|wish| wish.dst).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let mut current: BTreeMap<u16, u16> = hosts
            .iter()
            .map(|&host| (host, *self.numbers.entry(host).or_insert_with(|| random.below(most) as u16)))
            .collect();
        let mut energy = Self::energy(wishes, &current);
        let (mut best, mut least) = (current.clone(), energy);
        // The paper's constant 0.5 x T0 weighs the energy, here in units of the largest link.
        let weight = 0.5 * f64::from(steps) / Self::largest_link(wishes);
        for temperature in (1..=steps).rev() {
            if least <= 0.0 {
                break;
            }
            let mut next = current.clone();
            Self::step(&mut next, &hosts, most, random);
            let candidate = Self::energy(wishes, &next);
            let accepted = candidate < energy
                || random.unit() < libm::exp((energy - candidate) * weight / f64::from(temperature));
            if accepted {
                (current, energy) = (next, candidate);
            }
            if energy < least {
                (best, least) = (current.clone(), energy);
            }
        }
        self.numbers.extend(best.iter().map(|(&host, &number)| (host, number)));
        wishes.iter().map(|wish| Self::label(wish, &best)).collect()
    }

    /// Exchanges the numbers of two hosts; of one host alone, with a random one.
    fn step(numbers: &mut BTreeMap<u16, u16>, hosts: &[u16], most: u32, random: &mut Stream) {
        let [a, b] = [(); 2].map(|()| hosts[random.below(hosts.len() as u32) as usize]);
        let [number_a, number_b] = [a, b].map(|host| numbers[&host]);
        if number_a == number_b {
            numbers.insert(a, random.below(most) as u16);
        } else {
            numbers.insert(a, number_b);
            numbers.insert(b, number_a);
        }
    }

    fn label(wish: &Wish, numbers: &BTreeMap<u16, u16>) -> Option<u16> {
        let paths = wish.paths.len() as u16;
        numbers.get(&wish.dst).filter(|_| paths > 0).map(|number| number % paths)
    }

    /// Bit/s beyond the links' capacities.
    fn energy(wishes: &[Wish], numbers: &BTreeMap<u16, u16>) -> f64 {
        let mut asked: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for wish in wishes {
            let Some(label) = Self::label(wish, numbers) else { continue };
            for link in &wish.paths[usize::from(label)] {
                asked.entry(link.number).or_insert((0.0, link.bps)).0 += wish.bps;
            }
        }
        asked.values().map(|(asked, capacity)| (asked - capacity).max(0.0)).sum()
    }

    fn largest_link(wishes: &[Wish]) -> f64 {
        let links = wishes.iter().flat_map(|wish| wish.paths.iter().flatten());
        links.map(|link| link.bps).fold(1.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use weft_units::Purpose;

    use super::*;

    /// A flow to `dst` over any of the links 0 up to `links`, each of 10.
    fn wish(dst: u16, bps: f64, links: u32) -> Wish {
        let paths = (0..links).map(|number| vec![Link { number, bps: 10.0 }]).collect();
        Wish { dst, bps, paths, placed: None }
    }

    #[test]
    fn first_fit_takes_the_first_path_with_room_and_leaves_what_fits_nowhere() {
        // 6 on link 0; 5 not beside it, so on 1; 4 beside the 6; 8 nowhere; 5 beside the 5.
        let wishes: Vec<Wish> = [6.0, 5.0, 4.0, 8.0, 5.0].into_iter().map(|bps| wish(1, bps, 2)).collect();
        assert_eq!(first_fit(&wishes), [Some(0), Some(1), Some(0), None, Some(1)]);
    }

    #[test]
    fn first_fit_leaves_a_placed_flow_where_it_is_and_counts_it_first() {
        let mut wishes = vec![wish(1, 6.0, 2), wish(2, 6.0, 2)];
        wishes[1].placed = Some(0);
        assert_eq!(first_fit(&wishes), [Some(1), Some(0)]);
    }

    #[test]
    fn annealing_finds_the_only_placement_without_excess_and_is_never_worse_than_its_start() {
        // Four flows of 10 to four hosts over four links of 10: one each is the only placement
        // without excess.
        let wishes: Vec<Wish> = (0..4).map(|dst| wish(dst, 10.0, 4)).collect();
        for seed in 0..20 {
            let mut random = Stream::new(seed, Purpose::HostScheme, 0);
            let mut annealing = Annealing::default();
            let few = annealing.search(&wishes, 5, &mut random);
            let excess = |labels: &[Option<u16>]| {
                let of = |label: u16| {
                    labels.iter().filter(|&&found| found == Some(label)).count().saturating_sub(1)
                };
                (0..4).map(of).sum::<usize>()
            };
            let many = annealing.search(&wishes, 1_000, &mut random);
            assert!(excess(&many) <= excess(&few), "the second search begins where the first ended");
            assert_eq!(excess(&many), 0, "seed {seed}: {many:?}");
        }
    }

    #[test]
    fn a_flow_without_paths_is_left_alone() {
        let mut random = Stream::new(1, Purpose::HostScheme, 0);
        assert_eq!(first_fit(&[wish(1, 1.0, 0)]), [None]);
        assert_eq!(Annealing::default().search(&[wish(1, 1.0, 0)], 10, &mut random), [None]);
        assert_eq!(Annealing::default().search(&[], 10, &mut random), []);
    }
}
