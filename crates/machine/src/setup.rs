//! What the loader of a real scheduler does besides setting variables: it fills maps, and it runs programs of the
//! object (`SEC("syscall")`) before the scheduler is attached or once a second.

use fairground_bpf::{Image, Instance, MapKind};

use crate::kernel::Kernel;
use crate::{MachineError, Policy};

/// What is done, by names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// Elements of maps, before anything runs.
    pub maps: Vec<MapContent>,
    /// Programs to run before `init()`, in this order.
    pub before: Vec<String>,
    /// Programs to run at each full second, in this order.
    pub each_second: Vec<String>,
}

/// A part of one element of a map; of every CPU's copy, if the map is per CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapContent {
    /// The map.
    pub map: String,
    /// The key, as a number of the key's size, 1 to 8 bytes.
    pub key: u64,
    /// Byte offset in the value.
    pub offset: u64,
    /// The bytes to write there.
    pub bytes: Vec<u8>,
}

/// Why a setup cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {problem}")]
pub struct SetupError {
    /// The map or program.
    pub what: String,
    /// The fault, and the remedy.
    pub problem: String,
}

/// The same by numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared {
    writes: Vec<Write>,
    pub(crate) before: Vec<usize>,
    pub(crate) each_second: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Write {
    map: usize,
    key: Vec<u8>,
    offset: u64,
    bytes: Vec<u8>,
    per_cpu: bool,
}

impl Policy {
    /// The same scheduler, with this done in each machine.
    ///
    /// # Errors
    /// If a map or program does not exist, or cannot take it.
    pub fn with_setup(mut self, setup: &Setup) -> Result<Policy, SetupError> {
        let writes = setup.maps.iter().map(|content| write(&self.image, content));
        let writes = writes.collect::<Result<_, _>>()?;
        let programs = |names: &[String]| -> Result<Vec<usize>, SetupError> {
            names.iter().map(|name| program(&self.image, name)).collect()
        };
        let (before, each_second) = (programs(&setup.before)?, programs(&setup.each_second)?);
        self.setup = Prepared { writes, before, each_second };
        Ok(self)
    }
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
    Ok(Write { map, key: low.to_vec(), offset, bytes, per_cpu })
}

fn program(image: &Image<Kernel>, name: &str) -> Result<usize, SetupError> {
    let wrong = |problem: &str| SetupError {
        what: format!("program `{name}`"),
        problem: problem.to_owned(),
    };
    let function = image.function(name).ok_or_else(|| wrong("the object has no such program"))?;
    match image.linked().functions[function].section.as_str() {
        "syscall" => Ok(function),
        _ => Err(wrong("it is no SEC(\"syscall\"): user space cannot run it")),
    }
}

impl Prepared {
    /// Fills the maps of a new instance.
    pub(crate) fn fill(&self, program: &mut Instance<Kernel>) -> Result<(), MachineError> {
        for write in &self.writes {
            let copies = if write.per_cpu { program.cpus() } else { 1 };
            for cpu in 0..copies {
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
