/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control groups as groups of `cfs`: a cgroup with the cpu controller is a group, its weight (cpu.weight, 100 by
 * default) is its shares (1024 by default). The root cgroup is the root.
 *
 * A task that moves keeps its distance to min_vruntime, as since 2.6.33; before, it was placed like a new one.
 */
#ifndef FAIRGROUND_CFS_CGROUP_BPF_H
#define FAIRGROUND_CFS_CGROUP_BPF_H

#include "cfs_preempt.bpf.h"
#include "cgroup_groups.bpf.h"

/* The cgroup has no group of its own: the number is that of an ancestor. */
#define GROUP_MERGED (1U << 16)

/* The group of a cgroup; 0, the root, for an unknown one. */
static __always_inline u32 cgroup_entry(struct cgroup *cgrp)
{
    u64 id = cgrp->kn->id;
    u32 *entry = bpf_map_lookup_elem(&cgroup_groups, &id);

    return entry ? *entry : 0;
}

static __always_inline u32 group_of_cgroup(struct cgroup *cgrp)
{
    return cgroup_entry(cgrp) & (GROUPS_MAX - 1);
}

/* Empty queues and entities for a group on all CPUs. */
SEPARATE s32 make_group_queues(u32 group)
{
    s32 err = 0;
    u32 cpu;

    for_range (cpu, nr_cpus) {
        struct cfs_queue *q = &group_queues[group_slot(group, cpu)];
        struct group_entity *e = entity_of(group, cpu);

        __builtin_memset(q, 0, sizeof(*q));
        __builtin_memset(e, 0, sizeof(*e));
        q->min_vruntime = MIN_VRUNTIME_START;
        q->cpu = cpu;
        q->group = group;
        q->nr_grouped = 1;
        e->weight = GROUP_SHARES_DEFAULT;
        e->inverse = nice_inverse[20];
        e->averaged_ns = scx_bpf_now();
        if (!group_of(group)->has_queues) {
            err = scx_bpf_create_dsq(dsq_of(q), -1);
            if (err)
                break;
        }
    }
    return err;
}

/* A group below `parent`. Its number, or 0: no room, too deep, or too many siblings. */
SEPARATE u32 add_group(u32 parent, u64 cgroup_id, u32 weight)
{
    struct group *g, *above = group_of(parent);
    u32 group = free_group(), place;

    if (!group || above->level >= GROUP_DEPTH_MAX || !~above->children_used)
        return 0;
    if (make_group_queues(group))
        return 0;
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

s32 BPF_STRUCT_OPS_SLEEPABLE(cfs_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
    u64 id = cgrp->kn->id;
    u32 entry = 0, parent = 0;

    if (cgrp->level > 0) {
        struct cgroup *above = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);

        if (above) {
            parent = group_of_cgroup(above);
            bpf_cgroup_release(above);
        }
        entry = add_group(parent, id, args->weight);
        if (!entry) {
            entry = parent | GROUP_MERGED;
            groups_merged++;
        }
    }
    return (s32)bpf_map_update_elem(&cgroup_groups, &id, &entry, 0);
}

void BPF_STRUCT_OPS_SLEEPABLE(cfs_cgroup_exit, struct cgroup *cgrp)
{
    u64 id = cgrp->kn->id;
    u32 entry = cgroup_entry(cgrp), group = entry & (GROUPS_MAX - 1);

    if (group && !(entry & GROUP_MERGED)) {
        group_of(parent_group(group))->children_used &= ~child_bit(group);
        group_of(group)->in_use = false;
    }
    bpf_map_delete_elem(&cgroup_groups, &id);
}

/*
 * The task is in no queue: it was dequeued, and is enqueued again afterwards. sched_move_task lets a CPU pick again
 * whose current task has moved; with a slice it would be kept without a pick.
 */
void BPF_STRUCT_OPS(cfs_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
    struct cfs_task *t = task_of(p);
    u32 group = group_of_cgroup(to);
    u64 min_vruntime;

    if (!t || t->group == group)
        return;
    min_vruntime = t->slept ? READ_ONCE(queue_in(t->group, t->cpu)->min_vruntime) : t->left_min;
    if (!t->is_new)
        scx_bpf_task_set_dsq_vtime(p, p->scx.dsq_vtime + READ_ONCE(queue_in(group, t->cpu)->min_vruntime) -
                                          min_vruntime);
    t->group = group;
    scx_bpf_task_set_slice(p, 0);
}

void BPF_STRUCT_OPS(cfs_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
    u32 entry = cgroup_entry(cgrp), group = entry & (GROUPS_MAX - 1), cpu;

    if (!group || (entry & GROUP_MERGED))
        return;
    group_of(group)->shares = shares_of_weight(weight);
    for_range (cpu, nr_cpus)
        refresh_shares(group, cpu, true);
}

#endif
