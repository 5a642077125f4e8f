/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The choice of a CPU: placement at wake-up and fork, and pulls by an idle CPU. Shared by the schedulers with one
 * queue per CPU.
 *
 * Every CPU has a dispatch queue with its own number as id. A summary bitmap marks the queues that hold waiting
 * tasks, so an idle CPU scans words, not CPUs. This is no load balancer: a CPU pulls only when it is idle.
 */
#ifndef FAIRGROUND_CPUS_BPF_H
#define FAIRGROUND_CPUS_BPF_H

#include "scx.bpf.h"

#define MAX_CPUS      1024
#define WAITING_WORDS (MAX_CPUS / 64)
/* Limits: the CPUs with waiting tasks that an idle CPU compares, and the other CPUs from which it tries to pull. */
#define PULL_CANDIDATES 16
#define PULL_TRIES      4

/* Bit c: the queue of CPU c holds tasks, as far as is known. Set at insertion, cleared when it is found empty. */
u64 waiting_cpus[WAITING_WORDS];
/* Tasks that can run, the running one included, per CPU. */
u32 nr_running[MAX_CPUS];
/* The sum of their balance weights. */
u64 cpu_weight[MAX_CPUS];
/* Bit c: CPU c has no runnable task; two or more. Hints: wrong only while two CPUs change one count. */
u64 idle_cpus[WAITING_WORDS];
u64 overloaded_cpus[WAITING_WORDS];
/* Possible CPUs of the kernel. */
u32 nr_cpus;
/* floor(log2(nr_cpus)) */
u32 nr_cpus_log2;
/* Set when a task has joined or left a CPU; a search for work, which reads eight of these as one word, resets it. */
u8 cpu_changed[MAX_CPUS] __attribute__((aligned(8)));

static __always_inline u32 this_cpu(void)
{
    return bpf_get_smp_processor_id() & (MAX_CPUS - 1);
}

static __always_inline u32 task_cpu(const struct task_struct *p)
{
    return (u32)scx_bpf_task_cpu(p) & (MAX_CPUS - 1);
}

static __always_inline void count_running(u32 cpu, s32 change)
{
    __sync_fetch_and_add(&nr_running[cpu & (MAX_CPUS - 1)], change);
}

static __always_inline void set_cpu_bit(u64 *words, u32 cpu)
{
    u64 *word = &words[BOUNDED(cpu, MAX_CPUS) / 64];

    if (!(READ_ONCE(*word) & 1ULL << (cpu & 63)))
        __sync_fetch_and_or(word, 1ULL << (cpu & 63));
}

static __always_inline void clear_cpu_bit(u64 *words, u32 cpu)
{
    u64 *word = &words[BOUNDED(cpu, MAX_CPUS) / 64];

    if (READ_ONCE(*word) & 1ULL << (cpu & 63))
        __sync_fetch_and_and(word, ~(1ULL << (cpu & 63)));
}

static __always_inline void say_changed(u32 cpu)
{
    u8 *changed = &cpu_changed[cpu & (MAX_CPUS - 1)];

    if (!READ_ONCE(*changed))
        WRITE_ONCE(*changed, 1);
}

/* A task of this weight becomes able to run on a CPU. */
static __always_inline void join_cpu(u32 cpu, u64 weight)
{
    u32 before = __sync_fetch_and_add(&nr_running[cpu & (MAX_CPUS - 1)], 1);

    __sync_fetch_and_add(&cpu_weight[cpu & (MAX_CPUS - 1)], weight);
    say_changed(cpu);
    if (before == 0)
        clear_cpu_bit(idle_cpus, cpu);
    else if (before == 1)
        set_cpu_bit(overloaded_cpus, cpu);
}

/*
 * A task of this weight is no longer counted on the CPU: it sleeps, exits, or was moved. The same weight as when it
 * joined.
 */
static __always_inline void leave_cpu(u32 cpu, u64 weight)
{
    u32 before = __sync_fetch_and_sub(&nr_running[cpu & (MAX_CPUS - 1)], 1);

    __sync_fetch_and_sub(&cpu_weight[cpu & (MAX_CPUS - 1)], weight);
    say_changed(cpu);
    if (before == 1)
        set_cpu_bit(idle_cpus, cpu);
    else if (before == 2)
        clear_cpu_bit(overloaded_cpus, cpu);
}

static __always_inline void mark_waiting(u32 cpu)
{
    u64 *word = &waiting_cpus[BOUNDED(cpu, MAX_CPUS) / 64];
    u64 bit = 1ULL << (cpu & 63);

    if (!(READ_ONCE(*word) & bit))
        __sync_fetch_and_or(word, bit);
}

/*
 * The queue of this CPU was found empty. A CPU that inserts a task at the same time sets the mark again, since it
 * does so after its insertion.
 */
static __always_inline void mark_empty(u32 cpu)
{
    u64 *word = &waiting_cpus[BOUNDED(cpu, MAX_CPUS) / 64];
    u64 bit = 1ULL << (cpu & 63);

    if (READ_ONCE(*word) & bit)
        __sync_fetch_and_and(word, ~bit);
}

