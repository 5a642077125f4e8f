/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A queue of `eevdf`: the queued entities, their weighted average V, eligibility, and the current task's request.
 *
 * V = sum(w * v) / sum(w) over all that are queued, the current task included. The stored sums are sum((v - zero) *
 * w) and sum(w) over all but the current task, which is added when V is computed. `zero` moves to V each time V is
 * computed, so the sum stays near 0 and does not wrap: |sum| <= 1024 * the wall-time lags of all; 2^63 is about 100
 * 000 tasks that are a day away from V. An eligibility test needs no division: v <= V exactly when sum >= (v - zero)
 * * weight, since v is an integer.
 *
 * Everything runs under the run queue's lock of that CPU, except what is marked atomic.
 */
#ifndef FAIRGROUND_EEVDF_QUEUE_BPF_H
#define FAIRGROUND_EEVDF_QUEUE_BPF_H

#include "weights.bpf.h"
#include "leftmost.bpf.h"
#include "eevdf_tunables.bpf.h"
#define NEW_UTIL_BY_WEIGHT rule_new_util_by_weight
#define NEWIDLE_BY_CHANCE  NI_RANDOM
#define NEWIDLE_BY_RATE    NI_RATE
#include "balance_record.bpf.h"

/* A queue's time starts just below the wrap, so that arithmetic that cannot handle the wrap fails at once. */
#define ZERO_START (-(1ULL << 20))
/* Distinct slice lengths that a queue distinguishes: further ones do not count for the shortest and longest slice. */
#define SLICE_KINDS 8

/* How many queued tasks, the current one included, have a slice of this length. Counts are atomic. */
struct slice_kinds {
    u64 slice_ns[SLICE_KINDS];
    u32 count[SLICE_KINDS];
    u32 met; /* bit i: kind i has been used; atomic */
} __attribute__((aligned(64)));

struct eevdf_queue {
    u64 zero;   /* the reference: V when it was last computed */
    s64 sum;    /* of (vruntime - zero) * weight, the current task left out */
    u64 weight; /* of the same tasks */
    u64 curr_vruntime;
    u64 curr_deadline;
    u64 curr_vprot; /* protection: up to here (rule_vprot), else while it equals curr_deadline */
    u64 curr_slice_ns;
    u64 curr_custom_ns;         /* the slice that it asked for itself; 0: none */
    u64 curr_sum_exec;          /* the current task's sum_exec_runtime when it was last read, ns */
    u64 curr_clock_ns;          /* the clock when it was last read */
    u64 curr_ahead_ns;          /* charged by the clock since then */
    u64 next_vruntime;          /* the buddy's */
    struct leftmost ineligible; /* smallest vruntime in the queue of the ineligible */
    u32 nr;                     /* queued tasks, groups and delayed entities without the current one; atomic */
    u32 curr_pid;               /* or GROUP_ENTITY and a group; 0: none, or one that was put and not yet replaced */
    u32 curr_weight;            /* 0 without a current task, which then adds nothing to the sums */
    u32 curr_inverse;
    u32 curr_policy;
    u32 curr_kind;        /* index of its slice length in `slices` */
    u32 next_pid;         /* buddy; 0: none */
    u32 restored_pid;     /* left its CPU for a change of its attributes: it is enqueued again at once */
    u32 picked;           /* dispatch picked: the next task to run is not compared again */
    u32 bypassed;         /* the current task bypassed dispatch: the next choice counts as its pick */
    u32 resched;          /* the current task shall be preempted (resched_curr) */
    u32 resched_now;      /* root only: not lazily: HRTICK has expired, or a tick found it asked for lazily */
    u32 balances;         /* the tick rescheduled only for the load balancer */
    u32 delayed;          /* bit i: delayed entity i is queued */
    u64 delayed_vruntime; /* lower bound of their vruntimes, ... */
    u64 delayed_deadline; /* ... and of their deadlines */
    /*
     * Tasks that other CPUs took from here, less those that they brought: sums of weight and of vruntime * weight
     * since the start. The other CPU adds one to `pulls`, adds the sums, then adds one to `pulled`; the owner
     * subtracts the difference when both counts agree.
     */
    u64 pulls, pulled, pulled_weight, pulled_norm;
    u64 seen_pulled, seen_weight, seen_norm;
    u64 hrtick_ns;       /* the timer of HRTICK expires then (bpf_ktime_get_ns); 0: it is not armed */
    u64 hrtick_fired_ns; /* it has expired then (scx_bpf_now), and its request was not ended yet; 0: it has not */
    u64 children;        /* bit c: child group c of the queue's group is queued here, or current */
    union {
        u64 leaf_or_joins; /* root only: not 0: one of these */
        struct {
            u32 leaf;         /* the group of the current task, or of the one that was put last */
            u32 remote_joins; /* another CPU has put a task into a group's queue here */
        };
    };
    u32 group; /* whose queue it is; 0: the root's */
    u32 cpu;
    u32 chosen_group;  /* the last CHOOSE_GROUP */
    u32 running_pid;   /* root only: the current task; 0: none, or one that was put and not yet replaced */
    u32 delayed_tasks; /* root only: delayed tasks in all queues of the CPU; atomic */
    u32 balance_call;  /* see BALANCE_CALL */
    struct slice_kinds slices;
} __attribute__((aligned(64)));

