//! The costs of the simulated kernel's own work: parameters of the machine, never of a scheduler.
//!
//! A scheduler pays for the instructions that it executed ([`CostModel::policy_insn_ps`]) and for its calls into the
//! kernel ([`CostModel::call_ns`]); all other work has the costs of the [table], under any scheduler. Each value has a
//! source: measured, derived or assumed. None was chosen to meet a published result.

mod calls;
mod presets;
mod table;

use fairground_suggest::nearest;

use crate::settings::suggestion;
pub(crate) use calls::Price;
use presets::{PRESETS, PresetFile};
use table::COSTS;
pub use table::CostModel;

/// One parameter as it is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostParameter {
    /// The name, as [`CostModel::set`] takes it.
    pub name: &'static str,
    /// The value.
    pub value: u64,
    /// The unit of the value.
    pub unit: &'static str,
    /// Where the value comes from.
    pub source: String,
}

/// Description of a parameter, for documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostDescription {
    /// The name, as [`CostModel::set`] takes it.
    pub name: &'static str,
    /// Its meaning, as sentences.
    pub about: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// Its value in `modern`.
    pub default: u64,
    /// Where that value comes from.
    pub source: &'static str,
}

/// Why a cost cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CostError {
    /// No parameter has that name.
    #[error("the cost model has no parameter `{name}`{}", suggestion(.nearest, LISTING))]
    UnknownParameter {
        /// The requested name.
        name: String,
        /// The most similar names: one if it takes few edits, else up to three.
        nearest: Vec<String>,
    },
    /// No preset has that name.
    #[error("there is no cost model `{name}`; there are {}", all_presets())]
    UnknownPreset {
        /// The requested name.
        name: String,
    },
    /// The value is too large to be the cost of one step.
    #[error("{name}={value}: at most {MAX_COST} {unit} are possible (give a smaller number)")]
    TooLarge {
        /// The parameter.
        name: &'static str,
        /// The value.
        value: u64,
        /// Its unit.
        unit: &'static str,
    },
}

/// Time of an instruction in a guest whose clock counts them unless it is stated, ns.
pub(crate) const INSTRUCTION_NS: u64 = 8;
/// The costs in time that are no work of a processor, and so the same on a faster one.
const NOT_WORK: [&str; 1] = ["timer_slack_ns"];

/// The largest value of a parameter: a second in ns, a GB in bytes.
pub(crate) const MAX_COST: u64 = 1_000_000_000;

fn names() -> impl Iterator<Item = &'static str> {
    COSTS.iter().map(|cost| cost.name)
}

fn all_presets() -> String {
    CostModel::presets().map(|(name, _)| name).collect::<Vec<_>>().join(", ")
}

impl CostModel {
    /// A named set of costs: `modern` (the default), `zero`, `linux-2.6`, `linux-6.1`, `linux-7.2`, `linux-7.2-scx`.
    ///
    /// # Errors
    /// If no preset has that name.
    pub fn preset(name: &str) -> Result<CostModel, CostError> {
        match PRESETS.iter().find(|preset| preset.name == name) {
            Some(preset) => Ok(CostModel::from_preset(preset)),
            None => Err(CostError::UnknownPreset { name: name.to_owned() }),
        }
    }

    /// The names of the presets, each with its meaning; the default first.
    pub fn presets() -> impl Iterator<Item = (&'static str, &'static str)> {
        PRESETS.iter().map(|preset| (preset.name, preset.about))
    }

    /// Descriptions of all parameters, in the order in which they are printed.
    pub fn descriptions() -> impl Iterator<Item = CostDescription> {
        COSTS.iter().map(|cost| CostDescription {
            name: cost.name,
            about: cost.about.trim(),
            unit: cost.unit(),
            default: cost.default,
            source: cost.source,
        })
    }

