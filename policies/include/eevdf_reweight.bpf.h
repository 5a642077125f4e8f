/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The entities of groups in `eevdf`: they join their parents' queues with their first entity and leave with the last,
 * delayed like a task that sleeps (enqueue_task_fair, dequeue_entities, update_cfs_group, reweight_entity).
 *
 * Nothing here runs for tasks of the root. Another CPU may take a group's last task away without this CPU's lock: the
 * group stays queued then, and is dequeued when it is picked.
 */
#ifndef FAIRGROUND_EEVDF_REWEIGHT_BPF_H
#define FAIRGROUND_EEVDF_REWEIGHT_BPF_H

#include "eevdf_curr.bpf.h"

static __always_inline u32 parent_at(const struct eevdf_queue *q)
{
    return queue_at(parent_group(q->group), q->cpu);
}

static __always_inline bool is_curr_group(const struct eevdf_queue *parent, u32 group)
{
    return parent->curr_pid == (GROUP_ENTITY | group);
}

/* put_prev_entity: the current entity waits again. */
static __always_inline void put_curr(struct eevdf_queue *q, struct eevdf_task *t)
{
    t->vruntime = q->curr_vruntime;
    t->deadline = q->curr_deadline;
    t->slice_ns = q->curr_slice_ns;
    t->kind = q->curr_kind;
    q->curr_pid = 0;
    q->curr_weight = 0;
    sums_add(q, t->vruntime, t->weight);
}

/* set_next_entity */
static __always_inline void set_curr(struct eevdf_queue *q, struct eevdf_task *t, u32 id)
{
    sums_sub(q, t->vruntime, t->weight);
    q->curr_pid = id;
    q->curr_vruntime = t->vruntime;
    q->curr_deadline = t->deadline;
    q->curr_slice_ns = t->slice_ns;
    q->curr_custom_ns = t->custom_ns;
    q->curr_kind = t->kind;
    /* And curr_inverse: one word. */
    __builtin_memcpy(&q->curr_weight, &t->weight, 2 * sizeof(u32));
}

/* A group's slice is the shortest in its queue (cfs_rq_min_slice). */
static __always_inline u64 shortest_slice(const struct eevdf_queue *q)
{
    u64 longest_ns = compare_slices(q, 0, true);

    return longest_ns ? extreme_slice(q, longest_ns, false) : base_slice();
}

static __always_inline void set_group_slice(struct eevdf_queue *parent, struct eevdf_task *e, u64 slice_ns,
                                            bool is_curr)
{
    e->custom_ns = slice_ns;
    if (is_curr)
        parent->curr_custom_ns = slice_ns;
    if ((is_curr ? parent->curr_slice_ns : e->slice_ns) == slice_ns)
        return;
    if (is_curr) {
        uncount_slice(parent, parent->curr_kind);
        parent->curr_kind = count_slice(parent, slice_ns);
        parent->curr_slice_ns = slice_ns;
        return;
    }
    uncount_slice(parent, e->kind);
    e->kind = count_slice(parent, slice_ns);
    e->slice_ns = slice_ns;
}

/* A virtual time at the weight `old` is as far from V at the weight `now` in wall time. */
static __always_inline u64 rescaled(u64 time, u64 v, u32 old, u32 now)
{
    return v + (u64)mul_div_cut(time_diff(time, v), old, now);
}

static __always_inline void set_entity_weight(struct eevdf_task *e, u32 weight)
{
    e->weight = weight ?: GROUP_SHARES_MIN;
    e->inverse = (u32)((1ULL << 32) / e->weight);
}

/* reweight_entity of a group's queued entity: its lag and the distance of its deadline stay in wall time. */
SEPARATE void reweight_group(u32 at, u32 weight)
{
    struct eevdf_queue *q = queue_of(at), *parent = queue_of(parent_at(q));
    struct eevdf_task *e = entity_at(at);
    bool is_curr = is_curr_group(parent, q->group);
    u32 old = e->weight;
    s64 lag;
    u64 v;

    if (update_curr_by_clock(parent))
        preempt_curr(q->cpu);
    v = average(parent);
    if (!is_curr) {
        lag = lag_of(e, parent, v);
        sums_sub(parent, e->vruntime, old);
        e->deadline = rescaled(e->deadline, v, old, weight);
        set_entity_weight(e, weight);
        e->vruntime = v - (u64)mul_div_cut(lag, old, weight);
        sums_add(parent, e->vruntime, e->weight);
        return;
    }
    e->vruntime = parent->curr_vruntime;
    lag = lag_of(e, parent, v);
    if (is_protected(parent))
        parent->curr_vprot = rescaled(parent->curr_vprot, v, old, weight);
    set_entity_weight(e, weight);
    parent->curr_deadline = rescaled(parent->curr_deadline, v, old, weight);
    parent->curr_vruntime = v - (u64)mul_div_cut(lag, old, weight);
    parent->curr_weight = e->weight;
    parent->curr_inverse = e->inverse;
}

/* update_cfs_group of a queued group, and its slice. */
SEPARATE void refresh_group(u32 at)
{
    struct eevdf_queue *q = queue_of(at), *parent = queue_of(parent_at(q));
    struct eevdf_task *e = entity_at(at);
    u32 weight = (u32)group_on(q->group, q->cpu)->queued;

    if (weight && weight != e->weight)
        reweight_group(at, weight);
    set_group_slice(parent, e, shortest_slice(q), is_curr_group(parent, q->group));
}

