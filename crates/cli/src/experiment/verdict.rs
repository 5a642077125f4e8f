//! Whether a claim holds.

use std::collections::BTreeMap;

use super::figures::Figures;
use super::file::Claim;
use super::given::Range;

/// Whether a claim holds, from best to worst. "Not measured" is never a silent yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClaimVerdict {
    /// Each value lies within the bounds.
    Agrees,
    /// It does not hold, and the experiment says why.
    KnownGap,
    /// One of the figures is missing.
    NotMeasured,
    /// A value lies outside of the bounds.
    Disagrees,
}

impl ClaimVerdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            ClaimVerdict::Agrees => "agrees",
            ClaimVerdict::Disagrees => "disagrees",
            ClaimVerdict::KnownGap => "known gap",
            ClaimVerdict::NotMeasured => "not measured",
        }
    }
}

/// Judges a claim by the figures of each run and column: the worst verdict over its runs. Also gives the least and the
/// greatest of what was compared with the bounds.
pub(crate) fn judge(
    claim: &Claim,
    figures: &BTreeMap<String, Figures>,
) -> (ClaimVerdict, Option<Range>) {
    let mean = |column: &String| Some(figures.get(column)?.get(&claim.metric)?.mean);
    let value = |(nth, run): (usize, &String)| {
        let own = mean(run)?;
        let Some(of) = claim.of.get(nth).or(claim.of.first()) else { return Some(own) };
        mean(of).filter(|base| *base != 0.0).map(|base| own / base)
    };
    let values: Vec<Option<f64>> = claim.runs.iter().enumerate().map(value).collect();
    let verdict = |value: &Option<f64>| match (value, &claim.known_gap) {
        (None, _) => ClaimVerdict::NotMeasured,
        (Some(value), _) if (claim.within.low..=claim.within.high).contains(value) => {
            ClaimVerdict::Agrees
        }
        (Some(_), Some(_)) => ClaimVerdict::KnownGap,
        (Some(_), None) => ClaimVerdict::Disagrees,
    };
    let worst = values.iter().map(verdict).max().unwrap_or(ClaimVerdict::NotMeasured);
    let known = || values.iter().flatten().copied();
    let range = known().next().map(|first| Range {
        low: known().fold(first, f64::min),
        high: known().fold(first, f64::max),
    });
    (worst, range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(low: f64, high: f64) -> Claim {
        Claim {
            say: String::new(),
            runs: vec!["r".into()],
            metric: "m".into(),
            within: Range { low, high },
            of: Vec::new(),
            known_gap: None,
        }
    }

    fn figures(columns: &[(&str, &[f64])]) -> BTreeMap<String, Figures> {
        let of = |(name, values): &(&str, &[f64])| {
            let mut figures = Figures::default();
            figures.insert("m", values);
            ((*name).to_owned(), figures)
        };
        columns.iter().map(of).collect()
    }

    fn one(value: f64) -> Option<Range> {
        Some(Range { low: value, high: value })
    }

    #[test]
    fn a_missing_figure_is_not_measured() {
        assert_eq!(judge(&claim(0.0, 1.0), &figures(&[])), (ClaimVerdict::NotMeasured, None));
    }

    #[test]
    fn bounds_are_inclusive_and_relative_ones_are_a_ratio() {
        let own = figures(&[("r", &[1.0, 3.0])]);
        assert_eq!(judge(&claim(2.0, 2.5), &own), (ClaimVerdict::Agrees, one(2.0)));
        assert_eq!(judge(&claim(2.1, 2.5), &own), (ClaimVerdict::Disagrees, one(2.0)));
        let both = figures(&[("r", &[1.0, 3.0]), ("base", &[4.0])]);
        let relative = Claim { of: vec!["base".into()], ..claim(0.4, 0.6) };
        assert_eq!(judge(&relative, &both), (ClaimVerdict::Agrees, one(0.5)));
        assert_eq!(judge(&relative, &own), (ClaimVerdict::NotMeasured, None));
    }

    #[test]
    fn a_claim_about_several_runs_is_as_good_as_the_worst() {
        let runs = vec!["r".into(), "s".into()];
        let all = figures(&[("r", &[2.0]), ("s", &[6.0]), ("a", &[4.0]), ("b", &[6.0])]);
        let both = Claim { runs: runs.clone(), ..claim(1.0, 6.0) };
        assert_eq!(judge(&both, &all), (ClaimVerdict::Agrees, Some(Range { low: 2.0, high: 6.0 })));
        let narrow = Claim { runs: runs.clone(), ..claim(1.0, 5.0) };
        assert_eq!(judge(&narrow, &all).0, ClaimVerdict::Disagrees);
        let each = Claim { runs, of: vec!["a".into(), "b".into()], ..claim(0.4, 1.1) };
        let range = Some(Range { low: 0.5, high: 1.0 });
        assert_eq!(judge(&each, &all), (ClaimVerdict::Agrees, range));
        let missing = Claim { runs: vec!["r".into(), "t".into()], ..claim(1.0, 6.0) };
        assert_eq!(judge(&missing, &all), (ClaimVerdict::NotMeasured, one(2.0)));
    }

    #[test]
    fn a_known_gap_is_shown_with_its_reason() {
        let explained = Claim { known_gap: Some("because".into()), ..claim(0.0, 1.0) };
        let judged = judge(&explained, &figures(&[("r", &[9.0])]));
        assert_eq!(judged, (ClaimVerdict::KnownGap, one(9.0)));
    }
}
