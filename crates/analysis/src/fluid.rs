//! The fluid schedule that a run is compared with: weighted generalised processor sharing (GPS).
//!
//! At each instant the tasks that are runnable in the trace share the machine in proportion to their weights, and none gets
//! more than one whole CPU. With m CPUs, n runnable tasks and weights w the rate of task i is min(1, λ·w_i), with the λ at
//! which the rates sum to min(m, n). Sorted by falling weight this is water-filling: as long as a task's share of what is
//! left would be a CPU or more, it gets one and leaves; the rest share by weight (Parekh & Gallager 1993 for GPS; the cap as
//! in Chandra et al., "Surplus Fair Scheduling", OSDI 2000, section 2.1).
//!
//! Tasks of one weight have one rate, so the integral of the rate is kept per weight, and a task's service is a difference
//! of two readings: an event costs O(distinct weights), never O(tasks).
//!
//! Fixed point: rates and integrals carry [`FRACTION_BITS`] fraction bits. A rate is rounded down by less than 2^-40, which
//! loses a task less than 1 ns in 10^12 ns.

/// Fraction bits of rates and of services.
pub(crate) const FRACTION_BITS: u32 = 40;

/// GPS on the whole machine with at most one CPU per task.
#[derive(Clone, Debug)]
pub(crate) struct MachineFluid {
    cpus: u64,
    now_ns: u64,
    stale: bool,
    /// By falling weight.
    classes: Vec<Class>,
    /// The classes that have runnable tasks, by falling weight.
    active: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Class {
    weight: u32,
    runnable: u64,
    /// CPU per task, at most 1 << FRACTION_BITS.
    rate: u64,
    /// ns << FRACTION_BITS per task.
    served: u128,
}

impl MachineFluid {
    /// `weights`: every weight that any task may have.
    pub(crate) fn new(cpus: u32, weights: &[u32]) -> Self {
        let mut weights = weights.to_vec();
        weights.sort_unstable_by(|a, b| b.cmp(a));
        weights.dedup();
        let class = |weight| Class { weight, runnable: 0, rate: 0, served: 0 };
        Self {
            cpus: cpus.into(),
            now_ns: 0,
            stale: false,
            classes: weights.into_iter().map(class).collect(),
            active: Vec::new(),
        }
    }

    /// The number of the class of a weight, or of the next lower one.
    pub(crate) fn class_of(&self, weight: u32) -> usize {
        let at = self.classes.partition_point(|class| class.weight > weight);
        at.min(self.classes.len() - 1)
    }

    /// Lets the fluid schedule run until `now_ns`.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        let Some(elapsed_ns) = now_ns.checked_sub(self.now_ns).filter(|elapsed| *elapsed > 0)
        else {
            return;
        };
        self.now_ns = now_ns;
        if self.stale {
            self.fill();
            self.stale = false;
        }
        for class in &self.active {
            let class = &mut self.classes[*class];
            class.served += u128::from(class.rate) * u128::from(elapsed_ns);
        }
    }

    /// Computes the rates of the present runnable set by water-filling.
    fn fill(&mut self) {
        let active = || self.active.iter().map(|class| &self.classes[*class]);
        let runnable: u64 = active().map(|class| class.runnable).sum();
        let mut cpus_left = u128::from(self.cpus.min(runnable));
        let mut weight_left: u128 = active().map(Class::total_weight).sum();
        for class in &self.active {
            let class = &mut self.classes[*class];
            let weight = u128::from(class.weight);
            if weight * cpus_left >= weight_left {
                class.rate = 1 << FRACTION_BITS;
                cpus_left -= u128::from(class.runnable).min(cpus_left);
                weight_left -= class.total_weight();
            } else {
                class.rate = (((cpus_left * weight) << FRACTION_BITS) / weight_left) as u64;
            }
        }
    }

    pub(crate) fn add(&mut self, class: usize) {
        if self.classes[class].runnable == 0 {
            let at = self.active.partition_point(|active| *active < class);
            self.active.insert(at, class);
        }
        self.classes[class].runnable += 1;
        self.stale = true;
    }

    pub(crate) fn remove(&mut self, class: usize) {
        self.classes[class].runnable -= 1;
        if self.classes[class].runnable == 0 {
            self.active.retain(|active| *active != class);
        }
        self.stale = true;
    }

