/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tunables of `cfs`: the kernel's sysctls and feature switches by their own names, and, named rule_*, changes
 * between releases without a switch. The defaults are 6.5; cfs_releases.bpf.h has the values of each release.
 *
 * A feature that had two names has the later one: FAIR_SLEEPERS was NEW_FAIR_SLEEPERS until 2.6.31, WAKEUP_PREEMPTION
 * was WAKEUP_PREEMPT. sched_batch_wakeup_granularity (2.6.24, 2.6.25) is missing: no code read it any more. 2.6.26
 * has NORMALIZED_SLEEPER switched on, but place_entity did not read it, so it is off in that set.
 */
#ifndef FAIRGROUND_CFS_TUNABLES_BPF_H
#define FAIRGROUND_CFS_TUNABLES_BPF_H

#include "cfs_releases.bpf.h"

/* kernel/sched*: sysctl_sched_*; times are base values, see tunable_factor(). */
TUNABLE(u64, sched_latency_ns, 6000000, UNIT("ns"),
        DOC("period in which each task runs once, while there are few; times the factor of sched_tunable_scaling"));
TUNABLE(u64, sched_min_granularity_ns, 750000, UNIT("ns"),
        DOC("share of the period per task when there are many; times the factor"));
TUNABLE(u64, sched_idle_min_granularity_ns, 750000, UNIT("ns"),
        DOC("least slice of a SCHED_IDLE task beside others (5.16); not multiplied"));
TUNABLE(u64, sched_wakeup_granularity_ns, 1000000, UNIT("ns"),
        DOC("a waking task preempts when it is behind by more than this; times the factor"));
TUNABLE(u64, sched_shares_ratelimit_ns, 250000, UNIT("ns"),
        DOC("least time between two updates of a group's weight on a CPU (2.6.27 to 2.6.37); times the factor"));
TUNABLE(bool, sched_child_runs_first, false, UNIT("bool"),
        DOC("after fork the child gets the smaller vruntime of the two"));
TUNABLE(bool, sched_compat_yield, false, UNIT("bool"),
        DOC("sched_yield goes behind the rightmost task (until 2.6.38)"));
TUNABLE(enum tunable_scaling, sched_tunable_scaling, SCALING_LOG, UNIT("enum"),
        DOC("factor on the times: none 1, log 1 + log2(CPUs), linear CPUs"));
TUNABLE(const volatile u32, rule_scaling_cpus_max, 8, UNIT("CPUs"),
        DOC("more CPUs than this count as this many in the factor (2.6.33)"));

/* kernel/sched/features.h */
TUNABLE(bool, FAIR_SLEEPERS, true, UNIT("bool"), ALIAS("NEW_FAIR_SLEEPERS"),
        DOC("a waking task is placed up to one latency left of min_vruntime (NEW_FAIR_SLEEPERS until 2.6.31)"));
TUNABLE(bool, GENTLE_FAIR_SLEEPERS, true, UNIT("bool"), DOC("halves the credit of FAIR_SLEEPERS"));
TUNABLE(bool, NORMALIZED_SLEEPER, false, UNIT("bool"),
        DOC("the credit of FAIR_SLEEPERS is wall time, divided by the task's weight"));
TUNABLE(bool, START_DEBIT, true, UNIT("bool"), DOC("a new task starts one slice right of min_vruntime"));
TUNABLE(bool, WAKEUP_PREEMPTION, true, UNIT("bool"), ALIAS("WAKEUP_PREEMPT"),
        DOC("a waking task may preempt the current one (WAKEUP_PREEMPT until 2.6.3x)"));
TUNABLE(bool, TREE_AVG, false, UNIT("bool"),
        DOC("places tasks in the middle between min_vruntime and the rightmost task (2.6.24)"));
TUNABLE(bool, APPROX_AVG, false, UNIT("bool"), DOC("places tasks half a slice right of min_vruntime (2.6.24)"));
TUNABLE(bool, ASYM_GRAN, true, UNIT("bool"), DOC("the wake-up granularity favours weight: see rule_gran"));
TUNABLE(bool, ADAPTIVE_GRAN, false, UNIT("bool"),
        DOC("the wake-up granularity shrinks for tasks that wake others often (2.6.30 to 2.6.33)"));
TUNABLE(bool, LAST_BUDDY, true, UNIT("bool"),
        DOC("a task preempted by a wake-up gets the CPU back if it is not too far right (2.6.28)"));
TUNABLE(bool, NEXT_BUDDY, false, UNIT("bool"),
        DOC("a woken task is picked next if it is not too far right, even when it did not preempt"));
TUNABLE(bool, HRTICK, false, UNIT("bool"),
        DOC("a timer ends each slice to the nanosecond; else the next tick does (2.6.25)"));
TUNABLE(bool, DOUBLE_TICK, false, UNIT("bool"), DOC("with HRTICK, the tick also checks slices while the timer runs"));
TUNABLE(bool, BASE_SLICE, true, UNIT("bool"), DOC("a slice is never shorter than sched_min_granularity (5.13)"));
TUNABLE(bool, ALT_PERIOD, true, UNIT("bool"),
        DOC("a group's period counts the tasks of the whole CPU, not its own alone (5.13)"));
TUNABLE(bool, NI_RANDOM, false, UNIT("bool"),
        DOC("a CPU that becomes idle searches for tasks at random, as often as searches have recently found some "
            "(6.1 stable)"));

