//! One window after another in the same pass: the states go on, and each window is counted anew.

use super::{Accounting, fresh_figures};
use crate::states::Task;
use crate::{CpuMetrics, MachineMetrics, Samples};

impl Accounting {
    /// The window ends there, which was not known; nothing has happened since.
    pub(crate) fn end_window(&mut self, end_ns: u64) {
        let start_ns = self.window_ns.0;
        self.set_window((start_ns, end_ns.max(start_ns)));
        let window_ns = self.window_ns.1 - start_ns;
        for task in &mut self.tasks {
            task.figures.window_ns = window_ns;
            task.pieces.iter_mut().for_each(|(_, piece)| piece.window_ns = window_ns);
        }
    }

    /// A window begins at `start_ns`, up to which time has passed: nothing is counted yet.
    pub(crate) fn begin_window(&mut self, tasks: &[Task], start_ns: u64) {
        for (id, task) in tasks.iter().enumerate().skip(1) {
            if task.state.is_queued() {
                self.read_services(id, true);
            }
            let account = &mut self.tasks[id];
            account.since_ns = account.since_ns.max(start_ns);
            let cpus = account.figures.cpus;
            account.figures = fresh_figures(0, cpus);
            account.woken_waits = Samples::default();
            account.pieces.clear();
            account.moved_run_ns = 0;
            account.migrations = 0;
            self.services.begin(id);
        }
        for cpu in &mut self.cpus {
            cpu.since_ns = cpu.since_ns.max(start_ns);
            cpu.metrics = CpuMetrics { cpu: cpu.metrics.cpu, ..CpuMetrics::default() };
        }
        self.set_window((start_ns, u64::MAX));
        self.waste.begin_window(start_ns);
        self.machine = MachineMetrics::default();
        self.callbacks.fill(0);
        self.cost = Default::default();
        self.migrations = 0;
        self.params.clear();
    }

    fn set_window(&mut self, window_ns: (u64, u64)) {
        self.window_ns = window_ns;
        self.be_at(self.now_ns);
    }
}
