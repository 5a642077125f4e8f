/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The groups of `eevdf` (CONFIG_FAIR_GROUP_SCHED): the tree, and what a group weighs on a CPU.
 *
 * Groups have numbers; 0 is the root, which is no entity. On each CPU a group has a queue of its own, for its tasks and
 * the groups below, and one entity in its parent's queue, with a vruntime, a deadline, a lag and a slice as a task has.
 * Both lie in tables, nr_cpus at a time behind the queues of the root: 8 CPUs have room for 255 groups, 256 CPUs for 28.
 *
 * A group's weight on a CPU is its shares in proportion to the load that it has there, by calc_group_shares. It is 2 at
 * least (MIN_SHARES). Groups beyond the room, deeper than GROUP_DEPTH_MAX or with too many siblings are merged into
 * their parents (groups_merged counts them).
 */
#ifndef FAIRGROUND_EEVDF_GROUPS_BPF_H
#define FAIRGROUND_EEVDF_GROUPS_BPF_H

#include "eevdf_queue.bpf.h"
#include "pelt.bpf.h"

#define GROUPS_MAX         256
#define GROUP_SLOTS        (QUEUES_MAX - MAX_CPUS)
#define GROUP_DEPTH_MAX    8
#define GROUP_CHILDREN_MAX 64
#define GROUP_WORDS        (GROUPS_MAX / 64)
/* Limit of the groups of a CPU that one balance searches. */
#define GROUP_TURNS 16
/* In place of a pid: the entity is the group of this number. */
#define GROUP_ENTITY (1U << 31)
/* tg->shares of cgroup weight 100, and the least weight of a group on a CPU. */
#define GROUP_SHARES_DEFAULT 1024
#define GROUP_SHARES_MIN     2
/* A CPU reports its mean load when it has moved by 1/64. A period of the mean: 2^20 ns. */
#define GROUP_REPORT_SHIFT 6
#define GROUP_PERIOD_SHIFT 20

/* Number 0 is the root, which is no group. */
struct group {
    u64 cgroup_id;
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

/* A group on one CPU. */
struct group_cpu {
    u64 load;        /* of the tasks and groups that are queued, delayed ones too; atomic */
    u64 queued;      /* its part of the parent's load; exchanged */
    u64 load_avg;    /* mean load, older time counting less, */
    u64 averaged_ns; /* up to this time, */
    u64 reported;    /* and its part in the group's sum */
};

struct group groups[GROUPS_MAX];
struct group_cpu group_cpus[QUEUES_MAX];
/* The entities of groups: as those of tasks. */
struct eevdf_task group_entities[QUEUES_MAX];
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

/* The number of a group's queue on a CPU. */
static __always_inline u32 queue_at(u32 group, u32 cpu)
{
    return group ? (MAX_CPUS + (group - 1) * nr_cpus + cpu) & (QUEUES_MAX - 1) : cpu;
}

static __always_inline struct group_cpu *group_on(u32 group, u32 cpu)
{
    return &group_cpus[queue_at(group, cpu) & (QUEUES_MAX - 1)];
}

static __always_inline struct eevdf_task *entity_at(u32 at)
{
    return &group_entities[at & (QUEUES_MAX - 1)];
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

#endif
