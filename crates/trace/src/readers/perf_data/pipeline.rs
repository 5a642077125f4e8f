//! Reads, decodes and collects at the same time:
//!
//! ```text
//! reader ─ chunks ─┬─► decoder 0 ─┬─ decoded chunks ─► collector
//! (one thread)     ├─► decoder 1 ─┤                    (the caller's thread)
//!                  └─► …          ┘
//! ```
//!
//! The reader deals the chunks to the decoders in turn, and the collector takes what they make of them in the same
//! turn: in the order of the file. The trace does not depend on the number of decoders. Queues are bounded, so that
//! memory is.

use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use super::super::binary::Decoder;
use super::super::collect::Collector;
use super::super::interner::IdentityId;
use super::chunks::{Chunk, Chunks};
use super::decode::{ChunkDecoder, DecodedChunk};
use super::file::PerfFile;
use super::losses::Losses;

const DECODERS_MAX: usize = 8;
/// Chunks that wait for a decoder, and decoded ones that wait for the collector.
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

/// Collects what the chunks of a file say, in order.
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
            let (empty, to_fill) = channel();
            let (mut to, mut made) = (Vec::new(), Vec::new());
            for _ in 0..division.decoders {
                let (to_decoder, chunks) = sync_channel(QUEUE_CHUNKS);
                let (to_collector, decoded) = sync_channel(QUEUE_CHUNKS);
                to.push(to_decoder);
                // The identities of the decoder so far, as the collector's.
                made.push((decoded, Vec::<IdentityId>::new()));
                let (chunk_decoder, empty) = (ChunkDecoder::new(file, decoder), empty.clone());
                scope.spawn(move || decode(chunk_decoder, &chunks, &to_collector, &empty));
            }
            scope.spawn(move || deal(chunks, &to, &to_fill));
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

    /// To be called when there are no more chunks: adds the lost events of which no record tells where they are.
    pub(super) fn add_losses(&mut self) {
        self.collector.lost_somewhere(self.losses.somewhere);
        for (cpu, count) in self.losses.without_place() {
            match cpu {
                Some(cpu) => self.collector.lost_at_the_end(cpu, count),
                None => self.collector.lost_somewhere(count),
            }
        }
    }
}

/// The reader's thread.
fn deal(chunks: &mut Chunks<impl Read>, to: &[SyncSender<Chunk>], to_fill: &Receiver<Vec<u8>>) {
    for decoder in to.iter().cycle() {
        let Some(chunk) = chunks.next(to_fill.try_recv().unwrap_or_default()) else { return };
        // Fails only when the decoder has panicked, which ends all.
        if decoder.send(chunk).is_err() {
            return;
        }
    }
}

/// A decoder's thread.
fn decode(
    mut decoder: ChunkDecoder<'_, '_>,
    chunks: &Receiver<Chunk>,
    to: &SyncSender<DecodedChunk>,
    empty: &Sender<Vec<u8>>,
) {
    for chunk in chunks {
        if to.send(decoder.decode(&chunk)).is_err() {
            return;
        }
        // The reader may have ended.
        let _ = empty.send(chunk.into_bytes());
    }
}
