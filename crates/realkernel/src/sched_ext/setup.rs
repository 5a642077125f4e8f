//! Actions of a scheduler's own loader besides setting variables: it sets members of `struct sched_ext_ops`, fills
//! maps, and runs programs of the object (`SEC("syscall")`).

use std::collections::BTreeMap;
use std::ops::Range;

use libbpf_rs::{
    Link, MapCore, MapFlags, MapMut, MapType, Object, OpenObject, ProgramInput, ProgramType,
};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::LoadError;
use super::layout::Layout;
use crate::job::{ContextValue, MapWrite, ProgramJob, SchedulerSetup};

/// Maximum bytes of an integer key.
const KEY_BYTES_MAX: usize = 8;
/// Maximum bytes of a value in a program's context.
const CONTEXT_VALUE_BYTES_MAX: usize = 8;
/// Types of maps with elements that can be set.
const KEYED: [MapType; 6] = [
    MapType::Array,
    MapType::Hash,
    MapType::LruHash,
    MapType::PercpuArray,
    MapType::PercpuHash,
    MapType::LruPercpuHash,
];

/// Sets integer members of `struct sched_ext_ops`, before the object is loaded.
pub(super) fn set_ops(
    name: &str,
    opened: &mut OpenObject,
    layout: &Layout,
    setup: &SchedulerSetup,
) -> Result<(), LoadError> {
    for (member, value) in &setup.ops {
        set_member(opened, layout, member, *value).map_err(|problem| LoadError::BadSetting {
            name: name.to_owned(),
            label: format!("{member}={value}"),
            problem,
        })?;
    }
    Ok(())
}

fn set_member(
    opened: &mut OpenObject,
    layout: &Layout,
    member: &str,
    value: u64,
) -> Result<(), String> {
    let member = layout.members.iter().find(|known| known.name == member);
    let member = member.ok_or("struct sched_ext_ops has no such integer")?;
    let bytes = value.to_le_bytes();
    let (low, high) = bytes.split_at(member.size.min(bytes.len()));
    if high.iter().any(|byte| *byte != 0) {
        return Err(format!("it has {} bytes", member.size));
    }
    let scheduler = layout.scheduler().unwrap_or_default();
    let mut maps = opened.maps_mut();
    let mut table = maps
        .find(|map| map.map_type() == MapType::StructOps && map.name() == scheduler)
        .ok_or("the object has no struct sched_ext_ops")?;
    let content = table.initial_value_mut().unwrap_or_default();
    let range = member.offset..member.offset + low.len();
    content.get_mut(range).ok_or("it exceeds struct sched_ext_ops")?.copy_from_slice(low);
    Ok(())
}

/// Sets how many elements maps have, before the object is loaded.
pub(super) fn set_max_entries(
    name: &str,
    opened: &mut OpenObject,
    setup: &SchedulerSetup,
) -> Result<(), LoadError> {
    for (wanted, entries) in &setup.max_entries {
        let map = opened.maps_mut().find(|map| map.name() == wanted.as_str());
        let done = map
            .ok_or_else(|| "the object has no such map".to_owned())
            .and_then(|mut map| map.set_max_entries(*entries).map_err(|error| error.to_string()));
        done.map_err(|problem| LoadError::BadSetting {
            name: name.to_owned(),
            label: format!("max_entries of {wanted}: {entries}"),
            problem,
        })?;
    }
    Ok(())
}

/// Chooses which programs of events are loaded, before the object is.
pub(super) fn choose_programs(
    name: &str,
    opened: &mut OpenObject,
    setup: &SchedulerSetup,
) -> Result<(), LoadError> {
    let attach = setup.attach.iter().map(|program| (program, true));
    for (wanted, is_loaded) in attach.chain(setup.detach.iter().map(|program| (program, false))) {
        let program = opened.progs_mut().find(|program| program.name() == wanted.as_str());
        let Some(mut program) = program.filter(|program| is_of_events(program.prog_type())) else {
            return Err(LoadError::BadSetting {
                name: name.to_owned(),
                label: wanted.clone(),
                problem: "the object has no such program that can be attached to an event"
                    .to_owned(),
            });
        };
        program.set_autoload(is_loaded);
    }
    Ok(())
}

