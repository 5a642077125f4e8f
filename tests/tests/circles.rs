//! Circles among the files of a crate: files that are each needed to understand the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::house::{files_below, root, verdict};

/// The crates that hold the rule.
const CRATES: [&str; 7] =
    ["catalogue", "machine", "scratch", "suggest", "testing", "top", "workload"];
/// Files of one circle.
const CIRCLE_MAX: usize = 3;

/// A module, by the path from the crate's root.
type Module = Vec<String>;

/// The paths that a tree of a `use` names, each as words.
fn leaves(tree: &syn::UseTree, before: &[String], found: &mut Vec<Module>) {
    let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    match tree {
        syn::UseTree::Path(path) => leaves(&path.tree, &with(&path.ident), found),
        syn::UseTree::Group(group) => group.items.iter().for_each(|t| leaves(t, before, found)),
        syn::UseTree::Name(name) => found.push(with(&name.ident)),
        syn::UseTree::Rename(name) => found.push(with(&name.ident)),
        syn::UseTree::Glob(_) => found.push(before.to_vec()),
    }
}

/// What a module uses, from the crate's root; names of other crates stay as they are.
fn uses(module: &Module, text: &str) -> Vec<Module> {
    let file = syn::parse_file(text).expect("a source file is Rust");
    let mut found = Vec::new();
    for item in &file.items {
        if let syn::Item::Use(item) = item
            && !item.attrs.iter().any(|attribute| attribute.path().is_ident("cfg"))
        {
            leaves(&item.tree, &[], &mut found);
        }
    }
    for path in &mut found {
        let up = path.iter().take_while(|word| *word == "super").count();
        *path = match path[0].as_str() {
            "crate" => path[1..].to_vec(),
            "self" => [&module[..], &path[1..]].concat(),
            "super" => [&module[..module.len() - up], &path[up..]].concat(),
            _ => [&module[..], path].concat(),
        };
    }
    found
}

/// The file in which a path ends, through what modules pass on.
fn home(path: &[String], files: &BTreeMap<Module, Vec<Module>>, depth: usize) -> Module {
    let at = (0..=path.len()).rev().find(|at| files.contains_key(&path[..*at])).unwrap_or(0);
    let (module, rest) = path.split_at(at);
    let passed = files[module].iter().find(|used| used.last() == rest.first() && **used != *path);
    match passed {
        Some(used) if depth < 8 && !rest.is_empty() => {
            home(&[used, &rest[1..]].concat(), files, depth + 1)
        }
        _ => module.to_vec(),
    }
}

/// The modules that a module needs, directly or not.
fn reached<'f>(
    from: &Module,
    near: &'f BTreeMap<&Module, BTreeSet<Module>>,
) -> BTreeSet<&'f Module> {
    let (mut seen, mut open) = (BTreeSet::new(), Vec::from_iter(&near[from]));
    while let Some(next) = open.pop() {
        if seen.insert(next) {
            open.extend(&near[next]);
        }
    }
    seen
}

/// The circles of more than a few modules. Methods of a parent's types make none.
fn circles(files: &BTreeMap<Module, Vec<Module>>) -> BTreeSet<Vec<Module>> {
    let needs = |module: &Module| -> BTreeSet<Module> {
        let homes = files[module].iter().map(|used| home(used, files, 0));
        homes.filter(|to| !module.starts_with(to)).collect()
    };
    let near = BTreeMap::from_iter(files.keys().map(|module| (module, needs(module))));
    let circle = |module: &Module| -> Vec<Module> {
        let far = reached(module, &near).into_iter();
        far.filter(|other| reached(other, &near).contains(module)).cloned().collect()
    };
    files.keys().map(circle).filter(|circle| circle.len() > CIRCLE_MAX).collect()
}

#[test]
fn files_stand_in_no_large_circle() {
    let mut broken = Vec::new();
    for name in CRATES {
        let (src, mut paths) = (root().join("crates").join(name).join("src"), Vec::new());
        files_below(&src, "rs", &mut paths);
        let module = |path: &std::path::Path| -> Module {
            let below = path.strip_prefix(&src).expect("below src").with_extension("");
            let words = below.iter().map(|word| word.to_string_lossy().into_owned());
            words.filter(|word| !["lib", "main", "mod"].contains(&word.as_str())).collect()
        };
        let is_code = |module: &Module| !module.iter().any(|word| word == "tests");
        let files: BTreeMap<Module, Vec<Module>> = paths
            .iter()
            .map(|path| (module(path), path))
            .filter(|(module, _)| is_code(module))
            .map(|(module, path)| {
                let text = fs::read_to_string(path).expect("a source file is UTF-8");
                (module.clone(), uses(&module, &text))
            })
            .collect();
        for circle in circles(&files) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            broken.push(format!("{name}: {}", names.join(", ")));
        }
    }
    verdict("Move a type to a file of its own, or join the files: no larger circles.", &broken);
}
