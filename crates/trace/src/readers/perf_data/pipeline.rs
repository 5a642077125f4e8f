//! Reads, decodes and collects at the same time:
//!
//! ```text
//!         ┌─► decoder 0 ─┐
//! chunks ─┼─► decoder 1 ─┼─ decoded chunks ─► collector
//!         └─► …          ┘                    (the caller's thread)
//! ```
//!
//! The decoders read chunks in turn: one that has read its chunk lets the next one read, and decodes meanwhile. The
//! collector takes the decoded chunks in the same turn, which is the order of the file. So the trace does not depend on
//! the number of decoders. Queues are bounded, so that memory is.

use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::super::binary::Decoder;
use super::super::collect::Collector;
use super::super::interner::IdentityId;
use super::chunks::Chunks;
use super::decode::{ChunkDecoder, DecodedChunk};
use super::file::PerfFile;
use super::losses::Losses;

const DECODERS_MAX: usize = 8;
/// Decoded chunks of a decoder that wait for the collector.
const QUEUE_CHUNKS: usize = 2;

/// How the work is divided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    pub(super) chunk_bytes: usize,
    pub(super) decoders: usize,
}

impl Division {
    /// A decoder for each CPU of this machine.
    pub(super) fn of_this_machine() -> Self {
        let cpus = thread::available_parallelism().map_or(1, |known| known.get());
        Self { chunk_bytes: 1 << 18, decoders: cpus.min(DECODERS_MAX) }
    }
}

/// Collects the decoded chunks of a file, in order.
pub(super) struct ChunkCollector<'p> {
    pub(super) collector: Collector<'p>,
    /// Records of the kernel so far.
    pub(super) read: u64,
    losses: Losses,
}

impl<'p> ChunkCollector<'p> {
    pub(super) fn new(collector: Collector<'p>) -> Self {
        Self { collector, read: 0, losses: Losses::default() }
    }

    /// Reads all chunks. Returns when the last is collected.
    pub(super) fn collect(
        &mut self,
        chunks: &mut Chunks<impl Read + Send>,
        file: &PerfFile<'_>,
        decoder: &Decoder<'_>,
        division: Division,
    ) {
        thread::scope(|scope| {
            let (turns, to_take) = (0..division.decoders)
                .map(|_| sync_channel::<&mut Chunks<_>>(1))
                .unzip::<_, _, Vec<_>, Vec<_>>();
            // The receiver is there, and the queue has room for one.
            let _ = turns[0].send(chunks);
            let mut made = Vec::new();
            for (index, turn) in to_take.into_iter().enumerate() {
                let next = turns[(index + 1) % division.decoders].clone();
                let (to_collector, decoded) = sync_channel(QUEUE_CHUNKS);
                // The identities of the decoder so far, as the collector's.
                made.push((decoded, Vec::<IdentityId>::new()));
                let chunk_decoder = ChunkDecoder::new(file, decoder);
                scope.spawn(move || decode(chunk_decoder, &turn, &next, &to_collector));
            }
            drop(turns);
            let mut turn = 0;
            while let Ok(decoded) = made[turn].0.recv() {
                self.add(decoded, &mut made[turn].1);
                turn = (turn + 1) % division.decoders;
            }
        });
    }

    fn add(&mut self, decoded: DecodedChunk, identities: &mut Vec<IdentityId>) {
        let DecodedChunk { batch, losses, ends_round } = decoded;
        self.read += batch.read;
        self.losses.add(&losses);
        self.collector.add_batch(batch, identities);
        if ends_round {
            self.collector.end_round();
        }
    }

    /// To be called when there are no more chunks: adds the lost events that no record locates.
    pub(super) fn add_losses(&mut self) {
        self.collector.lost_somewhere(self.losses.somewhere);
        for (cpu, count) in self.losses.unlocated() {
            match cpu {
                Some(cpu) => self.collector.lost_at_the_end(cpu, count),
                None => self.collector.lost_somewhere(count),
            }
        }
    }
}

/// A decoder's thread. It ends when there are no more chunks, or when the decoder before it has ended.
fn decode<'c, R: Read>(
    mut decoder: ChunkDecoder<'_, '_>,
    turn: &Receiver<&'c mut Chunks<R>>,
    next: &SyncSender<&'c mut Chunks<R>>,
    to: &SyncSender<DecodedChunk>,
) {
    let mut memory = Vec::new();
    while let Ok(chunks) = turn.recv() {
        let Some(chunk) = chunks.next(memory) else { return };
        // Sending fails only when another thread has panicked, which ends the reading.
        if next.send(chunks).is_err() || to.send(decoder.decode(&chunk)).is_err() {
            return;
        }
        memory = chunk.into_bytes();
    }
}
