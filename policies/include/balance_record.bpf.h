/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loads over time of tasks and CPUs, for the choice of a CPU (balance_wake.bpf.h). A scheduler that keeps them
 * defines BALANCE_RECORDS, keeps a balance_record for each task, and returns it by balance_record_of(p). Before the
 * include it defines NEW_UTIL_BY_WEIGHT, the rule for a new task's utilization.
 *
 * In the kernel a task's utilization grows while it runs and decays while it waits. Here its run time is spread
 * evenly over the time from when it becomes runnable until it stops being so, or is moved: no call at each switch,
 * the same average.
 *
 * Example: a task of nice 0 is runnable for 10 ms and runs for 4 of them: it counts as 10 ms of load and 4 ms of
 * utilization.
 */
#ifndef FAIRGROUND_BALANCE_RECORD_BPF_H
#define FAIRGROUND_BALANCE_RECORD_BPF_H

#include "balance_tunables.bpf.h"
#include "cpus.bpf.h"
#include "pelt.bpf.h"

#define BALANCE_RECORDS

extern u32 CONFIG_HZ __kconfig __weak;

/* Per-task record. */
struct balance_record {
    struct pelt pelt;
    u64 ran_ns;     /* sum_exec_runtime at that time */
    u64 flip_jiffy; /* when the flips were halved last */
    u32 weight;     /* the weight of its load in the CPU's sum */
    u32 load_cpu;   /* CPU + 1; 0: none, it is new; LOAD_GONE: it left one and has joined no other */
    u32 lingers;    /* it sleeps, and counts as load of its CPU (a delayed entity) */
    u32 last_wakee; /* pid */
    u32 wakee_flips;
    u32 recent_cpu; /* CPU + 1 before the last one */
};

#define LOAD_GONE (MAX_CPUS + 1)

/* The sums of CPUs: over their tasks, including those that sleep there. */
struct pelt cpu_pelt[MAX_CPUS];
/*
 * The sums of tasks that slept on a CPU and woke up elsewhere: the CPU subtracts them at its next update
 * (cfs_rq->removed).
 */
struct pelt cpu_removed[MAX_CPUS];
/* The weight of the tasks that sleep on a CPU and still count as its load (load_lingers). */
u64 cpu_lingering[MAX_CPUS];

/* Since when a CPU is idle, ns; 0: it is not, or its end has been noted. The average of such periods (rq->avg_idle). */
u64 idle_since_ns[MAX_CPUS], average_idle_ns[MAX_CPUS];

/* update_rq_avg_idle: a task joins the CPU, which may have been idle. */
static __always_inline void note_idle_end(u32 cpu)
{
    u64 *since_ns = &idle_since_ns[BOUNDED(cpu, MAX_CPUS)], *average_ns = &average_idle_ns[BOUNDED(cpu, MAX_CPUS)];

    if (!*since_ns)
        return;
    *average_ns += (u64)((s64)(scx_bpf_now() - *since_ns - *average_ns) >> 3);
    *since_ns = 0;
}

/* An idle CPU that was chosen for a task that is not in its queue yet: wake-ups from another CPU may take time. */
bool cpu_claimed[MAX_CPUS];

/* available_idle_cpu: it has no task, and none is about to be queued there. */
static __always_inline bool is_free(u32 cpu)
{
    return !cpu_tasks[BOUNDED(cpu, MAX_CPUS)].nr && !cpu_claimed[BOUNDED(cpu, MAX_CPUS)];
}

/* Subtracts a part from a sum, as far as the sum contains it. */
static __always_inline void take_off(u64 *sum, u64 part)
{
    *sum -= part < *sum ? part : *sum;
}

/* Subtracts the sums of tasks that have left. */
static __always_inline void take_removed(u64 *sum, u64 *removed)
{
    u64 gone = READ_ONCE(*removed);

    __sync_fetch_and_sub(removed, gone);
    take_off(sum, gone);
}

/*
 * update_cfs_rq_load_avg: updates a CPU's sums to the present time, when a task joins or leaves it, and at its ticks.
 * Two CPUs may do so at the same time: then some time counts twice, or not at all, which decays like everything else.
 */
