/* SPDX-License-Identifier: GPL-2.0-only */
/* The groups of `eevdf` (groups.bpf.h): their queues and entities, and what a group weighs on a CPU. */
#ifndef FAIRGROUND_EEVDF_GROUPS_BPF_H
#define FAIRGROUND_EEVDF_GROUPS_BPF_H

#include "eevdf_queue.bpf.h"

/* The tables have places for the groups behind those of the root: 8 CPUs have room for 255 groups, 256 for 28. */
#define GROUP_SLOTS (QUEUES_MAX - MAX_CPUS)
#include "groups.bpf.h"

/* A group on one CPU. */
struct group_cpu {
    u64 load;   /* of the tasks and groups that are queued, delayed ones too; atomic */
    u64 queued; /* its part of the parent's load; exchanged */
    struct group_mean mean;
};

struct group_cpu group_cpus[QUEUES_MAX];
/* The entities of groups, with a vruntime, a deadline, a lag and a slice as those of tasks. */
struct eevdf_task group_entities[QUEUES_MAX];

/* The number of a group's queue on a CPU. */
static __always_inline u32 queue_at(u32 group, u32 cpu)
{
    return group ? (MAX_CPUS + group_place(group, cpu)) & (QUEUES_MAX - 1) : cpu;
}

static __always_inline struct group_cpu *group_on(u32 group, u32 cpu)
{
    return &group_cpus[queue_at(group, cpu) & (QUEUES_MAX - 1)];
}

static __always_inline struct eevdf_task *entity_at(u32 at)
{
    return &group_entities[at & (QUEUES_MAX - 1)];
}

/* A task's weight joins or leaves (0: neither) a group on a CPU. The weights of the groups from there up follow. */
SEPARATE void change_group_load(u32 group, u32 cpu, s64 change)
{
    u32 level;

    for_range (level, GROUP_DEPTH_MAX) {
        struct group *g = group_of(group);
        struct group_cpu *c;
        u64 weight, load;

        if (!group)
            break;
        c = group_on(group, cpu);
        average_group(g, &c->mean, READ_ONCE(c->load));
        __sync_fetch_and_add(&c->load, (u64)change);
        load = READ_ONCE(c->load);
        weight = load ? shares_by_load(g, &c->mean, load) : 0;
        change = (s64)(weight - __sync_lock_test_and_set(&c->queued, weight));
        group = g->parent;
    }
}

#endif
