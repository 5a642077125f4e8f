//! The kernel's functions by address (`/proc/kallsyms`), and stacks of them.

use std::borrow::Cow;

use super::cursor::Endian;
use super::formats::Field;

/// Frames of a stack that are examined; the kernel itself records at most 127.
const FRAMES_MAX: usize = 128;
/// An address beyond the last function by more is in none.
const FUNCTION_BYTES_MAX: u64 = 1 << 20;

/// Functions in the order of their addresses.
#[derive(Debug, Default)]
pub(super) struct Symbols<'k> {
    functions: Vec<(u64, &'k str)>,
}

impl<'k> Symbols<'k> {
    /// From lines `ffffffff81234560 t name [module]`; others than those of code are left out.
    pub(super) fn parse(kallsyms: &'k str) -> Self {
        let line = |line: &'k str| {
            let mut words = line.split_ascii_whitespace();
            let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
            let address = u64::from_str_radix(address, 16).ok().filter(|address| *address != 0)?;
            matches!(kind, "t" | "T" | "w" | "W").then_some((address, name))
        };
        let mut functions: Vec<_> = kallsyms.lines().filter_map(line).collect();
        functions.sort_unstable();
        Self { functions }
    }

    /// The function in which an address lies.
    fn name(&self, address: u64) -> Option<&'k str> {
        let behind = self.functions.partition_point(|(start, _)| *start <= address);
        let (start, name) = self.functions.get(behind.checked_sub(1)?)?;
        (address - start < FUNCTION_BYTES_MAX).then_some(name)
    }

    /// The function in which an address lies, or else the address.
    pub(super) fn text(&self, address: u64) -> Cow<'k, str> {
        match self.name(address) {
            Some(name) => name.into(),
            None => format!("{address:#x}").into(),
        }
    }

    /// The stack of an event, `outer;…;inner`, if it has one.
    pub(super) fn fold(
        &self,
        event: &[u8],
        size: Field,
        callers: Field,
        endian: Endian,
    ) -> Option<String> {
        let frames = size.number(event, endian).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let callers = event.get(callers.offset()..).unwrap_or_default();
        let taken = frames.min(FRAMES_MAX).min(callers.len() / size_of::<u64>());
        let called_first = callers[..taken * size_of::<u64>()].chunks_exact(size_of::<u64>());
        let frames = called_first.rev().map(|bytes| endian.number(bytes));
        // What ends a stack that is shorter than its room.
        let frames = frames.filter(|frame| *frame != u64::MAX && *frame != 0);
        let named = frames.map(|frame| self.text(frame));
        Some(named.collect::<Vec<_>>().join(";")).filter(|folded| !folded.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::super::formats::Format;
    use super::*;

    const KALLSYMS: &str = "ffffffff81000100 T b\nffffffff81000000 t a\n\
                            0000000000000000 T hidden\nffffffff81000180 D data\nffffffffc0000000 t c [mod]\n";
    const FORMAT: &str = "name: kernel_stack\nID: 4\nformat:\n\
                          \tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\
                          \tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n";

    fn fold(size: u32, frames: &[u64]) -> Option<String> {
        let format = Format::parse(FORMAT).unwrap();
        let (size_field, callers) =
            (format.field("size").unwrap(), format.field("caller").unwrap());
        let mut event = vec![0; 8];
        event.extend(size.to_le_bytes());
        event.extend([0; 4]);
        frames.iter().for_each(|frame| event.extend(frame.to_le_bytes()));
        Symbols::parse(KALLSYMS).fold(&event, size_field, callers, Endian::Little)
    }

    #[test]
    fn the_caller_stands_before_the_called() {
        let frames = [0xffff_ffff_8100_0105, 0xffff_ffff_8100_0004, 0xffff_ffff_c000_0010];
        assert_eq!(fold(3, &frames).as_deref(), Some("c;a;b"));
        assert_eq!(fold(2, &frames).as_deref(), Some("a;b"));
    }

    #[test]
    fn what_is_in_no_function_keeps_its_address() {
        assert_eq!(fold(1, &[0x1000]).as_deref(), Some("0x1000"));
        assert_eq!(fold(2, &[0xffff_ffff_8100_0000, u64::MAX]).as_deref(), Some("a"));
    }

    #[test]
    fn a_stack_that_is_not_there_is_none() {
        assert_eq!(fold(0, &[]), None);
        assert_eq!(fold(u32::MAX, &[]), None);
        assert_eq!(
            fold(9, &[0xffff_ffff_8100_0000]).as_deref(),
            Some("a"),
            "a size beyond the event"
        );
    }
}
