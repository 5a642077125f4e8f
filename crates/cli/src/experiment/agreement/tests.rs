//! Which cells agree, and which starts count.

use super::*;
use crate::experiment::Tally;
use crate::experiment::sweep::at_point;

const RULES: &str = r#"
    tolerances = [
        { metric = "cpu_share", label = "share", percent = 5, floor = 0.5 },
        { metric = "latency", label = "latency", percent = 15, samples = ["count", 20] },
    ]
    powers = [
        { metric = "cpu_share", group = "hog", knob = "nice", low = "weak", high = "strong" },
        { metric = "latency", group = "hog", knob = "costs", low = "weak", high = "strong" },
    ]
    gaps = [{ points = ["two"], metrics = ["latency"], why = "batches" }]
    sweeps = [{ name = "r", starts = ["0s", "1ms", "2ms"] }, { name = "s", starts = ["0s", "1ms"] }]
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
            cpus: 1,
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
fn absolute_times_are_compared_on_one_cpu_only() {
    let mut owned: Owned = toml::from_str(RULES).expect("rules");
    owned.tolerances[1].one_cpu = true;
    let agreement: Agreement =
        toml::from_str("title='t'\nreal='r'\nsimulated='s'").expect("an agreement");
    let figures = || figures(50.0, 2.0, 30.0);
    let all = BTreeMap::from([("r p".to_owned(), figures()), ("s p".to_owned(), figures())]);
    let labels = |point: &str, cpus| {
        let point: Point = toml::from_str(point).expect("a point");
        let rules = Rules { cpus, ..owned.rules() };
        let cells = rules.cells(&agreement, "s", &[point], &all);
        cells.into_iter().map(|cell| cell.label).collect::<Vec<_>>()
    };
    let (own, default) = ("name='p'\nworkload='w'\ncpus=2", "name='p'\nworkload='w'");
    assert_eq!(labels(default, 1), ["share", "latency"]);
    assert_eq!(labels(own, 1), ["share"]);
    assert_eq!(labels(default, 4), ["share"]);
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
fn starts_count_by_their_median_on_both_sides() {
    let at = |real: [f64; 3], ours: [f64; 2]| {
        let owned: Owned = toml::from_str(RULES).expect("rules");
        let point: Point = toml::from_str("name='one'\nworkload='w'").expect("a point");
        let agreement: Agreement =
            toml::from_str("title='t'\nreal='r'\nsimulated='s'").expect("an agreement");
        let all = BTreeMap::from([
            ("weak".to_owned(), figures(10.0, 1.0, 99.0)),
            ("strong".to_owned(), figures(90.0, 9.0, 99.0)),
            ("r one".to_owned(), figures(real[0], 2.0, 30.0)),
            ("r one, start 1ms".to_owned(), figures(real[1], 2.0, 30.0)),
            ("r one, start 2ms".to_owned(), figures(real[2], 2.0, 30.0)),
            ("s one".to_owned(), figures(ours[0], 2.0, 30.0)),
            ("s one, start 1ms".to_owned(), figures(ours[1], 2.0, 30.0)),
        ]);
        let cells = owned.rules().cells(&agreement, "s", std::slice::from_ref(&point), &all);
        let cell = &cells[0];
        (cell.verdict.clone(), cell.real, cell.real_range, cell.simulated)
    };
    use CellVerdict::{Agree, Disagree, WithinSpread};
    let apart = Some((40.0, 60.0));
    assert_eq!(at([50.0; 3], [48.0, 53.0]), (Agree, Some(50.0), None, Some(50.5)));
    assert_eq!(at([60.0, 40.0, 42.0], [41.0, 43.0]), (Agree, Some(42.0), apart, Some(42.0)));
    // The mean of the real starts is no measured figure: to meet it is no agreement, to lie among them is an answer.
    assert_eq!(at([60.0, 40.0, 42.0], [47.0, 47.0]), (WithinSpread, Some(42.0), apart, Some(47.0)));
    assert_eq!(at([60.0, 40.0, 42.0], [61.0, 61.0]).0, Disagree);
    // Real starts that agree with one another excuse nothing.
    assert_eq!(at([49.0, 51.0, 50.0], [53.0, 53.0]), (Disagree, Some(50.0), None, Some(53.0)));
}

#[test]
fn four_of_five_are_enough() {
    let tally = |agree, gap| Tally { agree, gap, ..Tally::default() };
    assert!(tally(4, 1).is_enough() && !tally(3, 1).is_enough() && !tally(0, 0).is_enough());
}

#[test]
fn a_cell_within_the_spread_is_measured_and_does_not_agree() {
    let tally = Tally { agree: 4, within_spread: 1, ..Tally::default() };
    assert!(tally.measured() == 5 && tally.is_enough());
    assert!(!Tally { agree: 3, within_spread: 1, ..Tally::default() }.is_enough());
}
