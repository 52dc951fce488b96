//! The fabric's numbers of a partition's links.

/// The fabric's numbers of links, and back. A network that is the whole fabric calls everything as
/// the fabric does.
#[derive(Debug, Default)]
pub struct Numbers {
    /// By link; empty where links have no others.
    of: Vec<u32>,
    /// By the fabric's number: the link here, or [`Numbers::NONE`]; empty where links have no
    /// others.
    here: Vec<u32>,
}

impl Numbers {
    /// No link.
    const NONE: u32 = u32::MAX;

    /// Numbers of the links of a partition of a fabric with so many.
    pub fn of_partition(links: &[u32], in_fabric: usize) -> Self {
        let mut numbers = Self { of: Vec::with_capacity(links.len()), here: vec![Self::NONE; in_fabric] };
        for &number in links {
            numbers.add(number);
        }
        numbers
    }

    /// One more link. What arrives by the link with this number arrives by this one from now on,
    /// and by no other.
    pub fn add(&mut self, number: u32) {
        self.here[number as usize] = self.of.len() as u32;
        self.of.push(number);
    }

    /// The fabric's number of a link.
    #[inline]
    pub fn of(&self, link: u32) -> u32 {
        self.of.get(link as usize).copied().unwrap_or(link)
    }

    /// The link by which arrives here what comes by the link with this number, if any does:
    /// otherwise there is none of what is returned.
    #[inline]
    pub fn here(&self, number: u32) -> u32 {
        if self.here.is_empty() {
            number
        } else {
            self.here.get(number as usize).copied().unwrap_or(Self::NONE)
        }
    }

    /// Bytes of memory that they take.
    pub const fn memory_bytes(&self) -> usize {
        (self.of.capacity() + self.here.capacity()) * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_by_a_link_that_was_added_arrives_by_it() {
        let mut numbers = Numbers::of_partition(&[2, 3, 7], 9);
        assert_eq!([0, 1, 2].map(|link| numbers.of(link)), [2, 3, 7]);
        assert_eq!([2, 3, 7].map(|number| numbers.here(number)), [0, 1, 2]);
        assert_eq!([0, 8, 9].map(|number| numbers.here(number)), [u32::MAX; 3], "nothing comes by these");
        // One of another partition, and one of this partition whose packets go through the
        // exchange.
        numbers.add(8);
        numbers.add(3);
        assert_eq!([8, 3, 7].map(|number| numbers.here(number)), [3, 4, 2]);
        assert_eq!([1, 3, 4].map(|link| numbers.of(link)), [3, 8, 3]);
    }

    #[test]
    fn the_whole_fabric_calls_links_as_they_are_called() {
        let numbers = Numbers::default();
        assert_eq!((numbers.of(12), numbers.here(12)), (12, 12));
    }
}
