//! Every command of the pages is run, and prints what the page says. `FAIRGROUND_DOCS=write` writes what it prints
//! into the pages; `FAIRGROUND_DOCS_PAGE=docs/reference/diagnose.md` looks at one page only. With
//! `FAIRGROUND_RELEASE_BINARY` that build is run, and the long blocks too, and those for which this machine must be
//! able to do something, as doctor says; of these only the exit codes are looked at, since what a guest measures
//! belongs to one build of the program. `FAIRGROUND_DOCS_ALSO=slow` runs those that take many minutes. A picture that
//! a command draws is the one that the page shows.

use std::path::PathBuf;
use std::sync::Mutex;
use std::{env, fs, thread};

use crate::support::console::{LONG, Step, agrees, renewed, steps, written};
use crate::support::desk::{Build, Desk, ready_abilities};
use crate::support::pages::{Page, pages, root};

/// Runs the blocks of a page; the page as it should be, and what was wrong.
fn walk(page: &Page, build: &Build) -> (String, Vec<String>, usize) {
    let (mut text, mut faults, mut commands) = (page.text.clone(), Vec::new(), 0);
    let desk = Desk::new(&build.binary);
    let blocks = page.blocks();
    let mut edits = Vec::new();
    for block in &blocks {
        if let Some(file) = &block.file {
            fs::write(desk.folder.path().join(file), &block.text).expect("a file");
        }
        let place = format!("{}:{}", page.name, block.line);
        if !block.is_console() {
            if block
                .text
                .lines()
                .any(|line| line.starts_with("fairground ") || line.starts_with("$ "))
            {
                faults.push(format!("{place}: a command outside of a block ```console"));
            }
            continue;
        }
        match (build.runs(block), steps(&block.text)) {
            (Err(fault), _) | (_, Err(fault)) => faults.push(format!("{place}: {fault}")),
            (Ok(true), Ok(mut steps)) => {
                let same_anywhere = block.tags().iter().all(|tag| tag == LONG);
                for step in &mut steps {
                    commands += 1;
                    if !same_anywhere {
                        step.expected.clear();
                    }
                    if let Some(fault) = follow(&desk, step, block.tags()) {
                        faults.push(format!("{place}: {fault}"));
                    }
                }
                if same_anywhere {
                    edits.push((block.range.clone(), written(&steps)));
                }
            }
            (Ok(false), Ok(_)) => {}
        }
    }
    for (range, new) in edits.into_iter().rev() {
        text.replace_range(range, &new);
    }
    faults.extend(
        page.drawn().into_iter().filter_map(|picture| compare_picture(&desk, build, picture)),
    );
    (text, faults, commands)
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
fn follow(desk: &Desk, step: &mut Step, tags: &[String]) -> Option<String> {
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
    let queue = Mutex::new(all);
    let broken = Mutex::new((Vec::new(), 0));
    let work = || {
        loop {
            let Some(page) = queue.lock().expect("no panic").pop() else { return };
            let (text, faults, commands) = walk(&page, &build);
            if build.writes && text != page.text {
                fs::write(root().join(&page.name), text).expect("the page is written");
            }
            let mut broken = broken.lock().expect("no panic");
            broken.0.extend(faults);
            broken.1 += commands;
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let (mut faults, commands) = broken.into_inner().expect("no panic");
    faults.sort();
    println!("{commands} commands were run");
    assert!(only.is_some() || commands > 50, "only {commands} commands were found");
    let remedy = "FAIRGROUND_DOCS=write cargo test -p fairground --test all docs, and look at the difference";
    assert!(faults.is_empty(), "{}\n\n{remedy}", faults.join("\n"));
}

#[test]
fn a_page_that_says_something_else_is_found() {
    let mut build = Build::debug();
    build.writes = false;
    let walk = |text: &str| {
        let page = Page { name: "docs/page.md".to_owned(), text: text.to_owned() };
        walk(&page, &build)
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
fn an_ability_is_ready_when_all_that_it_rests_on_is() {
    let said = "run,of,task,metric,value,unit\n,abilities,vm,verdict,ready,\n,abilities,load,verdict,missing,\n\
                ,checks,load / root,verdict,ready,\n,checks,load,verdict,missing,\n";
    assert_eq!(Vec::from_iter(ready_abilities(said)), ["vm"]);
}
