/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delayed dequeue in `eevdf` (DELAY_DEQUEUE, sched_delayed): a task that sleeps with negative lag stays queued, so
 * that a sleep does not cancel its debt.
 *
 * A sleeping task has left sched_ext. A delayed entity represents it: weight, vruntime and deadline in the sums of
 * its CPU. When the entity is picked it is eligible, the debt is paid, and it is dequeued; when the task wakes up
 * before, it takes the entity's place. A CPU has room for DELAYED_MAX; without room a task is dequeued at once, with
 * its lag, as without DELAY_DEQUEUE.
 *
 * Example: A and B of nice 0, A at 11 ms, B at 9, V at 10. A sleeps with a lag of -1 ms: its entity stays at 11 ms and
 * holds V back. Once B has run 2 ms, V is 11 ms: the entity is eligible, and is dequeued when it is picked.
 */
#ifndef FAIRGROUND_EEVDF_DELAYED_BPF_H
#define FAIRGROUND_EEVDF_DELAYED_BPF_H

#include "eevdf_reweight.bpf.h"

#define DELAYED_MAX 32

struct delayed_entity {
    u64 vruntime;
    u64 deadline;
    u32 pid;
    u32 weight;
    u32 kind; /* index of its slice length in the queue's `slices` */
};

struct delayed_entities {
    struct delayed_entity of[DELAYED_MAX];
};

struct delayed_entities cpu_delayed[QUEUES_MAX];

struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;

static __always_inline struct delayed_entity *delayed_entity_of(u32 at, u32 number)
{
    return &cpu_delayed[at & (QUEUES_MAX - 1)].of[number & (DELAYED_MAX - 1)];
}

/* Leaves a delayed entity in the queue; the sums stay as they are. False: there is no room. */
static __always_inline bool delay_dequeue(struct eevdf_queue *q, struct eevdf_task *t, u32 pid)
{
    struct delayed_entity *e;
    u32 number;

    if (q->delayed == ~0u)
        return false;
    if (!q->delayed || time_diff(t->vruntime, q->delayed_vruntime) < 0)
        q->delayed_vruntime = t->vruntime;
    if (!q->delayed || time_diff(t->deadline, q->delayed_deadline) < 0)
        q->delayed_deadline = t->deadline;
    number = (u32)__builtin_ctz(~q->delayed);
    e = delayed_entity_of(t->at, number);
    e->vruntime = t->vruntime;
    e->deadline = t->deadline;
    e->pid = pid;
    e->weight = t->weight;
    e->kind = t->kind;
    __sync_fetch_and_or(&q->delayed, 1u << number);
    __sync_fetch_and_add(&queue_of(q->cpu)->delayed_tasks, 1);
    t->delayed = number + 1;
    return true;
}

/* Whether the task's delayed entity is still queued. */
static __always_inline bool is_delayed(const struct eevdf_queue *q, const struct eevdf_task *t, u32 pid)
{
    u32 number = (t->delayed - 1) & (DELAYED_MAX - 1);

    return t->delayed && q->delayed >> number & 1 && delayed_entity_of(t->at, number)->pid == pid;
}

static __always_inline void unmark_delayed(struct eevdf_queue *q, u32 number)
{
    __sync_fetch_and_and(&q->delayed, ~(1u << (number & (DELAYED_MAX - 1))));
    __sync_fetch_and_add(&queue_of(q->cpu)->delayed_tasks, -1);
}

/* update_entity_lag of a delayed task. */
static __always_inline s64 delayed_lag(const struct eevdf_task *t, const struct eevdf_queue *q, u64 v)
{
    s64 lag = lag_of(t, q, v);

    if (!rule_delay_keeps)
        return lag;
    if (lag < t->vlag)
        lag = t->vlag;
    return DELAY_ZERO && lag > 0 ? 0 : lag;
}

/*
 * A delayed entity was picked (dequeue_entities with DEQUEUE_DELAYED): its task is dequeued with the lag that it has
 * now.
 */
SEPARATE void finish_delayed_dequeue(u32 at, u32 number)
{
    struct eevdf_queue *q = queue_of(at);
    struct delayed_entity *e = delayed_entity_of(at, number);
    u64 v = average(q);

    if (!DELAY_ZERO || nr_cpus > 1) {
        struct task_struct *p = bpf_task_from_pid((s32)e->pid);

        if (p) {
            struct eevdf_task *t = task_of(p);

            if (t) {
                if (!DELAY_ZERO) {
                    t->vlag = delayed_lag(t, q, v);
                    t->delayed = 0;
                }
                load_lingered(&t->record);
            }
            bpf_task_release(p);
        }
    }
    uncount_slice(q, e->kind);
    unmark_delayed(q, number);
    sums_sub(q, e->vruntime, e->weight);
    if (unlikely(q->group)) {
        change_group_load(q->group, q->cpu, -(s64)(u64)e->weight);
        leave_groups(at, true);
    }
}

