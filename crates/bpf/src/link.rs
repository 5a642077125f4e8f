//! Links an [`Object`] against a kernel: the result is a [`Linked`] program.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fairground_suggest::did_you_mean;

use crate::btf::Kind;
use crate::core_reloc::{self, Patched, essential_name};
use crate::error::{Fault, LoadCause, LoadError};
use crate::helpers;
use crate::linked::{Allocated, Callee, Fixup, Function, Linked, MapDef};
use crate::object::{CodeFunction, Extern, ExternKind, Object, Target, kptrs};
use crate::types::TargetTypes;

/// A value of the kernel's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigValue {
    /// A number; a switch is 1.
    Number(u64),
    /// A text without its quotes.
    Text(Cow<'static, str>),
}

/// The symbols that the kernel offers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Symbols<'a> {
    /// Kernel functions.
    pub kfuncs: &'a [&'a str],
    /// Configuration values (`CONFIG_HZ`, `LINUX_KERNEL_VERSION`).
    pub kconfig: &'a [(&'a str, ConfigValue)],
    /// Kernel variables and their addresses.
    pub ksyms: &'a [(&'a str, u64)],
    /// BPF helpers that the kernel does not have, of those that the object calls, by number.
    pub missing_helpers: &'a [u32],
    /// Why the kernel lacks a name, and what to do.
    pub lacks: &'a [(&'a str, &'a str)],
}

/// The address of kernel function 0 in programs. A program can only compare it with NULL (`bpf_ksym_exists`): there
/// is no memory at this address.
const KFUNC_ADDRESS: u64 = 0xffff_ffff_8100_0000;
/// Bytes between the addresses of two kernel functions.
const KFUNC_STRIDE_BYTES: u64 = 16;

/// Kernel functions that allocate a structure of the object.
const ALLOCATORS: [&str; 2] = ["bpf_obj_new_impl", "bpf_obj_new"];
/// Maximum bytes of one allocated object, as in the kernel's BPF allocator.
const MAX_OBJECT_BYTES: u64 = 4096;

/// Links an object: resolves CO-RE relocations against `types` and external symbols against `symbols`.
///
/// Looks up a kernel function by its whole name first and then, as libbpf does, without its `___flavour`.
///
/// An instruction that requires a kernel function, variable or helper that is missing, or a CO-RE relocation without a
/// match, becomes a [`Fixup::Poison`](crate::Fixup::Poison): the program ends where it is reached. A real kernel checks
/// only the programs that are attached, without those that constants disable; which ones these are is not known here.
///
/// # Errors
/// The object requires a configuration value that is missing and not declared `__weak`.
pub fn link(
    object: &Object,
    types: &TargetTypes,
    symbols: &Symbols<'_>,
) -> Result<Linked, LoadError> {
    let core = core_reloc::Resolver::new(&object.btf, &types.btf);
    let mut linker = Linker { object, symbols, kfuncs: Vec::new(), numbers: BTreeMap::new(), core };
    linker
        .link()
        .map_err(|fault| fault.in_file(object.name()))
        .map_err(|error| object.with_source(error))
}

struct Linker<'a> {
    object: &'a Object,
    symbols: &'a Symbols<'a>,
    kfuncs: Vec<String>,
    numbers: BTreeMap<&'a str, usize>,
    core: core_reloc::Resolver<'a>,
}

impl<'a> Linker<'a> {
    fn link(&mut self) -> Result<Linked, Fault> {
        let maps = self.maps()?;
        let mut functions = Vec::with_capacity(self.object.code.len());
        for function in &self.object.code {
            functions.push(self.function(function)?);
        }
        let kfuncs = std::mem::take(&mut self.kfuncs);
        let allocates = kfuncs.iter().any(|name| ALLOCATORS.contains(&name.as_str()));
        let objects = if allocates { self.structures() } else { BTreeMap::new() };
        Ok(Linked { functions, maps, kfuncs, objects })
    }

