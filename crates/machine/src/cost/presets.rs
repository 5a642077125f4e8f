//! The named sets of costs: each value with where it comes from.

use super::calls;
use super::names::{MACHINE, NAMES, place_in};

/// A named set of costs.
pub(super) struct Preset {
    /// Its name.
    pub(super) name: &'static str,
    /// What it stands for.
    pub(super) about: &'static str,
    /// The values in the order of [`NAMES`], each with its source.
    pub(super) values: [(u64, &'static str); NAMES.len()],
}

const FREE: &str = "free by definition";
const SLACK_50_US: &str =
    "Linux: 50 us for tasks that are not real-time, since 2.6.28 (PR_SET_TIMERSLACK(2const))";
const SLACK_NONE: &str =
    "Linux before 2.6.28 knows no timer slack (PR_SET_TIMERSLACK(2const), HISTORY)";
const FREE_FORK: &str = "not modelled: unless this is set";
const FORK_6_1: &str = "measured on Linux 6.1.192 (docs/costs.md), with the program's own processes: another program's are of another size";
const FORK_7_2: &str = "measured on Linux 7.2.13 (docs/costs.md), with the program's own processes: another program's are of another size";
const ANYWHERE_6_1: &str = "derived: PREEMPT_DYNAMIC as `voluntary` looks after each table of pages; 15 us in the median (docs/costs.md)";
const RCU_6_1: &str =
    "measured on Linux 6.1.192 (docs/costs.md): 39 us of CPU time less those of a sleeper";
const RCU_7_2: &str =
    "measured on Linux 7.2.13 (docs/costs.md): 51 us of CPU time less those of a sleeper";
const NOWHERE_7_2: &str =
    "derived: PREEMPT_DYNAMIC as `lazy` lets the kernel go on until it returns or the next tick";
const NO_PASS_6_1: &str = "derived: PREEMPT_DYNAMIC as `voluntary` looks nowhere between the move and the word to the parent";
const MOVE_7_2: &str = "measured on Linux 7.2.13 (docs/costs.md): from the switch back to a child that gave way there until it wakes its parent";
const FREE_KICK: &str = "not modelled: unless this is set";
const NO_KICK: &str = "the kernel's own scheduler preempts without an interrupt of its own";
const AS_INSN: &str = "not told apart: a call is charged as the one instruction that it is";
const OWN_CALLS: &str = "not measured: the kernel's own scheduler calls nothing in this way";
const PREEMPT_6_1: &str = "measured on Linux 6.1.192 (docs/costs.md): what a wake-up by a system call takes longer where it preempts";
const PREEMPT_7_2: &str = "measured on Linux 7.2.13 (docs/costs.md): what a wake-up by a system call takes longer where it preempts";
const IN_WAKEUP: &str = "contained in wakeup_ns";
const BY_WAKER: &str = "who wakes a task puts it into the queue";
const BY_WOKEN: &str = "contained in wake_list_ns";
const AS_BUSY: &str = "not told apart: as where both CPUs are busy";
const AS_SHORT: &str = "not told apart: as after idle times without a tick";
const ALL_BEFORE: &str = "not told apart: the whole call comes before its effect";
const RETURN_6_1: &str = "measured on Linux 6.1.192 (docs/costs.md): between a wake-up by a system call and the switch to the woken task";
const RETURN_7_2: &str = "measured on Linux 7.2.13 (docs/costs.md): between a wake-up by a system call and the switch to the woken task";
const ONE_CLOCK: &str = "not told apart: switches and wake-ups read the clock at their events";
const CLOCK_6_1: &str =
    "measured on Linux 6.1.192 (docs/costs.md): sched_stat_runtime of a task that wakes another";
const CLOCK_7_2: &str =
    "measured on Linux 7.2.13 (docs/costs.md): sched_stat_runtime of a task that wakes another";
const KEPT: &str = "measured as the ticks of tasks in the kernel (docs/costs.md)";
const PAGES_6_1: &str =
    "measured on Linux 6.1.192 (docs/costs.md): 88 us from the first switch to the first sleep";
const PAGES_7_2: &str =
    "measured on Linux 7.2.13 (docs/costs.md): 108 us from the first switch to the first sleep";
const NO_PAGES: &str = "not modelled: unless this is set";
const STOPS: &str = "a CPU that goes idle stops its tick at once";
const NO_HOUSE: &str = "not modelled: unless this is set";
const HOUSE_6_1: &str =
    "measured on Linux 6.1.192 (docs/costs.md): 39 and 43 us of CPU time less those of a sleeper";
const HOUSE_7_2: &str =
    "measured on Linux 7.2.13 (docs/costs.md): 41 and 62 us of CPU time less those of a sleeper";
const CLOCK_SCX: &str = "not measured under sched_ext: as if read at the events";
const REAL_CPUS: &str = "each CPU executes by itself";
const TURNS: &str = "QEMU with -icount runs its virtual CPUs on one thread; computations of this program up to 200 us keep their turn";
const NO_CACHE: &str = "derived: a machine that counts instructions has no caches";
const MOVES_6_1: &str = "measured on Linux 6.1.192 while it records its scheduler's events (docs/costs.md): 34.5 us for a wake-up that moves its task";
const MOVES_7_2: &str = "measured on Linux 7.2.13 while it records its scheduler's events (docs/costs.md): 37.2 us for a wake-up that moves its task";
const AS_SLEEP: &str = "as block_ns";
const ALL_ONCE: &str = "all of timer_irq_ns comes once";
const SET_AT_ONCE: &str = "the interrupt sets its CPU's timer again";
const WHOLE_PAGE: &str =
    "Linux before 5.5 and since 6.15: a read wakes a writer when it empties a page of a full pipe";
const ANY_READ: &str =
    "Linux 5.5 to 6.14 (pipe_read, was_full): each read of a full pipe wakes a writer";
const PER_INSN: &str = "derived: 8 ns an instruction (-icount shift=3); one BPF instruction as one machine instruction is assumed";
const SWITCH_8: &str = "derived: 143 instructions x 8 ns, yield pair less lone yield on 2.6.22, whose scheduler is the smallest measured";
const WAKEUP_8: &str =
    "derived: 524 - 143 instructions x 8 ns, one-way pipe hand-over less the switch on 2.6.22";
const LINE_8: &str = "assumed: 16 words added up, 3 instructions each, x 8 ns";
const SYSCALL_8: &str = "derived: half of the self-pipe of 2.6.22 (one write and one read, 9354.7 ns), 585 instructions";

/// The parameters up to this one are told by every preset.
const FIRST: usize = place("block_ns") + 1;

/// Where a parameter stands; one of no such name does not compile.
const fn place(name: &str) -> usize {
    place_in(&NAMES, name)
}

/// A machine whose scheduler's calls are not told apart from other instructions.
const fn without_calls(
    of_machine: [(u64, &'static str); MACHINE.len()],
    source: &'static str,
) -> [(u64, &'static str); NAMES.len()] {
    let mut values = [(0, source); NAMES.len()];
    let mut index = 0;
    while index < of_machine.len() {
        values[index] = of_machine[index];
        index += 1;
    }
    values
}

/// A preset that models no process that comes or goes, tells no idle CPU from a busy one, and has CPUs that execute by themselves.
const fn of_busy_cpus(
    first: [(u64, &'static str); FIRST],
    kick: &'static str,
) -> [(u64, &'static str); NAMES.len()] {
    let mut values = [(0, FREE_FORK); NAMES.len()];
    let mut index = 0;
    while index < FIRST {
        values[index] = first[index];
        index += 1;
    }
    values[place("kick_ns")] = (0, kick);
    values[place("wakeup_idle_ns")] = (0, AS_BUSY);
    values[place("wakeup_remote_ns")] = (0, AS_BUSY);
    values[place("enqueue_remote_ns")] = (0, IN_WAKEUP);
    values[place("block_idle_ns")] = (0, AS_BUSY);
    values[place("idle_enter_ns")] = (0, AS_BUSY);
    values[place("idle_tick_ns")] = (0, AS_SHORT);
    values[place("turn_ns")] = (0, REAL_CPUS);
    values[place("syscall_return_ns")] = (0, ALL_BEFORE);
    values[place("wakeup_clock_ns")] = (0, ONE_CLOCK);
    values[place("housekeeping_ns")] = (0, NO_HOUSE);
    values[place("tick_kept_ns")] = (0, STOPS);
    values[place("first_pages_ns")] = (0, NO_PAGES);
    values[place("wake_list_ns")] = (0, BY_WAKER);
    values[place("pipe_wake_bytes")] = (0, WHOLE_PAGE);
    values[place("pipe_block_ns")] = (0, AS_SLEEP);
    values[place("timer_each_ns")] = (0, ALL_ONCE);
    values[place("timer_set_ns")] = (0, SET_AT_ONCE);
    values[place("block_clock_ns")] = (0, ONE_CLOCK);
    let mut call = MACHINE.len();
    while call < NAMES.len() {
        values[call] = (0, AS_INSN);
        call += 1;
    }
    values
}

const ICOUNT8: [(u64, &str); NAMES.len()] = of_busy_cpus(
    [
        (1_144, SWITCH_8),
        (3_048, WAKEUP_8),
        (2_000, "assumed: 250 instructions x 8 ns"),
        (4_000, "assumed: 500 instructions x 8 ns"),
        (4_677, SYSCALL_8),
        (4_000, "assumed: 500 instructions x 8 ns"),
        (1_000, "assumed: 125 instructions x 8 ns; a halted virtual CPU has no exit latency"),
        (1_200, "assumed: 150 instructions x 8 ns"),
        (0, NO_CACHE),
        (8_000, PER_INSN),
        (0, NO_CACHE),
        (384_000, LINE_8),
        (384_000, LINE_8),
        (0, SLACK_NONE),
        (0, IN_WAKEUP),
    ],
    NO_KICK,
);

const BENCH_6_1: &str = "measured on Linux 6.1.192 with 8 ns an instruction (docs/costs.md)";

/// Measured with CFS's own instructions in it, so that the scheduler's are not charged a second time.
const ICOUNT8_6_1: [(u64, &str); NAMES.len()] = of_busy_cpus(
    [
        (
            15_500,
            "measured on Linux 6.1.192 (docs/costs.md): hogs that alternate at different granularities",
        ),
        (4_000, "derived from the whole cycle of a sleeper, 58.0 us (docs/costs.md)"),
        (2_000, "assumed: 250 instructions x 8 ns"),
        (25_500, BENCH_6_1),
        (
            9_300,
            "measured on Linux 6.1.192 (docs/costs.md): a quarter of two writes and two reads of a pipe",
        ),
        (3_000, "derived from the whole cycle of a sleeper, 58.0 us (docs/costs.md)"),
        (1_000, "assumed: 125 instructions x 8 ns; a halted virtual CPU has no exit latency"),
        (1_200, "assumed: 150 instructions x 8 ns"),
        (0, NO_CACHE),
        (0, "measured switches contain CFS's own instructions"),
        (0, NO_CACHE),
        (384_000, LINE_8),
        (384_000, LINE_8),
        (50_000, SLACK_50_US),
        (0, IN_WAKEUP),
    ],
    NO_KICK,
);

const RECORDED_6_1: &str =
    "measured on Linux 6.1.192 while it records its scheduler's events (docs/costs.md)";

const ICOUNT8_6_1_RECORDED: [(u64, &str); NAMES.len()] = without_calls(
    [
        (14_300, RECORDED_6_1),
        (23_800, RECORDED_6_1),
        (0, "derived: QEMU shows an interrupt to a virtual CPU as soon as that has its turn"),
        (25_500, BENCH_6_1),
        (9_900, RECORDED_6_1),
        (6_400, RECORDED_6_1),
        (
            0,
            "contained in timer_irq_ns and enqueue_remote_ns; a halted virtual CPU has no exit latency",
        ),
        (10_700, MOVES_6_1),
        (0, NO_CACHE),
        (0, "measured switches contain CFS's own instructions"),
        (0, NO_CACHE),
        (384_000, LINE_8),
        (384_000, LINE_8),
        (50_000, SLACK_50_US),
        (12_100, RECORDED_6_1),
        (1_223_000, FORK_6_1),
        (67_000, FORK_6_1),
        (839_000, FORK_6_1),
        (2_091_000, FORK_6_1),
        (30_000, FORK_6_1),
        (0, ANYWHERE_6_1),
        (3_000, RCU_6_1),
        (7_700, PREEMPT_6_1),
        (27_300, RECORDED_6_1),
        (13_700, RECORDED_6_1),
        (0, BY_WOKEN),
        (7_400, RECORDED_6_1),
        (13_000, RECORDED_6_1),
        (5_060, RECORDED_6_1),
        (200_000, TURNS),
        (5_000, RETURN_6_1),
        (0, NO_PASS_6_1),
        (17_600, CLOCK_6_1),
        (5_000, HOUSE_6_1),
        (20_000, KEPT),
        (61_000, PAGES_6_1),
        (24_700, RECORDED_6_1),
        (1, ANY_READ),
        (15_700, RECORDED_6_1),
        (2_200, RECORDED_6_1),
        (0, SET_AT_ONCE),
        (3_000, CLOCK_6_1),
    ],
    OWN_CALLS,
);

const RECORDED_7_2: &str = "measured on Linux 7.2.13 without HRTICK while it records its scheduler's events (docs/costs.md)";
const EACH_SCX: &str = "derived: on Linux 7.2.13 under `rfs` the second of two sleepers that end together is woken 32.9 us after the first, 32.5 without (docs/costs.md)";
const RECORDED_SCX: &str = "measured on Linux 7.2.13 under the schedulers `fifo`, `burn` and `preempt` while it records its scheduler's events (docs/costs.md)";
const TICK_7_2: &str =
    "derived: the tick of 6.1 and what a loop alone loses more on 7.2.13, 8 us a tick";

const ICOUNT8_7_2_RECORDED: [(u64, &str); NAMES.len()] = without_calls(
    [
        (15_000, RECORDED_7_2),
        (27_000, RECORDED_7_2),
        (0, "derived: QEMU shows an interrupt to a virtual CPU as soon as that has its turn"),
        (33_500, TICK_7_2),
        (8_000, RECORDED_7_2),
        (7_600, RECORDED_7_2),
        (
            0,
            "contained in timer_irq_ns and enqueue_remote_ns; a halted virtual CPU has no exit latency",
        ),
        (10_200, MOVES_7_2),
        (0, NO_CACHE),
        (0, "measured switches contain EEVDF's own instructions"),
        (0, NO_CACHE),
        (384_000, LINE_8),
        (384_000, LINE_8),
        (50_000, SLACK_50_US),
        (17_200, RECORDED_7_2),
        (1_540_000, FORK_7_2),
        (62_000, FORK_7_2),
        (908_000, FORK_7_2),
        (1_835_000, FORK_7_2),
        (56_000, FORK_7_2),
        (4_000_000, NOWHERE_7_2),
        (12_000, RCU_7_2),
        (10_800, PREEMPT_7_2),
        (28_600, RECORDED_7_2),
        (10_150, RECORDED_7_2),
        (0, BY_WOKEN),
        (10_200, RECORDED_7_2),
        (18_000, RECORDED_7_2),
        (4_360, RECORDED_7_2),
        (200_000, TURNS),
        (4_400, RETURN_7_2),
        (15_800, MOVE_7_2),
        (21_200, CLOCK_7_2),
        (15_000, HOUSE_7_2),
        (22_000, KEPT),
        (78_000, PAGES_7_2),
        (20_800, RECORDED_7_2),
        (0, WHOLE_PAGE),
        (15_900, RECORDED_7_2),
        (3_900, RECORDED_7_2),
        (1_100, RECORDED_7_2),
        (3_100, CLOCK_7_2),
    ],
    OWN_CALLS,
);

const CALLED_7_2: &str =
    "measured on Linux 7.2.13 under the schedulers `calls` and `callbacks` (docs/costs.md)";

/// What a scheduler's ways into that kernel and back take.
const CALLS_7_2: [(&str, u64); calls::NAMES.len()] = [
    ("callback_ns", 1_000),
    ("call_clock_ns", 550),
    ("call_ktime_ns", 285),
    ("call_storage_ns", 177),
    ("call_read_ns", 30),
    ("call_write_ns", 394),
    ("call_kick_ns", 974),
    ("call_nr_queued_ns", 1_122),
    ("call_from_pid_ns", 1_191),
    ("call_iter_ns", 1_249),
    ("call_iter_next_ns", 900),
    ("call_iter_found_ns", 310),
    ("call_iter_end_ns", 520),
    ("call_iter_move_ns", 2_780),
    ("call_insert_ns", 960),
    ("call_insert_vtime_ns", 1_360),
    ("call_move_ns", 1_680),
    ("call_moved_ns", 1_820),
    ("call_claim_idle_ns", 711),
    ("call_pick_idle_ns", 1_190),
    ("call_select_cpu_ns", 1_860),
];

/// The same kernel under sched_ext: what a scheduler's program executes is paid by the instruction.
const ICOUNT8_7_2_SCX: [(u64, &str); NAMES.len()] = {
    let mut values = ICOUNT8_7_2_RECORDED;
    values[place("wakeup_ns")] = (22_500, RECORDED_SCX);
    values[place("wakeup_clock_ns")] = (0, CLOCK_SCX);
    values[place("block_clock_ns")] = (0, CLOCK_SCX);
    values[place("enqueue_remote_ns")] = values[place("wake_list_ns")];
    values[place("wake_list_ns")] = (0, BY_WAKER);
    // A kick is an interrupt, which preempts within the call: its way out is no part of the latency.
    values[place("syscall_return_ns")] = (0, ALL_BEFORE);
    values[place("policy_insn_ps")] = (11_440, RECORDED_SCX);
    values[place("kick_ns")] = (14_610, RECORDED_SCX);
    values[place("wakeup_idle_ns")] = (27_890, RECORDED_SCX);
    values[place("block_ns")] = (12_560, RECORDED_SCX);
    values[place("block_idle_ns")] = (9_040, RECORDED_SCX);
    values[place("pipe_block_ns")] = (0, AS_SLEEP);
    values[place("timer_each_ns")] = (400, EACH_SCX);
    let mut call = 0;
    while call < CALLS_7_2.len() {
        let (name, ns) = CALLS_7_2[call];
        values[place(name)] = (ns, CALLED_7_2);
        call += 1;
    }
    values
};

/// All of them, the default first.
pub(super) const PRESETS: [Preset; 7] = [
    Preset {
        name: "modern",
        about: "an x86 server of today",
        values: of_busy_cpus(
            [
                (
                    800,
                    "assumed; rings of two processes took 620-720 ns per switch and wake-up in 2007 (lat_ctx, LKML)",
                ),
                (500, "assumed"),
                (1_500, "assumed"),
                (1_500, "assumed"),
                (200, "assumed"),
                (1_000, "assumed"),
                (2_000, "assumed: the shallowest idle state of x86"),
                (300, "assumed"),
                (0, "not modelled: tasks have no footprint unless this is set"),
                (333, "assumed: one instruction per cycle at 3 GHz"),
                (1 << 20, "assumed: a second-level cache of 1 MiB"),
                (4_000, "assumed: 16 words added up, 4 in a nanosecond"),
                (20_000, "assumed: from the cache of the socket"),
                (50_000, SLACK_50_US),
                (0, IN_WAKEUP),
            ],
            FREE_KICK,
        ),
    },
    Preset {
        name: "zero",
        about: "the kernel's own work takes no time",
        values: [(0, FREE); NAMES.len()],
    },
    Preset {
        name: "icount8",
        about: "Linux 2.6.2x in QEMU with 8 ns an instruction: the guest of the recorded 2.6.22 to 2.6.27 runs",
        values: ICOUNT8,
    },
    Preset {
        name: "icount8-6.1",
        about: "Linux 6.1 in QEMU with 8 ns an instruction: the guest of the recorded 6.1 runs",
        values: {
            let mut values = ICOUNT8_6_1;
            values[place("pipe_wake_bytes")] = (1, ANY_READ);
            values
        },
    },
    Preset {
        name: "icount8-6.1-recorded",
        about: "the same while its events are recorded: a run of `--on vm:6.1`",
        values: ICOUNT8_6_1_RECORDED,
    },
    Preset {
        name: "icount8-7.2-recorded",
        about: "Linux 7.2 on the same machine under its own scheduler, without HRTICK: `--on vm:7.2`",
        values: ICOUNT8_7_2_RECORDED,
    },
    Preset {
        name: "icount8-7.2-scx-recorded",
        about: "Linux 7.2 on the same machine under a sched_ext scheduler",
        values: ICOUNT8_7_2_SCX,
    },
];