/* A delayed task wakes up on another CPU or with another weight: it is dequeued now. */
static __noinline void cancel_delayed_dequeue(struct eevdf_task *t, u32 here)
{
    struct eevdf_queue *q = queue_of(t->at);
    u32 cpu = q->cpu;

    unmark_delayed(q, t->delayed - 1);
    t->delayed = 0;
    load_lingered(&t->record);
    if (cpu == here) {
        t->vlag = delayed_lag(t, q, average(q));
        sums_sub(q, t->vruntime, t->weight);
    } else {
        struct remote_view view;

        view_remote(q, &view);
        t->vlag = delayed_lag(t, q, view.average);
        account_remotely(q, t->vruntime, t->weight, -1);
    }
    uncount_slice(q, t->kind);
    if (unlikely(q->group)) {
        change_group_load(q->group, cpu, -(s64)(u64)t->weight);
        if (cpu == here)
            leave_groups(t->at, true);
    }
}

/* A task wakes up after its delayed entity was picked. With DELAY_ZERO its lag was not written; it is 0. */
static __always_inline void clear_delayed(struct eevdf_task *t)
{
    if (t->delayed)
        t->vlag = 0;
    t->delayed = 0;
}

/*
 * requeue_delayed_entity: a delayed task wakes up on the same CPU and takes the place of its entity. With DELAY_ZERO
 * it forfeits positive lag: it is placed again. In 7.2 it is also placed again if its lag would have become worse.
 */
static __noinline void requeue_delayed(const struct task_struct *p, struct eevdf_task *t, u32 cpu)
{
    struct eevdf_queue *q = queue_of(t->at);
    u32 number = t->delayed - 1;
    s64 lag;
    u64 v;

    if (rule_delay_settles && update_curr_by_clock(q))
        preempt_curr(cpu);
    v = average(q);
    lag = rule_delay_keeps ? delayed_lag(t, q, v) : 0;
    t->delayed = 0;
    unmark_delayed(q, number);
    come_back(p, t, cpu);
    if (rule_delay_keeps ? v - (u64)lag == t->vruntime : !DELAY_ZERO || time_diff(v, t->vruntime) <= 0)
        return;
    sums_sub(q, t->vruntime, t->weight);
    uncount_slice(q, t->kind);
    t->vlag = lag;
    place(q, t, false);
    t->kind = count_slice(q, t->slice_ns);
    sums_add(q, t->vruntime, t->weight);
}

/*
 * The eligible delayed entity with the earliest deadline; DELAYED_MAX: none. `v` is V. Another CPU may cancel the
 * last one at any time. The walk also finds the least vruntime and deadline of all, by which the next calls can
 * return early.
 */
SEPARATE u32 first_delayed(u32 at, u64 v)
{
    struct eevdf_queue *q = queue_of(at);
    u32 left = q->delayed, first = DELAYED_MAX, i;
    u64 earliest = 0, least_vruntime = ~0ULL, least_deadline = ~0ULL;

    if (!left)
        return first;
    for_range (i, DELAYED_MAX) {
        u32 number = (u32)__builtin_ctz(left);
        const struct delayed_entity *e = delayed_entity_of(at, number);

        if (!i || time_diff(e->vruntime, least_vruntime) < 0)
            least_vruntime = e->vruntime;
        if (!i || time_diff(e->deadline, least_deadline) < 0)
            least_deadline = e->deadline;
        if (time_diff(e->vruntime, v) <= 0 && (first == DELAYED_MAX || time_diff(e->deadline, earliest) < 0)) {
            first = number;
            earliest = e->deadline;
        }
        left &= left - 1;
        if (!left)
            break;
    }
    q->delayed_vruntime = least_vruntime;
    q->delayed_deadline = least_deadline;
    return first;
}

/* The delayed entity that is picked before a task with this deadline, or without a rival; DELAYED_MAX: none. */
static __always_inline u32 delayed_before(struct eevdf_queue *q, u32 at, u64 v, bool has_rival, u64 deadline)
{
    u32 number;

    if (!q->delayed || time_diff(q->delayed_vruntime, v) > 0)
        return DELAYED_MAX;
    if (has_rival && time_diff(q->delayed_deadline, deadline) >= 0)
        return DELAYED_MAX;
    number = first_delayed(at, v);
    if (number < DELAYED_MAX && has_rival && time_diff(delayed_entity_of(at, number)->deadline, deadline) >= 0)
        return DELAYED_MAX;
    return number;
}

#endif
