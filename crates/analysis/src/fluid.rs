//! The fluid schedule that a run is compared with: weighted generalised processor sharing (GPS).
//!
//! At each instant the tasks that are runnable in the trace share the machine in proportion to their weights, and
//! none gets more than one whole CPU. With m CPUs, n runnable tasks and weights w the rate of task i is min(1,
//! λ·w_i), with the λ at which the rates sum to min(m, n). Sorted by falling weight this is water-filling: as long
//! as a task's share of what is left would be a CPU or more, it gets one and leaves; the rest share by weight
//! (Parekh & Gallager 1993 for GPS; the cap as in Chandra et al., "Surplus Fair Scheduling", OSDI 2000, section
//! 2.1).
//!
//! With control groups the same happens at each level of the tree (hierarchical GPS: Bennett & Zhang, "Hierarchical
//! Packet Fair Queueing Algorithms", SIGCOMM 1996): the tasks of a group and the groups below it that have a
//! runnable task share what the group gets, tasks by their weight and groups by theirs. A group gets at most one
//! CPU for each of its runnable tasks: min(n_i, λ·w_i). What one cannot use goes to its siblings, so that all
//! min(m, n) CPUs are given away.
//!
//! Tasks of one weight in one group have one rate, so the integral of the rate is kept per group and weight, and a
//! task's service is a difference of two readings: an event costs O(distinct weights + groups), never O(tasks).
//!
//! Fixed point: rates and integrals carry [`FRACTION_BITS`] fraction bits. A rate is rounded down by less than
//! 2^-40 at each level, which loses a task less than 1 ns in 10^12 ns.

use std::ops::Range;

/// Fraction bits of rates and of services.
pub(crate) const FRACTION_BITS: u32 = 40;

/// One CPU, as a rate.
const ONE: u64 = 1 << FRACTION_BITS;

/// The number of the first node.
const ROOT: usize = 0;

/// GPS on the whole machine with at most one CPU per task, down the tree of control groups.
#[derive(Clone, Debug)]
pub(crate) struct MachineFluid {
    cpus: u64,
    now_ns: u64,
    stale: bool,
    /// Parents before their children; the first is the root.
    nodes: Vec<Node>,
    /// The nodes below the root that have a runnable task in or below them, by number.
    active_nodes: Vec<usize>,
    /// Those of the root by falling weight, then as many of each further node.
    classes: Vec<Class>,
    classes_per_node: usize,
    /// The classes that have runnable tasks, by number.
    active: Vec<usize>,
    /// Space for the filling of one node.
    shares: Vec<Share>,
}

/// A control group.
#[derive(Clone, Debug)]
struct Node {
    /// The root's is itself.
    parent: usize,
    weight: u32,
    /// Below the root: runnable tasks in it and below.
    runnable: u64,
    /// Its share of the machine, CPUs << FRACTION_BITS: there are fewer than 2^24 of them.
    rate: u64,
    /// The groups right below it that have runnable tasks, by number.
    children: Vec<usize>,
}

/// The tasks of one weight in one group.
#[derive(Clone, Debug)]
struct Class {
    /// Per task, ns << FRACTION_BITS.
    served: u128,
    /// CPU per task, at most 1 << FRACTION_BITS.
    rate: u64,
    runnable: u64,
    node: usize,
    weight: u32,
}

/// A share of what a node gets.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// A class of tasks, or a child.
    of: Member,
    /// Of one member.
    weight: u32,
    members: u64,
    /// The most that one member can use.
    cap: u64,
}

#[derive(Clone, Copy, Debug)]
enum Member {
    Class(usize),
    Child(usize),
}

/// The part of a node's share that is not shared out yet.
struct Left {
    rate: u64,
    /// The weight of those that have no share yet.
    weight: u64,
}

impl Left {
    /// The service of each of some members: its share by weight, or what it can use where that is less.
    #[inline(always)]
    fn share(&mut self, weight: u32, members: u64, cap: u64) -> u64 {
        let weight = u64::from(weight);
        let due = u128::from(weight) * u128::from(self.rate);
        if due < u128::from(self.weight) * u128::from(cap) {
            return quotient(due, self.weight.into()) as u64;
        }
        self.rate -= cap.saturating_mul(members).min(self.rate);
        self.weight -= weight * members;
        cap
    }
}

