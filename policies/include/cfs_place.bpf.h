/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The times of `cfs`: period and slice, the placement of an entity that joins a queue (place_entity), and the lead
 * that allows preemption. Times are wall ns unless they are called virtual; virtual ns are those of vruntime.
 *
 * Example (2.6.24, one CPU, five tasks of nice 0): the period is 20 ms, a slice 4 ms; a sixth task makes the period
 * 24 ms and is placed one slice, 4 ms, right of min_vruntime.
 */
#ifndef FAIRGROUND_CFS_PLACE_BPF_H
#define FAIRGROUND_CFS_PLACE_BPF_H

#include "cfs_queue.bpf.h"

/* The period in which `nr` entities run once each (__sched_period). */
static __always_inline u64 sched_period(u32 nr)
{
    u64 factor = tunable_factor();

    if (fits_latency(nr))
        return sched_latency_ns * factor;
    if (rule_period_scales_latency) {
        u64 nr_latency = (sched_latency_ns + sched_min_granularity_ns - 1) / (sched_min_granularity_ns ?: 1);

        return sched_latency_ns * factor * nr / (nr_latency ?: 1);
    }
    return sched_min_granularity_ns * factor * nr;
}

/* A slice within the groups above: * weight / load at each level. */
SEPARATE u64 slice_within_groups(u32 group, u32 cpu, u64 slice_ns)
{
    u32 level;

    for_range (level, GROUP_DEPTH_MAX) {
        struct group_entity *e;

        if (!group)
            break;
        e = entity_of(group, cpu);
        group = parent_group(group);
        slice_ns = slice_ns * e->weight / (READ_ONCE(queue_in(group, cpu)->load) ?: 1);
    }
    return slice_ns;
}

/* sched_slice: an entity's part of the period. `nr` and `load` include it. `idle`: it is a SCHED_IDLE task. */
static __always_inline u64 slice_of(const struct cfs_queue *q, u32 nr, u64 load, u32 weight, bool idle)
{
    u64 slice_ns = sched_period(ALT_PERIOD && unlikely(q->group) ? nr_running(q->cpu) : nr);
    slice_ns = slice_ns * weight / (load ?: 1);
    if (unlikely(q->group) && rule_slice_of_hierarchy)
        slice_ns = slice_within_groups(q->group, q->cpu, slice_ns);
    if (BASE_SLICE) {
        u64 shortest_ns = sched_min_granularity_ns * tunable_factor();

        if (unlikely(idle) && rule_idle_entities && q->nr_idle < nr)
            shortest_ns = sched_idle_min_granularity_ns;
        if (slice_ns < shortest_ns)
            slice_ns = shortest_ns;
    }
    return slice_ns;
}

/* The same, for those that need it rarely. */
SEPARATE u64 sched_slice(const struct cfs_queue *q, u32 nr, u64 load, u32 weight, bool idle)
{
    return q ? slice_of(q, nr, load, weight, idle) : 0;
}

/* The slice of the current entity. */
static __always_inline u64 curr_slice(const struct cfs_queue *q)
{
    return slice_of(q, nr_queued(q), READ_ONCE(q->load), q->curr_load.weight, q->curr_policy == SCHED_IDLE);
}

/* One slice of an entity that is about to join, virtual ns. */
static __always_inline u64 sched_vslice(const struct cfs_queue *q, u32 nr, u64 load, u32 weight, u32 inverse,
                                        bool idle)
{
    if (rule_queue_scaled_vruntime)
        return sched_period(nr);
    return virtual_time(sched_slice(q, nr, load, weight, idle), weight, inverse);
}

/* The base of place_entity: min_vruntime. With TREE_AVG or APPROX_AVG averaged_base() follows. */
static __always_inline u64 placement_base(struct cfs_queue *q)
{
    u64 left = 0;

    if (rule_min_vruntime == MIN_OF_TREE && find_left(q, &left))
        return min_time(q->min_vruntime, left);
    return q->min_vruntime;
}

/* The base moved by the averages that 2.6.24 has as options. nr and load without the new entity. */
SEPARATE u64 averaged_base(struct cfs_queue *q, u32 nr, u64 load, u64 base)
{
    u64 rightmost = 0;

    if (!q)
        return 0;
    if (TREE_AVG) {
        if (peek_queue(dsq_of(q), SCX_DSQ_ITER_REV, &rightmost))
            base += (u64)(time_diff(rightmost, base) >> 1);
    } else if (nr) {
        base += sched_period(nr) * NICE_0_WEIGHT / (load ?: 1) / 2;
    }
    return base;
}

/* The credit of an entity that has slept, virtual ns. `idle`: it is a SCHED_IDLE task. */
static __always_inline u64 sleeper_credit(const struct cfs_queue *q, bool idle, u32 weight, u32 inverse)
{
    u64 credit = (idle && rule_idle_entities ? sched_min_granularity_ns : sched_latency_ns) * tunable_factor();

    if (NORMALIZED_SLEEPER && !idle)
        credit = fair_delta(q, credit, weight, inverse);
    if (GENTLE_FAIR_SLEEPERS)
        credit >>= 1;
    return credit;
}

/*
 * wakeup_gran: the wake-up granularity, virtual ns, between one that runs (or is further right) and one that is
 * further left.
 */
static __always_inline u64 wakeup_gran(const struct cfs_queue *q, u32 right_weight, u32 right_inverse,
                                       u32 left_weight, u32 left_inverse)
{
    u64 gran = sched_wakeup_granularity_ns * tunable_factor();

    switch (rule_gran) {
    case GRAN_CURR:
        return virtual_time(gran, right_weight, right_inverse);
    case GRAN_QUEUE:
        if (ASYM_GRAN && right_weight < NICE_0_WEIGHT)
            right_inverse = nice_inverse[20];
        gran = scale_by_weight(gran, READ_ONCE(q->load), right_inverse);
        return q->group ? scale_by_groups(q->group, q->cpu, gran) : gran;
    case GRAN_HEAVY_CURR:
        if (!ASYM_GRAN || right_weight > NICE_0_WEIGHT)
            gran = virtual_time(gran, right_weight, right_inverse);
        return gran;
    default:
        return ASYM_GRAN ? virtual_time(gran, left_weight, left_inverse) : gran;
    }
}

/* The same, for those that need it rarely. */
SEPARATE u64 wakeup_granularity(const struct cfs_queue *q, u32 right_weight, u32 right_inverse, u32 left_weight,
                                u32 left_inverse)
{
    return q ? wakeup_gran(q, right_weight, right_inverse, left_weight, left_inverse) : 0;
}

#endif
