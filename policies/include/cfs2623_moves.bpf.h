/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks of `cfs_2_6_23`, their migrations, and the callbacks of the load balancer (balance.bpf.h).
 *
 * Fair clocks of two CPUs are unrelated. A task that is pulled ends its wait where it was, keeps its wait_runtime,
 * and gets a key on the other CPU as at any insertion (deactivate_task, set_task_cpu, activate_task). 2.6.23 has no
 * cache-hot test.
 */
#ifndef FAIRGROUND_CFS2623_MOVES_BPF_H
#define FAIRGROUND_CFS2623_MOVES_BPF_H

#include "cfs2623_queue.bpf.h"

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct cfs2623_task);
} task_ctx SEC(".maps");

static __always_inline struct cfs2623_task *task_of(struct task_struct *p)
{
    return bpf_task_storage_get(&task_ctx, p, 0, 0);
}

/* set_load_weight: a new weight resets wait_runtime. */
static __always_inline void read_weight(struct cfs2623_task *t, const struct task_struct *p)
{
    u32 index = nice_index(p->static_prio), weight, inverse;

    if (p->policy == SCHED_IDLE) {
        weight = IDLE_POLICY_WEIGHT;
        inverse = IDLE_POLICY_INVERSE;
    } else if (rule_first_weights) {
        weight = first_weight[index];
        inverse = first_inverse[index];
    } else {
        weight = nice_weight[index];
        inverse = nice_inverse[index];
    }
    if (t->weight != weight) {
        t->weight = weight;
        t->inverse = inverse;
        t->wait_runtime = 0;
    }
}

/* wait_runtime of a waiting task if its wait ended now. */
SEPARATE s64 earned_before_move(const struct cfs2623_task *t)
{
    s64 limit_ns = runtime_limit(), wait_runtime;

    if (!t)
        return 0;
    wait_runtime = t->wait_runtime + (s64)waited(t, fair_clock_of_other(t->cpu));
    return wait_runtime > limit_ns ? limit_ns : wait_runtime;
}

/* Accounts for a task on the CPU where it waits or runs now. Returns its key there. */
SEPARATE u64 migrate(struct cfs2623_task *t, u32 cpu)
{
    struct cfs2623_queue *q = queue_of(cpu);

    if (!t)
        return 0;
    t->wait_runtime = earned_before_move(t);
    leave_cpu(t->cpu, t->weight);
    forget_leftmost(&queue_of(t->cpu)->left);
    update_curr_by_clock(q, cpu);
    wait_start(q, t);
    t->cpu = cpu;
    join_cpu(cpu, t->weight);
    return key_of(q->fair_clock, t->wait_runtime, t->weight, t->inverse);
}

#define cpu_load_input(cpu) precise_load(cpu)

static __always_inline u64 balance_weight(struct task_struct *p)
{
    struct cfs2623_task *t = task_of(p);

    return t ? t->weight : 0;
}

static __always_inline u64 balance_queue(u32 cpu, u32 index)
{
    return queue_id(cpu, index);
}

/* p->prio < this_best_prio: it is better than the task that runs there. */
static __always_inline bool balance_prefers(struct task_struct *p, u32 to)
{
    return p->static_prio < queue_of(to)->curr_prio;
}

static __always_inline u64 balance_last_ran_ns(struct task_struct *p)
{
    return 0;
}

static __always_inline u64 balance_target(struct task_struct *p, u32 from, u32 to, u64 *vtime)
{
    struct cfs2623_task *t = task_of(p);

    *vtime = t ? key_of(fair_clock_of_other(to), earned_before_move(t), t->weight, t->inverse) : p->scx.dsq_vtime;
    return queue_id(to, 0);
}

static __always_inline void balance_moved(struct task_struct *p, u32 from, u32 to)
{
    struct cfs2623_task *t = task_of(p);
    struct cfs2623_queue *q = queue_of(to);
    u64 key;

    if (!t)
        return;
    key = migrate(t, to);
    note_inserted(&q->left, key);
    if (!q->pulled || time_diff(key, q->pulled_key) < 0)
        q->pulled_key = key;
    q->pulled = true;
}

#include "balance.bpf.h"

#endif
