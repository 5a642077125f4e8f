/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the choice of a CPU by loads over time (balance_wake.bpf.h) knows of tasks and CPUs. A scheduler that has it defines
 * BALANCE_RECORDS, keeps a balance_record for each task, and gives it by balance_record_of(p).
 */
#ifndef FAIRGROUND_BALANCE_RECORD_BPF_H
#define FAIRGROUND_BALANCE_RECORD_BPF_H

#include "balance_tunables.bpf.h"
#include "cpus.bpf.h"
#include "pelt.bpf.h"

#define BALANCE_RECORDS

/* What is kept for each task. */
struct balance_record {
    struct pelt load; /* in units: the part of the time in which it was able to run */
    u64 flip_jiffy;   /* when the flips were halved last */
    u32 weight;       /* with this weight the load is in that of the CPU */
    u32 load_cpu;     /* CPU + 1; 0: of none, it is new */
    u32 last_wakee;   /* pid */
    u32 wakee_flips;
    u32 recent_cpu; /* CPU + 1 where it was before the last one */
};

/* Sums of weight * units. */
struct pelt cpu_pelt[MAX_CPUS];
/* Loads of tasks that slept on a CPU and woke up elsewhere: it takes them off when its own time passes (cfs_rq->removed). */
u64 cpu_removed[MAX_CPUS];

/*
 * update_cfs_rq_load_avg: the time up to now passes for a CPU with the weight that it has had: when a task joins or leaves it, and at its
 * ticks. Others may do so at the same time: then some time may count twice, or not at all, which fades like all that is past.
 */
static __always_inline struct pelt *cpu_load_until(u32 cpu, u64 now)
{
    struct pelt *load = &cpu_pelt[BOUNDED(cpu, MAX_CPUS)];
    u64 *removed = &cpu_removed[BOUNDED(cpu, MAX_CPUS)], gone = READ_ONCE(*removed);

    if (unlikely(gone)) {
        __sync_fetch_and_sub(removed, gone);
        load->sum -= gone < load->sum ? gone : load->sum;
    }
    pelt_pass(load, now, cpu_weight[BOUNDED(cpu, MAX_CPUS)]);
    return load;
}

/* The part of the time in which a CPU had tasks, in units. */
struct pelt cpu_busy[MAX_CPUS];

/* A CPU gets its first task, or loses its last one: until now it was idle, or busy. */
static __always_inline void busy_until(u32 cpu, u64 now, bool busy)
{
    pelt_pass(&cpu_busy[BOUNDED(cpu, MAX_CPUS)], now, busy);
}

/* cpu_util_cfs, 0 ... 1024. In the kernel the utilization of a task goes along with it; here it fades where it was. */
static __always_inline u64 util_of_cpu(u32 cpu)
{
    struct pelt busy = cpu_busy[BOUNDED(cpu, MAX_CPUS)];

    pelt_pass(&busy, pelt_now(), nr_running[BOUNDED(cpu, MAX_CPUS)] > 0);
    return busy.sum * 1024 / pelt_divider(busy.at);
}

/* At the ticks of a CPU. */
static __always_inline void load_ticks(u32 cpu)
{
    if (rule_wake == WAKE_FAIR && nr_cpus > 1)
        cpu_load_until(cpu, pelt_now());
}

/* The load of a task that joins another CPU leaves the one where it was: at once if it waited there, else see cpu_removed. */
static __always_inline void load_goes(struct balance_record *r, u64 now)
{
    u32 cpu = BOUNDED(r->load_cpu - 1, MAX_CPUS);
    struct pelt *load = &cpu_pelt[cpu], left = r->load;
    u64 gone;

    if (left.at == now) {
        load = cpu_load_until(cpu, now);
        gone = left.sum * r->weight;
        load->sum -= gone < load->sum ? gone : load->sum;
        return;
    }
    pelt_pass(&left, load->at, 0);
    __sync_fetch_and_add(&cpu_removed[cpu], left.sum * r->weight);
}

/* A task becomes able to run on a CPU; before join_cpu. Its load follows it there. */
static __always_inline void load_joins(struct balance_record *r, u32 cpu, u32 weight)
{
    struct pelt *load;
    u64 now;

    if (rule_wake != WAKE_FAIR || nr_cpus == 1)
        return;
    now = pelt_now();
    load = cpu_load_until(cpu, now);
    if (!nr_running[BOUNDED(cpu, MAX_CPUS)])
        busy_until(cpu, now, false);
    if (!r->load_cpu) {
        r->load.sum = pelt_divider(now);
        r->load.at = now;
    } else {
        if (r->load_cpu != cpu + 1)
            load_goes(r, now);
        pelt_pass(&r->load, now, 0);
        if (r->load_cpu == cpu + 1) {
            u64 gone = r->load.sum * r->weight;

            if (r->weight == weight)
                return;
            load->sum -= gone < load->sum ? gone : load->sum;
        }
    }
    load->sum += r->load.sum * weight;
    r->load_cpu = cpu + 1;
    r->weight = weight;
}

/* It is no longer able to run there; before leave_cpu. Its load stays behind, and fades. */
static __always_inline void load_leaves(struct balance_record *r, u32 cpu)
{
    u64 now;

    if (rule_wake != WAKE_FAIR || nr_cpus == 1)
        return;
    now = pelt_now();
    pelt_pass(&r->load, now, 1);
    cpu_load_until(cpu, now);
    if (nr_running[BOUNDED(cpu, MAX_CPUS)] == 1)
        busy_until(cpu, now, true);
}

/* task_h_load, as of when the task last began or ceased to be able to run. */
static __always_inline u64 load_of_task(const struct balance_record *r)
{
    return r->load.sum * r->weight / pelt_divider(r->load.at);
}

/* task_h_load of one that waits for its CPU. */
static __always_inline u64 waiting_load(const struct balance_record *r)
{
    struct pelt load = r->load;

    pelt_pass(&load, pelt_now(), 1);
    return load.sum * r->weight / pelt_divider(load.at);
}

/* cpu_load: as of the last time that something happened on the CPU. One that is idle does not see what is asleep there fade. */
static __always_inline u64 load_of_cpu(u32 cpu)
{
    const struct pelt *load = &cpu_pelt[BOUNDED(cpu, MAX_CPUS)];

    return load->sum / pelt_divider(load->at);
}

#endif
