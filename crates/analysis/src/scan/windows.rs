//! One window after another in the same pass: what each was is told when it ends, and what is known goes on.

use super::{Scan, Scanned};
use crate::{CpuMetrics, Figures, MachineMetrics, Samples};

impl Scan {
    /// What a window that ends now leaves; the pass itself goes on undisturbed.
    pub(crate) fn ending_at(&self, end_ns: u64) -> Scanned {
        let mut ending = self.clone();
        ending.end_window(end_ns);
        ending.finish()
    }

    /// The window ends there, which was not known; nothing has happened since.
    pub(crate) fn end_window(&mut self, end_ns: u64) {
        let start_ns = self.ledger.window_ns.0;
        self.ledger.set_window((start_ns, end_ns.max(start_ns)));
        let window_ns = self.ledger.window_ns.1 - start_ns;
        for task in &mut self.tasks {
            task.figures.window_ns = window_ns;
            task.pieces.iter_mut().for_each(|(_, piece)| piece.window_ns = window_ns);
        }
    }

    /// A window begins now: nothing is counted yet, and where everything is stays known.
    pub(crate) fn begin_window(&mut self, start_ns: u64) {
        self.ledger.advance(start_ns);
        for id in 1..self.tasks.len() {
            let task = &mut self.tasks[id];
            if task.state.is_queued() {
                self.ledger.settle(task, true);
            }
            task.since_ns = task.since_ns.max(start_ns);
            let cpus = task.figures.cpus;
            task.figures = Figures { cpus, tasks: 1, ..Figures::default() };
            task.woken_waits = Samples::default();
            task.pieces.clear();
            task.moved_run_ns = 0;
            task.migrations = 0;
            self.ledger.services.begin(id);
        }
        for cpu in &mut self.cpus {
            cpu.since_ns = cpu.since_ns.max(start_ns);
            cpu.metrics = CpuMetrics { cpu: cpu.metrics.cpu, ..CpuMetrics::default() };
        }
        self.ledger.set_window((start_ns, u64::MAX));
        self.ledger.waste.begin_window(start_ns);
        self.machine = MachineMetrics::default();
        self.callbacks.fill(0);
        self.cost = Default::default();
        self.migrations = 0;
        self.params.clear();
    }
}
