//! The book as a whole: every page has its place, every link leads somewhere, every picture is there.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::support::pages::{Page, book, pages, read, root};

/// A path without `.` and `..`; `None` where it leads out of the repository.
fn tidy(path: &Path) -> Option<PathBuf> {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => tidy.pop().then_some(())?,
            Component::CurDir => {}
            part => tidy.push(part),
        }
    }
    Some(tidy)
}

/// Where a link of a page leads: a file of the repository and a place in it. `None`: to another site.
fn target(page: &Page, link: &str) -> Option<(Option<PathBuf>, String)> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, place) = link.split_once('#').unwrap_or((link, ""));
    let name = Path::new(&page.name);
    let path = match file {
        "" => Some(name.to_owned()),
        file => tidy(&name.parent().unwrap_or(Path::new("")).join(file)),
    };
    Some((path, place.to_owned()))
}

/// What is wrong with a link.
fn fault(page: &Page, link: &str, known: &BTreeMap<String, Page>) -> Option<String> {
    let (path, place) = target(page, link)?;
    let Some(path) = path else { return Some("leads out of the repository".to_owned()) };
    let name = path.to_string_lossy().into_owned();
    if !root().join(&path).exists() {
        return Some(format!("there is no {name}"));
    }
    if page.name.starts_with("docs/") && !name.starts_with("docs/") {
        return Some(format!("{name} is no part of the book: name it, do not link it"));
    }
    if place.is_empty() {
        return None;
    }
    let anchors = known.get(&name).map(Page::anchors).unwrap_or_default();
    (!anchors.contains(&place)).then(|| format!("{name} has no heading `{place}`"))
}

#[test]
fn every_link_leads_somewhere() {
    let known: BTreeMap<_, _> = pages().into_iter().map(|page| (page.name.clone(), page)).collect();
    let mut broken = Vec::new();
    let mut links = 0;
    for page in known.values() {
        for (line, link) in page.links() {
            links += 1;
            if let Some(fault) = fault(page, &link, &known) {
                broken.push(format!("{}:{line}: `{link}`: {fault}", page.name));
            }
        }
    }
    assert!(links > 100, "only {links} links were found");
    assert!(broken.is_empty(), "links that lead nowhere:\n  {}", broken.join("\n  "));
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let name = "docs/README.md".to_owned();
    let text =
        "# One two\n[a](#one-two) [b](#two) [c](gone.md) [d](../README.md) [e](reference/metrics/lag.md#lag)"
            .into();
    let page = Page { name: name.clone(), text };
    let lag = read("docs/reference/metrics/lag.md".to_owned());
    let known = BTreeMap::from([(name, read_again(&page)), (lag.name.clone(), lag)]);
    let faults: Vec<_> = page.links().iter().map(|(_, link)| fault(&page, link, &known)).collect();
    let wrong: Vec<_> = faults.iter().map(Option::is_some).collect();
    assert_eq!(wrong, [false, true, true, true, false], "{faults:?}");
}

fn read_again(page: &Page) -> Page {
    Page { name: page.name.clone(), text: page.text.clone() }
}

#[test]
fn every_page_has_one_place_in_the_book() {
    let summary = read("docs/SUMMARY.md".to_owned());
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (_, link) in summary.links() {
        *places.entry(format!("docs/{link}")).or_default() += 1;
    }
    let twice: Vec<_> = places.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "twice in docs/SUMMARY.md: {twice:?}");
    let mut lost: Vec<_> = book().into_iter().map(|page| page.name).collect();
    lost.retain(|name| name != "docs/SUMMARY.md" && !places.contains_key(name));
    assert!(lost.is_empty(), "pages without a place in docs/SUMMARY.md: {lost:?}");
}

#[test]
fn every_page_begins_with_its_title() {
    for page in book() {
        assert!(page.text.starts_with("# "), "{} does not begin with its title", page.name);
    }
}

/// Words that stand for something else in everyday language, or hide the subject of a sentence.
const PRIVATE: [&str; 9] = [
    "hangs on",
    "hang on",
    "whoever",
    "nobody",
    "somebody",
    "everybody",
    " who takes",
    "of the house",
    "unsettled",
];

/// The most lines of a page that a person writes.
const LINES_MAX: usize = 250;

/// The lines of a page that a person wrote, with their numbers: no tables that a test writes.
fn written_lines(page: &Page) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let mut generated = false;
    for (number, line) in page.text.lines().enumerate() {
        generated |= line.starts_with("<!-- ") && line.contains(": written by a test");
        if !generated {
            lines.push((number + 1, line));
        }
        generated &= !line.starts_with("<!-- end of ");
    }
    lines
}

/// The prose of a page, line by line: neither blocks of code nor code within a line.
fn prose(page: &Page) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut prose = Vec::new();
    for (number, line) in written_lines(page) {
        fenced ^= line.starts_with("```");
        if !fenced {
            prose.push((number, line.split('`').step_by(2).collect::<Vec<_>>().join(" ")));
        }
    }
    prose
}

#[test]
fn pages_use_plain_words() {
    let mut found = Vec::new();
    for page in book().into_iter().chain([read("README.md".to_owned())]) {
        for (number, line) in prose(&page) {
            let words = line.to_lowercase();
            found.extend(
                PRIVATE
                    .iter()
                    .filter(|word| words.contains(*word))
                    .map(|word| format!("{}:{number}: `{word}`", page.name)),
            );
        }
    }
    assert!(found.is_empty(), "say it in plain words:\n  {}", found.join("\n  "));
}

#[test]
fn pages_serve_one_need_each() {
    let pages = book().into_iter().filter(|page| page.name != "docs/SUMMARY.md");
    let long: Vec<_> = pages
        .filter(|page| written_lines(page).len() > LINES_MAX)
        .map(|page| format!("{}: {} lines", page.name, written_lines(&page).len()))
        .collect();
    assert!(
        long.is_empty(),
        "divide these pages, {LINES_MAX} lines at most:\n  {}",
        long.join("\n  ")
    );
    let readme = read("README.md".to_owned()).text.lines().count();
    assert!(readme <= 150, "README.md has {readme} lines, of 150 at most");
}

/// Rows of a table of ARCHITECTURE.md: what stands between the bars.
fn architecture_rows(heading: &str) -> Vec<Vec<String>> {
    let page = read("ARCHITECTURE.md".to_owned());
    let (_, section) = page.text.split_once(heading).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

/// The words in backquotes of a cell.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Every source of the simulated kernel.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => sources(&path, found),
            path => found.push(path),
        }
    }
}

#[test]
fn the_kernels_functions_are_where_the_architecture_says() {
    let mut all = Vec::new();
    sources(&root().join("crates/machine/src"), &mut all);
    sources(&root().join("policies/include"), &mut all);
    let mut functions = 0;
    for row in architecture_rows("## Where is `__schedule`?") {
        let named = quoted(&row[1]).into_iter().filter(|name| name.contains('.'));
        let files: Vec<&PathBuf> = named
            .flat_map(|name| {
                let of: Vec<_> = all.iter().filter(|path| path.ends_with(name)).collect();
                assert!(!of.is_empty(), "no file is called {name}: {row:?}");
                of
            })
            .collect();
        let text: String =
            files.iter().map(|path| std::fs::read_to_string(path).expect("a text")).collect();
        for function in quoted(row.get(2).map_or("", String::as_str)) {
            assert!(text.contains(&format!("fn {function}(")), "{function} is not in {row:?}");
            functions += 1;
        }
    }
    assert!(functions > 15, "{functions} functions are named");
}
