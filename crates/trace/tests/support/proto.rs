//! A writer of protobuf's wire format, for traces of Perfetto as others write them.

/// A message in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proto(pub(crate) Vec<u8>);

impl Proto {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Adds a number.
    pub(crate) fn number(mut self, field: u32, value: u64) -> Self {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    /// Adds bytes: a text, or a message.
    pub(crate) fn bytes(mut self, field: u32, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// Adds numbers in one field.
    pub(crate) fn packed(self, field: u32, values: &[u64]) -> Self {
        let mut packed = Self::default();
        values.iter().for_each(|value| packed.varint(*value));
        self.bytes(field, packed)
    }
}

impl AsRef<[u8]> for Proto {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A file of these packets.
pub(crate) fn file(packets: &[Proto]) -> Vec<u8> {
    packets.iter().fold(Proto::default(), |file, packet| file.bytes(1, packet)).0
}

/// A packet with a bundle.
pub(crate) fn bundle(bundle: Proto) -> Proto {
    Proto::default().number(10, 3).bytes(1, bundle)
}

/// `CompactSched` of switches: time, state, pid, priority and name of the next task.
pub(crate) fn compact(
    switches: &[(u64, u64, u64, u64, &str)],
    wakings: &[(u64, u64, u64, u64, &str)],
) -> Proto {
    let names = || switches.iter().chain(wakings).map(|row| row.4);
    let table = names().fold(Proto::default(), |table, name| table.bytes(5, name));
    let column = |rows: &[(u64, u64, u64, u64, &str)],
                  of: fn(&(u64, u64, u64, u64, &str)) -> u64| {
        rows.iter().map(of).collect::<Vec<_>>()
    };
    let deltas = |rows: &[(u64, u64, u64, u64, &str)]| {
        let times = column(rows, |row| row.0);
        let before = [0].into_iter().chain(times.iter().copied());
        times.iter().zip(before).map(|(time, before)| time - before).collect::<Vec<_>>()
    };
    let indices =
        |from: usize, len: usize| (from..from + len).map(|i| i as u64).collect::<Vec<_>>();
    table
        .packed(1, &deltas(switches))
        .packed(2, &column(switches, |row| row.1))
        .packed(3, &column(switches, |row| row.2))
        .packed(4, &column(switches, |row| row.3))
        .packed(6, &indices(0, switches.len()))
        .packed(7, &deltas(wakings))
        .packed(8, &column(wakings, |row| row.1))
        .packed(9, &column(wakings, |row| row.2))
        .packed(10, &column(wakings, |row| row.3))
        .packed(11, &indices(switches.len(), wakings.len()))
}
