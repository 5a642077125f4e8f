/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pick of the next task in `eevdf`: the eligible one with the earliest deadline, in logarithmic time.
 *
 * Each CPU has two dispatch queues: ELIGIBLE, ordered by deadline, and INELIGIBLE, ordered by vruntime. Before each
 * pick the tasks that V has passed move from the head of INELIGIBLE to ELIGIBLE, so INELIGIBLE holds no eligible
 * task. ELIGIBLE may hold tasks that are no longer eligible, since V steps back when a task with positive lag joins;
 * those at its head move to INELIGIBLE. So each task moves about once per slice, and the head of ELIGIBLE is the one
 * to pick. Moves are possible in dispatch only. A single waiting task that is picked is taken from where it is.
 *
 * Example: V 11, A v 10 d 13 and C v 9 d 18 in ELIGIBLE, B v 12 d 12.98 in INELIGIBLE. A is picked. When V has
 * reached 12.004 B moves to ELIGIBLE, ahead of A.
 */
#ifndef FAIRGROUND_EEVDF_PICK_BPF_H
#define FAIRGROUND_EEVDF_PICK_BPF_H

#include "eevdf_delayed.bpf.h"

/* Limit of the tasks that one pick moves each way; the rest can move at the next one. */
#define MOVES_MAX 1024
/* A buddy behind more waiting tasks than this is not found, and not favoured. */
#define BUDDY_SCAN_MAX 64

/* No two deadlines are further apart than this. */
#define FAR_DEADLINE (1ULL << 62)

enum choice { CHOOSE_NONE, CHOOSE_CURRENT, CHOOSE_FIRST, CHOOSE_BUDDY, CHOOSE_GROUP };

/*
 * The waiting group that is eligible and has the earliest deadline, if that is before `deadline` or there is no rival; 0:
 * none. `but` is left out.
 */
SEPARATE u32 first_group(u32 at, u64 v, bool has_rival, u64 deadline, u32 but)
{
    struct eevdf_queue *q = queue_of(at);
    u64 bits = q->children;
    u32 first = 0, i;

    for_range (i, GROUP_CHILDREN_MAX) {
        const struct eevdf_task *e;
        u32 group;

        if (!bits)
            break;
        group = child_of(q->group, (u32)__builtin_ctzll(bits));
        bits &= bits - 1;
        if (group == but || is_curr_group(q, group))
            continue;
        e = entity_at(queue_at(group, q->cpu));
        if (time_diff(e->vruntime, v) > 0 || (has_rival && time_diff(e->deadline, deadline) >= 0))
            continue;
        first = group;
        has_rival = true;
        deadline = e->deadline;
    }
    return first;
}

/* Inserts a task into the queue for its last known eligibility: `zero` is V as it was last computed. */
static __always_inline void insert_waiting(struct eevdf_queue *q, u32 at, struct task_struct *p, struct eevdf_task *t,
                                           u64 enq_flags)
{
    t->ineligible = time_diff(t->vruntime, q->zero) > 0;
    if (t->ineligible) {
        note_inserted(&q->ineligible, t->vruntime);
        scx_bpf_dsq_insert_vtime(p, dsq_at(at, INELIGIBLE), SCX_SLICE_INF, t->vruntime, enq_flags);
    } else {
        scx_bpf_dsq_insert_vtime(p, dsq_at(at, ELIGIBLE), SCX_SLICE_INF, t->deadline, enq_flags);
    }
}

