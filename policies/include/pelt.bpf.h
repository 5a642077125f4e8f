/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Load over time (PELT, kernel/sched/pelt.c since 3.8): a sum over periods of 1,048,576 ns in which a period of n
 * periods ago counts y^n, with y^32 = 1/2. The load of a task is its weight times the part of that time in which it
 * was able to run; that of a CPU is the sum of the loads of its tasks, those that went to sleep there included, as
 * they fade.
 *
 * Example: a task of weight 1024 that has run for long sleeps 32 ms: its load is 512 then, after 32 ms more 256, and
 * its CPU has so much of it left. If it wakes up on another CPU, its load moves with it.
 *
 * Here all sums use the same clock, so that a task's sum can be subtracted from a CPU's without a remainder.
 */
#ifndef FAIRGROUND_PELT_BPF_H
#define FAIRGROUND_PELT_BPF_H

#include "scx.bpf.h"

/* A period is 2^10 units of 2^10 ns. */
#define PELT_UNIT_SHIFT   10
#define PELT_PERIOD_UNITS 1024
/* The sum over an unlimited past, in units, with each period rounded down (LOAD_AVG_MAX). */
#define PELT_SUM_MAX 47742
/* After this many periods nothing is left (LOAD_AVG_PERIOD * 63). */
#define PELT_PERIODS_MAX 2016

/* The sums of a task or a CPU, as of a point in time (struct sched_avg). */
struct pelt {
    u64 load;     /* runnable: weight * units for a CPU, units for a task */
    u64 runnable; /* units: the same without weights, over the tasks of a CPU, from another start */
    u64 util;     /* units: running */
    u64 at;       /* units */
};

/* y^n * (2^32 - 1) */
static const u32 pelt_decays[32] = {
    0xffffffff, 0xfa83b2da, 0xf5257d14, 0xefe4b99a, 0xeac0c6e6, 0xe5b906e6, 0xe0ccdeeb, 0xdbfbb796,
    0xd744fcc9, 0xd2a81d91, 0xce248c14, 0xc9b9bd85, 0xc5672a10, 0xc12c4cc9, 0xbd08a39e, 0xb8fbaf46,
    0xb504f333, 0xb123f581, 0xad583ee9, 0xa9a15ab4, 0xa5fed6a9, 0xa2704302, 0x9ef5325f, 0x9b8d39b9,
    0x9837f050, 0x94f4efa8, 0x91c3d373, 0x8ea4398a, 0x8b95c1e3, 0x88980e80, 0x85aac367, 0x82cd8698,
};

/* The units of the n - 1 whole periods between two points in time n periods apart, decayed to the later one. */
static const u32 pelt_whole[32] = {
    0,     0,     1001,  1980,  2939,  3877,  4795,  5693,  6572,  7433,  8274,  9098,  9904,  10693, 11465, 12221,
    12960, 13683, 14391, 15084, 15762, 16425, 17074, 17709, 18331, 18939, 19534, 20117, 20687, 21245, 21791, 22325,
};

static __always_inline u64 pelt_now(void)
{
    return scx_bpf_now() >> PELT_UNIT_SHIFT;
}

/* value * y^periods, of less than 32 periods. */
static __always_inline u64 pelt_decay_few(u64 value, u64 periods)
{
    u64 inverse = pelt_decays[BOUNDED(periods, 32)];

    return (value >> 32) * inverse + ((value & 0xffffffff) * inverse >> 32);
}

/* decay_load: value * y^periods. */
static __always_inline u64 pelt_decay(u64 value, u64 periods)
{
    return periods < PELT_PERIODS_MAX ? pelt_decay_few(value >> periods / 32, periods) : 0;
}

/* The divisor of a sum that gives the average (get_pelt_divider). */
static __always_inline u64 pelt_divider(u64 at)
{
    return PELT_SUM_MAX - PELT_PERIOD_UNITS + at % PELT_PERIOD_UNITS;
}

/* The time between two points: a sum decays by its periods, and its units are added once for each load. */
struct pelt_span {
    u64 periods; /* that end in the span */
    u64 units;   /* of the span, decayed to its end */
};

/* The units of a span of 32 periods or more. */
static __noinline u64 pelt_units_of_many(u64 begun, u64 periods, u64 ended)
{
    return pelt_decay(PELT_PERIOD_UNITS - begun, periods) + PELT_SUM_MAX - pelt_decay(PELT_SUM_MAX, periods) -
           PELT_PERIOD_UNITS + ended;
}

static __always_inline struct pelt_span pelt_span(u64 from, u64 to)
{
    u64 begun = from % PELT_PERIOD_UNITS, passed = to - from, periods = (begun + passed) / PELT_PERIOD_UNITS;

    if (unlikely(periods >= 32))
        passed = pelt_units_of_many(begun, periods, to % PELT_PERIOD_UNITS);
    else if (periods)
        passed = pelt_decay_few(PELT_PERIOD_UNITS - begun, periods) + pelt_whole[BOUNDED(periods, 32)] +
                 to % PELT_PERIOD_UNITS;
    return (struct pelt_span){periods, passed};
}

/* accumulate_sum: a sum after a span with this load. */
static __always_inline u64 pelt_after(u64 sum, struct pelt_span span, u64 load)
{
    return (span.periods ? pelt_decay(sum, span.periods) : sum) + load * span.units;
}

#endif