impl MachineFluid {
    /// `weights`: every weight that any task may have.
    pub(crate) fn new(cpus: u32, weights: &[u32]) -> Self {
        let mut weights = weights.to_vec();
        weights.sort_unstable_by(|a, b| b.cmp(a));
        weights.dedup();
        let class = |weight| Class { served: 0, rate: 0, runnable: 0, node: 0, weight };
        let classes: Vec<Class> = weights.into_iter().map(class).collect();
        let root = Node { parent: ROOT, weight: 1, runnable: 0, rate: 0, children: Vec::new() };
        Self {
            cpus: cpus.into(),
            now_ns: 0,
            stale: false,
            nodes: vec![root],
            active_nodes: Vec::new(),
            classes_per_node: classes.len(),
            classes,
            active: Vec::new(),
            shares: Vec::new(),
        }
    }

    /// Adds a group below another one; its number is one more than the last one's.
    pub(crate) fn add_group(&mut self, parent: usize, weight: u32) {
        let node = self.nodes.len();
        for class in 0..self.classes_per_node {
            let weight = self.classes[class].weight;
            self.classes.push(Class { served: 0, rate: 0, runnable: 0, node, weight });
        }
        let weight = weight.max(1);
        self.nodes.push(Node { parent, weight, runnable: 0, rate: 0, children: Vec::new() });
    }

    /// A group has another weight from now on.
    pub(crate) fn set_group_weight(&mut self, group: usize, weight: u32) {
        self.nodes[group].weight = weight.max(1);
        self.stale = true;
    }

    /// The machine has so many CPUs from now on.
    pub(crate) fn set_cpus(&mut self, cpus: u64) {
        self.cpus = cpus;
        self.stale = true;
    }

    /// The number of the class of a weight in a group, or of the next lower weight.
    pub(crate) fn class_of(&self, group: usize, weight: u32) -> usize {
        let classes = &self.classes[..self.classes_per_node];
        let at = classes.partition_point(|class| class.weight > weight);
        group * self.classes_per_node + at.min(classes.len() - 1)
    }

    /// Until when it has run.
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Lets the fluid schedule run until `now_ns`.
    #[inline(always)]
    pub(crate) fn advance(&mut self, now_ns: u64) {
        if now_ns > self.now_ns {
            self.pass(now_ns - self.now_ns);
            self.now_ns = now_ns;
        }
    }

    #[inline(always)]
    fn pass(&mut self, elapsed_ns: u64) {
        if self.stale {
            self.fill();
        }
        for class in &self.active {
            let class = &mut self.classes[*class];
            // It cannot overflow: a rate has at most FRACTION_BITS + 1 bits, and all the time there is has 64.
            let served = u128::from(class.rate) * u128::from(elapsed_ns);
            class.served = class.served.wrapping_add(served);
        }
    }

    /// Computes the rates of the present runnable set by water-filling, from the root down.
    fn fill(&mut self) {
        self.stale = false;
        let runnable: u64 = self.active.iter().map(|class| self.classes[*class].runnable).sum();
        self.nodes[ROOT].rate = self.cpus.min(runnable) * ONE;
        self.fill_node(ROOT);
        for at in 0..self.active_nodes.len() {
            self.fill_node(self.active_nodes[at]);
        }
    }

    /// Shares out what one node gets. Those with the most weight for what they can use come first.
    fn fill_node(&mut self, node: usize) {
        let Self { nodes, classes, active, classes_per_node, .. } = self;
        let first = active.partition_point(|class| *class < node * *classes_per_node);
        let behind = active.partition_point(|class| *class < (node + 1) * *classes_per_node);
        let own = &active[first..behind];
        let weight_of = |class: &Class| u64::from(class.weight) * class.runnable;
        let weight = own.iter().map(|class| weight_of(&classes[*class])).sum();
        let mut left = Left { rate: nodes[node].rate, weight };
        if !nodes[node].children.is_empty() {
            return self.fill_with_children(node, first..behind, left);
        }
        for class in own {
            let class = &mut classes[*class];
            class.rate = left.share(class.weight, class.runnable, ONE);
        }
    }

