//! LTTng's kernel events as babeltrace prints them.

use fairground_trace::{EventKind, Trace, read};

fn trace(text: &str) -> Trace {
    read("sample", text.as_bytes()).expect("a recording")
}

fn switch(time: &str, cpu: u32) -> String {
    format!(
        "[{time}] (+0.1) host sched_switch: {{ cpu_id = {cpu} }}, {{ prev_comm = \"a\", prev_tid = 7, \
         prev_prio = 20, prev_state = 1, next_comm = \"b\", next_tid = 8, next_prio = -41 }}\n"
    )
}

#[test]
fn priorities_and_states_are_those_of_the_kernel() {
    let trace = trace(&switch("10:00:00.000000001", 3));
    let [_, a, b] = trace.tasks() else { panic!("{:?}", trace.tasks()) };
    assert_eq!((a.nice, b.rt_prio.map(|prio| prio.prio())), (Some(0), Some(59)));
    assert_eq!((trace.cpus, trace.loss.unreadable), (4, 0));
}

#[test]
fn midnight_passes() {
    let text = switch("23:59:59.900000000", 0) + &switch("00:00:00.100000000", 0);
    let trace = trace(&(text + &switch("00:00:00.050000000", 1)));
    let times: Vec<_> = trace.events().map(|event| event.time_ns / 1_000_000).collect();
    assert_eq!(times, [86_399_900, 86_400_050, 86_400_100]);
    assert_eq!(trace.loss.clock_jumps, 0);
}

#[test]
fn an_interrupt_wakes() {
    let line = |event: &str, fields: &str| {
        format!(
            "[1.5] (+0.1) host {event}: {{ cpu_id = 0 }}, {{ tid = 7, procname = \"a\" }}, {{ {fields} }}\n"
        )
    };
    let waking = line("sched_waking", "comm = \"b\", tid = 8, prio = 20, target_cpu = 0");
    let text = [
        waking.clone(),
        line("irq_handler_entry", "irq = 5, name = \"eth0\""),
        waking.clone(),
        line("irq_handler_exit", "irq = 5, ret = 1"),
        waking,
    ];
    let trace = trace(&text.concat());
    let wakers = trace.events().filter_map(|event| match event.kind {
        EventKind::Waking { waker, .. } => Some(trace.tasks()[waker.index()].comm.as_str()),
        _ => None,
    });
    assert_eq!(wakers.collect::<Vec<_>>(), ["a", "swapper", "a"]);
}

#[test]
fn the_state_dump_names_tasks() {
    let text = "\
[10:00:00.1] (+?.?) host lttng_statedump_process_state: { cpu_id = 0 }, { tid = 99 }, { tid = 7, pid = 7, name = \"a b\", type = 0 }
[10:00:00.2] (+0.1) host lttng_statedump_end: { cpu_id = 0 }, { tid = 99 }, { }
[10:00:00.3] (+0.1) host sched_waking: { cpu_id = 0 }, { tid = 7 }, { comm = \"b\", tid = 8, prio = 20, target_cpu = 0 }
";
    let trace = trace(text);
    let names: Vec<_> = trace.tasks().iter().map(|task| task.comm.as_str()).collect();
    assert_eq!(names, ["swapper", "a b", "b"]);
    assert_eq!(trace.loss.unreadable, 0);
}

#[test]
fn what_cannot_be_read_is_said() {
    let loss = trace(
        &(switch("1.5", 0)
            + "[warning] Tracer discarded 12 events between [1] and [2] in trace UUID 5\n"
            + "[1.6] (+0.1) host sched_switch: { cpu_id = 0 }, { prev_comm = \"a\" }\n"),
    )
    .loss;
    assert_eq!((loss.lost_events, loss.unreadable), (12, 1));
    let cycles =
        "[00000023364367741240] (+1) host sched_switch: { cpu_id = 0 }, { prev_comm = \"a\" }\n";
    let said = read("cycles", cycles.as_bytes()).expect_err("no time").to_string();
    assert!(said.contains("a time in brackets that is not in seconds"), "{said}");
}
