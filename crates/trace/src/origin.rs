//! Where a recording comes from: the machine and the scheduler that made it.
//!
//! Formats that keep it have it as lines `KEY VALUE`, one fact a line:
//!
//! ```text
//! target sim
//! scheduler eevdf@6.18
//! setting base_slice_ns=3000000
//! kernel 6.18.44
//! hz 250
//! feature NO_HRTICK
//! tunable base_slice_ns=3000000
//! timers hrtimer
//! costs modern
//! cost syscall_ns=0
//! topology 1x2x1
//! command_pid 4711
//! ```

/// The longest value, bytes.
const VALUE_BYTES_MAX: usize = 4096;
/// Settings, and changed costs, that a recording may have.
const ENTRIES_MAX: usize = 1 << 12;
/// The highest number of ticks a second that the simulated machine has.
const HZ_MAX: u32 = 10_000;

/// The kind of machine that made a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginTarget {
    /// The simulated machine.
    Simulated,
    /// A real kernel, on a virtual machine or on hardware.
    Kernel,
}

impl OriginTarget {
    /// Both.
    const ALL: [Self; 2] = [Self::Simulated, Self::Kernel];

    fn word(self) -> &'static str {
        match self {
            Self::Simulated => "sim",
            Self::Kernel => "kernel",
        }
    }
}

/// The machine and the scheduler that made a recording, as far as it says so: [`crate::Trace::origin`].
///
/// A recording of this project says all that applies. Foreign ones have at most the kernel's release: `trace.dat`
/// (option `UNAME`), `perf.data` (`HEADER_OSRELEASE`) and the text of `perf script --header`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The machine that ran it; `None` where the recording does not say.
    pub target: Option<OriginTarget>,
    /// The scheduler in charge with its parameter set, as `--sched` takes it: `eevdf@6.18`, `./mine.bpf.o`, `kernel`
    /// for a real kernel's own.
    pub scheduler: Option<String>,
    /// Settings before the run beyond the parameter set, as `--set` takes them: names and values, in order.
    pub settings: Vec<(String, String)>,
    /// The kernel's release (`uname -r`).
    pub kernel: Option<String>,
    /// Ticks a second, 1…10,000.
    pub hz: Option<u32>,
    /// The features of a real kernel's own scheduler, the words of `/sys/kernel/debug/sched/features`.
    pub features: Vec<String>,
    /// Its tunables with their values, the files beside it.
    pub tunables: Vec<(String, String)>,
    /// The timers that end a sleep in the simulated machine, as `--timers` takes it.
    pub timers: Option<String>,
    /// The preset of the simulated machine's costs, as `--costs` takes it.
    pub costs: Option<String>,
    /// The costs that differ from the preset, as `--cost` takes them.
    pub cost: Vec<(String, u64)>,
    /// The topology, as `--topology` takes it; of a topology file, its description.
    pub topology: Option<String>,
    /// The pid of the command that was recorded: with all that it started, the load of interest.
    pub command_pid: Option<u32>,
}

/// A line that cannot be taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OriginError {
    /// The key is not known.
    UnknownKey,
    /// The value is impossible.
    BadValue,
}

impl Origin {
    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Of the simulated machine.
    pub fn is_simulated(&self) -> bool {
        self.target == Some(OriginTarget::Simulated)
    }

