//! Experiments at points that are drawn at random.

use crate::support::{Files, fairground, refusal, success};

/// Both sides are simulated, so that they can be the same.
const SAME: &str = r#"format = 1
name = "same"
title = "Two simulations"
source = "nowhere"
about = "For a test."

[defaults]
hz = 250
costs = "modern"
duration = "300ms"

[[tolerance]]
metric = "cpu_share"
label = "share of a CPU (%)"
percent = 5

[[tolerance]]
metric = "voluntary_switches"
label = "voluntary switches"
percent = 5
samples = ["voluntary_switches", 20]

[[sweep]]
name = "here"
sched = "fifo"

[[sweep]]
name = "there"
sched = "fifo"

[[agreement]]
title = "here and there"
real = "here"
simulated = "there"

[drawn]
agreements = ["here and there"]
starts = ["0s"]
"#;

/// What the program printed on stdout, for a run whose verdict is negative.
fn disagrees(arguments: &[&str]) -> String {
    let output = fairground(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("stdout is UTF-8")
}

/// The first row of a table in Markdown that begins so, cell by cell.
fn row<'t>(text: &'t str, begins: &str) -> Vec<&'t str> {
    let line = text.lines().find(|line| line.starts_with(begins));
    let line = line.unwrap_or_else(|| panic!("no row `{begins}` in:\n{text}"));
    line.split('|').map(str::trim).collect()
}

#[test]
fn equal_sides_agree_in_every_cell_and_unequal_ones_are_listed_by_seed_and_index() {
    let files = Files::new();
    let file = files.write("same.toml", SAME);
    let asked = ["reproduce", &file, "--seed", "5", "--points", "6", "--quiet", "--format"];
    let text = success(&[&asked[..], &["markdown"]].concat());
    let all = row(&text, "| here and there | all |");
    assert!(all[3].parse::<u32>().is_ok_and(|cells| cells > 20), "{text}");
    assert_eq!(all[3..7], [all[3], all[3], "0", "0"], "{text}");
    for cpus in [1, 2, 4] {
        row(&text, &format!("| here and there | {cpus} |"));
        // A scheduler that follows its own recording makes the recorded picks.
        let picks = row(&text, &format!("| here and there | {cpus} | pick |"));
        assert!(picks[4].parse::<u32>().is_ok_and(|compared| compared > 100), "{text}");
        assert_eq!((picks[4], picks[7]), (picks[5], "0"), "{text}");
    }

    let text =
        SAME.replace("name = \"there\"\nsched = \"fifo\"", "name = \"there\"\nsched = \"rfs\"");
    let file = files.write("unequal.toml", text);
    let asked = ["reproduce", &file, "--seed", "5", "--points", "6", "--quiet", "--format"];
    let text = disagrees(&[&asked[..], &["markdown"]].concat());
    let outside = row(&text, "| drawn:5.");
    assert_eq!(outside[3], "here and there", "{text}");
    assert!(text.contains("`fairground run drawn:5.0 --sched rfs --cpus 1 "), "{text}");
}

#[test]
fn a_kernel_that_is_not_here_is_not_measured() {
    let files = Files::new();
    let real = "name = \"here\"\non = \"vm:no-such-kernel\"\nsched = \"kernel\"";
    let text = SAME.replace("name = \"here\"\nsched = \"fifo\"", real);
    let file = files.write("real.toml", text);
    let asked = ["reproduce", &file, "--seed", "5", "--points", "1", "--quiet", "--format"];
    let text = disagrees(&[&asked[..], &["markdown"]].concat());
    let all = row(&text, "| here and there | all |");
    assert_eq!((all[3], all[8]), ("0", "not measured"), "{text}");
    assert!(text.contains("no-such-kernel"), "{text}");
}

#[test]
fn a_report_keeps_the_history_of_its_seeds() {
    let files = Files::new();
    let file = files.write("same.toml", SAME);
    let page = files.path("page.md").to_string_lossy().into_owned();
    let take = |seed: &str| {
        success(&[
            "reproduce",
            &file,
            "--seed",
            seed,
            "--points",
            "2",
            "--quiet",
            "--report",
            &page,
        ]);
        std::fs::read_to_string(&page).expect("the page")
    };
    let first = take("5");
    let second = take("6");
    assert!(second.contains("--seed 6 --points 2"), "{second}");
    let rows = |text: &str| -> Vec<String> {
        let (_, history) = text.split_once("<!-- history -->").expect("a history");
        let rows = history.lines().filter(|line| line.starts_with("| 2"));
        rows.map(str::to_owned).collect()
    };
    assert_eq!((rows(&first).len(), rows(&second).len()), (1, 2), "{second}");
    assert_eq!(rows(&second)[1], rows(&first)[0]);

    let other = files.write("other.md", "# Another page\n");
    let said = refusal(&["reproduce", &file, "--seed", "5", "--quiet", "--report", &other]);
    assert!(said.contains("other.md: not a page that `--report` wrote"), "{said}");
    assert_eq!(std::fs::read_to_string(&other).expect("it is there"), "# Another page\n");
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let files = Files::new();
    let refuses = |text: &str, more: &[&str], parts: &[&str]| {
        let file = files.write("same.toml", text);
        let said = refusal(&[&["reproduce", &file][..], more].concat());
        for part in parts {
            assert!(said.contains(part), "`{part}` is missing from:\n{said}");
        }
    };
    let seed = ["--seed", "1"];
    let (without, _) = SAME.split_once("[drawn]").expect("a table");
    refuses(without, &seed, &["compares nothing at drawn points", "`[drawn]`"]);
    let unknown =
        SAME.replace("agreements = [\"here and there\"]", "agreements = [\"here and then\"]");
    refuses(&unknown, &seed, &["no agreement `here and then`", "did you mean `here and there`?"]);
    refuses(SAME, &["--points", "3"], &["--seed"]);
    refuses(SAME, &["--seed", "1", "--points", "0"], &["--points", "1..=10000"]);
}
