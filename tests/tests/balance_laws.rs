//! The laws of the load balancer (docs/laws/balancing.md), on the compiled `cfs` in the simulated machine.

use crate::rig::{Bench, MS, Run, US, bench};
use fairground_trace::EventKind;

/// The rules of 2.6.23-rc1 (FUZZ 32), or with the patch of July 2007 (FUZZ 512), on the scheduler of 2.6.24.
fn rc1(fuzz: u64) -> Bench {
    bench("cfs@2.6.24")
        .hz(1000)
        .set("sched_load_scale_fuzz", fuzz)
        .set("rule_small_imbalance", "SMALL_HALF_LPT_FUZZ")
        .set("rule_small_no_gain_moves", false)
        .set("rule_group_imb", "GROUP_IMB_NEVER")
        .set("rule_hot", false)
        .set("rule_load_rounds_up", false)
        .set("rule_domains", "DOMAINS_2_6_23")
        .set("rule_wake", "WAKE_AFFINE")
}

/// The rules of 2.6.22 on the same scheduler; loads are 1024 a task instead of 128, and all rules are ratios.
fn rules_22() -> Bench {
    rc1(0)
        .set("rule_small_imbalance", "SMALL_LPT")
        .set("rule_skip", "SKIP_WEIGHT")
        .set("rule_load_rounds_up", true)
        .set("rule_domains", "DOMAINS_2_6_22")
}

/// The CPU shares of the tasks of `spec` from 1 s to 61 s, %, largest first. Law 13: together they are all CPUs.
fn shares(bench: Bench, cpus: u32, spec: &str) -> Vec<f64> {
    let mut run = bench.cpus(cpus).run(spec);
    run.until(61_000 * MS);
    let time = run.cpu_time(1_000 * MS, 61_000 * MS);
    let mut shares: Vec<f64> = time.values().map(|ns| *ns as f64 / 60e9 * 100.0).collect();
    shares.sort_by(|a, b| b.total_cmp(a));
    let sum: f64 = shares.iter().sum();
    assert!((sum - f64::from(cpus) * 100.0).abs() < 0.01, "law 13: {sum} % of {cpus} CPUs");
    shares
}

/// `interval_ms` of a CPU's domain on a machine of one level (MC): see struct balance_cpu.
fn interval_ms(run: &Run, cpu: u64) -> u64 {
    let all = run.machine.variable("balance_cpus").expect("the scheduler balances").len() as u64;
    let mc = 56;
    run.machine.variable_field("balance_cpus", cpu * (all / 1024) + mc + 8, 4).expect("a field")
}

fn within(shares: &[f64], low: f64, high: f64) {
    assert!(shares.iter().all(|s| (low..=high).contains(s)), "{shares:.1?} not in {low}…{high}");
}

/// Law 5, first half: 10 hogs on 8 CPUs freeze at 6 × 100 % and 4 × 50 % under 2.6.22 and 2.6.23-rc1.
#[test]
fn law_05_ten_hogs_on_eight_cpus_freeze() {
    for (name, bench) in [("2.6.22", rules_22()), ("2.6.23-rc1", rc1(32))] {
        let shares = shares(bench, 8, "hogs:10");
        assert!(shares[..6].iter().all(|s| *s >= 95.0), "{name}: {shares:.1?}");
        assert!(shares[6..].iter().all(|s| *s <= 55.0), "{name}: {shares:.1?}");
    }
}

/// Law 5, second half: with FUZZ = SCALE >> 1 each gets near 80 %; so it does under 2.6.24 and 2.6.27.
#[test]
fn law_05_ten_hogs_on_eight_cpus_share() {
    for bench in [rc1(512), bench("cfs@2.6.24").hz(1000), bench("cfs@2.6.27-sle11").hz(1000)] {
        let shares = shares(bench, 8, "hogs:10");
        within(&shares, 70.0, 90.0);
        let mean = shares.iter().sum::<f64>() / 10.0;
        assert!((mean - 80.0).abs() <= 0.5, "{mean}");
    }
}

/// Law 6: 3 hogs on 2 CPUs are stuck at 100, 50, 50 under 2.6.22 and share from 2.6.23-rc1 on.
#[test]
fn law_06_three_hogs_on_two_cpus() {
    let stuck = shares(rules_22(), 2, "hogs:3");
    assert!(stuck[0] >= 99.0 && stuck[1] <= 51.0, "{stuck:.1?}");
    for bench in [rc1(32), bench("cfs@2.6.24").hz(1000), bench("cfs@2.6.27-sle11").hz(1000)] {
        within(&shares(bench, 2, "hogs:3"), 60.0, 73.0);
    }
}

/// Law 7: no CPU is idle while another has two tasks for longer than the idle interval of 4 ms, the tries of cache-hot
/// tasks and of active balancing (4 in all, with intervals of 1 ms after a failure), and two ticks.
#[test]
fn law_07_work_is_conserved() {
    // One CPU per socket: at that level a wake-up does not search for an idle CPU.
    let mut run = bench("cfs@2.6.24").topology("4x1x1,nodes=1").hz(1000).run_toml(
        r#"
        format = 1
        name = "comings and goings"
        duration = "3s"
        [[task]]
        name = "w"
        count = 7
        program = [{ loop = [{ run = "1ms..30ms" }, { sleep = "1ms..20ms" }] }]
        "#,
    );
    let (mut since, mut longest, mut seen) = (None, 0, 0);
    run.step_ns = 100 * US;
    run.watch(3_000 * MS, |run| {
        let nr =
            |cpu: u64| run.machine.variable_field("cpu_tasks", cpu * 16 + 8, 4).expect("it counts");
        let counts = [nr(0), nr(1), nr(2), nr(3)];
        let wasted = counts.contains(&0) && counts.iter().any(|n| *n > 1);
        let now = run.machine.now_ns();
        if !wasted {
            since = None;
            return;
        }
        seen += 1;
        longest = longest.max(now - *since.get_or_insert(now));
    });
    assert!(seen > 10, "the case did come up");
    assert!(longest <= 10 * MS, "{longest} ns");
}

