//! Findings on traces written by hand. `tests/tests/diagnose_rules.rs` has runs of schedulers for each rule.

use crate::tape::{IDLE, MS, Tape, round_robin};
use fairground_analysis::diagnose::{Diagnosis, Fact, Rule};
use fairground_trace::{CgroupId, CgroupInfo};

/// Two tasks share CPU 0 while CPU 1 idles; they are in this cgroup of `/` and `web`.
fn beside_an_idle_cpu(cgroup: Option<u32>) -> Diagnosis {
    let mut tape = Tape::new(2);
    if cgroup.is_some() {
        for (path, parent) in [("/", None), ("web", Some(CgroupId::ROOT))] {
            tape.trace.add_cgroup(CgroupInfo { path: path.to_owned(), parent, weight: None });
        }
    }
    let [one, two, other] = ["one", "two", "other"].map(|name| tape.task(name));
    for task in [one, two] {
        tape.trace.task_mut(task).cgroup = cgroup.map(CgroupId);
    }
    tape.preempt(0, 1, IDLE, other).block(0, 1, other, IDLE);
    round_robin(&mut tape, &[one, two], 10 * MS, 1000 * MS);
    Diagnosis::of(&tape.end(1000 * MS))
}

#[test]
fn tasks_that_wait_beside_an_idle_cpu_are_named_with_their_control_groups() {
    let groups = |diagnosis: &Diagnosis| {
        let mut findings = diagnosis.findings.iter();
        let idle = findings.find(|finding| finding.rule == Rule::IdleWhileWaiting);
        let idle = idle.unwrap_or_else(|| panic!("{diagnosis:?}")).clone();
        let named = idle.evidence.into_iter().find(|fact| fact.what == "their control groups");
        (named.map(|evidence| evidence.fact), idle.meaning.contains("cpu.max"))
    };
    let web = groups(&beside_an_idle_cpu(Some(1)));
    assert_eq!(web, (Some(Fact::Text("/web".to_owned())), true));
    for without in [None, Some(0)] {
        assert_eq!(groups(&beside_an_idle_cpu(without)), (None, false), "the root has no limit");
    }
}
