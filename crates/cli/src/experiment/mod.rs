//! Experiments are files: a published result, the runs that repeat it, and published beside measured.

mod agreement;
mod cell;
mod entry;
mod figures;
mod file;
mod given;
mod locks;
mod rows;
mod sweep;
mod top;
mod verdict;
mod words;

pub(crate) use agreement::Rules;
pub(crate) use cell::{AGREE_PERCENT_MIN, AgreementCell, CellVerdict, Tally};
pub(crate) use entry::UserTimeEntry;
pub(crate) use figures::{Figures, Sample};
pub(crate) use file::{Claim, EXPERIMENT_FORMAT, Experiment, Run};
pub(crate) use given::Range;
pub(crate) use rows::FigureRow;
pub(crate) use sweep::Matrix;
pub(crate) use top::{TOP_COLUMNS, TopTable, top_of};
pub(crate) use verdict::{ClaimVerdict, judge};
