//! Tasks that share nothing: hogs, sleepers, mixes of them, and the load of the speed benchmark.

use super::spec::{Call, Token};
use super::{COUNT_MAX, Entry, Parameter, group, independent};
use crate::limits::{CPU_MAX, PARTS_MAX, TIME_MAX_NS};
use crate::model::{Duration, Op, Program, TaskSpec, Workload};
use crate::units::duration_text;

const CPUS: Parameter =
    Parameter { name: "cpus", default: "any", help: "the CPUs on which they may run, as in 0-3" };

/// CPU-bound tasks.
pub(super) const HOGS: Entry = Entry {
    name: "hogs",
    arguments: "N[:nice]…",
    summary: "N tasks that compute for ever; with nice values, N of each",
    source: "`while(1);` of the 2007 mails on SMP fairness",
    limits: "no cache footprint: hogs on cold caches are as fast as on warm ones",
    parameters: &[
        Parameter { name: "nice", default: "0", help: "their nice value, -20 to 19" },
        CPUS,
    ],
    build: hogs,
};

/// The program of the 2007 mails.
pub(super) const LOOP: Entry = Entry {
    name: "loop",
    arguments: "N",
    summary: "the endless loop of 2007: N equal tasks that compute for ever",
    source: "`while(1);` of the mails on SMP fairness: 3 on 2 CPUs, 10 on 8",
    limits: "look at the shares after seconds: a balancer acts in its own time",
    parameters: &[],
    build: endless,
};

/// Tasks that run a little and sleep.
pub(super) const SLEEPERS: Entry = Entry {
    name: "sleepers",
    arguments: "N",
    summary: "N tasks that run and sleep in turn",
    source: "interactive tasks of any thread on fairness",
    limits: "no cache footprint",
    parameters: &[
        Parameter {
            name: "run",
            default: "100us",
            help: "CPU time between two sleeps, fixed or from..to; 0s: none",
        },
        Parameter { name: "sleep", default: "400us", help: "length of each sleep" },
        Parameter { name: "nice", default: "0", help: "their nice value, -20 to 19" },
        CPUS,
    ],
    build: sleepers,
};

/// The notation of the runs of real kernels.
pub(super) const MIX: Entry = Entry {
    name: "mix",
    arguments: "[SECONDS ]count:nice:run_us:sleep_us …",
    summary: "groups of hogs (run and sleep 0) and of tasks that run and sleep, one word each",
    source: "the notation of the recorded runs of real kernels in this repository",
    limits: "run and sleep only",
    parameters: &[],
    build: mix,
};

/// The load of the speed benchmark.
pub(super) const BENCH_LOAD: Entry = Entry {
    name: "bench-load",
    arguments: "hogs|sleepers",
    summary: "the speed benchmark: per CPU 2 hogs, or 4 tasks that run 100 us and sleep 400 us",
    source: "the speed benchmark of this project (`make bench`)",
    limits: "a load for the simulator, not for a scheduler: all tasks are equal",
    parameters: &[Parameter { name: "cpus", default: "8", help: "how many CPUs to load" }],
    build: bench_load,
};

fn endless(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count("the number of tasks", COUNT_MAX);
    independent(
        "equal tasks that compute for ever".to_owned(),
        vec![group("loop", count, vec![Op::RunForever])],
    )
}

/// An endless loop of a run and a sleep; a part of 0 is left out.
pub(super) fn run_and_sleep(run: Duration, sleep: Duration) -> Program {
    const NONE: Duration = Duration::Fixed(0);
    match (run, sleep) {
        (_, NONE) => vec![Op::RunForever],
        (NONE, _) => vec![Op::Loop(None, vec![Op::Sleep(sleep)])],
        _ => vec![Op::Loop(None, vec![Op::Run(run), Op::Sleep(sleep)])],
    }
}

fn nice(call: &mut Call<'_, '_>) -> i8 {
    match call.value("nice") {
        Some(piece) => nice_of(call, &piece),
        None => 0,
    }
}

fn nice_of(call: &mut Call<'_, '_>, piece: &Token<'_>) -> i8 {
    i8::try_from(call.number("a nice value", piece, -20, 19)).unwrap_or(0)
}

fn hogs(call: &mut Call<'_, '_>) -> Workload {
    let whole = call.arguments.clone();
    let values = match &whole {
        Some(arguments) => arguments.split(|c| c == ':'),
        None => Vec::new(),
    };
    call.arguments = values.first().cloned();
    let count = call.count("the number of hogs", COUNT_MAX);
    let mut nices: Vec<i8> = values.iter().skip(1).map(|piece| nice_of(call, piece)).collect();
    if let Some(piece) = call.value("nice") {
        if nices.is_empty() {
            nices.push(nice(call));
        } else {
            let help = "write either `hogs:2:0:5` or `hogs:2,nice=5`".to_owned();
            call.problem(piece.span, "nice values are given twice".to_owned(), help);
        }
    }
    let mut distinct = nices.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() < nices.len()
        && let Some(piece) = whole
    {
        let help = "write each nice value once; N is the number of hogs of each".to_owned();
        call.problem(piece.span, "a nice value comes twice".to_owned(), help);
        nices = distinct;
    }
    if nices.is_empty() {
        nices.push(0);
    }
    let cpus = call.cpus("cpus");
    let several = nices.len() > 1;
    let mut tasks: Vec<TaskSpec> = Vec::with_capacity(nices.len());
    for nice in nices {
        let name = if several { format!("hog-nice{nice}") } else { "hog".to_owned() };
        let mut hog = group(&name, count, vec![Op::RunForever]);
        hog.nice = nice;
        hog.cpus.clone_from(&cpus);
        tasks.push(hog);
    }
    independent("tasks that compute for ever".to_owned(), tasks)
}

