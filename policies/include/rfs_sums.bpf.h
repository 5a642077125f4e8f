/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The running average of the Really Fair Scheduler: equations (15) to (25) of Roman Zippel's announcement
 * (linux-kernel, 31 August 2007; docs/laws/rfs.md), in 64-bit integers and without a division except in average().
 *
 * The average of the tasks' normalised times is time_norm_base + time_sum_off / weight_sum_app. Each task has an
 * average weight in it: 2^weight_shift in (14), the announced average; its own weight in (12); 1 in (13). After every
 * operation holds:
 *   N: max_timesum / 2 <= time_sum_max < max_timesum, and time_sum_max = time_norm_inc * weight_sum_app
 *   O: 0 <= time_sum_off < time_sum_max
 *   (25): time_sum_off = sum over the tasks of (time_norm - time_norm_base) * average weight
 * Example (S = 16): A of nice 0 (2^10) at 256000000, B of nice 5 (2^8) at 0: base 0, time_sum_off 256000000 * 1024,
 * weight_sum_app 1280, average 204800000. Pure arithmetic: it compiles for the host too, where a test compares it
 * with a model.
 */
#ifndef FAIRGROUND_RFS_SUMS_BPF_H
#define FAIRGROUND_RFS_SUMS_BPF_H

#include "weights.bpf.h"

/* For the verifier (scx.bpf.h); a host program that tests this arithmetic does not have it. */
#ifndef SEPARATE
#define SEPARATE static inline
#endif

struct rfs_sums {
    u64 weight_sum_app; /* (16) sum of the average weights; 0: no runnable task */
    u64 time_norm_base; /* (19) normalised time; wraps */
    s64 time_sum_off;   /* (19) normalised time * average weight */
    u64 time_sum_max;   /* (21) time_norm_inc * weight_sum_app */
    u64 time_norm_inc;  /* (21) step of the base, a power of two */
    u32 inc_log2;       /* log2 of it */
    u32 turning;        /* 1 while the base and the offset are changed together: see sums_average_of_other */
    u64 rotations;      /* steps of the base so far, in either direction */
    u64 weight_limit;   /* max_timesum / time_norm_inc: by N, weight_sum_app is below it and at least half of it */
};

/* round(log2 weight), nice -20 first: 2^weight_shift is within a factor 1.42 of the weight. */
static const u8 nice_shift[NICE_LEVELS] = {
    16, 16, 16, 15, 15, 15, 15, 14, 14, 14, 13, 13, 13, 12, 12, 12, 11, 11, 11, 10,
    10, 10, 9,  9,  9,  8,  8,  8,  7,  7,  7,  6,  6,  6,  5,  5,  5,  5,  4,  4,
};

/* inv = round(2^fraction_bits / weight), equation (8). */
static inline __attribute__((always_inline)) u32 inverse_of(u32 weight, u32 fraction_bits)
{
    return (u32)(((1ULL << fraction_bits) + weight / 2) / weight);
}

/* More halvings of the distance than 63 - log2(smallest time_sum_max) are never needed. */
#define ROTATE_STEPS 24

/* 2^k steps of the base up: (21), exact. */
static inline __attribute__((always_inline)) void rotate_up(struct rfs_sums *s, u32 k)
{
    s->time_sum_off -= (s64)(s->time_sum_max << k);
    s->time_norm_base += s->time_norm_inc << k;
    s->rotations += 1ULL << k;
}

static inline __attribute__((always_inline)) void rotate_down(struct rfs_sums *s, u32 k)
{
    s->time_sum_off += (s64)(s->time_sum_max << k);
    s->time_norm_base -= s->time_norm_inc << k;
    s->rotations += 1ULL << k;
}

