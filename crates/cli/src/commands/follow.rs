//! `follow`: a scheduler's decisions beside the recorded ones, on the recorded timeline.

use std::process::ExitCode;

use fairground_session::{
    CHUNK_NS, Failure, Follow, MachineSpec, RunSpec, SchedulerSpec, exit_code,
};

use crate::args::{Cli, FollowArgs};
use crate::input::find_recording;
use crate::present;
use crate::progress::Progress;

/// Differences are no failure: the exit code is that of success unless the scheduler left or was ejected.
pub(super) fn follow(cli: &Cli, args: &FollowArgs) -> Result<ExitCode, Failure> {
    let recording = find_recording(&args.recording, &args.source, cli.quiet)?;
    let follow = Follow::of(&spec(args), &recording)?;
    let length_ns = recording.trace.end_ns.saturating_sub(recording.trace.start_ns);
    let progress = Progress::new(cli.quiet, length_ns.div_ceil(CHUNK_NS));
    let followed = follow.run(&recording, &progress)?;
    present::print(&present::followed(&recording, &followed, args.top), cli)?;
    let code = followed.exit.as_ref().map_or(0, |exit| exit_code(exit.kind.number().into()));
    Ok(ExitCode::from(code))
}

fn spec(args: &FollowArgs) -> RunSpec {
    let scheduler = SchedulerSpec {
        sched: vec![args.sched.clone()],
        set: args.set.clone(),
        profile: args.profile.clone(),
        engine: args.engine,
        null_loads: args.null_loads,
        ..SchedulerSpec::default()
    };
    let (topology, hz, seed) = (args.topology.clone(), args.hz, args.seed);
    let machine = MachineSpec { topology, hz, seed, ..MachineSpec::default() };
    RunSpec { scheduler, machine, ..RunSpec::default() }
}
