//! Documents about runs and recordings: tables of an analysis, verdicts, notes, how a run was made. Nothing is computed
//! here that an analysis does not know.
//!
//! The command line prints these documents, and the Python module gives them as tables, so that both have the same
//! columns.

mod comparison;
mod difference;
mod documents;
mod followed;
mod kernel;
mod nearness;
mod policy;
mod reports;
mod run;
mod selection;
mod tasks;
mod values;
mod variables;
mod verdict;

pub use comparison::comparison_table;
pub use difference::{describe_difference, headline};
pub use documents::{
    ChosenTasks, add_metrics, chosen_tasks, compared, difference, followed, made, sides,
};
pub use followed::describe_followed;
pub use kernel::accounting_table;
pub use nearness::add_nearness;
pub use policy::{path_name, policy_table};
pub use reports::{playback_table, reports_table, ring_instructions, ring_table};
pub use run::{
    describe_machine, describe_recording, describe_run, loader_notes, loss_notes, printed_notes,
};
pub use selection::Selection;
pub use tasks::{Per, figures_table, intervals_table, machine_table, tasks_table, tree_table};
pub use values::cell;
pub use variables::variables_table;
pub use verdict::add_verdict;
