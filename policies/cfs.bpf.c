/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cfs: the Completely Fair Scheduler with vruntime, Linux 2.6.24 to 6.5. Parameter sets 2.6.24, 2.6.27-sle11 and 6.1.
 *
 * Rule: a task's vruntime advances by the time it runs, * 1024 / weight. The task with the smallest vruntime runs next; the
 * one that runs is not in the queue. At a tick it must go when it has run longer than its slice, period * weight / load. A
 * task that wakes up is placed near the queue's own clock, min_vruntime, minus a credit, and preempts at once when it is
 * behind the current task by more than the wake-up granularity.
 *
 * Example (set 2.6.24, one CPU, so latency 20 ms, min_granularity 4 ms, wake-up granularity 10 ms): hogs A, B at nice 0 and C
 * at nice 5 (weight 335) have 20 * 1024/2383 = 8.6, 8.6 and 2.8 ms per period; 2.8 ms of C are 2.8 * 1024/335 = 8.6 ms of
 * vruntime, so all three advance alike. S wakes up after a second of sleep, while A's vruntime is 3 ms right of
 * min_vruntime: S is placed 20 ms left of min_vruntime, is 23 ms behind A, more than 10, and runs at once.
 *
 * Where it fails: with many hogs a sleeper with credit preempts at each wake-up and cuts every slice short (8 hogs and one
 * 1 kHz sleeper: 1 ms in place of 9 ms). CPUs are fair each by itself: who shares a CPU decides what a task gets. Slices
 * end at ticks only. Queue-scaled vruntime (2.6.27) is unfair when tasks come and go.
 *
 * Follows kernel/sched_fair.c of 2.6.24 and 2.6.27 and kernel/sched/fair.c of 6.1 to 6.5: update_curr, update_min_vruntime,
 * place_entity, check_preempt_tick, check_preempt_wakeup, pick_next_entity, yield_task_fair, task_fork_fair. The load
 * balancer is balance.bpf.h; set 6.1 has its newest rules (2.6.27) with the domains of 6.1, as the real one works on decaying
 * averages of utilisation. Not modelled: task groups, HRTICK. ADAPTIVE_GRAN counts a wake-up by a timer as one by the task
 * that it interrupts. LAST_BUDDY follows 2.6.32 and later in all sets.
 */
#define BALANCE_RELEASE 6_1
#define BALANCE_SETS(t)                                                                                              \
    BALANCE_SET("2.6.24", t, 2_6_24) BALANCE_SET("2.6.27-sle11", t, 2_6_27) BALANCE_SET("6.1", t, 6_1)
#include "cfs_pick.bpf.h"
#include "cfs_task.bpf.h"

char _license[] SEC("license") = "GPL";

s32 BPF_STRUCT_OPS(cfs_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    bool is_idle = false;
    s32 cpu = balance_select_cpu(p, prev_cpu, wake_flags, &is_idle);

    if (is_idle)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
    else if (rule_sync_keeps_waker && (wake_flags & SCX_WAKE_SYNC))
        queue_of(this_cpu())->sync_pid = (u32)p->pid;
    return cpu;
}

/* ADAPTIVE_GRAN: how long the current task of this CPU runs between the wake-ups that it issues; each sample counts 1/8. */
static __always_inline void note_wakeup_by_current(void)
{
    struct cfs_queue *q = queue_of(this_cpu());
    u64 ran_ns;

    if (!q->curr_pid)
        return;
    ran_ns = q->curr_sum_exec + q->curr_ahead_ns;
    q->curr_avg_wakeup_ns += (u64)((s64)(ran_ns - q->curr_last_wakeup_ns - q->curr_avg_wakeup_ns) >> 3);
    q->curr_last_wakeup_ns = ran_ns;
}

/* place_entity for a task that wakes up: at the base less the credit, but never left of where it was. */
static __always_inline u64 place_woken(struct cfs_queue *q, u32 cpu, struct cfs_task *t, u32 policy, u64 vruntime)
{
    u64 base = placement_base(q, cpu, nr_running[cpu] - 1, q->load - t->weight);

    if (FAIR_SLEEPERS)
        base -= sleeper_credit(q, policy, t->weight, t->inverse);
    return max_time(vruntime, base);
}

