/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tunables of the load balancer, and their values by release. The names are the kernel's where it had one (a
 * constant or a sysctl); rule_* are changes between releases without a switch.
 *
 * A scheduler defines before its first include the column of its defaults, and the column of each of its parameter
 * sets:
 *
 *     #define BALANCE_RELEASE 2_6_24
 *     #define BALANCE_SETS(t) BALANCE_SET("2.6.24", t, 2_6_24) BALANCE_SET("6.1", t, 6_1)
 *
 * Columns: 2_6_22, 2_6_23_RC1, 2_6_23_RC2 (rc2 and rc3), 2_6_23_RC4 (rc4 and rc5), 2_6_23, 2_6_24, 2_6_27, 6_1. The
 * column 6_1 has the choice of a CPU at a wake-up of 6.1 to 7.2 (balance_wake.bpf.h), the domains of 6.1, and later
 * moves by the kinds of groups of 5.5 to 7.2 (balance_kinds.bpf.h); both by loads over time.
 */
#ifndef FAIRGROUND_BALANCE_TUNABLES_BPF_H
#define FAIRGROUND_BALANCE_TUNABLES_BPF_H

#include "scx.bpf.h"

#define BALANCE_TEXT_(value)             #value
#define BALANCE_TEXT(value)              BALANCE_TEXT_(value)
#define BALANCE_COLUMN_(tunable, column) tunable##_##column
#define BALANCE_COLUMN(tunable, column)  BALANCE_COLUMN_(tunable, column)
/* The tag that gives `tunable` the value of a column in a parameter set of the scheduler. */
#define BALANCE_SET(set, tunable, column) SET(set, BALANCE_TEXT(tunable##_##column))
#define BALANCE_DEFAULT(tunable)          BALANCE_COLUMN(tunable, BALANCE_RELEASE)

#ifndef BALANCE_RELEASE
#define BALANCE_RELEASE 2_6_24
#endif
#ifndef BALANCE_SETS
#define BALANCE_SETS(tunable)
#endif
/* SCHED_LOAD_SCALE: the load of one task of nice 0, and the power of one CPU. 128 until 2.6.22. */
#ifndef BALANCE_SCALE
#define BALANCE_SCALE 1024
#endif

/*
 * imbalance < lpt; imbalance + FUZZ < lpt / 2; imbalance + FUZZ < lpt. lpt: mean load of a task of the busiest group.
 */
enum small_rule { SMALL_LPT, SMALL_HALF_LPT_FUZZ, SMALL_LPT_FUZZ };
/* weight > what is left to move; weight / 2 > what is left + FUZZ; load / 2^failures > what is left. */
enum skip_rule { SKIP_WEIGHT, SKIP_HALF_WEIGHT, SKIP_HALVED };
/* By loads alone; by kinds of groups (balance_kinds.bpf.h). */
enum imbalance_rule { IMBALANCE_BY_LOAD, IMBALANCE_BY_KIND };
enum group_imb_rule { GROUP_IMB_NEVER, GROUP_IMB_SCALE, GROUP_IMB_TWO_TASKS };
enum domain_rule { DOMAINS_2_6_22, DOMAINS_2_6_23, DOMAINS_2_6_24, DOMAINS_6_1 };
enum wake_rule { WAKE_AFFINE, WAKE_AFFINE_SYNC, WAKE_NEAR_IDLE, WAKE_FAIR };

#define FUZZ_2_6_22     0
#define FUZZ_2_6_23_RC1 32
#define FUZZ_2_6_23_RC2 512
#define FUZZ_2_6_23_RC4 1024
#define FUZZ_2_6_23     1024
#define FUZZ_2_6_24     1024
#define FUZZ_2_6_27     0
#define FUZZ_6_1        0

#define SMALL_RULE_2_6_22     SMALL_LPT
#define SMALL_RULE_2_6_23_RC1 SMALL_HALF_LPT_FUZZ
#define SMALL_RULE_2_6_23_RC2 SMALL_HALF_LPT_FUZZ
#define SMALL_RULE_2_6_23_RC4 SMALL_LPT_FUZZ
#define SMALL_RULE_2_6_23     SMALL_LPT
#define SMALL_RULE_2_6_24     SMALL_LPT
#define SMALL_RULE_2_6_27     SMALL_LPT
#define SMALL_RULE_6_1        SMALL_LPT

