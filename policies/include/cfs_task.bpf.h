/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The per-task state of `cfs`, the CPU that accounts for a task, migrations, and the callbacks of the load balancer
 * (balance.bpf.h).
 *
 * The balancer weighs a task of a group by the task's own weight, as 2.6.24 did, and takes tasks from the root's
 * queue before those of groups.
 */
#ifndef FAIRGROUND_CFS_TASK_BPF_H
#define FAIRGROUND_CFS_TASK_BPF_H

#include "cfs_hierarchy.bpf.h"
/* Until 6.10. */
#define NEW_UTIL_BY_WEIGHT false
#define NEWIDLE_BY_CHANCE  NI_RANDOM
#define NEWIDLE_BY_RATE    false
#include "balance_record.bpf.h"

/* Per-task state beside p->scx.dsq_vtime, which is the vruntime (of the running task: as of the last tick). */
struct cfs_task {
    u32 cpu;        /* the CPU whose queue counts it and to whose min_vruntime its vruntime is relative */
    bool is_new;    /* not yet placed */
    bool is_queued; /* its CPU's queue counts it */
    bool slept;     /* left the queue to sleep */
    bool to_local;  /* an idle CPU is reserved for it: enqueue puts it into the CPU's local queue */
    struct load_weight load;
    u64 avg_wakeup_ns;
    u64 last_wakeup_ns;
    u64 left_min; /* min_vruntime when it left its queue, with it as the current task */
    u32 group;    /* 0: the root */
    u32 is_idle;  /* counted as SCHED_IDLE */
    struct balance_record record;
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

static __always_inline struct balance_record *balance_record_of(struct task_struct *p)
{
    struct cfs_task *t = task_of(p);

    return t ? &t->record : NULL;
}

static __always_inline void count_in(const struct task_struct *p, struct cfs_task *t, struct cfs_queue *q, u32 cpu)
{
    if (unlikely(t->is_idle))
        __sync_fetch_and_add(&q->nr_idle, 1);
    load_joins(p, &t->record, cpu, t->load.weight);
    join_cpu(cpu, t->load.weight);
}

static __always_inline void count_out(const struct task_struct *p, struct cfs_task *t, struct cfs_queue *q, u32 cpu)
{
    if (unlikely(t->is_idle))
        __sync_fetch_and_add(&q->nr_idle, -1);
    load_leaves(p, &t->record, cpu);
    leave_cpu(cpu, t->load.weight);
}

/* A task of any group, or of none, joins or leaves its queue. For the verifier one function, not one path for each. */
static __noinline void account_enqueue_any(const struct task_struct *p, struct cfs_task *t, u32 cpu)
{
    struct cfs_queue *q = queue_in(t->group, cpu);

    t->cpu = cpu;
    if (t->group) {
        average_groups(t->group, cpu);
        __sync_fetch_and_add(&queue_of(cpu)->nr_grouped, 1);
    }
    add_load(q, t->load.weight);
    count_in(p, t, q, cpu);
    if (t->group)
        join_groups(t->group, cpu);
}

static __noinline void account_dequeue_any(const struct task_struct *p, struct cfs_task *t)
{
    struct cfs_queue *q = queue_in(t->group, t->cpu);

    if (t->group) {
        average_groups(t->group, t->cpu);
        __sync_fetch_and_add(&queue_of(t->cpu)->nr_grouped, -1);
    }
    add_load(q, -(s64)t->load.weight);
    count_out(p, t, q, t->cpu);
    if (t->group)
        leave_groups(t->group, t->cpu);
}

/* The same where it is done often. */
static __always_inline void account_enqueue(const struct task_struct *p, struct cfs_task *t, u32 cpu)
{
    struct cfs_queue *q = queue_of(cpu);

    if (unlikely(t->group)) {
        account_enqueue_any(p, t, cpu);
        return;
    }
    t->cpu = cpu;
    __sync_fetch_and_add(&q->load, t->load.weight);
    count_in(p, t, q, cpu);
}

static __always_inline void account_dequeue(const struct task_struct *p, struct cfs_task *t)
{
    struct cfs_queue *q = queue_of(t->cpu);

    if (unlikely(t->group)) {
        account_dequeue_any(p, t);
        return;
    }
    __sync_fetch_and_add(&q->load, -(u64)t->load.weight);
    count_out(p, t, q, t->cpu);
}

/* Queues have unrelated clocks: over a migration vruntime - min_vruntime stays (set_task_cpu, migrate_task_rq_fair). */
static __always_inline u64 migrated_vruntime(u64 vruntime, u32 group, u32 from, u32 to)
{
    return vruntime + READ_ONCE(queue_in(group, to)->min_vruntime) - READ_ONCE(queue_in(group, from)->min_vruntime);
}

/* Moves a task's accounting to another CPU. */
static __always_inline void change_cpu(const struct task_struct *p, struct cfs_task *t, u32 to)
{
    forget_leftmost(&queue_in(t->group, t->cpu)->left);
    account_dequeue_any(p, t);
    account_enqueue_any(p, t, to);
}

/* The same, to the CPU where the task is now. Returns its vruntime there. Not inline: callbacks need it rarely. */
static __noinline u64 migrate(const struct task_struct *p, struct cfs_task *t, u32 to, u64 vruntime)
{
    vruntime = migrated_vruntime(vruntime, t->group, t->cpu, to);
    change_cpu(p, t, to);
    return vruntime;
}

/* The load balancer's callbacks: see balance.bpf.h. */
static __always_inline u64 balance_weight(struct task_struct *p)
{
    u32 weight, inverse;

    set_task_weight(p, &weight, &inverse);
    return weight;
}

/* The root's queue, then those of the groups with runnable tasks there. */
static __always_inline u64 balance_queue(u32 cpu, u32 index)
{
    return index ? group_dsq_at(cpu, index - 1) : cpu;
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
    struct cfs_task *t = task_of(p);
    u32 group = t ? t->group : 0;

    *vtime = migrated_vruntime(p->scx.dsq_vtime, group, from, to);
    return dsq_of(queue_in(group, to));
}

static __always_inline void balance_moved(struct task_struct *p, u32 from, u32 to)
{
    struct cfs_task *t = task_of(p);

    if (!t)
        return;
    change_cpu(p, t, to);
    forget_leftmost(&queue_in(t->group, to)->left);
}

#define BALANCE_SEARCHED(cpu) (unlikely(queue_of(cpu)->nr_grouped) ? 1 + GROUPS_SEARCHED_MAX : 1)
#include "balance.bpf.h"

#endif
