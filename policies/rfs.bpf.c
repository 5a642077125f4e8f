/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rfs: Roman Zippel's Really Fair Scheduler of August 2007, in 64-bit nanoseconds. Parameter sets literal and accurate.
 *
 * Rule: a task's normalised time advances by the time it runs * inv, inv = round(2^S / weight): a constant, so no rounding
 * adds up. The task with the smallest normalised time runs next. The one that runs goes on until it is G ns ahead of the
 * smallest. The weighted average of all normalised times is kept exactly (rfs_sums.bpf.h) and says where a task is placed
 * that wakes up: at its own time, but at most BONUS behind the average. There are no time slices.
 *
 * Example (set literal, S = 16): A nice 0, inv 64, shift 10; B nice 5, inv 196, shift 8. A runs 4 ms: 4e6 * 64 = 256000000.
 * B is at 0, A 256000000 ahead, which is G * 64 for G = 4 ms: not more, so A goes on; 1 ms later it is, and B runs. The
 * average is (320000000 * 1024 + 0 * 256) / 1280 = 256000000. A task C that slept long is placed at 256000000 - 10e6 * 64.
 *
 * Where it fails: with S = 16 the weights of negative nice levels are rounded badly (nice -20 to -17 all run alike); that is
 * what `accurate`, S = 24, is for. Many tasks wait long: nothing shortens a turn as CFS's period does. A task that sleeps
 * often is favoured by BONUS each time. CPUs are fair each by itself.
 *
 * Follows the announcement (lkml, 31 August 2007, against 2.6.23-rc3-git1, one CPU): its equations are named by number. The
 * patch itself is lost; what the announcement leaves open (G, Gw, BONUS, fork, yield, several CPUs) is our choice: equal
 * granularity in wall time for all tasks, scaled like CFS's by the number of CPUs; queues per CPU; over a migration the
 * distance to the average stays.
 */
#include "rfs_sums.bpf.h"
#include "leftmost.bpf.h"
#include "scaling.bpf.h"

char _license[] SEC("license") = "GPL";

#define SETS(literal, accurate) SET("literal", literal) SET("accurate", accurate)

/* Fixed while the scheduler runs: every time that is kept is in these units. */
TUNABLE(const volatile u32, fraction_bits, 24, UNIT("bits"), SETS("16", "24"),
        DOC("S: fraction bits of the inverse weights; 16 as announced, 24 exact for negative nice"));
TUNABLE(const volatile u32, max_timesum_log2, 54, UNIT("log2"), SETS("46", "54"),
        DOC("log2 of MAX_TIMESUM, the bound of time_sum_max; 40 to 60"));
TUNABLE(const volatile u64, time_norm_start, 0, UNIT("normalised time"),
        DOC("normalised time at which every queue starts; near 2^64 to see that wrapping changes nothing"));

TUNABLE(u64, granularity_ns, 4000000, UNIT("ns"),
        DOC("G: the current task goes on until it is this far ahead of the first waiting one; times the factor"));
TUNABLE(u64, wakeup_granularity_ns, 1000000, UNIT("ns"),
        DOC("Gw: a waking task preempts when the current one is this far ahead of it; times the factor"));
TUNABLE(u64, bonus_ns, 10000000, UNIT("ns"),
        DOC("BONUS: a waking task is placed at most this far behind the average"));
TUNABLE(enum tunable_scaling, tunable_scaling, SCALING_LOG, UNIT("enum"),
        DOC("factor on both granularities: none 1, log 1 + log2(CPUs), linear CPUs"));
TUNABLE(bool, GRAN_BY_WEIGHT, false, UNIT("bool"),
        DOC("granularities are distances of normalised time: light tasks run shorter turns, heavy ones longer"));
TUNABLE(bool, BONUS_BY_WEIGHT, false, UNIT("bool"),
        DOC("BONUS is wall time of the waking task, not of a nice-0 task"));
TUNABLE(bool, START_DEBIT, false, UNIT("bool"), DOC("a new task starts half a granularity behind the others"));
TUNABLE(bool, CHILD_RUNS_FIRST, false, UNIT("bool"), DOC("after fork the child gets the smaller time of the two"));
TUNABLE(bool, YIELD_TO_END, false, UNIT("bool"), DOC("sched_yield goes behind the last waiting task"));
TUNABLE(bool, WAKEUP_PREEMPTION, true, UNIT("bool"), DOC("a waking task may preempt the current one"));

