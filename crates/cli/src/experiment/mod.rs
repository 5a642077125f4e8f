//! Experiments are files: a published result, the runs that repeat it, and published beside measured.

mod agreement;
mod cell;
mod figures;
mod file;
mod given;
mod locks;
mod sweep;
pub(crate) mod top;
mod verdict;
mod words;

pub(crate) use agreement::Rules;
pub(crate) use cell::{AGREE_PERCENT_MIN, AgreementCell, CellVerdict, Tally};
pub(crate) use figures::{Figures, Sample};
pub(crate) use file::{EXPERIMENT_FORMAT, Experiment, Run, Table, UserTimeEntry};
pub(crate) use sweep::{Matrix, Point, at_point};
pub(crate) use top::TopTable;
pub(crate) use verdict::{Verdict, judge};
