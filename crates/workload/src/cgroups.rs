//! The tree of control groups: a checked list from paths.

use std::collections::BTreeMap;

use crate::bandwidth::Bandwidth;
use crate::limits::{
    CGROUP_DEPTH_MAX, CGROUP_WEIGHT_DEFAULT, CGROUP_WEIGHT_MAX, CGROUPS_MAX, NAME_CHARS_MAX,
};
use crate::model::{CgroupId, Workload};

/// A control group: its tasks and child groups share its part of the CPU (cgroup v2, the cpu controller).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Its path from the root, `"web/front"`; the root's is `"/"`.
    pub path: String,
    /// Index of its parent, which precedes it in the list; the root has none.
    pub parent: Option<CgroupId>,
    /// `cpu.weight`, 1…10,000 (100 is as much as a task at nice 0). Ignored for the root.
    pub weight: u32,
    /// `cpu.max`. Ignored for the root.
    pub max: Bandwidth,
    /// `cpu.idle`: its tasks run when no others want to. Ignored for the root.
    pub idle: bool,
}

impl Cgroup {
    /// A group without a limit; its parent is the root until it is in a tree.
    pub(crate) fn new(path: impl Into<String>, weight: u32) -> Self {
        Self { path: path.into(), parent: None, weight, max: Bandwidth::NO_LIMIT, idle: false }
    }
}

/// The path of the root.
pub(crate) const ROOT: &str = "/";

/// The problem with the path of a cgroup below the root, and the remedy; `None` if it is valid.
pub(crate) fn path_problem(path: &str) -> Option<(String, &'static str)> {
    const FORM: &str = "write names separated by `/`, as in \"web\" or \"web/front\"";
    if path == ROOT {
        return Some(("the root `/` always exists".into(), "remove it"));
    }
    if path.starts_with('/') || path.ends_with('/') || path.contains("//") || path.is_empty() {
        return Some((format!("`{path}` is not the path of a cgroup: it has an empty name"), FORM));
    }
    let names: Vec<&str> = path.split('/').collect();
    if names.len() > CGROUP_DEPTH_MAX {
        let message = format!(
            "`{path}` is {} levels deep, more than CGROUP_DEPTH_MAX, {CGROUP_DEPTH_MAX}",
            names.len()
        );
        return Some((message, "nest the cgroups less deeply"));
    }
    for name in names {
        if name == "." || name == ".." {
            return Some((format!("`{path}`: a cgroup cannot be called `{name}`"), FORM));
        }
        if name.chars().count() > NAME_CHARS_MAX {
            let message =
                format!("`{path}`: a name longer than NAME_CHARS_MAX, {NAME_CHARS_MAX} characters");
            return Some((message, "write a shorter name"));
        }
        if name.chars().any(|c| c.is_control() || c.is_whitespace() || c == '=') {
            let message = format!("{path:?}: a space, `=` or a control character in a name");
            return Some((message, "use letters, digits, `.`, `-` and `_`"));
        }
    }
    None
}

/// The problem with a weight, and the remedy; `None` if it is valid.
pub(crate) fn weight_problem(weight: u32) -> Option<(String, &'static str)> {
    (weight == 0 || weight > CGROUP_WEIGHT_MAX)
        .then(|| (format!("the weight {weight} is out of range"), "write a weight from 1 to 10000"))
}

/// The path of the parent.
fn parent_path(path: &str) -> &str {
    path.rsplit_once('/').map_or(ROOT, |(parent, _)| parent)
}

/// The list of these cgroups (each path once and valid) with their parents; undeclared ones have the default weight:
/// parents first, siblings by name, the root in front. Empty when there are none.
pub(crate) fn tree(declared: impl IntoIterator<Item = Cgroup>) -> Vec<Cgroup> {
    let by_path = declared.into_iter().map(|cgroup| (cgroup.path.clone(), cgroup));
    let mut all: BTreeMap<String, Cgroup> = by_path.collect();
    let paths: Vec<String> = all.keys().cloned().collect();
    for path in &paths {
        let mut above = parent_path(path);
        while above != ROOT {
            let usual = || Cgroup::new(above, CGROUP_WEIGHT_DEFAULT);
            all.entry(above.to_owned()).or_insert_with(usual);
            above = parent_path(above);
        }
    }
    if all.is_empty() {
        return Vec::new();
    }
    let mut all: Vec<Cgroup> = all.into_values().collect();
    all.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
    let mut list = vec![Cgroup::new(ROOT, CGROUP_WEIGHT_DEFAULT)];
    for cgroup in all {
        let parent = find(&list, parent_path(&cgroup.path));
        list.push(Cgroup { parent, ..cgroup });
    }
    list
}

