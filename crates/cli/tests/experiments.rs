//! Experiments: those that come with fairground, and the format of sweeps.

use std::process::Command;

use fairground_testing::unavailable;

use crate::support::{Files, fairground, refusal, release, success};

#[test]
fn every_experiment_is_listed_under_the_name_of_its_file() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    let listed = success(&["reproduce", "--format", "markdown"]);
    let mut found = 0;
    for file in std::fs::read_dir(folder).expect("experiments/ exists").flatten() {
        let path = file.path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(listed.contains(&format!("| {} |", name.replace('_', "\\_"))), "{name}\n{listed}");
        let text = std::fs::read_to_string(&path).expect("a readable file");
        assert!(text.contains(&format!("\nname = \"{name}\"\n")), "{name} calls itself otherwise");
        found += 1;
    }
    assert!(found >= 2, "{found} experiments");
}

const SWEEP: &str = r#"format = 1
name = "sweep"
title = "Two rings"
source = "nowhere"
about = "For a test."

[defaults]
cpus = 1
hz = 250
costs = "modern"
duration = "20ms"

[[point]]
name = "2p"
workload = "lat_ctx:2"

[[point]]
name = "4p"
workload = "lat_ctx:4"

[[sweep]]
name = "here"
sched = "fifo"

[[published]]
name = "there"
source = "a mail"
metric = "report.ring_switch"
values = { "2p" = "0.5..0.75" }

[[matrix]]
title = "A switch"
metric = "report.ring_switch"
columns = ["there", "here"]

[[claim]]
say = "as fast as there"
run = "here 2p"
metric = "report.ring_switch"
within = "1.5..3.0"
of = "there 2p"
"#;

#[test]
fn a_sweep_runs_at_every_point() {
    let files = Files::new();
    let file = files.write("sweep.toml", SWEEP);
    let text = success(&["reproduce", &file, "--quiet", "--format", "markdown"]);
    let row = |point: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("| {point} |")));
        line.unwrap_or_else(|| panic!("no row {point} in:\n{text}")).to_owned()
    };
    assert!(row("2p").contains("| 0.50–0.75 | 1."), "{text}");
    assert!(row("4p").contains("| not measured | 1."), "{text}");
    assert!(row("agrees").contains("here 2p"), "{text}");
    let own = "title = \"A switch\"\nmetric = \"report.ring_switch\"";
    let text = SWEEP.replace(own, "title = \"A switch\"").replace(
        "workload = \"lat_ctx",
        "metric = \"run.cpus_of_none\"\nlabel = \"a row\"\ndecimals = 0\nworkload = \"lat_ctx",
    );
    let file = files.write("own.toml", text);
    let text = success(&["reproduce", &file, "--quiet", "--format", "markdown"]);
    let rows = text.lines().filter(|line| line.starts_with("| a row | not measured |")).count();
    assert_eq!(rows, 2, "each point has its own metric and label\n{text}");
}

#[test]
fn the_verdict_comes_first_and_all_fits_a_screen() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairground"));
    command.args(["reproduce", "slice-2009", "--quiet"]).env("COLUMNS", "80");
    let output = command.output().expect("the program");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
    assert!(lines.len() <= 48, "{} lines\n{text}", lines.len());
    assert_eq!(lines[1], "8 of 8 claims agree.", "{text}");
    assert_eq!(lines[3], "What must hold", "{text}");
    // One row for each column of the file, published beside measured.
    let heads = lines.iter().filter(|line| line.contains("own figure")).count();
    assert_eq!(heads, 1, "the table is in one piece\n{text}");
    assert_eq!(lines.iter().filter(|line| line.starts_with(" published, o")).count(), 2, "{text}");
    let wide = success(&["reproduce", "slice-2009", "--quiet", "--verbose"]);
    for part in ["How to read utime", "Linux kernel mailing list", "covers the start"] {
        assert!(!text.contains(part) && wide.contains(part), "{part}\n{wide}");
    }
}

