/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The load balancer of Linux 2.6.22 to 2.6.27, and of 5.5 to 7.2, for a scheduler with queues per CPU
 * (kernel/sched.c: rebalance_domains, load_balance, load_balance_newidle, active_load_balance, try_to_wake_up,
 * sched_balance_self).
 *
 * Rule: every CPU periodically searches its domains (domains.bpf.h) for work, the smallest first: it finds the
 * busiest group (balance_group.bpf.h) and takes tasks from that group's busiest CPU (balance_move.bpf.h). A CPU with
 * work does so every balance_interval * busy_factor ms (64 to 256 on most levels), an idle one every balance_interval
 * (1 to 4). The interval doubles each time there was nothing to do, and is the shortest again after an imbalance. A
 * CPU that becomes idle searches at once. balance_place.bpf.h places waking and new tasks.
 *
 * The kernel balances in a softirq. A sched_ext program moves tasks between queues only in dispatch, so the tick
 * searches and dispatch moves. An idle CPU has no tick: the tick of a CPU with two tasks wakes an idle CPU that is
 * due, which then balances in its dispatch. When no CPU has two tasks, nothing is searched.
 *
 * A complete example (a scheduler with one queue per CPU, in order of arrival):
 *
 *     #define BALANCE_RELEASE 2_6_24                       // which release's rules: see balance_tunables.bpf.h
 *     #include "cpus.bpf.h"                                // before it: #define BALANCE_QUEUES n, if more than 1
 *
 *     static __always_inline u64 balance_weight(struct task_struct *p)
 *     {                                                    // the task's load; the same as at its join_cpu
 *         return nice_weight[nice_index(p->static_prio)];
 *     }
 *     static __always_inline u64 balance_queue(u32 cpu, u32 index)
 *     {                                                    // the queue to take from first (index 0), next (1) ...
 *         return queue_id(cpu, index);
 *     }
 *     static __always_inline bool balance_prefers(struct task_struct *p, u32 to)
 *     {                                                    // move it although too heavy: it would be the best there
 *         return false;
 *     }
 *     static __always_inline u64 balance_last_ran_ns(struct task_struct *p)
 *     {                                                    // for "cache-hot"; 0: never hot, ~0ULL: hot in any case
 *         return p->se.exec_start;
 *     }
 *     static __always_inline u64 balance_target(struct task_struct *p, u32 from, u32 to, u64 *vtime)
 *     {                                                    // queue and key that it gets on `to`; changes nothing
 *         *vtime = p->scx.dsq_vtime;
 *         return queue_id(to, 0);
 *     }
 *     static __always_inline void balance_moved(struct task_struct *p, u32 from, u32 to)
 *     {                                                    // it has been moved: accounting, own records
 *         struct my_task *t = task_of(p);                  // scx_bpf_task_cpu(p) is still `from` until it is picked
 *
 *         leave_cpu(from, balance_weight(p));
 *         join_cpu(to, balance_weight(p));
 *         if (t)
 *             t->cpu = to;
 *     }
 *     #include "balance.bpf.h"
 *
 *     init:        err = create_cpu_queues(); if (!err) err = balance_init();
 *     select_cpu:  cpu = balance_select_cpu(p, prev_cpu, wake_flags, &is_idle);
 *                  if (is_idle) scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, ...);
 *     runnable:    t->cpu = scx_bpf_task_cpu(p); join_cpu(t->cpu, weight);
 *     quiescent:   leave_cpu(t->cpu, weight);
 *     enqueue:     cpu = scx_bpf_task_cpu(p);
 *                  if (neither a wake-up nor new) cpu = balance_active_push(p, cpu);
 *                  if (t->cpu != cpu) balance_moved(p, t->cpu, cpu);
 *                  insert into queue_id(cpu, 0);
 *     tick:        if (balance_tick(cpu)) scx_bpf_task_set_slice(p, 0);      // dispatch runs, and moves
 *     dispatch:    balance_run(cpu);                                         // first
 *                  pick from own queues; if there is nothing: if (newidle_balance(cpu)) pick again;
 *                  if nothing came: balance_nothing_came(cpu);
 *     cpu_online, cpu_offline:  BALANCE_HOTPLUG(mine)                        // balance_hotplug.bpf.h
 *     running:     if (t->cpu != scx_bpf_task_cpu(p)) move the accounting    // a remote CPU's move_to_local
 *                  if it bypassed dispatch, and a better one waits, and ask_for_choice(cpu): kick this CPU
 *
 * A slice is not used up when only balance_tick asked for dispatch: when nothing better came, the task continues with
 * its slice as it was.
 *
 * `--set trace_balance=on` prints one line for each search: the rule that decided, and the loads.
 *
 * Not modelled: power-saving modes; SD_SERIALIZE (one CPU at a time balances between nodes); pushing the only task of
 * a CPU away from a busy sibling (a scheduler cannot dequeue a running task); execve, at which the kernel places a
 * task again: sched_ext does not report it, so a new task is placed as at execve.
 */
