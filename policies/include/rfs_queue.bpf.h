/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queue of the Really Fair Scheduler: tunables, the current task's account, and the tasks in each CPU's sums.
 *
 * Two forms of one arithmetic. Sets literal and accurate: 64-bit numbers, time in ns. Set ms32: 32-bit numbers, time
 * in ms, each in the upper half of a 64-bit word whose lower half is 0. Such words add, subtract, compare, wrap and
 * are multiplied by a number as 32-bit numbers are, so that the same instructions serve both forms; only the length
 * of a unit of the clock and the rounding to whole numbers (clock_units, whole_norm) differ. In 32 bits two tasks
 * can be compared while they are less than 491 s of nice-19 time apart (9), a sum of run times fits for 23 s (18),
 * and the base moves about every 16 s. The sum of average weights on a CPU is at most 2^29, 8192 tasks of nice -20.
 * A task that joins must be nearer to the base than 2^31 over its average weight (24): at nice -20 that is 7.5 ms of
 * nice 19, so the average is wrong where these two meet.
 *
 * Example (ms32, nice 0, inv 64): 3 ms of run time are 3 * 64 = 192 units, stored as 192 << 32.
 */
#ifndef FAIRGROUND_RFS_QUEUE_BPF_H
#define FAIRGROUND_RFS_QUEUE_BPF_H

#include "leftmost.bpf.h"
#include "rfs_sums.bpf.h"
#include "scaling.bpf.h"

#define SETS(literal, accurate, ms32) SET("literal", literal) SET("accurate", accurate) SET("ms32", ms32)

enum rfs_clock { CLOCK_NS64, CLOCK_MS32 };
/* The equations whose average places a task that wakes up. */
enum average_rule { AVERAGE_12_WEIGHT, AVERAGE_13_PLAIN, AVERAGE_14_SHIFT };

/* Fixed while the scheduler runs: all stored times are in these units. */
TUNABLE(const volatile u32, fraction_bits, 24, UNIT("bits"), SETS("16", "24", "16"),
        DOC("S: fraction bits of the inverse weights; 16 as announced, 24 exact for negative nice"));
TUNABLE(const volatile u32, max_timesum_log2, 54, UNIT("log2"), SETS("46", "54", "62"),
        DOC("log2 of MAX_TIMESUM, the bound of time_sum_max; 40 to 60, in 32 bits 62, which is 2^30 there"));
TUNABLE(
    const volatile enum rfs_clock, rule_clock, CLOCK_NS64, UNIT("enum"),
    SETS("CLOCK_NS64", "CLOCK_NS64", "CLOCK_MS32"),
    DOC("time in ns and 64 bits, or in ms and 32 bits; the latter with fraction_bits 16 and max_timesum_log2 62"));
TUNABLE(const volatile enum average_rule, rule_average, AVERAGE_14_SHIFT, UNIT("enum"),
        SETS("AVERAGE_14_SHIFT", "AVERAGE_14_SHIFT", "AVERAGE_14_SHIFT"),
        DOC("a task's weight in the average: its own (12), 1 (13), the nearest power of two to it (14)"));
TUNABLE(const volatile u64, time_norm_start, 0, UNIT("normalised time"),
        DOC("normalised time at which every queue starts; near 2^64 to see that wrapping changes nothing"));

TUNABLE(u64, granularity_ns, 4000000, UNIT("ns"),
        DOC("G: the current task runs until it is this far ahead of the first waiting one; times the factor"));
TUNABLE(u64, wakeup_granularity_ns, 1000000, UNIT("ns"),
        DOC("Gw: a waking task preempts when the current one is this far ahead of it; times the factor"));
TUNABLE(u64, bonus_ns, 10000000, UNIT("ns"),
        DOC("BONUS: a waking task is placed at most this far behind the average"));
TUNABLE(enum tunable_scaling, tunable_scaling, SCALING_LOG, UNIT("enum"),
        DOC("factor on both granularities: none 1, log 1 + log2(CPUs), linear CPUs"));
TUNABLE(
    bool, GRAN_BY_WEIGHT, false, UNIT("bool"),
    DOC("granularities are distances of normalised time: light tasks run for shorter times, heavy ones for longer"));
TUNABLE(bool, BONUS_BY_WEIGHT, false, UNIT("bool"),
        DOC("BONUS is wall time of the waking task, not of a nice-0 task"));
