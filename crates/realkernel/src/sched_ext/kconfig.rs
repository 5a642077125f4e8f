//! Configuration values that schedulers read (`extern int CONFIG_HZ __kconfig`).
//!
//! libbpf reads them from `/proc/config.gz` or `/boot/config-RELEASE`. A virtual machine may have neither, but every
//! kernel reports its ticks per second.

use std::ffi::CString;

use crate::run::hz;

/// The known values, in the format of `.config`. They take precedence over the file's.
pub(super) fn known() -> CString {
    let text = hz().map_or_else(String::new, |hz| format!("CONFIG_HZ={hz}\n"));
    CString::new(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_a_second_are_a_number_that_kernels_are_built_with() {
        let text = known().into_string().expect("ASCII");
        let kernels = [100, 250, 300, 1000].map(|hz| format!("CONFIG_HZ={hz}\n"));
        assert!(kernels.contains(&text), "{text}");
    }
}