    /// Every structure of the object that has a size and can be allocated.
    fn structures(&self) -> BTreeMap<u32, Allocated> {
        let btf = &self.object.btf;
        let structures = btf.iter().filter(|(_, ty)| {
            matches!(ty.kind, Kind::Composite { union: false, .. }) && !ty.name.is_empty()
        });
        let sized = structures.filter_map(|(id, _)| {
            let bytes = btf.size_of(id).filter(|bytes| *bytes <= MAX_OBJECT_BYTES)?;
            Some((id, Allocated { size: bytes as u32, kptrs: kptrs(btf, id) }))
        });
        sized.collect()
    }

    fn maps(&self) -> Result<Vec<MapDef>, Fault> {
        let mut maps = Vec::with_capacity(self.object.maps.len());
        maps.extend(self.object.maps.iter().map(|map| map.def.clone()));
        for symbol in &self.object.externs {
            self.configure(symbol, &mut maps)?;
        }
        Ok(maps)
    }

    /// Writes a configuration value into the map `.kconfig`.
    fn configure(&self, symbol: &Extern, maps: &mut [MapDef]) -> Result<(), Fault> {
        let ExternKind::Config { map, offset, size, text } = symbol.kind else { return Ok(()) };
        let fault = |cause| Err(Fault::at_symbol(&symbol.name, cause));
        let Some(value) = lookup(self.symbols.kconfig, &symbol.name) else {
            if symbol.weak {
                return Ok(());
            }
            let (kind, name) = ("configuration value", symbol.name.clone());
            return fault(LoadCause::UnknownExtern { kind, name });
        };
        let bytes = match config_bytes(&value, size, text) {
            Ok(bytes) => bytes,
            Err(problem) => return fault(LoadCause::Unsupported(problem)),
        };
        let from = offset as usize;
        maps[map].initial[from..from + bytes.len()].copy_from_slice(&bytes);
        Ok(())
    }

    fn function(&mut self, function: &'a CodeFunction) -> Result<Function, Fault> {
        let mut linked = Function {
            name: function.name.clone(),
            section: function.section.clone(),
            insns: function.insns.clone(),
            fixups: BTreeMap::new(),
        };
        for (slot, target) in &function.targets {
            linked.fixups.insert(*slot, self.fixup(*target));
        }
        for (slot, relocation) in &function.core {
            let insn = linked.insns[*slot];
            let patched = self
                .core
                .resolve(relocation)
                .and_then(|outcome| core_reloc::patch(insn, outcome))
                .map_err(|cause| function.fault(*slot, cause))?;
            match patched {
                Patched::Insn(insn) => linked.insns[*slot] = insn,
                Patched::Fixup(fixup) => {
                    let fixup = match fixup {
                        Fixup::Poison(message) => Fixup::Poison(self.with_reason(message)),
                        other => other,
                    };
                    linked.fixups.insert(*slot, fixup);
                }
            }
        }
        Ok(linked)
    }

    fn fixup(&mut self, target: Target) -> Fixup {
        match target {
            Target::Value(value) => Fixup::Value(value),
            Target::Data { map, offset } => Fixup::Data { map, offset },
            Target::Map(map) => Fixup::Map(map),
            Target::Function(function) => Fixup::Function(function),
            Target::CallHelper(number) if !self.symbols.missing_helpers.contains(&number) => {
                Fixup::Call(Callee::Helper(number))
            }
            Target::CallHelper(number) => {
                let name = helpers::name(number).unwrap_or("unknown name");
                let why = self.reason(&format!("bpf_{name}"));
                Fixup::Poison(format!(
                    "calls the BPF helper {number} ({name}), which is not supported{why}"
                ))
            }
            Target::CallFunction(function) => Fixup::Call(Callee::Function(function)),
            Target::Extern(number) => self.address(number),
            Target::CallExtern(number) => {
                let symbol = &self.object.externs[number];
                match self.kfunc(symbol) {
                    Some(kfunc) => Fixup::Call(Callee::Kfunc(kfunc)),
                    None => Fixup::Poison(self.missing_kfunc(&symbol.name)),
                }
            }
        }
    }