#[test]
fn a_claim_that_does_not_hold_is_named_on_the_first_lines() {
    let files = Files::new();
    let wrong = SWEEP.replace("within = \"1.5..3.0\"", "within = \"0.5..0.6\"");
    let both = format!(
        "{SWEEP}\n[[claim]]\nsay = \"fast\"\nrun = [\"here 2p\", \"here 4p\"]\n\
                        metric = \"report.ring_switch\"\nwithin = \"0.5..9.0\"\n"
    );
    let file = files.write("wrong.toml", wrong);
    let output = fairground(&["reproduce", &file, "--quiet"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1..3], ["0 of 1 claims agree.", "disagrees: as fast as there"], "{text}");
    let text = success(&["reproduce", &files.write("both.toml", &both), "--quiet"]);
    assert!(text.lines().nth(1) == Some("2 of 2 claims agree."), "{text}");
    let odd = both.replace(
        "within = \"0.5..9.0\"",
        "within = \"0.5..9.0\"\nof = [\"there 2p\", \"there 2p\", \"there 2p\"]",
    );
    let said = refusal(&["reproduce", &files.write("odd.toml", odd)]);
    assert!(said.contains("the claim `fast` has 2 in `run` and 3 in `of`"), "{said}");
}

#[test]
fn what_is_not_there_is_said() {
    let files = Files::new();
    let says = |from: &str, to: &str, parts: &[&str]| {
        let said = refusal(&["reproduce", &files.write("sweep.toml", SWEEP.replace(from, to))]);
        for part in parts {
            assert!(said.contains(part), "`{part}` is missing from:\n{said}");
        }
    };
    says("\"there\", \"here\"", "\"there\", \"hier\"", &["`hier`", "`here`"]);
    says("{ \"2p\" =", "{ \"3p\" =", &["no point `3p`", "`2p`"]);
    says("run = \"here 2p\"", "run = \"here 3p\"", &["`here 3p`", "did you mean `here 2p`?"]);
    let unknown = ["sweep.toml:", "[sweep] speed", "did you mean `seed`?", "`sched`", "docs/"];
    says("sched = \"fifo\"", "sched = \"fifo\"\nspeed = 3", &unknown);
    let wrong = ["sweep.toml:", "[sweep] cpus: invalid type", "u32"];
    says("sched = \"fifo\"", "sched = \"fifo\"\ncpus = \"two\"", &wrong);
    let full = ["run `here 2p`", "the trace is full: ", "--max-events"];
    says("sched = \"fifo\"", "sched = \"fifo\"\nmax_events = 10", &full);
    let bound = ["run `here 2p`", "--idle-bound: "];
    says("sched = \"fifo\"", "sched = \"fifo\"\ncheck = true\nidle_bound = \"soon\"", &bound);
    let own = "title = \"A switch\"\nmetric = \"report.ring_switch\"";
    says(own, "title = \"A switch\"", &["neither", "`A switch`", "`2p`", "`metric`"]);
    says(
        "workload = \"lat_ctx:4\"",
        "workload = \"lat_ctx:4\"\nsize = 2",
        &["line 20", "size", "workload"],
    );
    let fifo = |more: &str| format!("sched = \"fifo\"\n{more}");
    let twice = fifo("starts = [\"1ms\", \"2ms\", \"1ms\"]");
    says("sched = \"fifo\"", &twice, &["`here`", "`1ms` twice"]);
    says(
        "sched = \"fifo\"",
        &fifo("hold = \"1ms\""),
        &["here 2p", "--hold applies to", "--lead-in"],
    );
    for (hold, why) in [("1001ms", "longer than 1000 ms"), ("soon", "hold: ")] {
        let held = fifo(&format!("on = \"vm:6.1\"\nhold = \"{hold}\""));
        says("sched = \"fifo\"", &held, &["here 2p", why]);
    }
    // The starts of a sweep on a real kernel hold its tasks back, and are checked as such.
    let starts = fifo("on = \"vm:6.1\"\nstarts = [\"0s\", \"2s\"]");
    says("sched = \"fifo\"", &starts, &["here 2p, start 2s", "hold: ", "1000 ms"]);
}