/* Per task. For the current task the values are those of the time when it was switched in. */
struct eevdf_task {
    u64 vruntime;
    u64 deadline; /* with rel_deadline: its distance to vruntime */
    s64 vlag;     /* V - vruntime when it left, virtual ns */
    u64 slice_ns;
    u32 cpu; /* the CPU whose sums it is in, or was last */
    u32 at;  /* the queue that it is in, or was last */
    u32 weight;
    u32 inverse;
    u32 kind;    /* index of its slice length in the queue's `slices`; SLICE_KINDS: not counted */
    u32 delayed; /* index + 1 of its delayed entity on `cpu`; 0: none */
    u32 is_new;
    u32 ineligible; /* it waits in the INELIGIBLE queue, ordered by vruntime */
    u32 rel_deadline;
    u32 group;     /* number; 0: the root */
    u64 custom_ns; /* the slice that it asked for itself when it last became runnable; 0: none */
    u32 queued;    /* of a group's entity: it is in its parent's queue */
    struct balance_record record;
};

/*
 * The queues: of the root on each CPU, by the CPU's number, then those of the groups (queue_at). All functions that take
 * a queue's number `at` take a CPU's for the root's.
 */
#define QUEUES_MAX BALANCE_STRIDE

struct eevdf_queue cpu_queues[QUEUES_MAX];
/* Length of a tick, ns. */
u64 tick_ns;

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct eevdf_task);
} task_ctx SEC(".maps");

static __always_inline struct eevdf_task *task_of(struct task_struct *p)
{
    return bpf_task_storage_get(&task_ctx, p, 0, 0);
}

static __always_inline struct balance_record *balance_record_of(struct task_struct *p)
{
    struct eevdf_task *t = task_of(p);

    return t ? &t->record : NULL;
}

static __always_inline struct eevdf_queue *queue_of(u32 at)
{
    return &cpu_queues[at & (QUEUES_MAX - 1)];
}

#define ELIGIBLE   0
#define INELIGIBLE 1

/* The dispatch queue of the eligible or the ineligible tasks of a queue: of a root's as queue_id() has it. */
static __always_inline u64 dsq_at(u32 at, u32 index)
{
    return at | (u64)index * QUEUES_MAX;
}

#define BALANCE_CALL(cpu) (queue_of(cpu)->balance_call)

/* More CPUs than this count as this many in the factor of base_slice_ns. */
#define SCALING_CPUS_MAX 8

static __always_inline u64 base_slice(void)
{
    return base_slice_ns * scaling_factor(sched_tunable_scaling);
}

/* The slice that the task asks for itself, ns, which sched_setattr has limited to 0.1 ... 100 ms; 0: none. */
static __always_inline u64 custom_slice(const struct task_struct *p)
{
    return rule_custom_slices && p->se.custom_slice ? p->se.slice : 0;
}

/* a / b rounded down, of a signed number. */
static __always_inline s64 floor_div(s64 a, u64 b)
{
    if (a < 0)
        return -(s64)(((u64)-a + b - 1) / b);
    return (s64)((u64)a / b);
}

/* a * w / b, truncated toward zero. |a| * w must fit 63 bits. */
static __always_inline s64 mul_div_cut(s64 a, u64 w, u64 b)
{
    if (a < 0)
        return -(s64)((u64)-a * w / b);
    return (s64)((u64)a * w / b);
}

static __always_inline s64 clamp_lag(s64 lag, s64 limit)
{
    return lag > limit ? limit : lag < -limit ? -limit : lag;
}

