//! The ELF container: sections with their relocations, and symbols.

use std::collections::BTreeMap;

use object::LittleEndian as LE;
use object::elf;
use object::read::SectionIndex;
use object::read::elf::{FileHeader, Rel, SectionHeader, SectionTable, Sym, SymbolTable};

use crate::error::{Fault, LoadCause};
use crate::limits::{self, TextBudget};

/// By ELF section index.
pub(crate) type BySection<T> = BTreeMap<usize, T>;

type Header = elf::FileHeader64<LE>;

/// A parsed ELF file.
#[derive(Debug)]
pub(crate) struct Elf<'d> {
    /// By ELF index; index 0 is the empty section.
    pub(crate) sections: Vec<Section<'d>>,
    /// By ELF index; index 0 is the empty symbol.
    pub(crate) symbols: Vec<Symbol>,
    /// The first section of each name.
    section_by_name: BTreeMap<String, usize>,
    /// Values of symbols by section and name; `None` if a name is not unique.
    value_by_name: BTreeMap<(usize, String), Option<u64>>,
}

/// A section.
#[derive(Debug)]
pub(crate) struct Section<'d> {
    pub(crate) name: String,
    /// Bytes in memory.
    pub(crate) size: u64,
    /// Bytes in the file; none for `.bss`.
    pub(crate) data: &'d [u8],
    pub(crate) content: Content,
    /// In the order of the file.
    pub(crate) relocations: Vec<Relocation>,
}

/// The kind of content, by the section's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Code,
    Data,
    Zeros,
    /// Tables of the ELF file itself.
    Other,
}

/// A relocation of a section. Its addend is in the relocated bytes (`SHT_REL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Relocation {
    pub(crate) offset: u64,
    pub(crate) symbol: usize,
    pub(crate) kind: u32,
}

/// `lddw`: an address of data, of a map, of an external variable, of a function.
pub(crate) const R_BPF_64_64: u32 = 1;
/// A pointer in data.
pub(crate) const R_BPF_64_ABS64: u32 = 2;
/// A 32-bit word in data.
pub(crate) const R_BPF_64_ABS32: u32 = 3;
/// A 32-bit word in type information.
pub(crate) const R_BPF_64_NODYLD32: u32 = 4;
/// A call.
pub(crate) const R_BPF_64_32: u32 = 10;

/// A symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    /// ELF index of the section that defines it; `None` for an external symbol.
    pub(crate) section: Option<usize>,
    pub(crate) value: u64,
    pub(crate) size: u64,
    pub(crate) function: bool,
    pub(crate) weak: bool,
}

impl<'d> Elf<'d> {
    /// Parses a file.
    pub(crate) fn parse(bytes: &'d [u8]) -> Result<Self, Fault> {
        limits::check("bytes of the file", bytes.len() as u64, limits::MAX_FILE_BYTES)?;
        check_identity(bytes)?;
        let header = Header::parse(bytes).map_err(damaged("the ELF header"))?;
        let table = header.sections(LE, bytes).map_err(damaged("the section table"))?;
        limits::check("sections", table.len() as u64, limits::MAX_SECTIONS)?;
        let texts = TextBudget::new();
        let mut sections = Vec::with_capacity(table.len());
        for section in table.iter() {
            sections.push(read_section(section, &table, bytes, &texts)?);
        }
        let (symbols, symbol_table) = read_symbols(&table, bytes, sections.len(), &texts)?;
        for (index, section) in table.enumerate() {
            read_relocations(section, index, symbol_table, &mut sections, symbols.len(), bytes)?;
        }
        let mut section_by_name = BTreeMap::new();
        for (index, section) in sections.iter().enumerate() {
            section_by_name.entry(section.name.clone()).or_insert(index);
        }
        let mut value_by_name = BTreeMap::new();
        for symbol in symbols.iter().filter(|symbol| !symbol.name.is_empty()) {
            let Some(section) = symbol.section else { continue };
            value_by_name
                .entry((section, symbol.name.clone()))
                .and_modify(|value| *value = None)
                .or_insert(Some(symbol.value));
        }
        Ok(Self { sections, symbols, section_by_name, value_by_name })
    }

