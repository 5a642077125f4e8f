//! What a scheduler's way into the kernel and back costs, beyond the instruction that takes it: by kfunc or helper.
//!
//! Each callback, kfunc and helper that was measured has its price, which the machine charges wherever it charges the
//! program's instructions. Everything that is not in the table costs what its instruction costs: it was not measured, or
//! the kernel translates it in line (`bpf_get_smp_processor_id`, `bpf_jiffies64`, look-ups in arrays).

use fairground_bpf::{Callable, MAX_PRICES};

use Callable::{Helper, Kfunc};

/// The parameters, in the order of [`CallCosts`].
pub(super) const NAMES: [&str; COUNT] = [
    "callback_ns",
    "call_clock_ns",
    "call_ktime_ns",
    "call_storage_ns",
    "call_read_ns",
    "call_write_ns",
    "call_kick_ns",
    "call_nr_queued_ns",
    "call_from_pid_ns",
    "call_iter_ns",
    "call_iter_next_ns",
    "call_iter_found_ns",
    "call_iter_end_ns",
    "call_iter_move_ns",
    "call_insert_ns",
    "call_insert_vtime_ns",
    "call_move_ns",
    "call_moved_ns",
    "call_claim_idle_ns",
    "call_pick_idle_ns",
    "call_select_cpu_ns",
];

const COUNT: usize = 21;
const _: () = assert!(COUNT <= MAX_PRICES);

/// Times of calls between kernel and program, ns each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCosts {
    /// Each callback of the scheduler: entering and leaving it.
    pub callback_ns: u64,
    /// `scx_bpf_now`.
    pub clock_ns: u64,
    /// `bpf_ktime_get_ns` and its kin.
    pub ktime_ns: u64,
    /// `bpf_task_storage_get` of what exists.
    pub storage_ns: u64,
    /// Reading a word: `scx_bpf_task_cpu`, `bpf_cpumask_test_cpu`, `scx_bpf_nr_cpu_ids`.
    pub read_ns: u64,
    /// Writing one into a task: `scx_bpf_task_set_slice`, `scx_bpf_task_set_dsq_vtime`.
    pub write_ns: u64,
    /// `scx_bpf_kick_cpu`, without the interrupt that follows.
    pub kick_ns: u64,
    /// `scx_bpf_dsq_nr_queued`.
    pub nr_queued_ns: u64,
    /// `bpf_task_from_pid`, with the release of the task.
    pub from_pid_ns: u64,
    /// `bpf_iter_scx_dsq_new`, with the iterator's end.
    pub iter_ns: u64,
    /// `bpf_iter_scx_dsq_next`.
    pub iter_next_ns: u64,
    /// The same, more where there is another task.
    pub iter_found_ns: u64,
    /// `bpf_iter_scx_dsq_destroy`, more where the iteration has met a task and not come to the queue's end: its cursor is an
    /// element of the queue then, and is taken out under the queue's lock.
    pub iter_end_ns: u64,
    /// `scx_bpf_dsq_move`, of a task that an iteration has met, and its kin.
    pub iter_move_ns: u64,
    /// `scx_bpf_dsq_insert`.
    pub insert_ns: u64,
    /// `scx_bpf_dsq_insert_vtime`, with what a queue in order of keys costs more.
    pub insert_vtime_ns: u64,
    /// `scx_bpf_dsq_move_to_local`.
    pub move_ns: u64,
    /// The same, more where there is a task to move.
    pub moved_ns: u64,
    /// `scx_bpf_test_and_clear_cpu_idle`.
    pub claim_idle_ns: u64,
    /// `scx_bpf_pick_idle_cpu`.
    pub pick_idle_ns: u64,
    /// `scx_bpf_select_cpu_dfl`.
    pub select_cpu_ns: u64,
}

impl CallCosts {
    /// The fields in the order of [`NAMES`].
    pub(super) fn fields(&mut self) -> [&mut u64; COUNT] {
        [
            &mut self.callback_ns,
            &mut self.clock_ns,
            &mut self.ktime_ns,
            &mut self.storage_ns,
            &mut self.read_ns,
            &mut self.write_ns,
            &mut self.kick_ns,
            &mut self.nr_queued_ns,
            &mut self.from_pid_ns,
            &mut self.iter_ns,
            &mut self.iter_next_ns,
            &mut self.iter_found_ns,
            &mut self.iter_end_ns,
            &mut self.iter_move_ns,
            &mut self.insert_ns,
            &mut self.insert_vtime_ns,
            &mut self.move_ns,
            &mut self.moved_ns,
            &mut self.claim_idle_ns,
            &mut self.pick_idle_ns,
            &mut self.select_cpu_ns,
        ]
    }

