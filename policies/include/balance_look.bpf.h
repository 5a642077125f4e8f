/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a CPU searches for work, and at which levels: intervals, rebalance_domains, and the wake-up of idle CPUs.
 *
 * Each level of each CPU has an interval (1 ms at first) and the time of its last balance. It is due after the
 * interval, or after interval * busy_factor while the CPU has work. Nothing to do: the interval doubles, up to
 * max_interval_ms (512 ms when only pinned tasks are in the way). Something to move: it is the shortest again.
 *
 * Example (level MC of 2.6.24, 1 to 4 ms, busy_factor 64): a busy CPU balances after 64 ms, then after 128, then
 * every 256 ms.
 */
#ifndef FAIRGROUND_BALANCE_LOOK_BPF_H
#define FAIRGROUND_BALANCE_LOOK_BPF_H

#include "balance_group.bpf.h"

extern u32 CONFIG_HZ __kconfig __weak;

#define NS_PER_MS 1000000ULL
/* A tick may come this much early: ticks are not exact to the nanosecond. Half the shortest tick. */
#define TICK_SLACK_NS 500000ULL
/* MAX_PINNED_INTERVAL */
#define PINNED_INTERVAL_MAX_MS 512
/* Limit of the idle CPUs that one tick checks for one that is due. */
#define IDLE_LOOK_MAX 8

static __always_inline u32 interval_limit_ms(u32 cpu, u32 level, bool longest)
{
    const struct domain_params *params = params_of(level);
    const struct unit *span = unit_at(level + 1, place_of(cpu));

    if (params->flags & INTERVAL_BY_SPAN)
        return (u32)(span->end - span->first) * (longest ? 2 : 1);
    return longest ? params->max_interval_ms : params->min_interval_ms;
}

/*
 * The time when a level of a CPU is due next, ns. At most a tenth of a second per CPU of the machine
 * (rebalance_domains).
 */
static __always_inline u64 due_ns(u32 cpu, u32 level, bool idle)
{
    struct balance_domain *d = &balance_of(cpu)->domains[level & (DOMAIN_LEVELS - 1)];
    u64 interval_ms = (u64)d->interval_ms * (idle ? 1 : params_of(level)->busy_factor), less_ns = 0;

    if (interval_ms > 100 * (u64)nr_cpus && nr_cpus > 1)
        interval_ms = 100 * (u64)nr_cpus;
#ifdef BALANCE_RECORDS
    /* Since 5.10 a busy CPU searches a tick earlier, so that the levels' times are no multiples of each other. */
    if (!idle && rule_domains == DOMAINS_6_1)
        less_ns = least(1000 * NS_PER_MS / (CONFIG_HZ ?: 1000), interval_ms * NS_PER_MS / 2);
#endif
    return d->last_balance_ns + interval_ms * NS_PER_MS - less_ns;
}

/* The time of the CPU's next search: the earliest of its levels. */
SEPARATE void set_next_balance(u32 cpu, bool idle)
{
    u64 earliest = ~0ULL;
    u32 level;

    for_range (level, DOMAIN_LEVELS) {
        if (has_domain(cpu, level))
            earliest = least(earliest, due_ns(cpu, level, idle));
    }
    balance_of(cpu)->next_balance_ns = earliest;
}

/* Nothing to do at a level (out_balanced): its interval doubles. */
static __always_inline void note_balanced(u32 cpu, u32 level)
{
    struct balance_cpu *b = balance_of(cpu);
    struct balance_domain *d = &b->domains[level & (DOMAIN_LEVELS - 1)];

    d->nr_failed = 0;
    if (d->interval_ms < interval_limit_ms(cpu, level, true) ||
        (b->left_out_count && d->interval_ms < PINNED_INTERVAL_MAX_MS))
        d->interval_ms *= 2;
}

/* With SIS_UTIL each such search determines how many CPUs wake-ups search for an idle one. */
static __always_inline void note_idle_scan(u32 cpu, u32 level)
{
#ifdef BALANCE_RECORDS
    if (rule_wake == WAKE_FAIR && SIS_UTIL)
        update_idle_scan(cpu, level);
#endif
}

static __always_inline void begin_level(struct balance_cpu *b)
{
    u32 i;

    if (!b->left_out_count)
        return;
    b->left_out_count = 0;
    for_range (i, WAITING_WORDS)
        b->left_out[i & (WAITING_WORDS - 1)] = 0;
}

