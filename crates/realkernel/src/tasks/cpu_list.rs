//! CPU lists as the kernel writes them.

/// The ranges of a CPU list such as `0-3,8`. Ignores malformed parts.
pub(crate) fn parse_cpu_list(text: &str) -> Vec<(u32, u32)> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last && last <= fairground_workload::limits::CPU_MAX).then_some((first, last))
    };
    text.split(',').filter_map(range).collect()
}

/// Writes ranges as a CPU list, without allocation.
pub(super) struct Ranges<'a>(pub(super) &'a [(u32, u32)]);

impl std::fmt::Display for Ranges<'_> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (first, last)) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(to, "{comma}{first}-{last}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_are_written() {
        let ranges = [(0, 3), (8, 8)];
        assert_eq!(Ranges(&ranges).to_string(), "0-3,8-8");
        assert_eq!(parse_cpu_list("0-3,8-8"), ranges);
    }
}
