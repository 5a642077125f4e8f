/* SPDX-License-Identifier: GPL-2.0-only */
/* Broken on purpose: a timer is armed again with a delay of 1 ns each time. */
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

struct alarm {
    struct bpf_timer timer;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct alarm);
} alarms SEC(".maps");

static int on_alarm(void *map, u32 *key, struct alarm *alarm)
{
    bpf_timer_start(&alarm->timer, 1, 0);
    return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(races_init)
{
    u32 key = 0;
    struct alarm *alarm = bpf_map_lookup_elem(&alarms, &key);

    if (!alarm)
        return -22;
    bpf_timer_init(&alarm->timer, &alarms, 1);
    bpf_timer_set_callback(&alarm->timer, on_alarm);
    bpf_timer_start(&alarm->timer, 1000000, 0);
    return 0;
}

SCX_OPS_DEFINE(races_ops, .init = (void *)races_init, .name = "timer_races");