    /// The preset that the model started from.
    pub fn preset_name(&self) -> &'static str {
        self.preset.name
    }

    fn from_preset(preset: &'static PresetFile) -> CostModel {
        CostModel::free(preset).with_preset_values()
    }

    fn with_preset_values(mut self) -> CostModel {
        for (cost, (value, _)) in COSTS.iter().zip(self.preset_values()) {
            *(cost.field)(&mut self) = value;
        }
        self
    }

    /// The values of the preset with their sources, in the order of [`COSTS`].
    fn preset_values(&self) -> impl Iterator<Item = (u64, String)> + use<> {
        let (preset, instruction_ns) = (self.preset.read(), self.instruction_ns);
        COSTS.iter().map(move |cost| {
            let (value, source) = match preset.costs.get(cost.name).or(preset.others.as_ref()) {
                Some(own) => (own.value, own.source.clone()),
                None => (cost.default, cost.source.to_owned()),
            };
            match preset.instruction_ns {
                Some(measured_ns)
                    if measured_ns != instruction_ns && cost.is_work() && value != 0 =>
                {
                    let scaled = (value * instruction_ns + measured_ns / 2) / measured_ns;
                    (scaled, format!("{source}; times {instruction_ns}/{measured_ns}"))
                }
                _ => (value, source),
            }
        })
    }

    /// Time of an instruction, ns, where the costs are those of a guest whose clock counts them; `None`: they are
    /// not.
    pub fn instruction_ns(&self) -> Option<u64> {
        self.preset.read().instruction_ns.map(|_| self.instruction_ns)
    }

    /// The preset on a guest whose processor takes so many ns for an instruction: every cost of a preset that was
    /// measured on such a guest changes in proportion, but for delays that are no work (`timer_slack_ns`). Costs that
    /// were [set](CostModel::set) before are lost.
    #[must_use]
    pub fn at_instruction_ns(self, ns: u64) -> CostModel {
        CostModel { instruction_ns: ns, ..self }.with_preset_values()
    }

    /// Sets a parameter by name, in the unit at the end of the name: at most 1,000,000,000.
    ///
    /// # Errors
    /// If no parameter has that name, or the value is too large.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), CostError> {
        let Some(cost) = COSTS.iter().find(|cost| cost.name == name) else {
            let nearest = nearest(name, names());
            return Err(CostError::UnknownParameter { name: name.to_owned(), nearest });
        };
        if value > MAX_COST {
            return Err(CostError::TooLarge { name: cost.name, value, unit: cost.unit() });
        }
        *(cost.field)(self) = value;
        Ok(())
    }

    /// These costs without those that recorded times contain ([`fairground_workload::Workload::recorded`]).
    pub(crate) fn without_recorded(&self) -> CostModel {
        CostModel {
            idle_saving_ns: 0,
            group_wakeup_ns: 0,
            block_ns: 0,
            group_block_ns: 0,
            wait_ns: 0,
            timer_slack_ns: 0,
            syscall_ns: 0,
            yield_ns: 0,
            mark_ns: 0,
            queue_ns: 0,
            way_out_ns: 0,
            copy_byte_ps: 0,
            pipe_page_ns: 0,
            pipe_lock_ns: 0,
            socket_ns: 0,
            fork_ns: 0,
            exit_ns: 0,
            ..self.clone()
        }
    }

    /// All parameters, each with its unit and its source. One that differs from its preset was set for this run.
    pub fn parameters(&self) -> Vec<CostParameter> {
        let mut model = self.clone();
        let rows = COSTS.iter().zip(self.preset_values());
        rows.map(|(cost, (preset_value, source))| {
            let value = *(cost.field)(&mut model);
            let source = match value == preset_value {
                true => source,
                false => format!("set for this run ({} has {preset_value})", self.preset.name),
            };
            CostParameter { name: cost.name, value, unit: cost.unit(), source }
        })
        .collect()
    }

    /// The parameters that differ from the preset, with their values, in the order in which they are printed.
    pub fn changes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let mut model = self.clone();
        COSTS.iter().zip(self.preset_values()).filter_map(move |(cost, (preset_value, _))| {
            let value = *(cost.field)(&mut model);
            (value != preset_value).then_some((cost.name, value))
        })
    }

    /// The time of `insns` instructions of the scheduler's program, ns. `carry_ps` holds the fraction of a nanosecond
    /// that is carried over, and is updated.
    #[inline]
    pub(crate) fn policy_ns(&self, insns: u64, carry_ps: &mut u64) -> u64 {
        let total_ps = u128::from(insns) * u128::from(self.policy_insn_ps) + u128::from(*carry_ps);
        if let Ok(ps) = u64::try_from(total_ps) {
            *carry_ps = ps % 1_000;
            return ps / 1_000;
        }
        *carry_ps = (total_ps % 1_000) as u64;
        u64::try_from(total_ps / 1_000).unwrap_or(u64::MAX)
    }
}

