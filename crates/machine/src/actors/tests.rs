//! Actors without the kernel.

mod costs;
mod laws;
mod locks;
mod toy;

use fairground_workload::{CpuList, Duration, LockKind, Op, Role, Workload};

use super::*;
use toy::{Toy, costs, group, mark, run, sleep, workload};

fn log(workload: &Workload, syscall_ns: u64, end_ns: u64) -> Vec<String> {
    let mut toy = Toy::new(workload, syscall_ns, 8);
    toy.until(end_ns).unwrap();
    toy.lines()
}

#[test]
fn each_system_call_costs_and_then_takes_effect() {
    let mut all = group(
        "a",
        1,
        vec![run(100), Op::SetNice(5), mark("m"), sleep(50), mark("m"), Op::Yield, mark("m")],
    );
    all.program.push(Op::SetAffinity(CpuList(vec![(1, 2)])));
    // The sleep counts from a third of its call before its effect.
    assert_eq!(
        log(&workload(vec![all]), 7, 1_000),
        ["107 nice 5", "107 a: m 0", "162 a: m 1", "169 a: m 2", "176 cpus [1, 2]", "183 a ends"]
    );
}

#[test]
fn loops_repeat_their_bodies() {
    let inner = Op::Loop(Some(2), vec![mark("in"), run(1)]);
    let none = Op::Loop(Some(0), vec![mark("never")]);
    let outer = Op::Loop(Some(3), vec![inner, mark("out")]);
    let mut toy = Toy::new(&workload(vec![group("a", 1, vec![none, outer])]), 0, 1);
    toy.until(100).unwrap();
    let text: Vec<&str> = toy.log.iter().map(|(_, text)| text.as_str()).collect();
    let expected =
        "a: in 0,a: in 1,a: out 0,a: in 2,a: in 3,a: out 1,a: in 4,a: in 5,a: out 2,a ends";
    assert_eq!(text.join(","), expected);
    assert_eq!((toy.log[9].0, toy.used_ns[0]), (6, 6));
}

/// The times at which marks were left, ns.
fn marked(workload: &Workload, until_ns: u64) -> Vec<u64> {
    let mut toy = Toy::new(workload, 0, 8);
    toy.until(until_ns).unwrap();
    toy.log.iter().filter(|(_, text)| text.contains(": m")).map(|(time_ns, _)| *time_ns).collect()
}

#[test]
fn a_relative_timer_forgets_what_it_missed() {
    // The run of 2500 ns overruns the expiry of 2000, which becomes 3600: the next wait ends at 4600.
    let wait = Op::TimerWait(0, 1_000);
    let program = vec![
        run(100),
        Op::TimerStart(0),
        wait.clone(),
        run(2_500),
        wait.clone(),
        mark("m"),
        wait,
        mark("m"),
    ];
    let mut relative = workload(vec![group("a", 1, program)]);
    relative.timers[0].relative = true;
    assert_eq!(marked(&relative, 10_000), [3_600, 4_600]);
    relative.timers[0].relative = false;
    assert_eq!(marked(&relative, 10_000), [3_600, 3_600]);
}

#[test]
fn each_wait_for_a_shared_timer_takes_the_next_expiry() {
    let program = || vec![Op::Loop(Some(2), vec![Op::TimerWait(0, 1_000), mark("m")])];
    let mut both = workload(vec![group("a", 1, program()), group("b", 1, program())]);
    assert_eq!(marked(&both, 10_000), [1_000, 1_000, 2_000, 2_000]);
    both.timers[0].shared = true;
    assert_eq!(marked(&both, 10_000), [1_000, 2_000, 3_000, 4_000]);
}

#[test]
fn a_timer_that_was_started_counts_from_there() {
    let program = vec![
        Op::TimerStart(0),
        run(300),
        Op::TimerStart(0),
        Op::TimerWait(0, 1_000),
        mark("m"),
        Op::TimerWait(0, 2_500),
        mark("m"),
    ];
    assert_eq!(marked(&workload(vec![group("a", 1, program)]), 10_000), [1_000, 3_500]);
}

#[test]
fn a_busy_task_looks_at_the_clock_now_and_then() {
    // 50 us: two looks, the second at 64 us. A handler of 1 us moves both.
    let busy = vec![Op::Busy(Duration::Fixed(50_000)), mark("m")];
    let alone = workload(vec![group("a", 1, busy.clone())]);
    assert_eq!(marked(&alone, 100_000), [64_000]);
    let interrupt = vec![sleep(10_000), Op::Signal(Role::All(0))];
    let mut with_signal = group("a", 1, busy);
    with_signal.on_signal = vec![run(1_000)];
    let both = workload(vec![with_signal, group("b", 1, interrupt)]);
    assert_eq!(marked(&both, 200_000), [65_000]);
}

