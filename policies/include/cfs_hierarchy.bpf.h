/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of `cfs` for the queues above a task in a group. Nothing here runs while a CPU has no group with tasks.
 *
 * Each kernel function with a for_each_sched_entity loop has its counterpart: the callback handles the task's own
 * queue, the loop continues from there to the root. Groups wait in no dispatch queue: a queue has a bit for each
 * child group that can run, and a group's vruntime is compared with that of the leftmost task.
 *
 * Example: A at the root, B and C in group g. At the root A competes with g; when g is leftmost, B with C in g's
 * queue.
 *
 * Another CPU can take a task away without this CPU's lock. So what it changes is atomic: loads, counts, bits. A CPU
 * that sets a group's count to zero clears its bit and then checks the count again; a CPU that raises it from zero
 * sets the bit afterwards.
 */
#ifndef FAIRGROUND_CFS_HIERARCHY_BPF_H
#define FAIRGROUND_CFS_HIERARCHY_BPF_H

#include "cfs_pick.bpf.h"
#include "cfs_shares.bpf.h"

/* Limit of the searches for a task in one dispatch; each finds a group empty whose tasks are being moved elsewhere. */
#define PICK_TRIES 8

/* calc_delta_fair of 2.6.27 continues through the groups above. */
SEPARATE u64 scale_by_groups(u32 group, u32 cpu, u64 delta_ns)
{
    u32 level;

    for_range (level, GROUP_DEPTH_MAX) {
        struct group_entity *e;

        if (!group)
            break;
        e = entity_of(group, cpu);
        group = parent_group(group);
        delta_ns = scale_by_weight(delta_ns, READ_ONCE(queue_in(group, cpu)->load), e->inverse);
    }
    return delta_ns;
}

SEPARATE bool find_left_group(struct cfs_queue *q)
{
    u64 bits;
    u32 i;

    if (!q)
        return false;
    if (q->left_group.state != LEFT_UNKNOWN)
        return q->left_group.state == LEFT_KNOWN;
    q->left_group.state = LEFT_NONE;
    bits = q->children;
    for_range (i, GROUP_CHILDREN_MAX) {
        u32 group;

        if (!bits)
            break;
        group = child_of(q->group, (u32)__builtin_ctzll(bits));
        bits &= bits - 1;
        if (q->curr_pid != (GROUP_ENTITY | group))
            note_inserted(&q->left_group, entity_of(group, q->cpu)->vruntime);
    }
    return q->left_group.state == LEFT_KNOWN;
}

/* place_entity for a group whose first task came. */
static __always_inline void place_group(struct cfs_queue *q, u32 group, struct group_entity *e)
{
    u64 base = placement_base(q);

    if (TREE_AVG || APPROX_AVG)
        base = averaged_base(q, nr_queued(q), READ_ONCE(q->load), base);
    if (FAIR_SLEEPERS && rule_group_sleeps_with_credit)
        base -= sleeper_credit(q, false, e->weight, e->inverse);
    e->vruntime = max_time(e->vruntime, base);
    if (q->last_curr == (GROUP_ENTITY | group))
        q->last_curr = 0;
}

/* A queue got an entity: groups above it that were empty join their parents' queues. */
SEPARATE void join_groups(u32 group, u32 cpu)
{
    u32 level, leaf = group;

    for_range (level, GROUP_DEPTH_MAX) {
        struct cfs_queue *q, *parent;
        struct group_entity *e;
        u32 weight;

        if (!group)
            break;
        q = queue_in(group, cpu);
        if (__sync_fetch_and_add(&q->nr, 1))
            break;
        __sync_fetch_and_or(groups_word(group, cpu), 1ULL << (group & 63));
        e = entity_of(group, cpu);
        weight = shares_on(group, cpu);
        e->weight = weight;
        e->inverse = (u32)((1ULL << 32) / (weight ?: 1));
        parent = queue_in(parent_group(group), cpu);
        place_group(parent, group, e);
        add_load(parent, (s64)weight - (s64)e->queued_weight);
        e->queued_weight = weight;
        note_inserted(&parent->left_group, e->vruntime);
        __sync_fetch_and_or(&parent->children, child_bit(group));
        group = parent_group(group);
    }
    refresh_shares(leaf, cpu, true);
}

/* A queue lost an entity: groups above it that became empty leave their parents' queues. */
SEPARATE void leave_groups(u32 group, u32 cpu)
{
    u32 level, leaf = group;

    for_range (level, GROUP_DEPTH_MAX) {
        struct cfs_queue *q, *parent;
        struct group_entity *e;

        if (!group)
            break;
        q = queue_in(group, cpu);
        if (__sync_fetch_and_sub(&q->nr, 1) != 1)
            break;
        e = entity_of(group, cpu);
        parent = queue_in(parent_group(group), cpu);
        __sync_fetch_and_and(groups_word(group, cpu), ~(1ULL << (group & 63)));
        __sync_fetch_and_and(&parent->children, ~child_bit(group));
        if (READ_ONCE(q->nr)) {
            __sync_fetch_and_or(groups_word(group, cpu), 1ULL << (group & 63));
            __sync_fetch_and_or(&parent->children, child_bit(group));
            break;
        }
        add_load(parent, -(s64)e->queued_weight);
        e->queued_weight = 0;
        forget_leftmost(&parent->left_group);
        clear_buddies(parent, GROUP_ENTITY | group);
        if (rule_min_vruntime == MIN_AT_DEQUEUE && parent->nr)
            update_min_vruntime(parent);
        group = parent_group(group);
    }
    refresh_shares(leaf, cpu, false);
}

/*
 * set_next_entity from a task's group up to the root. A group that was current before and goes on is not set again
 * (since 3.15): its slice and its marks as a buddy stay.
 */
