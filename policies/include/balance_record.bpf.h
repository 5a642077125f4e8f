/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the choice of a CPU by loads over time (balance_wake.bpf.h) knows of tasks and CPUs. A scheduler that has it defines
 * BALANCE_RECORDS, keeps a balance_record for each task, and gives it by balance_record_of(p). Before the include it says by
 * NEW_UTIL_BY_WEIGHT which rule a new task's utilization follows.
 *
 * In the kernel a task's utilization grows while it runs and fades while it waits. Here what it ran is spread evenly over the time
 * from when it became able to run until it ceases to be, or is moved: no call at each switch, the same average.
 */
#ifndef FAIRGROUND_BALANCE_RECORD_BPF_H
#define FAIRGROUND_BALANCE_RECORD_BPF_H

#include "balance_tunables.bpf.h"
#include "cpus.bpf.h"
#include "pelt.bpf.h"

#define BALANCE_RECORDS

extern u32 CONFIG_HZ __kconfig __weak;

/* What is kept for each task. */
struct balance_record {
    struct pelt pelt;
    u64 ran_ns;     /* sum_exec_runtime as of then */
    u64 flip_jiffy; /* when the flips were halved last */
    u32 weight;     /* with this weight the load is in that of the CPU */
    u32 load_cpu;   /* CPU + 1; 0: of none, it is new; LOAD_GONE: it has left one and joined no other yet */
    u32 last_wakee; /* pid */
    u32 wakee_flips;
    u32 recent_cpu; /* CPU + 1 where it was before the last one */
};

#define LOAD_GONE (MAX_CPUS + 1)

/* The sums of CPUs: of their tasks, those included that sleep there. */
struct pelt cpu_pelt[MAX_CPUS];
/* Those of tasks that slept on a CPU and woke up elsewhere: it takes them off when its own time passes (cfs_rq->removed). */
struct pelt cpu_removed[MAX_CPUS];

/* An idle CPU that was chosen for a task which is not in its queue yet: another CPU's wake-ups may take their time. */
bool cpu_claimed[MAX_CPUS];

/* available_idle_cpu: no task is there, and none is on its way there. */
static __always_inline bool is_free(u32 cpu)
{
    return !nr_running[BOUNDED(cpu, MAX_CPUS)] && !cpu_claimed[BOUNDED(cpu, MAX_CPUS)];
}

/* Takes from a sum what is in it of a part. */
static __always_inline void take_off(u64 *sum, u64 part)
{
    *sum -= part < *sum ? part : *sum;
}

/* What others have left of it is taken off a sum. */
static __always_inline void take_removed(u64 *sum, u64 *removed)
{
    u64 gone = READ_ONCE(*removed);

    __sync_fetch_and_sub(removed, gone);
    take_off(sum, gone);
}

/*
 * update_cfs_rq_load_avg: the time up to now passes for a CPU with the tasks that it has had: when a task joins or leaves it, and at its
 * ticks. Others may do so at the same time: then some time may count twice, or not at all, which fades like all that is past.
 */
static __always_inline struct pelt *cpu_pelt_until(u32 cpu, u64 now)
{
    struct pelt *sums = &cpu_pelt[BOUNDED(cpu, MAX_CPUS)], *removed = &cpu_removed[BOUNDED(cpu, MAX_CPUS)];
    u32 nr = nr_running[BOUNDED(cpu, MAX_CPUS)];
    struct pelt_span span;

    if (unlikely(READ_ONCE(removed->load))) {
        take_removed(&sums->load, &removed->load);
        take_removed(&sums->runnable, &removed->runnable);
        take_removed(&sums->util, &removed->util);
    }
    if ((s64)(now - sums->at) <= 0)
        return sums;
    span = pelt_span(sums->at, now);
    sums->load = pelt_after(sums->load, span, cpu_weight[BOUNDED(cpu, MAX_CPUS)]);
    sums->runnable = pelt_after(sums->runnable, span, nr);
    sums->util = pelt_after(sums->util, span, nr > 0);
    sums->at = now;
    return sums;
}

/* cpu_util_cfs, 0 ... 1024, as of the last time that something happened on the CPU. */
static __always_inline u64 util_of_cpu(u32 cpu)
{
    const struct pelt *sums = &cpu_pelt[BOUNDED(cpu, MAX_CPUS)];

    return sums->util * 1024 / pelt_divider(sums->at);
}