#[test]
fn a_periodic_timer_is_not_stretched() {
    // First expiry 1000 ns after the first wait; the run of 2500 ns overruns two of them, which are then made up for.
    let program = vec![
        Op::TimerWait(0, 1_000),
        mark("m"),
        run(300),
        Op::TimerWait(0, 1_000),
        mark("m"),
        run(2_500),
        Op::Loop(Some(4), vec![Op::TimerWait(0, 1_000), mark("m")]),
    ];
    let lines = log(&workload(vec![group("a", 1, program)]), 0, 10_000);
    assert_eq!(
        lines,
        [
            "1000 a: m 0",
            "2000 a: m 1",
            "4500 a: m 2",
            "4500 a: m 3",
            "5000 a: m 4",
            "6000 a: m 5",
            "6000 a ends"
        ]
    );
}

#[test]
fn pipes_hold_back_writers_and_readers() {
    let writer = group("w", 1, vec![Op::PipeWrite(0, 250), mark("written")]);
    let read = |bytes| vec![run(100), Op::PipeRead(0, bytes), mark("read")];
    let reader =
        group("r", 1, vec![Op::Loop(Some(4), read(70)), mark("rest"), Op::PipeRead(0, 70)]);
    let lines = log(&workload(vec![writer, reader]), 0, 2_000);
    // A page of 100 bytes at once; there is room for the next when it is empty, after two reads of 70 and of 30.
    assert_eq!(
        lines,
        [
            "100 r: read 0",
            "200 r: read 1",
            "300 r: read 2",
            "400 r: read 3",
            "400 r: rest 0",
            "400 w: written 0",
            "400 w ends",
            "400 r ends",
        ],
        "and the last read has the last 50"
    );
}

#[test]
fn one_byte_wakes_one_reader() {
    let readers = group("r", 3, vec![Op::PipeRead(0, 1), mark("read")]);
    let writer = group("w", 1, vec![run(10), Op::PipeWrite(0, 1), run(10), Op::PipeWrite(0, 2)]);
    let lines = log(&workload(vec![readers, writer]), 0, 100);
    let ends: Vec<&String> = lines.iter().filter(|line| line.contains("read")).collect();
    assert_eq!(ends, ["10 r/0: read 0", "20 r/1: read 0", "20 r/2: read 0"]);
}

#[test]
fn messages_go_to_receivers_in_order_and_hold_back_senders() {
    let receivers = group("r", 2, vec![Op::Receive(0, 2), mark("got")]);
    let sender = group("s", 1, vec![Op::Loop(Some(4), vec![run(10), Op::Send(0)])]);
    // Messages 1 and 3 go to r/0, 2 and 4 to r/1.
    let lines = log(&workload(vec![receivers, sender]), 0, 1_000);
    assert_eq!(
        lines,
        ["30 r/0: got 0", "30 r/0 ends", "40 s ends", "40 r/1: got 0", "40 r/1 ends"]
    );

    let sender = group("s", 1, vec![Op::Loop(Some(3), vec![Op::Send(1), mark("sent")])]);
    let receiver =
        group("r", 1, vec![run(100), Op::Receive(1, 1), run(100), Op::Receive(1, 2), mark("got")]);
    let lines = log(&workload(vec![sender, receiver]), 0, 1_000);
    assert_eq!(
        lines,
        [
            "0 s: sent 0",
            "100 s: sent 1",
            "200 s: sent 2",
            "200 s ends",
            "200 r: got 0",
            "200 r ends"
        ]
    );
}

#[test]
fn a_queue_that_holds_nothing_is_a_meeting_place() {
    let sender = group("s", 1, vec![Op::Loop(Some(2), vec![run(10), Op::Send(1), mark("sent")])]);
    let receive = [run(15), Op::Receive(1, 1), mark("got"), Op::Receive(1, 1), mark("got")];
    let mut w = workload(vec![sender, group("r", 1, receive.to_vec())]);
    w.queues[1].capacity = Some(0);
    // The sender comes first, then the receiver.
    assert_eq!(
        log(&w, 0, 1_000),
        ["15 r: got 0", "15 s: sent 0", "25 s: sent 1", "25 s ends", "25 r: got 1", "25 r ends"]
    );
}

