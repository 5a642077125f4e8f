//! Loads an object into the kernel: open, settings, topology, verifier.

use std::ffi::CStr;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use libbpf_rs::btf::Btf;
use libbpf_rs::{AsRawLibbpf, MapType, Object, OpenObject, libbpf_sys};
use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::sections::is_section;
use super::{LoadError, constants, kconfig, setup, state, topology, verifier};
use crate::job::{GlobalWrite, Patch, SchedulerJob};

/// libbpf's name of every object. With the suffix of a data section, the kernel's limit is 15 characters.
const OBJECT_NAME: &CStr = c"sched";
/// Prefix of the names of custom data sections.
const OWN_SECTION: &str = ".data.";
/// Bytes of an element of a topology array: u32.
const ELEMENT: usize = 4;
/// `BPF_F_LINK`: the kernel disables the scheduler when its link is closed. Without it, a scheduler stays enabled
/// after its loader has died.
const BPF_F_LINK: u32 = 1 << 13;

/// A program that the verifier has accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedProgram {
    /// Its name.
    pub name: String,
    /// Instructions that the verifier processed (`bpf_prog_info.verified_insns`); `None` if the kernel does not
    /// report it.
    pub verified_insns: Option<u32>,
}

/// Loads an object without attaching it: runs this kernel's verifier.
///
/// # Errors
/// As [`Attached::attach`](super::Attached::attach), except that another scheduler may be enabled.
pub fn verify(job: &SchedulerJob, object: &[u8]) -> Result<Vec<VerifiedProgram>, LoadError> {
    match state::check(&job.name) {
        Ok(()) | Err(LoadError::Busy { .. }) => Ok(verified(&load(job, object)?.0)),
        Err(error) => Err(error),
    }
}

/// Opens an object, applies the settings, loads it, and fills its maps.
pub(super) fn load(job: &SchedulerJob, object: &[u8]) -> Result<(Object, Layout), LoadError> {
    let name = &job.name;
    let (opened, warnings) = verifier::with_warnings(|| open(object));
    let mut opened = opened.map_err(|error| {
        let mut messages = verifier::messages(&warnings);
        messages.push(error.to_string());
        LoadError::NoObject { name: name.clone(), messages }
    })?;
    let mut layout = layout_of(name, &opened)?;
    layout.choose(job.setup.table.as_deref());
    layout.scheduler().map_err(|found| LoadError::NotOne { name: name.clone(), found })?;
    for mut map in opened.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
        let flags = map.map_flags() | BPF_F_LINK;
        let _ = map.set_map_flags(flags);
    }
    fill_topology(name, &mut opened, &layout)?;
    for (variable, value) in constants::values(&layout.constants) {
        let patch = whole(variable.offset as u64, value.to_vec());
        put(&mut opened, &variable.section, &patch);
    }
    setup::set_ops(name, &mut opened, &layout, &job.setup)?;
    setup::set_max_entries(name, &mut opened, &job.setup)?;
    setup::choose_programs(name, &mut opened, &job.setup)?;
    for write in job.writes.iter().filter(|write| write.at_ns.is_none()) {
        for patch in &write.patches {
            put(&mut opened, &write.section, patch)
                .ok_or_else(|| not_in_object(name, write, Some(patch)))?;
        }
    }
    let (loaded, warnings) = verifier::with_warnings(|| opened.load());
    match loaded {
        Ok(mut object) => {
            setup::check_programs(name, &object, &job.setup)?;
            setup::fill_maps(name, &mut object, &job.setup)?;
            Ok((object, layout))
        }
        Err(error) => {
            let mut warnings = warnings;
            warnings.push(error.to_string());
            Err(verifier::explain(name, &warnings))
        }
    }
}

