//! The packets of a trace one after the other, in bounded memory.
//!
//! A file is the message `Trace`, whose only field (number 1) is repeated: key, size, packet.

use std::io::{self, BufRead, Read};

use prost::encoding::decode_varint;

use super::super::binary::Why;
use super::super::expand::Expands;

/// The key of `Trace.packet`: field 1, sized bytes.
const PACKET: u64 = 10;
/// Bytes of a number of 64 bits.
const VARINT_BYTES_MAX: usize = 10;
/// The most bytes of a packet that is read. Perfetto's service writes packets of up to some hundred KiB.
const PACKET_BYTES_MAX: u64 = 64 << 20;

/// The next item of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A packet is in the buffer.
    Packet,
    /// A packet of more than [`PACKET_BYTES_MAX`] was skipped.
    TooLong(u64),
    End,
    /// The input ends, or is damaged, in the middle of a packet.
    Cut(Why),
}

/// Reads packets.
#[derive(Debug)]
pub(super) struct Packets<R> {
    input: R,
    /// Where the last packet begins, and the next one.
    pub(super) at: u64,
    next_at: u64,
    pub(super) packet: Vec<u8>,
    /// The input failed because of [`Expands`].
    pub(super) expands: bool,
}

impl<R: BufRead> Packets<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, at: 0, next_at: 0, packet: Vec::new(), expands: false }
    }

    /// Reads up to the next packet.
    pub(super) fn next(&mut self) -> Next {
        self.at = self.next_at;
        match self.read() {
            Ok(next) => next,
            Err(e) => {
                let at = self.at;
                self.expands = Expands::is_cause(&e);
                Next::Cut(match e.kind() {
                    io::ErrorKind::UnexpectedEof => format!("byte {at}: a packet is cut off"),
                    _ => format!("byte {at}: the input failed: {e}"),
                })
            }
        }
    }

    fn read(&mut self) -> io::Result<Next> {
        let Some(key) = self.varint()? else { return Ok(Next::End) };
        let at = self.at;
        if key != PACKET {
            return Ok(Next::Cut(format!("byte {at}: a packet should begin here")));
        }
        let size = self.varint()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.next_at = self.next_at.saturating_add(size);
        self.packet.clear();
        if size > PACKET_BYTES_MAX {
            let skipped = io::copy(&mut self.input.by_ref().take(size), &mut io::sink())?;
            return if skipped == size {
                Ok(Next::TooLong(size))
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
        let read = self.input.by_ref().take(size).read_to_end(&mut self.packet)?;
        if read as u64 == size {
            Ok(Next::Packet)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    /// A number; `None` at the end of the input.
    fn varint(&mut self) -> io::Result<Option<u64>> {
        let mut bytes = [0; VARINT_BYTES_MAX];
        for at in 0..VARINT_BYTES_MAX {
            match self.input.read_exact(&mut bytes[at..=at]) {
                Err(e) if at == 0 && e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                read => read?,
            }
            self.next_at += 1;
            if bytes[at] < 0x80 {
                return decode_varint(&mut &bytes[..=at]).map(Some).map_err(io::Error::other);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> (Vec<(u64, usize)>, Next) {
        let mut packets = Packets::new(bytes);
        let mut found = Vec::new();
        loop {
            match packets.next() {
                Next::Packet => found.push((packets.at, packets.packet.len())),
                end => return (found, end),
            }
        }
    }

    #[test]
    fn whole_packets_are_kept() {
        let bytes = [10, 2, 8, 1, 10, 0, 10, 3, 8, 1, 9];
        assert_eq!(all(&bytes), (vec![(0, 2), (4, 0), (6, 3)], Next::End));
        let (found, end) = all(&bytes[..9]);
        assert_eq!((found.len(), end), (2, Next::Cut("byte 6: a packet is cut off".to_owned())));
        let (found, end) = all(&[10, 0, 8, 1]);
        assert_eq!(
            (found.len(), end),
            (1, Next::Cut("byte 2: a packet should begin here".to_owned()))
        );
        assert!(matches!(all(&[10]).1, Next::Cut(_)));
        assert!(matches!(all(&[10, 0x80]).1, Next::Cut(_)));
        // A size that no packet has takes no memory.
        assert!(matches!(all(&[10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).1, Next::Cut(_)));
    }

    #[test]
    fn a_packet_of_more_than_the_limit_is_skipped() {
        let mut bytes = vec![10];
        let size = PACKET_BYTES_MAX + 1;
        let mut rest = size;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes.resize(bytes.len() + size as usize, 0);
        bytes.extend([10, 1, 0]);
        let mut packets = Packets::new(&bytes[..]);
        assert_eq!(packets.next(), Next::TooLong(size));
        assert_eq!((packets.next(), packets.packet.len()), (Next::Packet, 1));
    }
}