const TOP: &str = r#"
format = 1
name = "top"
title = "Three hogs on two CPUs"
source = "a mail"
about = "About."
[[run]]
name = "stuck"
workload = "hogs:3"
sched = "cfs_2_6_23@2.6.23-rc1"
cpus = 2
hz = 1000
costs = "zero"
duration = "5s"
set = { trace_balance = true, sched_load_scale_fuzz = 0, rule_small_imbalance = "SMALL_LPT" }
at = ["2s:sched_load_scale_fuzz=2048"]
[[given]]
name = "a mail"
source = "somewhere"
top = """
PID USER PR NI VIRT RES SHR S %CPU %MEM TIME+ COMMAND
7084 mingo 20 0 1576 248 196 R 67 0.0 0:50.13 loop
7083 mingo 20 0 1576 244 196 R 66 0.0 10:48.86 loop
"""
[[top]]
title = "Who got what"
columns = ["a mail", "stuck"]
[[table]]
title = "Lines"
columns = ["stuck", "a mail"]
rows = [
  { metric = "printed_before.balance small-no-gain", label = "before", decimals = 0 },
  { metric = "printed_after.balance small-no-gain", label = "after", decimals = 0 },
]
[[claim]]
say = "One of them has a CPU to itself for two seconds at least."
run = "stuck"
metric = "hog.share_3"
within = "66..100"
"#;

