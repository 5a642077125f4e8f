/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delayed dequeue in `eevdf`: a task that sleeps with negative lag competes on, so that a sleep does not buy it off.
 *
 * A sleeping task has left sched_ext. In its place stays a ghost: weight, vruntime and deadline in the sums of its CPU. When
 * the ghost is picked it is eligible, the debt is paid, and it goes; when the task wakes up before, it takes its place again.
 * A CPU has room for GHOSTS_MAX; a task that finds none leaves at once, with its lag, as without DELAY_DEQUEUE.
 */
#ifndef FAIRGROUND_EEVDF_GHOSTS_BPF_H
#define FAIRGROUND_EEVDF_GHOSTS_BPF_H

#include "eevdf_curr.bpf.h"

#define GHOSTS_MAX 32

struct ghost {
    u64 vruntime;
    u64 deadline;
    u32 pid;
    u32 weight;
    u32 kind; /* where its slice is counted */
};

struct ghosts {
    struct ghost of[GHOSTS_MAX];
};

struct ghosts cpu_ghosts[MAX_CPUS];

struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;

static __always_inline struct ghost *ghost_of(u32 cpu, u32 number)
{
    return &cpu_ghosts[cpu & (MAX_CPUS - 1)].of[number & (GHOSTS_MAX - 1)];
}

/* Leaves a ghost behind. False: no room. The sums stay as they are. */
static __always_inline bool haunt(struct eevdf_queue *q, u32 cpu, struct eevdf_task *t, u32 pid)
{
    struct ghost *g;
    u32 number;

    if (q->ghosts == ~0u)
        return false;
    if (!q->ghosts || time_diff(t->vruntime, q->ghost_vruntime) < 0)
        q->ghost_vruntime = t->vruntime;
    if (!q->ghosts || time_diff(t->deadline, q->ghost_deadline) < 0)
        q->ghost_deadline = t->deadline;
    number = (u32)__builtin_ctz(~q->ghosts);
    g = ghost_of(cpu, number);
    g->vruntime = t->vruntime;
    g->deadline = t->deadline;
    g->pid = pid;
    g->weight = t->weight;
    g->kind = t->kind;
    __sync_fetch_and_or(&q->ghosts, 1u << number);
    t->ghost = number + 1;
    return true;
}

/* Whether the task's ghost still competes. */
static __always_inline bool is_delayed(const struct eevdf_queue *q, const struct eevdf_task *t, u32 pid)
{
    u32 number = (t->ghost - 1) & (GHOSTS_MAX - 1);

    return t->ghost && q->ghosts >> number & 1 && ghost_of(t->cpu, number)->pid == pid;
}

static __always_inline void unmark_ghost(struct eevdf_queue *q, u32 number)
{
    __sync_fetch_and_and(&q->ghosts, ~(1u << (number & (GHOSTS_MAX - 1))));
}

/* update_entity_lag of a task whose ghost competes. */
static __always_inline s64 delayed_lag(const struct eevdf_task *t, u32 cpu, u64 v)
{
    s64 lag = lag_of(t, cpu, v);

    if (!rule_delay_keeps)
        return lag;
    if (lag < t->vlag)
        lag = t->vlag;
    return DELAY_ZERO && lag > 0 ? 0 : lag;
}

/* A ghost was picked (dequeue_entities with DEQUEUE_DELAYED): its task leaves really, with the lag that it has now. */
SEPARATE void bury(u32 cpu, u32 number)
{
    struct eevdf_queue *q = queue_of(cpu);
    struct ghost *g = ghost_of(cpu, number);
    u64 v = average(q);

    if (!DELAY_ZERO) {
        struct task_struct *p = bpf_task_from_pid((s32)g->pid);

        if (p) {
            struct eevdf_task *t = task_of(p);

            if (t) {
                t->vlag = delayed_lag(t, cpu, v);
                t->ghost = 0;
            }
            bpf_task_release(p);
        }
    }
    uncount_slice(cpu, g->kind);
    unmark_ghost(q, number);
    sums_sub(q, g->vruntime, g->weight);
}