TUNABLE(bool, START_DEBIT, false, UNIT("bool"), DOC("a new task starts half a granularity behind the others"));
TUNABLE(bool, CHILD_RUNS_FIRST, false, UNIT("bool"), DOC("after fork the child gets the smaller time of the two"));
TUNABLE(bool, YIELD_TO_END, false, UNIT("bool"), DOC("sched_yield goes behind the last waiting task"));
TUNABLE(bool, WAKEUP_PREEMPTION, true, UNIT("bool"), DOC("a waking task may preempt the current one"));

/* The base has moved so far that comparisons with an earlier time may be wrong by wrapping: equation (9). */
#define GENERATION_NORM (1ULL << 62)

struct rfs_queue {
    struct rfs_sums sums;
    u64 generation;      /* moves of the base by GENERATION_NORM, */
    u64 generation_base; /* the base after the last of them */
    u64 curr_time_norm;
    u64 curr_sum_exec; /* the current task's sum_exec_runtime up to which it has been charged, ns */
    u64 curr_clock_ns; /* the clock when sum_exec_runtime was last read */
    u64 curr_ahead;    /* charged by the clock since then, units of the clock */
    struct leftmost left;
    u32 curr_pid; /* 0: none */
    u32 curr_average_weight;
    u32 picked;       /* dispatch picked the next task */
    u32 balance_call; /* see BALANCE_CALL */
    u64 curr_inv;
    u64 curr_seen_exec; /* sum_exec_runtime at curr_clock_ns: more than has been charged by a part of a unit */
    /*
     * Tasks that other CPUs moved away from here or to here: the sums of their average weights and of time_norm *
     * average weight since the start, departures counted negative. Another CPU adds one to `moves`, adds the sums,
     * then adds one to `moved`; the owner adds the difference when both counts agree.
     */
    u64 moves, moved, moved_weight, moved_norm;
    u64 seen_moved, seen_weight, seen_norm;
} __attribute__((aligned(64)));

/* Per task, beside p->scx.dsq_vtime, which is time_norm (of the running task: at the last tick). */
struct rfs_task {
    u32 cpu;            /* the CPU whose sums it is in, or was last */
    u8 nice_level;      /* 1 + the index of its nice value in the tables; 0: not read yet */
    bool is_new;        /* not yet placed */
    bool is_queued;     /* it is in the sums of that CPU */
    bool slept;         /* it left them to sleep */
    u64 inv;            /* of its nice value, as in nice_inv */
    u64 generation;     /* of that queue when it went to sleep */
    u64 time_norm;      /* its value in the sums while it waits */
    u32 average_weight; /* its weight in the average */
    u32 load;           /* its load for the load balancer */
    u32 rest_ns;        /* run time below a unit of the clock of the 32-bit form: not yet charged */
    bool to_local;      /* an idle CPU is reserved for it: enqueue puts it into the CPU's local queue */
};

struct rfs_queue cpu_queues[MAX_CPUS];
/* inv of each nice level for this fraction_bits, nice -20 first; in the 32-bit form in the upper half, as times are. */
u64 nice_inv[NICE_LEVELS];
/* Average weights of each nice level. */
u32 nice_average_weight[NICE_LEVELS];
struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct rfs_task);
} task_ctx SEC(".maps");

static __always_inline struct rfs_task *task_of(struct task_struct *p)
{
    return bpf_task_storage_get(&task_ctx, p, 0, 0);
}

static __always_inline struct rfs_queue *queue_of(u32 cpu)
{
    return &cpu_queues[cpu & (MAX_CPUS - 1)];
}

#define BALANCE_CALL(cpu) (queue_of(cpu)->balance_call)

static __always_inline u64 tunable_factor(void)
{
    return scaling_factor(tunable_scaling);
}

/* A unit of the clock of the 32-bit form. */
#define MS32_UNIT_NS 1000000

/*
 * Whole units of the clock in a time of at most 457 s; a tick comes long before. No division: 10^6 = 2^6 * 15625, and
 * 2^44 / 15625 rounded up is exact for dividends below 7.1e9.
 */
static __always_inline u64 ms32_units(u64 ns)
{
    return (ns >> 6) * 1125899907 >> 44;
}

static __always_inline u64 clock_units(u64 ns)
{
    return rule_clock == CLOCK_NS64 ? ns : ms32_units(ns);
}

