//! Files of rt-app: reading, writing, errors.

use std::fs;
use std::path::{Path, PathBuf};

use fairground_workload::{
    RtApp, Workload, from_spec, library, parse, parse_rt_app, to_rt_app, to_toml,
};
use proptest::prelude::*;

fn files(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rt_app").join(folder);
    let entries = fs::read_dir(&folder).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).expect("UTF-8"))
        })
        .collect()
}

fn read(name: &str, text: &str) -> RtApp {
    parse_rt_app(name, text).unwrap_or_else(|error| panic!("{error}"))
}

/// Written as a file of rt-app and read again.
fn again(name: &str, workload: &Workload) -> (String, Workload) {
    let written = to_rt_app(workload).unwrap_or_else(|error| panic!("{name}: {error}"));
    let read = parse_rt_app(name, &written.text);
    (
        written.text.clone(),
        read.unwrap_or_else(|error| panic!("{error}\n{}", written.text)).workload,
    )
}

#[test]
fn what_is_right_is_read() {
    let files = files("good");
    assert_eq!(files.len(), 14);
    for (name, text) in files {
        let RtApp { workload, notes } = read(&name, &text);
        let toml = to_toml(&workload);
        assert_eq!(parse(&name, &toml), Ok(workload), "{name}: a workload like any other");
        let notes: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
        insta::assert_snapshot!(name.trim_end_matches(".json"), format!("{notes}{toml}"));
    }
}

#[test]
fn what_is_read_can_be_written_and_read_again() {
    for (name, text) in files("good") {
        let workload = read(&name, &text).workload;
        let (written, twice) = again(&name, &workload);
        assert_eq!(twice, workload, "{written}");
        assert!(no_key_twice(&written), "no key twice:\n{written}");
    }
}

/// Whether no object has a key twice, of which rt-app's own reader would keep one. Each object has an indentation of
/// its own.
fn no_key_twice(text: &str) -> bool {
    let mut seen: Vec<Vec<&str>> = vec![Vec::new()];
    text.lines().all(|line| {
        let (depth, line) = ((line.len() - line.trim_start().len()) / 2, line.trim_start());
        seen.resize(depth + 1, Vec::new());
        let Some((key, _)) = line.split_once(" : ") else { return true };
        let new = !seen[depth].contains(&key);
        seen[depth].push(key);
        new
    })
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    let files = files("bad");
    assert_eq!(files.len(), 6);
    for (name, text) in files {
        let error = parse_rt_app(&name, &text).expect_err("the file is bad on purpose");
        for diagnostic in &error.diagnostics {
            assert!(diagnostic.line > 0 && !diagnostic.help.is_empty(), "{diagnostic}");
        }
        insta::assert_snapshot!(
            format!("bad-{}", name.trim_end_matches(".json")),
            error.to_string()
        );
    }
}

/// rt-app starts such threads, and they wait for ever: a note says so, and the others run.
#[test]
fn what_rt_app_hangs_in_is_said_and_runs() {
    let files = files("hangs");
    assert_eq!(files.len(), 4);
    for (name, text) in files {
        let RtApp { workload, notes } = read(&name, &text);
        let toml = to_toml(&workload);
        assert!(toml.contains("\nhangs = true\n"), "{toml}");
        assert!(parse(&name, &toml.replace("\nhangs = true\n", "\n")).is_err(), "{toml}");
        assert_eq!(parse(&name, &toml).as_ref(), Ok(&workload), "{name}: as TOML");
        assert_eq!(again(&name, &workload).1, workload, "{name}: as rt-app");
        insta::assert_snapshot!(
            format!("hangs-{}", name.trim_end_matches(".json")),
            notes.join("\n")
        );
    }
}

#[test]
fn what_rt_app_cannot_say_is_refused_with_its_operation() {
    let toml = include_str!("rt_app/bad/unwritable.toml");
    let workload = parse("unwritable.toml", toml).unwrap_or_else(|error| panic!("{error}"));
    let error = to_rt_app(&workload).expect_err("rt-app has no pipes");
    insta::assert_snapshot!("unwritable", error.to_string());
}

/// Workloads of the library are written, or refused with a message; a written one can be read.
#[test]
fn the_library_is_written_where_that_can_be() {
    let mut written = Vec::new();
    for spec in [
        "hogs:3",
        "sleepers:4",
        "periodic:2,load=25",
        "lat_ctx:2",
        "hackbench:1",
        "slice:4",
        "yieldpair",
        "pipe",
        "schbench:2",
    ] {
        let workload = from_spec(spec).unwrap_or_else(|error| panic!("{error}"));
        match to_rt_app(&workload) {
            Ok(_) => {
                again(spec, &workload);
                written.push(spec);
            }
            Err(error) => println!("{error}"),
        }
    }
    assert_eq!(written, ["hogs:3", "sleepers:4", "periodic:2,load=25", "schbench:2"]);
    assert!(library::entries().len() > 9);
}

#[test]
fn a_hog_and_a_ticker_are_what_the_file_says() {
    let text = r#"{ "tasks": { "hog": { "instance": 8, "loop": -1, "run": 100000 },
        "tick": { "instance": 1, "loop": -1, "run": 20, "timer": { "ref": "unique", "period": 1000 } } } }"#;
    let workload = read("demo/mixed.json", text).workload;
    assert_eq!((workload.name.as_str(), workload.tasks[0].count), ("mixed", 8));
    assert_eq!((workload.timers[0].period_ns, workload.timers[0].relative), (1_000_000, true));
}

