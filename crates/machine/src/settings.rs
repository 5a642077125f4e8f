//! Tunables: the global variables of a scheduler, set by name before or during a run; and what a setting can change of
//! the machine itself.

use fairground_bpf::{Global, GlobalType};

/// One change of a tunable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The variable's name; or `cgroup.PATH.weight`, a cgroup's weight; or `task.NAME.cgroup`, the cgroup of a group of
    /// tasks.
    pub name: String,
    /// The value as text: a decimal or `0x` number, a length of time (`4ms`) for a variable whose unit is known,
    /// `on`/`off`/`true`/`false`/`1`/`0` for a switch, a name for an enumeration.
    pub value: String,
    /// When it takes effect, ns; `None`: before the scheduler's `init()` runs.
    pub at_ns: Option<u64>,
}

impl Setting {
    /// A value from the start.
    pub fn initial(name: &str, value: &str) -> Setting {
        Setting { name: name.to_owned(), value: value.to_owned(), at_ns: None }
    }

    /// A value from a point in time on.
    pub fn at(time_ns: u64, name: &str, value: &str) -> Setting {
        Setting { name: name.to_owned(), value: value.to_owned(), at_ns: Some(time_ns) }
    }
}

/// Why a setting cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The scheduler has no such variable.
    #[error("the scheduler `{policy}` has no tunable `{name}`{}", suggestion(.nearest))]
    Unknown {
        /// The scheduler.
        policy: String,
        /// The requested name.
        name: String,
        /// Similar names, the most similar first; without any, all names.
        nearest: Vec<String>,
    },
    /// The variable cannot hold that value.
    #[error("`{name}={value}`: {problem}")]
    Value {
        /// The variable.
        name: String,
        /// The value.
        value: String,
        /// The fault, and the remedy.
        problem: String,
    },
    /// It names a cgroup or a group of tasks that does not exist, or has a value that is invalid for it.
    #[error("`{name}`: {problem}")]
    Machine {
        /// The setting's name.
        name: String,
        /// The fault, and the remedy.
        problem: String,
    },
    /// The variable is a constant of the loaded program.
    #[error(
        "`{name}` is `const volatile`: the kernel freezes it when the program is loaded, so it can \
         be set at the start only"
    )]
    Frozen {
        /// The variable.
        name: String,
    },
}

impl SettingError {
    /// An invalid setting of the machine.
    pub(crate) fn machine(name: &str, problem: String) -> SettingError {
        SettingError::Machine { name: name.to_owned(), problem }
    }
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => " (it has none at all)".to_owned(),
        [one] => format!("; did you mean `{one}`?"),
        many => format!("; it has `{}`", many.join("`, `")),
    }
}

/// What a setting writes: the variable, as an index into `globals`, and the bytes for it. A setting of the machine
/// itself (`cgroup.…`, `task.…`) writes no variable.
///
/// # Errors
/// If the scheduler has no such variable, the variable cannot hold that value, or it is frozen when the setting comes.
pub fn variable_bytes(
    scheduler: &str,
    globals: &[Global],
    setting: &Setting,
) -> Result<(usize, Vec<u8>), SettingError> {
    let found = find(scheduler, globals, &setting.name)?;
    let variable = &globals[found];
    let bytes = encode(variable, &setting.value)?;
    if setting.at_ns.is_some() && variable.read_only {
        return Err(SettingError::Frozen { name: setting.name.clone() });
    }
    Ok((found, bytes))
}

/// Finds a tunable by name: its index.
pub(crate) fn find(policy: &str, globals: &[Global], name: &str) -> Result<usize, SettingError> {
    let exact = globals.iter().position(|g| g.name == name);
    exact.or_else(|| renamed(globals, name)).ok_or_else(|| SettingError::Unknown {
        policy: policy.to_owned(),
        name: name.to_owned(),
        nearest: nearest(
            name,
            globals.iter().filter(|g| g.is_settable() && settable(&g.ty)).map(|g| g.name.as_str()),
        ),
    })
}