    /// The first section of that name.
    pub(crate) fn section(&self, name: &str) -> Option<&Section<'d>> {
        self.section_index(name).map(|index| &self.sections[index])
    }

    /// The index of the first section of that name.
    pub(crate) fn section_index(&self, name: &str) -> Option<usize> {
        self.section_by_name.get(name).copied()
    }

    /// The bytes of a section of type or debugging information with its relocations applied; a 64-bit word becomes an
    /// [`address_in`] its section. The offsets of a linked object (`bpftool gen object`) are final, and it has no such
    /// relocations.
    pub(crate) fn relocated(&self, section: &Section<'_>) -> Vec<u8> {
        let mut bytes = section.data.to_vec();
        for relocation in &section.relocations {
            let symbol = &self.symbols[relocation.symbol];
            let Some(target) = symbol.section else { continue };
            let (size, value) = match relocation.kind {
                R_BPF_64_ABS32 | R_BPF_64_NODYLD32 => (4, symbol.value),
                R_BPF_64_ABS64 => (8, address_in(target, symbol.value)),
                _ => continue,
            };
            let at = relocation.offset as usize;
            if let Some(word) = at.checked_add(size).and_then(|end| bytes.get_mut(at..end)) {
                let mut addend = [0; 8];
                addend[..size].copy_from_slice(word);
                let sum = u64::from_le_bytes(addend).wrapping_add(value);
                word.copy_from_slice(&sum.to_le_bytes()[..size]);
            }
        }
        bytes
    }

    /// The value of the one symbol of that name that a section defines.
    pub(crate) fn value_of(&self, section: usize, name: &str) -> Option<u64> {
        self.value_by_name.get(&(section, name.to_owned())).copied().flatten()
    }
}

impl Section<'_> {
    /// The content in the file; zeros follow in memory, up to its size.
    pub(crate) fn content(&self) -> Result<&[u8], Fault> {
        limits::check("bytes of a data section", self.size, limits::MAX_DATA_BYTES)
            .map_err(|cause| Fault::at_section(&self.name, 0, cause))?;
        Ok(self.data)
    }
}

/// An offset in a section as an address that no other section has: each section of an object begins at 0.
pub(crate) fn address_in(section: usize, offset: u64) -> u64 {
    ((section as u64) << 32).wrapping_add(offset)
}

fn damaged(what: &'static str) -> impl Fn(object::read::Error) -> LoadCause {
    move |error| LoadCause::Damaged(format!("{what}: {error}"))
}

fn check_identity(bytes: &[u8]) -> Result<(), LoadCause> {
    let Some(ident) = bytes.get(..20) else {
        return Err(LoadCause::NotElf(format!("it has only {} bytes", bytes.len())));
    };
    if ident[..4] != *b"\x7fELF" {
        return Err(LoadCause::NotElf("it does not begin with the ELF magic".into()));
    }
    let class = if ident[4] == 1 { 32 } else { 64 };
    let machine = [ident[18], ident[19]];
    let big_endian = ident[5] == 2;
    let machine =
        if big_endian { u16::from_be_bytes(machine) } else { u16::from_le_bytes(machine) };
    if machine != elf::EM_BPF.0 || class != 64 {
        return Err(LoadCause::WrongMachine { machine, class });
    }
    if big_endian { Err(LoadCause::BigEndian) } else { Ok(()) }
}

fn text(bytes: &[u8], budget: &TextBudget) -> Result<String, LoadCause> {
    budget.take(bytes.len())?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn read_section<'d>(
    header: &elf::SectionHeader64<LE>,
    table: &SectionTable<'d, Header>,
    bytes: &'d [u8],
    texts: &TextBudget,
) -> Result<Section<'d>, Fault> {
    let name = table.section_name(LE, header).map_err(damaged("a section's name"))?;
    let name = text(name, texts)?;
    let kind = header.sh_type(LE);
    let content = match kind {
        elf::SHT_PROGBITS if header.sh_flags(LE).0 & elf::SHF_EXECINSTR.0 != 0 => Content::Code,
        elf::SHT_PROGBITS => Content::Data,
        elf::SHT_NOBITS => Content::Zeros,
        _ => Content::Other,
    };
    let data = match kind {
        elf::SHT_NULL => &[],
        _ => header.data(LE, bytes).map_err(|error| {
            Fault::at_section(&name, 0, damaged("the section exceeds the file")(error))
        })?,
    };
    Ok(Section { name, size: header.sh_size(LE), data, content, relocations: Vec::new() })
}

