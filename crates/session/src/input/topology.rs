//! A topology: a short form, a file, or the content of one.

use fairground_machine::{CpuPlace, Topology};
use fairground_realkernel::files::read_text;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::check_version;
use crate::failure::Failure;

/// The only version of the format so far.
pub const TOPOLOGY_FORMAT: u32 = 1;
/// More places than this of one kind are a mistake, and are not built.
const PLACES_MAX: u32 = 1024;
const HELP: &str = "docs/reference/topology.md lists the keys of a topology file";

/// A topology file: sockets of caches of cores. Unknown keys are errors.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    format: u32,
    #[serde(default)]
    numbering: Numbering,
    #[serde(rename = "socket")]
    sockets: Vec<Socket>,
}

/// How the hardware threads are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Numbering {
    /// The threads of a core have adjacent numbers.
    #[default]
    Adjacent,
    /// First the first threads of all cores, then the second ones.
    X86,
}

/// Equal sockets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Socket {
    #[serde(default = "one")]
    count: u32,
    /// The NUMA node of all its CPUs.
    node: Option<u32>,
    /// NUMA nodes that it has for itself.
    nodes: Option<u32>,
    /// Equal caches: how many.
    llcs: Option<u32>,
    /// Equal caches: their cores.
    cores: Option<u32>,
    /// Equal caches: their cores' threads.
    threads: Option<Threads>,
    /// Caches that differ.
    #[serde(default, rename = "llc")]
    caches: Vec<Cache>,
}

/// Equal last-level caches.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cache {
    #[serde(default = "one")]
    count: u32,
    cores: Option<u32>,
    threads: Option<Threads>,
}

/// Threads of every core, or of one core after the other.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Threads {
    Each(u32),
    List(Vec<u32>),
}

fn one() -> u32 {
    1
}

/// A topology from its short form, or from the file of that name.
pub(crate) fn find_topology(argument: &str) -> Result<Topology, Failure> {
    if argument.ends_with(".toml") || argument.contains('/') {
        let text = read_text(argument).map_err(|e| Failure::io(argument, &e))?;
        check_version(argument, &text, TOPOLOGY_FORMAT)?;
        let shape: Shape = toml::from_str(&text).map_err(|e| {
            Failure::new(format_args!("{argument}: {}", e.to_string().trim_end())).help(HELP)
        })?;
        return build(argument, &shape);
    }
    argument.parse().map_err(|e| {
        Failure::new(format_args!("--topology: {e}")).help("or the path of a file, NAME.toml")
    })
}

/// A topology from the content of a topology file.
pub(crate) fn topology_table(table: &Map<String, Value>) -> Result<Topology, Failure> {
    let shape = Shape::deserialize(Value::Object(table.clone()))
        .map_err(|e| Failure::new(format_args!("topology: {e}")).help(HELP))?;
    build("topology", &shape)
}

fn build(place: &str, shape: &Shape) -> Result<Topology, Failure> {
    let wrong = |text: String| Failure::new(format_args!("{place}: {text}")).help(HELP);
    if shape.format != TOPOLOGY_FORMAT {
        return Err(wrong(format!(
            "format = {}, and this fairground reads format {TOPOLOGY_FORMAT}",
            shape.format
        )));
    }
    let mut builder = Builder::default();
    for (number, socket) in shape.sockets.iter().enumerate() {
        let wrong = |text| wrong(format!("socket entry {}: {text}", number + 1));
        within(socket.count, "count").map_err(&wrong)?;
        if let Some(node) = socket.node.filter(|node| *node >= PLACES_MAX) {
            return Err(wrong(format!("node = {node}; give 0 to {}", PLACES_MAX - 1)));
        }
        for _ in 0..socket.count {
            builder.socket(socket).map_err(&wrong)?;
        }
    }
    let by_nodes = shape.sockets.iter().filter(|s| s.node.is_some()).count();
    if by_nodes != 0 && by_nodes != shape.sockets.len() {
        return Err(wrong("either every socket entry names its `node`, or none".to_owned()));
    }
    let mut threads = builder.threads;
    if shape.numbering == Numbering::X86 {
        threads.sort_by_key(|(thread, _)| *thread);
    }
    let places: Vec<CpuPlace> = threads.into_iter().map(|(_, place)| place).collect();
    let nodes = places.iter().map(|p| p.node + 1).max().unwrap_or(0);
    let CpuPlace { core: cores, llc: caches, socket: sockets, .. } = builder.next;
    let text = format!(
        "{place}: {} CPUs, {cores} cores, {caches} last-level caches, {nodes} nodes, {sockets} sockets",
        places.len()
    );
    Topology::from_places(places, &text).map_err(|e| wrong(e.problem))
}

/// A number of places.
fn within(number: u32, key: &str) -> Result<u32, String> {
    if (1..=PLACES_MAX).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{key} = {number}; give 1 to {PLACES_MAX}"))
    }
}

/// The machine so far.
#[derive(Debug, Default)]
struct Builder {
    /// The number of the next place of each level.
    next: CpuPlace,
    /// Each CPU: its number within its core, and its place.
    threads: Vec<(u32, CpuPlace)>,
}