/* Changes between releases that had no switch. */
TUNABLE(
    const volatile enum gran_rule, rule_gran, GRAN_WAKEE, UNIT("enum"),
    DOC("wake-up granularity by weight: of the current task (2.6.24), of the queue (2.6.27), of a heavy current task "
        "(2.6.26, .28, .29), of the woken task (2.6.30)"));
TUNABLE(
    const volatile enum min_rule, rule_min_vruntime, MIN_AT_DEQUEUE, UNIT("enum"),
    DOC("min_vruntime follows current and leftmost when time is charged (2.6.24), the tree alone (2.6.25 to .27), "
        "both and at dequeue (2.6.28)"));
TUNABLE(const volatile enum next_rule, rule_next_buddy, NEXT_NEAR, UNIT("enum"),
        DOC("the next buddy may be ahead by the wake-up granularity, or (2.6.27) pairs run on for a slice"));
TUNABLE(const volatile enum shares_rule, rule_shares, SHARES_BY_LOAD, UNIT("enum"),
        DOC("a group's weight on one CPU: all of its shares (2.6.24), a part by the weight there (2.6.26), by the "
            "average load there (4.x)"));
TUNABLE(const volatile bool, rule_queue_scaled_vruntime, false, UNIT("bool"),
        DOC("vruntime advances by time * weight of the queue / own weight (2.6.27 only)"));
TUNABLE(const volatile bool, rule_period_scales_latency, false, UNIT("bool"),
        DOC("with many tasks the period is latency * tasks / ceil(latency / min_granularity), not min_granularity * "
            "tasks (2.6.24)"));
TUNABLE(const volatile bool, rule_slice_of_hierarchy, true, UNIT("bool"),
        DOC("a slice is multiplied by the shares of the groups above (2.6.26)"));
TUNABLE(const volatile bool, rule_group_sleeps_with_credit, true, UNIT("bool"),
        DOC("a group that wakes up has the credit of FAIR_SLEEPERS, too (2.6.25)"));
TUNABLE(const volatile bool, rule_tick_checks_vruntime, true, UNIT("bool"),
        DOC("at the tick also: preempt when the leftmost task is behind by more than a slice (2.6.32)"));
TUNABLE(const volatile bool, rule_tick_obeys_preemption, false, UNIT("bool"),
        DOC("that check only with WAKEUP_PREEMPTION (2.6.32, 2.6.36)"));
TUNABLE(const volatile bool, rule_slice_within_latency, true, UNIT("bool"),
        DOC("a slice is never longer than the latency (6.3)"));
TUNABLE(
    const volatile bool, rule_hrtick_few, true, UNIT("bool"),
    DOC("a task that joins or leaves re-arms the timer of HRTICK only while the latency suffices for all (2.6.28)"));
TUNABLE(const volatile bool, rule_place_never_left, true, UNIT("bool"),
        DOC("a new task, too, is never placed left of its own vruntime (2.6.32)"));
TUNABLE(const volatile bool, rule_fork_stays, false, UNIT("bool"),
        DOC("a new task starts on the CPU of its parent (until 2.6.25); off: where execve would place it"));
TUNABLE(const volatile bool, rule_fork_parent_queue, true, UNIT("bool"),
        DOC("a new task is placed relative to the queue of the parent's CPU (2.6.33)"));
TUNABLE(const volatile bool, rule_fork_reschedules, false, UNIT("bool"),
        DOC("a fork always makes the target CPU pick again (until 2.6.26)"));
TUNABLE(const volatile bool, rule_sync_keeps_waker, false, UNIT("bool"),
        DOC("no preemption check when a waker about to sleep wakes a task on its own CPU (2.6.24)"));
TUNABLE(const volatile bool, rule_repick_starts_slice, false, UNIT("bool"),
        DOC("a task that is picked again after its slice starts a new one (until 3.14)"));
TUNABLE(const volatile bool, rule_last_of_many, true, UNIT("bool"),
        DOC("LAST_BUDDY only when the latency does not suffice for all, and only at a preemption (2.6.32)"));
TUNABLE(const volatile bool, rule_last_beats_next, false, UNIT("bool"),
        DOC("of two buddies the last one is taken (2.6.32, 2.6.36)"));
TUNABLE(const volatile bool, rule_hints_next, true, UNIT("bool"),
        DOC("a task that preempts by waking up becomes the next buddy, and so does the group that a task leaves to "
            "sleep (2.6.39)"));
TUNABLE(const volatile bool, rule_yield_skips, true, UNIT("bool"),
        DOC("sched_yield marks the task as skip buddy (2.6.39)"));
TUNABLE(const volatile bool, rule_batch_yields_right, false, UNIT("bool"),
        DOC("sched_yield of a SCHED_BATCH task goes behind the rightmost task (until 2.6.38)"));
TUNABLE(const volatile bool, rule_clock_stands, true, UNIT("bool"),
        DOC("a task preempted by a wake-up is charged up to that only; what follows is its successor's "
            "(rq_clock_skip_update)"));
TUNABLE(const volatile bool, rule_idle_entities, true, UNIT("bool"),
        DOC("SCHED_IDLE tasks have a least slice of their own, and a credit of min_granularity (5.16)"));
TUNABLE(const volatile u32, rule_idle_weight, 3, UNIT("weight"),
        DOC("load weight of SCHED_IDLE tasks (2 until 2.6.28)"));

#endif
