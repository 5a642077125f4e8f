/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What can be set on `cfs`: the kernel's sysctls and feature switches by their own names, and, named rule_*, what changed
 * between releases without a switch. Three sets: 2.6.24, 2.6.27-sle11 (2.6.27 as SLE 11 ships it), 6.1. The defaults are 6.1.
 *
 * Where a feature has had two names, the later one is used: FAIR_SLEEPERS was NEW_FAIR_SLEEPERS until 2.6.31,
 * WAKEUP_PREEMPTION was WAKEUP_PREEMPT. HRTICK is not modelled: compare with kernels that have NO_HRTICK set.
 */
#ifndef FAIRGROUND_CFS_TUNABLES_BPF_H
#define FAIRGROUND_CFS_TUNABLES_BPF_H

#include "scaling.bpf.h"

#define SETS(v24, v27, v61) SET("2.6.24", v24) SET("2.6.27-sle11", v27) SET("6.1", v61)

enum gran_rule { GRAN_CURR, GRAN_QUEUE, GRAN_HEAVY_CURR, GRAN_WAKEE };
enum min_rule { MIN_AT_UPDATE, MIN_OF_TREE, MIN_AT_DEQUEUE };

/* kernel/sched*: sysctl_sched_*; times are base values, see tunable_factor(). */
TUNABLE(u64, sched_latency_ns, 6000000, UNIT("ns"), SETS("20000000", "20000000", "6000000"),
        DOC("period in which each task runs once, while there are few; times the factor of sched_tunable_scaling"));
TUNABLE(u64, sched_min_granularity_ns, 750000, UNIT("ns"), SETS("4000000", "4000000", "750000"),
        DOC("share of the period per task when there are many; times the factor"));
TUNABLE(u64, sched_wakeup_granularity_ns, 1000000, UNIT("ns"), SETS("10000000", "5000000", "1000000"),
        DOC("a waking task preempts when it is behind by more than this; times the factor"));
TUNABLE(bool, sched_child_runs_first, false, UNIT("bool"), SETS("1", "1", "0"),
        DOC("after fork the child gets the smaller vruntime of the two"));
TUNABLE(bool, sched_compat_yield, false, UNIT("bool"), SETS("0", "0", "0"),
        DOC("sched_yield goes behind the rightmost task"));
TUNABLE(enum tunable_scaling, sched_tunable_scaling, SCALING_LOG, UNIT("enum"),
        SETS("SCALING_LOG", "SCALING_LOG", "SCALING_LOG"),
        DOC("factor on the three times: none 1, log 1 + log2(CPUs), linear CPUs"));
TUNABLE(u32, rule_scaling_cpus_max, 8, UNIT("CPUs"), SETS("4294967295", "4294967295", "8"),
        DOC("more CPUs than this count as this many in the factor (2.6.33)"));

/* kernel/sched/features.h */
TUNABLE(bool, FAIR_SLEEPERS, true, UNIT("bool"), SETS("1", "1", "1"), ALIAS("NEW_FAIR_SLEEPERS"),
        DOC("a waking task is placed up to one latency left of min_vruntime (NEW_FAIR_SLEEPERS until 2.6.31)"));
TUNABLE(bool, GENTLE_FAIR_SLEEPERS, true, UNIT("bool"), SETS("0", "0", "1"),
        DOC("halves the credit of FAIR_SLEEPERS"));
TUNABLE(bool, NORMALIZED_SLEEPER, false, UNIT("bool"), SETS("0", "1", "0"),
        DOC("the credit of FAIR_SLEEPERS is wall time, divided by the task's weight"));
TUNABLE(bool, START_DEBIT, true, UNIT("bool"), SETS("1", "1", "1"),
        DOC("a new task starts one slice right of min_vruntime"));
TUNABLE(bool, WAKEUP_PREEMPTION, true, UNIT("bool"), SETS("1", "1", "1"), ALIAS("WAKEUP_PREEMPT"),
        DOC("a waking task may preempt the current one (WAKEUP_PREEMPT until 2.6.3x)"));
TUNABLE(bool, TREE_AVG, false, UNIT("bool"), SETS("0", "0", "0"),
        DOC("places tasks in the middle between min_vruntime and the rightmost task (2.6.24)"));
