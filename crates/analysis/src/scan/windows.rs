//! One window after another in the same pass: what each was is told when it ends, and what is known goes on.

use super::{Scan, Scanned};
use crate::{CpuMetrics, Figures, MachineMetrics};

impl Scan {
    /// What a window that ends now leaves; the pass itself goes on undisturbed.
    pub(crate) fn ending_at(&self, end_ns: u64) -> Scanned {
        let mut ending = self.clone();
        ending.end_window(end_ns);
        ending.finish()
    }

    /// The window ends there, which was not known; nothing has happened since.
    pub(crate) fn end_window(&mut self, end_ns: u64) {
        self.window_ns.1 = end_ns.max(self.window_ns.0);
        self.waste.end_window(self.window_ns.1);
        let window_ns = self.window_ns.1 - self.window_ns.0;
        for task in &mut self.tasks {
            task.figures.window_ns = window_ns;
            task.pieces.iter_mut().for_each(|(_, piece)| piece.window_ns = window_ns);
        }
    }

    /// A window begins now: nothing is counted yet, and where everything is stays known.
    pub(crate) fn begin_window(&mut self, start_ns: u64) {
        self.advance(start_ns);
        for id in 1..self.tasks.len() {
            if self.tasks[id].state.is_queued() {
                self.settle(id);
            }
            let task = &mut self.tasks[id];
            let cpus = task.figures.cpus;
            task.figures = Figures { cpus, tasks: 1, ..Figures::default() };
            task.pieces.clear();
            task.moved_run_ns = 0;
            task.migrations = 0;
            self.services.begin(id);
        }
        for cpu in &mut self.cpus {
            cpu.metrics = CpuMetrics { cpu: cpu.metrics.cpu, ..CpuMetrics::default() };
        }
        self.window_ns = (start_ns, u64::MAX);
        self.waste.begin_window(start_ns);
        self.machine = MachineMetrics::default();
        self.callbacks.fill(0);
        self.cost = Default::default();
        self.migrations = 0;
        self.params.clear();
    }
}
