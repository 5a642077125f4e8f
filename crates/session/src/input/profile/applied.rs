//! The effect of a profile on a machine of one topology.

use std::collections::BTreeSet;

use fairground_bpf::Object;
use fairground_machine::{
    MapContent, ProgramRun, SavedValue, Setting, Setup, Topology, root_of, tracing_programs,
};
use fairground_realkernel::job::{ContextValue, MapWrite, ProgramJob, SchedulerSetup};

use super::{DATA, Profile, ProfileFaults, is_map};
use crate::failure::Failure;
use crate::input::map_elements::elements_of;
use crate::input::profile_settings::{ProfilePrograms, ProfileSettings};
use crate::input::scheduler::SYSCALL;
use crate::input::steps::{Step, Steps};

/// The effect of a profile, for one object on machines of one topology.
#[derive(Debug, Default)]
pub(crate) struct AppliedProfile {
    /// The variables that it sets.
    pub(crate) settings: Vec<Setting>,
    /// The arrays and maps that it resizes.
    pub(crate) resized: Vec<String>,
    /// The rest, in each simulated machine: maps, programs.
    pub(crate) setup: Setup,
    /// The same on a real kernel, with the callback table's integers and the maps that are resized.
    pub(crate) real: SchedulerSetup,
    /// Names that it has and this version's object lacks.
    pub(crate) lacking: Vec<String>,
    /// The knowledge of the loader's settings.
    pub(crate) known: LoaderKnowledge,
}

/// The knowledge of the settings that an object's loader makes.
#[derive(Clone, Debug, Default)]
pub(crate) enum LoaderKnowledge {
    /// Nothing.
    #[default]
    Nothing,
    /// The variables that a profile names, in whatever part of it; there may be more.
    Some(BTreeSet<String>),
    /// All: an entry of the catalogue describes this version.
    All,
}

impl Profile {
    /// Applies what concerns the object itself, and returns the rest.
    ///
    /// # Errors
    /// All that is wrong with the profile for this object, at once.
    pub(crate) fn apply(
        &self,
        object: &mut Object,
        topology: &Topology,
    ) -> Result<AppliedProfile, Failure> {
        let part = self.on(topology)?;
        let mut faults = ProfileFaults::new(self.other_version);
        self.adjust(object, &part, topology, &mut faults);
        let settings = self.settings(object, &part, topology, &mut faults);
        let setup = self.setup(object, &part, topology, &mut faults);
        let lacking = faults.end()?;
        let real = self.real_setup(object, &part, setup.clone(), topology)?;
        let known = match self.is_of_entry() && !self.other_version {
            true => LoaderKnowledge::All,
            false => LoaderKnowledge::Some(self.names()),
        };
        let resized = part.resize.into_keys().collect();
        Ok(AppliedProfile { settings, resized, setup, real, lacking, known })
    }

    /// Applies what concerns the object itself.
    fn adjust(
        &self,
        object: &mut Object,
        part: &ProfileSettings,
        topology: &Topology,
        faults: &mut ProfileFaults,
    ) {
        let shown = self.path.display();
        faults.check(self.choose(object));
        for (name, count) in &part.resize {
            let is_map = is_map(object, name);
            if !is_map && object.global(name).is_none() && faults.leaves_out(name) {
                continue;
            }
            let resized = self.number("resize", name, count, topology).and_then(|count| {
                let resized = match is_map {
                    true => object.resize_map(name, count),
                    false => object.resize_array(name, count),
                };
                resized.map_err(|e| Failure::new(format_args!("{shown}: [resize] {name}: {e}")))
            });
            faults.check(resized);
        }
        for (member, value) in &part.ops {
            let set = self.number("ops", member, value, topology).and_then(|value| {
                object
                    .set_ops_member(member, value)
                    .map_err(|e| Failure::new(format_args!("{shown}: [ops] {member}: {e}")))
            });
            faults.check(set);
        }
        for name in self.file.required.iter() {
            if object.global(name).or_else(|| object.global(root_of(name))).is_none() {
                faults.add(self.no_variable(object, name));
            }
        }
    }

