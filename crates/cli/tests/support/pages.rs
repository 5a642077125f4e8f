//! The pages of the book and those beside it, read with the parser that mdBook uses.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// Pages that are no part of the book, and whose links and commands must be right all the same.
const BESIDE: [&str; 5] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "policies/README.md",
    "experiments/recordings/README.md",
];

/// A page.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its path from the repository's folder.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A block of code in a page.
#[derive(Debug)]
pub(crate) struct Block {
    /// Its line in the page, from 1.
    pub(crate) line: usize,
    /// The words behind the fence; `None` is a block that is only indented.
    pub(crate) words: Option<Vec<String>>,
    /// What is in it.
    pub(crate) text: String,
    /// Where that stands in the page.
    pub(crate) range: Range<usize>,
    /// The file that it is: `<!-- file: NAME -->` in the line before it.
    pub(crate) file: Option<String>,
}

impl Block {
    /// Whether commands and their output are in it.
    pub(crate) fn is_console(&self) -> bool {
        self.words.as_ref().is_some_and(|words| words.first().is_some_and(|w| w == "console"))
    }

    /// What else stands behind the fence.
    pub(crate) fn tags(&self) -> &[String] {
        self.words.as_deref().and_then(|words| words.get(1..)).unwrap_or_default()
    }
}

/// The repository's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages in `docs/`, in the order of their names.
pub(crate) fn book() -> Vec<Page> {
    let mut names = Vec::new();
    markdown_below(&root().join("docs"), "docs", &mut names);
    names.into_iter().map(read).collect()
}

/// The book, and what stands beside it.
pub(crate) fn pages() -> Vec<Page> {
    let mut pages = book();
    pages.extend(BESIDE.iter().map(|name| read((*name).to_owned())));
    pages
}

/// One page.
pub(crate) fn read(name: String) -> Page {
    let text = fs::read_to_string(root().join(&name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    Page { name, text }
}

fn markdown_below(folder: &Path, name: &str, found: &mut Vec<String>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            markdown_below(&entry.path(), &name, found);
        } else if name.ends_with(".md") {
            found.push(name);
        }
    }
}

/// The `id` that mdBook and GitHub give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c.to_lowercase().to_string()),
        c if c.is_whitespace() => Some("-".to_owned()),
        _ => None,
    });
    kept.collect()
}

impl Page {
    fn events(&self) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
        Parser::new_ext(&self.text, Options::ENABLE_TABLES).into_offset_iter()
    }

    /// The line of a place in the text, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// Every link and picture: its line and where it leads.
    pub(crate) fn links(&self) -> Vec<(usize, String)> {
        let mut links = Vec::new();
        for (event, range) in self.events() {
            if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
                links.push((self.line(range.start), dest_url.into_string()));
            }
        }
        links
    }

    /// Pictures that the page's commands draw: their line, the file below the folder where the commands are typed
    /// (`<!-- picture: FILE -->` in the line before), and where the page has it.
    pub(crate) fn drawn(&self) -> Vec<(usize, String, PathBuf)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let pairs = lines.windows(2).enumerate();
        let found = pairs.filter_map(|(number, pair)| {
            let file = pair[0].strip_prefix("<!-- picture: ")?.strip_suffix(" -->")?;
            let (_, link) = pair[1].strip_prefix("![")?.split_once("](")?;
            let beside = Path::new(&self.name).parent()?.join(link.strip_suffix(')')?);
            Some((number + 2, file.to_owned(), root().join(beside)))
        });
        found.collect()
    }

    /// The places that a link can lead to.
    pub(crate) fn anchors(&self) -> BTreeSet<String> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut anchors = BTreeSet::new();
        let mut heading: Option<String> = None;
        for (event, _) in self.events() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::End(TagEnd::Heading(_)) => {
                    let name = anchor(&heading.take().unwrap_or_default());
                    let times = seen.entry(name.clone()).or_default();
                    anchors.insert(match *times {
                        0 => name,
                        n => format!("{name}-{n}"),
                    });
                    *times += 1;
                }
                _ => {}
            }
        }
        anchors
    }

    /// The blocks of code.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut within = false;
        for (event, range) in self.events() {
            match event {
                Event::Start(Tag::CodeBlock(kind)) => {
                    let words = match kind {
                        CodeBlockKind::Fenced(info) => {
                            Some(info.split_whitespace().map(str::to_owned).collect())
                        }
                        CodeBlockKind::Indented => None,
                    };
                    let line = self.line(range.start);
                    let file = file_name(&self.text[..range.start]);
                    blocks.push(Block { line, words, text: String::new(), range: 0..0, file });
                    within = true;
                }
                Event::Text(text) if within => {
                    let block = blocks.last_mut().expect("text is within a block");
                    let start = if block.text.is_empty() { range.start } else { block.range.start };
                    block.range = start..range.end;
                    block.text.push_str(&text);
                }
                Event::End(TagEnd::CodeBlock) => within = false,
                _ => {}
            }
        }
        blocks
    }

    /// Code within lines: its line, and what it says.
    pub(crate) fn code_spans(&self) -> Vec<(usize, String)> {
        let spans = self.events().filter_map(|(event, range)| match event {
            Event::Code(text) => Some((self.line(range.start), text.into_string())),
            _ => None,
        });
        spans.collect()
    }
}

/// The name in `<!-- file: NAME -->`, when that is the last line.
fn file_name(before: &str) -> Option<String> {
    let line = before.trim_end().lines().last()?;
    let name = line.strip_prefix("<!-- file: ")?.strip_suffix(" -->")?;
    Some(name.to_owned())
}