impl Default for CostModel {
    /// The preset `modern`.
    fn default() -> CostModel {
        CostModel::from_preset(&PRESETS[0])
    }
}

/// The page that lists the parameters.
const LISTING: &str = "docs/reference/costs.md";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_names_known_costs_and_the_source_of_each() {
        for preset in &PRESETS {
            let costs = preset.read().costs;
            for (name, value) in &costs {
                assert!(names().any(|known| known == name), "{}: {name}", preset.name);
                assert!(value.value <= MAX_COST, "{}: {name}", preset.name);
            }
            let model = CostModel::preset(preset.name).unwrap();
            assert_eq!(model.preset_name(), preset.name);
            assert!(!preset.about.is_empty());
            for row in model.parameters() {
                assert!(
                    !row.source.is_empty() && row.name.ends_with(&format!("_{}", row.unit)),
                    "{row:?}"
                );
            }
        }
        assert_eq!(CostModel::default(), CostModel::preset("modern").unwrap());
        assert!(CostModel::preset("zero").unwrap().parameters().iter().all(|row| row.value == 0));
        assert_eq!(CostModel::preset("linux-2.6").unwrap().timer_slack_ns, 0);
        assert_eq!(CostModel::preset("linux-6.1").unwrap().timer_slack_ns, 50_000);
    }

    #[test]
    fn a_faster_guest_takes_less_for_its_work_alone() {
        let at = |name, ns| CostModel::preset(name).unwrap().at_instruction_ns(ns);
        let (slow, fast) = (at("linux-7.2-scx", 8), at("linux-7.2-scx", 1));
        assert_eq!(slow, CostModel::preset("linux-7.2-scx").unwrap());
        assert_eq!((fast.context_switch_ns, slow.context_switch_ns), (1_875, 15_000));
        assert_eq!((fast.policy_insn_ps, slow.policy_insn_ps), (1_430, 11_440));
        assert_eq!(fast.timer_slack_ns, 50_000);
        assert_eq!(fast.changes().count(), 0);
        let tick = fast.parameters().into_iter().find(|row| row.name == "tick_ns").unwrap();
        assert!(tick.value == 4_188 && tick.source.ends_with("; times 1/8"), "{tick:?}");
        // Not measured by instructions.
        assert_eq!((fast.instruction_ns(), CostModel::default().instruction_ns()), (Some(1), None));
        assert_eq!(at("modern", 1).parameters(), CostModel::default().parameters());
    }

    #[test]
    fn there_are_few_costs() {
        assert!(COSTS.len() <= 33, "{}: which of them can be left out?", COSTS.len());
    }

    #[test]
    fn a_changed_figure_says_so() {
        let mut model = CostModel::preset("linux-2.6").unwrap();
        model.set("tick_ns", 7).unwrap();
        assert_eq!(model.tick_ns, 7);
        assert_eq!(model.changes().collect::<Vec<_>>(), [("tick_ns", 7)]);
        let row = model.parameters().into_iter().find(|row| row.name == "tick_ns").unwrap();
        assert_eq!(
            (row.value, row.unit, row.source.as_str()),
            (7, "ns", "set for this run (linux-2.6 has 4000)")
        );
    }

    #[test]
    fn wrong_names_and_values_are_refused_with_a_remedy() {
        let mut model = CostModel::default();
        let error = model.set("tick_us", 1).unwrap_err().to_string();
        assert!(error.contains("did you mean `tick_ns`?"), "{error}");
        assert!(
            model.set("tick_ns", MAX_COST + 1).unwrap_err().to_string().contains("1000000000 ns")
        );
        let error = CostModel::preset("moderm").unwrap_err().to_string();
        assert!(error.contains("there are modern, zero") && error.contains("linux-6.1"), "{error}");
    }

    #[test]
    fn instructions_cost_whole_nanoseconds_without_loss() {
        let model = CostModel::default();
        let mut carry = 0;
        let total: u64 = (0..1_000).map(|_| model.policy_ns(1, &mut carry)).sum();
        assert_eq!((total, carry), (333, 0));
        let mut slow = CostModel::preset("zero").unwrap();
        slow.set("policy_insn_ps", MAX_COST).unwrap();
        assert_eq!(slow.policy_ns(u64::MAX, &mut carry), u64::MAX);
    }
}
