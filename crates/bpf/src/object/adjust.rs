//! Changes that a loader makes to an object between open and load.

use super::globals::GlobalType;
use super::struct_ops::{OpsField, OpsValue};
use crate::error::{Fault, LoadCause, LoadError};
use crate::object::Object;

/// Integer members of `struct sched_ext_ops` that a loader may set.
const OPS_MEMBERS: [&str; 6] =
    ["flags", "timeout_ms", "dispatch_max_batch", "exit_dump_len", "hotplug_seq", "sub_cgroup_id"];

impl Object {
    /// Sets the length of an array that is the only variable of its section (`.data.NAME`) to `count` elements.
    ///
    /// # Errors
    /// There is no such array that is alone in a data section; the errors of [`Object::enlarge_section`].
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
        let bytes = element_size.saturating_mul(count.max(1));
        let section = self.section_of(&global).to_owned();
        self.enlarge(&section, bytes).map_err(|fault| fault.cause)
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
