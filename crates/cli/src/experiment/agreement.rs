//! Whether a simulation agrees with a real kernel: cell by cell, with tolerances that are written down before the run.
//!
//! A cell is one metric of one group of tasks at one point. It is measured when both sides have it, from enough
//! samples, and when the metric has shown that it moves at all (its power). A control — the simulation with wrong
//! costs — must be rejected by the same rule.

use std::collections::BTreeMap;

use fairground_realkernel::stream::OTHERS;
use serde::Deserialize;

use super::cell::{AgreementCell, CellVerdict};
use super::figures::{Figures, Sample};
use super::sweep::{Point, Sweep};

/// Two sweeps to hold against each other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Agreement {
    pub(crate) title: String,
    /// The sweep on the real kernel.
    pub(crate) real: String,
    /// The sweep in the simulated machine.
    pub(crate) simulated: String,
    /// The simulation with a fault, which must not agree.
    pub(crate) control: Option<String>,
    /// Points that are left out, with the reason.
    #[serde(default)]
    pub(crate) without: BTreeMap<String, String>,
}

/// How far the simulation may lie from the real kernel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tolerance {
    /// The metric's key without its group.
    pub(crate) metric: String,
    /// Its label.
    pub(crate) label: String,
    /// Percent of the real kernel's figure.
    pub(crate) percent: f64,
    /// A difference up to this is none, in the metric's own unit: what the real kernel's figure itself is known to.
    #[serde(default)]
    pub(crate) floor: f64,
    /// It is an absolute time: compared at points on one CPU, not on several.
    #[serde(default)]
    pub(crate) one_cpu: bool,
    /// The metric that counts the samples, without its group, and how many there must be.
    pub(crate) samples: Option<(String, u64)>,
}

/// A pair of runs in which a knob is turned: the metric must move by more than its tolerance.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Power {
    /// The metric's key without its group.
    pub(crate) metric: String,
    pub(crate) group: String,
    pub(crate) knob: String,
    /// The run with the knob at one end.
    pub(crate) low: String,
    /// The run with the knob at the other end.
    pub(crate) high: String,
}

/// A difference whose cause is known.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gap {
    /// The real sweeps; empty: any.
    #[serde(default)]
    real: Vec<String>,
    /// Points whose names begin so; empty: any.
    #[serde(default)]
    points: Vec<String>,
    /// The group; absent: any.
    group: Option<String>,
    /// The metrics' keys without the group; empty: any.
    #[serde(default)]
    metrics: Vec<String>,
    pub(crate) why: String,
}

/// The rules of an experiment for its cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) tolerances: &'a [Tolerance],
    pub(crate) powers: &'a [Power],
    pub(crate) gaps: &'a [Gap],
    pub(crate) sweeps: &'a [Sweep],
    /// CPUs at points without a number of their own.
    pub(crate) cpus: u32,
}

impl Tolerance {
    /// Whether a figure is as good as the real one.
    fn admits(&self, real: f64, simulated: f64) -> bool {
        let difference = (simulated - real).abs();
        difference <= self.floor || difference <= real.abs() * self.percent / 100.0
    }

    /// Whether starts lie further from their own median than a simulation may.
    fn is_split(&self, starts: &Sample) -> bool {
        !self.admits(starts.mean, starts.low) || !self.admits(starts.mean, starts.high)
    }

    fn enough(&self, figures: &Figures, group: &str) -> bool {
        let Some((metric, least)) = &self.samples else { return true };
        figures.get(&format!("{group}.{metric}")).is_some_and(|count| count.mean >= *least as f64)
    }
}

