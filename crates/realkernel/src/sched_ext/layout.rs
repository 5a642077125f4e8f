//! What an object's own type information says about it: where its callback table is, where it records how it ended, and
//! which of its arrays want the machine's topology.

use libbpf_rs::btf::types::{DataSec, DeclTag, Int, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, BtfType, TypeId};
use libbpf_rs::{HasSize, ReferencesType};

use super::constants::constant_of;

/// Types of a scheduler's callback table; in the second (7.2) CPUs go by their topological numbers.
const OPS_TYPES: [&str; 2] = ["sched_ext_ops", "sched_ext_ops_cid"];
/// What starts the tag of an array that wants the topology.
const TOPOLOGY_TAG: &str = "topology:";

/// A stretch of a data section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The variable.
    pub(super) variable: String,
    /// The section: `.data`.
    pub(super) section: String,
    /// Where in the section, bytes.
    pub(super) offset: usize,
    /// How long, bytes.
    pub(super) size: usize,
}

/// A variable that records how the scheduler's time in charge ended: a structure with the members `kind`, `exit_code`,
/// `reason` and `msg`, as `struct exit_record` of fairground's headers and `struct user_exit_info` of the kernel's tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExitPlace {
    pub(super) section: String,
    /// Offsets of the members in the section, bytes.
    pub(super) kind: usize,
    pub(super) code: usize,
    /// Offset and length of the texts.
    pub(super) reason: (usize, usize),
    pub(super) message: (usize, usize),
}

/// An integer of the callback table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpsMember {
    pub(super) name: String,
    /// Where in the table, bytes.
    pub(super) offset: usize,
    /// How long, bytes.
    pub(super) size: usize,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// The struct_ops variables: name and type.
    pub(super) ops: Vec<(String, String)>,
    /// The integers of the last callback table of a scheduler.
    pub(super) members: Vec<OpsMember>,
    pub(super) exit: Option<ExitPlace>,
    /// Arrays that want the topology, with the level: `core`, `llc`, `node`, `socket`.
    pub(super) topology: Vec<(String, Place)>,
    /// Variables that stand for constants of the kernel.
    pub(super) constants: Vec<Place>,
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
                let place = Place {
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
                if constant_of(&place).is_some() {
                    layout.constants.push(place);
                    continue;
                }
                let levels = tags.iter().filter(|(id, _)| *id == info.ty);
                layout.topology.extend(levels.map(|(_, level)| (level.clone(), place.clone())));
                if layout.exit.is_none() {
                    layout.exit = exit_place(of, &place);
                }
            }
        }
        layout
    }

    /// The name of the one callback table, or all that there are.
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

/// The variables with a topology tag, with the level.
fn topology_tags(btf: &Btf<'_>) -> Vec<(TypeId, String)> {
    let tags = btf.type_by_kind::<DeclTag<'_>>().filter(|tag| tag.component_index().is_none());
    tags.filter_map(|tag| {
        let level = text(&tag)?.strip_prefix(TOPOLOGY_TAG)?.to_owned();
        Some((tag.referenced_type().type_id(), level))
    })
    .collect()
}

/// The integers of a structure.
fn integers(btf: &Btf<'_>, ty: BtfType<'_>) -> Vec<OpsMember> {
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

fn exit_place(ty: BtfType<'_>, place: &Place) -> Option<ExitPlace> {
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
    // Texts are arrays of bytes: one ends where the next member starts, or with the structure.
    let text = |name: &str| {
        let from = start(name)?;
        let end = starts.iter().map(|(_, at)| *at).filter(|at| *at > from).min().unwrap_or(size);
        Some((place.offset + from, end - from))
    };
    Some(ExitPlace {
        section: place.section.clone(),
        kind: place.offset + start("kind")?,
        code: place.offset + start("exit_code")?,
        reason: text("reason")?,
        message: text("msg")?,
    })
}
