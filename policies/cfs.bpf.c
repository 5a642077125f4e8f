/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cfs: the Completely Fair Scheduler with vruntime, Linux 2.6.24 to 6.5. A parameter set per release: 2.6.24, 2.6.25,
 * 2.6.26, 2.6.27, 2.6.27-sle11, 2.6.28, 2.6.30, 2.6.32, 2.6.36, 6.1, 6.5 (cfs_releases.bpf.h is the table).
 *
 * Rule: a task's vruntime advances by the time it runs, * 1024 / weight. The task with the smallest vruntime runs
 * next; the one that runs is not in the queue. At a tick it is preempted when it has used up its slice, period *
 * weight / load. A task that wakes up is placed near the queue's own clock, min_vruntime, minus a credit, and
 * preempts at once when it is behind the current task by more than the wake-up granularity. A group of tasks (a
 * control group) is an entity like a task in its parent's queue, with shares for a weight, and has a queue of its
 * own.
 *
 * Example (set 2.6.24, one CPU, so latency 20 ms, min_granularity 4 ms, wake-up granularity 10 ms): hogs A, B at nice
 * 0 and C at nice 5 (weight 335) have 20 * 1024/2383 = 8.6, 8.6 and 2.8 ms per period; 2.8 ms of C are 2.8 * 1024/335
 * = 8.6 ms of vruntime, so all three advance alike. S wakes up after a second of sleep, while A's vruntime is 3 ms
 * right of min_vruntime: S is placed 20 ms left of min_vruntime, is 23 ms behind A, more than 10, and runs at once.
 * With A alone at the root and B and C in a group of weight 100 (1024 shares), A has a half of the CPU, B 37.7 % and
 * C 12.3 %.
 *
 * Where it fails: with many hogs a sleeper with credit preempts at each wake-up and cuts every slice short (8 hogs
 * and one 1 kHz sleeper: 1 ms in place of 9 ms). Fairness holds per CPU only: a task's share depends on the tasks
 * that share its CPU. Slices end at ticks only, except with HRTICK. Queue-scaled vruntime (2.6.27) is unfair when
 * tasks come and go.
 *
 * Follows kernel/sched_fair.c of 2.6.24 to 2.6.36 and kernel/sched/fair.c of 6.1 to 6.5: update_curr,
 * update_min_vruntime, place_entity, check_preempt_tick, check_preempt_wakeup, pick_next_entity, yield_task_fair,
 * task_fork_fair, hrtick_start_fair, update_cfs_shares, and rq_clock_skip_update of kernel/sched/core.c. The load
 * balancer is balance.bpf.h; sets 6.1 and 6.5 choose a CPU at a wake-up (balance_wake.bpf.h) and move tasks later
 * (balance_kinds.bpf.h) as 6.1 does; the balancer weighs the tasks of groups, not their shares. docs/laws/cfs.md
 * states what must hold. Not modelled: bandwidth limits (cpu.max), autogroups, SCHED_IDLE groups (cpu.idle), the
 * long-sleep guard of 6.3. ADAPTIVE_GRAN counts a wake-up by a timer as one by the task that it interrupts.
 */
#define BALANCE_RELEASE 6_1
/* clang-format off */
#define BALANCE_SETS(t)                                                                                                  \
    BALANCE_SET("2.6.24", t, 2_6_24) BALANCE_SET("2.6.25", t, 2_6_24) BALANCE_SET("2.6.26", t, 2_6_24)                   \
    BALANCE_SET("2.6.27", t, 2_6_27) BALANCE_SET("2.6.27-sle11", t, 2_6_27) BALANCE_SET("2.6.28", t, 2_6_27)             \
    BALANCE_SET("2.6.30", t, 2_6_27) BALANCE_SET("2.6.32", t, 2_6_27) BALANCE_SET("2.6.36", t, 2_6_27)                   \
    BALANCE_SET("6.1", t, 6_1) BALANCE_SET("6.5", t, 6_1)
