//! The records of a file, taken apart by several threads, each of which has every so-manieth piece, and put together in the order of the
//! file. Where the first record of a piece begins is guessed: the end of the piece before says whether the guess was right. Whatever
//! the guesses, the pieces and the threads, the trace is the one that reading record by record gives.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::super::binary::{Flat, RawFaces};
use super::super::names::Who;
use super::container::Attributes;
use super::forms::Forms;
use super::input::ReadAt;
use super::piece::{How, Piece};
use super::{Endian, Reader};

/// Pieces that one thread has in hand or has sent.
const PIECES_EACH: usize = 3;
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

impl<'a, I: ReadAt> Data<'a, I> {
    fn how(&self) -> How<'a> {
        let forms = Forms::new(self.attributes, Endian::Little);
        How { forms, flat: self.flat, faces: RawFaces::default() }
    }

    /// Every `of`th piece from the one numbered `first` on, until nobody wants more.
    fn work(
        &self,
        piece_bytes: usize,
        (first, of): (usize, usize),
        free: &Receiver<Piece>,
        done: &Sender<Piece>,
    ) {
        let mut how = self.how();
        for index in (first..).step_by(of) {
            let at = self.from.saturating_add(index as u64 * piece_bytes as u64);
            if at >= self.end {
                return;
            }
            let Ok(mut piece) = free.recv() else { return };
            piece.fill(self.input, at, piece_bytes, self.end);
            let start = if index == 0 { 0 } else { piece.guess() };
            piece.decode(start, self.input, self.end, &mut how);
            if done.send(piece).is_err() {
                return;
            }
        }
    }

    /// Gives the reader all records as far as their places can be told; says where the rest begins.
    pub(super) fn read(&self, reader: &mut Reader<'_>, cut: Cut) -> u64 {
        let pieces = self.end.saturating_sub(self.from).div_ceil(cut.piece_bytes as u64);
        let threads = cut.threads.min(usize::try_from(pieces).unwrap_or(cut.threads));
        thread::scope(|scope| {
            let begin = |first: usize| {
                let (to_free, free) = channel();
                let (to_done, done) = channel();
                for _ in 0..PIECES_EACH {
                    // The other end is still here.
                    let _ = to_free.send(Piece::default());
                }
                scope.spawn(move || self.work(cut.piece_bytes, (first, threads), &free, &to_done));
                (to_free, done)
            };
            let workers: Vec<_> = (0..threads).map(begin).collect();
            let mut joint = Joint::new(self, threads);
            for (worker, (free, done)) in workers.iter().enumerate().cycle() {
                // A thread that has no more pieces has hung up.
                let Ok(mut piece) = done.recv() else { break };
                if !joint.take(&mut piece, worker, reader) {
                    break;
                }
                // A thread that has ended needs none.
                let _ = free.send(piece);
            }
            joint.at
        })
    }
}

/// Where pieces become one.
struct Joint<'a, 'd, I> {
    data: &'d Data<'a, I>,
    /// Where the next record begins.
    at: u64,
    odd_pieces: u32,
    /// For what was guessed wrong.
    how: How<'a>,
    /// The faces of each thread, and of this one, by the numbers that they have there.
    faces: Vec<Vec<Who>>,
}

impl<'a, 'd, I: ReadAt> Joint<'a, 'd, I> {
    fn new(data: &'d Data<'a, I>, threads: usize) -> Self {
        let faces = vec![Vec::new(); threads + 1];
        Self { data, at: data.from, odd_pieces: 0, how: data.how(), faces }
    }

    /// Takes over the next piece; whether the one behind it is wanted.
    fn take(&mut self, piece: &mut Piece, worker: usize, reader: &mut Reader<'_>) -> bool {
        reader.meet(&piece.faces, &mut self.faces[worker]);
        let mut faces = worker;
        if piece.starts_at() != self.at {
            let Some(start) = piece.place(self.at) else { return true };
            piece.decode(start, self.data.input, self.data.end, &mut self.how);
            faces = self.faces.len() - 1;
            reader.meet(&piece.faces, &mut self.faces[faces]);
        }
        self.odd_pieces += 1;
        if reader.piece(piece, &self.faces[faces]) {
            self.odd_pieces = 0;
        } else {
            piece.is_odd = true;
            piece.rare().for_each(|record| reader.record(&record));
        }
        self.at = piece.ends_at();
        self.data.input.passed(self.at);
        !piece.is_last && self.odd_pieces < ODD_PIECES_MAX
    }
}
