/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rfs: Roman Zippel's Really Fair Scheduler of August 2007, in 64-bit nanoseconds. Parameter sets literal, accurate
 * and ms32.
 *
 * Rule: a task's normalised time advances by the time it runs * inv, inv = round(2^S / weight): a constant, so no
 * rounding adds up. The task with the smallest normalised time runs next. The running task continues until it is G ns
 * ahead of the smallest. The weighted average of all normalised times is kept exactly (rfs_sums.bpf.h) and determines
 * the placement of a task that wakes up: at its own time, but at most BONUS behind the average. There are no time
 * slices.
 *
 * Example (set literal, S = 16): A nice 0, inv 64, shift 10; B nice 5, inv 196, shift 8. A runs 4 ms: 4e6 * 64 =
 * 256000000. B is at 0, A 256000000 ahead, which is G * 64 for G = 4 ms: not more, so A continues; 1 ms later it is,
 * and B runs. The average is (320000000 * 1024 + 0 * 256) / 1280 = 256000000. A task C that slept long is placed at
 * 256000000 - 10e6 * 64.
 *
 * Where it fails: with S = 16 the weights of negative nice values are rounded badly (nice -20 to -17 all run alike);
 * `accurate`, S = 24, has no such error. With many tasks each waits long: nothing shortens the granularity as CFS's
 * period does. A task that sleeps often is favoured by BONUS each time. Fairness holds per CPU only.
 *
 * Follows the announcement (linux-kernel, 31 August 2007, against 2.6.23-rc3-git1, one CPU), whose equations are
 * cited by number; docs/laws/rfs.md lists them. The patch is not available; what the announcement leaves open (G, Gw,
 * BONUS, fork, yield, several CPUs) is a choice made here: equal granularity in wall time for all tasks, scaled like
 * CFS's by the number of CPUs; queues per CPU; a migration keeps the distance to the average.
 */
#define BALANCE_RELEASE 2_6_23_RC2
#include "exit.bpf.h"
#include "rfs_queue.bpf.h"

char _license[] SEC("license") = "GPL";

/* The load of a task for the load balancer. */
static __always_inline u64 balance_weight(struct task_struct *p)
{
    return nice_weight[nice_index(p->static_prio)];
}

static __always_inline u64 balance_queue(u32 cpu, u32 index)
{
    return queue_id(cpu, 0);
}

static __always_inline bool balance_prefers(struct task_struct *p, u32 to)
{
    return false;
}

static __always_inline u64 balance_last_ran_ns(struct task_struct *p)
{
    return p->se.exec_start;
}

static __always_inline u64 balance_target(struct task_struct *p, u32 from, u32 to, u64 *vtime)
{
    *vtime = migrated_norm(p->scx.dsq_vtime, from, to);
    return queue_id(to, 0);
}

/* Updates the sums after a move: this CPU's own at once, the other's by message. */
static __always_inline void balance_moved(struct task_struct *p, u32 from, u32 to)
{
    struct rfs_task *t = task_of(p);

    if (!t)
        return;
    migrate(t, to, this_cpu(), t->time_norm, p->scx.dsq_vtime);
    note_inserted(&queue_of(to)->left, p->scx.dsq_vtime);
    forget_leftmost(&queue_of(from)->left);
}

#include "balance.bpf.h"

/* An idle CPU waits for this task. */
static __always_inline void reserve(struct task_struct *p)
{
    struct rfs_task *t = task_of(p);

    if (t)
        t->to_local = true;
}

s32 BPF_STRUCT_OPS(rfs_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    bool is_idle = false;
    s32 cpu = balance_select_cpu(p, prev_cpu, wake_flags, &is_idle);

    if (is_idle)
        reserve(p);
    return cpu;
}

/* Whether the base of its queue has moved so far since the task went to sleep that its time cannot be compared. */
static __always_inline bool is_stale(const struct rfs_queue *q, const struct rfs_task *t)
{
    return q->generation - t->generation >= 2;
}

/*
 * Wake-up: own time, but at most BONUS behind the average of the others. `stale`: see is_stale().
 */
static __always_inline u64 place_woken(struct rfs_queue *q, struct rfs_task *t, u64 time_norm, bool stale)
{
    u64 limit = average_of(q) - units_norm(clock_units(bonus_ns), BONUS_BY_WEIGHT ? t->inv : nice_inv[20]);

    return stale || time_diff(time_norm, limit) < 0 ? limit : time_norm;
}

