//! `follow`, as a user calls it.

use serde_json::Value;

use crate::support::{Files, refusal, success};

/// The kinds of decisions, how many were compared, and how many differ.
fn agreement(said: &str) -> Vec<(String, u64, u64)> {
    let document: Value = serde_json::from_str(said).expect("JSON");
    let tables = document["tables"].as_array().expect("tables");
    let table = tables.iter().find(|table| table["id"] == "agreement").expect("the agreement");
    let columns = table["columns"].as_array().expect("columns");
    let place = |name: &str| columns.iter().position(|column| column["name"] == name);
    let places = ["decision", "compared", "different"].map(|name| place(name).expect("a column"));
    let rows = table["rows"].as_array().expect("rows");
    rows.iter()
        .map(|row| {
            let [name, compared, different] = places.map(|place| &row[place]);
            let count = |cell: &Value| cell.as_u64().expect("a count");
            (name.as_str().expect("a name").to_owned(), count(compared), count(different))
        })
        .collect()
}

#[test]
fn a_scheduler_follows_its_own_recording_and_another_one() {
    let files = Files::new();
    let recording = files.path("own.txt").display().to_string();
    let words = ["run", "hackbench:1", "--sched", "eevdf@6.18", "--cpus", "2", "--duration", "5ms"];
    success(&[&words[..], &["--callbacks", "--trace", &recording]].concat());
    let own = success(&["follow", &recording, "--sched", "eevdf@6.18", "--format", "json"]);
    let own = agreement(&own);
    assert!(own.iter().all(|(_, _, different)| *different == 0), "{own:?}");
    let picks = own.iter().find(|(name, ..)| name == "pick").expect("picks");
    assert!(picks.1 > 100, "{own:?}");
    let other = success(&["follow", &recording, "--sched", "o1", "--format", "json"]);
    assert!(agreement(&other).iter().any(|(_, _, different)| *different > 0), "{other}");
    let table = success(&["follow", &recording, "--sched", "o1", "--wide"]);
    for part in ["First difference", "decided by", "Candidates", "o1.bpf.c:"] {
        assert!(table.contains(part), "no {part} in:\n{table}");
    }
}

/// The verdict and the share that is decided head the screen; what the stamps leave open is no difference.
#[test]
fn the_first_lines_say_how_many_differ_and_how_many_are_decided() {
    let files = Files::new();
    let recording = files.path("bare.txt").display().to_string();
    let load = "hackbench:1 + hogs:2";
    let words = ["run", load, "--sched", "eevdf", "--cpus", "2", "--duration", "5ms"];
    success(&[&words[..], &["--trace", &recording]].concat());
    let said = success(&["follow", &recording, "--sched", "eevdf"]);
    let first: Vec<&str> = said.lines().take(5).collect();
    assert!(first[0].starts_with("the recording decides "), "{said}");
    assert!(first[2].contains("--callbacks"), "{said}");
    assert!(first.iter().any(|line| line.contains(": no decision of ")), "{said}");
    let json = success(&["follow", &recording, "--sched", "eevdf", "--format", "json"]);
    assert!(agreement(&json).iter().all(|(_, _, different)| *different == 0), "{json}");
    assert!(first[..3].iter().all(|line| line.chars().count() <= 80), "{said}");
}

#[test]
fn what_cannot_be_followed_is_refused_with_a_remedy() {
    let files = Files::new();
    let path = files.path("wakings.txt");
    let line = "a-10 [000] d.h.. 1.0: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000\n";
    std::fs::write(&path, line.repeat(3)).expect("a file");
    let path = path.display().to_string();
    let said = refusal(&["follow", &path, "--sched", "fifo"]);
    assert!(said.contains("sched_switch") && said.contains("help: "), "{said}");
}
