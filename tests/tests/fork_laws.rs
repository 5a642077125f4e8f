//! The CPU of a new task, by the kinds of groups and by loads over time (`policies/include/balance_fork.bpf.h`), and
//! the extent of a wake-up's search for an idle CPU (`SIS_UTIL`), on the compiled schedulers in the simulated machine.

use crate::rig::{MS, bench};
use fairground_trace::EventKind;

const SCHEDULERS: [&str; 2] = ["cfs@6.1", "eevdf"];

/// The CPU of the child that a task of nice 0 on CPU 0 forks, beside others of these nice values on these CPUs that
/// compute all the time.
fn child_cpu(scheduler: &'static str, cpus: u32, others: &[(i8, u32)]) -> u32 {
    let mut spec = "format = 1\nname = \"fork\"\nduration = \"3s\"\n".to_owned();
    for (number, (nice, cpu)) in others.iter().enumerate() {
        spec.push_str(&format!(
            "[[task]]\nname = \"hog{number}\"\nnice = {nice}\ncpus = \"{cpu}\"\nprogram = [ {{ run = \"forever\" }} ]\n"
        ));
    }
    spec.push_str(
        "[[task]]\nname = \"mother\"\ncpus = \"0\"\n\
         program = [{ run = \"500ms\" }, { fork = \"child\" }, { run = \"forever\" }]\n\
         [[task]]\nname = \"child\"\nprogram = [{ run = \"forever\" }]\n",
    );
    let mut run = bench(scheduler).cpus(cpus).run_toml(&spec);
    run.until(3_000 * MS);
    let child = run.named("child")[0];
    let placed = |event: &fairground_trace::Event| match event.kind {
        EventKind::WakeupNew { task, target_cpu } if task == child => Some(target_cpu),
        _ => None,
    };
    run.events().iter().find_map(placed).expect("it was forked")
}

/// `sched_fork` until 2.6.25: no domain of a single node looks for a CPU at a fork.
#[test]
fn a_child_starts_on_its_parents_cpu_until_2_6_25() {
    for scheduler in ["o1", "cfs_2_6_23", "cfs@2.6.24", "cfs@2.6.25"] {
        assert_eq!(child_cpu(scheduler, 2, &[]), 0, "{scheduler}: beside an idle CPU");
        assert_eq!(child_cpu(scheduler, 2, &[(0, 0), (0, 0), (0, 1)]), 0, "{scheduler}");
    }
    for scheduler in ["cfs@2.6.26", "cfs@2.6.27-sle11", "cfs@2.6.32"] {
        assert_eq!(child_cpu(scheduler, 2, &[]), 1, "{scheduler}: to an idle CPU");
    }
}

/// An idle CPU is of a lower kind than the parent's, and so is one with a task beside one with two.
#[test]
fn a_child_goes_to_a_group_of_a_lower_kind() {
    for scheduler in SCHEDULERS {
        assert_eq!(child_cpu(scheduler, 2, &[]), 1, "{scheduler}: to an idle CPU");
        assert_eq!(
            child_cpu(scheduler, 2, &[(0, 1), (19, 0)]),
            1,
            "{scheduler}: fully busy, not overloaded"
        );
        assert_eq!(
            child_cpu(scheduler, 4, &[(0, 1), (0, 3)]),
            2,
            "{scheduler}: to the idle one of four"
        );
    }
}

/// Of two overloaded CPUs the parent's keeps the child unless its load is more than 1.17 times the other's, whatever
/// the numbers of tasks.
#[test]
fn a_child_stays_where_loads_are_nearly_even() {
    for scheduler in SCHEDULERS {
        // 1024 + 2 * 15 beside 1024 + 15.
        let even = [(19, 0), (19, 0), (0, 1), (19, 1)];
        assert_eq!(
            child_cpu(scheduler, 2, &even),
            0,
            "{scheduler}: it has more tasks, and keeps it"
        );
        // 1024 + 335 beside 1024 + 15: 1.31 times as much.
        let uneven = [(5, 0), (0, 1), (19, 1)];
        assert_eq!(child_cpu(scheduler, 2, &uneven), 1, "{scheduler}: it gives it away");
    }
}

/// Where 85 % and more of a cache is used (100 / imbalance_pct) a wake-up searches none of its CPUs for an idle one;
/// the printed number is + 1.
#[test]
fn a_busy_cache_is_not_searched() {
    for scheduler in SCHEDULERS {
        let scans = |on: bool| {
            let bench =
                bench(scheduler).cpus(4).hz(250).set("trace_balance", true).set("SIS_UTIL", on);
            let mut run = bench.run("hogs:8");
            run.until(1_000 * MS);
            let lines = run.lines();
            let scan = |(_, _, text): &(u64, u32, String)| {
                let (_, scan) = text.strip_prefix("balance idle-scan: ")?.rsplit_once(' ')?;
                scan.parse::<u32>().ok()
            };
            lines.iter().filter_map(scan).collect::<Vec<_>>()
        };
        let with = scans(true);
        assert_eq!(with.last(), Some(&1), "{scheduler}: none of four, {with:?}");
        assert_eq!(scans(false), [0u32; 0], "{scheduler}");
    }
}