/* Rounds a normalised time down to an integer of the form in use. */
static __always_inline u64 whole_norm(u64 norm)
{
    return rule_clock == CLOCK_NS64 ? norm : norm >> 32 << 32;
}

/* (8): run time, in units, as normalised time. */
static __always_inline u64 units_norm(u64 units, u64 inv)
{
    return units * inv;
}

/* (20), an integer of the form in use. */
SEPARATE u64 average_of(const struct rfs_queue *q)
{
    if (!q)
        return 0;
    return whole_norm(sums_average(&q->sums));
}

/* A granularity of the current task as a distance of normalised time. */
static __always_inline s64 gran_norm(u64 gran_ns, u64 inv)
{
    return (s64)units_norm(clock_units(gran_ns * tunable_factor()), GRAN_BY_WEIGHT ? nice_inv[20] : inv);
}

/* Counts generations. The base only moves forward, apart from the bonus of a task that wakes up on an empty queue. */
static __always_inline void count_generations(struct rfs_queue *q)
{
    if (time_diff(q->sums.time_norm_base, q->generation_base) >= (s64)GENERATION_NORM) {
        q->generation++;
        q->generation_base += GENERATION_NORM;
    }
}

/* A rare operation, verified once. */
SEPARATE void change_sums(struct rfs_sums *s, u64 weight, u64 norm)
{
    if (s)
        sums_change(s, weight, norm, max_timesum_log2);
}

/* For a queue that its owner may be changing. A separate function, as its loop multiplies the paths of its callers. */
SEPARATE u64 average_of_other(struct rfs_sums *s)
{
    return s ? sums_average_of_other(s) : 0;
}

/* Adds to the sums what other CPUs have moved meanwhile. */
static __always_inline void settle_moved(struct rfs_queue *q)
{
    u64 moved = READ_ONCE(q->moved), weight, norm;

    if (likely(moved == q->seen_moved))
        return;
    weight = READ_ONCE(q->moved_weight);
    norm = READ_ONCE(q->moved_norm);
    if (__sync_fetch_and_add(&q->moves, 0) != moved)
        return; /* an update is under way: next time */
    change_sums(&q->sums, weight - q->seen_weight, norm - q->seen_norm);
    count_generations(q);
    q->seen_moved = moved;
    q->seen_weight = weight;
    q->seen_norm = norm;
}

/*
 * The other side: adds this average weight (negative when a task leaves) and norm * weight to the sums of another
 * CPU.
 */
static __always_inline void tell_moved(struct rfs_queue *q, u64 weight, u64 norm)
{
    __sync_fetch_and_add(&q->moves, 1);
    __sync_fetch_and_add(&q->moved_weight, weight);
    __sync_fetch_and_add(&q->moved_norm, norm);
    __sync_fetch_and_add(&q->moved, 1);
}

/* account(t, d) of the current task, d in units: (8) for the task, (17) for the sum. No division. */
static __always_inline void account(struct rfs_queue *q, s64 units)
{
    s64 norm = (s64)units_norm((u64)units, q->curr_inv);

    q->curr_time_norm += (u64)norm;
    if (sums_advance(&q->sums, norm, q->curr_average_weight))
        count_generations(q);
}

/*
 * The whole units for which the current task has not been charged, where the kernel has just updated sum_exec_runtime.
 * From now on they count as charged. Negative: the clock has charged more than it ran.
 */
static __always_inline u64 uncharged_units(struct rfs_queue *q, const struct task_struct *p)
{
    u64 sum_exec = p->se.sum_exec_runtime, units = sum_exec - q->curr_sum_exec;

    if (rule_clock == CLOCK_NS64) {
        q->curr_sum_exec = sum_exec;
    } else {
        units = ms32_units(units);
        q->curr_sum_exec += units * MS32_UNIT_NS;
    }
    return units - q->curr_ahead;
}

/* In the end exactly sum_exec_runtime is charged, in whole units. */
static __always_inline void account_exec(struct rfs_queue *q, struct task_struct *p)
{
    settle_moved(q);
    account(q, (s64)uncharged_units(q, p));
    q->curr_ahead = 0;
    q->curr_seen_exec = p->se.sum_exec_runtime;
    q->curr_clock_ns = scx_bpf_now();
}

/* The part of a unit for which a task that stops has not been charged. */
static __always_inline void keep_rest(struct rfs_task *t, const struct rfs_queue *q, const struct task_struct *p)
{
    if (t)
        t->rest_ns = (u32)(p->se.sum_exec_runtime - q->curr_sum_exec);
}