/* clang-format on */
#include "exit.bpf.h"
#include "cfs_preempt.bpf.h"
#include "fork_stays.bpf.h"
#include "cfs_cgroup.bpf.h"
#include "cfs_hrtick.bpf.h"
#include "cfs_dispatch.bpf.h"

char _license[] SEC("license") = "GPL";

/* An idle CPU waits for this task. */
static __always_inline void reserve(struct task_struct *p)
{
    struct cfs_task *t = task_of(p);

    if (t)
        t->to_local = true;
}

s32 BPF_STRUCT_OPS(cfs_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    bool is_idle = false;
    s32 cpu;

    if (stays_at_fork(p, wake_flags))
        return (s32)this_cpu();
    cpu = balance_select_cpu(p, prev_cpu, wake_flags, &is_idle);
    if (is_idle)
        reserve(p);
    else if (rule_sync_keeps_waker && (wake_flags & SCX_WAKE_SYNC))
        queue_of(this_cpu())->sync_pid = (u32)p->pid;
    return cpu;
}

/* ADAPTIVE_GRAN: run time of this CPU's current task between the wake-ups that it issues; each sample counts 1/8. */
static __noinline void note_wakeup_by_current(void)
{
    struct cfs_queue *q = current_queue(this_cpu());
    struct task_struct *current = bpf_get_current_task_btf();
    struct cfs_task *t = q->curr_pid && current ? task_of(current) : NULL;
    u64 ran_ns = q->curr_sum_exec;

    if (!t)
        return;
    t->avg_wakeup_ns += (u64)((s64)(ran_ns - t->last_wakeup_ns - t->avg_wakeup_ns) >> 3);
    t->last_wakeup_ns = ran_ns;
}

/* place_entity for a task that wakes up: at the base less the credit, but never left of where it was. */
static __always_inline u64 place_woken(struct cfs_queue *q, struct cfs_task *t, u64 vruntime)
{
    u64 base = placement_base(q);

    if (TREE_AVG || APPROX_AVG)
        base = averaged_base(q, nr_queued(q) - 1, q->load - t->load.weight, base);
    if (FAIR_SLEEPERS)
        base -= sleeper_credit(q, t->is_idle, t->load.weight, t->load.inverse);
    return max_time(vruntime, base);
}

/*
 * place_entity for a new task, task_fork_fair / task_new_fair: one slice to the right, and which of the two runs
 * first.
 */
SEPARATE u64 place_new(u32 cpu, struct cfs_task *t, u32 pid)
{
    u32 here = this_cpu(), nr;
    bool elsewhere = rule_fork_parent_queue && here != cpu;
    struct cfs_queue *q, *parent, *src;
    u64 load, vruntime;

    if (!t)
        return 0;
    q = queue_in(t->group, cpu);
    parent = queue_in(t->group, here);
    src = elsewhere ? parent : q;
    nr = nr_queued(src) + (elsewhere ? 1 : 0);
    load = src->load + (elsewhere ? t->load.weight : 0);
    vruntime = placement_base(src);
    if (TREE_AVG || APPROX_AVG)
        vruntime = averaged_base(src, nr - 1, load - t->load.weight, vruntime);
    if (START_DEBIT)
        vruntime += sched_vslice(src, nr, load, t->load.weight, t->load.inverse, t->is_idle);
    if (rule_place_never_left && parent->curr_pid && (elsewhere || here == cpu))
        vruntime = max_time(parent->curr_vruntime, vruntime);
    if (sched_child_runs_first && here == cpu && q->curr_pid && time_diff(q->curr_vruntime, vruntime) < 0) {
        u64 child = q->curr_vruntime;

        q->curr_vruntime = vruntime;
        vruntime = child;
        queue_of(cpu)->fork_pid = pid;
    }
    return elsewhere ? migrated_vruntime(vruntime, t->group, here, cpu) : vruntime;
}

/*
 * enqueue_entity for a task that becomes able to run: it wakes up, is new, or comes back after an attribute change.
 * Returns its vruntime.
 */
