//! Timelines of pages, looked at in a real browser at the widths of a telephone, a tablet and a large screen.
//!
//! They need Chromium.

use crate::page::{DRAWN, page_of, picture};
use crate::support::Files;
use crate::support::browser::Browser;

const WIDTHS: [u32; 3] = [390, 800, 1600];
const ONE: [&str; 7] =
    ["run", "hogs:3 + sleepers:2,run=2ms,sleep=8ms", "--cpus", "2", "--duration", "2s", "--all"];
const TWO: [&str; 8] =
    ["compare", "hogs:3", "--cpus", "2", "--sched", "o1,cfs", "--duration", "2s"];

/// A place on the axes: a moment and a row that is shown.
fn place(seen: &mut Browser, ns: f64, row: u32) -> (f64, f64) {
    seen.read("document.getElementById('timeline').scrollIntoView({ block: 'center' })");
    let place = seen.read(&format!(
        "(() => {{ const p = {}, r = p.canvas.getBoundingClientRect(), g = p.grid; \
         return [r.left + g.x + ({ns} - p.window[0]) / p.span * g.width, r.top + g.y + 20 * {row} + 10]; }})()",
        picture("timeline")
    ));
    (place[0].as_f64().expect("x"), place[1].as_f64().expect("y"))
}

/// What is said below the rows.
fn said(seen: &mut Browser) -> String {
    seen.read(DRAWN);
    let details = seen.read(&format!("{}.details.innerText", picture("timeline")));
    details.as_str().expect("a text").to_owned()
}

fn window(seen: &mut Browser) -> (f64, f64) {
    seen.read(DRAWN);
    let window = seen.read(&format!("{}.window", picture("timeline")));
    (window[0].as_f64().expect("ns"), window[1].as_f64().expect("ns"))
}

#[test]
fn rows_say_who_ran_who_waited_and_why() {
    let files = Files::new();
    let (page, _) = page_of(&files, &ONE);
    let Some(mut seen) = Browser::open(&page) else { return };
    let labels = seen.read(&format!("{}.labels()", picture("timeline")));
    let labels: Vec<&str> =
        labels.as_array().expect("rows").iter().filter_map(|l| l.as_str()).collect();
    assert_eq!(labels.len(), 7, "{labels:?}");
    assert_eq!(labels[..2], ["CPU 0", "CPU 1"]);
    assert!(labels[2].starts_with("hog/") && labels[6].starts_with("sleeper/"), "{labels:?}");

    let at = place(&mut seen, 1e9, 1);
    seen.point(at);
    let text = said(&mut seen);
    assert!(text.contains(" on CPU 1 from ") && text.contains(" ms"), "{text}");

    // The longest wait comes first, and says what ran meanwhile.
    seen.click(at);
    seen.key("n");
    let text = said(&mut seen);
    assert!(text.starts_with("Longest wait 1 of ") && text.contains("waits for CPU"), "{text}");
    assert!(text.contains("; there ran meanwhile: "), "{text}");
    let wait = "((p) => { const { starts, ends } = fairground.timeline.laneOf(p.pick.row); \
                return ends[p.pick.index] - starts[p.pick.index]; })";
    let first = seen.number(&format!("{wait}({})", picture("timeline")));
    seen.key("n");
    assert!(first >= seen.number(&format!("{wait}({})", picture("timeline"))));
    assert!(window(&mut seen).1 - window(&mut seen).0 < 1e9, "it is looked at closely");
}

#[test]
fn sums_of_a_selection_are_the_time_that_cpus_had() {
    let files = Files::new();
    let (page, _) = page_of(&files, &ONE);
    let Some(mut seen) = Browser::open(&page) else { return };
    let (from, to) = (place(&mut seen, 0.5e9, 2), place(&mut seen, 1.5e9, 3));
    seen.drag(from, to);
    seen.read(DRAWN);
    let selection = seen.read(&format!("{}.selection", picture("timeline")));
    let (from_ns, to_ns) = (selection[0].as_f64().expect("ns"), selection[1].as_f64().expect("ns"));
    assert!((to_ns - from_ns - 1e9).abs() < 1e7, "{from_ns} to {to_ns}");
    // Two CPUs with three hogs are never idle.
    let ran = "((p) => fairground.timeline.sums(p.shape, ...p.selection).reduce((all, s) => all + s.times[0], 0))";
    let ran = seen.number(&format!("{ran}({})", picture("timeline")));
    assert!((ran / (2.0 * (to_ns - from_ns)) - 1.0).abs() < 0.001, "{ran} ns");
    let rows = "document.querySelectorAll('.sums tbody tr').length";
    assert_eq!(seen.number(rows), 5.0);
    let text = seen.read("document.querySelector('.sums').innerText");
    let text = text.as_str().expect("a text");
    assert!(text.contains("CPU 0 100.0 %") && text.contains("sleeper/0"), "{text}");
    seen.key("f");
    assert_eq!(window(&mut seen), (from_ns, to_ns));
    seen.key("Escape");
    seen.read(DRAWN);
    assert_eq!(seen.number(rows), 0.0);
}

