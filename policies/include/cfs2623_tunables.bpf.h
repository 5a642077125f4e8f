/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tunables of `cfs_2_6_23`: sysctls and feature bits of 2.6.23 by their own names, and, named rule_*, changes
 * between the release candidates without a switch. Sets: 2.6.23-rc1, 2.6.23-rc3, 2.6.23-rc6, 2.6.23 (the default).
 *
 * kernel.sched_features as a number: FAIR_SLEEPERS 1, SLEEPER_AVG 2, SLEEPER_LOAD_AVG 4, PRECISE_CPU_LOAD 8,
 * START_DEBIT 16, SKIP_INITIAL 32. It was 31 in -rc1 and 29 from -rc3 on.
 */
#ifndef FAIRGROUND_CFS2623_TUNABLES_BPF_H
#define FAIRGROUND_CFS2623_TUNABLES_BPF_H

/* The balancer of 2.6.23: -rc6 has the release's rules, commit 7fd0d2dde92. */
#define BALANCE_RELEASE 2_6_23
#define BALANCE_SETS(t)                                                                                              \
    BALANCE_SET("2.6.23-rc1", t, 2_6_23_RC1)                                                                         \
    BALANCE_SET("2.6.23-rc3", t, 2_6_23_RC2) BALANCE_SET("2.6.23-rc6", t, 2_6_23) BALANCE_SET("2.6.23", t, 2_6_23)

#include "scaling.bpf.h"

#define SETS(rc1, rc3, rc6, release)                                                                                 \
    SET("2.6.23-rc1", rc1) SET("2.6.23-rc3", rc3) SET("2.6.23-rc6", rc6) SET("2.6.23", release)

/* The current task's payment for the bonus of sleepers. */
enum bonus_rule { PAY_SHARE_OF_BONUS, PAY_SHARE_OF_TIME, PAY_ALL };

extern u32 CONFIG_HZ __kconfig __weak;

/* kernel/sched_fair.c: sysctl_sched_*. Times are base values, see tunable_factor(). */
TUNABLE(u64, sched_latency_ns, 20000000, UNIT("ns"), SETS("0", "0", "20000000", "20000000"),
        DOC("period in which each task runs once; times the factor, at most 100 ms (from rc4 on)"));
TUNABLE(u64, sched_min_granularity_ns, 2000000, UNIT("ns"), SETS("0", "0", "2000000", "2000000"),
        DOC("shortest part of the period; times the factor, at most 100 ms (from rc4 on)"));
TUNABLE(u64, sched_granularity_ns, 0, UNIT("ns"), SETS("0", "0", "0", "0"),
        DOC("key distance at which a tick ends a slice, times the factor; 0: two ticks (until rc3)"));
TUNABLE(u64, sched_wakeup_granularity_ns, 0, UNIT("ns"), SETS("0", "0", "0", "0"),
        DOC("a waking task preempts when it is left of the current one by more; times the factor; 0: half of "
            "sched_min_granularity, until rc3 of sched_granularity"));
TUNABLE(u64, sched_batch_wakeup_granularity_ns, 25000000, UNIT("ns"), SETS("0", "0", "25000000", "25000000"),
        DOC("the same for a waking SCHED_BATCH task, not scaled; 0: ten ticks"));
TUNABLE(u64, sched_runtime_limit_ns, 0, UNIT("ns"), SETS("0", "0", "0", "0"),
        DOC("bound of |wait_runtime|, times the factor, at most 100 ms; 0: sched_latency, until rc3 four times "
            "sched_granularity"));
TUNABLE(u64, sched_stat_granularity_ns, 0, UNIT("ns"), SETS("0", "0", "0", "0"),
        DOC("time is charged in pieces longer than this"));
TUNABLE(bool, sched_child_runs_first, true, UNIT("bool"), SETS("1", "1", "1", "1"),
        DOC("a new process is put left of its parent, far enough to preempt it"));
