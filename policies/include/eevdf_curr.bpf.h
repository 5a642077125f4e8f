/* SPDX-License-Identifier: GPL-2.0-only */
/* The current task's vruntime and requests in `eevdf`, and the placement of a task that joins. */
#ifndef FAIRGROUND_EEVDF_CURR_BPF_H
#define FAIRGROUND_EEVDF_CURR_BPF_H

#include "eevdf_groups.bpf.h"

/* update_deadline: a request that is used up is followed by the next. */
static __always_inline bool renew_request(struct eevdf_queue *q)
{
    u64 slice_ns;

    if (time_diff(q->curr_vruntime, q->curr_deadline) < 0)
        return false;
    slice_ns = q->curr_custom_ns ?: base_slice();
    if (slice_ns != q->curr_slice_ns) {
        uncount_slice(q, q->curr_kind);
        q->curr_kind = count_slice(q, slice_ns);
        q->curr_slice_ns = slice_ns;
    }
    q->curr_deadline = q->curr_vruntime + virtual_time(slice_ns, q->curr_weight, q->curr_inverse);
    return true;
}

/* Adds what the current task has run. True: its request was used up. */
static __always_inline bool advance(struct eevdf_queue *q, u64 delta_ns)
{
    q->curr_vruntime += virtual_time(delta_ns, q->curr_weight, q->curr_inverse);
    return renew_request(q);
}

/* The end of update_curr, after advance(). True: the current task shall be preempted. */
static __always_inline bool shall_resched(struct eevdf_queue *q, bool resched)
{
    if (!q->nr)
        return false;
    if (rule_vprot)
        resched |= !is_protected(q);
    else if (PREEMPT_SHORT && !resched)
        resched = q->curr_vprot != q->curr_deadline && !eligible(q, q->curr_vruntime);
    if (resched)
        clear_buddy(q, q->curr_pid);
    return resched;
}

/* The second half of update_curr. True: the current task shall be preempted. */
SEPARATE bool charge(struct eevdf_queue *q, u64 delta_ns)
{
    return q && shall_resched(q, advance(q, delta_ns));
}

/* Corrects a charge by the clock that was more than the task ran. */
static __always_inline void take_back(struct eevdf_queue *q, u64 delta_ns)
{
    q->curr_vruntime -= virtual_time(delta_ns, q->curr_weight, q->curr_inverse);
}

/*
 * What the current task has run since it was charged, where the kernel has just updated sum_exec_runtime (tick,
 * dispatch, stopping, yield). Negative: the clock charged more than it ran. In the end exactly sum_exec_runtime is
 * charged.
 */
static __always_inline s64 uncharged(const struct eevdf_queue *q, u64 sum_exec)
{
    return (s64)(sum_exec - q->curr_sum_exec - q->curr_ahead_ns);
}

/* The same, and from now on it counts as charged. */
static __always_inline s64 read_sum_exec(struct eevdf_queue *q, const struct task_struct *p)
{
    u64 sum_exec = p->se.sum_exec_runtime;
    s64 delta_ns = uncharged(q, sum_exec);

    q->curr_sum_exec = sum_exec;
    q->curr_ahead_ns = 0;
    q->curr_clock_ns = scx_bpf_now();
    return delta_ns;
}

/* update_curr at a tick and in sched_yield. True: the current task shall be preempted. */
static __always_inline bool update_curr(struct eevdf_queue *q, const struct task_struct *p)
{
    s64 delta_ns = read_sum_exec(q, p);

    if (delta_ns > 0)
        return charge(q, (u64)delta_ns);
    if (unlikely(delta_ns < 0))
        take_back(q, (u64)-delta_ns);
    return false;
}

/* The second half of update_curr in dispatch and stopping: the CPU picks again in any case. */
static __always_inline void charge_prev(struct eevdf_queue *q, s64 delta_ns)
{
    bool renewed;

    if (delta_ns > 0) {
        renewed = advance(q, (u64)delta_ns);
        if (unlikely(q->next_pid) && q->next_pid == q->curr_pid)
            shall_resched(q, renewed);
    } else if (unlikely(delta_ns < 0)) {
        take_back(q, (u64)-delta_ns);
    }
}

