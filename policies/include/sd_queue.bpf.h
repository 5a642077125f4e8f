/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The epochs of Staircase Deadline: a CPU's two arrays, its tasks' levels and quotas, minor and major rotations.
 *
 * An array is one dispatch queue, ordered by level and by arrival. The one with the parity of `rotation` is active;
 * the other one holds the tasks that have used up the epoch. A task's epoch is its own `rotation`: that of its CPU,
 * or one more if it has expired; any other value means that it is new in this epoch.
 *
 * Example: rotation 6. A with rotation 6 is in array 0, the active one; B with rotation 7 has expired and is in array
 * 1. When array 0 is empty, rotation becomes 7, and array 1 is active.
 */
#ifndef FAIRGROUND_SD_QUEUE_BPF_H
#define FAIRGROUND_SD_QUEUE_BPF_H

#include "sd_levels.bpf.h"
#include "scaling.bpf.h"

#define SETS(sd, rsdl) SET("sd", sd) SET("rsdl", rsdl)

enum staircase { STAIRCASE_DEADLINE, STAIRCASE_ROTATING };

/* Fixed while the scheduler runs: all stored levels depend on it. */
TUNABLE(
    const volatile enum staircase, rule_staircase, STAIRCASE_DEADLINE, UNIT("enum"),
    SETS("STAIRCASE_DEADLINE", "STAIRCASE_ROTATING"),
    DOC("levels of a nice value: a matrix of slots (Staircase Deadline), or its own level and all worse ones, with "
        "a quota per level (the rotating staircase)"));
TUNABLE(u64, rr_interval_ns, 8000000, UNIT("ns"), ALIAS("rr_interval"), SETS("8000000", "6000000"),
        DOC("quota: run time on each level; times the factor. As remembered, not verified"));
TUNABLE(enum tunable_scaling, tunable_scaling, SCALING_LOG, UNIT("enum"), SETS("SCALING_LOG", "SCALING_LOG"),
        DOC("factor on rr_interval: none 1, log 1 + log2(CPUs), linear CPUs"));
TUNABLE(const volatile bool, rule_half_quota, false, UNIT("bool"), SETS("0", "1"),
        DOC("nice 1 to 19 have half the quota. As remembered, not verified"));
TUNABLE(const volatile u32, rule_quota_growth, 0, UNIT("16ths"), SETS("0", "16"),
        DOC("below nice -6 the quota grows by this many 16ths a step. That it grows is remembered, how is not"));
TUNABLE(const volatile bool, rule_carry_overrun, false, UNIT("bool"), SETS("0", "0"),
        DOC("what a task ran beyond its quota, up to the next tick, counts on its next level"));
TUNABLE(const volatile bool, rule_fork_shares_quota, true, UNIT("bool"), SETS("1", "1"),
        DOC("a child starts on its parent's level with half of what is left there. As remembered, not verified"));

struct sd_queue {
    u64 rotation; /* number of the epoch: how often the arrays were swapped */
    u64 sequence; /* insertions so far */
    u64 curr_rotation;
    u64 curr_sum_exec; /* sum_exec_runtime when it was last charged, ns */
    s64 curr_slice_ns; /* rest of the quota on the current task's level; below 0: used up */
    u32 curr_pid;      /* 0: none */
    u32 curr_level;
    u32 picked;     /* dispatch picked the next task */
    u32 prio_level; /* rotating: the best level that is usable in this epoch; otherwise 0 */
    u64 minor_rotations;
    s64 prio_quota[2][SD_LEVELS]; /* rotating: per array and level, quotas granted minus run time, ns */
    u32 balance_call;             /* see BALANCE_CALL */
} __attribute__((aligned(64)));

/* Per task, beside p->scx.dsq_vtime, which is its key: see level_key(). */
struct sd_task {
    u64 rotation;
    u64 allowed;  /* levels that its nice value may use */
    s64 slice_ns; /* rest of the quota on its level; for the running task see curr_slice_ns */
    u64 load;     /* its load on its CPU */
    u64 last_ran_ns;
    u32 level;
    u32 nice_index;
    u32 cpu; /* the CPU whose epochs `rotation` counts, and which counts it as runnable */
    u32 is_new;
};

