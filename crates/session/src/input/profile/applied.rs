//! What a profile does on a machine of one topology.

use std::collections::BTreeSet;

use fairground_bpf::Object;
use fairground_machine::{
    MapContent, ProgramRun, SavedValue, Setting, Setup, Topology, root_of, tracing_programs,
};
use fairground_realkernel::job::{ContextValue, MapWrite, ProgramJob, SchedulerSetup};

use super::{DATA, Profile, is_map};
use crate::failure::Failure;
use crate::input::map_elements::elements_of;
use crate::input::part::{Part, Programs};
use crate::input::steps::{Step, Steps};

/// The section of programs that user space runs.
const SYSCALL: &str = "syscall";

/// What a profile does, for one object on machines of one topology.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// What it sets.
    pub(crate) settings: Vec<Setting>,
    /// The arrays and maps that it resizes.
    pub(crate) resized: Vec<String>,
    /// What else it does in each simulated machine.
    pub(crate) setup: Setup,
    /// The same on a real kernel, with the callback table's integers and the maps that are resized.
    pub(crate) real: SchedulerSetup,
    /// The variables that it would set and that this version's object lacks.
    pub(crate) lacking: Vec<String>,
}

impl Profile {
    /// Applies what concerns the object itself, and returns the rest.
    pub(crate) fn apply(
        &self,
        object: &mut Object,
        topology: &Topology,
    ) -> Result<Applied, Failure> {
        let part = self.on(topology)?;
        self.adjust(object, &part, topology)?;
        let settings = self.settings(object, &part, topology)?;
        let setup = self.setup(object, &part, topology)?;
        let real = self.real_setup(object, &part, setup.clone(), topology)?;
        let lacking = self.lacking(object, &part);
        Ok(Applied { settings, resized: part.resize.into_keys().collect(), setup, real, lacking })
    }

    /// Applies what concerns the object itself.
    fn adjust(&self, object: &mut Object, part: &Part, topology: &Topology) -> Result<(), Failure> {
        let shown = self.path.display();
        self.choose(object)?;
        for (name, count) in &part.resize {
            let count = self.number("resize", name, count, topology)?;
            let resized = match is_map(object, name) {
                true => object.resize_map(name, count),
                false => object.resize_array(name, count),
            };
            resized.map_err(|e| Failure::new(format_args!("{shown}: [resize] {name}: {e}")))?;
        }
        for (member, value) in &part.ops {
            let value = self.number("ops", member, value, topology)?;
            object
                .set_ops_member(member, value)
                .map_err(|e| Failure::new(format_args!("{shown}: [ops] {member}: {e}")))?;
        }
        for name in self.file.required.iter() {
            if object.global(name).or_else(|| object.global(root_of(name))).is_none() {
                return Err(self.no_variable(object, name));
            }
        }
        Ok(())
    }

    /// The variables that it would set and that this version's object lacks.
    fn lacking(&self, object: &Object, part: &Part) -> Vec<String> {
        let roots: BTreeSet<&str> = part.set.keys().map(|name| root_of(name)).collect();
        let lacks = roots.into_iter().filter(|root| self.leaves_out(object, root));
        lacks.map(str::to_owned).collect()
    }

    /// What else it does in each simulated machine of that topology.
    fn setup(&self, object: &Object, part: &Part, topology: &Topology) -> Result<Setup, Failure> {
        let known: Vec<String> = object.maps().into_iter().map(|map| map.name).collect();
        let mut maps = Vec::new();
        for (map, elements) in &part.maps {
            if !known.contains(map) {
                let named = format!("[maps.{map}]: {} has no such map", object.name());
                return Err(self.unknown(object, &named, map, known.iter().map(String::as_str)));
            }
            for (key, element) in elements {
                let wrong = |problem| {
                    let place = format!("{}: [maps.{map}] {key}", self.path.display());
                    Failure::new(format_args!("{place}: {problem}"))
                };
                maps.extend(elements_of(object, topology, map, key, element).map_err(wrong)?);
            }
        }
        let mut steps = Steps::new(object, topology);
        let Programs { before, arena_library, after, each_second, attach, detach } = &part.run;
        let library = arena_library.as_ref().map(|task| steps.arena_library(task)).transpose();
        let mut library = library.map_err(|problem| {
            Failure::new(format_args!("{}: [run] arena_library: {problem}", self.path.display()))
        })?;
        let mut runs = |list: &[Step]| -> Result<Vec<ProgramRun>, Failure> {
            let runs = list.iter().map(|step| self.run(object, &mut steps, step));
            Ok(runs.collect::<Result<Vec<_>, _>>()?.concat())
        };
        let (before, after, each_second) = (runs(before)?, runs(after)?, runs(each_second)?);
        let mut first = library.take().unwrap_or_default();
        first.extend(before);
        let attach = self.attachable(object, attach)?;
        let detach = self.attachable(object, detach)?;
        Ok(Setup { maps, before: first, after, each_second, attach, detach })
    }