#define NO_GAIN_MOVES_2_6_22     0
#define NO_GAIN_MOVES_2_6_23_RC1 0
#define NO_GAIN_MOVES_2_6_23_RC2 0
#define NO_GAIN_MOVES_2_6_23_RC4 0
#define NO_GAIN_MOVES_2_6_23     1
#define NO_GAIN_MOVES_2_6_24     1
#define NO_GAIN_MOVES_2_6_27     1
#define NO_GAIN_MOVES_6_1        1

#define DIFFERENCE_TASKS_2_6_22     0
#define DIFFERENCE_TASKS_2_6_23_RC1 0
#define DIFFERENCE_TASKS_2_6_23_RC2 0
#define DIFFERENCE_TASKS_2_6_23_RC4 0
#define DIFFERENCE_TASKS_2_6_23     0
#define DIFFERENCE_TASKS_2_6_24     0
#define DIFFERENCE_TASKS_2_6_27     2
#define DIFFERENCE_TASKS_6_1        2

#define SKIP_RULE_2_6_22     SKIP_WEIGHT
#define SKIP_RULE_2_6_23_RC1 SKIP_HALF_WEIGHT
#define SKIP_RULE_2_6_23_RC2 SKIP_HALF_WEIGHT
#define SKIP_RULE_2_6_23_RC4 SKIP_HALF_WEIGHT
#define SKIP_RULE_2_6_23     SKIP_HALF_WEIGHT
#define SKIP_RULE_2_6_24     SKIP_HALF_WEIGHT
#define SKIP_RULE_2_6_27     SKIP_HALF_WEIGHT
#define SKIP_RULE_6_1        SKIP_HALVED

#define HOT_2_6_22     1
#define HOT_2_6_23_RC1 0
#define HOT_2_6_23_RC2 0
#define HOT_2_6_23_RC4 0
#define HOT_2_6_23     0
#define HOT_2_6_24     1
#define HOT_2_6_27     1
#define HOT_6_1        1

#define MIGRATION_COST_2_6_22     2500000
#define MIGRATION_COST_2_6_23_RC1 500000
#define MIGRATION_COST_2_6_23_RC2 500000
#define MIGRATION_COST_2_6_23_RC4 500000
#define MIGRATION_COST_2_6_23     500000
#define MIGRATION_COST_2_6_24     500000
#define MIGRATION_COST_2_6_27     500000
#define MIGRATION_COST_6_1        500000

#define NR_MIGRATE_2_6_22     4294967295
#define NR_MIGRATE_2_6_23_RC1 4294967295
#define NR_MIGRATE_2_6_23_RC2 4294967295
#define NR_MIGRATE_2_6_23_RC4 4294967295
#define NR_MIGRATE_2_6_23     4294967295
#define NR_MIGRATE_2_6_24     32
#define NR_MIGRATE_2_6_27     32
#define NR_MIGRATE_6_1        32

#define GROUP_IMB_2_6_22     GROUP_IMB_NEVER
#define GROUP_IMB_2_6_23_RC1 GROUP_IMB_NEVER
#define GROUP_IMB_2_6_23_RC2 GROUP_IMB_NEVER
#define GROUP_IMB_2_6_23_RC4 GROUP_IMB_NEVER
#define GROUP_IMB_2_6_23     GROUP_IMB_NEVER
#define GROUP_IMB_2_6_24     GROUP_IMB_SCALE
#define GROUP_IMB_2_6_27     GROUP_IMB_TWO_TASKS
#define GROUP_IMB_6_1        GROUP_IMB_TWO_TASKS

#define ROUND_UP_2_6_22     1
#define ROUND_UP_2_6_23_RC1 0
#define ROUND_UP_2_6_23_RC2 0
#define ROUND_UP_2_6_23_RC4 0
#define ROUND_UP_2_6_23     0
#define ROUND_UP_2_6_24     1
#define ROUND_UP_2_6_27     1
#define ROUND_UP_6_1        1

