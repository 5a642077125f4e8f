/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cfs_2_6_23: CFS as it was merged, with fair clock and wait_runtime. Sets 2.6.23-rc1, 2.6.23-rc3, 2.6.23-rc6 and
 * 2.6.23.
 *
 * Rule: each queue has a fair clock that advances by time * 1024 / load: the CPU time that one nice-0 task is
 * entitled to. wait_runtime is what a task is owed: waiting adds its part of the fair clock's advance, running
 * subtracts the time that it ran less its own part. key = fair clock - wait_runtime * 1024 / weight at the moment of
 * insertion; the smallest key runs next. The current task stays in the tree, and gets a new key at each tick; it is
 * preempted when the first one is left of it by more than a granularity, from which follows that each of n tasks runs
 * latency / n. Sleep counts as waiting, up to sched_runtime_limit; the credit for it is a bonus that the other tasks
 * pay back out of their own entitlement.
 *
 * Example (2.6.23, one CPU: latency 20 ms, min_granularity 2 ms): A and B at nice 0, B waits, both with wait_runtime
 * 0 and the fair clock at 0. A runs 10 ms: the clock is at 5 ms, A is owed 5 - 10 = -5 ms, so its key is 10 ms; B's
 * is still 0. The distance grows by the full time run; granularity(2) = 20/2 - 20/4 = 5 ms, and after more than 5 ms
 * B goes first. B's slice is twice as long, from A's key - 5 ms to A's key + 5 ms: 10 ms = latency / 2 each. S wakes
 * up after a long sleep: wait_runtime + 20 ms, 20 ms left of the clock, further left than the wake-up granularity of
 * 1 ms, so it runs at once.
 *
 * Where it fails: each advance of the clock is rounded and shared by all, and what the bound of wait_runtime cuts off
 * is lost (the Really Fair Scheduler was written against both). A sleeper's bonus is paid by the tasks that run next,
 * not by those that gained from the sleep. Between ticks the current task's key is out of date. A fork bomb of
 * processes that run first each time delays the other tasks.
 *
 * Follows kernel/sched_fair.c and kernel/sched.c from 2.6.23-rc1 to 2.6.23: update_curr, update_stats_enqueue,
 * enqueue_sleeper, entity_tick, check_preempt_curr_fair, task_new_fair, yield_task_fair, set_task_cpu; balancing by
 * balance.bpf.h. docs/laws/cfs_2_6_23.md states what must hold. Not modelled: task groups (2.6.23 could not configure
 * them), real-time load. A new thread is distinguished from a new process by its thread group.
 */
#include "exit.bpf.h"
#include "cfs2623_moves.bpf.h"
#include "fork_stays.bpf.h"

char _license[] SEC("license") = "GPL";

s32 BPF_STRUCT_OPS(cfs2623_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    bool is_idle = false;
    s32 cpu;

    if (stays_at_fork(p, wake_flags))
        return (s32)this_cpu();
    cpu = balance_select_cpu(p, prev_cpu, wake_flags, &is_idle);
    if (is_idle)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
    else if (wake_flags & SCX_WAKE_SYNC)
        queue_of(this_cpu())->sync_pid = (u32)p->pid;
    return cpu;
}

/*
 * task_new_fair: a new process on its parent's CPU is placed left of the parent by more than a granularity, whatever
 * its wait_runtime. Other new tasks start at the fair clock. Called before the task is counted.
 */
static __always_inline u64 place_new(struct cfs2623_queue *q, u32 cpu, struct task_struct *p, struct cfs2623_task *t)
{
    u64 gran_ns;

    wait_start(q, t);
    t->wait_runtime = 0;
    if (!sched_child_runs_first || this_cpu() != cpu || !q->curr_pid || p->tgid != p->pid)
        return q->fair_clock;
    gran_ns = granularity(nr_running(cpu));
    if (SKIP_INITIAL)
        t->wait_start_fair = 0;
    if (START_DEBIT)
        t->wait_runtime = -(s64)(gran_ns / 2);
    return q->curr_key - (u64)niced_granularity(gran_ns, q->curr_weight, q->curr_inverse, rule_niced_gran_divides) -
           1;
}

