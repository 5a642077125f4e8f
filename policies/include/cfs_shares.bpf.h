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

/* Smaller changes are ignored (sysctl_sched_shares_thresh). */
#define SHARES_THRESHOLD 4

/* Updates the mean loads of a group and those above it, before one of their loads changes. */
SEPARATE void average_groups(u32 group, u32 cpu)
{
    u32 level;

    if (rule_shares != SHARES_BY_LOAD)
        return;
    for_range (level, GROUP_DEPTH_MAX) {
        if (!group)
            break;
        average_group(group_of(group), &entity_of(group, cpu)->mean, READ_ONCE(queue_in(group, cpu)->load));
        group = parent_group(group);
    }
}

/* The weight that a group's entity should have on a CPU now. */
static __always_inline u32 shares_on(u32 group, u32 cpu)
{
    struct group *g = group_of(group);
    u64 load = READ_ONCE(queue_in(group, cpu)->load), total;

    switch (rule_shares) {
    case SHARES_BY_WEIGHT:
        total = READ_ONCE(g->load);
        return clamp_shares(g->shares * load / (total ?: 1), GROUP_SHARES_MAX);
    case SHARES_BY_LOAD:
        return shares_by_load(g, &entity_of(group, cpu)->mean, load);
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