#define DOMAIN_RULE_2_6_22     DOMAINS_2_6_22
#define DOMAIN_RULE_2_6_23_RC1 DOMAINS_2_6_23
#define DOMAIN_RULE_2_6_23_RC2 DOMAINS_2_6_23
#define DOMAIN_RULE_2_6_23_RC4 DOMAINS_2_6_23
#define DOMAIN_RULE_2_6_23     DOMAINS_2_6_23
#define DOMAIN_RULE_2_6_24     DOMAINS_2_6_24
#define DOMAIN_RULE_2_6_27     DOMAINS_2_6_24
#define DOMAIN_RULE_6_1        DOMAINS_6_1

#define IMBALANCE_RULE_2_6_22     IMBALANCE_BY_LOAD
#define IMBALANCE_RULE_2_6_23_RC1 IMBALANCE_BY_LOAD
#define IMBALANCE_RULE_2_6_23_RC2 IMBALANCE_BY_LOAD
#define IMBALANCE_RULE_2_6_23_RC4 IMBALANCE_BY_LOAD
#define IMBALANCE_RULE_2_6_23     IMBALANCE_BY_LOAD
#define IMBALANCE_RULE_2_6_24     IMBALANCE_BY_LOAD
#define IMBALANCE_RULE_2_6_27     IMBALANCE_BY_LOAD
#define IMBALANCE_RULE_6_1        IMBALANCE_BY_KIND

#define WAKE_RULE_2_6_22     WAKE_AFFINE
#define WAKE_RULE_2_6_23_RC1 WAKE_AFFINE
#define WAKE_RULE_2_6_23_RC2 WAKE_AFFINE
#define WAKE_RULE_2_6_23_RC4 WAKE_AFFINE
#define WAKE_RULE_2_6_23     WAKE_AFFINE
#define WAKE_RULE_2_6_24     WAKE_AFFINE_SYNC
#define WAKE_RULE_2_6_27     WAKE_AFFINE_SYNC
#define WAKE_RULE_6_1        WAKE_FAIR

#define IDLE_SCAN_2_6_22     0
#define IDLE_SCAN_2_6_23_RC1 0
#define IDLE_SCAN_2_6_23_RC2 0
#define IDLE_SCAN_2_6_23_RC4 0
#define IDLE_SCAN_2_6_23     0
#define IDLE_SCAN_2_6_24     0
#define IDLE_SCAN_2_6_27     0
#define IDLE_SCAN_6_1        1

TUNABLE(u64, sched_load_scale_fuzz, BALANCE_DEFAULT(FUZZ), UNIT("count"), BALANCE_SETS(FUZZ),
        DOC("SCHED_LOAD_SCALE_FUZZ: over-balancing, load that counts as imbalance beside what was found (32 in "
            "2.6.23-rc1, then 512, then 1024; gone in 2.6.27)"));
TUNABLE(
    u64, sched_migration_cost_ns, BALANCE_DEFAULT(MIGRATION_COST), UNIT("ns"), BALANCE_SETS(MIGRATION_COST),
    DOC("a task that ran less long ago than this is cache-hot and stays (until 2.6.22: cache_hot_time of the domain, "
        "measured at boot)"));
TUNABLE(u32, sched_nr_migrate, BALANCE_DEFAULT(NR_MIGRATE), UNIT("count"), BALANCE_SETS(NR_MIGRATE),
        DOC("limit of the tasks that one balance examines (2.6.24)"));
TUNABLE(
    const volatile enum small_rule, rule_small_imbalance, BALANCE_DEFAULT(SMALL_RULE), UNIT("enum"),
    BALANCE_SETS(SMALL_RULE),
    DOC("when an imbalance is too small to move a task without a second check: below the mean load of a task (lpt; "
        "2.6.22, 2.6.23), imbalance + fuzz below half of it (2.6.23-rc1), imbalance + fuzz below it (rc4)"));