static __always_inline u64 join(struct task_struct *p, struct cfs_task *t, u32 cpu, bool wakes)
{
    u64 vruntime = p->scx.dsq_vtime;
    struct cfs_queue *q;

    update_curr_by_clock(cpu);
    if (t->cpu != cpu && !t->is_new)
        vruntime = migrated_vruntime(vruntime, t->group, t->cpu, cpu);
    t->is_idle = p->policy == SCHED_IDLE;
    set_task_weight(p, &t->load.weight, &t->load.inverse);
    account_enqueue(p, t, cpu);
    t->is_queued = true;
    q = queue_in(t->group, cpu);
    if (t->is_new) {
        vruntime = place_new(cpu, t, (u32)p->pid);
    } else if (wakes) {
        vruntime = place_woken(q, t, vruntime);
        if (ADAPTIVE_GRAN)
            note_wakeup_by_current();
    }
    return vruntime;
}

/* The same for one that the kernel runs without ops.enqueue: a running task restored, or one that must not migrate. */
static __noinline void join_late(struct task_struct *p, struct cfs_task *t, u32 cpu)
{
    scx_bpf_task_set_dsq_vtime(p, join(p, t, cpu, t->slept));
    t->is_new = t->to_local = false;
}

/* check_preempt_curr for a task that was queued on a CPU where another one runs. */
static __always_inline void check_preempt_curr(u32 cpu, struct task_struct *p, struct cfs_task *t)
{
    struct cfs_queue *current = current_queue(cpu);

    if (wakeup_preempts(cpu, p, t) || (t->is_new && rule_fork_reschedules))
        resched_curr(cpu);
    else if (HRTICK)
        hrtick_update(cpu);
    current->skip_clock_update = current->need_resched && rule_clock_stands;
}

/* Puts a task into its group's queue. */
static __always_inline void insert_in_group(struct task_struct *p, struct cfs_task *t, u32 cpu, u64 vruntime,
                                            u64 enq_flags)
{
    struct cfs_queue *q = queue_in(t->group, cpu);

    note_inserted(&q->left, vruntime);
    scx_bpf_dsq_insert_vtime(p, dsq_in(t->group, cpu), SCX_SLICE_INF, vruntime, enq_flags);
    if (rule_min_vruntime == MIN_OF_TREE && !is_in_transit(queue_of(cpu), q))
        update_min_vruntime(q);
}

/* Puts a task into the queue of a CPU. */
static __always_inline void insert(struct task_struct *p, struct cfs_task *t, struct cfs_queue *root, u32 cpu,
                                   u64 vruntime, u64 enq_flags)
{
    enq_flags &= ~SCX_ENQ_PREEMPT;
    if (unlikely(t->group)) {
        insert_in_group(p, t, cpu, vruntime, enq_flags);
        return;
    }
    note_inserted(&root->left, vruntime);
    scx_bpf_dsq_insert_vtime(p, cpu, SCX_SLICE_INF, vruntime, enq_flags);
}

/* put_prev_entity for a task that was preempted; or one comes back, perhaps after it had to leave another CPU. */
static __always_inline void insert_again(struct task_struct *p, struct cfs_task *t, u32 cpu, u64 vruntime,
                                         u64 enq_flags)
{
    struct cfs_queue *root = queue_of(cpu);
    u32 to = balance_active_push(p, cpu);

    if (unlikely(t->cpu != to))
        vruntime = migrate(p, t, to, vruntime);
    insert(p, t, likely(to == cpu) ? root : queue_of(to), to, vruntime, enq_flags);
}

