//! A file of rt-app, wherever a workload is named.

use crate::support::{Files, fairground, refusal, success};

/// Two threads; the second one has events beside its phases, which [`text`] takes out.
const TEXT: &str = r#"{
  "tasks" : {
    "hog" : { "instance" : 2, "run" : 100000 },
    "tick" : {
      "run" : 20,
      "timer" : { "ref" : "unique", "period" : 1000 },
      "phases" : { "a" : { "cpus" : [ 0 ], "run" : 20 }, "b" : { "run" : 10, "sleep" : 900 } }
    }
  },
  "global" : { "duration" : 1, "logdir" : "./" }
}"#;

fn text() -> String {
    TEXT.replace(
        "      \"run\" : 20,\n      \"timer\" : { \"ref\" : \"unique\", \"period\" : 1000 },\n",
        "",
    )
}

#[test]
fn it_runs_and_what_has_no_meaning_is_said() {
    let files = Files::new();
    let file = files.write("mixed.json", text());
    let output =
        fairground(&["run", &file, "--cpus", "2", "--duration", "200ms", "--format", "csv"]);
    let (table, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(table.contains("hog") && table.contains("tick"), "{table}");
    assert!(said.contains("mixed.json:8:43: `logdir` has no meaning here"), "{said}");
    let quiet = fairground(&["run", &file, "--cpus", "2", "--duration", "20ms", "--quiet"]);
    assert!(quiet.stderr.is_empty(), "{}", String::from_utf8_lossy(&quiet.stderr));
}

/// Threads that wait for ever are told, and the others run to the end.
#[test]
fn a_thread_that_rt_app_hangs_in_keeps_no_other_from_running() {
    let files = Files::new();
    let text = r#"{ "tasks" : {
        "alone" : { "suspend" : "", "run" : 10 },
        "twice" : { "lock" : "m", "run" : 10, "lock" : "m" },
        "hog" : { "run" : 1000 } }, "global" : { "duration" : 1 } }"#;
    let file = files.write("hangs.json", text);
    let output = fairground(&["run", &file, "--format", "csv"]);
    let (table, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    let place = "hangs.json:2:21: no event resumes or signals `alone`";
    assert!(said.contains(place), "{said}");
    assert!(table.contains(",group,hog,cpu_share,99.99"), "{table}");
}

#[test]
fn it_is_shown_checked_and_converted() {
    let files = Files::new();
    let file = files.write("mixed.json", text());
    let shown = success(&["workload", "show", &file]);
    assert!(shown.starts_with("# ") && shown.contains("\nname = \"mixed\""), "{shown}");
    assert!(success(&["workload", "check", &file]).contains("note: "));
    let toml = success(&["workload", "convert", &file, "--to", "toml"]);
    let back = files.write("mixed.toml", &toml);
    let json = success(&["workload", "convert", &back, "--to", "rt-app"]);
    let others = Files::new();
    let again = others.write("mixed.json", &json);
    assert_eq!(success(&["workload", "convert", &again, "--to", "toml"]), toml);
}

#[test]
fn what_rt_app_has_no_words_for_is_refused() {
    let said = refusal(&["workload", "convert", "pipe", "--to", "rt-app"]);
    assert!(
        said.contains("rt-app has no pipes") && said.contains("program operation 1."),
        "{said}"
    );
}

#[test]
fn a_bad_file_is_refused_with_its_line() {
    let files = Files::new();
    let file = files.write("bad.json", TEXT);
    let said = refusal(&["run", &file]);
    assert!(said.contains("bad.json:5:7") && said.contains("never executed"), "{said}");
}

/// A file may name more CPUs than the machine of a plain run has.
#[test]
fn the_cpus_that_it_needs_are_told() {
    let files = Files::new();
    let text = r#"{ "tasks": { "p": { "cpus": [2], "loop": 3, "phases": {
        "a": { "cpus": [0], "run": 1500 }, "b": { "cpus": [1], "run": 1500 }, "c": { "run": 1500 } } } },
        "global": { "duration": 1 } }"#;
    let file = files.write("cpus.json", text);
    let refused = refusal(&["run", &file]);
    assert!(refused.contains("--cpus 3"), "{refused}");
    let checked = success(&["workload", "check", &file]);
    assert!(checked.contains("--cpus 3"), "{checked}");
    success(&["run", &file, "--cpus", "3", "--format", "csv"]);
}