static __always_inline struct pelt *cpu_pelt_until(u32 cpu, u64 now)
{
    struct pelt *sums = &cpu_pelt[BOUNDED(cpu, MAX_CPUS)], *removed = &cpu_removed[BOUNDED(cpu, MAX_CPUS)];
    u32 nr = cpu_tasks[BOUNDED(cpu, MAX_CPUS)].nr;
    struct pelt_span span;

    if (unlikely(READ_ONCE(removed->load))) {
        take_removed(&sums->load, &removed->load);
        take_removed(&sums->runnable, &removed->runnable);
        take_removed(&sums->util, &removed->util);
    }
    if ((s64)(now - sums->at) <= 0)
        return sums;
    span = pelt_span(sums->at, now);
    sums->load =
        pelt_after(sums->load, span,
                   cpu_tasks[BOUNDED(cpu, MAX_CPUS)].weight + READ_ONCE(cpu_lingering[BOUNDED(cpu, MAX_CPUS)]));
    sums->runnable = pelt_after(sums->runnable, span, nr);
    sums->util = pelt_after(sums->util, span, nr > 0);
    sums->at = now;
    return sums;
}

/* cpu_util_cfs, 0 ... 1024, as of the CPU's last update. */
static __always_inline u64 util_of_cpu(u32 cpu)
{
    const struct pelt *sums = &cpu_pelt[BOUNDED(cpu, MAX_CPUS)];

    return sums->util * 1024 / pelt_divider(sums->at);
}

/* cpu_runnable, 1024 for each task that has been runnable for long. */
static __always_inline u64 runnable_of_cpu(u32 cpu)
{
    const struct pelt *sums = &cpu_pelt[BOUNDED(cpu, MAX_CPUS)];

    return sums->runnable * 1024 / pelt_divider(sums->at);
}

/* LOAD_AVG_PERIOD: the interval of updates of idle CPUs. */
#define IDLE_LOADS_MS 32

/* The next update of idle CPUs (nohz.next_blocked), jiffies. */
u64 idle_loads_jiffy;

/*
 * _nohz_idle_balance(NOHZ_STATS_KICK): updates all idle CPUs, so that the loads of tasks that went to sleep there
 * decay. A CPU that becomes idle, or has a tick, does that for them, 32 ms after the last time at the earliest.
 */
SEPARATE void idle_loads_fade(u64 jiffy)
{
    u64 now = pelt_now();
    u32 cpu;

    WRITE_ONCE(idle_loads_jiffy, jiffy + IDLE_LOADS_MS * (CONFIG_HZ ?: 1000) / 1000);
    for_range (cpu, nr_cpus) {
        if (!cpu_tasks[BOUNDED(cpu, MAX_CPUS)].nr)
            cpu_pelt_until(cpu, now);
    }
}

/* The same when it is due, and a CPU's tick so many jiffies later. */
static __always_inline void idle_loads_due(u32 later)
{
    u64 jiffy = bpf_jiffies64();

    if ((s64)(jiffy - READ_ONCE(idle_loads_jiffy)) >= later)
        idle_loads_fade(jiffy);
}

/* At the ticks of a CPU. */
static __always_inline void load_ticks(u32 cpu)
{
    if (rule_wake != WAKE_FAIR || nr_cpus == 1)
        return;
    cpu_pelt_until(cpu, pelt_now());
    idle_loads_due(1);
}

/* When a CPU goes idle. */
static __always_inline void load_rests(void)
{
    if (rule_wake == WAKE_FAIR)
        idle_loads_due(0);
}

/* Updates a task that was runnable all the time, or not at all, and ran for `ran` units of it, evenly spread. */
static __always_inline void task_pelt_until(struct pelt *sums, u64 now, bool able, u64 ran)
{
    u64 passed = now - sums->at;
    struct pelt_span span;

    if ((s64)passed <= 0)
        return;
    span = pelt_span(sums->at, now);
    sums->load = pelt_after(sums->load, span, able);
    sums->runnable = pelt_after(sums->runnable, span, able);
    sums->util = pelt_after(sums->util, span, 0);
    if (ran)
        sums->util += ran < passed ? span.units * ran / passed : span.units;
    sums->at = now;
}