TUNABLE(bool, APPROX_AVG, false, UNIT("bool"), SETS("0", "0", "0"),
        DOC("places tasks half a slice right of min_vruntime (2.6.24)"));
TUNABLE(bool, ASYM_GRAN, true, UNIT("bool"), SETS("0", "1", "1"),
        DOC("the wake-up granularity favours weight: see rule_gran"));
TUNABLE(bool, ADAPTIVE_GRAN, false, UNIT("bool"), SETS("0", "0", "0"),
        DOC("the wake-up granularity shrinks for tasks that wake others often (2.6.30 to 2.6.33)"));
TUNABLE(bool, LAST_BUDDY, true, UNIT("bool"), SETS("0", "0", "1"),
        DOC("a task preempted by a wake-up gets the CPU back if it is not too far right (2.6.28)"));
TUNABLE(bool, NEXT_BUDDY, false, UNIT("bool"), SETS("0", "1", "0"),
        DOC("a woken task is picked next if it is not too far right, even when it did not preempt"));
TUNABLE(bool, BASE_SLICE, true, UNIT("bool"), SETS("0", "0", "1"),
        DOC("a slice is never shorter than sched_min_granularity (5.13)"));

/* Changes between releases that had no switch. */
TUNABLE(
    enum gran_rule, rule_gran, GRAN_WAKEE, UNIT("enum"), SETS("GRAN_CURR", "GRAN_QUEUE", "GRAN_WAKEE"),
    DOC("wake-up granularity by weight: of the current task (2.6.24), of the queue (2.6.27), of a heavy current task "
        "(2.6.26, .28, .29), of the woken task (2.6.30)"));
TUNABLE(enum min_rule, rule_min_vruntime, MIN_AT_DEQUEUE, UNIT("enum"),
        SETS("MIN_AT_UPDATE", "MIN_OF_TREE", "MIN_AT_DEQUEUE"),
        DOC("min_vruntime follows current and leftmost when time is charged (2.6.24), the tree alone (2.6.25 to "
            ".27), both "
            "and at dequeue (2.6.28)"));
TUNABLE(bool, rule_queue_scaled_vruntime, false, UNIT("bool"), SETS("0", "1", "0"),
        DOC("vruntime advances by time * weight of the queue / own weight (2.6.27 only)"));
TUNABLE(bool, rule_period_scales_latency, false, UNIT("bool"), SETS("1", "0", "0"),
        DOC("with many tasks the period is latency * tasks / ceil(latency / min_granularity), not min_granularity * "
            "tasks "
            "(until 2.6.26)"));
TUNABLE(bool, rule_tick_checks_vruntime, true, UNIT("bool"), SETS("0", "0", "1"),
        DOC("at the tick also: end the turn when the leftmost task is behind by more than a slice (2.6.32)"));
TUNABLE(bool, rule_place_never_left, true, UNIT("bool"), SETS("0", "0", "1"),
        DOC("a new task, too, is never placed left of its own vruntime (2.6.32)"));
TUNABLE(bool, rule_fork_parent_queue, true, UNIT("bool"), SETS("0", "0", "1"),
        DOC("a new task is placed relative to the queue of the parent's CPU (2.6.37)"));
TUNABLE(bool, rule_fork_reschedules, false, UNIT("bool"), SETS("1", "0", "0"),
        DOC("a fork always makes the target CPU pick again (2.6.24)"));
TUNABLE(bool, rule_sync_keeps_waker, false, UNIT("bool"), SETS("1", "0", "0"),
        DOC("no preemption check when a waker about to sleep wakes a task on its own CPU (2.6.24)"));
TUNABLE(bool, rule_repick_starts_slice, false, UNIT("bool"), SETS("1", "1", "0"),
        DOC("a task that is picked again after its turn starts a new slice (until 3.14)"));
TUNABLE(bool, rule_preemptor_is_next, true, UNIT("bool"), SETS("0", "0", "1"),
        DOC("a task that preempts by waking up becomes the next buddy (2.6.37)"));
TUNABLE(bool, rule_yield_skips, true, UNIT("bool"), SETS("0", "0", "1"),
        DOC("sched_yield marks the task as skip buddy (2.6.39)"));

#endif
