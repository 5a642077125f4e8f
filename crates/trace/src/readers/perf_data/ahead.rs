//! The records of a file, taken apart in pieces by several threads, each of which takes the next piece that nobody has, and put together in
//! the order of the file. Where the first record of a piece begins is guessed: the end of the piece before says whether the guess was right. Whatever
//! the guesses, the pieces and the threads, the trace is the one that reading record by record gives.

use std::mem::take;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::super::binary::Flat;
use super::super::names::Roster;
use super::super::records::Record;
use super::container::Attributes;
use super::forms::Forms;
use super::input::ReadAt;
use super::piece::{Hands, Piece};
use super::{Endian, Reader, SAMPLE_BYTES_MIN};
use crate::memory;

const THREADS_MAX: usize = 8;
/// After so many pieces in a row that had to be read record by record the others are not tried.
const ODD_PIECES_MAX: u32 = 16;

/// How the work is cut.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Cut {
    pub(in super::super) piece_bytes: usize,
    pub(in super::super) threads: usize,
}

impl Cut {
    /// For this machine.
    pub(in super::super) fn usual() -> Self {
        let threads = thread::available_parallelism().map_or(1, |known| known.get());
        Self { piece_bytes: 1 << 18, threads: threads.min(THREADS_MAX) }
    }
}

/// Where the records are, and how they are to be read.
#[derive(Debug)]
pub(super) struct Data<'a, I> {
    pub(super) input: &'a I,
    pub(super) attributes: &'a Attributes,
    pub(super) flat: &'a Flat,
    pub(super) from: u64,
    pub(super) end: u64,
}

/// What all threads know of each other.
#[derive(Debug)]
struct Shared {
    /// The next piece that nobody has.
    next: AtomicUsize,
    /// Pieces in a row, as they come, that have to be read record by record.
    odd: AtomicU32,
    roster: Mutex<Roster>,
}

/// What one thread made: the pieces by their numbers, and their events.
type Made = (Vec<(usize, Piece)>, Vec<Record>);

impl<'a, I: ReadAt> Data<'a, I> {
    fn hands<'h>(&self, roster: &'h Mutex<Roster>) -> Hands<'h>
    where
        'a: 'h,
    {
        Hands::new(Forms::new(self.attributes, Endian::Little), self.flat, roster)
    }

    /// Takes pieces apart until there are no more, or it is in vain.
    fn work(&self, shared: &Shared, cut: Cut) -> Made {
        let mut hands = self.hands(&shared.roster);
        let each = (self.end - self.from) / SAMPLE_BYTES_MIN / cut.threads as u64;
        // Others may have less time for it.
        memory::reserve(&mut hands.records, usize::try_from(each.saturating_mul(2)).unwrap_or(0));
        let mut pieces = Vec::new();
        while shared.odd.load(Ordering::Relaxed) < ODD_PIECES_MAX {
            let index = shared.next.fetch_add(1, Ordering::Relaxed);
            let at =
                self.from.saturating_add((index as u64).saturating_mul(cut.piece_bytes as u64));
            if at >= self.end {
                break;
            }
            hands.fill(self.input, at, cut.piece_bytes, self.end);
            let start = if index == 0 { 0 } else { hands.guess() };
            let piece = hands.take_apart(start, self.input, self.end);
            match piece.is_odd {
                true => shared.odd.fetch_add(1, Ordering::Relaxed),
                false => shared.odd.swap(0, Ordering::Relaxed),
            };
            pieces.push((index, piece));
            self.input.passed(at);
        }
        (pieces, hands.records)
    }

    /// Gives the reader all records as far as their places can be told; says where the rest begins.
    pub(super) fn read(&self, reader: &mut Reader<'_>, cut: Cut) -> u64 {
        let end = self.end.max(self.from);
        let pieces = (end - self.from).div_ceil(cut.piece_bytes as u64);
        let threads = cut.threads.min(usize::try_from(pieces).unwrap_or(cut.threads));
        if threads == 0 {
            return self.from;
        }
        let cut = Cut { threads, ..cut };
        let roster = Mutex::new(take(&mut reader.collector.roster));
        let shared = Shared { next: AtomicUsize::new(0), odd: AtomicU32::new(0), roster };
        let made: Vec<Made> = thread::scope(|scope| {
            let others: Vec<_> =
                (1..threads).map(|_| scope.spawn(|| self.work(&shared, cut))).collect();
            let own = self.work(&shared, cut);
            let others = others.into_iter().map(|other| match other.join() {
                Ok(made) => made,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            [own].into_iter().chain(others).collect()
        });
        reader.collector.roster =
            shared.roster.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut pieces = Vec::new();
        for (of_one, records) in made {
            let shelf = reader.collector.shelve(records);
            pieces.extend(of_one.into_iter().map(|(index, piece)| (index, shelf, piece)));
        }
        pieces.sort_unstable_by_key(|(index, ..)| *index);
        let mut joint = Joint { data: self, cut, at: self.from, odd_pieces: 0 };
        for (wanted, (index, shelf, piece)) in pieces.into_iter().enumerate() {
            if index != wanted || !joint.take(index, shelf, piece, reader) {
                break;
            }
        }
        joint.at
    }
}

/// Where pieces become one.
struct Joint<'a, 'd, I> {
    data: &'d Data<'a, I>,
    cut: Cut,
    /// Where the next record begins.
    at: u64,
    odd_pieces: u32,
}

impl<I: ReadAt> Joint<'_, '_, I> {
    /// Takes over the next piece; whether the one behind it is wanted.
    fn take(&mut self, index: usize, shelf: usize, piece: Piece, reader: &mut Reader<'_>) -> bool {
        let begins = self.data.from + index as u64 * self.cut.piece_bytes as u64;
        let (mut shelf, mut piece) = (shelf, piece);
        if piece.start != self.at {
            match self.again(begins, reader) {
                Some(made) => (shelf, piece) = made,
                None => return true,
            }
        }
        self.odd_pieces += 1;
        if reader.piece(&piece, shelf) {
            self.odd_pieces = 0;
        } else {
            let none = Mutex::default();
            let mut hands = self.data.hands(&none);
            let records = hands.records_of(&piece, self.data.input);
            records.for_each(|record| reader.record(&record));
        }
        self.at = piece.end;
        !piece.is_last && self.odd_pieces < ODD_PIECES_MAX
    }

    /// A piece whose beginning was guessed wrong; `None` when no record begins in it.
    fn again(&self, begins: u64, reader: &mut Reader<'_>) -> Option<(usize, Piece)> {
        let roster = Mutex::new(take(&mut reader.collector.roster));
        let mut hands = self.data.hands(&roster);
        hands.fill(self.data.input, begins, self.cut.piece_bytes, self.data.end);
        let start = hands.place(self.at);
        let piece = start.map(|start| hands.take_apart(start, self.data.input, self.data.end));
        let records = take(&mut hands.records);
        reader.collector.roster = roster.into_inner().unwrap_or_else(PoisonError::into_inner);
        piece.map(|piece| (reader.collector.shelve(records), piece))
    }
}
