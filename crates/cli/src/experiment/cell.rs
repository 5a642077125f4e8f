//! The cells of an agreement: what came of each, and what they come to.

/// One metric of one group at one point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgreementCell {
    pub(crate) point: String,
    pub(crate) group: String,
    /// The metric's label.
    pub(crate) label: String,
    /// The real kernel's figure, the median of its starts.
    pub(crate) real: Option<f64>,
    /// The smallest and the largest of its starts, where they do not agree with their own median by the cell's
    /// tolerance.
    pub(crate) real_range: Option<(f64, f64)>,
    /// The simulation's figure, the median of its starts.
    pub(crate) simulated: Option<f64>,
    pub(crate) verdict: CellVerdict,
}

/// The five answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CellVerdict {
    /// Within the tolerance.
    Agree,
    /// Not within it, but the real kernel's own starts lie further apart than that, and the simulation's figure is
    /// among them.
    WithinSpread,
    /// Not within it, unexplained.
    Disagree,
    /// Not within it; the number of the cause in the experiment's list.
    Gap(usize),
    /// One side has no figure, or too few samples, or the metric has no power: why.
    NotMeasured(&'static str),
}

/// Number of cells by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Cells within the tolerance.
    pub(crate) agree: usize,
    /// Cells outside it that lie among the real kernel's own starts.
    pub(crate) within_spread: usize,
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
    pub(crate) fn of(cells: &[AgreementCell]) -> Tally {
        let mut tally = Tally::default();
        for cell in cells {
            match cell.verdict {
                CellVerdict::Agree => tally.agree += 1,
                CellVerdict::WithinSpread => tally.within_spread += 1,
                CellVerdict::Disagree => tally.disagree += 1,
                CellVerdict::Gap(_) => tally.gap += 1,
                CellVerdict::NotMeasured(_) => tally.not_measured += 1,
            }
        }
        tally
    }

    /// Cells with a figure on both sides.
    pub(crate) fn measured(&self) -> usize {
        self.agree + self.within_spread + self.disagree + self.gap
    }

    pub(crate) fn is_enough(&self) -> bool {
        self.measured() > 0 && self.agree * 100 >= self.measured() * AGREE_PERCENT_MIN
    }
}