/* place_entity for a new task, task_fork_fair / task_new_fair: one slice to the right, and who goes first. */
static __noinline u64 place_new(struct cfs_queue *q, u32 cpu, struct cfs_task *t, u32 pid)
{
    u32 here = this_cpu();
    bool elsewhere = rule_fork_parent_queue && here != cpu;
    struct cfs_queue *src = queue_of(elsewhere ? here : cpu), *parent = queue_of(here);
    u32 nr = nr_running[elsewhere ? here : cpu] + (elsewhere ? 1 : 0);
    u64 load = src->load + (elsewhere ? t->weight : 0);
    u64 vruntime = placement_base(src, elsewhere ? here : cpu, nr - 1, load - t->weight);

    if (START_DEBIT)
        vruntime += sched_vslice(src, nr, load, t->weight, t->inverse);
    if (rule_place_never_left && parent->curr_pid && (elsewhere || here == cpu))
        vruntime = max_time(parent->curr_vruntime, vruntime);
    if (sched_child_runs_first && here == cpu && q->curr_pid && time_diff(q->curr_vruntime, vruntime) < 0) {
        u64 child = q->curr_vruntime;

        q->curr_vruntime = vruntime;
        vruntime = child;
        q->fork_pid = pid;
    }
    return elsewhere ? migrated_vruntime(vruntime, here, cpu) : vruntime;
}

/* A task becomes able to run: it wakes up, is new, or comes back after an attribute change. Before enqueue. */
void BPF_STRUCT_OPS(cfs_runnable, struct task_struct *p, u64 enq_flags)
{
    struct cfs_task *t = task_of(p);
    u32 cpu = task_cpu(p), index = nice_index(p->static_prio);
    struct cfs_queue *q = queue_of(cpu);
    u64 vruntime = p->scx.dsq_vtime;

    if (!t)
        return;
    update_curr_by_clock(q, cpu);
    if (t->cpu != cpu && !t->is_new)
        vruntime = migrated_vruntime(vruntime, t->cpu, cpu);
    t->weight = nice_weight[index];
    t->inverse = nice_inverse[index];
    account_enqueue(q, t, cpu);
    if (t->is_new) {
        vruntime = place_new(q, cpu, t, (u32)p->pid);
    } else if (enq_flags & SCX_ENQ_WAKEUP) {
        vruntime = place_woken(q, cpu, t, p->policy, vruntime);
        if (ADAPTIVE_GRAN)
            note_wakeup_by_current();
    }
    scx_bpf_task_set_dsq_vtime(p, vruntime);
}

/* The granularity that a woken task must exceed. `ADAPTIVE_GRAN`: less the longer the current task has run. */
static __always_inline u64 granularity_against(struct cfs_queue *q, u32 cpu, struct cfs_task *t)
{
    u64 gran;

    if (ADAPTIVE_GRAN) {
        u64 expected_ns = 2 * t->avg_wakeup_ns * nr_running[cpu], ran_ns = curr_ran(q);

        gran = ran_ns < expected_ns ? expected_ns - ran_ns : 0;
        if (gran > sched_wakeup_granularity_ns * tunable_factor())
            gran = sched_wakeup_granularity_ns * tunable_factor();
        return ASYM_GRAN ? virtual_time(gran, t->weight, t->inverse) : gran;
    }
    return wakeup_granularity(q, q->curr_weight, q->curr_inverse, t->weight, t->inverse);
}

