//! `top`: a run, or this machine, shown while it goes on.

mod host;
mod simulated;
mod stream;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use fairground_analysis::Options;
use fairground_session::{Failure, RunPlan, RunSpec, Target, never_ran, parse_time};
use fairground_top::{App, Source, Speed, View, show};

use self::host::Host;
use self::simulated::{Shown, Simulated};
use crate::args::{Cli, TopArgs};
use crate::input::find_workload;
use crate::interrupt;
use crate::pictures::command_line;
use crate::talk;

/// The longest interval, ns. Each redraw sorts the samples of the interval, so an unlimited one would spend all time on
/// drawing.
const INTERVAL_MAX_NS: u64 = 10_000_000_000;
/// The options that have an effect with `--on host`.
const HOST_TAKES: [&str; 3] = ["--on", "--buffer", "--interval"];

pub(super) fn top(cli: &Cli, args: &TopArgs) -> Result<ExitCode, Failure> {
    let [target] = args.on.as_slice() else {
        return Err(Failure::new("`top` shows one target")
            .help("give `--sched cfs,eevdf` to change between schedulers"));
    };
    let interval_ns = interval_ns(&args.interval)?;
    match (Target::parse(target)?, &args.workload) {
        (Target::Sim, Some(name)) => {
            refuse(args, "a simulated run", |flag| !["--buffer", "--format"].contains(&flag))?;
            simulated(cli, args, name, interval_ns)
        }
        (Target::Sim, None) => Err(Failure::new("there is no workload to run")
            .help("name one, as in `fairground top hogs:3 --sched cfs`; `--on host` shows this machine")),
        (Target::Host, None) => {
            refuse(args, "this machine, which is shown as it is", |flag| HOST_TAKES.contains(&flag))?;
            on_a_terminal()?;
            let mut host = Host::start(args.buffer, interval_ns)?;
            view(App::new(&host), &mut host)?;
            Ok(ExitCode::SUCCESS)
        }
        (Target::Host, Some(_)) => Err(Failure::new("`top --on host` shows this machine as it is, and starts nothing")
            .help("leave the workload out, and start it beside the view: `fairground run WORKLOAD --on host`")),
        (Target::Vm(_), _) => Err(Failure::new(
            "a virtual machine cannot be watched: its recording comes out of it when the run is over",
        )
        .help("`fairground run WORKLOAD --on vm:KERNEL` measures it; `top` shows `sim` and `host`")),
    }
}

fn interval_ns(text: &str) -> Result<u64, Failure> {
    match parse_time("--interval", text)? {
        0 => Err(Failure::new("--interval 0 leaves nothing to measure")),
        ns if ns > INTERVAL_MAX_NS => Err(Failure::new(format_args!(
            "--interval {text} is too long for a view: 10 s is the most"
        ))
        .help("`fairground run --interval` and `fairground analyze --interval` take any length")),
        ns => Ok(ns),
    }
}

/// Refuses options that have no effect on what is shown.
fn refuse(args: &TopArgs, shown: &str, takes: impl Fn(&str) -> bool) -> Result<(), Failure> {
    let typed = args.typed.0.iter().map(String::as_str);
    let useless: Vec<&str> = typed.filter(|flag| !takes(flag)).collect();
    if useless.is_empty() {
        return Ok(());
    }
    let (flags, verb, them) = match useless.as_slice() {
        [flag] => ((*flag).to_owned(), "has", "it"),
        flags => (flags.join(", "), "have", "them"),
    };
    Err(Failure::new(format_args!("{flags} {verb} no effect on {shown}")).help(format_args!(
        "leave {them} out; `fairground top --help` says what each option is for"
    )))
}

fn simulated(cli: &Cli, args: &TopArgs, name: &str, interval_ns: u64) -> Result<ExitCode, Failure> {
    let spec = RunSpec {
        workload: name.to_owned(),
        scheduler: args.sched.0.clone(),
        machine: args.machine.0.clone(),
        locks: args.locks.0,
        ..RunSpec::default()
    };
    let workload = find_workload(&spec, cli.quiet)?;
    let simulations = RunPlan::new(&spec, &workload, Options::simulated()).simulations()?;
    on_a_terminal()?;
    let shown = Shown { name, workload: &workload, interval_ns };
    let mut source = Simulated::new(&shown, simulations)?;
    let mut app = App::new(&source).at_speed(Speed::new(args.speed));
    if args.hold {
        app = app.paused();
    }
    let shown = view(app, &mut source);
    // Of a run that ended with an error the changes are wanted most: they lead to it again.
    if !cli.quiet {
        tell_changes(name, &source.changes());
    }
    shown.map(|()| ExitCode::SUCCESS)
}

/// Changes made by keys, as flags.
fn tell_changes(name: &str, changes: &[Vec<String>]) {
    if changes.is_empty() {
        return;
    }
    talk::say("the same changes again (with the machine's flags as they were):");
    for words in changes {
        let run = ["fairground", "run", name].map(str::to_owned).into_iter();
        talk::say(format!("  {}", command_line(run.chain(words.iter().cloned()))));
    }
}

/// A view needs a terminal on both sides.
fn on_a_terminal() -> Result<(), Failure> {
    let missing = match (io::stdin().is_terminal(), io::stdout().is_terminal()) {
        (true, true) => return Ok(()),
        (_, false) => "stdout",
        (false, true) => "stdin",
    };
    Err(Failure::new(format_args!("`top` draws on a terminal, and {missing} is none"))
        .help("`fairground run` prints the same figures at the end of a run, and `record` keeps the events"))
}

/// Notes the tasks that have never run, in the words of a result.
fn state_never_ran(view: &mut View) {
    view.notes.extend(never_ran(view.never_ran.clone()).map(|verdict| verdict.text));
}

/// How long a view that is asked to end may take for it.
const END_MAX: Duration = Duration::from_secs(3);

fn view(mut app: App, source: &mut dyn Source) -> Result<(), Failure> {
    let asked = interrupt::flag();
    interrupt::end_at_the_latest(END_MAX);
    show(&mut app, source, &asked).map_err(Failure::new)
}
