//! From words to a run: the words mean the same for everyone, and who watches may end it.

use std::cell::Cell;

use fairground_run::{
    CHUNK_NS, MachineSpec, Plan, Scheduler, Unwatched, Watch, find_workload, lock_model,
    machine_config,
};

/// Ends the run after so many steps.
struct Impatient {
    steps: Cell<u64>,
    last: u64,
}

impl Watch for Impatient {
    fn name(&self, label: &str) {
        assert_eq!(label, "cfs@6.1");
    }

    fn advance(&self, steps: u64) {
        self.steps.set(self.steps.get() + steps);
    }

    fn goes_on(&self) -> bool {
        self.steps.get() < self.last
    }
}

#[test]
fn who_watches_counts_the_steps_and_may_end_the_run() {
    let workload = find_workload("hogs:1").expect("a workload of the library");
    let scheduler = Scheduler::load("cfs@6.1", None, Default::default()).expect("a scheduler");
    let machine = machine_config(&MachineSpec::default()).expect("the usual machine");
    let plan = || Plan::new(&scheduler, &workload, machine.clone(), 4 * CHUNK_NS);

    let patient = Impatient { steps: Cell::new(0), last: u64::MAX };
    let outcome = plan().run(&patient).expect("it runs to its end");
    assert_eq!(patient.steps.get(), 4);
    let unwatched = plan().run(&Unwatched).expect("it runs to its end");
    assert_eq!(outcome.trace.digest(), unwatched.trace.digest());

    let impatient = Impatient { steps: Cell::new(0), last: 2 };
    let partial = plan().run(&impatient).expect("it is ended");
    assert_eq!(partial.partial_ns, Some(2 * CHUNK_NS));
    assert_eq!((impatient.steps.get(), outcome.partial_ns), (2, None));
}

#[test]
fn locks_have_words() {
    for model in fairground_workload::LockModel::ALL {
        assert_eq!(lock_model(model.word()).expect("its own word"), model);
    }
    let failure = lock_model("rt2006").expect_err("no such word").to_string();
    assert_eq!(
        failure,
        "there are no locks `rt2006`; did you mean `rt-2006`?: `spin`, `rt`, `rt-2006`"
    );
}
