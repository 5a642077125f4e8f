/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tunables of `eevdf`: the kernel's knobs and feature switches by their own names, and, named rule_*, changes
 * between releases without a switch. Four sets: 6.6, 6.12, 6.18, 7.2. The defaults are 6.18.
 *
 * A switch that a release does not have is off in its set.
 */
#ifndef FAIRGROUND_EEVDF_TUNABLES_BPF_H
#define FAIRGROUND_EEVDF_TUNABLES_BPF_H

#include "scaling.bpf.h"

/* 7.2 is 6.18 and rules of its own. */
#define SETS(v66, v612, v618) SET("6.6", v66) SET("6.12", v612) SET("6.18", v618) SET("7.2", v618)
#define SETS_SINCE_7_2        SET("6.6", "0") SET("6.12", "0") SET("6.18", "0") SET("7.2", "1")

/* /sys/kernel/debug/sched: base_slice_ns before the factor, tunable_scaling. */
TUNABLE(
    u64, base_slice_ns, 700000, UNIT("ns"), SETS("750000", "750000", "700000"),
    DOC("length of a request of a task that asks for none of its own; times the factor of sched_tunable_scaling"));
TUNABLE(enum tunable_scaling, sched_tunable_scaling, SCALING_LOG, UNIT("enum"),
        SETS("SCALING_LOG", "SCALING_LOG", "SCALING_LOG"),
        DOC("factor on base_slice_ns: none 1, log 1 + log2(CPUs), linear CPUs; more than 8 CPUs count as 8"));

/* kernel/sched/features.h */
TUNABLE(bool, PLACE_LAG, true, UNIT("bool"), SETS("1", "1", "1"),
        DOC("a task that joins keeps the lag with which it left; off: it joins with none"));
TUNABLE(bool, PLACE_DEADLINE_INITIAL, true, UNIT("bool"), SETS("1", "1", "1"),
        DOC("a new task's first request is half a slice long"));
TUNABLE(bool, PLACE_REL_DEADLINE, true, UNIT("bool"), SETS("0", "1", "1"),
        DOC("a task that is moved, not asleep, keeps the distance of its deadline (6.12)"));
TUNABLE(
    bool, RUN_TO_PARITY, true, UNIT("bool"), SETS("1", "1", "1"),
    DOC("the current task is protected while it is eligible and its request, or the shortest one waiting, lasts"));
TUNABLE(bool, PREEMPT_SHORT, true, UNIT("bool"), SETS("0", "1", "1"),
        DOC("a waking task with a shorter slice than the current one ends its protection (6.12)"));
TUNABLE(bool, NEXT_BUDDY, false, UNIT("bool"), SETS("0", "0", "0"),
        DOC("the task that woke up last is picked next if it is eligible"));
TUNABLE(bool, PICK_BUDDY, true, UNIT("bool"), SETS("0", "0", "1"),
        DOC("a buddy, set by NEXT_BUDDY or yield_to, is picked first if it is eligible (6.18)"));
TUNABLE(bool, DELAY_DEQUEUE, true, UNIT("bool"), SETS("0", "1", "1"),
        DOC("a task that goes to sleep with negative lag stays queued until its lag is worked off (6.12)"));
TUNABLE(bool, DELAY_ZERO, true, UNIT("bool"), SETS("0", "1", "1"),
        DOC("what such a task gains beyond lag 0 meanwhile is forfeited (6.12)"));
TUNABLE(bool, WAKEUP_PREEMPTION, true, UNIT("bool"), SETS("1", "1", "1"),
        DOC("a waking task may preempt the current one"));
TUNABLE(bool, HRTICK, false, UNIT("bool"), SETS_SINCE_7_2,
        DOC("a timer ends a request at its deadline, instead of the following tick (on by default in 7.2)"));
TUNABLE(bool, NI_RANDOM, false, UNIT("bool"), SETS_SINCE_7_2,
        DOC("a CPU that becomes idle searches for tasks at random, as often as searches have recently found some "
            "(7.2)"));
TUNABLE(bool, NI_RATE, false, UNIT("bool"), SETS_SINCE_7_2,
        DOC("NI_RANDOM searches with a higher probability when CPUs become idle rarely (7.2)"));

/* Changes between releases that had no switch. */
TUNABLE(const volatile bool, rule_custom_slices, true, UNIT("bool"), SETS("0", "1", "1"),
        DOC("sched_setattr's sched_runtime is the task's own slice, 0.1 to 100 ms (6.12)"));
TUNABLE(const volatile bool, rule_vprot, true, UNIT("bool"), SETS("0", "0", "1"),
        DOC("protection ends at a virtual time, the shortest waiting slice away, and a tick after that reschedules "
            "(6.18), not with the request"));
TUNABLE(
    const volatile bool, rule_short_picks, true, UNIT("bool"), SETS("0", "0", "1"),
    DOC("PREEMPT_SHORT ends the protection only if the waking task is picked without it (6.18), not by its deadline "
        "against the current one's"));
TUNABLE(
    const volatile bool, rule_next_buddy_picks, false, UNIT("bool"), SETS("1", "1", "0"),
    DOC("NEXT_BUDDY alone affects the choice of the next task, but not the check at a wake-up (until PICK_BUDDY)"));
TUNABLE(const volatile bool, rule_forks_preempt, false, UNIT("bool"), SETS("1", "1", "0"),
        DOC("a new task may preempt like one that wakes up (until 6.18, where one of a shorter slice still may)"));
TUNABLE(const volatile bool, rule_idle_unprotected, true, UNIT("bool"), SETS("0", "0", "1"),
        DOC("a SCHED_IDLE task has no protection against a waking one of another policy (6.18)"));
TUNABLE(const volatile bool, rule_lag_limit_queue, true, UNIT("bool"), SETS("0", "0", "1"),
        DOC("lag is limited to the longest slice in the queue and a tick (6.18), not to two slices of its own"));
TUNABLE(const volatile bool, rule_yield_forfeits, true, UNIT("bool"), SETS("0", "0", "1"),
        DOC("sched_yield moves an eligible task to the end of its request (6.18), not only its deadline"));
TUNABLE(
    const volatile bool, rule_new_util_by_weight, true, UNIT("bool"), SETS("0", "1", "1"),
    DOC("a new task is assumed to use as much of its CPU as others of its weight there (6.10), not half of what is "
        "left"));

TUNABLE(
    const volatile bool, rule_delay_settles, false, UNIT("bool"), SETS_SINCE_7_2,
    DOC("a task that wakes up while it stays queued finds what the current one has used up to then charged, and its "
        "lag as it is now (7.2), not as of the last update"));
TUNABLE(const volatile bool, rule_wakeup_dequeues, false, UNIT("bool"), SETS_SINCE_7_2,
        DOC("the check at a wake-up dequeues the delayed entities that it finds to be next (7.2)"));
TUNABLE(const volatile bool, rule_lazy, false, UNIT("bool"), SETS_SINCE_7_2,
        DOC("a task that a wake-up or a tick shall preempt is checked by further wake-ups, too: that is asked lazily "
            "(PREEMPT_LAZY, 7.2)"));
TUNABLE(const volatile bool, rule_delay_keeps, false, UNIT("bool"), SETS_SINCE_7_2,
        DOC("the lag of a task that stays queued in its sleep does not become worse by what others do (7.2)"));

#endif