/// A tunable by an earlier name (tag `alias:NAME`), or whatever the case of its letters.
fn renamed(globals: &[Global], name: &str) -> Option<usize> {
    let called = |g: &Global| {
        let aliases = g.tags.iter().filter_map(|tag| tag.strip_prefix("alias:"));
        aliases.chain([g.name.as_str()]).any(|known| known.eq_ignore_ascii_case(name))
    };
    globals.iter().position(|g| g.is_settable() && called(g))
}

/// Whether a variable of this type is a tunable: a number, a switch or an enumeration.
pub(crate) fn settable(ty: &GlobalType) -> bool {
    matches!(ty, GlobalType::Bool | GlobalType::Int { .. } | GlobalType::Enum { .. })
}

/// The bytes of a value for a variable.
pub(crate) fn encode(global: &Global, value: &str) -> Result<Vec<u8>, SettingError> {
    let wrong = |problem: String| SettingError::Value {
        name: global.name.clone(),
        value: value.to_owned(),
        problem,
    };
    if !global.is_settable() {
        let problem = "it is a constant that the compiler has folded into the code; declare it `const volatile`";
        return Err(wrong(problem.to_owned()));
    }
    let size = global.size as usize;
    let number: i128 = match &global.ty {
        GlobalType::Bool => match switch(value) {
            Some(on) => i128::from(on),
            None => return Err(wrong("it is a switch: give `on` or `off`".to_owned())),
        },
        GlobalType::Int { bits, signed } => {
            let number = parse_number(global, value).map_err(&wrong)?;
            let (low, high) = range(*bits, *signed);
            if number < low || number > high {
                return Err(wrong(format!("out of range; it holds {low} to {high}")));
            }
            number
        }
        GlobalType::Enum { values, .. } => {
            match values.iter().find(|(name, _)| name.eq_ignore_ascii_case(value)) {
                Some((_, number)) => i128::from(*number),
                None => match value.parse::<i64>() {
                    Ok(number) if values.iter().any(|(_, v)| *v == number) => i128::from(number),
                    _ => {
                        let names: Vec<&str> =
                            values.iter().map(|(name, _)| name.as_str()).collect();
                        return Err(wrong(format!("it takes one of `{}`", names.join("`, `"))));
                    }
                },
            }
        }
        _ => return Err(wrong("it is no plain number and cannot be set by name".to_owned())),
    };
    if !(1..=16).contains(&size) {
        return Err(wrong(format!("its size of {size} bytes is not that of a number")));
    }
    Ok(number.to_le_bytes()[..size].to_vec())
}

fn range(bits: u32, signed: bool) -> (i128, i128) {
    let bits = bits.clamp(1, 64);
    if signed {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    }
}

fn switch(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// The unit of a variable of time, ns per count, by a tag `unit:ns` or by the end of its name.
fn unit_ns(global: &Global) -> Option<u64> {
    let tagged = global.tags.iter().find_map(|tag| tag.strip_prefix("unit:"));
    let unit = tagged.or_else(|| global.name.rsplit('_').next())?;
    match unit {
        "ns" => Some(1),
        "us" => Some(1_000),
        "ms" => Some(1_000_000),
        _ => None,
    }
}

fn parse_number(global: &Global, value: &str) -> Result<i128, String> {
    let (negative, digits) = match value.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, value),
    };
    let sign = |n: u64| if negative { -i128::from(n) } else { i128::from(n) };
    if let Some(hex) = digits.strip_prefix("0x") {
        return u64::from_str_radix(&hex.replace('_', ""), 16)
            .map(sign)
            .map_err(|_| "not a number".to_owned());
    }
    let split = digits.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(digits.len());
    let (digits, suffix) = digits.split_at(split);
    let Ok(number) = digits.replace('_', "").parse::<u64>() else {
        if let Some(on) = switch(value) {
            return Ok(i128::from(on));
        }
        return Err("not a number".to_owned());
    };
    if suffix.is_empty() {
        return Ok(sign(number));
    }
    let scale = match suffix {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(format!("unknown unit `{suffix}`; use ns, us, ms or s")),
    };
    let Some(unit) = unit_ns(global) else {
        return Err("its unit is not known to be a time: give the plain number".to_owned());
    };
    let total_ns = number.checked_mul(scale).ok_or("too large")?;
    if total_ns % unit != 0 {
        return Err(format!("it counts in steps of {unit} ns"));
    }
    Ok(sign(total_ns / unit))
}