    /// Keys and values, in the order of the fields. What [`Origin::take`] would refuse is left out.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let mut add = |key, value: String| {
            if is_sound(&value) {
                lines.push((key, value));
            }
        };
        let mut known = |key, value: Option<String>| value.into_iter().for_each(|v| add(key, v));
        known("target", self.target.map(|target| target.word().to_owned()));
        known("scheduler", self.scheduler.clone());
        for (name, value) in self.settings.iter().take(ENTRIES_MAX) {
            known("setting", is_name(name).then(|| format!("{name}={value}")));
        }
        known("kernel", self.kernel.clone());
        known("hz", self.hz.filter(is_hz).map(|hz| hz.to_string()));
        for feature in self.features.iter().take(ENTRIES_MAX) {
            known("feature", Some(feature.clone()));
        }
        for (name, value) in self.tunables.iter().take(ENTRIES_MAX) {
            known("tunable", is_name(name).then(|| format!("{name}={value}")));
        }
        known("timers", self.timers.clone());
        known("costs", self.costs.clone());
        for (name, value) in self.cost.iter().take(ENTRIES_MAX) {
            known("cost", is_name(name).then(|| format!("{name}={value}")));
        }
        known("topology", self.topology.clone());
        known("command_pid", self.command_pid.map(|pid| pid.to_string()));
        lines
    }

    /// Takes over a line. A later value replaces an earlier one; settings and costs are added.
    pub(crate) fn take(&mut self, key: &str, value: &str) -> Result<(), OriginError> {
        let place = match key {
            "scheduler" => &mut self.scheduler,
            "kernel" => &mut self.kernel,
            "timers" => &mut self.timers,
            "costs" => &mut self.costs,
            "topology" => &mut self.topology,
            _ => return self.take_other(key, value),
        };
        if !is_sound(value) {
            return Err(OriginError::BadValue);
        }
        *place = Some(value.to_owned());
        Ok(())
    }

    /// Takes over a line whose value is more than a text.
    fn take_other(&mut self, key: &str, value: &str) -> Result<(), OriginError> {
        let taken = match key {
            "target" => {
                let found = OriginTarget::ALL.into_iter().find(|target| target.word() == value);
                self.target = found.or(self.target);
                found.is_some()
            }
            "hz" => {
                let hz = value.parse().ok().filter(is_hz);
                self.hz = hz.or(self.hz);
                hz.is_some()
            }
            "command_pid" => {
                let pid = value.parse().ok();
                self.command_pid = pid.or(self.command_pid);
                pid.is_some()
            }
            "setting" => {
                let entry = assignment(value).filter(|_| self.settings.len() < ENTRIES_MAX);
                let is_sound = entry.is_some();
                self.settings.extend(entry.map(|(name, value)| (name, value.to_owned())));
                is_sound
            }
            "feature" => {
                let is_sound = is_sound(value) && self.features.len() < ENTRIES_MAX;
                self.features.extend(is_sound.then(|| value.to_owned()));
                is_sound
            }
            "tunable" => {
                let entry = assignment(value).filter(|_| self.tunables.len() < ENTRIES_MAX);
                let is_sound = entry.is_some();
                self.tunables.extend(entry.map(|(name, value)| (name, value.to_owned())));
                is_sound
            }
            "cost" => {
                let entry = assignment(value).filter(|_| self.cost.len() < ENTRIES_MAX);
                let entry = entry.and_then(|(name, value)| Some((name, value.parse().ok()?)));
                let is_sound = entry.is_some();
                self.cost.extend(entry);
                is_sound
            }
            _ => return Err(OriginError::UnknownKey),
        };
        if taken { Ok(()) } else { Err(OriginError::BadValue) }
    }
}

/// A value that stays on its line and is shown to people.
fn is_sound(value: &str) -> bool {
    !value.trim().is_empty() && value.len() <= VALUE_BYTES_MAX && !value.contains(char::is_control)
}

fn is_name(name: &str) -> bool {
    is_sound(name) && !name.contains('=')
}

fn is_hz(hz: &u32) -> bool {
    (1..=HZ_MAX).contains(hz)
}

/// `name=value`.
fn assignment(text: &str) -> Option<(String, &str)> {
    let (name, value) = text.split_once('=').filter(|(name, _)| is_name(name))?;
    is_sound(text).then(|| (name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any key and value: nothing that is taken over is lost when it is written, and nothing has a control
        /// character.
        #[test]
        fn what_is_taken_comes_back(lines in prop::collection::vec(
            ("(target|scheduler|setting|kernel|hz|feature|tunable|timers|costs|cost|topology|command_pid|else)",
             prop_oneof!["[a-z_]{1,3}=[0-9]{1,9}", "(sim|kernel|[0-9]{1,6})", "\\PC{0,9}", any::<String>()]),
            0..20,
        )) {
            let mut origin = Origin::default();
            for (key, value) in &lines {
                let _ = origin.take(key, value);
            }
            let mut back = Origin::default();
            for (key, value) in origin.lines() {
                prop_assert!(!value.contains(char::is_control));
                prop_assert_eq!(back.take(key, &value), Ok(()));
            }
            prop_assert_eq!(back, origin);
        }
    }

    #[test]
    fn what_is_impossible_is_refused() {
        let mut origin = Origin::default();
        for (key, value) in [
            ("hz", "0"),
            ("hz", "10001"),
            ("hz", "fast"),
            ("command_pid", "-1"),
            ("target", "moon"),
            ("setting", "alone"),
            ("setting", "=5"),
            ("cost", "tick_ns=much"),
            ("kernel", " "),
            ("kernel", "6.18\u{1b}[2J"),
            ("scheduler", &"s".repeat(VALUE_BYTES_MAX + 1)),
        ] {
            assert_eq!(origin.take(key, value), Err(OriginError::BadValue), "{key} {value:?}");
        }
        assert_eq!(origin.take("colour", "red"), Err(OriginError::UnknownKey));
        assert!(origin.is_unknown());
        for number in 0..2 * ENTRIES_MAX {
            let _ = origin.take("setting", &format!("s{number}=1"));
        }
        assert_eq!(origin.settings.len(), ENTRIES_MAX);
    }
}
