//! Every command of the pages is run, and prints what the page says. `FAIRGROUND_DOCS=write` writes what it prints
//! into the pages; `FAIRGROUND_DOCS_PAGE=docs/reference/diagnose.md` checks one page only. With
//! `FAIRGROUND_RELEASE_BINARY` that build is run, and the long blocks too, and those for which this machine must be
//! able to do something, as doctor says; of these only the exit codes are checked, since what a guest measures
//! belongs to one build of the program. `FAIRGROUND_DOCS_ALSO=slow` runs those that take many minutes. A picture that
//! a command draws is the one that the page shows.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::support::console::{LONG, Step, agrees, renewed, steps, written};
use crate::support::desk::{Build, Desk, ready_abilities};
use crate::support::pages::{Block, Page, pages, root};

/// Blocks that are named as the slowest.
const SLOWEST_SHOWN: usize = 10;

/// The weight of a block with a tag, against one without.
const HEAVY: usize = 100;

/// A page whose blocks are followed, at a desk of its own.
struct Walk<'b> {
    page: Page,
    blocks: Vec<Block>,
    desk: Desk,
    build: &'b Build,
}

/// What came of a block.
#[derive(Debug, Default)]
struct Followed {
    place: String,
    faults: Vec<String>,
    commands: usize,
    /// What it should say.
    edit: Option<(Range<usize>, String)>,
    took: Duration,
}

impl Walk<'_> {
    fn new(page: Page, build: &Build) -> Walk<'_> {
        Walk { blocks: page.blocks(), desk: Desk::new(&build.binary), page, build }
    }

    /// The blocks that must follow one another, because they name the same file; each of the lists can be followed at
    /// any time.
    fn parts(&self) -> Vec<Vec<usize>> {
        let mut parts: Vec<(BTreeSet<String>, Vec<usize>)> = Vec::new();
        for (index, block) in self.blocks.iter().enumerate() {
            let (mut files, mut blocks) = (files_in(block), vec![index]);
            let (joined, others): (Vec<_>, Vec<_>) =
                parts.into_iter().partition(|(known, _)| !known.is_disjoint(&files));
            parts = others;
            for (known, before) in joined {
                files.extend(known);
                blocks.extend(before);
            }
            blocks.sort_unstable();
            parts.push((files, blocks));
        }
        parts.into_iter().map(|(_, blocks)| blocks).collect()
    }

    /// How long some blocks may take, in no unit: those that a page marks as long, or that boot a kernel, first.
    fn weight(&self, blocks: &[usize]) -> usize {
        let weight = |block: &usize| match &self.blocks[*block] {
            block if !block.is_console() => 0,
            block if block.tags().is_empty() => 1,
            _ => HEAVY,
        };
        blocks.iter().map(weight).sum()
    }

    /// Runs the commands of a block, or writes the file that it is.
    fn follow(&self, index: usize) -> Followed {
        let block = &self.blocks[index];
        let begun = Instant::now();
        if let Some(file) = &block.file {
            fs::write(self.desk.folder.path().join(file), &block.text).expect("a file");
        }
        let place = format!("{}:{}", self.page.name, block.line);
        let mut followed = Followed { place, ..Followed::default() };
        if !block.is_console() {
            let is_command = |line: &str| line.starts_with("fairground ") || line.starts_with("$ ");
            if block.text.lines().any(is_command) {
                followed.fault("a command outside of a block ```console".to_owned());
            }
            return followed;
        }
        match (self.build.runs(block), steps(&block.text)) {
            (Err(fault), _) | (_, Err(fault)) => followed.fault(fault),
            (Ok(true), Ok(mut steps)) => {
                let same_anywhere = block.tags().iter().all(|tag| tag == LONG);
                for step in &mut steps {
                    followed.commands += 1;
                    if !same_anywhere {
                        step.expected.clear();
                    }
                    if let Some(fault) = type_in(&self.desk, step, block.tags()) {
                        followed.fault(fault);
                    }
                }
                followed.edit = same_anywhere.then(|| (block.range.clone(), written(&steps)));
            }
            (Ok(false), Ok(_)) => {}
        }
        followed.took = begun.elapsed();
        followed
    }

    /// The page as it should be, and what was wrong, when all its blocks have been followed.
    fn finish(&self, followed: &[Followed]) -> (String, Vec<String>) {
        let mut edits: Vec<_> = followed.iter().filter_map(|block| block.edit.clone()).collect();
        edits.sort_unstable_by_key(|(range, _)| range.start);
        let mut text = self.page.text.clone();
        for (range, new) in edits.into_iter().rev() {
            text.replace_range(range, &new);
        }
        let mut faults: Vec<String> = followed.iter().flat_map(|b| b.faults.clone()).collect();
        let drawn = self.page.drawn().into_iter();
        faults.extend(drawn.filter_map(|drawn| compare_picture(&self.desk, self.build, drawn)));
        (text, faults)
    }
}

