//! Actions of a real scheduler's loader besides setting variables: it fills maps, and it runs programs of the
//! object (`SEC("syscall")`) before the scheduler is attached or once a second.

use std::collections::BTreeMap;
use std::ops::Range;

use fairground_bpf::{Image, Instance, MapKind};

use crate::error::SetupError;
use crate::kernel::Kernel;
use crate::tracing::Tracing;
use crate::{MachineError, Policy};

/// Alignment of a program's context, bytes.
const CONTEXT_ALIGN: u64 = 8;

/// Actions, by names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// Elements of maps, before anything runs.
    pub maps: Vec<MapContent>,
    /// Programs to run before `init()`, in this order.
    pub before: Vec<ProgramRun>,
    /// Programs to run once the scheduler is in charge, in this order.
    pub after: Vec<ProgramRun>,
    /// Programs to run at each full second, in this order.
    pub each_second: Vec<ProgramRun>,
    /// Programs to attach to the events of their sections, though these begin with `?`.
    pub attach: Vec<String>,
    /// Programs not to attach.
    pub detach: Vec<String>,
}

/// A run of a program (`SEC("syscall")`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramRun {
    /// The program.
    pub program: String,
    /// The CPU that executes it; `None`: CPU 0.
    pub cpu: Option<u32>,
    /// The structure that it gets (its context), before `load`; empty: it gets none.
    pub context: Vec<u8>,
    /// Members that get a value that an earlier run saved.
    pub load: Vec<SavedValue>,
    /// Members whose value after the run is saved.
    pub save: Vec<SavedValue>,
    /// Bytes that are written, after the run, to where a saved value points in the program's memory.
    pub store: Vec<(String, Vec<u8>)>,
}

/// A member of a program's context, and the value under whose name it is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedValue {
    /// The value's name.
    pub name: String,
    /// Byte offset of the member in the context.
    pub offset: u64,
    /// Its bytes, 1 to 8.
    pub size: u64,
}

impl ProgramRun {
    /// A run without a context.
    pub fn of(program: &str) -> ProgramRun {
        ProgramRun { program: program.to_owned(), ..ProgramRun::default() }
    }

    /// The context with the values that were saved so far; 0 for those that were not.
    fn filled(&self, saved: &BTreeMap<String, u64>) -> Vec<u8> {
        let mut context = self.context.clone();
        for value in &self.load {
            let bytes = saved.get(&value.name).copied().unwrap_or(0).to_le_bytes();
            if let Some(target) = context.get_mut(value.range()) {
                target.copy_from_slice(&bytes[..target.len()]);
            }
        }
        context
    }

    /// Saves what the program has left in its context.
    fn keep(&self, context: &[u8], saved: &mut BTreeMap<String, u64>) {
        for value in &self.save {
            let mut bytes = [0; 8];
            if let Some(member) = context.get(value.range()) {
                bytes[..member.len()].copy_from_slice(member);
            }
            saved.insert(value.name.clone(), u64::from_le_bytes(bytes));
        }
    }
}

impl SavedValue {
    fn range(&self) -> Range<usize> {
        let from = self.offset as usize;
        from..from.saturating_add((self.size as usize).min(8))
    }
}

/// A part of one element of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapContent {
    /// The map.
    pub map: String,
    /// The key, as a number of the key's size, 1 to 8 bytes.
    pub key: u64,
    /// The CPU whose copy it is, in a per-CPU map; `None`: every CPU's.
    pub cpu: Option<u32>,
    /// Byte offset in the value.
    pub offset: u64,
    /// The bytes to write there.
    pub bytes: Vec<u8>,
}

/// The same by numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared {
    writes: Vec<Write>,
    pub(crate) before: Vec<PreparedRun>,
    pub(crate) after: Vec<PreparedRun>,
    pub(crate) each_second: Vec<PreparedRun>,
}

/// A run of a program, by its number.
#[derive(Clone, Debug)]
pub(crate) struct PreparedRun {
    pub(crate) function: usize,
    run: ProgramRun,
}

#[derive(Clone, Debug)]
struct Write {
    map: usize,
    key: Vec<u8>,
    offset: u64,
    bytes: Vec<u8>,
    per_cpu: bool,
    cpu: Option<u32>,
}

impl Policy {
    /// The same scheduler, with this done in each machine.
    ///
    /// # Errors
    /// If a map or program does not exist, or cannot take it.
    pub fn with_setup(mut self, setup: &Setup) -> Result<Policy, SetupError> {
        let writes = setup.maps.iter().map(|content| write(&self.image, content));
        let writes = writes.collect::<Result<_, _>>()?;
        let programs = |runs: &[ProgramRun]| -> Result<Vec<PreparedRun>, SetupError> {
            runs.iter().map(|run| program(&self.image, run)).collect()
        };
        let (before, after) = (programs(&setup.before)?, programs(&setup.after)?);
        let each_second = programs(&setup.each_second)?;
        self.setup = Prepared { writes, before, after, each_second };
        self.tracing = attached(&self.image, &setup.attach, &setup.detach)?;
        Ok(self)
    }
}

/// The programs of an object that are attached to events: see [`Tracing::of`].
///
/// # Errors
/// A name of which the object has no tracing program.
pub(crate) fn attached(
    image: &Image<Kernel>,
    more: &[String],
    leave: &[String],
) -> Result<Tracing, SetupError> {
    let functions = &image.linked().functions;
    let functions: Vec<_> =
        functions.iter().map(|found| (found.name.as_str(), found.section.as_str())).collect();
    Tracing::of(&functions, more, leave)
}