/// Law 8: a busy CPU balances at most every 64 ms, and at least every 256 ms while all is balanced.
#[test]
fn law_08_intervals_of_a_busy_cpu() {
    let mut run = rc1(32).cpus(8).set("trace_balance", true).run("hogs:10");
    run.until(10_000 * MS);
    let (shortest, longest) = run.between_looks(8);
    assert!(shortest >= 64 * MS && longest <= 257 * MS, "{shortest} to {longest} ns");
    assert_eq!(interval_ms(&run, 3), 4, "balanced for long");
}

/// Law 9: pinned tasks never move, and the interval of a CPU that finds only them grows to 512 ms.
#[test]
fn law_09_pinned_tasks_stay() {
    let mut run = bench("cfs@2.6.24").cpus(2).hz(1000).run_toml(
        r#"
        format = 1
        name = "pinned tasks"
        duration = "10s"
        [[task]]
        name = "pinned"
        count = 3
        cpus = "0"
        program = [{ run = "forever" }]
        [[task]]
        name = "free"
        cpus = "1"
        program = [{ run = "forever" }]
        "#,
    );
    run.until(10_000 * MS);
    let pinned = run.named("pinned");
    let moved = run.events().into_iter().any(
        |e| matches!(e.kind, EventKind::Migrate { task, to_cpu, .. } if pinned.contains(&task) && to_cpu != 0),
    );
    assert!(!moved);
    assert_eq!(interval_ms(&run, 1), 512);
}

/// Law 10: 8 hogs on 8 CPUs are placed once and for all.
#[test]
fn law_10_as_many_hogs_as_cpus_do_not_move() {
    for set in ["cfs@2.6.24", "cfs@2.6.27-sle11", "cfs@6.1"] {
        let mut run = bench(set).cpus(8).hz(1000).run("hogs:8");
        run.until(20_000 * MS);
        let moves = run
            .events()
            .into_iter()
            .filter(|e| e.time_ns > 100 * MS && matches!(e.kind, EventKind::Migrate { .. }));
        assert_eq!(moves.count(), 0, "{set}");
    }
}

/// Law 12: active balancing comes with the 4th failure in a row (cache_nice_tries 1, + 2, exceeded). On a machine of
/// three cores of two threads, core 0 runs two tasks, one on each thread, and core 1 is idle: that is an imbalance,
/// and there is no waiting task that could be moved. (Two pinned tasks on core 2 keep the balancers awake.)
#[test]
fn law_12_active_balance_after_four_failures() {
    let mut run =
        bench("cfs@2.6.24").topology("1x3x2").hz(1000).set("trace_balance", true).run_toml(
            r#"
        format = 1
        name = "threads of a core"
        duration = "1s"
        [[task]]
        name = "a"
        cpus = "0"
        program = [{ run = "forever" }]
        [[task]]
        name = "b"
        cpus = "1"
        program = [{ run = "forever" }]
        [[task]]
        name = "pinned"
        count = 2
        cpus = "4"
        program = [{ run = "forever" }]
        "#,
        );
    run.until(1_000 * MS);
    let on_core_0 = |text: &str| text.contains("busiest 0") || text.contains("busiest 1 ");
    let mut failures = 0;
    let mut between = Vec::new();
    for (_, cpu, text) in run.lines() {
        if cpu != 2 || !text.contains("level 1") || !on_core_0(&text) {
            continue;
        }
        if text.starts_with("balance small-difference") {
            failures += 1;
        } else if text.starts_with("balance active") {
            between.push(std::mem::take(&mut failures));
        }
    }
    // Afterwards the counter is cache_nice_tries + 1: the next one comes with the second failure.
    assert!(between.len() > 3, "{between:?}");
    assert_eq!(between[..3], [4, 2, 2]);
}

/// The cached sums of eight CPUs are correct until one of these CPUs marks them as changed (`sum_step`).
#[test]
fn what_is_kept_of_eight_cpus_is_so_until_one_changes() {
    for scheduler in ["cfs", "eevdf"] {
        let mut run = bench(scheduler).cpus(32).run("hogs:20 + sleepers:100,run=300us,sleep=2ms");
        let (mut kept, mut busiest) = (0, 0);
        run.step_ns = 97 * US;
        run.watch(300 * MS, |run| {
            let field = |name, at, size| run.machine.variable_field(name, at, size).expect(name);
            for step in 0..4u64 {
                if field("cpu_changed", step * 8, 8) != 0 {
                    continue;
                }
                let at = |cpu, at, size| field("cpu_tasks", cpu * 16 + at, size);
                let of = |cpu| (at(cpu, 0, 8), at(cpu, 8, 4));
                let cpus = || (step * 8..step * 8 + 8).map(of);
                let most = cpus().filter(|(_, nr)| *nr > 1).map(|(weight, _)| weight).max();
                let known = [0, 8].map(|at| field("step_sums", step * 24 + at, 8));
                assert_eq!(known, [cpus().map(|(weight, _)| weight).sum(), most.unwrap_or(0)]);
                kept += 1;
                busiest += u64::from(most.is_some());
            }
        });
        assert!(
            kept > 100 && busiest > 20,
            "{scheduler}: the case came up {kept}, {busiest} times"
        );
    }
}
