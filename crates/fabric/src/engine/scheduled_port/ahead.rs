//! Prefetch of the memory of a port that packets will need: see [`crate::engine::ahead`].

use super::ScheduledPort;
use crate::engine::fetch::{fetch, fetch_first};
use crate::engine::pool::Pool;

impl ScheduledPort {
    /// So many bytes at its beginning are what nearly every packet needs.
    const HOT_BYTES: usize = 3 * 64;

    /// Asks for the port itself, and its first classes: see [`crate::engine::ahead`].
    #[inline]
    pub fn fetch(&self) {
        fetch_first(self, Self::HOT_BYTES);
    }

    /// Asks for what waits there.
    #[inline]
    pub fn fetch_waiting(&self, pool: &Pool) {
        for (class, queue) in self.classes.iter().enumerate() {
            queue.fetch_waiting(pool);
            if queue.waiting_ps >= self.rules.first(class).marks_from_ps
                && let Some(rare) = self.rare.get(class)
            {
                fetch(rare);
            }
        }
        if self.has_ahead {
            self.ahead.fetch();
        }
    }

    /// Asks for what waits behind the first packets: a window sends several.
    #[inline]
    pub fn fetch_second(&self, pool: &Pool) {
        self.classes.iter().for_each(|queue| queue.fetch_second(pool));
    }
}
