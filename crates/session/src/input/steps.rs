//! Steps of a profile's `[run]`: programs of the object, what they get, and what is kept of what they leave.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fairground_bpf::{GlobalType, Object};
use fairground_machine::{Meanings, Patch, ProgramRun, SavedValue, Topology, Words};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::assignment::{Assignment, ProfileValue};
use super::profile::ProfileFaults;

/// The start of a saved value's name.
const SAVED: char = '$';
/// The first program of the scx project's arena library.
const ARENA_INIT: &str = "arena_init";
/// The program that learns how many places the machine has; its versions until 1.1.0 have none.
const ARENA_SHAPE: &str = "arena_topology_init";

/// A program to run: its name alone, or with `args` and `save`.
#[derive(Clone, Debug)]
pub(super) struct Step(pub(super) Call);

/// A program with the members of its argument.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) program: String,
    #[serde(default)]
    args: BTreeMap<String, ProfileValue>,
    /// Once for each place of a level: `cpus`, `cores`, `llcs`, `nodes`, `sockets`.
    each: Option<String>,
    /// The CPU that executes it: its loader pins itself there.
    cpu: Option<u32>,
    /// Names of values, and the members that they are.
    #[serde(default)]
    save: BTreeMap<String, String>,
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Step, D::Error> {
        deserializer.deserialize_any(StepVisitor)
    }
}

struct StepVisitor;

impl<'de> Visitor<'de> for StepVisitor {
    type Value = Step;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a program, or { program = NAME, cpu = NUMBER, each = LEVEL, args = { … }, save = { … } }")
    }

    fn visit_str<E>(self, name: &str) -> Result<Step, E> {
        Ok(Step(Call { program: name.to_owned(), ..Call::default() }))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Step, A::Error> {
        Call::deserialize(MapAccessDeserializer::new(map)).map(Step)
    }
}

/// The runs of steps for an object and a machine, in their order.
pub(super) struct Steps<'o> {
    object: &'o Object,
    topology: &'o Topology,
    /// The names of the values that steps so far have saved.
    saved: BTreeSet<String>,
}

