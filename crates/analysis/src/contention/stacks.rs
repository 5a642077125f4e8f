//! Call chains: the part of a kernel stack that shows where a task waits.

/// Functions of tracing itself, inside of the function that is traced.
const OF_TRACING: [&str; 4] = ["trace_event_", "__traceiter_", "__bpf_trace_", "perf_trace_"];

/// Functions by which all tasks wait. Their callers show for what.
const OF_WAITING: [&str; 20] = [
    "__schedule",
    "schedule",
    "schedule_rtlock",
    "schedule_timeout",
    "schedule_timeout_interruptible",
    "schedule_timeout_uninterruptible",
    "schedule_preempt_disabled",
    "schedule_hrtimeout_range",
    "schedule_hrtimeout_range_clock",
    "io_schedule",
    "io_schedule_timeout",
    "preempt_schedule",
    "preempt_schedule_common",
    "preempt_schedule_irq",
    "preempt_schedule_notrace",
    "preempt_schedule_notrace_thunk",
    "preempt_schedule_thunk",
    "__cond_resched",
    "dynamic_preempt_schedule",
    "raw_irqentry_exit_cond_resched",
];

/// Functions, the called one first, the caller after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain(pub Vec<String>);

impl Chain {
    /// In the form of the mail: `__schedule()<-schedule()<-rt_spin_lock_slowlock()`.
    pub fn text(&self) -> String {
        self.0.iter().map(|function| format!("{function}()")).collect::<Vec<_>>().join("<-")
    }
}

/// The functions of a folded stack (`outer;…;inner`), the called one first, without those of tracing.
fn called_first(folded: &str) -> impl Iterator<Item = &str> {
    let of_tracing = |name: &&str| OF_TRACING.iter().any(|prefix| name.starts_with(prefix));
    folded.rsplit(';').skip_while(of_tracing)
}

/// The innermost functions, as many as asked for.
pub(super) fn point(folded: &str, depth: usize) -> Chain {
    Chain(called_first(folded).take(depth).map(str::to_owned).collect())
}

/// Where a task waits: the first function that is not of waiting itself, and its callers, `depth` in all; the whole
/// chain where there is none.
pub(super) fn site(folded: &str, depth: usize) -> Chain {
    let callers: Vec<&str> =
        called_first(folded).skip_while(|name| OF_WAITING.contains(name)).take(depth).collect();
    if callers.is_empty() {
        return point(folded, depth);
    }
    Chain(callers.into_iter().map(str::to_owned).collect())
}

/// The stack without the functions of tracing, `outer;…;inner`.
pub(super) fn trimmed(folded: &str) -> String {
    let mut functions: Vec<&str> = called_first(folded).collect();
    functions.reverse();
    functions.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK: &str = "entry_SYSCALL_64;ksys_read;pipe_read;schedule;__schedule;\
                         __traceiter_sched_switch;trace_event_raw_event_sched_switch";

    #[test]
    fn a_point_begins_with_schedule_and_a_site_behind_it() {
        assert_eq!(point(STACK, 3).text(), "__schedule()<-schedule()<-pipe_read()");
        assert_eq!(site(STACK, 2).text(), "pipe_read()<-ksys_read()");
        assert_eq!(trimmed(STACK), "entry_SYSCALL_64;ksys_read;pipe_read;schedule;__schedule");
    }

    #[test]
    fn a_stack_of_nothing_else_stays_whole() {
        assert_eq!(site("schedule;__schedule", 4).text(), "__schedule()<-schedule()");
        assert_eq!(point("x", 4).text(), "x()");
    }
}
