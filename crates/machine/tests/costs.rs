//! Holds `docs/reference/costs.md` against the table of costs. `FAIRGROUND_DOCS=write` writes its tables.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use fairground_machine::CostModel;

const FROM: &str = "<!-- costs: written by a test from the table of costs -->\n";
const TO: &str = "<!-- end of costs -->\n";

/// What each cost is, and its value in each preset.
fn tables() -> String {
    let mut text =
        "| cost | unit | what it is | `modern` | source |\n|---|---|---|---|---|\n".to_owned();
    for cost in CostModel::descriptions() {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} |",
            cost.name, cost.unit, cost.about, cost.default, cost.source
        );
    }
    let presets: Vec<(&str, CostModel)> = CostModel::presets()
        .map(|(name, _)| (name, CostModel::preset(name).expect("it is listed")))
        .collect();
    text.push_str("\n| cost |");
    presets.iter().for_each(|(name, _)| text.push_str(&format!(" `{name}` |")));
    text.push_str(&format!("\n|---|{}\n", "---|".repeat(presets.len())));
    let columns: Vec<_> = presets.iter().map(|(_, model)| model.parameters()).collect();
    for (row, cost) in CostModel::descriptions().enumerate() {
        let values = columns.iter().map(|column| format!(" {} |", column[row].value));
        let _ = writeln!(text, "| `{}` |{}", cost.name, values.collect::<String>());
    }
    text
}

#[test]
fn the_page_of_costs_follows_from_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/costs.md");
    let page = fs::read_to_string(&path).expect("docs/reference/costs.md");
    let (before, rest) = page.split_once(FROM).expect("the mark before the tables");
    let (_, after) = rest.split_once(TO).expect("the mark behind the tables");
    let right = format!("{before}{FROM}\n{}\n{TO}{after}", tables());
    if page == right {
        return;
    }
    if env::var("FAIRGROUND_DOCS").is_ok_and(|word| word == "write") {
        return fs::write(&path, right).expect("the page can be written");
    }
    panic!(
        "docs/reference/costs.md is out of date: FAIRGROUND_DOCS=write cargo test -p fairground-machine costs"
    );
}