/// Attaches the loaded programs that are called at events of the kernel, as a loader does before it attaches the
/// scheduler.
pub(super) fn attach_programs(name: &str, object: &mut Object) -> Result<Vec<Link>, LoadError> {
    let programs = object.progs_mut();
    programs
        .filter(|program| program.autoload() && is_of_events(program.prog_type()))
        .map(|program| {
            program.attach().map_err(|error| LoadError::Event {
                name: name.to_owned(),
                program: program.name().to_string_lossy().into_owned(),
                section: program.section().to_string_lossy().into_owned(),
                error: format!("{error:#}"),
            })
        })
        .collect()
}

/// Whether programs of a type are called at tracepoints and functions of the kernel.
fn is_of_events(kind: ProgramType) -> bool {
    matches!(
        kind,
        ProgramType::Tracing
            | ProgramType::RawTracepoint
            | ProgramType::Tracepoint
            | ProgramType::Kprobe
    )
}

/// Fills the maps of a loaded object.
pub(super) fn fill_maps(
    name: &str,
    object: &mut Object,
    setup: &SchedulerSetup,
) -> Result<(), LoadError> {
    for write in &setup.maps {
        let map = object.maps_mut().find(|map| map.name() == write.map.as_str());
        let done = map.ok_or_else(|| "the object has no such map".to_owned());
        done.and_then(|map| fill(&map, write)).map_err(|problem| LoadError::BadSetting {
            name: name.to_owned(),
            label: format!("map {}, key {}", write.map, write.key),
            problem,
        })?;
    }
    Ok(())
}

fn fill(map: &MapMut<'_>, write: &MapWrite) -> Result<(), String> {
    if !KEYED.contains(&map.map_type()) {
        return Err("only arrays and hash tables have elements to set".to_owned());
    }
    let size = map.key_size() as usize;
    let key = write.key.to_le_bytes();
    let (key, high) = key.split_at(size.min(KEY_BYTES_MAX));
    if size > KEY_BYTES_MAX || high.iter().any(|byte| *byte != 0) {
        return Err(format!("{} exceeds a key of {size} bytes", write.key));
    }
    let array = matches!(map.map_type(), MapType::Array | MapType::PercpuArray);
    if array && write.key >= u64::from(map.max_entries()) {
        return Err(format!("the map has {} elements", map.max_entries()));
    }
    let message = |error: libbpf_rs::Error| error.to_string();
    if !map.map_type().is_percpu() {
        let old = map.lookup(key, MapFlags::ANY).map_err(message)?;
        let mut value = old.unwrap_or_else(|| vec![0; map.value_size() as usize]);
        put(&mut value, write)?;
        return map.update(key, &value, MapFlags::ANY).map_err(message);
    }
    let cpus = libbpf_rs::num_possible_cpus().map_err(message)?;
    let old = map.lookup_percpu(key, MapFlags::ANY).map_err(message)?;
    let mut values = old.unwrap_or_else(|| vec![vec![0; map.value_size() as usize]; cpus]);
    let is_one = |cpu: usize| write.cpu.is_none_or(|one| one as usize == cpu);
    let mut copies = values.iter_mut().enumerate().filter(|(cpu, _)| is_one(*cpu));
    copies.try_for_each(|(_, value)| put(value, write))?;
    map.update_percpu(key, &values, MapFlags::ANY).map_err(message)
}

fn put(value: &mut [u8], write: &MapWrite) -> Result<(), String> {
    let size = value.len();
    let from = usize::try_from(write.offset).unwrap_or(usize::MAX);
    let end = from.saturating_add(write.bytes.len());
    let target = value.get_mut(from..end).ok_or_else(|| format!("its values have {size} bytes"))?;
    target.copy_from_slice(&write.bytes);
    Ok(())
}

/// Checks that the object has the programs to run, and that user space can run them.
pub(super) fn check_programs(
    name: &str,
    object: &Object,
    setup: &SchedulerSetup,
) -> Result<(), LoadError> {
    let kind = |wanted: &str| {
        object.progs().find(|program| program.name() == wanted).map(|program| program.prog_type())
    };
    for job in setup.before.iter().chain(&setup.after).chain(&setup.each_second) {
        let program = &job.program;
        let problem = match kind(program) {
            Some(ProgramType::Syscall) if job.stores => {
                "what it allocates in its arena is filled by its own loader only: run it with `--loader`"
            }
            Some(ProgramType::Syscall) => continue,
            Some(_) => "it is not a SEC(\"syscall\") program, so user space cannot run it",
            None => "the object has no such program",
        };
        return Err(LoadError::BadSetting {
            name: name.to_owned(),
            label: program.clone(),
            problem: problem.to_owned(),
        });
    }
    Ok(())
}

