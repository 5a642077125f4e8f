//! Tunables: the global variables of a scheduler and their parts, set by name before or during a run; and what a
//! setting can change of the machine itself.

mod expect;
mod path;
mod read;
mod value;
mod words;

use std::borrow::Cow;

use fairground_bpf::{Global, GlobalType, Types};
use fairground_suggest::nearest;

use crate::Topology;
pub use expect::{Expectation, NamedValue, Unmet, VariablePart};
pub use path::root_of;
use path::{Places, exists, follow, split};
pub use read::Value;
pub use value::Patch;
use value::Target;
pub(crate) use value::switch;
pub use words::Words;

/// Maximum names in a message.
const LISTED_MAX: usize = 8;
/// The command that lists the variables of a scheduler.
const LISTING: &str = "`fairground sched show`";

/// One change of a tunable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The variable's name, or the path of a part of it: `x[1].y`, `x[0..3]` (without element 3), `x[*].y`; or
    /// `cgroup.PATH.weight`, a cgroup's weight; `task.NAME.cgroup`, the cgroup of a group of tasks, and likewise
    /// `cpus`, `nice` and `policy` during a run; or `cpu.N.online`.
    pub name: String,
    /// The value as text: a decimal or `0x` number, a length of time (`4ms`) for a variable whose unit is known,
    /// `on`/`off`/`true`/`false`/`1`/`0` for a switch, a name for an enumeration, a text for an array of `char`, or a
    /// word for the machine's topology (`cpus`, `cpu.llc`).
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
    #[error("the scheduler `{policy}` has no variable `{name}`{}", suggestion(.nearest, LISTING))]
    Unknown {
        /// The scheduler.
        policy: String,
        /// The requested name.
        name: String,
        /// The most similar names, the nearest first: one if it takes few edits, else up to three.
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
    /// It names a cgroup, a group of tasks or a part of a variable that does not exist, or has a value that is invalid
    /// for it.
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
    /// An invalid setting of the machine, or an invalid comparison.
    pub(crate) fn machine(name: &str, problem: String) -> SettingError {
        SettingError::Machine { name: name.to_owned(), problem }
    }
}

/// The end of a message about an unknown name: the names that are near, and what lists all.
pub(crate) fn suggestion(nearest: &[String], listing: &str) -> String {
    match nearest {
        [] => " (it has none at all)".to_owned(),
        [one] => format!("; did you mean `{one}`?"),
        [most @ .., last] => format!(
            "; the nearest are `{}` and `{last}`, and {listing} lists all",
            most.join("`, `")
        ),
    }
}

/// Names for a message, the first few of them.
pub(crate) fn listed<T: AsRef<str>>(names: &[T], max: usize, all: &str) -> String {
    let shown: Vec<&str> = names.iter().take(max).map(AsRef::as_ref).collect();
    let shown = format!("`{}`", shown.join("`, `"));
    match names.len().saturating_sub(max) {
        0 => shown,
        more => format!("{shown} and {more} more{all}"),
    }
}

/// Change of a variable by a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableChange {
    /// The variable: an index into those that it was found among.
    pub variable: usize,
    /// The setting, with the variable's own name: `name=value`.
    pub label: String,
    /// The bytes of the variable that change.
    pub patches: Vec<Patch>,
}

/// Meanings of names and values: the types of an object, and the words for a machine.
#[derive(Clone, Copy, Debug)]
pub struct Meanings<'t> {
    /// The object's types.
    pub types: &'t Types,
    /// The words that stand for numbers of the machine.
    pub words: Words<'t>,
}