/* Moves the tasks that V has passed to ELIGIBLE. */
SEPARATE void promote(u32 at, u64 v)
{
    struct eevdf_queue *q = queue_of(at);
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    struct eevdf_task *t;
    u32 i;

    q->ineligible.state = LEFT_UNKNOWN;
    if (!bpf_iter_scx_dsq_new(&it, dsq_at(at, INELIGIBLE), 0)) {
        for_range (i, MOVES_MAX) {
            p = bpf_iter_scx_dsq_next(&it);
            if (!p) {
                q->ineligible.state = LEFT_NONE;
                break;
            }
            if (time_diff(p->scx.dsq_vtime, v) > 0) {
                q->ineligible.vtime = p->scx.dsq_vtime;
                q->ineligible.state = LEFT_KNOWN;
                break;
            }
            t = task_of(p);
            if (t && scx_bpf_dsq_move_vtime(&it, p, dsq_at(at, ELIGIBLE), t->deadline, 0))
                t->ineligible = false;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
}

/* Whether the head of ELIGIBLE is still eligible. If not, it moves to INELIGIBLE. */
static __always_inline bool is_eligible_head(struct eevdf_queue *q, struct bpf_iter_scx_dsq *it, u32 at,
                                             struct task_struct *p, u64 v)
{
    struct eevdf_task *t = task_of(p);

    if (!t || time_diff(t->vruntime, v) <= 0)
        return true;
    if (scx_bpf_dsq_move_vtime(it, p, dsq_at(at, INELIGIBLE), t->vruntime, 0)) {
        t->ineligible = true;
        note_inserted(&q->ineligible, t->vruntime);
    }
    return false;
}

/* Makes sure that the head of ELIGIBLE is eligible, and writes its deadline to *deadline. False: none is. */
SEPARATE bool first_waiting(u32 at, u64 v, u64 *deadline)
{
    struct eevdf_queue *q = queue_of(at);
    struct bpf_iter_scx_dsq it;
    struct task_struct *p = NULL;
    bool found = false;
    u32 i;

    if (!deadline)
        return false;
    if (!bpf_iter_scx_dsq_new(&it, dsq_at(at, ELIGIBLE), 0)) {
        p = bpf_iter_scx_dsq_next(&it);
        found = p && is_eligible_head(q, &it, at, p, v);
        if (found)
            *deadline = p->scx.dsq_vtime;
        if (p && !found) {
            for_range (i, MOVES_MAX) {
                p = bpf_iter_scx_dsq_next(&it);
                if (!p)
                    break;
                found = is_eligible_head(q, &it, at, p, v);
                if (found) {
                    *deadline = p->scx.dsq_vtime;
                    break;
                }
            }
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    return found;
}

/* A choice, and the delayed entity that is picked before it (DELAYED_MAX: none). */
#define CHOICE(choice, delayed) ((u32)(choice) << 8 | (delayed))
#define CHOSEN(pair)            ((enum choice)((pair) >> 8))
#define DELAYED_BEFORE(pair)    ((pair) & 0xff)

/* One choice, where V is v. */
SEPARATE u32 choose_at_once(u32 at, u64 v, bool curr_competes)
{
    struct eevdf_queue *q = queue_of(at);
    enum choice choice;
    u64 deadline = 0;

    if (q->ineligible.state == LEFT_UNKNOWN ||
        (q->ineligible.state == LEFT_KNOWN && time_diff(q->ineligible.vtime, v) <= 0))
        promote(at, v);
    choice = first_waiting(at, v, &deadline) ? CHOOSE_FIRST : CHOOSE_NONE;
    if (unlikely(q->children)) {
        u32 group = first_group(at, v, choice, deadline, 0);

        if (group) {
            choice = CHOOSE_GROUP;
            q->chosen_group = group;
            deadline = entity_at(queue_at(group, q->cpu))->deadline;
        }
    }
    if (curr_competes && (!choice || time_diff(q->curr_deadline, deadline) < 0)) {
        choice = CHOOSE_CURRENT;
        deadline = q->curr_deadline;
    }
    /* Of equals the current task comes last. */
    return CHOICE(choice, delayed_before(q, at, v, choice, deadline + (choice == CHOOSE_CURRENT)));
}

/*
 * The choice between the current task, which is eligible, and the only one that waits, which V has passed: the
 * earlier deadline. If the waiting one stays, it moves to ELIGIBLE. CHOOSE_NONE: another CPU has taken it.
 */
SEPARATE u32 choose_of_two(u32 at, u64 v)
{
    struct eevdf_queue *q = queue_of(at);
    enum choice choice = CHOOSE_NONE;
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    struct eevdf_task *t;

    if (!bpf_iter_scx_dsq_new(&it, dsq_at(at, INELIGIBLE), 0)) {
        p = bpf_iter_scx_dsq_next(&it);
        t = p && time_diff(p->scx.dsq_vtime, v) <= 0 ? task_of(p) : NULL;
        if (t && time_diff(q->curr_deadline, t->deadline) >= 0) {
            choice = CHOOSE_FIRST;
        } else if (t && scx_bpf_dsq_move_vtime(&it, p, dsq_at(at, ELIGIBLE), t->deadline, 0)) {
            choice = CHOOSE_CURRENT;
            t->ineligible = false;
            q->ineligible.state = LEFT_NONE;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    return choice;
}

/* Whether the current task can continue and is eligible. `v` is V. */
static __always_inline bool competes(const struct eevdf_queue *q, bool prev_runs, u64 v)
{
    return prev_runs && time_diff(q->curr_vruntime, v) <= 0;
}

/* The same after a delayed entity was picked: it is dequeued, and the choice is made again until a task is picked. */
static __noinline enum choice choose_again(u32 at, u32 pair, bool prev_runs)
{
    struct eevdf_queue *q = queue_of(at);
    u32 i;
    u64 v;

    for_range (i, DELAYED_MAX) {
        finish_delayed_dequeue(at, DELAYED_BEFORE(pair));
        v = average(q);
        pair = choose_at_once(at, v, competes(q, prev_runs, v));
        if (DELAYED_BEFORE(pair) >= DELAYED_MAX)
            break;
    }
    return CHOSEN(pair);
}

/*
 * The tasks that wait in a queue. In one with groups (`grouped`): with the delayed entities and the groups in it, which is
 * no less.
 */
static __always_inline u32 nr_waiting(const struct eevdf_queue *q, bool grouped)
{
    return grouped ? q->nr : q->nr - q->delayed_tasks;
}

/* pick_eevdf without buddy and protection. `grouped`: groups may be queued. */
static __always_inline enum choice choose_by_deadline(struct eevdf_queue *q, u32 at, bool prev_runs, bool grouped)
{
    bool is_single = nr_waiting(q, grouped) == 1 && !(grouped && (q->delayed || q->children)), curr_competes;
    u32 pair;
    u64 v;

    if (is_single && !prev_runs && !q->delayed)
        return CHOOSE_FIRST;
    v = average_here(q);
    curr_competes = competes(q, prev_runs, v);
    if (is_single && (!q->delayed || time_diff(q->delayed_vruntime, v) > 0)) {
        /* Only this task and the current one can be eligible: if the current one has run ahead of V, it has not. */
        if (!curr_competes)
            return CHOOSE_FIRST;
        if (q->ineligible.state == LEFT_KNOWN) {
            if (time_diff(q->ineligible.vtime, v) > 0)
                return CHOOSE_CURRENT;
            pair = choose_of_two(at, v);
            if (pair != CHOOSE_NONE)
                return pair;
        }
    }
    pair = choose_at_once(at, v, curr_competes);
    return likely(DELAYED_BEFORE(pair) >= DELAYED_MAX) ? CHOSEN(pair) : choose_again(at, pair, prev_runs);
}

/* Whether the buddy, if there is one, is picked before all others. */
static __always_inline bool buddy_first(const struct eevdf_queue *q)
{
    u64 vruntime = q->next_vruntime;

    if (unlikely(q->next_pid & GROUP_ENTITY))
        vruntime = q->next_pid == q->curr_pid ? q->curr_vruntime
                                              : entity_at(queue_at(q->next_pid & (GROUPS_MAX - 1), q->cpu))->vruntime;
    return q->next_pid && eligible(q, vruntime);
}

/* pick_next_entity. `prev_runs`: the current task can continue. */
static __always_inline enum choice choose(struct eevdf_queue *q, u32 at, bool prev_runs, bool grouped)
{
    if (!q->nr)
        return prev_runs ? CHOOSE_CURRENT : CHOOSE_NONE;
    if (unlikely(q->next_pid) && (PICK_BUDDY || (rule_next_buddy_picks && NEXT_BUDDY)) && buddy_first(q))
        return CHOOSE_BUDDY;
    if (prev_runs && is_protected(q) && eligible(q, q->curr_vruntime))
        return CHOOSE_CURRENT;
    return choose_by_deadline(q, at, prev_runs, grouped);
}

/* Moves the waiting task of that pid to this CPU's local queue. False: it is not there. */
SEPARATE bool move_pid_to_local(u32 at, u32 pid)
{
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    bool moved = false;
    u32 index, i;

    for_range (index, 2) {
        if (!bpf_iter_scx_dsq_new(&it, dsq_at(at, index & 1), 0)) {
            for_range (i, BUDDY_SCAN_MAX) {
                p = bpf_iter_scx_dsq_next(&it);
                if (!p)
                    break;
                if ((u32)p->pid == pid) {
                    moved = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
                    break;
                }
            }
        }
        bpf_iter_scx_dsq_destroy(&it);
        if (moved) {
            if (index)
                forget_leftmost(&queue_of(at)->ineligible);
            break;
        }
    }
    return moved;
}

/* Whether a task that waits in this queue is better than the task `pid`: eligible, with no later deadline. */
SEPARATE bool waiting_beats(u32 at, u32 index, u32 pid, u64 deadline, u64 v)
{
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    struct eevdf_task *t;
    bool beaten = false;
    u32 i;

    if (!bpf_iter_scx_dsq_new(&it, dsq_at(at, index), 0)) {
        for_range (i, MOVES_MAX) {
            p = bpf_iter_scx_dsq_next(&it);
            if (!p)
                break;
            if (time_diff(p->scx.dsq_vtime, index == INELIGIBLE ? v : deadline) > 0)
                break;
            t = task_of(p);
            if (!t || (u32)p->pid == pid)
                continue;
            beaten = index == INELIGIBLE ? time_diff(t->deadline, deadline) <= 0 : time_diff(t->vruntime, v) <= 0;
            if (beaten)
                break;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    return beaten;
}

/*
 * Whether a waiting task would be chosen now, without protection, and not the current one. The current one wins a
 * tie.
 */
SEPARATE bool is_beaten(struct eevdf_queue *q, u32 at)
{
    u64 v, before;

    if (!q)
        return false;
    v = average(q);
    before = eligible(q, q->curr_vruntime) ? q->curr_deadline - 1 : q->curr_deadline + FAR_DEADLINE;
    return waiting_beats(at, ELIGIBLE, q->curr_pid, before, v) ||
           waiting_beats(at, INELIGIBLE, q->curr_pid, before, v);
}

/* pick_next_entity when the task of `t` was queued: the delayed entities that are picked before any task are dequeued. */
SEPARATE void finish_delayed_at_wakeup(struct eevdf_queue *q, u32 at, const struct eevdf_task *t,
                                       bool heed_protection)
{
    u64 deadline, v;
    u32 number, i;

    if (!q || !t || !q->delayed || (PICK_BUDDY && buddy_first(q)))
        return;
    for_range (i, DELAYED_MAX) {
        bool competes = eligible(q, q->curr_vruntime);

        if (competes && heed_protection && is_protected(q))
            break;
        v = average(q);
        number = delayed_before(q, at, v, competes, q->curr_deadline + 1);
        if (number >= DELAYED_MAX)
            break;
        deadline = delayed_entity_of(at, number)->deadline;
        if ((eligible(q, t->vruntime) && time_diff(t->deadline, deadline) <= 0) ||
            waiting_beats(at, ELIGIBLE, 0, deadline, v) || waiting_beats(at, INELIGIBLE, 0, deadline, v))
            break;
        finish_delayed_dequeue(at, number);
    }
}

/*
 * Whether this waiting task would be chosen now. Decides from the keys alone: outside of dispatch tasks cannot be
 * moved.
 */
SEPARATE bool would_choose(struct eevdf_queue *q, u32 at, u32 pid, const struct eevdf_task *t, bool heed_protection)
{
    u64 v;

    if (!q || !t)
        return false;
    if (PICK_BUDDY && buddy_first(q))
        return q->next_pid == pid;
    if (!eligible(q, t->vruntime))
        return false;
    if (eligible(q, q->curr_vruntime) &&
        ((heed_protection && is_protected(q)) || time_diff(q->curr_deadline, t->deadline) < 0))
        return false;
    v = average(q);
    /* It is the only one that waits. */
    if (q->nr == 1)
        return true;
    if (unlikely(q->children) &&
        first_group(at, v, true, t->deadline, pid & GROUP_ENTITY ? pid & (GROUPS_MAX - 1) : 0))
        return false;
    if (delayed_before(q, at, v, true, t->deadline) < DELAYED_MAX)
        return false;
    return !waiting_beats(at, ELIGIBLE, pid, t->deadline, v) && !waiting_beats(at, INELIGIBLE, pid, t->deadline, v);
}

#endif
