//! The workloads of the library.

use fairground_workload::{Op, describe, from_spec, library, parse, to_toml};

fn shown(spec: &str) -> String {
    let workload = from_spec(spec).unwrap_or_else(|error| panic!("{error}"));
    let text = to_toml(&workload);
    assert_eq!(parse("shown.toml", &text).as_ref(), Ok(&workload), "{text}");
    format!("{text}\n# {}\n", describe(&workload).join("\n# "))
}

#[test]
fn slice_as_a_file() {
    insta::assert_snapshot!(shown("slice:16"));
}

#[test]
fn the_fairness_tests_of_2007_as_files() {
    insta::assert_snapshot!(shown("massive_intr:200,nice=19"));
    insta::assert_snapshot!(shown("fairtest:4,run=14ms,sleep=6ms,asleep=1s"));
}

#[test]
fn slice_with_sleepers_on_their_own_cpus() {
    insta::assert_snapshot!(shown("slice:16,sleepers=spread"));
}

#[test]
fn a_joined_workload() {
    insta::assert_snapshot!(shown(
        "hogs:2,nice=5 + sleepers:3,run=20us,sleep=1ms,cpus=0-1 + slice:4 + hogs:1,duration=3s"
    ));
}

#[test]
fn a_mix_as_the_runs_of_real_kernels_name_it() {
    insta::assert_snapshot!(shown("mix 8 2:0:0:0 1:5:0:0 2:0:100:900"));
}

#[test]
fn slice_has_a_sleeper_for_each_eight_workers_or_fewer() {
    for workers in 1..=64 {
        for placement in ["free", "shared", "spread"] {
            let spec = format!("slice:{workers},sleepers={placement}");
            let workload = from_spec(&spec).unwrap_or_else(|error| panic!("{error}"));
            let sleepers = workload.tasks.iter().filter(|task| task.name.starts_with("sleeper"));
            let count: u32 = sleepers.map(|task| task.count).sum();
            assert_eq!(count, u32::div_ceil(workers, 8), "{spec}");
        }
    }
}

#[test]
fn slice_asks_as_many_workers_as_it_waits_for() {
    let workload = from_spec("slice:16").unwrap_or_else(|error| panic!("{error}"));
    let Some(Op::Loop(None, body)) = workload.tasks[0].program.last() else {
        panic!("the parent loops")
    };
    assert!(body.contains(&Op::Receive(0, workload.tasks[1].count)));
    assert_eq!(workload.tasks[1].on_signal, [Op::Mark("answer".into()), Op::Send(0)]);
}

#[test]
fn periodic_tasks_pipes_and_forks_as_files() {
    insta::assert_snapshot!(shown("periodic:3,period=4ms,load=75,nice=5,cpus=0-1"));
    insta::assert_snapshot!(shown("pipe:2,cpu=0"));
    insta::assert_snapshot!(shown("forkstorm:2,children=4,run=50us..150us"));
    insta::assert_snapshot!(shown("hackbench:1,fds=2,loops=5,rounds=3"));
}

#[test]
fn loops_chains_of_pipes_and_schbench_as_files() {
    insta::assert_snapshot!(shown("loop:10"));
    insta::assert_snapshot!(shown("pipe-chain:dd"));
    insta::assert_snapshot!(shown("pipe-chain:xterm,draw=50us + hogs:1"));
    insta::assert_snapshot!(shown("schbench:4,messages=2"));
    insta::assert_snapshot!(shown("netperf-stream:2,hold=2us"));
    insta::assert_snapshot!(shown("volano:1,users=2"));
    insta::assert_snapshot!(shown("aim7:2"));
    insta::assert_snapshot!(shown("dbench:3"));
    insta::assert_snapshot!(shown("hackbench:1,fds=2,loops=5,rounds=3,over=sockets"));
}

#[test]
fn an_unknown_chain_of_pipes_is_refused() {
    let error = from_spec("pipe-chain:cat").expect_err("there is none").to_string();
    assert!(error.contains("pipe-chain:xterm"), "{error}");
}

