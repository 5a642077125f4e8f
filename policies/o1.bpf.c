/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * o1: the O(1) scheduler with its interactivity estimator, Linux 2.6.22, the last before CFS.
 *
 * Rule: each CPU has two arrays of FIFO lists, one list per priority. The head of the best list of the active array
 * runs until its time slice (100 ms at nice 0) is used up and goes to the expired array; when the active one is empty
 * they swap. Priority is 120 + nice less a bonus of -5 to +5, which sleeping earns and running costs
 * (o1_estimator.bpf.h). Tasks with a high bonus are interactive: they stay in the active array, and alternate in
 * small pieces. A waking task preempts when its priority is better.
 *
 * Example (HZ 1000, one CPU): hogs A, B at nice 0 have priority 125 and alternate in slices of 100 ms. S sleeps 9 ms
 * of 10: after just over a second its bonus is 10, its priority 115, and it preempts at each wake-up. When S begins
 * to compute, it loses a ninth of its run time, then an eighth, a seventh: for 0.9 + 0.8 + 0.7 s, until its bonus is
 * below 7, it keeps the CPU, unless 3 s (1 s per runnable task) have passed since one of them expired.
 *
 * A task inherits most of its launcher's bonus, which slept: 6 (rule_launcher_slept). Hogs that sleep for 0.4 s before
 * their work begin as interactive: they alternate in small pieces for seconds, and keep nicer ones off the CPU.
 *
 * Where it fails: many tasks that sleep a little all become interactive, and the first few keep the CPU (experiment
 * massive-intr). The ratio of slices of neighbouring nice values varies: 420 : 100 from -1 to 0, 10 : 5 from 18 to
 * 19. A child that is forked and dies costs its parent's slice. Three hogs on two CPUs stay at 50, 50, 100 %.
 *
 * Follows kernel/sched.c of 2.6.22: schedule, scheduler_tick, task_running_tick, try_to_wake_up, recalc_task_prio,
 * sched_fork, wake_up_new_task, sched_exit, sys_sched_yield, set_user_nice. Laws: docs/laws/o1.md. A wake-up counts
 * as one by an interrupt if preempt_count says so, or, where that cannot be read, if the waker's CPU is idle. That a
 * wake-up is synchronous is not told of a task that may run on one CPU only: a pipe's wakes it like any other. Not
 * modelled: real-time tasks, sched_exec, sleep times that wrap on 32 bits. A vfork child is queued before its parent.
 */
#define BALANCE_RELEASE 2_6_22
#define BALANCE_SCALE   128
#define BALANCE_QUEUES  2
#include "exit.bpf.h"
#include "o1_arrays.bpf.h"
#include "interrupt.bpf.h"

char _license[] SEC("license") = "GPL";

TUNABLE(
    bool, rule_sync_sleep_noninteractive, true, UNIT("bool"),
    DOC("a sleep ended by a synchronous wake-up was a wait for a pipe (marked in 2.6.22) and earns no full bonus"));

/* HZ is known, and slices are counted in its ticks; until then in those of HZ_FALLBACK. */
bool hz_is_known;

TUNABLE(bool, rule_fork_stays, true, UNIT("bool"),
        DOC("a new task starts on the CPU of its parent; off: where execve would place it"));

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct o1_task);
} task_ctx SEC(".maps");

static __always_inline struct o1_task *task_of(struct task_struct *p)
{
    return bpf_task_storage_get(&task_ctx, p, 0, 0);
}

static __always_inline bool is_user(const struct task_struct *p)
{
    return !(p->flags & PF_KTHREAD);
}

/* pull_task: accounts for the task on another CPU. It keeps its kind of array, at the tail of its list. */
static __noinline void rehome(struct o1_task *t, u32 cpu)
{
    struct o1_queue *to = queue_of(cpu);
    bool expired = t->array != queue_of(t->cpu)->active;

    leave_cpu(t->cpu, t->weight);
    join_cpu(cpu, t->weight);
    t->cpu = cpu;
    join_array(to, t, expired ? expired_array(to) : to->active);
}

#include "fork_stays.bpf.h"
#include "o1_balance.bpf.h"

