/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The choice of the next task in `eevdf`: of the eligible one with the earliest deadline, in logarithmic time.
 *
 * Each CPU has two dispatch queues: ELIGIBLE, ordered by deadline, and LATE, ordered by vruntime. Before each choice what V
 * has passed moves from the head of LATE to ELIGIBLE, so LATE holds nobody who is eligible. ELIGIBLE may hold some who no
 * longer are, as V steps back when a task with positive lag joins; those at its head move to LATE. So each task moves about
 * once a turn, and the head of ELIGIBLE is the one to pick. Moves are possible in dispatch only.
 */
#ifndef FAIRGROUND_EEVDF_PICK_BPF_H
#define FAIRGROUND_EEVDF_PICK_BPF_H

#include "eevdf_ghosts.bpf.h"

enum queue_index { ELIGIBLE, LATE };

/* One choice moves at most so many tasks each way; who is left over can be chosen the next time. */
#define MOVES_MAX 1024
/* A buddy behind more tasks than this is not found, and then not favoured. */
#define BUDDY_SCAN_MAX 64

/* So much later than another one no deadline is. */
#define FAR_DEADLINE (1ULL << 62)

enum choice { CHOOSE_NOBODY, CHOOSE_CURRENT, CHOOSE_FIRST, CHOOSE_BUDDY };

/* Puts a task into the queue where it belongs as far as is known: `zero` is what V was at the last look. */
static __always_inline void insert_waiting(struct eevdf_queue *q, u32 cpu, struct task_struct *p,
                                           struct eevdf_task *t, u64 enq_flags)
{
    t->late = time_diff(t->vruntime, q->zero) > 0;
    if (t->late) {
        note_inserted(&q->late, t->vruntime);
        scx_bpf_dsq_insert_vtime(p, queue_id(cpu, LATE), SCX_SLICE_INF, t->vruntime, enq_flags);
    } else {
        scx_bpf_dsq_insert_vtime(p, queue_id(cpu, ELIGIBLE), SCX_SLICE_INF, t->deadline, enq_flags);
    }
    mark_waiting(cpu);
}

