/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A CPU that becomes idle searches for work at once: load_balance_newidle of 2.6.22 to 2.6.27, newidle_balance of 5.5 to
 * 7.2.
 *
 * Since 3.13 it does so only if it will probably be idle for longer than a search takes: its average idle time, which
 * each idle period changes by an eighth of the difference and which is at most twice sched_migration_cost_ns (or the
 * longest search), is at least the longest search of the domain. That decays by 1 % a second.
 *
 * Example: the longest search took 200 us. A CPU that idles for 100 us each time has the averages 1000, 888, 789 ... us;
 * after 18 such periods it is below 200, and the CPU does not search any more until it is idle for longer.
 */
#ifndef FAIRGROUND_BALANCE_NEWIDLE_BPF_H
#define FAIRGROUND_BALANCE_NEWIDLE_BPF_H

#include "balance_look.bpf.h"

/* Limit of the balances of one pass: each level once, and again for each CPU whose tasks are all pinned. */
#define BALANCE_ROUNDS_MAX 64

#ifdef BALANCE_RECORDS
/* The most that an idle period counts, ns: 2 * max_idle_balance_cost. */
static __always_inline u64 idle_limit_ns(const struct balance_cpu *b)
{
    u64 longest_ns = b->domains[DOMAIN_MC].longest_ns;

    return 2 * (longest_ns > sched_migration_cost_ns ? longest_ns : sched_migration_cost_ns);
}
#endif

static __always_inline void idle_begins(u32 cpu)
{
#ifdef BALANCE_RECORDS
    idle_since_ns[BOUNDED(cpu, MAX_CPUS)] = scx_bpf_now();
#endif
}

static __always_inline void idle_ends_at_once(u32 cpu)
{
#ifdef BALANCE_RECORDS
    idle_since_ns[BOUNDED(cpu, MAX_CPUS)] = 0;
#endif
}

/* Whether the CPU is idle for long enough on average for a search of this level, after searches that took so long. */
static __always_inline bool is_worth_search(u32 cpu, u32 level, u64 spent_ns)
{
#ifdef BALANCE_RECORDS
    struct balance_cpu *b = balance_of(cpu);
    u64 *average_ns = &average_idle_ns[BOUNDED(cpu, MAX_CPUS)];

    if (rule_imbalance != IMBALANCE_BY_KIND)
        return true;
    *average_ns = least(*average_ns, idle_limit_ns(b));
    return *average_ns >= spent_ns + b->domains[level & (DOMAIN_LEVELS - 1)].longest_ns;
#else
    return true;
#endif
}

/* update_newidle_cost: a search that began at that time is over. Returns how long it took, ns. */
static __always_inline u64 note_search(struct balance_domain *d, u64 begin_ns)
{
#ifdef BALANCE_RECORDS
    u64 took_ns = bpf_ktime_get_ns() - begin_ns, jiffy = bpf_jiffies64();

    if (took_ns > d->longest_ns) {
        d->longest_ns = took_ns;
        d->longest_jiffy = jiffy;
    } else if (jiffy - d->longest_jiffy > (CONFIG_HZ ?: 1000)) {
        d->longest_ns = d->longest_ns * 253 / 256;
        d->longest_jiffy = jiffy;
    }
    return took_ns;
#else
    return 0;
#endif
}

#ifdef NEWIDLE_BY_CHANCE
/* newidle_ratio is relative to this. */
#define NEWIDLE_RATIO_MAX 1024

/*
 * update_newidle_stats: after this many idle entries, with a search or without, the ratio is the part of the searches
 * that brought a task, or more if idle entries are rare.
 */
static __always_inline void note_newidle(struct balance_domain *d, u32 success)
{
    u64 now, ratio = 0;

    if (rule_imbalance != IMBALANCE_BY_KIND)
        return;
    d->newidle_success += success;
    if (++d->newidle_call < NEWIDLE_RATIO_MAX)
        return;
    now = scx_bpf_now();
    if (NEWIDLE_BY_RATE)
        ratio = (now - d->newidle_stamp_ns) >> 22;
    d->newidle_stamp_ns = now;
    d->newidle_ratio = (u32)least(ratio + d->newidle_success, NEWIDLE_RATIO_MAX);
    d->newidle_call /= 2;
    d->newidle_success /= 2;
}