/* The base has moved so far that comparisons with a time kept from before may be wrong by wrapping: equation (9). */
#define GENERATION_NORM (1ULL << 62)

struct rfs_queue {
    struct rfs_sums sums;
    u64 generation;      /* counts moves of the base by GENERATION_NORM, */
    u64 generation_base; /* the last of which ended here */
    u64 curr_time_norm;
    u64 curr_sum_exec; /* the current task's sum_exec_runtime when it was last read, ns */
    u64 curr_clock_ns; /* the clock when it was last read */
    u64 curr_ahead_ns; /* charged by the clock since then */
    struct leftmost left;
    u32 curr_pid; /* 0: none */
    u32 curr_inv;
    u32 curr_shift;
    u32 picked;      /* dispatch chose the next task */
    u32 stopped_pid; /* has stopped to sleep, and is not yet off the books */
    /*
     * Tasks that other CPUs pulled: their sums of 2^shift and of time_norm * 2^shift since the start. A puller adds one to
     * `pulls`, adds the sums, then adds one to `pulled`; the owner takes the difference off when both counts agree.
     */
    u64 pulls, pulled, pulled_weight, pulled_norm;
    u64 seen_pulled, seen_weight, seen_norm;
} __attribute__((aligned(64)));

/* Per task, beside p->scx.dsq_vtime, which is time_norm (of the running task: at the last tick). */
struct rfs_task {
    u32 cpu; /* in whose sums it is, or was last */
    u32 inv;
    u32 weight_shift;
    u32 is_new;
    u64 generation; /* of that queue when it went to sleep */
};

struct rfs_queue cpu_queues[MAX_CPUS];
/* inv of each nice level for this fraction_bits, nice -20 first. */
u32 nice_inv[NICE_LEVELS];

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct rfs_task);
} task_ctx SEC(".maps");

static __always_inline struct rfs_task *task_of(struct task_struct *p)
{
    return bpf_task_storage_get(&task_ctx, p, 0, 0);
}

static __always_inline struct rfs_queue *queue_of(u32 cpu)
{
    return &cpu_queues[cpu & (MAX_CPUS - 1)];
}

static __always_inline u64 tunable_factor(void)
{
    return scaling_factor(tunable_scaling, ~0u);
}

/* A granularity of the current task as a distance of normalised time. */
static __always_inline s64 gran_norm(u64 gran_ns, u32 inv)
{
    return (s64)(gran_ns * tunable_factor() * (GRAN_BY_WEIGHT ? nice_inv[20] : inv));
}

/* Section 8: the base only moves on, but for the bonus of a task that wakes up into an empty queue. */
static __always_inline void count_generations(struct rfs_queue *q)
{
    if (time_diff(q->sums.time_norm_base, q->generation_base) >= (s64)GENERATION_NORM) {
        q->generation++;
        q->generation_base += GENERATION_NORM;
    }
}

/* Takes off the sums what other CPUs have pulled meanwhile. */
static __always_inline void settle_pulled(struct rfs_queue *q)
{
    u64 pulled = READ_ONCE(q->pulled), weight, norm;

    if (likely(pulled == q->seen_pulled))
        return;
    weight = READ_ONCE(q->pulled_weight);
    norm = READ_ONCE(q->pulled_norm);
    if (__sync_fetch_and_add(&q->pulls, 0) != pulled)
        return; /* one is at it: next time */
    sums_leave(&q->sums, weight - q->seen_weight, norm - q->seen_norm, max_timesum_log2);
    q->seen_pulled = pulled;
    q->seen_weight = weight;
    q->seen_norm = norm;
}

/* account(t, d) of the current task: (8) for the task, (17) for the sum. No division. */
static __always_inline void account(struct rfs_queue *q, s64 delta_ns)
{
    s64 norm = delta_ns * (s64)(u64)q->curr_inv;

    q->curr_time_norm += (u64)norm;
    settle_pulled(q);
    sums_advance(&q->sums, norm, q->curr_shift);
    count_generations(q);
}

