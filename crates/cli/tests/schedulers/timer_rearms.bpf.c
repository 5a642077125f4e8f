/* SPDX-License-Identifier: GPL-2.0-only */
/* Broken on purpose: a timer is armed again with no delay each time that it expires. */
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
    bpf_timer_start(&alarm->timer, 0, 0);
    return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rearms_init)
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

SCX_OPS_DEFINE(rearms_ops, .init = (void *)rearms_init, .name = "timer_rearms");
