/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Preemption of the current task of `cfs`: by a waking task that is far enough behind (check_preempt_wakeup), and at
 * a tick when the slice is used up (check_preempt_tick). Of tasks in different groups the ancestors in one queue are
 * compared.
 */
#ifndef FAIRGROUND_CFS_PREEMPT_BPF_H
#define FAIRGROUND_CFS_PREEMPT_BPF_H

#include "cfs_task.bpf.h"

/* The entity of a waking task that is compared with the current one: the task, or a group above it. */
struct match {
    u64 vruntime;
    u64 avg_wakeup_ns;
    u32 weight;
    u32 inverse;
    u32 child; /* the group; 0: the task itself */
};

/* find_matching_se: up to the siblings of one queue. Returns it. */
static __noinline struct cfs_queue *match_ancestors(u32 cpu, u32 current, u32 woken, struct match *m)
{
    u32 group = matching_group(current, woken, &m->child);

    if (m->child) {
        const struct group_entity *e = entity_of(m->child, cpu);

        m->vruntime = e->vruntime;
        m->weight = e->weight;
        m->inverse = e->inverse;
        m->avg_wakeup_ns = sched_wakeup_granularity_ns * tunable_factor();
    }
    return queue_in(group, cpu);
}

/* The granularity that a woken entity must exceed. `ADAPTIVE_GRAN`: less the longer the current one has run. */
static __always_inline u64 granularity_against(struct cfs_queue *q, const struct match *m)
{
    u64 gran;

    if (ADAPTIVE_GRAN) {
        u64 expected_ns = 2 * m->avg_wakeup_ns * nr_queued(q), ran_ns = curr_ran(q);

        gran = ran_ns < expected_ns ? expected_ns - ran_ns : 0;
        if (gran > sched_wakeup_granularity_ns * tunable_factor())
            gran = sched_wakeup_granularity_ns * tunable_factor();
        return ASYM_GRAN ? virtual_time(gran, m->weight, m->inverse) : gran;
    }
    return wakeup_gran(q, q->curr_load.weight, q->curr_load.inverse, m->weight, m->inverse);
}

static __always_inline void set_next_buddy(struct cfs_queue *q, u32 pid, u32 policy)
{
    if (policy == SCHED_IDLE)
        return;
    q->next_pid = pid;
    q->has_buddies = true;
    if (unlikely(q->group))
        set_group_buddies(q->group, q->cpu, BUDDY_NEXT);
}

static __always_inline void set_last_buddy(struct cfs_queue *q)
{
    if (q->curr_policy == SCHED_IDLE)
        return;
    q->last_pid = q->curr_pid;
    q->has_buddies = true;
    if (unlikely(q->group))
        set_group_buddies(q->group, q->cpu, BUDDY_LAST);
}

/* check_preempt_wakeup: whether a task that was just queued preempts the current one. */
static __always_inline bool wakeup_preempts(u32 cpu, struct task_struct *p, struct cfs_task *t)
{
    struct cfs_queue *root = queue_of(cpu), *current = current_queue(cpu), *own = queue_in(t->group, cpu), *q = own;
    struct match m = {.child = 0};
    u32 policy = p->policy, pid = (u32)p->pid;
    bool sync = root->sync_pid == pid;

    root->sync_pid = 0;
    if (NEXT_BUDDY && !(rule_last_of_many && t->is_new))
        set_next_buddy(own, pid, policy);
    if (LAST_BUDDY && !rule_last_of_many)
        set_last_buddy(current);
    if (root->fork_pid == pid) {
        root->fork_pid = 0;
        return true;
    }
    /* The first task that preempts stays the next one: of two that one interrupt wakes, the first. */
    if (sync || current->need_resched)
        return false;
    if (current->curr_policy == SCHED_IDLE && policy != SCHED_IDLE)
        return true;
    if (policy == SCHED_BATCH || policy == SCHED_IDLE || !WAKEUP_PREEMPTION)
        return false;
    m.vruntime = p->scx.dsq_vtime;
    m.avg_wakeup_ns = t->avg_wakeup_ns;
    m.weight = t->load.weight;
    m.inverse = t->load.inverse;
    if (unlikely(current != own)) {
        struct match found = m;

        q = match_ancestors(cpu, current->group, t->group, &found);
        m = found;
    }
    if (time_diff(q->curr_vruntime, m.vruntime) <= (s64)granularity_against(q, &m))
        return false;
    /* Only a task that is preempted itself: where its group is, it is no buddy. */
    if (LAST_BUDDY && rule_last_of_many && q == current && !fits_latency(nr_queued(current) + 1))
        set_last_buddy(current);
    /* The entity that preempts, not what is below it. */
    if (rule_hints_next && m.child)
        set_group_buddies(m.child, cpu, BUDDY_NEXT);
    else if (rule_hints_next)
        set_next_buddy(own, pid, policy);
    return true;
}

/* check_preempt_tick for the current entity of one queue. */
SEPARATE bool check_preempt_tick(struct cfs_queue *q)
{
    u64 ideal_ns, ran_ns, left = 0;

    if (!q || nr_queued(q) < 2)
        return false;
    ideal_ns = curr_slice(q);
    ran_ns = curr_ran(q);
    if (rule_slice_within_latency) {
        u64 latency_ns = sched_latency_ns * tunable_factor();

        if (ideal_ns > latency_ns)
            ideal_ns = latency_ns;
    }
    if (ran_ns > ideal_ns) {
        clear_buddies(q, q->curr_pid);
        return true;
    }
    if (!rule_tick_checks_vruntime || (rule_tick_obeys_preemption && !WAKEUP_PREEMPTION) ||
        ran_ns < sched_min_granularity_ns * tunable_factor())
        return false;
    return find_left(q, &left) && time_diff(q->curr_vruntime, left) > (s64)ideal_ns;
}

/* The tick in the queues above a task's group. */
SEPARATE bool check_preempt_tick_of_groups(u32 group, u32 cpu)
{
    bool ends = false;
    u32 level;

    refresh_shares(group, cpu, false);
    for_range (level, GROUP_DEPTH_MAX) {
        if (!group)
            break;
        group = parent_group(group);
        if (check_preempt_tick(queue_in(group, cpu)))
            ends = true;
    }
    return ends;
}

#endif