/* cpu_runnable, 1024 for each task that has long been able to run. */
static __always_inline u64 runnable_of_cpu(u32 cpu)
{
    const struct pelt *sums = &cpu_pelt[BOUNDED(cpu, MAX_CPUS)];

    return sums->runnable * 1024 / pelt_divider(sums->at);
}

/* LOAD_AVG_PERIOD: how long idle CPUs are left alone. */
#define IDLE_LOADS_MS 32

/* When the time shall pass for idle CPUs next (nohz.next_blocked), jiffies. */
u64 idle_loads_jiffy;

/*
 * _nohz_idle_balance(NOHZ_STATS_KICK): the time passes for all idle CPUs, so that what has gone to sleep there fades. Whoever goes idle, or
 * has a tick, does that for them, not before 32 ms after the last time.
 */
SEPARATE void idle_loads_fade(u64 jiffy)
{
    u64 now = pelt_now();
    u32 cpu;

    WRITE_ONCE(idle_loads_jiffy, jiffy + IDLE_LOADS_MS * (CONFIG_HZ ?: 1000) / 1000);
    for_range (cpu, nr_cpus) {
        if (!nr_running[BOUNDED(cpu, MAX_CPUS)])
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

/* Time passes for a task that was able to run all the while, or not at all, and ran for so many units of it, evenly spread. */
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
 * The sums of a new task (init_entity_runnable_average, post_init_entity_util_avg): its load is that of one that has long been able
 * to run; it is taken to run half of the time that its CPU has to spare, or, where that is less, as much as its weight has made others
 * run there (since 6.10; before, that was reckoned a thousand times too high).
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

/* The sums of a task that joins another CPU leave the one where it was: at once if it waited there, else see cpu_removed. */
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

/*
 * set_task_cpu of one that wakes up: its sums leave the CPU on which it slept when it is known where it goes, though it may be long until it is
 * in that CPU's queue.
 */
static __always_inline void load_departs(struct balance_record *r, u32 cpu)
{
    if (rule_wake != WAKE_FAIR || !r->load_cpu || r->load_cpu == LOAD_GONE || r->load_cpu == cpu + 1)
        return;
    load_goes(r, pelt_now());
    r->load_cpu = LOAD_GONE;
}

/* A task becomes able to run on a CPU; before join_cpu. Its sums follow it there. */
static __always_inline void load_joins(const struct task_struct *p, struct balance_record *r, u32 cpu, u32 weight)
{
    struct pelt *sums;
    u64 now;

    if (rule_wake != WAKE_FAIR || nr_cpus == 1)
        return;
    now = pelt_now();
    cpu_claimed[BOUNDED(cpu, MAX_CPUS)] = false;
    r->ran_ns = p->se.sum_exec_runtime;
    sums = cpu_pelt_until(cpu, now);
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

/* It is no longer able to run there; before leave_cpu. Its sums stay behind, and fade. */
static __always_inline void load_leaves(const struct task_struct *p, struct balance_record *r, u32 cpu)
{
    u64 now;

    if (rule_wake != WAKE_FAIR || nr_cpus == 1)
        return;
    now = pelt_now();
    cpu_pelt_until(cpu, now);
    task_pelt_until(&r->pelt, now, true, (p->se.sum_exec_runtime - r->ran_ns) >> PELT_UNIT_SHIFT);
}

/* task_h_load, as of when the task last began or ceased to be able to run. */
static __always_inline u64 load_of_task(const struct balance_record *r)
{
    return r->pelt.load * r->weight / pelt_divider(r->pelt.at);
}

/* task_h_load of one that waits for its CPU. */
static __always_inline u64 waiting_load(const struct balance_record *r)
{
    u64 now = pelt_now(), load = r->pelt.load;

    if ((s64)(now - r->pelt.at) > 0)
        load = pelt_after(load, pelt_span(r->pelt.at, now), 1);
    return load * r->weight / pelt_divider(now);
}

/* cpu_load: as of the last time that something happened on the CPU, or others let the time pass for it (idle_loads_fade). */
static __always_inline u64 load_of_cpu(u32 cpu)
{
    const struct pelt *sums = &cpu_pelt[BOUNDED(cpu, MAX_CPUS)];

    return sums->load / pelt_divider(sums->at);
}

#endif
