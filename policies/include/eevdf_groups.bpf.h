/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control groups in `eevdf`: what a task in a group weighs on its CPU.
 *
 * The kernel has a queue and an entity for each group and CPU. Here all tasks of a CPU compete in one queue, and a task
 * counts there with the part of its groups' weights that is its own: own weight * group's weight / weights in the
 * group, from its group up to the root. So shares are those of the kernel. What differs: a task's deadline is that of
 * its own small weight, not of its group's greater one, so tasks of large groups wait longer, for one slice each; a
 * group has no lag of its own; the load balancer counts own weights.
 *
 * Example: g has shares 1024 and three hogs of weight 1024; beside them runs one hog at the root. Each hog of g weighs
 * 1024 * 1024 / 3072 = 341, and g gets as much as the hog at the root.
 *
 * A group's weight on a CPU is its shares in proportion to the load that it has there, by calc_group_shares. The weight
 * of a task is computed when it becomes able to run, when it is switched in, and at ticks; while it waits it may be out
 * of date. It is 2 at least (MIN_SHARES). Groups beyond GROUPS_MAX or deeper than GROUP_DEPTH_MAX are merged into their
 * parents (groups_merged counts them).
 */
#ifndef FAIRGROUND_EEVDF_GROUPS_BPF_H
#define FAIRGROUND_EEVDF_GROUPS_BPF_H

#include "eevdf_queue.bpf.h"
#include "pelt.bpf.h"

#define GROUPS_MAX      256
#define GROUP_SLOTS     16384
#define GROUP_DEPTH_MAX 8
/* tg->shares of cgroup weight 100, and the least weight of a group on a CPU. */
#define GROUP_SHARES_DEFAULT 1024
#define GROUP_SHARES_MIN     2
/* A CPU reports its mean load when it has moved by 1/64. A period of the mean: 2^20 ns. */
#define GROUP_REPORT_SHIFT 6
#define GROUP_PERIOD_SHIFT 20
/* Binary places of a task's weight while it is computed. */
#define GROUP_WEIGHT_SHIFT 10

/* Number 0 is the root, which is no group. */
struct group {
    u64 cgroup_id;
    u64 load_avg; /* sum of the means that the CPUs have reported; atomic */
    u32 parent;
    u32 level; /* 1: child of the root */
    u32 shares;
    u32 in_use;
};

/* A group on one CPU. */
struct group_cpu {
    u64 load;        /* of the tasks that can run and the groups below; atomic */
    u64 queued;      /* its part of the parent's load; exchanged */
    u64 load_avg;    /* mean load, older time counting less, */
    u64 averaged_ns; /* up to this time, */
    u64 reported;    /* and its part in the group's sum */
};

struct group groups[GROUPS_MAX];
struct group_cpu group_cpus[GROUP_SLOTS];
u32 groups_merged;

static __always_inline struct group *group_of(u32 group)
{
    return &groups[group & (GROUPS_MAX - 1)];
}

static __always_inline struct group_cpu *group_on(u32 group, u32 cpu)
{
    return &group_cpus[((group - 1) * nr_cpus + cpu) & (GROUP_SLOTS - 1)];
}

/* Updates a group's mean load on a CPU, where its load was the same since the last call. */
static __always_inline void average_group(struct group *g, struct group_cpu *c)
{
    u64 load = READ_ONCE(c->load), periods = (scx_bpf_now() - c->averaged_ns) >> GROUP_PERIOD_SHIFT;
    s64 change;

    if (!periods)
        return;
    c->averaged_ns += periods << GROUP_PERIOD_SHIFT;
    if (c->load_avg >= load)
        c->load_avg = load + pelt_decay(c->load_avg - load, periods);
    else
        c->load_avg = load - pelt_decay(load - c->load_avg, periods);
    change = (s64)(c->load_avg - c->reported);
    if ((change < 0 ? -change : change) > (s64)(c->reported >> GROUP_REPORT_SHIFT)) {
        c->reported = c->load_avg;
        __sync_fetch_and_add(&g->load_avg, (u64)change);
    }
}

