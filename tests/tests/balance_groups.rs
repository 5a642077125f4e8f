//! The balancer's arithmetic as a pure function: `find_busiest_group` and its callees, on loads that the test sets.
//! The laws are those of docs/laws/balancing.md, the worked example that of docs/explanation/balancing.md.

use crate::rig::fixture;
use fairground_machine::{CostModel, Engine, Machine, MachineConfig, Policy, Setting, Topology};
use fairground_workload::Workload;

/// `enum balance_verdict`.
const NOT_BUSIER: u64 = 2;
const SMALL_NO_GAIN: u64 = 4;
const NORMAL: u64 = 6;
const SMALL_DIFFERENCE: u64 = 7;

/// The rules of a release: a column of the tunables.
fn rules(column: &str) -> Policy {
    let column_define = format!("-DBALANCE_RELEASE={column}");
    let mut defines = vec![column_define.as_str()];
    if column == "2_6_22" {
        defines.push("-DBALANCE_SCALE=128");
    }
    let object = fixture::object("groups", &defines);
    Policy::load(&object, Engine::Jit).unwrap_or_else(|e| panic!("{e}"))
}

struct Look(Machine);

impl Look {
    fn get(&self, name: &str) -> u64 {
        self.0.variable_field(name, 0, 8).expect("the fixture has it")
    }

    fn at(&self, name: &str, index: u64) -> u64 {
        self.0.variable_field(name, index * 8, 8).expect("the fixture has it")
    }
}

fn look(policy: &Policy, topology: &str, given: &[(&str, u64)]) -> Look {
    let mut config = MachineConfig::new(1);
    config.topology = topology.parse::<Topology>().expect("a topology");
    config.cost = CostModel::preset("zero").expect("a preset of that name");
    let settings: Vec<Setting> =
        given.iter().map(|(name, value)| Setting::initial(name, &value.to_string())).collect();
    let nothing = Workload { tasks: Vec::new(), ..crate::rig::workload("hogs:1") };
    Look(Machine::new(&config, policy, &settings, &nothing).unwrap_or_else(|e| panic!("{e}")))
}

/// `tasks` hogs on `cpus` CPUs, the surplus on the first: what the last CPU finds.
fn hogs(policy: &Policy, tasks: u64, cpus: u64) -> Look {
    look(policy, &cpus.to_string(), &[("tasks", tasks)])
}

/// Law 1: every number of the worked example, 10 hogs on 8 CPUs, under each release's rules.
#[test]
fn law_01_ten_hogs_on_eight_cpus() {
    for (column, verdict, imbalance, moves) in [
        ("2_6_22", SMALL_NO_GAIN, 32, 0),
        ("2_6_23_RC1", SMALL_NO_GAIN, 256, 0),
        ("2_6_23_RC2", NORMAL, 256, 1),
        ("2_6_23_RC4", NORMAL, 256, 1),
        ("2_6_23", SMALL_DIFFERENCE, 1024, 1),
    ] {
        let scale = if column == "2_6_22" { 128 } else { 1024 };
        let found = hogs(&rules(column), 10, 8);
        assert_eq!(
            ["max_load", "this_load", "avg_load", "lpt"].map(|name| found.get(name)),
            [2 * scale, scale, scale * 10 / 8, scale],
            "{column}"
        );
        assert_eq!(
            ["verdict", "imbalance", "moves"].map(|name| found.get(name)),
            [verdict, imbalance, moves],
            "{column}"
        );
        if moves == 1 {
            assert_eq!(found.get("busiest"), 0, "{column}");
        }
    }
}

/// Law 1: the releases that move a task at all, for every case of the table of docs/explanation/balancing.md.
#[test]
fn law_01_the_table_of_moves_and_stuck() {
    let table: [(u64, u64, [u64; 5]); 8] = [
        (3, 2, [0, 1, 1, 1, 1]),
        (5, 2, [0, 1, 1, 1, 1]),
        (4, 3, [0, 0, 1, 1, 1]),
        (5, 4, [0, 0, 1, 1, 1]),
        (6, 4, [0, 1, 1, 1, 1]),
        (10, 8, [0, 0, 1, 1, 1]),
        (17, 16, [0, 0, 1, 1, 1]),
        (18, 16, [0, 0, 1, 1, 1]),
    ];
    let columns = ["2_6_22", "2_6_23_RC1", "2_6_23_RC2", "2_6_23_RC4", "2_6_23"];
    for (at, column) in columns.iter().enumerate() {
        let policy = rules(column);
        for (tasks, cpus, moves) in table {
            let found = hogs(&policy, tasks, cpus);
            assert_eq!(found.get("moves"), moves[at], "{tasks} on {cpus} under {column}");
        }
    }
}

