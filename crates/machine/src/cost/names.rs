//! The names of the parameters, whose last part is the unit.

use super::calls;

/// The parameters of the machine proper; those of calls follow them.
pub(super) const MACHINE: [&str; 42] = [
    "context_switch_ns",
    "wakeup_ns",
    "ipi_ns",
    "tick_ns",
    "syscall_ns",
    "timer_irq_ns",
    "idle_exit_ns",
    "migration_ns",
    "cache_refill_ns",
    "policy_insn_ps",
    "cache_bytes",
    "line_hit_ps",
    "line_miss_ps",
    "timer_slack_ns",
    "block_ns",
    "fork_ns",
    "fork_return_ns",
    "child_ns",
    "exit_ns",
    "reap_ns",
    "fork_stretch_ns",
    "rcu_ns",
    "kick_ns",
    "wakeup_idle_ns",
    "wakeup_remote_ns",
    "enqueue_remote_ns",
    "block_idle_ns",
    "idle_enter_ns",
    "idle_tick_ns",
    "turn_ns",
    "syscall_return_ns",
    "exit_move_ns",
    "wakeup_clock_ns",
    "housekeeping_ns",
    "tick_kept_ns",
    "first_pages_ns",
    "wake_list_ns",
    "pipe_wake_bytes",
    "pipe_block_ns",
    "timer_each_ns",
    "timer_set_ns",
    "block_clock_ns",
];

/// All parameters.
pub(super) const NAMES: [&str; MACHINE.len() + calls::NAMES.len()] = {
    let mut all = [""; MACHINE.len() + calls::NAMES.len()];
    let mut index = 0;
    while index < all.len() {
        let of_machine = index < MACHINE.len();
        all[index] = if of_machine { MACHINE[index] } else { calls::NAMES[index - MACHINE.len()] };
        index += 1;
    }
    all
};

/// Where a name stands; one that is not there does not compile.
pub(super) const fn place_in(names: &[&str], name: &str) -> usize {
    let mut index = 0;
    while !is_same(names[index].as_bytes(), name.as_bytes()) {
        index += 1;
    }
    index
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

/// The unit of a parameter.
pub(super) fn unit(name: &str) -> &'static str {
    match name.rsplit_once('_') {
        Some((_, "ps")) => "ps",
        Some((_, "bytes")) => "bytes",
        _ => "ns",
    }
}