fn write(image: &Image<Kernel>, content: &MapContent) -> Result<Write, SetupError> {
    let wrong = |problem: String| SetupError { what: format!("map `{}`", content.map), problem };
    let Some(map) = image.map(&content.map) else {
        return Err(wrong("the object has no such map; `sched show` lists its maps".to_owned()));
    };
    let def = &image.linked().maps[map];
    let per_cpu = matches!(def.kind, MapKind::PerCpuArray | MapKind::PerCpuHash);
    let keyed = per_cpu || matches!(def.kind, MapKind::Array | MapKind::Hash | MapKind::LruHash);
    if !keyed {
        return Err(wrong("only arrays and hash tables have elements to set".to_owned()));
    }
    let size = def.key_size as usize;
    let key = content.key.to_le_bytes();
    let (low, high) = key.split_at(size.min(8));
    if size > 8 || high.iter().any(|byte| *byte != 0) {
        return Err(wrong(format!("{} is no key of {size} bytes", content.key)));
    }
    let array = matches!(def.kind, MapKind::Array | MapKind::PerCpuArray);
    if array && content.key >= u64::from(def.max_entries) {
        return Err(wrong(format!("{} is beyond its {} elements", content.key, def.max_entries)));
    }
    let end = content.offset.checked_add(content.bytes.len() as u64);
    if end.is_none_or(|end| end > u64::from(def.value_size)) {
        return Err(wrong(format!("its values have {} bytes", def.value_size)));
    }
    let (offset, bytes) = (content.offset, content.bytes.clone());
    Ok(Write { map, key: low.to_vec(), offset, bytes, per_cpu, cpu: content.cpu })
}

fn program(image: &Image<Kernel>, run: &ProgramRun) -> Result<PreparedRun, SetupError> {
    let name = &run.program;
    let wrong = |problem: &str| SetupError {
        what: format!("program `{name}`"),
        problem: problem.to_owned(),
    };
    let function = image.function(name).ok_or_else(|| wrong("the object has no such program"))?;
    match image.linked().functions[function].section.as_str() {
        "syscall" => Ok(PreparedRun { function, run: run.clone() }),
        _ => Err(wrong("it is no SEC(\"syscall\"): user space cannot run it")),
    }
}

impl PreparedRun {
    /// The CPU that executes it.
    pub(crate) fn cpu(&self) -> u32 {
        self.run.cpu.unwrap_or(0)
    }

    /// Puts the context into the program's memory, and returns its address; 0 without a context.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn pass(
        &self,
        program: &Instance<Kernel>,
        saved: &BTreeMap<String, u64>,
    ) -> Result<u64, MachineError> {
        if self.run.context.is_empty() {
            return Ok(0);
        }
        let context = self.run.filled(saved);
        let address = program.alloc(context.len() as u64, CONTEXT_ALIGN)?;
        program.memory().write(address, &context).map_err(MachineError::Memory)?;
        Ok(address)
    }

    /// Saves what the program has left in the context at `address`, and frees it.
    pub(crate) fn take_back(
        &self,
        address: u64,
        program: &Instance<Kernel>,
        saved: &mut BTreeMap<String, u64>,
    ) -> Result<(), MachineError> {
        if address == 0 {
            return Ok(());
        }
        let context = program.memory().read_vec(address, self.run.context.len());
        self.run.keep(&context.map_err(MachineError::Memory)?, saved);
        for (name, bytes) in &self.run.store {
            let at = saved.get(name).copied().unwrap_or(0);
            program.memory().write(at, bytes).map_err(MachineError::Memory)?;
        }
        program.memory().free(address, self.run.context.len() as u64, CONTEXT_ALIGN);
        Ok(())
    }
}

impl Prepared {
    fn runs(&self) -> impl Iterator<Item = &PreparedRun> {
        self.before.iter().chain(&self.after).chain(&self.each_second)
    }

    /// The functions of all programs that are run.
    pub(crate) fn functions(&self) -> impl Iterator<Item = usize> {
        self.runs().map(|run| run.function)
    }

    /// Fills the maps of a new instance.
    ///
    /// # Errors
    /// A map is full, or the machine lacks the CPU of a program.
    pub(crate) fn fill(&self, program: &mut Instance<Kernel>) -> Result<(), MachineError> {
        if let Some(run) = self.runs().find(|run| run.cpu() >= program.cpus()) {
            return Err(MachineError::Config(format!(
                "the loader's program {} runs on CPU {}, and the machine has {} CPUs",
                run.run.program,
                run.cpu(),
                program.cpus()
            )));
        }
        for write in &self.writes {
            let copies = if write.per_cpu { program.cpus() } else { 1 };
            for cpu in (0..copies).filter(|copy| write.cpu.is_none_or(|cpu| cpu == *copy)) {
                let at = program.maps().entry(write.map, &write.key, cpu);
                let at = at.map_err(MachineError::Memory)?.ok_or_else(|| {
                    MachineError::Config("a profile fills a map beyond its size".to_owned())
                })?;
                let written = program.memory().write(at + write.offset, &write.bytes);
                written.map_err(MachineError::Memory)?;
            }
        }
        Ok(())
    }
}
