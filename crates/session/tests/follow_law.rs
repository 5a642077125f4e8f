//! The law of one's own trace: a scheduler that follows a recording of its own simulated run differs in no decision,
//! whatever was recorded. Of every benchmark of the library, under seven schedulers, on 1, 2 and 8 CPUs, with and
//! without calls and callbacks, as text, trace.dat and Perfetto: a part of them each time, all with
//! `FAIRGROUND_FOLLOW=all`. With `FAIRGROUND_DOCS=write`, too, the shares that such recordings decide are written into
//! the report.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::{env, fs};

use fairground_machine::MachineConfig;
use fairground_session::{
    Agreement, Decision, FollowPlan, Followed, MachineSpec, Plan, RunSpec, Scheduler, TargetSpec,
    Unwatched, find_workload,
};
use fairground_trace::{EventKind, Trace, read, write_ftrace, write_perfetto, write_trace_dat};

const SCHEDULERS: [&str; 7] = ["o1", "cfs_2_6_23", "cfs", "rfs", "sd", "eevdf", "fifo"];
const CPUS: [u32; 3] = [1, 2, 8];
const FORMS: [&str; 3] = ["text", "trace.dat", "Perfetto"];
/// Each benchmark of the library, and the simulated time of its runs.
const LOADS: [(&str, &str); 26] = [
    ("aim7:4", "20ms"),
    ("audio:2", "60ms"),
    ("bench-load:sleepers", "20ms"),
    ("containers:a=300:2 b=100:2", "60ms"),
    ("critical:4", "20ms"),
    ("dbench:6", "20ms"),
    ("drag", "40ms"),
    ("drawn:1.1,cpus=CPUS", "40ms"),
    ("fairtest:2", "60ms"),
    ("forkstorm:3", "20ms"),
    ("hackbench:1", "5ms"),
    ("hackbench:1 + hogs:2", "8ms"),
    ("hogs:5", "100ms"),
    ("lat_ctx:4", "8ms"),
    ("loop:3", "60ms"),
    ("massive_intr:6,start=5ms", "60ms"),
    ("mix:4:0:0:0 4:5:500:500", "40ms"),
    ("netperf-stream", "5ms"),
    ("periodic:4", "40ms"),
    ("pipe", "5ms"),
    ("pipe-chain:dd", "5ms"),
    ("schbench:4", "20ms"),
    ("slice:4,report=50ms", "100ms"),
    ("sleepers:4 + hogs:2", "60ms"),
    ("volano:1,users=4", "10ms"),
    ("yieldpair:2", "5ms"),
];
/// Of the runs, one in so many is followed each time.
const PART: usize = 21;
const REPORT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reports/follow-2026-11-29.md");

/// The events of a recording beyond switches, wake-ups and ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Content {
    callbacks: bool,
    calls: bool,
}

impl Content {
    const ALL: [Content; 4] = [
        Content { callbacks: true, calls: true },
        Content { callbacks: true, calls: false },
        Content { callbacks: false, calls: true },
        Content { callbacks: false, calls: false },
    ];

    /// The recording without the events that it does not have.
    fn of(self, trace: &Trace) -> Trace {
        let mut copy = trace.begun();
        trace.labels().iter().for_each(|label| {
            copy.intern(label);
        });
        trace.tasks().iter().skip(1).for_each(|task| {
            copy.add_task(task.clone());
        });
        for event in trace.events() {
            let is_kept = match event.kind {
                EventKind::Callback { .. } | EventKind::WakeSync { .. } => self.callbacks,
                EventKind::CallEnter { .. } | EventKind::CallExit { .. } => self.calls,
                _ => true,
            };
            if is_kept {
                copy.push(event);
            }
        }
        copy.end_ns = trace.end_ns;
        copy
    }
}

/// A file of a recording, read again.
fn as_file(trace: &Trace, form: &str) -> Trace {
    let mut bytes = Vec::new();
    match form {
        "text" => write_ftrace(trace, &mut bytes),
        "trace.dat" => write_trace_dat(trace, &mut bytes),
        _ => write_perfetto(trace, &[], &mut bytes),
    }
    .expect("memory takes it");
    read("recording", &*bytes).expect("it reads what it writes")
}

