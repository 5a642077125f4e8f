/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The CPU of a new task, since Linux 5.5: find_idlest_cpu of 6.1 and 7.2 (find_idlest_group, update_pick_idlest,
 * find_idlest_group_cpu).
 *
 * From the largest domain down, the idlest of the groups other than the parent's is compared with the parent's. The
 * idlest is the one of the lowest kind (balance_kinds.bpf.h); of groups with spare CPUs the one with the most idle
 * CPUs, then the one with the lowest utilization; of busy groups the one with the lowest load. If it is of a lower
 * kind than the parent's own group, the task goes there; if of a higher kind, it stays. Of the same kind:
 *     both have spare CPUs: it goes where more CPUs are idle;
 *     both are busy:        it goes if the own load is more than imbalance_pct (117) of the other's. So of two busy
 *                           CPUs that are nearly even the parent's keeps the child.
 * In that group: an idle CPU, otherwise the one with the lowest load.
 *
 * Example, two busy CPUs, loads 2600 on CPU 0, where the parent is, and 2300: less than 1.17 * 2300 = 2691. The child
 * stays on CPU 0, even if CPU 1 has fewer tasks.
 *
 * Not modelled: the time since when an idle CPU of a group is idle; NUMA's allowed imbalance; estimated utilization
 * (util_est).
 */
#ifndef FAIRGROUND_BALANCE_FORK_BPF_H
#define FAIRGROUND_BALANCE_FORK_BPF_H

#include "balance_kinds.bpf.h"
#include "balance_record.bpf.h"

/* update_sg_wakeup_stats: a group as a new task sees it, by those of its CPUs on which it may run. */
struct idle_group {
    u64 load, util, runnable;
    u32 tasks, idle, allowed;
    u32 first, end;
    enum group_kind kind;
};

/* The state of one CPU's search at a fork: in memory, where the verifier does not track it. */
struct fork_look {
    struct idle_group own, idlest, under_way;
} __attribute__((aligned(64)));

struct fork_look fork_looks[MAX_CPUS];

/* A CPU is added to the group under way. */
static __always_inline void see_cpu(struct idle_group *group, u32 cpu)
{
    group->load += load_of_cpu(cpu);
    group->util += util_of_cpu(cpu);
    group->runnable += runnable_of_cpu(cpu);
    group->tasks += cpu_tasks[BOUNDED(cpu, MAX_CPUS)].nr;
    group->idle += is_free(cpu);
    group->allowed++;
}

/* update_pick_idlest; the first of equals stays. */
static __always_inline bool is_idler(const struct idle_group *group, const struct idle_group *than)
{
    if (!than->allowed || group->kind != than->kind)
        return !than->allowed || group->kind < than->kind;
    if (group->kind != GROUP_HAS_SPARE)
        return group->load < than->load;
    return group->idle > than->idle || (group->idle == than->idle && group->util < than->util);
}

/* The last CPU of a group has been added. */
static __always_inline void see_group(struct fork_look *look, u32 level, u32 place)
{
    struct idle_group *group = &look->under_way;
    const struct unit *unit = unit_at(level, place);
    u32 cpus = unit->end - unit->first;

    group->first = unit->first;
    group->end = unit->end;
    group->kind = kind_of(group->tasks, cpus);
    if (group->kind != GROUP_HAS_SPARE &&
        !is_filled(group->util, group->runnable, cpus, params_of(level)->imbalance_pct))
        group->kind = GROUP_HAS_SPARE;
    group->load /= cpus ?: 1;
    if (group->first == look->own.first)
        look->own = *group;
    else if (group->allowed && is_idler(group, &look->idlest))
        look->idlest = *group;
    __builtin_memset(group, 0, sizeof(*group));
}

/* The end of find_idlest_group: whether the task leaves the parent's group for the idlest. */
static __always_inline bool goes_there(const struct fork_look *look, u32 level)
{
    const struct idle_group *own = &look->own, *idlest = &look->idlest;
    u64 percent = params_of(level)->imbalance_pct;

    if (!idlest->allowed || !own->allowed)
        return idlest->allowed;
    if (own->kind != idlest->kind)
        return own->kind > idlest->kind;
    if (own->kind == GROUP_HAS_SPARE)
        return idlest->idle > own->idle;
    return 100 * own->load > percent * idlest->load;
}

/* find_idlest_group: scans a domain's groups, the parent's first, then round. True: the task goes to look->idlest. */
static __noinline bool finds_idlest(struct task_struct *p, u32 cpu, u32 level)
{
    struct fork_look *look = &fork_looks[this_cpu()];
    const struct unit *span = unit_at(level + 1, place_of(cpu)), *own = unit_at(level, place_of(cpu));
    u32 first = own->first, end = span->end, cpus = end - span->first, i;
    u32 length = cpus < FORK_LOOK_MAX ? cpus : FORK_LOOK_MAX;

    __builtin_memset(look, 0, sizeof(*look));
    look->own.first = first;
    for_range (i, length) {
        u32 place = first + i < end ? first + i : first + i - cpus, other = cpu_at(place);

        if (bpf_cpumask_test_cpu(other, p->cpus_ptr))
            see_cpu(&look->under_way, other);
        if (place + 1 == unit_at(level, place)->end)
            see_group(look, level, place);
    }
    return goes_there(look, level);
}

/* find_idlest_group_cpu: in that group an idle CPU, otherwise the one with the lowest load. */
static __noinline u32 idlest_of_group(struct task_struct *p, u32 cpu)
{
    const struct idle_group *group = &fork_looks[this_cpu()].idlest;
    u64 lowest = ~0ULL;
    u32 found = cpu, i;

    for_range (i, group->end - group->first) {
        u32 other = cpu_at(group->first + i);

        if (!bpf_cpumask_test_cpu(other, p->cpus_ptr))
            continue;
        if (is_free(other)) {
            found = other;
            break;
        }
        if (load_of_cpu(other) < lowest) {
            lowest = load_of_cpu(other);
            found = other;
        }
    }
    return found;
}

/* find_idlest_cpu */
static __always_inline u32 fork_cpu(struct task_struct *p, u32 cpu)
{
    u32 i;

    for_range (i, DOMAIN_LEVELS) {
        u32 level = DOMAIN_LEVELS - 1 - i;

        if (has_domain(cpu, level) && finds_idlest(p, cpu, level))
            cpu = idlest_of_group(p, cpu) & (MAX_CPUS - 1);
    }
    return cpu;
}

#endif