/// Values that programs left in their contexts, by name.
pub(super) type Saved = BTreeMap<String, u64>;

/// Runs programs of a loaded object. A negative return value is an error.
pub(super) fn run_programs(
    name: &str,
    object: &Object,
    programs: &[ProgramJob],
    saved: &mut Saved,
) -> Result<(), LoadError> {
    for job in programs {
        let failed = |problem: String| LoadError::Program {
            name: name.to_owned(),
            program: job.program.clone(),
            problem,
        };
        let found = object.progs_mut().find(|found| found.name() == job.program.as_str());
        let found = found.ok_or_else(|| failed("the object has no such program".to_owned()))?;
        let mut context = job.context.clone();
        for value in &job.load {
            let bytes = saved.get(&value.name).copied().unwrap_or(0).to_le_bytes();
            if let Some(target) = context.get_mut(range(value)) {
                target.copy_from_slice(&bytes[..target.len()]);
            }
        }
        let pinned = job.cpu.map(Pinned::to).transpose();
        let _pinned = pinned.map_err(|error| failed(format!("it cannot be run there: {error}")))?;
        let context_in = (!context.is_empty()).then_some(context.as_mut_slice());
        // The kernel writes what the program leaves to the same bytes.
        let ran = found.test_run(ProgramInput { context_in, ..ProgramInput::default() });
        let returned = ran.map_err(|error| failed(error.to_string()))?.return_value as i32;
        if returned < 0 {
            return Err(failed(format!("it returned {returned}")));
        }
        for value in &job.save {
            let mut bytes = [0; CONTEXT_VALUE_BYTES_MAX];
            if let Some(member) = context.get(range(value)) {
                bytes[..member.len()].copy_from_slice(member);
            }
            saved.insert(value.name.clone(), u64::from_le_bytes(bytes));
        }
    }
    Ok(())
}

/// This thread runs on one CPU as long as this value exists.
struct Pinned(CpuSet);

impl Pinned {
    fn to(cpu: u32) -> nix::Result<Pinned> {
        let this = Pid::from_raw(0);
        let before = sched_getaffinity(this)?;
        let mut only = CpuSet::new();
        only.set(cpu as usize)?;
        sched_setaffinity(this, &only)?;
        Ok(Pinned(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The CPUs were allowed before.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.0);
    }
}

fn range(value: &ContextValue) -> Range<usize> {
    let from = usize::try_from(value.offset).unwrap_or(usize::MAX);
    let size = usize::try_from(value.size).unwrap_or(usize::MAX).min(CONTEXT_VALUE_BYTES_MAX);
    from..from.saturating_add(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_pinned_until_the_end() {
        let affinity = || sched_getaffinity(Pid::from_raw(0)).expect("the own affinity");
        let before = affinity();
        let cpu = (0..CpuSet::count()).find(|cpu| before.is_set(*cpu) == Ok(true)).expect("a CPU");
        let pinned = Pinned::to(cpu as u32).expect("it is allowed");
        let allowed = (0..CpuSet::count()).filter(|cpu| affinity().is_set(*cpu) == Ok(true));
        assert_eq!(allowed.collect::<Vec<_>>(), [cpu]);
        drop(pinned);
        assert_eq!(affinity(), before);
    }

    #[test]
    fn a_part_of_a_value_leaves_the_rest() {
        let write = |offset, bytes: &[u8]| MapWrite {
            map: "m".to_owned(),
            key: 0,
            cpu: None,
            offset,
            bytes: bytes.to_vec(),
        };
        let mut value = [1, 2, 3, 4];
        put(&mut value, &write(1, &[7, 8])).expect("within the value");
        assert_eq!(value, [1, 7, 8, 4]);
        let message = put(&mut value, &write(3, &[7, 8])).expect_err("it is too long");
        assert_eq!(message, "its values have 4 bytes");
        put(&mut value, &write(u64::MAX, &[7])).expect_err("beyond the value");
        assert_eq!(value, [1, 7, 8, 4]);
    }
}