/* The task wakes up on another CPU, or with another weight, while its ghost competes: it leaves really, now. */
static __noinline void exorcise(struct eevdf_task *t, u32 here)
{
    u32 cpu = t->cpu & (MAX_CPUS - 1);
    struct eevdf_queue *q = queue_of(cpu);

    unmark_ghost(q, t->ghost - 1);
    t->ghost = 0;
    if (cpu == here) {
        t->vlag = delayed_lag(t, cpu, average(q));
        sums_sub(q, t->vruntime, t->weight);
    } else {
        struct outside_view view;

        look_from_outside(q, &view);
        t->vlag = delayed_lag(t, cpu, view.average);
        announce(q, t->vruntime, t->weight, -1);
    }
    uncount_slice(cpu, t->kind);
}

/* What the task finds when it wakes up after its ghost was picked: with DELAY_ZERO nobody wrote its lag, which is 0. */
static __always_inline void forget_ghost(struct eevdf_task *t)
{
    if (t->ghost)
        t->vlag = 0;
    t->ghost = 0;
}

/*
 * requeue_delayed_entity: the task wakes up while its ghost competes, on the same CPU, and takes its place. What it gained
 * beyond lag 0 is forfeited with DELAY_ZERO: it is placed anew. So it is where its lag would have become worse (7.2).
 */
static __noinline void resume(const struct task_struct *p, struct eevdf_task *t, u32 cpu, u64 custom_ns)
{
    struct eevdf_queue *q = queue_of(cpu);
    u32 number = t->ghost - 1;
    s64 lag;
    u64 v;

    if (rule_delay_settles && update_curr_by_clock(q, cpu))
        preempt_curr(q, cpu);
    v = average(q);
    lag = rule_delay_keeps ? delayed_lag(t, cpu, v) : 0;
    t->ghost = 0;
    unmark_ghost(q, number);
    load_joins(p, &t->record, cpu, t->weight);
    join_cpu(cpu, t->weight);
    if (rule_delay_keeps ? v - (u64)lag == t->vruntime : !DELAY_ZERO || time_diff(v, t->vruntime) <= 0)
        return;
    sums_sub(q, t->vruntime, t->weight);
    uncount_slice(cpu, t->kind);
    t->vlag = lag;
    place(q, t, custom_ns, false);
    t->kind = count_slice(cpu, t->slice_ns);
    sums_add(q, t->vruntime, t->weight);
}

/*
 * The eligible ghost with the earliest deadline, GHOSTS_MAX: none. `v` is V. Another CPU may exorcise the last one at any time.
 * What it finds of all, eligible or not, are the bounds by which the next looks can do without it.
 */
SEPARATE u32 first_ghost(u32 cpu, u64 v)
{
    struct eevdf_queue *q = queue_of(cpu);
    u32 left = q->ghosts, first = GHOSTS_MAX, i;
    u64 earliest = 0, least_vruntime = ~0ULL, least_deadline = ~0ULL;

    if (!left)
        return first;
    for_range (i, GHOSTS_MAX) {
        u32 number = (u32)__builtin_ctz(left);
        const struct ghost *g = ghost_of(cpu, number);

        if (!i || time_diff(g->vruntime, least_vruntime) < 0)
            least_vruntime = g->vruntime;
        if (!i || time_diff(g->deadline, least_deadline) < 0)
            least_deadline = g->deadline;
        if (time_diff(g->vruntime, v) <= 0 && (first == GHOSTS_MAX || time_diff(g->deadline, earliest) < 0)) {
            first = number;
            earliest = g->deadline;
        }
        left &= left - 1;
        if (!left)
            break;
    }
    q->ghost_vruntime = least_vruntime;
    q->ghost_deadline = least_deadline;
    return first;
}

/* The ghost that is picked before a task with this deadline, or before nobody; GHOSTS_MAX: none. */
static __always_inline u32 ghost_before(struct eevdf_queue *q, u32 cpu, u64 v, bool somebody, u64 deadline)
{
    u32 ghost;

    if (!q->ghosts || time_diff(q->ghost_vruntime, v) > 0)
        return GHOSTS_MAX;
    if (somebody && time_diff(q->ghost_deadline, deadline) >= 0)
        return GHOSTS_MAX;
    ghost = first_ghost(cpu, v);
    if (ghost < GHOSTS_MAX && somebody && time_diff(ghost_of(cpu, ghost)->deadline, deadline) >= 0)
        return GHOSTS_MAX;
    return ghost;
}

#endif
