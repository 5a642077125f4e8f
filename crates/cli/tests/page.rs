//! Pages with charts, looked at in a real browser: what is pointed at, clicked and read is what was measured.
//!
//! They need Chromium.

use std::path::PathBuf;

use crate::support::browser::Browser;
use crate::support::{Files, fairground, success};
use serde_json::Value;

/// Lets the page draw.
pub(crate) const DRAWN: &str = "new Promise((done) => setTimeout(done, 400))";
const COMPARE: [&str; 9] =
    ["compare", "hogs:3", "--cpus", "2", "--sched", "o1,cfs", "--duration", "2s", "--all"];

/// The page of a run, and what was printed beside it.
pub(crate) fn page_of(files: &Files, arguments: &[&str]) -> (PathBuf, Value) {
    let page = files.path("page.html");
    let html = page.to_str().expect("a path in UTF-8");
    let json = success(&[arguments, &["--html", html, "--format", "json", "--quiet"]].concat());
    (page, serde_json::from_str(&json).expect("JSON"))
}

/// A picture of the page, as its script knows it.
pub(crate) fn picture(chart: &str) -> String {
    format!("fairgroundPictures.find((p) => p.chart.id === '{chart}')")
}

/// Brings a chart into view and gives a place on its axes as a point of the window.
fn point(seen: &mut Browser, chart: &str, at: &str) -> (f64, f64) {
    seen.read(&format!("document.getElementById('{chart}').scrollIntoView({{ block: 'center' }})"));
    let place = seen.read(&format!(
        "(() => {{ const p = {}, r = p.place.getBoundingClientRect(); \
         const [x, y] = p.instance.convertToPixel({{ xAxisIndex: 0, yAxisIndex: 0 }}, {at}); \
         return [r.left + x, r.top + y]; }})()",
        picture(chart)
    ));
    (place[0].as_f64().expect("x"), place[1].as_f64().expect("y"))
}

/// What a chart says of a place on its axes that the mouse points at.
fn hover(seen: &mut Browser, chart: &str, at: &str) -> String {
    let place = point(seen, chart, at);
    seen.point((place.0 - 2.0, place.1));
    seen.point(place);
    seen.read(DRAWN);
    let texts = format!(
        "[...document.getElementById('{chart}').children].map((e) => e.innerText).filter((t) => t).join('|')"
    );
    seen.read(&texts).as_str().unwrap_or_default().to_owned()
}

#[test]
fn what_is_pointed_at_is_what_was_measured() {
    let files = Files::new();
    let (page, result) = page_of(&files, &COMPARE);
    let Some(mut seen) = Browser::open(&page) else { return };

    let said = hover(&mut seen, "shares", "[0, 20]");
    let share = seen.number(&format!("{}.shape.series[0].values[0]", picture("shares")));
    assert!(["hog/0", "o1", "cfs", "fair share"].iter().all(|name| said.contains(name)), "{said}");
    let shown = format!("{share:.2}");
    let shown = format!("o1: {} %", shown.trim_end_matches('0').trim_end_matches('.'));
    assert!(said.contains(&shown), "{shown} is not in: {said}");

    // The bars are those of the comparison: a group's share is the sum of its tasks'.
    let sum = format!("{}.shape.series[1].values.reduce((a, b) => a + b)", picture("shares"));
    let sum = seen.number(&sum);
    let shares = result["tables"][0]["rows"].as_array().expect("rows");
    let row = shares.iter().find(|row| row[1] == "cpu_share").expect("a row of shares");
    let group = row[3]["value"].as_f64().expect("the share under cfs");
    assert!((sum - group).abs() < 1e-6, "{sum} and {group}");
}

#[test]
fn the_first_screen_has_the_answer_and_its_table_can_be_copied() {
    let files = Files::new();
    let (page, _) = page_of(&files, &COMPARE);
    let Some(mut seen) = Browser::open(&page) else { return };
    let answers = seen.read("document.querySelector('.summary').innerText");
    let answers = answers.as_str().unwrap_or_default();
    assert!(answers.contains("fair share: least under "), "{answers}");
    // Of tasks: the group of the three hogs has its share, whichever of them has it.
    assert!(answers.contains("hog/"), "{answers}");
    let bottom = "document.getElementById('overview').getBoundingClientRect().bottom";
    assert!(seen.number(bottom) < 1000.0, "answers and overview are on the first screen");

    let button = "document.querySelector('#overview button.copy')";
    let place = seen.read(&format!(
        "(() => {{ const r = {button}.getBoundingClientRect(); return [r.x + 5, r.y + 5]; }})()"
    ));
    seen.click((place[0].as_f64().expect("x"), place[1].as_f64().expect("y")));
    seen.read(DRAWN);
    assert_eq!(seen.read(&format!("{button}.innerText")), "Copied");
}

