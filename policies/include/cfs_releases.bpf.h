/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `cfs` by release: one column is one parameter set, `cfs@2.6.26` runs as Linux 2.6.26 did. cfs_tunables.bpf.h
 * defines the variables and explains them; a row here gives their values. A release that is not named behaves like
 * the one before it: 2.6.29 as 2.6.28, 2.6.31 as 2.6.30, 2.6.33 as 2.6.32, unless a row says otherwise. 2.6.27-sle11
 * is 2.6.27 as shipped with SLE 11, without HRTICK.
 *
 * A row declares the variable with the tags `set:2.6.24=...`; its definition, further down in the program, inherits
 * them.
 */
#ifndef FAIRGROUND_CFS_RELEASES_BPF_H
#define FAIRGROUND_CFS_RELEASES_BPF_H

#include "scaling.bpf.h"

enum gran_rule { GRAN_CURR, GRAN_QUEUE, GRAN_HEAVY_CURR, GRAN_WAKEE };
enum min_rule { MIN_AT_UPDATE, MIN_OF_TREE, MIN_AT_DEQUEUE };
enum next_rule { NEXT_NEAR, NEXT_PAIR };
enum shares_rule { SHARES_FULL, SHARES_BY_WEIGHT, SHARES_BY_LOAD };

#define RELEASES(type, name, v24, v25, v26, v27, sle11, v28, v30, v32, v36, v61, v65)                                \
    extern type name SET("2.6.24", #v24) SET("2.6.25", #v25) SET("2.6.26", #v26) SET("2.6.27", #v27)                 \
        SET("2.6.27-sle11", #sle11) SET("2.6.28", #v28) SET("2.6.30", #v30) SET("2.6.32", #v32) SET("2.6.36", #v36)  \
            SET("6.1", #v61) SET("6.5", #v65)

/* clang-format off */

/*                                             .24    .25    .26    .27  sle11    .28    .30    .32    .36    6.1    6.5 */
RELEASES(u64, sched_latency_ns,               20ms,  20ms,  20ms,  20ms,  20ms,  20ms,  20ms,   5ms,   6ms,   6ms,   6ms);
RELEASES(u64, sched_min_granularity_ns,        4ms,   4ms,   4ms,   4ms,   4ms,   4ms,   4ms,   1ms, 750us, 750us, 750us);
RELEASES(u64, sched_wakeup_granularity_ns,    10ms,   5ms,  10ms,   5ms,   5ms,   5ms,   5ms,   1ms,   1ms,   1ms,   1ms);
RELEASES(bool, sched_child_runs_first,          on,    on,    on,    on,    on,    on,    on,   off,   off,   off,   off);
RELEASES(const volatile u32, rule_scaling_cpus_max,          4294967295, 4294967295, 4294967295, 4294967295, 4294967295, 4294967295,
                                              4294967295, 4294967295,                                      8,     8,     8);

/* Features that kernel/sched_features.h had switched on. */
RELEASES(bool, FAIR_SLEEPERS,                   on,    on,    on,    on,    on,    on,    on,    on,    on,    on,    on);
RELEASES(bool, GENTLE_FAIR_SLEEPERS,           off,   off,   off,   off,   off,   off,   off,    on,    on,    on,    on);
RELEASES(bool, NORMALIZED_SLEEPER,             off,   off,   off,    on,    on,    on,   off,   off,   off,   off,   off);
RELEASES(bool, START_DEBIT,                     on,    on,    on,    on,    on,    on,    on,    on,    on,    on,    on);
RELEASES(bool, WAKEUP_PREEMPTION,               on,    on,    on,    on,    on,    on,    on,    on,    on,    on,    on);
RELEASES(bool, TREE_AVG,                       off,   off,   off,   off,   off,   off,   off,   off,   off,   off,   off);
RELEASES(bool, APPROX_AVG,                     off,   off,   off,   off,   off,   off,   off,   off,   off,   off,   off);
RELEASES(bool, ASYM_GRAN,                      off,   off,    on,    on,    on,    on,    on,    on,    on,    on,    on);
RELEASES(bool, ADAPTIVE_GRAN,                  off,   off,   off,   off,   off,   off,    on,    on,   off,   off,   off);
RELEASES(bool, LAST_BUDDY,                     off,   off,   off,   off,   off,    on,    on,    on,    on,    on,    on);
RELEASES(bool, NEXT_BUDDY,                     off,   off,    on,    on,    on,    on,    on,   off,   off,   off,   off);
RELEASES(bool, HRTICK,                         off,    on,    on,    on,   off,   off,   off,   off,   off,   off,   off);
RELEASES(bool, DOUBLE_TICK,                    off,   off,   off,   off,   off,   off,   off,   off,   off,   off,   off);
RELEASES(bool, BASE_SLICE,                     off,   off,   off,   off,   off,   off,   off,   off,   off,    on,    on);
RELEASES(bool, ALT_PERIOD,                     off,   off,   off,   off,   off,   off,   off,   off,   off,    on,    on);
RELEASES(bool, NI_RANDOM,                      off,   off,   off,   off,   off,   off,   off,   off,   off,    on,   off);

/* Changes without a switch. */
RELEASES(const volatile enum gran_rule, rule_gran, GRAN_CURR, GRAN_CURR, GRAN_HEAVY_CURR, GRAN_QUEUE, GRAN_QUEUE, GRAN_HEAVY_CURR,
                                    GRAN_WAKEE, GRAN_WAKEE, GRAN_WAKEE, GRAN_WAKEE, GRAN_WAKEE);
RELEASES(const volatile enum min_rule, rule_min_vruntime, MIN_AT_UPDATE, MIN_OF_TREE, MIN_OF_TREE, MIN_OF_TREE, MIN_OF_TREE,
                 MIN_AT_DEQUEUE, MIN_AT_DEQUEUE, MIN_AT_DEQUEUE, MIN_AT_DEQUEUE, MIN_AT_DEQUEUE, MIN_AT_DEQUEUE);
RELEASES(const volatile enum next_rule, rule_next_buddy, NEXT_NEAR, NEXT_NEAR, NEXT_NEAR, NEXT_PAIR, NEXT_PAIR, NEXT_NEAR, NEXT_NEAR,
                                          NEXT_NEAR, NEXT_NEAR, NEXT_NEAR, NEXT_NEAR);
RELEASES(const volatile enum shares_rule, rule_shares, SHARES_FULL, SHARES_FULL, SHARES_BY_WEIGHT, SHARES_BY_WEIGHT,
         SHARES_BY_WEIGHT, SHARES_BY_WEIGHT, SHARES_BY_WEIGHT, SHARES_BY_WEIGHT, SHARES_BY_WEIGHT,
         SHARES_BY_LOAD, SHARES_BY_LOAD);

/*                                             .24    .25    .26    .27  sle11    .28    .30    .32    .36    6.1    6.5 */
RELEASES(const volatile bool, rule_queue_scaled_vruntime,     off,   off,   off,    on,    on,   off,   off,   off,   off,   off,   off);
RELEASES(const volatile bool, rule_period_scales_latency,      on,   off,   off,   off,   off,   off,   off,   off,   off,   off,   off);
RELEASES(const volatile bool, rule_slice_of_hierarchy,        off,   off,    on,    on,    on,    on,    on,    on,    on,    on,    on);
RELEASES(const volatile bool, rule_group_sleeps_with_credit,  off,    on,    on,    on,    on,    on,    on,    on,    on,    on,    on);
RELEASES(const volatile bool, rule_tick_checks_vruntime,      off,   off,   off,   off,   off,   off,   off,    on,    on,    on,    on);
RELEASES(const volatile bool, rule_tick_obeys_preemption,     off,   off,   off,   off,   off,   off,   off,    on,    on,   off,   off);
RELEASES(const volatile bool, rule_slice_within_latency,      off,   off,   off,   off,   off,   off,   off,   off,   off,   off,    on);
RELEASES(const volatile bool, rule_hrtick_few,                off,   off,   off,   off,   off,    on,    on,    on,    on,    on,    on);
RELEASES(const volatile bool, rule_place_never_left,          off,   off,   off,   off,   off,   off,   off,    on,    on,    on,    on);
RELEASES(const volatile bool, rule_fork_stays,                 on,    on,   off,   off,   off,   off,   off,   off,   off,   off,   off);
RELEASES(const volatile bool, rule_fork_parent_queue,         off,   off,   off,   off,   off,   off,   off,   off,    on,    on,    on);
RELEASES(const volatile bool, rule_fork_reschedules,           on,    on,    on,   off,   off,   off,   off,   off,   off,   off,   off);
RELEASES(const volatile bool, rule_sync_keeps_waker,           on,   off,   off,   off,   off,   off,   off,   off,   off,   off,   off);
RELEASES(const volatile bool, rule_repick_starts_slice,        on,    on,    on,    on,    on,    on,    on,    on,    on,   off,   off);
RELEASES(const volatile bool, rule_last_of_many,              off,   off,   off,   off,   off,   off,   off,    on,    on,    on,    on);
RELEASES(const volatile bool, rule_last_beats_next,           off,   off,   off,   off,   off,   off,   off,    on,    on,   off,   off);
RELEASES(const volatile bool, rule_hints_next,                off,   off,   off,   off,   off,   off,   off,   off,   off,    on,    on);
RELEASES(const volatile bool, rule_yield_skips,               off,   off,   off,   off,   off,   off,   off,   off,   off,    on,    on);
RELEASES(const volatile bool, rule_batch_yields_right,         on,    on,    on,    on,    on,    on,    on,    on,    on,   off,   off);
RELEASES(const volatile bool, rule_clock_stands,              off,   off,   off,   off,   off,   off,   off,   off,    on,    on,    on);
RELEASES(const volatile bool, rule_idle_entities,             off,   off,   off,   off,   off,   off,   off,   off,   off,    on,    on);
RELEASES(const volatile u32, rule_idle_weight,                  2,     2,     2,     2,     2,     2,     3,     3,     3,     3,     3);

/* clang-format on */

#endif