fn recorded(
    scheduler: &Scheduler,
    words: &str,
    cpus: u32,
    duration: &str,
) -> (Trace, MachineConfig) {
    let workload = find_workload(words).expect("a workload of the library");
    let duration = Some(duration.to_owned());
    let machine = MachineSpec { cpus: Some(cpus), duration, ..MachineSpec::default() };
    let target = TargetSpec { calls: true, ..TargetSpec::default() };
    let spec = RunSpec { machine, target, ..RunSpec::default() };
    let run = spec.resolve(&workload, true).expect("a machine");
    let plan = Plan::new(scheduler, &workload, run.machine.clone(), run.duration_ns);
    (plan.run(&Unwatched).expect("a run").trace, run.machine)
}

fn follow(scheduler: &Scheduler, trace: &Trace, machine: &MachineConfig) -> Followed {
    let plan = FollowPlan { trace, scheduler, settings: Vec::new(), machine: machine.clone() };
    plan.run(&Unwatched).expect("it follows")
}

fn load(name: &str) -> Scheduler {
    Scheduler::load(name, None, Default::default()).expect("a scheduler")
}

fn total(followed: &Followed) -> Agreement {
    let mut sum = Agreement::default();
    followed.agreement.iter().for_each(|(_, agreement)| sum += agreement);
    sum
}