/// The name nearest to a misspelt one, if it takes few edits; else all names in order.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let name = name.to_ascii_lowercase();
    let edits = |other: &str| strsim::levenshtein(&name, &other.to_ascii_lowercase());
    let mut ranked: Vec<(usize, &str)> = known.map(|other| (edits(other), other)).collect();
    ranked.sort_unstable();
    match ranked.first() {
        Some((edits, first)) if *edits <= (name.len() / 3).max(2) => vec![(*first).to_owned()],
        _ => {
            let mut all: Vec<String> =
                ranked.into_iter().map(|(_, other)| other.to_owned()).collect();
            all.sort_unstable();
            all
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(name: &str, bits: u32, signed: bool) -> Global {
        Global {
            name: name.to_owned(),
            map: 0,
            offset: 0,
            size: u64::from(bits / 8),
            ty: GlobalType::Int { bits, signed },
            read_only: true,
            volatile: true,
            tags: vec![],
        }
    }

    #[test]
    fn times_take_the_unit_of_the_name() {
        assert_eq!(
            encode(&int("latency_ns", 64, false), "4ms").unwrap(),
            4_000_000u64.to_le_bytes()
        );
        assert_eq!(encode(&int("slice_us", 32, false), "4ms").unwrap(), 4_000u32.to_le_bytes());
        assert!(
            encode(&int("slice_us", 32, false), "5ns")
                .unwrap_err()
                .to_string()
                .contains("steps of 1000 ns")
        );
        assert!(
            encode(&int("shift", 32, false), "4ms")
                .unwrap_err()
                .to_string()
                .contains("plain number")
        );
    }

    #[test]
    fn range_is_checked() {
        assert_eq!(encode(&int("x", 8, true), "-128").unwrap(), [0x80]);
        assert!(encode(&int("x", 8, true), "128").unwrap_err().to_string().contains("-128 to 127"));
        assert!(encode(&int("x", 64, false), "-1").is_err());
        assert_eq!(encode(&int("x", 64, false), "0xffff_ffff_ffff_ffff").unwrap(), [0xff; 8]);
    }

    #[test]
    fn an_earlier_name_and_the_case_of_letters_do() {
        let mut global = int("FAIR_SLEEPERS", 8, false);
        global.tags.push("alias:NEW_FAIR_SLEEPERS".to_owned());
        let globals = [global, int("latency_ns", 64, false)];
        for name in ["FAIR_SLEEPERS", "NEW_FAIR_SLEEPERS", "fair_sleepers", "new_fair_sleepers"] {
            assert_eq!(
                find("cfs", &globals, name).map(|at| globals[at].name.as_str()),
                Ok("FAIR_SLEEPERS"),
                "{name}"
            );
        }
        assert!(find("cfs", &globals, "OLD_FAIR_SLEEPERS").is_err());
    }

    #[test]
    fn a_misspelt_name_gets_the_nearest() {
        let globals = [int("wakeup_granularity_ns", 64, false), int("latency_ns", 64, false)];
        let error = find("cfs", &globals, "latencyns").unwrap_err().to_string();
        assert_eq!(
            error,
            "the scheduler `cfs` has no tunable `latencyns`; did you mean `latency_ns`?"
        );
        let error = find("cfs", &globals, "zzzzzzzz").unwrap_err().to_string();
        assert!(error.contains("`latency_ns`, `wakeup_granularity_ns`"), "{error}");
    }
}
