/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether a task that was just queued preempts the current one in `eevdf`. */
#ifndef FAIRGROUND_EEVDF_PREEMPT_BPF_H
#define FAIRGROUND_EEVDF_PREEMPT_BPF_H

#include "eevdf_hierarchy.bpf.h"

/*
 * check_preempt_wakeup_fair: whether a task that was just queued preempts the current one. `t` is its entity in `q`, or
 * that of its group where the paths of both part, and `id` is its pid or that group.
 */
static __always_inline bool wakeup_preempts(struct eevdf_queue *root, u32 at, const struct task_struct *p,
                                            const struct eevdf_task *t, u32 id, bool is_new)
{
    struct eevdf_queue *q = queue_of(at);
    u32 policy = p->policy, cpu = root->cpu;
    bool is_shorter = PREEMPT_SHORT && t->slice_ns < q->curr_slice_ns;

    if (NEXT_BUDDY && !is_new) {
        q->next_pid = id;
        q->next_vruntime = t->vruntime;
    }
    if ((root->resched && (!rule_lazy || root->resched_now)) || !WAKEUP_PREEMPTION)
        return false;
    if (root->curr_policy == SCHED_IDLE && policy != SCHED_IDLE && !(q->curr_pid & GROUP_ENTITY)) {
        if (rule_idle_unprotected)
            cancel_protection(q);
        return true;
    }
    if (policy == SCHED_BATCH || policy == SCHED_IDLE)
        return false;
    if (update_curr_by_clock(q))
        preempt_curr(cpu);
    if (!rule_short_picks) {
        if (is_shorter && eligible(q, t->vruntime) &&
            (time_diff(t->deadline, q->curr_deadline) < 0 || !eligible(q, q->curr_vruntime)))
            cancel_protection(q);
        return would_choose(q, at, id, t, true);
    }
    if (is_new && !is_shorter && !rule_forks_preempt)
        return false;
    if (unlikely(q->delayed) && rule_wakeup_dequeues)
        finish_delayed_at_wakeup(q, at, t, !is_shorter);
    if (would_choose(q, at, id, t, !is_shorter)) {
        if (is_shorter)
            cancel_protection(q);
        return true;
    }
    if (rule_vprot && RUN_TO_PARITY)
        shorten_protection(q);
    return false;
}

/* The same where the tasks are in groups. */
static __noinline bool wakeup_preempts_in_groups(u32 cpu, struct task_struct *p, struct eevdf_task *t)
{
    struct eevdf_queue *root = queue_of(cpu);
    u32 below = 0, group = matching_group(root->leaf, t->group, &below), at = queue_at(group, cpu);

    if (below)
        return wakeup_preempts(root, at, p, entity_at(queue_at(below, cpu)), GROUP_ENTITY | below, t->is_new);
    return wakeup_preempts(root, at, p, t, (u32)p->pid, t->is_new);
}

#endif
