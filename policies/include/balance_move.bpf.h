/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Taking tasks from another CPU: move_tasks and balance_tasks, can_migrate_task, and active balancing.
 *
 * The waiting tasks of the busiest CPU are examined in the order of its queue, sched_nr_migrate + 1 of them at most.
 * A task is skipped when
 *     it is too heavy:     weight / 2 > what is left to move + FUZZ (2.6.22: weight > what is left), unless the
 *                          scheduler prefers it (balance_prefers: it would be the best on this CPU). Since 5.5: its
 *                          load over time, halved for each failure, > what is left; never where tasks are counted;
 *     it may not run here: when that is so for all that are light enough, the balance is repeated without that CPU,
 *                          and the interval may grow to 512 ms (in the kernel, too, all tasks too heavy count as all
 *                          pinned);
 *     it is cache-hot:     it ran less than sched_migration_cost_ns ago, and balancing has not failed cache_nice_tries
 *                          times before.
 * The running task is in no queue, so it stays. Example: imbalance 256, FUZZ 512, nice 0: 512 > 256 + 512 is false,
 * so a task moves; 256 - 1024 is negative, so one is enough. A task of nice -5 (3121) stays: 1560 > 768.
 *
 * A CPU that is about to go offline has left the kernel's domains, but the scheduler is notified later: it may still
 * take tasks, which the kernel does not run there, and which their own CPU does not see. So a CPU to which nothing
 * came although tasks are in its queues gives back what it took (give_back), and takes nothing for a while.
 */
#ifndef FAIRGROUND_BALANCE_MOVE_BPF_H
#define FAIRGROUND_BALANCE_MOVE_BPF_H

#include "balance_group.bpf.h"

/* Limit of the waiting tasks that one balance examines, whatever sched_nr_migrate is. */
#define MOVE_LOOK_MAX 4096

/* Queues of a CPU that are searched; a scheduler with a varying number defines it. */
#ifndef BALANCE_SEARCHED
#define BALANCE_SEARCHED(cpu) BALANCE_QUEUES
#endif

/* task_hot: whether a waiting task probably still has its data in the cache of the CPU that it ran on. */
static __always_inline bool task_hot(struct task_struct *p)
{
    u64 last_ran_ns;

    if (!rule_hot)
        return false;
    last_ran_ns = balance_last_ran_ns(p);
    if (last_ran_ns == ~0ULL)
        return true;
    return last_ran_ns && (s64)(scx_bpf_now() - last_ran_ns) < (s64)sched_migration_cost_ns;
}

/* The part of the imbalance that a task uses up: its weight, its load over time (task_h_load), or one. */
static __always_inline u64 load_to_move(struct task_struct *p, const struct group_scan *s)
{
#ifdef BALANCE_RECORDS
    struct balance_record *r = rule_imbalance == IMBALANCE_BY_KIND ? balance_record_of(p) : NULL;

    if (r && !s->by_tasks)
        return waiting_load(r) ?: 1;
#endif
    return s->by_tasks ? 1 : balance_weight(p);
}

/* Whether a task with this load is too heavy for this imbalance after so many failures. */
static __always_inline bool too_heavy(u64 load, u64 left, u32 failed)
{
    if (rule_skip == SKIP_HALVED)
        return load >> (failed < 63 ? failed : 63) > left;
    if (rule_skip == SKIP_WEIGHT)
        return load > left;
    return load / 2 > left + sched_load_scale_fuzz;
}

/* How long a CPU takes nothing after the kernel has refused it the tasks that it took. */
#define REFUSED_PAUSE_NS 10000000ULL

/* Whether the kernel has recently refused this CPU the tasks that it took. */
static __always_inline bool is_refused(const struct balance_cpu *b)
{
    return unlikely(b->refused_until_ns) && (s64)(b->refused_until_ns - scx_bpf_now()) > 0;
}

