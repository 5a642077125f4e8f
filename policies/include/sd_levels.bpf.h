/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The levels of the staircase: those of the 40 levels of an epoch that a nice value may use, and the run time on
 * each.
 *
 * Level 0 is the best one. Staircase Deadline spreads the s slots of a nice value evenly over the 40 levels: nice -20
 * has all, nice 0 every second, nice 19 only the last. The rotating variant gives a nice value its own level and all
 * worse ones. Pure arithmetic: it compiles for the host too.
 */
#ifndef FAIRGROUND_SD_LEVELS_BPF_H
#define FAIRGROUND_SD_LEVELS_BPF_H

#include "weights.bpf.h"

/* Levels of an epoch, one for each nice value. */
#define SD_LEVELS 40
#define NO_LEVEL  SD_LEVELS
/* Bits of a key below its level: the number of the insertion. */
#define SEQUENCE_BITS 56

/* Slots of a nice value (nice -20 first): 40 for nice -20, 20 for nice 0, 1 for nice 19. */
static inline __attribute__((always_inline)) u32 slot_count(u32 nice_index)
{
    return SD_LEVELS - nice_index;
}

/*
 * The matrix of Staircase Deadline, bit k: level k is allowed. Even dithering: the levels where k * s / 40 steps up.
 * 40 divisions; for init() only.
 */
static inline __attribute__((always_inline)) u64 dithered_levels(u32 slots)
{
    u64 allowed = 0;

    for (u32 k = 0; k < SD_LEVELS; k++) {
        if ((k + 1) * slots / SD_LEVELS > k * slots / SD_LEVELS)
            allowed |= 1ULL << k;
    }
    return allowed;
}

/* The last `slots` levels: the staircase of the rotating variant, and of SCHED_BATCH. */
static inline __attribute__((always_inline)) u64 last_levels(u32 slots)
{
    return ((1ULL << slots) - 1) << (SD_LEVELS - slots);
}

/* The best allowed level that is not better than `from`, or NO_LEVEL. */
static inline __attribute__((always_inline)) u32 next_level(u64 allowed, u32 from)
{
    u64 rest = from < SD_LEVELS ? allowed >> from : 0;

    return rest ? from + (u32)__builtin_ctzll(rest) : NO_LEVEL;
}

/* Key within an array: by level, then in order of arrival. */
static inline __attribute__((always_inline)) u64 level_key(u32 level, u64 sequence)
{
    return (u64)level << SEQUENCE_BITS | (sequence & ((1ULL << SEQUENCE_BITS) - 1));
}

static inline __attribute__((always_inline)) u32 level_of_key(u64 key)
{
    return (u32)(key >> SEQUENCE_BITS);
}

#endif
