//! `contention` on a text, on this machine's kernel.

use fairground_testing::unavailable;

use crate::support::{Files, bootable, fairground, refusal, success};

const TEXT: &str = "\
# tracer: nop
          <idle>-0       [000] d..2.    10.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 \
          prev_prio=120 prev_state=R ==> next_comm=cat next_pid=7 next_prio=120
          <idle>-0       [001] d..2.    10.000000: sched_switch: prev_comm=swapper/1 prev_pid=0 \
          prev_prio=120 prev_state=R ==> next_comm=dd next_pid=8 next_prio=120
             cat-7       [000] d..2.    10.001000: sched_switch: prev_comm=cat prev_pid=7 \
             prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
             cat-7       [000] d..2.    10.001001: <stack trace>
 => trace_event_raw_event_sched_switch
 => __schedule
 => schedule
 => pipe_read
 => vfs_read
 => ksys_read
              dd-8       [001] d..2.    10.003000: sched_waking: comm=cat pid=7 prio=120 target_cpu=000
          <idle>-0       [000] d..2.    10.003010: sched_switch: prev_comm=swapper/0 prev_pid=0 \
          prev_prio=120 prev_state=R ==> next_comm=cat next_pid=7 next_prio=120
             cat-7       [000] d..2.    10.004000: contention_begin: 00000000aabbccdd (flags=SPIN)
             cat-7       [000] d..2.    10.004001: <stack trace>
 => __traceiter_contention_begin
 => native_queued_spin_lock_slowpath
 => _raw_spin_lock
             cat-7       [000] d..2.    10.004021: contention_end: 00000000aabbccdd (ret=0)
";

#[test]
fn a_text_with_stacks_gives_the_histogram_of_the_mail() {
    let files = Files::new();
    let recording = files.write("trace.txt", TEXT);
    let folded = files.path("folded.txt").display().to_string();
    let csv = success(&[
        "contention",
        &recording,
        "--depth",
        "3",
        "--folded",
        &folded,
        "--format",
        "csv",
    ]);
    for line in [
        ",points,1,scheduling_point,__schedule()<-schedule()<-pipe_read(),",
        ",sites,sleep,total,2000000,ns",
        ",sites,sleep,holder_running,100,percent",
        ",sites,sleep,site,pipe_read()<-vfs_read()<-ksys_read(),",
        ",sites,lock spin,total,21000,ns",
        ",sites,lock spin,site,native_queued_spin_lock_slowpath()<-_raw_spin_lock(),",
        ",blockers,dd,waiter,cat,",
    ] {
        assert!(csv.lines().any(|found| found == line), "{line} is not in:\n{csv}");
    }
    assert_eq!(
        std::fs::read_to_string(folded).expect("it was written"),
        "cat;_raw_spin_lock;native_queued_spin_lock_slowpath 21\n\
         cat;ksys_read;vfs_read;pipe_read;schedule;__schedule 2000\n"
    );
}

#[test]
fn waits_of_some_tasks_alone() {
    let files = Files::new();
    let recording = files.write("trace.txt", TEXT);
    let of = |options: &[&str]| success(&[&["contention", &recording][..], options].concat());
    let says = |text: &str, part: &str| {
        text.split_whitespace().collect::<Vec<_>>().join(" ").contains(part)
    };
    let cat = of(&["--tree", "cat"]);
    assert!(says(&cat, "switches 1, with stack 1, waits for locks 1, tasks asked for 1"), "{cat}");
    assert!(says(&cat, "dd cat 1"), "{cat}");
    let dd = of(&["--tree", "8"]);
    assert!(says(&dd, "switches 0, with stack 0, waits for locks 0, tasks asked for 1"), "{dd}");
    assert!(!dd.contains("pipe_read()"), "{dd}");
    let said = refusal(&["contention", &recording, "--tree", "sh"]);
    assert!(said.contains("no task has the name or pid `sh`"), "{said}");
    // Of a recorded command: its tasks alone, unless all are asked for.
    let marked =
        TEXT.replacen("# tracer: nop", "# tracer: nop\n# fairground: origin command_pid 8", 1);
    let marked = files.write("marked.txt", &marked);
    let command = success(&["contention", &marked]);
    assert!(command.contains("--all shows those of all tasks"), "{command}");
    let all = success(&["contention", &marked, "--all"]);
    assert!(!command.contains("pipe_read()") && all.contains("pipe_read()"), "{command}{all}");
}

