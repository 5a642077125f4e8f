//! Values set by a scheduler's own loader, read from the kernel: the contents of data sections, and the integers of the
//! callback table.

use std::fmt::Write;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::query::{MapInfo, MapInfoIter};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

use super::layout::integers;
use crate::job::{Captured, CapturedSection};

/// The sections that are captured.
const SECTIONS: [&str; 3] = [".rodata", ".data", ".bss"];
/// Maximum bytes of a section: larger ones, which schedulers use for their own state, are left out.
const SECTION_BYTES_MAX: u32 = 1 << 20;
/// Maximum maps that are looked at.
const MAPS_MAX: usize = 4096;

/// Reads what the kernel has, once a loader's scheduler is enabled. The guest has no other scheduler.
pub(super) fn capture() -> Captured {
    let mut captured = Captured::default();
    for map in MapInfoIter::default().take(MAPS_MAX) {
        let name = map.name.to_string_lossy().into_owned();
        match map.ty {
            MapType::StructOps => match table(&map) {
                Some(ops) => captured.ops = ops,
                None => captured.notes.push(format!("the kernel does not show the table {name}")),
            },
            MapType::Array => {
                // libbpf puts a part of the object's name before the section's.
                let section = name.find('.').map_or("", |at| &name[at..]);
                if let Some(section) = SECTIONS.iter().find(|known| **known == section) {
                    captured.sections.extend(content(&map, section, &mut captured.notes));
                }
            }
            _ => {}
        }
    }
    captured
}

fn content(map: &MapInfo, section: &str, notes: &mut Vec<String>) -> Option<CapturedSection> {
    if map.value_size > SECTION_BYTES_MAX {
        notes.push(format!("{section} has {} bytes, and is left out", map.value_size));
        return None;
    }
    let Some(bytes) = element(map) else {
        notes.push(format!("{section} cannot be read"));
        return None;
    };
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing into a text does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Some(CapturedSection { name: section.to_owned(), bytes: text })
}

/// The only element of a map.
fn element(map: &MapInfo) -> Option<Vec<u8>> {
    let handle = MapHandle::from_map_id(map.id).ok()?;
    handle.lookup(&[0; 4], MapFlags::ANY).ok().flatten()
}

/// The integers of the callback table that are not 0.
fn table(map: &MapInfo) -> Option<Vec<(String, u64)>> {
    let value = element(map)?;
    let btf = Btf::from_vmlinux().ok()?;
    // The kernel keeps the table as a member of a structure with its state.
    let kept = btf.type_by_name::<Struct<'_>>("bpf_struct_ops_sched_ext_ops")?;
    let data = kept.iter().find(|member| member.name.is_some_and(|name| name == "data"))?;
    let MemberAttr::Normal { offset } = data.attr else { return None };
    let ops = btf.type_by_name::<Struct<'_>>("sched_ext_ops")?;
    let number = |at: usize, size: usize| {
        let mut bytes = [0; 8];
        let from = offset as usize / 8 + at;
        bytes.get_mut(..size)?.copy_from_slice(value.get(from..from + size)?);
        Some(u64::from_le_bytes(bytes)).filter(|number| *number != 0)
    };
    let members = integers(&btf, *ops).into_iter();
    Some(
        members
            .filter_map(|member| Some((member.name, number(member.offset, member.size)?)))
            .collect(),
    )
}
