/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sched domains, the balancer's view of the machine. Linux 2.6.22 to 2.6.27 (kernel/sched.c,
 * include/linux/topology.h).
 *
 * A machine is nested units: CPU < core (SMT threads) < last-level cache < node < machine. A domain of a level has
 * one unit as its span and the units of the next smaller kind as its groups:
 *
 *     level         span                groups               in the kernel
 *     DOMAIN_SMT    core                its threads          SIBLING
 *     DOMAIN_MC     last-level cache    its cores            MC
 *     DOMAIN_CPU    node                its caches           CPU, "package"
 *     DOMAIN_NODE   machine             its nodes            NODE
 *
 * A level whose span is a single group is left out. Example: 2 sockets of 4 cores of 2 threads, a node each: CPU 5
 * has SMT {4,5}, MC {0...7} with 4 groups, and NODE {0...15} with 2 groups; DOMAIN_CPU would have one group.
 *
 * CPUs are sorted so that each unit is a contiguous range. So a unit is two numbers, a group is walked by counting,
 * and no bitmaps are needed. The arrays are built in init(), and anew when a CPU comes or goes
 * (balance_hotplug.bpf.h): CPUs that are offline stand behind the others, each a unit by itself, so they have no domain
 * (cpu_attach_domain with NULL).
 *
 * Power of a group (cpu_power): BALANCE_SCALE, whatever it holds: threads, and the cores of a cache, share resources,
 * and a group shall take one task while other groups are idle (init_sched_groups_power). A node has one BALANCE_SCALE
 * per cache.
 */
#ifndef FAIRGROUND_DOMAINS_BPF_H
#define FAIRGROUND_DOMAINS_BPF_H

#include "balance_tunables.bpf.h"
#include "cpus.bpf.h"

/* Filled by the loader of the object. All zero: a machine of single CPUs that share one cache. */
u32 topology_core[MAX_CPUS] TOPOLOGY("core");
u32 topology_llc[MAX_CPUS] TOPOLOGY("llc");
u32 topology_node[MAX_CPUS] TOPOLOGY("node");

enum domain_level { DOMAIN_SMT, DOMAIN_MC, DOMAIN_CPU, DOMAIN_NODE, DOMAIN_LEVELS };
/* Kinds of unit: 0 is a CPU, level + 1 the span of that level. */
#define UNIT_KINDS (DOMAIN_LEVELS + 1)
/* Space for a power of two of them, so that an index is kept in bounds by a mask. */
#define UNIT_SPACE (8 * MAX_CPUS)

enum domain_flag {
    BALANCE_NEWIDLE = 1, /* balanced by a CPU that becomes idle */
    BALANCE_EXEC = 2,    /* searched at execve and fork */
    WAKE_AFFINE_TO = 4,  /* a task may wake up at the waker's CPU */
    WAKE_BALANCE = 8,    /* ... if that CPU is less loaded */
    WAKE_IDLE = 16,      /* a task may wake up at an idle CPU */
    INTERVAL_BY_SPAN = 32,
};

/* As an index of the table below: the load over time (pelt.bpf.h). */
#define LOAD_OVER_TIME 4

struct domain_params {
    u32 min_interval_ms;
    u32 max_interval_ms;
    u32 busy_factor;
    u32 imbalance_pct;
    u32 cache_nice_tries;
    u32 busy_idx, idle_idx, newidle_idx, wake_idx, forkexec_idx;
    u32 flags;
};