/// The cgroup of a path; a leading `/` is optional.
pub(crate) fn find(list: &[Cgroup], path: &str) -> Option<CgroupId> {
    let plain = path.strip_prefix('/').filter(|rest| !rest.is_empty()).unwrap_or(path);
    list.iter().position(|cgroup| cgroup.path == plain)
}

impl Workload {
    /// The cgroup of a path (`"/"` is the root), if the workload declares it.
    pub fn cgroup(&self, path: &str) -> Option<CgroupId> {
        find(&self.cgroups, path)
    }
}

/// The problems of the whole list: of single cgroups, and of their number.
pub(crate) fn list_problems(list: &[Cgroup]) -> Vec<(CgroupId, String, &'static str)> {
    let mut problems = Vec::new();
    if list.len() > CGROUPS_MAX {
        let message = format!("{} cgroups, more than CGROUPS_MAX, {CGROUPS_MAX}", list.len());
        problems.push((0, message, "share them between tasks"));
        return problems;
    }
    for (index, cgroup) in list.iter().enumerate() {
        if index == 0 {
            if cgroup.path != ROOT || cgroup.parent.is_some() {
                let message = format!("the first cgroup is `{}`, not the root", cgroup.path);
                problems.push((0, message, "begin the list with `/`, which has no parent"));
            }
            continue;
        }
        if let Some((message, help)) = path_problem(&cgroup.path) {
            problems.push((index, message, help));
            continue;
        }
        if let Some((message, help)) = weight_problem(cgroup.weight) {
            problems.push((index, format!("cgroup `{}`: {message}", cgroup.path), help));
        }
        if let Some(message) = cgroup.max.problem() {
            let message = format!("cgroup `{}`: {message}", cgroup.path);
            problems.push((index, message, "write a limit that the kernel takes"));
        }
        let above = find(&list[..index], parent_path(&cgroup.path));
        if above.is_none() || above != cgroup.parent {
            let message = format!("the cgroup `{}` does not follow its parent", cgroup.path);
            problems.push((index, message, "list each cgroup after its parent"));
        }
        if list[..index].iter().any(|other| other.path == cgroup.path) {
            let message = format!("a second cgroup has the path `{}`", cgroup.path);
            problems.push((index, message, "declare each once"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(list: &[Cgroup]) -> Vec<(&str, Option<CgroupId>)> {
        list.iter().map(|c| (c.path.as_str(), c.parent)).collect()
    }

    #[test]
    fn parents_come_first_and_siblings_by_name() {
        let declared = ["web/front", "web-2", "a/b/c"].map(|path| Cgroup::new(path, 7));
        let list = tree(declared);
        let expected = [
            ("/", None),
            ("a", Some(0)),
            ("a/b", Some(1)),
            ("a/b/c", Some(2)),
            ("web", Some(0)),
            ("web/front", Some(4)),
            ("web-2", Some(0)),
        ];
        assert_eq!(paths(&list), expected);
        assert_eq!((list[1].weight, list[3].weight), (100, 7));
        assert!(list_problems(&list).is_empty());
        assert_eq!(find(&list, "/web"), find(&list, "web"));
        assert!(tree([]).is_empty());
    }

    #[test]
    fn limits_are_read_written_and_checked() {
        let text = |max: &str| {
            format!(
                "format = 1\nname = \"w\"\nduration = \"1s\"\n[cgroups.web]\nmax = {max}\nidle = true\n\
                 [[task]]\nname = \"t\"\ncgroup = \"web\"\nprogram = [{{ run = \"1ms\" }}]\n"
            )
        };
        let read = crate::parse("w.toml", &text("\"50ms/100ms/5ms\"")).expect("valid");
        let web = &read.cgroups[1];
        let max = Bandwidth { quota_us: Some(50_000), period_us: 100_000, burst_us: 5_000 };
        assert_eq!((web.max, web.idle, web.weight), (max, true, 100));
        assert_eq!(crate::parse("w.toml", &crate::to_toml(&read)).expect("valid"), read);
        for (max, problem) in [("\"1us\"", "at least 1 ms"), ("50", "must be a string")] {
            let error = crate::parse("w.toml", &text(max)).expect_err(max).to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