/// `bpf_object__open_mem` with the known part of the kernel's configuration, an option that libbpf-rs lacks.
fn open(object: &[u8]) -> std::io::Result<OpenObject> {
    let kconfig = kconfig::known();
    let options = libbpf_sys::bpf_object_open_opts {
        sz: size_of::<libbpf_sys::bpf_object_open_opts>() as libbpf_sys::size_t,
        object_name: OBJECT_NAME.as_ptr(),
        kconfig: kconfig.as_ptr(),
        ..Default::default()
    };
    let (start, size) = (object.as_ptr().cast(), object.len() as libbpf_sys::size_t);
    // SAFETY: libbpf copies the object, the name and the configuration before it returns.
    let opened = unsafe { libbpf_sys::bpf_object__open_mem(start, size, &raw const options) };
    match NonNull::new(opened) {
        // SAFETY: it has just been opened, is not loaded, and has no other owner.
        Some(opened) => Ok(unsafe { OpenObject::from_ptr(opened) }),
        None => Err(std::io::Error::last_os_error()),
    }
}

fn layout_of(name: &str, opened: &OpenObject) -> Result<Layout, LoadError> {
    let pointer = opened.as_libbpf_object();
    // SAFETY: the object is open for as long as `opened` is borrowed, and does not change meanwhile.
    let raw = unsafe { pointer.as_ref() };
    match Btf::from_bpf_object(raw) {
        Ok(Some(btf)) => Ok(Layout::of(&btf)),
        _ => Err(LoadError::NoObject {
            name: name.to_owned(),
            messages: vec!["it has no type information (.BTF): compile it with -g".to_owned()],
        }),
    }
}

pub(super) fn not_in_object(name: &str, write: &GlobalWrite, patch: Option<&Patch>) -> LoadError {
    let what = match patch {
        Some(Patch { offset, bytes, .. }) => {
            format!("{} bytes at offset {offset} of {}", bytes.len(), write.section)
        }
        None => format!("section {}", write.section),
    };
    LoadError::BadSetting {
        name: name.to_owned(),
        label: write.label.clone(),
        problem: format!("the object has no {what}: the setting is for another build of it"),
    }
}

/// A change of all bits of some bytes.
fn whole(offset: u64, bytes: Vec<u8>) -> Patch {
    Patch { offset, bytes, mask: Vec::new() }
}

/// Writes bytes to a section of an object before it is loaded. A custom section (`.data.NAME`) grows if they exceed
/// it, and with it the array that is its last variable.
fn put(opened: &mut OpenObject, section: &str, patch: &Patch) -> Option<()> {
    let mut maps = opened.maps_mut();
    let mut map = maps.find(|map| is_section(&map.name().to_string_lossy(), section))?;
    let from = usize::try_from(patch.offset).ok()?;
    let end = from.checked_add(patch.bytes.len())?;
    if section.starts_with(OWN_SECTION) && map.initial_value()?.len() < end {
        map.set_value_size(u32::try_from(end).ok()?).ok()?;
    }
    let content = map.initial_value_mut()?;
    let target = content.get_mut(from..end)?;
    let bytes = patch.over(target);
    target.copy_from_slice(&bytes);
    Some(())
}

fn fill_topology(name: &str, opened: &mut OpenObject, layout: &Layout) -> Result<(), LoadError> {
    for (level, variable) in &layout.topology {
        let wrong = |problem: &str| LoadError::BadSetting {
            name: name.to_owned(),
            label: variable.variable.clone(),
            problem: problem.to_owned(),
        };
        let units = topology::units_of_host(level, variable.size / ELEMENT).ok_or_else(|| {
            wrong("its tag names no topology level: use core, llc, node or socket")
        })?;
        let bytes: Vec<u8> = units.iter().flat_map(|number| number.to_ne_bytes()).collect();
        put(opened, &variable.section, &whole(variable.offset as u64, bytes))
            .ok_or_else(|| wrong("the object does not contain the array"))?;
    }
    Ok(())
}

/// The verifier's statistics of each program.
pub(super) fn verified(object: &Object) -> Vec<VerifiedProgram> {
    object
        .progs()
        .map(|program| {
            let fd = std::os::fd::AsFd::as_fd(&program).as_raw_fd();
            let mut info = libbpf_sys::bpf_prog_info::default();
            let mut size = size_of_val(&info) as u32;
            // SAFETY: `info` is as large as `size` says, and the descriptor is open as long as the program is borrowed.
            let known =
                unsafe { libbpf_sys::bpf_prog_get_info_by_fd(fd, &raw mut info, &raw mut size) };
            VerifiedProgram {
                name: program.name().to_string_lossy().into_owned(),
                verified_insns: (known == 0).then_some(info.verified_insns),
            }
        })
        .collect()
}
