//! One document in every format, as golden text, and its JSON read back through types of the test's own.

use fairground_report::{
    Cell, Column, Document, Layout, Level, SCHEMA, SCHEMA_VERSION, Table, TextOptions, TimeUnit,
    Verdict,
};
use serde::Deserialize;

fn tasks() -> Table {
    let mut table = Table::new(
        "tasks",
        "Tasks",
        [
            Column::text("task"),
            Column::number("switches"),
            Column::duration("wait", TimeUnit::Ms),
            Column::duration("wakeup_latency_p99", TimeUnit::Us),
            Column::percent("share"),
            Column::number_in("policy", "insns"),
        ],
    );
    table.push([
        Cell::text("hog/0"),
        Cell::count(12_345),
        Cell::duration_ns(1_048_576),
        Cell::NotMeasured,
        Cell::percent(69.665, 2),
        Cell::float(103.25, 1),
    ]);
    table.push([
        Cell::text("a,\"b\"|<c>"),
        Cell::Int(0),
        Cell::Duration { ns: 0.5 },
        Cell::duration_ns(0),
        Cell::percent(-0.001, 2),
        Cell::float(f64::NAN, 1),
    ]);
    table.note("Waits that the recording cut off are not in these figures: 2.");
    table
}

fn comparison() -> Table {
    let columns = [Column::text("metric"), Column::mixed("cfs"), Column::mixed("rfs")];
    let mut table =
        Table::new("comparison", "Side by side", columns).laid_out(Layout::Metrics, "machine");
    table.push([Cell::text("switches"), Cell::count(7), Cell::NotMeasured]);
    table.push([Cell::text("slice.mean"), Cell::duration_ns(1_048_576), Cell::duration_ns(950)]);
    table.push([Cell::text("cpu_share"), Cell::percent(50.0, 1), Cell::percent(12.5, 1)]);
    table.push([
        Cell::text("switches.rate"),
        Cell::quantity(812.5, 1, "1/s"),
        Cell::quantity(2e9, 0, "1/s"),
    ]);
    table
}

fn document() -> Document {
    let mut document = Document::new("hogs: cfs against rfs");
    document.set("run", "seed", Cell::count(42));
    document.set("run", "workload", Cell::text("hogs"));
    document.set_usual("run", "hz", Cell::count(250));
    document.set("cost model", "switch", Cell::duration_ns(1_000));
    document.set("cost model", "cache refill", Cell::NotMeasured);
    document.tables.push(tasks());
    document.tables.push(comparison());
    document.summary.push("cfs leaves before the end.".into());
    document.about.push("Hogs compute without end.".into());
    document.notes.push("The recorder lost 3 events; make its buffer larger.".into());
    let verdict = |level, text: &str, detail: &str| Verdict {
        run: "cfs".to_owned(),
        level,
        text: text.to_owned(),
        details: vec![detail.to_owned()],
    };
    document.add_verdict(verdict(Level::Warning, "1 task never ran: hog/0", "since its fork"));
    document.add_verdict(verdict(Level::Failure, "the scheduler left", "left.bpf.c:13: exit()"));
    document
}

#[test]
fn text() {
    insta::assert_snapshot!(document().to_text(&TextOptions::plain()));
}

#[test]
fn narrow_text_wraps_within_its_width() {
    let options = TextOptions { width: Some(60), ..TextOptions::plain() };
    let text = tasks().to_text(&options);
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
}

#[test]
fn markdown() {
    insta::assert_snapshot!(document().to_markdown());
}

#[test]
fn json() {
    insta::assert_snapshot!(document().to_json());
}

#[test]
fn csv_of_a_table() {
    insta::assert_snapshot!(format!("{}\n{}", tasks().to_csv(), comparison().to_csv()));
}

#[test]
fn csv_of_a_document() {
    insta::assert_snapshot!(document().to_csv());
}

#[test]
fn what_is_usual_is_said_where_all_is_asked_for() {
    let short = document().to_text(&TextOptions::plain());
    let long = document().to_text(&TextOptions { verbose: true, ..TextOptions::plain() });
    assert!(!short.contains("hz 250") && short.contains("seed 42"), "{short}");
    assert!(long.contains("run: seed 42, workload hogs, hz 250\n"), "{long}");
    assert!(!short.contains("Hogs compute") && long.contains("Hogs compute"), "{long}");
    let details = Document { tables: vec![tasks().as_detail()], ..Document::default() };
    assert!(!details.to_text(&TextOptions::plain()).contains("hog/0"));
    assert!(details.to_json().contains("hog/0") && details.to_markdown().contains("hog/0"));
}

#[test]
fn runs_stand_in_rows_where_they_do_not_fit_beside_each_other() {
    let columns = (0..12).map(|n| Column::mixed(format!("a run called {n}")));
    let columns = [Column::text("")].into_iter().chain(columns);
    let mut table = Table::new("figures", "Figures", columns).laid_out(Layout::Metrics, "figures");
    for metric in ["slice", "utime"] {
        let figures = (0..12).map(|n| Cell::float(f64::from(n), 1));
        table.push([Cell::text(metric)].into_iter().chain(figures));
    }
    let text = table.to_text(&TextOptions { width: Some(80), ..TextOptions::plain() });
    assert!(text.contains("   slice   utime\n"), "one heading\n{text}");
    assert!(text.contains("\n a run called 3      3.0     3.0\n"), "{text}");
    let wide = table.to_text(&TextOptions::plain());
    assert!(wide.contains("a run called 3   a run called 4"), "{wide}");
}

