//! Requirements of an object, and those that a kernel does not meet. Works also for objects that cannot be linked.

use std::collections::BTreeSet;

use crate::btf::Btf;
use crate::core_reloc::{Resolver, essential_name};
use crate::env::{Env, Host};
use crate::helpers;
use crate::link::{ConfigValue, Symbols, link};
use crate::linked::{Fixup, MapKind};
use crate::object::{Extern, ExternKind, Object, ObjectMap, Target, number_of_kind};
use crate::types::TargetTypes;

/// A map as the object declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapInfo {
    /// Its symbol; the section's name for data.
    pub name: String,
    /// Its type by the kernel's name, `percpu_array`; `data` for a data section.
    pub kind: String,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// Entries at most (for a ring buffer: bytes; for an arena: pages).
    pub max_entries: u32,
}

/// A kernel function that an object declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedKfunc {
    /// Its name, with its `___flavour`.
    pub name: String,
    /// It may be missing.
    pub weak: bool,
}

/// The kind of a [`Lack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LackKind {
    /// A kernel function.
    Kfunc,
    /// A kernel variable.
    Variable,
    /// A BPF helper.
    Helper,
    /// A type of map.
    Map,
    /// A member or constant of the kernel's types: an instruction that uses it cannot be executed.
    Type,
}

/// Something that an object names and a kernel lacks: an instruction that requires it ends the run when it is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lack {
    /// Its kind.
    pub kind: LackKind,
    /// Its name.
    pub name: String,
}

/// Names of map types (`enum bpf_map_type`), from number 1 on.
const MAP_TYPES: &str = "\
    hash array prog_array perf_event_array percpu_hash percpu_array stack_trace cgroup_array lru_hash lru_percpu_hash \
    lpm_trie array_of_maps hash_of_maps devmap sockmap cpumap xskmap sockhash cgroup_storage reuseport_sockarray \
    percpu_cgroup_storage queue stack sk_storage devmap_hash struct_ops ringbuf inode_storage \
    task_storage bloom_filter \
    user_ringbuf cgrp_storage arena";

impl Object {
    /// The maps, data sections included, in the order of [`Linked::maps`](crate::Linked::maps).
    pub fn maps(&self) -> Vec<MapInfo> {
        let info = |map: &ObjectMap| {
            let def = &map.def;
            let kind = match def.kind {
                MapKind::Data { .. } => "data".to_owned(),
                kind => type_name(number_of_kind(kind)),
            };
            MapInfo {
                name: def.name.clone(),
                kind,
                key_size: def.key_size,
                value_size: def.value_size,
                max_entries: def.max_entries,
            }
        };
        self.maps.iter().map(info).collect()
    }

    /// Byte offset and size of a member of a map's value, by its path (`limits.burst`; empty: the whole value).
    /// `None`: there is no such map or member, or the map has no value type.
    pub fn map_member(&self, map: &str, path: &str) -> Option<(u64, u64)> {
        let map = self.maps.iter().find(|found| found.def.name == map)?;
        if path.is_empty() {
            return Some((0, u64::from(map.def.value_size)));
        }
        let (offset, size) = self.btf.member_on(map.value?, path)?;
        Some((u64::from(offset), size))
    }

    /// The kernel functions that it declares, sorted.
    pub fn kfuncs(&self) -> Vec<WantedKfunc> {
        let named = self.externs.iter().filter(|symbol| symbol.kind == ExternKind::Kfunc);
        let mut wanted: Vec<_> = named
            .map(|symbol| WantedKfunc { name: symbol.name.clone(), weak: symbol.weak })
            .collect();
        wanted.sort_by(|a, b| a.name.cmp(&b.name));
        wanted
    }

    /// The BPF helpers that it calls, by number: numbers and names (`bpf_map_lookup_elem`).
    pub fn helpers(&self) -> Vec<(u32, String)> {
        let targets = self.code.iter().flat_map(|function| function.targets.values());
        let numbers: BTreeSet<u32> = targets
            .filter_map(|target| match target {
                Target::CallHelper(number) => Some(*number),
                _ => None,
            })
            .collect();
        let name = |number| helpers::name(number).map_or("unknown".into(), |n| format!("bpf_{n}"));
        numbers.into_iter().map(|number| (number, name(number))).collect()
    }

    /// Whether it accesses a member of a structure of the kernel, or asks whether there is one: `struct
    /// task_struct.sched_info`, with what lies in it.
    pub fn names_member(&self, path: &str) -> bool {
        let relocations = self.code.iter().flat_map(|function| &function.core);
        let inside = format!("{path}.");
        let mut described = relocations.filter_map(|(_, one)| Resolver::describe(&self.btf, one));
        described.any(|text| text == path || text.starts_with(&inside))
    }

    /// The requirements of this object that an environment does not meet, sorted.
    pub fn lacks<H: Host>(&self, env: &Env<H>) -> Vec<Lack> {
        let mut found = BTreeSet::new();
        let known = env.kfunc_names();
        for wanted in self.kfuncs() {
            let names = [wanted.name.as_str(), essential_name(&wanted.name)];
            if !names.iter().any(|name| known.contains(name)) {
                found.insert(Lack { kind: LackKind::Kfunc, name: wanted.name });
            }
        }
        for symbol in self.externs.iter().filter(|s| s.kind == ExternKind::Variable) {
            if !env.ksyms.iter().any(|(name, _)| *name == symbol.name) {
                found.insert(Lack { kind: LackKind::Variable, name: symbol.name.clone() });
            }
        }
        for (number, name) in self.helpers() {
            if !env.has_helper(number) {
                let name = format!("{name} (helper {number})");
                found.insert(Lack { kind: LackKind::Helper, name });
            }
        }
        for map in &self.maps {
            if let MapKind::Foreign(number) = map.def.kind {
                let name = format!("{} ({})", map.def.name, type_name(number));
                found.insert(Lack { kind: LackKind::Map, name });
            }
        }
        found.extend(self.unresolved(&env.types.btf));
        found.into_iter().collect()
    }

    /// CO-RE relocations without a match in the kernel's types.
    fn unresolved(&self, types: &Btf) -> Vec<Lack> {
        let all: Vec<&str> = self.externs.iter().map(|symbol| symbol.name.as_str()).collect();
        let ksyms: Vec<(&str, u64)> = all.iter().map(|name| (*name, 0)).collect();
        let value = |symbol: &Extern| match symbol.kind {
            ExternKind::Config { text: true, .. } => ConfigValue::Text("".into()),
            _ => ConfigValue::Number(0),
        };
        let kconfig = self.externs.iter().map(|symbol| (symbol.name.as_str(), value(symbol)));
        let kconfig: Vec<_> = kconfig.collect();
        let symbols =
            Symbols { kfuncs: &all, kconfig: &kconfig, ksyms: &ksyms, ..Symbols::default() };
        let types = TargetTypes { btf: types.clone() };
        let Ok(linked) = link(self, &types, &symbols) else { return Vec::new() };
        let mut found = Vec::new();
        for function in &linked.functions {
            for fixup in function.fixups.values() {
                if let Fixup::Poison(text) = fixup {
                    let name = format!("{}: {text}", function.name);
                    found.push(Lack { kind: LackKind::Type, name });
                }
            }
        }
        found
    }
}

/// The kernel's name of a map type.
pub(crate) fn type_name(number: u32) -> String {
    let known = (number as usize).checked_sub(1);
    let name = known.and_then(|at| MAP_TYPES.split_ascii_whitespace().nth(at));
    name.map_or(format!("type {number}"), str::to_owned)
}
