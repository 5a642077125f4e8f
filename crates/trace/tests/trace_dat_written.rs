//! What is written as `trace.dat` and read back is the same trace, and trace-cmd reads the same from it.

use std::collections::BTreeMap;
use std::process::Command;

use fairground_trace::{
    Event, EventKind, TaskInfo, TaskState, Trace, read, write_ftrace, write_trace_dat,
};
use proptest::prelude::*;

use crate::support::any_trace::traces;

fn bytes_of(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_trace_dat(trace, &mut bytes).expect("memory takes it");
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn written_and_read_is_the_same(trace in traces()) {
        let read = read("written", &bytes_of(&trace)[..]).unwrap();
        prop_assert_eq!(trace.tasks(), read.tasks());
        prop_assert_eq!(trace.cgroups(), read.cgroups());
        prop_assert_eq!(trace.labels(), read.labels());
        prop_assert_eq!(&trace.origin, &read.origin);
        let window = |of: &Trace| (of.start_ns, of.end_ns, of.cpus);
        prop_assert_eq!(window(&trace), window(&read));
        prop_assert_eq!(trace.events().collect::<Vec<_>>(), read.events().collect::<Vec<_>>());
        prop_assert_eq!(trace.digest(), read.digest());
        prop_assert_eq!((read.loss.unreadable, read.loss.skipped, read.loss.clock_jumps), (0, 0, 0));
    }
}

/// Pages that are full, events that are longer than a page of the kernel, and pauses that an event cannot tell.
#[test]
fn long_traces_long_texts_and_long_pauses() {
    let mut trace = Trace::new(2);
    let task = trace
        .add_task(TaskInfo { nice: Some(0), ..TaskInfo::new(7, "a name longer than sixteen") });
    let label = trace.intern(&"long ".repeat(2000));
    let mut push = |time_ns, cpu, kind| trace.push(Event { time_ns, cpu, insns: 0, kind });
    for number in 0..3000 {
        push(number * 777, (number % 2) as u32, EventKind::Charge { task, runtime_ns: number });
    }
    push(3_000_000, 0, EventKind::Print { label });
    push(1 << 62, 1, EventKind::Lost { count: 12 });
    push((1 << 62) + (1 << 40), 1, EventKind::Exit { task });
    push(u64::MAX, 1, EventKind::Tick { task });
    trace.end_ns = u64::MAX;
    let read = read("written", &bytes_of(&trace)[..]).unwrap();
    assert_eq!(trace.events().collect::<Vec<_>>(), read.events().collect::<Vec<_>>());
    assert_eq!((read.tasks(), read.loss.lost_events), (trace.tasks(), 12));
}

/// Events as lines: the CPU, the time, and the text behind it.
fn lines(text: &str, is_ours: bool) -> BTreeMap<(String, String), Vec<String>> {
    let mut lines: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((head, event)) = line.split_once(": ") else { continue };
        let mut words = head.rsplit(' ').filter(|word| !word.is_empty());
        let time = words.next().unwrap_or_default().to_owned();
        let Some(cpu) = words.find(|word| word.starts_with('[')) else { continue };
        // trace-cmd pads the names of events, and names the function that marks.
        let event = event.trim_start().trim_start_matches("print:").trim_start();
        let (name, fields) = event.split_once(':').unwrap_or((event, ""));
        let fields = fields.trim().replace("hrtimer=0000000000000000 ", "hrtimer=(nil) ");
        let fields = fields
            .replace("hrtimer=0x0 ", "hrtimer=(nil) ")
            .replace("hrtimer=0 ", "hrtimer=(nil) ");
        let time = if is_ours { time } else { time.clone() };
        lines.entry((cpu.to_owned(), time)).or_default().push(format!("{name}: {fields}"));
    }
    lines
}

#[test]
fn trace_cmd_prints_what_our_text_has() {
    let version = Command::new("trace-cmd").arg("report").arg("--help").output();
    if version.is_err() {
        return fairground_testing::unavailable("trace-cmd", "it is not installed");
    }
    let mut trace = Trace::new(2);
    let one =
        trace.add_task(TaskInfo { nice: Some(5), ..TaskInfo::new(77, "server-receive/r0-2") });
    let two = trace.add_task(TaskInfo { nice: Some(0), ..TaskInfo::new(78, "two") });
    let idle = fairground_trace::TaskId::IDLE;
    let label = trace.intern("printed");
    let mut now_ns = 1_999_999_999;
    let mut push = |cpu, kind| {
        now_ns += 1;
        trace.push(Event { time_ns: now_ns, cpu, insns: 0, kind });
    };
    push(0, EventKind::Switch { prev: idle, prev_state: TaskState::Runnable, next: one });
    push(0, EventKind::Fork { parent: one, child: two });
    push(0, EventKind::WakeupNew { task: two, target_cpu: 1 });
    push(1, EventKind::Switch { prev: idle, prev_state: TaskState::Runnable, next: two });
    push(0, EventKind::Tick { task: one });
    push(0, EventKind::Callback { kind: fairground_trace::CallbackKind::SelectCpu, task: two });
    push(0, EventKind::Waking { task: two, waker: one, target_cpu: 0 });
    push(0, EventKind::Waking { task: two, waker: idle, target_cpu: 0 });
    push(0, EventKind::Wakeup { task: two, target_cpu: 1 });
    push(0, EventKind::Migrate { task: two, from_cpu: 1, to_cpu: 0 });
    push(0, EventKind::Charge { task: one, runtime_ns: 1234 });
    push(0, EventKind::Nice { task: one, nice: -3 });
    push(0, EventKind::Mark { task: one, label, value: u64::MAX });
    push(0, EventKind::Print { label });
    for prev_state in TaskState::ALL {
        push(0, EventKind::Switch { prev: one, prev_state, next: idle });
    }
    push(1, EventKind::Exit { task: two });
    (trace.start_ns, trace.end_ns) = (0, 3_000_000_000);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.dat");
    std::fs::write(&file, bytes_of(&trace)).unwrap();
    let report =
        Command::new("trace-cmd").args(["report", "-N", "-t", "-i"]).arg(&file).output().unwrap();
    let (report, errors) =
        (String::from_utf8_lossy(&report.stdout), String::from_utf8_lossy(&report.stderr));
    let mut text = Vec::new();
    write_ftrace(&trace, &mut text).unwrap();
    let ours = lines(&String::from_utf8_lossy(&text), true);
    assert_eq!(lines(&report, false), ours, "{report}\n{errors}");
    assert_eq!(ours.values().map(Vec::len).sum::<usize>(), trace.len());
}
