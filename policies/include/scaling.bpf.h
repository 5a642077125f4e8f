/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Times that grow with the number of CPUs, as CFS has scaled its tunables since it was merged
 * (sched_init_granularity).
 */
#ifndef FAIRGROUND_SCALING_BPF_H
#define FAIRGROUND_SCALING_BPF_H

#include "cpus.bpf.h"

enum tunable_scaling { SCALING_NONE, SCALING_LOG, SCALING_LINEAR };

/* 1, or 1 + floor(log2(n)), or n, where n is the number of CPUs, at most cpus_max. */
static __always_inline u64 scaling_factor(enum tunable_scaling scaling, u32 cpus_max)
{
    u32 cpus = nr_cpus, log2 = nr_cpus_log2;

    if (scaling == SCALING_NONE)
        return 1;
    if (cpus > cpus_max) {
        cpus = cpus_max ?: 1;
        log2 = 31 - (u32)__builtin_clz(cpus);
    }
    return scaling == SCALING_LINEAR ? cpus : 1 + log2;
}

#endif
