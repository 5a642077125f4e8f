//! The rules of ARCHITECTURE.md, checked. Each failure names the file, the rule and the remedy.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::Visit;

/// Which crates of the workspace a crate may depend on. Dev-dependencies are free.
const ARROWS: &[(&str, &[&str])] = &[
    ("scratch", &[]),
    ("suggest", &[]),
    ("testing", &[]),
    ("trace", &[]),
    ("workload", &["suggest"]),
    ("bpf", &["suggest"]),
    ("report", &[]),
    ("analysis", &["trace"]),
    ("machine", &["bpf", "suggest", "trace", "workload"]),
    ("realkernel", &["scratch", "suggest", "trace", "workload"]),
    ("catalogue", &["policies", "scratch", "suggest"]),
    (
        "session",
        &[
            "analysis",
            "bpf",
            "catalogue",
            "realkernel",
            "machine",
            "policies",
            "scratch",
            "suggest",
            "trace",
            "workload",
        ],
    ),
    ("top", &["analysis", "trace", "workload"]),
    ("present", &["analysis", "machine", "realkernel", "report", "session", "trace"]),
    (
        "cli",
        &[
            "analysis",
            "bpf",
            "catalogue",
            "realkernel",
            "machine",
            "policies",
            "present",
            "report",
            "scratch",
            "session",
            "top",
            "trace",
            "workload",
        ],
    ),
    ("python", &["analysis", "machine", "policies", "present", "session", "trace", "workload"]),
];

/// A file longer than this holds two ideas.
const FILE_LINES_MAX: usize = 800;
/// A function longer than this does two things.
const FUNCTION_LINES_MAX: usize = 70;

/// What the simulated machine must not use, and the replacement.
const MACHINE_BANS: &[(&str, &str)] = &[
    ("std::fs", "the caller reads files and hands in bytes"),
    ("std::net", "the machine has no connections"),
    ("std::env", "settings come in through MachineConfig"),
    ("std::time", "time is the machine's own clock"),
    ("std::thread", "one machine is one thread: its caller's"),
    ("std::process", "the caller decides what a failure means"),
    ("static mut", "state lives in the Machine"),
    ("thread_local!", "state lives in the Machine"),
    ("OnceLock", "state lives in the Machine"),
    ("LazyLock", "state lives in the Machine"),
    ("println!", "results are returned"),
    ("eprintln!", "results are returned"),
    ("f32", "time and weight are integers"),
    ("f64", "time and weight are integers"),
    ("HashMap", "BTreeMap or a Vec by index: no hash order may reach an output"),
    ("HashSet", "BTreeSet or a bit mask: no hash order may reach an output"),
];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace").to_owned()
}

pub(crate) fn files_below(dir: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            if !path.ends_with("target") {
                files_below(&path, extension, found);
            }
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
}

fn rust_sources() -> Vec<(String, String)> {
    let root = root();
    let mut paths = Vec::new();
    for dir in ["crates", "policies", "python", "tests", "benches", "fuzz"] {
        files_below(&root.join(dir), "rs", &mut paths);
    }
    assert!(paths.len() > 30, "found only {} Rust files below {}", paths.len(), root.display());
    paths
        .into_iter()
        .map(|p| {
            let text = fs::read_to_string(&p).expect("a source file is UTF-8");
            let name = p.strip_prefix(&root).expect("found below the root").display().to_string();
            (name, text)
        })
        .collect()
}

pub(crate) fn verdict(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}\n  {}", broken.join("\n  "));
}

/// Where a crate of [`ARROWS`] lies: all but the Python package are in `crates/`.
fn folder(name: &str) -> PathBuf {
    match name {
        "python" => root().join(name),
        _ => root().join("crates").join(name),
    }
}

#[test]
fn arrows_go_down_only() {
    let mut broken = Vec::new();
    for (name, allowed) in ARROWS {
        let path = folder(name).join("Cargo.toml");
        let manifest: toml::Table =
            fs::read_to_string(&path).expect("every crate has a manifest").parse().expect("TOML");
        let mut tables = vec![manifest.get("dependencies"), manifest.get("build-dependencies")];
        for (_, target) in manifest.get("target").and_then(|t| t.as_table()).into_iter().flatten() {
            tables.push(target.get("dependencies"));
        }
        for table in tables.into_iter().flatten().filter_map(|t| t.as_table()) {
            for dependency in table.keys().filter_map(|k| k.strip_prefix("fairground-")) {
                if !allowed.contains(&dependency) {
                    broken.push(format!(
                        "{}: `{name}` must not know `{dependency}` (it may know {allowed:?})",
                        path.display()
                    ));
                }
            }
        }
    }
    verdict("Arrows go down only: move the code, or hand the data in as an argument.", &broken);
}