/* A task becomes able to run: it wakes up, is new, or comes back after an attribute change. Before enqueue. */
void BPF_STRUCT_OPS(cfs2623_runnable, struct task_struct *p, u64 enq_flags)
{
    struct cfs2623_task *t = task_of(p);
    u32 cpu = task_cpu(p);
    struct cfs2623_queue *q = queue_of(cpu);
    u64 key;

    if (!t)
        return;
    read_weight(t, p);
    if (t->cpu != cpu && t->sleep_start_fair)
        t->sleep_start_fair += q->fair_clock - READ_ONCE(queue_of(t->cpu)->fair_clock);
    update_curr_by_clock(q, cpu);
    if (t->is_new) {
        key = place_new(q, cpu, p, t);
    } else {
        if (enq_flags & SCX_ENQ_WAKEUP)
            end_sleep(q, t, p->policy, cpu_weight(cpu), *cpu_load_of(cpu, 2));
        wait_start(q, t);
        key = key_of(q->fair_clock, t->wait_runtime, t->weight, t->inverse);
    }
    t->cpu = cpu;
    join_cpu(cpu, t->weight);
    scx_bpf_task_set_dsq_vtime(p, key);
}

/* delta > max(latency / nr, min_granularity), without the division: the current task has had its ideal slice. */
static __always_inline bool had_ideal_slice(const struct cfs2623_queue *q, u32 cpu)
{
    u64 ran_ns = curr_ran(q);

    return ran_ns > min_granularity() && ran_ns * nr_running(cpu) > scaled(sched_latency_ns);
}

/* __check_preempt_curr_fair: whether a task with that key should run in place of the current one. */
SEPARATE bool preempts(const struct cfs2623_queue *q, u32 cpu, u64 key, u64 gran_ns)
{
    if (!q)
        return false;
    if (rule_latency && had_ideal_slice(q, cpu))
        gran_ns = 0;
    return time_diff(q->curr_key, key) >
           niced_granularity(gran_ns, q->curr_weight, q->curr_inverse, rule_niced_gran_divides);
}

static __always_inline void insert_waiting(struct cfs2623_queue *q, u32 cpu, struct task_struct *p, u64 key,
                                           u64 enq_flags)
{
    note_inserted(&q->left, key);
    scx_bpf_dsq_insert_vtime(p, cpu, SCX_SLICE_INF, key, enq_flags & ~SCX_ENQ_PREEMPT);
}

/* A task waits: it woke up, is new, was preempted, or had to leave another CPU. */
void BPF_STRUCT_OPS(cfs2623_enqueue, struct task_struct *p, u64 enq_flags)
{
    struct cfs2623_task *t = task_of(p);
    u32 cpu = task_cpu(p);
    struct cfs2623_queue *q;
    u64 key = p->scx.dsq_vtime;
    bool sync;

    if (!t) {
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
        return;
    }
    if (!(enq_flags & SCX_ENQ_WAKEUP) && !t->is_new) {
        cpu = balance_active_push(p, cpu);
        if (t->cpu != cpu)
            key = migrate(t, cpu);
        insert_waiting(queue_of(cpu), cpu, p, key, enq_flags);
        return;
    }
    if (t->cpu != cpu)
        key = migrate(t, cpu);
    q = queue_of(cpu);
    insert_waiting(q, cpu, p, key, enq_flags);
    t->is_new = false;
    sync = q->sync_pid == (u32)p->pid;
    q->sync_pid = 0;
    if (q->curr_pid && !sync && preempts(q, cpu, key, wakeup_granularity(p->policy))) {
        q->balances = false;
        kick(cpu, SCX_KICK_PREEMPT);
    }
}

/* The current task is picked again: a new slice. */
static __always_inline void keep(struct cfs2623_queue *q, struct task_struct *prev)
{
    q->curr_prev_sum_exec = q->curr_sum_exec + q->curr_ahead_ns;
    scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
}

/* Moves the first waiting task to this CPU, if there is one. */
static __always_inline bool pick_waiting(struct cfs2623_queue *q, u32 cpu, bool prev_runs)
{
    q->picked = scx_bpf_dsq_move_to_local(cpu);
    if (q->picked)
        took_leftmost(&q->left, cpu, prev_runs ? 2 : 1);
    else
        forget_leftmost(&q->left);
    return q->picked;
}