#[test]
fn charts_are_named_for_screen_readers_and_nothing_is_fetched() {
    let files = Files::new();
    let (page, _) = page_of(&files, &COMPARE);
    let Some(mut seen) = Browser::open(&page) else { return };
    let names = seen.read(
        "[...document.querySelectorAll('.drawing[role]')]\
         .map((d) => document.getElementById(d.getAttribute('aria-labelledby')).innerText)",
    );
    let names: Vec<&str> =
        names.as_array().expect("names").iter().filter_map(Value::as_str).collect();
    assert!(names.contains(&"Who got the CPU") && names.contains(&"Who ran where"), "{names:?}");
    assert_eq!(seen.number("document.querySelectorAll('.drawing').length"), names.len() as f64);
    let refused = seen.read(
        "(() => { const seen = new ReportingObserver(() => {}, { types: ['csp-violation'], buffered: true }); \
         seen.observe(); return seen.takeRecords().map((r) => r.body.blockedURL + r.body.effectiveDirective); })()",
    );
    assert_eq!(refused, serde_json::json!([]), "the page keeps its own policy");
    let fetched = seen.read("performance.getEntriesByType('resource').map((r) => r.name)");
    assert_eq!(fetched, serde_json::json!([]), "a page needs nothing but itself");
    // What others would add to it does not run, and nothing can be asked for.
    seen.read(
        "(() => { const added = document.createElement('script'); added.textContent = 'window.added = 1'; \
         document.body.append(added); })()",
    );
    assert_eq!(seen.read("window.added === undefined"), true);
    assert_eq!(seen.read("fetch('data:,x').then(() => true, () => false)"), false);
}

#[test]
fn an_experiment_has_a_page_with_its_claims() {
    let files = Files::new();
    let (page, result) = page_of(&files, &["reproduce", "slice-2009"]);
    let tables = result["tables"].as_array().expect("tables");
    let claims = tables.iter().find(|table| table["id"] == "claims").expect("claims");
    let count = claims["rows"].as_array().expect("rows").len();
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(
        html.contains(&format!("{count} of {count} claims agree.")),
        "the first screen counts {count} claims"
    );
    let Some(mut seen) = Browser::open(&page) else { return };
    // Published beside measured, and another figure is picked.
    let said = hover(&mut seen, "figures-0", "[0, 0.1]");
    assert!(said.contains("published or recorded") && said.contains("published, on"), "{said}");
    let name = format!("{}.shape.axis.name", picture("figures-0"));
    let before = seen.read(&name);
    seen.read(
        "(() => { const pick = document.getElementById('pick-figures-0'); pick.value = '1'; \
         pick.dispatchEvent(new Event('change')); })()",
    );
    assert_ne!(seen.read(&name), before);
}

#[test]
fn waits_are_pointed_at() {
    let files = Files::new();
    let (page, result) =
        page_of(&files, &["contention", "netperf-stream", "--locks", "rt", "--duration", "100ms"]);
    let tables = result["tables"].as_array().expect("tables");
    let sites = tables.iter().find(|table| table["id"] == "sites").expect("sites");
    assert_eq!(sites["rows"][0][9], "socket-0", "the lock of the socket is waited for longest");
    let total_ns = sites["rows"][0][2].as_f64().expect("ns");
    let Some(mut seen) = Browser::open(&page) else { return };
    let said = hover(&mut seen, "waits", "[1e5, 0]");
    assert!(said.contains("socket-0 (lock rt)") && said.contains("holder runs: "), "{said}");
    let parts =
        format!("{}.shape.series.reduce((sum, part) => sum + part.values[0], 0)", picture("waits"));
    assert_eq!(seen.number(&parts), total_ns, "the parts are the whole");
}

#[test]
fn a_printed_page_has_charts_as_wide_as_the_paper() {
    let files = Files::new();
    let (page, _) = page_of(&files, &COMPARE);
    let Some(mut seen) = Browser::open(&page) else { return };
    let width = format!("{}.instance.getWidth()", picture("shares"));
    assert!(seen.number(&width) > 1000.0, "as wide as the window");
    seen.read("window.dispatchEvent(new Event('beforeprint'))");
    assert!(seen.number(&width) < 750.0, "on paper");
    assert_eq!(seen.read("[...document.querySelectorAll('details')].every((d) => d.open)"), true);
    seen.read("window.dispatchEvent(new Event('afterprint'))");
    assert!(seen.number(&width) > 1000.0, "and back");
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let output =
        fairground(&["run", "hogs:1", "--duration", "10ms", "--html", "/nowhere/page.html"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/page.html"));
}
