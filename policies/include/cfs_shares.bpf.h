/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The weight of a group on one CPU. Its shares are for all CPUs together; tg->shares 1024 is the weight of one nice-0
 * task.
 *
 * SHARES_FULL (2.6.24): all of them on every CPU. SHARES_BY_WEIGHT (2.6.26, update_group_shares_cpu): in proportion
 * to the runnable weight there. SHARES_BY_LOAD (4.x to 6.5, calc_group_shares): in proportion to the greater of that
 * weight and its mean over some ten milliseconds, so that a CPU whose tasks sleep for a moment keeps its part.
 *
 * Example: shares 1024, three hogs of weight 1024 on CPU 0 and one on CPU 1: 1024 and 1024, or 768 and 256.
 *
 * The kernel computes the weights of all CPUs when one of them balances (until 2.6.37), or each CPU its own at its
 * ticks, as here.
 */
#ifndef FAIRGROUND_CFS_SHARES_BPF_H
#define FAIRGROUND_CFS_SHARES_BPF_H

#include "cfs_place.bpf.h"

/* Smaller changes are ignored (sysctl_sched_shares_thresh); a CPU reports its mean when it has moved by 1/64. */
#define SHARES_THRESHOLD 4
#define AVERAGE_SHIFT    6
/* The mean halves within 32 steps of 2^20 ns. */
#define AVERAGE_STEP_SHIFT 20
#define AVERAGE_HALF       32

/* 2^-(i/32) * 2^32, rounded down: the remainder after i steps. */
static const u32 average_left[AVERAGE_HALF] = {
    4294967295, 4202935003, 4112874773, 4024744347, 3938502375, 3854108391, 3771522796, 3690706839,
    3611622602, 3534232977, 3458501653, 3384393094, 3311872529, 3240905930, 3171459999, 3103502151,
    3037000499, 2971923841, 2908241642, 2845924020, 2784941737, 2725266179, 2666869344, 2609723833,
    2553802833, 2499080104, 2445529971, 2393127307, 2341847523, 2291666560, 2242560871, 2194507416,
};

/* Updates a group's mean load on a CPU; `load` is the runnable load since the last call. */
SEPARATE void average_group_load(u32 group, u32 cpu, u64 load)
{
    struct group_entity *e = entity_of(group, cpu);
    u64 steps = (scx_bpf_now() - e->averaged_ns) >> AVERAGE_STEP_SHIFT;
    u32 halvings = (u32)(steps / AVERAGE_HALF);
    s64 excess, change;

    if (!steps)
        return;
    e->averaged_ns += steps << AVERAGE_STEP_SHIFT;
    excess = (s64)(e->load_avg - load);
    if (halvings > 32)
        excess = 0;
    else if (excess >= 0)
        excess = (s64)(mul_shift_right((u64)excess, average_left[steps & (AVERAGE_HALF - 1)], 32) >> halvings);
    else
        excess = -(s64)(mul_shift_right((u64)-excess, average_left[steps & (AVERAGE_HALF - 1)], 32) >> halvings);
    e->load_avg = load + (u64)excess;
    change = (s64)(e->load_avg - e->reported_avg);
    if ((change < 0 ? -change : change) > (s64)(e->reported_avg >> AVERAGE_SHIFT)) {
        e->reported_avg = e->load_avg;
        __sync_fetch_and_add(&group_of(group)->load_avg, (u64)change);
    }
}

/* The same for a group and those above it, before one of their loads changes. */
SEPARATE void average_groups(u32 group, u32 cpu)
{
    u32 level;

    if (rule_shares != SHARES_BY_LOAD)
        return;
    for_range (level, GROUP_DEPTH_MAX) {
        if (!group)
            break;
        average_group_load(group, cpu, READ_ONCE(queue_in(group, cpu)->load));
        group = parent_group(group);
    }
}

static __always_inline u32 clamp_shares(u64 shares, u32 most)
{
    if (shares < GROUP_SHARES_MIN)
        return GROUP_SHARES_MIN;
    return shares > most ? most : (u32)shares;
}

/* The weight that a group's entity should have on a CPU now. */
static __always_inline u32 shares_on(u32 group, u32 cpu)
{
    struct group *g = group_of(group);
    struct group_entity *e = entity_of(group, cpu);
    u64 load = READ_ONCE(queue_in(group, cpu)->load), total;

    switch (rule_shares) {
    case SHARES_BY_WEIGHT:
        total = READ_ONCE(g->load);
        return clamp_shares(g->shares * load / (total ?: 1), GROUP_SHARES_MAX);
    case SHARES_BY_LOAD:
        if (load < e->load_avg)
            load = e->load_avg;
        total = READ_ONCE(g->load_avg) - e->reported_avg + load;
        return clamp_shares(g->shares * load / (total ?: 1), g->shares);
    default:
        return clamp_shares(g->shares, GROUP_SHARES_MAX);
    }
}

/* Adds to a queue's load, and so to its group's. */
static __always_inline void add_load(struct cfs_queue *q, s64 change)
{
    __sync_fetch_and_add(&q->load, (u64)change);
    if (unlikely(q->group))
        __sync_fetch_and_add(&group_of(q->group)->load, (u64)change);
}

/* reweight_entity. The entity's vruntime stays, as it did until 6.6. */
static __always_inline void reweight(u32 group, u32 cpu, u32 weight)
{
    struct group_entity *e = entity_of(group, cpu);
    struct cfs_queue *q = queue_in(parent_group(group), cpu);

    if (e->weight == weight)
        return;
    e->weight = weight;
    e->inverse = (u32)((1ULL << 32) / (weight ?: 1));
    if (q->curr_pid == (GROUP_ENTITY | group)) {
        q->curr_load.weight = e->weight;
        q->curr_load.inverse = e->inverse;
    }
    if (e->queued_weight) {
        add_load(q, (s64)weight - (s64)e->queued_weight);
        e->queued_weight = weight;
    }
}

/* update_cfs_shares: recomputes the weights of a group and those above it when it is time (`now`: in any case). */
SEPARATE void refresh_shares(u32 group, u32 cpu, bool now)
{
    u64 now_ns = scx_bpf_now(), ratelimit_ns = sched_shares_ratelimit_ns * tunable_factor();
    u32 level;

    average_groups(group, cpu);
    for_range (level, GROUP_DEPTH_MAX) {
        struct group_entity *e;
        u32 weight;
        s64 change;

        if (!group)
            break;
        e = entity_of(group, cpu);
        if (rule_shares != SHARES_BY_WEIGHT || now || now_ns - e->refreshed_ns >= ratelimit_ns) {
            weight = shares_on(group, cpu);
            change = (s64)weight - (s64)e->weight;
            e->refreshed_ns = now_ns;
            if (rule_shares != SHARES_BY_WEIGHT || now || change > SHARES_THRESHOLD || -change > SHARES_THRESHOLD)
                reweight(group, cpu, weight);
        }
        group = parent_group(group);
    }
}

#endif
