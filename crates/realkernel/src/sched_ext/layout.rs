//! The layout of an object, from its type information: its `struct sched_ext_ops`, its exit record, and its topology
//! arrays.

use libbpf_rs::btf::types::{DataSec, DeclTag, Int, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, BtfType, TypeId};
use libbpf_rs::{HasSize, ReferencesType};

use super::constants::constant_of;
use super::sections::VariableLocation;

/// Types of a scheduler's struct_ops variable. The second (7.2) identifies CPUs by topological number.
const OPS_TYPES: [&str; 2] = ["sched_ext_ops", "sched_ext_ops_cid"];
/// Prefix of the tag of a topology array.
const TOPOLOGY_TAG: &str = "topology:";

/// The exit record: a structure with the members `kind`, `exit_code`, `reason` and `msg`, such as `struct
/// exit_record` of fairground's headers and `struct user_exit_info` of the kernel's tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExitRecord {
    pub(super) section: String,
    /// Offsets of the members in the section, bytes.
    pub(super) kind: usize,
    pub(super) code: usize,
    /// Offset and length of the strings, bytes.
    pub(super) reason: (usize, usize),
    pub(super) message: (usize, usize),
}

/// An integer member of `struct sched_ext_ops`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpsMember {
    pub(super) name: String,
    /// Byte offset.
    pub(super) offset: usize,
    /// Bytes.
    pub(super) size: usize,
}

/// The layout of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// The struct_ops variables: name and type.
    pub(super) ops: Vec<(String, String)>,
    /// The integer members of the last `struct sched_ext_ops`.
    pub(super) members: Vec<OpsMember>,
    pub(super) exit: Option<ExitRecord>,
    /// Topology arrays, with their level: `core`, `llc`, `node`, `socket`.
    pub(super) topology: Vec<(String, VariableLocation)>,
    /// Variables that hold constants of the kernel.
    pub(super) constants: Vec<VariableLocation>,
}

impl Layout {
    pub(super) fn of(btf: &Btf<'_>) -> Layout {
        let mut layout = Layout::default();
        let tags = topology_tags(btf);
        for section in btf.type_by_kind::<DataSec<'_>>() {
            let Some(section_name) = text(&section) else { continue };
            for info in section.iter() {
                let Some(variable) = btf.type_by_id::<Var<'_>>(info.ty) else { continue };
                let Some(name) = text(&variable) else { continue };
                let location = VariableLocation {
                    variable: name.clone(),
                    section: section_name.clone(),
                    offset: info.offset as usize,
                    size: info.size,
                };
                let of = variable.referenced_type().skip_mods_and_typedefs();
                if section_name.starts_with(".struct_ops") {
                    let type_name = text(&of).unwrap_or_default();
                    let type_name = type_name.split("___").next().unwrap_or_default().to_owned();
                    if OPS_TYPES.contains(&type_name.as_str()) {
                        layout.members = integers(btf, of);
                    }
                    layout.ops.push((name, type_name));
                    continue;
                }
                if constant_of(&location).is_some() {
                    layout.constants.push(location);
                    continue;
                }
                let levels = tags.iter().filter(|(id, _)| *id == info.ty);
                layout.topology.extend(levels.map(|(_, level)| (level.clone(), location.clone())));
                if layout.exit.is_none() {
                    layout.exit = exit_record(of, &location);
                }
            }
        }
        layout
    }

    /// Keeps one struct_ops variable of several.
    pub(super) fn choose(&mut self, table: Option<&str>) {
        self.ops.retain(|(name, _)| table.is_none_or(|table| table == name));
    }

    /// The name of the only `struct sched_ext_ops`, or all struct_ops variables.
    pub(super) fn scheduler(&self) -> Result<&str, Vec<String>> {
        let mut schedulers = self.ops.iter().filter(|(_, of)| OPS_TYPES.contains(&of.as_str()));
        match (schedulers.next(), schedulers.next()) {
            (Some((name, _)), None) => Ok(name),
            _ => Err(self.ops.iter().map(|(name, of)| format!("struct {of} {name}")).collect()),
        }
    }
}

fn text(ty: &BtfType<'_>) -> Option<String> {
    ty.name().map(|name| name.to_string_lossy().into_owned())
}

/// The variables with a topology tag, with their level.
fn topology_tags(btf: &Btf<'_>) -> Vec<(TypeId, String)> {
    let tags = btf.type_by_kind::<DeclTag<'_>>().filter(|tag| tag.component_index().is_none());
    tags.filter_map(|tag| {
        let level = text(&tag)?.strip_prefix(TOPOLOGY_TAG)?.to_owned();
        Some((tag.referenced_type().type_id(), level))
    })
    .collect()
}

/// The integer members of a structure.
pub(super) fn integers(btf: &Btf<'_>, ty: BtfType<'_>) -> Vec<OpsMember> {
    let Ok(table) = Struct::try_from(ty) else { return Vec::new() };
    let members = table.iter().filter_map(|member| {
        let MemberAttr::Normal { offset } = member.attr else { return None };
        let of = btf.type_by_id::<BtfType<'_>>(member.ty)?.skip_mods_and_typedefs();
        let size = Int::try_from(of).ok()?.size();
        let name = member.name?.to_string_lossy().into_owned();
        Some(OpsMember { name, offset: offset as usize / 8, size })
    });
    members.collect()
}

fn exit_record(ty: BtfType<'_>, variable: &VariableLocation) -> Option<ExitRecord> {
    let record = Struct::try_from(ty).ok()?;
    let size = record.size();
    let starts: Vec<(String, usize)> = record
        .iter()
        .filter_map(|member| match member.attr {
            MemberAttr::Normal { offset } => {
                Some((member.name?.to_string_lossy().into_owned(), offset as usize / 8))
            }
            MemberAttr::BitField { .. } => None,
        })
        .collect();
    let start = |name: &str| starts.iter().find(|(member, _)| member == name).map(|(_, at)| *at);
    // A string ends where the next member starts, or with the structure.
    let text = |name: &str| {
        let from = start(name)?;
        let end = starts.iter().map(|(_, at)| *at).filter(|at| *at > from).min().unwrap_or(size);
        Some((variable.offset + from, end - from))
    };
    Some(ExitRecord {
        section: variable.section.clone(),
        kind: variable.offset + start("kind")?,
        code: variable.offset + start("exit_code")?,
        reason: text("reason")?,
        message: text("msg")?,
    })
}
