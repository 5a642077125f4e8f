//! Whether a claim holds.

use super::figures::Figures;
use super::file::Claim;

/// The four answers. "Not measured" is never a silent yes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It holds.
    Agrees {
        /// What was compared with the bounds.
        value: f64,
    },
    /// It does not hold.
    Disagrees {
        /// What was compared with the bounds.
        value: f64,
    },
    /// It does not hold, and the experiment says why.
    KnownGap {
        /// What was compared with the bounds.
        value: f64,
        /// The reason.
        why: String,
    },
    /// One of the figures is missing.
    NotMeasured,
}

/// Judges a claim: `measured` are the figures of its run, `reference` those of its `of` column.
pub(crate) fn judge(claim: &Claim, measured: &Figures, reference: Option<&Figures>) -> Verdict {
    let Some(sample) = measured.get(&claim.metric) else {
        return Verdict::NotMeasured;
    };
    let value = match (&claim.of, reference) {
        (None, _) => sample.mean,
        (Some(_), Some(figures)) => match figures.get(&claim.metric) {
            Some(base) if base.mean != 0.0 => sample.mean / base.mean,
            _ => return Verdict::NotMeasured,
        },
        (Some(_), None) => return Verdict::NotMeasured,
    };
    let holds = (claim.within.low..=claim.within.high).contains(&value);
    match (&claim.known_gap, holds) {
        (_, true) => Verdict::Agrees { value },
        (Some(why), false) => Verdict::KnownGap { value, why: why.clone() },
        (None, false) => Verdict::Disagrees { value },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::given::Range;

    fn claim(low: f64, high: f64) -> Claim {
        Claim {
            say: String::new(),
            run: "r".into(),
            metric: "m".into(),
            within: Range { low, high },
            of: None,
            known_gap: None,
        }
    }

    #[test]
    fn a_missing_figure_is_not_measured() {
        assert_eq!(judge(&claim(0.0, 1.0), &Figures::default(), None), Verdict::NotMeasured);
    }

    #[test]
    fn bounds_are_inclusive_and_relative_ones_are_a_ratio() {
        let mut figures = Figures::default();
        figures.insert("m", &[1.0, 3.0]);
        assert_eq!(judge(&claim(2.0, 2.5), &figures, None), Verdict::Agrees { value: 2.0 });
        assert_eq!(judge(&claim(2.1, 2.5), &figures, None), Verdict::Disagrees { value: 2.0 });
        let mut base = Figures::default();
        base.insert("m", &[4.0]);
        let relative = Claim { of: Some("base".into()), ..claim(0.4, 0.6) };
        assert_eq!(judge(&relative, &figures, Some(&base)), Verdict::Agrees { value: 0.5 });
        assert_eq!(judge(&relative, &figures, None), Verdict::NotMeasured);
    }

    #[test]
    fn a_known_gap_is_shown_with_its_reason() {
        let mut figures = Figures::default();
        figures.insert("m", &[9.0]);
        let explained = Claim { known_gap: Some("because".into()), ..claim(0.0, 1.0) };
        assert_eq!(
            judge(&explained, &figures, None),
            Verdict::KnownGap { value: 9.0, why: "because".into() }
        );
    }
}
