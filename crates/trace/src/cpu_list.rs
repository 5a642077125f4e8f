//! CPU lists in text, as the kernel writes them: `0-3,8`.

/// The ranges of a list, first and last CPU of each; `None` if it is damaged.
pub fn parse_cpu_list(text: &str) -> Option<Vec<(u32, u32)>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    text.split(',').filter(|part| !part.is_empty()).map(range).collect()
}

/// Ranges as a list, each with its first and its last CPU.
pub fn cpu_list_text(ranges: &[(u32, u32)]) -> String {
    let ranges: Vec<_> = ranges.iter().map(|(first, last)| format!("{first}-{last}")).collect();
    ranges.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_and_written() {
        assert_eq!(parse_cpu_list("0-3,8"), Some(vec![(0, 3), (8, 8)]));
        assert_eq!(parse_cpu_list("0-x"), None);
        assert_eq!(cpu_list_text(&[(0, 3), (8, 8)]), "0-3,8-8");
        assert_eq!(parse_cpu_list(""), Some(Vec::new()));
    }
}
