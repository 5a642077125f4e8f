/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The smallest key among the tasks that wait in a CPU's queue, cached so that most reads cost no call into the
 * kernel.
 *
 * An insertion can only lower it. A removal makes it unknown, unless the CPU's count of tasks says that none is left;
 * the next read asks the queue. A CPU that pulls a task makes the other CPU's record unknown without its lock: at
 * worst that CPU works with the old key until its own next removal. A record of an empty queue may have crossed an
 * insertion by another CPU: find_leftmost_verified asks again where that decides whether a slice ends.
 *
 * Example: keys 5 and 8 wait: LEFT_KNOWN 5. An insertion of 3 makes it 3. When 3 is taken it is LEFT_UNKNOWN until
 * the next read, 5.
 */
#ifndef FAIRGROUND_LEFTMOST_BPF_H
#define FAIRGROUND_LEFTMOST_BPF_H

#include "weights.bpf.h"
#include "cpus.bpf.h"

enum left_state { LEFT_UNKNOWN, LEFT_NONE, LEFT_KNOWN };

struct leftmost {
    u64 vtime;
    enum left_state state;
};

/* First (or, with SCX_DSQ_ITER_REV, last) waiting task's key in a dispatch queue. False: none waits. */
static __always_inline bool peek_queue(u64 dsq_id, u64 flags, u64 *vtime)
{
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    bool found = false;

    if (!bpf_iter_scx_dsq_new(&it, dsq_id, flags)) {
        p = bpf_iter_scx_dsq_next(&it);
        if (p) {
            *vtime = p->scx.dsq_vtime;
            found = true;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    return found;
}

/* The same for the queue of a CPU. */
static __always_inline bool peek_vtime(u32 cpu, u64 flags, u64 *vtime)
{
    return peek_queue(cpu & (MAX_CPUS - 1), flags, vtime);
}

/* Reads the first key of a CPU's queue into the record. */
SEPARATE void ask_for_leftmost(struct leftmost *left, u32 cpu)
{
    u64 vtime = 0;

    if (!left)
        return;
    if (peek_vtime(cpu, 0, &vtime)) {
        left->vtime = vtime;
        left->state = LEFT_KNOWN;
    } else {
        left->state = LEFT_NONE;
    }
}

/* Updates the record. True: a task waits, and left->vtime is the smallest key. */
static __always_inline bool find_leftmost(struct leftmost *left, u32 cpu)
{
    if (left->state == LEFT_UNKNOWN)
        ask_for_leftmost(left, cpu);
    return left->state == LEFT_KNOWN;
}

/* The same, except that "empty" is always confirmed by the queue. */
static __always_inline bool find_leftmost_verified(struct leftmost *left, u32 cpu)
{
    if (left->state != LEFT_KNOWN)
        ask_for_leftmost(left, cpu);
    return left->state == LEFT_KNOWN;
}

static __always_inline void note_inserted(struct leftmost *left, u64 vtime)
{
    if (left->state == LEFT_KNOWN) {
        left->vtime = min_time(left->vtime, vtime);
    } else if (left->state == LEFT_NONE) {
        left->vtime = vtime;
        left->state = LEFT_KNOWN;
    }
}

static __always_inline void forget_leftmost(struct leftmost *left)
{
    WRITE_ONCE(left->state, LEFT_UNKNOWN);
}

/*
 * This CPU took the first task of its queue. `not_waiting` of its runnable tasks, that one included, are not in the
 * queue.
 */
static __always_inline void took_leftmost(struct leftmost *left, u32 cpu, u32 not_waiting)
{
    bool others = nr_running(cpu) > not_waiting;

    WRITE_ONCE(left->state, others ? LEFT_UNKNOWN : LEFT_NONE);
}

#endif
