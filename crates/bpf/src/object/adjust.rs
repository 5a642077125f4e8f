//! Changes that a loader makes to an object between open and load.

use super::globals::GlobalType;
use super::maps;
use super::struct_ops::{OpsField, OpsValue};
use crate::error::{Fault, LoadCause, LoadError};
use crate::linked::MapKind;
use crate::object::Object;

/// Bytes of a page of an arena, which `max_entries` counts.
const ARENA_PAGE_BYTES: usize = 4096;

/// Integer members of `struct sched_ext_ops` that a loader may set.
const OPS_MEMBERS: [&str; 6] =
    ["flags", "timeout_ms", "dispatch_max_batch", "exit_dump_len", "hotplug_seq", "sub_cgroup_id"];

impl Object {
    /// Sets the length of an array that is the only variable of its section (`.data.NAME`) to `count` elements.
    ///
    /// # Errors
    /// No array of that name is alone in a data section; the errors of [`Object::enlarge_section`].
    pub fn resize_array(&mut self, variable: &str, count: u64) -> Result<(), LoadError> {
        self.resized(variable, count)
            .map_err(|cause| Fault::at_symbol(variable, cause).in_file(self.name()))
    }

    fn resized(&mut self, variable: &str, count: u64) -> Result<(), LoadCause> {
        let wrong = |text: &str| Err(LoadCause::Unsupported(text.to_owned()));
        let Some(global) = self.global(variable).cloned() else {
            return wrong("resizing it: the object has no such variable");
        };
        let GlobalType::Array { element_size, .. } = global.ty else {
            return wrong("resizing it: it is not an array");
        };
        let alone = self.globals().iter().filter(|other| other.map == global.map).count() == 1;
        if !alone || global.offset != 0 {
            return wrong(
                "resizing it: it is not the only variable of its section (SEC(\".data.NAME\"))",
            );
        }
        let count = count.max(1);
        let bytes = element_size.saturating_mul(count);
        let section = self.section_of(&global).to_owned();
        self.enlarge(&section, bytes).map_err(|fault| fault.cause)?;
        if let Some(global) = self.globals.iter_mut().find(|global| global.name == variable) {
            global.size = bytes;
            if let GlobalType::Array { count: elements, .. } = &mut global.ty {
                *elements = count;
            }
        }
        Ok(())
    }

    /// Sets `max_entries` of a map (a ring buffer's bytes, an arena's pages), as a loader does before it loads the
    /// object.
    ///
    /// # Errors
    /// There is no such map, or the kernel does not create it with so many.
    pub fn resize_map(&mut self, map: &str, entries: u64) -> Result<(), LoadError> {
        let file = self.name.clone();
        let fault = |cause| Fault::at_symbol(map, cause).in_file(&file);
        let found = self.maps.iter_mut().find(|found| found.def.name == map);
        let found = found.filter(|found| !matches!(found.def.kind, MapKind::Data { .. }));
        let Some(found) = found else {
            let text = "resizing it: the object has no such map".to_owned();
            return Err(fault(LoadCause::Unsupported(text)));
        };
        let mut def = found.def.clone();
        def.max_entries = u32::try_from(entries).map_err(|_| {
            fault(LoadCause::BadMap(format!("`max_entries` is at most {}", u32::MAX)))
        })?;
        maps::check(&def).map_err(&fault)?;
        if def.kind == MapKind::ArrayOfMaps {
            def.initial.resize(4 * def.max_entries as usize, 0);
        }
        let pages = def.initial.len().div_ceil(ARENA_PAGE_BYTES) as u64;
        if def.kind == MapKind::Arena && pages > entries {
            let text = format!("its variables need {pages} pages, `max_entries` is {entries}");
            return Err(fault(LoadCause::BadMap(text)));
        }
        found.def = def;
        Ok(())
    }

    /// Keeps one struct_ops variable of several. False, and nothing changes, if there is none of that name.
    pub fn keep_struct_ops(&mut self, name: &str) -> bool {
        let is_there = self.struct_ops.iter().any(|table| table.name == name);
        self.struct_ops.retain(|table| !is_there || table.name == name);
        is_there
    }

    /// Sets an integer member of the scheduler's `struct sched_ext_ops`.
    ///
    /// # Errors
    /// The object does not have exactly one struct_ops variable, or a loader may not set the member.
    pub fn set_ops_member(&mut self, member: &str, value: u64) -> Result<(), LoadError> {
        if !OPS_MEMBERS.contains(&member) {
            let text = format!("setting it: a loader sets `{}`", OPS_MEMBERS.join("`, `"));
            return Err(self.fault(member, text));
        }
        if self.struct_ops.len() != 1 {
            let text = format!("setting it: the object has {} tables", self.struct_ops.len());
            return Err(self.fault(member, text));
        }
        let fields = &mut self.struct_ops[0].fields;
        fields.retain(|field| field.name != member);
        if value != 0 {
            fields.push(OpsField { name: member.to_owned(), value: OpsValue::Int(value) });
        }
        Ok(())
    }

    fn fault(&self, symbol: &str, text: String) -> LoadError {
        Fault::at_symbol(symbol, LoadCause::Unsupported(text)).in_file(self.name())
    }
}
