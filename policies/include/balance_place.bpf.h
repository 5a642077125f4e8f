/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The CPU of a waking or new task: try_to_wake_up, wake_idle and sched_balance_self of 2.6.22 to 2.6.27.
 *
 * Wake-up, waker on CPU `here`, the task last on CPU `prev`, in the smallest domain that holds both: it goes to
 * `here`
 *     affine (SMT to CPU level): when sync and cache-cold (2.6.24); or when the load here (less the waker's, if it is
 *         about to sleep) is at most that of prev, and both together are at most one mean task; or when load here +
 *         task is at most load of prev * (100 + (imbalance_pct - 100) / 2) %;
 *     passive (between nodes): when the load here * that percentage is at most that of prev;
 * else to prev. When that CPU has exactly one task, an idle CPU is taken from the domains with WAKE_IDLE around it.
 *
 * Fork (see balance.bpf.h: as at execve): from the largest domain down, the idlest group, if the own one is
 * imbalance_pct / 2 above it, and in it the CPU with the least load; then the same in the domains of that CPU below.
 *
 * WAKE_FAIR is the choice of 6.1 (balance_wake.bpf.h). WAKE_NEAR_IDLE leaves it to sched_ext's own search for an idle
 * CPU near by, and so does WAKE_FAIR where the scheduler keeps no records of its tasks' loads.
 */
#ifndef FAIRGROUND_BALANCE_PLACE_BPF_H
#define FAIRGROUND_BALANCE_PLACE_BPF_H

#include "balance_move.bpf.h"
#ifdef BALANCE_RECORDS
#include "balance_wake.bpf.h"
#endif

/* Limit of the CPUs that a wake-up searches for an idle one. The kernel searches all of a domain. */
#define WAKE_LOOK_MAX 64

static __always_inline bool is_idle_cpu(u32 cpu)
{
    return !nr_running(cpu);
}

/* wake_idle: for a CPU with exactly one task, a nearby idle CPU. */
static __noinline u32 wake_idle(struct task_struct *p, u32 cpu)
{
    u32 level, i, found = cpu;

    if (nr_running(cpu) != 1)
        return cpu;
    for_range (level, DOMAIN_LEVELS) {
        const struct unit *span = unit_at(level + 1, place_of(cpu));

        if (!has_domain(cpu, level))
            continue;
        if (!(params_of(level)->flags & WAKE_IDLE))
            break;
        for_range (i, WAKE_LOOK_MAX) {
            u32 other = cpu_at(span->first + i);

            if (span->first + i >= span->end)
                break;
            if (is_idle_cpu(other) && bpf_cpumask_test_cpu(other, p->cpus_ptr)) {
                found = other;
                break;
            }
        }
        if (found != cpu)
            break;
    }
    return found;
}

/* Whether a task that ran on `prev` shall wake up on `here`. */
static __noinline bool wake_here(struct task_struct *p, u32 here, u32 prev, bool sync)
{
    u32 level = common_level(here, prev), nr = nr_running(here);
    const struct domain_params *params = params_of(level);
    u64 percent = 100 + (params->imbalance_pct - 100) / 2, load, this_load, affine_load, weight, per_task;

    decay_idle_load(here);
    load = source_load(prev, params->wake_idx);
    this_load = target_load(here, params->wake_idx);
    if (params->flags & WAKE_AFFINE_TO) {
        if (rule_wake == WAKE_AFFINE_SYNC && sync && !task_hot(p))
            return true;
        affine_load = this_load;
        if (sync) {
            struct task_struct *waker = (struct task_struct *)bpf_get_current_task_btf();

            weight = waker && nr ? balance_weight(waker) : 0;
            affine_load -= least(weight, affine_load);
        }
        per_task = nr ? cpu_weight(here) / nr : BALANCE_SCALE;
        if (affine_load <= load && affine_load + target_load(prev, params->wake_idx) <= per_task)
            return true;
        if (100 * (affine_load + balance_weight(p)) <= percent * load)
            return true;
    }
    return (params->flags & WAKE_BALANCE) && percent * this_load <= 100 * load;
}

/* The state of the scan of groups at a fork. In a map, not on the stack, because of the verifier. */
struct idlest_scan {
    u64 this_load, min_load, sum_load, cpu_load;
    u32 first, end, found, cpu;
};

struct idlest_scan idlest_scans[MAX_CPUS];

