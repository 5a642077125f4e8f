/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control groups as groups of `eevdf`: a cgroup with the cpu controller is a group, its weight (cpu.weight, 100 by
 * default) is its shares (1024 by default). The root cgroup is the root.
 */
#ifndef FAIRGROUND_EEVDF_CGROUP_BPF_H
#define FAIRGROUND_EEVDF_CGROUP_BPF_H

#include "eevdf_groups.bpf.h"
#include "cgroup_groups.bpf.h"

/* The group of a cgroup; 0, the root, for an unknown one. */
static __always_inline u32 group_of_cgroup(struct cgroup *cgrp)
{
    u64 id = cgrp->kn->id;
    u32 *group = bpf_map_lookup_elem(&cgroup_groups, &id);

    return group ? *group & (GROUPS_MAX - 1) : 0;
}

/* A group below `parent`. Its number; `parent` if there is no room or it would be too deep. */
SEPARATE u32 add_group(u32 parent, u64 cgroup_id, u32 weight)
{
    u32 group = free_group(), cpu;
    struct group *g = group_of(group);

    if (!group || group_of(parent)->level >= GROUP_DEPTH_MAX) {
        groups_merged++;
        return parent;
    }
    for_range (cpu, nr_cpus) {
        struct group_cpu *c = group_on(group, cpu);

        __builtin_memset(c, 0, sizeof(*c));
        c->averaged_ns = scx_bpf_now();
    }
    g->cgroup_id = cgroup_id;
    g->load_avg = 0;
    g->parent = parent;
    g->level = group_of(parent)->level + 1;
    g->shares = shares_of_weight(weight);
    g->in_use = true;
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
    struct group *g = group_of(group_of_cgroup(cgrp));

    if (g->cgroup_id == id)
        g->in_use = false;
    bpf_map_delete_elem(&cgroup_groups, &id);
}

/* The task is in no queue: it was dequeued, and is enqueued again afterwards. */
void BPF_STRUCT_OPS(eevdf_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
    struct eevdf_task *t = task_of(p);

    if (t)
        t->group = group_of_cgroup(to);
}

/* Tasks take their new weights when they are switched in, the current ones at ticks. */
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
