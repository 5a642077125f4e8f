//! Where tasks wait and for which others, as tables.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use fairground_analysis::contention::{self, Blocking, Site};
use pyo3::prelude::*;

use crate::error;
use crate::figures::{large_numbers, table, texts};
use crate::table::Table;

/// The waits of a trace.
#[pyclass(frozen)]
pub(crate) struct Contention {
    waits: contention::Contention,
}

impl Contention {
    pub(crate) fn of(trace: &fairground_trace::Trace, depth: usize) -> Self {
        Self { waits: contention::Contention::of(trace, depth) }
    }
}

#[pymethods]
impl Contention {
    /// Switches in the trace, and those with a call chain.
    #[getter]
    fn switches(&self) -> (u64, u64) {
        (self.waits.switches, self.waits.with_stack)
    }

    /// Waits for locks.
    #[getter]
    fn lock_waits(&self) -> u64 {
        self.waits.lock_waits
    }

    /// One row for each place, the longest waits first, plain sleep last.
    fn sites(&self) -> PyResult<Table> {
        sites(&self.waits.sites).map(Table::made).map_err(error)
    }

    /// One row for each pair of waiter and blocker at a place.
    fn blockers(&self) -> PyResult<Table> {
        blockers(&self.waits.sites).map(Table::made).map_err(error)
    }

    /// One row for each call chain that ended in a switch, the rarest first.
    fn points(&self) -> PyResult<Table> {
        let points = &self.waits.points;
        let columns = vec![
            large_numbers("switches", points.iter().map(|point| Some(point.count))),
            texts("scheduling_point", points.iter().map(|point| Some(point.chain.text()))),
        ];
        table(columns, HashMap::new()).map(Table::made).map_err(error)
    }
}

fn sites(sites: &[Site]) -> Result<RecordBatch, ArrowError> {
    let measured = |site: &Site| (site.waits.count() > 0).then_some(site.waits.sum_ns());
    let of_holder = |site: &Site, ns: u64| measured(site).map(|_| ns);
    let all = || sites.iter();
    let columns = vec![
        texts("site", all().map(|site| Some(&site.name))),
        texts("kind", all().map(|site| Some(site.kind.name()))),
        large_numbers("waits", all().map(|site| Some(site.waits.count()))),
        large_numbers("cut_off", all().map(|site| Some(site.waits.censored))),
        large_numbers("wait_ns", all().map(measured)),
        large_numbers("wait_ns_p50", all().map(|site| site.waits.p50_ns())),
        large_numbers("wait_ns_p99", all().map(|site| site.waits.p99_ns())),
        large_numbers(
            "holder_running_ns",
            all().map(|site| of_holder(site, site.holder.running_ns)),
        ),
        large_numbers(
            "holder_runnable_ns",
            all().map(|site| of_holder(site, site.holder.runnable_ns)),
        ),
        large_numbers(
            "holder_sleeping_ns",
            all().map(|site| of_holder(site, site.holder.sleeping_ns)),
        ),
    ];
    table(columns, HashMap::new())
}

fn blockers(sites: &[Site]) -> Result<RecordBatch, ArrowError> {
    let mut pairs: Vec<(&Site, &Blocking)> = Vec::new();
    sites.iter().for_each(|site| pairs.extend(site.blockers.iter().map(|pair| (site, pair))));
    pairs.sort_by_key(|(site, pair)| (site.kind.is_sleep(), std::cmp::Reverse(pair.wait_ns)));
    let columns = vec![
        texts("blocker", pairs.iter().map(|(_, pair)| Some(&pair.blocker))),
        texts("waiter", pairs.iter().map(|(_, pair)| Some(&pair.waiter))),
        texts("site", pairs.iter().map(|(site, _)| Some(&site.name))),
        large_numbers("waits", pairs.iter().map(|(_, pair)| Some(pair.count))),
        large_numbers("wait_ns", pairs.iter().map(|(_, pair)| Some(pair.wait_ns))),
    ];
    table(columns, HashMap::new())
}