/* check_preempt_wakeup: whether a task that was just queued ends the current task's turn. */
static __always_inline bool wakeup_preempts(struct cfs_queue *q, u32 cpu, struct task_struct *p, struct cfs_task *t)
{
    u32 policy = p->policy, pid = (u32)p->pid;
    bool sync = q->sync_pid == pid;

    q->sync_pid = 0;
    if (NEXT_BUDDY)
        q->next_pid = pid;
    if (q->fork_pid == pid) {
        q->fork_pid = 0;
        return true;
    }
    if (sync)
        return false;
    if (q->curr_policy == SCHED_IDLE && policy != SCHED_IDLE)
        return true;
    if (policy == SCHED_BATCH || policy == SCHED_IDLE || !WAKEUP_PREEMPTION)
        return false;
    if (time_diff(q->curr_vruntime, p->scx.dsq_vtime) <= (s64)granularity_against(q, cpu, t))
        return false;
    if (LAST_BUDDY && !fits_latency(nr_running[cpu] + 1))
        q->last_pid = q->curr_pid;
    if (rule_preemptor_is_next)
        q->next_pid = pid;
    return true;
}

/* A task waits: it woke up, is new, was put back after its turn, or had to leave another CPU. */
void BPF_STRUCT_OPS(cfs_enqueue, struct task_struct *p, u64 enq_flags)
{
    struct cfs_task *t = task_of(p);
    u32 cpu = task_cpu(p);
    u64 vruntime = p->scx.dsq_vtime;
    struct cfs_queue *q;
    bool joins;

    if (!t) {
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
        return;
    }
    joins = (enq_flags & SCX_ENQ_WAKEUP) || t->is_new;
    if (!joins)
        cpu = balance_active_push(p, cpu);
    q = queue_of(cpu);
    if (t->cpu != cpu) {
        vruntime = migrated_vruntime(vruntime, t->cpu, cpu);
        balance_moved(p, t->cpu, cpu);
    }
    note_inserted(&q->left, vruntime);
    scx_bpf_dsq_insert_vtime(p, cpu, SCX_SLICE_INF, vruntime, enq_flags & ~SCX_ENQ_PREEMPT);
    mark_waiting(cpu);
    if (!joins)
        return;
    if (q->curr_pid && (wakeup_preempts(q, cpu, p, t) || (t->is_new && rule_fork_reschedules)))
        scx_bpf_kick_cpu((s32)cpu, SCX_KICK_PREEMPT);
    t->is_new = false;
}

/* The current task stays: it is alone, or still the one to run. */
static __always_inline void keep(struct cfs_queue *q, struct task_struct *prev)
{
    if (rule_repick_starts_slice)
        q->curr_slice_exec = q->curr_sum_exec;
    clear_buddies(q, q->curr_pid);
    scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
}

/*
 * The turn was ended for the balancer alone. The current task goes on with its slice as it was, unless it is as far right of
 * the leftmost as lets a task that wakes up preempt it (pull_task checks a task that it has moved in the same way).
 */
static __always_inline bool goes_on(struct cfs_queue *q, u32 cpu)
{
    if (!q->balance_only)
        return false;
    q->balance_only = false;
    return !find_leftmost(&q->left, cpu) ||
           time_diff(q->curr_vruntime, q->left.vtime) <=
               (s64)wakeup_granularity(q, q->curr_weight, q->curr_inverse, q->curr_weight, q->curr_inverse);
}

#define PICK_LEFTMOST (~0u)

/* pick_next_entity, in two parts: who (0: nobody waits), and getting it here. */
static __always_inline u32 pick(struct cfs_queue *q, u32 cpu, bool prev_runs)
{
    if (q->next_pid || q->last_pid || q->skip_pid)
        return pick_with_buddies(cpu, prev_runs);
    if (!find_leftmost(&q->left, cpu))
        return prev_runs ? q->curr_pid : 0;
    if (prev_runs && time_diff(q->curr_vruntime, q->left.vtime) < 0)
        return q->curr_pid;
    return PICK_LEFTMOST;
}

