//! Experiments are files: a published result, the runs that repeat it, and published beside measured.

mod agreement;
mod figures;
mod file;
mod locks;
mod sweep;
pub(crate) mod top;
mod verdict;

pub(crate) use agreement::{AGREE_PERCENT_MIN, AgreementCell, CellVerdict, Rules, Tally};
pub(crate) use figures::{Figures, Sample};
pub(crate) use file::{Experiment, Run, Table, UserTimeEntry};
pub(crate) use sweep::{Matrix, Point, at_point};
pub(crate) use top::TopTable;
pub(crate) use verdict::{Verdict, judge};
