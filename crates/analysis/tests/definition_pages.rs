//! Every public metric has its definition page, and every page a metric.

use fairground_analysis::metric::{GROUP, MACHINE, PLAYBACK_PROGRAM, RING_PROGRAM, SLICE_PROGRAM};
use std::collections::BTreeSet;

const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics/");

fn metrics() -> BTreeSet<String> {
    let machine = MACHINE.iter().map(|metric| metric.name);
    let group = GROUP.iter().map(|metric| metric.name);
    let slice = SLICE_PROGRAM.iter().map(|metric| metric.name);
    let ring = RING_PROGRAM.iter().map(|metric| metric.name);
    let playback = PLAYBACK_PROGRAM.iter().map(|metric| metric.name);
    machine.chain(group).chain(slice).chain(ring).chain(playback).map(str::to_owned).collect()
}

fn page(name: &str) -> String {
    let path = format!("{PAGES}{name}.md");
    std::fs::read_to_string(&path).unwrap_or_else(|_| {
        panic!("the metric {name} has no definition page: write docs/reference/metrics/{name}.md")
    })
}

#[test]
fn every_metric_has_its_page_with_every_part() {
    for name in metrics() {
        let page = page(&name);
        assert!(page.starts_with(&format!("# {name}\n")), "{name}.md begins with its name");
        for part in [
            "Figures",
            "Unit",
            "Starts with",
            "Ends with",
            "Window",
            "Censoring",
            "Error bound",
            "Cannot see",
            "In the kernel and in perf",
        ] {
            assert!(page.contains(&format!("| {part} | ")), "{name}.md lacks \"{part}\"");
        }
    }
}

#[test]
fn every_figure_is_named_on_its_page() {
    let figures = MACHINE.iter().map(|metric| (metric.name, metric.figure));
    let figures = figures.chain(GROUP.iter().map(|metric| (metric.name, metric.figure)));
    for (name, figure) in figures.filter(|(_, figure)| !figure.is_empty()) {
        let named = [format!(".{figure}`"), format!("{name}.{figure}`")];
        let page = page(name);
        assert!(named.iter().any(|text| page.contains(text)), "{name}.md lacks \"{figure}\"");
    }
}

#[test]
fn every_page_has_its_metric_and_stands_in_the_index() {
    let metrics = metrics();
    let index = page("README");
    let files = std::fs::read_dir(PAGES).expect("docs/reference/metrics is part of the repository");
    let mut pages = BTreeSet::new();
    for file in files {
        let name = file.expect("a readable folder").file_name().to_string_lossy().into_owned();
        let name = name.trim_end_matches(".md").to_owned();
        if name != "README" {
            assert!(index.contains(&format!("[{name}]({name}.md)")), "the index lacks {name}");
            pages.insert(name);
        }
    }
    assert_eq!(pages, metrics);
}

#[test]
fn keys_are_unique() {
    let machine: BTreeSet<String> = MACHINE.iter().map(|metric| metric.key()).collect();
    let group: BTreeSet<String> = GROUP.iter().map(|metric| metric.key()).collect();
    assert_eq!((machine.len(), group.len()), (MACHINE.len(), GROUP.len()));
}