/* calc_group_shares; 0 for a group that nothing is queued in. */
static __always_inline u64 group_weight(const struct group *g, const struct group_cpu *c)
{
    u64 load = READ_ONCE(c->load), total, weight;

    if (!load)
        return 0;
    if (load < c->load_avg)
        load = c->load_avg;
    total = READ_ONCE(g->load_avg) - c->reported + load;
    weight = g->shares * load / (total ?: 1);
    return weight < GROUP_SHARES_MIN ? GROUP_SHARES_MIN : weight > g->shares ? g->shares : weight;
}

/* A task's weight joins or leaves (0: neither) a group on a CPU. The weights of the groups from there up follow. */
SEPARATE void change_group_load(u32 group, u32 cpu, s64 change)
{
    u32 level;

    for_range (level, GROUP_DEPTH_MAX) {
        struct group *g = group_of(group);
        struct group_cpu *c;
        u64 weight;

        if (!group)
            break;
        c = group_on(group, cpu);
        average_group(g, c);
        __sync_fetch_and_add(&c->load, (u64)change);
        weight = group_weight(g, c);
        change = (s64)(weight - __sync_lock_test_and_set(&c->queued, weight));
        group = g->parent;
    }
}

/* The weight of a task of this own weight in a group on a CPU, with GROUP_WEIGHT_SHIFT binary places. */
SEPARATE u64 weight_through_groups(u32 group, u32 cpu, u32 own)
{
    u64 weight = (u64)own << GROUP_WEIGHT_SHIFT;
    u32 level;

    for_range (level, GROUP_DEPTH_MAX) {
        struct group_cpu *c;

        if (!group)
            break;
        c = group_on(group, cpu);
        weight = weight * READ_ONCE(c->queued) / (READ_ONCE(c->load) ?: 1);
        group = group_of(group)->parent;
    }
    return weight;
}

/* Computes the weight of a task in a group. */
static __always_inline void set_group_weight(struct eevdf_task *t, u32 cpu)
{
    u64 weight = weight_through_groups(t->group, cpu, t->own_weight);

    if (weight < GROUP_SHARES_MIN << GROUP_WEIGHT_SHIFT)
        weight = GROUP_SHARES_MIN << GROUP_WEIGHT_SHIFT;
    t->weight = (u32)((weight + (1 << (GROUP_WEIGHT_SHIFT - 1))) >> GROUP_WEIGHT_SHIFT);
    t->inverse = (u32)((1ULL << (32 + GROUP_WEIGHT_SHIFT)) / weight);
}

/* A virtual time at the weight `old` is as far from V at the weight `now` in wall time. */
static __always_inline u64 rescaled(u64 time, u64 v, u32 old, u32 now)
{
    return v + (u64)mul_div_cut(time_diff(time, v), old, now);
}

/* update_cfs_group and reweight_entity, for a task in a group that is about to be switched in: V and its lag stay. */
static __noinline void refresh_group_weight(struct eevdf_queue *q, struct eevdf_task *t, u32 cpu)
{
    u32 old = t->weight;
    s64 vlag;
    u64 v;

    set_group_weight(t, cpu);
    if (t->weight == old)
        return;
    v = average(q);
    vlag = mul_div_cut(time_diff(v, t->vruntime), old, t->weight);
    sums_sub(q, t->vruntime, old);
    t->vruntime = v - (u64)clamp_lag(vlag, lag_limit(q, t));
    t->deadline = rescaled(t->deadline, v, old, t->weight);
    sums_add(q, t->vruntime, t->weight);
}

/* The same at a tick, for the current task. */
static __noinline void refresh_curr_weight(struct eevdf_queue *q, struct eevdf_task *t, u32 cpu)
{
    u32 old = q->curr_weight;
    u64 v;

    if (!t)
        return;
    v = average(q);
    change_group_load(t->group, cpu, 0);
    set_group_weight(t, cpu);
    q->curr_inverse = t->inverse;
    if (t->weight == old)
        return;
    q->curr_vruntime = rescaled(q->curr_vruntime, v, old, t->weight);
    q->curr_deadline = rescaled(q->curr_deadline, v, old, t->weight);
    q->curr_vprot = rescaled(q->curr_vprot, v, old, t->weight);
    q->curr_weight = t->weight;
}

#endif