impl Rules<'_> {
    /// Whether a metric was seen to move, on every target on which it was tried, and was tried at all.
    fn has_power(&self, metric: &str, figures: &BTreeMap<String, Figures>) -> bool {
        let mut tried = self.powers.iter().filter(|p| p.metric == metric).peekable();
        tried.peek().is_some() && tried.all(|power| self.moves(power, figures))
    }

    /// The metric at both ends of a knob.
    pub(crate) fn ends(
        &self,
        power: &Power,
        figures: &BTreeMap<String, Figures>,
    ) -> Option<(f64, f64)> {
        let key = format!("{}.{}", power.group, power.metric);
        let read = |run: &str| Some(figures.get(run)?.get(&key)?.mean);
        Some((read(&power.low)?, read(&power.high)?))
    }

    /// Whether the metric moves by more than its tolerance when the knob is turned.
    pub(crate) fn moves(&self, power: &Power, figures: &BTreeMap<String, Figures>) -> bool {
        let Some(tolerance) = self.tolerances.iter().find(|t| t.metric == power.metric) else {
            return false;
        };
        self.ends(power, figures).is_some_and(|(low, high)| !tolerance.admits(low, high))
    }

    /// Every cell of two sweeps. `simulated` is the name of the sweep on that side: the one to be judged, or its
    /// control.
    ///
    /// Where in a tick a run starts may decide into which of several steady states it falls. So both sides may have
    /// several starts, and the median of one side's starts is compared with the median of the other's.
    pub(crate) fn cells(
        &self,
        agreement: &Agreement,
        simulated: &str,
        points: &[Point],
        figures: &BTreeMap<String, Figures>,
    ) -> Vec<AgreementCell> {
        let has_power = |t: &Tolerance| self.has_power(&t.metric, figures);
        let powered: Vec<bool> = self.tolerances.iter().map(has_power).collect();
        let of_starts = |sweep: &str, point: &Point| {
            let names = self.starts(sweep, point);
            Figures::of_starts(names.iter().filter_map(|name| figures.get(name)))
        };
        let mut cells = Vec::new();
        for point in points.iter().filter(|p| !agreement.without.contains_key(&p.name)) {
            let (real, ours) = (of_starts(&agreement.real, point), of_starts(simulated, point));
            cells.extend(self.cells_at(agreement, point, &real, &ours, &powered));
        }
        cells
    }

    /// The names of a sweep's runs at a point.
    fn starts(&self, sweep: &str, point: &Point) -> Vec<String> {
        let sweep = self.sweeps.iter().find(|s| s.name == sweep);
        sweep.map_or_else(Vec::new, |sweep| sweep.names_at(&point.name))
    }

    fn cells_at(
        &self,
        agreement: &Agreement,
        point: &Point,
        real: &Figures,
        ours: &Figures,
        powered: &[bool],
    ) -> Vec<AgreementCell> {
        let mut cells = Vec::new();
        // What else there is on the machine, a kernel's own threads, is no part of the workload.
        for group in ours.groups().filter(|group| *group != OTHERS) {
            for (tolerance, powered) in self.tolerances.iter().zip(powered) {
                if tolerance.one_cpu && point.cpus.unwrap_or(self.cpus) > 1 {
                    continue;
                }
                let cell = Cell { agreement, point, group, tolerance, powered: *powered };
                cells.extend(self.cell(&cell, real, ours));
            }
        }
        cells
    }

    /// One cell; `None` where the metric means nothing to the group: neither side has it.
    fn cell(&self, cell: &Cell<'_>, real: &Figures, ours: &Figures) -> Option<AgreementCell> {
        let Cell { point, group, tolerance, .. } = *cell;
        let key = format!("{group}.{}", tolerance.metric);
        let (real_value, our_value) = (real.get(&key), ours.get(&key));
        if our_value.is_none() && real_value.is_none() {
            return None;
        }
        let verdict = match (real_value, our_value) {
            (Some(_), Some(_)) if !cell.powered => CellVerdict::NotMeasured("no power"),
            (Some(real_value), Some(our_value)) => {
                if !tolerance.enough(real, group) || !tolerance.enough(ours, group) {
                    CellVerdict::NotMeasured("too few samples")
                } else if tolerance.admits(real_value.mean, our_value.mean) {
                    CellVerdict::Agree
                } else if tolerance.is_split(real_value) && real_value.spans(our_value.mean) {
                    CellVerdict::WithinSpread
                } else {
                    self.gap(cell).map_or(CellVerdict::Disagree, CellVerdict::Gap)
                }
            }
            (None, _) => CellVerdict::NotMeasured("not on the real kernel"),
            (_, None) => CellVerdict::NotMeasured("not in the simulation"),
        };
        Some(AgreementCell {
            point: point.name.clone(),
            group: group.to_owned(),
            label: tolerance.label.clone(),
            real: real_value.map(|sample| sample.mean),
            real_range: real_value
                .filter(|sample| tolerance.is_split(sample))
                .map(|sample| (sample.low, sample.high)),
            simulated: our_value.map(|sample| sample.mean),
            verdict,
        })
    }

    fn gap(&self, cell: &Cell<'_>) -> Option<usize> {
        let name = &cell.point.name;
        self.gaps.iter().position(|gap| {
            (gap.real.is_empty() || gap.real.contains(&cell.agreement.real))
                && (gap.points.is_empty() || gap.points.iter().any(|point| name.starts_with(point)))
                && gap.group.as_ref().is_none_or(|group| group == cell.group)
                && (gap.metrics.is_empty() || gap.metrics.contains(&cell.tolerance.metric))
        })
    }
}

/// Where a cell stands.
#[derive(Clone, Copy)]
struct Cell<'a> {
    agreement: &'a Agreement,
    point: &'a Point,
    group: &'a str,
    tolerance: &'a Tolerance,
    powered: bool,
}

#[cfg(test)]
mod tests;
