//! Words for what a loader takes from the machine's topology: `cpus`, `cpu.llc`, `node.mask`.

use std::collections::BTreeSet;

use crate::topology::{CpuPlace, Topology};

/// The capacity of a CPU of the largest kind (`SCHED_CAPACITY_SCALE`). All CPUs of a topology are alike.
const CAPACITY: u64 = 1024;
/// Bits of a machine word of a mask.
const WORD_BITS: u32 = 64;

/// The words that stand for one number.
const NUMBERS: [&str; 7] = ["cpus", "cores", "llcs", "nodes", "sockets", "threads_per_core", "smt"];
/// The words that stand for a list, one value for each place of a level.
const LISTS: &str = "`cpu.id`, `cpu.core`, `cpu.llc`, `cpu.node`, `cpu.socket`, `cpu.sibling`, `cpu.capacity`, \
                     `core.llc`, `llc.node`, and `LEVEL.id`, `LEVEL.cpus`, `LEVEL.mask`, `llc.cores`, `node.cores`, `node.llcs`";

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
}

impl Item {
    fn words(self) -> Vec<u64> {
        match self {
            Item::Number(number) => vec![number],
            Item::Mask(words) => words,
        }
    }
}

/// What a word stands for.
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
}

impl<'t> Words<'t> {
    /// The words for a machine with this topology.
    pub fn of(topology: &'t Topology) -> Words<'t> {
        Words { topology }
    }

    /// The number that a word stands for: `cpus`, `cores`, `llcs`, `nodes`, `sockets`, `threads_per_core` (of the core
    /// with the most), `smt` (1 or 0). `None`: it is no such word.
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

    /// What a value stands for, if it is a word: `cpus.mask`, `cpu.llc`.
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
        let Some((name, of)) = text.split_once('.') else { return Ok(None) };
        let Some(level) = LEVELS.iter().find(|level| level.0 == name) else { return Ok(None) };
        let values = self.places(*level).map(|places| {
            let value = |(number, cpus): (usize, &Vec<u32>)| self.value(number, cpus, name, of);
            places.iter().enumerate().map(value).collect::<Option<Vec<Item>>>()
        });
        match values.flatten() {
            Some(values) => Ok(Some(Meaning::List(values))),
            None => Err(format!("`{text}` is no word for a list; there are {LISTS}")),
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
    fn value(&self, number: usize, cpus: &[u32], level: &str, of: &str) -> Option<Item> {
        let first = *cpus.first()?;
        let place = self.topology.place(first)?;
        // Of a level that lies within the other one, so that it has one number only.
        let outer = match (level, of) {
            ("cpu", "core") => place.core,
            ("cpu" | "core", "llc") => place.llc,
            ("cpu" | "core" | "llc", "node") => place.node,
            ("cpu" | "core" | "llc", "socket") => place.socket,
            ("cpu", "sibling") => self.sibling(first, place.core),
            (_, "id") => number as u32,
            (_, "cpus") => cpus.len() as u32,
            ("llc" | "node" | "socket", "cores") => self.distinct(cpus, |place| place.core),
            ("node" | "socket", "llcs") => self.distinct(cpus, |place| place.llc),
            (_, "mask") => return Some(self.mask(cpus)),
            ("cpu", "capacity") => return Some(Item::Number(CAPACITY)),
            _ => return None,
        };
        Some(Item::Number(u64::from(outer)))
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
            Item::Mask(words) => words[0],
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
        assert_eq!(counts, [8, 4, 2, 2, 2, 2, 1]);
    }
}
