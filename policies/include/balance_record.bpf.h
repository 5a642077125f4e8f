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

/*
 * The time up to now passes for a CPU with the weight that it has had. Others may do so at the same time: then some time may
 * count twice, or not at all, which fades like all that is past.
 */
static __always_inline struct pelt *cpu_load_until(u32 cpu, u64 now)
{
    struct pelt *load = &cpu_pelt[BOUNDED(cpu, MAX_CPUS)];

    pelt_pass(load, now, cpu_weight[BOUNDED(cpu, MAX_CPUS)]);
    return load;
}

/* A task becomes able to run on a CPU; before join_cpu. Its load follows it there. */
static __always_inline void load_joins(struct balance_record *r, u32 cpu, u32 weight)
{
    struct pelt *load, *old;
    u64 now, gone;

    if (rule_wake != WAKE_FAIR || nr_cpus == 1)
        return;
    now = pelt_now();
    load = cpu_load_until(cpu, now);
    if (!r->load_cpu) {
        r->load.sum = pelt_divider(now);
        r->load.at = now;
    } else {
        pelt_pass(&r->load, now, 0);
        if (r->load_cpu == cpu + 1 && r->weight == weight)
            return;
        old = cpu_load_until(r->load_cpu - 1, now);
        gone = r->load.sum * r->weight;
        old->sum -= gone < old->sum ? gone : old->sum;
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
}

/* task_h_load, as of when the task last began or ceased to be able to run. */
static __always_inline u64 load_of_task(const struct balance_record *r)
{
    return r->load.sum * r->weight / pelt_divider(r->load.at);
}

/* cpu_load */
static __always_inline u64 load_of_cpu(u32 cpu, u64 now)
{
    const struct pelt *load = cpu_load_until(cpu, now);

    return load->sum / pelt_divider(load->at);
}

#endif
