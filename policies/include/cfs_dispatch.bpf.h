/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of `cfs` for ops.dispatch: which task runs next on a CPU (pick_next_task_fair), and its move to the CPU's
 * local queue.
 *
 * The common cases need no search: without buddies the first waiting task is compared with the current one, or taken
 * when that sleeps; after a yield it is taken unless it is too far right. Everything else is in cfs_pick.bpf.h, and
 * for groups in cfs_hierarchy.bpf.h.
 */
#ifndef FAIRGROUND_CFS_DISPATCH_BPF_H
#define FAIRGROUND_CFS_DISPATCH_BPF_H

#include "cfs_task.bpf.h"

/*
 * The pass was for the load balancer only. The current task keeps its slice, unless a task moved here is far enough
 * to the left to preempt it like a waking one (pull_task checks a task that it has moved in this way).
 */
SEPARATE bool goes_on(struct cfs_queue *root, struct cfs_queue *q)
{
    u64 left = 0;

    if (!root || !q)
        return false;
    root->balance_only = false;
    return !find_left(q, &left) ||
           time_diff(q->curr_vruntime, left) <= (s64)wakeup_granularity(q, q->curr_load.weight, q->curr_load.inverse,
                                                                        q->curr_load.weight, q->curr_load.inverse);
}

/* Moves the first waiting task to this CPU. `not_waiting`: it, and the current task if that runs on. */
static __always_inline enum pick_result take_first(struct cfs_queue *q, u32 cpu, u32 not_waiting)
{
    if (!scx_bpf_dsq_move_to_local(cpu)) {
        forget_leftmost(&q->left);
        return PICK_NONE;
    }
    took_leftmost(&q->left, cpu, not_waiting);
    return PICK_TAKEN;
}

/* The choice with buddies. */
SEPARATE enum pick_result pick_with_buddies(struct cfs_queue *q, u32 cpu, bool prev_runs)
{
    u32 pid = pick_entity(q, prev_runs, 0);

    if (!q)
        return PICK_NONE;
    if (prev_runs && pid == q->curr_pid)
        return PICK_CURRENT;
    if (!pid || !take_task(q, pid))
        return PICK_NONE;
    took_leftmost(&q->left, cpu, prev_runs ? 2 : 1);
    return PICK_TAKEN;
}

/* pick_next_entity on a CPU without groups; moves the picked task to this CPU. The current task sleeps. */
static __always_inline enum pick_result pick_waiting(struct cfs_queue *q, u32 cpu)
{
    if (rule_next_buddy == NEXT_PAIR && !q->next_pid)
        q->pair_start_ns = q->chosen_ns;
    /* Without buddies, or when a single task waits, no comparison is needed. */
    if (q->has_buddies) {
        if (nr_running(cpu) != 1)
            return pick_with_buddies(q, cpu, false);
        /* Its slice is not shorter than a period. */
        if (rule_next_buddy == NEXT_PAIR && q->chosen_ns - q->pair_start_ns > sched_period(1))
            note_single(q);
    }
    return take_first(q, cpu, 1);
}

/* The same where the current task can run on. */
static __always_inline enum pick_result pick_against_current(struct cfs_queue *q, u32 cpu)
{
    bool yielded = false;

    if (rule_next_buddy == NEXT_PAIR && !q->next_pid)
        q->pair_start_ns = q->chosen_ns;
    if (q->has_buddies) {
        /* After a yield the first one that waits runs, unless it is too far right: the usual case needs no search. */
        yielded = q->skip_pid == q->curr_pid && !(q->next_pid | q->last_pid);
        if (!yielded)
            return pick_with_buddies(q, cpu, true);
    }
    if (!find_leftmost_verified(&q->left, cpu))
        return PICK_NONE;
    if (time_diff(q->curr_vruntime, q->left.vtime) < 0 && !(yielded && first_is_near(q)))
        return PICK_CURRENT;
    return take_first(q, cpu, 2);
}

/* Picks the next task of a CPU. False: the current one, if it can run on, else none. */
static __always_inline bool pick_next(struct cfs_queue *root, u32 cpu, bool prev_runs)
{
    if (unlikely(root->children))
        return pick_through_groups(cpu, prev_runs) == PICK_TAKEN;
    if ((prev_runs ? pick_against_current(root, cpu) : pick_waiting(root, cpu)) != PICK_TAKEN)
        return false;
    root->picked = 1;
    return true;
}

/* Nothing waits here: takes tasks from other CPUs. */
SEPARATE void pick_elsewhere(u32 cpu)
{
    struct cfs_queue *root = queue_of(cpu);

    forget_leftmost(&root->left);
    root->picked = 0;
    if (newidle_balance(cpu))
        pick_next(root, cpu & (MAX_CPUS - 1), false);
    if (!root->picked)
        balance_nothing_came(cpu);
}

#endif