/// A truncated file is refused at each of its bytes.
#[test]
fn no_end_is_too_early() {
    for (name, text) in files("good") {
        let whole = text.trim_end();
        for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            assert!(parse_rt_app(&name, &whole[..end]).is_err(), "{name} up to byte {end}");
        }
    }
}

/// Events of a thread, as text; some of each thread's are wakened by the thread `waker`.
fn any_events() -> impl Strategy<Value = String> {
    let event = prop_oneof![
        (1_u32..5_000).prop_map(|us| format!("\"run\" : {us}")),
        (1_u32..5_000).prop_map(|us| format!("\"runtime\" : {us}")),
        (0_u32..5_000).prop_map(|us| format!("\"sleep_a\" : {us}")),
        (1_u32..3_000).prop_map(|bytes| format!("\"mem\" : {bytes}")),
        (1_u32..3_000).prop_map(|bytes| format!("\"iorun\" : {bytes}")),
        Just("\"yield\" : \"\"".to_owned()),
        (0..3, 1_u32..9).prop_map(|(lock, us)| {
            format!("\"lock\" : \"m{lock}\", \"run\" : {us}, \"unlock\" : \"m{lock}\"")
        }),
        Just("\"suspend\" : \"\"".to_owned()),
        (0..3).prop_map(|semaphore| format!("\"sem_post\" : \"s{semaphore}\"")),
        (0..2).prop_map(|condition| format!("\"signal\" : \"c{condition}\"")),
        (0..2).prop_map(|condition| format!("\"broad\" : \"c{condition}\"")),
        (
            prop_oneof!["unique[AB]?", "tick"],
            1_u32..9_000,
            prop_oneof![Just(""), Just(", \"mode\" : \"absolute\"")]
        )
            .prop_map(|(name, us, mode)| {
                format!("\"timer\" : {{ \"ref\" : \"{name}\", \"period\" : {us}{mode} }}")
            }),
    ];
    prop::collection::vec(event, 1..6)
        .prop_map(|events| format!("\"run\" : 7, {}", events.join(", ")))
}

fn any_settings() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just(String::new()),
        1 => (-20..20).prop_map(|nice| format!("\"priority\" : {nice}, ")),
        1 => (0..4).prop_map(|cpu| format!("\"cpus\" : [ {cpu}, 5 ], ")),
        1 => (-9..9, 100..9_000).prop_map(|(nice, us)| format!("\"priority\" : {nice}, \"dl-runtime\" : {us}, ")),
        1 => prop_oneof!["/", "/a", "/a/b"].prop_map(|path| format!("\"taskgroup\" : \"{path}\", ")),
    ]
}

fn any_thread() -> impl Strategy<Value = String> {
    let phase = (any_settings(), 1..4, any_events()).prop_map(|(settings, iterations, events)| {
        format!("{{ {settings}\"loop\" : {iterations}, {events} }}")
    });
    let phases = prop::collection::vec(phase, 1..4).prop_map(|phases| {
        let phases: Vec<String> = phases.iter().map(|phase| format!("\"p\" : {phase}")).collect();
        format!("\"phases\" : {{ {} }}", phases.join(", "))
    });
    let body = prop_oneof![any_events(), phases];
    let iterations = prop_oneof![
        Just(String::new()),
        (1..4).prop_map(|n| format!("\"loop\" : {n}, ")),
        Just("\"loop\" : -1, ".to_owned())
    ];
    (0..3, any_settings(), iterations, 0..3, body).prop_map(
        |(instances, settings, iterations, delay, body)| {
            let count = if instances == 0 {
                String::new()
            } else {
                format!("\"instance\" : {instances}, ")
            };
            let delay = if delay == 0 { String::new() } else { format!("\"delay\" : {delay}, ") };
            format!("{{ {count}{delay}{settings}{iterations}{body} }}")
        },
    )
}

fn any_file() -> impl Strategy<Value = String> {
    (prop::collection::vec(any_thread(), 1..4), any::<bool>(), 1..100).prop_map(|(threads, pi, seconds)| {
        let names: Vec<String> = (0..threads.len()).map(|number| format!("t{number}")).collect();
        let resumes: String = names.iter().map(|name| format!(", \"resume\" : \"{name}\"")).collect();
        let threads = threads.iter().zip(&names).map(|(thread, name)| format!("\"{name}\" : {thread}, "));
        format!(
            "{{ \"tasks\" : {{ {}\"waker\" : {{ \"sleep\" : 1000{resumes} }} }}, \"global\" : {{ \
             \"duration\" : {seconds}, \"pi_enabled\" : {pi}, \"mem_buffer_size\" : 1000, \
             \"io_device\" : \"/dev/x\" }} }}",
            threads.collect::<String>()
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn any_file_that_is_read_is_the_same_when_written(text in any_file()) {
        let workload = match parse_rt_app("any.json", &text) {
            Ok(read) => read.workload,
            Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}"))),
        };
        let (written, twice) = again("any.json", &workload);
        prop_assert_eq!(twice, workload, "{}", written);
    }

    #[test]
    fn any_text_is_answered(
        text in "(\"(tasks|run|timer|phases|loop|lock|fork|a)\"|[\\[\\]{}:,0-9 -]|\"[a-z/]{0,3}\"){0,60}",
    ) {
        let _ = parse_rt_app("any.json", &text);
    }
}
