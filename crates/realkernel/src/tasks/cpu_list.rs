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
