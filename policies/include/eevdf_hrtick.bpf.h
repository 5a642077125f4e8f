/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * HRTICK in `eevdf`, on since 7.2: a timer ends the current request at its deadline (hrtick_start_fair, hrtick_update,
 * hrtick_fair). It is armed when a task is picked beside others, and when a task joins while it is not armed. Where the
 * current task is picked again, nothing arms it; ticks check the request as well. A timer that is armed when a task is
 * picked alone stays; it is void when the CPU becomes idle.
 *
 * The kernel lengthens the time by the share of the CPU that interrupts use; here that share is 0.
 */
#ifndef FAIRGROUND_EEVDF_HRTICK_BPF_H
#define FAIRGROUND_EEVDF_HRTICK_BPF_H

#include "eevdf_curr.bpf.h"

#define HRTICK_NS(cpu) (queue_of(cpu)->hrtick_ns)
#include "hrtick.bpf.h"

/* A timer whose time would change by no more than this stays as it is (hrtick_needs_rearm). */
#define HRTICK_CLOSE_NS 5000

/* entity_tick with `queued`. The next pass charges the current task up to now first. */
static __always_inline void hrtick_expires(u32 cpu)
{
    struct eevdf_queue *q = queue_of(cpu);

    q->hrtick_fired_ns = scx_bpf_now();
    q->resched_now = true;
    preempt_curr(cpu);
}

/* hrtick_start_fair, beside other tasks. The current task's run time must be up to date. */
SEPARATE void hrtick_start(struct eevdf_queue *q, u32 cpu)
{
    u64 now_ns, delay_ns;
    s64 left;

    if (!q)
        return;
    left = time_diff(q->curr_deadline, q->curr_vruntime);
    if (left < 0) {
        preempt_curr(cpu);
        return;
    }
    delay_ns = (u64)left * q->curr_weight / NICE_0_WEIGHT;
    if (delay_ns < HRTICK_MIN_NS)
        delay_ns = HRTICK_MIN_NS;
    now_ns = bpf_ktime_get_ns();
    if (HRTICK_NS(cpu) && now_ns + delay_ns - HRTICK_NS(cpu) + HRTICK_CLOSE_NS <= 2 * HRTICK_CLOSE_NS)
        return;
    hrtick_arm(cpu, now_ns, delay_ns);
}

/* hrtick_update, when a task has joined. */
static __always_inline void hrtick_update(u32 cpu)
{
    struct eevdf_queue *root = queue_of(cpu);

    if (HRTICK && root->running_pid && !root->hrtick_ns)
        hrtick_start(queue_of(queue_at(root->leaf, cpu)), cpu);
}

/* Whether other tasks than the current one are queued on the CPU, in any queue (cfs.h_nr_queued > 1). */
static __always_inline bool has_others(const struct eevdf_queue *q, u32 cpu)
{
    const struct eevdf_queue *root = queue_of(cpu);

    return q->nr || (unlikely(root->children) && (nr_running(cpu) > 1 || root->delayed_tasks));
}

/* set_protect_slice and hrtick_start_fair, when a task was picked. */
static __always_inline void start_slice(struct eevdf_queue *q, u32 cpu)
{
    protect(q);
    if (HRTICK && has_others(q, cpu))
        hrtick_start(q, cpu);
}

#endif