#ifndef FAIRGROUND_BALANCE_BPF_H
#define FAIRGROUND_BALANCE_BPF_H

#include "balance_place.bpf.h"
#include "balance_newidle.bpf.h"

/* Updates intervals and failures after a balance. True: search the same level again, without the busiest CPU. */
static __always_inline bool note_outcome(u32 cpu, u32 moved)
{
    struct balance_cpu *b = balance_of(cpu);
    u32 level = b->level, busiest = b->scan.busiest_cpu & (MAX_CPUS - 1);
    struct balance_domain *d = &b->domains[level & (DOMAIN_LEVELS - 1)];
    bool active = false;

    if (moved) {
        d->nr_failed = 0;
        b->idle = NOT_IDLE;
    } else if (b->all_pinned) {
        b->left_out[BOUNDED(busiest, MAX_CPUS) / 64] |= 1ULL << (busiest & 63);
        b->left_out_count++;
        return true;
    } else if (++d->nr_failed > params_of(level)->cache_nice_tries + 2 &&
               (rule_imbalance == IMBALANCE_BY_LOAD || b->scan.by_tasks)) {
        d->nr_failed = rule_imbalance == IMBALANCE_BY_LOAD ? params_of(level)->cache_nice_tries + 1 : 0;
        active = !balance_of(busiest)->push_to;
        if (active) {
            balance_of(busiest)->push_to = cpu + 1;
            call_balancer(busiest);
            kick(busiest, SCX_KICK_PREEMPT);
        }
        if (trace_balance)
            bpf_printk("balance active: cpu %d level %d busiest %d", cpu, level, busiest);
    }
    if (!active)
        d->interval_ms = interval_limit_ms(cpu, level, false);
    else if (d->interval_ms < interval_limit_ms(cpu, level, true))
        d->interval_ms *= 2;
    return false;
}

/* Moves what the search has found, and continues it. */
SEPARATE void carry_out(u32 cpu)
{
    struct balance_cpu *b = balance_of(cpu);
    u32 i, moved;

    for_range (i, BALANCE_ROUNDS_MAX) {
        u32 level = b->level, busiest = b->scan.busiest_cpu & (MAX_CPUS - 1);

        if (!b->pending)
            break;
        if (b->seen_moves != READ_ONCE(balance_moves)) {
            /*
             * Another CPU has moved tasks since this one searched, perhaps in the same tick: in the kernel search and
             * move are one step.
             */
            b->seen_moves = READ_ONCE(balance_moves);
            b->pending = find_work(cpu, level, b->idle);
            if (!b->pending) {
                note_balanced(cpu, level);
                b->level++;
                look_through_domains(cpu);
                continue;
            }
            busiest = b->scan.busiest_cpu & (MAX_CPUS - 1);
        }
        moved = 0;
        b->all_pinned = false;
        if (cpu_tasks[busiest].nr > 1)
            moved = move_tasks(busiest, cpu, b->scan.imbalance, level);
        if (trace_balance && moved)
            bpf_printk("balance moved: cpu %d level %d from %d tasks %d", cpu, level, busiest, moved);
        if (note_outcome(cpu, moved)) {
            b->pending = find_work(cpu, level, b->idle);
            if (b->pending)
                continue;
            note_balanced(cpu, level);
        }
        b->level++;
        look_through_domains(cpu);
    }
    b->pending = false;
}

