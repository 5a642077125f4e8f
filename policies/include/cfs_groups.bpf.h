/* SPDX-License-Identifier: GPL-2.0-only */
/* The groups of `cfs` (groups.bpf.h): their entities. */
#ifndef FAIRGROUND_CFS_GROUPS_BPF_H
#define FAIRGROUND_CFS_GROUPS_BPF_H

/* 2 CPUs have room for 255 groups, 256 CPUs for 64, 1024 for 16. */
#define GROUP_SLOTS 16384
#include "groups.bpf.h"

/* A group's tasks on a CPU wait in the dispatch queue GROUP_DSQ | slot. */
#define GROUP_DSQ (1ULL << 32)
/* The greatest weight of a group's entity (MAX_SHARES). */
#define GROUP_SHARES_MAX (1U << 18)

/* A group on one CPU, as its parent's queue there has it. */
struct group_entity {
    u64 vruntime;
    u64 sum_exec_ns;
    u64 slice_exec_ns;
    u64 refreshed_ns; /* when weight was last computed */
    struct group_mean mean;
    u32 weight;
    u32 inverse;
    u32 queued_weight; /* its part of the parent queue's load; 0: it is not queued */
    u32 empty_in_pass; /* the pick_pass that found no task here */
};

struct group_entity group_entities[GROUP_SLOTS];

struct cfs_queue;

static __always_inline u32 group_slot(u32 group, u32 cpu)
{
    return group_place(group, cpu) & (GROUP_SLOTS - 1);
}

static __always_inline struct group_entity *entity_of(u32 group, u32 cpu)
{
    return &group_entities[group_slot(group, cpu)];
}

/*
 * The dispatch queue of the index-th group with runnable entities on a CPU; a queue that does not exist when there is
 * none.
 */
static __always_inline u64 group_dsq_at(u32 cpu, u32 index)
{
    u32 group = group_with_index(cpu, index);

    return group ? GROUP_DSQ | group_slot(group, cpu) : ~GROUP_DSQ >> 1;
}

/* In cfs_hierarchy.bpf.h: 2.6.27's vruntime through the groups above; the leftmost of the child groups that wait. */
u64 scale_by_groups(u32 group, u32 cpu, u64 delta_ns);
bool find_left_group(struct cfs_queue *q);

#endif
