/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The load balancer's callbacks (balance.bpf.h) of `o1`: the tasks that it may take, and where they are queued.
 *
 * 2.6.22 takes expired tasks first, which ran longest ago, then active ones; a task keeps its kind of array. A task
 * that is too heavy is taken nevertheless when it would be the best on its new CPU and is not the best of its old
 * one. Where several tasks share a list, the original takes the last; here it is the first.
 */
#ifndef FAIRGROUND_O1_BALANCE_BPF_H
#define FAIRGROUND_O1_BALANCE_BPF_H

static __always_inline u64 balance_weight(struct task_struct *p)
{
    struct o1_task *t = task_of(p);

    return t ? t->weight : 0;
}

static __always_inline u64 balance_queue(u32 cpu, u32 index)
{
    const struct o1_queue *q = queue_of(cpu);

    return queue_id(cpu, index ? q->active : expired_array(q));
}

/* rq_best_prio: of the running task, and of the static priorities in the expired array. */
static __always_inline u32 best_prio(const struct o1_queue *q)
{
    u32 current = q->curr_pid ? q->curr_prio : MAX_PRIO;

    return current < q->best_expired_prio ? current : q->best_expired_prio;
}

static __always_inline bool balance_prefers(struct task_struct *p, u32 to)
{
    struct o1_task *t = task_of(p);
    struct o1_queue *from;

    if (!t || t->prio >= best_prio(queue_of(to)))
        return false;
    from = queue_of(t->cpu);
    return t->prio != best_prio(from) || t->prio == from->curr_prio;
}

static __always_inline u64 balance_last_ran_ns(struct task_struct *p)
{
    struct o1_task *t = task_of(p);

    return t ? t->last_ran_ns : 0;
}

static __always_inline u64 balance_target(struct task_struct *p, u32 from, u32 to, u64 *vtime)
{
    struct o1_task *t = task_of(p);
    struct o1_queue *q = queue_of(to);
    bool expired = t && t->array != queue_of(from)->active;

    *vtime = task_key(t ? t->prio : MAX_PRIO - 1, q->sequence);
    return queue_id(to, expired ? expired_array(q) : q->active);
}

/* Its key is the one that balance_target returned: under the lock of `to` nothing has joined since. */
static __always_inline void balance_moved(struct task_struct *p, u32 from, u32 to)
{
    struct o1_task *t = task_of(p);

    if (t)
        rehome(t, to);
}

#include "balance.bpf.h"

#endif