    /// What one task of the class would have got so far, ns << [`FRACTION_BITS`], had it always been runnable with the rate
    /// of its class: meaningful as a difference.
    pub(crate) fn served(&self, class: usize) -> u128 {
        self.classes[class].served
    }

    #[cfg(test)]
    fn rates(&mut self) -> Vec<f64> {
        self.fill();
        let scale = (1u64 << FRACTION_BITS) as f64;
        self.classes.iter().map(|class| class.rate as f64 / scale).collect()
    }
}

impl Class {
    fn total_weight(&self) -> u128 {
        u128::from(self.weight) * u128::from(self.runnable)
    }
}

/// GPS among the tasks that are queued on one CPU: what the placement of tasks leaves to share.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuFluid {
    now_ns: u64,
    weight: u64,
    /// ns << FRACTION_BITS per unit of weight.
    served_per_weight: u128,
}

impl CpuFluid {
    pub(crate) fn advance(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.now_ns);
        self.now_ns = self.now_ns.max(now_ns);
        if self.weight > 0 {
            self.served_per_weight +=
                (u128::from(elapsed_ns) << FRACTION_BITS) / u128::from(self.weight);
        }
    }

    pub(crate) fn add(&mut self, weight: u32) {
        self.weight += u64::from(weight);
    }

    pub(crate) fn remove(&mut self, weight: u32) {
        self.weight -= u64::from(weight);
    }

    pub(crate) fn served_per_weight(&self) -> u128 {
        self.served_per_weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weight_of_nice;
    use proptest::prelude::*;

    fn fluid(cpus: u32, tasks: &[u32]) -> MachineFluid {
        let mut fluid = MachineFluid::new(cpus, tasks);
        for weight in tasks {
            let class = fluid.class_of(*weight);
            fluid.add(class);
        }
        fluid
    }

    #[test]
    fn nice_minus_five_zero_and_five_share_one_cpu() {
        let weights = [-5, 0, 5].map(weight_of_nice);
        let rates = fluid(1, &weights).rates();
        let percent: Vec<String> = rates.iter().map(|r| format!("{:.2}", r * 100.0)).collect();
        assert_eq!(percent, ["69.67", "22.86", "7.48"]);
    }

    #[test]
    fn no_task_gets_more_than_a_cpu() {
        // 2 CPUs, weights 10:1:1: the heavy one would be due 1.67 CPUs.
        assert_eq!(fluid(2, &[10, 1, 1]).rates(), [1.0, 0.5]);
        // 3 equal tasks on 2 CPUs: two thirds each.
        assert!((fluid(2, &[7, 7, 7]).rates()[0] - 2.0 / 3.0).abs() < 1e-11);
        // Fewer tasks than CPUs: one each, whatever the weights.
        assert_eq!(fluid(4, &[9, 1]).rates(), [1.0, 1.0]);
    }

    #[test]
    fn the_cap_cascades() {
        // 3 CPUs, 100:10:1:1: 100 is capped; of 2 left 10 is due 1.67, capped; 1 and 1 share one.
        assert_eq!(fluid(3, &[100, 10, 1, 1]).rates(), [1.0, 1.0, 0.5]);
    }

    proptest! {
        #[test]
        fn the_rates_are_the_definition(
            cpus in 1u32..9,
            nices in prop::collection::vec(-20i8..20, 1..20),
        ) {
            let weights: Vec<u32> = nices.iter().map(|nice| weight_of_nice(*nice)).collect();
            let mut fluid = fluid(cpus, &weights);
            let rates = fluid.rates();
            let rate_of = |weight: u32| rates[fluid.class_of(weight)];
            let total: f64 = weights.iter().map(|w| rate_of(*w)).sum();
            let due = f64::from(cpus).min(weights.len() as f64);
            prop_assert!((total - due).abs() < 1e-9, "{total} of {due}");
            for a in &weights {
                prop_assert!(rate_of(*a) <= 1.0);
                for b in &weights {
                    // Below the cap the rates are in proportion; a capped task is at least as heavy.
                    if rate_of(*a) < 1.0 && rate_of(*b) < 1.0 {
                        let (x, y) = (rate_of(*a) / f64::from(*a), rate_of(*b) / f64::from(*b));
                        prop_assert!((x - y).abs() <= 1e-9 * x + 1e-12);
                    } else if rate_of(*a) < 1.0 {
                        prop_assert!(b >= a);
                    }
                }
            }
        }
    }
}
