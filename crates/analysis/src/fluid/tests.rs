//! The definition, checked on small cases by hand and on random ones by its own words.

use super::*;
use crate::weight_of_nice;
use proptest::prelude::*;

impl MachineFluid {
    /// CPU per task of each class of a group.
    fn rates_in(&mut self, group: usize) -> Vec<f64> {
        self.fill();
        let scale = (1u64 << FRACTION_BITS) as f64;
        let classes = self.classes.iter().filter(|class| class.node == group);
        classes.map(|class| class.rate as f64 / scale).collect()
    }

    fn rates(&mut self) -> Vec<f64> {
        self.rates_in(0)
    }
}

fn fluid(cpus: u32, tasks: &[u32]) -> MachineFluid {
    let mut fluid = MachineFluid::new(cpus, tasks);
    for weight in tasks {
        fluid.add(fluid.class_of(0, *weight));
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
        let rate_of = |weight: u32| rates[fluid.class_of(0, weight)];
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

/// A tree by (parent, weight), and runnable tasks by (group, weight).
fn tree(cpus: u32, groups: &[(usize, u32)], tasks: &[(usize, u32)]) -> MachineFluid {
    let weights: Vec<u32> = tasks.iter().map(|(_, weight)| *weight).collect();
    let mut fluid = MachineFluid::new(cpus, &weights);
    for (parent, weight) in groups {
        fluid.add_group(*parent, *weight);
    }
    for (group, weight) in tasks {
        fluid.add(fluid.class_of(*group, *weight));
    }
    fluid
}

#[test]
fn groups_share_by_weight_and_tasks_within() {
    // One CPU; a (3) and b (1) at the top; a has two equal tasks, b one task and, below it, c with one.
    let groups = [(0, 3), (0, 1), (2, 1)];
    let mut fluid = tree(1, &groups, &[(1, 1), (1, 1), (2, 1), (3, 1)]);
    assert_eq!([1, 2, 3].map(|group| fluid.rates_in(group)[0]), [0.375, 0.125, 0.125]);
    // The task of c goes to sleep: b's own task has all of b.
    fluid.remove(fluid.class_of(3, 1));
    assert_eq!([1, 2].map(|group| fluid.rates_in(group)[0]), [0.375, 0.25]);
    // b is empty: a has the CPU.
    fluid.remove(fluid.class_of(2, 1));
    assert_eq!(fluid.rates_in(1), [0.5]);
    fluid.set_group_weight(1, 7);
    fluid.add(fluid.class_of(0, 1));
    assert_eq!((fluid.rates_in(0)[0], fluid.rates_in(1)[0]), (0.125, 0.4375));
}

#[test]
fn a_group_gets_at_most_a_cpu_per_task_and_the_rest_goes_to_its_siblings() {
    // Four CPUs; a (1000) with one task can use one of them; b (1) with six tasks gets the other three.
    let mut fluid =
        tree(4, &[(0, 1000), (0, 1)], &[(1, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1)]);
    assert_eq!((fluid.rates_in(1)[0], fluid.rates_in(2)[0]), (1.0, 0.5));
}

#[test]
fn a_heavy_group_with_many_tasks_does_not_hide_a_light_one_at_its_cap() {
    // Two CPUs; a (4) with four tasks could use all; b (3) with one task is due 6/7: none is capped.
    let mut fluid = tree(2, &[(0, 4), (0, 3)], &[(1, 1), (1, 1), (1, 1), (1, 1), (2, 1)]);
    assert!((fluid.rates_in(2)[0] - 6.0 / 7.0).abs() < 1e-11);
    // With three CPUs b is due 9/7: capped, though it is the lighter one.
    fluid.cpus = 3;
    assert_eq!((fluid.rates_in(1)[0], fluid.rates_in(2)[0]), (0.5, 1.0));
}

proptest! {
    /// All CPUs that can be used are given away; members that are not capped share in proportion; a capped one
    /// would get at least its cap at its siblings' price.
    #[test]
    fn the_rates_of_a_tree_are_the_definition(
        cpus in 1u32..9,
        groups in prop::collection::vec((any::<prop::sample::Index>(), 1u32..10_000), 1..8),
        tasks in prop::collection::vec((any::<prop::sample::Index>(), 1u32..90_000), 1..24),
    ) {
        let groups: Vec<(usize, u32)> =
            groups.iter().enumerate().map(|(n, (parent, w))| (parent.index(n + 1), *w)).collect();
        let tasks: Vec<(usize, u32)> =
            tasks.iter().map(|(group, w)| (group.index(groups.len() + 1), *w)).collect();
        let mut fluid = tree(cpus, &groups, &tasks);
        fluid.fill();
        let one = ONE as f64;
        let total: f64 = tasks
            .iter()
            .map(|(group, w)| fluid.classes[fluid.class_of(*group, *w)].rate as f64 / one)
            .sum();
        let due = f64::from(cpus).min(tasks.len() as f64);
        prop_assert!((total - due).abs() < 1e-6, "{total} of {due}");
        let is_active = |at: usize| at == ROOT || fluid.nodes[at].runnable > 0;
        for (at, node) in fluid.nodes.iter().enumerate().filter(|(at, _)| is_active(*at)) {
            // Price per weight, and whether at the cap, of each member.
            let classes = fluid.classes.iter().filter(|c| c.node == at && c.runnable > 0);
            let mut members: Vec<(f64, bool)> = classes
                .map(|c| (c.rate as f64 / one / f64::from(c.weight), c.rate == ONE))
                .collect();
            members.extend(node.children.iter().map(|child| &fluid.nodes[*child]).map(|child| {
                let cap = child.runnable << FRACTION_BITS;
                (child.rate as f64 / one / f64::from(child.weight), child.rate == cap)
            }));
            let open: Vec<f64> = members.iter().filter(|m| !m.1).map(|m| m.0).collect();
            for price in &open {
                prop_assert!((price - open[0]).abs() <= 1e-6 * price + 1e-12);
                prop_assert!(members.iter().all(|m| !m.1 || m.0 <= price * (1.0 + 1e-6) + 1e-12));
            }
        }
    }
}