/// The decisions by scheduler, CPUs, content and form.
type Shares = BTreeMap<(usize, u32, Content, &'static str), Agreement>;

/// Follows the recordings of a run; what differs is added to the failures.
fn try_run(
    (nth, scheduler): (usize, &Scheduler),
    ((words, duration), cpus): ((&str, &str), u32),
    cases: &[(Content, &'static str)],
    (shares, failures): (&mut Shares, &mut String),
) {
    let (trace, machine) =
        recorded(scheduler, &words.replace("CPUS", &cpus.to_string()), cpus, duration);
    for &(content, form) in cases {
        let followed = follow(scheduler, &as_file(&content.of(&trace), form), &machine);
        let sum = total(&followed);
        *shares.entry((nth, cpus, content, form)).or_default() += &sum;
        if sum.different > 0 || followed.exit.is_some() {
            let kinds: Vec<_> = followed
                .kinds
                .iter()
                .map(|kind| (kind.count, kind.first.decision, kind.first.kind, kind.first.time_ns))
                .collect();
            let _ = writeln!(
                failures,
                "{} {words} on {cpus}, {content:?}, {form}: {} of {} {kinds:?} {:?}",
                SCHEDULERS[nth],
                sum.different,
                sum.total(),
                followed.exit
            );
        }
    }
}

#[test]
fn every_benchmark_is_among_them() {
    for entry in fairground_workload::library::entries() {
        let name = |words: &str| words.split([':', ',']).next() == Some(entry.name);
        let is_named = LOADS.iter().any(|(words, _)| name(words));
        assert!(is_named, "{} has no line in LOADS", entry.name);
    }
}

/// Every case of a run, or one that varies with its number.
fn cases(all: bool, nth: usize) -> Vec<(Content, &'static str)> {
    let product = Content::ALL.into_iter().flat_map(|content| FORMS.map(|form| (content, form)));
    let product: Vec<_> = product.collect();
    match all {
        true => product,
        false => vec![product[nth % product.len()], product[(nth + 5) % product.len()]],
    }
}

#[test]
fn no_decision_of_an_own_recording_differs() {
    let all = env::var("FAIRGROUND_FOLLOW").is_ok_and(|word| word == "all");
    let (mut shares, mut failures, mut nth) = (Shares::new(), String::new(), 0);
    for (of, name) in SCHEDULERS.into_iter().enumerate() {
        let scheduler = load(name);
        for load in LOADS {
            for cpus in CPUS {
                nth += 1;
                // Its two halves are bound to two CPUs.
                if load.0 == "netperf-stream" && cpus == 1 {
                    continue;
                }
                if all || nth % PART == of {
                    let cases = cases(all, nth / PART + of);
                    let found = (&mut shares, &mut failures);
                    try_run((of, &scheduler), (load, cpus), &cases, found);
                }
            }
        }
    }
    print!("{}", table(&shares));
    if all && env::var("FAIRGROUND_DOCS").is_ok_and(|word| word == "write") {
        let page = fs::read_to_string(REPORT).expect("the report");
        let (before, rest) = page.split_once("<!-- shares -->\n").expect("the table's begin");
        let (_, after) = rest.split_once("<!-- end -->\n").expect("the table's end");
        let table = table(&shares);
        let page = format!("{before}<!-- shares -->\n{table}<!-- end -->\n{after}");
        fs::write(REPORT, page).expect("the report can be written");
    }
    assert!(failures.is_empty(), "{failures}");
    for ((of, cpus, content, form), agreement) in &shares {
        let decided = agreement.decided() * 100;
        let is_nearly_all = decided >= 99 * (agreement.total() - agreement.with_sync);
        let what = format!("{} on {cpus}: {agreement:?}", SCHEDULERS[*of]);
        // Perfetto's files are not read with their callbacks.
        assert!(!content.callbacks || *form == "Perfetto" || is_nearly_all, "{what}");
    }
}

/// What a scheduler decides by `WF_SYNC` beyond the placement, and whether the waker is exiting.
#[test]
fn the_hints_of_a_wake_up_are_in_the_recording() {
    let runs = [
        ("fifo", ("volano:1,users=4", "10ms"), 8),
        ("o1", ("volano:1,users=4", "8ms"), 3),
        ("eevdf", ("forkstorm:5,children=3", "12ms"), 4),
    ];
    let cases = FORMS[..2].iter().map(|form| (Content::ALL[1], *form)).collect::<Vec<_>>();
    let (mut shares, mut failures) = (Shares::new(), String::new());
    for (name, load, cpus) in runs {
        let of = SCHEDULERS.iter().position(|known| *known == name).expect("one of them");
        try_run((of, &self::load(name)), (load, cpus), &cases, (&mut shares, &mut failures));
    }
    assert!(failures.is_empty(), "{failures}");
    let with_sync: u64 = shares.values().map(|agreement| agreement.with_sync).sum();
    assert_eq!(with_sync, 0);
}

/// The share of the decisions that the recordings decide, %, by what they have.
fn table(shares: &Shares) -> String {
    let mut text = "| scheduler | CPUs | decisions | text: callbacks, calls | callbacks | calls | neither \
                    | Perfetto: callbacks, calls | neither |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for (of, name) in SCHEDULERS.into_iter().enumerate() {
        for cpus in CPUS {
            let share = |content, form| {
                let agreement: Option<&Agreement> = shares.get(&(of, cpus, content, form));
                let agreement = agreement.filter(|agreement| agreement.total() > 0);
                agreement.map_or("–".to_owned(), |agreement| {
                    let share = agreement.decided() as f64 * 100.0 / agreement.total() as f64;
                    format!("{share:.1}")
                })
            };
            let [both, callbacks, calls, neither] =
                Content::ALL.map(|content| share(content, FORMS[0]));
            let [all, none] = [0, 3].map(|nth| share(Content::ALL[nth], FORMS[2]));
            let whole = shares.get(&(of, cpus, Content::ALL[0], FORMS[0]));
            let decisions = whole.map_or(0, Agreement::total);
            let _ = writeln!(
                text,
                "| `{name}` | {cpus} | {decisions} | {both} | {callbacks} | {calls} | {neither} | {all} | {none} |"
            );
        }
    }
    text
}

/// Ties hide no other scheduler: with callbacks each decision is judged, and without them those of long intervals.
#[test]
fn another_scheduler_differs() {
    const BARE: Content = Content { callbacks: false, calls: false };
    const WHOLE: Content = Content { callbacks: true, calls: false };
    let different = |of: &str, by: &str, (words, duration): (&str, &str), content: Content| {
        let (trace, machine) = recorded(&load(of), words, 1, duration);
        let followed = follow(&load(by), &as_file(&content.of(&trace), "text"), &machine);
        let picks = followed.agreement.iter().find(|(of, _)| *of == Decision::Pick);
        println!("{by} follows {of}, {words}, {content:?}: {:?}", followed.agreement);
        picks.map(|(_, picks)| (picks.different, picks.total())).expect("picks")
    };
    let hackbench = ("hackbench:1", "8ms");
    for (of, by) in [("eevdf", "cfs"), ("cfs", "eevdf"), ("eevdf", "o1"), ("o1", "fifo")] {
        let (picks, all) = different(of, by, hackbench, WHOLE);
        assert!(picks * 4 > all, "{by} follows {of}: {picks} of {all}");
    }
    // A hog with a third of the weight, and one that comes late.
    let hogs = ("hogs:2 + hogs:1,nice=5", "600ms");
    for (of, by) in [("fifo", "cfs"), ("fifo", "eevdf"), ("cfs", "fifo")] {
        let (picks, all) = different(of, by, hogs, BARE);
        assert!(picks > 0, "{by} follows {of}: {picks} of {all}");
    }
}