    /// The prices, each at the place that [`priced`] names.
    pub(crate) fn prices(&self) -> [u32; MAX_PRICES] {
        let mut prices = [0; MAX_PRICES];
        // No cost is above a second.
        for (price, ns) in prices.iter_mut().zip(self.clone().fields()) {
            *price = u32::try_from(*ns).unwrap_or(u32::MAX);
        }
        prices
    }
}

/// Where the parameter of that name stands.
const fn place(name: &str) -> u8 {
    super::names::place_in(&NAMES, name) as u8
}

/// What has a price, and where in [`CallCosts::prices`] it stands. Spellings of all kernels are there.
pub(crate) fn priced() -> Vec<(Callable, u8)> {
    let groups: [(u8, &[Callable]); 15] = [
        (place("call_clock_ns"), &[Kfunc("scx_bpf_now")]),
        (place("call_ktime_ns"), &[Helper(5), Helper(125), Helper(160), Helper(208)]),
        (place("call_storage_ns"), &[Helper(156)]),
        (
            place("call_read_ns"),
            &[
                Kfunc("scx_bpf_task_cpu"),
                Kfunc("bpf_cpumask_test_cpu"),
                Kfunc("scx_bpf_nr_cpu_ids"),
            ],
        ),
        (
            place("call_write_ns"),
            &[Kfunc("scx_bpf_task_set_slice"), Kfunc("scx_bpf_task_set_dsq_vtime")],
        ),
        (place("call_kick_ns"), &[Kfunc("scx_bpf_kick_cpu")]),
        (place("call_nr_queued_ns"), &[Kfunc("scx_bpf_dsq_nr_queued")]),
        (place("call_from_pid_ns"), &[Kfunc("bpf_task_from_pid")]),
        (place("call_iter_ns"), &[Kfunc("bpf_iter_scx_dsq_new")]),
        (place("call_iter_next_ns"), &[Kfunc("bpf_iter_scx_dsq_next")]),
        (
            place("call_iter_move_ns"),
            &[
                Kfunc("scx_bpf_dsq_move"),
                Kfunc("scx_bpf_dispatch_from_dsq"),
                Kfunc("scx_bpf_dsq_move_vtime"),
                Kfunc("scx_bpf_dispatch_vtime_from_dsq"),
            ],
        ),
        (
            place("call_insert_ns"),
            &[
                Kfunc("scx_bpf_dsq_insert"),
                Kfunc("scx_bpf_dsq_insert___v2"),
                Kfunc("scx_bpf_dispatch"),
            ],
        ),
        (
            place("call_insert_vtime_ns"),
            &[
                Kfunc("scx_bpf_dsq_insert_vtime"),
                Kfunc("__scx_bpf_dsq_insert_vtime"),
                Kfunc("scx_bpf_dispatch_vtime"),
            ],
        ),
        (
            place("call_move_ns"),
            &[
                Kfunc("scx_bpf_dsq_move_to_local"),
                Kfunc("scx_bpf_dsq_move_to_local___v2"),
                Kfunc("scx_bpf_consume"),
            ],
        ),
        (place("call_claim_idle_ns"), &[Kfunc("scx_bpf_test_and_clear_cpu_idle")]),
    ];
    let idle = [
        (Kfunc("scx_bpf_pick_idle_cpu"), place("call_pick_idle_ns")),
        (Kfunc("scx_bpf_select_cpu_dfl"), place("call_select_cpu_ns")),
    ];
    let all = groups.iter().flat_map(|(place, called)| called.iter().map(|what| (*what, *place)));
    all.chain(idle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_priced_is_there_once() {
        let kfuncs: Vec<&str> = crate::kfuncs::table().iter().map(|(name, _)| *name).collect();
        let priced = priced();
        for (at, (what, place)) in priced.iter().enumerate() {
            assert!(usize::from(*place) < COUNT);
            assert!(priced[..at].iter().all(|(other, _)| other != what), "{what:?}");
            if let Kfunc(name) = what {
                assert!(*name == "scx_bpf_now" || kfuncs.contains(name), "{name}");
            }
        }
    }
}
