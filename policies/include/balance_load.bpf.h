/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The loads that the balancer compares: what a CPU has now, and slow averages of it (cpu_load[], update_cpu_load).
 *
 * Each tick: cpu_load[i] = (cpu_load[i] * (2^i - 1) + now) / 2^i. Index 0 of a domain's table means the load now,
 * index k the average cpu_load[k-1]. The load to pull from is estimated low (source_load: the smaller of both), the
 * load to pull to is estimated high (target_load: the larger), so that a load that comes and goes moves nothing.
 * Example: a CPU gets its second task of weight 1024: cpu_load[1] is 1024, then 1536, 1792 ... for the next ticks;
 * seen from others at index 2 it has that load, although it has 2048.
 *
 * Three averages are kept: no table has a larger index than 3. An idle CPU has no ticks here; what they would have
 * done is made up for when its averages are next read or written.
 */
#ifndef FAIRGROUND_BALANCE_LOAD_BPF_H
#define FAIRGROUND_BALANCE_LOAD_BPF_H

#include "domains.bpf.h"

#define LOAD_AVERAGES 3
/* Limit of the CPUs that a fork compares. The kernel compares all of a domain. */
#define FORK_LOOK_MAX 256
/* After this many idle ticks nothing is left of an average: (3/4)^64 of it is 10^-8. */
#define IDLE_TICKS_MAX 64

enum idle_type { NOT_IDLE, IDLE, NEWLY_IDLE };

/* The rule that decided a search. The first ones find nothing to do. */
enum balance_verdict {
    NOT_OURS,   /* another CPU of the group balances at this level and above */
    NO_BUSIEST, /* no group has more tasks than power */
    NOT_BUSIER, /* the own group has at least the load of the busiest, or of the average, or is within imbalance_pct */
    ONE_TASK,   /* the busiest group's load is that of one of its tasks */
    SMALL_NO_GAIN,    /* small imbalance, and moving a task gains no throughput: balanced */
    NO_QUEUE,         /* no CPU of the group has a task to spare */
    NORMAL,           /* the imbalance is large enough */
    SMALL_DIFFERENCE, /* small, but the loads differ by a task or two: one task */
    SMALL_GAIN,       /* small, but moving one task gains throughput */
    SMALL_KEPT,       /* small, no gain, and the imbalance is moved all the same (2.6.23) */
    SPARE,            /* the own group has idle CPUs for tasks of the busiest (5.5) */
    BALANCE_VERDICTS,
};

struct balance_domain {
    u64 last_balance_ns;
    u32 interval_ms;
    u64 longest_ns;    /* max_newidle_lb_cost: how long a search of a CPU that became idle took at most */
    u64 longest_jiffy; /* when that was noted, or decayed */
    u32 nr_failed;     /* nr_balance_failed: consecutive balances that found an imbalance and moved nothing */
#ifdef NEWIDLE_BY_CHANCE
    /* Idle entries of a CPU, and searches then that brought a task; both are halved from time to time. */
    u32 newidle_call, newidle_success;
    u32 newidle_ratio; /* it searches with the probability newidle_ratio / NEWIDLE_RATIO_MAX */
    u64 newidle_stamp_ns;
#endif
};

/* The state of a scan of a domain's groups; loads are relative to the power of the group. */
struct group_scan {
    u64 total_load, total_power;
    u64 this_load, this_weight, this_nr, this_power;
    u64 max_load, busiest_weight, busiest_nr, busiest_power;
    u64 sum_load, sum_weight, sum_nr; /* of the present group */
    u64 sum_per_task, max_cpu_load, min_cpu_load;
    u64 sum_idle, this_idle, busiest_idle; /* CPUs without tasks */
    u64 avg_load, lpt, imbalance;          /* the result */
    u32 busiest_first, busiest_end;
    u32 balance_cpu; /* the CPU of the own group that may balance */
    u32 found, busiest_imb, rule, busiest_cpu, sibling_busy;
    u32 by_tasks; /* the imbalance is a number of tasks, not a load */
    u32 one_only; /* one task moves at a time */
};

/* One per CPU; other CPUs write push_to and kicked only, and call_balancer() after it. */
struct balance_cpu {
    struct balance_domain domains[DOMAIN_LEVELS];
    u64 load_jiffy; /* cpu_loads are as of this tick */
    u64 next_balance_ns;
    u64 seen_moves;       /* balance_moves at its search */
    u64 refused_until_ns; /* it takes nothing before that time; 0: no limit */
    struct group_scan scan;
    u64 left_out[WAITING_WORDS]; /* CPUs whose tasks all proved to be pinned, for this balance */
    enum idle_type idle;
    u32 level;
    u32 pending;    /* a balance that found work waits for dispatch */
    u32 all_pinned; /* nothing in this balance could be moved because of affinity */
    u32 left_out_count;
    u32 kicked;    /* an idle CPU was woken to balance */
    u32 idle_pass; /* it has balanced in this pass */
    u32 asked;     /* a task that bypassed dispatch has asked for a pick; none was made since */
    u32 push_to;   /* active balancing: CPU + 1 to which one of this CPU's tasks shall go; 0: none */
    u32 next_idle; /* where the search for an idle CPU to wake continues */
    u32 looked;    /* the waiting tasks that this balance has examined, */
    u32 moved;     /* and moved: in memory, where the verifier does not track them */
} __attribute__((aligned(64)));

struct balance_cpu balance_cpus[MAX_CPUS];
/*
 * A word of each CPU. Not 0: push_to, kicked, pending, idle_pass or asked of the CPU is set, so its next dispatch has
 * more to do than to pick a task. A scheduler may have it in a record of its own that each dispatch reads anyway.
 */
