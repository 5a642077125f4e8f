//! Functions: their instructions, and what each symbol in them means.

use std::collections::BTreeMap;

use super::annotations::SourceLine;
use super::data::{Address, Places};
use super::elf::{Content, Elf, R_BPF_64_32, R_BPF_64_64, Relocation, Symbol};
use super::externs::{ExternKind, Externs};
use super::{BySection, FunctionInfo, limits};
use crate::Insn;
use crate::btf::ext::CoreRelocation;
use crate::error::{Fault, LoadCause};

/// Bytes of an instruction slot.
pub(super) const SLOT_BYTES: u64 = 8;
/// `lddw`, the one instruction of two slots.
pub(crate) const LDDW: u8 = 0x18;
/// `call`.
const CALL: u8 = 0x85;
/// `call` of a function of the object (`BPF_PSEUDO_CALL`).
const PSEUDO_CALL: u8 = 1;

/// What an instruction refers to.
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
    /// Where instructions come from, by the first slot of each line.
    pub(super) lines: BTreeMap<usize, SourceLine>,
    pub(super) place: Extent,
}

/// Where a function lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) section: usize,
    pub(super) start: u64,
    pub(super) bytes: u64,
}

impl CodeFunction {
    pub(crate) fn info(&self) -> FunctionInfo {
        let (name, section) = (self.name.clone(), self.section.clone());
        FunctionInfo { name, section, slots: self.insns.len() }
    }

    pub(crate) fn fault(&self, slot: usize, cause: LoadCause) -> Fault {
        Fault::at_instruction(&self.name, &self.section, slot, cause)
    }

    /// The source of an instruction.
    pub(crate) fn line(&self, slot: usize) -> Option<&SourceLine> {
        self.lines.range(..=slot).next_back().map(|(_, line)| line)
    }
}

/// All functions of a file by where they start.
#[derive(Debug)]
pub(crate) struct FunctionIndex {
    functions: Vec<(String, Extent)>,
    by_start: BTreeMap<(usize, u64), usize>,
}

impl FunctionIndex {
    /// An index of a file without functions.
    pub(crate) const EMPTY: &'static Self =
        &Self { functions: Vec::new(), by_start: BTreeMap::new() };

    /// Finds the functions of a file, in the order of section and offset. Of several symbols for one function the first
    /// in the symbol table counts.
    pub(crate) fn new(elf: &Elf<'_>) -> Result<Self, Fault> {
        let mut starts: BTreeMap<(usize, u64), &Symbol> = BTreeMap::new();
        for symbol in elf.symbols.iter().filter(|symbol| symbol.function) {
            let Some(section) = symbol.section else { continue };
            starts.entry((section, symbol.value)).or_insert(symbol);
        }
        limits::check("functions", starts.len() as u64, limits::MAX_FUNCTIONS)?;
        let mut index = Self { functions: Vec::new(), by_start: BTreeMap::new() };
        let mut slots = 0u64;
        for ((section, start), symbol) in starts {
            let extent = Extent { section, start, bytes: symbol.size };
            check_extent(elf, &extent).map_err(|cause| Fault::at_symbol(&symbol.name, cause))?;
            slots += extent.bytes / SLOT_BYTES;
            limits::check("instructions", slots, limits::MAX_SLOTS)?;
            index.by_start.insert((section, start), index.functions.len());
            index.functions.push((symbol.name.clone(), extent));
        }
        Ok(index)
    }

    /// The function that starts at a byte of a section.
    pub(crate) fn at(&self, section: usize, start: u64) -> Option<usize> {
        self.by_start.get(&(section, start)).copied()
    }
}

fn check_extent(elf: &Elf<'_>, extent: &Extent) -> Result<(), LoadCause> {
    let section = &elf.sections[extent.section];
    let wrong = |text: &str| {
        let (start, bytes) = (extent.start, extent.bytes);
        let name = &section.name;
        Err(LoadCause::Damaged(format!(
            "a function of {bytes} bytes at {start:#x} of {name} {text}"
        )))
    };
    let end = extent.start.checked_add(extent.bytes);
    if section.content != Content::Code {
        wrong("is not in a code section")
    } else if end.is_none_or(|end| end > section.data.len() as u64) {
        wrong("lies outside of the section")
    } else if extent.bytes == 0
        || !extent.start.is_multiple_of(SLOT_BYTES)
        || !extent.bytes.is_multiple_of(SLOT_BYTES)
    {
        wrong("does not consist of whole instructions")
    } else {
        Ok(())
    }
}

/// Reads all functions.
pub(crate) fn read(
    elf: &Elf<'_>,
    index: &FunctionIndex,
    places: &Places<'_>,
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
            place: *extent,
        };
        let resolver =
            Resolver { elf, places, externs, relocations: &relocations[&extent.section] };
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
            return wrong("it lies outside of the section");
        }
        if !at.is_multiple_of(SLOT_BYTES) {
            return wrong("it lies inside of an instruction");
        }
        if found.insert(at, *relocation).is_some() {
            return wrong("there are two for one instruction");
        }
    }
    Ok(found)
}

struct Resolver<'a> {
    elf: &'a Elf<'a>,
    places: &'a Places<'a>,
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
        let at = function.place.start + slot as u64 * SLOT_BYTES;
        let relocation = self.relocations.get(&at);
        match (insn.code, relocation) {
            (LDDW, _) => {
                let Some(second) = function.insns.get(slot + 1) else {
                    let text = "a 64-bit immediate load lacks its second half";
                    return Err(LoadCause::BadInstruction(text.into()));
                };
                if second.code != 0 || second.dst != 0 || second.src != 0 || second.off != 0 {
                    let text = "the second half of a 64-bit immediate load is not blank";
                    return Err(LoadCause::BadInstruction(text.into()));
                }
                let value = u64::from(insn.imm as u32) | u64::from(second.imm as u32) << 32;
                self.constant(insn, value, relocation).map(Some)
            }
            (CALL, _) => self.call(function, slot, relocation).map(Some),
            (_, None) => Ok(None),
            (code, Some(_)) => {
                let text =
                    format!("it is for an instruction without a symbol (opcode {code:#04x})");
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
        Ok(match self.places.resolve(self.elf, symbol, section, value)? {
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
                let text = format!("it calls `{}`, which is no function", symbol.name);
                return Err(LoadCause::BadRelocation(text));
            }
            return Ok(Target::CallExtern(number));
        };
        // The immediate counts slots from the next instruction on.
        let addend = (i64::from(insn.imm) + 1).wrapping_mul(SLOT_BYTES as i64) as u64;
        match self.places.resolve(self.elf, symbol, section, addend)? {
            Address::Function(function) => Ok(Target::CallFunction(function)),
            _ => Err(LoadCause::BadRelocation(format!("it calls data (`{}`)", symbol.name))),
        }
    }

    /// A call inside of one section that the assembler has resolved.
    fn call_near(&self, function: &CodeFunction, slot: usize) -> Result<Target, LoadCause> {
        let slots = slot as i64 + 1 + i64::from(function.insns[slot].imm);
        let start = function.place.start.wrapping_add_signed(slots * SLOT_BYTES as i64);
        let callee = self.places.functions.at(function.place.section, start);
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
    let text = format!("type {} where type {kind} belongs", relocation.kind);
    Err(LoadCause::BadRelocation(text))
}
