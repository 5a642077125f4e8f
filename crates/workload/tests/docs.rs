//! The examples in the pages about workloads are valid, and their tables complete.

use fairground_workload::{Op, from_spec, library, parse, to_toml};

const FIRST_FILE: &str = include_str!("../../../docs/howto/write-a-workload.md");
const FORMAT: &str = include_str!("../../../docs/reference/workloads.md");
const OPERATIONS: &str = include_str!("../../../docs/reference/operations.md");
const LIBRARY: &str = include_str!("../../../docs/reference/library.md");

/// The fenced blocks of a language in a page.
fn blocks(page: &'static str, language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let parts = page.split(fence.as_str()).skip(1);
    parts.map(|part| part.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn every_file_is_good() {
    let files = [FIRST_FILE, FORMAT, OPERATIONS].map(|page| blocks(page, "toml")).concat();
    assert_eq!(files.len(), 3);
    for text in files {
        let workload = parse("docs.toml", text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(parse("again.toml", &to_toml(&workload)), Ok(workload));
    }
}

#[test]
fn the_example_of_every_operation_has_them_all() {
    let text = blocks(OPERATIONS, "toml")[0];
    let table = OPERATIONS.split("| operation | meaning |").nth(1).unwrap_or_default();
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    for word in Op::WORDS.iter().chain(&["sem_wait", "sem_post"]) {
        let forms = [format!("{{ {word} ="), format!("\"{word}\"")];
        let has = |text: &str| forms.iter().any(|form| text.contains(form));
        assert!(rows.iter().any(|row| has(row)), "`{word}` has no row");
        assert!(has(text), "`{word}` is not in the example");
    }
}

#[test]
fn every_specification_is_good() {
    let table = LIBRARY.split("| specification | what it is |").nth(1).unwrap_or_default();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let specs: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    for spec in &specs {
        assert!(from_spec(spec).is_ok(), "{spec}");
    }
    for entry in library::entries() {
        assert!(specs.iter().any(|spec| spec.starts_with(entry.name)), "{}", entry.name);
    }
}

#[test]
fn the_messages_are_those_that_are_printed() {
    let unknown_key = "format = 1\nname = \"hogs\"\nduration = \"1s\"\n\n[[task]]\nname = \"hog\"\n\
                       cuont = 3\nprogram = [{ run = \"forever\" }]\n";
    let cycle = "format = 1\nname = \"cycle\"\nduration = \"1s\"\n\n[[queue]]\nname = \"a\"\n\n\
                 [[queue]]\nname = \"b\"\n\n[[task]]\nname = \"left\"\n\
                 program = [{ receive = \"b\" }, { send = \"a\" }]\n\n[[task]]\nname = \"right\"\n\
                 program = [{ receive = \"a\" }, { send = \"b\" }]\n";
    let printed = [("hogs.toml", unknown_key), ("cycle.toml", cycle)]
        .map(|(file, text)| format!("{}\n", parse(file, text).expect_err("it is bad on purpose")));
    assert_eq!(blocks(FORMAT, "text"), printed);
}