s32 BPF_STRUCT_OPS(o1_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    bool is_idle = false;
    s32 cpu;

    if (wake_flags & SCX_WAKE_SYNC)
        queue_of(this_cpu())->sync_pid = (u32)p->pid;
    if (stays_at_fork(p, wake_flags))
        return (s32)this_cpu();
    cpu = balance_select_cpu(p, prev_cpu, wake_flags, &is_idle);
    if (is_idle)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
    return cpu;
}

/* try_to_wake_up */
static __always_inline void wake_up(struct task_struct *p, struct o1_task *t, u32 cpu, u64 now_ns)
{
    struct o1_queue *here = queue_of(this_cpu());
    bool sync = here->sync_pid == (u32)p->pid;
    u64 slept_ns = now_ns - t->timestamp_ns;

    here->sync_pid = 0;
    if (sync && rule_sync_sleep_noninteractive)
        t->sleep_type = SLEEP_NONINTERACTIVE;
    account_sleep(t, (s64)slept_ns < 0 ? 0 : slept_ns, is_user(p));
    if (t->sleep_type == SLEEP_NORMAL)
        t->sleep_type = in_interrupt(!here->curr_pid) ? SLEEP_INTERRUPTED : SLEEP_INTERACTIVE;
    t->timestamp_ns = now_ns;
    activate(queue_of(cpu), t);
    t->preempts = !sync || cpu != this_cpu() ? PREEMPTS_IF_BETTER : PREEMPTS_NOT;
}

/*
 * wake_up_new_task. A thread goes to the tail of its list, a forked child right before its parent, so that it runs
 * first.
 */
static __noinline void wake_up_new(struct task_struct *p, struct o1_task *t, u32 cpu)
{
    struct task_struct *parent = bpf_get_current_task_btf();
    struct o1_task *of_parent = t->has_parent ? task_of(parent) : NULL;
    struct o1_queue *q = queue_of(cpu);

    t->sleep_avg_ns = penalised(t, CHILD_PENALTY);
    t->prio = effective_prio(t);
    t->sleep_type = SLEEP_NORMAL;
    if (of_parent && cpu == of_parent->cpu && of_parent->fork_expired) {
        of_parent->fork_expired = false;
        expire(q, of_parent);
    }
    if (of_parent && cpu == this_cpu() && of_parent->cpu == cpu && p->tgid != parent->tgid) {
        t->prio = of_parent->prio;
        t->array = of_parent->array;
        t->key = of_parent->key;
        of_parent->key++;
        t->preempts = PREEMPTS_ALWAYS;
    } else {
        activate(q, t);
        t->preempts = cpu != this_cpu() || !of_parent ? PREEMPTS_IF_BETTER : PREEMPTS_NOT;
    }
    if (of_parent)
        of_parent->sleep_avg_ns = penalised(of_parent, PARENT_PENALTY);
}

/* set_user_nice, __setscheduler: a runnable `p` is enqueued again with new attributes: at the tail of another list. */
static __always_inline void renice(struct task_struct *p, struct o1_task *t, u32 cpu)
{
    struct o1_queue *q = queue_of(cpu);
    u32 before = t->prio;

    t->prio = effective_prio(t);
    join_array(q, t, t->policy == SCHED_BATCH && !p->on_cpu ? expired_array(q) : t->array);
    if (t->prio < before || (t->prio > before && p->on_cpu))
        kick(cpu, SCX_KICK_PREEMPT);
}

/* A task becomes able to run: it wakes up, is new, or comes back after an attribute change. Before enqueue. */
void BPF_STRUCT_OPS(o1_runnable, struct task_struct *p, u64 enq_flags)
{
    struct o1_task *t = task_of(p);
    u32 cpu = task_cpu(p);
    bool changed;

    if (!t)
        return;
    if (t->cpu != cpu) {
        t->array = (u8)queue_of(cpu)->active;
        t->cpu = cpu;
    }
    changed = note_attributes(p, t);
    if (t->is_new)
        wake_up_new(p, t, cpu);
    else if (enq_flags & SCX_ENQ_WAKEUP)
        wake_up(p, t, cpu, scx_bpf_now());
    else if (changed)
        renice(p, t, cpu);
    t->is_new = false;
    join_cpu(cpu, t->weight);
}