#[test]
fn groups_of_a_simulated_workload_are_asked_for_by_name() {
    let waits = |options: &[&str]| -> u64 {
        let run = ["contention", "netperf-stream", "--locks", "rt", "--duration", "50ms", "--wide"];
        let text = success(&[&run[..], options].concat());
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let rest = plain.split("waits for locks ").nth(1).unwrap_or_default();
        let count = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        count.parse().unwrap_or_else(|_| panic!("{text}"))
    };
    let (one, other) = (waits(&["--tree", "netperf"]), waits(&["--tree", "netserver"]));
    assert!(one > 0 && other > 0, "{one} {other}");
    assert_eq!(one + other, waits(&[]));
    assert_eq!(one + other, waits(&["--tree", "netperf,netserver"]));
}

#[test]
fn readers_of_a_pipe_wait_in_its_read_path() {
    let output = fairground(&[
        "contention",
        "pipe",
        "--on",
        "host",
        "--duration",
        "300ms",
        "--format",
        "csv",
    ]);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("tracefs") || said.contains("root"), "{said}");
        return unavailable("recording", said);
    }
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(said.contains("pipe_read()"), "{said}");
}

#[test]
fn a_guest_is_recorded_with_stacks() {
    let Some(target) = bootable() else { return };
    let said =
        success(&["contention", "pipe", "--on", target, "--cpus", "1", "--duration", "100ms"]);
    let mut points = said.lines().filter(|line| line.contains("__schedule()<-schedule()<-"));
    let most = points.next_back().expect("there are scheduling points");
    assert!(most.contains("pipe_read()"), "{said}");
}

#[test]
fn simulated_spin_locks_sleep_when_they_are_told_to() {
    let kinds = |locks| {
        let csv = success(&[
            "contention",
            "netperf-stream",
            "--locks",
            locks,
            "--duration",
            "100ms",
            "--format",
            "csv",
        ]);
        ["lock spin", "lock rt"].map(|kind| csv.contains(&format!(",{kind},waits,")))
    };
    assert_eq!(kinds("spin"), [true, false]);
    assert_eq!(kinds("rt"), [false, true]);
    let files = Files::new();
    let recording = files.write("trace.txt", TEXT);
    let said = refusal(&["contention", &recording, "--locks", "rt"]);
    assert!(said.contains("--locks") && said.contains("no workload"), "{said}");
}

/// As of `run`: the exit code reports an ejection or a stall, and the notes the cause; what was recorded until then is
/// shown.
#[test]
fn a_scheduler_that_ends_early_is_said() {
    let files = Files::new();
    // No task is ever taken from the queue.
    let stalling = "\
        #include \"scx.bpf.h\"\n\
        char _license[] SEC(\"license\") = \"GPL\";\n\
        const volatile unsigned long long never_set;\n\
        void BPF_STRUCT_OPS(lost_enqueue, struct task_struct *p, u64 enq_flags)\n\
        {\n\
            if (!never_set)\n\
                scx_bpf_dsq_insert(p, 1, 1000000, enq_flags);\n\
        }\n\
        s32 BPF_STRUCT_OPS_SLEEPABLE(lost_init)\n\
        {\n\
            return scx_bpf_create_dsq(1, -1);\n\
        }\n\
        SCX_OPS_DEFINE(lost_ops, .enqueue = (void *)lost_enqueue, .init = (void *)lost_init, .timeout_ms = 100,\n\
                       .name = \"lost\");\n";
    let stalling = files.write("lost.bpf.c", stalling);
    let output = fairground(&["contention", "hogs:3", "--duration", "1s", "--sched", &stalling]);
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(42), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for part in ["the scheduler was ejected after ", "`never_set`", "Where tasks wait"] {
        assert!(said.contains(part), "`{part}` is missing from:\n{said}");
    }
}

#[test]
fn what_is_neither_recording_nor_workload_is_refused() {
    let said = refusal(&["contention", "no-such-thing"]);
    assert!(said.contains("no-such-thing") && said.contains("recording"), "{said}");
    let said = refusal(&["contention", "--on", "vm:6.1"]);
    assert!(said.contains("workload"), "{said}");
}

#[test]
fn a_recording_without_switches_says_so() {
    let files = Files::new();
    let text = "  <idle>-0 [000] d.h3 300.0: sched_wakeup: comm=a pid=7 prio=120 target_cpu=000\n";
    let said = success(&["contention", &files.write("wakeups.txt", text), "--wide"]);
    assert!(said.contains("wakeups.txt: no sched_switch in this recording"), "{said}");
}
