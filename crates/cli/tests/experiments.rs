//! Experiments: those that come with fairground, and the format of sweeps.

mod support;

use support::{Files, refusal, success};

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
    says("run = \"here 2p\"", "run = \"here 3p\"", &["`here 3p`", "did you mean `here 4p`?"]);
    says("sched = \"fifo\"", "sched = \"fifo\"\nspeed = 3", &["speed", "sched"]);
    says(
        "workload = \"lat_ctx:4\"",
        "workload = \"lat_ctx:4\"\nsize = 2",
        &["line 20", "size", "workload"],
    );
}
