//! Tasks that share nothing: hogs, sleepers, mixes of them, and the load of the speed benchmark.

use super::parts::{COUNT_MAX, group, run_and_sleep, seconds};
use super::spec::{CPUS, Call, Entry, NICE, Token, parameter};
use crate::join::free_name;
use crate::limits::{CPU_MAX, TIME_MAX_NS};
use crate::model::{Op, TaskSpec, Workload};
use crate::units::{Duration, duration_text};

/// CPU-bound tasks.
pub(super) const HOGS: Entry = Entry {
    name: "hogs",
    arguments: "N[:nice]…",
    summary: "N tasks that compute for ever; with nice values, N of each",
    source: "`while(1);` of the 2007 mails on SMP fairness",
    limits: "no cache footprint: hogs on cold caches are as fast as on warm ones",
    parameters: &[NICE, CPUS],
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
    summary: "N tasks that alternately run and sleep",
    source: "interactive tasks of any thread on fairness",
    limits: "no cache footprint",
    parameters: &[
        parameter("run", "100us", "CPU time between two sleeps, fixed or from..to; 0s: none"),
        parameter("sleep", "400us", "length of each sleep"),
        NICE,
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
    parameters: &[parameter("cpus", "8", "how many CPUs to load")],
    build: bench_load,
};

fn endless(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count("the number of tasks", 1..=COUNT_MAX);
    let tasks = vec![group("loop", count, vec![Op::RunForever])];
    seconds(10, "equal tasks that compute for ever", tasks)
}

fn hogs(call: &mut Call<'_, '_>) -> Workload {
    let whole = call.arguments.clone();
    let values = whole.as_ref().map_or(Vec::new(), |arguments| arguments.split(|c| c == ':'));
    call.arguments = values.first().cloned();
    let count = call.count("the number of hogs", 1..=COUNT_MAX);
    let mut nices: Vec<i8> =
        values.iter().skip(1).map(|piece| call.number("a nice value", piece, -20..=19)).collect();
    if nices.is_empty() {
        nices.push(call.nice());
    } else if let Some(piece) = call.value("nice") {
        let help = "write either `hogs:2:0:5` or `hogs:2,nice=5`".to_owned();
        call.problem(piece.span, "nice values are given twice".to_owned(), help);
    }
    let mut distinct = nices.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() < nices.len()
        && let Some(piece) = whole
    {
        let help = "write each nice value once; N is the number of hogs of each".to_owned();
        call.problem(piece.span, "a nice value comes twice".to_owned(), help);
    }
    let cpus = call.cpus();
    let several = nices.len() > 1;
    let hog = |nice: i8| {
        let name = if several { format!("hog-nice{nice}") } else { "hog".to_owned() };
        TaskSpec { nice, cpus: cpus.clone(), ..group(name, count, vec![Op::RunForever]) }
    };
    seconds(10, "tasks that compute for ever", nices.into_iter().map(hog).collect())
}

fn sleepers(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count("the number of sleepers", 1..=COUNT_MAX);
    let (run, sleep) = (call.duration("run"), call.duration("sleep"));
    if sleep == Duration::Fixed(0) {
        let help = "write a time above 0, or use `hogs`".to_owned();
        call.problem(call.setting("sleep").span, "a sleeper must sleep".to_owned(), help);
    }
    let mut sleeper = group("sleeper", count, run_and_sleep(run, sleep));
    (sleeper.nice, sleeper.cpus) = (call.nice(), call.cpus());
    let (run, sleep) = (duration_text(run), duration_text(sleep));
    seconds(10, format!("tasks that run {run} and sleep {sleep}"), vec![sleeper])
}

fn mix(call: &mut Call<'_, '_>) -> Workload {
    let mut words = call.words();
    let mut length_s = 10;
    if words.first().is_some_and(|word| !word.text.contains(':')) {
        let word = words.remove(0);
        length_s = call.number("the number of seconds", &word, 1..=1_000_000_u64);
        call.duration = Some((length_s * 1_000_000_000, word));
    }
    if words.is_empty() {
        let help = format!("write {}, as in `mix 8 2:0:0:0 1:5:0:0`", call.usage());
        call.problem(call.name.span.clone(), "the mix has no groups".to_owned(), help);
    }
    call.limit(&mut words, "groups in one mix", "use counts, or write a file");
    let mut tasks: Vec<TaskSpec> = Vec::with_capacity(words.len());
    for word in words {
        if let Some(mut task) = mix_group(call, &word) {
            task.name = free_name(tasks.iter().map(|task| &task.name), task.name);
            tasks.push(task);
        }
    }
    seconds(length_s, "a mix of hogs and sleepers", tasks)
}

/// `count:nice:run_us:sleep_us`.
fn mix_group(call: &mut Call<'_, '_>, word: &Token<'_>) -> Option<TaskSpec> {
    const US_MAX: u64 = TIME_MAX_NS / 1_000;
    let parts = word.split(|c| c == ':');
    let [count, nice, run_us, sleep_us] = parts.as_slice() else {
        let message = format!("`{}` is not count:nice:run_us:sleep_us", word.text);
        let help = "write four numbers, as in `2:0:100:900`, or `2:0:0:0` for hogs".to_owned();
        call.problem(word.span.clone(), message, help);
        return None;
    };
    let count = call.number("the count", count, 1..=COUNT_MAX);
    let nice: i8 = call.number("a nice value", nice, -20..=19);
    let run_ns = 1_000 * call.number("the run in us", run_us, 0..=US_MAX);
    let sleep_ns = 1_000 * call.number("the sleep in us", sleep_us, 0..=US_MAX);
    let kind = if sleep_ns == 0 { "hog" } else { "sleeper" };
    let name = if nice == 0 { kind.to_owned() } else { format!("{kind}-nice{nice}") };
    let program = run_and_sleep(Duration::Fixed(run_ns), Duration::Fixed(sleep_ns));
    Some(TaskSpec { nice, ..group(name, count, program) })
}

fn bench_load(call: &mut Call<'_, '_>) -> Workload {
    let cpus = call.integer("cpus", "the number of CPUs", 1..=CPU_MAX + 1);
    let (run, sleep) = (Duration::Fixed(100_000), Duration::Fixed(400_000));
    let task = match call.arguments.as_ref().map(|piece| piece.text) {
        Some("sleepers") => group("sleeper", 4 * cpus, run_and_sleep(run, sleep)),
        Some("hogs") => group("hog", 2 * cpus, vec![Op::RunForever]),
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
    seconds(1, format!("the speed benchmark for {cpus} CPUs"), vec![task])
}
