/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tasks of each CPU, counted, and the choice of a CPU at wake-up and fork. Shared by the schedulers with queues
 * per CPU.
 *
 * Every CPU has a dispatch queue with its own number as id.
 */
#ifndef FAIRGROUND_CPUS_BPF_H
#define FAIRGROUND_CPUS_BPF_H

#include "scx.bpf.h"

#define MAX_CPUS      1024
#define WAITING_WORDS (MAX_CPUS / 64)

/* The tasks of a CPU that can run, the running one included. */
struct cpu_tasks {
    u64 weight;       /* the sum of their balance weights */
    u32 nr;           /* how many they are */
    u32 balance_call; /* see BALANCE_CALL */
};

struct cpu_tasks cpu_tasks[MAX_CPUS];
/* Bit c: CPU c has no runnable task. A hint: wrong only while two CPUs change one count. */
u64 idle_cpus[WAITING_WORDS];
/* Bit c: CPU c has had two runnable tasks since any_cpu_overloaded() looked. */
u64 overloaded_cpus[WAITING_WORDS];
/* Bit c: CPU c is offline, or about to be. */
u64 offline_cpus[WAITING_WORDS];
/* A CPU has gone offline since the scheduler was attached. */
bool some_left;
/* Possible CPUs of the kernel. */
u32 nr_cpus;
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

static __always_inline struct cpu_tasks *tasks_of(u32 cpu)
{
    return &cpu_tasks[cpu & (MAX_CPUS - 1)];
}

static __always_inline u32 nr_running(u32 cpu)
{
    return tasks_of(cpu)->nr;
}

static __always_inline u64 cpu_weight(u32 cpu)
{
    return tasks_of(cpu)->weight;
}

/* The word of such a set that has the CPU's bit. */
static __always_inline u64 *cpu_word(u64 *words, u32 cpu)
{
    return &words[BOUNDED(cpu, MAX_CPUS) / 64];
}

static __always_inline void set_cpu_bit(u64 *words, u32 cpu)
{
    __sync_fetch_and_or(cpu_word(words, cpu), 1ULL << (cpu & 63));
}

static __always_inline void clear_cpu_bit(u64 *words, u32 cpu)
{
    __sync_fetch_and_and(cpu_word(words, cpu), ~(1ULL << (cpu & 63)));
}

/* Where it is mostly set: CPUs share the word, so it is not written without need. */
static __always_inline void ensure_cpu_bit(u64 *words, u32 cpu)
{
    u64 *word = cpu_word(words, cpu), bit = 1ULL << (cpu & 63);

    if (unlikely(!(READ_ONCE(*word) & bit)))
        __sync_fetch_and_or(word, bit);
}

static __always_inline bool is_offline(u32 cpu)
{
    return READ_ONCE(*cpu_word(offline_cpus, cpu)) & 1ULL << (cpu & 63);
}

/*
 * Whether this CPU has no interrupts any more, so that it may not kick others and start timers. The kernel does both in
 * an irq_work of the calling CPU. The last thing that a CPU does before it is dead is to wake the task that takes it
 * offline, with its interrupts off: an irq_work of that moment stays in the CPU's list for ever. When the CPU is back, no
 * later one raises an interrupt, since the list is not empty: every kick of that CPU is lost, and to detach there never
 * ends.
 */
SEPARATE bool is_dying(void)
{
    const cpumask_t *online;
    u32 cpu = this_cpu();
    bool dying;

    if (!is_offline(cpu))
        return false;
    online = scx_bpf_get_online_cpumask();
    dying = !bpf_cpumask_test_cpu(cpu, online);
    scx_bpf_put_cpumask(online);
    return dying;
}

static __always_inline bool has_interrupts(void)
{
    return likely(!some_left) || !is_dying();
}

/* Asks a CPU to schedule. What a dying CPU asks for waits for the other CPU's next tick. */
static __always_inline void kick(u32 cpu, u64 flags)
{
    if (has_interrupts())
        scx_bpf_kick_cpu((s32)cpu, flags);
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
    struct cpu_tasks *tasks = tasks_of(cpu);
    u32 before = __sync_fetch_and_add(&tasks->nr, 1);

    __sync_fetch_and_add(&tasks->weight, weight);
    say_changed(cpu);
    if (before == 0)
        clear_cpu_bit(idle_cpus, cpu);
    else if (before == 1)
        ensure_cpu_bit(overloaded_cpus, cpu);
}

/*
 * A task of this weight is no longer counted on the CPU: it sleeps, exits, or was moved. The same weight as when it
 * joined.
 */
static __always_inline void leave_cpu(u32 cpu, u64 weight)
{
    struct cpu_tasks *tasks = tasks_of(cpu);
    u32 before = __sync_fetch_and_sub(&tasks->nr, 1);

    __sync_fetch_and_sub(&tasks->weight, weight);
    say_changed(cpu);
    if (unlikely(before == 1))
        set_cpu_bit(idle_cpus, cpu);
}

/* A new task goes to an idle CPU, otherwise to the allowed CPU with the fewest tasks; the parent's CPU wins a tie. */
static __noinline s32 least_loaded_cpu(struct task_struct *p, s32 prev_cpu)
{
    const cpumask_t *allowed = p->cpus_ptr;
    u32 best = (u32)prev_cpu & (MAX_CPUS - 1), fewest = ~0u, i;

    if (bpf_cpumask_test_cpu(best, allowed))
        fewest = cpu_tasks[best].nr;
    for_range (i, nr_cpus) {
        u32 cpu = i & (MAX_CPUS - 1);

        if (!fewest)
            break;
        if (cpu_tasks[cpu].nr < fewest && bpf_cpumask_test_cpu(cpu, allowed)) {
            fewest = cpu_tasks[cpu].nr;
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

/* Wakes an idle CPU that may run this waiting task, so that it pulls. */
static __always_inline void offer_to_idle_cpu(struct task_struct *p)
{
    s32 cpu;

    if (p->nr_cpus_allowed == 1)
        return;
    cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
    if (cpu >= 0)
        kick((u32)cpu, SCX_KICK_IDLE);
}

/*
 * Queues per CPU, and the distance of their ids; a scheduler that needs more defines it before its first include.
 */
#ifndef BALANCE_QUEUES
#define BALANCE_QUEUES 1
#endif
#ifndef BALANCE_STRIDE
#define BALANCE_STRIDE MAX_CPUS
#endif

/* The id of a CPU's queue number `index`. Number 0 has the CPU's own number. */
static __always_inline u64 queue_id(u32 cpu, u32 index)
{
    return (cpu & (MAX_CPUS - 1)) | (u64)index * BALANCE_STRIDE;
}

/* Makes the queues. Returns 0 or an error of the kernel. */
static __always_inline s32 create_cpu_queues(void)
{
    u32 cpu, index;
    s32 err = 0;

    nr_cpus = scx_bpf_nr_cpu_ids();
    if (nr_cpus > MAX_CPUS)
        nr_cpus = MAX_CPUS;
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