/* The pass was for the load balancer only. If nothing came that preempts the current task, it continues its slice. */
static __always_inline bool goes_on(struct cfs2623_queue *q, u32 cpu)
{
    bool only_balances = q->balances;

    q->balances = false;
    return only_balances && !(q->pulled && preempts(q, cpu, q->pulled_key, wakeup_granularity(SCHED_NORMAL)));
}

/* This CPU picks again: the smallest key. With equal keys the waiting task runs, as after a re-insertion. */
void BPF_STRUCT_OPS(cfs2623_dispatch, s32 this, struct task_struct *prev)
{
    u32 cpu = (u32)this & (MAX_CPUS - 1);
    struct cfs2623_queue *q = queue_of(cpu);
    bool prev_runs = prev && q->curr_pid == (u32)prev->pid;

    if (prev_runs)
        update_curr(q, cpu, prev);
    q->pulled = false;
    balance_run(cpu);
    if (prev_runs && goes_on(q, cpu)) {
        scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
        return;
    }
    /* When the current task sleeps there is nothing to compare. */
    if ((!prev_runs || (find_leftmost_verified(&q->left, cpu) && time_diff(q->curr_key, q->left.vtime) >= 0)) &&
        pick_waiting(q, cpu, prev_runs))
        return;
    if (prev_runs) {
        keep(q, prev);
        return;
    }
    forget_leftmost(&q->left);
    if (newidle_balance(cpu) && pick_waiting(q, cpu, false))
        return;
    balance_nothing_came(cpu);
    q->curr_prio = IDLE_PRIO;
}

/* set_next_entity: a task comes onto a CPU, and its wait ends. */
void BPF_STRUCT_OPS(cfs2623_running, struct task_struct *p)
{
    struct cfs2623_task *t = task_of(p);
    u32 cpu = task_cpu(p);
    struct cfs2623_queue *q = queue_of(cpu);
    u64 key = p->scx.dsq_vtime;

    if (!t)
        return;
    if (t->cpu != cpu) {
        key = migrate(t, cpu);
        scx_bpf_task_set_dsq_vtime(p, key);
    }
    t->is_new = false;
    wait_end(q, t);
    q->curr_pid = (u32)p->pid;
    q->curr_prio = p->static_prio;
    q->curr_key = key;
    q->curr_wait_runtime = t->wait_runtime;
    q->curr_weight = t->weight;
    q->curr_inverse = t->inverse;
    q->curr_sum_exec = p->se.sum_exec_runtime;
    q->curr_prev_sum_exec = q->curr_sum_exec;
    q->curr_clock_ns = scx_bpf_now();
    q->curr_ahead_ns = 0;
    /* It bypassed dispatch (idle CPU, or back after a real-time task), and a task further left joined meanwhile. */
    if (!q->picked && nr_running(cpu) > 1 && find_leftmost(&q->left, cpu) &&
        preempts(q, cpu, q->left.vtime, wakeup_granularity(SCHED_NORMAL)) && ask_for_choice(cpu))
        kick(cpu, SCX_KICK_PREEMPT);
    q->picked = false;
}

/* entity_tick: the current task gets a new key; is a task left of it by more than the granularity? */
void BPF_STRUCT_OPS(cfs2623_tick, struct task_struct *p)
{
    u32 cpu = this_cpu();
    struct cfs2623_queue *q = queue_of(cpu);
    bool balances, slice_over;

    if (q->curr_pid != (u32)p->pid)
        return;
    update_curr(q, cpu, p);
    refresh_curr_key(q);
    scx_bpf_task_set_dsq_vtime(p, q->curr_key);
    balances = balance_tick(cpu);
    slice_over = nr_running(cpu) > 1 && find_leftmost_verified(&q->left, cpu) &&
                 preempts(q, cpu, q->left.vtime, granularity(nr_running(cpu)));
    q->balances = balances && !slice_over;
    if (balances || slice_over)
        scx_bpf_task_set_slice(p, 0);
}

