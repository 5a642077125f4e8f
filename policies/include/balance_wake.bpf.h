/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The CPU of a waking task, since Linux 3.12: select_task_rq_fair of 6.1 and 7.2 (wake_affine, select_idle_sibling),
 * by loads over time (pelt.bpf.h).
 *
 * Wake-up, waker on CPU `here`, the task last on CPU `prev`. First a target, which is prev unless
 *     - here is idle (an interrupt), prev is not, and both share a cache: here;
 *     - the wake-up is sync and the waker is alone here: here;
 *     - prev is not idle, and load here (without the waker's, if sync) + load of the task is less than
 *       (100 + (imbalance_pct - 100) / 2) % of the load of prev without the task: here.
 * A task that wakes many, or is woken by many, does not pull tasks to its CPU: f is the number of different tasks
 * that a task has woken recently (wakee_flips); the smaller f is at least the number n of CPUs in the cache, and the
 * larger n times that. Then an idle CPU: the target, prev, the one before that, any that shares the target's cache;
 * otherwise the target itself.
 *
 * Example (n = 4): a sender on CPU 0, load 2000, its own 900, writes to a reader that slept on CPU 1, which is busy;
 * load of CPU 1 1900, the reader's 300. 2000 - 900 + 300 = 1400 < 1.08 * 1600: the reader goes to CPU 0, and if 2 is
 * idle to CPU 2.
 *
 * A new task: balance_fork.bpf.h. In a busy cache the search covers fewer CPUs (SIS_UTIL, update_idle_scan).
 *
 * Tasks inherit f, so that every task of a system that is up has some. Not modelled: idle cores before idle threads,
 * asymmetric capacities, per-CPU kernel threads.
 */
#ifndef FAIRGROUND_BALANCE_WAKE_BPF_H
#define FAIRGROUND_BALANCE_WAKE_BPF_H

#include "balance_fork.bpf.h"
#include "balance_move.bpf.h"
#include "balance_record.bpf.h"
#include "interrupt.bpf.h"

/* In a cache of more CPUs than this sched_ext's own search finds an idle one, from the first on. */
#define CACHE_LOOK_MAX 64

/*
 * available_idle_cpu: true reserves the CPU for the task. A CPU without tasks of this scheduler is not idle while a
 * task of a higher class runs there; the scheduler is not notified of that.
 */
static __always_inline bool takes_idle(struct task_struct *p, u32 cpu)
{
    if (nr_running(cpu) || !bpf_cpumask_test_cpu(cpu & (MAX_CPUS - 1), p->cpus_ptr) ||
        !scx_bpf_test_and_clear_cpu_idle((s32)cpu))
        return false;
    cpu_claimed[BOUNDED(cpu, MAX_CPUS)] = true;
    return true;
}

static __always_inline bool shares_cache(u32 a, u32 b)
{
    return unit_at(DOMAIN_MC + 1, place_of(a))->first == unit_at(DOMAIN_MC + 1, place_of(b))->first;
}

/* record_wakee: the number of different tasks that this one has woken; halved every second. */
static __always_inline void note_wakee(struct balance_record *waker, u32 pid)
{
    u64 jiffy = bpf_jiffies64();

    if (jiffy - waker->flip_jiffy > (CONFIG_HZ ?: 1000)) {
        waker->wakee_flips >>= 1;
        waker->flip_jiffy = jiffy;
    }
    if (waker->last_wakee != pid) {
        waker->last_wakee = pid;
        waker->wakee_flips++;
    }
}

/* wake_wide */
static __always_inline bool is_wide(const struct balance_record *waker, const struct balance_record *wakee, u32 cpu)
{
    const struct unit *cache = unit_at(DOMAIN_MC + 1, place_of(cpu));
    u32 cpus = cache->end - cache->first, a = waker->wakee_flips, b = wakee->wakee_flips;
    u32 more = a > b ? a : b, less = a > b ? b : a;

    return less >= cpus && more >= less * cpus;
}

/*
 * A new task begins with its parent's count of different tasks woken: dup_task_struct copies it, and nothing resets
 * it. So it comes from the first processes of the system, which wake many: wakee_flips_at_start for tasks that exist
 * before the scheduler, and for those of a parent that it does not have. In ops.init_task; the parent is the current
 * task.
 */
static __always_inline void wakees_of_parent(struct balance_record *r, bool is_new)
{
    struct task_struct *parent = (struct task_struct *)bpf_get_current_task_btf();
    struct balance_record *from;

    if (rule_wake != WAKE_FAIR)
        return;
    from = is_new && parent ? balance_record_of(parent) : NULL;
    if (!from) {
        r->wakee_flips = wakee_flips_at_start;
        r->flip_jiffy = bpf_jiffies64();
        return;
    }
    r->last_wakee = from->last_wakee;
    r->wakee_flips = from->wakee_flips;
    r->flip_jiffy = from->flip_jiffy;
}

/* wake_affine_weight */
static __noinline bool is_lighter(const struct balance_record *waker, const struct balance_record *wakee, u32 here,
                                  u32 prev, bool sync)
{
    u64 here_load, prev_load, load, waker_load;
    s64 percent = 100 + (params_of(common_level(here, prev))->imbalance_pct - 100) / 2;

    if (!wakee)
        return false;
    here_load = load_of_cpu(here);
    prev_load = load_of_cpu(prev);
    if (sync && waker) {
        waker_load = load_of_task(waker);
        if (waker_load > here_load)
            return true;
        here_load -= waker_load;
    }
    load = load_of_task(wakee);
    return (s64)(here_load + load) * 100 < ((s64)prev_load - (s64)load) * percent + sync;
}

/* wake_affine: whether the waker's CPU is the better target than the one on which the task slept. */
static __always_inline bool is_drawn(const struct balance_record *waker, const struct balance_record *wakee, u32 here,
                                     u32 prev, bool by_interrupt, bool sync)
{
    bool prev_free = is_free(prev);

    if (by_interrupt && is_free(here) && shares_cache(here, prev))
        return !prev_free;
    if (sync && nr_running(here) == 1)
        return true;
    return !prev_free && is_lighter(waker, wakee, here, prev, sync);
}

/* select_idle_cpu: the first idle CPU after the target in its cache, reserved; MAX_CPUS: none. */
static __noinline u32 idle_in_cache(struct task_struct *p, u32 target)
{
    const struct unit *cache = unit_at(DOMAIN_MC + 1, place_of(target));
    u32 cpus = cache->end - cache->first, own = place_of(target), found = MAX_CPUS, i;
    u32 scan = idle_scan[BOUNDED(cache->first, MAX_CPUS)], looks = SIS_UTIL && scan ? scan - 1 : cpus;

    for_range (i, CACHE_LOOK_MAX) {
        u32 place = own + 1 + i, cpu;

        if (i + 1 >= cpus || i >= looks)
            break;
        cpu = cpu_at(place < cache->end ? place : place - cpus);
        if (takes_idle(p, cpu)) {
            found = cpu;
            break;
        }
    }
    return found;
}

/* select_idle_sibling: an idle CPU, reserved, or the target. */
static __always_inline u32 idle_near(struct task_struct *p, struct balance_record *r, u32 prev, u32 target,
                                     bool *is_idle)
{
    u32 recent = r->recent_cpu - 1, found;

    *is_idle = true;
    if (takes_idle(p, target))
        return target;
    if (prev != target && shares_cache(prev, target) && takes_idle(p, prev))
        return prev;
    r->recent_cpu = prev + 1;
    if (recent < MAX_CPUS && recent != prev && recent != target && shares_cache(recent, target) &&
        takes_idle(p, recent))
        return recent;
    found = idle_in_cache(p, target);
    *is_idle = found < MAX_CPUS;
    return *is_idle ? found : target;
}

/*
 * The target CPU of a waking task, unless an idle CPU is near: the one on which it slept, or this one. In an interrupt
 * the interrupted task counts as the waker (`current`).
 */
static __always_inline u32 wake_target(struct task_struct *p, const struct balance_record *wakee, u32 prev,
                                       u64 wake_flags)
{
    u32 here = this_cpu();
    struct task_struct *current = (struct task_struct *)bpf_get_current_task_btf();
    bool by_interrupt = in_interrupt(!nr_running(here));
    struct balance_record *waker = current ? balance_record_of(current) : NULL;
    bool sync = (wake_flags & SCX_WAKE_SYNC) && current && !(current->flags & PF_EXITING);

    if (waker)
        note_wakee(waker, (u32)p->pid);
    if (here == prev || !bpf_cpumask_test_cpu(here, p->cpus_ptr) || (waker && is_wide(waker, wakee, here)))
        return prev;
    return is_drawn(waker, wakee, here, prev, by_interrupt, sync) ? here : prev;
}

/* select_task_rq_fair. *is_idle: the CPU is idle and now reserved for the task. */
static __always_inline u32 fair_select_cpu(struct task_struct *p, u32 prev, u64 wake_flags, bool *is_idle)
{
    struct balance_record *wakee = balance_record_of(p);
    const struct unit *cache;
    u32 cpu = prev;

    if (wake_flags & SCX_WAKE_FORK) {
        /* wake_up_new_task: the parent's CPU */
        if (wakee)
            wakee->recent_cpu = prev + 1;
        cpu = nr_cpus > 1 ? fork_cpu(p, prev) : prev;
        *is_idle = takes_idle(p, cpu);
        return cpu;
    }
    if (wakee && nr_cpus > 1) {
        cpu = wake_target(p, wakee, prev, wake_flags);
        cache = unit_at(DOMAIN_MC + 1, place_of(cpu));
        if (cache->end - cache->first > CACHE_LOOK_MAX)
            return (u32)scx_bpf_select_cpu_dfl(p, (s32)cpu, wake_flags & ~SCX_WAKE_SYNC, is_idle);
        cpu = idle_near(p, wakee, prev, cpu, is_idle);
        load_departs(wakee, cpu);
        return cpu;
    }
    *is_idle = scx_bpf_test_and_clear_cpu_idle((s32)cpu);
    return cpu;
}

#endif
