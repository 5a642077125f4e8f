//! Two schedulers against the simplest possible models: lists, wide numbers, no trees. Model and compiled object run
//! the same random history of one CPU, and after each operation agree in every number; they take each decision alike
//! (placement, preemption, the end of a slice, the pick).
//!
//! Where two tasks in the tree have the same deadline or vruntime, either may be picked: the model follows the object
//! then.

use crate::rig::callbacks::{Loaded, load};
use crate::rig::naive::{Dice, MIXES};
use crate::rig::naive_cfs;
use crate::rig::naive_eevdf::Rules;
use crate::rig::pair_cfs::CfsPair;
use crate::rig::pair_eevdf::EevdfPair;

fn eevdf_life(loaded: &Loaded, set: &str, switches: &[(&str, bool)], seed: u64, decisions: u64) {
    let mix = &MIXES[seed as usize % MIXES.len()];
    let mut pair = EevdfPair::new(loaded, set, switches);
    let (mut dice, mut now_ns, mut seen) = (Dice::new(seed), 0, 0);
    while seen < decisions {
        let before = pair.told.clone();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            seen += pair.live(&mut dice, &mut now_ns);
            seen += pair.step(&mut dice, mix);
            pair.check();
        }));
        if let Err(panic) = outcome {
            eprintln!(
                "eevdf@{set} {switches:?}, seed {seed}, at {now_ns} ns, {seen} decisions, after: {before}"
            );
            std::panic::resume_unwind(panic);
        }
    }
}

/// 10,000 decisions of each release and mix: 160,000 in all.
#[test]
fn eevdf_agrees_with_its_model() {
    let loaded = load("eevdf");
    for set in ["6.6", "6.12", "6.18", "7.2"] {
        for seed in 0..4 {
            eevdf_life(&loaded, set, &[], seed, 10_000);
        }
    }
}

/// Each switch of each release in its other position, and some pairs.
#[test]
fn eevdf_agrees_with_its_model_whatever_is_switched() {
    let loaded = load("eevdf");
    const SWITCHES: [&str; 10] = [
        "PLACE_LAG",
        "PLACE_DEADLINE_INITIAL",
        "PLACE_REL_DEADLINE",
        "RUN_TO_PARITY",
        "PREEMPT_SHORT",
        "NEXT_BUDDY",
        "PICK_BUDDY",
        "DELAY_DEQUEUE",
        "DELAY_ZERO",
        "WAKEUP_PREEMPTION",
    ];
    let mut dice = Dice::new(7);
    for set in ["6.6", "6.12", "6.18", "7.2"] {
        for (number, switch) in SWITCHES.into_iter().enumerate() {
            let first =
                (switch, !crate::rig::set_of("eevdf", set).contains(&(switch.to_owned(), 1)));
            let second = (dice.of(&SWITCHES), dice.one_in(2));
            eevdf_life(&loaded, set, &[first], number as u64, 1_200);
            eevdf_life(&loaded, set, &[first, second], 2 + number as u64, 1_200);
        }
    }
}

/// The comparison itself is checked: it detects a model with one switch in the wrong position.
#[test]
fn a_wrong_model_is_found_out() {
    let loaded = load("eevdf");
    let wrong: [fn(&mut Rules); 9] = [
        |rules| rules.place_lag = false,
        |rules| rules.place_deadline_initial = false,
        |rules| rules.place_rel_deadline = false,
        |rules| rules.run_to_parity = false,
        |rules| rules.preempt_short = false,
        |rules| rules.delay_dequeue = false,
        |rules| rules.delay_zero = false,
        |rules| rules.wakeup_preemption = false,
        |rules| rules.custom_slices = false,
    ];
    for (number, change) in wrong.into_iter().enumerate() {
        for set in ["6.12", "6.18"] {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let mut pair = EevdfPair::new(&loaded, set, &[]);
                change(&mut pair.naive.rules);
                let (mut dice, mut now_ns) = (Dice::new(2), 0);
                for _ in 0..20_000 {
                    pair.live(&mut dice, &mut now_ns);
                    pair.step(&mut dice, &MIXES[2]);
                    pair.check();
                }
            }));
            assert!(outcome.is_err(), "{set}: wrong model {number} agrees");
        }
    }
}

fn cfs_life(loaded: &Loaded, set: &str, switches: &[(&str, bool)], seed: u64, decisions: u64) {
    let mix = &MIXES[seed as usize % MIXES.len()];
    let mut pair = CfsPair::new(loaded, set, switches);
    let (mut dice, mut now_ns, mut seen) = (Dice::new(seed), 0, 0);
    while seen < decisions {
        let before = pair.told.clone();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            seen += pair.live(&mut dice, mix, &mut now_ns);
        }));
        if let Err(panic) = outcome {
            eprintln!(
                "cfs@{set} {switches:?}, seed {seed}, at {now_ns} ns, {seen} decisions, after: {before}"
            );
            std::panic::resume_unwind(panic);
        }
    }
}

/// 15,000 decisions of each release and mix: 120,000 in all.
#[test]
fn cfs_agrees_with_its_model() {
    let loaded = load("cfs");
    for set in ["2.6.24", "6.1"] {
        for seed in 0..4 {
            cfs_life(&loaded, set, &[], seed, 15_000);
        }
        for switch in ["FAIR_SLEEPERS", "GENTLE_FAIR_SLEEPERS", "START_DEBIT", "WAKEUP_PREEMPTION"]
        {
            for on in [true, false] {
                cfs_life(&loaded, set, &[(switch, on)], 1, 1_500);
            }
        }
    }
}

#[test]
fn a_wrong_model_of_cfs_is_found_out() {
    let loaded = load("cfs");
    let wrong: [fn(&mut naive_cfs::Rules); 6] = [
        |rules| rules.modern = !rules.modern,
        |rules| rules.gentle = !rules.gentle,
        |rules| rules.start_debit = false,
        |rules| rules.wakeup_granularity_ns += 100_000,
        |rules| rules.min_granularity_ns -= 50_000,
        |rules| rules.first_stays = false,
    ];
    for (number, change) in wrong.into_iter().enumerate() {
        for set in ["2.6.24", "6.1"] {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let mut pair = CfsPair::new(&loaded, set, &[]);
                change(&mut pair.naive.rules);
                let (mut dice, mut now_ns) = (Dice::new(1), 0);
                for _ in 0..20_000 {
                    pair.live(&mut dice, &MIXES[1], &mut now_ns);
                }
            }));
            assert!(outcome.is_err(), "{set}: wrong model {number} agrees");
        }
    }
}