/* Moves whom V has passed to the eligible. */
SEPARATE void promote(u32 cpu, u64 v)
{
    struct eevdf_queue *q = queue_of(cpu);
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    struct eevdf_task *t;
    u32 i;

    q->late.state = LEFT_UNKNOWN;
    if (!bpf_iter_scx_dsq_new(&it, queue_id(cpu, LATE), 0)) {
        for_range (i, MOVES_MAX) {
            p = bpf_iter_scx_dsq_next(&it);
            if (!p) {
                q->late.state = LEFT_NONE;
                break;
            }
            if (time_diff(p->scx.dsq_vtime, v) > 0) {
                q->late.vtime = p->scx.dsq_vtime;
                q->late.state = LEFT_KNOWN;
                break;
            }
            t = task_of(p);
            if (t && scx_bpf_dsq_move_vtime(&it, p, queue_id(cpu, ELIGIBLE), t->deadline, 0))
                t->late = false;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
}

/* Whether a task that waits at the head of ELIGIBLE belongs there. If not, it goes to LATE. */
static __always_inline bool is_eligible_head(struct eevdf_queue *q, struct bpf_iter_scx_dsq *it, u32 cpu,
                                             struct task_struct *p, u64 v)
{
    struct eevdf_task *t = task_of(p);

    if (!t || time_diff(t->vruntime, v) <= 0)
        return true;
    if (scx_bpf_dsq_move_vtime(it, p, queue_id(cpu, LATE), t->vruntime, 0)) {
        t->late = true;
        note_inserted(&q->late, t->vruntime);
    }
    return false;
}

/* Makes the head of ELIGIBLE eligible. Its deadline into *deadline; false: there is none. */
SEPARATE bool first_waiting(u32 cpu, u64 v, u64 *deadline)
{
    struct eevdf_queue *q = queue_of(cpu);
    struct bpf_iter_scx_dsq it;
    struct task_struct *p = NULL;
    bool found = false;
    u32 i;

    if (!deadline)
        return false;
    if (!bpf_iter_scx_dsq_new(&it, queue_id(cpu, ELIGIBLE), 0)) {
        p = bpf_iter_scx_dsq_next(&it);
        found = p && is_eligible_head(q, &it, cpu, p, v);
        if (found)
            *deadline = p->scx.dsq_vtime;
        if (p && !found) {
            for_range (i, MOVES_MAX) {
                p = bpf_iter_scx_dsq_next(&it);
                if (!p)
                    break;
                found = is_eligible_head(q, &it, cpu, p, v);
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

/* A choice, and the ghost that is picked before it: GHOSTS_MAX, none. */
#define CHOICE(choice, ghost) ((u32)(choice) << 8 | (ghost))
#define CHOSEN(pair)          ((enum choice)((pair) >> 8))
#define GHOST_BEFORE(pair)    ((pair) & 0xff)

/* pick_eevdf, once buddy and protection have had their say, with V as it stands. */
SEPARATE u32 choose_at_once(u32 cpu, bool prev_runs)
{
    struct eevdf_queue *q = queue_of(cpu);
    u64 v = average(q), deadline = 0;
    bool curr_competes = prev_runs && time_diff(q->curr_vruntime, v) <= 0;
    enum choice choice;

    /* Of one there is no choice: if the current task has run ahead of V, the other one has not. */
    if (q->nr == 1 && !q->ghosts && !curr_competes)
        return CHOICE(CHOOSE_FIRST, GHOSTS_MAX);
    if (q->late.state == LEFT_UNKNOWN || (q->late.state == LEFT_KNOWN && time_diff(q->late.vtime, v) <= 0))
        promote(cpu, v);
    choice = first_waiting(cpu, v, &deadline) ? CHOOSE_FIRST : CHOOSE_NOBODY;
    if (curr_competes && (!choice || time_diff(q->curr_deadline, deadline) < 0)) {
        choice = CHOOSE_CURRENT;
        deadline = q->curr_deadline;
    }
    return CHOICE(choice, ghost_before(q, cpu, v, choice, deadline));
}

/* The same until a task is picked: a ghost that is picked goes, and the choice is made anew. */
static __always_inline enum choice choose_by_deadline(u32 cpu, bool prev_runs)
{
    u32 pair = choose_at_once(cpu, prev_runs), i;

    if (likely(GHOST_BEFORE(pair) >= GHOSTS_MAX))
        return CHOSEN(pair);
    for_range (i, GHOSTS_MAX) {
        bury(cpu, GHOST_BEFORE(pair));
        pair = choose_at_once(cpu, prev_runs);
        if (GHOST_BEFORE(pair) >= GHOSTS_MAX)
            break;
    }
    return CHOSEN(pair);
}

/* Whether the buddy, if there is one, is picked before all others. */
static __always_inline bool buddy_first(const struct eevdf_queue *q)
{
    return q->next_pid && eligible(q, q->next_vruntime);
}

/* pick_next_entity. `prev_runs`: the current task can go on. */
static __always_inline enum choice choose(struct eevdf_queue *q, u32 cpu, bool prev_runs)
{
    if (!q->nr)
        return prev_runs ? CHOOSE_CURRENT : CHOOSE_NOBODY;
    if ((PICK_BUDDY || (rule_next_buddy_picks && NEXT_BUDDY)) && buddy_first(q))
        return CHOOSE_BUDDY;
    if (prev_runs && is_protected(q) && eligible(q, q->curr_vruntime))
        return CHOOSE_CURRENT;
    return choose_by_deadline(cpu, prev_runs);
}

/* Moves the waiting task of that pid to this CPU. False: it is not there. */
SEPARATE bool move_pid_to_local(u32 cpu, u32 pid)
{
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    bool moved = false;
    u32 index, i;

    for_range (index, 2) {
        if (!bpf_iter_scx_dsq_new(&it, queue_id(cpu, index & 1), 0)) {
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
                forget_leftmost(&queue_of(cpu)->late);
            break;
        }
    }
    return moved;
}

/* Whether somebody who waits in this queue beats the task `pid`: is eligible, and has no later deadline. */
SEPARATE bool somebody_beats(u32 cpu, enum queue_index index, u32 pid, u64 deadline, u64 v)
{
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    struct eevdf_task *t;
    bool beaten = false;
    u32 i;

    if (!bpf_iter_scx_dsq_new(&it, queue_id(cpu, index), 0)) {
        for_range (i, MOVES_MAX) {
            p = bpf_iter_scx_dsq_next(&it);
            if (!p)
                break;
            if (time_diff(p->scx.dsq_vtime, index == LATE ? v : deadline) > 0)
                break;
            t = task_of(p);
            if (!t || (u32)p->pid == pid)
                continue;
            beaten = index == LATE ? time_diff(t->deadline, deadline) <= 0 : time_diff(t->vruntime, v) <= 0;
            if (beaten)
                break;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    return beaten;
}

/* Whether the choice, made now and without protection, would be somebody who waits and not the current task. Of equals it is that one. */
SEPARATE bool is_beaten(struct eevdf_queue *q, u32 cpu)
{
    u64 v, before;

    if (!q)
        return false;
    v = average(q);
    before = eligible(q, q->curr_vruntime) ? q->curr_deadline - 1 : q->curr_deadline + FAR_DEADLINE;
    return somebody_beats(cpu, ELIGIBLE, q->curr_pid, before, v) || somebody_beats(cpu, LATE, q->curr_pid, before, v);
}

/* Whether the choice, made now, would be this waiting task. It decides from the keys alone: outside of dispatch nobody moves. */
SEPARATE bool would_choose(struct eevdf_queue *q, u32 cpu, u32 pid, const struct eevdf_task *t, bool heed_protection)
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
    if (ghost_before(q, cpu, v, true, t->deadline) < GHOSTS_MAX)
        return false;
    return !somebody_beats(cpu, ELIGIBLE, pid, t->deadline, v) && !somebody_beats(cpu, LATE, pid, t->deadline, v);
}

#endif