/* One task of the iteration: moves it if it may be. `left`: load still to move, or ~0 for any. True: moved. */
static __always_inline bool move_task(struct bpf_iter_scx_dsq *it, struct task_struct *p, u32 from, u32 to, u64 load,
                                      u64 left, u32 level)
{
    struct balance_cpu *b = balance_of(to);
    u32 failed = b->domains[level & (DOMAIN_LEVELS - 1)].nr_failed;
    bool heavy = left != ~0ULL && too_heavy(load, left, failed);
    u64 queue, vtime = 0;

    if (heavy && rule_skip != SKIP_HALVED && !balance_prefers(p, to))
        return false;
    if (!bpf_cpumask_test_cpu(to, p->cpus_ptr))
        return false;
    b->all_pinned = false;
    if (failed <= params_of(level)->cache_nice_tries && task_hot(p))
        return false;
    if (heavy && rule_skip == SKIP_HALVED)
        return false;
    queue = balance_target(p, from, to, &vtime);
    if (!scx_bpf_dsq_move_vtime(it, p, queue, vtime, 0))
        return false;
    balance_moved(p, from, to);
    __sync_fetch_and_add(&balance_moves, 1);
    return true;
}

/*
 * Moves waiting tasks of `from` to the queues of `to`, until `load` of weight has been moved (~0: one task, whatever
 * its weight). Returns how many. Only in dispatch.
 */
SEPARATE u32 move_tasks(u32 from, u32 to, u64 load, u32 level)
{
    struct balance_cpu *b = balance_of(to);
    u32 i, index;
    s64 left = load == ~0ULL ? 1 : (s64)load;
    bool done = !load;

    b->all_pinned = !done;
    b->looked = 0;
    b->moved = 0;
    for_range (index, BALANCE_SEARCHED(from)) {
        struct bpf_iter_scx_dsq it;

        if (!bpf_iter_scx_dsq_new(&it, balance_queue(from, index), 0)) {
            for_range (i, MOVE_LOOK_MAX) {
                struct task_struct *p = done ? NULL : bpf_iter_scx_dsq_next(&it);
                u64 weight;

                if (!p || b->looked > sched_nr_migrate)
                    break;
                b->looked++;
                weight = load_to_move(p, &b->scan);
                if (!move_task(&it, p, from, to, weight, load == ~0ULL ? load : (u64)left, level))
                    continue;
                b->moved++;
                left -= (s64)weight;
                done = left <= 0 || b->scan.one_only;
            }
        }
        bpf_iter_scx_dsq_destroy(&it);
    }
    if (!b->looked)
        b->all_pinned = false;
    return b->moved;
}

/* Returns tasks that wait here to the CPUs that they were taken from. In dispatch, or when the CPU has gone offline. */
SEPARATE void give_back(u32 cpu)
{
    u32 i, index;

    for_range (index, BALANCE_SEARCHED(cpu)) {
        struct bpf_iter_scx_dsq it;

        if (!bpf_iter_scx_dsq_new(&it, balance_queue(cpu, index), 0)) {
            for_range (i, MOVE_LOOK_MAX) {
                struct task_struct *p = bpf_iter_scx_dsq_next(&it);
                u64 queue, vtime = 0;
                u32 home;

                if (!p)
                    break;
                home = task_cpu(p);
                if (home == cpu)
                    continue;
                queue = balance_target(p, cpu, home, &vtime);
                if (!scx_bpf_dsq_move_vtime(&it, p, queue, vtime, 0))
                    continue;
                balance_moved(p, cpu, home);
                __sync_fetch_and_add(&balance_moves, 1);
                kick(home, SCX_KICK_IDLE);
                balance_of(cpu)->refused_until_ns = scx_bpf_now() + REFUSED_PAUSE_NS;
            }
        }
        bpf_iter_scx_dsq_destroy(&it);
    }
}

/*
 * Active balancing, on the busiest CPU: another CPU has failed to take anything so often that this one pushes a task
 * to it, hot or not. In the kernel the migration thread does that, so the current task can be pushed too: here it is
 * pushed when no waiting one could be and it is preempted (balance_active_push).
 */
SEPARATE void push_one(u32 cpu)
{
    struct balance_cpu *b = balance_of(cpu);
    u32 to = (b->push_to - 1) & (MAX_CPUS - 1), level, i, shared = 0;

    if (nr_running(cpu) < 2) {
        b->push_to = 0;
        return;
    }
    for_range (i, DOMAIN_LEVELS) {
        const struct unit *span = unit_at(i + 1, place_of(to));

        level = i;
        shared = i;
        if (place_of(cpu) >= span->first && place_of(cpu) < span->end)
            break;
    }
    level = shared;
    if (move_tasks(cpu, to, ~0ULL, level)) {
        b->push_to = 0;
        if (trace_balance)
            bpf_printk("balance pushed: cpu %d level %d to %d", cpu, level, to);
        kick(to, SCX_KICK_IDLE);
    }
}

#endif
