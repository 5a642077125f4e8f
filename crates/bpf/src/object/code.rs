//! Functions: their instructions, and the symbols that these refer to.

use std::collections::BTreeMap;

use super::data::{Address, AddressMap};
use super::elf::{BySection, Content, Elf, R_BPF_64_32, R_BPF_64_64, Relocation, Symbol};
use super::externs::{ExternKind, Externs};
use super::functions::{Extent, FunctionIndex, SLOT_BYTES};
use crate::btf::ext::CoreRelocation;
use crate::error::{Fault, LoadCause};
use crate::linked::{Insn, LDDW};
use crate::location::SourceLine;

/// `call`.
const CALL: u8 = 0x85;
/// `call` of a function of the object (`BPF_PSEUDO_CALL`).
const PSEUDO_CALL: u8 = 1;

/// The symbol or value that an instruction refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Value(u64),
    Data {
        map: usize,
        offset: u64,
    },
    Map(usize),
    Function(usize),
    /// The address of an external symbol.
    Extern(usize),
    CallHelper(u32),
    CallFunction(usize),
    CallExtern(usize),
}

/// A function of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// Its symbol.
    pub name: String,
    /// Its section.
    pub section: String,
    /// Its size in instruction slots (an `lddw` takes two).
    pub slots: usize,
}

/// A function before it is linked.
#[derive(Clone, Debug)]
pub(crate) struct CodeFunction {
    pub(crate) name: String,
    pub(crate) section: String,
    pub(crate) insns: Vec<Insn>,
    /// By slot. Every `lddw` and every call has an entry.
    pub(crate) targets: BTreeMap<usize, Target>,
    /// By slot.
    pub(crate) core: BTreeMap<usize, CoreRelocation>,
    /// Source lines by their first slot.
    pub(super) lines: BTreeMap<usize, SourceLine>,
    pub(super) extent: Extent,
}

impl CodeFunction {
    pub(crate) fn info(&self) -> FunctionInfo {
        let (name, section) = (self.name.clone(), self.section.clone());
        FunctionInfo { name, section, slots: self.insns.len() }
    }

    pub(crate) fn fault(&self, slot: usize, cause: LoadCause) -> Fault {
        Fault::at_instruction(&self.name, &self.section, slot, cause)
    }

    /// The source line of an instruction.
    pub(crate) fn line(&self, slot: usize) -> Option<&SourceLine> {
        self.lines.range(..=slot).next_back().map(|(_, line)| line)
    }
}

/// Reads all functions.
pub(crate) fn read(
    elf: &Elf<'_>,
    index: &FunctionIndex,
    addresses: &AddressMap<'_>,
    externs: &Externs,
) -> Result<Vec<CodeFunction>, Fault> {
    let mut relocations = BySection::new();
    for (number, section) in elf.sections.iter().enumerate() {
        if section.content == Content::Code {
            relocations.insert(number, relocations_of(elf, number)?);
        }
    }
    let mut functions = Vec::with_capacity(index.functions.len());
    for (name, extent) in &index.functions {
        let section = &elf.sections[extent.section];
        let bytes = &section.data[extent.start as usize..(extent.start + extent.bytes) as usize];
        let mut function = CodeFunction {
            name: name.clone(),
            section: section.name.clone(),
            insns: bytes.chunks_exact(8).map(read_insn).collect(),
            targets: BTreeMap::new(),
            core: BTreeMap::new(),
            lines: BTreeMap::new(),
            extent: *extent,
        };
        let resolver =
            Resolver { elf, addresses, externs, relocations: &relocations[&extent.section] };
        resolver.resolve_all(&mut function)?;
        functions.push(function);
    }
    Ok(functions)
}

fn read_insn(slot: &[u8]) -> Insn {
    Insn {
        code: slot[0],
        dst: slot[1] & 0xf,
        src: slot[1] >> 4,
        off: i16::from_le_bytes([slot[2], slot[3]]),
        imm: i32::from_le_bytes([slot[4], slot[5], slot[6], slot[7]]),
    }
}

/// The relocations of a code section by byte offset.
fn relocations_of(elf: &Elf<'_>, section: usize) -> Result<BTreeMap<u64, Relocation>, Fault> {
    let section = &elf.sections[section];
    let mut found = BTreeMap::new();
    for relocation in &section.relocations {
        let at = relocation.offset;
        let wrong = |text: &str| {
            Err(Fault::at_section(&section.name, at, LoadCause::BadRelocation(text.into())))
        };
        if at >= section.data.len() as u64 {
            return wrong("it is outside of the section");
        }
        if !at.is_multiple_of(SLOT_BYTES) {
            return wrong("it is within an instruction");
        }
        if found.insert(at, *relocation).is_some() {
            return wrong("there are two for one instruction");
        }
    }
    Ok(found)
}

struct Resolver<'a> {
    elf: &'a Elf<'a>,
    addresses: &'a AddressMap<'a>,
    externs: &'a Externs,
    relocations: &'a BTreeMap<u64, Relocation>,
}

