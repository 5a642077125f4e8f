//! Whether a simulation agrees with a real kernel: cell by cell, with tolerances that are written down before the run.
//!
//! A cell is one metric of one group of tasks at one point. It is measured when both sides have it, from enough samples, and
//! when the metric has shown that it moves at all (its power). A control — the simulation with wrong costs — must be rejected by
//! the same rule.

use std::collections::BTreeMap;

use fairground_kernel::stream::OTHERS;
use serde::Deserialize;

use super::figures::Figures;
use super::sweep::{Point, Sweep, at_point};

/// Two sweeps to hold against each other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Agreement {
    /// What is compared, in words.
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
    /// What a reader calls it.
    pub(crate) label: String,
    /// Percent of the real kernel's figure.
    pub(crate) percent: f64,
    /// A difference up to this is none, in the metric's own unit: what the real kernel's figure itself is known to.
    #[serde(default)]
    pub(crate) floor: f64,
    /// The metric that counts the samples, without its group, and how many there must be.
    pub(crate) samples: Option<(String, u64)>,
}

/// A pair of runs in which a knob is turned: the metric must move by more than its tolerance.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Power {
    /// The metric's key without its group.
    pub(crate) metric: String,
    /// The group that is looked at.
    pub(crate) group: String,
    /// The knob, in words.
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
    /// The cause.
    pub(crate) why: String,
}

/// One metric of one group at one point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgreementCell {
    /// The point's name.
    pub(crate) point: String,
    /// The group of tasks.
    pub(crate) group: String,
    /// What a reader calls the metric.
    pub(crate) label: String,
    /// The real kernel's figure.
    pub(crate) real: Option<f64>,
    /// The simulation's figure.
    pub(crate) simulated: Option<f64>,
    /// What came of it.
    pub(crate) verdict: CellVerdict,
}

/// The four answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CellVerdict {
    /// Within the tolerance.
    Agree,
    /// Not within it, and nobody knows why.
    Disagree,
    /// Not within it; the number of the cause in the experiment's list.
    Gap(usize),
    /// One side has no figure, or too few samples, or the metric has no power: why.
    NotMeasured(&'static str),
}

/// What all cells come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Cells within the tolerance.
    pub(crate) agree: usize,
    /// Cells outside it, unexplained.
    pub(crate) disagree: usize,
    /// Cells outside it, explained.
    pub(crate) gap: usize,
    /// Cells that could not be measured.
    pub(crate) not_measured: usize,
}

/// The share of the measured cells that must agree, percent.
pub(crate) const AGREE_PERCENT_MIN: usize = 80;

impl Tally {
    /// Counts cells.
    pub(crate) fn of(cells: &[AgreementCell]) -> Tally {
        let mut tally = Tally::default();
        for cell in cells {
            match cell.verdict {
                CellVerdict::Agree => tally.agree += 1,
                CellVerdict::Disagree => tally.disagree += 1,
                CellVerdict::Gap(_) => tally.gap += 1,
                CellVerdict::NotMeasured(_) => tally.not_measured += 1,
            }
        }
        tally
    }

    /// Cells with a figure on both sides.
    pub(crate) fn measured(&self) -> usize {
        self.agree + self.disagree + self.gap
    }

    /// Whether enough cells agree.
    pub(crate) fn is_enough(&self) -> bool {
        self.measured() > 0 && self.agree * 100 >= self.measured() * AGREE_PERCENT_MIN
    }
}

/// The rules of an experiment for its cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    /// One for each metric.
    pub(crate) tolerances: &'a [Tolerance],
    /// Proofs that metrics move.
    pub(crate) powers: &'a [Power],
    /// Known causes.
    pub(crate) gaps: &'a [Gap],
    /// Both sides' runs.
    pub(crate) sweeps: &'a [Sweep],
}

impl Tolerance {
    /// Whether a figure is as good as the real one.
    fn admits(&self, real: f64, simulated: f64) -> bool {
        let difference = (simulated - real).abs();
        difference <= self.floor || difference <= real.abs() * self.percent / 100.0
    }

    fn enough(&self, figures: &Figures, group: &str) -> bool {
        let Some((metric, least)) = &self.samples else { return true };
        figures.get(&format!("{group}.{metric}")).is_some_and(|count| count.mean >= *least as f64)
    }
}