struct sd_queue cpu_queues[MAX_CPUS];
/* Allowed levels of each nice value, nice -20 first. */
u64 nice_levels[NICE_LEVELS];
/* Load of each nice value for the load balancer: BALANCE_SCALE at nice 0. */
u64 nice_load[NICE_LEVELS];

static __always_inline struct sd_queue *queue_of(u32 cpu)
{
    return &cpu_queues[cpu & (MAX_CPUS - 1)];
}

#define BALANCE_CALL(cpu) (queue_of(cpu)->balance_call)

static __always_inline bool is_rotating(void)
{
    return rule_staircase == STAIRCASE_ROTATING;
}

/* The level's quota in the array of that epoch. */
static __always_inline s64 *level_quota(struct sd_queue *q, u64 rotation, u32 level)
{
    return &q->prio_quota[rotation & 1][level < SD_LEVELS ? level : SD_LEVELS - 1];
}

/* Run time on one level, ns. */
static __always_inline s64 quota_ns(u32 nice_index)
{
    u64 quota = rr_interval_ns * scaling_factor(tunable_scaling);

    if (nice_index > 20 && rule_half_quota)
        quota >>= 1;
    else if (nice_index < 14)
        quota += quota * rule_quota_growth * (14 - nice_index) >> 4;
    return (s64)quota;
}

/* A fresh quota for the level that the task is on now. */
static __always_inline void grant(struct sd_queue *q, struct sd_task *t)
{
    s64 quota = quota_ns(t->nice_index), overrun = rule_carry_overrun && t->slice_ns < 0 ? t->slice_ns : 0;

    /* At most a quota: a task that ran long without a tick still runs once. */
    t->slice_ns = overrun > -quota ? quota + overrun : 1;
    if (is_rotating())
        *level_quota(q, t->rotation, t->level) += quota;
}

/* To the first level of the next epoch. */
static __always_inline void expire(struct sd_queue *q, struct sd_task *t)
{
    t->rotation = q->rotation + 1;
    t->level = next_level(t->allowed, 0);
    grant(q, t);
}

/* To the next level of this epoch from `from` on; when there is none, to the next epoch. */
static __always_inline void descend(struct sd_queue *q, struct sd_task *t, u32 from)
{
    u32 level = next_level(t->allowed, from > q->prio_level ? from : q->prio_level);

    if (level == NO_LEVEL) {
        expire(q, t);
        return;
    }
    t->rotation = q->rotation;
    t->level = level;
    grant(q, t);
}

/* Whether a task can stay on its level: it has quota left there, and so has the level. */
static __always_inline bool keeps_level(struct sd_queue *q, const struct sd_task *t)
{
    if (t->slice_ns <= 0 || !(t->allowed >> (t->level & 63) & 1))
        return false;
    if (t->rotation != q->rotation || !is_rotating())
        return true;
    return t->level >= q->prio_level && *level_quota(q, t->rotation, t->level) > 0;
}

/* The level of a task that becomes able to run, or whose quota on its level is used up. */
static __always_inline void find_level(struct sd_queue *q, struct sd_task *t)
{
    bool seen = t->rotation == q->rotation, expired = t->rotation == q->rotation + 1;

    if ((seen || expired) && keeps_level(q, t))
        return;
    if (expired)
        expire(q, t);
    else
        descend(q, t, seen ? t->level + 1 : 0);
}

/* The key behind all others of its level. */
static __always_inline u64 last_key(struct sd_queue *q, const struct sd_task *t)
{
    return level_key(t->level, ++q->sequence);
}

/* Major rotation: no task is left in this epoch. The other array becomes the active one. */
static __always_inline void rotate_arrays(struct sd_queue *q)
{
    q->rotation++;
    q->prio_level = 0;
    if (is_rotating())
        __builtin_memset(q->prio_quota[(q->rotation + 1) & 1], 0, sizeof(q->prio_quota[0]));
}

#endif
