/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arithmetic of `cfs_2_6_23`: scaling by weights as kernel/sched.c and kernel/sched_fair.c of 2.6.23-rc1 to
 * 2.6.23 do it.
 *
 * One primitive scales everything: delta * w / W, by the inverse 2^32 / W. The inverse of a task's weight is in a
 * table, that of a queue's load is computed when the load has changed. Both are rounded, and so is each result: this
 * error is the subject of equation (7) of the Really Fair Scheduler's announcement. Pure arithmetic: it compiles for
 * the host, too.
 */
#ifndef FAIRGROUND_CFS2623_MATH_BPF_H
#define FAIRGROUND_CFS2623_MATH_BPF_H

#include "weights.bpf.h"

/* SCHED_IDLE: weight and inverse of its own (WEIGHT_IDLEPRIO, WMULT_IDLEPRIO). */
#define IDLE_POLICY_WEIGHT  2
#define IDLE_POLICY_INVERSE (1U << 31)
#define WMULT_CONST         0xffffffffULL

/* The first tables, 2.6.23-rc1 and -rc2, nice -20 first. From -rc3 on they are those of weights.bpf.h. */
static const u32 first_weight[NICE_LEVELS] = {
    88818, 71054, 56843, 45475, 36380, 29104, 23283, 18626, 14901, 11921, 9537, 7629, 6103, 4883,
    3906,  3125,  2500,  2000,  1600,  1280,  1024,  819,   655,   524,   419,  336,  268,  215,
    172,   137,   110,   87,    70,    56,    45,    36,    29,    23,    18,   15,
};

static const u32 first_inverse[NICE_LEVELS] = {
    48356,    60446,    75558,    94446,    118058,   147573,    184467,    230589,    288233,    360285,
    450347,   562979,   703746,   879575,   1099582,  1374389,   1717986,   2147483,   2684354,   3355443,
    4194304,  5244160,  6557201,  8196502,  10250518, 12782640,  16025997,  19976592,  24970740,  31350126,
    39045157, 49367440, 61356675, 76695844, 95443717, 119304647, 148102320, 186737708, 238609294, 286331153,
};

static inline __attribute__((always_inline)) u64 shift_right(u64 value, u32 shift, bool rounds)
{
    return (value + (rounds ? 1ULL << (shift - 1) : 0)) >> shift;
}

/*
 * The inverse of a load: 2^32 / load, to the nearest (commit 194081ebfaa8) or, before -rc3, below. load must not be
 * 0.
 */
static inline __attribute__((always_inline)) u64 inverse_of_load(u64 load, bool rounds)
{
    return rounds ? (WMULT_CONST - load / 2) / load + 1 : WMULT_CONST / load;
}

/*
 * calc_delta_mine: delta * weight / load, where inverse belongs to load. Large products lose 16 bits before they are
 * scaled.
 */
static inline __attribute__((always_inline)) u64 calc_delta_mine(u64 delta_ns, u64 weight, u64 inverse, bool rounds)
{
    u64 product = delta_ns * weight;

    if (product > WMULT_CONST)
        return shift_right(shift_right(product, 16, rounds) * inverse, 16, rounds);
    return shift_right(product * inverse, 32, rounds);
}

/* calc_weighted: fair time as time of a task of that weight. */
static inline __attribute__((always_inline)) u64 calc_weighted(u64 delta_ns, u32 weight)
{
    return weight == NICE_0_WEIGHT ? delta_ns : delta_ns * weight >> NICE_0_SHIFT;
}

/*
 * The distance of a task with that wait_runtime from the fair clock, to the left: wait_runtime * 1024 / weight. -rc1
 * multiplied instead of dividing when wait_runtime was positive (`multiplies`).
 */
static inline __attribute__((always_inline)) s64 key_distance(s64 wait_runtime, u32 weight, u32 inverse,
                                                              bool multiplies)
{
    if (weight == NICE_0_WEIGHT)
        return wait_runtime;
    if (wait_runtime < 0)
        return -(s64)((u64)-wait_runtime * inverse >> (32 - NICE_0_SHIFT));
    if (multiplies)
        return (s64)((u64)wait_runtime * weight >> NICE_0_SHIFT);
    return (s64)((u64)wait_runtime * inverse >> (32 - NICE_0_SHIFT));
}

/* niced_granularity: finer in proportion for light tasks; for heavy ones too (`divides`), but not in -rc1. */
static inline __attribute__((always_inline)) s64 niced_granularity(u64 gran_ns, u32 weight, u32 inverse, bool divides)
{
    if (weight < NICE_0_WEIGHT)
        return (s64)(gran_ns * weight >> NICE_0_SHIFT);
    if (weight > NICE_0_WEIGHT && divides)
        return (s64)(gran_ns * inverse >> (32 - NICE_0_SHIFT));
    return (s64)gran_ns;
}

#endif