TUNABLE(const volatile bool, rule_small_no_gain_moves, BALANCE_DEFAULT(NO_GAIN_MOVES), UNIT("bool"),
        BALANCE_SETS(NO_GAIN_MOVES),
        DOC("when that second check finds no gain, the imbalance is moved anyway (2.6.23-rc6)"));
TUNABLE(const volatile u32, rule_difference_tasks, BALANCE_DEFAULT(DIFFERENCE_TASKS), UNIT("count"),
        BALANCE_SETS(DIFFERENCE_TASKS),
        DOC("in place of the fuzz: this many mean tasks are added to the difference of the loads (2.6.27: 2)"));
TUNABLE(const volatile enum skip_rule, rule_skip, BALANCE_DEFAULT(SKIP_RULE), UNIT("enum"), BALANCE_SETS(SKIP_RULE),
        DOC("a task is too heavy to be moved: its weight (2.6.22), half of it (2.6.23), or its load over time, "
            "halved for each failure "
            "(5.5) exceeds what is left to move"));
TUNABLE(const volatile enum imbalance_rule, rule_imbalance, BALANCE_DEFAULT(IMBALANCE_RULE), UNIT("enum"),
        BALANCE_SETS(IMBALANCE_RULE),
        DOC("what counts as imbalance: a difference of loads, or the kinds of the groups: spare CPUs, fully "
            "busy, overloaded (5.5; "
            "`cfs` and `eevdf`)"));
TUNABLE(const volatile bool, rule_hot, BALANCE_DEFAULT(HOT), UNIT("bool"), BALANCE_SETS(HOT),
        DOC("cache-hot tasks stay, until balancing failed several times (not in 2.6.23)"));
TUNABLE(
    const volatile enum group_imb_rule, rule_group_imb, BALANCE_DEFAULT(GROUP_IMB), UNIT("enum"),
    BALANCE_SETS(GROUP_IMB),
    DOC("a group of several CPUs counts as overloaded when their loads differ by more than one nice-0 task (2.6.24), "
        "two mean tasks (2.6.27)"));
TUNABLE(const volatile bool, rule_load_rounds_up, BALANCE_DEFAULT(ROUND_UP), UNIT("bool"), BALANCE_SETS(ROUND_UP),
        DOC("rising averages of the load round up, so that they reach it (not in 2.6.23)"));
TUNABLE(const volatile enum domain_rule, rule_domains, BALANCE_DEFAULT(DOMAIN_RULE), UNIT("enum"),
        BALANCE_SETS(DOMAIN_RULE), DOC("the table of intervals, load indices and flags per level of the machine"));
TUNABLE(
    const volatile enum wake_rule, rule_wake, BALANCE_DEFAULT(WAKE_RULE), UNIT("enum"), BALANCE_SETS(WAKE_RULE),
    DOC("where a task wakes up: by the loads of the waker's and its own CPU, the same with sync wake-ups to the "
        "waker (2.6.24), at an idle CPU near by, by loads over time and then at an idle CPU near by (6.1; `cfs` and "
        "`eevdf`)"));
TUNABLE(
    bool, SIS_UTIL, BALANCE_DEFAULT(IDLE_SCAN), UNIT("bool"), BALANCE_SETS(IDLE_SCAN),
    DOC("the busier a cache, the fewer of its CPUs a wake-up searches for an idle one (5.19; `cfs` and `eevdf`)"));
TUNABLE(
    u64, newidle_search_ns, 0, UNIT("ns"), COST("newidle_max_ns"),
    DOC("max_newidle_lb_cost at the start: how long a search of a CPU that becomes idle took at most before. A CPU "
        "that is idle for less on average does not search (3.13; `cfs` and `eevdf` of 6.1 and later). The simulated "
        "machine sets it to its cost newidle_max_ns"));
TUNABLE(u32, wakee_flips_at_start, 16, UNIT("count"),
        DOC("how many different tasks a task counts as having woken recently when the scheduler does not know its "
            "parent: tasks inherit that from the first processes of a system (`cfs` and `eevdf` of 6.1 and later)"));
TUNABLE(const volatile bool, trace_balance, false, UNIT("bool"),
        DOC("prints one line for each decision of the balancer: which rule acted, and the numbers"));

#endif