/* Subtracts from the sums what other CPUs have taken meanwhile. */
SEPARATE void take_off_pulled(struct eevdf_queue *q)
{
    u64 pulled, weight, norm;

    if (!q)
        return;
    pulled = READ_ONCE(q->pulled);
    weight = READ_ONCE(q->pulled_weight);
    norm = READ_ONCE(q->pulled_norm);
    if (__sync_fetch_and_add(&q->pulls, 0) != pulled)
        return; /* an update is under way: next time */
    q->sum -= (s64)(norm - q->seen_norm - q->zero * (weight - q->seen_weight));
    q->weight -= weight - q->seen_weight;
    q->seen_pulled = pulled;
    q->seen_weight = weight;
    q->seen_norm = norm;
}

static __always_inline void settle_pulled(struct eevdf_queue *q)
{
    if (unlikely(READ_ONCE(q->pulled) != q->seen_pulled))
        take_off_pulled(q);
}

/* sum and weight of all that are queued, relative to `zero`. */
static __always_inline s64 total_sum(const struct eevdf_queue *q)
{
    return q->sum + time_diff(q->curr_vruntime, q->zero) * (s64)(u64)q->curr_weight;
}

static __always_inline u64 total_weight(const struct eevdf_queue *q)
{
    return q->weight + q->curr_weight;
}

/* avg_vruntime: V, which becomes the reference. For an empty queue: its last value. */
static __always_inline u64 average_here(struct eevdf_queue *q)
{
    u64 zero = q->zero, others = q->weight, weight = total_weight(q), v;
    s64 sum = total_sum(q);

    /* V has moved by less than 1 since the last call. */
    if (!weight || (u64)sum < weight)
        return zero;
    v = others ? zero + (u64)floor_div(sum, weight) : q->curr_vruntime;
    q->sum -= time_diff(v, zero) * (s64)others;
    q->zero = v;
    return v;
}

/* The same as a call. */
SEPARATE u64 average(struct eevdf_queue *q)
{
    return q ? average_here(q) : 0;
}

/* Another CPU's queue, from its sums and the moves from and to it. */
struct remote_view {
    u64 average;
    u64 weight;
};

static __always_inline void view_remote(const struct eevdf_queue *q, struct remote_view *view)
{
    u64 pulled_weight = READ_ONCE(q->pulled_weight) - q->seen_weight;
    u64 pulled_norm = READ_ONCE(q->pulled_norm) - q->seen_norm;
    u64 zero = READ_ONCE(q->zero);

    view->weight = total_weight(q) - pulled_weight;
    view->average = zero;
    if (view->weight)
        view->average += (u64)floor_div(total_sum(q) - (s64)(pulled_norm - zero * pulled_weight), view->weight);
}

/* Accounts on another CPU for a task that has left its queue, or (+1) joined it. */
static __always_inline void account_remotely(struct eevdf_queue *q, u64 vruntime, u32 weight, s32 joins)
{
    __sync_fetch_and_add(&q->pulls, 1);
    __sync_fetch_and_add(&q->pulled_weight, -(u64)(s64)joins * weight);
    __sync_fetch_and_add(&q->pulled_norm, -(u64)(s64)joins * weight * vruntime);
    __sync_fetch_and_add(&q->nr, joins);
    __sync_fetch_and_add(&q->pulled, 1);
}

/* entity_eligible: vruntime <= V. */
static __always_inline bool eligible(const struct eevdf_queue *q, u64 vruntime)
{
    return total_sum(q) >= time_diff(vruntime, q->zero) * (s64)total_weight(q);
}

static __always_inline void sums_add(struct eevdf_queue *q, u64 vruntime, u32 weight)
{
    q->sum += time_diff(vruntime, q->zero) * (s64)(u64)weight;
    q->weight += weight;
    __sync_fetch_and_add(&q->nr, 1);
}

static __always_inline void sums_sub(struct eevdf_queue *q, u64 vruntime, u32 weight)
{
    q->sum -= time_diff(vruntime, q->zero) * (s64)(u64)weight;
    q->weight -= weight;
    __sync_fetch_and_add(&q->nr, -1);
}

