/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * HRTICK in `cfs` (hrtick_start_fair, hrtick_update).
 *
 * The kernel stops the timer at each switch. Here it continues and finds that it is out of date: hrtick_ns is the
 * time that counts. A wake-up from another CPU asks that CPU to arm its timer.
 */
#ifndef FAIRGROUND_CFS_HRTICK_BPF_H
#define FAIRGROUND_CFS_HRTICK_BPF_H

#include "cfs_place.bpf.h"

#define HRTICK_NS(cpu) (queue_of(cpu)->hrtick_ns)
#include "hrtick.bpf.h"

static __always_inline void hrtick_expires(u32 cpu)
{
    resched_curr(cpu);
}

/* Arms the timer for a whole slice of the current task. */
SEPARATE void hrtick_arm_slice(struct cfs_queue *q, u32 cpu)
{
    u64 slice_ns;

    if (!q)
        return;
    slice_ns = curr_slice(q);
    hrtick_arm(cpu, bpf_ktime_get_ns(), slice_ns < HRTICK_MIN_NS ? HRTICK_MIN_NS : slice_ns);
}

/* The current task was just picked. `root`: the CPU's. */
static __always_inline void hrtick_start(struct cfs_queue *root, struct cfs_queue *q, u32 cpu)
{
    if (nr_queued(q) < 2)
        root->hrtick_ns = 0;
    else
        hrtick_arm_slice(q, cpu);
}

/* The number of tasks has changed, and so has the current one's slice. Its run time must be up to date. */
SEPARATE void hrtick_update(u32 cpu)
{
    struct cfs_queue *q = current_queue(cpu);
    u64 slice_ns, ran_ns;

    if (!q->curr_pid || nr_queued(q) < 2 || (rule_hrtick_few && !fits_latency(nr_queued(q) + 1)))
        return;
    slice_ns = curr_slice(q);
    ran_ns = curr_ran(q);
    if (slice_ns < ran_ns)
        resched_curr(cpu);
    else
        hrtick_arm(cpu, bpf_ktime_get_ns(), slice_ns - ran_ns);
}

/* The tick does not check the slice while the timer does. */
static __always_inline bool hrtick_is_armed(u32 cpu)
{
    return HRTICK && !DOUBLE_TICK && queue_of(cpu)->hrtick_ns;
}

#endif