#ifndef BALANCE_CALL
#define BALANCE_CALL(cpu) (tasks_of(cpu)->balance_call)
#endif
/* cpu_load[k] of every CPU. By average, not by CPU: a search reads one of them, of many CPUs. */
u64 cpu_loads[LOAD_AVERAGES][MAX_CPUS];
/* Tasks that balancing has moved, on all CPUs, since the start. */
u64 balance_moves;

static __always_inline struct balance_cpu *balance_of(u32 cpu)
{
    return &balance_cpus[BOUNDED(cpu, MAX_CPUS)];
}

/* After one of these fields was set, by any CPU. */
static __always_inline void call_balancer(u32 cpu)
{
    __sync_fetch_and_or(&BALANCE_CALL(cpu), 1);
}

static __always_inline bool is_balancer_called(u32 cpu)
{
    return READ_ONCE(BALANCE_CALL(cpu));
}

/* The load that is averaged; a scheduler may define another measure (PRECISE_CPU_LOAD of 2.6.23). */
#ifndef cpu_load_input
#define cpu_load_input(cpu) cpu_weight(cpu)
#endif

/* cpu_load[k] of a CPU. */
static __always_inline u64 *cpu_load_of(u32 cpu, u32 k)
{
    return &cpu_loads[k][BOUNDED(cpu, MAX_CPUS)];
}

/* The averages after a tick with this load. */
static __always_inline void average_load(u32 cpu, u64 load)
{
    u64 *loads = cpu_load_of(cpu, 0), *half, *quarter, one = load, two = load;

    /* One address for all three. */
    barrier_var(loads);
    half = loads + MAX_CPUS;
    quarter = half + MAX_CPUS;
    *loads = load;
    if (rule_load_rounds_up && load > *half)
        one += 1;
    if (rule_load_rounds_up && load > *quarter)
        two += 3;
    *half = (*half + one) >> 1;
    *quarter = (*quarter * 3 + two) >> 2;
}

/* Makes up for the ticks that an idle CPU did not have. */
SEPARATE void average_idle_ticks(u32 cpu, u64 ticks)
{
    u32 i;

    if (ticks >= IDLE_TICKS_MAX) {
        *cpu_load_of(cpu, 0) = *cpu_load_of(cpu, 1) = *cpu_load_of(cpu, 2) = 0;
        return;
    }
    for_range (i, ticks)
        average_load(cpu, 0);
}

/* update_cpu_load: at each tick of a busy CPU. */
static __always_inline void update_cpu_load(u32 cpu)
{
    struct balance_cpu *b = balance_of(cpu);
    u64 jiffy = bpf_jiffies64(), missed = jiffy - b->load_jiffy;

    if (missed > 1)
        average_idle_ticks(cpu, missed - 1);
    b->load_jiffy = jiffy;
    average_load(cpu, cpu_load_input(cpu));
}

/* An idle CPU's averages decay as if it had ticks. */
static __always_inline void decay_idle_load(u32 cpu)
{
    struct balance_cpu *b = balance_of(cpu);
    u64 jiffy = bpf_jiffies64();

    if (!nr_running(cpu) && jiffy != b->load_jiffy) {
        average_idle_ticks(cpu, jiffy - b->load_jiffy);
        b->load_jiffy = jiffy;
    }
}

/* Which average an index of a domain's table means; not for index 0. */
static __always_inline u32 load_index(u32 idx)
{
    u32 at = BOUNDED(idx - 1, 4);

    return at < LOAD_AVERAGES ? at : 0;
}

static __always_inline u64 average_at(u32 cpu, u32 idx)
{
    return *cpu_load_of(cpu, load_index(idx));
}

/* cpu_load since 3.8, of a scheduler that keeps it. */
static __always_inline u64 load_over_time(u32 cpu)
{
#ifdef BALANCE_RECORDS
    return load_of_cpu(cpu);
#else
    return cpu_weight(cpu);
#endif
}

/* A low estimate of the load of a CPU from which a task might be taken. */
static __always_inline u64 source_load(u32 cpu, u32 idx)
{
    u64 load = cpu_weight(cpu), average;

    if (!idx)
        return load;
    if (idx == LOAD_OVER_TIME)
        return load_over_time(cpu);
    average = average_at(cpu, idx);
    return average < load ? average : load;
}

/* A high estimate of the load of a CPU to which a task might be moved. */
static __always_inline u64 target_load(u32 cpu, u32 idx)
{
    u64 load = cpu_weight(cpu), average;

    if (!idx)
        return load;
    if (idx == LOAD_OVER_TIME)
        return load_over_time(cpu);
    average = average_at(cpu, idx);
    return average > load ? average : load;
}

static __always_inline bool is_left_out(struct balance_cpu *b, u32 cpu)
{
    return b->left_out_count && b->left_out[(cpu & (MAX_CPUS - 1)) / 64] >> (cpu & 63) & 1;
}

/* Whether any CPU has two tasks: otherwise there is nothing to move. CPUs that have them no more lose their bits. */
static __always_inline bool any_cpu_overloaded(void)
{
    u32 word, i;

    for_range (word, nr_cpus / 64 + 1) {
        u64 left = READ_ONCE(overloaded_cpus[word & (WAITING_WORDS - 1)]);

        for_range (i, 64) {
            u32 cpu;

            if (!left)
                break;
            cpu = word * 64 + (u32)__builtin_ctzll(left);
            if (nr_running(cpu) > 1)
                return true;
            clear_cpu_bit(overloaded_cpus, cpu);
            /* It has got its second task meanwhile. */
            if (nr_running(cpu) > 1)
                set_cpu_bit(overloaded_cpus, cpu);
            left &= left - 1;
        }
    }
    return false;
}

#endif