/* Where the kernel has just brought sum_exec_runtime up to date: in the end exactly that is charged. */
static __always_inline void account_exec(struct rfs_queue *q, struct task_struct *p)
{
    u64 sum_exec = p->se.sum_exec_runtime;

    account(q, (s64)(sum_exec - q->curr_sum_exec - q->curr_ahead_ns));
    q->curr_sum_exec = sum_exec;
    q->curr_ahead_ns = 0;
    q->curr_clock_ns = scx_bpf_now();
}

/* From elsewhere, by the clock. */
static __always_inline void account_clock(struct rfs_queue *q)
{
    s64 delta_ns;

    if (!q->curr_pid) {
        settle_pulled(q);
        return;
    }
    delta_ns = (s64)(scx_bpf_now() - q->curr_clock_ns - q->curr_ahead_ns);
    if (delta_ns > 0) {
        account(q, delta_ns);
        q->curr_ahead_ns += (u64)delta_ns;
    }
}

static __always_inline void join(struct rfs_queue *q, struct rfs_task *t, u32 cpu, u64 time_norm)
{
    bool empty = !q->sums.weight_sum_app;

    t->cpu = cpu;
    sums_add(&q->sums, time_norm, t->weight_shift, max_timesum_log2);
    if (empty && time_diff(q->sums.time_norm_base, q->generation_base) < 0)
        q->generation_base = q->sums.time_norm_base;
    count_running(cpu, 1);
}

/* Takes a task off the sums of the queue that counts it: directly on the own CPU (`here`), by message on another. */
static __always_inline void leave(struct rfs_task *t, u32 here, u64 time_norm)
{
    struct rfs_queue *q = queue_of(t->cpu);

    count_running(t->cpu, -1);
    if (t->cpu == here) {
        settle_pulled(q);
        sums_remove(&q->sums, time_norm, t->weight_shift, max_timesum_log2);
        return;
    }
    __sync_fetch_and_add(&q->pulls, 1);
    __sync_fetch_and_add(&q->pulled_weight, 1ULL << t->weight_shift);
    __sync_fetch_and_add(&q->pulled_norm, time_norm << t->weight_shift);
    __sync_fetch_and_add(&q->pulled, 1);
}

/* Queues have unrelated times: over a migration the distance to the average stays. */
static __always_inline u64 migrated_norm(u64 time_norm, u32 from, u32 to)
{
    return time_norm + sums_average(&queue_of(to)->sums) - sums_average_of_other(&queue_of(from)->sums);
}

/* The task runs or waits on a CPU whose queue does not count it yet: it was pulled, or had to leave the other one. */
static __noinline u64 migrate(struct rfs_task *t, u32 cpu, u64 time_norm)
{
    u64 here_norm = migrated_norm(time_norm, t->cpu, cpu);

    leave(t, cpu, time_norm);
    join(queue_of(cpu), t, cpu, here_norm);
    return here_norm;
}

s32 BPF_STRUCT_OPS(rfs_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    bool is_idle = false;
    s32 cpu = select_cpu(p, prev_cpu, wake_flags, &is_idle);

    if (is_idle)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
    return cpu;
}

/* Wake-up: own time, but at most BONUS behind the average of the others. `stale`: the own time can no longer be compared. */
static __always_inline u64 place_woken(struct rfs_queue *q, struct rfs_task *t, u64 time_norm, bool stale)
{
    u64 limit = sums_average(&q->sums) - bonus_ns * (BONUS_BY_WEIGHT ? t->inv : nice_inv[20]);

    return stale || time_diff(time_norm, limit) < 0 ? limit : time_norm;
}

/* Fork: not ahead of the average, nor of the parent. */
static __always_inline u64 place_new(struct rfs_queue *q, struct rfs_task *t, u32 cpu)
{
    struct rfs_queue *parent = queue_of(this_cpu());
    u64 time_norm = sums_average(&q->sums), parent_norm = parent->curr_time_norm;

    if (!parent->curr_pid)
        return time_norm;
    if (parent != q)
        parent_norm = migrated_norm(parent_norm, this_cpu(), cpu);
    time_norm = max_time(time_norm, parent_norm);
    if (START_DEBIT)
        time_norm += (u64)gran_norm(granularity_ns, t->inv) / 2;
    if (CHILD_RUNS_FIRST && parent == q && time_diff(q->curr_time_norm, time_norm) < 0) {
        u64 child_norm = q->curr_time_norm;

        sums_advance(&q->sums, time_diff(time_norm, child_norm), q->curr_shift);
        q->curr_time_norm = time_norm;
        time_norm = child_norm;
    }
    return time_norm;
}