/*
 * The sums of a new task (init_entity_runnable_average, post_init_entity_util_avg): the load of a task that has been
 * runnable for long; the utilization of half of its CPU's spare time, or, if that is less, of the other tasks there
 * in proportion to its weight (since 6.10; before, this was computed a thousand times too high).
 */
static __always_inline void pelt_of_new(struct pelt *sums, const struct pelt *cpu, u32 weight, u64 now)
{
    u64 whole = pelt_divider(now), spare = cpu->util < whole ? (whole - cpu->util) / 2 : 0, usual;

    sums->load = whole;
    sums->at = now;
    sums->util = spare;
    if (NEW_UTIL_BY_WEIGHT && cpu->util) {
        usual = cpu->util * weight / (cpu->load / whole + 1);
        sums->util = usual < spare ? usual : spare;
    }
    sums->runnable = sums->util;
}

/*
 * The sums of a task that joins another CPU leave its old one: at once if it waited there, otherwise see cpu_removed.
 */
static __always_inline void load_goes(const struct balance_record *r, u64 now)
{
    u32 cpu = BOUNDED(r->load_cpu - 1, MAX_CPUS);
    struct pelt *sums = &cpu_pelt[cpu], *removed = &cpu_removed[cpu], left = r->pelt;

    if (left.at == now) {
        sums = cpu_pelt_until(cpu, now);
        take_off(&sums->load, left.load * r->weight);
        take_off(&sums->runnable, left.runnable);
        take_off(&sums->util, left.util);
        return;
    }
    task_pelt_until(&left, sums->at, false, 0);
    __sync_fetch_and_add(&removed->runnable, left.runnable);
    __sync_fetch_and_add(&removed->util, left.util);
    __sync_fetch_and_add(&removed->load, left.load * r->weight);
}

/* A task that lingered no longer does: it is dequeued, or wakes up. Its CPU's sums are up to date. */
static __always_inline void linger_ends(struct balance_record *r, u64 now)
{
    u64 passed = now - r->pelt.at, load = r->pelt.load;

    if (!r->lingers)
        return;
    r->lingers = 0;
    __sync_fetch_and_sub(&cpu_lingering[BOUNDED(r->load_cpu - 1, MAX_CPUS)], r->weight);
    if ((s64)passed > 0)
        load = pelt_after(load, pelt_span(r->pelt.at, now), 1);
    task_pelt_until(&r->pelt, now, false, 0);
    r->pelt.load = load;
}

/*
 * A task sleeps and stays queued (sched_delayed): until load_lingered() it counts as load, but neither as runnable nor
 * as running (se_runnable, update_load_avg of a delayed entity). After load_leaves() and leave_cpu().
 */
static __always_inline void load_lingers(struct balance_record *r)
{
    if (rule_wake != WAKE_FAIR || nr_cpus == 1 || !r->load_cpu || r->load_cpu == LOAD_GONE || r->lingers)
        return;
    r->lingers = 1;
    __sync_fetch_and_add(&cpu_lingering[BOUNDED(r->load_cpu - 1, MAX_CPUS)], r->weight);
}

/* It is dequeued. */
static __noinline void load_lingered(struct balance_record *r)
{
    u64 now = pelt_now();

    if (!r || !r->lingers)
        return;
    cpu_pelt_until(r->load_cpu - 1, now);
    linger_ends(r, now);
}

/*
 * set_task_cpu of a waking task: its sums leave the CPU on which it slept when its new CPU is known, although it may
 * be queued there much later.
 */
static __always_inline void load_departs(struct balance_record *r, u32 cpu)
{
    if (rule_wake != WAKE_FAIR || !r->load_cpu || r->load_cpu == LOAD_GONE || r->load_cpu == cpu + 1)
        return;
    if (unlikely(r->lingers))
        load_lingered(r);
    load_goes(r, pelt_now());
    r->load_cpu = LOAD_GONE;
}

