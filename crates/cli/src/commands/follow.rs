//! `follow`: a scheduler's decisions beside the recorded ones, on the recorded timeline.

use std::process::ExitCode;

use fairground_report::Document;
use fairground_session::{
    CHUNK_NS, Failure, FollowPlan, MachineSpec, Recording, RunSpec, Scheduler, SchedulerSpec,
    exit_code, one_variant, read_profiles, recorded_machine,
};

use crate::args::{Cli, FollowArgs};
use crate::input::find_recording;
use crate::present;
use crate::progress::Progress;

/// Differences are no failure: the exit code is that of success unless the scheduler left or was ejected.
pub(super) fn follow(cli: &Cli, args: &FollowArgs) -> Result<ExitCode, Failure> {
    let recording = find_recording(&args.recording, &args.source, cli.quiet)?;
    let machine = spec(args, &recording).simulated_machine()?;
    if machine.cpus() < recording.trace.cpus {
        return Err(Failure::new(format_args!(
            "--topology has {} CPUs, and {} has {}",
            machine.cpus(),
            recording.name,
            recording.trace.cpus
        ))
        .help("give the recorded machine's topology"));
    }
    let names = [args.sched.as_str()];
    let profiles = read_profiles(&args.profile, &names)?;
    let profile = profiles.iter().find(|profile| profile.is_for(&args.sched));
    let settings = one_variant(&args.set)?.settings;
    if let Some(profile) = profile {
        profile.check(&args.sched, &settings)?;
    }
    let profile = profile.map(|profile| (profile, &machine.topology));
    let scheduler = Scheduler::load(&args.sched, profile, args.engine.into())?;
    let trace = &recording.trace;
    let length_ns = trace.end_ns.saturating_sub(trace.start_ns);
    let progress = Progress::new(cli.quiet, length_ns.div_ceil(CHUNK_NS));
    let followed = FollowPlan { trace, scheduler: &scheduler, settings, machine }.run(&progress)?;
    let mut document = Document::new(format!("{} follows {}", followed.label, recording.name));
    present::describe_followed(&mut document, &recording, &followed, args.top);
    document.notes.extend(present::loss_notes(&recording.name, &followed.irregularities));
    present::print(&document, cli)?;
    let code = followed.exit.as_ref().map_or(0, |exit| exit_code(exit.kind.number().into()));
    Ok(ExitCode::from(code))
}

fn spec(args: &FollowArgs, recording: &Recording) -> RunSpec {
    let (topology, hz, seed) = (args.topology.clone(), args.hz, args.seed);
    let asked = MachineSpec { topology, hz, seed, ..MachineSpec::default() };
    let machine = recorded_machine(&asked, &recording.trace);
    let scheduler = SchedulerSpec { null_loads: args.null_loads, ..SchedulerSpec::default() };
    RunSpec { machine, scheduler, ..RunSpec::default() }
}
