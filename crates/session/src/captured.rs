//! What a scheduler's own loader has set, as a profile, and against one.

use std::fmt::Write;
use std::path::Path;

use fairground_bpf::{Global, GlobalType, Object, OpsValue, Types};
use fairground_machine::{Meanings, Topology, is_kernel_constant};
use fairground_realkernel::files::{PROGRAM_BYTES_MAX, read_file};
use fairground_realkernel::job::Captured;

use crate::failure::Failure;
use crate::input::Profile;

/// The section that only a loader writes.
const FROZEN: &str = ".rodata";
/// Maximum elements of an array that are written as a list.
const LIST_MAX: usize = 4096;
/// Maximum values of sections that the scheduler changes itself, in comments.
const COMMENTS_MAX: usize = 256;
/// What begins an ELF file for 64 bits, and the machine of BPF programs behind it.
const ELF_MAGIC: &[u8] = b"\x7fELF\x02\x01\x01";
const BPF_MACHINE: [u8; 2] = [247, 0];
/// The length of a section for exit dumps, which a loader makes so large; a profile that sets it alone would let the
/// program write beyond it.
pub(crate) const DUMP_LENGTH: &str = "uei_dump_len";
/// Maximum characters of a value among differences.
const SHOWN_MAX: usize = 60;
/// Members of the callback table that say on which kernel it was loaded, not what the loader chose.
const OF_THE_KERNEL: [&str; 1] = ["hotplug_seq"];

/// A part of a variable that differs in two contents of its section.
struct DifferingPart {
    path: String,
    ty: GlobalType,
    /// The bytes of the first content, and of the second.
    bytes: [Vec<u8>; 2],
}

/// A value that a loader sets and a profile does not, or otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedDifference {
    /// The variable or the part of it; a member of the callback table as `ops.flags`.
    pub name: String,
    /// The loader's value.
    pub loader: String,
    /// The profile's.
    pub profile: String,
}

/// The BPF object within a loader's program: the first one that has a scheduler.
///
/// # Errors
/// The file cannot be read, or has none.
pub fn object_within(program: &Path) -> Result<Object, Failure> {
    let shown = program.display().to_string();
    let bytes = read_file(program, PROGRAM_BYTES_MAX).map_err(|e| Failure::io(&shown, &e))?;
    let starts = bytes.windows(ELF_MAGIC.len()).enumerate();
    let starts = starts.filter(|(at, start)| *at > 0 && *start == ELF_MAGIC);
    for (at, _) in starts {
        let Some(size) = size_of_object(&bytes[at..]) else { continue };
        let Ok(object) = Object::parse(&shown, &bytes[at..at + size]) else { continue };
        if !object.struct_ops().is_empty() {
            return Ok(object);
        }
    }
    Err(Failure::new(format_args!("{shown}: there is no sched_ext object within this program"))
        .help("give the object that it loads: `--object FILE.bpf.o`"))
}

/// Bytes of the BPF object that begins here, up to the end of its table of sections.
fn size_of_object(bytes: &[u8]) -> Option<usize> {
    let word = |at: usize, size: usize| {
        let mut word = [0; 8];
        word[..size].copy_from_slice(bytes.get(at..at + size)?);
        usize::try_from(u64::from_le_bytes(word)).ok()
    };
    if bytes.get(18..20)? != BPF_MACHINE {
        return None;
    }
    let (table, entry, entries) = (word(40, 8)?, word(58, 2)?, word(60, 2)?);
    let end = table.checked_add(entry * entries)?;
    (end <= bytes.len()).then_some(end)
}

