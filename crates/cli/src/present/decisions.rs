//! Decisions that followed recordings agree in, by comparison and number of CPUs.

use std::collections::BTreeMap;

use fairground_report::{Column, Table};
use fairground_session::{Agreement, Decision};

use super::followed::percent;

/// Sums of decisions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions {
    /// By comparison, in the order in which they came, and CPUs.
    comparisons: Vec<(String, BTreeMap<u32, Kinds>)>,
}

type Kinds = Vec<(Decision, Agreement)>;

impl Decisions {
    pub(crate) fn is_empty(&self) -> bool {
        self.comparisons.is_empty()
    }

    /// Adds those of a recording.
    pub(crate) fn add(&mut self, comparison: &str, cpus: u32, followed: &Kinds) {
        if self.comparisons.iter().all(|(known, _)| known != comparison) {
            self.comparisons.push((comparison.to_owned(), BTreeMap::new()));
        }
        let of = self.comparisons.iter_mut().find(|(known, _)| known == comparison);
        let Some((_, by_cpus)) = of else { return };
        let none = || Decision::ALL.map(|kind| (kind, Agreement::default())).to_vec();
        let sums = by_cpus.entry(cpus).or_insert_with(none);
        for (kind, agreement) in followed {
            if let Some((_, sum)) = sums.iter_mut().find(|(known, _)| known == kind) {
                sum.same += agreement.same;
                sum.ties += agreement.ties;
                sum.different += agreement.different;
            }
        }
    }

    /// A row for each comparison, number of CPUs and kind that was compared.
    pub(crate) fn table(&self) -> Table {
        let rows = self.comparisons.iter().flat_map(|(comparison, by_cpus)| {
            by_cpus.iter().flat_map(move |(cpus, kinds)| {
                kinds
                    .iter()
                    .filter(|(_, agreement)| agreement.total() > 0)
                    .map(move |(kind, agreement)| (comparison, *cpus, *kind, agreement))
            })
        });
        let mut table = Table::of("decisions", "Decisions of followed recordings", rows)
            .text("comparison", |(comparison, ..)| comparison.as_str())
            .text("CPUs", |(_, cpus, ..)| cpus.to_string())
            .text("decision", |(_, _, kind, _)| kind.name())
            .count("compared", |(.., agreement)| agreement.total())
            .count("same", |(.., agreement)| agreement.same)
            .count("ties", |(.., agreement)| agreement.ties)
            .count("different", |(.., agreement)| agreement.different)
            .column(Column::percent("same_of_compared"), |(.., agreement)| percent(agreement))
            .table();
        table.note(
            "A further run of each workload on the real kernel, with calls, charges and ticks: the \
             simulated scheduler follows it (`fairground follow`).",
        );
        table
    }
}