impl Builder {
    fn socket(&mut self, socket: &Socket) -> Result<(), String> {
        let caches = caches_of(socket)?;
        let count: u32 = caches.iter().map(|cache| cache.count).sum();
        let nodes = match (socket.node, socket.nodes) {
            (Some(_), Some(_)) => return Err("`node` and `nodes` exclude each other".to_owned()),
            (_, nodes) => within(nodes.unwrap_or(1), "nodes")?,
        };
        if !count.is_multiple_of(nodes) {
            return Err(format!(
                "{count} last-level caches cannot be spread evenly over {nodes} nodes"
            ));
        }
        let first_node = self.next.node;
        let mut number = 0;
        for cache in &caches {
            for _ in 0..cache.count {
                self.next.node = socket.node.unwrap_or(first_node + number / (count / nodes));
                self.cache(&threads_of(cache)?)?;
                number += 1;
            }
        }
        self.next.node = if socket.node.is_some() { first_node } else { first_node + nodes };
        self.next.socket += 1;
        Ok(())
    }

    fn cache(&mut self, cores: &[u32]) -> Result<(), String> {
        for threads in cores {
            if self.threads.len() as u64 + u64::from(*threads) > u64::from(PLACES_MAX) {
                return Err(format!("the machine has more than {PLACES_MAX} CPUs"));
            }
            self.threads.extend((0..*threads).map(|thread| (thread, self.next)));
            self.next.core += 1;
        }
        self.next.llc += 1;
        Ok(())
    }
}

fn caches_of(socket: &Socket) -> Result<Vec<Cache>, String> {
    let equal = socket.llcs.is_some() || socket.cores.is_some() || socket.threads.is_some();
    if equal && !socket.caches.is_empty() {
        return Err(
            "`llcs`, `cores` and `threads` are for equal caches; with [[socket.llc]] they stand there".to_owned()
        );
    }
    let mut caches = socket.caches.clone();
    if caches.is_empty() {
        let count = socket.llcs.unwrap_or(1);
        caches.push(Cache { count, cores: socket.cores, threads: socket.threads.clone() });
    }
    for cache in &caches {
        within(cache.count, if equal { "llcs" } else { "count" })?;
    }
    Ok(caches)
}

/// The threads of each core of a cache.
fn threads_of(cache: &Cache) -> Result<Vec<u32>, String> {
    let threads = match (&cache.threads, cache.cores) {
        (Some(Threads::List(list)), Some(cores)) if list.len() != cores as usize => {
            return Err(format!("`threads` lists {} cores, `cores` says {cores}", list.len()));
        }
        (Some(Threads::List(list)), _) => list.clone(),
        (each, cores) => {
            let each = if let Some(Threads::Each(threads)) = each { *threads } else { 1 };
            vec![each; within(cores.unwrap_or(1), "cores")? as usize]
        }
    };
    threads.iter().try_for_each(|n| within(*n, "threads").map(drop))?;
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Result<Topology, Failure> {
        let table: Map<String, Value> = toml::from_str(text).expect("TOML");
        topology_table(&table)
    }

    /// Per CPU: core, cache, node, socket.
    fn places(text: &str) -> Vec<[u32; 4]> {
        let topology = shape(text).unwrap_or_else(|e| panic!("{e}"));
        let place = |cpu| topology.place(cpu).expect("a CPU");
        (0..topology.cpus()).map(place).map(|p| [p.core, p.llc, p.node, p.socket]).collect()
    }

    #[test]
    fn eight_sockets_of_one_cpu_in_one_node() {
        let all = places("format = 1\n[[socket]]\ncount = 8\nnode = 0\n");
        assert_eq!(all, (0..8).map(|cpu| [cpu, cpu, 0, cpu]).collect::<Vec<_>>());
    }

    #[test]
    fn x86_numbers_second_threads_last() {
        let all = places(
            "format = 1\nnumbering = \"x86\"\n[[socket]]\ncount = 2\ncores = 2\nthreads = 2\n",
        );
        let cores = [[0, 0, 0, 0], [1, 0, 0, 0], [2, 1, 1, 1], [3, 1, 1, 1]];
        assert_eq!(all, [cores, cores].concat());
    }

    #[test]
    fn uneven_shapes() {
        let all = places(
            "format = 1\n[[socket]]\nnodes = 2\n[[socket.llc]]\nthreads = [2, 1]\n[[socket.llc]]\ncores = 1\n",
        );
        assert_eq!(all, [[0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [2, 1, 1, 0]]);
        let all = places("format = 1\n[[socket]]\nllcs = 2\n[[socket]]\nthreads = 2");
        assert_eq!(all, [[0, 0, 0, 0], [1, 1, 0, 0], [2, 2, 1, 1], [2, 2, 1, 1]]);
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (text, says) in [
            ("format = 2\nsocket = []", "format = 2"),
            ("format = 1\nsocket = []", "at least one CPU"),
            ("format = 1\nsocket = [{cores = 0}]", "cores = 0"),
            ("format = 1\nsocket = [{cores = 1025}]", "cores = 1025"),
            ("format = 1\nsocket = [{count = 4, cores = 512}]", "more than 1024 CPUs"),
            ("format = 1\nsocket = [{llcs = 3, nodes = 2}]", "spread evenly"),
            ("format = 1\nsocket = [{node = 0}, {}]", "either every socket"),
            ("format = 1\nsocket = [{node = 1}]", "node 1"),
            ("format = 1\nsocket = [{node = 0, nodes = 1}]", "exclude"),
            ("format = 1\nsocket = [{cores = 3, threads = [1]}]", "lists 1 cores"),
            ("format = 1\nsocket = [{cores = 3, llc = [{cores = 1}]}]", "with [[socket.llc]]"),
            ("format = 1\nsocket = [{core = 3}]", "unknown field `core`"),
        ] {
            let error = shape(text).map(|t| t.to_string()).expect_err(text).to_string();
            assert!(error.contains(says) && error.starts_with("topology: "), "{error}");
        }
    }
}