/// Law 2: with n + 1 tasks on n CPUs under the rule of 2.6.23-rc1, a task moves if and only if 1024/n + FUZZ >= 512.
#[test]
fn law_02_the_threshold_of_the_fuzz() {
    let policy = rules("2_6_23_RC1");
    for cpus in 2..=16 {
        for fuzz in [0, 32, 170, 171, 255, 256, 341, 448, 511, 512, 1024] {
            let given = [("tasks", cpus + 1), ("sched_load_scale_fuzz", fuzz)];
            let found = look(&policy, &cpus.to_string(), &given);
            // From 1024 on the difference test of the small branch is met as well: 1024 + FUZZ >= 2048.
            let moves = 1024 / cpus + fuzz >= 512;
            assert_eq!(found.get("moves") == 1, moves, "{cpus} CPUs, FUZZ {fuzz}");
        }
    }
}

/// Law 3: the averages of the load after one tick, and that a rising one arrives.
#[test]
fn law_03_averages_of_the_load() {
    let (down, up) = (rules("2_6_23"), rules("2_6_24"));
    let at = |rules: &Policy, ticks: u64, from: u64, load: u64| {
        let given = [("start_load", from), ("fed_load", load), ("ticks", ticks)];
        let found = look(rules, "1", &given);
        [0, 1, 2].map(|i| found.at("averages", i))
    };
    assert_eq!(at(&down, 1, 0, 1024), [1024, 512, 256]);
    assert_eq!(
        at(&up, 1, 0, 1024),
        [1024, 512, 256],
        "rounding up by 1/2 and 3/4 adds nothing here"
    );
    assert_eq!(at(&up, 200, 0, 1023), [1023, 1023, 1023]);
    assert!(at(&down, 200, 0, 1023)[2] < 1023, "2.6.23 rounds down and never arrives");
    assert_eq!(at(&up, 200, 1024, 0), [0, 0, 0]);
}

/// Law 4: source_load <= load <= target_load at every index, whatever the averages.
#[test]
fn law_04_guesses_low_and_high() {
    let policy = rules("2_6_24");
    for (from, load) in [(0, 1024), (1024, 0), (3072, 2048), (88_761, 15), (15, 88_761), (7, 7)] {
        let given = [("start_load", from), ("fed_load", load), ("ticks", 20)];
        assert_eq!(look(&policy, "1", &given).get("outside"), 0, "from {from} to {load}");
    }
}

/// Law 11: a task whose half weight exceeds imbalance + FUZZ stays: nice -5 (3121) needs imbalance + FUZZ >= 1560.
#[test]
fn law_11_a_heavy_task_needs_a_large_imbalance() {
    let policy = rules("2_6_23");
    for (fuzz, left, refused) in
        [(1024, 535, 1), (1024, 536, 0), (512, 1047, 1), (512, 1048, 0), (32, 256, 1), (0, 1560, 0)]
    {
        let given = [("try_weight", 3121), ("try_left", left), ("sched_load_scale_fuzz", fuzz)];
        let found = look(&policy, "1", &given);
        assert_eq!(found.get("refused"), refused, "{left} left, FUZZ {fuzz}");
    }
    let given = [("try_weight", 128), ("try_left", 127)];
    assert_eq!(
        look(&rules("2_6_22"), "1", &given).get("refused"),
        1,
        "2.6.22 counts the whole weight"
    );
}

/// No CPU takes tasks from a CPU within 125 % of its own load: 5 tasks against 4 are 125 %, 6 against 4 are more.
#[test]
fn loads_within_the_percentage_are_even() {
    let policy = rules("2_6_24");
    assert_eq!(hogs(&policy, 9, 2).get("verdict"), NOT_BUSIER);
    assert_eq!(hogs(&policy, 7, 2).get("moves"), 1, "4 against 3 are 133 %");
}

/// The domains of three machines: spans of CPU 5 by level, 0 where a level has nothing to balance.
#[test]
fn domains_follow_the_topology() {
    let policy = rules("2_6_24");
    let spans = |topology: &str| {
        let found = look(&policy, topology, &[]);
        [0, 1, 2, 3].map(|level| found.at("spans", level * 64 + 5))
    };
    assert_eq!(spans("8"), [0, 8, 0, 0]);
    assert_eq!(spans("8x1x1,nodes=1"), [0, 0, 8, 0]);
    assert_eq!(spans("2x4x2"), [2, 8, 0, 16]);
    assert_eq!(spans("4x2x2,nodes=2"), [2, 4, 8, 16]);
}