impl<'t> Meanings<'t> {
    /// Of an object's values in a machine.
    pub fn new(types: &'t Types, topology: &'t Topology) -> Meanings<'t> {
        Meanings { types, words: Words::of(topology) }
    }

    /// The same at a place of a level (`cpu`, `llc`): words for lists of that level stand for its value there.
    pub fn at(self, level: &'t str, place: usize) -> Meanings<'t> {
        Meanings { words: self.words.at(level, place), ..self }
    }

    /// Change of the variables `globals` by a setting. A setting of the machine itself (`cgroup.…`, `task.…`)
    /// changes no variable.
    ///
    /// # Errors
    /// If the scheduler has no such variable or it has no such part, that part cannot hold the value, or the variable
    /// is frozen when the setting comes.
    pub fn change(
        &self,
        scheduler: &str,
        globals: &[Global],
        setting: &Setting,
    ) -> Result<VariableChange, SettingError> {
        let (found, path) = find(scheduler, globals, &setting.name)?;
        let variable = &globals[found];
        let wrong = |problem: String| SettingError::Value {
            name: format!("{}{path}", variable.name),
            value: setting.value.clone(),
            problem,
        };
        if !variable.is_settable() {
            let problem = "it is a constant that the compiler has folded into the code; declare it `const volatile`";
            return Err(wrong(problem.to_owned()));
        }
        let unit = variable.tags.iter().find_map(|tag| tag.strip_prefix("unit:"));
        let unit = unit.filter(|_| !path.contains('.'));
        let patches = self.of(
            Places::of(&variable.ty, variable.size),
            &variable.name,
            path,
            unit,
            &setting.value,
        );
        let patches = patches.map_err(wrong)?;
        if setting.at_ns.is_some() && variable.read_only {
            return Err(SettingError::Frozen { name: setting.name.clone() });
        }
        let label = format!("{}{path}={}", variable.name, setting.value);
        Ok(VariableChange { variable: found, label, patches })
    }

    /// Whether there is a variable that a setting's name begins with, with the part that it names.
    pub fn has_variable(&self, globals: &[Global], name: &str) -> bool {
        find("", globals, name)
            .is_ok_and(|(found, path)| exists(&globals[found].ty, path, self.types))
    }

    /// Whether something of a type has the part that a path names, as [`Meanings::patches_of`] takes it.
    pub fn has_part(&self, ty: &GlobalType, path: &str) -> bool {
        exists(ty, &dotted(path), self.types)
    }

    /// The bytes that a value writes to a part of something else that an object describes: an element of a map, a
    /// program's argument. Messages call it `name`; `path` is empty for the whole of it.
    ///
    /// # Errors
    /// The problem with the path or the value, in words.
    pub fn patches_of(
        &self,
        name: &str,
        (ty, size): (&GlobalType, u64),
        path: &str,
        value: &str,
    ) -> Result<Vec<Patch>, String> {
        self.of(Places::of(ty, size), name, &dotted(path), None, value)
    }

    /// Byte offset and size of a number or pointer of up to 8 bytes that is a part of something that an object
    /// describes, by its path.
    ///
    /// # Errors
    /// The problem with the path, in words.
    pub fn word_of(
        &self,
        name: &str,
        (ty, size): (&GlobalType, u64),
        path: &str,
    ) -> Result<(u64, u64), String> {
        let places = Places::of(ty, size);
        let places = follow(places, name, &dotted(path), self.types, &self.words)?;
        let is_word = is_number(&places.ty) || places.ty == GlobalType::Pointer;
        match (places.at.as_slice(), places.field, places.size) {
            ([(offset, _)], None, size @ 1..=8) if is_word => Ok((*offset, size)),
            _ => Err(format!(
                "`{}` of `{name}` is no number of up to 8 bytes",
                path.trim_start_matches('.')
            )),
        }
    }

    fn of(
        &self,
        places: Places,
        name: &str,
        path: &str,
        unit: Option<&str>,
        value: &str,
    ) -> Result<Vec<Patch>, String> {
        let places = follow(places, name, path, self.types, &self.words)?;
        self.written(&places, &format!("{name}{path}"), unit, value)
    }

    /// The bytes that a value writes to places that are called `name`.
    fn written(
        &self,
        places: &Places,
        name: &str,
        unit: Option<&str>,
        value: &str,
    ) -> Result<Vec<Patch>, String> {
        let unit_ns = unit_ns(unit, name);
        Target { name, unit_ns, types: self.types, words: self.words }.patches(places, value)
    }
}

/// A path that begins with a member may lack its first point.
fn dotted(path: &str) -> Cow<'_, str> {
    match path.is_empty() || path.starts_with(['.', '[']) {
        true => Cow::Borrowed(path),
        false => Cow::Owned(format!(".{path}")),
    }
}

/// Finds a tunable by the beginning of a setting's name: its index, and the path behind it.
fn find<'t>(
    policy: &str,
    globals: &[Global],
    name: &'t str,
) -> Result<(usize, &'t str), SettingError> {
    let exact = |name: &str| globals.iter().position(|g| g.name == name);
    let found = split(name, exact).or_else(|| split(name, |name| renamed(globals, name)));
    found.ok_or_else(|| SettingError::Unknown {
        policy: policy.to_owned(),
        name: name.to_owned(),
        nearest: nearest(
            root_of(name),
            globals
                .iter()
                .filter(|g| g.is_settable() && has_values(&g.ty))
                .map(|g| g.name.as_str()),
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

/// Whether a variable of this type has parts that can be set.
fn has_values(ty: &GlobalType) -> bool {
    !matches!(ty, GlobalType::Pointer | GlobalType::Other)
}

/// Whether a type is a number, a switch or an enumeration.
pub fn is_number(ty: &GlobalType) -> bool {
    matches!(ty, GlobalType::Bool | GlobalType::Int { .. } | GlobalType::Enum { .. })
}

/// The unit of a variable of time, ns per count, by a tag `unit:ns` or by the end of its name.
fn unit_ns(tagged: Option<&str>, name: &str) -> Option<u64> {
    let last = name.rsplit('.').next().unwrap_or(name);
    match tagged.or_else(|| root_of(last).rsplit('_').next())? {
        "ns" => Some(1),
        "us" => Some(1_000),
        "ms" => Some(1_000_000),
        _ => None,
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

    fn encode(global: &Global, value: &str) -> Result<Vec<u8>, SettingError> {
        let types = Types::default();
        let topology = Topology::flat(4);
        let setting = Setting::initial(&global.name, value);
        let globals = std::slice::from_ref(global);
        let change = Meanings::new(&types, &topology).change("cfs", globals, &setting)?;
        Ok(change.patches[0].bytes.clone())
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
                find("cfs", &globals, name).map(|(at, _)| globals[at].name.as_str()),
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
            "the scheduler `cfs` has no variable `latencyns`; did you mean `latency_ns`?"
        );
        let error = find("cfs", &globals, "zzzzzzzz").unwrap_err().to_string();
        assert!(error.contains("`latency_ns` and `wakeup_granularity_ns`"), "{error}");
    }
}
