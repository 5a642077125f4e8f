//! BPF helpers that schedulers use and that are not simply the kernel's. The others are in `fairground-bpf`.

use super::feature::Feature;

const fn f(name: &'static str) -> Feature {
    Feature::new(name)
}

/// Helpers by number.
pub(crate) const HELPERS: &[(u32, Feature)] = &[
    (5, f("bpf_ktime_get_ns").but("simulated time")),
    (6, f("bpf_trace_printk").but("a line of the run's log")),
    (7, f("bpf_get_prandom_u32").but("from the run's seed")),
    (8, f("bpf_get_smp_processor_id")),
    (14, f("bpf_get_current_pid_tgid").but("a task is its own thread group")),
    (25, f("bpf_perf_event_output").but("there is no reader: what is written is lost")),
    (35, f("bpf_get_current_task")),
    (118, f("bpf_jiffies64").but("ticks since the start")),
    (125, f("bpf_ktime_get_boot_ns").but("simulated time")),
    (130, f("bpf_ringbuf_output").but("there is no reader: what is written is lost")),
    (153, f("bpf_per_cpu_ptr")),
    (158, f("bpf_get_current_task_btf")),
    (160, f("bpf_ktime_get_coarse_ns").but("simulated time, not rounded to ticks")),
    (171, f("bpf_timer_start")),
    (181, f("bpf_loop")),
    (183, f("bpf_get_func_arg")),
    (184, f("bpf_get_func_ret")),
    (185, f("bpf_get_func_arg_cnt")),
    (208, f("bpf_ktime_get_tai_ns").but("simulated time")),
    (
        209,
        f("bpf_user_ringbuf_drain")
            .absent("there is no writer; a call that is reached ends the run"),
    ),
    (55, f("bpf_perf_event_read_value").absent("no counters; a call that is reached ends the run")),
];