/* Fork: at the average, or at the parent's time if that is larger. */
static __always_inline u64 place_new(struct rfs_queue *q, struct rfs_task *t, u32 cpu)
{
    struct rfs_queue *parent = queue_of(this_cpu());
    u64 time_norm = average_of(q), parent_norm = parent->curr_time_norm;

    if (!parent->curr_pid)
        return time_norm;
    if (parent != q)
        parent_norm = migrated_norm(parent_norm, this_cpu(), cpu);
    time_norm = max_time(time_norm, parent_norm);
    if (START_DEBIT)
        time_norm += whole_norm((u64)gran_norm(granularity_ns, t->inv) >> 1);
    if (CHILD_RUNS_FIRST && parent == q && time_diff(q->curr_time_norm, time_norm) < 0) {
        u64 child_norm = q->curr_time_norm;

        sums_advance(&q->sums, time_diff(time_norm, child_norm), q->curr_average_weight);
        q->curr_time_norm = time_norm;
        time_norm = child_norm;
    }
    return time_norm;
}

/* A task becomes able to run: it wakes up, is new, or comes back after an attribute change. Returns its time. */
static __always_inline u64 become_runnable(struct task_struct *p, struct rfs_task *t, u32 cpu, bool wakes)
{
    struct rfs_queue *q = queue_of(cpu);
    u64 time_norm = p->scx.dsq_vtime;
    bool stale;

    account_clock(q);
    if (t->cpu == cpu) {
        stale = is_stale(q, t);
    } else {
        stale = is_stale(queue_of(t->cpu), t);
        if (!t->is_new)
            time_norm = migrated_norm(time_norm, t->cpu, cpu);
    }
    read_nice(p, t);
    if (t->is_new)
        time_norm = place_new(q, t, cpu);
    else if (wakes)
        time_norm = place_woken(q, t, time_norm, stale);
    join(q, t, cpu, time_norm);
    t->is_queued = true;
    return time_norm;
}

/* One that the kernel runs without ops.enqueue: a running task restored, or one that must not migrate at present. */
static __noinline void join_late(struct task_struct *p, struct rfs_task *t, u32 cpu)
{
    scx_bpf_task_set_dsq_vtime(p, become_runnable(p, t, cpu, t->slept));
    t->is_new = t->to_local = false;
}

static __always_inline void insert(struct task_struct *p, struct rfs_task *t, struct rfs_queue *q, u32 cpu,
                                   u64 time_norm, u64 enq_flags)
{
    t->time_norm = time_norm;
    note_inserted(&q->left, time_norm);
    scx_bpf_dsq_insert_vtime(p, cpu, SCX_SLICE_INF, time_norm, enq_flags & ~SCX_ENQ_PREEMPT);
}

/* A task was preempted, or comes back, perhaps after it had to leave another CPU. */
static __always_inline void insert_again(struct task_struct *p, struct rfs_task *t, u32 cpu, u64 time_norm,
                                         u64 enq_flags)
{
    struct rfs_queue *q = queue_of(cpu);

    if (unlikely(q->balance_call)) {
        cpu = balance_active_push(p, cpu);
        q = queue_of(cpu);
    }
    if (unlikely(t->cpu != cpu)) {
        u64 here_norm = migrated_norm(time_norm, t->cpu, cpu);

        migrate(t, cpu, task_cpu(p), time_norm, here_norm);
        time_norm = here_norm;
    }
    insert(p, t, q, cpu, time_norm, enq_flags);
    offer_to_idle_cpu(p);
}

/* A task joins the queue of its CPU. */
static __noinline void enqueue_joining(struct task_struct *p, struct rfs_task *t, u32 cpu, u64 enq_flags)
{
    u64 time_norm = become_runnable(p, t, cpu, enq_flags & SCX_ENQ_WAKEUP);
    struct rfs_queue *q = queue_of(cpu);

    if (t->to_local) {
        t->is_new = t->to_local = false;
        scx_bpf_task_set_dsq_vtime(p, time_norm);
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
        return;
    }
    if (!(enq_flags & SCX_ENQ_WAKEUP) && !t->is_new) {
        insert_again(p, t, cpu, time_norm, enq_flags);
        return;
    }
    insert(p, t, q, cpu, time_norm, enq_flags);
    t->is_new = false;
    if (q->curr_pid && WAKEUP_PREEMPTION &&
        time_diff(q->curr_time_norm, time_norm) > gran_norm(wakeup_granularity_ns, q->curr_inv))
        kick(cpu, SCX_KICK_PREEMPT);
}

/* A task waits: it woke up, is new, was preempted, or had to leave another CPU. */
void BPF_STRUCT_OPS(rfs_enqueue, struct task_struct *p, u64 enq_flags)
{
    struct rfs_task *t = task_of(p);
    u32 cpu = task_cpu(p);

    if (!t)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
    else if (t->is_queued)
        insert_again(p, t, cpu, p->scx.dsq_vtime, enq_flags);
    else
        enqueue_joining(p, t, cpu, enq_flags);
}