/* Restores O. Usually one step; after a long time without a tick many are due, and they are taken in powers of two. */
SEPARATE void sums_turn(struct rfs_sums *s)
{
    s64 max;

    if (!s)
        return;
    max = (s64)s->time_sum_max;
    *(volatile u32 *)&s->turning = 1;
    if (s->time_sum_off >= max) {
        rotate_up(s, 0);
        if (s->time_sum_off >= max) {
            for (s32 k = ROTATE_STEPS - 1; k >= 0; k--) {
                if (s->time_sum_off >> k >= max)
                    rotate_up(s, (u32)k);
            }
        }
    } else {
        if (s->time_sum_off < -max) {
            for (s32 k = ROTATE_STEPS - 1; k >= 0; k--) {
                /* off < -(max << k): after 2^k steps it is still negative. */
                if ((-s->time_sum_off - 1) >> k >= max)
                    rotate_down(s, (u32)k);
            }
        }
        rotate_down(s, 0);
    }
    *(volatile u32 *)&s->turning = 0;
}

/* True: the base has moved. */
static inline __attribute__((always_inline)) bool sums_fix(struct rfs_sums *s)
{
    if (s->time_sum_off >= 0 && s->time_sum_off < (s64)s->time_sum_max)
        return false;
    sums_turn(s);
    return true;
}

/*
 * Halves the step until it is short enough for this sum of average weights. Volatile: the verifier examines all turns of
 * a loop, unless what differs between them is in memory.
 */
static inline __attribute__((always_inline)) void sums_shorten(struct rfs_sums *s, u64 weight_sum)
{
    volatile u64 *limit = &s->weight_limit;
    volatile u32 *log2 = &s->inc_log2;

    for (u32 i = 0; i < 64 && weight_sum >= *limit; i++) {
        *log2 -= 1;
        *limit <<= 1;
    }
}

/* Doubles it until it is long enough. */
static inline __attribute__((always_inline)) void sums_lengthen(struct rfs_sums *s)
{
    volatile u64 *limit = &s->weight_limit;
    volatile u32 *log2 = &s->inc_log2;

    for (u32 i = 0; i < 64 && s->weight_sum_app < *limit >> 1; i++) {
        *log2 += 1;
        *limit >>= 1;
    }
}

/*
 * Restores N: halves or doubles the step until time_sum_max fits, which keeps (21). Intermediate products do not
 * overflow, not even for a nice -20 task that joins a nice 19 one. `max_log2` is log2 of max_timesum.
 */
SEPARATE void sums_fit(struct rfs_sums *s, u32 max_log2)
{
    if (!s)
        return;
    if (!s->weight_limit) {
        s->inc_log2 = 0;
        s->weight_limit = 1ULL << (max_log2 & 63);
    }
    sums_shorten(s, s->weight_sum_app);
    sums_lengthen(s);
    s->time_norm_inc = 1ULL << (s->inc_log2 & 63);
    s->time_sum_max = s->weight_sum_app << (s->inc_log2 & 63);
}

/*
 * Before the average weights become `weight_sum`, for which the step is too long: halves it as far as they will need,
 * so that the base is within one such step of the average. With the long step of a light queue, (24) times a heavy
 * task's weight would overflow.
 */
SEPARATE void sums_make_room(struct rfs_sums *s, u64 weight_sum)
{
    if (!s)
        return;
    sums_shorten(s, weight_sum);
    s->time_norm_inc = 1ULL << (s->inc_log2 & 63);
    s->time_sum_max = s->weight_sum_app << (s->inc_log2 & 63);
    sums_fix(s);
}

/* sums_fit, where mostly the step fits as it is or, when one of two tasks leaves, is to be doubled once. */
static inline __attribute__((always_inline)) void sums_refit(struct rfs_sums *s, u32 max_log2)
{
    u64 weight_sum = s->weight_sum_app, half = s->weight_limit >> 1;

    if (weight_sum < half && weight_sum >= half >> 1) {
        s->inc_log2++;
        s->weight_limit = half;
        s->time_norm_inc <<= 1;
    } else if (weight_sum < half || weight_sum >= s->weight_limit) {
        sums_fit(s, max_log2);
        return;
    }
    s->time_sum_max = weight_sum * s->time_norm_inc;
}

/* The first task joins an empty queue: it is the average. The step is the largest power of two that N allows. */
SEPARATE void sums_begin(struct rfs_sums *s, u64 time_norm, u64 weight, u32 max_log2)
{
    if (!s)
        return;
    s->time_norm_base = time_norm;
    s->time_sum_off = 0;
    s->weight_sum_app = weight;
    sums_fit(s, max_log2);
}