impl Rules<'_> {
    /// Whether a metric was seen to move, on every ground on which it was tried, and was tried at all.
    pub(crate) fn has_power(&self, metric: &str, figures: &BTreeMap<String, Figures>) -> bool {
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

    /// Every cell of two sweeps. `simulated` is the name of the sweep on that side: the one to be judged, or its control.
    ///
    /// Where in a tick a real run starts is unknown, and may decide into which of several steady states it falls. So a
    /// simulation may have several starts, and a point is judged by the one of them with which most of its cells agree: one
    /// start for all of a point's cells.
    pub(crate) fn cells(
        &self,
        agreement: &Agreement,
        simulated: &str,
        points: &[Point],
        figures: &BTreeMap<String, Figures>,
    ) -> Vec<AgreementCell> {
        let powered: Vec<bool> =
            self.tolerances.iter().map(|t| self.has_power(&t.metric, figures)).collect();
        let mut cells = Vec::new();
        for point in points.iter().filter(|p| !agreement.without.contains_key(&p.name)) {
            let nothing = Figures::default();
            let real = figures.get(&at_point(&agreement.real, &point.name)).unwrap_or(&nothing);
            let mut best: Option<(usize, Vec<AgreementCell>)> = None;
            for ours in self.starts(simulated, point).iter().filter_map(|name| figures.get(name)) {
                let of_start = self.cells_at(agreement, point, real, ours, &powered);
                let agree = Tally::of(&of_start).agree;
                if best.as_ref().is_none_or(|(most, _)| agree > *most) {
                    best = Some((agree, of_start));
                }
            }
            cells.extend(best.into_iter().flat_map(|(_, of_start)| of_start));
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
mod tests {
    use super::*;

    const RULES: &str = r#"
        tolerances = [
            { metric = "cpu_share", label = "share", percent = 5, floor = 0.5 },
            { metric = "latency", label = "latency", percent = 15, samples = ["count", 20] },
        ]
        powers = [
            { metric = "cpu_share", group = "hog", knob = "nice", low = "weak", high = "strong" },
            { metric = "latency", group = "hog", knob = "costs", low = "weak", high = "strong" },
        ]
        gaps = [{ points = ["two"], metrics = ["latency"], why = "turns" }]
        sweeps = [{ name = "r" }, { name = "s", starts = ["0s", "1ms"] }]
    "#;

    #[derive(Deserialize)]
    struct Owned {
        tolerances: Vec<Tolerance>,
        powers: Vec<Power>,
        gaps: Vec<Gap>,
        sweeps: Vec<Sweep>,
    }

    impl Owned {
        fn rules(&self) -> Rules<'_> {
            Rules {
                tolerances: &self.tolerances,
                powers: &self.powers,
                gaps: &self.gaps,
                sweeps: &self.sweeps,
            }
        }
    }

    fn figures(share: f64, latency: f64, count: f64) -> Figures {
        let mut figures = Figures::default();
        figures.insert("hog.cpu_share", &[share]);
        figures.insert("hog.latency", &[latency]);
        figures.insert("hog.count", &[count]);
        figures
    }

    fn verdicts(real: [Figures; 2], ours: [Figures; 2], weak: Figures) -> Vec<CellVerdict> {
        let owned: Owned = toml::from_str(RULES).expect("rules");
        let rules = owned.rules();
        let point = |name: &str| toml::from_str(&format!("name='{name}'\nworkload='w'"));
        let points: [Point; 2] = [point("one").expect("a point"), point("two").expect("a point")];
        let agreement: Agreement =
            toml::from_str("title='t'\nreal='r'\nsimulated='s'").expect("an agreement");
        let mut all = BTreeMap::from([
            ("weak".to_owned(), weak),
            ("strong".to_owned(), figures(90.0, 9.0, 99.0)),
        ]);
        for (name, columns) in [("r", real), ("s", ours)] {
            for (point, column) in points.iter().zip(columns) {
                all.insert(at_point(name, &point.name), column);
            }
        }
        let cells = rules.cells(&agreement, "s", &points, &all);
        cells.into_iter().map(|cell| cell.verdict).collect()
    }

    #[test]
    fn a_cell_agrees_within_its_tolerance_and_a_known_cause_makes_a_gap() {
        let real = || figures(50.0, 2.0, 30.0);
        let ours = || figures(52.0, 3.0, 30.0);
        let weak = figures(10.0, 1.0, 99.0);
        use CellVerdict::{Agree, Disagree, Gap, NotMeasured};
        assert_eq!(
            verdicts([real(), real()], [ours(), ours()], weak.clone()),
            [Agree, Disagree, Agree, Gap(0)]
        );
        let few = figures(60.0, 2.0, 3.0);
        assert_eq!(
            verdicts([real(), real()], [few.clone(), few], weak)[..2],
            [Disagree, NotMeasured("too few samples")]
        );
    }

    #[test]
    fn a_metric_that_does_not_move_measures_nothing() {
        let same = figures(90.0, 9.0, 99.0);
        let cells = verdicts(
            [same.clone(), same.clone()],
            [same.clone(), same.clone()],
            figures(89.0, 1.0, 9.0),
        );
        assert_eq!(cells[0], CellVerdict::NotMeasured("no power"));
        assert_eq!(cells[1], CellVerdict::Agree);
    }

    #[test]
    fn one_start_of_the_simulation_has_to_explain_all_of_a_point() {
        let owned: Owned = toml::from_str(RULES).expect("rules");
        let rules = owned.rules();
        let point: Point = toml::from_str("name='one'\nworkload='w'").expect("a point");
        let agreement: Agreement =
            toml::from_str("title='t'\nreal='r'\nsimulated='s'").expect("an agreement");
        let judge = |first: Figures, second: Figures| {
            let all = BTreeMap::from([
                ("weak".to_owned(), figures(10.0, 1.0, 99.0)),
                ("strong".to_owned(), figures(90.0, 9.0, 99.0)),
                ("r one".to_owned(), figures(50.0, 2.0, 30.0)),
                ("s one".to_owned(), first),
                ("s one, start 1ms".to_owned(), second),
            ]);
            Tally::of(&rules.cells(&agreement, "s", std::slice::from_ref(&point), &all)).agree
        };
        assert_eq!(judge(figures(50.0, 9.0, 30.0), figures(50.0, 2.0, 30.0)), 2);
        // Each cell agrees with one of the starts, but no start has both.
        assert_eq!(judge(figures(50.0, 9.0, 30.0), figures(70.0, 2.0, 30.0)), 1);
    }

    #[test]
    fn four_of_five_are_enough() {
        let tally = |agree, gap| Tally { agree, gap, ..Tally::default() };
        assert!(tally(4, 1).is_enough() && !tally(3, 1).is_enough() && !tally(0, 0).is_enough());
    }
}