/* Dispatch picked the next task. `charged`: it has read the clock for the one before. */
static __always_inline void note_picked(struct rfs_queue *q, bool charged)
{
    q->picked = true;
    if (!charged)
        q->curr_clock_ns = scx_bpf_now();
}

/* Nothing waits here: the CPU pulls a task, or becomes idle. */
static __noinline void go_idle(struct rfs_queue *q, u32 cpu)
{
    forget_leftmost(&q->left);
    if (newidle_balance(cpu) && scx_bpf_dsq_move_to_local(cpu)) {
        forget_leftmost(&q->left);
        note_picked(q, false);
        return;
    }
    balance_nothing_came(cpu);
}

/* This CPU picks again: the smallest time. With equal times the waiting task runs. */
void BPF_STRUCT_OPS(rfs_dispatch, s32 this, struct task_struct *prev)
{
    u32 cpu = (u32)this & (MAX_CPUS - 1);
    struct rfs_queue *q = queue_of(cpu);
    bool prev_runs = prev && q->curr_pid == (u32)prev->pid;

    if (prev_runs)
        account_exec(q, prev);
    balance_run(cpu);
    /* When the current task sleeps there is nothing to compare. */
    if (!prev_runs || (find_leftmost_verified(&q->left, cpu) && time_diff(q->curr_time_norm, q->left.vtime) >= 0)) {
        if (scx_bpf_dsq_move_to_local(cpu)) {
            took_leftmost(&q->left, cpu, 1 + (u32)prev_runs);
            note_picked(q, prev_runs);
            return;
        }
        forget_leftmost(&q->left);
    }
    if (prev_runs) {
        scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
        return;
    }
    go_idle(q, cpu);
}

/* The current task bypassed dispatch (idle CPU, or back after a real-time task): one far behind it may have joined. */
static __noinline void check_bypass(struct rfs_queue *q, u32 cpu)
{
    if (nr_running(cpu) > 1 && find_leftmost(&q->left, cpu) &&
        time_diff(q->curr_time_norm, q->left.vtime) > gran_norm(wakeup_granularity_ns, q->curr_inv) &&
        ask_for_choice(cpu))
        kick(cpu, SCX_KICK_PREEMPT);
}

/* A task comes onto a CPU. */
void BPF_STRUCT_OPS(rfs_running, struct task_struct *p)
{
    struct rfs_task *t = task_of(p);
    u32 cpu = task_cpu(p);
    struct rfs_queue *q = queue_of(cpu);
    u64 time_norm;

    if (!t)
        return;
    if (unlikely(!t->is_queued))
        join_late(p, t, cpu);
    time_norm = p->scx.dsq_vtime;
    if (unlikely(t->cpu != cpu)) {
        u64 here_norm = migrated_norm(time_norm, t->cpu, cpu);

        migrate(t, cpu, cpu, time_norm, here_norm);
        time_norm = here_norm;
        scx_bpf_task_set_dsq_vtime(p, time_norm);
    }
    q->curr_pid = (u32)p->pid;
    q->curr_time_norm = time_norm;
    q->curr_inv = t->inv;
    q->curr_average_weight = t->average_weight;
    q->curr_sum_exec = p->se.sum_exec_runtime - t->rest_ns;
    q->curr_seen_exec = p->se.sum_exec_runtime;
    q->curr_ahead = 0;
    if (!q->picked) {
        q->curr_clock_ns = scx_bpf_now();
        check_bypass(q, cpu);
    }
    q->picked = false;
}

/* The current task is preempted at the tick when it is G ahead of the first waiting one. */
void BPF_STRUCT_OPS(rfs_tick, struct task_struct *p)
{
    u32 cpu = this_cpu();
    struct rfs_queue *q = queue_of(cpu);

    if (balance_tick(cpu))
        scx_bpf_task_set_slice(p, 0);
    if (q->curr_pid != (u32)p->pid)
        return;
    account_exec(q, p);
    scx_bpf_task_set_dsq_vtime(p, q->curr_time_norm);
    if (nr_running(cpu) > 1 && find_leftmost_verified(&q->left, cpu) &&
        time_diff(q->curr_time_norm, q->left.vtime) > gran_norm(granularity_ns, q->curr_inv))
        scx_bpf_task_set_slice(p, 0);
}

