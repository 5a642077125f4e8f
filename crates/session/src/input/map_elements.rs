//! The content that a profile puts into elements of maps (`[maps.NAME]`).

use fairground_bpf::{GlobalType, Object};
use fairground_machine::{MapContent, Meanings, Patch, Topology, Words};

use super::assignment::ProfileValue;
use super::profile::ProfileFaults;

/// Maximum elements that one line of a profile sets.
const ELEMENTS_MAX: u64 = 1 << 16;
/// The start of words for a value of each CPU.
const OF_A_CPU: &str = "cpu.";
/// The start of the kinds of maps with a copy of each element for each CPU.
const PER_CPU: &str = "percpu_";

/// A key, and for a range that ends with the number of places of a level (`0..llcs`) the place, whose value words for
/// lists of that level stand for.
type Key = (u64, Option<(&'static str, usize)>);

/// The content of a map's elements: by members, by elements, or as bytes where their type has none. In a per-CPU map a
/// word for a list of CPUs (`cpu.id`) gives each copy the value of its CPU.
///
/// # Errors
/// The fault, in words.
pub(super) fn elements_of(
    object: &Object,
    topology: &Topology,
    (map, keys): (&str, &str),
    element: &ProfileValue,
    faults: &mut ProfileFaults,
) -> Result<Vec<MapContent>, String> {
    let words = Words::of(topology);
    let known = object.map_value(map).zip(object.map_member(map, ""));
    let (ty, (_, size)) = known.ok_or("there is no such map")?;
    let per_cpu =
        object.maps().iter().any(|known| known.name == map && known.kind.starts_with(PER_CPU));
    let types = object.types();
    let mut contents = Vec::new();
    for (key, place) in keys_of(keys, &words)? {
        let mut push = |cpu, offset, bytes| {
            contents.push(MapContent { map: map.to_owned(), key, cpu, offset, bytes });
        };
        if let (false, Some(bytes)) = (matches!(ty, GlobalType::Array { .. }), element.bytes()) {
            push(None, 0, bytes);
            continue;
        }
        let of_key = Meanings::new(&types, topology);
        let of_key = place.map_or(of_key, |(level, number)| of_key.at(level, number));
        for assignment in element.assignments("")? {
            let (path, value) = (&assignment.path, &assignment.value);
            if !of_key.has_part(&ty, path) && faults.leaves_out(&format!("{map}: {path}")) {
                continue;
            }
            let copies: Vec<Option<u32>> = match per_cpu && value.starts_with(OF_A_CPU) {
                true => (0..topology.cpus()).map(Some).collect(),
                false => vec![None],
            };
            for cpu in copies {
                let meanings = cpu.map_or(of_key, |cpu| of_key.at("cpu", cpu as usize));
                let patches = meanings.patches_of(map, (&ty, size), path, value);
                for Patch { offset, bytes, mask } in
                    patches.map_err(|problem| format!("`{path}={value}`: {problem}"))?
                {
                    if !mask.is_empty() {
                        return Err("a bit field of a map's element cannot be set; give the whole element as \
                                    bytes, [1, 2, 3]"
                            .to_owned());
                    }
                    push(cpu, offset, bytes);
                }
            }
        }
    }
    Ok(contents)
}

/// The keys that a line is for: one, or `FIRST..END` without END.
fn keys_of(text: &str, words: &Words<'_>) -> Result<Vec<Key>, String> {
    let wrong = || {
        format!("`{text}` is no key: give a whole number, or a range `0..4` (without 4), `0..llcs`")
    };
    let Some((first, end)) = text.split_once("..") else {
        return Ok(vec![(text.parse().map_err(|_| wrong())?, None)]);
    };
    let level = Words::levels().find(|(_, count)| count == end).map(|(level, _)| level);
    let first: u64 = first.parse().map_err(|_| wrong())?;
    let end = end.parse().ok().or_else(|| words.number(end)).ok_or_else(wrong)?;
    if end.saturating_sub(first) > ELEMENTS_MAX {
        return Err(format!("`{text}` is more than {ELEMENTS_MAX} elements"));
    }
    let place = |key: u64| level.map(|level| (level, (key - first) as usize));
    Ok((first..end).map(|key| (key, place(key))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_numbers_and_ranges() {
        let topology = "2x2x2".parse().expect("a topology");
        let words = Words::of(&topology);
        assert_eq!(keys_of("7", &words), Ok(vec![(7, None)]));
        assert_eq!(keys_of("1..3", &words), Ok(vec![(1, None), (2, None)]));
        let places = vec![(0, Some(("llc", 0))), (1, Some(("llc", 1)))];
        assert_eq!(keys_of("0..llcs", &words), Ok(places));
        for text in ["", "x", "1..", "-1", "0..words"] {
            assert!(keys_of(text, &words).expect_err(text).contains("is no key"), "{text}");
        }
        assert!(keys_of("0..99999999", &words).is_err(), "too many");
    }
}
