//! Lengths of time that a scheduler can hardly be meant to have.

use fairground_bpf::Global;
use fairground_machine::Setting;
use fairground_workload::parse_time;

use super::SchedulerObject;

/// A length is unusual from this factor on, up or down: that of the next unit.
const FACTOR: u64 = 1_000;
/// The units of variables, and their ns.
const UNITS: [(&str, u64); 3] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000)];

impl SchedulerObject {
    /// Settings of lengths of time that lie a thousand times below or above what the variable has otherwise, as
    /// they do where a number was meant in another unit; in words. 0 switches a rule off, and is usual.
    pub fn unusual(&self, given: &[Setting]) -> Vec<String> {
        given.iter().filter_map(|setting| self.unusual_length(setting)).collect()
    }

    fn unusual_length(&self, setting: &Setting) -> Option<String> {
        let is_meant = |global: &&Global| {
            let alias = global.tags.iter().filter_map(|tag| tag.strip_prefix("alias:"));
            alias.chain([global.name.as_str()]).any(|name| name.eq_ignore_ascii_case(&setting.name))
        };
        let global = self.object.globals().iter().find(is_meant)?;
        let (unit, unit_ns) = UNITS.into_iter().find(|(unit, _)| is_in(global, unit))?;
        let of_set = self.settings.iter().rev().find(|set| set.name == global.name);
        let usual = match of_set {
            Some(set) => number(&set.value, unit_ns)?,
            None => little_endian(&self.object.initial(global))?,
        };
        let value = number(&setting.value, unit_ns)?;
        let (low, high) = (value.min(usual), value.max(usual));
        let is_unusual = low > 0 && high / low >= FACTOR;
        is_unusual.then(|| {
            format!(
                "{}: `{}={}` is {value} {unit}, and it has {usual} {unit} otherwise; a unit may be written, as in \
                 `{}={}`",
                self.label, setting.name, setting.value, setting.name, written(usual, unit)
            )
        })
    }
}

/// A length in the largest unit of which it is a whole number.
fn written(value: u64, unit: &'static str) -> String {
    let first = UNITS.iter().position(|(known, _)| *known == unit).unwrap_or(0);
    let (mut value, mut unit) = (value, unit);
    for (larger, _) in UNITS.iter().skip(first + 1) {
        if value == 0 || !value.is_multiple_of(FACTOR) {
            break;
        }
        (value, unit) = (value / FACTOR, larger);
    }
    format!("{value}{unit}")
}

/// Whether a variable counts in a unit: its tag or the end of its name says so.
fn is_in(global: &Global, unit: &str) -> bool {
    let tag = global.tags.iter().find_map(|tag| tag.strip_prefix("unit:"));
    match tag {
        Some(tag) => tag == unit,
        None => global.name.strip_suffix(unit).is_some_and(|name| name.ends_with('_')),
    }
}

/// A value as text, in the variable's unit.
fn number(text: &str, unit_ns: u64) -> Option<u64> {
    text.parse().ok().or_else(|| Some(parse_time(text).ok()? / unit_ns))
}

fn little_endian(bytes: &[u8]) -> Option<u64> {
    let mut wide = [0; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_in_another_unit_is_told() {
        let object = SchedulerObject::find("cfs@2.6.27-sle11", None).expect("cfs");
        let told = |name: &str, value: &str| object.unusual(&[Setting::initial(name, value)]);
        let [text] = &told("sched_latency_ns", "20")[..] else { panic!("nothing is told") };
        assert!(text.contains("`sched_latency_ns=20` is 20 ns, and it has 20000000 ns"), "{text}");
        assert!(text.ends_with("`sched_latency_ns=20ms`"), "{text}");
        assert_eq!(told("sched_latency_ns", "20000000000000").len(), 1);
        for usual in ["20ms", "20000000", "0", "100us", "nonsense"] {
            assert!(told("sched_latency_ns", usual).is_empty(), "{usual}");
        }
        assert!(told("FAIR_SLEEPERS", "on").is_empty());
        assert!(told("cpu.1.online", "off").is_empty());
    }
}