impl Followed {
    fn fault(&mut self, fault: String) {
        self.faults.push(format!("{}: {fault}", self.place));
    }
}

/// The files that a block names, without their ends: a command may add one; and the published schedulers, which are
/// files of the cache.
fn files_in(block: &Block) -> BTreeSet<String> {
    if !block.is_console() {
        return block.file.iter().map(|file| stem(file)).collect();
    }
    let typed = block.text.lines().filter(|line| line.starts_with("$ ") || line.starts_with("> "));
    let words = typed.flat_map(|line| line.split([' ', '=', ',', '\'', '"', '(', ')', '`']));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let into = ["--plots", "-o", "--output", "--trace", ">", "mkdir"];
    let named = words.windows(2).filter(|pair| into.contains(&pair[0])).map(|pair| pair[1]);
    let with_end = words.iter().copied().filter(|word| {
        let end = word.rsplit_once('.').map_or("", |(_, end)| end);
        end.starts_with(|c: char| c.is_ascii_alphabetic()) && !word.starts_with("experiments/")
    });
    let published = words.iter().filter(|word| word.starts_with("scx_"));
    let published = published.filter_map(|word| word.split([':', '@']).next());
    named.chain(with_end).map(stem).chain(published.map(str::to_owned)).collect()
}

/// The first part of a file's name: `mine` of `./mine.bpf.o` and of `mine/x.svg`.
fn stem(file: &str) -> String {
    let file = file.trim_start_matches('>').trim_start_matches("./");
    file.split(['.', '/']).next().unwrap_or_default().to_owned()
}

/// Whether a picture of a page is the one that its commands drew, where they were run; with `FAIRGROUND_DOCS=write`
/// it is from now on.
fn compare_picture(
    desk: &Desk,
    build: &Build,
    (line, file, shown): (usize, String, PathBuf),
) -> Option<String> {
    let drawn = fs::read(desk.folder.path().join(&file)).ok()?;
    if fs::read(&shown).is_ok_and(|known| known == drawn) {
        return None;
    }
    if build.writes {
        fs::write(&shown, drawn).expect("the picture is written");
    }
    Some(format!("{}:{line}: the commands drew another {file}", shown.display()))
}

/// Runs a command; what is wrong with the page, which `step` then has right.
fn type_in(desk: &Desk, step: &mut Step, tags: &[String]) -> Option<String> {
    let (code, lines) = desk.type_in(&step.command, tags);
    let shown = lines.join("\n");
    if code != step.code {
        let fault = format!("`{}` ended with {code}, not {}:\n{shown}", step.command, step.code);
        step.code = code;
        return Some(fault);
    }
    if step.expected.is_empty() || agrees(&step.expected, &lines) {
        return None;
    }
    let page = step.expected.join("\n");
    let fault = format!("`{}` printed\n{shown}\n  and not\n{page}", step.command);
    step.expected = renewed(&step.expected, &lines);
    Some(fault)
}