/* This CPU decides anew. `prev` is still current: if it can go on and its slice is not 0 afterwards, it does. */
void BPF_STRUCT_OPS(cfs_dispatch, s32 this, struct task_struct *prev)
{
    u32 cpu = (u32)this & (MAX_CPUS - 1), pid;
    struct cfs_queue *q = queue_of(cpu);
    bool prev_runs = prev && q->curr_pid && q->curr_pid == (u32)prev->pid;

    if (prev_runs)
        update_curr(q, cpu, prev);
    balance_run(cpu);
    if (prev_runs && goes_on(q, cpu)) {
        scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
        return;
    }
    pid = pick(q, cpu, prev_runs);
    if (pid && prev_runs && pid == q->curr_pid) {
        keep(q, prev);
        return;
    }
    if (pid) {
        bool moved = pid != PICK_LEFTMOST && move_pid_to_local(cpu, pid);

        forget_leftmost(&q->left);
        if (moved || scx_bpf_dsq_move_to_local(cpu)) {
            q->picked = true;
            return;
        }
    }
    if (prev_runs) {
        keep(q, prev);
        return;
    }
    mark_empty(cpu);
    forget_leftmost(&q->left);
    if (newidle_balance(cpu)) {
        q->picked = scx_bpf_dsq_move_to_local(cpu);
        forget_leftmost(&q->left);
    }
}

/* set_next_entity: a task comes onto a CPU. */
void BPF_STRUCT_OPS(cfs_running, struct task_struct *p)
{
    struct cfs_task *t = task_of(p);
    u32 cpu = task_cpu(p);
    struct cfs_queue *q = queue_of(cpu);
    u64 vruntime = p->scx.dsq_vtime;

    if (!t)
        return;
    if (t->cpu != cpu) {
        vruntime = migrated_vruntime(vruntime, t->cpu, cpu);
        account_dequeue(t);
        account_enqueue(q, t, cpu);
        scx_bpf_task_set_dsq_vtime(p, vruntime);
    }
    t->is_new = false;
    q->curr_pid = (u32)p->pid;
    q->curr_vruntime = vruntime;
    q->curr_weight = t->weight;
    q->curr_inverse = t->inverse;
    q->curr_policy = p->policy;
    q->curr_sum_exec = p->se.sum_exec_runtime;
    q->curr_slice_exec = q->curr_sum_exec;
    q->curr_clock_ns = scx_bpf_now();
    q->curr_ahead_ns = 0;
    q->curr_avg_wakeup_ns = t->avg_wakeup_ns;
    q->curr_last_wakeup_ns = t->last_wakeup_ns;
    clear_buddies(q, q->curr_pid);
    if (rule_min_vruntime == MIN_OF_TREE)
        update_min_vruntime(q, cpu);
    /* It came past dispatch (idle CPU, or back after a real-time task) and somebody further left came meanwhile. */
    if (!q->picked && nr_running[cpu] > 1 && find_leftmost(&q->left, cpu) &&
        time_diff(vruntime, q->left.vtime) > (s64)(sched_wakeup_granularity_ns * tunable_factor()))
        scx_bpf_kick_cpu((s32)cpu, SCX_KICK_PREEMPT);
    q->picked = false;
}

/* entity_tick and check_preempt_tick: slices end here only. */
void BPF_STRUCT_OPS(cfs_tick, struct task_struct *p)
{
    u32 cpu = this_cpu();
    struct cfs_queue *q = queue_of(cpu);
    u64 ideal_ns, ran_ns, latency_ns;

    q->balance_only = balance_tick(cpu);
    if (q->balance_only)
        scx_bpf_task_set_slice(p, 0);
    if (q->curr_pid != (u32)p->pid)
        return;
    update_curr(q, cpu, p);
    scx_bpf_task_set_dsq_vtime(p, q->curr_vruntime);
    if (nr_running[cpu] < 2)
        return;
    ideal_ns = sched_slice(nr_running[cpu], q->load, q->curr_weight);
    ran_ns = curr_ran(q);
    if (rule_tick_checks_vruntime) {
        latency_ns = sched_latency_ns * tunable_factor();
        if (ideal_ns > latency_ns)
            ideal_ns = latency_ns;
    }
    if (ran_ns > ideal_ns) {
        clear_buddies(q, q->curr_pid);
        q->balance_only = false;
        scx_bpf_task_set_slice(p, 0);
        return;
    }
    if (!rule_tick_checks_vruntime || ran_ns < sched_min_granularity_ns * tunable_factor())
        return;
    if (find_leftmost(&q->left, cpu) && time_diff(q->curr_vruntime, q->left.vtime) > (s64)ideal_ns) {
        q->balance_only = false;
        scx_bpf_task_set_slice(p, 0);
    }
}