static __always_inline void close_idlest(struct idlest_scan *s, u32 level, u32 place, bool local, bool allowed)
{
    const struct unit *group = unit_at(level, place);
    u64 power = group_power(level, place), load = s->sum_load;

    if (power != BALANCE_SCALE)
        load = load * BALANCE_SCALE / (power ?: 1);
    if (local) {
        s->this_load = load;
    } else if (allowed && load < s->min_load) {
        s->min_load = load;
        s->first = group->first;
        s->end = group->end;
        s->found = true;
    }
    s->sum_load = 0;
}

/* find_idlest_group: a group with less load than the own one by imbalance_pct / 2. */
static __noinline bool find_idlest_group(struct task_struct *p, u32 cpu, u32 level)
{
    struct idlest_scan *s = &idlest_scans[this_cpu()];
    const struct domain_params *params = params_of(level);
    const struct unit *own = unit_at(level, place_of(cpu)), *span = unit_at(level + 1, place_of(cpu));
    u32 i, cpus = span->end - span->first, length = cpus < FORK_LOOK_MAX ? cpus : FORK_LOOK_MAX;
    u64 percent = 100 + (params->imbalance_pct - 100) / 2;
    bool allowed = false;

    __builtin_memset(s, 0, sizeof(*s));
    s->min_load = ~0ULL;
    for_range (i, length) {
        u32 ahead = own->first + i, place = ahead < span->end ? ahead : ahead - cpus, other = cpu_at(place);
        bool local = place >= own->first && place < own->end;

        s->sum_load += local ? source_load(other, params->forkexec_idx) : target_load(other, params->forkexec_idx);
        allowed |= bpf_cpumask_test_cpu(other, p->cpus_ptr);
        if (place + 1 == unit_at(level, place)->end) {
            close_idlest(s, level, place, local, allowed);
            allowed = false;
        }
    }
    return s->found && 100 * s->this_load >= percent * s->min_load;
}

/* find_idlest_cpu: in that group; `cpu` if none of it is allowed. */
static __noinline u32 find_idlest_cpu(struct task_struct *p, u32 cpu)
{
    struct idlest_scan *s = &idlest_scans[this_cpu()];
    u32 i, first = s->first;

    s->cpu_load = ~0ULL;
    s->cpu = cpu;
    for_range (i, s->end - first) {
        u32 other = cpu_at(first + i);

        if (cpu_tasks[other].weight < s->cpu_load && bpf_cpumask_test_cpu(other, p->cpus_ptr)) {
            s->cpu_load = cpu_tasks[other].weight;
            s->cpu = other;
        }
    }
    return s->cpu;
}

/* sched_balance_self, for a new task whose parent runs on `cpu`. */
static __noinline u32 place_new_task(struct task_struct *p, u32 cpu)
{
    u32 i;

    for_range (i, DOMAIN_LEVELS) {
        u32 level = DOMAIN_LEVELS - 1 - i;

        if (!has_domain(cpu, level) || !(params_of(level)->flags & BALANCE_EXEC))
            continue;
        if (find_idlest_group(p, cpu, level))
            cpu = find_idlest_cpu(p, cpu);
    }
    return cpu & (MAX_CPUS - 1);
}

/*
 * In ops.select_cpu: the task's CPU. *is_idle: that CPU is idle and now reserved for it, so that it is to be inserted
 * into SCX_DSQ_LOCAL.
 */
static __always_inline s32 balance_select_cpu(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle)
{
    u32 here = this_cpu(), cpu = (u32)prev_cpu & (MAX_CPUS - 1);

#ifdef BALANCE_RECORDS
    if (rule_wake == WAKE_FAIR)
        return (s32)(fair_select_cpu(p, cpu, wake_flags, is_idle) & (MAX_CPUS - 1));
#endif
    if (rule_wake == WAKE_NEAR_IDLE || rule_wake == WAKE_FAIR)
        return select_cpu(p, prev_cpu, wake_flags, is_idle);
    if (wake_flags & SCX_WAKE_FORK) {
        cpu = place_new_task(p, bpf_cpumask_test_cpu(here, p->cpus_ptr) ? here : cpu);
    } else if (nr_cpus > 1) {
        if (here != cpu && bpf_cpumask_test_cpu(here, p->cpus_ptr) &&
            wake_here(p, here, cpu, (wake_flags & SCX_WAKE_SYNC) != 0))
            cpu = here;
        cpu = wake_idle(p, cpu);
    }
    *is_idle = scx_bpf_test_and_clear_cpu_idle((s32)cpu);
    return (s32)cpu;
}

#endif