#[test]
fn a_queue_wakes_as_it_says() {
    for sync in [false, true] {
        let mut w = workload(vec![group("r", 1, vec![Op::Receive(0, 1)])]);
        w.tasks.push(group("s", 1, vec![Op::Send(0)]));
        w.queues[0].sync = sync;
        let mut actors = Actors::new(&w, 1, &costs(0)).unwrap();
        let [receiver, sender] = [0, 1].map(|spec| actors.spawn(spec, None));
        let mut effects = Vec::new();
        actors.advance(receiver, 0, &mut effects).unwrap();
        actors.advance(sender, 0, &mut effects).unwrap();
        assert_eq!(effects, [Effect::Wake { actor: receiver, sync }, Effect::BeginExit]);
    }
}

/// Only waiting and waking are system calls. A message is in the queue before its receiver is woken, and a task that
/// comes first gets it.
#[test]
fn a_message_is_a_system_call_where_one_waits() {
    let mut w = workload(vec![group("r", 1, vec![Op::Receive(0, 3), mark("got")])]);
    w.queues[0].initial = 3;
    assert_eq!(log(&w, 7, 100), ["0 r: got 0", "7 r ends"]);

    let waiter = group("w", 1, vec![Op::Receive(0, 1), mark("got")]);
    let thief = group("t", 1, vec![run(12), Op::Receive(0, 1), mark("got")]);
    let sender = group("s", 1, vec![run(10), Op::Send(0), mark("sent"), run(10), Op::Send(0)]);
    // Sent at 10, stolen at 12; the waiter is woken at 17, and calls the kernel again until 24.
    let lines = log(&workload(vec![waiter, thief, sender]), 7, 100);
    assert_eq!(lines[..4], ["12 t: got 0", "17 s: sent 0", "19 t ends", "34 w: got 0"]);
}

/// A notification is for those that wait, and a waiter that comes first consumes it.
#[test]
fn a_notification_is_not_handed_over() {
    let wait =
        |after| vec![run(after), Op::Lock(0), Op::ConditionWait(0, 0), mark("got"), Op::Unlock(0)];
    let tasks = vec![
        group("w", 1, wait(1)),
        group("t", 1, wait(12)),
        group("n", 1, vec![run(10), Op::Notify(0), mark("told"), run(30), Op::NotifyAll(0)]),
    ];
    let mut w = workload(tasks);
    w.locks = vec![locks::lock("l", LockKind::Mutex)];
    w.conditions = vec![fairground_workload::Condition { name: "c".to_owned() }];
    let lines = log(&w, 7, 200);
    let of_waits: Vec<&String> = lines.iter().filter(|line| line.contains("got")).collect();
    assert_eq!(of_waits, ["12 t: got 0", "54 w: got 0"], "{lines:?}");
}

#[test]
fn a_signal_interrupts_computation_and_the_rest_follows() {
    let mut hog = group("h", 1, vec![run(1_000), mark("done")]);
    hog.on_signal = vec![mark("signal"), run(50)];
    let killer = group(
        "k",
        1,
        vec![
            sleep(105),
            Op::Signal(Role::All(0)),
            Op::Signal(Role::All(0)),
            sleep(500),
            Op::Signal(Role::One(0, 0)),
            Op::Signal(Role::One(0, 1)),
        ],
    );
    let mut toy = Toy::new(&workload(vec![hog, killer]), 1, 8);
    toy.until(3_000).unwrap();
    // The second signal comes while the handler runs and is handled behind it.
    let lines: Vec<String> = toy.lines().into_iter().filter(|line| line.contains(" h")).collect();
    assert_eq!(lines[0], "107 h: signal 0");
    assert_eq!(lines[1], "157 h: signal 1");
    assert_eq!(lines[2], "610 h: signal 2");
    assert_eq!((&lines[3][..], &lines[4][..]), ("1150 h: done 0", "1151 h ends"));
    assert_eq!(toy.used_ns[0], 1_000 + 3 * 50 + 1);
}

#[test]
fn signals_to_those_that_do_not_run_coalesce() {
    let mut waiter = group("w", 1, vec![Op::Receive(0, 1), mark("never")]);
    waiter.on_signal = vec![mark("signal"), Op::Send(1), mark("sent")];
    let twice = vec![
        run(10),
        Op::Signal(Role::All(0)),
        Op::Signal(Role::All(0)),
        sleep(10),
        Op::Signal(Role::All(0)),
    ];
    let mut toy = Toy::new(&workload(vec![waiter, group("k", 1, twice)]), 0, 1);
    toy.until(100).unwrap();
    assert_eq!(
        toy.lines(),
        ["10 w: signal 0", "10 w: sent 0", "20 k ends", "20 w: signal 1"],
        "and the handler's second message waits in the full queue"
    );
}