/* A task joins: (22), (23), (24). The step that has room for it is not too short afterwards. */
static inline __attribute__((always_inline)) void sums_add(struct rfs_sums *s, u64 time_norm, u64 weight,
                                                           u32 max_log2)
{
    u64 weight_sum = s->weight_sum_app + weight; /* (22) */

    if (!s->weight_sum_app) {
        sums_begin(s, time_norm, weight, max_log2);
        return;
    }
    if (weight_sum >= s->weight_limit)
        sums_make_room(s, weight_sum);
    s->weight_sum_app = weight_sum;
    s->time_sum_max = weight_sum * s->time_norm_inc;                                          /* (23) */
    s->time_sum_off = (s64)((u64)s->time_sum_off + (time_norm - s->time_norm_base) * weight); /* (24) */
    sums_fix(s);
}

/* After the average weights have changed: (23), or nothing is left. True: the base has moved, or may. */
static inline __attribute__((always_inline)) bool sums_settle(struct rfs_sums *s, u32 max_log2)
{
    if (!s->weight_sum_app) {
        s->time_sum_off = 0;
        s->time_sum_max = 0;
        s->time_norm_inc = 0;
        return true;
    }
    sums_refit(s, max_log2);
    return sums_fix(s);
}

/*
 * Tasks join and leave: (22) to (24) for the sums of their average weights and of time_norm * average weight, both
 * modulo 2^64, departures negative. As all sums wrap alike, base * weight is subtracted once.
 */
static inline __attribute__((always_inline)) void sums_change(struct rfs_sums *s, u64 weight, u64 norm, u32 max_log2)
{
    if (s->weight_sum_app && s->weight_sum_app + weight >= s->weight_limit)
        sums_make_room(s, s->weight_sum_app + weight);
    s->weight_sum_app += weight;
    s->time_sum_off = (s64)((u64)s->time_sum_off + norm - s->time_norm_base * weight);
    sums_settle(s, max_log2);
}

/*
 * One task leaves. If it was alone, the base moves to its time: the average of an empty queue is where the last task
 * left. True: the base has moved.
 */
static inline __attribute__((always_inline)) bool sums_remove(struct rfs_sums *s, u64 time_norm, u64 weight,
                                                              u32 max_log2)
{
    s->weight_sum_app -= weight;
    s->time_sum_off = (s64)((u64)s->time_sum_off - (time_norm - s->time_norm_base) * weight);
    if (!sums_settle(s, max_log2))
        return false;
    if (!s->weight_sum_app)
        s->time_norm_base = time_norm;
    return true;
}

/*
 * A task's normalised time moves by `norm` (running time * inv, equation (8)); the sum by the same * weight, (17).
 * True: the base has moved.
 */
static inline __attribute__((always_inline)) bool sums_advance(struct rfs_sums *s, s64 norm, u64 weight)
{
    s->time_sum_off = (s64)((u64)s->time_sum_off + (u64)norm * weight);
    return sums_fix(s);
}

/* (20): the average, rounded down; of an empty queue, the time at which it became empty. */
static inline __attribute__((always_inline)) u64 sums_average(const struct rfs_sums *s)
{
    if (!s->weight_sum_app)
        return s->time_norm_base;
    return s->time_norm_base + (u64)s->time_sum_off / s->weight_sum_app;
}

/* The average of another CPU's queue, which its owner may be changing: base and offset must be of the same moment. */
static inline __attribute__((always_inline)) u64 sums_average_of_other(const struct rfs_sums *s)
{
    const volatile struct rfs_sums *shared = s;
    u64 base = 0, average = 0;

    for (u32 i = 0; i < 8; i++) {
        u64 rotations = shared->rotations, weight = shared->weight_sum_app;
        bool turning = shared->turning;

        base = shared->time_norm_base;
        average = base + (weight ? (u64)shared->time_sum_off / weight : 0);
        if (!turning && !shared->turning && rotations == shared->rotations)
            break;
    }
    return average;
}

#endif