/// A profile of what a loader has set in an object: the variables of `.rodata`, and the integers of the callback table.
/// What else differs from the object is in comments: the scheduler changes those sections itself.
///
/// # Errors
/// The loader's object is another one.
pub fn captured_profile(object: &Object, captured: &Captured) -> Result<String, Failure> {
    let mut text = format!("object = \"{}\"\n", stem(object.name()));
    let before = object_ops(object);
    let ops = of_loader(captured).filter(|(name, value)| number_of(&before, name) != *value);
    let ops: Vec<_> = ops.collect();
    if !ops.is_empty() {
        text += "\n[ops]\n";
    }
    for (name, value) in ops {
        let _ = writeln!(text, "{name} = {value:#x}");
    }
    text += "\n[set]\n";
    let (mut later, mut left_out) = (String::new(), 0);
    for section in &captured.sections {
        let content = section.content().ok_or_else(|| damaged(&section.name))?;
        let parts = parts(object, &section.name, &content, |global| object.initial(global))?;
        for DifferingPart { path, ty, bytes: [_, new] } in parts {
            let line = line(&path, &ty, &new);
            match section.name.as_str() {
                FROZEN => text += &line,
                _ if later.lines().count() < COMMENTS_MAX => {
                    let _ = write!(later, "# {line}");
                }
                _ => left_out += 1,
            }
        }
    }
    if !later.is_empty() {
        text += "\n# The scheduler changes these itself; its loader may have set some of them:\n";
        text += &later;
    }
    if left_out > 0 {
        let _ = writeln!(text, "# and {left_out} more");
    }
    for note in &captured.notes {
        let _ = writeln!(text, "# {note}");
    }
    Ok(text)
}

/// Where a profile differs from what a loader has set on a machine of that topology.
///
/// # Errors
/// The loader's object is another one, or the profile does not fit.
pub fn captured_differences(
    object: &Object,
    captured: &Captured,
    profile: &Profile,
    topology: &Topology,
) -> Result<Vec<CapturedDifference>, Failure> {
    let mut set = object.clone();
    let settings = profile.apply(&mut set, topology)?.settings;
    let types = object.types();
    let meanings = Meanings::new(&types, topology);
    let mut contents: Vec<Vec<u8>> =
        set.globals().iter().map(|global| set.initial(global)).collect();
    for setting in &settings {
        let change = meanings.change(object.name(), set.globals(), setting);
        let change = change.map_err(Failure::new)?;
        for patch in change.patches {
            patch.apply(&mut contents[change.variable]);
        }
    }
    let of_profile = |global: &Global| {
        let at = set.globals().iter().position(|other| other.name == global.name);
        at.map_or_else(|| object.initial(global), |at| contents[at].clone())
    };
    let mut found = Vec::new();
    for section in captured.sections.iter().filter(|section| section.name == FROZEN) {
        let content = section.content().ok_or_else(|| damaged(&section.name))?;
        for DifferingPart { path, ty, bytes: [old, new] } in
            parts(object, FROZEN, &content, of_profile)?
        {
            let text = |bytes: &[u8]| shortened(&value_text(&ty, bytes));
            found.push(CapturedDifference { name: path, loader: text(&new), profile: text(&old) });
        }
    }
    let of_profile = object_ops(&set);
    let names = of_loader(captured).map(|(name, _)| name).chain(of_profile.iter().map(|(n, _)| n));
    let mut names: Vec<&String> = names.filter(|name| !is_of_the_kernel(name)).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let (loader, profile) = (number_of(&captured.ops, name), number_of(&of_profile, name));
        if loader != profile {
            let (loader, profile) = (format!("{loader:#x}"), format!("{profile:#x}"));
            found.push(CapturedDifference { name: format!("ops.{name}"), loader, profile });
        }
    }
    Ok(found)
}

fn is_of_the_kernel(name: &str) -> bool {
    OF_THE_KERNEL.contains(&name)
}

fn of_loader(captured: &Captured) -> impl Iterator<Item = (&String, u64)> {
    captured
        .ops
        .iter()
        .filter(|(name, _)| !is_of_the_kernel(name))
        .map(|(name, value)| (name, *value))
}

fn number_of(ops: &[(String, u64)], name: &str) -> u64 {
    ops.iter().find(|(known, _)| known == name).map_or(0, |(_, value)| *value)
}

/// The integers of an object's callback table that are not 0.
fn object_ops(object: &Object) -> Vec<(String, u64)> {
    let fields = object.struct_ops().iter().flat_map(|ops| &ops.fields);
    let numbers = fields.filter_map(|field| match field.value {
        OpsValue::Int(value) if value != 0 => Some((field.name.clone(), value)),
        _ => None,
    });
    numbers.collect()
}