#[test]
fn keys_and_the_wheel_look_closer_and_the_search_finds_names_and_pids() {
    let files = Files::new();
    let (page, _) = page_of(&files, &ONE);
    let Some(mut seen) = Browser::open(&page) else { return };
    let at = place(&mut seen, 0.4e9, 0);
    seen.click(at);
    let length = window(&mut seen).1;
    for (keys, expected) in [
        (["w", "w", "w"], length / 1.6f64.powi(3)),
        (["s", "d", "ArrowLeft"], length / 1.6f64.powi(2)),
        (["a", "-", "-"], length),
    ] {
        keys.into_iter().for_each(|key| seen.key(key));
        let (from, to) = window(&mut seen);
        assert!(((to - from) / expected - 1.0).abs() < 1e-6, "{keys:?}: {from} to {to}");
        assert!(from >= 0.0 && to <= length);
    }
    seen.zoom(at, -200.0);
    let (from, to) = window(&mut seen);
    assert!(to - from < length * 0.5, "{from} to {to}");
    let moment = from + (to - from) * 0.2;
    assert!((moment - 0.4e9).abs() < 1e7, "what is pointed at stays where it is: {moment}");
    seen.key("0");
    assert_eq!(window(&mut seen), (0.0, length));
    seen.key("?");
    assert_eq!(seen.read("document.querySelector('.keys').hidden"), false);
    // A button takes the focus, and the keys stay.
    let button =
        "document.querySelector('#section-timeline .tools button').getBoundingClientRect()";
    let button =
        (seen.number(&format!("{button}.x")) + 4.0, seen.number(&format!("{button}.y")) + 4.0);
    seen.click(button);
    assert_eq!(window(&mut seen), (0.0, length), "it looks from farther, which is all");
    seen.key("w");
    let (from, to) = window(&mut seen);
    assert!(((to - from) * 1.6 / length - 1.0).abs() < 1e-6, "{from} to {to}");
    seen.key("0");

    seen.key("/");
    for (text, rows) in [("sleep", 2.0), ("1000", 1.0), ("", 7.0)] {
        seen.read(&format!(
            "((p) => {{ p.field.value = '{text}'; p.field.dispatchEvent(new Event('input')); }})({})",
            picture("timeline")
        ));
        assert_eq!(seen.number(&format!("{}.rows.length", picture("timeline"))), rows, "{text}");
    }
}

#[test]
fn two_runs_lie_one_above_the_other_and_tasks_keep_their_colours() {
    let files = Files::new();
    let (page, _) = page_of(&files, &TWO);
    let Some(mut seen) = Browser::open(&page) else { return };
    let labels = seen.read(&format!("{}.labels().join('|')", picture("timeline")));
    let labels = labels.as_str().expect("labels");
    assert!(labels.starts_with("CPU 0 · o1|CPU 1 · o1|CPU 0 · cfs|CPU 1 · cfs|hog/"), "{labels}");
    assert!(labels.contains("hog/1 [1001] · o1|hog/1 [1001] · cfs"), "{labels}");
    let colours = |run| {
        format!("fairground.timeline.colours({}.chart.drawings[{run}].shape)", picture("timeline"))
    };
    let colours = [seen.read(&colours(0)), seen.read(&colours(1))];
    assert_eq!(colours[0], colours[1]);
    let distinct: std::collections::BTreeSet<String> =
        colours[0].as_array().expect("colours").iter().map(ToString::to_string).collect();
    assert_eq!(distinct.len(), 4, "what is not known, and three hogs: {distinct:?}");

    // One of them is picked; what is shown stays.
    let at = place(&mut seen, 1e9, 0);
    seen.click(at);
    seen.key("w");
    let shown = window(&mut seen);
    seen.read(
        "(() => { const pick = document.getElementById('pick-timeline'); pick.value = '1'; \
         pick.dispatchEvent(new Event('change')); })()",
    );
    assert_eq!(window(&mut seen), shown);
    assert_eq!(seen.number(&format!("{}.rows.length", picture("timeline"))), 5.0);
}