/* Counts a slice length. Returns its index, or SLICE_KINDS when there is no room. */
SEPARATE u32 count_slice(struct eevdf_queue *q, u64 slice_ns)
{
    u32 unused = SLICE_KINDS, kind = SLICE_KINDS, i;
    struct slice_kinds *kinds;

    if (!q)
        return kind;
    kinds = &q->slices;
    if (likely(kinds->slice_ns[0] == slice_ns)) {
        kind = 0;
    } else {
        for (i = 0; i < SLICE_KINDS; i++) {
            if (kinds->slice_ns[i] == slice_ns)
                kind = i;
            else if (!kinds->count[i] && unused == SLICE_KINDS)
                unused = i;
        }
        if (kind == SLICE_KINDS)
            kind = unused;
        if (kind == SLICE_KINDS)
            return kind;
    }
    if (!(kinds->met >> kind & 1))
        __sync_fetch_and_or(&kinds->met, 1u << kind);
    kinds->slice_ns[kind & (SLICE_KINDS - 1)] = slice_ns;
    __sync_fetch_and_add(&kinds->count[kind & (SLICE_KINDS - 1)], 1);
    return kind;
}

static __always_inline void uncount_slice(struct eevdf_queue *q, u32 kind)
{
    if (kind < SLICE_KINDS)
        __sync_fetch_and_add(&q->slices.count[kind & (SLICE_KINDS - 1)], -1);
}

/* extreme_slice where slices differ, or none is known to be equal to all. */
SEPARATE u64 compare_slices(const struct eevdf_queue *q, u64 own_ns, bool longest)
{
    const struct slice_kinds *kinds;
    u64 found_ns = own_ns;
    u32 i;

    if (!q)
        return own_ns;
    kinds = &q->slices;
    for (i = 0; i < SLICE_KINDS; i++) {
        if (!(kinds->met >> i))
            break;
        if (kinds->count[i] && (kinds->slice_ns[i] > found_ns) == longest)
            found_ns = kinds->slice_ns[i];
    }
    return found_ns;
}

/* Whether all entities that are counted have slices of one length. Usually they have. */
static __always_inline bool slices_are_equal(const struct eevdf_queue *q)
{
    return likely(q->slices.met == 1);
}

/* cfs_rq_min_slice, cfs_rq_max_slice: over all queued entities. `own_ns` is the slice of one of them. */
static __always_inline u64 extreme_slice(const struct eevdf_queue *q, u64 own_ns, bool longest)
{
    return slices_are_equal(q) ? own_ns : compare_slices(q, own_ns, longest);
}

/* Bound of the lag that a task keeps, virtual ns. */
static __always_inline s64 lag_limit(const struct eevdf_queue *q, const struct eevdf_task *t)
{
    u64 limit_ns;

    if (rule_lag_limit_queue) {
        limit_ns = extreme_slice(q, t->slice_ns, true) + tick_ns;
    } else {
        limit_ns = 2 * t->slice_ns;
        if (limit_ns < tick_ns)
            limit_ns = tick_ns;
    }
    return (s64)virtual_time(limit_ns, t->weight, t->inverse);
}

/* Whether the current task is not preempted although another eligible one has an earlier deadline. */
static __always_inline bool is_protected(const struct eevdf_queue *q)
{
    if (rule_vprot)
        return time_diff(q->curr_vprot, q->curr_vruntime) > 0;
    return RUN_TO_PARITY && q->curr_vprot == q->curr_deadline;
}

/* set_protect_slice, when a task was picked. */
static __always_inline void protect(struct eevdf_queue *q)
{
    u64 slice_ns;

    q->curr_vprot = q->curr_deadline;
    if (!rule_vprot || (RUN_TO_PARITY && slices_are_equal(q)))
        return;
    slice_ns = RUN_TO_PARITY ? extreme_slice(q, q->curr_slice_ns, false) : base_slice_ns;
    if (slice_ns < q->curr_slice_ns)
        q->curr_vprot =
            min_time(q->curr_vprot, q->curr_vruntime + virtual_time(slice_ns, q->curr_weight, q->curr_inverse));
}

/* update_protect_slice, when a task has joined without preempting. */
static __always_inline void shorten_protection(struct eevdf_queue *q)
{
    u64 slice_ns = extreme_slice(q, q->curr_slice_ns, false);

    q->curr_vprot =
        min_time(q->curr_vprot, q->curr_vruntime + virtual_time(slice_ns, q->curr_weight, q->curr_inverse));
}

/* cancel_protect_slice */
static __always_inline void cancel_protection(struct eevdf_queue *q)
{
    if (!is_protected(q))
        return;
    q->curr_vprot = rule_vprot ? q->curr_vruntime : q->curr_deadline + 1;
}

static __always_inline void clear_buddy(struct eevdf_queue *q, u32 pid)
{
    if (q->next_pid == pid)
        q->next_pid = 0;
}

#endif