/* From other callbacks, by the clock. Nothing changes before a whole unit has passed. */
static __always_inline void account_clock(struct rfs_queue *q)
{
    s64 ran_ns = q->curr_pid ? (s64)(scx_bpf_now() - q->curr_clock_ns + q->curr_seen_exec - q->curr_sum_exec) : 0;
    u64 units;

    if (ran_ns <= 0) {
        settle_moved(q);
        return;
    }
    units = clock_units((u64)ran_ns);
    if (units <= q->curr_ahead)
        return;
    settle_moved(q);
    account(q, (s64)(units - q->curr_ahead));
    q->curr_ahead = units;
}

/* What follows from a task's nice value. While it is in the sums its weights do not change. */
static __always_inline void read_nice(struct task_struct *p, struct rfs_task *t)
{
    u32 index = nice_index(p->static_prio);

    if (t->nice_level == index + 1)
        return;
    t->nice_level = (u8)(index + 1);
    t->inv = nice_inv[index];
    t->average_weight = nice_average_weight[index];
    t->load = nice_weight[index];
}

/* Adds a task to the sums and the accounting of this CPU's queue. */
static __always_inline void join(struct rfs_queue *q, struct rfs_task *t, u32 cpu, u64 time_norm)
{
    bool empty = !q->sums.weight_sum_app;

    t->cpu = cpu;
    t->time_norm = time_norm;
    sums_add(&q->sums, time_norm, t->average_weight, max_timesum_log2);
    count_generations(q);
    if (empty && time_diff(q->sums.time_norm_base, q->generation_base) < 0)
        q->generation_base = q->sums.time_norm_base;
    join_cpu(cpu, t->load);
}

/*
 * Removes a task from the sums and the accounting of the CPU whose queue is locked. The sums have it at `time_norm`; it is
 * further by `ran_norm`.
 */
static __always_inline void leave(struct rfs_queue *q, struct rfs_task *t, u32 cpu, u64 time_norm, u64 ran_norm)
{
    leave_cpu(cpu, t->load);
    settle_moved(q);
    if (!sums_remove(&q->sums, time_norm, t->average_weight, max_timesum_log2))
        return;
    if (!q->sums.weight_sum_app)
        q->sums.time_norm_base += ran_norm;
    count_generations(q);
}

/* Removes a task from those of another CPU: from the sums by message. */
static __noinline void leave_other(struct rfs_task *t, u64 time_norm)
{
    leave_cpu(t->cpu, t->load);
    tell_moved(queue_of(t->cpu), -(u64)t->average_weight, -(time_norm * t->average_weight));
}

/* Queues have unrelated times: a migration keeps the distance to the average. */
SEPARATE u64 migrated_norm(u64 time_norm, u32 from, u32 to)
{
    u64 distance = average_of_other(&queue_of(to)->sums) - average_of_other(&queue_of(from)->sums);

    return time_norm + whole_norm(distance);
}

/*
 * The accounting of a task that moves to another CPU, as a waiting one or to run, and its time there. `held`: the CPU
 * whose queue is locked.
 */
SEPARATE void migrate(struct rfs_task *t, u32 to, u32 held, u64 time_norm, u64 here_norm)
{
    struct rfs_queue *q = queue_of(to);

    if (!t)
        return;
    if (t->cpu == held)
        leave(queue_of(held), t, held, time_norm, 0);
    else
        leave_other(t, time_norm);
    if (to == held) {
        settle_moved(q);
        join(q, t, to, here_norm);
        return;
    }
    t->cpu = to;
    t->time_norm = here_norm;
    tell_moved(q, t->average_weight, here_norm * t->average_weight);
    join_cpu(to, t->load);
}

/* Computes the constants that depend on the fixed tunables. Divisions: for init() only. */
static __always_inline void rfs_make_tables(void)
{
    for (u32 i = 0; i < NICE_LEVELS; i++) {
        nice_inv[i] = (u64)inverse_of(nice_weight[i], fraction_bits) << (rule_clock == CLOCK_MS32 ? 32 : 0);
        if (rule_average == AVERAGE_12_WEIGHT)
            nice_average_weight[i] = nice_weight[i];
        else
            nice_average_weight[i] = rule_average == AVERAGE_13_PLAIN ? 1 : 1U << nice_shift[i];
    }
}

#endif
