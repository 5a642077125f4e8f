//! Reads, decodes and collects at the same time:
//!
//! ```text
//!         ┌─► decoder 0 ─┐
//! chunks ─┼─► decoder 1 ─┼─ batches ─► collector
//!         └─► …          ┘             (the caller's thread)
//! ```
//!
//! A decoder that is free reads the next chunk, queues the place of its batch, and lets the others read while it
//! decodes. The collector takes the batches in the order of the queue, which is that of the file. So the trace does not
//! depend on the number of decoders. The queue is bounded, so that memory is.

use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use super::super::batch::Batch;
use super::super::collect::Collector;
use super::chunks::Chunks;
use super::decode::ChunkDecoder;

const DECODERS_MAX: usize = 8;
/// Chunks for each decoder that wait for the collector.
const QUEUE_CHUNKS: usize = 64;

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

/// Reads all chunks. Returns when the last is collected.
pub(super) fn collect(
    chunks: &mut Chunks<impl Read + Send>,
    decoder: &ChunkDecoder<'_>,
    decoders: usize,
    collector: &mut Collector<'_>,
) {
    thread::scope(|scope| {
        let (queue, batches) = sync_channel(QUEUE_CHUNKS * decoders);
        let source = Arc::new(Mutex::new((chunks, queue)));
        for _ in 0..decoders {
            let (source, decoder) = (Arc::clone(&source), decoder.clone());
            scope.spawn(move || decode(&source, decoder));
        }
        // The queue ends with the decoders.
        drop(source);
        // A decoder that panicked sends no batch, which ends the reading.
        let batches = batches.iter().filter_map(|batch: Receiver<Batch>| batch.recv().ok());
        batches.for_each(|batch| collector.add_batch(batch));
    });
}

/// A decoder's thread. It ends when there are no more chunks.
fn decode<R: Read>(
    source: &Mutex<(&mut Chunks<R>, SyncSender<Receiver<Batch>>)>,
    mut decoder: ChunkDecoder<'_>,
) {
    let mut memory = Vec::new();
    loop {
        // Locking and sending fail only when another thread has panicked, which ends the reading.
        let Ok(mut locked) = source.lock() else { return };
        let (chunks, queue) = &mut *locked;
        let Some(chunk) = chunks.next(memory) else { return };
        let (to_collector, batch) = sync_channel(1);
        if queue.send(batch).is_err() {
            return;
        }
        drop(locked);
        let _ = to_collector.send(decoder.decode(&chunk));
        memory = chunk.bytes;
    }
}