/* A task waits: it woke up, is new, was preempted, or had to leave another CPU. */
void BPF_STRUCT_OPS(o1_enqueue, struct task_struct *p, u64 enq_flags)
{
    struct o1_task *t = task_of(p);
    u32 cpu = task_cpu(p);

    if (!t) {
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
        return;
    }
    if (!t->preempts)
        cpu = balance_active_push(p, cpu);
    if (t->cpu != cpu)
        rehome(t, cpu);
    scx_bpf_dsq_insert_vtime(p, queue_id(cpu, t->array), SCX_SLICE_INF, t->key, enq_flags & ~SCX_ENQ_PREEMPT);
    if (t->preempts)
        preempt(t, cpu);
}

/* The current task stays. */
static __always_inline void keep(struct o1_queue *q, struct task_struct *prev, struct o1_task *t)
{
    if (!q->balances)
        account_run(t, scx_bpf_now());
    q->balances = false;
    scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
}

/* The first of the active array, or, if that is empty, of the other one. */
static __always_inline bool take(struct o1_queue *q, u32 cpu)
{
    if (!scx_bpf_dsq_move_to_local(queue_id(cpu, q->active))) {
        if (scx_bpf_dsq_nr_queued(queue_id(cpu, q->active)) ||
            !scx_bpf_dsq_nr_queued(queue_id(cpu, expired_array(q))))
            return false;
        swap_arrays(q);
        if (!scx_bpf_dsq_move_to_local(queue_id(cpu, q->active)))
            return false;
    }
    q->picked = true;
    q->balances = false;
    return true;
}

/*
 * Whether the current task, which can continue, is the first of the active array; it is not in that queue but has a
 * key.
 */
static __always_inline bool is_first(struct o1_queue *q, u32 cpu, struct o1_task *t)
{
    u64 key = 0;

    if (t->fork_expired) {
        t->fork_expired = false;
        expire(q, t);
    }
    if (t->array != q->active && !scx_bpf_dsq_nr_queued(queue_id(cpu, q->active)))
        swap_arrays(q);
    return t->array == q->active && (!first_key(queue_id(cpu, q->active), &key) || (s64)(t->key - key) < 0);
}

/* Nothing waits here: the CPU pulls a task, or becomes idle. */
static __noinline void go_idle(struct o1_queue *q, u32 cpu)
{
    if (newidle_balance(cpu) && take(q, cpu))
        return;
    balance_nothing_came(cpu);
    q->expired_timestamp = 0;
}

/* schedule(): this CPU picks again. If `prev` can run and its slice is not 0 afterwards, it continues. */
void BPF_STRUCT_OPS(o1_dispatch, s32 this, struct task_struct *prev)
{
    u32 cpu = (u32)this & (MAX_CPUS - 1);
    struct o1_queue *q = queue_of(cpu);
    struct o1_task *t;

    balance_run(cpu);
    if (prev && q->curr_pid == (u32)prev->pid) {
        t = task_of(prev);
        if (t) {
            if (is_first(q, cpu, t) || !take(q, cpu))
                keep(q, prev, t);
            return;
        }
    }
    if (!take(q, cpu))
        go_idle(q, cpu);
}

/* A task bypassed dispatch: to an idle CPU, pulled, or back after a real-time task. A better one may wait. */
static __noinline void check_bypass(struct o1_queue *q, struct o1_task *t)
{
    u32 cpu = t->cpu & (MAX_CPUS - 1);
    u64 key = 0;

    if (t->array != q->active && !scx_bpf_dsq_nr_queued(queue_id(cpu, q->active)))
        swap_arrays(q);
    if (nr_running(cpu) > 1 && first_key(queue_id(cpu, q->active), &key) && key >> PRIO_SHIFT < t->prio &&
        ask_for_choice(cpu))
        kick(cpu, SCX_KICK_PREEMPT);
}

