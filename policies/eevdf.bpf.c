/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * eevdf: Earliest Eligible Virtual Deadline First, Linux 6.6 to 7.2. Parameter sets 6.6, 6.12, 6.18, 7.2.
 *
 * Rule: a task's vruntime v advances by the time it runs, * 1024 / weight. V is the weighted average of all v. lag =
 * V - v is service that the task is owed; with lag >= 0 it is eligible. It asks for the CPU in requests of a slice
 * each, and the deadline of a request is d = v + slice * 1024 / weight. Of the eligible tasks the one with the
 * earliest deadline runs. Once picked it is protected: until its request, or the shortest slice that waits, is used
 * up, or it is no longer eligible. A task that sleeps keeps its lag, within a limit. A task that sleeps with negative
 * lag stays queued as a delayed entity until V has caught up with it.
 *
 * Example (slice 3 ms; v in ms): A v 10, weight 1024; B v 12, weight 3121; C v 9, weight 335. V = 11.318526. A and C
 * are eligible; deadlines A 13, B 12.984299, C 18.170149. B's is the earliest, but B has run ahead of its share: A
 * runs. When A has run 3 ms, V is 11.318526 + 3 * 1024/4480 = 12.004241: B is eligible now, and runs.
 *
 * Where it fails: a task that wakes up often has no credit; it waits for the current task's slice, up to slice +
 * tick, unless it asks for a shorter one by sched_setattr. Without HRTICK (up to 6.18) slices end at ticks only: at
 * HZ 250 a slice of 2.8 ms lasts 4. Fairness holds per CPU only: a task's share depends on the tasks that share its
 * CPU.
 *
 * Follows kernel/sched/fair.c of 6.6, 6.12, 6.18 and 7.2: avg_vruntime, entity_eligible, update_deadline,
 * place_entity, pick_eevdf, check_preempt_wakeup_fair, dequeue_entity, requeue_delayed_entity, reweight_entity,
 * yield_task_fair, hrtick_start_fair. CPUs are chosen by balance_wake.bpf.h and balance_kinds.bpf.h. docs/laws/eevdf.md
 * states what must hold. Control groups: eevdf_groups.bpf.h. Not modelled: lazy preemption. With PREEMPT_LAZY
 * (Debian's 7.2) wake-ups and ticks preempt a task in user mode at once, one in a system call when it returns or at the
 * next tick. Of a delayed entity and a waiting task with the same deadline the waiting task is picked first; waiting
 * tasks with the same deadline are picked in the order in which they became eligible.
 */
#define BALANCE_QUEUES  2
#define BALANCE_RELEASE 6_1
#include "exit.bpf.h"
#include "eevdf_balance.bpf.h"
#include "eevdf_cgroup.bpf.h"

char _license[] SEC("license") = "GPL";

#define SCX_DEQ_SPECIAL (1ULL << 4) /* the sleep must not end by itself: exit, freezer */

extern u32 CONFIG_HZ __kconfig __weak;

s32 BPF_STRUCT_OPS(eevdf_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    struct eevdf_task *t = task_of(p);
    bool is_idle = false;
    s32 cpu;

    /* The kernel keeps a delayed task on its queue and does not look for another CPU. */
    if (t && t->delayed && t->cpu == (u32)prev_cpu && is_delayed(queue_of(t->cpu), t, (u32)p->pid) &&
        bpf_cpumask_test_cpu((u32)prev_cpu, p->cpus_ptr))
        return prev_cpu;
    cpu = balance_select_cpu(p, prev_cpu, wake_flags, &is_idle);
    if (is_idle)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
    return cpu;
}

/* A task becomes able to run: it wakes up, is new, or comes back after an attribute change. Before enqueue. */
void BPF_STRUCT_OPS(eevdf_runnable, struct task_struct *p, u64 enq_flags)
{
    struct eevdf_task *t = task_of(p);
    u32 cpu = task_cpu(p);
    struct eevdf_queue *q = queue_of(cpu);

    if (!t)
        return;
    t->custom_ns = custom_slice(p);
    if (t->delayed && is_delayed(queue_of(t->cpu), t, (u32)p->pid)) {
        if (t->cpu == cpu && t->own_weight == task_weight(p)) {
            settle_pulled(q);
            requeue_delayed(p, t, cpu);
            return;
        }
        cancel_delayed_dequeue(t, cpu);
    }
    clear_delayed(t);
    if (update_curr_by_clock(q))
        preempt_curr(q, cpu);
    place(q, t, reweight(t, p, cpu));
    join(p, q, t, cpu);
    hrtick_update(q, cpu);
}

/* check_preempt_wakeup_fair: whether a task that was just queued preempts the current one. */
static __always_inline bool wakeup_preempts(struct eevdf_queue *q, u32 cpu, struct task_struct *p,
                                            struct eevdf_task *t)
{
    u32 policy = p->policy, pid = (u32)p->pid;
    bool is_shorter = PREEMPT_SHORT && t->slice_ns < q->curr_slice_ns;

    if (NEXT_BUDDY && !t->is_new) {
        q->next_pid = pid;
        q->next_vruntime = t->vruntime;
    }
    if ((q->resched && (!rule_lazy || q->resched_now)) || !WAKEUP_PREEMPTION)
        return false;
    if (q->curr_policy == SCHED_IDLE && policy != SCHED_IDLE) {
        if (rule_idle_unprotected)
            cancel_protection(q);
        return true;
    }
    if (policy == SCHED_BATCH || policy == SCHED_IDLE)
        return false;
    if (update_curr_by_clock(q))
        preempt_curr(q, cpu);
    if (!rule_short_picks) {
        if (is_shorter && eligible(q, t->vruntime) &&
            (time_diff(t->deadline, q->curr_deadline) < 0 || !eligible(q, q->curr_vruntime)))
            cancel_protection(q);
        return would_choose(q, cpu, pid, t, true);
    }
    if (t->is_new && !is_shorter && !rule_forks_preempt)
        return false;
    if (unlikely(q->delayed) && rule_wakeup_dequeues)
        finish_delayed_at_wakeup(q, cpu, t, !is_shorter);
    if (would_choose(q, cpu, pid, t, !is_shorter)) {
        if (is_shorter)
            cancel_protection(q);
        return true;
    }
    if (rule_vprot && RUN_TO_PARITY)
        shorten_protection(q);
    return false;
}

/* The task is on another CPU than the one where it is accounted for: the accounting moves. */
static __noinline void follow(struct task_struct *p, struct eevdf_task *t, u32 cpu)
{
    u32 from = t->cpu & (MAX_CPUS - 1);

    account_migration(p, t, from, cpu, place_elsewhere(t, from, cpu));
}

/* A task waits: it woke up, is new, was preempted, or had to leave another CPU. */
void BPF_STRUCT_OPS(eevdf_enqueue, struct task_struct *p, u64 enq_flags)
{
    struct eevdf_task *t = task_of(p);
    u32 cpu = task_cpu(p);
    struct eevdf_queue *q;

    if (!t) {
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
        return;
    }
    if (!(enq_flags & SCX_ENQ_WAKEUP) && !t->is_new) {
        cpu = balance_active_push(p, cpu);
        if (t->cpu != cpu)
            follow(p, t, cpu);
        insert_waiting(queue_of(cpu), cpu, p, t, enq_flags & ~SCX_ENQ_PREEMPT);
        return;
    }
    if (t->cpu != cpu)
        follow(p, t, cpu);
    q = queue_of(cpu);
    insert_waiting(q, cpu, p, t, enq_flags & ~SCX_ENQ_PREEMPT);
    settle_pulled(q);
    if (q->curr_pid && wakeup_preempts(q, cpu, p, t))
        preempt_curr(q, cpu);
    t->is_new = false;
}

/* Whether the pass was asked for by the load balancer only: the current task continues. */
static __always_inline bool only_balances(struct eevdf_queue *q)
{
    if (likely(!q->balances))
        return false;
    q->balances = false;
    return !q->resched;
}

/* Whether the task of ops.dispatch is the current one, and can run on. */
static __always_inline bool is_current(const struct eevdf_queue *q, const struct task_struct *prev)
{
    return prev && q->curr_pid == (u32)prev->pid;
}

/* The current task stays: it is alone, or still the best. Nothing was picked, so its protection stays as it is. */
static __always_inline void keep(struct eevdf_queue *q, u32 cpu, struct task_struct *prev)
{
    if (q->bypassed) {
        q->bypassed = false;
        start_slice(q, cpu);
    }
    q->resched = q->resched_now = false;
    clear_buddy(q, q->curr_pid);
    scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
}

/*
 * Brings the first of the ineligible tasks to this CPU. `is_last`: it is the last task that waits.
 *
 * Behind the last task the queue is empty. Another CPU that puts a task here at the same time counts it before it
 * invalidates the record: the record is written before the count is read again, so that one of the two is seen.
 */
static __always_inline bool fetch_ineligible(struct eevdf_queue *q, u32 cpu, bool is_last)
{
    WRITE_ONCE(q->ineligible.state, is_last ? LEFT_NONE : LEFT_UNKNOWN);
    if (is_last && __sync_fetch_and_add(&q->nr, 0) != 1)
        forget_leftmost(&q->ineligible);
    if (scx_bpf_dsq_move_to_local(queue_id(cpu, INELIGIBLE)))
        return true;
    forget_leftmost(&q->ineligible);
    return false;
}

/* Brings the chosen task to this CPU. If another CPU has taken it, the next one comes. */
static __always_inline bool fetch(struct eevdf_queue *q, u32 cpu, enum choice choice)
{
    u32 nr = q->nr;

    if (!nr)
        return false;
    if (unlikely(choice == CHOOSE_BUDDY) && move_pid_to_local(cpu, q->next_pid))
        return true;
    /* If the record is out of date, it is among the eligible. */
    if (nr == 1 && q->ineligible.state == LEFT_KNOWN)
        return fetch_ineligible(q, cpu, true) || scx_bpf_dsq_move_to_local(queue_id(cpu, ELIGIBLE));
    return scx_bpf_dsq_move_to_local(queue_id(cpu, ELIGIBLE)) || fetch_ineligible(q, cpu, nr == 1);
}

/* This CPU picks again. `prev` is still current: if it can run and its slice is not 0 afterwards, it continues. */
void BPF_STRUCT_OPS(eevdf_dispatch, s32 this, struct task_struct *prev)
{
    u32 cpu = (u32)this & (MAX_CPUS - 1);
    struct eevdf_queue *q = queue_of(cpu);
    enum choice choice;

    balance_run(cpu);
    settle_pulled(q);
    if (is_current(q, prev)) {
        settle_hrtick(q);
        charge_prev(q, read_sum_exec(q, prev));
        choice = only_balances(q) ? CHOOSE_CURRENT : choose(q, cpu, true);
    } else {
        q->balances = false;
        choice = choose(q, cpu, false);
    }
    if (choice == CHOOSE_NONE && !q->nr && newidle_balance(cpu)) {
        settle_pulled(q);
        choice = choose(q, cpu, false);
    }
    if (choice != CHOOSE_CURRENT && fetch(q, cpu, choice)) {
        q->picked = true;
    } else if (is_current(q, prev)) {
        keep(q, cpu, prev);
    } else {
        q->hrtick_ns = 0;
        balance_nothing_came(cpu);
    }
}

/*
 * A task comes onto a CPU, but was not picked by dispatch: the CPU was idle, it is back after a real-time task, or
 * after a change of its attributes. If a waiting task is better, dispatch chooses again.
 */
static __noinline void run_unpicked(const struct task_struct *p)
{
    u32 cpu = task_cpu(p);
    struct eevdf_queue *q = queue_of(cpu);
    bool restored = q->restored_pid == (u32)p->pid;

    q->bypassed = !q->picked && !restored && nr_running(cpu) > 1 && is_beaten(q, cpu) && ask_for_choice(cpu);
    if (q->bypassed) {
        q->curr_vprot = rule_vprot ? q->curr_vruntime : q->curr_deadline + 1;
        preempt_curr(q, cpu);
    } else if (restored && p->flags & PF_EXITING && q->nr) {
        /* It has left its autogroup; a scheduling pass follows, under the protection that it has (sched_move_task). */
        preempt_curr(q, cpu);
    } else if (restored) {
        protect(q);
    } else {
        start_slice(q, cpu);
    }
    q->restored_pid = 0;
}

/* set_next_entity: a task comes onto a CPU. */
void BPF_STRUCT_OPS(eevdf_running, struct task_struct *p)
{
    struct eevdf_task *t = task_of(p);
    u32 cpu = task_cpu(p), weight;
    struct eevdf_queue *q = queue_of(cpu);
    u64 vruntime;

    if (!t)
        return;
    if (t->cpu != cpu)
        follow(p, t, cpu);
    settle_pulled(q);
    if (unlikely(t->group))
        refresh_group_weight(q, t, cpu);
    vruntime = t->vruntime;
    weight = t->weight;
    sums_sub(q, vruntime, weight);
    t->ineligible = false;
    t->is_new = false;
    q->curr_pid = (u32)p->pid;
    q->curr_vruntime = vruntime;
    q->curr_deadline = t->deadline;
    q->curr_slice_ns = t->slice_ns;
    q->curr_custom_ns = t->custom_ns;
    q->curr_kind = t->kind;
    q->curr_weight = weight;
    q->curr_inverse = t->inverse;
    q->curr_policy = p->policy;
    q->curr_group = t->group;
    q->curr_sum_exec = p->se.sum_exec_runtime;
    q->curr_ahead_ns = 0;
    q->hrtick_fired_ns = 0;
    q->resched = q->resched_now = false;
    q->bypassed = false;
    clear_buddy(q, q->curr_pid);
    q->curr_clock_ns = scx_bpf_now();
    if (likely(q->picked && !q->restored_pid))
        start_slice(q, cpu);
    else
        run_unpicked(p);
    q->picked = false;
}

/* entity_tick: requests end here, and at wake-ups. */
void BPF_STRUCT_OPS(eevdf_tick, struct task_struct *p)
{
    u32 cpu = this_cpu();
    struct eevdf_queue *q = queue_of(cpu);

    if (q->curr_pid != (u32)p->pid)
        return;
    settle_pulled(q);
    settle_hrtick(q);
    q->resched_now |= q->resched;
    if (update_curr(q, p))
        q->resched = true;
    if (unlikely(q->curr_group))
        refresh_curr_weight(q, task_of(p), cpu);
    q->balances = balance_tick(cpu);
    if (q->resched || q->balances)
        scx_bpf_task_set_slice(p, 0);
}

/* put_prev_entity: a task leaves its CPU, for the queue or on its way out. It is in the sums again. */
void BPF_STRUCT_OPS(eevdf_stopping, struct task_struct *p, bool runnable)
{
    struct eevdf_task *t = task_of(p);
    struct eevdf_queue *q;

    if (!t)
        return;
    /* The CPU on which it was switched in. */
    q = queue_of(t->cpu);
    if (q->curr_pid != (u32)p->pid)
        return;
    q->stopped_pid = runnable ? 0 : (u32)p->pid;
    settle_pulled(q);
    settle_hrtick(q);
    charge_prev(q, uncharged(q, p->se.sum_exec_runtime));
    t->vruntime = q->curr_vruntime;
    t->deadline = q->curr_deadline;
    t->slice_ns = q->curr_slice_ns;
    t->kind = q->curr_kind;
    q->curr_pid = 0;
    q->curr_weight = 0;
    sums_add(q, t->vruntime, t->weight);
}

/* The rest of dequeue_entity for a task that waits on another run queue than its own: it was just moved. */
static __noinline void leave_elsewhere(struct eevdf_task *t, u32 cpu)
{
    struct eevdf_queue *q = queue_of(cpu);
    struct remote_view view;

    view_remote(q, &view);
    t->vlag = lag_of(t, q, view.average);
    account_remotely(q, t->vruntime, t->weight, -1);
    uncount_slice(q, t->kind);
    if (t->ineligible)
        forget_leftmost(&q->ineligible);
}

/* dequeue_entity: a task goes to sleep, or out for an attribute change. */
void BPF_STRUCT_OPS(eevdf_quiescent, struct task_struct *p, u64 deq_flags)
{
    struct eevdf_task *t = task_of(p);
    bool sleeps = deq_flags & SCX_DEQ_SLEEP, stopped;
    struct eevdf_queue *q;
    u32 cpu;

    if (!t)
        return;
    cpu = t->cpu & (MAX_CPUS - 1);
    q = queue_of(cpu);
    leave(p, t, cpu);
    if (cpu == task_cpu(p)) {
        stopped = q->stopped_pid == (u32)p->pid;
        q->stopped_pid = 0;
        q->restored_pid = stopped && !sleeps ? (u32)p->pid : 0;
        if (update_curr_by_clock(q))
            preempt_curr(q, cpu);
        if (!stopped && t->ineligible)
            forget_leftmost(&q->ineligible);
        clear_buddy(q, (u32)p->pid);
        if (sleeps && DELAY_DEQUEUE && !(deq_flags & SCX_DEQ_SPECIAL) && !(p->flags & PF_EXITING) &&
            !eligible(q, t->vruntime) && delay_dequeue(q, cpu, t, (u32)p->pid)) {
            if (rule_delay_keeps)
                t->vlag = lag_of(t, q, average(q));
            load_lingers(&t->record);
            return;
        }
        t->vlag = lag_of(t, q, average(q));
        sums_sub(q, t->vruntime, t->weight);
        uncount_slice(q, t->kind);
    } else {
        leave_elsewhere(t, cpu);
    }
    if (!sleeps) {
        t->deadline -= t->vruntime;
        t->rel_deadline = true;
    }
}

/* yield_task_fair, and yield_to_task_fair, which makes `to` the buddy. */
bool BPF_STRUCT_OPS(eevdf_yield, struct task_struct *from, struct task_struct *to)
{
    u32 cpu = task_cpu(from);
    struct eevdf_queue *q = queue_of(cpu);

    if (q->curr_pid != (u32)from->pid)
        return false;
    settle_pulled(q);
    if (to) {
        struct eevdf_task *t = task_of(to);

        if (!t || t->cpu != cpu || t->delayed || !(to->scx.flags & SCX_TASK_QUEUED))
            return false;
        q->next_pid = (u32)to->pid;
        q->next_vruntime = t->vruntime;
    }
    q->resched = true;
    scx_bpf_task_set_slice(from, 0);
    if (!q->nr)
        return to;
    clear_buddy(q, q->curr_pid);
    update_curr(q, from);
    if (!rule_yield_forfeits) {
        q->curr_deadline += virtual_time(q->curr_slice_ns, q->curr_weight, q->curr_inverse);
    } else if (eligible(q, q->curr_vruntime)) {
        q->curr_vruntime = q->curr_deadline;
        renew_request(q);
    }
    return to;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(eevdf_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
    struct eevdf_task *t = bpf_task_storage_get(&task_ctx, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

    if (!t)
        return -ENOMEM;
    t->is_new = true;
    wakees_of_parent(&t->record, args->fork);
    t->kind = SLICE_KINDS;
    t->group = args->cgroup ? group_of_cgroup(args->cgroup) : 0;
    return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(eevdf_init)
{
    s32 err = create_cpu_queues();
    u32 cpu;

    init_scaling(SCALING_CPUS_MAX);
    tick_ns = 1000000000ULL / (CONFIG_HZ ?: 1000);
    for_range (cpu, nr_cpus)
        queue_of(cpu)->zero = ZERO_START;
    if (!err)
        err = balance_init();
    return err ?: hrtick_init();
}

EXIT_RECORD(eevdf)

SCX_OPS_DEFINE(eevdf_ops, .select_cpu = (void *)eevdf_select_cpu, .runnable = (void *)eevdf_runnable,
               .enqueue = (void *)eevdf_enqueue, .dispatch = (void *)eevdf_dispatch, .running = (void *)eevdf_running,
               .tick = (void *)eevdf_tick, .stopping = (void *)eevdf_stopping, .quiescent = (void *)eevdf_quiescent,
               .yield = (void *)eevdf_yield, .init_task = (void *)eevdf_init_task, .init = (void *)eevdf_init,
               .cgroup_init = (void *)eevdf_cgroup_init, .cgroup_exit = (void *)eevdf_cgroup_exit,
               .cgroup_move = (void *)eevdf_cgroup_move, .cgroup_set_weight = (void *)eevdf_cgroup_set_weight,
               .exit = (void *)eevdf_exit, .flags = SCX_OPS_ENQ_EXITING, .timeout_ms = 30000, .name = "eevdf");
