/* SPDX-License-Identifier: GPL-2.0-only */
/* The load balancer's callbacks of `eevdf`: weights, queues, and the placement of a task that it moves. */
#ifndef FAIRGROUND_EEVDF_BALANCE_BPF_H
#define FAIRGROUND_EEVDF_BALANCE_BPF_H

#include "eevdf_hrtick.bpf.h"
#include "eevdf_pick.bpf.h"

static __always_inline u64 balance_weight(struct task_struct *p)
{
    return task_weight(p);
}

/* Ineligible tasks, which have to wait longest, are taken first. */
static __always_inline u64 balance_queue(u32 cpu, u32 index)
{
    u32 at = index < 2 ? cpu : queue_at(group_with_index(cpu, index / 2 - 1), cpu);

    return dsq_at(at, index & 1 ? ELIGIBLE : INELIGIBLE);
}

static __always_inline bool balance_prefers(struct task_struct *p, u32 to)
{
    return false;
}

static __always_inline u64 balance_last_ran_ns(struct task_struct *p)
{
    return p->se.exec_start;
}

/* It waits in INELIGIBLE first, by vruntime; the CPU's next pick moves it to ELIGIBLE if V has passed it. */
static __always_inline u64 balance_target(struct task_struct *p, u32 from, u32 to, u64 *vtime)
{
    struct eevdf_task *t = task_of(p);

    *vtime = t ? place_elsewhere(t, from, to) : queue_of(to)->zero;
    return dsq_at(t ? queue_at(t->group, to) : to, INELIGIBLE);
}

static __always_inline void balance_moved(struct task_struct *p, u32 from, u32 to)
{
    struct eevdf_task *t = task_of(p);

    if (!t)
        return;
    account_migration(p, t, from, to, p->scx.dsq_vtime);
    t->ineligible = true;
    forget_leftmost(&queue_of(t->at)->ineligible);
    hrtick_update(to);
}

#define BALANCE_SEARCHED(cpu) (unlikely(queue_of(cpu)->children) ? 2 + 2 * GROUPS_SEARCHED_MAX : 2)
#include "balance.bpf.h"

#endif
