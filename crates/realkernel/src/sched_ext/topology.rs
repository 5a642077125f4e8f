//! The running machine's topology for a scheduler: which CPUs share a core, a last-level cache, a NUMA node, a
//! socket. There is no kfunc for it: arrays with a `topology:` tag are filled before the object is loaded.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the machine's topology.
const DEVICES: &str = "/sys/devices/system";
/// Maximum number of caches of a CPU.
const CACHES_MAX: u32 = 16;

/// The number of the unit of each CPU of this machine at a level (`core`, `llc`, `node`, `socket`), from 0 in the order
/// of the CPUs; 0 for CPUs that are offline or unknown. `None`: there is no such level.
pub fn units_of_host(level: &str, cpus: usize) -> Option<Vec<u32>> {
    units(Path::new(DEVICES), level, cpus)
}

/// The number of the unit of each CPU at one level, from 0 in the order of the CPUs; `None`: there is no such level.
/// Offline and unknown CPUs have the number 0.
fn units(root: &Path, level: &str, cpus: usize) -> Option<Vec<u32>> {
    let sharers: fn(&Path, usize) -> Option<String> = match level {
        "core" => |root, cpu| first_of(root, cpu, &["core_cpus_list", "thread_siblings_list"]),
        "socket" => |root, cpu| first_of(root, cpu, &["package_cpus_list", "core_siblings_list"]),
        "llc" => last_level_cache,
        "node" => node,
        _ => return None,
    };
    let mut known: Vec<String> = Vec::new();
    let number = |cpu| {
        // Arrays are longer than the number of CPUs.
        if !cpu_folder(root, cpu).exists() {
            return 0;
        }
        let Some(list) = sharers(root, cpu) else { return 0 };
        let found = known.iter().position(|other| *other == list);
        let place = found.unwrap_or_else(|| {
            known.push(list);
            known.len() - 1
        });
        place as u32
    };
    Some((0..cpus).map(number).collect())
}

fn cpu_folder(root: &Path, cpu: usize) -> PathBuf {
    root.join(format!("cpu/cpu{cpu}"))
}

fn line(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn first_of(root: &Path, cpu: usize, names: &[&str]) -> Option<String> {
    let folder = cpu_folder(root, cpu).join("topology");
    names.iter().find_map(|name| line(&folder.join(name)))
}

/// The CPUs that share the last-level cache; without cache information, those of the socket, as in the kernel
/// (`cpu_coregroup_mask` falls back to the package).
fn last_level_cache(root: &Path, cpu: usize) -> Option<String> {
    let caches = cpu_folder(root, cpu).join("cache");
    let found = (0..CACHES_MAX).filter_map(|index| {
        let folder = caches.join(format!("index{index}"));
        let level: u32 = line(&folder.join("level"))?.parse().ok()?;
        Some((level, line(&folder.join("shared_cpu_list"))?))
    });
    let last = found.max_by_key(|(level, _)| *level);
    last.map(|(_, list)| list)
        .or_else(|| first_of(root, cpu, &["package_cpus_list", "core_siblings_list"]))
}

/// The NUMA node: a link in the CPU's folder, `node0`.
fn node(root: &Path, cpu: usize) -> Option<String> {
    let entries = fs::read_dir(cpu_folder(root, cpu)).ok()?;
    let mut names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.find(|name| {
        let number = name.strip_prefix("node");
        number.is_some_and(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_equal_lists_share_a_place() {
        let root = tempfile::tempdir().expect("a folder");
        for cpu in 0..4 {
            let core = root.path().join(format!("cpu/cpu{cpu}/topology"));
            fs::create_dir_all(&core).expect("a folder");
            fs::write(core.join("core_cpus_list"), ["0,2\n", "1,3\n"][cpu % 2]).expect("a file");
            fs::write(core.join("package_cpus_list"), "0-3\n").expect("a file");
            fs::create_dir(root.path().join(format!("cpu/cpu{cpu}/node{}", cpu / 2)))
                .expect("a folder");
            for (index, (level, list)) in
                [(1, "x"), (3, ["0-1", "2-3"][cpu / 2])].iter().enumerate()
            {
                let cache = root.path().join(format!("cpu/cpu{cpu}/cache/index{index}"));
                fs::create_dir_all(&cache).expect("a folder");
                fs::write(cache.join("level"), format!("{level}\n")).expect("a file");
                fs::write(cache.join("shared_cpu_list"), format!("{list}\n")).expect("a file");
            }
        }
        let at = |level| units(root.path(), level, 5);
        assert_eq!(at("core"), Some(vec![0, 1, 0, 1, 0]));
        assert_eq!(at("llc"), Some(vec![0, 0, 1, 1, 0]));
        assert_eq!(at("socket"), Some(vec![0; 5]));
        assert_eq!(at("node"), Some(vec![0, 0, 1, 1, 0]));
        assert_eq!(at("rack"), None);
    }
}
