/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control groups as groups of `cfs` (cgroup_groups.bpf.h). A task that moves keeps its distance to min_vruntime, as
 * since 2.6.33; before, it was placed like a new one.
 */
#ifndef FAIRGROUND_CFS_CGROUP_BPF_H
#define FAIRGROUND_CFS_CGROUP_BPF_H

#include "cfs_preempt.bpf.h"
#include "cgroup_groups.bpf.h"

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
        e->mean.until_ns = scx_bpf_now();
        if (!group_of(group)->has_queues) {
            err = scx_bpf_create_dsq(dsq_of(q), -1);
            if (err)
                break;
        }
    }
    return err;
}

SEPARATE void weigh_group(u32 group, u32 cpu)
{
    refresh_shares(group, cpu, true);
}

CGROUP_GROUPS(cfs)

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

#endif