    /// The same for one with groups right below it, and these of the active classes.
    fn fill_with_children(&mut self, node: usize, own: Range<usize>, mut left: Left) {
        let Self { nodes, classes, active, shares, .. } = self;
        shares.clear();
        shares.extend(active[own].iter().map(|class| Share {
            of: Member::Class(*class),
            weight: classes[*class].weight,
            members: classes[*class].runnable,
            cap: ONE,
        }));
        shares.extend(nodes[node].children.iter().map(|child| Share {
            of: Member::Child(*child),
            weight: nodes[*child].weight,
            members: 1,
            cap: nodes[*child].runnable * ONE,
        }));
        left.weight +=
            nodes[node].children.iter().map(|child| u64::from(nodes[*child].weight)).sum::<u64>();
        let use_of = |a: &Share, b: &Share| u128::from(a.weight) * u128::from(b.cap);
        shares.sort_by(|a, b| use_of(b, a).cmp(&use_of(a, b)));
        for share in shares {
            let rate = left.share(share.weight, share.members, share.cap);
            match share.of {
                Member::Class(class) => classes[class].rate = rate,
                Member::Child(child) => nodes[child].rate = rate,
            }
        }
    }

    /// A task of a class becomes runnable; gives the reading of [`MachineFluid::served`].
    #[inline(always)]
    pub(crate) fn add(&mut self, number: usize) -> u128 {
        let class = &mut self.classes[number];
        class.runnable += 1;
        if class.runnable == 1 {
            insert(&mut self.active, number);
        }
        let (node, served) = (class.node, class.served);
        self.stale = true;
        if node != ROOT {
            self.add_below(node);
        }
        served
    }

    fn add_below(&mut self, mut at: usize) {
        while at != ROOT {
            let node = &mut self.nodes[at];
            node.runnable += 1;
            let (begins, parent) = (node.runnable == 1, node.parent);
            if begins {
                insert(&mut self.active_nodes, at);
                insert(&mut self.nodes[parent].children, at);
            }
            at = parent;
        }
    }

    /// A task of a class is no longer runnable; gives the reading of [`MachineFluid::served`].
    #[inline(always)]
    pub(crate) fn remove(&mut self, number: usize) -> u128 {
        let class = &mut self.classes[number];
        class.runnable -= 1;
        if class.runnable == 0 {
            remove(&mut self.active, number);
        }
        let (node, served) = (class.node, class.served);
        self.stale = true;
        if node != ROOT {
            self.remove_below(node);
        }
        served
    }

    fn remove_below(&mut self, mut at: usize) {
        while at != ROOT {
            let node = &mut self.nodes[at];
            node.runnable -= 1;
            let (ends, parent) = (node.runnable == 0, node.parent);
            if ends {
                remove(&mut self.active_nodes, at);
                remove(&mut self.nodes[parent].children, at);
            }
            at = parent;
        }
    }

    /// The service that one task of the class would have had so far, ns << [`FRACTION_BITS`], had it always been
    /// runnable with the rate of its class: meaningful as a difference.
    #[inline(always)]
    pub(crate) fn served(&self, class: usize) -> u128 {
        self.classes[class].served
    }
}

/// A quotient, rounded down. Most numbers fit in a word, which is divided several times as fast.
#[inline]
fn quotient(dividend: u128, divisor: u128) -> u128 {
    match (u64::try_from(dividend), u64::try_from(divisor)) {
        (Ok(dividend), Ok(divisor)) => (dividend / divisor).into(),
        _ => dividend / divisor,
    }
}

/// Inserts into a sorted list.
#[cold]
fn insert(list: &mut Vec<usize>, value: usize) {
    let at = list.partition_point(|known| *known < value);
    list.insert(at, value);
}

#[cold]
fn remove(list: &mut Vec<usize>, value: usize) {
    list.retain(|known| *known != value);
}

/// GPS among the tasks that are queued on one CPU: what the placement of tasks leaves to share.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuFluid {
    /// ns << FRACTION_BITS per unit of weight.
    served_per_weight: u128,
    now_ns: u64,
    weight: u64,
}

impl CpuFluid {
    /// Lets the fluid schedule run until `now_ns`. Returns what a unit of weight would have got by then, had it
    /// always been there: meaningful as a difference.
    #[inline(always)]
    pub(crate) fn advance(&mut self, now_ns: u64) -> u128 {
        let mut served_per_weight = self.served_per_weight;
        if now_ns > self.now_ns {
            let elapsed_ns = now_ns - self.now_ns;
            self.now_ns = now_ns;
            if self.weight > 0 {
                // It cannot overflow: all the time there is has 64 bits.
                let served = quotient(u128::from(elapsed_ns) << FRACTION_BITS, self.weight.into());
                served_per_weight = served_per_weight.wrapping_add(served);
                self.served_per_weight = served_per_weight;
            }
        }
        served_per_weight
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, weight: u32) {
        self.weight += u64::from(weight);
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, weight: u32) {
        self.weight -= u64::from(weight);
    }
}

#[cfg(test)]
mod tests;