/* A new task goes to an idle CPU, otherwise to the allowed CPU with the fewest tasks; the parent's CPU wins a tie. */
static __noinline s32 least_loaded_cpu(struct task_struct *p, s32 prev_cpu)
{
    const cpumask_t *allowed = p->cpus_ptr;
    u32 best = (u32)prev_cpu & (MAX_CPUS - 1), fewest = ~0u, i;

    if (bpf_cpumask_test_cpu(best, allowed))
        fewest = nr_running[best];
    for_range (i, nr_cpus) {
        u32 cpu = i & (MAX_CPUS - 1);

        if (!fewest)
            break;
        if (nr_running[cpu] < fewest && bpf_cpumask_test_cpu(cpu, allowed)) {
            fewest = nr_running[cpu];
            best = cpu;
        }
    }
    return (s32)best;
}

/*
 * The CPU for a task that wakes up: the one that it ran on if that is idle, otherwise an idle one near by, otherwise
 * the one that it ran on. Sets *is_idle when the CPU is idle and now reserved for the task.
 */
static __always_inline s32 select_cpu(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle)
{
    s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, is_idle);

    if (!*is_idle && (wake_flags & SCX_WAKE_FORK))
        return least_loaded_cpu(p, prev_cpu);
    return cpu;
}

/*
 * Candidates to pull from, found by one scan of the bitmap. In a map, not on the stack: the verifier tracks values on
 * the stack through every path of a loop.
 */
struct pull_list {
    u32 count;
    u32 longest; /* the CPU with the most tasks */
    u32 most;    /* their number */
    u32 cpus[PULL_CANDIDATES];
};

struct pull_list pull_lists[MAX_CPUS];

static __always_inline void add_candidate(struct pull_list *list, u32 cpu)
{
    u32 tasks = nr_running[cpu & (MAX_CPUS - 1)], slot = list->count;

    /* A single waiting task is about to run where it is. */
    if (tasks < 2)
        return;
    list->cpus[slot & (PULL_CANDIDATES - 1)] = cpu;
    list->count = slot + 1;
    if (tasks > list->most) {
        list->most = tasks;
        list->longest = cpu;
    }
}

/* Collects CPUs with waiting tasks, from this CPU's own word on, so that neighbours come first. */
static __always_inline void find_waiting(u32 cpu, struct pull_list *list)
{
    u32 i, j;

    list->count = 0;
    list->most = 0;
    for_range (i, WAITING_WORDS) {
        u32 word = (cpu / 64 + i) & (WAITING_WORDS - 1);
        u64 bits = READ_ONCE(waiting_cpus[word]);

        if (!bits)
            continue;
        for_range (j, PULL_CANDIDATES) {
            u32 found;

            if (!bits || list->count >= PULL_CANDIDATES)
                break;
            found = word * 64 + (u32)__builtin_ctzll(bits);
            bits &= bits - 1;
            if (found != cpu)
                add_candidate(list, found);
        }
    }
}

/*
 * Pulls one task for an idle CPU: from the longest queue, otherwise from others. Pinned tasks stay: the kernel moves
 * only tasks that may run here. Returns the CPU that lost a task, or -1.
 */
static __attribute__((unused)) __noinline s32 pull_task(u32 cpu)
{
    struct pull_list *list = &pull_lists[cpu & (MAX_CPUS - 1)];
    u32 longest, i;

    find_waiting(cpu, list);
    if (!list->count)
        return -1;
    longest = list->longest;
    if (scx_bpf_dsq_move_to_local(longest))
        return (s32)longest;
    for_range (i, PULL_TRIES) {
        u32 other = list->cpus[i & (PULL_CANDIDATES - 1)];

        if (i >= list->count)
            break;
        if (other != longest && scx_bpf_dsq_move_to_local(other))
            return (s32)other;
    }
    return -1;
}

/* Wakes an idle CPU that may run this waiting task, so that it pulls. */
static __always_inline void offer_to_idle_cpu(struct task_struct *p)
{
    s32 cpu;

    if (p->nr_cpus_allowed == 1)
        return;
    cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
    if (cpu >= 0)
        scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Queues per CPU; a scheduler that needs more defines it before its first include. */
#ifndef BALANCE_QUEUES
#define BALANCE_QUEUES 1
#endif

/* The id of a CPU's queue number `index`. Number 0 has the CPU's own number. */
static __always_inline u64 queue_id(u32 cpu, u32 index)
{
    return (cpu & (MAX_CPUS - 1)) | (u64)index * MAX_CPUS;
}

/* Makes the queues. Returns 0 or an error of the kernel. */
static __always_inline s32 create_cpu_queues(void)
{
    u32 cpu, index;
    s32 err = 0;

    nr_cpus = scx_bpf_nr_cpu_ids();
    if (nr_cpus > MAX_CPUS)
        nr_cpus = MAX_CPUS;
    nr_cpus_log2 = 31 - (u32)__builtin_clz(nr_cpus | 1);
    for_range (cpu, nr_cpus) {
        set_cpu_bit(idle_cpus, cpu);
        for_range (index, BALANCE_QUEUES) {
            err = scx_bpf_create_dsq(queue_id(cpu, index), -1);
            if (err)
                break;
        }
        if (err)
            break;
    }
    return err;
}

#endif