/* A task comes onto a CPU. */
void BPF_STRUCT_OPS(o1_running, struct task_struct *p)
{
    struct o1_task *t = task_of(p);
    struct o1_queue *q;
    u64 now_ns;
    u32 cpu;

    if (!t)
        return;
    cpu = task_cpu(p);
    if (t->cpu != cpu)
        rehome(t, cpu);
    q = queue_of(cpu);
    now_ns = scx_bpf_now();
    if (wait_counts(t) && account_wait(t, now_ns, is_user(p)))
        t->key = tail_key(q, t->prio);
    t->sleep_type = SLEEP_NORMAL;
    t->timestamp_ns = now_ns;
    t->last_ran_ns = now_ns;
    t->preempts = PREEMPTS_NOT;
    q->curr_pid = (u32)p->pid;
    q->curr_prio = t->prio;
    if (!q->picked)
        check_bypass(q, t);
    q->picked = false;
}

/* Without a kernel configuration to read: HZ is the supported value nearest to the ticks of the first whole second. */
static __noinline void measure_hz(u64 now_ns)
{
    static u64 start_ns, start_jiffies;
    u64 hz;

    if (!start_ns) {
        start_ns = now_ns;
        start_jiffies = bpf_jiffies64();
        return;
    }
    if (now_ns - start_ns < 1000000000)
        return;
    hz = (bpf_jiffies64() - start_jiffies) * 1000000000 / (now_ns - start_ns);
    hz_is_known = true;
    set_times(hz < 175 ? 100 : hz < 275 ? 250 : hz < 650 ? 300 : 1000);
}

/* task_running_tick: true when the current task shall be preempted. */
static __always_inline bool running_tick(struct o1_queue *q, struct o1_task *t)
{
    if (t->array != q->active)
        return true;
    if (t->time_slice <= 1) {
        expire(q, t);
        return true;
    }
    t->time_slice--;
    if (!piece_ends(q, t))
        return false;
    t->key = tail_key(q, t->prio);
    return true;
}

/* scheduler_tick: the only place where slices end. */
void BPF_STRUCT_OPS(o1_tick, struct task_struct *p)
{
    u32 cpu = this_cpu();
    struct o1_queue *q = queue_of(cpu);
    struct o1_task *t = task_of(p);
    bool over;

    if (!hz_is_known)
        measure_hz(scx_bpf_now());
    if (!t || q->curr_pid != (u32)p->pid)
        return;
    over = running_tick(q, t);
    q->balances = balance_tick(cpu) && !over;
    if (over || q->balances)
        scx_bpf_task_set_slice(p, 0);
}

/* A task leaves its CPU. */
static __always_inline void put_prev(const struct task_struct *p, struct o1_task *t)
{
    struct o1_queue *q = queue_of(t->cpu);

    if (q->curr_pid != (u32)p->pid)
        return;
    q->curr_pid = 0;
    account_run(t, scx_bpf_now());
}

/* The same for one that stays runnable. One that does not comes to ops.quiescent next, under the same lock. */
void BPF_STRUCT_OPS(o1_stopping, struct task_struct *p, bool runnable)
{
    struct o1_task *t;

    if (!runnable)
        return;
    t = task_of(p);
    if (t)
        put_prev(p, t);
}

/*
 * sched_exit: a child that exits in its first slice returns the rest; a child that slept little lowers the parent's
 * bonus.
 */
static __always_inline void leave_to_parent(struct task_struct *p, struct o1_task *t)
{
    struct task_struct *parent = p->real_parent;
    struct o1_task *of_parent = parent ? task_of(parent) : NULL;
    u32 most = task_timeslice(t->static_prio), weight = EXIT_WEIGHT;

    if (!of_parent)
        return;
    if (t->first_slice && t->cpu == of_parent->cpu) {
        of_parent->time_slice += t->time_slice;
        if (of_parent->time_slice > most)
            of_parent->time_slice = most;
    }
    if (t->sleep_avg_ns < of_parent->sleep_avg_ns)
        of_parent->sleep_avg_ns = of_parent->sleep_avg_ns / (weight + 1) * weight + t->sleep_avg_ns / (weight + 1);
}

