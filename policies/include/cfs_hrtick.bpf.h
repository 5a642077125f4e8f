/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * HRTICK in `cfs`: a timer per CPU that ends the current slice when it is used up, instead of the following tick
 * (hrtick_start_fair, hrtick_update, hrtick).
 *
 * The kernel stops the timer at each switch. Here it continues and finds that it is out of date: hrtick_ns is the
 * time that counts. A wake-up from another CPU asks that CPU to arm its timer.
 */
#ifndef FAIRGROUND_CFS_HRTICK_BPF_H
#define FAIRGROUND_CFS_HRTICK_BPF_H

#include "cfs_place.bpf.h"

/* The timer is not armed for less (hrtick_start_fair). */
#define HRTICK_MIN_NS       10000
#define CLOCK_MONOTONIC     1
#define BPF_F_TIMER_CPU_PIN 2

struct hrtick_timer {
    struct bpf_timer timer;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, MAX_CPUS);
    __type(key, u32);
    __type(value, struct hrtick_timer);
} hrtick_timers SEC(".maps");

static int hrtick_fires(void *map, u32 *key, struct hrtick_timer *timer)
{
    u32 cpu = *key & (MAX_CPUS - 1);
    struct cfs_queue *q = queue_of(cpu);

    if (q->hrtick_ns && time_diff(bpf_ktime_get_ns(), q->hrtick_ns) >= 0) {
        q->hrtick_ns = 0;
        end_turn(cpu);
    }
    return 0;
}

static __always_inline void hrtick_arm(u32 cpu, u64 delay_ns)
{
    struct hrtick_timer *timer = bpf_map_lookup_elem(&hrtick_timers, &cpu);

    if (!timer)
        return;
    queue_of(cpu)->hrtick_ns = bpf_ktime_get_ns() + delay_ns;
    bpf_timer_start(&timer->timer, delay_ns, BPF_F_TIMER_CPU_PIN);
}

/* The current task was just picked. */
SEPARATE void hrtick_start(struct cfs_queue *q, u32 cpu)
{
    u64 slice_ns;

    if (!q)
        return;
    if (nr_queued(q) < 2) {
        queue_of(cpu)->hrtick_ns = 0;
        return;
    }
    slice_ns = curr_slice(q);
    hrtick_arm(cpu, slice_ns < HRTICK_MIN_NS ? HRTICK_MIN_NS : slice_ns);
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
        end_turn(cpu);
    else
        hrtick_arm(cpu, slice_ns - ran_ns);
}

/* The tick does not check the slice while the timer does. */
static __always_inline bool hrtick_is_armed(u32 cpu)
{
    return HRTICK && !DOUBLE_TICK && queue_of(cpu)->hrtick_ns;
}

SEPARATE s32 hrtick_init(void)
{
    u32 cpu;
    s32 err = 0;

    for_range (cpu, nr_cpus) {
        u32 key = cpu;
        struct hrtick_timer *timer = bpf_map_lookup_elem(&hrtick_timers, &key);

        if (!timer)
            break;
        err = (s32)bpf_timer_init(&timer->timer, &hrtick_timers, CLOCK_MONOTONIC);
        if (err)
            break;
        bpf_timer_set_callback(&timer->timer, hrtick_fires);
    }
    return err;
}

#endif
