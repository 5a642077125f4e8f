//! Words for what a loader takes from the machine's topology: `cpus`, `cpu.llc`, `node.mask`.

use std::collections::BTreeSet;

use crate::topology::{CpuPlace, Topology};

/// The capacity of a CPU of the largest kind (`SCHED_CAPACITY_SCALE`). All CPUs of a topology are alike.
const CAPACITY: u64 = 1024;
/// Bits of a machine word of a mask.
const WORD_BITS: u32 = 64;

/// The words that stand for one number.
const NUMBERS: [&str; 10] = [
    "cpus",
    "cores",
    "llcs",
    "nodes",
    "sockets",
    "threads_per_core",
    "smt",
    "numa",
    "one_llc",
    "one_node",
];
/// The words that stand for a list, one value for each place of a level.
const LISTS: &str = "`cpu.id`, `cpu.core`, `cpu.llc`, `cpu.node`, `cpu.socket`, `cpu.sibling`, `cpu.capacity`, \
                     `core.llc`, `llc.node`, `cpu.core_cpus`, `cpu.llc_cpus`, `cpu.node_cpus`, `llc.node_llcs`, and \
                     `LEVEL.id`, `LEVEL.cpus`, `LEVEL.first_cpu`, `LEVEL.mask`, `LEVEL.nearest`, `LEVEL.others`, `llc.cores`, \
                     `node.cores`, `node.llcs`, `node.llc_ids`";
/// Suffix of a word for a list of numbers to count them.
const COUNT: &str = ".count";

/// A level of the machine: its name, and the number of a CPU's place in it.
type Level = (&'static str, fn(u32, &CpuPlace) -> u32);

const LEVELS: [Level; 5] = [
    ("cpu", |cpu, _| cpu),
    ("core", |_, place| place.core),
    ("llc", |_, place| place.llc),
    ("node", |_, place| place.node),
    ("socket", |_, place| place.socket),
];

/// One value of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A number.
    Number(u64),
    /// A bit mask of CPUs, 64 in a word.
    Mask(Vec<u64>),
    /// Numbers, for the first elements of an array.
    Numbers(Vec<u64>),
}

impl Item {
    fn words(self) -> Vec<u64> {
        match self {
            Item::Number(number) => vec![number],
            Item::Mask(words) | Item::Numbers(words) => words,
        }
    }
}

/// Meaning of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// One number or mask.
    One(Item),
    /// A value for each place of a level.
    List(Vec<Item>),
}

/// The words, for one machine.
#[derive(Clone, Copy, Debug)]
pub struct Words<'t> {
    topology: &'t Topology,
    place: Option<(&'t str, usize)>,
}