/* A task becomes able to run: it wakes up, is new, or comes back after an attribute change. Before enqueue. */
void BPF_STRUCT_OPS(rfs_runnable, struct task_struct *p, u64 enq_flags)
{
    struct rfs_task *t = task_of(p);
    u32 cpu = task_cpu(p), index = nice_index(p->static_prio);
    struct rfs_queue *q = queue_of(cpu);
    u64 time_norm = p->scx.dsq_vtime;
    bool stale;

    if (!t)
        return;
    account_clock(q);
    stale = queue_of(t->cpu)->generation - t->generation >= 2;
    if (t->cpu != cpu && !t->is_new)
        time_norm = migrated_norm(time_norm, t->cpu, cpu);
    t->inv = nice_inv[index];
    t->weight_shift = nice_shift[index];
    if (t->is_new)
        time_norm = place_new(q, t, cpu);
    else if (enq_flags & SCX_ENQ_WAKEUP)
        time_norm = place_woken(q, t, time_norm, stale);
    join(q, t, cpu, time_norm);
    scx_bpf_task_set_dsq_vtime(p, time_norm);
}

/* A task waits: it woke up, is new, was put back after its turn, or had to leave another CPU. */
void BPF_STRUCT_OPS(rfs_enqueue, struct task_struct *p, u64 enq_flags)
{
    struct rfs_task *t = task_of(p);
    u32 cpu = task_cpu(p);
    struct rfs_queue *q = queue_of(cpu);
    u64 time_norm = p->scx.dsq_vtime;

    if (!t) {
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
        return;
    }
    if (t->cpu != cpu)
        time_norm = migrate(t, cpu, time_norm);
    note_inserted(&q->left, time_norm);
    scx_bpf_dsq_insert_vtime(p, cpu, SCX_SLICE_INF, time_norm, enq_flags & ~SCX_ENQ_PREEMPT);
    mark_waiting(cpu);
    if (!(enq_flags & SCX_ENQ_WAKEUP) && !t->is_new) {
        offer_to_idle_cpu(p);
        return;
    }
    t->is_new = false;
    if (q->curr_pid && WAKEUP_PREEMPTION &&
        time_diff(q->curr_time_norm, time_norm) > gran_norm(wakeup_granularity_ns, q->curr_inv))
        scx_bpf_kick_cpu((s32)cpu, SCX_KICK_PREEMPT);
}

/* This CPU decides anew: the smallest time. An equal one is decided for the waiting task. */
void BPF_STRUCT_OPS(rfs_dispatch, s32 this, struct task_struct *prev)
{
    u32 cpu = (u32)this & (MAX_CPUS - 1);
    struct rfs_queue *q = queue_of(cpu);
    bool prev_runs = prev && q->curr_pid && q->curr_pid == (u32)prev->pid, waiting;
    s32 victim;

    if (prev_runs)
        account_exec(q, prev);
    waiting = find_leftmost(&q->left, cpu);
    if (waiting && !(prev_runs && time_diff(q->curr_time_norm, q->left.vtime) < 0)) {
        forget_leftmost(&q->left);
        if (scx_bpf_dsq_move_to_local(cpu)) {
            q->picked = true;
            return;
        }
    }
    if (prev_runs) {
        scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
        return;
    }
    mark_empty(cpu);
    forget_leftmost(&q->left);
    victim = pull_task(cpu);
    if (victim >= 0)
        forget_leftmost(&queue_of((u32)victim)->left);
}

/* A task comes onto a CPU. */
void BPF_STRUCT_OPS(rfs_running, struct task_struct *p)
{
    struct rfs_task *t = task_of(p);
    u32 cpu = task_cpu(p);
    struct rfs_queue *q = queue_of(cpu);
    u64 time_norm = p->scx.dsq_vtime;

    if (!t)
        return;
    if (t->cpu != cpu) {
        time_norm = migrate(t, cpu, time_norm);
        scx_bpf_task_set_dsq_vtime(p, time_norm);
    }
    t->is_new = false;
    q->curr_pid = (u32)p->pid;
    q->curr_time_norm = time_norm;
    q->curr_inv = t->inv;
    q->curr_shift = t->weight_shift;
    q->curr_sum_exec = p->se.sum_exec_runtime;
    q->curr_clock_ns = scx_bpf_now();
    q->curr_ahead_ns = 0;
    /* It came past dispatch (idle CPU, or back after a real-time task) and somebody far behind it came meanwhile. */
    if (!q->picked && nr_running[cpu] > 1 && find_leftmost(&q->left, cpu) &&
        time_diff(time_norm, q->left.vtime) > gran_norm(wakeup_granularity_ns, q->curr_inv))
        scx_bpf_kick_cpu((s32)cpu, SCX_KICK_PREEMPT);
    q->picked = false;
}