fn damaged(section: &str) -> Failure {
    Failure::new(format_args!("the captured {section} is damaged"))
}

/// The name of an object as profiles have it.
fn stem(name: &str) -> String {
    let file = Path::new(name).file_name().unwrap_or_default().to_string_lossy().into_owned();
    file.strip_suffix(".bpf.o").unwrap_or(&file).to_owned()
}

/// The parts of the variables of a section that differ from what `before` says.
fn parts(
    object: &Object,
    section: &str,
    content: &[u8],
    before: impl Fn(&Global) -> Vec<u8>,
) -> Result<Vec<DifferingPart>, Failure> {
    let types = object.types();
    let mut found = Vec::new();
    let globals = object.globals().iter().filter(|global| object.section_of(global) == section);
    let is_set = |global: &&Global| {
        global.is_settable() && !is_kernel_constant(global) && global.name != DUMP_LENGTH
    };
    for global in globals.filter(is_set) {
        let from = global.offset as usize;
        let new = content.get(from..from + global.size as usize).ok_or_else(|| {
            Failure::new(format_args!(
                "the loader's {section} ends before the variable `{}` of {}",
                global.name,
                object.name()
            ))
            .help("name the object that this loader loads: `--object FILE.bpf.o`")
        })?;
        compare(&types, &global.ty, global.name.clone(), &before(global), new, &mut found);
    }
    Ok(found)
}

/// Adds where two contents of a type differ.
fn compare(
    types: &Types,
    ty: &GlobalType,
    path: String,
    old: &[u8],
    new: &[u8],
    found: &mut Vec<DifferingPart>,
) {
    if old == new {
        return;
    }
    match ty {
        GlobalType::Array { of, element_size, text: false, .. } if !is_plain(of) => {
            let size = (*element_size as usize).max(1);
            for (index, (old, new)) in old.chunks(size).zip(new.chunks(size)).enumerate() {
                compare(types, of, format!("{path}[{index}]"), old, new, found);
            }
        }
        GlobalType::Composite { id, .. } => {
            for member in types.members(*id).iter().filter(|member| member.bits == 0) {
                let from = (member.bit_offset / 8) as usize;
                let range = from..from + member.size as usize;
                let (Some(old), Some(new)) = (old.get(range.clone()), new.get(range)) else {
                    continue;
                };
                let path = format!("{path}.{}", member.name);
                compare(types, &member.ty, path, old, new, found);
            }
        }
        GlobalType::Pointer | GlobalType::Other => {}
        _ => {
            found.push(DifferingPart { path, ty: ty.clone(), bytes: [old.to_vec(), new.to_vec()] })
        }
    }
}

fn is_plain(ty: &GlobalType) -> bool {
    matches!(ty, GlobalType::Bool | GlobalType::Int { .. } | GlobalType::Enum { .. })
}

/// A line of `[set]`.
fn line(path: &str, ty: &GlobalType, bytes: &[u8]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let value = value_text(ty, bytes);
    match path.chars().all(plain) {
        true => format!("{path} = {value}\n"),
        false => format!("\"{path}\" = {value}\n"),
    }
}

