/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The choice among a queue's entities when there are buddies or groups (pick_next_entity). Otherwise the leftmost
 * task is taken without a search.
 */
#ifndef FAIRGROUND_CFS_PICK_BPF_H
#define FAIRGROUND_CFS_PICK_BPF_H

#include "cfs_place.bpf.h"

/* A buddy behind more waiting tasks than this is not found; its vruntime would be too far right anyway. */
#define BUDDY_SCAN_MAX 64

/* One entity that could be picked. */
struct candidate {
    u32 pid; /* 0: none */
    u32 weight;
    u32 inverse;
    u64 vruntime;
};

/*
 * The state of a search in a queue. In a map, not on the stack: the verifier tracks values on the stack through every
 * path of a loop.
 */
struct buddies {
    struct candidate one; /* the candidate under examination */
    struct candidate left, second, next, last;
    u32 left_is_first; /* the leftmost is the first task of its dispatch queue */
};

struct buddies cpu_buddies[MAX_CPUS];

/* SCHED_IDLE is below nice 19. 2^32 / weight, as the kernel's tables have it. */
static __always_inline void set_task_weight(const struct task_struct *p, u32 *weight, u32 *inverse)
{
    u32 index = nice_index(p->static_prio);

    *weight = nice_weight[index];
    *inverse = nice_inverse[index];
    if (unlikely(p->policy == SCHED_IDLE)) {
        *weight = rule_idle_weight;
        *inverse = (u32)((1ULL << 32) / (rule_idle_weight > 1 ? rule_idle_weight : 2));
    }
}

/* wakeup_preempt_entity(c, left) < 1: c is not so far right of `left` that picking it would be unfair. */
static __always_inline bool near_enough(const struct cfs_queue *q, const struct candidate *c,
                                        const struct candidate *left)
{
    s64 distance = time_diff(c->vruntime, left->vruntime);

    if (distance <= 0)
        return true;
    return (u64)distance <= wakeup_granularity(q, c->weight, c->inverse, left->weight, left->inverse);
}

/* The next buddy, of that weight, shares the slice that began when a task was picked in order. */
static __always_inline bool pair_goes_on(struct cfs_queue *q, u32 weight)
{
    u64 now_ns = scx_bpf_now();

    if (now_ns - q->pair_start_ns <= sched_slice(q, nr_queued(q), READ_ONCE(q->load), weight, false))
        return true;
    q->pair_start_ns = now_ns;
    return false;
}

/* Whether the next buddy is taken. 2.6.27: for a slice of its own since a task was picked in order. */
static __always_inline bool next_may_run(struct cfs_queue *q, const struct candidate *next,
                                         const struct candidate *left)
{
    if (rule_next_buddy == NEXT_NEAR)
        return near_enough(q, next, left);
    return pair_goes_on(q, next->weight);
}

/*
 * Updates the search with b->one: as leftmost, second from the left, or buddy. Of equal vruntimes the first is
 * further left.
 */
static __always_inline void consider(struct buddies *b, const struct cfs_queue *q, bool is_first_task)
{
    if (!b->left.pid || time_diff(b->one.vruntime, b->left.vruntime) < 0) {
        b->second = b->left;
        b->left = b->one;
        b->left_is_first = is_first_task;
    } else if (!b->second.pid || time_diff(b->one.vruntime, b->second.vruntime) < 0) {
        b->second = b->one;
    }
    if (b->one.pid == q->next_pid)
        b->next = b->one;
    if (b->one.pid == q->last_pid)
        b->last = b->one;
}

