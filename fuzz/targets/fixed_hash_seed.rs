//! Hash tables that are the same in every process: the coverage of an input, and with it all that a run tries later, does not hang on
//! the seed that the standard library takes from the kernel for its hash tables.

/// Stands in for the C library's function of this name. Nobody in a fuzz target needs chance.
///
/// # Safety
/// `buffer` holds `length` bytes that may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: the caller promises it.
    unsafe { buffer.write_bytes(1, length) };
    length.cast_signed()
}