/* The sums of a task that becomes runnable move with it. Not inline, so that other code has the registers. */
static __noinline void sums_join(const struct task_struct *p, struct balance_record *r, u32 cpu, u32 weight)
{
    struct pelt *sums;
    u64 now = pelt_now();

    cpu_claimed[BOUNDED(cpu, MAX_CPUS)] = false;
    note_idle_end(cpu);
    r->ran_ns = p->se.sum_exec_runtime;
    sums = cpu_pelt_until(cpu, now);
    if (unlikely(r->lingers)) {
        if (r->load_cpu != cpu + 1)
            cpu_pelt_until(r->load_cpu - 1, now);
        linger_ends(r, now);
    }
    if (!r->load_cpu) {
        pelt_of_new(&r->pelt, sums, weight, now);
    } else {
        if (r->load_cpu != cpu + 1 && r->load_cpu != LOAD_GONE)
            load_goes(r, now);
        task_pelt_until(&r->pelt, now, false, 0);
        if (r->load_cpu == cpu + 1) {
            if (r->weight != weight) {
                take_off(&sums->load, r->pelt.load * r->weight);
                sums->load += r->pelt.load * weight;
                r->weight = weight;
            }
            return;
        }
    }
    sums->load += r->pelt.load * weight;
    sums->runnable += r->pelt.runnable;
    sums->util += r->pelt.util;
    r->load_cpu = cpu + 1;
    r->weight = weight;
}

/* A task becomes runnable on a CPU; before join_cpu. */
static __always_inline void load_joins(const struct task_struct *p, struct balance_record *r, u32 cpu, u32 weight)
{
    if (rule_wake == WAKE_FAIR && READ_ONCE(nr_cpus) != 1)
        sums_join(p, r, cpu, weight);
}

/* The sums of a task that is no longer runnable stay, and decay. */
static __noinline void sums_leave(const struct task_struct *p, struct balance_record *r, u32 cpu)
{
    u64 now = pelt_now();

    cpu_pelt_until(cpu, now);
    task_pelt_until(&r->pelt, now, true, (p->se.sum_exec_runtime - r->ran_ns) >> PELT_UNIT_SHIFT);
    if (unlikely(p->__state & TASK_DEAD)) {
        /* task_dead_fair: nothing of it stays behind. */
        __sync_fetch_and_add(&cpu_removed[BOUNDED(cpu, MAX_CPUS)].runnable, r->pelt.runnable);
        __sync_fetch_and_add(&cpu_removed[BOUNDED(cpu, MAX_CPUS)].util, r->pelt.util);
        __sync_fetch_and_add(&cpu_removed[BOUNDED(cpu, MAX_CPUS)].load, r->pelt.load * r->weight);
        r->load_cpu = LOAD_GONE;
    }
}

/* It is no longer runnable there; before leave_cpu. */
static __always_inline void load_leaves(const struct task_struct *p, struct balance_record *r, u32 cpu)
{
    if (rule_wake == WAKE_FAIR && READ_ONCE(nr_cpus) != 1)
        sums_leave(p, r, cpu);
}

/* task_h_load, as of when the task last became runnable or stopped being so. */
static __always_inline u64 load_of_task(const struct balance_record *r)
{
    return r->pelt.load * r->weight / pelt_divider(r->pelt.at);
}

/* task_h_load of a task that waits for its CPU. */
static __always_inline u64 waiting_load(const struct balance_record *r)
{
    u64 now = pelt_now(), load = r->pelt.load;

    if ((s64)(now - r->pelt.at) > 0)
        load = pelt_after(load, pelt_span(r->pelt.at, now), 1);
    return load * r->weight / pelt_divider(now);
}

/* cpu_load: as of the CPU's last update, by itself or by another (idle_loads_fade). */
static __always_inline u64 load_of_cpu(u32 cpu)
{
    const struct pelt *sums = &cpu_pelt[BOUNDED(cpu, MAX_CPUS)];

    return sums->load / pelt_divider(sums->at);
}

#endif