/* A task goes to sleep, exits, or is dequeued for an attribute change. */
void BPF_STRUCT_OPS(o1_quiescent, struct task_struct *p, u64 deq_flags)
{
    struct o1_task *t = task_of(p);
    u32 state = p->__state;

    if (!t)
        return;
    put_prev(p, t);
    leave_cpu(t->cpu, t->weight);
    if (!(deq_flags & SCX_DEQ_SLEEP))
        return;
    if (state & TASK_DEAD)
        leave_to_parent(p, t);
    else if ((state & TASK_UNINTERRUPTIBLE) && !(state & TASK_NOLOAD))
        t->sleep_type = SLEEP_NONINTERACTIVE;
}

/* sys_sched_yield: to the tail of the expired array. */
bool BPF_STRUCT_OPS(o1_yield, struct task_struct *from, struct task_struct *to)
{
    struct o1_task *t = task_of(from);
    struct o1_queue *q = t ? queue_of(t->cpu) : NULL;

    if (!q || q->curr_pid != (u32)from->pid)
        return false;
    join_array(q, t, expired_array(q));
    scx_bpf_task_set_slice(from, 0);
    return false;
}

/* A new task: its own state. */
s32 BPF_STRUCT_OPS_SLEEPABLE(o1_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
    struct o1_task *t = bpf_task_storage_get(&task_ctx, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

    if (!t)
        return -ENOMEM;
    t->static_prio = static_prio_of(p);
    t->policy = p->policy;
    t->weight = slice_weight(t->static_prio);
    t->prio = effective_prio(t);
    t->time_slice = task_timeslice(t->static_prio);
    t->key = task_key(t->prio, 0);
    t->timestamp_ns = scx_bpf_now();
    t->is_new = args->fork;
    t->has_parent = args->fork;
    return 0;
}

/*
 * sched_fork: the child takes half of the parent's slice, so that forking gains no time. A task whose parent is
 * process 0 was started from outside of the machine, and takes nothing.
 */
void BPF_STRUCT_OPS(o1_enable, struct task_struct *p)
{
    struct task_struct *from = p->real_parent, *parent = bpf_get_current_task_btf();
    struct o1_task *t = task_of(p), *of_parent;

    if (!t || !t->has_parent || !t->is_new)
        return;
    of_parent = from && from->pid ? task_of(parent) : NULL;
    t->has_parent = of_parent != NULL;
    if (!of_parent) {
        t->sleep_avg_ns = rule_launcher_slept ? interactive_sleep_ns(NICE_0_PRIO) : 0;
        return;
    }
    t->sleep_avg_ns = of_parent->sleep_avg_ns;
    t->first_slice = true;
    t->time_slice = (of_parent->time_slice + 1) / 2;
    of_parent->time_slice /= 2;
    if (!of_parent->time_slice) {
        of_parent->time_slice = 1;
        of_parent->fork_expired = true;
        kick(this_cpu(), SCX_KICK_PREEMPT);
    }
}

s32 BPF_STRUCT_OPS_SLEEPABLE(o1_init)
{
    s32 err = create_cpu_queues();
    u32 cpu;

    hz_is_known = CONFIG_HZ != 0;
    set_times(hz_is_known ? CONFIG_HZ : HZ_FALLBACK);
    for_range (cpu, nr_cpus)
        queue_of(cpu)->best_expired_prio = MAX_PRIO;
    return err ? err : balance_init();
}

BALANCE_HOTPLUG(o1)
EXIT_RECORD(o1)

SCX_OPS_DEFINE(o1_ops, .select_cpu = (void *)o1_select_cpu, .runnable = (void *)o1_runnable,
               .enqueue = (void *)o1_enqueue, .dispatch = (void *)o1_dispatch, .running = (void *)o1_running,
               .tick = (void *)o1_tick, .stopping = (void *)o1_stopping, .quiescent = (void *)o1_quiescent,
               .yield = (void *)o1_yield, .init_task = (void *)o1_init_task, .enable = (void *)o1_enable,
               .init = (void *)o1_init, .exit = (void *)o1_exit, .cpu_online = (void *)o1_cpu_online,
               .cpu_offline = (void *)o1_cpu_offline, .flags = SCX_OPS_ENQ_EXITING, .timeout_ms = 30000,
               .name = "o1");
