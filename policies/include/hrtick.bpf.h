/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * HRTICK: a timer per CPU that ends a slice when it is used up, instead of the following tick (hrtick_start, hrtick).
 *
 * A scheduler defines before it includes this file: HRTICK_NS(cpu), a u64 of that CPU, which holds the time at which
 * the timer expires (bpf_ktime_get_ns, ns; 0: the timer is not armed), and hrtick_expires(cpu). A timer is never
 * stopped: one that expires finds whether its CPU still wants it. When a slice starts on another CPU, the timer runs on
 * the calling CPU and asks that CPU to schedule.
 */
#ifndef FAIRGROUND_HRTICK_BPF_H
#define FAIRGROUND_HRTICK_BPF_H

/* The timer is not armed for less (hrtick_start). */
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

/* The timer of `cpu` has expired. Not under its run queue's lock, and perhaps on another CPU. */
static __always_inline void hrtick_expires(u32 cpu);

static int hrtick_fires(void *map, u32 *key, struct hrtick_timer *timer)
{
    u32 cpu = *key & (MAX_CPUS - 1);

    if (HRTICK_NS(cpu) && time_diff(bpf_ktime_get_ns(), HRTICK_NS(cpu)) >= 0) {
        HRTICK_NS(cpu) = 0;
        hrtick_expires(cpu);
    }
    return 0;
}

/* Arms the timer of `cpu` for that time from `now_ns`, which is the present by bpf_ktime_get_ns(). */
static __always_inline void hrtick_arm(u32 cpu, u64 now_ns, u64 delay_ns)
{
    struct hrtick_timer *timer = bpf_map_lookup_elem(&hrtick_timers, &cpu);

    if (!timer)
        return;
    if (!has_interrupts()) {
        HRTICK_NS(cpu) = 0;
        return;
    }
    HRTICK_NS(cpu) = now_ns + delay_ns;
    bpf_timer_start(&timer->timer, delay_ns, BPF_F_TIMER_CPU_PIN);
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
