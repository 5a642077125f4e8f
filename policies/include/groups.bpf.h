/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups of tasks (CONFIG_FAIR_GROUP_SCHED) in `cfs` and `eevdf`: the tree, and a group's weight on a CPU by its load.
 *
 * Groups have numbers; 0 is the root, which is no entity. On each CPU a group has a queue of its own, for its tasks and
 * the groups below, and one entity in its parent's queue. Both lie in the scheduler's tables, nr_cpus at a time; it
 * defines GROUP_SLOTS, their room, before it includes this file. Groups beyond the room, deeper than GROUP_DEPTH_MAX or
 * with too many siblings are merged into their parents: their tasks count as the parent's own.
 *
 * By load (calc_group_shares, since 4.x): a group's shares are for all CPUs together, and its weight on one is the part
 * of its load that is there. That load is the greater of the present one and its mean, so that a CPU whose tasks sleep
 * for a moment keeps its part.
 *
 * Example: shares 1024, three hogs of weight 1024 on CPU 0 and one on CPU 1: weights 768 and 256.
 */
#ifndef FAIRGROUND_GROUPS_BPF_H
#define FAIRGROUND_GROUPS_BPF_H

#include "cpus.bpf.h"
#include "pelt.bpf.h"

#define GROUPS_MAX         256
#define GROUP_DEPTH_MAX    8
#define GROUP_CHILDREN_MAX 64
#define GROUP_WORDS        (GROUPS_MAX / 64)
/* Limit of the groups of a CPU that one balance searches. */
#define GROUPS_SEARCHED_MAX 16
/* In place of a pid: the entity is the group of this number. */
#define GROUP_ENTITY (1U << 31)
/* tg->shares of cgroup weight 100, and the least weight of a group on a CPU (MIN_SHARES). */
#define GROUP_SHARES_DEFAULT 1024
#define GROUP_SHARES_MIN     2
/* A CPU reports its mean load when it has moved by 1/64. A period of the mean: 2^20 ns. */
#define GROUP_REPORT_SHIFT 6
#define GROUP_PERIOD_SHIFT 20

struct group {
    u64 cgroup_id;
    u64 load;     /* sum of the loads of its queues of all CPUs, where the scheduler keeps it; atomic */
    u64 load_avg; /* sum of the means that the CPUs have reported; atomic */
    u32 parent;
    u32 level; /* 1: child of the root */
    u32 shares;
    u32 child_index; /* index in its parent's children */
    u32 in_use;
    u32 has_queues;                   /* dispatch queues stay for the next group of this number */
    u64 children_used;                /* bit c: children[c] is taken */
    u32 children[GROUP_CHILDREN_MAX]; /* numbers of the groups below */
};

/* A group's mean load on a CPU. */
struct group_mean {
    u64 load;     /* older time counting less, halved in 32 periods, */
    u64 until_ns; /* up to this time, */
    u64 reported; /* and its part in the group's sum */
};

struct group groups[GROUPS_MAX];
/* Bit g: group g has entities on the CPU; atomic. */
u64 cpu_groups[MAX_CPUS][GROUP_WORDS];
u32 groups_merged;

static __always_inline struct group *group_of(u32 group)
{
    return &groups[group & (GROUPS_MAX - 1)];
}

static __always_inline u32 parent_group(u32 group)
{
    return group_of(group)->parent & (GROUPS_MAX - 1);
}

/* The place of a group on a CPU in the tables. Not for the root. */
static __always_inline u32 group_place(u32 group, u32 cpu)
{
    return (group - 1) * nr_cpus + cpu;
}

/* A child of `group` as the set bit of a queue's `children` names it. */
static __always_inline u32 child_of(u32 group, u32 place)
{
    return group_of(group)->children[place & (GROUP_CHILDREN_MAX - 1)] & (GROUPS_MAX - 1);
}

static __always_inline u64 child_bit(u32 group)
{
    return 1ULL << (group_of(group)->child_index & (GROUP_CHILDREN_MAX - 1));
}

static __always_inline u64 *groups_word(u32 group, u32 cpu)
{
    return &cpu_groups[cpu & (MAX_CPUS - 1)][(group / 64) & (GROUP_WORDS - 1)];
}

/* The index-th group with entities on a CPU; 0: there is none. */
SEPARATE u32 group_with_index(u32 cpu, u32 index)
{
    u32 word, i;

    for_range (word, GROUP_WORDS) {
        u64 bits = READ_ONCE(cpu_groups[cpu & (MAX_CPUS - 1)][word & (GROUP_WORDS - 1)]);

        for_range (i, 64) {
            if (!bits)
                break;
            if (!index)
                return word * 64 + (u32)__builtin_ctzll(bits);
            bits &= bits - 1;
            index--;
        }
    }
    return 0;
}

/*
 * find_matching_se: the group below which the paths of two groups part, from the current task's and a woken one's.
 * *below is the woken one's group in that group's queue, or 0 for the task itself.
 */
SEPARATE u32 matching_group(u32 current, u32 woken, u32 *below)
{
    u32 entity = 0, level;

    if (!below)
        return 0;
    *below = 0;
    for_range (level, 2 * GROUP_DEPTH_MAX) {
        if (current == woken)
            break;
        if (group_of(current)->level >= group_of(woken)->level) {
            current = parent_group(current);
        } else {
            entity = woken;
            woken = parent_group(woken);
        }
    }
    *below = entity;
    return woken;
}

/* Updates a group's mean load on a CPU, where its load has been the same since the last call. */
static __always_inline void average_group(struct group *g, struct group_mean *mean, u64 load)
{
    u64 periods = (scx_bpf_now() - mean->until_ns) >> GROUP_PERIOD_SHIFT;
    s64 change;

    if (!periods)
        return;
    mean->until_ns += periods << GROUP_PERIOD_SHIFT;
    if (mean->load >= load)
        mean->load = load + pelt_decay(mean->load - load, periods);
    else
        mean->load = load - pelt_decay(load - mean->load, periods);
    change = (s64)(mean->load - mean->reported);
    if ((change < 0 ? -change : change) > (s64)(mean->reported >> GROUP_REPORT_SHIFT)) {
        mean->reported = mean->load;
        __sync_fetch_and_add(&g->load_avg, (u64)change);
    }
}

static __always_inline u32 clamp_shares(u64 shares, u32 most)
{
    if (shares < GROUP_SHARES_MIN)
        return GROUP_SHARES_MIN;
    return shares > most ? most : (u32)shares;
}

/* calc_group_shares, for a group with this load on a CPU now. */
static __always_inline u32 shares_by_load(const struct group *g, const struct group_mean *mean, u64 load)
{
    u64 total;

    if (load < mean->load)
        load = mean->load;
    total = READ_ONCE(g->load_avg) - mean->reported + load;
    return clamp_shares(g->shares * load / (total ?: 1), g->shares);
}

#endif
