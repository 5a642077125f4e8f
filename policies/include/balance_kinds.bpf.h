/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The busiest group, and the load or tasks to take, since Linux 5.5: groups are of kinds (group_classify,
 * update_sd_pick_busiest, calculate_imbalance of 6.1).
 *
 * A group has spare CPUs (fewer tasks than CPUs; or its CPUs were idle for more than a seventh of the time,
 * imbalance_pct, and its tasks were runnable for no more than 1.17 of its CPUs' time), is fully busy (as many tasks),
 * or overloaded (more). The busiest group is the one of the highest kind; of overloaded ones the one with the highest
 * load for its power, of others the one with the fewest idle CPUs. What is moved depends on the own group's kind:
 *     it has spare CPUs: tasks are counted. Half the difference of their numbers moves, from groups of single CPUs and
 *                        between cores; otherwise half the difference of idle CPUs; from another cache as many as this
 *                        one has idle CPUs.
 *     it is fully busy:  load is moved, min(max - avg, avg - this), as long as the own group is below the average.
 *     it is overloaded:  the same, if the busiest is imbalance_pct (117) above it.
 * A task is moved if its load, halved for each time that balancing has failed, is not more than what is left to move.
 *
 * Example, loads 3121 + 1024 on CPU 0 and 3121 + 1024 + 335 + 335 on CPU 1: 4815 is less than 1.17 * 4145: balanced,
 * although one task of nice 5 would make it even. This remains unfair: see docs/explanation/balancing.md.
 *
 * Not modelled: the utilization of tasks as what another cache gives; reduced, asymmetric and preferred capacities;
 * NUMA's allowed imbalance.
 */
#ifndef FAIRGROUND_BALANCE_KINDS_BPF_H
#define FAIRGROUND_BALANCE_KINDS_BPF_H

#include "balance_load.bpf.h"

enum group_kind { GROUP_HAS_SPARE, GROUP_FULLY_BUSY, GROUP_OVERLOADED };

/* group_classify, by the number of tasks. */
static __always_inline enum group_kind kind_of(u64 tasks, u32 cpus)
{
    return tasks < cpus ? GROUP_HAS_SPARE : tasks == cpus ? GROUP_FULLY_BUSY : GROUP_OVERLOADED;
}

/* Whether CPUs were hardly ever idle, or tasks had to wait there. */
static __always_inline bool is_filled(u64 util, u64 runnable, u32 cpus, u32 percent)
{
    u64 capacity = (u64)cpus * 1024;

    return util * percent > capacity * 100 || runnable * 100 > capacity * percent;
}

/* The same for a range of CPUs in cpu_order. */
static __always_inline bool is_utilized(u32 first, u32 end, u32 percent)
{
#ifdef BALANCE_RECORDS
    u64 util = 0, runnable = 0;
    u32 i;

    for_range (i, end - first) {
        util += util_of_cpu(cpu_at(first + i));
        runnable += runnable_of_cpu(cpu_at(first + i));
    }
    return is_filled(util, runnable, end - first, percent);
#else
    return true;
#endif
}

/* group_classify: a group with a task for each CPU, or more, that was idle for a part of the time is not full. */
static __always_inline enum group_kind kind_by_util(u64 tasks, u32 first, u32 end, u32 level)
{
    enum group_kind kind = kind_of(tasks, end - first);

    if (kind == GROUP_HAS_SPARE || is_utilized(first, end, params_of(level)->imbalance_pct))
        return kind;
    return GROUP_HAS_SPARE;
}

#ifdef BALANCE_RECORDS
/* For each cache, by its first index: the CPUs that a wake-up searches for an idle one, + 1; 0: not known yet. */
u16 idle_scan[MAX_CPUS];

/*
 * update_idle_cpu_scan: the busier a cache, the fewer CPUs a wake-up searches, none when 85 % of it is used (100 /
 * imbalance_pct). Updated at each search of a CPU that is not becoming idle.
 */
SEPARATE void update_idle_scan(u32 cpu, u32 level)
{
    const struct unit *span = unit_at(level + 1, place_of(cpu)), *cache = unit_at(DOMAIN_MC + 1, place_of(cpu));
    u64 percent = params_of(level)->imbalance_pct, cpus = span->end - span->first, used = 0, util = 0;
    u32 i;

    if (!cpus || span->first != cache->first || span->end != cache->end)
        return;
    for_range (i, cpus)
        util += util_of_cpu(cpu_at(span->first + i));
    util /= cpus;
    used = util * util * percent * percent / (10000 * 1024);
    idle_scan[BOUNDED(span->first, MAX_CPUS)] = (u16)((1024 - (used < 1024 ? used : 1024)) * cpus / 1024 + 1);
    if (trace_balance)
        bpf_printk("balance idle-scan: cpu %d level %d util %d scan %d", cpu, level, (u32)util,
                   idle_scan[BOUNDED(span->first, MAX_CPUS)]);
}
#endif

/* update_sd_pick_busiest: whether the present group is busier than the busiest so far. */
static __always_inline bool is_busier(const struct group_scan *s, u64 load, u32 cpus)
{
    u32 busiest_cpus = s->busiest_end - s->busiest_first;
    enum group_kind kind = kind_of(s->sum_nr, cpus), busiest = kind_of(s->busiest_nr, busiest_cpus);

    if (!s->sum_nr)
        return false;
    if (!s->found || kind != busiest)
        return !s->found || kind > busiest;
    if (kind == GROUP_OVERLOADED)
        return load > s->max_load;
    if (kind == GROUP_FULLY_BUSY || s->sum_idle > s->busiest_idle)
        return false;
    return s->sum_idle < s->busiest_idle || s->sum_nr > s->busiest_nr;
}

/* calculate_imbalance where the own group has spare CPUs: a number of tasks. */
static __always_inline u64 spare_imbalance(const struct group_scan *s, u32 level, enum group_kind busiest,
                                           bool spreads)
{
    s64 more;

    if (busiest == GROUP_OVERLOADED && level > DOMAIN_MC)
        return s->this_idle ?: 1;
    if (spreads || s->busiest_end - s->busiest_first == 1)
        more = (s64)s->busiest_nr - (s64)s->this_nr;
    else
        more = (s64)s->this_idle - (s64)s->busiest_idle;
    return more > 0 ? (u64)more / 2 : 0;
}

/* find_busiest_group of 6.1, from the sums. Sets avg_load, imbalance and by_tasks. */
SEPARATE u32 weigh_kinds(u32 cpu, u32 level, u32 idle)
{
    struct group_scan *s = &balance_of(cpu)->scan;
    const struct unit *own = unit_at(level, place_of(cpu));
    u32 own_cpus = own->end - own->first, busiest_cpus = s->busiest_end - s->busiest_first;
    enum group_kind this = kind_by_util(s->this_nr, own->first, own->end, level);
    enum group_kind busiest = kind_of(s->busiest_nr, busiest_cpus);
    /* SD_PREFER_SIBLING: a group of cores, or of threads, does not fill up before the others have as many tasks. */
    bool spreads = own_cpus > 1;
    u64 off, onto;

    if (!s->found || !s->busiest_nr)
        return NO_BUSIEST;
    /* An idle CPU takes what waits on another one. */
    if (this != GROUP_HAS_SPARE || s->this_nr || busiest_cpus > 1)
        busiest = kind_by_util(s->busiest_nr, s->busiest_first, s->busiest_end, level);
    s->avg_load = BALANCE_SCALE * s->total_load / (s->total_power ?: 1);
    if (this > busiest)
        return NOT_BUSIER;
    if (this == GROUP_OVERLOADED && 100 * s->max_load <= params_of(level)->imbalance_pct * s->this_load)
        return NOT_BUSIER;
    if (busiest != GROUP_OVERLOADED && !(spreads && this == GROUP_HAS_SPARE && s->busiest_nr > s->this_nr + 1)) {
        if (idle == NOT_IDLE || s->busiest_nr == 1)
            return NOT_BUSIER;
        if (busiest_cpus > 1 && s->this_idle <= s->busiest_idle + 1)
            return NOT_BUSIER;
    }
    if (this == GROUP_HAS_SPARE) {
        s->by_tasks = true;
        s->imbalance = spare_imbalance(s, level, busiest, spreads);
        return s->imbalance ? SPARE : NOT_BUSIER;
    }
    if (s->this_load >= s->max_load || s->this_load >= s->avg_load)
        return NOT_BUSIER;
    onto = (s->avg_load - s->this_load) * s->this_power;
    off = s->max_load > s->avg_load ? (s->max_load - s->avg_load) * s->busiest_power : onto;
    s->imbalance = (off < onto ? off : onto) / BALANCE_SCALE;
    return s->imbalance ? NORMAL : NOT_BUSIER;
}

#endif