/* A task joins the queue of its CPU. */
static __noinline void enqueue_joining(struct task_struct *p, struct cfs_task *t, u32 cpu, u64 enq_flags)
{
    u64 vruntime = join(p, t, cpu, enq_flags & SCX_ENQ_WAKEUP);

    if (t->to_local) {
        t->is_new = t->to_local = false;
        scx_bpf_task_set_dsq_vtime(p, vruntime);
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
        return;
    }
    if (!(enq_flags & SCX_ENQ_WAKEUP) && !t->is_new) {
        insert_again(p, t, cpu, vruntime, enq_flags);
        return;
    }
    insert(p, t, queue_of(cpu), cpu, vruntime, enq_flags);
    if (current_queue(cpu)->curr_pid)
        check_preempt_curr(cpu, p, t);
    t->is_new = false;
}

/* A task waits: it woke up, is new, was preempted, or had to leave another CPU. */
void BPF_STRUCT_OPS(cfs_enqueue, struct task_struct *p, u64 enq_flags)
{
    u32 cpu = task_cpu(p);
    struct cfs_task *t = task_of(p);

    if (!t)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
    else if (t->is_queued)
        insert_again(p, t, cpu, p->scx.dsq_vtime, enq_flags);
    else
        enqueue_joining(p, t, cpu, enq_flags);
}

/* The current task stays: it is alone, or still the best. */
static __always_inline void keep(struct cfs_queue *root, struct cfs_queue *q, struct task_struct *prev)
{
    if (rule_repick_starts_slice) {
        q->curr_slice_exec = q->curr_sum_exec;
        clear_buddies(q, q->curr_pid);
        if (unlikely(q->group))
            keep_groups(q->group, q->cpu);
    }
    scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
    if (HRTICK)
        hrtick_start(root, q, root->cpu);
}

/* This CPU picks again. `prev` is still current: if it can run and its slice is not 0 afterwards, it continues. */
void BPF_STRUCT_OPS(cfs_dispatch, s32 this, struct task_struct *prev)
{
    u32 cpu = (u32)this & (MAX_CPUS - 1);
    struct cfs_queue *root = queue_of(cpu), *q = current_queue(cpu);
    u64 now_ns = scx_bpf_now();

    root->carry_ns = 0;
    root->chosen_ns = now_ns;
    if (!prev || q->curr_pid != (u32)prev->pid) {
        balance_run(cpu);
        if (!pick_next(root, cpu, false))
            pick_elsewhere(cpu);
        return;
    }
    if (!q->skip_clock_update)
        update_curr(q, prev, now_ns);
    balance_run(cpu);
    if (unlikely(root->balance_only) && goes_on(root, q)) {
        note_chosen(q);
        scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
    } else if (!pick_next(root, cpu, true)) {
        note_chosen(q);
        keep(root, q, prev);
    }
}

/*
 * A task bypassed dispatch (idle CPU, or back after a real-time task): this CPU picks again if another one that is
 * further left joined meanwhile.
 */
SEPARATE void check_bypass(u32 cpu, struct cfs_queue *q)
{
    u64 left = 0;

    if (q && nr_running(cpu) > 1 && find_left(q, &left) &&
        time_diff(q->curr_vruntime, left) > (s64)(sched_wakeup_granularity_ns * tunable_factor()) &&
        ask_for_choice(cpu))
        kick(cpu, SCX_KICK_PREEMPT);
}

/* set_next_entity: a task comes onto a CPU. */
void BPF_STRUCT_OPS(cfs_running, struct task_struct *p)
{
    u32 cpu = task_cpu(p);
    struct cfs_task *t = task_of(p);
    struct cfs_queue *root = queue_of(cpu), *q;

    if (!t)
        return;
    if (unlikely(!t->is_queued))
        join_late(p, t, cpu);
    else if (unlikely(t->cpu != cpu))
        scx_bpf_task_set_dsq_vtime(p, migrate(p, t, cpu, p->scx.dsq_vtime));
    q = queue_in(t->group, cpu);
    q->curr_pid = (u32)p->pid;
    q->curr_vruntime = p->scx.dsq_vtime;
    q->curr_load = t->load;
    q->curr_policy = p->policy;
    q->curr_sum_exec = q->curr_slice_exec = p->se.sum_exec_runtime;
    note_chosen(q);
    clear_buddies(q, q->curr_pid);
    if (rule_min_vruntime == MIN_OF_TREE)
        update_min_vruntime(q);
    if (unlikely(q->nr_grouped)) {
        if (q->children)
            q->last_curr = q->curr_pid;
        if (t->group)
            set_next_groups(t->group, cpu);
    }
    if (likely(root->picked)) {
        q->curr_clock_ns = root->chosen_ns;
        root->picked = 0;
    } else {
        q->curr_clock_ns = scx_bpf_now();
        check_bypass(cpu, q);
    }
    if (rule_clock_stands && root->carry_ns)
        take_carried(root, q);
    if (HRTICK)
        hrtick_start(root, q, cpu);
}