#[test]
fn every_command_prints_what_the_page_says() {
    let build = Build::here();
    let only = env::var("FAIRGROUND_DOCS_PAGE").ok();
    let mut all = pages();
    all.retain(|page| only.as_ref().is_none_or(|name| *name == page.name));
    let walks: Vec<Walk<'_>> = all.into_iter().map(|page| Walk::new(page, &build)).collect();
    let parts = walks.iter().enumerate().flat_map(|(page, walk)| {
        walk.parts().into_iter().map(move |blocks| (walk.weight(&blocks), page, blocks))
    });
    let mut parts: Vec<_> = parts.collect();
    // The heaviest is taken from the end.
    parts.sort_unstable();
    let queue = Mutex::new(parts);
    let followed: Vec<_> = walks.iter().map(|_| Mutex::new(Vec::new())).collect();
    let work = || {
        loop {
            let Some((_, page, blocks)) = queue.lock().expect("no panic").pop() else { return };
            for block in blocks {
                let came = walks[page].follow(block);
                followed[page].lock().expect("no panic").push(came);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut faults = Vec::new();
    let mut all = Vec::new();
    for (walk, followed) in walks.iter().zip(followed) {
        let followed = followed.into_inner().expect("no panic");
        let (text, found) = walk.finish(&followed);
        if build.writes && text != walk.page.text {
            fs::write(root().join(&walk.page.name), text).expect("the page is written");
        }
        faults.extend(found);
        all.extend(followed);
    }
    let commands: usize = all.iter().map(|block| block.commands).sum();
    all.sort_by_key(|block| std::cmp::Reverse(block.took));
    for block in all.iter().take(SLOWEST_SHOWN) {
        println!("{:>7.1} s  {}", block.took.as_secs_f64(), block.place);
    }
    faults.sort();
    println!("{commands} commands were run");
    assert!(only.is_some() || commands > 50, "only {commands} commands were found");
    let remedy =
        "FAIRGROUND_DOCS=write cargo test -p fairground --test all docs, and check the difference";
    assert!(faults.is_empty(), "{}\n\n{remedy}", faults.join("\n"));
}

#[test]
fn a_page_that_says_something_else_is_found() {
    let mut build = Build::debug();
    build.writes = false;
    let walk = |text: &str| {
        let page = Page { name: "docs/page.md".to_owned(), text: text.to_owned() };
        let walk = Walk::new(page, &build);
        let followed: Vec<_> = (0..walk.blocks.len()).map(|block| walk.follow(block)).collect();
        let (text, faults) = walk.finish(&followed);
        (text, faults, followed.iter().map(|block| block.commands).sum::<usize>())
    };
    let right =
        "```console\n$ echo one; echo two; echo three\none\n...\nthree\n\n$ false\n? 1\n```\n";
    assert_eq!(walk(right), (right.to_owned(), vec![], 2));
    let (text, faults, _) = walk(&right.replace("\nthree\n", "\nfour\n").replace("? 1", "? 2"));
    assert_eq!((text.as_str(), faults.len()), (right, 2), "{faults:?}");
    for (wrong, why) in [
        ("```console\n$ fairground run --nonsense\n```", "ended with 2"),
        ("```console at-night\n$ true\n```", "no such reason"),
        ("```sh\nfairground sched list\n```", "outside of a block"),
        ("a\n\n    fairground sched list\n", "outside of a block"),
        (
            "```console\n$ echo new > p.svg\n```\n\n<!-- picture: p.svg -->\n![p](nowhere.svg)\n",
            "drew another p.svg",
        ),
    ] {
        let (_, faults, _) = walk(wrong);
        assert!(faults.len() == 1 && faults[0].contains(why), "{wrong}: {faults:?}");
    }
}

#[test]
fn blocks_that_name_the_same_file_follow_one_another() {
    let text = "```console\n$ fairground run hogs:2 --trace a.txt\n```\n\n```console\n$ true\n```\n\n\
                ```console\n$ fairground convert a.txt b.json\n```\n\n<!-- file: b.toml -->\n```toml\n```\n\n\
                ```console\n$ fairground run x --plots c\n```\n\n```console\n$ ls c/d.svg; echo 2.5\n```\n\n\
                ```console\n$ fairground sched fetch scx_e\n```\n\n\
                ```console\n$ fairground run x --sched cfs,scx_e:f=1\n```\n";
    let page = Page { name: "docs/page.md".to_owned(), text: text.to_owned() };
    let mut parts = Walk::new(page, &Build::debug()).parts();
    parts.sort_unstable();
    assert_eq!(parts, [vec![0, 2, 3], vec![1], vec![4, 5], vec![6, 7]]);
}

#[test]
fn an_ability_is_ready_when_all_that_it_rests_on_is() {
    let said = "run,of,task,metric,value,unit\n,abilities,vm,verdict,ready,\n,abilities,load,verdict,missing,\n\
                ,checks,load / root,verdict,ready,\n,checks,load,verdict,missing,\n";
    assert_eq!(Vec::from_iter(ready_abilities(said)), ["vm"]);
}
