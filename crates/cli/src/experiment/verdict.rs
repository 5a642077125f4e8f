//! Whether a claim holds.

use super::figures::Figures;
use super::file::Claim;

/// The four answers. "Not measured" is never a silent yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Agrees,
    Disagrees,
    /// It does not hold, and the experiment says why.
    KnownGap,
    /// One of the figures is missing.
    NotMeasured,
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::Disagrees => "disagrees",
            Verdict::KnownGap => "known gap",
            Verdict::NotMeasured => "not measured",
        }
    }
}

/// Judges a claim: `measured` are the figures of its run, `reference` those of its `of` column. Also gives what was
/// compared with the bounds.
pub(crate) fn judge(
    claim: &Claim,
    measured: &Figures,
    reference: Option<&Figures>,
) -> (Verdict, Option<f64>) {
    let own = measured.get(&claim.metric).map(|sample| sample.mean);
    let value = match &claim.of {
        None => own,
        Some(_) => {
            let base = reference.and_then(|figures| figures.get(&claim.metric));
            let base = base.map(|sample| sample.mean).filter(|mean| *mean != 0.0);
            own.zip(base).map(|(own, base)| own / base)
        }
    };
    let holds = value.map(|value| (claim.within.low..=claim.within.high).contains(&value));
    let verdict = match (holds, &claim.known_gap) {
        (None, _) => Verdict::NotMeasured,
        (Some(true), _) => Verdict::Agrees,
        (Some(false), Some(_)) => Verdict::KnownGap,
        (Some(false), None) => Verdict::Disagrees,
    };
    (verdict, value)
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
        assert_eq!(
            judge(&claim(0.0, 1.0), &Figures::default(), None),
            (Verdict::NotMeasured, None)
        );
    }

    #[test]
    fn bounds_are_inclusive_and_relative_ones_are_a_ratio() {
        let mut figures = Figures::default();
        figures.insert("m", &[1.0, 3.0]);
        assert_eq!(judge(&claim(2.0, 2.5), &figures, None), (Verdict::Agrees, Some(2.0)));
        assert_eq!(judge(&claim(2.1, 2.5), &figures, None), (Verdict::Disagrees, Some(2.0)));
        let mut base = Figures::default();
        base.insert("m", &[4.0]);
        let relative = Claim { of: Some("base".into()), ..claim(0.4, 0.6) };
        assert_eq!(judge(&relative, &figures, Some(&base)), (Verdict::Agrees, Some(0.5)));
        assert_eq!(judge(&relative, &figures, None), (Verdict::NotMeasured, None));
    }

    #[test]
    fn a_known_gap_is_shown_with_its_reason() {
        let mut figures = Figures::default();
        figures.insert("m", &[9.0]);
        let explained = Claim { known_gap: Some("because".into()), ..claim(0.0, 1.0) };
        assert_eq!(judge(&explained, &figures, None), (Verdict::KnownGap, Some(9.0)));
    }
}