/* entity_tick: slices end here, and by the timer of HRTICK. */
void BPF_STRUCT_OPS(cfs_tick, struct task_struct *p)
{
    u32 cpu = this_cpu();
    struct cfs_queue *q = current_queue(cpu);
    bool ends;

    queue_of(cpu)->balance_only = balance_tick(cpu);
    if (queue_of(cpu)->balance_only)
        scx_bpf_task_set_slice(p, 0);
    if (q->curr_pid != (u32)p->pid)
        return;
    update_curr(q, p, scx_bpf_now());
    q->skip_clock_update = false;
    scx_bpf_task_set_dsq_vtime(p, q->curr_vruntime);
    if (hrtick_is_armed(cpu))
        return;
    ends = check_preempt_tick(q);
    if (unlikely(q->group) && check_preempt_tick_of_groups(q->group, cpu))
        ends = true;
    if (ends) {
        queue_of(cpu)->balance_only = false;
        q->need_resched = true;
        scx_bpf_task_set_slice(p, 0);
    }
}

/*
 * put_prev_entity: the current task leaves its CPU and stays runnable. One that does not comes to ops.quiescent next,
 * under the same lock. A task that was picked before is in no queue and not yet current: min_vruntime must not be
 * computed without it. dispatch has just updated it.
 */
void BPF_STRUCT_OPS(cfs_stopping, struct task_struct *p, bool runnable)
{
    struct cfs_queue *root, *q;
    u32 cpu;

    if (!runnable)
        return;
    cpu = task_cpu(p);
    root = queue_of(cpu);
    q = current_queue(cpu);
    if (q->curr_pid != (u32)p->pid)
        return;
    charge_stopped(q, p);
    if (!is_in_transit(root, q))
        update_min_vruntime_with(q, true);
    scx_bpf_task_set_dsq_vtime(p, q->curr_vruntime);
    q->curr_pid = 0;
    if (unlikely(q->group))
        put_prev_groups(q->group, q->cpu);
}

/* The rest of dequeue_entity. */
static __always_inline void dequeue(struct task_struct *p, struct cfs_task *t, struct cfs_queue *q)
{
    account_dequeue(p, t);
    clear_buddies(q, (u32)p->pid);
    if (!t->slept)
        t->left_min = q->min_vruntime;
    if (rule_min_vruntime == MIN_AT_DEQUEUE && nr_queued(q))
        update_min_vruntime(q);
}

/* dequeue_entity of a task that waits. */
static __noinline void dequeue_waiting(struct task_struct *p, struct cfs_task *t, struct cfs_queue *q)
{
    forget_leftmost(&q->left);
    dequeue(p, t, q);
    if (unlikely(t->group) && t->slept && rule_hints_next)
        hint_left_group(t->group, t->cpu);
    if (HRTICK)
        hrtick_update(t->cpu);
}

/* dequeue_entity, dequeue_task_fair of a current task in a group. */
static __noinline void dequeue_current_in_group(struct task_struct *p, struct cfs_task *t, struct cfs_queue *q)
{
    charge_stopped(q, p);
    update_min_vruntime_with(q, true);
    scx_bpf_task_set_dsq_vtime(p, q->curr_vruntime);
    q->curr_pid = 0;
    put_prev_groups(t->group, t->cpu);
    dequeue(p, t, q);
    if (t->slept && rule_hints_next)
        hint_left_group(t->group, t->cpu);
}