SEPARATE void set_next_groups(u32 group, u32 cpu)
{
    u32 level;

    queue_of(cpu)->leaf_group = group;
    for_range (level, GROUP_DEPTH_MAX) {
        struct group_entity *e;
        struct cfs_queue *q;
        u32 id;

        if (!group)
            break;
        e = entity_of(group, cpu);
        id = GROUP_ENTITY | group;
        group = parent_group(group);
        q = queue_in(group, cpu);
        if (rule_repick_starts_slice || q->last_curr != id) {
            e->slice_exec_ns = e->sum_exec_ns;
            clear_buddies(q, id);
        }
        q->curr_pid = q->last_curr = id;
        q->curr_vruntime = e->vruntime;
        q->curr_load.weight = e->weight;
        q->curr_load.inverse = e->inverse;
        q->curr_policy = SCHED_NORMAL;
        q->curr_sum_exec = e->sum_exec_ns;
        q->curr_slice_exec = e->slice_exec_ns;
        forget_leftmost(&q->left_group);
        if (rule_min_vruntime == MIN_OF_TREE)
            update_min_vruntime(q);
    }
}

/* put_prev_entity from a task's group up to the root. */
SEPARATE void put_prev_groups(u32 group, u32 cpu)
{
    u32 level;

    queue_of(cpu)->leaf_group = 0;
    for_range (level, GROUP_DEPTH_MAX) {
        struct group_entity *e;
        struct cfs_queue *q;

        if (!group)
            break;
        e = entity_of(group, cpu);
        q = queue_in(parent_group(group), cpu);
        if (q->curr_pid == (GROUP_ENTITY | group)) {
            e->vruntime = q->curr_vruntime;
            e->sum_exec_ns = q->curr_sum_exec;
            note_inserted(&q->left_group, e->vruntime);
            q->curr_pid = 0;
            if (rule_min_vruntime == MIN_OF_TREE && !is_in_transit(queue_of(cpu), q))
                update_min_vruntime(q);
        }
        group = parent_group(group);
    }
}

/* The current task continues: put and set again for its groups (until 3.14). */
SEPARATE void keep_groups(u32 group, u32 cpu)
{
    u32 level;

    for_range (level, GROUP_DEPTH_MAX) {
        struct cfs_queue *q;

        if (!group)
            break;
        group = parent_group(group);
        q = queue_in(group, cpu);
        q->curr_slice_exec = q->curr_sum_exec;
        clear_buddies(q, q->curr_pid);
    }
}

enum buddy { BUDDY_NEXT, BUDDY_LAST, BUDDY_SKIP };

/* Marks the groups above a task as buddies of their queues. */
SEPARATE void set_group_buddies(u32 group, u32 cpu, enum buddy which)
{
    u32 level;

    for_range (level, GROUP_DEPTH_MAX) {
        struct cfs_queue *q;
        u32 id;

        if (!group)
            break;
        id = GROUP_ENTITY | group;
        group = parent_group(group);
        q = queue_in(group, cpu);
        q->has_buddies = true;
        if (which == BUDDY_NEXT)
            q->next_pid = id;
        else if (which == BUDDY_LAST)
            q->last_pid = id;
        else
            q->skip_pid = id;
    }
}

/*
 * dequeue_task_fair: a task went to sleep. The nearest group above it that still has tasks is the next buddy, so that
 * what one task of a group does for another goes on without a switch to elsewhere.
 */
SEPARATE void hint_left_group(u32 group, u32 cpu)
{
    u32 level;

    for_range (level, GROUP_DEPTH_MAX) {
        if (!group || READ_ONCE(queue_in(group, cpu)->nr))
            break;
        group = parent_group(group);
    }
    set_group_buddies(group, cpu, BUDDY_NEXT);
}

/* Moves the waiting task that pick_entity chose in `q` to this CPU. */
static __always_inline bool take_task(struct cfs_queue *q, u32 pid)
{
    struct buddies *b = &cpu_buddies[q->cpu & (MAX_CPUS - 1)];
    bool first = b->left_is_first && b->left.pid == pid;

    forget_leftmost(&q->left);
    return first ? scx_bpf_dsq_move_to_local(dsq_of(q)) : move_pid_to_local(dsq_of(q), pid);
}

enum pick_result { PICK_NONE, PICK_CURRENT, PICK_TAKEN };

/* pick_next_task_fair: from the root down to a task. PICK_TAKEN: it is in this CPU's local queue. */
SEPARATE enum pick_result pick_through_groups(u32 cpu, bool prev_runs)
{
    struct cfs_queue *root = queue_of(cpu);
    u32 empty_in_pass = 0, i, level;

    for_range (i, PICK_TRIES) {
        struct cfs_queue *q = root;
        bool with_current = prev_runs;
        u32 group = 0, id = 0;

        if (!empty_in_pass)
            empty_in_pass = root->pick_pass = (root->pick_pass + 2) | 1;
        for_range (level, GROUP_DEPTH_MAX + 1) {
            q = queue_in(group, cpu);
            id = pick_entity(q, with_current && q->curr_pid, empty_in_pass);
            if (!(id & GROUP_ENTITY))
                break;
            with_current = with_current && id == q->curr_pid;
            group = id & (GROUPS_MAX - 1);
        }
        if (id && with_current && id == q->curr_pid)
            return PICK_CURRENT;
        if (id && take_task(q, id)) {
            root->picked = 1 + group;
            return PICK_TAKEN;
        }
        if (!group)
            break;
        entity_of(group, cpu)->empty_in_pass = empty_in_pass;
    }
    return PICK_NONE;
}

#endif
