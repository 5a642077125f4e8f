/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nice values as weights, and division-free arithmetic with them.
 *
 * One nice step is about 10 % of the CPU: a factor near 1.25 around 1024 at nice 0 (sched_prio_to_weight). Dividing
 * by a weight is done by multiplying with its inverse, 2^32 / weight (sched_prio_to_wmult), and shifting. The
 * kernel's table rounds to the nearest, but truncates four entries (nice 13, 14, 16, 17): the inverses here are its
 * data, not computed.
 */
#ifndef FAIRGROUND_WEIGHTS_BPF_H
#define FAIRGROUND_WEIGHTS_BPF_H

#include "types.bpf.h"

#define NICE_LEVELS   40
#define NICE_0_WEIGHT 1024
#define NICE_0_SHIFT  10
/* static_prio of nice -20: MAX_RT_PRIO. */
#define STATIC_PRIO_MIN 100

/* Nice -20 first. */
static const u32 nice_weight[NICE_LEVELS] = {
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906,  3121,  2501,  1991,  1586,  1277,  1024,  820,   655,   526,   423,  335,  272,  215,
    172,   137,   110,   87,    70,    56,    45,    36,    29,    23,    18,   15,
};

static const u32 nice_inverse[NICE_LEVELS] = {
    48388,    59856,    76040,    92818,    118348,   147320,    184698,    229616,    287308,    360437,
    449829,   563644,   704093,   875809,   1099582,  1376151,   1717300,   2157191,   2708050,   3363326,
    4194304,  5237765,  6557202,  8165337,  10153587, 12820798,  15790321,  19976592,  24970740,  31350126,
    39045157, 49367440, 61356676, 76695844, 95443717, 119304647, 148102320, 186737708, 238609294, 286331153,
};

/* Index into the tables: 0 for nice -20 ... 39 for nice 19; other values count as nice 0. */
static inline __attribute__((always_inline)) u32 nice_index(s32 static_prio)
{
    u32 index = (u32)static_prio - STATIC_PRIO_MIN;

    return index < NICE_LEVELS ? index : 20;
}

/* (a * b) >> shift without overflow of the product; shift 1...32. The result must fit 64 bits. */
static inline __attribute__((always_inline)) u64 mul_shift_right(u64 a, u32 b, u32 shift)
{
    u64 low = ((a & 0xffffffffULL) * b) >> shift;

    if (a >> 32)
        low += ((a >> 32) * b) << (32 - shift);
    return low;
}

/* Wall time to virtual time: delta * 1024 / weight. Exact for nice 0; else at most 1 ns + delta * 2^-22 below. */
static inline __attribute__((always_inline)) u64 virtual_time(u64 delta_ns, u32 weight, u32 inverse)
{
    if (weight == NICE_0_WEIGHT)
        return delta_ns;
    return mul_shift_right(delta_ns, inverse, 32 - NICE_0_SHIFT);
}

/* delta * numerator / weight, for quotients that are not 1024. delta * numerator must fit 64 bits. */
static inline __attribute__((always_inline)) u64 scale_by_weight(u64 delta_ns, u64 numerator, u32 inverse)
{
    return mul_shift_right(delta_ns * numerator, inverse, 32);
}

/* Order of two times that wrap. */
static inline __attribute__((always_inline)) s64 time_diff(u64 a, u64 b)
{
    return (s64)(a - b);
}

static inline __attribute__((always_inline)) u64 max_time(u64 a, u64 b)
{
    return time_diff(a, b) >= 0 ? a : b;
}

static inline __attribute__((always_inline)) u64 min_time(u64 a, u64 b)
{
    return time_diff(a, b) <= 0 ? a : b;
}

#endif
