//! A parsed object file: functions, maps, global variables, struct_ops.

mod adjust;
mod annotations;
mod code;
mod data;
mod elf;
mod externs;
mod functions;
mod globals;
mod inlined;
mod kptrs;
mod maps;
mod struct_ops;
mod types;
mod variables;

pub use code::FunctionInfo;
pub(crate) use code::{CodeFunction, Target};
pub(crate) use externs::{Extern, ExternKind};
pub use globals::{Global, GlobalType};
pub(crate) use kptrs::kptrs;
pub(crate) use maps::{ObjectMap, number_of_kind};
pub use struct_ops::{OpsField, OpsValue, StructOps};
pub use types::{TypeId, TypeMember, Types};

use std::sync::Arc;

use crate::btf::Btf;
use crate::btf::ext::Extension;
use crate::error::{Fault, LoadCause, LoadError};
use crate::limits;
use crate::linked::MapKind;
use crate::location::{Location, SourceLine};
use elf::{Content, Elf, Section};
use functions::SLOT_BYTES;
use inlined::DebugInfo;

/// A parsed object. [`link`](crate::link()) links it against a kernel.
#[derive(Clone, Debug)]
pub struct Object {
    name: String,
    functions: Vec<FunctionInfo>,
    sections: Vec<SectionInfo>,
    struct_ops: Vec<StructOps>,
    globals: Vec<Global>,
    license: Option<String>,
    pub(crate) code: Vec<CodeFunction>,
    pub(crate) maps: Vec<ObjectMap>,
    pub(crate) externs: Vec<Extern>,
    pub(crate) btf: Arc<Btf>,
    debug: DebugInfo,
}

/// A section of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionInfo {
    /// Its name.
    pub name: String,
    /// Its size in memory in bytes.
    pub size: u64,
}

impl Object {
    /// Parses an object. `name` is its name in error messages: usually the file's path.
    ///
    /// Does not check instructions: [`Image::new`](crate::Image::new) does.
    ///
    /// # Errors
    /// The bytes are not a little-endian 64-bit BPF ELF object with BTF, or are inconsistent.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, LoadError> {
        parse(name, bytes).map_err(|fault| fault.in_file(name))
    }

    /// The name that was given to [`Object::parse`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Functions, in the order of [`Linked::functions`](crate::Linked::functions).
    pub fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    /// Sections with content, in the order of the file, without debugging information.
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

    /// The name of the data section that holds a global variable: `.rodata`, `.data`, `.bss`, or a custom section.
    pub fn section_of(&self, global: &Global) -> &str {
        self.maps.get(global.map).map_or("", |map| &map.def.name)
    }

    /// The initial content of the data section that holds a global variable; empty for `.bss`.
    pub fn content_of(&self, global: &Global) -> &[u8] {
        self.maps.get(global.map).map_or(&[], |map| &map.def.initial)
    }

    /// The initial value of a global variable, as bytes; zeros for `.bss`.
    pub fn initial(&self, global: &Global) -> Vec<u8> {
        let content = self.maps.get(global.map).map_or(&[][..], |map| &map.def.initial);
        let (offset, size) = (global.offset as usize, global.size as usize);
        let from = offset.min(content.len());
        let end = offset.saturating_add(size).min(content.len());
        let mut bytes = content[from..end].to_vec();
        bytes.resize(size, 0);
        bytes
    }

    /// The source line of an instruction slot, such as that of a [`Trap`](crate::Trap). `None` if there is no such
    /// function, or the object has no line information.
    pub fn source_line(&self, function: &str, slot: usize) -> Option<&SourceLine> {
        self.function(function)?.line(slot)
    }

    /// The source line of an instruction slot in the file of its function, where the instruction comes from an inline
    /// function of another file: the line of the call. `None` if it does not, or the object has no DWARF.
    pub fn line_of_inline_call(&self, function: &str, slot: usize) -> Option<SourceLine> {
        let code = self.function(function)?;
        let at = (slot as u64).checked_mul(SLOT_BYTES)?.checked_add(code.extent.start)?;
        let line = self.debug.call_line(code.extent.section, at)?;
        let file = &code.line(0)?.file;
        let same = self
            .code
            .iter()
            .flat_map(|code| code.lines.values())
            .find(|known| known.line == line && known.file == *file);
        Some(SourceLine {
            file: file.clone(),
            line,
            text: same.map_or(String::new(), |known| known.text.clone()),
        })
    }

    fn function(&self, name: &str) -> Option<&CodeFunction> {
        self.code.iter().find(|code| code.name == name)
    }

    /// Adds the source line to the location of an error.
    pub(crate) fn with_source(&self, mut error: LoadError) -> LoadError {
        if let Some(Location::Instruction { function, slot, source, .. }) =
            error.location.as_deref_mut()
        {
            *source = self.source_line(function, *slot).cloned();
        }
        error
    }

    /// The numbers of the kernel's configuration (`__kconfig`) that the object reads, as global variables.
    /// [`Instance::set_global`](crate::Instance::set_global) changes them in one instance.
    pub fn configuration(&self) -> Vec<Global> {
        let global = |found: &Extern| match found.kind {
            ExternKind::Config { map, offset, size, text: false } => Some(Global {
                name: found.name.clone(),
                map,
                offset,
                size,
                ty: GlobalType::Int { bits: (size * 8) as u32, signed: false },
                read_only: true,
                volatile: true,
                tags: Vec::new(),
            }),
            _ => None,
        };
        self.externs.iter().filter_map(global).collect()
    }

    /// The text of the `license` section.
    pub fn license(&self) -> Option<&str> {
        self.license.as_deref()
    }

    /// Enlarges a data section with zeros, as a scheduler's loader does with `.data.uei_dump` before it loads the
    /// object.
    ///
    /// # Errors
    /// There is no such data section, it would shrink, or it would exceed 64 MiB.
    pub fn enlarge_section(&mut self, section: &str, bytes: u64) -> Result<(), LoadError> {
        self.enlarge(section, bytes).map_err(|fault| fault.in_file(&self.name))
    }

    fn enlarge(&mut self, section: &str, bytes: u64) -> Result<(), Fault> {
        let fault = |cause| Fault::at_section(section, 0, cause);
        let map = self.maps.iter_mut().map(|map| &mut map.def).find(|def| def.name == section);
        let Some(def) = map.filter(|def| matches!(def.kind, MapKind::Data { .. })) else {
            return Err(fault(LoadCause::Unsupported(
                "the object has no such data section".into(),
            )));
        };
        limits::check("bytes of a data section", bytes, limits::MAX_DATA_BYTES).map_err(fault)?;
        if bytes < u64::from(def.value_size) {
            let text = format!("shrinking it from {} to {bytes} bytes", def.value_size);
            return Err(fault(LoadCause::Unsupported(text)));
        }
        def.initial.resize(bytes as usize, 0);
        def.value_size = bytes as u32;
        Ok(())
    }
}