impl Resolver<'_> {
    fn resolve_all(&self, function: &mut CodeFunction) -> Result<(), Fault> {
        let mut slot = 0;
        while slot < function.insns.len() {
            let target =
                self.resolve(function, slot).map_err(|cause| function.fault(slot, cause))?;
            if let Some(target) = target {
                function.targets.insert(slot, target);
            }
            slot += if function.insns[slot].code == LDDW { 2 } else { 1 };
        }
        Ok(())
    }

    fn resolve(&self, function: &CodeFunction, slot: usize) -> Result<Option<Target>, LoadCause> {
        let insn = &function.insns[slot];
        let at = function.extent.start + slot as u64 * SLOT_BYTES;
        let relocation = self.relocations.get(&at);
        match (insn.code, relocation) {
            (LDDW, _) => {
                let Some(second) = function.insns.get(slot + 1) else {
                    let text = "a 64-bit immediate load lacks its second half";
                    return Err(LoadCause::BadInstruction(text.into()));
                };
                if second.code != 0 || second.dst != 0 || second.src != 0 || second.off != 0 {
                    let text = "the second half of a 64-bit immediate load is not empty";
                    return Err(LoadCause::BadInstruction(text.into()));
                }
                let value = u64::from(insn.imm as u32) | u64::from(second.imm as u32) << 32;
                self.constant(insn, value, relocation).map(Some)
            }
            (CALL, _) => self.call(function, slot, relocation).map(Some),
            (_, None) => Ok(None),
            (code, Some(_)) => {
                let text =
                    format!("it is for an instruction that has no symbol (opcode {code:#04x})");
                Err(LoadCause::BadRelocation(text))
            }
        }
    }

    fn constant(
        &self,
        insn: &Insn,
        value: u64,
        relocation: Option<&Relocation>,
    ) -> Result<Target, LoadCause> {
        let Some(relocation) = relocation else {
            if insn.src != 0 {
                let text = format!("a 64-bit immediate load of an unknown kind ({})", insn.src);
                return Err(LoadCause::BadInstruction(text));
            }
            return Ok(Target::Value(value));
        };
        expect_kind(relocation, R_BPF_64_64)?;
        let symbol = &self.elf.symbols[relocation.symbol];
        let Some(section) = symbol.section else {
            let number = self.external(symbol)?;
            return Ok(match self.externs.list[number].kind {
                ExternKind::Config { map, offset, .. } => Target::Data { map, offset },
                ExternKind::Kfunc | ExternKind::Variable => Target::Extern(number),
            });
        };
        Ok(match self.addresses.resolve(self.elf, symbol, section, value)? {
            Address::Function(function) => Target::Function(function),
            Address::Map(map) => Target::Map(map),
            Address::Data { map, offset } => Target::Data { map, offset },
        })
    }

    fn call(
        &self,
        function: &CodeFunction,
        slot: usize,
        relocation: Option<&Relocation>,
    ) -> Result<Target, LoadCause> {
        let insn = &function.insns[slot];
        let Some(relocation) = relocation else {
            return match insn.src {
                0 => Ok(Target::CallHelper(insn.imm as u32)),
                PSEUDO_CALL => self.call_near(function, slot),
                kind => {
                    let text = format!("a call of an unknown kind ({kind})");
                    Err(LoadCause::BadInstruction(text))
                }
            };
        };
        expect_kind(relocation, R_BPF_64_32)?;
        let symbol = &self.elf.symbols[relocation.symbol];
        let Some(section) = symbol.section else {
            let number = self.external(symbol)?;
            if self.externs.list[number].kind != ExternKind::Kfunc {
                let text = format!("it calls `{}`, which is not a function", symbol.name);
                return Err(LoadCause::BadRelocation(text));
            }
            return Ok(Target::CallExtern(number));
        };
        // The immediate is the distance in slots from the next instruction.
        let addend = (i64::from(insn.imm) + 1).wrapping_mul(SLOT_BYTES as i64) as u64;
        match self.addresses.resolve(self.elf, symbol, section, addend)? {
            Address::Function(function) => Ok(Target::CallFunction(function)),
            _ => Err(LoadCause::BadRelocation(format!("it calls data (`{}`)", symbol.name))),
        }
    }

    /// A call within a section, resolved by the assembler.
    fn call_near(&self, function: &CodeFunction, slot: usize) -> Result<Target, LoadCause> {
        let slots = slot as i64 + 1 + i64::from(function.insns[slot].imm);
        let start = function.extent.start.wrapping_add_signed(slots * SLOT_BYTES as i64);
        let callee = self.addresses.functions.at(function.extent.section, start);
        callee.map(Target::CallFunction).ok_or_else(|| {
            let text = format!("it calls byte {start:#x} of its section, where no function starts");
            LoadCause::BadInstruction(text)
        })
    }

    fn external(&self, symbol: &Symbol) -> Result<usize, LoadCause> {
        self.externs.find(&symbol.name).ok_or_else(|| {
            let text = format!(
                "the external symbol `{}` is declared neither `__ksym` nor `__kconfig`",
                symbol.name
            );
            LoadCause::BadRelocation(text)
        })
    }
}

fn expect_kind(relocation: &Relocation, kind: u32) -> Result<(), LoadCause> {
    if relocation.kind == kind {
        return Ok(());
    }
    let text = format!("type {}, expected type {kind}", relocation.kind);
    Err(LoadCause::BadRelocation(text))
}