/* Whether to search, at random; the number of idle entries that this search represents. 0: no search. */
static __always_inline u32 newidle_throw(struct balance_domain *d)
{
    u32 sides = 1 + d->newidle_ratio;

    if (rule_imbalance != IMBALANCE_BY_KIND || !NEWIDLE_BY_CHANCE || sides > NEWIDLE_RATIO_MAX)
        return 1;
    if (bpf_get_prandom_u32() % NEWIDLE_RATIO_MAX <= sides)
        return (NEWIDLE_RATIO_MAX + sides / 2) / sides;
    note_newidle(d, 0);
    return 0;
}
#endif

/* The levels of load_balance_newidle. Returns how many tasks came. */
SEPARATE u32 newidle_levels(u32 cpu)
{
    struct balance_cpu *b = balance_of(cpu);
    u32 level, round, moved = 0;
    u64 begin_ns, spent_ns = 0;
#ifdef NEWIDLE_BY_CHANCE
    u32 times;
#endif

    for_range (level, DOMAIN_LEVELS) {
        bool again = true;

        if (!(params_of(level)->flags & BALANCE_NEWIDLE) || !has_domain(cpu, level))
            continue;
        if (!is_worth_search(cpu, level, spent_ns))
            break;
        begin_ns = bpf_ktime_get_ns();
#ifdef NEWIDLE_BY_CHANCE
        times = newidle_throw(&b->domains[level & (DOMAIN_LEVELS - 1)]);
        if (!times)
            continue;
#endif
        begin_level(b);
        for_range (round, BALANCE_ROUNDS_MAX) {
            u32 busiest;

            if (!again)
                break;
            again = false;
            if (!find_work(cpu, level, NEWLY_IDLE)) {
                b->domains[level & (DOMAIN_LEVELS - 1)].nr_failed = 0;
                break;
            }
            busiest = b->scan.busiest_cpu & (MAX_CPUS - 1);
            b->all_pinned = false;
            if (cpu_tasks[busiest].nr > 1)
                moved = move_tasks(busiest, cpu, b->scan.imbalance, level);
            if (moved) {
                b->domains[level & (DOMAIN_LEVELS - 1)].nr_failed = 0;
            } else if (b->all_pinned) {
                b->left_out[BOUNDED(busiest, MAX_CPUS) / 64] |= 1ULL << (busiest & 63);
                b->left_out_count++;
                again = true;
            }
        }
#ifdef NEWIDLE_BY_CHANCE
        note_newidle(&b->domains[level & (DOMAIN_LEVELS - 1)], moved ? times : 0);
#endif
        spent_ns += note_search(&b->domains[level & (DOMAIN_LEVELS - 1)], begin_ns);
        if (moved) {
            if (trace_balance)
                bpf_printk("balance newidle: cpu %d level %d from %d tasks %d", cpu, level,
                           b->scan.busiest_cpu & (MAX_CPUS - 1), moved);
            break;
        }
    }
    return moved;
}

/* In ops.dispatch when nothing is left to run: searches at once. True: this CPU's queues have tasks now. */
static __always_inline bool newidle_balance(u32 cpu)
{
    struct balance_cpu *b = balance_of(cpu);
    u32 moved = 0;

    if (nr_cpus < 2 || b->idle_pass || is_refused(b))
        return false;
    idle_begins(cpu);
    if (any_cpu_overloaded())
        moved = newidle_levels(cpu);
    if (moved)
        idle_ends_at_once(cpu);
    /* It will be idle: the time of the next search may have been set for a busy CPU. */
    set_next_balance(cpu, !moved);
#ifdef BALANCE_RECORDS
    if (!moved)
        load_rests();
#endif
    return moved;
}

#endif