fn sleepers(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count("the number of sleepers", COUNT_MAX);
    let run = call.duration("run", 100_000);
    let sleep = call.duration("sleep", 400_000);
    if sleep == Duration::Fixed(0)
        && let Some(piece) = call.value("sleep")
    {
        let help = "write a time above 0, or use `hogs`".to_owned();
        call.problem(piece.span, "a sleeper must sleep".to_owned(), help);
    }
    let mut sleeper = group("sleeper", count, run_and_sleep(run, sleep));
    sleeper.nice = nice(call);
    sleeper.cpus = call.cpus("cpus");
    let description =
        format!("tasks that run {} and sleep {}", duration_text(run), duration_text(sleep));
    independent(description, vec![sleeper])
}

fn mix<'t>(call: &mut Call<'t, '_>) -> Workload {
    let words = match &call.arguments {
        Some(arguments) => arguments.split(char::is_whitespace),
        None => Vec::new(),
    };
    let mut words: Vec<Token<'t>> = words.into_iter().filter(|w| !w.text.is_empty()).collect();
    let mut duration_ns = 10_000_000_000;
    if words.first().is_some_and(|word| !word.text.contains(':')) {
        let seconds = words.remove(0);
        let number = call.number("the number of seconds", &seconds, 1, 1_000_000);
        duration_ns = u64::try_from(number).unwrap_or(1) * 1_000_000_000;
        call.duration = Some((duration_ns, seconds));
    }
    if words.is_empty() {
        let help = format!("write {}, as in `mix 8 2:0:0:0 1:5:0:0`", call.usage());
        call.problem(call.name.span.clone(), "the mix has no groups".to_owned(), help);
    }
    if let Some(word) = words.get(PARTS_MAX) {
        let message = format!("more than PARTS_MAX, {PARTS_MAX}, groups in one mix");
        call.problem(word.span.clone(), message, "use counts, or write a file".to_owned());
        words.truncate(PARTS_MAX);
    }
    let mut tasks: Vec<TaskSpec> = Vec::with_capacity(words.len());
    for word in words {
        if let Some(mut task) = mix_group(call, &word) {
            task.name = super::free_name(tasks.iter().map(|task| &task.name), task.name);
            tasks.push(task);
        }
    }
    let mut workload = independent("a mix of hogs and sleepers".to_owned(), tasks);
    workload.duration_ns = duration_ns;
    workload
}

/// `count:nice:run_us:sleep_us`.
fn mix_group(call: &mut Call<'_, '_>, word: &Token<'_>) -> Option<TaskSpec> {
    const US_MAX: i64 = (TIME_MAX_NS / 1_000) as i64;
    let parts = word.split(|c| c == ':');
    let [count, nice, run_us, sleep_us] = parts.as_slice() else {
        let message = format!("`{}` is not count:nice:run_us:sleep_us", word.text);
        let help = "write four numbers, as in `2:0:100:900`, or `2:0:0:0` for hogs".to_owned();
        call.problem(word.span.clone(), message, help);
        return None;
    };
    let count = call.number("the count", count, 1, COUNT_MAX);
    let nice = nice_of(call, nice);
    let run_us = call.number("the run in us", run_us, 0, US_MAX);
    let sleep_us = call.number("the sleep in us", sleep_us, 0, US_MAX);
    let kind = if sleep_us == 0 { "hog" } else { "sleeper" };
    let name = if nice == 0 { kind.to_owned() } else { format!("{kind}-nice{nice}") };
    let ns = |us: i64| u64::try_from(us).unwrap_or(0) * 1_000;
    let count = u32::try_from(count).unwrap_or(1);
    let mut task = group(
        &name,
        count,
        run_and_sleep(Duration::Fixed(ns(run_us)), Duration::Fixed(ns(sleep_us))),
    );
    task.nice = nice;
    Some(task)
}

fn bench_load(call: &mut Call<'_, '_>) -> Workload {
    let cpus = match call.value("cpus") {
        Some(piece) => call.number("the number of CPUs", &piece, 1, i64::from(CPU_MAX) + 1),
        None => 8,
    };
    let cpus = u32::try_from(cpus).unwrap_or(1);
    let task = match call.arguments.as_ref().map(|piece| piece.text) {
        Some("hogs") => group("hog", 2 * cpus, vec![Op::RunForever]),
        Some("sleepers") => group(
            "sleeper",
            4 * cpus,
            run_and_sleep(Duration::Fixed(100_000), Duration::Fixed(400_000)),
        ),
        other => {
            let span = call.arguments.as_ref().unwrap_or(&call.name).span.clone();
            let message = match other {
                Some(text) => format!("`bench-load` has no kind `{text}`"),
                None => "the kind of load is missing".to_owned(),
            };
            let help = "write `bench-load:hogs` or `bench-load:sleepers`".to_owned();
            call.problem(span, message, help);
            group("hog", 1, vec![Op::RunForever])
        }
    };
    let mut workload = independent(format!("the speed benchmark for {cpus} CPUs"), vec![task]);
    workload.duration_ns = 1_000_000_000;
    workload
}