#[test]
fn a_timeline_fits_a_telephone_a_tablet_and_a_large_screen() {
    let files = Files::new();
    let (page, _) = page_of(&files, &TWO);
    let Some(mut seen) = Browser::open(&page) else { return };
    for (width, dark) in WIDTHS.into_iter().flat_map(|width| [(width, false), (width, true)]) {
        seen.resize(width, 900, dark);
        // Sizes are looked at a moment later.
        seen.read(DRAWN);
        let wide = seen.number("document.documentElement.scrollWidth");
        assert!(wide <= f64::from(width), "{width}: the page is {wide} wide");
        let part =
            seen.number(&format!("{0}.grid.width / {0}.place.clientWidth", picture("timeline")));
        assert!(part > 0.5, "{width}: the rows have {part} of the width");
        for control in ["'.tools button'", "'.tools input'", "'.kinds span'"] {
            let out = seen.number(&format!(
                "[...document.querySelectorAll({control})].filter((e) => \
                 e.getBoundingClientRect().right > document.documentElement.clientWidth).length"
            ));
            assert_eq!(out, 0.0, "{width}: {control} beyond the edge");
        }
        // Something is drawn in the first row, on the colour of the page.
        let painted = seen.read(&format!(
            "((p) => {{ const canvas = p.canvas.querySelector('canvas'), data = canvas.getContext('2d').getImageData(p.grid.x + 5, p.grid.y + 10, 40, 1).data; \
             return data.some((byte) => byte > 0); }})({})",
            picture("timeline")
        ));
        assert_eq!(painted, true, "{width}");
        let text = format!("{}.instance.getOption().yAxis[0].axisLabel.color", picture("timeline"));
        let is_light = seen.read(&text) == "rgb(230, 233, 236)";
        assert_eq!(is_light, dark, "{width}: letters that are read on the page");
    }
}

/// How long a page of a million events takes to show its timeline, and the timeline to look closer.
#[test]
#[ignore = "a benchmark: make bench-timeline"]
fn bench_a_million_events() {
    const FRAME: &str = "new Promise((done) => requestAnimationFrame(() => { \
                         const after = new MessageChannel(); after.port1.onmessage = done; after.port2.postMessage(0); }))";
    let files = Files::new();
    let arguments =
        ["run", "sleepers:64,run=100us,sleep=400us", "--cpus", "16", "--duration", "2500ms"];
    let (page, result) = page_of(&files, &arguments);
    println!("{} bytes: {}", page.metadata().expect("the page").len(), result["title"]);
    for width in WIDTHS {
        let Some(mut seen) = Browser::open(&page) else { return };
        let first =
            seen.number("performance.getEntriesByName('first-contentful-paint')[0].startTime");
        let ready = seen.number("performance.getEntriesByName('timeline')[0].startTime");
        seen.resize(width, 1000, false);
        seen.read(DRAWN);
        let times = seen.read(&format!(
            "(async () => {{ const p = {}, times = []; p.place.scrollIntoView(); \
             for (let i = 0; i < 24; i++) {{ const begin = performance.now(); p.zoom(i % 12 < 6 ? 1.6 : 1 / 1.6); \
             await {FRAME}; times.push(performance.now() - begin); }} return times; }})()",
            picture("timeline")
        ));
        let mut times: Vec<f64> =
            times.as_array().expect("ms").iter().filter_map(|t| t.as_f64()).collect();
        times.sort_by(f64::total_cmp);
        println!(
            "{width} px: first paint {first:.0} ms, timeline {ready:.0} ms; a zoom {:.0} ms (median), {:.0} ms (longest of {})",
            times[times.len() / 2],
            times[times.len() - 1],
            times.len()
        );
    }
}