fn parse(name: &str, bytes: &[u8]) -> Result<Object, Fault> {
    let elf = Elf::parse(bytes)?;
    let section = elf.section(".BTF").ok_or(LoadCause::NoBtf)?;
    let btf_bytes = elf.relocated(section);
    let (btf, strings) = crate::btf::parse::parse(&btf_bytes)?;
    let extension = match elf.section(".BTF.ext") {
        Some(section) => crate::btf::ext::parse(section.data, &strings)?,
        None => Extension::default(),
    };
    let (mut maps, addresses) = data::read(&elf, &btf)?;
    let externs = externs::read(&elf, &btf, &mut maps)?;
    let index = functions::FunctionIndex::new(&elf)?;
    let addresses = data::AddressMap { functions: &index, ..addresses };
    let mut code = code::read(&elf, &index, &addresses, &externs)?;
    annotations::attach_core_relocations(&mut code, &elf, extension.core)?;
    annotations::attach_lines(&mut code, &elf, extension.lines);
    let struct_ops = struct_ops::read(&elf, &btf, &addresses)?;
    let globals = globals::read(&elf, &btf, &addresses, &maps)?;
    Ok(Object {
        name: name.to_owned(),
        functions: code.iter().map(CodeFunction::info).collect(),
        sections: section_infos(&elf),
        struct_ops,
        globals,
        license: elf.section("license").map(|section| text_of(section.data)),
        code,
        maps,
        externs: externs.list,
        btf: Arc::new(btf),
        debug: DebugInfo::read(&elf),
    })
}

fn section_infos(elf: &Elf<'_>) -> Vec<SectionInfo> {
    let shown = |section: &&Section<'_>| {
        section.content != Content::Other
            && section.size > 0
            && !section.name.starts_with(".debug")
            && !section.name.starts_with(".llvm")
    };
    let info =
        |section: &Section<'_>| SectionInfo { name: section.name.clone(), size: section.size };
    elf.sections.iter().filter(shown).map(info).collect()
}

fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
