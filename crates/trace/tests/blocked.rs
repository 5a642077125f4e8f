//! Android's `sched_blocked_reason`: the function in which a task waits uninterruptibly, as its stack.

use fairground_trace::{EventKind, Trace, read};

use crate::support::samples::blocked;
use crate::support::{BLOCKED, Dat, small};

/// The stacks: time, pid, functions.
fn stacks(trace: &Trace) -> Vec<(u64, u32, &str)> {
    let stack = |event: fairground_trace::Event| match event.kind {
        EventKind::Stack { task, label } => {
            Some((event.time_ns, trace.tasks()[task.index()].pid, trace.label(label)))
        }
        _ => None,
    };
    trace.events().filter_map(stack).collect()
}

fn trace(bytes: &[u8]) -> Trace {
    let trace = read("sample", bytes).expect("a recording");
    assert_eq!(trace.loss.unreadable, 0, "{:?}", trace.loss.first);
    trace
}

#[test]
fn of_a_text() {
    let line = |time: &str, fields: &str| {
        format!("  waker-8  (  8) [001] d..2 {time}: sched_blocked_reason: {fields}\n")
    };
    let text = [
        "app-7 (7) [000] d..2 1.5: sched_switch: prev_comm=app prev_pid=7 prev_prio=120 prev_state=D \
         ==> next_comm=swapper/0 next_pid=0 next_prio=120\n"
            .to_owned(),
        line("1.600001", "pid=7 iowait=1 caller=folio_wait_bit_common+0x2b0/0x408"),
        line("1.600002", "pid=7 iowait=0 caller=dma_wait+0x74/0x160 [gpu] delay=842"),
        line("1.600003", "pid=7 iowait=0 caller=0xffffffc0100"),
        // The kernel knew none.
        line("1.600004", "pid=7 iowait=0 caller=0x0"),
        line("1.600005", "pid=0 iowait=0 caller=a"),
    ];
    let wanted = [
        (1_600_001_000, 7, "folio_wait_bit_common"),
        (1_600_002_000, 7, "dma_wait"),
        (1_600_003_000, 7, "0xffffffc0100"),
    ];
    assert_eq!(stacks(&trace(text.concat().as_bytes())), wanted);
}

/// The function's name may stand behind the bundle that has its number.
#[test]
fn of_perfetto() {
    let trace = trace(&blocked());
    assert_eq!(stacks(&trace), [(3_000, 7, "folio_wait_bit_common")]);
    assert_eq!(trace.loss.skipped, 1, "a number without a name");
}

#[test]
fn of_a_binary_file() {
    for big in [false, true] {
        let mut dat = Dat { formats: vec![BLOCKED], ..small(big) };
        let events = [
            dat.blocked(10, 2, 0xffff_ffc0_1000_0010),
            dat.blocked(20, 2, 0xffff_ffc1_0000_0000),
            dat.blocked(30, 2, 0),
        ];
        dat.add(1, dat.page(3_000, &events, 0, 0));
        dat.kallsyms = "ffffffc010000000 T wait_on_page_bit\n".to_owned();
        let wanted = [(3_010, 2, "wait_on_page_bit"), (3_030, 2, "0xffffffc100000000")];
        assert_eq!(stacks(&trace(&dat.bytes())), wanted);
    }
}

/// An event without its task is counted.
#[test]
fn without_its_fields() {
    let text = "app-7 [000] 1.5: sched_switch: app:7 [120] D ==> b:8 [120]\n\
                b-8 [000] 1.6: sched_blocked_reason: iowait=1\n";
    assert_eq!(read("sample", text.as_bytes()).expect("a switch").loss.unreadable, 1);
}
