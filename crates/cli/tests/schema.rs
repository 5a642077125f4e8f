//! What is printed as JSON follows the schema that is printed; a file of another version is refused in words.

use crate::support::{Files, fairground, refusal, success};
use serde_json::{Value, json};

const RECORDING: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../experiments/recordings/mixed-2cpu-whole.perf-sched.txt.gz"
);

fn result_schema() -> Value {
    serde_json::from_str(&success(&["schema", "result"])).expect("a schema is JSON")
}

#[test]
fn the_results_of_every_command_follow_the_schema() {
    let validator = jsonschema::validator_for(&result_schema()).expect("it is a JSON Schema");
    let files = Files::new();
    let cut = files.path("cut.txt").display().to_string();
    success(&["run", "slice:4", "--cpus", "1", "--duration", "1s", "--quiet", "--trace", &cut]);
    let commands: [&[&str]; 14] = [
        &["run", "hogs:2", "--duration", "100ms", "--all", "--interval", "50ms"],
        &["run", "slice:2", "--per", "task", "--sched", "rfs", "--duration", "100ms"],
        &["compare", "hogs:3", "--sched", "cfs,rfs", "--duration", "100ms"],
        &["analyze", RECORDING],
        &["diagnose", &cut],
        &["replay", RECORDING, "--sched", "cfs", "--duration", "100ms"],
        &["contention", "critical:8", "--cpus", "2", "--duration", "1s"],
        &["reproduce"],
        &["sched", "list"],
        &["sched", "show", "cfs", "--cost"],
        &["workload", "list"],
        &["kernels", "list"],
        &["schema"],
        &["doctor", "simulate"],
    ];
    for command in commands {
        let output = fairground(&[command, &["--format", "json", "--quiet"]].concat());
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let said = String::from_utf8_lossy(&output.stderr);
        let document: Value = serde_json::from_str(&text)
            .unwrap_or_else(|e| panic!("{command:?} printed no JSON: {e}: {text} {said}"));
        let wrong: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(wrong.is_empty(), "{command:?}: {wrong:?}");
        let tables = document["tables"].as_array().expect("tables");
        assert!(tables.iter().any(|table| table["rows"] != json!([])), "{command:?} is empty");
    }
}

#[test]
fn the_schema_refuses_what_is_no_result() {
    let validator = jsonschema::validator_for(&result_schema()).expect("it is a JSON Schema");
    let right: Value =
        serde_json::from_str(&success(&["schema", "--format", "json"])).expect("JSON");
    assert!(validator.is_valid(&right));
    let changed = |change: fn(&mut Value)| {
        let mut document = right.clone();
        change(&mut document);
        document
    };
    type Fault = fn(&mut Value);
    let faults: [(&str, Fault); 5] = [
        ("another version", |d| d["schema_version"] = json!(3)),
        ("another format", |d| d["schema"] = json!("other")),
        ("no tables", |d| drop(d.as_object_mut().map(|o| o.remove("tables")))),
        ("a truth value as a cell", |d| d["tables"][0]["rows"][0][0] = json!(true)),
        ("a unit that is a number", |d| d["tables"][0]["columns"][0]["unit"] = json!(7)),
    ];
    for (fault, change) in faults {
        assert!(!validator.is_valid(&changed(change)), "{fault} follows the schema");
    }
}

#[test]
fn every_key_of_the_schema_says_what_it_is() {
    fn check(schema: &Value) -> usize {
        let mut seen = 0;
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (key, property) in properties {
                assert!(property.get("description").is_some(), "`{key}` is not described");
                seen += 1;
            }
        }
        match schema {
            Value::Object(map) => seen + map.values().map(check).sum::<usize>(),
            Value::Array(list) => seen + list.iter().map(check).sum::<usize>(),
            _ => seen,
        }
    }
    assert!(check(&result_schema()) >= 18);
}

#[test]
fn a_file_of_another_version_is_refused_in_words() {
    let files = Files::new();
    let newer =
        |name: &str, text: &str| files.write(name, text.replace("format = 1", "format = 2"));
    let workload = success(&["workload", "show", "hogs:2"]);
    assert!(workload.contains("format = 1"), "{workload}");
    let said = refusal(&["run", &newer("w.toml", &workload)]);
    assert!(said.contains("w.toml") && said.contains("format 2"), "{said}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/slice-2009.toml");
    let experiment = std::fs::read_to_string(path).expect("the experiment");
    // What that version has more is no misspelt key.
    let experiment = experiment.replace("format = 1", "format = 1\nkey_of_another_version = true");
    let said = refusal(&["reproduce", &newer("e.toml", &experiment)]);
    assert!(said.contains("e.toml") && said.contains("format = 2"), "{said}");
    let topology = newer("t.toml", "format = 1\n[[socket]]\ncount = 4\n");
    let said = refusal(&["run", "hogs:2", "--topology", &topology]);
    assert!(said.contains("t.toml") && said.contains("2"), "{said}");
}

#[test]
fn the_formats_are_listed_with_their_versions_and_pages() {
    let listed: Value =
        serde_json::from_str(&success(&["schema", "--format", "json"])).expect("JSON");
    let rows = listed["tables"][0]["rows"].as_array().expect("rows");
    assert!(rows.len() >= 4);
    for row in rows {
        let page = row[4].as_str().expect("a page");
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
        assert!(path.is_file(), "{row}: there is no {page}");
        assert!(row[1].as_i64().is_some_and(|version| version >= 1), "{row}");
    }
    assert_eq!(fairground(&["schema", "nothing"]).status.code(), Some(2));
}

#[test]
fn a_result_has_the_spec_from_which_the_run_can_be_made_again() {
    let run = ["run", "hogs:2", "--cpus", "1", "--sched", "rfs", "--set", "bonus_ns=0"];
    let rest = ["--duration", "100ms", "--format", "json", "--quiet"];
    let result: Value = serde_json::from_str(&success(&[&run[..], &rest].concat())).expect("JSON");
    let words = json!({
        "workload": "hogs:2", "sched": ["rfs"], "set": ["bonus_ns=0"], "cpus": 1,
        "duration": "100ms",
    });
    assert_eq!(result["specs"], json!([{ "name": "hogs:2 under rfs", "words": words }]));
    let schema = serde_json::from_str(&success(&["schema", "run"])).expect("a schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("it is a JSON Schema");
    assert!(validator.is_valid(&words), "{words}");
    for wrong in [json!({ "cpu": 1 }), json!({ "cpus": -1 }), json!({ "engine": "jet" })] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
    assert_eq!(schema["properties"]["hz"]["targets"], json!(["sim"]));
}
