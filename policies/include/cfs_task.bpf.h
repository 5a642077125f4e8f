/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What `cfs` keeps per task, on whose books a task is, and how it moves: what the balancer asks (balance.bpf.h).
 */
#ifndef FAIRGROUND_CFS_TASK_BPF_H
#define FAIRGROUND_CFS_TASK_BPF_H

#include "cfs_queue.bpf.h"

/* What `cfs` keeps per task beside p->scx.dsq_vtime, which is the vruntime (of the running task: at the last tick). */
struct cfs_task {
    u32 cpu; /* whose queue counts it, and relative to whose min_vruntime its vruntime is meant */
    u32 weight;
    u32 inverse;
    u32 is_new; /* not yet placed */
    u64 avg_wakeup_ns;
    u64 last_wakeup_ns;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct cfs_task);
} task_ctx SEC(".maps");

static __always_inline struct cfs_task *task_of(struct task_struct *p)
{
    return bpf_task_storage_get(&task_ctx, p, 0, 0);
}

static __always_inline void account_enqueue(struct cfs_queue *q, struct cfs_task *t, u32 cpu)
{
    t->cpu = cpu;
    __sync_fetch_and_add(&q->load, (u64)t->weight);
    join_cpu(cpu, t->weight);
}

static __always_inline void account_dequeue(struct cfs_task *t)
{
    __sync_fetch_and_add(&queue_of(t->cpu)->load, -(u64)t->weight);
    leave_cpu(t->cpu, t->weight);
}

/* Queues have unrelated clocks: over a migration vruntime - min_vruntime stays (set_task_cpu, migrate_task_rq_fair). */
static __always_inline u64 migrated_vruntime(u64 vruntime, u32 from, u32 to)
{
    return vruntime + READ_ONCE(queue_of(to)->min_vruntime) - READ_ONCE(queue_of(from)->min_vruntime);
}

/* What the balancer asks: see balance.bpf.h. */
static __always_inline u64 balance_weight(struct task_struct *p)
{
    return nice_weight[nice_index(p->static_prio)];
}

static __always_inline u64 balance_queue(u32 cpu, u32 turn)
{
    return queue_id(cpu, turn);
}

static __always_inline bool balance_prefers(struct task_struct *p, u32 to)
{
    return false;
}

static __always_inline u64 balance_last_ran_ns(struct task_struct *p)
{
    return p->se.exec_start;
}

static __always_inline u64 balance_target(struct task_struct *p, u32 from, u32 to, u64 *vtime)
{
    *vtime = migrated_vruntime(p->scx.dsq_vtime, from, to);
    return queue_id(to, 0);
}

static __always_inline void balance_moved(struct task_struct *p, u32 from, u32 to)
{
    struct cfs_task *t = task_of(p);

    if (!t)
        return;
    account_dequeue(t);
    account_enqueue(queue_of(to), t, to);
    forget_leftmost(&queue_of(from)->left);
    forget_leftmost(&queue_of(to)->left);
}

#include "balance.bpf.h"

#endif
