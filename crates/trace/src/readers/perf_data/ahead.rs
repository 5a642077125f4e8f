//! The records of a file, taken apart in pieces by several threads in turn, and put together in the order of the file, while the threads
//! are a few pieces ahead. Where the first record of a piece begins is guessed: the end of the piece before says whether the guess was
//! right. Whatever the guesses, the pieces and the threads, the trace is the one that reading record by record gives.

use std::mem::{swap, take};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use super::super::binary::Flat;
use super::super::names::Roster;
use super::super::records::Record;
use super::container::Attributes;
use super::forms::Forms;
use super::input::ReadAt;
use super::piece::{Hands, Piece};
use super::{Endian, Reader, SAMPLE_BYTES_MIN};

const THREADS_MAX: usize = 8;
/// After so many pieces in a row that had to be read record by record the others are not tried.
const ODD_PIECES_MAX: u32 = 16;
/// Pieces of a thread that wait for the ones before them.
const PIECES_AHEAD_MAX: usize = 6;

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
        Self { piece_bytes: 1 << 19, threads: threads.min(THREADS_MAX) }
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

/// What all threads share.
#[derive(Debug, Default)]
struct Shared {
    roster: Mutex<Roster>,
    /// Room for the events of a piece.
    empty: Mutex<Vec<Vec<Record>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a, I: ReadAt> Data<'a, I> {
    fn hands<'h>(&self, roster: &'h Mutex<Roster>) -> Hands<'h>
    where
        'a: 'h,
    {
        Hands::new(Forms::new(self.attributes, Endian::Little), self.flat, roster)
    }

    /// Takes every piece apart whose turn it is for this thread, the first one of them `first`, until there are no more, or nobody wants
    /// them.
    fn work(&self, shared: &Shared, cut: Cut, first: usize, to: &SyncSender<Piece>) {
        let mut hands = self.hands(&shared.roster);
        for index in (first..).step_by(cut.threads) {
            let at =
                self.from.saturating_add((index as u64).saturating_mul(cut.piece_bytes as u64));
            if at >= self.end {
                break;
            }
            hands.fill(self.input, at, cut.piece_bytes, self.end);
            let start = if index == 0 { 0 } else { hands.guess() };
            let room = lock(&shared.empty).pop().unwrap_or_default();
            if to.send(hands.take_apart(start, self.input, self.end, room)).is_err() {
                break;
            }
            self.input.passed(at);
        }
    }

    /// Gives the reader all records as far as their places can be told; says where the rest begins.
    pub(super) fn read(&self, reader: &mut Reader<'_, '_>, cut: Cut) -> u64 {
        let end = self.end.max(self.from);
        let pieces = (end - self.from).div_ceil(cut.piece_bytes as u64);
        let threads = cut.threads.min(usize::try_from(pieces).unwrap_or(cut.threads));
        if threads == 0 {
            return self.from;
        }
        let cut = Cut { threads, ..cut };
        let roster = Mutex::new(take(&mut reader.collector.roster));
        let shared = Shared { roster, ..Shared::default() };
        let mut joint = Joint { data: self, cut, at: self.from, odd_pieces: 0 };
        thread::scope(|scope| {
            let start = |first| {
                let (to, made) = sync_channel(PIECES_AHEAD_MAX);
                let shared = &shared;
                scope.spawn(move || self.work(shared, cut, first, &to));
                made
            };
            let made: Vec<_> = (0..threads).map(start).collect();
            for (index, made) in made.iter().cycle().enumerate() {
                // No more pieces.
                let Ok(piece) = made.recv() else { break };
                if !joint.next(index, piece, reader, &shared) {
                    break;
                }
            }
        });
        reader.collector.roster =
            shared.roster.into_inner().unwrap_or_else(PoisonError::into_inner);
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
    /// Takes over the next piece, and hands out what is complete with it; whether the one behind it is wanted.
    fn next(
        &mut self,
        index: usize,
        piece: Piece,
        reader: &mut Reader<'_, '_>,
        shared: &Shared,
    ) -> bool {
        let mut roster = lock(&shared.roster);
        swap(&mut *roster, &mut reader.collector.roster);
        let goes_on = self.take(index, piece, reader);
        let hands_out = reader.hands_out();
        if hands_out {
            let expected = (self.data.end - self.data.from) / SAMPLE_BYTES_MIN;
            reader.collector.look_ahead(usize::try_from(expected).unwrap_or(0));
        }
        swap(&mut *roster, &mut reader.collector.roster);
        drop(roster);
        if hands_out {
            reader.collector.hand_out_complete();
            lock(&shared.empty).extend(reader.collector.take_empty());
        }
        goes_on && !reader.collector.is_late()
    }

    /// Takes over the next piece; whether the one behind it is wanted.
    fn take(&mut self, index: usize, mut piece: Piece, reader: &mut Reader<'_, '_>) -> bool {
        let begins = self.data.from + index as u64 * self.cut.piece_bytes as u64;
        if piece.start != self.at {
            match self.again(begins, reader, take(&mut piece.records)) {
                Some(made) => piece = made,
                None => return true,
            }
        }
        self.odd_pieces += 1;
        if reader.piece(&mut piece) {
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
    fn again(
        &self,
        begins: u64,
        reader: &mut Reader<'_, '_>,
        mut room: Vec<Record>,
    ) -> Option<Piece> {
        let roster = Mutex::new(take(&mut reader.collector.roster));
        let mut hands = self.data.hands(&roster);
        hands.fill(self.data.input, begins, self.cut.piece_bytes, self.data.end);
        let start = hands.place(self.at);
        room.clear();
        let piece =
            start.map(|start| hands.take_apart(start, self.data.input, self.data.end, room));
        reader.collector.roster = roster.into_inner().unwrap_or_else(PoisonError::into_inner);
        piece
    }
}