/*
 * rebalance_domains from b->level on. True: it stopped at a level with something to move, described in b->scan.
 * False: it is done.
 */
SEPARATE bool look_through_domains(u32 cpu)
{
    struct balance_cpu *b = balance_of(cpu);
    u64 now = scx_bpf_now();
    bool found = false;
    u32 i;

    b->seen_moves = READ_ONCE(balance_moves);
    for_range (i, DOMAIN_LEVELS) {
        u32 level = b->level;
        struct balance_domain *d = &b->domains[level & (DOMAIN_LEVELS - 1)];

        if (level >= DOMAIN_LEVELS)
            break;
        if (!has_domain(cpu, level) || (s64)(due_ns(cpu, level, b->idle == IDLE) - now) > (s64)TICK_SLACK_NS) {
            b->level++;
            continue;
        }
        begin_level(b);
        d->last_balance_ns = now;
        note_idle_scan(cpu, level);
        found = find_work(cpu, level, b->idle);
        if (found)
            break;
        note_balanced(cpu, level);
        if (level == DOMAIN_SMT && b->scan.sibling_busy)
            b->idle = NOT_IDLE;
        b->level = b->scan.rule == NOT_OURS ? DOMAIN_LEVELS : level + 1;
    }
    if (!found)
        set_next_balance(cpu, b->idle == IDLE);
    b->pending = found;
    if (found)
        call_balancer(cpu);
    return found;
}

/* No CPU has two tasks, so no level finds anything. */
static __always_inline void skip_domains(u32 cpu)
{
    struct balance_cpu *b = balance_of(cpu);
    u64 now = scx_bpf_now();
    u32 level;

    begin_level(b);
    for_range (level, DOMAIN_LEVELS) {
        if (has_domain(cpu, level) && (s64)(due_ns(cpu, level, b->idle == IDLE) - now) <= (s64)TICK_SLACK_NS) {
            b->domains[level & (DOMAIN_LEVELS - 1)].last_balance_ns = now;
            note_idle_scan(cpu, level);
            note_balanced(cpu, level);
        }
    }
    set_next_balance(cpu, b->idle == IDLE);
}

static __always_inline bool begin_balance(u32 cpu, enum idle_type idle)
{
    struct balance_cpu *b = balance_of(cpu);

    if ((s64)(b->next_balance_ns - scx_bpf_now()) > (s64)TICK_SLACK_NS)
        return false;
    b->idle = idle;
    b->level = 0;
    if (!any_cpu_overloaded()) {
        skip_domains(cpu);
        return false;
    }
    return look_through_domains(cpu);
}

/* A CPU with waiting tasks wakes an idle one that is due to balance, in rotation. */
SEPARATE void wake_idle_balancer(u32 cpu)
{
    struct balance_cpu *b = balance_of(cpu);
    u32 i, looked = 0;
    u64 now = scx_bpf_now();

    for_range (i, nr_cpus / 64 + 1 + IDLE_LOOK_MAX) {
        u32 from = b->next_idle, word = from / 64;
        u64 bits = READ_ONCE(idle_cpus[word & (WAITING_WORDS - 1)]) & (~0ULL << (from & 63));
        u32 other = word * 64 + (u32)__builtin_ctzll(bits);

        if (looked >= IDLE_LOOK_MAX)
            break;
        if (!bits) {
            from = (word + 1) * 64;
            b->next_idle = from < nr_cpus ? from : 0;
            continue;
        }
        looked++;
        b->next_idle = other + 1 < nr_cpus ? other + 1 : 0;
        if ((s64)(balance_of(other)->next_balance_ns - now) <= (s64)TICK_SLACK_NS) {
            balance_of(other)->kicked = true;
            call_balancer(other);
            kick(other, SCX_KICK_IDLE);
            break;
        }
    }
}

/*
 * At the start of ops.tick: averages, and the search of the domains when it is due. True: there is something to move;
 * the current task's slice must be set to 0, so that dispatch runs.
 */
static __always_inline bool balance_tick(u32 cpu)
{
#ifdef BALANCE_RECORDS
    load_ticks(cpu);
#endif
    update_cpu_load(cpu);
    if (nr_cpus < 2)
        return false;
    if (nr_running(cpu) > 1) {
        ensure_cpu_bit(overloaded_cpus, cpu);
        wake_idle_balancer(cpu);
    }
    return begin_balance(cpu, NOT_IDLE);
}

#endif