/* dequeue_entity: a task goes to sleep, or out for an attribute change. */
void BPF_STRUCT_OPS(cfs_quiescent, struct task_struct *p, u64 deq_flags)
{
    struct cfs_task *t = task_of(p);
    struct cfs_queue *q;

    if (!t || !t->is_queued)
        return;
    t->is_queued = false;
    t->slept = deq_flags & SCX_DEQ_SLEEP;
    q = queue_in(t->group, t->cpu);
    if (unlikely(q->curr_pid != (u32)p->pid)) {
        dequeue_waiting(p, t, q);
    } else if (unlikely(t->group)) {
        dequeue_current_in_group(p, t, q);
    } else {
        charge_stopped(q, p);
        update_min_vruntime_with(q, true);
        scx_bpf_task_set_dsq_vtime(p, q->curr_vruntime);
        q->curr_pid = 0;
        dequeue(p, t, q);
    }
}

/* yield_task_fair. The pick that follows decides whether another task runs. */
bool BPF_STRUCT_OPS(cfs_yield, struct task_struct *from, struct task_struct *to)
{
    u32 cpu = task_cpu(from);
    struct cfs_queue *q = current_queue(cpu);
    u64 rightmost = 0;

    if (q->curr_pid != (u32)from->pid)
        return false;
    update_curr(q, from, scx_bpf_now());
    q->skip_clock_update = false;
    if (sched_compat_yield || (rule_batch_yields_right && from->policy == SCHED_BATCH)) {
        if (peek_queue(dsq_of(q), SCX_DSQ_ITER_REV, &rightmost) && time_diff(rightmost, q->curr_vruntime) >= 0)
            q->curr_vruntime = rightmost + 1;
    } else if (rule_yield_skips && nr_running(cpu) > 1) {
        clear_buddies(q, q->curr_pid);
        q->skip_pid = q->curr_pid;
        q->has_buddies = true;
        if (unlikely(q->group))
            set_group_buddies(q->group, cpu, BUDDY_SKIP);
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
    wakees_of_parent(&t->record, args->fork);
    t->group = args->cgroup ? group_of_cgroup(args->cgroup) : 0;
    t->avg_wakeup_ns = sched_wakeup_granularity_ns * tunable_factor();
    return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(cfs_init)
{
    s32 err;
    u32 cpu;

    for_range (cpu, MAX_CPUS) {
        queue_of(cpu)->min_vruntime = MIN_VRUNTIME_START;
        queue_of(cpu)->cpu = cpu;
    }
    err = create_cpu_queues();
    init_scaling(rule_scaling_cpus_max);
    if (!err)
        err = balance_init();
    return err ?: hrtick_init();
}

BALANCE_HOTPLUG(cfs)
EXIT_RECORD(cfs)

SCX_OPS_DEFINE(cfs_ops, .select_cpu = (void *)cfs_select_cpu, .enqueue = (void *)cfs_enqueue,
               .dispatch = (void *)cfs_dispatch, .running = (void *)cfs_running, .tick = (void *)cfs_tick,
               .stopping = (void *)cfs_stopping, .quiescent = (void *)cfs_quiescent, .yield = (void *)cfs_yield,
               .init_task = (void *)cfs_init_task, .init = (void *)cfs_init, .exit = (void *)cfs_exit,
               .cpu_online = (void *)cfs_cpu_online, .cpu_offline = (void *)cfs_cpu_offline,
               .cgroup_init = (void *)cfs_cgroup_init, .cgroup_exit = (void *)cfs_cgroup_exit,
               .cgroup_move = (void *)cfs_cgroup_move, .cgroup_set_weight = (void *)cfs_cgroup_set_weight,
               .flags = SCX_OPS_ENQ_EXITING, .timeout_ms = 30000, .name = "cfs");
