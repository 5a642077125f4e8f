/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The choice of the next task in `cfs` when buddies have a say (pick_next_entity). Without buddies the leftmost task is taken.
 */
#ifndef FAIRGROUND_CFS_PICK_BPF_H
#define FAIRGROUND_CFS_PICK_BPF_H

#include "cfs_queue.bpf.h"

/* A buddy further from the left than this many waiting tasks is not found: its vruntime is too far right long before. */
#define BUDDY_SCAN_MAX 64

/* One task that could be picked. */
struct candidate {
    u32 pid; /* 0: none */
    u32 weight;
    u32 inverse;
    u64 vruntime;
};

static __always_inline void candidate_of(struct candidate *c, const struct task_struct *p)
{
    u32 index = nice_index(p->static_prio);

    c->pid = (u32)p->pid;
    c->weight = nice_weight[index];
    c->inverse = nice_inverse[index];
    c->vruntime = p->scx.dsq_vtime;
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

/* What a walk from the left has found. In a map, not on the stack, for the verifier's sake: see struct pull_list. */
struct buddies {
    struct candidate prev; /* the current task, while it can go on and has not been considered */
    struct candidate left, second, next, last;
};

struct buddies cpu_buddies[MAX_CPUS];

static __always_inline void consider(struct buddies *b, const struct cfs_queue *q, const struct candidate *c)
{
    if (!b->left.pid)
        b->left = *c;
    else if (!b->second.pid)
        b->second = *c;
    if (c->pid == q->next_pid)
        b->next = *c;
    if (c->pid == q->last_pid)
        b->last = *c;
}

/* Considers a waiting task, after the current one if that is further left. */
static __always_inline void consider_waiting(struct buddies *b, const struct cfs_queue *q,
                                             const struct task_struct *p)
{
    struct candidate c;

    candidate_of(&c, p);
    if (b->prev.pid && time_diff(b->prev.vruntime, c.vruntime) < 0) {
        consider(b, q, &b->prev);
        b->prev.pid = 0;
    }
    consider(b, q, &c);
}

/*
 * The pid to run next: of the current task (if it wants to go on) or of a waiting one; 0 if there is none. An equal vruntime
 * is decided for the waiting task, as re-insertion puts the current one behind it.
 */
static __noinline u32 pick_with_buddies(u32 cpu, bool prev_runs)
{
    struct cfs_queue *q = queue_of(cpu);
    struct buddies *b = &cpu_buddies[cpu & (MAX_CPUS - 1)];
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    u32 picked, i;

    b->left.pid = b->second.pid = b->next.pid = b->last.pid = 0;
    b->prev.pid = prev_runs ? q->curr_pid : 0;
    b->prev.weight = q->curr_weight;
    b->prev.inverse = q->curr_inverse;
    b->prev.vruntime = q->curr_vruntime;
    if (!bpf_iter_scx_dsq_new(&it, cpu & (MAX_CPUS - 1), 0)) {
        for_range (i, BUDDY_SCAN_MAX) {
            p = bpf_iter_scx_dsq_next(&it);
            if (!p)
                break;
            consider_waiting(b, q, p);
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    if (b->prev.pid)
        consider(b, q, &b->prev);

    picked = b->left.pid;
    if (b->second.pid && q->skip_pid == picked && near_enough(q, &b->second, &b->left))
        picked = b->second.pid;
    if (b->next.pid && near_enough(q, &b->next, &b->left))
        picked = b->next.pid;
    else if (b->last.pid && near_enough(q, &b->last, &b->left))
        picked = b->last.pid;
    return picked;
}

/* Moves the waiting task of that pid to this CPU. False: it is no longer there. */
static __noinline bool move_pid_to_local(u32 cpu, u32 pid)
{
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    bool moved = false;
    u32 i;

    if (!bpf_iter_scx_dsq_new(&it, cpu & (MAX_CPUS - 1), 0)) {
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

/* __clear_buddies: the task was picked, left, or used up its slice. */
static __always_inline void clear_buddies(struct cfs_queue *q, u32 pid)
{
    if (q->next_pid == pid)
        q->next_pid = 0;
    if (q->last_pid == pid)
        q->last_pid = 0;
    if (q->skip_pid == pid)
        q->skip_pid = 0;
}

#endif
