//! Which calls of a scheduler's program cost [`CostModel::call_ns`] beyond their instruction.
//!
//! Those that take a lock, walk a queue or scan a mask. Every other one costs its instruction: it reads or writes a
//! word, or the kernel translates it in line (`bpf_get_smp_processor_id`, `bpf_jiffies64`, look-ups in arrays).

use fairground_bpf::{Callable, MAX_PRICES};

use super::CostModel;

/// The kfuncs with a price, in the spellings of all kernels.
const PRICED: [&str; 21] = [
    "scx_bpf_kick_cpu",
    "scx_bpf_dsq_nr_queued",
    "bpf_task_from_pid",
    "bpf_iter_scx_dsq_new",
    "bpf_iter_scx_dsq_next",
    "scx_bpf_dsq_move",
    "scx_bpf_dispatch_from_dsq",
    "scx_bpf_dsq_move_vtime",
    "scx_bpf_dispatch_vtime_from_dsq",
    "scx_bpf_dsq_insert",
    "scx_bpf_dsq_insert___v2",
    "scx_bpf_dispatch",
    "scx_bpf_dsq_insert_vtime",
    "__scx_bpf_dsq_insert_vtime",
    "scx_bpf_dispatch_vtime",
    "scx_bpf_dsq_move_to_local",
    "scx_bpf_dsq_move_to_local___v2",
    "scx_bpf_consume",
    "scx_bpf_test_and_clear_cpu_idle",
    "scx_bpf_pick_idle_cpu",
    "scx_bpf_select_cpu_dfl",
];

/// The index of their price in [`CostModel::prices`].
const PLACE: u8 = 0;

/// The calls that have a price, and its index.
pub(crate) fn priced() -> Vec<(Callable, u8)> {
    PRICED.iter().map(|name| (Callable::Kfunc(name), PLACE)).collect()
}

impl CostModel {
    /// The prices by index, ns.
    pub(crate) fn prices(&self) -> [u32; MAX_PRICES] {
        let mut prices = [0; MAX_PRICES];
        // No cost is above a second.
        prices[usize::from(PLACE)] = u32::try_from(self.call_ns).unwrap_or(u32::MAX);
        prices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_priced_kfunc_exists_and_is_named_once() {
        let kfuncs: Vec<&str> = crate::kfuncs::table().iter().map(|(name, _)| *name).collect();
        for (at, name) in PRICED.iter().enumerate() {
            assert!(kfuncs.contains(name), "{name}");
            assert!(!PRICED[..at].contains(name), "{name}");
        }
    }
}