#define USUAL (BALANCE_NEWIDLE | BALANCE_EXEC | WAKE_AFFINE_TO)
#define NEW   (USUAL | INTERVAL_BY_SPAN)
/* [release][level], as SD_SIBLING_INIT, SD_MC_INIT, SD_CPU_INIT and SD_NODE_INIT of x86-64 give them. */
static const struct domain_params domain_table[4][DOMAIN_LEVELS] = {
    [DOMAINS_2_6_22] = {{1, 2, 64, 110, 0, 0, 0, 1, 0, 0, USUAL | WAKE_IDLE},
                        {1, 4, 64, 125, 1, 2, 1, 2, 1, 1, USUAL},
                        {1, 4, 64, 125, 1, 2, 1, 2, 1, 1, USUAL | WAKE_IDLE},
                        {8, 32, 32, 125, 2, 3, 2, 0, 1, 1, BALANCE_EXEC | WAKE_BALANCE}},
    [DOMAINS_2_6_23] = {{1, 2, 64, 110, 0, 0, 0, 0, 0, 0, USUAL | WAKE_IDLE},
                        {1, 4, 64, 125, 1, 2, 0, 0, 1, 1, USUAL | WAKE_IDLE},
                        {1, 4, 64, 125, 1, 2, 0, 0, 1, 1, USUAL | WAKE_IDLE},
                        {8, 32, 32, 125, 2, 3, 2, 0, 1, 1, BALANCE_EXEC | WAKE_BALANCE}},
    [DOMAINS_2_6_24] = {{1, 2, 64, 110, 0, 0, 0, 0, 0, 0, USUAL | WAKE_IDLE},
                        {1, 4, 64, 125, 1, 2, 0, 0, 1, 1, USUAL | WAKE_IDLE},
                        {1, 4, 64, 125, 1, 2, 1, 2, 1, 1, USUAL},
                        {8, 32, 32, 125, 2, 3, 2, 0, 1, 1, BALANCE_EXEC | WAKE_BALANCE}},
    [DOMAINS_6_1] = {{1, 2, 16, 110, 0, LOAD_OVER_TIME, LOAD_OVER_TIME, 0, 0, 0, NEW},
                     {1, 2, 16, 117, 1, LOAD_OVER_TIME, LOAD_OVER_TIME, 0, 0, 0, NEW},
                     {1, 2, 16, 117, 1, LOAD_OVER_TIME, LOAD_OVER_TIME, 0, 0, 0, NEW},
                     {1, 2, 16, 117, 2, LOAD_OVER_TIME, LOAD_OVER_TIME, 0, 0, 0, NEW}},
};
#undef USUAL
#undef NEW

/* CPUs from first to end - 1 in cpu_order. */
struct unit {
    u16 first;
    u16 end;
};

u16 cpu_order[MAX_CPUS];
u16 cpu_place[MAX_CPUS]; /* index of a CPU in cpu_order */
struct unit units[UNIT_SPACE];
/* Whether each group of each domain of a level is a single CPU. */
bool groups_are_cpus[DOMAIN_LEVELS];
/* Whether each CPU's index in cpu_order is its number. */
bool cpus_in_order;
/* The CPUs that are not offline, the first of cpu_order. */
u32 nr_online;

static __always_inline u32 cpu_at(u32 place)
{
    return cpu_order[BOUNDED(place, MAX_CPUS)] & (MAX_CPUS - 1);
}

static __always_inline u32 place_of(u32 cpu)
{
    return cpu_place[BOUNDED(cpu, MAX_CPUS)] & (MAX_CPUS - 1);
}

/* The unit of a kind (0 ... DOMAIN_LEVELS) at an index of cpu_order. */
static __always_inline struct unit *unit_at(u32 kind, u32 place)
{
    return &units[BOUNDED(kind * MAX_CPUS + (place & (MAX_CPUS - 1)), UNIT_SPACE)];
}

static __always_inline const struct domain_params *params_of(u32 level)
{
    return &domain_table[BOUNDED(rule_domains, 4)][BOUNDED(level, DOMAIN_LEVELS)];
}

/* Whether a CPU has a domain of this level: its span is more than one group. */
static __always_inline bool has_domain(u32 cpu, u32 level)
{
    u32 place = place_of(cpu);
    const struct unit *span = unit_at(level + 1, place), *group = unit_at(level, place);

    return span->first != group->first || span->end != group->end;
}

/* The smallest level whose domain of `here` also contains `prev`. */
static __always_inline u32 common_level(u32 here, u32 prev)
{
    u32 level, common = DOMAIN_NODE;

    for_range (level, DOMAIN_LEVELS) {
        const struct unit *span = unit_at(level + 1, place_of(here));

        if (place_of(prev) >= span->first && place_of(prev) < span->end) {
            common = level;
            break;
        }
    }
    return common;
}

/* cpu_power of the group at an index of cpu_order, in the domains of a level. */
static __always_inline u64 group_power(u32 level, u32 place)
{
    const struct unit *group = unit_at(level, place);
    u64 power = 0;
    u32 at, i;

    if (rule_domains == DOMAINS_6_1)
        return (u64)(group->end - group->first) * BALANCE_SCALE;
    if (level != DOMAIN_NODE)
        return BALANCE_SCALE;
    at = group->first;
    for_range (i, MAX_CPUS) {
        if (at >= group->end)
            break;
        power = (u64)(i + 1) * BALANCE_SCALE;
        at = unit_at(DOMAIN_CPU, at)->end;
    }
    return power;
}

/* Scratch memory of the sort: the CPUs per number, then the index of the next of them. */
u16 sort_start[MAX_CPUS + 1];
u16 sort_from[MAX_CPUS];