/* The current task has had its turn when it is G ahead of the first that waits. */
void BPF_STRUCT_OPS(rfs_tick, struct task_struct *p)
{
    u32 cpu = this_cpu();
    struct rfs_queue *q = queue_of(cpu);

    if (q->curr_pid != (u32)p->pid)
        return;
    account_exec(q, p);
    scx_bpf_task_set_dsq_vtime(p, q->curr_time_norm);
    if (nr_running[cpu] > 1 && find_leftmost(&q->left, cpu) &&
        time_diff(q->curr_time_norm, q->left.vtime) > gran_norm(granularity_ns, q->curr_inv))
        scx_bpf_task_set_slice(p, 0);
}

/* A task leaves its CPU. It stays in the sums. */
void BPF_STRUCT_OPS(rfs_stopping, struct task_struct *p, bool runnable)
{
    struct rfs_queue *q = queue_of(task_cpu(p));

    if (q->curr_pid != (u32)p->pid)
        return;
    account_exec(q, p);
    scx_bpf_task_set_dsq_vtime(p, q->curr_time_norm);
    q->curr_pid = 0;
    q->stopped_pid = runnable ? 0 : (u32)p->pid;
}

/* A task goes to sleep, or out for an attribute change: off the sums. Its time stays with it. */
void BPF_STRUCT_OPS(rfs_quiescent, struct task_struct *p, u64 deq_flags)
{
    struct rfs_task *t = task_of(p);
    u32 cpu = task_cpu(p);

    if (!t)
        return;
    if (t->cpu == cpu)
        account_clock(queue_of(cpu));
    leave(t, cpu, p->scx.dsq_vtime);
    t->generation = queue_of(t->cpu)->generation;
    if (queue_of(cpu)->stopped_pid != (u32)p->pid)
        forget_leftmost(&queue_of(t->cpu)->left);
    queue_of(cpu)->stopped_pid = 0;
}

/* By default a yield only asks for a new decision: whoever is behind runs. */
bool BPF_STRUCT_OPS(rfs_yield, struct task_struct *from, struct task_struct *to)
{
    u32 cpu = task_cpu(from);
    struct rfs_queue *q = queue_of(cpu);
    u64 last = 0;

    if (q->curr_pid != (u32)from->pid)
        return false;
    account_exec(q, from);
    if (YIELD_TO_END && peek_vtime(cpu, SCX_DSQ_ITER_REV, &last) && time_diff(last, q->curr_time_norm) >= 0) {
        s64 norm = time_diff(last, q->curr_time_norm) + 1;

        q->curr_time_norm += (u64)norm;
        sums_advance(&q->sums, norm, q->curr_shift); /* (24) for both places */
    }
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
    u32 cpu;

    for_range (cpu, MAX_CPUS) {
        queue_of(cpu)->sums.time_norm_base = time_norm_start;
        queue_of(cpu)->generation_base = time_norm_start;
    }
    for (u32 i = 0; i < NICE_LEVELS; i++)
        nice_inv[i] = inverse_of(nice_weight[i], fraction_bits);
    return create_cpu_queues();
}

SCX_OPS_DEFINE(rfs_ops, .select_cpu = (void *)rfs_select_cpu, .runnable = (void *)rfs_runnable,
               .enqueue = (void *)rfs_enqueue, .dispatch = (void *)rfs_dispatch, .running = (void *)rfs_running,
               .tick = (void *)rfs_tick, .stopping = (void *)rfs_stopping, .quiescent = (void *)rfs_quiescent,
               .yield = (void *)rfs_yield, .init_task = (void *)rfs_init_task, .init = (void *)rfs_init,
               .flags = SCX_OPS_ENQ_EXITING, .timeout_ms = 30000, .name = "rfs");
