/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The groups of `cfs` (CONFIG_FAIR_GROUP_SCHED): the tree, and a group's state on one CPU.
 *
 * Groups have numbers; 0 is the root, which is no entity. On each CPU a group has a queue of its own, for its tasks
 * and child groups, and one entity in its parent's queue. Both lie in tables of GROUP_SLOTS slots, allocated nr_cpus
 * at a time: 2 CPUs have room for 255 groups, 256 CPUs for 64, 1024 for 16. A group beyond that, too deep or with too
 * many siblings, is merged into its parent: its tasks count as the parent's own (groups_merged counts them).
 */
#ifndef FAIRGROUND_CFS_GROUPS_BPF_H
#define FAIRGROUND_CFS_GROUPS_BPF_H

#include "cpus.bpf.h"

#define GROUPS_MAX         256
#define GROUP_SLOTS        16384
#define GROUP_DEPTH_MAX    8
#define GROUP_CHILDREN_MAX 64
#define GROUP_WORDS        (GROUPS_MAX / 64)
/* Limit of the groups of a CPU that one balance searches. */
#define GROUP_TURNS 16
/* In place of a pid: the entity is the group of this number. */
#define GROUP_ENTITY (1U << 31)
/* A group's tasks on a CPU wait in the dispatch queue GROUP_DSQ | slot. */
#define GROUP_DSQ (1ULL << 32)
/* tg->shares of cgroup weight 100, and the least (MIN_SHARES) and greatest (MAX_SHARES) weight of a group's entity. */
#define GROUP_SHARES_DEFAULT 1024
#define GROUP_SHARES_MIN     2
#define GROUP_SHARES_MAX     (1U << 18)

struct group {
    u64 cgroup_id;
    u64 load;     /* sum of the loads of its queues of all CPUs; atomic */
    u64 load_avg; /* sum of the averages that the CPUs have reported; atomic */
    u32 parent;
    u32 level; /* 1: child of the root */
    u32 shares;
    u32 child_index; /* index in its parent's children */
    u32 in_use;
    u32 has_queues;                   /* dispatch queues stay for the next group of this number */
    u64 children_used;                /* bit c: children[c] is taken */
    u32 children[GROUP_CHILDREN_MAX]; /* numbers of the groups below */
};

/* A group on one CPU, as its parent's queue there has it. */
struct group_entity {
    u64 vruntime;
    u64 sum_exec_ns;
    u64 slice_exec_ns;
    u64 refreshed_ns; /* when weight was last computed */
    u64 averaged_ns;  /* the time up to which load_avg counts, */
    u64 load_avg;     /* the mean load of the group's queue, older time counting less, */
    u64 reported_avg; /* and the part of it that is in the group's sum */
    u32 weight;
    u32 inverse;
    u32 queued_weight; /* its part of the parent queue's load; 0: it is not queued */
    u32 empty_in_pass; /* the pick_pass that found no task here */
};

struct group groups[GROUPS_MAX];
struct group_entity group_entities[GROUP_SLOTS];
/* Bit g: group g has runnable entities on the CPU; atomic. */
u64 cpu_groups[MAX_CPUS][GROUP_WORDS];
u32 groups_merged;

struct cfs_queue;

static __always_inline struct group *group_of(u32 group)
{
    return &groups[group & (GROUPS_MAX - 1)];
}

static __always_inline u32 parent_group(u32 group)
{
    return group_of(group)->parent & (GROUPS_MAX - 1);
}

static __always_inline u32 group_slot(u32 group, u32 cpu)
{
    return ((group - 1) * nr_cpus + cpu) & (GROUP_SLOTS - 1);
}

static __always_inline struct group_entity *entity_of(u32 group, u32 cpu)
{
    return &group_entities[group_slot(group, cpu)];
}

static __always_inline u64 *groups_word(u32 group, u32 cpu)
{
    return &cpu_groups[cpu & (MAX_CPUS - 1)][(group / 64) & (GROUP_WORDS - 1)];
}

/*
 * The dispatch queue of the index-th group with runnable entities on a CPU; a queue that does not exist when there is
 * none.
 */
SEPARATE u64 group_dsq_at(u32 cpu, u32 index)
{
    u32 word, i;

    for_range (word, GROUP_WORDS) {
        u64 bits = READ_ONCE(cpu_groups[cpu & (MAX_CPUS - 1)][word & (GROUP_WORDS - 1)]);

        for_range (i, 64) {
            if (!bits)
                break;
            if (!index)
                return GROUP_DSQ | group_slot(word * 64 + (u32)__builtin_ctzll(bits), cpu);
            bits &= bits - 1;
            index--;
        }
    }
    return ~GROUP_DSQ >> 1;
}

/* A child of `group` as the set bit of a queue's `children` names it. */
static __always_inline u32 child_at(u32 group, u32 place)
{
    return group_of(group)->children[place & (GROUP_CHILDREN_MAX - 1)] & (GROUPS_MAX - 1);
}

static __always_inline u64 child_bit(u32 group)
{
    return 1ULL << (group_of(group)->child_index & (GROUP_CHILDREN_MAX - 1));
}

/* In cfs_hierarchy.bpf.h: 2.6.27's vruntime through the groups above; the leftmost of the child groups that wait. */
u64 scale_by_groups(u32 group, u32 cpu, u64 delta_ns);
bool find_left_group(struct cfs_queue *q);

#endif