/// Law 3 of docs/laws/benchmarks.md: groups × senders × receivers × loops messages, as many read as written.
#[test]
fn hackbench_reads_what_it_writes() {
    for (spec, messages) in [("hackbench:20", 800_000), ("hackbench:2,fds=3,loops=7", 126)] {
        let workload = from_spec(spec).unwrap_or_else(|error| panic!("{error}"));
        let (mut written, mut read, mut tasks) = (0, 0, 0);
        for task in &workload.tasks[1..] {
            tasks += task.count;
            let Some(Op::Loop(Some(times), body)) = task.program.last() else {
                panic!("a loop of messages")
            };
            for op in body {
                match op {
                    Op::PipeWrite(_, 100) => written += times * u64::from(task.count),
                    Op::PipeRead(_, 100) => read += times * u64::from(task.count),
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!((written, read), (messages, messages), "{spec}");
        assert!(workload.tasks[0].program.iter().any(|op| {
            matches!(op, Op::Loop(None, body) if body.contains(&Op::Receive(0, tasks)))
        }));
    }
}

#[test]
fn the_benchmark_loads_every_cpu() {
    let count = |spec: &str| from_spec(spec).map(|w| w.tasks[0].count);
    assert_eq!(count("bench-load:hogs,cpus=256"), Ok(512));
    assert_eq!(count("bench-load:sleepers,cpus=256"), Ok(1024));
}

#[test]
fn the_list() {
    let lines = library::entries().iter().map(|entry| {
        let parameters = entry.parameters.iter();
        let parameters = parameters.map(|p| format!("    {}={}: {}\n", p.name, p.default, p.help));
        format!(
            "{}:{}  {}\n{}",
            entry.name,
            entry.arguments,
            entry.summary,
            parameters.collect::<String>()
        )
    });
    insta::assert_snapshot!(lines.collect::<String>());
}

#[test]
fn bad_specifications() {
    let specs = [
        "",
        "hogs",
        "hogs:",
        "hogs:x",
        "hogs:0",
        "hog:3",
        "hogs:3,nice",
        "hogs:3,nise=3",
        "hogs:3:21",
        "hogs:3:1,nice=2",
        "hogs:3:1:1",
        "hogs:3 + ",
        "sleepers:2,sleep=1 + hogs:2,cpus=a",
        "sleepers:2,sleep=0s",
        "slice:16,sleepers=spred",
        "slice:16,sleepers=spread,sleepers_cpu=1",
        "mix 8 2:0:0",
        "mix",
        "bench-load:hog",
        "hogs:1,duration=1s + hogs:1,duration=2s",
        "hogs:1000000 + hogs:1",
        "periodic:1,period=0s,load=101",
        "hackbench:0,fds=0",
        "pipe:0",
        "containers",
        "containers:web=0:3 web=5:x",
        "containers:/web:3 a//b:1",
        "containers:web=300",
        "containers:web=5:1 web=6:1",
    ];
    let messages = specs.map(|spec| match from_spec(spec) {
        Ok(_) => panic!("{spec} is bad on purpose"),
        Err(error) => format!("### {spec}\n{error}\n"),
    });
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_long_specification_is_refused_quickly() {
    for spec in ["hogs:1+".repeat(20_000), format!("mix {}", "1:0:0:0 ".repeat(20_000))] {
        let error = from_spec(&spec).expect_err("it is too long").to_string();
        assert!(error.contains("PARTS_MAX"), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn no_specification_panics(spec in "[a-z:,=+0-9 äß-]{0,30}") {
        let _ = from_spec(&spec);
    }

    #[test]
    fn no_likely_specification_panics(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "hogs", "sleepers", "slice", "mix", "bench-load", ":", ",", "+", "=", " ", "3", "-5", "0",
                "containers", "web", "web=3:4", "a/b=7:1", "/", "nice", "cpus", "1ms", "sleep", "run",
                "duration", "2:0:100:900", "spread", "hogs:2", "é",
            ]),
            0..12,
        )
    ) {
        let _ = from_spec(&parts.concat());
    }
}

#[test]
fn slice_with_workers_pinned_signals_and_awaits_them_all() {
    let workload = from_spec("slice:16,workers=7/9").unwrap_or_else(|error| panic!("{error}"));
    let workers: Vec<_> = workload.tasks.iter().filter(|t| t.name.starts_with("worker")).collect();
    let placed: Vec<_> = workers.iter().map(|t| (t.count, t.cpus.clone().map(|c| c.0))).collect();
    assert_eq!(placed, [(7, Some(vec![(0, 0)])), (9, Some(vec![(1, 1)]))]);
    let shown = shown("slice:16,workers=7/9");
    for line in ["signal = \"worker-0\"", "signal = \"worker-1\"", "count = 16 }"] {
        assert!(shown.contains(line), "`{line}` is missing from:\n{shown}");
    }
    assert!(from_spec("slice:16,workers=7/8").is_err());
    assert!(from_spec("slice:16,workers=all").is_err());
}

#[test]
fn containers_nest_and_stay_apart_when_joined() {
    let spec =
        "containers:alice=300 alice/build=50:8 bob:2 + containers:bob=7:1 alice/build:1 + hogs:1";
    let workload = from_spec(spec).unwrap_or_else(|error| panic!("{error}"));
    let tree: Vec<_> = workload.cgroups.iter().map(|c| (c.path.as_str(), c.weight)).collect();
    let expected = [
        ("/", 100),
        ("alice", 300),
        ("alice/build", 50),
        ("alice-2", 100),
        ("alice-2/build", 100),
        ("bob", 100),
        ("bob-2", 7),
    ];
    assert_eq!(tree, expected);
    let path = |cgroup: Option<usize>| cgroup.map(|cgroup| workload.cgroups[cgroup].path.as_str());
    let tasks: Vec<_> =
        workload.tasks.iter().map(|t| (t.name.as_str(), t.count, path(t.cgroup))).collect();
    let expected = [
        ("alice-build", 8, Some("alice/build")),
        ("bob", 2, Some("bob")),
        ("bob-2", 1, Some("bob-2")),
        ("alice-build-2", 1, Some("alice-2/build")),
        ("hog", 1, None),
    ];
    let mut sorted = (tasks.clone(), expected.to_vec());
    sorted.0.sort_unstable();
    sorted.1.sort_unstable();
    assert_eq!(sorted.0, sorted.1);
    let again = parse("again.toml", &to_toml(&workload));
    assert_eq!(again.as_ref().map(|w| &w.cgroups), Ok(&workload.cgroups));
    assert_eq!(again, Ok(workload));
}
