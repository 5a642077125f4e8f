//! `top`: a run, or this machine, shown while it goes on.

mod host;
mod simulated;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use fairground_run::{Failure, Ground, parse_time};
use fairground_top::{App, Source, Speed, show};
use fairground_workload::Workload;

use self::host::Host;
use self::simulated::{Shown, Simulated};
use super::columns::Columns;
use crate::args::{Cli, Per, ShowArgs, TopArgs};
use crate::input::find_workload_with;
use crate::pictures::command_line;

pub(super) fn top(cli: &Cli, args: &TopArgs) -> Result<ExitCode, Failure> {
    let [ground] = args.ground.on.as_slice() else {
        return Err(Failure::new("`top` shows one ground")
            .help("give `--sched cfs,eevdf` to change between schedulers"));
    };
    let interval_ns = match parse_time("--interval", &args.interval)? {
        0 => return Err(Failure::new("--interval 0 leaves nothing to measure")),
        ns => ns,
    };
    match (Ground::parse(ground)?, &args.workload) {
        (Ground::Sim, Some(name)) => {
            let workload = find_workload_with(name, &args.locks, cli.quiet)?;
            simulated(cli, args, name, &workload, interval_ns)
        }
        (Ground::Sim, None) => Err(Failure::new("there is no workload to run")
            .help("name one, as in `fairground top hogs:3 --sched cfs`; `--on host` shows this machine")),
        (Ground::Host, None) => {
            on_a_terminal()?;
            let mut host = Host::start(args.ground.buffer, interval_ns)?;
            view(App::new(&host), &mut host)?;
            Ok(ExitCode::SUCCESS)
        }
        (Ground::Host, Some(_)) => Err(Failure::new("`top --on host` shows this machine as it is, and starts nothing")
            .help("leave the workload out, and start it beside the view: `fairground run WORKLOAD --on host`")),
        (Ground::Vm(_), _) => Err(Failure::new(
            "a virtual machine cannot be watched: its recording comes out of it when the run is over",
        )
        .help("`fairground run WORKLOAD --on vm:KERNEL` measures it; `top` shows `sim` and `host`")),
    }
}

fn simulated(
    cli: &Cli,
    args: &TopArgs,
    name: &str,
    workload: &Workload,
    interval_ns: u64,
) -> Result<ExitCode, Failure> {
    let show = ShowArgs { per: Per::Task, all: false, interval: None };
    let columns = Columns {
        workload,
        sched: &args.sched,
        ground: None,
        machine: &args.machine,
        show: &show,
        callbacks: false,
        rename: |name| name,
        sample: false,
    };
    let simulations = columns.simulations()?;
    on_a_terminal()?;
    let shown = Shown { name, workload, interval_ns };
    let mut source = Simulated::new(&shown, simulations)?;
    let mut app = App::new(&source).at_speed(Speed::new(args.speed));
    if args.hold {
        app = app.paused();
    }
    view(app, &mut source)?;
    if !cli.quiet {
        let changes = source.changes();
        if !changes.is_empty() {
            let words = ["fairground".to_owned(), "run".to_owned(), name.to_owned()].into_iter();
            let words = words.chain(source.scheduler_words()).chain(changes);
            eprintln!("the same changes again (with the machine's flags as they were):");
            eprintln!("  {}", command_line(words));
        }
    }
    Ok(ExitCode::SUCCESS)
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

fn view(mut app: App, source: &mut dyn Source) -> Result<(), Failure> {
    show(&mut app, source).map_err(Failure::new)
}
