//! Prefetch hints. They do not change any result.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches a value.
#[inline]
pub fn prefetch<T>(value: &T) {
    lines(std::ptr::from_ref(value).cast(), size_of::<T>());
}

/// Prefetches the first `bytes` bytes of a value.
#[inline]
pub fn prefetch_start<T>(value: &T, bytes: usize) {
    lines(std::ptr::from_ref(value).cast(), bytes.min(size_of::<T>()));
}

/// Prefetches `bytes` bytes from `from` on, which need not be mapped.
#[inline]
pub(crate) fn lines(from: *const u8, bytes: usize) {
    let mut at = from;
    let end = from.wrapping_add(bytes);
    while at < end {
        line(at);
        at = at.wrapping_add(LINE);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn line(at: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction has no architectural effect, also for an unmapped address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn line(_at: *const u8) {}