    /// The maps and programs of each simulated machine of that topology.
    fn setup(
        &self,
        object: &Object,
        part: &ProfileSettings,
        topology: &Topology,
        faults: &mut ProfileFaults,
    ) -> Setup {
        let maps = self.map_contents(object, part, topology, faults);
        let mut steps = Steps::new(object, topology);
        let ProfilePrograms { before, arena_library, after, each_second, attach, detach } =
            &part.run;
        let library = arena_library.as_ref().map(|task| steps.arena_library(task, faults));
        let library = library.unwrap_or(Ok(Vec::new())).map_err(|problem| {
            Failure::new(format_args!("{}: [run] arena_library: {problem}", self.path.display()))
        });
        let mut first = faults.check(library).unwrap_or_default();
        let mut runs = |list: &[Step]| -> Vec<ProgramRun> {
            list.iter().flat_map(|step| self.run(object, &mut steps, step, faults)).collect()
        };
        let (before, after, each_second) = (runs(before), runs(after), runs(each_second));
        first.extend(before);
        let attach = self.attachable(object, attach, faults);
        let detach = self.attachable(object, detach, faults);
        Setup { maps, before: first, after, each_second, attach, detach }
    }

    fn map_contents(
        &self,
        object: &Object,
        part: &ProfileSettings,
        topology: &Topology,
        faults: &mut ProfileFaults,
    ) -> Vec<MapContent> {
        let known: Vec<String> = object.maps().into_iter().map(|map| map.name).collect();
        let mut contents = Vec::new();
        for (map, elements) in &part.maps {
            if !known.contains(map) {
                if !faults.leaves_out(map) {
                    let named = format!("[maps.{map}]: {} has no such map", object.name());
                    let names = known.iter().map(String::as_str);
                    faults.add(self.unknown(object, &named, map, names));
                }
                continue;
            }
            for (key, element) in elements {
                let found = elements_of(object, topology, (map, key), element, faults);
                let found = found.map_err(|problem| {
                    let place = format!("{}: [maps.{map}] {key}", self.path.display());
                    Failure::new(format_args!("{place}: {problem}"))
                });
                contents.extend(faults.check(found).unwrap_or_default());
            }
        }
        contents
    }

    /// The same for a real kernel, with the callback table's integers and the maps that are resized.
    fn real_setup(
        &self,
        object: &Object,
        part: &ProfileSettings,
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

    /// Programs to attach or not, each of which must be one that is called at an event.
    fn attachable(
        &self,
        object: &Object,
        names: &[String],
        faults: &mut ProfileFaults,
    ) -> Vec<String> {
        let known: Vec<String> = tracing_programs(object).into_iter().map(|p| p.name).collect();
        let (there, lacking): (Vec<_>, Vec<_>) =
            names.iter().cloned().partition(|name| known.contains(name));
        for name in lacking {
            if faults.leaves_out(&name) {
                continue;
            }
            let named =
                format!("[run] {name}: {} has no program of events with that name", object.name());
            let known = known.iter().map(String::as_str);
            faults.add(self.unknown(object, &named, &name, known));
        }
        there
    }

    /// A step of `[run]`.
    fn run(
        &self,
        object: &Object,
        steps: &mut Steps<'_>,
        step: &Step,
        faults: &mut ProfileFaults,
    ) -> Vec<ProgramRun> {
        let name = &step.0.program;
        let programs = || object.functions().iter().filter(|found| found.section == SYSCALL);
        if programs().all(|program| program.name != *name) {
            if !faults.leaves_out(&format!("{name}()")) {
                let named = format!(
                    "[run] {name}: {} has no such program (SEC(\"{SYSCALL}\"))",
                    object.name()
                );
                let known = programs().map(|p| p.name.as_str());
                faults.add(self.unknown(object, &named, name, known));
            }
            return Vec::new();
        }
        let runs = steps.next(step, faults).map_err(|problem| {
            Failure::new(format_args!("{}: [run] {name}: {problem}", self.path.display()))
        });
        faults.check(runs).unwrap_or_default()
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
