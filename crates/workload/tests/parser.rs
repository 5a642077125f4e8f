//! The reader: defaults, valid files, round trips, and no panic on any input.

use fairground_workload::{
    Carrier, CpuList, Duration, Op, Pipe, Queue, Role, SchedPolicy, TaskSpec, Timer, Workload,
    check, parse, to_toml,
};
use proptest::prelude::*;

const GOOD: &str = r#"
format = 1
name = "all of it"
description = "every operation once"
duration = "1.5s"

[[pipe]]
name = "data"
capacity = 4096

[[queue]]
name = "answers"
capacity = 4
initial = 1

[[timer]]
name = "tick"
period = "1ms"

[[task]]
name = "parent"  # renamed below
nice = -5
cpus = "0-3,8"
start = "10us"
program = [
  { fork = "worker" },
  { loop = [{ run = "100us..200us" }, { timer = "tick" }, { signal = "worker" }], times = 3 },
  { receive = { queue = "answers", count = 2 } },
  { write = { pipe = "data", bytes = 64 } },
  { nice = 5 },
  { cpus = "0" },
  "yield",
  { signal = "worker/1" },
  "wait",
  { mark = "end" },
  "exit",
]
on_signal = [{ mark = "signalled" }]

[[task]]
name = "worker"
count = 2
program = [{ sleep = "1ms" }, { send = "answers" }, { read = "data" }, { signal = "parent" }]
"#;

fn good() -> String {
    GOOD.replace("\"parent\"  # renamed below", "\"main\"")
}