    /// The same for a real kernel, with the callback table's integers and the maps that are resized.
    fn real_setup(
        &self,
        object: &Object,
        part: &Part,
        setup: Setup,
        topology: &Topology,
    ) -> Result<SchedulerSetup, Failure> {
        let Setup { maps, before, after, each_second, attach, detach } = setup;
        let map =
            |MapContent { map, key, cpu, offset, bytes }| MapWrite { map, key, cpu, offset, bytes };
        let ops = part.ops.iter().map(|(member, value)| {
            Ok::<_, Failure>((member.clone(), self.number("ops", member, value, topology)?))
        });
        let resized = object
            .maps()
            .into_iter()
            .filter(|map| map.kind != DATA && part.resize.contains_key(&map.name));
        Ok(SchedulerSetup {
            table: self.file.scheduler.clone(),
            ops: ops.collect::<Result<_, _>>()?,
            max_entries: resized.map(|map| (map.name, map.max_entries)).collect(),
            maps: maps.into_iter().map(map).collect(),
            before: before.into_iter().map(program_job).collect(),
            after: after.into_iter().map(program_job).collect(),
            each_second: each_second.into_iter().map(program_job).collect(),
            attach,
            detach,
        })
    }

    /// Programs to attach or not, each of which must be one that is called at an event; what a certain version lacks is
    /// left out.
    fn attachable(&self, object: &Object, names: &[String]) -> Result<Vec<String>, Failure> {
        let known: Vec<String> = tracing_programs(object).into_iter().map(|p| p.name).collect();
        let (there, lacking): (Vec<_>, Vec<_>) =
            names.iter().partition(|name| known.contains(name));
        match lacking.first().filter(|_| !self.of_version) {
            None => Ok(there.into_iter().cloned().collect()),
            Some(name) => {
                let named = format!(
                    "[run] {name}: {} has no program of events with that name",
                    object.name()
                );
                Err(self.unknown(object, &named, name, known.iter().map(String::as_str)))
            }
        }
    }

    /// A step of `[run]`.
    fn run(
        &self,
        object: &Object,
        steps: &mut Steps<'_>,
        step: &Step,
    ) -> Result<Vec<ProgramRun>, Failure> {
        let name = &step.0.program;
        let programs = || object.functions().iter().filter(|found| found.section == SYSCALL);
        if programs().all(|program| program.name != *name) {
            let named =
                format!("[run] {name}: {} has no such program (SEC(\"{SYSCALL}\"))", object.name());
            return Err(self.unknown(object, &named, name, programs().map(|p| p.name.as_str())));
        }
        steps.next(step).map_err(|problem| {
            Failure::new(format_args!("{}: [run] {name}: {problem}", self.path.display()))
        })
    }
}

/// A run of a program, as a job for a real kernel.
fn program_job(run: ProgramRun) -> ProgramJob {
    let ProgramRun { program, cpu, context, load, save, store } = run;
    let values = |list: Vec<SavedValue>| {
        let value = |SavedValue { name, offset, size }| ContextValue { name, offset, size };
        list.into_iter().map(value).collect()
    };
    let stores = !store.is_empty();
    ProgramJob { program, cpu, context, load: values(load), save: values(save), stores }
}