impl<'o> Steps<'o> {
    pub(super) fn new(object: &'o Object, topology: &'o Topology) -> Steps<'o> {
        Steps { object, topology, saved: BTreeSet::new() }
    }

    /// The runs of the next step.
    ///
    /// # Errors
    /// The fault, in words.
    pub(super) fn next(
        &mut self,
        step: &Step,
        faults: &mut ProfileFaults,
    ) -> Result<Vec<ProgramRun>, String> {
        let Some(each) = &step.0.each else { return Ok(vec![self.one(&step.0, None, faults)?]) };
        let words = Words::of(self.topology);
        let Some((level, _)) = Words::levels().find(|(_, count)| count == each) else {
            let known: Vec<_> = Words::levels().map(|(_, count)| count).collect();
            return Err(format!("`each = \"{each}\"`: there are `{}`", known.join("`, `")));
        };
        let places = words.list(&format!("{level}.id"))?.len();
        (0..places).map(|place| self.one(&step.0, Some((level, place)), faults)).collect()
    }

    /// One run; for a place of a level, words for lists of that level are their values for the place.
    fn one(
        &mut self,
        call: &Call,
        place: Option<(&str, usize)>,
        faults: &mut ProfileFaults,
    ) -> Result<ProgramRun, String> {
        let Call { program, args, save, cpu, .. } = call;
        let cpus = self.topology.cpus();
        if let Some(cpu) = cpu.filter(|cpu| *cpu >= cpus) {
            return Err(format!("`cpu = {cpu}`: the machine has {cpus} CPUs, numbered from 0"));
        }
        let mut run = ProgramRun { cpu: *cpu, ..ProgramRun::of(program) };
        if args.is_empty() && save.is_empty() {
            return Ok(run);
        }
        let argument = self.object.argument_of(program).ok_or_else(|| {
            "it takes no structure: `args` and `save` are for `int PROGRAM(struct ARGS *ctx)`"
                .to_owned()
        })?;
        run.context = vec![0; argument.1 as usize];
        let types = self.object.types();
        let meanings = Meanings::new(&types, self.topology);
        let mut lacks = |path: &str| {
            !meanings.has_part(&argument.0, path)
                && faults.leaves_out(&format!("{program}(): {}", path.trim_start_matches('.')))
        };
        for assignment in ProfileValue::Members(args.clone()).assignments("")? {
            if !lacks(&assignment.path) {
                self.pass(&argument, &assignment, place, &mut run)?;
            }
        }
        for (name, member) in save {
            if lacks(member) {
                continue;
            }
            let (offset, size) = meanings.word_of("args", (&argument.0, argument.1), member)?;
            run.save.push(SavedValue { name: name.clone(), offset, size });
            self.saved.insert(name.clone());
        }
        Ok(run)
    }

    /// The steps of the loader part of the scx project's arena library (`ArenaLib::setup` of the crate scx_arena 1.1): the
    /// allocators, with the structure that a task gets, and the tree of the machine's topology, a mask of CPUs for each
    /// place.
    ///
    /// # Errors
    /// The object has no such structure or programs.
    pub(super) fn arena_library(
        &mut self,
        task: &str,
        faults: &mut ProfileFaults,
    ) -> Result<Vec<ProgramRun>, String> {
        const PAGES_AT_ONCE: &str = "8";
        let has = |program: &str| self.object.argument_of(program).is_some();
        if !has(ARENA_INIT) && faults.leaves_out(&format!("{ARENA_INIT}()")) {
            return Ok(Vec::new());
        }
        let has_shape = has(ARENA_SHAPE);
        let size = self.object.types().size_of(task);
        let size = size.ok_or_else(|| format!("the object has no structure `{task}`"))?;
        let call = |program: &str, args: &[(&str, String)]| {
            let args = args
                .iter()
                .map(|(name, value)| ((*name).to_owned(), ProfileValue::Text(value.clone())));
            Call { program: program.to_owned(), args: args.collect(), ..Call::default() }
        };
        let words = Words::of(self.topology);
        let most = |word: &str| {
            Ok::<_, String>(words.list(word)?.iter().map(|of| of[0]).max().unwrap_or(0))
        };
        let mut runs = vec![self.one(
            &call(
                ARENA_INIT,
                &[("static_pages", PAGES_AT_ONCE.to_owned()), ("task_ctx_size", size.to_string())],
            ),
            None,
            faults,
        )?];
        let children = [
            words.number("nodes").unwrap_or(1),
            most("node.llcs")?,
            most("llc.cores")?,
            most("core.cpus")?,
        ];
        let children = children.iter().enumerate();
        let children: Vec<_> = children
            .map(|(at, count)| (format!("max_children[{at}]"), count.to_string()))
            .collect();
        let children: Vec<_> =
            children.iter().map(|(path, count)| (path.as_str(), count.clone())).collect();
        if has_shape {
            runs.push(self.one(&call(ARENA_SHAPE, &children), None, faults)?);
        }
        let mut masks = vec![(0, words.mask_of_all())];
        for level in ["node", "llc", "core", "cpu"] {
            let of_level = words.list(&format!("{level}.mask"))?;
            masks.extend(of_level.into_iter().enumerate());
        }
        for (id, mask) in masks {
            let mut alloc = call("arena_alloc_mask", &[]);
            alloc.save.insert("arena_mask".to_owned(), "bitmap".to_owned());
            let mut run = self.one(&alloc, None, faults)?;
            let bytes = mask.iter().flat_map(|word| word.to_le_bytes()).collect();
            run.store.push(("arena_mask".to_owned(), bytes));
            runs.push(run);
            let args = [("bitmap", "$arena_mask".to_owned()), ("id", id.to_string())];
            runs.push(self.one(&call("arena_topology_node_init", &args), None, faults)?);
        }
        Ok(runs)
    }

    /// A member of the argument.
    fn pass(
        &self,
        (ty, size): &(GlobalType, u64),
        Assignment { path, value }: &Assignment,
        place: Option<(&str, usize)>,
        run: &mut ProgramRun,
    ) -> Result<(), String> {
        let types = self.object.types();
        let meanings = Meanings::new(&types, self.topology);
        let meanings = place.map_or(meanings, |(level, number)| meanings.at(level, number));
        let wrong = |problem| format!("`args{path}={value}`: {problem}");
        if let Some(name) = value.strip_prefix(SAVED) {
            if !self.saved.contains(name) {
                let saved: Vec<&str> = self.saved.iter().map(String::as_str).collect();
                let saved = match saved.is_empty() {
                    true => "none".to_owned(),
                    false => format!("`${}`", saved.join("`, `$")),
                };
                return Err(wrong(format!(
                    "no earlier step saves `{name}` (saved: {saved}); write `save = {{ {name} = \"MEMBER\" }}`"
                )));
            }
            let (offset, size) = meanings.word_of("args", (ty, *size), path).map_err(wrong)?;
            run.load.push(SavedValue { name: name.to_owned(), offset, size });
            return Ok(());
        }
        let patches: Vec<Patch> =
            meanings.patches_of("args", (ty, *size), path, value).map_err(wrong)?;
        match patches.iter().all(|patch| patch.apply(&mut run.context)) {
            true => Ok(()),
            false => Err(wrong("it exceeds the structure".to_owned())),
        }
    }
}