#[test]
fn every_operation() {
    let workload = parse("good.toml", &good()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(workload.duration_ns, 1_500_000_000);
    assert_eq!(workload.tasks[0].cpus, Some(CpuList(vec![(0, 3), (8, 8)])));
    assert_eq!(workload.tasks[0].program.len(), 11);
    assert_eq!(workload.tasks[1].start_ns, None);
    let again = parse("again.toml", &to_toml(&workload));
    assert_eq!(again.as_ref(), Ok(&workload));
}

#[test]
fn no_task_may_be_called_parent() {
    let error = parse("parent.toml", GOOD).expect_err("`parent` is taken");
    assert!(error.to_string().contains("cannot be called `parent`"), "{error}");
}

fn with_tasks(tasks: &str) -> Result<Workload, String> {
    let head = "format = 1\nname = \"w\"\nduration = \"1s\"\n\
                [[pipe]]\nname = \"p\"\ncapacity = 8\n[[pipe]]\nname = \"q\"\n\
                [[queue]]\nname = \"a\"\n[[queue]]\nname = \"b\"\n";
    parse("w.toml", &format!("{head}{tasks}")).map_err(|error| error.to_string())
}

fn task(name: &str, program: &str) -> String {
    format!("[[task]]\nname = \"{name}\"\nprogram = [{program}]\n")
}

#[test]
fn cyclic_waits() {
    let cases = [
        // A task that only it could wake.
        task("x", "{ receive = \"a\" }, { send = \"a\" }"),
        // Two pipes, both full: each writes more than fits before it reads.
        task("x", "{ write = { pipe = \"p\", bytes = 9 } }, { read = \"q\" }")
            + &task("y", "{ write = { pipe = \"q\", bytes = 70000 } }, { read = \"p\" }"),
        // The parent waits for its child to end, the child for the parent's message.
        task("x", "{ fork = \"y\" }, \"wait\", { send = \"a\" }")
            + &task("y", "{ receive = \"a\" }"),
        // In the second iteration only.
        task("x", "{ loop = [{ send = \"a\" }, { receive = \"b\" }], times = 3 }")
            + &task(
                "y",
                "{ receive = { queue = \"a\", count = 1 } }, { send = \"b\" }, \
                 { receive = { queue = \"a\", count = 2 } }, { send = \"b\" }",
            ),
        // Both send first, and nothing is held.
        task("x", "{ send = \"c\" }, { receive = \"d\" }")
            + &task("y", "{ send = \"d\" }, { receive = \"c\" }")
            + "[[queue]]\nname = \"c\"\ncapacity = 0\n[[queue]]\nname = \"d\"\ncapacity = 0\n",
        // A hog beside them changes nothing.
        task("x", "{ receive = \"a\" }, { send = \"b\" }")
            + &task("y", "{ receive = \"b\" }, { send = \"a\" }")
            + &task("z", "{ run = \"forever\" }"),
        // Through a handler: `y` would answer a signal that `x` sends too late.
        task("x", "{ receive = \"a\" }, { signal = \"y\" }")
            + &task("y", "{ receive = \"b\" }, { send = \"b\" }")
            + "on_signal = [{ send = \"a\" }]\n",
    ];
    let messages = cases.map(|case| with_tasks(&case).expect_err("a cyclic wait"));
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn waits_that_are_no_cycle() {
    for case in [
        // A server without clients at the end.
        task("x", "{ loop = [{ send = \"a\" }, { receive = \"b\" }], times = 100 }")
            + &task("y", "{ loop = [{ receive = \"a\" }, { run = \"1us\" }, { send = \"b\" }] }"),
        // A parent that waits for a child that runs forever.
        task("x", "{ fork = \"y\" }, \"wait\"") + &task("y", "{ run = \"forever\" }"),
        // A ring that runs forever.
        task("x", "{ loop = [{ write = \"p\" }, { read = \"q\" }] }")
            + &task("y", "{ loop = [{ read = \"p\" }, { write = \"q\" }] }"),
        // A queue that has its first message.
        task("x", "{ loop = [{ receive = \"a\" }, { run = \"1us\" }, { send = \"a\" }] }")
            + &task("y", "{ send = \"a\" }"),
        // A queue that holds nothing: the sender comes first, then the receiver.
        task("x", "{ loop = [{ send = \"none\" }, { run = \"3us\" }], times = 2 }")
            + &task("y", "{ run = \"2us\" }, { receive = { queue = \"none\", count = 2 } }")
            + "[[queue]]\nname = \"none\"\ncapacity = 0\n",
        // The answer comes from a handler.
        task("x", "{ signal = \"y\" }, { receive = \"a\" }")
            + &task("y", "{ run = \"forever\" }")
            + "on_signal = [{ send = \"a\" }]\n",
        // More is written than fits, and it is read in parts.
        task("x", "{ write = { pipe = \"p\", bytes = 100 } }")
            + &task("y", "{ loop = [{ read = { pipe = \"p\", bytes = 3 } }, { run = \"1us\" }] }"),
    ] {
        assert!(with_tasks(&case).is_ok(), "{case}\n{:?}", with_tasks(&case));
    }
}

#[test]
fn the_search_for_cycles_is_bounded() {
    // A million messages before the cycle: the search gives up, quickly and without a finding.
    let case = task(
        "x",
        "{ loop = [{ send = \"a\" }, { run = \"1ns\" }], times = 1000000 }, { receive = \"b\" }, { send = \"a\" }",
    ) + &task("y", "{ receive = { queue = \"a\", count = 1000001 } }, { send = \"b\" }");
    assert!(with_tasks(&case).is_ok());
}

#[test]
fn problems_of_the_whole_file() {
    let cases = [
        ("syntax", "format = 1\nname = \"x\nduration = 3s\n"),
        ("twice", "format = 1\nname = \"x\"\nname = \"y\"\nduration = \"1s\"\n"),
        ("empty", ""),
        ("format", "format = 2\nname = \"x\"\nduration = \"1s\"\ntask = 3\npipe = [1]\n"),
        ("no task", "format = 1\nname = \"x\"\nduration = \"0s\"\ntask = []\n"),
    ];
    let messages = cases.map(|(name, text)| match parse("w.toml", text) {
        Ok(_) => panic!("{name} is bad on purpose"),
        Err(error) => format!("### {name}\n{error}\n"),
    });
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn forks_that_never_end_or_never_start() {
    let circle = task("x", "{ run = \"1us\" }, { fork = \"y\" }") + &task("y", "{ fork = \"x\" }");
    let error = with_tasks(&circle).expect_err("a circle");
    insta::assert_snapshot!(error);
    let mut workload = with_tasks(&task("x", "{ run = \"1us\" }")).expect("it is good");
    workload.tasks[0].start_ns = None;
    insta::assert_snapshot!(check(&workload).expect_err("it never starts").to_string());
}

fn any_role() -> impl Strategy<Value = Role> {
    prop_oneof![
        (0_usize..3).prop_map(Role::All),
        (0_usize..3).prop_map(|group| Role::One(group, 0)),
        Just(Role::Parent),
    ]
}

/// Any workload of the right form; the checks decide whether it is valid.
fn any_workload() -> impl Strategy<Value = Workload> {
    let time = prop_oneof![1_u64..100, 1_000_u64..2_000_000, Just(1_500_000_000_u64)];
    let duration = (time.clone(), time.clone(), any::<bool>()).prop_map(|(a, b, fixed)| {
        if fixed || a == b {
            Duration::Fixed(a)
        } else {
            Duration::Uniform { low: a.min(b), high: a.max(b) }
        }
    });
    let cpus = (0_u32..8, 0_u32..8, any::<bool>()).prop_map(|(first, more, two)| {
        let last = first + more;
        CpuList(if two { vec![(first, last), (last + 2, last + 3)] } else { vec![(first, last)] })
    });
    let leaf = prop_oneof![
        duration.clone().prop_map(Op::Run),
        duration.clone().prop_map(Op::Sleep),
        duration.prop_map(Op::Busy),
        Just(Op::RunForever),
        (0_usize..2, 1_000_u64..1_002).prop_map(|(timer, ns)| Op::TimerWait(timer, ns)),
        (0_usize..2).prop_map(Op::TimerStart),
        (0_usize..2, 1_u64..100).prop_map(|(pipe, bytes)| Op::PipeWrite(pipe, bytes)),
        (0_usize..2, 1_u64..100).prop_map(|(pipe, bytes)| Op::PipeRead(pipe, bytes)),
        (0_usize..2).prop_map(Op::Send),
        (0_usize..2, 1_u32..4).prop_map(|(queue, count)| Op::Receive(queue, count)),
        any_role().prop_map(Op::Signal),
        (1_usize..3).prop_map(Op::Fork),
        Just(Op::WaitChildren),
        Just(Op::Yield),
        (-20_i8..=19).prop_map(Op::SetNice),
        any_policy().prop_map(Op::SetPolicy),
        (0_u64..1_000_000_000).prop_map(Op::SetSlice),
        cpus.clone().prop_map(Op::SetAffinity),
        "[ -~äß\"\\\\]{0,8}".prop_map(Op::Mark),
        Just(Op::Exit),
    ];
    let op = leaf.prop_recursive(3, 24, 4, |op| {
        (prop::option::of(1_u64..5), prop::collection::vec(op, 1..4))
            .prop_map(|(times, body)| Op::Loop(times, body))
    });
    let program = prop::collection::vec(op, 1..6);
    let handler = prop_oneof![3 => Just(Vec::new()), 1 => program.clone()];
    let class = (any_policy(), -20_i8..=19);
    let task = (1_u32..3, class, prop::option::of(cpus), 0_u64..3_000, program, handler);
    (prop::collection::vec(task, 3), time, prop::option::of(0_u64..9)).prop_map(
        |(tasks, time_ns, capacity)| Workload {
            name: "any \"workload\"".into(),
            description: "with \\ and ä".into(),
            duration_ns: time_ns,
            recorded: capacity.is_some(),
            hangs: time_ns % 2 == 1,
            tasks: with_starts(tasks),
            pipes: two_pipes(),
            queues: [0, 1]
                .map(|initial| Queue {
                    name: format!("queue {initial}"),
                    capacity: capacity.map(|capacity| capacity.max(initial)),
                    initial,
                    sync: initial == 1,
                })
                .to_vec(),
            timers: two_timers(time_ns, capacity.is_some()),
            ..Workload::default()
        },
    )
}

fn two_timers(period_ns: u64, shared: bool) -> Vec<Timer> {
    [(period_ns, false), (1_000, true)]
        .into_iter()
        .enumerate()
        .map(|(index, (period_ns, relative))| Timer {
            name: format!("timer {index}"),
            period_ns,
            relative,
            shared,
        })
        .collect()
}

fn two_pipes() -> Vec<Pipe> {
    let pipe = |capacity: u64| {
        let name = format!("pipe {capacity}");
        Pipe { name, capacity, carrier: Carrier::Pipe }
    };
    [1, 65_536].map(pipe).to_vec()
}

fn any_policy() -> impl Strategy<Value = SchedPolicy> {
    prop_oneof![
        3 => Just(SchedPolicy::Other),
        1 => (1_u8..=99).prop_map(SchedPolicy::Fifo),
        1 => (1_u8..=99).prop_map(SchedPolicy::Rr),
    ]
}

type Parts = (u32, (SchedPolicy, i8), Option<CpuList>, u64, Vec<Op>, Vec<Op>);

/// Forked groups have no start; every other group has one.
fn with_starts(parts: Vec<Parts>) -> Vec<TaskSpec> {
    fn forks(program: &[Op], group: usize) -> bool {
        program.iter().any(|op| match op {
            Op::Fork(forked) => *forked == group,
            Op::Loop(_, body) => forks(body, group),
            _ => false,
        })
    }
    let forked: Vec<bool> = (0..parts.len())
        .map(|group| parts.iter().any(|part| forks(&part.4, group) || forks(&part.5, group)))
        .collect();
    let task =
        |(index, (count, (policy, nice), cpus, start_ns, program, on_signal)): (usize, Parts)| {
            let start_ns = if forked[index] { None } else { Some(start_ns) };
            let spec = TaskSpec::new(format!("task {index}"), count, start_ns, program);
            TaskSpec { policy, nice, cpus, on_signal, ..spec }
        };
    parts.into_iter().enumerate().map(task).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The writer and the reader agree: a valid workload is read back the same, and an invalid one is refused for the
    /// same reasons, with lines.
    #[test]
    fn a_workload_survives_its_text(workload in any_workload()) {
        let text = to_toml(&workload);
        match (check(&workload), parse("w.toml", &text)) {
            (Ok(()), again) => prop_assert_eq!(again, Ok(workload), "{}", text),
            (Err(expected), Err(found)) => {
                let messages = |error: &fairground_workload::WorkloadError| {
                    let mut messages: Vec<_> =
                        error.diagnostics.iter().map(|d| d.message.clone()).collect();
                    messages.sort();
                    messages.dedup();
                    messages
                };
                prop_assert_eq!(messages(&expected), messages(&found), "{}", text);
                prop_assert!(found.diagnostics.iter().all(|d| d.line > 0));
            }
            (Err(expected), Ok(_)) => prop_assert!(false, "accepted: {expected}\n{text}"),
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = parse("w.toml", &text);
    }

    /// A valid file with a few bytes changed, removed or doubled.
    #[test]
    fn no_damaged_file_panics(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..30, "[ -~\n]{0,6}"), 1..5)
    ) {
        let mut text: Vec<char> = good().chars().collect();
        for (at, length, new) in edits {
            let from = at.index(text.len());
            let to = (from + length).min(text.len());
            text.splice(from..to, new.chars());
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = parse("w.toml", &text) {
            prop_assert!(!error.diagnostics.is_empty());
            for diagnostic in &error.diagnostics {
                prop_assert!(!diagnostic.help.is_empty(), "{}", diagnostic);
                prop_assert!(diagnostic.line > 0, "{}", diagnostic);
            }
        }
    }

    /// The words of the format in any order.
    #[test]
    fn no_likely_file_panics(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "format = 1\n", "name = \"w\"\n", "duration = \"1s\"\n", "[[task]]\n", "[[pipe]]\n", "[[queue]]\n",
                "program = [", "]\n", "{ run = \"1ms\" }", ", ", "{ loop = [", "] }", "], times = 0 }",
                "{ receive = \"w\" }", "{ send = \"w\" }", "{ fork = \"w\" }", "\"wait\"", "count = 3\n", "nice = 1\n",
                "on_signal = [", "{ signal = \"w/0\" }", "cpus = \"0\"\n", "start = \"1s\"\n",
            ]),
            0..40,
        )
    ) {
        let _ = parse("w.toml", &words.concat());
    }
}

#[test]
fn deep_nesting_is_an_error_not_an_overflow() {
    for depth in [10, 17, 40, 500, 20_000] {
        let program = format!(
            "{}{{ run = \"1us\" }}{}",
            "{ loop = [".repeat(depth),
            "], times = 2 }".repeat(depth)
        );
        let result = with_tasks(&task("x", &program));
        assert_eq!(result.is_ok(), depth <= 16, "{depth}");
    }
}
