/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The active and the expired array of `o1`, per CPU.
 *
 * An array is a dispatch queue ordered by a key: prio << 56 | sequence << 8 | 0. It holds the 40 lists of the
 * original one behind the other, each in order of arrival; the first task is the head of the best list. The original
 * finds that list in a bitmap in constant time; a dispatch queue takes log(n). The running task is in no queue but
 * keeps its key, its position in its list. The lowest eight bits allow a forked child to be placed right before its
 * parent.
 *
 * Example: A and B of prio 125 have the keys 125:1:0 and 125:2:0, S of prio 115 has 115:3:0. S is first, then A.
 */
#ifndef FAIRGROUND_O1_ARRAYS_BPF_H
#define FAIRGROUND_O1_ARRAYS_BPF_H

#include "o1_estimator.bpf.h"

#define PRIO_SHIFT     56
#define SEQUENCE_SHIFT 8
#define SEQUENCE_MASK  ((1ULL << (PRIO_SHIFT - SEQUENCE_SHIFT)) - 1)

TUNABLE(u64, STARVATION_LIMIT_ns, 1000000000, UNIT("ns"),
        DOC("this long after the first expiry, per runnable task, even interactive tasks expire; 0: never"));

struct o1_queue {
    u64 sequence;          /* of the next task that is added at the tail of a list */
    u64 expired_timestamp; /* jiffy of the first expiry since the last swap; 0: none */
    u32 best_expired_prio; /* best static prio that expired; MAX_PRIO: none */
    u32 active;            /* which of the two queues is the active array */
    u32 curr_pid;          /* 0: the CPU is idle or between two tasks */
    u32 curr_prio;
    u32 sync_pid;     /* the task that this CPU wakes up before it sleeps at once */
    bool picked;      /* dispatch picked the next task */
    bool balances;    /* the pass is for the load balancer: the current slice is not over */
    u32 balance_call; /* see BALANCE_CALL */
};

struct o1_queue cpu_queues[MAX_CPUS];

static __always_inline struct o1_queue *queue_of(u32 cpu)
{
    return &cpu_queues[cpu & (MAX_CPUS - 1)];
}

#define BALANCE_CALL(cpu) (queue_of(cpu)->balance_call)

static __always_inline u64 task_key(u32 prio, u64 sequence)
{
    return (u64)prio << PRIO_SHIFT | (sequence & SEQUENCE_MASK) << SEQUENCE_SHIFT;
}

/* The tail of the list of a prio. */
static __always_inline u64 tail_key(struct o1_queue *q, u32 prio)
{
    return task_key(prio, __sync_fetch_and_add(&q->sequence, 1));
}

/* enqueue_task */
static __always_inline void join_array(struct o1_queue *q, struct o1_task *t, u32 array)
{
    t->array = (u8)(array & 1);
    t->key = tail_key(q, t->prio);
}

/* The other array than the active one. */
static __always_inline u32 expired_array(const struct o1_queue *q)
{
    return q->active ^ 1;
}

/* __activate_task: batch tasks go to the expired array. */
static __always_inline void activate(struct o1_queue *q, struct o1_task *t)
{
    join_array(q, t, t->policy == SCHED_BATCH ? expired_array(q) : q->active);
}

/* Swaps the arrays when the active one is empty. */
static __always_inline void swap_arrays(struct o1_queue *q)
{
    q->active = expired_array(q);
    q->expired_timestamp = 0;
    q->best_expired_prio = MAX_PRIO;
}

/* A task that has just been enqueued preempts the current one in any case, or if its prio is better. */
static __always_inline void preempt(struct o1_task *t, u32 cpu)
{
    struct o1_queue *q = queue_of(cpu);

    if (t->preempts == PREEMPTS_ALWAYS || (q->curr_pid && t->prio < q->curr_prio))
        kick(cpu, SCX_KICK_PREEMPT);
    t->preempts = PREEMPTS_NOT;
}

/* The first key of an array. False: it is empty. */
static __always_inline bool first_key(u64 array, u64 *key)
{
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    bool found = false;

    if (!bpf_iter_scx_dsq_new(&it, array, 0)) {
        p = bpf_iter_scx_dsq_next(&it);
        if (p) {
            *key = p->scx.dsq_vtime;
            found = true;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    return found;
}

/* EXPIRED_STARVING: the expired tasks have waited long enough, or one of them has a better nice value. */
static __always_inline bool expired_starving(struct o1_queue *q, const struct o1_task *curr)
{
    u64 limit = STARVATION_LIMIT_ns / o1_times.tick_ns;

    if (curr->static_prio > q->best_expired_prio)
        return true;
    if (!limit || !q->expired_timestamp)
        return false;
    return bpf_jiffies64() - q->expired_timestamp > limit * nr_running(curr->cpu);
}

/* The running task's slice is used up (task_running_tick). */
static __noinline void expire(struct o1_queue *q, struct o1_task *t)
{
    t->prio = effective_prio(t);
    t->time_slice = task_timeslice(t->static_prio);
    t->first_slice = false;
    if (!q->expired_timestamp)
        q->expired_timestamp = bpf_jiffies64();
    if (is_interactive(t) && !expired_starving(q, t)) {
        join_array(q, t, q->active);
        return;
    }
    join_array(q, t, expired_array(q));
    if (t->static_prio < q->best_expired_prio)
        q->best_expired_prio = t->static_prio;
}

/*
 * TIMESLICE_GRANULARITY: the piece of a slice after which interactive tasks of one prio alternate; shorter with a
 * higher bonus.
 */
static __always_inline u32 timeslice_granularity(const struct o1_task *t)
{
    u32 bonus = current_bonus(t), steps = bonus < MAX_BONUS ? MAX_BONUS - bonus : 1;

    return (o1_times.granularity << (steps - 1)) * nr_cpus;
}

/* Whether an interactive task goes to the tail of its list at this tick, within its slice. */
static __always_inline bool piece_ends(struct o1_queue *q, const struct o1_task *t)
{
    u32 granularity;

    if (!is_interactive(t) || t->array != q->active)
        return false;
    granularity = timeslice_granularity(t);
    return t->time_slice >= granularity && !((task_timeslice(t->static_prio) - t->time_slice) % granularity);
}

#endif