#[test]
fn every_crate_has_its_arrows_stated() {
    let mut dirs: Vec<_> = fs::read_dir(root().join("crates"))
        .expect("crates/ exists")
        .map(|e| e.expect("readable").file_name().into_string().expect("UTF-8"))
        .collect();
    dirs.push("python".to_owned());
    dirs.sort();
    let mut stated: Vec<_> = ARROWS.iter().map(|(n, _)| (*n).to_owned()).collect();
    stated.sort();
    assert_eq!(dirs, stated, "state the new crate's arrows in ARROWS and in ARCHITECTURE.md");
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md exists");
    for name in &dirs {
        assert!(page.contains(&format!("`{name}`")), "ARCHITECTURE.md does not speak of `{name}`");
    }
}

/// Integration tests are one program a crate, so that each crate is linked once: a file that its `all.rs` does not name
/// would never run.
#[test]
fn every_test_file_is_part_of_its_program() {
    let mut broken = Vec::new();
    let mut folders: Vec<_> = ARROWS.iter().map(|(name, _)| folder(name).join("tests")).collect();
    folders.push(root().join("tests/tests"));
    for dir in folders {
        let files: Vec<_> = fs::read_dir(&dir)
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                entry.expect("readable").path().file_stem()?.to_str().map(str::to_owned)
            })
            .filter(|name| dir.join(format!("{name}.rs")).is_file())
            .collect();
        if files.len() < 2 {
            continue;
        }
        let program = fs::read_to_string(dir.join("all.rs")).unwrap_or_default();
        for name in files.iter().filter(|name| *name != "all") {
            if !program.contains(&format!("mod {name};")) {
                broken.push(format!("{}/{name}.rs", dir.display()));
            }
        }
    }
    verdict("Name each test file in `all.rs` beside it (`mod NAME;`), or it never runs.", &broken);
}

/// The lines of items under `#[cfg(test)]`.
fn test_lines(tokens: TokenStream, found: &mut Vec<RangeInclusive<usize>>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let from = token.span().start().line;
        let is_test = matches!(&token, TokenTree::Punct(mark) if mark.as_char() == '#')
            && tokens.peek().is_some_and(|next| next.to_string().replace(' ', "") == "[cfg(test)]");
        if is_test {
            let ends = |token: &TokenTree| match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(mark) => mark.as_char() == ';',
                _ => false,
            };
            let to = tokens.find(ends).map_or(usize::MAX, |token| token.span().end().line);
            found.push(from..=to);
        } else if let TokenTree::Group(group) = token {
            test_lines(group.stream(), found);
        }
    }
}

/// The numbered lines of code, with comments and test items taken out: rules about code bind neither prose nor tests.
fn code_only(text: &str) -> Vec<(usize, String)> {
    let mut tests = Vec::new();
    test_lines(text.parse().expect("a source file is Rust"), &mut tests);
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines
        .filter(|(number, _)| !tests.iter().any(|lines| lines.contains(number)))
        .map(|(number, line)| (number, line.split("//").next().unwrap_or("").to_owned()))
        .collect()
}

#[test]
fn code_behind_a_test_item_is_code() {
    let text = "use std::fs; // a comment\n\
                #[cfg(test)]\nuse std::time;\n\
                impl A {\n    #[cfg(test)]\n    fn f(&self) -> u8 {\n        1\n    }\n    fn g() {}\n}\n\
                #[cfg(test)]\nmod tests {\n    use super::*;\n}\n\
                fn last() {}\n";
    let code: Vec<(usize, String)> = code_only(text);
    let lines: Vec<(usize, &str)> = code.iter().map(|(n, line)| (*n, line.trim())).collect();
    let expected =
        [(1, "use std::fs;"), (4, "impl A {"), (9, "fn g() {}"), (10, "}"), (15, "fn last() {}")];
    assert_eq!(lines, expected);
}

pub(crate) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let edge = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        edge(line[..at].chars().next_back()) && edge(line[at + word.len()..].chars().next())
    })
}

#[test]
fn the_machine_touches_nothing_outside() {
    let mut broken = Vec::new();
    for (name, text) in rust_sources().iter().filter(|(n, _)| n.starts_with("crates/machine/src")) {
        if name.ends_with("tests.rs") || name.contains("/tests/") {
            continue;
        }
        for (line_number, line) in code_only(text) {
            for (word, remedy) in MACHINE_BANS {
                if has_word(&line, word) {
                    broken.push(format!("{name}:{line_number}: `{word}`: {remedy}"));
                }
            }
        }
    }
    verdict(
        "`machine` opens no file, reads no clock, has no global state, no thread, no floats.",
        &broken,
    );
}

struct LongFunctions<'a> {
    file: &'a str,
    broken: &'a mut Vec<String>,
}

impl LongFunctions<'_> {
    fn check(&mut self, name: &syn::Ident, block: &syn::Block) {
        let lines = block.span().end().line - block.span().start().line + 1;
        if lines > FUNCTION_LINES_MAX {
            self.broken.push(format!(
                "{}:{}: `{name}` has {lines} lines",
                self.file,
                name.span().start().line
            ));
        }
    }
}

impl<'ast> Visit<'ast> for LongFunctions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.check(&item.sig.ident, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.check(&item.sig.ident, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }
}

