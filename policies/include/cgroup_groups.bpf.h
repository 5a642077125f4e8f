/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control groups as groups (groups.bpf.h): a cgroup with the cpu controller is a group, its weight (cpu.weight, 100 by
 * default) is its shares (1024 by default). The root cgroup is the root.
 *
 * `CGROUP_GROUPS(mine)` defines the callbacks `mine_cgroup_init`, `mine_cgroup_exit` and `mine_cgroup_set_weight`, to be
 * named in the callback table. Before it the scheduler defines make_group_queues() and weigh_group().
 */
#ifndef FAIRGROUND_CGROUP_GROUPS_BPF_H
#define FAIRGROUND_CGROUP_GROUPS_BPF_H

#include "cgroup.bpf.h"
#include "groups.bpf.h"

#define CGROUPS_MAX           4096
#define CGROUP_WEIGHT_DEFAULT 100

/* From a cgroup's id (kn->id) to its group, or, if it is merged, an ancestor's. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, CGROUPS_MAX);
    __type(key, u64);
    __type(value, u32);
} cgroup_groups SEC(".maps");

/* Empty queues and entities for a group on all CPUs; 0 or an error of the kernel. */
s32 make_group_queues(u32 group);
/* A group's shares have changed. */
void weigh_group(u32 group, u32 cpu);

/* The group of a cgroup, or that into which it is merged; 0, the root, for an unknown one. */
static __always_inline u32 group_of_cgroup(struct cgroup *cgrp)
{
    u64 id = cgrp->kn->id;
    u32 *group = bpf_map_lookup_elem(&cgroup_groups, &id);

    return group ? *group & (GROUPS_MAX - 1) : 0;
}

/* The group that is this cgroup's own; 0: it is merged, or the root. */
static __always_inline u32 own_group(struct cgroup *cgrp)
{
    u32 group = group_of_cgroup(cgrp);

    return group && group_of(group)->cgroup_id == cgrp->kn->id ? group : 0;
}

/* sched_weight_from_cgroup, rounded to the nearest. */
static __always_inline u32 shares_of_weight(u32 weight)
{
    return (weight * GROUP_SHARES_DEFAULT + CGROUP_WEIGHT_DEFAULT / 2) / CGROUP_WEIGHT_DEFAULT;
}

/* An unused group number for which the tables have room; 0: there is none. */
SEPARATE u32 free_group(void)
{
    u32 i;

    for_range (i, GROUPS_MAX) {
        if (!i || groups[i & (GROUPS_MAX - 1)].in_use)
            continue;
        return i * nr_cpus <= GROUP_SLOTS ? i : 0;
    }
    return 0;
}

/* A group below `parent`. Its number; `parent` if there is no room, or it would be too deep or have too many siblings. */
SEPARATE u32 add_group(u32 parent, u64 cgroup_id, u32 weight)
{
    struct group *g, *above = group_of(parent);
    u32 group = free_group(), place;

    if (!group || above->level >= GROUP_DEPTH_MAX || !~above->children_used || make_group_queues(group)) {
        groups_merged++;
        return parent;
    }
    place = (u32)__builtin_ctzll(~above->children_used) & (GROUP_CHILDREN_MAX - 1);
    above->children_used |= 1ULL << place;
    above->children[place] = group;
    g = group_of(group);
    g->cgroup_id = cgroup_id;
    g->load = g->load_avg = g->children_used = 0;
    g->parent = parent;
    g->level = above->level + 1;
    g->shares = shares_of_weight(weight);
    g->child_index = place;
    g->in_use = g->has_queues = true;
    return group;
}

static __always_inline s32 init_group(struct cgroup *cgrp, u32 weight)
{
    u64 id = cgrp->kn->id;
    struct cgroup *above;
    u32 parent = 0, group;

    if (cgrp->level <= 0)
        return 0;
    above = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
    if (above) {
        parent = group_of_cgroup(above);
        bpf_cgroup_release(above);
    }
    group = add_group(parent, id, weight);
    return (s32)bpf_map_update_elem(&cgroup_groups, &id, &group, 0);
}

static __always_inline void exit_group(struct cgroup *cgrp)
{
    u64 id = cgrp->kn->id;
    u32 group = own_group(cgrp);

    if (group) {
        group_of(parent_group(group))->children_used &= ~child_bit(group);
        group_of(group)->in_use = false;
    }
    bpf_map_delete_elem(&cgroup_groups, &id);
}

static __always_inline void set_group_weight(struct cgroup *cgrp, u32 weight)
{
    u32 group = own_group(cgrp), cpu;

    if (!group)
        return;
    group_of(group)->shares = shares_of_weight(weight);
    for_range (cpu, nr_cpus)
        weigh_group(group, cpu);
}

#define CGROUP_GROUPS(name)                                                                                          \
    s32 BPF_STRUCT_OPS_SLEEPABLE(name##_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)         \
    {                                                                                                                \
        return init_group(cgrp, args->weight);                                                                       \
    }                                                                                                                \
                                                                                                                     \
    void BPF_STRUCT_OPS_SLEEPABLE(name##_cgroup_exit, struct cgroup *cgrp)                                           \
    {                                                                                                                \
        exit_group(cgrp);                                                                                            \
    }                                                                                                                \
                                                                                                                     \
    void BPF_STRUCT_OPS(name##_cgroup_set_weight, struct cgroup *cgrp, u32 weight)                                   \
    {                                                                                                                \
        set_group_weight(cgrp, weight);                                                                              \
    }

#endif
