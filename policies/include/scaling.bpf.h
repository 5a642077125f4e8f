/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Times that grow with the number of CPUs, as CFS has scaled its tunables since it was merged
 * (sched_init_granularity).
 */
#ifndef FAIRGROUND_SCALING_BPF_H
#define FAIRGROUND_SCALING_BPF_H

#include "cpus.bpf.h"

enum tunable_scaling { SCALING_NONE, SCALING_LOG, SCALING_LINEAR };

/* The factors of SCALING_LINEAR and SCALING_LOG: n, and 1 + floor(log2(n)). */
u32 linear_factor = 1, log_factor = 1;

/* In ops.init, after create_cpu_queues(). n is the number of CPUs, at most cpus_max. Returns log_factor. */
SEPARATE u32 init_scaling(u32 cpus_max)
{
    linear_factor = nr_cpus < cpus_max ? nr_cpus : cpus_max;
    if (!linear_factor)
        linear_factor = 1;
    log_factor = 32 - (u32)__builtin_clz(linear_factor);
    return log_factor;
}

static __always_inline u64 scaling_factor(enum tunable_scaling scaling)
{
    if (likely(scaling == SCALING_LOG))
        return log_factor;
    return scaling == SCALING_LINEAR ? linear_factor : 1;
}

#endif