#[test]
fn functions_and_files_stay_small() {
    let mut broken = Vec::new();
    for (name, text) in rust_sources() {
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            broken.push(format!("{name}: {lines} lines: which two ideas live in it?"));
        }
        let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        LongFunctions { file: &name, broken: &mut broken }.visit_file(&file);
    }
    let mut sources = Vec::new();
    files_below(&root().join("policies"), "c", &mut sources);
    files_below(&root().join("policies"), "h", &mut sources);
    for path in sources {
        let lines = fs::read_to_string(&path).expect("UTF-8").lines().count();
        if lines > FILE_LINES_MAX {
            broken.push(format!("{}: {lines} lines", path.display()));
        }
    }
    verdict("Files hold one idea, functions do one thing: split them.", &broken);
}

#[test]
fn versions_replace_each_other() {
    let mut broken = Vec::new();
    for (name, text) in rust_sources() {
        for (line_number, line) in code_only(&text) {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            for word in words {
                // `___v2` with three underscores is the kernel's notation for another version of one of its functions.
                let flavour = word.contains("___");
                let end = word.rsplit_once('_').map_or("", |(_, end)| end);
                if !flavour && ["v2", "enhanced", "final", "old"].contains(&end) {
                    broken.push(format!("{name}:{line_number}: `{word}`"));
                }
            }
        }
    }
    verdict("Replace, don't accrete: one name for one thing.", &broken);
}

/// The numbers at the start of `text`, separated by anything that is no word: `1, 2 and 3` up to the first other word.
fn leading_numbers(text: &str) -> Vec<u32> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let numbers = words.take_while(|word| *word == "and" || word.parse::<u32>().is_ok());
    numbers.filter_map(|word| word.parse().ok()).collect()
}

/// The page in `docs/laws/` that `text` names last.
fn law_page(text: &str) -> Option<&str> {
    text.rsplit("docs/laws/").next().filter(|rest| rest.len() < text.len())?.split(".md").next()
}

/// The laws that a line of a test file cites: the number that a test function bears (`law_02_…`, `laws_02_03_…`;
/// the page's name may precede it), or the start of a doc comment (`/// Law 2: …`, `/// Laws 2 and 3 of
/// docs/laws/NAME.md: …`).
fn cited_laws(line: &str) -> Option<(Option<&str>, Vec<u32>)> {
    let line = line.trim_start();
    if let Some(comment) = line.strip_prefix("/// Law") {
        return Some((law_page(comment), leading_numbers(comment.trim_start_matches('s'))));
    }
    let name = line.strip_prefix("fn ")?;
    let at = name.find("law_").or_else(|| name.find("laws_"))?;
    let number = name[at..].split_once('_')?.1;
    let digits =
        number.split('_').take_while(|part| part.len() == 2 && part.parse::<u32>().is_ok());
    let page = name[..at].strip_suffix('_');
    Some((page, digits.filter_map(|part| part.parse().ok()).collect()))
}

#[test]
fn every_cited_law_stands_in_its_page() {
    let mut pages = BTreeMap::new();
    let (mut broken, mut cited) = (Vec::new(), 0);
    for (name, text) in rust_sources().iter().filter(|(name, _)| name.contains("tests/")) {
        let heading: String =
            text.lines().take_while(|line| line.starts_with("//!")).collect::<Vec<_>>().join(" ");
        for (number, line) in text.lines().enumerate() {
            let Some((page, laws)) = cited_laws(line).filter(|(_, laws)| !laws.is_empty()) else {
                continue;
            };
            let Some(page) = page.or_else(|| law_page(&heading)) else {
                broken.push(format!("{name}:{}: name the page, docs/laws/….md", number + 1));
                continue;
            };
            let laws_of_page = pages.entry(page.to_owned()).or_insert_with(|| {
                fs::read_to_string(root().join("docs/laws").join(format!("{page}.md")))
                    .unwrap_or_default()
            });
            for law in laws {
                cited += 1;
                if !laws_of_page.lines().any(|line| line.starts_with(&format!("{law}. **"))) {
                    broken.push(format!(
                        "{name}:{}: docs/laws/{page}.md has no law {law}",
                        number + 1
                    ));
                }
            }
        }
    }
    assert!(cited > 120, "found only {cited} citations of laws");
    verdict(
        "A law that a test checks stands in docs/laws/ under the number that the test names:",
        &broken,
    );
}

#[test]
fn everything_public_is_explained_in_the_pages() {
    let root = root();
    let mut seen = BTreeMap::new();
    for page in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        seen.insert(page, root.join(page).exists());
    }
    let missing: Vec<_> =
        seen.iter().filter(|(_, there)| !**there).map(|(p, _)| (*p).to_owned()).collect();
    verdict("These pages must exist:", &missing);
    let readme = fs::read_to_string(root.join("README.md")).expect("README.md is UTF-8");
    for command in ["make demo", "make test"] {
        assert!(readme.contains(command), "README.md does not show `{command}`");
    }
}