/* A task leaves its CPU and stays in the sums. One that does not comes to ops.quiescent next, under the same lock. */
void BPF_STRUCT_OPS(rfs_stopping, struct task_struct *p, bool runnable)
{
    struct rfs_queue *q;

    if (!runnable)
        return;
    q = queue_of(task_cpu(p));
    if (q->curr_pid != (u32)p->pid)
        return;
    /* Where dispatch has charged it nothing is left. */
    if (p->se.sum_exec_runtime != q->curr_seen_exec || q->curr_ahead)
        account_exec(q, p);
    scx_bpf_task_set_dsq_vtime(p, q->curr_time_norm);
    if (rule_clock == CLOCK_MS32)
        keep_rest(task_of(p), q, p);
    q->curr_pid = 0;
}

/*
 * The current task leaves the sums. What it has run since it was charged would join them, (17), and leave with it:
 * neither is done.
 */
static __always_inline void leave_current(struct rfs_queue *q, struct rfs_task *t, struct task_struct *p, u32 cpu)
{
    u64 time_norm = q->curr_time_norm, ran_norm = units_norm(uncharged_units(q, p), q->curr_inv);

    q->curr_pid = 0;
    if (rule_clock == CLOCK_MS32)
        keep_rest(t, q, p);
    leave(q, t, cpu, time_norm, ran_norm);
    scx_bpf_task_set_dsq_vtime(p, time_norm + ran_norm);
}

/* The same for a task that waits. */
static __noinline void leave_waiting(struct rfs_queue *q, struct rfs_task *t, struct task_struct *p)
{
    if (t->cpu == task_cpu(p)) {
        account_clock(q);
        leave(q, t, t->cpu, p->scx.dsq_vtime, 0);
    } else {
        leave_other(t, p->scx.dsq_vtime);
    }
    forget_leftmost(&q->left);
}

/* A task goes to sleep, or is dequeued for an attribute change: it leaves the sums and keeps its time. */
void BPF_STRUCT_OPS(rfs_quiescent, struct task_struct *p, u64 deq_flags)
{
    struct rfs_task *t = task_of(p);
    struct rfs_queue *q;

    if (!t || !t->is_queued)
        return;
    t->is_queued = false;
    t->slept = deq_flags & SCX_DEQ_SLEEP;
    q = queue_of(t->cpu);
    if (likely(q->curr_pid == (u32)p->pid))
        leave_current(q, t, p, t->cpu);
    else
        leave_waiting(q, t, p);
    t->generation = q->generation;
}

/* YIELD_TO_END: the current task's time becomes the largest one. */
static __always_inline void move_to_end(struct rfs_queue *q, struct task_struct *p, u32 cpu)
{
    u64 last = 0;
    s64 norm;

    account_exec(q, p);
    if (!peek_vtime(cpu, SCX_DSQ_ITER_REV, &last) || time_diff(last, q->curr_time_norm) < 0)
        return;
    norm = time_diff(last, q->curr_time_norm) + (s64)(rule_clock == CLOCK_MS32 ? 1ULL << 32 : 1);
    q->curr_time_norm += (u64)norm;
    sums_advance(&q->sums, norm, q->curr_average_weight); /* (24) for both positions */
}

/* By default a yield only asks for a new pick: the task with the smallest time runs. */
bool BPF_STRUCT_OPS(rfs_yield, struct task_struct *from, struct task_struct *to)
{
    u32 cpu = task_cpu(from);
    struct rfs_queue *q = queue_of(cpu);

    if (q->curr_pid != (u32)from->pid)
        return false;
    if (YIELD_TO_END)
        move_to_end(q, from, cpu);
    scx_bpf_task_set_slice(from, 0);
    return false;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rfs_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
    struct rfs_task *t = bpf_task_storage_get(&task_ctx, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

    if (!t)
        return -ENOMEM;
    t->is_new = true;
    return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rfs_init)
{
    s32 err = create_cpu_queues();
    u32 cpu;

    init_scaling(MAX_CPUS);
    rfs_make_tables();
    for_range (cpu, MAX_CPUS) {
        queue_of(cpu)->sums.time_norm_base = time_norm_start;
        queue_of(cpu)->generation_base = time_norm_start;
    }
    return err ? err : balance_init();
}

BALANCE_HOTPLUG(rfs)
EXIT_RECORD(rfs)

SCX_OPS_DEFINE(rfs_ops, .select_cpu = (void *)rfs_select_cpu, .enqueue = (void *)rfs_enqueue,
               .dispatch = (void *)rfs_dispatch, .running = (void *)rfs_running, .tick = (void *)rfs_tick,
               .stopping = (void *)rfs_stopping, .quiescent = (void *)rfs_quiescent, .yield = (void *)rfs_yield,
               .init_task = (void *)rfs_init_task, .init = (void *)rfs_init, .exit = (void *)rfs_exit,
               .cpu_online = (void *)rfs_cpu_online, .cpu_offline = (void *)rfs_cpu_offline,
               .flags = SCX_OPS_ENQ_EXITING, .timeout_ms = 30000, .name = "rfs");