TUNABLE(bool, sched_compat_yield, false, UNIT("bool"), SETS("0", "0", "0", "0"),
        DOC("sched_yield goes behind the rightmost task (from rc7 on)"));
TUNABLE(enum tunable_scaling, sched_tunable_scaling, SCALING_LOG, UNIT("enum"),
        SETS("SCALING_LOG", "SCALING_LOG", "SCALING_LOG", "SCALING_LOG"),
        DOC("factor on the times: none 1, log 1 + log2(CPUs) (always in 2.6.23), linear CPUs"));

/* kernel.sched_features */
TUNABLE(bool, FAIR_SLEEPERS, true, UNIT("bool"), SETS("1", "1", "1", "1"),
        DOC("a task that wakes up is given the time that it would have got by waiting"));
TUNABLE(bool, SLEEPER_AVG, false, UNIT("bool"), SETS("1", "0", "0", "0"),
        DOC("that credit is scaled by load / (load + own weight), as if the task had been there"));
TUNABLE(bool, SLEEPER_LOAD_AVG, true, UNIT("bool"), SETS("1", "1", "1", "1"),
        DOC("for SLEEPER_AVG: the load is the average cpu_load[2], not that of the moment"));
TUNABLE(bool, PRECISE_CPU_LOAD, true, UNIT("bool"), SETS("1", "1", "1", "1"),
        DOC("the balancer's averages are fed by measured load, time run / fair time passed, not by the load at the "
            "tick"));
TUNABLE(bool, START_DEBIT, true, UNIT("bool"), SETS("1", "1", "1", "1"),
        DOC("a new process starts with a debt of half a granularity"));
TUNABLE(bool, SKIP_INITIAL, false, UNIT("bool"), SETS("0", "0", "0", "0"),
        DOC("a new process is not credited its first wait"));

/* Changes that had no switch. */
TUNABLE(bool, rule_fork_stays, true, UNIT("bool"), SETS("1", "1", "1", "1"),
        DOC("a new task starts on the CPU of its parent; off: where execve would place it"));
TUNABLE(const volatile bool, rule_first_weights, false, UNIT("bool"), SETS("1", "0", "0", "0"),
        DOC("the first weight table (until rc2)"));
TUNABLE(const volatile bool, rule_rounds, true, UNIT("bool"), SETS("0", "1", "1", "1"),
        DOC("scaling rounds to the nearest and is not capped; else down, at most sched_runtime_limit (until rc2)"));
TUNABLE(const volatile bool, rule_key_multiplies, false, UNIT("bool"), SETS("1", "0", "0", "0"),
        DOC("a positive wait_runtime moves the key by * weight / 1024, where it should be * 1024 / weight (rc1)"));
TUNABLE(const volatile bool, rule_niced_gran_divides, true, UNIT("bool"), SETS("0", "1", "1", "1"),
        DOC("the granularity of a heavy current task is divided by its weight (not in rc1)"));
TUNABLE(
    const volatile bool, rule_latency, true, UNIT("bool"), SETS("0", "0", "1", "1"),
    DOC("granularity and ideal slice follow from sched_latency and the number of tasks; else it is sched_granularity "
        "(until rc3)"));
TUNABLE(
    const volatile enum bonus_rule, rule_bonus, PAY_ALL, UNIT("enum"),
    SETS("PAY_SHARE_OF_BONUS", "PAY_SHARE_OF_TIME", "PAY_ALL", "PAY_ALL"),
    DOC("what the current task pays of the sleepers' bonus: its share of the bonus (rc1), of the time that it ran "
        "(rc2, rc3), all that it is entitled to (from rc4 on)"));
TUNABLE(const volatile bool, rule_bonus_limit, true, UNIT("bool"), SETS("0", "0", "1", "1"),
        DOC("no credit for sleepers while more than sched_runtime_limit is unpaid (from rc4 on)"));
TUNABLE(const volatile bool, rule_wait_needs_start, true, UNIT("bool"), SETS("0", "0", "1", "1"),
        DOC("a wait that began at fair time 0 counts as no wait (not in rc1)"));

#endif