/* update_curr up to that time of the clock. */
static __always_inline bool update_curr_until(struct eevdf_queue *q, u64 clock_ns)
{
    s64 delta_ns = (s64)(clock_ns - q->curr_clock_ns - q->curr_ahead_ns);

    if (delta_ns <= 0)
        return false;
    q->curr_ahead_ns += (u64)delta_ns;
    return charge(q, (u64)delta_ns);
}

/* update_curr of the groups above a task. True: the current task shall be preempted. */
SEPARATE bool update_groups_until(u32 group, u32 cpu, u64 clock_ns)
{
    bool resched = false;
    u32 level;

    for_range (level, GROUP_DEPTH_MAX) {
        struct eevdf_queue *q;

        if (!group)
            break;
        group = parent_group(group);
        q = queue_of(queue_at(group, cpu));
        if (q->curr_pid)
            resched |= update_curr_until(q, clock_ns);
    }
    return resched;
}

/*
 * update_curr by the timer of HRTICK: the request ends when it expires, not at what follows it: a tick or a wake-up in
 * the same interrupt, or the pass. `q`: the root's.
 */
static __always_inline void settle_hrtick(struct eevdf_queue *q)
{
    u64 fired_ns = q->hrtick_fired_ns;

    if (likely(!fired_ns))
        return;
    q->hrtick_fired_ns = 0;
    update_curr_until(queue_of(queue_at(q->leaf, q->cpu)), fired_ns);
    if (unlikely(q->leaf))
        update_groups_until(q->leaf, q->cpu, fired_ns);
}

/* update_curr from other callbacks: a wake-up charges the current task up to now by the clock. */
static __always_inline bool update_curr_by_clock(struct eevdf_queue *q)
{
    settle_pulled(q);
    settle_hrtick(queue_of(q->cpu));
    return q->curr_pid && update_curr_until(q, scx_bpf_now());
}

/* resched_curr, from outside of tick and dispatch. */
static __always_inline void preempt_curr(u32 cpu)
{
    struct eevdf_queue *q = queue_of(cpu);

    if (q->resched || !q->running_pid)
        return;
    q->resched = true;
    kick(cpu, SCX_KICK_PREEMPT);
}

/*
 * The distance from V at which place_entity places a task that joins a queue of this weight. Adding weight w at V - l
 * moves V to V - l * w / (W + w), so l is inflated by (W + w) / W, and the lag is vlag again once the task has
 * joined.
 */
static __always_inline s64 lag_to_place(s64 vlag, u32 weight, u64 others)
{
    if (!PLACE_LAG || !others || !vlag)
        return 0;
    return vlag + mul_div_cut(vlag, weight, others);
}

/* place_entity, for a task that is not in the sums. */
static __always_inline void place(struct eevdf_queue *q, struct eevdf_task *t, bool reweighted)
{
    u64 vslice, v = average(q), others = total_weight(q);

    t->slice_ns = t->custom_ns ?: base_slice();
    t->vruntime = v - (u64)lag_to_place(t->vlag, t->weight, others);
    if (t->rel_deadline && (PLACE_REL_DEADLINE || reweighted)) {
        t->deadline += t->vruntime;
    } else {
        vslice = virtual_time(t->slice_ns, t->weight, t->inverse);
        if (t->is_new && PLACE_DEADLINE_INITIAL)
            vslice /= 2;
        t->deadline = t->vruntime + vslice;
    }
    t->rel_deadline = false;
}

/* SCHED_IDLE is below nice 19 (WEIGHT_IDLEPRIO, WMULT_IDLEPRIO). */
#define IDLE_WEIGHT  3
#define IDLE_INVERSE 1431655765

static __always_inline u32 task_weight(const struct task_struct *p)
{
    return unlikely(p->policy == SCHED_IDLE) ? IDLE_WEIGHT : nice_weight[nice_index(p->static_prio)];
}

