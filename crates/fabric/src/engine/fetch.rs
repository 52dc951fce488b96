//! Memory that is asked for before it is needed.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for the cache line in which a value begins. Nothing waits for it.
#[inline(always)]
#[allow(clippy::inline_always)]
pub fn fetch<T>(value: &T) {
    fetch_at(std::ptr::from_ref(value).cast());
}

/// Asks for the first cache lines of a value that begins with one: for so many bytes.
#[inline(always)]
#[allow(clippy::inline_always)]
pub fn fetch_first<T>(value: &T, bytes: usize) {
    let first: *const i8 = std::ptr::from_ref(value).cast();
    for at in (0..bytes).step_by(LINE) {
        fetch_at(first.wrapping_add(at));
    }
}

/// Asks for the cache line of the value with this number, if there is such a one: that is not
/// checked.
#[inline(always)]
#[allow(clippy::inline_always)]
pub fn fetch_numbered<T>(values: &[T], number: usize) {
    fetch_at(values.as_ptr().wrapping_add(number).cast());
}

/// Asks for the cache line that holds this place in memory.
#[inline(always)]
#[allow(clippy::inline_always)]
pub fn fetch_at(place: *const i8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction reads nothing, cannot fault wherever it points, and is part of every
    // x86-64. A plain load instead makes the core wait as soon as its window of instructions is
    // full, which is what a profile of 8,192 hosts showed most.
    #[allow(unsafe_code)]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