#[test]
fn a_signal_ends_a_sleep_but_restarts_a_wait() {
    let mut sleeper = group(
        "s",
        1,
        vec![
            sleep(1_000),
            mark("woke"),
            Op::TimerWait(0, 1_000),
            mark("timer"),
            Op::PipeRead(0, 5),
            mark("read"),
        ],
    );
    sleeper.on_signal = vec![run(10), mark("handled")];
    let mut deaf = group("d", 1, vec![sleep(1_000), mark("woke"), Op::PipeRead(0, 1)]);
    deaf.start_ns = Some(0);
    let all = |at| vec![sleep(at), Op::Signal(Role::All(0)), Op::Signal(Role::All(1))];
    let mut killer = all(100);
    killer.extend(all(400));
    killer.extend(all(900));
    killer.extend([sleep(100), Op::PipeWrite(0, 2)]);
    let w = workload(vec![sleeper, deaf, group("k", 1, killer)]);
    assert_eq!(
        log(&w, 0, 5_000),
        [
            "100 d: woke 0",
            "110 s: handled 0",
            "110 s: woke 0",
            "510 s: handled 1",
            "1110 s: timer 0",
            "1410 s: handled 2",
            "1500 k ends",
            "1500 d ends",
            "1500 s: read 0",
            "1500 s ends",
        ],
        "the timer's expiry stays where it was; without a handler only the sleep is cut short"
    );
}

#[test]
fn children_are_waited_for() {
    let mut child = group("c", 2, vec![run(50)]);
    child.start_ns = None;
    let again = Op::Loop(Some(2), vec![Op::Fork(0), Op::WaitChildren, mark("reaped")]);
    let w = workload(vec![child, group("p", 1, vec![again])]);
    let mut toy = Toy::new(&w, 0, 8);
    toy.until(1_000).unwrap();
    assert_eq!(
        toy.lines(),
        [
            "50 c/0 ends",
            "50 c/1 ends",
            "50 p: reaped 0",
            "100 c/2 ends",
            "100 c/3 ends",
            "100 p: reaped 1",
            "100 p ends"
        ]
    );
    assert_eq!((toy.states.len(), toy.actors.living()), (3, 0), "numbers are used again");
}

#[test]
fn a_parent_that_is_gone_is_not_signalled() {
    let mut child =
        group("c", 1, vec![run(50), Op::Signal(Role::Parent), run(50), Op::Signal(Role::Parent)]);
    child.start_ns = None;
    let mut parent = group("p", 1, vec![Op::Fork(0), run(70)]);
    parent.on_signal = vec![mark("child calls")];
    let lines = log(&workload(vec![child, parent]), 0, 1_000);
    assert_eq!(lines, ["50 p: child calls 0", "70 p ends", "100 c ends"]);
}

#[test]
fn the_slice_program_reports_when_all_have_answered() {
    let mut hogs = group("hog", 3, vec![Op::RunForever]);
    hogs.on_signal = vec![mark("answer"), Op::Send(0)];
    let report = vec![sleep(1_000), Op::Signal(Role::All(0)), Op::Receive(0, 3), mark("report")];
    let w = workload(vec![hogs, group("parent", 1, vec![Op::Loop(None, report)])]);
    let mut toy = Toy::new(&w, 1, 1);
    toy.until(10_000).unwrap();
    let reports: Vec<u64> =
        toy.log.iter().filter(|(_, text)| text.contains("report")).map(|(time, _)| *time).collect();
    let answers = toy.log.iter().filter(|(_, text)| text.contains("answer")).count();
    assert_eq!(answers, 3 * reports.len());
    assert!(reports.len() >= 8, "{reports:?}");
    for pair in reports.windows(2) {
        // One CPU, slices of 10: the sleep, its wake-up behind three slices, and the answers of three hogs in turn.
        assert!((1_030..1_150).contains(&(pair[1] - pair[0])), "{reports:?}");
    }
    assert_eq!(toy.used_ns.iter().sum::<u64>(), 10_000, "the hogs leave no idle time");
}

#[test]
fn loops_without_time_end() {
    let w = workload(vec![group("spin", 1, vec![Op::Loop(None, vec![mark("m")])])]);
    assert!(
        matches!(Toy::new(&w, 0, 1).until(10), Err(ActorError::EndlessOps { task }) if task == "spin")
    );
    let w = workload(vec![group("empty", 1, vec![Op::Loop(None, vec![])])]);
    assert!(matches!(Toy::new(&w, 1, 1).until(10), Err(ActorError::EndlessOps { .. })));
}

