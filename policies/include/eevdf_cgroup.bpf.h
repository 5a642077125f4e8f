/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control groups as groups of `eevdf`: a cgroup with the cpu controller is a group, its weight (cpu.weight, 100 by
 * default) is its shares (1024 by default). The root cgroup is the root.
 */
#ifndef FAIRGROUND_EEVDF_CGROUP_BPF_H
#define FAIRGROUND_EEVDF_CGROUP_BPF_H

#include "eevdf_hierarchy.bpf.h"
#include "cgroup_groups.bpf.h"

/* The group of a cgroup; 0, the root, for an unknown one. */
static __always_inline u32 group_of_cgroup(struct cgroup *cgrp)
{
    u64 id = cgrp->kn->id;
    u32 *group = bpf_map_lookup_elem(&cgroup_groups, &id);

    return group ? *group & (GROUPS_MAX - 1) : 0;
}

/* Empty queues and entities for a group on all CPUs. */
SEPARATE s32 make_group_queues(u32 group)
{
    s32 err = 0;
    u32 cpu;

    for_range (cpu, nr_cpus) {
        u32 at = queue_at(group, cpu);
        struct eevdf_queue *q = queue_of(at);

        __builtin_memset(q, 0, sizeof(*q));
        __builtin_memset(entity_at(at), 0, sizeof(struct eevdf_task));
        __builtin_memset(group_on(group, cpu), 0, sizeof(struct group_cpu));
        group_on(group, cpu)->averaged_ns = scx_bpf_now();
        q->zero = ZERO_START;
        q->cpu = cpu;
        q->group = group;
        if (!group_of(group)->has_queues) {
            err = scx_bpf_create_dsq(dsq_at(at, ELIGIBLE), -1);
            if (!err)
                err = scx_bpf_create_dsq(dsq_at(at, INELIGIBLE), -1);
            if (err)
                break;
        }
    }
    return err;
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
    g->load_avg = g->children_used = 0;
    g->parent = parent;
    g->level = above->level + 1;
    g->shares = shares_of_weight(weight);
    g->child_index = place;
    g->in_use = g->has_queues = true;
    return group;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(eevdf_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
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
    group = add_group(parent, id, args->weight);
    return (s32)bpf_map_update_elem(&cgroup_groups, &id, &group, 0);
}

void BPF_STRUCT_OPS_SLEEPABLE(eevdf_cgroup_exit, struct cgroup *cgrp)
{
    u64 id = cgrp->kn->id;
    u32 group = group_of_cgroup(cgrp);

    if (group && group_of(group)->cgroup_id == id) {
        group_of(parent_group(group))->children_used &= ~child_bit(group);
        group_of(group)->in_use = false;
    }
    bpf_map_delete_elem(&cgroup_groups, &id);
}

/*
 * The task is in no queue: it was dequeued, and is enqueued again afterwards; or it sleeps, and a delayed entity leaves
 * the queue now (sched_move_task).
 */
void BPF_STRUCT_OPS(eevdf_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
    struct eevdf_task *t = task_of(p);

    if (!t)
        return;
    if (t->delayed && is_delayed(queue_of(t->at), t, (u32)p->pid))
        cancel_delayed_dequeue(t, t->cpu);
    t->group = group_of_cgroup(to);
}

/* Its entities take their new weights when tasks join or leave, and at ticks. */
void BPF_STRUCT_OPS(eevdf_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
    struct group *g = group_of(group_of_cgroup(cgrp));
    u32 group = group_of_cgroup(cgrp), cpu;

    if (!group || g->cgroup_id != cgrp->kn->id)
        return;
    g->shares = shares_of_weight(weight);
    for_range (cpu, nr_cpus)
        change_group_load(group, cpu, 0);
}

#endif
