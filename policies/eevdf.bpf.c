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
 * states what must hold. Control groups: groups.bpf.h, eevdf_hierarchy.bpf.h.
 *
 * Not modelled: lazy preemption. With PREEMPT_LAZY (Debian's 7.2) wake-ups and ticks preempt a task in user mode at
 * once, one in a system call when it returns or at the next tick. Of a delayed entity and a waiting task with the same
 * deadline the waiting task is picked first; waiting tasks with the same deadline are picked in the order in which they
 * became eligible.
 */
#define BALANCE_QUEUES  2
#define BALANCE_STRIDE  8192
#define BALANCE_RELEASE 6_1
#include "exit.bpf.h"
#include "eevdf_cgroup.bpf.h"
#include "eevdf_preempt.bpf.h"
#include "eevdf_dispatch.bpf.h"

char _license[] SEC("license") = "GPL";

#define SCX_DEQ_SPECIAL (1ULL << 4) /* the sleep must not end by itself: exit, freezer */

extern u32 CONFIG_HZ __kconfig __weak;

s32 BPF_STRUCT_OPS(eevdf_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    struct eevdf_task *t = task_of(p);
    bool is_idle = false;
    s32 cpu;

    /* The kernel keeps a delayed task on its queue and does not look for another CPU. */
    if (t && t->delayed && t->cpu == (u32)prev_cpu && is_delayed(queue_of(t->at), t, (u32)p->pid) &&
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
    struct eevdf_queue *q;
    u32 at;

    if (!t)
        return;
    at = queue_at(t->group, cpu);
    q = queue_of(at);
    t->custom_ns = custom_slice(p);
    if (t->delayed && is_delayed(queue_of(t->at), t, (u32)p->pid)) {
        if (t->at == at && t->weight == task_weight(p)) {
            settle_pulled(q);
            requeue_delayed(p, t, cpu);
            return;
        }
        cancel_delayed_dequeue(t, cpu);
    }
    clear_delayed(t);
    if (update_curr_by_clock(q))
        preempt_curr(cpu);
    place(q, t, reweight(t, p));
    join(p, q, t, cpu);
    if (unlikely(t->group)) {
        change_group_load(t->group, cpu, t->weight);
        join_groups(at);
    }
    hrtick_update(cpu);
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
        insert_waiting(queue_of(t->at), t->at, p, t, enq_flags & ~SCX_ENQ_PREEMPT);
        return;
    }
    if (t->cpu != cpu)
        follow(p, t, cpu);
    q = queue_of(cpu);
    insert_waiting(queue_of(t->at), t->at, p, t, enq_flags & ~SCX_ENQ_PREEMPT);
    settle_pulled(queue_of(t->at));
    if (q->running_pid && (likely(!(q->leaf | t->group)) ? wakeup_preempts(q, cpu, p, t, (u32)p->pid, t->is_new)
                                                         : wakeup_preempts_in_groups(cpu, p, t)))
        preempt_curr(cpu);
    t->is_new = false;
}

/* This CPU picks again. `prev` is still current: if it can run and its slice is not 0 afterwards, it continues. */
void BPF_STRUCT_OPS(eevdf_dispatch, s32 this, struct task_struct *prev)
{
    u32 cpu = (u32)this & (MAX_CPUS - 1);
    struct eevdf_queue *q = queue_of(cpu);
    enum choice choice = CHOOSE_CURRENT;

    balance_run(cpu);
    settle_pulled(q);
    if (unlikely(has_groups(q))) {
        dispatch_in_groups(q, cpu, prev);
    } else if (is_current(q, prev)) {
        settle_hrtick(q);
        charge_prev(q, read_sum_exec(q, prev));
        if (!only_balances(q))
            choice = choose(q, cpu, true, false);
        carry_out_choice(q, cpu, prev, true, choice, cpu, false);
    } else {
        q->balances = false;
        choice = choose(q, cpu, false, false);
        if (unlikely(choice == CHOOSE_NONE))
            go_idle(cpu);
        else
            carry_out_choice(q, cpu, prev, false, choice, cpu, false);
    }
}

/*
 * A task comes onto a CPU, but was not picked by dispatch: the CPU was idle, it is back after a real-time task, or
 * after a change of its attributes. If a waiting task is better, dispatch chooses again.
 */
static __noinline void run_unpicked(const struct task_struct *p)
{
    u32 cpu = task_cpu(p);
    struct eevdf_queue *root = queue_of(cpu), *q = queue_of(queue_at(root->leaf, cpu));
    bool restored = root->restored_pid == (u32)p->pid;

    settle_pulled(q);
    root->bypassed = !root->picked && !restored && nr_running(cpu) > 1 && !root->children && is_beaten(root, cpu) &&
                     ask_for_choice(cpu);
    if (root->bypassed) {
        q->curr_vprot = rule_vprot ? q->curr_vruntime : q->curr_deadline + 1;
        preempt_curr(cpu);
    } else if (restored && p->flags & PF_EXITING && has_others(q, cpu)) {
        /* It has left its autogroup; a scheduling pass follows, under the protection that it has (sched_move_task). */
        preempt_curr(cpu);
    } else if (restored) {
        protect(q);
    } else {
        start_slice(q, cpu);
    }
    root->restored_pid = 0;
}

/* set_next_entity. `q`: the task's queue. */
static __always_inline void set_next(struct eevdf_queue *root, struct eevdf_queue *q, struct eevdf_task *t,
                                     struct task_struct *p, u32 cpu)
{
    set_curr(q, t, (u32)p->pid);
    t->ineligible = false;
    t->is_new = false;
    root->running_pid = (u32)p->pid;
    root->curr_policy = p->policy;
    q->curr_sum_exec = p->se.sum_exec_runtime;
    q->curr_ahead_ns = 0;
    root->hrtick_fired_ns = 0;
    root->bypassed = root->resched = root->resched_now = false;
    clear_buddy(q, (u32)p->pid);
    q->curr_clock_ns = scx_bpf_now();
    if (likely(root->picked && !root->restored_pid))
        start_slice(q, cpu);
    else
        run_unpicked(p);
    root->picked = false;
}

/* The same where the task, or the one before it, is in a group. */
static __noinline void set_next_in_group(struct eevdf_queue *root, struct eevdf_task *t, struct task_struct *p,
                                         u32 cpu)
{
    struct eevdf_queue *q = queue_of(t->at);

    settle_pulled(q);
    switch_groups(cpu, root->leaf, t->group, p->se.sum_exec_runtime);
    set_next(root, q, t, p, cpu);
}

/* A task comes onto a CPU. */
void BPF_STRUCT_OPS(eevdf_running, struct task_struct *p)
{
    struct eevdf_task *t = task_of(p);
    struct eevdf_queue *root;
    u32 cpu = task_cpu(p);

    if (!t)
        return;
    if (t->cpu != cpu)
        follow(p, t, cpu);
    root = queue_of(cpu);
    if (unlikely(root->leaf | t->group))
        set_next_in_group(root, t, p, cpu);
    else
        set_next(root, root, t, p, cpu);
}

/* entity_tick: requests end here, and at wake-ups. */
void BPF_STRUCT_OPS(eevdf_tick, struct task_struct *p)
{
    u32 cpu = this_cpu();
    struct eevdf_queue *root = queue_of(cpu), *q = queue_of(queue_at(root->leaf, cpu));

    if (root->running_pid != (u32)p->pid)
        return;
    settle_pulled(q);
    settle_hrtick(root);
    root->resched_now |= root->resched;
    if (update_curr(q, p))
        root->resched = true;
    if (unlikely(root->leaf) && tick_groups(root->leaf, cpu, p->se.sum_exec_runtime))
        root->resched = true;
    root->balances = balance_tick(cpu);
    if (root->resched || root->balances)
        scx_bpf_task_set_slice(p, 0);
}

/* put_prev_entity: the current task leaves its CPU, and is in the sums again. */
static __always_inline void put_prev(struct eevdf_queue *root, struct eevdf_queue *q, struct eevdf_task *t,
                                     const struct task_struct *p)
{
    settle_hrtick(root);
    if (unlikely(q->next_pid))
        settle_pulled(q);
    charge_prev(q, uncharged(q, p->se.sum_exec_runtime));
    root->running_pid = 0;
    put_curr(q, t);
}

/* The same of a task in a group. The groups stay current. */
static __noinline void put_prev_in_group(struct eevdf_queue *root, struct eevdf_task *t, const struct task_struct *p)
{
    put_prev(root, queue_of(t->at), t, p);
    charge_groups(t->group, root->cpu, p->se.sum_exec_runtime);
}

/* The same for one that stays runnable. One that does not comes to ops.quiescent next, under the same lock. */
void BPF_STRUCT_OPS(eevdf_stopping, struct task_struct *p, bool runnable)
{
    struct eevdf_queue *root;
    struct eevdf_task *t;

    if (!runnable)
        return;
    t = task_of(p);
    if (!t)
        return;
    /* The CPU on which it was switched in. */
    root = queue_of(t->cpu & (MAX_CPUS - 1));
    if (root->running_pid != (u32)p->pid)
        return;
    if (unlikely(t->group))
        put_prev_in_group(root, t, p);
    else
        put_prev(root, root, t, p);
}

/* The rest of dequeue_entity for a task that waits on another run queue than its own: it was just moved. */
static __noinline void leave_elsewhere(struct eevdf_task *t)
{
    struct eevdf_queue *q = queue_of(t->at);
    struct remote_view view;

    view_remote(q, &view);
    t->vlag = lag_of(t, q, view.average);
    account_remotely(q, t->vruntime, t->weight, -1);
    uncount_slice(q, t->kind);
    if (t->ineligible)
        forget_leftmost(&q->ineligible);
}

/* Whether a task that goes to sleep may stay queued until its lag is worked off. */
static __always_inline bool may_be_delayed(const struct task_struct *p, u64 deq_flags)
{
    return (deq_flags & (SCX_DEQ_SLEEP | SCX_DEQ_SPECIAL)) == SCX_DEQ_SLEEP && DELAY_DEQUEUE &&
           !(p->flags & PF_EXITING);
}

/* After its delayed entity was queued. */
static __always_inline void note_delayed(struct eevdf_queue *q, struct eevdf_task *t)
{
    if (rule_delay_keeps)
        t->vlag = lag_of(t, q, average(q));
    load_lingers(&t->record);
}

/* Its deadline becomes a distance, to be kept when it comes back. */
static __always_inline void keep_deadline(struct eevdf_task *t)
{
    t->deadline -= t->vruntime;
    t->rel_deadline = true;
}

/* dequeue_entity of a task that waits, or of the current one of a group. */
static __noinline void dequeue_elsewhere(struct task_struct *p, struct eevdf_task *t, u64 deq_flags)
{
    u32 cpu = t->cpu & (MAX_CPUS - 1);
    struct eevdf_queue *root = queue_of(cpu), *q = queue_of(t->at);
    bool sleeps = deq_flags & SCX_DEQ_SLEEP, ran = root->running_pid == (u32)p->pid;

    if (ran)
        put_prev_in_group(root, t, p);
    if (cpu == task_cpu(p)) {
        root->restored_pid = ran && !sleeps ? (u32)p->pid : 0;
        if (update_curr_by_clock(q))
            preempt_curr(cpu);
        if (!ran && t->ineligible)
            forget_leftmost(&q->ineligible);
        clear_buddy(q, (u32)p->pid);
        if (may_be_delayed(p, deq_flags) && !eligible(q, t->vruntime) && delay_dequeue(q, t, (u32)p->pid)) {
            note_delayed(q, t);
            return;
        }
        t->vlag = lag_of(t, q, average(q));
        sums_sub(q, t->vruntime, t->weight);
        uncount_slice(q, t->kind);
    } else {
        leave_elsewhere(t);
    }
    if (!sleeps)
        keep_deadline(t);
    if (unlikely(t->group)) {
        change_group_load(t->group, cpu, -(s64)(u64)t->weight);
        if (cpu == task_cpu(p))
            leave_groups(t->at, sleeps);
    }
}

/* put_prev_entity and dequeue_entity in one, of the root's current task: it does not join the sums in between. */
static __always_inline void dequeue_curr(struct eevdf_queue *q, struct task_struct *p, struct eevdf_task *t,
                                         u64 deq_flags)
{
    settle_pulled(q);
    settle_hrtick(q);
    charge_prev(q, uncharged(q, p->se.sum_exec_runtime));
    q->running_pid = q->restored_pid = 0;
    clear_buddy(q, (u32)p->pid);
    if (may_be_delayed(p, deq_flags) && !eligible(q, q->curr_vruntime) && q->delayed != ~0u) {
        put_curr(q, t);
        delay_dequeue(q, t, (u32)p->pid);
        note_delayed(q, t);
        return;
    }
    t->vruntime = q->curr_vruntime;
    t->deadline = q->curr_deadline;
    t->slice_ns = q->curr_slice_ns;
    t->vlag = lag_of(t, q, average(q));
    q->curr_pid = 0;
    q->curr_weight = 0;
    uncount_slice(q, q->curr_kind);
    if (!(deq_flags & SCX_DEQ_SLEEP)) {
        q->restored_pid = (u32)p->pid;
        keep_deadline(t);
    }
}

/* dequeue_entity: a task goes to sleep, or out for an attribute change. */
void BPF_STRUCT_OPS(eevdf_quiescent, struct task_struct *p, u64 deq_flags)
{
    struct eevdf_task *t = task_of(p);
    struct eevdf_queue *root;
    u32 cpu;

    if (!t)
        return;
    cpu = t->cpu & (MAX_CPUS - 1);
    root = queue_of(cpu);
    leave(p, t, cpu);
    if (likely(root->running_pid == (u32)p->pid && !t->group))
        dequeue_curr(root, p, t, deq_flags);
    else
        dequeue_elsewhere(p, t, deq_flags);
}

/* yield_task_fair, and yield_to_task_fair, which makes `to` the buddy. */
bool BPF_STRUCT_OPS(eevdf_yield, struct task_struct *from, struct task_struct *to)
{
    u32 cpu = task_cpu(from);
    struct eevdf_queue *root = queue_of(cpu), *q = queue_of(queue_at(root->leaf, cpu));

    if (root->running_pid != (u32)from->pid)
        return false;
    settle_pulled(q);
    if (to) {
        struct eevdf_task *t = task_of(to);

        if (!t || t->cpu != cpu || t->delayed || !(to->scx.flags & SCX_TASK_QUEUED))
            return false;
        queue_of(t->at)->next_pid = (u32)to->pid;
        queue_of(t->at)->next_vruntime = t->vruntime;
        if (unlikely(t->group))
            favour_groups(t->at);
    }
    root->resched = true;
    scx_bpf_task_set_slice(from, 0);
    if (!has_others(q, cpu))
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
    for_range (cpu, nr_cpus) {
        queue_of(cpu)->zero = ZERO_START;
        queue_of(cpu)->cpu = cpu;
    }
    if (!err)
        err = balance_init();
    return err ?: hrtick_init();
}

BALANCE_HOTPLUG(eevdf)
EXIT_RECORD(eevdf)

SCX_OPS_DEFINE(eevdf_ops, .select_cpu = (void *)eevdf_select_cpu, .runnable = (void *)eevdf_runnable,
               .enqueue = (void *)eevdf_enqueue, .dispatch = (void *)eevdf_dispatch, .running = (void *)eevdf_running,
               .tick = (void *)eevdf_tick, .stopping = (void *)eevdf_stopping, .quiescent = (void *)eevdf_quiescent,
               .yield = (void *)eevdf_yield, .init_task = (void *)eevdf_init_task, .init = (void *)eevdf_init,
               .cgroup_init = (void *)eevdf_cgroup_init, .cgroup_exit = (void *)eevdf_cgroup_exit,
               .cgroup_move = (void *)eevdf_cgroup_move, .cgroup_set_weight = (void *)eevdf_cgroup_set_weight,
               .exit = (void *)eevdf_exit, .cpu_online = (void *)eevdf_cpu_online,
               .cpu_offline = (void *)eevdf_cpu_offline, .flags = SCX_OPS_ENQ_EXITING, .timeout_ms = 30000,
               .name = "eevdf");