impl<'t> Words<'t> {
    /// The words for a machine with this topology.
    pub fn of(topology: &'t Topology) -> Words<'t> {
        Words { topology, place: None }
    }

    /// The same at a place: words for lists of that level (`cpu`, `llc`) stand for its value there.
    pub fn at(self, level: &'t str, place: usize) -> Words<'t> {
        Words { place: Some((level, place)), ..self }
    }

    /// The number that a word stands for: `cpus`, `cores`, `llcs`, `nodes`, `sockets`, `threads_per_core` (of the core
    /// with the most), `smt`, `numa`, `one_llc`, `one_node` (1 or 0). `None`: it is no such word.
    pub fn number(&self, word: &str) -> Option<u64> {
        let level = |name: &str| self.places(LEVELS.iter().find(|level| level.0 == name).copied()?);
        let count = |name: &str| Some(level(name)?.len() as u64);
        match word {
            "cpus" => Some(u64::from(self.topology.cpus())),
            "cores" => count("core"),
            "llcs" => count("llc"),
            "nodes" => count("node"),
            "sockets" => count("socket"),
            "threads_per_core" => level("core")?.iter().map(|cpus| cpus.len() as u64).max(),
            "smt" => Some(u64::from(self.topology.has_smt())),
            "numa" => Some(u64::from(count("node")? > 1)),
            "one_llc" => Some(u64::from(count("llc")? == 1)),
            "one_node" => Some(u64::from(count("node")? == 1)),
            _ => None,
        }
    }

    /// An index: a number or a word for one.
    pub(super) fn index(&self, text: &str) -> Result<u64, String> {
        let number = text.parse::<u64>().ok().or_else(|| self.number(text));
        number.ok_or_else(|| {
            format!(
                "`[{text}]` is no element: write `[2]`, `[0..4]` (without 4), `[*]`, or a word of `{}`",
                NUMBERS.join("`, `")
            )
        })
    }

    /// Meaning of a value, if it is a word: `cpus.mask`, `cpu.llc`.
    ///
    /// # Errors
    /// It begins as a word does, and is none.
    pub(super) fn meaning(&self, text: &str) -> Result<Option<Meaning>, String> {
        if let Some(number) = self.number(text) {
            return Ok(Some(Meaning::One(Item::Number(number))));
        }
        if text == "cpus.mask" {
            let all: Vec<u32> = (0..self.topology.cpus()).collect();
            return Ok(Some(Meaning::One(self.mask(&all))));
        }
        if text == "cpus.capacity" {
            let capacity = CAPACITY * u64::from(self.topology.cpus());
            return Ok(Some(Meaning::One(Item::Number(capacity))));
        }
        let Some((name, of)) = text.split_once('.') else { return Ok(None) };
        let Some(level) = LEVELS.iter().find(|level| level.0 == name) else { return Ok(None) };
        let none = || format!("`{text}` is no word for a list; there are {LISTS}");
        let places = self.places(*level).ok_or_else(none)?;
        let value = |number: usize| self.value(number, places.get(number)?, *level, of);
        match self.place {
            Some((at, number)) if at == name => {
                value(number).map(|item| Some(Meaning::One(item))).ok_or_else(none)
            }
            _ => {
                let values = (0..places.len()).map(value).collect::<Option<Vec<Item>>>();
                values.map(|values| Some(Meaning::List(values))).ok_or_else(none)
            }
        }
    }

    /// The names of the levels, with the words that count their places: `cpu` and `cpus`.
    pub fn levels() -> impl Iterator<Item = (&'static str, String)> {
        LEVELS.iter().map(|level| (level.0, format!("{}s", level.0)))
    }

    /// The values of a word for a list, one for each place of its level; masks of CPUs in words of 64, numbers in one.
    ///
    /// # Errors
    /// It is no such word.
    pub fn list(&self, word: &str) -> Result<Vec<Vec<u64>>, String> {
        match self.meaning(word)? {
            Some(Meaning::List(items)) => Ok(items.into_iter().map(Item::words).collect()),
            _ => Err(format!("`{word}` is no word for a list; there are {LISTS}")),
        }
    }

    /// The CPUs of each place of a level; `None` if the machine is larger than any.
    fn places(&self, (_, number): Level) -> Option<Vec<Vec<u32>>> {
        let mut places: Vec<Vec<u32>> = Vec::new();
        for cpu in 0..self.topology.cpus() {
            let at = number(cpu, &self.topology.place(cpu)?) as usize;
            if places.len() <= at {
                places.resize(at + 1, Vec::new());
            }
            places[at].push(cpu);
        }
        Some(places)
    }

    /// A property of a place, which is the place of all its CPUs.
    fn value(&self, number: usize, cpus: &[u32], level: Level, of: &str) -> Option<Item> {
        if let Some(numbers) = of.strip_suffix(COUNT) {
            let numbers = self.numbers(number, cpus, level, numbers)?;
            return Some(Item::Number(numbers.len() as u64));
        }
        if let Some(numbers) = self.numbers(number, cpus, level, of) {
            return Some(Item::Numbers(numbers));
        }
        let first = *cpus.first()?;
        let level = level.0;
        let place = self.topology.place(first)?;
        // Of a level that lies within the other one, so that it has one number only.
        let outer = match (level, of) {
            ("cpu", "core") => place.core,
            ("cpu" | "core", "llc") => place.llc,
            ("cpu" | "core" | "llc", "node") => place.node,
            ("cpu" | "core" | "llc", "socket") => place.socket,
            ("cpu", "sibling") => self.sibling(first, place.core),
            ("cpu", "core_cpus") => self.alike(|other| other.core == place.core),
            ("cpu", "llc_cpus") => self.alike(|other| other.llc == place.llc),
            ("cpu", "node_cpus") => self.alike(|other| other.node == place.node),
            ("llc", "node_llcs") => {
                let node = self.cpus_of(|other| other.node == place.node);
                self.distinct(&node, |place| place.llc)
            }
            (_, "id") => number as u32,
            (_, "cpus") => cpus.len() as u32,
            (_, "first_cpu") => first,
            ("llc" | "node" | "socket", "cores") => self.distinct(cpus, |place| place.core),
            ("node" | "socket", "llcs") => self.distinct(cpus, |place| place.llc),
            (_, "mask") => return Some(self.mask(cpus)),
            ("cpu", "capacity") => return Some(Item::Number(CAPACITY)),
            _ => return None,
        };
        Some(Item::Number(u64::from(outer)))
    }

    /// Several numbers for a place: all places of its level (`nearest`), or the others, the nearest first; the caches
    /// of a node.
    fn numbers(&self, number: usize, cpus: &[u32], level: Level, of: &str) -> Option<Vec<u64>> {
        if (level.0, of) == ("node", "llc_ids") {
            let llcs = cpus.iter().filter_map(|cpu| Some(self.topology.place(*cpu)?.llc.into()));
            return Some(llcs.collect::<BTreeSet<u64>>().into_iter().collect());
        }
        if !["nearest", "others"].contains(&of) {
            return None;
        }
        let here = self.topology.place(*cpus.first()?)?;
        let mut others: Vec<_> = self.places(level)?.into_iter().enumerate().collect();
        others.retain(|(other, _)| of == "nearest" || *other != number);
        let mut keyed = Vec::with_capacity(others.len());
        for (other, cpus) in others {
            let there = self.topology.place(*cpus.first()?)?;
            let apart = [
                other != number,
                there.core != here.core,
                there.llc != here.llc,
                there.node != here.node,
                there.socket != here.socket,
            ];
            let outermost = apart.iter().rposition(|is_apart| *is_apart);
            let steps = (there.core.abs_diff(here.core), other.abs_diff(number));
            keyed.push((outermost, steps, other as u64));
        }
        keyed.sort_unstable();
        Some(keyed.into_iter().map(|(_, _, other)| other).collect())
    }

    fn cpus_of(&self, is_one: impl Fn(&CpuPlace) -> bool) -> Vec<u32> {
        let is_one = |cpu: &u32| self.topology.place(*cpu).is_some_and(|place| is_one(&place));
        (0..self.topology.cpus()).filter(is_one).collect()
    }

    /// How many CPUs are in some place.
    fn alike(&self, is_one: impl Fn(&CpuPlace) -> bool) -> u32 {
        self.cpus_of(is_one).len() as u32
    }

    /// How many places of a kind some CPUs are in.
    fn distinct(&self, cpus: &[u32], of: impl Fn(&CpuPlace) -> u32) -> u32 {
        let places = cpus.iter().filter_map(|cpu| self.topology.place(*cpu));
        places.map(|place| of(&place)).collect::<BTreeSet<_>>().len() as u32
    }

    /// A mask of all CPUs, in words of 64.
    pub fn mask_of_all(&self) -> Vec<u64> {
        let all: Vec<u32> = (0..self.topology.cpus()).collect();
        self.mask(&all).words()
    }

    /// The next hardware thread of the same core, the first one after the last; the CPU itself, if it has none.
    fn sibling(&self, cpu: u32, core: u32) -> u32 {
        let cpus = self.topology.cpus();
        let others = (1..cpus).map(|step| (cpu + step) % cpus);
        let same = |other: &u32| self.topology.place(*other).is_some_and(|p| p.core == core);
        others.into_iter().find(same).unwrap_or(cpu)
    }

    fn mask(&self, cpus: &[u32]) -> Item {
        let mut words = vec![0; self.topology.cpus().div_ceil(WORD_BITS) as usize];
        for cpu in cpus {
            words[(cpu / WORD_BITS) as usize] |= 1 << (cpu % WORD_BITS);
        }
        Item::Mask(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(topology: &str, word: &str) -> Vec<u64> {
        let topology = topology.parse().expect("a topology");
        let Ok(Some(Meaning::List(items))) = Words::of(&topology).meaning(word) else {
            panic!("{word} is a list")
        };
        let number = |item| match item {
            Item::Number(number) => number,
            Item::Mask(words) | Item::Numbers(words) => words[0],
        };
        items.into_iter().map(number).collect()
    }

    #[test]
    fn each_level_has_a_value_for_each_of_its_places() {
        for (word, values) in [
            ("cpu.id", vec![0, 1, 2, 3, 4, 5, 6, 7]),
            ("cpu.core", vec![0, 0, 1, 1, 2, 2, 3, 3]),
            ("cpu.llc", vec![0, 0, 0, 0, 1, 1, 1, 1]),
            ("cpu.sibling", vec![1, 0, 3, 2, 5, 4, 7, 6]),
            ("cpu.capacity", vec![1024; 8]),
            ("core.node", vec![0, 0, 1, 1]),
            ("llc.node", vec![0, 1]),
            ("llc.cpus", vec![4, 4]),
            ("llc.mask", vec![0x0f, 0xf0]),
        ] {
            assert_eq!(list("2x2x2", word), values, "{word}");
        }
        assert_eq!(list("3", "cpu.sibling"), [0, 1, 2], "each is alone on its core");
        assert_eq!(list("4x1x1,nodes=2", "llc.node"), [0, 0, 1, 1]);
    }

    #[test]
    fn neighbours_come_in_the_order_of_their_distance() {
        let topology = "2x2x2".parse().expect("a topology");
        let words = Words::of(&topology);
        let at = |level, place, word| match words.at(level, place).meaning(word) {
            Ok(Some(Meaning::One(item))) => item.words(),
            other => panic!("{word}: {other:?}"),
        };
        assert_eq!(at("cpu", 2, "cpu.nearest"), [2, 3, 1, 0, 4, 5, 6, 7]);
        assert_eq!(at("cpu", 5, "cpu.others"), [4, 6, 7, 3, 2, 1, 0]);
        assert_eq!(at("cpu", 5, "cpu.others.count"), [7]);
        assert_eq!(at("cpu", 5, "cpu.mask"), [1 << 5]);
        assert_eq!(at("llc", 1, "llc.nearest"), [1, 0]);
        assert_eq!(at("node", 0, "node.others"), [1]);
        assert_eq!(at("node", 1, "node.llc_ids"), [1]);
        let ends =
            ["cpu.core_cpus", "cpu.llc_cpus", "cpu.node_cpus"].map(|word| at("cpu", 7, word));
        assert_eq!(ends.concat(), [2, 4, 4]);
        assert_eq!(list("4x1x1,nodes=2", "llc.node_llcs"), [2; 4]);
        assert_eq!(words.meaning("cpus.capacity"), Ok(Some(Meaning::One(Item::Number(8192)))));
        // Words of another level stay lists.
        assert!(matches!(words.at("cpu", 2).meaning("llc.id"), Ok(Some(Meaning::List(_)))));
        assert!(words.at("cpu", 8).meaning("cpu.id").is_err(), "there is no such CPU");
    }

    #[test]
    fn what_has_no_single_value_is_no_word() {
        let topology = "2x2x2".parse().expect("a topology");
        let words = Words::of(&topology);
        for word in ["node.llc", "cpu.llcs", "llc.capacity", "cpu."] {
            assert!(words.meaning(word).expect_err(word).contains("`cpu.llc`"), "{word}");
        }
        for text in ["llc", "7", "a.b", ""] {
            assert_eq!(words.meaning(text), Ok(None), "{text}");
        }
        let counts = NUMBERS.map(|word| words.number(word).expect("a number"));
        assert_eq!(counts, [8, 4, 2, 2, 2, 2, 1, 1, 0, 0]);
    }
}