static __always_inline void set_weight(struct eevdf_task *t, const struct task_struct *p)
{
    t->weight = task_weight(p);
    t->inverse = t->weight == IDLE_WEIGHT ? IDLE_INVERSE : nice_inverse[nice_index(p->static_prio)];
}

/*
 * reweight_entity of a dequeued task: vlag and the distance of the deadline are virtual times of the old weight.
 * True: the weight has changed.
 */
static __always_inline bool reweight(struct eevdf_task *t, const struct task_struct *p)
{
    u32 old = t->weight;

    set_weight(t, p);
    if (t->is_new || old == t->weight)
        return false;
    t->vlag = mul_div_cut(t->vlag, old, t->weight);
    if (t->rel_deadline)
        t->deadline = (u64)mul_div_cut((s64)t->deadline, old, t->weight);
    return true;
}

/* Adds the task to the queue's accounting. */
static __always_inline void join(const struct task_struct *p, struct eevdf_queue *q, struct eevdf_task *t, u32 cpu)
{
    t->cpu = cpu;
    t->at = queue_at(t->group, cpu);
    t->kind = count_slice(q, t->slice_ns);
    sums_add(q, t->vruntime, t->weight);
    load_joins(p, &t->record, cpu, t->weight);
    join_cpu(cpu, t->weight);
}

/* The task can run no longer, or no longer on this CPU. */
static __always_inline void leave(const struct task_struct *p, struct eevdf_task *t, u32 cpu)
{
    load_leaves(p, &t->record, cpu);
    leave_cpu(cpu, t->weight);
}

/* It can run again, or on this CPU. */
static __always_inline void come_back(const struct task_struct *p, struct eevdf_task *t, u32 cpu)
{
    load_joins(p, &t->record, cpu, t->weight);
    join_cpu(cpu, t->weight);
}

/* update_entity_lag */
static __always_inline s64 lag_of(const struct eevdf_task *t, const struct eevdf_queue *q, u64 average)
{
    return clamp_lag(time_diff(average, t->vruntime), lag_limit(q, t));
}

/*
 * The vruntime on `to` of a task that waits on `from`: its lag goes with it. Changes nothing. Both queues are read
 * without their locks, so the lag is as of their last updates; its limit bounds it.
 */
static __always_inline u64 place_elsewhere(const struct eevdf_task *t, u32 from, u32 to)
{
    struct remote_view src, dst;

    from = queue_at(t->group, from);
    view_remote(queue_of(from), &src);
    view_remote(queue_of(queue_at(t->group, to)), &dst);
    return dst.average - (u64)lag_to_place(lag_of(t, queue_of(from), src.average), t->weight, dst.weight);
}

/* Moves a waiting task from one CPU's accounting to another's, where it has this vruntime. */
static __noinline void account_migration(const struct task_struct *p, struct eevdf_task *t, u32 from, u32 to,
                                         u64 vruntime)
{
    struct eevdf_queue *old = queue_of(t->at), *q = queue_of(queue_at(t->group, to));
    u64 distance = t->deadline - t->vruntime;

    account_remotely(old, t->vruntime, t->weight, -1);
    uncount_slice(old, t->kind);
    leave(p, t, from);
    if (t->ineligible)
        forget_leftmost(&old->ineligible);
    t->vruntime = vruntime;
    t->deadline = vruntime + (PLACE_REL_DEADLINE ? distance : virtual_time(t->slice_ns, t->weight, t->inverse));
    t->cpu = to;
    t->at = queue_at(t->group, to);
    t->kind = count_slice(q, t->slice_ns);
    account_remotely(q, vruntime, t->weight, 1);
    come_back(p, t, to);
    if (unlikely(t->group)) {
        change_group_load(t->group, from, -(s64)(u64)t->weight);
        change_group_load(t->group, to, t->weight);
        queue_of(to)->remote_joins = true;
    }
}

#endif