#[test]
fn columns_of_details_are_for_those_who_ask() {
    let columns = [Column::text("claim"), Column::text("run").as_detail()];
    let mut table = Table::new("claims", "", columns);
    table.push([Cell::text("fast"), Cell::text("sim")]);
    let narrow = TextOptions { width: Some(80), ..TextOptions::plain() };
    assert!(!table.to_text(&narrow).contains("sim"));
    assert!(table.to_text(&TextOptions { verbose: true, ..narrow }).contains("sim"));
    assert!(table.to_text(&TextOptions::plain()).contains("sim"), "where there is room for it");
}

#[test]
fn the_worst_comes_first_and_in_colour() {
    let text = document().to_text(&TextOptions::plain());
    assert!(text.starts_with("cfs: the scheduler left\n  left.bpf.c:13: exit()\n"), "{text}");
    let styled = document().to_text(&TextOptions { styled: true, ..TextOptions::plain() });
    assert!(styled.starts_with("\x1b[1;31mcfs: the scheduler left\x1b[0m\n"), "{styled}");
}

#[test]
fn style_only_where_it_is_wanted() {
    let mut document = document();
    document.tables[0].rows[0][0] = Cell::text("evil\u{1b}[31m");
    let plain = document.to_text(&TextOptions::plain());
    assert!(!plain.contains('\u{1b}'), "a name's escape sequence came through");
    let styled = document.to_text(&TextOptions { styled: true, ..TextOptions::plain() });
    assert!(styled.contains("\u{1b}[1m"));
    assert!(!styled.contains("\u{1b}[31m"), "a name's escape sequence came through");
}

#[test]
fn what_was_not_measured_is_never_a_zero() {
    let mut table = Table::new("t", "", [Column::number("x"), Column::duration("y", TimeUnit::Ns)]);
    table.push([Cell::NotMeasured, Cell::known(None, Cell::duration_ns)]);
    assert!(!table.to_text(&TextOptions::plain()).contains('0'));
    assert_eq!(table.to_csv(), "x,y_ns\n,\n");
    let json = Document { tables: vec![table], ..Document::default() }.to_json();
    let json: Json = serde_json::from_str(&json).expect("the declared form");
    assert!(json.tables[0].rows[0].iter().all(|cell| matches!(cell, JsonCell::Null(()))));
}

#[test]
#[should_panic(expected = "one cell per column")]
fn a_row_of_another_length_is_refused() {
    tasks().push([Cell::text("short")]);
}

// The published form of the JSON, declared a second time so that it cannot change unseen.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    schema: String,
    schema_version: u32,
    title: String,
    verdicts: Vec<JsonVerdict>,
    summary: Vec<String>,
    sections: Vec<JsonSection>,
    tables: Vec<JsonTable>,
    notes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonVerdict {
    run: String,
    level: String,
    text: String,
    details: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonSection {
    name: String,
    entries: Vec<JsonEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonEntry {
    name: String,
    value: JsonCell,
    unit: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonTable {
    id: String,
    title: String,
    columns: Vec<JsonColumn>,
    rows: Vec<Vec<JsonCell>>,
    notes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonColumn {
    name: String,
    unit: Option<String>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(untagged)]
enum JsonCell {
    Null(()),
    Int(i64),
    Float(f64),
    Text(String),
    Own { value: Box<JsonCell>, unit: Option<String> },
}

#[test]
fn the_json_has_the_declared_form() {
    let json: Json = serde_json::from_str(&document().to_json()).expect("the declared form");
    assert_eq!((json.schema.as_str(), json.schema_version), (SCHEMA, SCHEMA_VERSION));
    assert_eq!(SCHEMA_VERSION, 2, "another version needs another declaration in this test");
    assert_eq!((json.title.as_str(), json.notes.len()), ("hogs: cfs against rfs", 2));
    assert_eq!(json.summary, ["cfs leaves before the end."]);
    let verdict = &json.verdicts[0];
    assert_eq!((verdict.run.as_str(), verdict.level.as_str()), ("cfs", "failure"));
    assert_eq!((verdict.text.as_str(), verdict.details.len()), ("the scheduler left", 1));
    let cost = &json.sections[1];
    assert_eq!((cost.name.as_str(), cost.entries[0].name.as_str()), ("cost model", "switch"));
    assert_eq!(cost.entries[0].value, JsonCell::Int(1000));
    assert_eq!(cost.entries[0].unit.as_deref(), Some("ns"));
    let tasks = &json.tables[0];
    assert_eq!((tasks.id.as_str(), tasks.title.as_str(), tasks.notes.len()), ("tasks", "Tasks", 1));
    let units: Vec<_> = tasks.columns.iter().map(|column| column.unit.as_deref()).collect();
    assert_eq!(units, [None, None, Some("ns"), Some("ns"), Some("percent"), Some("insns")]);
    assert_eq!(tasks.columns[2].name, "wait");
    assert_eq!(tasks.rows[0][2], JsonCell::Int(1_048_576));
    assert_eq!(tasks.rows[0][3], JsonCell::Null(()));
    assert_eq!(tasks.rows[0][4], JsonCell::Float(69.665));
    let own = JsonCell::Own { value: Box::new(JsonCell::Int(950)), unit: Some("ns".into()) };
    assert_eq!(json.tables[1].rows[1][2], own);
    assert_eq!(json.tables[1].rows[0][0], JsonCell::Text("switches".into()));
}