/* put_prev_entity: a task leaves its CPU. Its key stays as it was at the last tick. */
static __always_inline void put_prev(struct cfs2623_queue *q, struct cfs2623_task *t, struct task_struct *p)
{
    update_curr(q, t->cpu, p);
    t->wait_runtime = q->curr_wait_runtime;
    scx_bpf_task_set_dsq_vtime(p, q->curr_key);
    q->curr_pid = 0;
}

/* The same for one that stays runnable. One that does not comes to ops.quiescent next, under the same lock. */
void BPF_STRUCT_OPS(cfs2623_stopping, struct task_struct *p, bool runnable)
{
    struct cfs2623_task *t;
    struct cfs2623_queue *q;

    if (!runnable)
        return;
    t = task_of(p);
    if (!t)
        return;
    /* The CPU on which it was switched in. */
    q = queue_of(t->cpu);
    if (q->curr_pid != (u32)p->pid)
        return;
    put_prev(q, t, p);
    wait_start(q, t);
}

/* dequeue_entity: a task goes to sleep, or out for an attribute change. */
void BPF_STRUCT_OPS(cfs2623_quiescent, struct task_struct *p, u64 deq_flags)
{
    struct cfs2623_task *t = task_of(p);
    struct cfs2623_queue *q;
    u32 cpu;

    if (!t)
        return;
    cpu = t->cpu;
    q = queue_of(cpu);
    if (likely(q->curr_pid == (u32)p->pid)) {
        put_prev(q, t, p);
    } else {
        update_curr_by_clock(q, cpu);
        wait_end(q, t);
        forget_leftmost(&q->left);
    }
    if (deq_flags & SCX_DEQ_SLEEP)
        t->sleep_start_fair = q->fair_clock;
    leave_cpu(cpu, t->weight);
}

/* yield_task_fair: the caller gets a new key, with sched_compat_yield behind all others. */
bool BPF_STRUCT_OPS(cfs2623_yield, struct task_struct *from, struct task_struct *to)
{
    u32 cpu = task_cpu(from);
    struct cfs2623_queue *q = queue_of(cpu);
    u64 rightmost = 0;

    if (q->curr_pid != (u32)from->pid || nr_running(cpu) < 2)
        return false;
    update_curr(q, cpu, from);
    if (!sched_compat_yield)
        refresh_curr_key(q);
    else if (peek_vtime(cpu, SCX_DSQ_ITER_REV, &rightmost) && time_diff(rightmost, q->curr_key) >= 0)
        q->curr_key = rightmost + 1;
    scx_bpf_task_set_slice(from, 0);
    return false;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(cfs2623_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
    struct cfs2623_task *t = bpf_task_storage_get(&task_ctx, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

    if (!t)
        return -ENOMEM;
    t->is_new = true;
    return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(cfs2623_init)
{
    s32 err;
    u32 cpu;

    for_range (cpu, MAX_CPUS) {
        queue_of(cpu)->fair_clock = FAIR_CLOCK_START;
        queue_of(cpu)->curr_prio = IDLE_PRIO;
    }
    err = create_cpu_queues();
    init_scaling(MAX_CPUS);
    return err ?: balance_init();
}

BALANCE_HOTPLUG(cfs2623)
EXIT_RECORD(cfs2623)

SCX_OPS_DEFINE(cfs2623_ops, .select_cpu = (void *)cfs2623_select_cpu, .runnable = (void *)cfs2623_runnable,
               .enqueue = (void *)cfs2623_enqueue, .dispatch = (void *)cfs2623_dispatch,
               .running = (void *)cfs2623_running, .tick = (void *)cfs2623_tick, .stopping = (void *)cfs2623_stopping,
               .quiescent = (void *)cfs2623_quiescent, .yield = (void *)cfs2623_yield,
               .init_task = (void *)cfs2623_init_task, .init = (void *)cfs2623_init, .exit = (void *)cfs2623_exit,
               .cpu_online = (void *)cfs2623_cpu_online, .cpu_offline = (void *)cfs2623_cpu_offline,
               .flags = SCX_OPS_ENQ_EXITING, .timeout_ms = 30000, .name = "cfs_2_6_23");