    /// Why a call of a kernel function cannot be executed.
    fn missing_kfunc(&self, name: &str) -> String {
        let names = [name, essential_name(name)];
        if let Some(why) = names.iter().map(|name| self.reason(name)).find(|why| !why.is_empty()) {
            return format!("calls the kernel function `{name}`{why}");
        }
        let near = did_you_mean(essential_name(name), self.symbols.kfuncs.iter().copied());
        let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        format!("calls the kernel function `{name}`, which this kernel does not have{near}")
    }

    /// Why the kernel lacks a name, after a colon; empty if that is not known.
    fn reason(&self, name: &str) -> String {
        let known = self.symbols.lacks.iter().find(|(lacking, _)| *lacking == name);
        known.map_or(String::new(), |(_, why)| format!(": {why}"))
    }

    /// Adds to a message about a type the reason why the kernel lacks what it names.
    fn with_reason(&self, message: String) -> String {
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let mut words = message.split(|c| !is_name(c));
        let why = words.find_map(|word| {
            let constant = word.rsplit('.').next().unwrap_or(word);
            let structure = word.split('.').next().unwrap_or(word);
            let names = [word, constant, structure];
            names.iter().map(|name| self.reason(name)).find(|why| !why.is_empty())
        });
        message + &why.unwrap_or_default()
    }

    /// The address of an external symbol; 0 if it is weak and missing.
    fn address(&mut self, number: usize) -> Fixup {
        let symbol = &self.object.externs[number];
        if symbol.kind == ExternKind::Kfunc {
            let kfunc = self.kfunc(symbol);
            return Fixup::Value(
                kfunc.map_or(0, |index| KFUNC_ADDRESS + KFUNC_STRIDE_BYTES * index as u64),
            );
        }
        match lookup(self.symbols.ksyms, &symbol.name) {
            Some(address) => Fixup::Value(address),
            None if symbol.weak => Fixup::Value(0),
            None => Fixup::Poison(format!(
                "takes the address of the kernel variable `{}`, which this kernel does not have",
                symbol.name
            )),
        }
    }

    /// The index of a kernel function; `None` if it is missing.
    fn kfunc(&mut self, symbol: &Extern) -> Option<usize> {
        let known = |name: &str| self.symbols.kfuncs.iter().copied().find(|known| *known == name);
        let name = known(&symbol.name).or_else(|| known(essential_name(&symbol.name)))?;
        let next = self.kfuncs.len();
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.kfuncs.push(name.to_owned());
        }
        Some(number)
    }
}

fn lookup<V: Clone>(known: &[(&str, V)], name: &str) -> Option<V> {
    known.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
}

/// The bytes that a configuration value writes into a variable of `size` bytes. A text is cut, as by libbpf, so that a zero
/// follows it.
fn config_bytes(value: &ConfigValue, size: u64, text: bool) -> Result<Vec<u8>, String> {
    match value {
        ConfigValue::Number(number) if !text => {
            let bytes = number.to_le_bytes();
            let (kept, lost) = bytes.split_at((size as usize).min(bytes.len()));
            match lost.iter().all(|byte| *byte == 0) {
                true => Ok(kept.to_vec()),
                false => Err(format!("the value {number} in a variable of {size} bytes")),
            }
        }
        ConfigValue::Text(value) if text => {
            let kept = value.len().min((size as usize).saturating_sub(1));
            Ok(value.as_bytes()[..kept].to_vec())
        }
        ConfigValue::Number(number) => Err(format!("the number {number} in an array of `char`")),
        ConfigValue::Text(value) => Err(format!("the text \"{value}\" in a number")),
    }
}
