//! What an object file says: functions, maps, global variables, struct_ops.

use crate::{Global, LoadError, StructOps};

/// A parsed object. It is linked against nothing yet: [`link`](crate::link()) does that.
#[derive(Clone, Debug)]
pub struct Object {
    name: String,
    functions: Vec<FunctionInfo>,
    sections: Vec<SectionInfo>,
    struct_ops: Vec<StructOps>,
    globals: Vec<Global>,
}

/// A function of an object, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// Its symbol.
    pub name: String,
    /// Its section.
    pub section: String,
    /// Its size in instruction slots (an `lddw` counts as two).
    pub slots: usize,
}

/// A section of an object, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionInfo {
    /// Its name.
    pub name: String,
    /// Its size in memory in bytes.
    pub size: u64,
}

impl Object {
    /// Reads an object. `name` stands in error messages: usually the file's path.
    ///
    /// # Errors
    /// If the bytes are no little-endian 64-bit BPF ELF object with BTF, or contradict themselves.
    pub fn parse(name: &str, _bytes: &[u8]) -> Result<Self, LoadError> {
        let cause = crate::LoadCause::Unsupported("parsing".into());
        Err(LoadError { file: name.into(), place: None, cause })
    }

    /// The name that was given to [`Object::parse`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Functions, in the order of [`Linked::functions`](crate::Linked::functions).
    pub fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    /// Sections with content, in the order of the file.
    pub fn sections(&self) -> &[SectionInfo] {
        &self.sections
    }

    /// The struct_ops variables. A scheduler has one of type `sched_ext_ops`.
    pub fn struct_ops(&self) -> &[StructOps] {
        &self.struct_ops
    }

    /// Global variables, sorted by map and offset.
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// The global variable `name`.
    pub fn global(&self, name: &str) -> Option<&Global> {
        self.globals.iter().find(|global| global.name == name)
    }
}