#[test]
fn a_table_of_tasks_shows_given_lines_beside_measured_ones() {
    let files = Files::new();
    let file = files.write("top.toml", TOP);
    let text = success(&["reproduce", &file, "--quiet", "--format", "markdown"]);
    let heading = "| PID | USER | PR | NI | VIRT | RES | SHR | S | %CPU | %MEM | TIME+ | COMMAND |";
    let given = "| 7084 | mingo | 20 | 0 | 1576 | 248 | 196 | R | 67 | 0.0 | 0:50.13 | loop |";
    for part in ["Who got what: a mail", "Who got what: stuck", heading, given, "10:48.86"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let own = text.lines().find(|line| line.starts_with("| 1000 | - | 20 | 0 | - | - | - | R |"));
    assert!(own.is_some_and(|line| line.ends_with("| hog |")), "{text}");
    let lines = success(&["reproduce", &file, "--quiet"]);
    let given = "7084 mingo 20  0 1576 248 196 R   67  0.0  0:50.13 loop\n";
    assert!(lines.contains(given), "as top prints them\n{lines}");
    assert!(lines.find(given) < lines.find("Lines"), "first\n{lines}");
    assert!(!text.contains("it printed"), "lines that are counted are not listed\n{text}");
    let row = |label: &str| {
        let line = text.lines().find(|l| l.starts_with(&format!("| {label} "))).expect(label);
        line.split('|').map(str::trim).map(str::to_owned).collect::<Vec<_>>()
    };
    let before: u32 = row("before")[2].parse().expect("a count");
    assert!(before > 3, "stuck for two seconds\n{text}");
    assert_eq!(row("after")[2], "0", "never is a count\n{text}");
    assert_eq!(row("after")[3], "not measured", "a run without work has no count\n{text}");
    let bad = files.write("bad.toml", TOP.replace("0:50.13", "50s"));
    assert!(
        refusal(&["reproduce", &bad]).contains("R 67 0.0 50s loop` is no line of top: PID USER")
    );
}

const REAL: &str = r#"format = 1
name = "real"
title = "A ring on a real kernel"
source = "nowhere"
about = "For a test."

[defaults]
cpus = 1
hz = 250
costs = "modern"
duration = "100ms"

[[point]]
name = "2p"
workload = "lat_ctx:2"

[[point]]
name = "4p"
workload = "lat_ctx:4"

[[sweep]]
name = "simulated"
sched = "fifo"

[[sweep]]
name = "real"
on = "vm:7.2"
record = false
sched = "fifo"
points = ["2p"]

[[matrix]]
title = "Time"
metric = "report.ring_switch"
columns = ["simulated"]

[[matrix]]
title = "Instructions"
metric = "report.ring_switch_instructions"
columns = ["real"]
decimals = 0

[[matrix]]
title = "Switches"
metric = "report.ring_switches"
columns = ["real"]

[[claim]]
say = "thousands"
run = "real 2p"
metric = "report.ring_switch_instructions"
within = "1000..20000"
"#;

/// The cells of the rows whose first one is `label`.
fn rows(text: &str, label: &str) -> Vec<String> {
    let rows = text.lines().filter(|line| line.starts_with(&format!("| {label} |")));
    rows.map(|row| row.split('|').nth(2).unwrap_or_default().trim().to_owned()).collect()
}

/// The exit code and the tables of an experiment where there is no kernel to boot.
fn reproduced_without_kernels(binary: &str, experiment: &str) -> (Option<i32>, String) {
    let files = Files::new();
    let output = std::process::Command::new(binary)
        .args(["reproduce", experiment, "--quiet", "--format", "markdown"])
        .env("FAIRGROUND_CACHE", files.path("no-cache"))
        .env_remove("FAIRGROUND_SEED")
        .output()
        .expect("the binary starts");
    (output.status.code(), String::from_utf8(output.stdout).expect("stdout is UTF-8"))
}

#[test]
fn without_the_kernel_its_figures_are_not_measured_and_the_rest_is() {
    let files = Files::new();
    let file = files.write("real.toml", REAL);
    let (code, text) = reproduced_without_kernels(env!("CARGO_BIN_EXE_fairground"), &file);
    assert_eq!(code, Some(0), "{text}");
    let two = rows(&text, "2p");
    assert!(two[0].parse::<f64>().is_ok(), "the simulation was made\n{text}");
    assert_eq!(two[1..], ["not measured", "not measured"], "{text}");
    assert_eq!(rows(&text, "4p").len(), 1, "no row where a matrix has no run\n{text}");
    assert!(text.contains("real 2p: not measured: "), "and why\n{text}");
    assert!(text.contains("kernels fetch"), "and what helps\n{text}");
    assert_eq!(rows(&text, "not measured"), ["thousands"], "the claim\n{text}");
}

#[test]
fn the_simulated_machine_alone_needs_no_kernel_and_says_what_it_left_out() {
    let files = Files::new();
    let file = files.write("real.toml", REAL);
    let output = crate::support::fairground(&["reproduce", &file, "--on", "sim"]);
    let [text, said] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert_eq!(output.status.code(), Some(0), "{text}{said}");
    assert!(text.contains("left out by --on, and not measured: 1 run on vm:7.2"), "{text}");
    assert!(said.contains("in the simulated machine (") && !said.contains("kernel"), "{said}");
    let real_alone = REAL.replace(
        "[[sweep]]\nname = \"simulated\"",
        "[[sweep]]\nname = \"simulated\"\non = \"vm:6.1\"",
    );
    let file = files.write("alone.toml", real_alone);
    assert!(refusal(&["reproduce", &file, "--on", "sim"]).contains("no run is on `sim`"));
}

/// Those that take minutes with their virtual machines (blocks marked `slow` in docs/explanation/gallery.md): what
/// they claim of simulations.
#[test]
fn what_long_experiments_claim_of_simulations_holds() {
    let Some(release) = release() else { return };
    for name in ["cfs-devel-2007", "linux-2.6", "prt-2006", "rfs-2007"] {
        let (code, text) = reproduced_without_kernels(&release.display().to_string(), name);
        let broken: Vec<&str> = text.lines().filter(|l| l.starts_with("| disagrees")).collect();
        assert_eq!((code, broken), (Some(0), vec![]), "{name}");
        assert!(text.contains("| agrees |"), "{name}\n{text}");
    }
}

#[test]
fn a_switch_on_a_real_kernel_is_counted_in_its_instructions() {
    let files = Files::new();
    let file = files.write("real.toml", REAL);
    let text = success(&["reproduce", &file, "--quiet", "--format", "markdown"]);
    if text.contains("real 2p: not measured: ") {
        return unavailable("kernel", "no virtual machine with Linux 7.2; run `make kernels`");
    }
    let two = rows(&text, "2p");
    let instructions: f64 = two[1].parse().expect("a figure");
    assert!(instructions > 1000.0, "{text}");
    assert_eq!(two[2], "not measured", "switches are not counted\n{text}");
    assert_eq!(rows(&text, "agrees"), ["thousands"], "{text}");
    let again = success(&["reproduce", &file, "--quiet", "--format", "markdown"]);
    assert_eq!(text, again, "the same instructions each time");
}

const LOCKS: &str = r#"format = 1
name = "locks"
title = "Two kinds of locks"
source = "nowhere"
about = "For a test."

[defaults]
cpus = 2
hz = 1000
sched = "fifo"
costs = "modern"
duration = "20ms"
locks = "spin"

[[run]]
name = "stream"
workload = "netperf-stream"
locks = ["spin", "rt-2006"]

[[run]]
name = "alone"
workload = "critical:1"
against = "stream, spin"

[[point]]
name = "4 tasks"
workload = "critical:4"

[[sweep]]
name = "tasks"
locks = ["spin", "rt"]

[[table]]
title = "Both"
columns = ["stream, spin", "stream, rt-2006", "alone"]
rows = [
  { metric = "run.marks.rate", label = "rate" },
  { metric = "change.run.marks.rate", label = "change" },
  { metric = "lock.waiting", label = "waiting" },
]

[[matrix]]
title = "Waits"
metric = "lock.waits"
columns = ["tasks, spin", "tasks, rt"]
decimals = 0
"#;

#[test]
fn a_list_of_locks_makes_a_run_for_each_and_tells_the_change() {
    let files = Files::new();
    let file = files.write("locks.toml", LOCKS);
    let text = success(&["reproduce", &file, "--quiet", "--format", "markdown"]);
    let row = |label: &str| {
        let line = text.lines().find(|l| l.starts_with(&format!("| {label} |"))).expect(label);
        let cells = line.split('|').skip(2).map(|cell| cell.trim().parse::<f64>().ok());
        cells.take_while(|_| true).collect::<Vec<_>>()
    };
    let (rate, change, waiting) = (row("rate"), row("change"), row("waiting"));
    assert_eq!(change[0], None, "the first of a list stands beside nothing\n{text}");
    let [spin, rt] = [rate[0], rate[1]].map(|rate| rate.expect("a figure"));
    let percent = change[1].expect("a figure");
    assert!((percent - (rt / spin - 1.0) * 100.0).abs() < 0.01 && percent < 0.0, "{text}");
    assert!(change[2].is_some() && waiting.iter().take(3).all(Option::is_some), "{text}");
    assert!(row("4 tasks").iter().take(2).all(Option::is_some), "{text}");
    assert!(text.contains("run stream, rt-2006: ") && text.contains("locks rt-2006"), "{text}");
}

#[test]
fn locks_that_are_not_there_are_an_error_with_file_and_line() {
    let files = Files::new();
    let says = |from: &str, to: &str, parts: &[&str]| {
        let said = refusal(&["reproduce", &files.write("locks.toml", LOCKS.replacen(from, to, 1))]);
        for part in parts {
            assert!(said.contains(part), "`{part}` is missing from:\n{said}");
        }
    };
    let list = "[\"spin\", \"rt-2006\"]";
    says(list, "\"rt2006\"", &["locks.toml", "line 18", "`rt2006`", "did you mean `rt-2006`?"]);
    says(list, "[\"spin\", \"sleep\"]", &["locks.toml", "line 18", "`sleep`", "`rt`"]);
    says(list, "[\"rt\", \"rt\"]", &["line 18", "`rt` stands twice"]);
    says(list, "[]", &["line 18", "names none"]);
    says(list, "3", &["line 18", "`spin`, `rt` or `rt-2006`"]);
    says("locks = \"spin\"", "locks = \"spun\"", &["line 13", "`spun`"]);
    says("locks = [\"spin\", \"rt\"]", "locks = \"mutex\"", &["line 31", "`mutex`"]);
    says("locks = \"spin\"", "locks = [\"spin\", \"rt\"]", &["[defaults]", "one"]);
    says(
        "against = \"stream, spin\"",
        "against = \"stream\"",
        &["no run or given figures `stream`"],
    );
}