/* First the requests of other CPUs, then what this CPU has found. */
SEPARATE void serve_requests(u32 cpu)
{
    struct balance_cpu *b = balance_of(cpu);

    /* An exchange: a request that another CPU makes meanwhile is seen here, or sets the word again. */
    __sync_lock_test_and_set(&BALANCE_CALL(cpu), 0);
    b->idle_pass = false;
    b->asked = false;
    if (b->push_to)
        push_one(cpu);
    if (is_refused(b)) {
        b->kicked = false;
        b->pending = false;
    }
    if (b->kicked) {
        b->kicked = false;
        if (!nr_running(cpu)) {
            b->idle_pass = true;
            decay_idle_load(cpu);
            begin_balance(cpu, IDLE);
        }
    }
    if (b->pending)
        carry_out(cpu);
    if (b->push_to || b->idle_pass)
        call_balancer(cpu);
}

/*
 * At the start of ops.dispatch: carries out what the tick found, what an idle CPU was woken for, and what another CPU
 * asked this one to push. Tasks that it moved here are in this CPU's queues.
 */
static __always_inline void balance_run(u32 cpu)
{
    if (unlikely(is_balancer_called(cpu)))
        serve_requests(cpu);
}

/*
 * In ops.dispatch when no task came and the current one does not continue: if tasks are counted here, the kernel
 * refused them.
 */
static __always_inline void balance_nothing_came(u32 cpu)
{
    if (unlikely(nr_running(cpu)))
        give_back(cpu);
}

/*
 * In ops.running of a task that bypassed dispatch while a better one waits: whether it shall be preempted. Once until
 * dispatch has been called: the kernel first takes the tasks that it put into the CPU's own queue, all tasks of a CPU
 * that comes online and those that must not migrate at present. If each of them were preempted at once, none of them
 * would ever run.
 */
static __always_inline bool ask_for_choice(u32 cpu)
{
    struct balance_cpu *b = balance_of(cpu);

    if (b->asked)
        return false;
    b->asked = true;
    call_balancer(cpu);
    return true;
}

/*
 * In ops.enqueue for a task that was preempted: the CPU whose queue it goes to, another one when active balancing
 * pushes it.
 */
static __always_inline u32 balance_active_push(struct task_struct *p, u32 cpu)
{
    struct balance_cpu *b;
    u32 to;

    if (likely(!is_balancer_called(cpu)))
        return cpu;
    b = balance_of(cpu);
    if (!b->push_to)
        return cpu;
    to = (b->push_to - 1) & (MAX_CPUS - 1);
    b->push_to = 0;
    if (nr_running(cpu) < 2 || !bpf_cpumask_test_cpu(to, p->cpus_ptr))
        return cpu;
    if (trace_balance)
        bpf_printk("balance pushed: cpu %d level -1 to %d", cpu, to);
    kick(to, SCX_KICK_IDLE);
    return to;
}

/* In ops.init, after create_cpu_queues(). */
static __always_inline s32 balance_init(void)
{
    u32 cpu, level;

    note_offline();
    make_domains();
    for_range (cpu, nr_cpus) {
        struct balance_cpu *b = balance_of(cpu);
        /* CPUs start one after the other, so that they do not balance in step. */
        u64 phase_ns = (cpu * 23 & 63) * NS_PER_MS;

        b->load_jiffy = bpf_jiffies64();
        b->next_idle = cpu;
#ifdef BALANCE_RECORDS
        average_idle_ns[BOUNDED(cpu, MAX_CPUS)] = 2 * sched_migration_cost_ns;
#endif
        for_range (level, DOMAIN_LEVELS) {
            struct balance_domain *d = &b->domains[level & (DOMAIN_LEVELS - 1)];

            /* Where intervals depend on the number of CPUs: those of a machine that had nothing to balance so far. */
            d->interval_ms = params_of(level)->flags & INTERVAL_BY_SPAN ? interval_limit_ms(cpu, level, true) : 1;
            d->last_balance_ns = scx_bpf_now() - phase_ns;
#ifdef BALANCE_RECORDS
            d->longest_ns = newidle_search_ns;
            d->longest_jiffy = bpf_jiffies64();
#endif
#ifdef NEWIDLE_BY_CHANCE
            d->newidle_call = NEWIDLE_RATIO_MAX / 2;
            d->newidle_success = NEWIDLE_RATIO_MAX / 4;
            d->newidle_ratio = NEWIDLE_RATIO_MAX / 2;
            d->newidle_stamp_ns = scx_bpf_now();
#endif
        }
        set_next_balance(cpu, false);
    }
    return 0;
}

#include "balance_hotplug.bpf.h"

#endif
