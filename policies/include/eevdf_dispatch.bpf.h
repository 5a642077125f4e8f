/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of `eevdf` for ops.dispatch: the choice is carried out (pick_task_fair, set_next_task_fair), and a CPU that
 * becomes idle pulls. A CPU without groups has a path of its own, since it is every switch's.
 */
#ifndef FAIRGROUND_EEVDF_DISPATCH_BPF_H
#define FAIRGROUND_EEVDF_DISPATCH_BPF_H

#include "eevdf_hierarchy.bpf.h"

/* Whether the pass was asked for by the load balancer only: the current task continues. */
static __always_inline bool only_balances(struct eevdf_queue *q)
{
    if (likely(!q->balances))
        return false;
    q->balances = false;
    return !q->resched;
}

/* Whether the task of ops.dispatch is the current one, and can run on. */
static __always_inline bool is_current(const struct eevdf_queue *q, const struct task_struct *prev)
{
    return prev && q->running_pid == (u32)prev->pid;
}

/* The current task stays: it is alone, or still the best. Nothing was picked, so its protection stays as it is. */
static __always_inline void keep(struct eevdf_queue *root, u32 cpu, struct task_struct *prev)
{
    struct eevdf_queue *q = queue_of(queue_at(root->leaf, cpu));

    if (root->bypassed) {
        root->bypassed = false;
        start_slice(q, cpu);
    }
    root->resched = root->resched_now = false;
    clear_buddy(q, q->curr_pid);
    scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
}

/*
 * Brings the first of the ineligible tasks to this CPU. `nr`: the entities of the queue before; `is_last`: the task is the
 * last one that waits.
 *
 * Behind the last task the queue is empty. Another CPU that puts a task here at the same time counts it before it
 * invalidates the record: the record is written before the count is read again, so that one of the two is seen.
 */
static __always_inline bool fetch_ineligible(struct eevdf_queue *q, u32 at, u32 nr, bool is_last)
{
    WRITE_ONCE(q->ineligible.state, is_last ? LEFT_NONE : LEFT_UNKNOWN);
    if (is_last && __sync_fetch_and_add(&q->nr, 0) != nr)
        forget_leftmost(&q->ineligible);
    if (scx_bpf_dsq_move_to_local(dsq_at(at, INELIGIBLE)))
        return true;
    forget_leftmost(&q->ineligible);
    return false;
}

/* Brings the chosen task to this CPU. If another CPU has taken it, the next one comes. */
static __always_inline bool fetch(struct eevdf_queue *q, u32 at, enum choice choice, bool grouped)
{
    u32 nr = q->nr, waiting = nr_waiting(q, grouped);

    if (!nr)
        return false;
    if (unlikely(choice == CHOOSE_BUDDY) && move_pid_to_local(at, q->next_pid))
        return true;
    /* If the record is out of date, it is among the eligible. */
    if (waiting == 1 && q->ineligible.state == LEFT_KNOWN)
        return fetch_ineligible(q, at, nr, true) || scx_bpf_dsq_move_to_local(dsq_at(at, ELIGIBLE));
    return scx_bpf_dsq_move_to_local(dsq_at(at, ELIGIBLE)) || fetch_ineligible(q, at, nr, waiting == 1);
}

/* Whether the CPU has tasks in groups, or the one that was put last is in one. */
static __always_inline bool has_groups(const struct eevdf_queue *root)
{
    return root->children | root->leaf_or_joins;
}

/* The rest of a pass: the chosen task comes, or the current one stays (`prev_runs`), or nothing does. */
static __always_inline void carry_out_choice(struct eevdf_queue *root, u32 cpu, struct task_struct *prev,
                                             bool prev_runs, enum choice choice, u32 at, bool grouped)
{
    if (choice != CHOOSE_CURRENT && fetch(queue_of(at), at, choice, grouped)) {
        root->picked = true;
    } else if (prev_runs) {
        keep(root, cpu, prev);
    } else {
        root->hrtick_ns = 0;
        balance_nothing_came(cpu);
    }
}

/* Nothing waits here: the CPU pulls a task, or becomes idle. */
SEPARATE void go_idle(u32 cpu)
{
    struct eevdf_queue *root = queue_of(cpu & (MAX_CPUS - 1));
    u32 found = FOUND(CHOOSE_NONE, cpu);

    if (!nr_running(cpu) && newidle_balance(cpu)) {
        settle_pulled(root);
        found = choose_through_groups(cpu, false);
    }
    carry_out_choice(root, cpu, NULL, false, FOUND_CHOICE(found), FOUND_AT(found), true);
}

/* ops.dispatch of a CPU with tasks in groups. */
static __noinline void dispatch_in_groups(struct eevdf_queue *root, u32 cpu, struct task_struct *prev)
{
    struct eevdf_queue *q = queue_of(queue_at(root->leaf, cpu));
    u32 found = FOUND(CHOOSE_CURRENT, cpu);

    if (!is_current(root, prev)) {
        root->balances = false;
        found = choose_through_groups(cpu, false);
        if (FOUND_CHOICE(found) == CHOOSE_NONE)
            go_idle(cpu);
        else
            carry_out_choice(root, cpu, prev, false, FOUND_CHOICE(found), FOUND_AT(found), true);
        return;
    }
    settle_hrtick(root);
    charge_prev(q, read_sum_exec(q, prev));
    if (root->leaf)
        charge_groups(root->leaf, cpu, prev->se.sum_exec_runtime);
    if (!only_balances(root))
        found = choose_through_groups(cpu, true);
    carry_out_choice(root, cpu, prev, true, FOUND_CHOICE(found), FOUND_AT(found), true);
}

#endif
