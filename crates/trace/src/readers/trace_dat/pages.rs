//! The kernel's pages: events with the time that passed before each (`include/linux/ring_buffer.h`, `ring_buffer.c`).
//!
//! ```text
//! time stamp(8)  commit(size of long: bytes of data, flags)  data …
//! event:  type_len(5 bits) delta(27 bits) …
//!   1…28   4 × type_len bytes of data
//!   0      length(4), counting itself, data
//!   29     padding: with delta 0 up to the end of the page, else length(4) to skip
//!   30     more of the delta(4): delta + (more << 27) passes
//!   31     the time itself: delta + (more << 27), without the five highest bits
//! ```

use super::super::binary::Endian;

/// `RB_MISSED_EVENTS`: events are missing before this page.
const MISSED: u64 = 1 << 31;
/// `RB_MISSED_STORED`: their number stands behind the data.
const MISSED_STORED: u64 = 1 << 30;
/// The bits of `commit` that are a size.
const SIZE: u64 = (1 << 27) - 1;
/// The bits of a time that a time-stamp event has no room for.
const TIME_HIGH: u64 = 0x1f << 59;

/// The form of a file's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) endian: Endian,
    /// Bytes of a page.
    pub(super) page_bytes: usize,
    /// Bytes of `commit`.
    commit_bytes: usize,
    /// Where the data begin in a page.
    data_at: usize,
}

/// An item of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    /// Events are missing here; `None` when their number is unknown.
    Missed(Option<u64>),
    /// An event.
    Event { time_ns: u64, data: &'a [u8] },
    /// The page cannot be read on.
    Bad(&'static str),
    /// The page ends before its data do.
    Cut,
}

impl Layout {
    /// From the head of a file and the text of `events/header_page`.
    pub(super) fn new(endian: Endian, page_bytes: usize, header_page: &str) -> Option<Self> {
        const PAGE_BYTES: std::ops::RangeInclusive<usize> = 64..=1 << 24;
        let number = |field: &str, key: &str| {
            let line = header_page.lines().find(|line| line.contains(field))?;
            line.split_once(key)?.1.split(';').next()?.trim().parse::<usize>().ok()
        };
        let commit_bytes = number(" commit;", "size:").unwrap_or(8);
        let data_at = number(" data;", "offset:").unwrap_or(8 + commit_bytes);
        let sound = PAGE_BYTES.contains(&page_bytes)
            && matches!(commit_bytes, 4 | 8)
            && (8 + commit_bytes..page_bytes).contains(&data_at);
        sound.then_some(Self { endian, page_bytes, commit_bytes, data_at })
    }

    /// Visits the items of a page, which may be shorter than it should be.
    pub(super) fn walk<'a>(&self, page: &'a [u8], mut item: impl FnMut(Item<'a>)) {
        let Some(head) = page.get(..8 + self.commit_bytes) else { return item(Item::Cut) };
        let time_ns = self.endian.number(&head[..8]);
        let commit = self.endian.number(&head[8..]);
        let size = (commit & SIZE) as usize;
        let end = self.data_at + size;
        if end > self.page_bytes {
            return item(Item::Bad("a page with more data than fit into it"));
        }
        if commit & MISSED != 0 {
            let stored =
                page.get(end..end + self.commit_bytes).filter(|_| commit & MISSED_STORED != 0);
            item(Item::Missed(stored.map(|count| self.endian.number(count))));
        }
        let data = page.get(self.data_at..end.min(page.len())).unwrap_or_default();
        let whole = Events { endian: self.endian, data, at: 0, time_ns }.walk(&mut item);
        if end > page.len() {
            item(Item::Cut);
        } else if !whole {
            item(Item::Bad("an event that is longer than its page"));
        }
    }
}

/// The events of a page.
struct Events<'a> {
    endian: Endian,
    data: &'a [u8],
    at: usize,
    time_ns: u64,
}

