/* SPDX-License-Identifier: GPL-2.0-only */
/* Control groups as groups of `eevdf` (cgroup_groups.bpf.h). */
#ifndef FAIRGROUND_EEVDF_CGROUP_BPF_H
#define FAIRGROUND_EEVDF_CGROUP_BPF_H

#include "eevdf_hierarchy.bpf.h"
#include "cgroup_groups.bpf.h"

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
        group_on(group, cpu)->mean.until_ns = scx_bpf_now();
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

/* Its entities take their new weights when tasks join or leave, and at ticks. */
SEPARATE void weigh_group(u32 group, u32 cpu)
{
    change_group_load(group, cpu, 0);
}

CGROUP_GROUPS(eevdf)

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

#endif