/* One pass of a radix sort of cpu_order: stable, by the numbers in `key`. */
SEPARATE void sort_cpus(u32 key_kind)
{
    u32 i, sum = 0;

    for_range (i, MAX_CPUS)
        sort_start[i & (MAX_CPUS - 1)] = 0;
    for_range (i, nr_online) {
        u32 cpu = cpu_at(i);
        u32 key = key_kind == 0 ? topology_core[cpu] : key_kind == 1 ? topology_llc[cpu] : topology_node[cpu];

        sort_from[i & (MAX_CPUS - 1)] = (u16)cpu;
        sort_start[key & (MAX_CPUS - 1)]++;
    }
    for_range (i, MAX_CPUS) {
        u16 *start = &sort_start[i & (MAX_CPUS - 1)];
        u16 count = *start;

        *start = (u16)sum;
        sum += count;
    }
    for_range (i, nr_online) {
        u32 cpu = sort_from[i & (MAX_CPUS - 1)] & (MAX_CPUS - 1);
        u32 key = key_kind == 0 ? topology_core[cpu] : key_kind == 1 ? topology_llc[cpu] : topology_node[cpu];
        u16 *start = &sort_start[key & (MAX_CPUS - 1)];

        cpu_order[*start & (MAX_CPUS - 1)] = (u16)cpu;
        *start += 1;
    }
}

/* One more than the largest kind of unit that two CPUs do not share: they share this kind and larger ones. */
static __always_inline u32 shared_kind(u32 a, u32 b, bool flat)
{
    if (topology_node[a] != topology_node[b])
        return DOMAIN_NODE + 1;
    if (topology_llc[a] != topology_llc[b])
        return DOMAIN_CPU + 1;
    if (flat || topology_core[a] != topology_core[b])
        return DOMAIN_MC + 1;
    return DOMAIN_SMT + 1;
}

/* Sorts the CPUs and finds the units. `flat`: the topology is unknown. */
SEPARATE void find_units(bool flat)
{
    u32 i, kind;

    for_range (kind, DOMAIN_LEVELS)
        groups_are_cpus[kind & (DOMAIN_LEVELS - 1)] = true;
    cpus_in_order = true;
    for_range (i, nr_cpus) {
        u32 place = i & (MAX_CPUS - 1), cpu = cpu_at(place);
        u32 shared = place ? shared_kind(cpu_at(place - 1), cpu, flat) : UNIT_KINDS;

        if (place >= nr_online)
            shared = UNIT_KINDS;

        cpu_place[cpu] = (u16)place;
        if (cpu != place)
            cpus_in_order = false;
        for_range (kind, UNIT_KINDS)
            unit_at(kind, place)->first = kind >= shared ? unit_at(kind, place - 1)->first : (u16)place;
    }
    for_range (i, nr_cpus) {
        u32 place = (nr_cpus - 1 - i) & (MAX_CPUS - 1);

        for_range (kind, UNIT_KINDS) {
            struct unit *unit = unit_at(kind, place), *next = unit_at(kind, place + 1);
            bool last = place + 1 >= nr_cpus || next->first != unit->first;

            unit->end = last ? (u16)(place + 1) : next->end;
            if (kind < DOMAIN_LEVELS && unit->end - unit->first > 1)
                groups_are_cpus[kind & (DOMAIN_LEVELS - 1)] = false;
        }
    }
}

/* In init: the CPUs that are offline already. */
static __always_inline void note_offline(void)
{
    const cpumask_t *online = scx_bpf_get_online_cpumask();
    u32 cpu;

    for_range (cpu, nr_cpus) {
        if (!bpf_cpumask_test_cpu(cpu, online))
            set_cpu_bit(offline_cpus, cpu);
    }
    scx_bpf_put_cpumask(online);
}

/* CPUs that are in cpu_order so far, while it is filled. */
u32 nr_placed;

/* Puts the CPUs that are offline, or those that are not, behind those in cpu_order. */
static __always_inline void put_in_order(bool offline)
{
    u32 i;

    for_range (i, nr_cpus) {
        if (is_offline(i) != offline)
            continue;
        cpu_order[BOUNDED(nr_placed, MAX_CPUS)] = (u16)i;
        nr_placed++;
    }
}

/* Builds the domains from the topology. In init, after create_cpu_queues(); and when a CPU comes or goes. */
SEPARATE void make_domains(void)
{
    bool flat = nr_cpus > 1;
    u32 i;

    nr_placed = 0;
    put_in_order(false);
    nr_online = nr_placed;
    put_in_order(true);
    for_range (i, nr_cpus) {
        if (topology_core[i & (MAX_CPUS - 1)] != topology_core[0])
            flat = false;
    }
    if (!flat)
        sort_cpus(0);
    sort_cpus(1);
    sort_cpus(2);
    find_units(flat);
}

#endif