impl<'a> Events<'a> {
    /// Passes each event to `item`; false if the last one is not whole.
    fn walk(mut self, item: &mut impl FnMut(Item<'a>)) -> bool {
        while self.at < self.data.len() {
            let Some((kind, delta)) = self.word(0).map(|word| self.split(word)) else {
                return false;
            };
            let next = self.word(4);
            let data = match (kind, next) {
                (29, _) if delta == 0 => return true,
                (29, Some(length)) => {
                    self.pass(delta);
                    self.at = self.at.saturating_add(4 + length as usize);
                    continue;
                }
                (30, Some(more)) => {
                    self.pass(delta + (u64::from(more) << 27));
                    self.at += 8;
                    continue;
                }
                (31, Some(more)) => {
                    self.time_ns = stamp(delta + (u64::from(more) << 27), self.time_ns);
                    self.at += 8;
                    continue;
                }
                (0, Some(length)) if length >= 4 => self.take(8, length as usize - 4),
                (1..=28, _) => self.take(4, 4 * kind as usize),
                _ => None,
            };
            let Some(data) = data else { return false };
            self.pass(delta);
            item(Item::Event { time_ns: self.time_ns, data });
        }
        self.at == self.data.len()
    }

    fn word(&self, ahead: usize) -> Option<u32> {
        let at = self.at + ahead;
        Some(self.endian.number(self.data.get(at..at + 4)?) as u32)
    }

    /// `type_len` and `time_delta`: bit fields begin at the low end of a little-endian word, at the high end of a big
    /// one.
    fn split(&self, word: u32) -> (u32, u64) {
        match self.endian {
            Endian::Little => (word & 0x1f, u64::from(word >> 5)),
            Endian::Big => (word >> 27, u64::from(word & 0x7ff_ffff)),
        }
    }

    fn pass(&mut self, delta: u64) {
        self.time_ns = self.time_ns.saturating_add(delta);
    }

    fn take(&mut self, ahead: usize, size: usize) -> Option<&'a [u8]> {
        let start = self.at + ahead;
        let data = self.data.get(start..start.checked_add(size)?)?;
        self.at = start + size;
        Some(data)
    }
}

/// The time of a time-stamp event, whose highest bits are those of the time before it, or one more
/// (`rb_fix_abs_ts`).
fn stamp(low: u64, before_ns: u64) -> u64 {
    let high = before_ns & TIME_HIGH;
    let time_ns = low | high;
    if high != 0 && time_ns < before_ns { time_ns.wrapping_add(1 << 59) } else { time_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn layout() -> Layout {
        Layout::new(Endian::Little, 128, HEADER).unwrap()
    }

    fn page(time: u64, flags: u64, words: &[u32]) -> Vec<u8> {
        let mut page = time.to_le_bytes().to_vec();
        page.extend((flags | (4 * words.len() as u64)).to_le_bytes());
        words.iter().for_each(|word| page.extend(word.to_le_bytes()));
        page.resize(128, 0);
        page
    }

    fn times_and_sizes(page: &[u8]) -> (Vec<(u64, usize)>, Vec<String>) {
        let (mut events, mut others) = (Vec::new(), Vec::new());
        layout().walk(page, |item| match item {
            Item::Event { time_ns, data } => events.push((time_ns, data.len())),
            other => others.push(format!("{other:?}")),
        });
        (events, others)
    }

    #[test]
    fn every_kind_of_event() {
        let head = |kind: u32, delta: u32| kind | delta << 5;
        let words = [
            head(1, 0),
            7, // at once
            head(30, 5),
            1, // 5 + 2^27 pass
            head(2, 10),
            7,
            7,
            head(29, 1),
            8,
            0, // something that was given up: 12 bytes in all
            head(0, 3),
            12,
            7,
            7, // 8 bytes of data
            head(31, 9),
            0, // time 9 itself
            head(1, 1),
            7,
            head(29, 0),
            99, // nothing more
        ];
        let (events, others) = times_and_sizes(&page(1000, 0, &words));
        let long = (1 << 27) + 1000;
        assert_eq!(events, [(1000, 4), (long + 15, 8), (long + 19, 8), (10, 4)]);
        assert!(others.is_empty(), "{others:?}");
    }

    #[test]
    fn missing_events_are_told() {
        let mut bytes = page(1, MISSED | MISSED_STORED, &[1, 7]);
        bytes[24] = 35;
        assert_eq!(times_and_sizes(&bytes).1, ["Missed(Some(35))"]);
        assert_eq!(times_and_sizes(&page(1, MISSED, &[])).1, ["Missed(None)"]);
    }

    #[test]
    fn damage_ends_a_page_and_no_more() {
        let (events, others) = times_and_sizes(&page(1, 0, &[1, 7, 28, 7]));
        assert_eq!((events.len(), others.len()), (1, 1));
        assert!(others[0].starts_with("Bad"), "{others:?}");
        assert_eq!(times_and_sizes(&page(1, 0, &[1, 7])[..20]), (vec![], vec!["Cut".to_owned()]));
        assert_eq!(times_and_sizes(&page(1, 0, &[1, 7])[..7]), (vec![], vec!["Cut".to_owned()]));
        let (events, others) = times_and_sizes(&page(1, 4096, &[1, 7]));
        assert!(events.is_empty() && others[0].starts_with("Bad"));
        for page_bytes in [0, 16, 1 << 30] {
            assert_eq!(Layout::new(Endian::Little, page_bytes, HEADER), None);
        }
    }

    #[test]
    fn the_highest_bits_of_a_time_are_kept() {
        let high = 1 << 59;
        assert_eq!(stamp(5, 4), 5);
        assert_eq!(stamp(5, 9), 5);
        assert_eq!(stamp(5, high | 4), high | 5);
        assert_eq!(stamp(5, high | 9), (2 * high) | 5);
    }
}