static __always_inline void consider_tasks(struct buddies *b, const struct cfs_queue *q, u32 scan)
{
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    u32 i;

    if (!bpf_iter_scx_dsq_new(&it, dsq_of(q), 0)) {
        for_range (i, scan) {
            p = bpf_iter_scx_dsq_next(&it);
            if (!p)
                break;
            b->one.pid = (u32)p->pid;
            set_task_weight(p, &b->one.weight, &b->one.inverse);
            b->one.vruntime = p->scx.dsq_vtime;
            consider(b, q, i == 0);
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
}

static __always_inline void consider_groups(struct buddies *b, const struct cfs_queue *q, u32 empty_in_pass)
{
    u64 bits = q->children;
    u32 i;

    for_range (i, GROUP_CHILDREN_MAX) {
        struct group_entity *e;
        u32 group;

        if (!bits)
            break;
        group = child_of(q->group, (u32)__builtin_ctzll(bits));
        bits &= bits - 1;
        e = entity_of(group, q->cpu);
        if (q->curr_pid == (GROUP_ENTITY | group) || (empty_in_pass && e->empty_in_pass == empty_in_pass))
            continue;
        b->one.pid = GROUP_ENTITY | group;
        b->one.weight = e->weight;
        b->one.inverse = e->inverse;
        b->one.vruntime = e->vruntime;
        consider(b, q, false);
    }
}

/*
 * The entity of `q` to run next: the current one (if it can continue) or a waiting one; 0 if there is none. With
 * equal vruntimes the waiting one runs, since re-insertion puts the current one behind it. Groups that the search
 * `empty_in_pass` has found empty are skipped.
 */
SEPARATE u32 pick_entity(struct cfs_queue *q, bool curr_runs, u32 empty_in_pass)
{
    bool buddies, next = false, last = false;
    struct buddies *b;
    u32 picked;

    if (!q)
        return 0;
    b = &cpu_buddies[q->cpu & (MAX_CPUS - 1)];
    buddies = q->has_buddies;
    b->left.pid = b->second.pid = b->next.pid = b->last.pid = 0;
    b->left_is_first = false;
    consider_tasks(b, q, buddies ? BUDDY_SCAN_MAX : 1);
    if (unlikely(q->children))
        consider_groups(b, q, empty_in_pass);
    if (curr_runs) {
        b->one.pid = q->curr_pid;
        b->one.weight = q->curr_load.weight;
        b->one.inverse = q->curr_load.inverse;
        b->one.vruntime = q->curr_vruntime;
        consider(b, q, false);
    }
    picked = b->left.pid;
    if (!picked || !buddies)
        return picked;
    if (b->second.pid && q->skip_pid == picked && near_enough(q, &b->second, &b->left))
        picked = b->second.pid;
    if (b->next.pid)
        next = next_may_run(q, &b->next, &b->left);
    if (b->last.pid && (!next || rule_last_beats_next))
        last = near_enough(q, &b->last, &b->left);
    if (last)
        picked = b->last.pid;
    else if (next)
        picked = b->next.pid;
    return picked;
}

/* The first waiting task of a queue without groups, as a candidate; its pid is 0 if none waits. */
static __always_inline void read_first(const struct cfs_queue *q, struct candidate *first)
{
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;

    first->pid = 0;
    if (!bpf_iter_scx_dsq_new(&it, q->cpu, 0)) {
        p = bpf_iter_scx_dsq_next(&it);
        if (p) {
            first->pid = (u32)p->pid;
            set_task_weight(p, &first->weight, &first->inverse);
            first->vruntime = p->scx.dsq_vtime;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
}

/* After a yield: the first waiting task is not so far right that the current one must run on. */
SEPARATE bool first_is_near(struct cfs_queue *q)
{
    struct candidate first;

    if (!q)
        return false;
    read_first(q, &first);
    return first.pid &&
           time_diff(first.vruntime, q->curr_vruntime) <=
               (s64)wakeup_gran(q, first.weight, first.inverse, q->curr_load.weight, q->curr_load.inverse);
}

/* A single task waits and is taken: if it is the next buddy, the slice of its pair may end. */
SEPARATE void note_single(struct cfs_queue *q)
{
    struct candidate first;

    if (!q)
        return;
    read_first(q, &first);
    if (first.pid && first.pid == q->next_pid)
        pair_goes_on(q, first.weight);
}

/* Moves the waiting task of that pid to this CPU's local queue. False: it is no longer there. */
SEPARATE bool move_pid_to_local(u64 dsq_id, u32 pid)
{
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    bool moved = false;
    u32 i;

    if (!bpf_iter_scx_dsq_new(&it, dsq_id, 0)) {
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
    return moved;
}

/* __clear_buddies: the entity was picked, left, or used up its slice. */
static __always_inline void clear_buddies(struct cfs_queue *q, u32 pid)
{
    if (!q->has_buddies)
        return;
    if (q->next_pid == pid)
        q->next_pid = 0;
    if (q->last_pid == pid)
        q->last_pid = 0;
    if (q->skip_pid == pid)
        q->skip_pid = 0;
    q->has_buddies = q->next_pid | q->last_pid | q->skip_pid;
}

#endif