/// A value as TOML has it: an array up to its last element that is not 0.
fn value_text(ty: &GlobalType, bytes: &[u8]) -> String {
    match ty {
        GlobalType::Bool => (bytes.iter().any(|byte| *byte != 0)).to_string(),
        GlobalType::Int { signed, .. } => number_text(bytes, *signed),
        GlobalType::Enum { signed, values, .. } => {
            let number = number_text(bytes, *signed);
            let name = values.iter().find(|(_, value)| value.to_string() == number);
            name.map_or(number, |(name, _)| format!("\"{name}\""))
        }
        GlobalType::Array { text: true, .. } => {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            format!("{:?}", String::from_utf8_lossy(&bytes[..end]))
        }
        GlobalType::Array { of, element_size, .. } => {
            let elements: Vec<&[u8]> = bytes.chunks((*element_size as usize).max(1)).collect();
            let end = elements.iter().rposition(|element| element.iter().any(|byte| *byte != 0));
            let end = end.map_or(1, |last| last + 1).min(LIST_MAX).min(elements.len());
            let texts: Vec<_> = elements[..end].iter().map(|bytes| value_text(of, bytes)).collect();
            format!("[{}]", texts.join(", "))
        }
        _ => "?".to_owned(),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A whole number; a text where TOML's numbers end.
fn number_text(bytes: &[u8], signed: bool) -> String {
    let mut wide = [0; 8];
    let size = bytes.len().min(wide.len());
    wide[..size].copy_from_slice(&bytes[..size]);
    let number = u64::from_le_bytes(wide);
    let unused = 64 - 8 * size.max(1) as u32;
    match signed {
        true => (((number << unused) as i64) >> unused).to_string(),
        false if i64::try_from(number).is_ok() => number.to_string(),
        false => format!("\"{number}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_realkernel::job::CapturedSection;

    fn of_policy(name: &str) -> Object {
        let bytes = fairground_policies::get(name).expect("it comes with fairground").object;
        Object::parse(&format!("{name}.bpf.o"), bytes).expect("an object")
    }

    /// The section of an object with one variable changed.
    fn changed(object: &Object, name: &str, bytes: &[u8]) -> Captured {
        let global = object.global(name).expect("a variable");
        let mut content = object.content_of(global).to_vec();
        let from = global.offset as usize;
        content[from..from + bytes.len()].copy_from_slice(bytes);
        let bytes = content.iter().map(|byte| format!("{byte:02x}")).collect();
        let section = CapturedSection { name: object.section_of(global).to_owned(), bytes };
        let ops = object_ops(object).into_iter().chain([("hotplug_seq".to_owned(), 7)]);
        Captured { sections: vec![section], ops: ops.collect(), notes: Vec::new() }
    }

    #[test]
    fn what_a_loader_sets_becomes_a_profile_that_sets_it() {
        let (object, name) = (of_policy("cfs"), "rule_difference_tasks");
        let captured = changed(&object, name, &123_456u32.to_le_bytes());
        let text = captured_profile(&object, &captured).expect("a profile");
        assert_eq!(text, format!("object = \"cfs\"\n\n[set]\n{name} = 123456\n"));
        let profile = Profile::of_text("captured.toml".into(), &text).expect("a profile");
        let topology = "4".parse().expect("a topology");
        let against = |profile: &Profile| {
            captured_differences(&object, &captured, profile, &topology).expect("they compare")
        };
        assert_eq!(against(&profile), []);
        let other = Profile::of_text("x.toml".into(), "object = \"cfs\"\n").expect("a profile");
        let [found] = &against(&other)[..] else { panic!("one difference") };
        assert_eq!((found.name.as_str(), found.loader.as_str()), (name, "123456"));
    }

    #[test]
    fn values_are_written_as_toml_has_them() {
        let int = |bits, signed| GlobalType::Int { bits, signed };
        assert_eq!(value_text(&int(32, true), &[0xff; 4]), "-1");
        assert_eq!(value_text(&int(64, false), &[0xff; 8]), "\"18446744073709551615\"");
        let array = |text| GlobalType::Array {
            of: Box::new(int(8, false)),
            element_size: 1,
            count: 4,
            text,
        };
        assert_eq!(value_text(&array(false), &[1, 0, 2, 0]), "[1, 0, 2]");
        assert_eq!(value_text(&array(false), &[0; 4]), "[0]");
        assert_eq!(value_text(&array(true), b"ab\0\0"), "\"ab\"");
        assert_eq!(line("x[1].y", &int(8, false), &[3]), "\"x[1].y\" = 3\n");
    }

    #[test]
    fn an_object_is_found_within_a_program() {
        let object = fairground_policies::get("fifo").expect("it comes with fairground").object;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("loader");
        let around =
            |content: &[u8]| [b"\x7fELF\x02\x01\x01 a program ", content, b" and more"].concat();
        std::fs::write(&file, around(object)).expect("it is written");
        let found = object_within(&file).expect("it has an object");
        assert_eq!(found.globals().len(), of_policy("fifo").globals().len());
        std::fs::write(&file, around(b"")).expect("it is written");
        let error = object_within(&file).expect_err("it has none").to_string();
        assert!(error.contains("no sched_ext object"), "{error}");
    }
}
