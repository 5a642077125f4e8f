/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pick through the queues of groups in `eevdf`, from the root down to a task (pick_task_fair), and the groups above
 * the current task (put_prev_task_fair, set_next_task_fair). Nothing here runs while a CPU has no group with tasks.
 *
 * Example: A at the root, B and C in group g. At the root A competes with g, by their deadlines; where g is picked, B
 * competes with C. When B is followed by C, g goes on: its request and its protection stay.
 */
#ifndef FAIRGROUND_EEVDF_HIERARCHY_BPF_H
#define FAIRGROUND_EEVDF_HIERARCHY_BPF_H

#include "eevdf_balance.bpf.h"

/* Limit of the searches for a task in one dispatch; each dequeues a group that was delayed, or is empty. */
#define PICK_TRIES 16

/* A choice, and the queue of the task. */
#define FOUND(choice, at)  ((u32)(choice) << 16 | (at))
#define FOUND_CHOICE(pair) ((enum choice)((pair) >> 16))
#define FOUND_AT(pair)     ((pair) & (QUEUES_MAX - 1))

/* Whether `group` is `below` or above it. */
SEPARATE bool is_above(u32 group, u32 below)
{
    u32 level;

    for_range (level, GROUP_DEPTH_MAX + 1) {
        if (group == below)
            return true;
        if (!below)
            break;
        below = parent_group(below);
    }
    return false;
}

/* Groups of this CPU into whose queues other CPUs have put tasks join their parents' queues. */
SEPARATE void join_remote_groups(u32 cpu)
{
    u32 group;

    for_range (group, GROUPS_MAX) {
        u32 at = queue_at(group, cpu);

        if (group && group_of(group)->in_use && !entity_at(at)->queued && READ_ONCE(queue_of(at)->nr))
            join_groups(at);
    }
}

/* The choice from the root down to a task. `prev_runs`: the current task can continue. */
SEPARATE u32 choose_through_groups(u32 cpu, bool prev_runs)
{
    struct eevdf_queue *root = queue_of(cpu);
    u32 leaf = queue_at(root->leaf, cpu), level, i;

    if (root->remote_joins) {
        root->remote_joins = false;
        join_remote_groups(cpu);
    }
    for_range (i, PICK_TRIES) {
        enum choice choice = CHOOSE_NONE;
        u32 at = cpu, id = 0;

        for_range (level, GROUP_DEPTH_MAX + 1) {
            struct eevdf_queue *q = queue_of(at);

            settle_pulled(q);
            choice = choose(q, at, at == leaf && prev_runs ? true : (q->curr_pid & GROUP_ENTITY) != 0, true);
            id = choice == CHOOSE_CURRENT ? q->curr_pid
                 : choice == CHOOSE_BUDDY ? q->next_pid
                 : choice == CHOOSE_GROUP ? GROUP_ENTITY | q->chosen_group
                                          : 0;
            if (!(id & GROUP_ENTITY))
                break;
            at = queue_at(id & (GROUPS_MAX - 1), cpu);
            if (entity_at(at)->delayed) {
                choice = CHOOSE_NONE;
                break;
            }
        }
        if (choice != CHOOSE_NONE)
            return FOUND(choice, at);
        if (at == cpu)
            break;
        /* A delayed group was picked, or one that has become empty. */
        dequeue_group(at);
        leave_groups(parent_at(queue_of(at)), true);
    }
    return FOUND(CHOOSE_NONE, cpu);
}

/* What the current task has run, for the groups above: when it stops, or the CPU picks again. */
SEPARATE void charge_groups(u32 group, u32 cpu, u64 sum_exec)
{
    u32 level;

    for_range (level, GROUP_DEPTH_MAX) {
        struct eevdf_queue *q;

        if (!group)
            break;
        group = parent_group(group);
        q = queue_of(queue_at(group, cpu));
        if (q->curr_pid)
            charge_prev(q, uncharged(q, sum_exec));
        q->curr_sum_exec = sum_exec;
        q->curr_ahead_ns = 0;
        q->curr_clock_ns = scx_bpf_now();
    }
}

/* entity_tick of the groups above the current task. True: the current task shall be preempted. */
SEPARATE bool tick_groups(u32 group, u32 cpu, u64 sum_exec)
{
    bool resched = false;
    u32 level;

    change_group_load(group, cpu, 0);
    for_range (level, GROUP_DEPTH_MAX) {
        struct eevdf_queue *q;
        u32 at = queue_at(group, cpu);
        s64 delta_ns;

        if (!group)
            break;
        group = parent_group(group);
        q = queue_of(queue_at(group, cpu));
        delta_ns = uncharged(q, sum_exec);
        q->curr_sum_exec = sum_exec;
        q->curr_ahead_ns = 0;
        q->curr_clock_ns = scx_bpf_now();
        if (q->curr_pid && delta_ns > 0)
            resched |= charge(q, (u64)delta_ns);
        refresh_group(at);
    }
    return resched;
}

/* Groups of the task before are put, those of the next one set. A group above both goes on. */
SEPARATE void switch_groups(u32 cpu, u32 before, u32 next, u64 sum_exec)
{
    u32 group = before, level;

    for_range (level, GROUP_DEPTH_MAX) {
        struct eevdf_queue *parent;
        u32 at = queue_at(group, cpu);

        if (!group)
            break;
        parent = queue_of(queue_at(parent_group(group), cpu));
        if (is_curr_group(parent, group) && !is_above(group, next))
            put_curr(parent, entity_at(at));
        group = parent_group(group);
    }
    group = next;
    for_range (level, GROUP_DEPTH_MAX) {
        struct eevdf_queue *parent;
        u32 at = queue_at(group, cpu);

        if (!group)
            break;
        parent = queue_of(queue_at(parent_group(group), cpu));
        if (!is_curr_group(parent, group)) {
            if (!entity_at(at)->queued)
                join_groups(at);
            clear_buddy(parent, GROUP_ENTITY | group);
            set_curr(parent, entity_at(at), GROUP_ENTITY | group);
            protect(parent);
        }
        parent->curr_sum_exec = sum_exec;
        parent->curr_ahead_ns = 0;
        parent->curr_clock_ns = scx_bpf_now();
        group = parent_group(group);
    }
    queue_of(cpu)->leaf = next;
}

#endif
