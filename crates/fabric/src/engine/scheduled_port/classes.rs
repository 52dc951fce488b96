//! The classes of a port, where they are in memory.

use std::ops::{Index, IndexMut};

use super::class::ClassQueue;

/// So many classes stand in the port itself: few ports have more.
pub(super) const NEAR: usize = 2;

/// The classes of a port. The first ones are in the port, whose place tells theirs: in a large
/// fabric memory is not waited for twice.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Classes {
    near: [ClassQueue; NEAR],
    more: Box<[ClassQueue]>,
}

/// Marks a branch as hardly ever taken, for the compiler: it stands apart then.
#[cold]
const fn rarely() {}

impl Classes {
    /// These, in order.
    pub fn new(mut classes: impl Iterator<Item = ClassQueue>) -> Self {
        let near = std::array::from_fn(|_| classes.next().unwrap_or(ClassQueue::EMPTY));
        Self { near, more: classes.collect() }
    }

    /// The one with this number. Of a port with one class, the second is one in which nothing is.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn get(&self, class: usize) -> Option<&ClassQueue> {
        if class < NEAR {
            return Some(&self.near[class]);
        }
        rarely();
        self.more.get(class - NEAR)
    }

    /// The queue of a class, to be changed.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn get_mut(&mut self, class: usize) -> Option<&mut ClassQueue> {
        if class < NEAR {
            return Some(&mut self.near[class]);
        }
        rarely();
        self.more.get_mut(class - NEAR)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &ClassQueue> {
        self.near.iter().chain(&self.more)
    }

    /// All class queues in order, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut ClassQueue> {
        self.near.iter_mut().chain(&mut self.more)
    }
}

impl Index<usize> for Classes {
    type Output = ClassQueue;

    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn index(&self, class: usize) -> &ClassQueue {
        if class < NEAR {
            return &self.near[class];
        }
        rarely();
        &self.more[class - NEAR]
    }
}

impl IndexMut<usize> for Classes {
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn index_mut(&mut self, class: usize) -> &mut ClassQueue {
        if class < NEAR {
            return &mut self.near[class];
        }
        rarely();
        &mut self.more[class - NEAR]
    }
}
