//! Memory for many events at once.

use std::ffi::c_void;
use std::ptr::NonNull;

use nix::sys::mman::{MmapAdvise, madvise};

/// Less than this is not worth a system call, bytes.
const LARGE_BYTES_MIN: usize = 8 << 20;
/// Bytes of a huge page.
const HUGE_BYTES: usize = 2 << 20;

/// Makes room for `additional` more values, of which fewer may come: what is not used takes no memory. Where there is much of it the
/// kernel is asked for huge pages, of which the first touch costs less. Without that much memory nothing happens.
pub(crate) fn reserve<T>(values: &mut Vec<T>, additional: usize) {
    if values.try_reserve_exact(additional).is_err() {
        return;
    }
    let room = values.spare_capacity_mut();
    let from = room.as_mut_ptr() as usize;
    let (start, end) = (from.next_multiple_of(HUGE_BYTES), from + size_of_val(room));
    let Some(bytes) = end.checked_sub(start).filter(|bytes| *bytes >= LARGE_BYTES_MIN) else {
        return;
    };
    let Some(start) = NonNull::new(start as *mut c_void) else { return };
    // SAFETY: the range lies within room that the vector owns. The advice changes no byte of it, only which pages stand for it, and
    // a kernel that does not take it leaves all as it is.
    let _ = unsafe { madvise(start, bytes, MmapAdvise::MADV_HUGEPAGE) };
}

/// Whether [`prefetch`] does anything.
pub(crate) const PREFETCHES: bool = cfg!(target_arch = "x86_64");

/// Asks the processor to fetch the line of memory `ahead` bytes from the first of `bytes`, be it behind the last one.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], ahead: usize) {
    let place: *const u8 = bytes.as_ptr().wrapping_add(ahead);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: nothing is read, and a place where nothing is does no harm.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_where_there_is_any() {
        let mut values = vec![7_u64];
        reserve(&mut values, 4 * LARGE_BYTES_MIN / size_of::<u64>());
        let room = values.capacity();
        assert!(room > 4 * LARGE_BYTES_MIN / size_of::<u64>());
        values.extend(0..1_000_000);
        assert_eq!((values.capacity(), values[0], values[1_000_000]), (room, 7, 999_999));
        // More than any machine has.
        reserve(&mut values, usize::MAX / 32);
        assert_eq!((values.capacity(), values.len()), (room, 1_000_001));
    }
}