fn read_symbols(
    table: &SectionTable<'_, Header>,
    bytes: &[u8],
    sections: usize,
    texts: &TextBudget,
) -> Result<(Vec<Symbol>, SectionIndex), Fault> {
    let symbols = table.symbols(LE, bytes, elf::SHT_SYMTAB).map_err(damaged("the symbol table"))?;
    limits::check("symbols", symbols.len() as u64, limits::MAX_SYMBOLS)?;
    let mut read = Vec::with_capacity(symbols.len());
    for (index, symbol) in symbols.enumerate() {
        let name = symbol.name(LE, symbols.strings()).map_err(damaged("a symbol's name"))?;
        let name = text(name, texts)?;
        read.push(read_symbol(symbol, index, &symbols, name, sections)?);
    }
    Ok((read, symbols.section()))
}

fn read_symbol(
    symbol: &elf::Sym64<LE>,
    index: object::read::SymbolIndex,
    table: &SymbolTable<'_, Header>,
    name: String,
    sections: usize,
) -> Result<Symbol, Fault> {
    let section = table.symbol_section(LE, symbol, index).map_err(damaged("a symbol's section"))?;
    if section.is_some_and(|section| section.0 >= sections) {
        let cause = LoadCause::Damaged("the symbol is in a section that does not exist".into());
        return Err(Fault::at_symbol(&name, cause));
    }
    Ok(Symbol {
        name,
        section: section.map(|section| section.0),
        value: symbol.st_value(LE),
        size: symbol.st_size(LE),
        function: symbol.st_type() == elf::STT_FUNC,
        weak: symbol.st_bind() == elf::STB_WEAK,
    })
}

fn read_relocations(
    header: &elf::SectionHeader64<LE>,
    index: SectionIndex,
    symbol_table: SectionIndex,
    sections: &mut [Section<'_>],
    symbols: usize,
    bytes: &[u8],
) -> Result<(), Fault> {
    let kind = header.sh_type(LE);
    let own_name = sections[index.0].name.clone();
    let Some(target) = sections.get_mut(header.sh_info(LE) as usize) else {
        return match kind {
            elf::SHT_REL | elf::SHT_RELA => Err(Fault::at_section(
                &own_name,
                0,
                LoadCause::BadRelocation("they are for a section that does not exist".into()),
            )),
            _ => Ok(()),
        };
    };
    if kind == elf::SHT_RELA && target.content == Content::Code {
        let cause = LoadCause::Unsupported("relocations with explicit addends (RELA)".into());
        return Err(Fault::at_section(&own_name, 0, cause));
    }
    // Debugging information only makes a message better, so it is not checked.
    let is_checked = !target.name.starts_with(".debug");
    let relocations = match header.rel(LE, bytes) {
        Err(error) if is_checked => return Err(damaged("a relocation section")(error).into()),
        Err(_) => None,
        Ok(relocations) => relocations,
    };
    let Some((relocations, link)) = relocations else { return Ok(()) };
    for (at, relocation) in relocations.iter().enumerate() {
        let symbol = relocation.r_sym(LE) as usize;
        if link != symbol_table || symbol >= symbols {
            if !is_checked {
                continue;
            }
            let cause = LoadCause::BadRelocation(format!("symbol {symbol} does not exist"));
            return Err(Fault::at_section(&own_name, at as u64 * 16, cause));
        }
        let (offset, kind) = (relocation.r_offset(LE), relocation.r_type(LE).0);
        target.relocations.push(Relocation { offset, symbol, kind });
    }
    Ok(())
}
