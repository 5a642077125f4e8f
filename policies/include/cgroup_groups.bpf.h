/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers and shares of a scheduler's groups: a cgroup with the cpu controller is a group, its weight (cpu.weight, 100
 * by default) is its shares (1024 by default). The scheduler has included its table `groups`, of GROUPS_MAX, with
 * GROUP_SLOTS places for groups on CPUs.
 */
#ifndef FAIRGROUND_CGROUP_GROUPS_BPF_H
#define FAIRGROUND_CGROUP_GROUPS_BPF_H

#include "cgroup.bpf.h"

#define CGROUPS_MAX           4096
#define CGROUP_WEIGHT_DEFAULT 100

/* From a cgroup's id (kn->id) to its group, or, if it is merged, an ancestor's. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, CGROUPS_MAX);
    __type(key, u64);
    __type(value, u32);
} cgroup_groups SEC(".maps");

/* sched_weight_from_cgroup, rounded to the nearest. */
static __always_inline u32 shares_of_weight(u32 weight)
{
    return (weight * GROUP_SHARES_DEFAULT + CGROUP_WEIGHT_DEFAULT / 2) / CGROUP_WEIGHT_DEFAULT;
}

/* An unused group number for which the tables have room; 0: there is none. */
SEPARATE u32 free_group(void)
{
    u32 i;

    for_range (i, GROUPS_MAX) {
        if (!i || groups[i & (GROUPS_MAX - 1)].in_use)
            continue;
        return i * nr_cpus <= GROUP_SLOTS ? i : 0;
    }
    return 0;
}

#endif
