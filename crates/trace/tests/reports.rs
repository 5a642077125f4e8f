//! What tools print about scheduling without its events is refused by what it is, with what helps.

use fairground_trace::read;

/// The beginning of each output, and a word of the message.
const REPORTS: [(&str, &str); 14] = [
    (
        "DEBUG DUMP\n====\n\nkworker/u16:4[173] triggered exit kind 1026:\n  runnable task stall (job[1632] failed to \
         run for 5.314s)\n\nCPU states\n----------\n\nCPU 0   : nr_run=2 flags=0x1 cpu_rel=0 ops_qseq=435\n",
        "sched_ext prints when it ejects a scheduler",
    ),
    (
        "[  5.0] sched_ext: x\nCPU 0   : nr_run=2 flags=0x1 cpu_rel=0 ops_qseq=435 pnt_seq=440\n",
        "sched_ext prints",
    ),
    (
        " -------------------------------------------------\n  Task                  |   Runtime ms  | Switches | Avg \
         delay ms    | Max delay ms    | Max delay start           |\n --\n  hackbench:(2)         |      1.0 ms |  2 |\n",
        "`perf sched latency`",
    ),
    (
        "           time    cpu  task name                       wait time  sch delay   run time\n --- --- ---\n    \
         79371.874569 [0011]  gcc[31949]                          0.014      0.000      1.148\n",
        "`perf sched timehist`",
    ),
    (
        "  *A0           17.123456 secs A0 => perf:123\n   .  *B0       17.2 secs B0 => a:5\n",
        "`perf sched map`",
    ),
    (
        "Tracing run queue latency... Hit Ctrl-C to end.\n     usecs               : count     distribution\n         0 \
         -> 1          : 233      |***********                             |\n",
        "histogram",
    ),
    (
        "Attaching 5 probes...\n@usecs: \n[0]                    1 |@@@     |\n[2, 4)   16 |@@@@    |\n",
        "histogram",
    ),
    (
        "# /dev/cpu_dma_latency set to 0us\npolicy: fifo: loadavg: 0.00 0.01 0.05 1/160 1\n\nT: 0 ( 1234) P:80 I:1000 C: \
         1000 Min:      2 Act:    3 Avg:    2 Max:      10\n",
        "`cyclictest`",
    ),
    (
        "                                     Timer Latency                                              \n  0 00:00:01   \
         |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)\nCPU COUNT      |      cur       min\n",
        "`rtla`",
    ),
    (
        "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:05\nIndex   IRQ-000\n",
        "`rtla`",
    ),
    (
        "version 16\ntimestamp 4295000000\ncpu0 0 0 0 0 0 0 1 2 3\ndomain0 00000003 0 0\n",
        "/proc/schedstat",
    ),
    ("Sched Debug Version: v0.11, 6.12.0 #1\nktime : 1\n", "sched/debug"),
    (
        "Wakeup Latencies percentiles (usec) runtime 30 (s) (9 total samples)\n\t 50.0th: 8 (4 samples)\n",
        "`schbench`",
    ),
    (" Performance counter stats for 'x':\n\n   1,234      context-switches\n", "`perf stat`"),
];

#[test]
fn each_report_is_refused_by_its_name() {
    for (text, wanted) in REPORTS {
        for log in ["", "[  100.000001] "] {
            let text: String = text.lines().map(|line| format!("{log}{line}\n")).collect();
            let error = read("report", text.as_bytes()).expect_err("it has no events").to_string();
            assert!(error.contains(wanted), "{wanted}: {error}");
            assert!(
                error.contains("fairground record") || error.contains("perf.data"),
                "a remedy: {error}"
            );
        }
    }
}

/// A recording in whose output a report stands is still one.
#[test]
fn a_report_beside_events_does_no_harm() {
    let event = "          <idle>-0     [000] d..2. 1.000001: sched_switch: prev_comm=swapper/0 prev_pid=0 \
                 prev_prio=120 prev_state=R ==> next_comm=cat next_pid=7 next_prio=120\n";
    for (report, _) in REPORTS {
        let trace = read("both", format!("{report}{event}").as_bytes()).expect("a recording");
        assert_eq!(trace.len(), 1);
    }
}