/* enqueue_entity of a group whose queue got its first entity. */
SEPARATE void enqueue_group(u32 at)
{
    struct eevdf_queue *q = queue_of(at), *parent = queue_of(parent_at(q));
    struct eevdf_task *e = entity_at(at);
    u32 old = e->weight;

    if (update_curr_by_clock(parent))
        preempt_curr(q->cpu);
    set_entity_weight(e, (u32)group_on(q->group, q->cpu)->queued);
    if (old && old != e->weight)
        e->vlag = mul_div_cut(e->vlag, old, e->weight);
    e->custom_ns = shortest_slice(q);
    place(parent, e, false);
    e->kind = count_slice(parent, e->slice_ns);
    e->queued = true;
    e->delayed = 0;
    sums_add(parent, e->vruntime, e->weight);
    parent->children |= child_bit(q->group);
    __sync_fetch_and_or(groups_word(q->group, q->cpu), 1ULL << (q->group & 63));
}

/* update_entity_lag of a group that may be delayed. */
static __always_inline s64 group_lag(struct eevdf_queue *parent, const struct eevdf_task *e)
{
    s64 lag = lag_of(e, parent, average(parent));

    if (!e->delayed)
        return lag;
    if (rule_delay_keeps && lag < e->vlag)
        lag = e->vlag;
    return DELAY_ZERO && lag > 0 ? 0 : lag;
}

/* requeue_delayed_entity */
SEPARATE void requeue_group(u32 at)
{
    struct eevdf_queue *q = queue_of(at), *parent = queue_of(parent_at(q));
    struct eevdf_task *e = entity_at(at);
    bool is_curr = is_curr_group(parent, q->group);
    s64 lag;
    u64 v;

    if (update_curr_by_clock(parent))
        preempt_curr(q->cpu);
    if (is_curr)
        put_curr(parent, e);
    lag = group_lag(parent, e);
    v = average(parent);
    e->vlag = lag;
    e->delayed = 0;
    if (v - (u64)lag != e->vruntime) {
        sums_sub(parent, e->vruntime, e->weight);
        uncount_slice(parent, e->kind);
        place(parent, e, false);
        e->kind = count_slice(parent, e->slice_ns);
        sums_add(parent, e->vruntime, e->weight);
    }
    if (is_curr)
        set_curr(parent, e, GROUP_ENTITY | q->group);
}

/* dequeue_entity of a group whose queue lost its last entity, not to be delayed. */
SEPARATE void dequeue_group(u32 at)
{
    struct eevdf_queue *q = queue_of(at), *parent = queue_of(parent_at(q));
    struct eevdf_task *e = entity_at(at);

    if (!e->queued)
        return;
    if (is_curr_group(parent, q->group))
        put_curr(parent, e);
    e->vlag = group_lag(parent, e);
    sums_sub(parent, e->vruntime, e->weight);
    uncount_slice(parent, e->kind);
    e->queued = false;
    e->delayed = 0;
    clear_buddy(parent, GROUP_ENTITY | q->group);
    parent->children &= ~child_bit(q->group);
    __sync_fetch_and_and(groups_word(q->group, q->cpu), ~(1ULL << (q->group & 63)));
}

/* The rest of enqueue_task_fair above a queue that got an entity. */
SEPARATE void join_groups(u32 at)
{
    u32 level;

    for_range (level, GROUP_DEPTH_MAX) {
        struct eevdf_queue *q = queue_of(at);

        if (!q->group)
            break;
        if (!entity_at(at)->queued) {
            enqueue_group(at);
        } else {
            if (entity_at(at)->delayed)
                requeue_group(at);
            refresh_group(at);
        }
        at = parent_at(q);
    }
}

/* set_next_buddy of a group, and of those above. */
SEPARATE void favour_groups(u32 at)
{
    u32 level;

    for_range (level, GROUP_DEPTH_MAX) {
        struct eevdf_queue *q = queue_of(at);

        if (!q->group)
            break;
        at = parent_at(q);
        queue_of(at)->next_pid = GROUP_ENTITY | q->group;
    }
}

/*
 * The rest of dequeue_entities above a queue that lost an entity. A task that sleeps leaves its group as next buddy, if
 * others are in it: so what one task of a group does for another goes on.
 */
SEPARATE void leave_groups(u32 at, bool sleeps)
{
    bool left = true;
    u32 level;

    for_range (level, GROUP_DEPTH_MAX) {
        struct eevdf_queue *q = queue_of(at), *parent;
        struct eevdf_task *e = entity_at(at);

        if (!q->group || !e->queued)
            break;
        parent = queue_of(parent_at(q));
        if (!left) {
            refresh_group(at);
        } else if (q->nr || q->curr_weight) {
            left = false;
            refresh_group(at);
            if (sleeps)
                favour_groups(at);
        } else {
            if (update_curr_by_clock(parent))
                preempt_curr(q->cpu);
            clear_buddy(parent, GROUP_ENTITY | q->group);
            if (DELAY_DEQUEUE && !e->delayed &&
                !eligible(parent, is_curr_group(parent, q->group) ? parent->curr_vruntime : e->vruntime)) {
                if (is_curr_group(parent, q->group))
                    e->vruntime = parent->curr_vruntime;
                e->vlag = lag_of(e, parent, average(parent));
                e->delayed = 1;
                left = false;
            } else {
                dequeue_group(at);
            }
        }
        at = parent_at(q);
    }
}

#endif