/*
 * put_prev_entity, and the first half of dequeue_entity: a task leaves its CPU. When another was picked before, that one is in
 * no queue and not yet current: min_vruntime must not be taken from the rest. dispatch has just updated it.
 */
void BPF_STRUCT_OPS(cfs_stopping, struct task_struct *p, bool runnable)
{
    u32 cpu = task_cpu(p);
    struct cfs_queue *q = queue_of(cpu);

    if (q->curr_pid != (u32)p->pid)
        return;
    charge_curr(q, p);
    if (!q->picked)
        update_min_vruntime(q, cpu);
    scx_bpf_task_set_dsq_vtime(p, q->curr_vruntime);
    if (ADAPTIVE_GRAN) {
        struct cfs_task *t = task_of(p);

        if (t) {
            t->avg_wakeup_ns = q->curr_avg_wakeup_ns;
            t->last_wakeup_ns = q->curr_last_wakeup_ns;
        }
    }
    q->curr_pid = 0;
    q->stopped_pid = runnable ? 0 : (u32)p->pid;
}

/* The other half: a task goes to sleep, or out for an attribute change. */
void BPF_STRUCT_OPS(cfs_quiescent, struct task_struct *p, u64 deq_flags)
{
    struct cfs_task *t = task_of(p);
    struct cfs_queue *q;

    if (!t)
        return;
    q = queue_of(t->cpu);
    account_dequeue(t);
    clear_buddies(q, (u32)p->pid);
    if (q->stopped_pid != (u32)p->pid)
        forget_leftmost(&q->left);
    q->stopped_pid = 0;
    if (rule_min_vruntime == MIN_AT_DEQUEUE && nr_running[t->cpu & (MAX_CPUS - 1)])
        update_min_vruntime(q, t->cpu);
}

/* yield_task_fair. The pick that follows decides whether it helps anybody. */
bool BPF_STRUCT_OPS(cfs_yield, struct task_struct *from, struct task_struct *to)
{
    u32 cpu = task_cpu(from);
    struct cfs_queue *q = queue_of(cpu);
    u64 rightmost = 0;

    if (q->curr_pid != (u32)from->pid)
        return false;
    update_curr(q, cpu, from);
    if (sched_compat_yield) {
        if (peek_vtime(cpu, SCX_DSQ_ITER_REV, &rightmost) && time_diff(rightmost, q->curr_vruntime) >= 0)
            q->curr_vruntime = rightmost + 1;
    } else if (rule_yield_skips && nr_running[cpu] > 1) {
        clear_buddies(q, q->curr_pid);
        q->skip_pid = q->curr_pid;
    }
    scx_bpf_task_set_slice(from, 0);
    return false;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(cfs_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
    struct cfs_task *t = bpf_task_storage_get(&task_ctx, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

    if (!t)
        return -ENOMEM;
    t->is_new = true;
    t->avg_wakeup_ns = sched_wakeup_granularity_ns * tunable_factor();
    return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(cfs_init)
{
    s32 err;
    u32 cpu;

    for_range (cpu, MAX_CPUS)
        queue_of(cpu)->min_vruntime = MIN_VRUNTIME_START;
    err = create_cpu_queues();
    return err ?: balance_init();
}

SCX_OPS_DEFINE(cfs_ops, .select_cpu = (void *)cfs_select_cpu, .runnable = (void *)cfs_runnable,
               .enqueue = (void *)cfs_enqueue, .dispatch = (void *)cfs_dispatch, .running = (void *)cfs_running,
               .tick = (void *)cfs_tick, .stopping = (void *)cfs_stopping, .quiescent = (void *)cfs_quiescent,
               .yield = (void *)cfs_yield, .init_task = (void *)cfs_init_task, .init = (void *)cfs_init,
               .flags = SCX_OPS_ENQ_EXITING, .timeout_ms = 30000, .name = "cfs");