#[test]
fn actors_that_keep_each_other_busy_without_time_end() {
    let w = workload(vec![group("polite", 2, vec![Op::Loop(None, vec![Op::Yield])])]);
    let mut actors = Actors::new(&w, 1, &costs(0)).unwrap();
    let (a, b) = (actors.spawn(0, None), actors.spawn(0, None));
    let mut effects = Vec::new();
    let error = loop {
        let both = [actors.advance(a, 5, &mut effects), actors.advance(b, 5, &mut effects)];
        if let Some(error) = both.into_iter().find_map(Result::err) {
            break error;
        }
    };
    assert!(matches!(*error, ActorError::EndlessInstant { time_ns: 5, .. }));
}

#[test]
fn forks_have_a_limit() {
    let w = workload(vec![group("bomb", 1, vec![Op::Loop(None, vec![Op::Fork(0)])])]);
    let mut actors = Actors::new(&w, 1, &costs(0)).unwrap();
    actors.set_limit(100);
    let bomb = actors.spawn(0, None);
    let error = actors.advance(bomb, 0, &mut Vec::new()).unwrap_err();
    assert_eq!(*error, ActorError::TooManyTasks { task: "bomb".to_owned(), limit: 100 });
}

#[test]
fn contradictions_are_refused() {
    let refused = |w: Workload| Actors::new(&w, 1, &costs(0)).unwrap_err().to_string();
    for op in [
        Op::TimerWait(9, 1),
        Op::PipeRead(9, 1),
        Op::Send(9),
        Op::Receive(9, 1),
        Op::Fork(9),
        Op::Signal(Role::All(9)),
    ] {
        let error = refused(workload(vec![group("a", 1, vec![op])]));
        assert!(error.contains("task `a` uses") && error.contains("number 9"), "{error}");
    }
    let deep = (0..100).fold(run(1), |inner, _| Op::Loop(None, vec![inner]));
    assert!(refused(workload(vec![group("a", 1, vec![deep])])).contains("64 loops"));
    let mut w = workload(vec![]);
    w.timers[0].period_ns = 0;
    assert!(refused(w).contains("period of 0"));
}

#[test]
fn draws_of_one_task_do_not_depend_on_others() {
    let uniform = || {
        group("u", 2, vec![Op::Loop(None, vec![Op::Run(Duration::Uniform { low: 10, high: 99 })])])
    };
    let draws = |w: &Workload, skip: usize, spec: usize| {
        let mut actors = Actors::new(w, 9, &costs(0)).unwrap();
        for _ in 0..skip {
            actors.spawn(spec, None);
        }
        let actor = actors.spawn(spec, None);
        let mut effects = Vec::new();
        (0..20).map(|_| actors.advance(actor, 0, &mut effects).unwrap()).collect::<Vec<Need>>()
    };
    let one = draws(&workload(vec![uniform()]), 0, 0);
    assert_eq!(one, draws(&workload(vec![uniform(), group("other", 3, vec![run(1)])]), 0, 0));
    assert_ne!(one, draws(&workload(vec![uniform()]), 1, 0));
    assert!(one.iter().all(|need| matches!(need, Need::Cpu { ns: 10..=99 })));
}

/// 278 messages of 100 bytes fill a socket's buffer of Linux' size; the writer is woken when a quarter of it is left:
/// 69 of them.
#[test]
fn a_socket_wakes_its_writer_when_three_quarters_are_free() {
    let writer = vec![Op::Loop(Some(300), vec![Op::PipeWrite(0, 100), mark("written")])];
    let reader =
        vec![run(1_000), Op::Loop(Some(300), vec![Op::PipeRead(0, 100), mark("read"), run(10)])];
    let mut w = workload(vec![group("w", 1, writer), group("r", 1, reader)]);
    let (name, carrier) = ("chat/a".to_owned(), fairground_workload::Carrier::Socket);
    w.pipes[0] = fairground_workload::Pipe { name, capacity: 212_992, carrier };
    let lines = log(&w, 0, 10_000);
    let written = |before: u64| {
        let time = |line: &str| line.split(' ').next().and_then(|time| time.parse().ok());
        let early = lines.iter().filter(|line| time(line).is_some_and(|time: u64| time < before));
        early.filter(|line| line.contains("written")).count()
    };
    // 278 − 69 = 209 reads, the first at 1,000 and one each 10 ns.
    assert_eq!(written(1_000 + 208 * 10), 278);
    assert_eq!(written(1_000 + 208 * 10 + 1), 300);
    assert_eq!(lines.last().map(String::as_str), Some("4000 r ends"));
}
