//! The two pages at the start of the shared memory, little-endian.

/// Bytes of a page.
pub(crate) const PAGE_SIZE: usize = 4096;
/// Byte offset of the host's bundle.
pub(crate) const INPUT_AT: u64 = 2 * PAGE_SIZE as u64;
const HOST_MAGIC: u64 = u64::from_le_bytes(*b"fgHOST\x00\x01");
const GUEST_MAGIC: u64 = u64::from_le_bytes(*b"fgGUEST\x01");
const MESSAGE_AT: usize = 64;
const MAX_MESSAGE: usize = 2048;

/// The host's page: the location of the bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostPage {
    /// Length of the host's bundle, bytes.
    pub input_len: u64,
    /// Byte offset of the guest's bundle.
    pub output_at: u64,
    /// Maximum bytes of the guest's bundle.
    pub output_room: u64,
}

/// The state of the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum GuestState {
    /// Its first process has not mapped the memory yet.
    #[default]
    Booting,
    /// The command runs.
    Running,
    /// The results are being written.
    Collecting,
    /// The results are complete.
    Finished,
    /// The first process failed; see the message.
    Failed,
}

/// The guest's page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GuestPage {
    /// Its state.
    pub state: GuestState,
    /// The command's exit code; −n: killed by signal n.
    pub exit_code: i32,
    /// Length of its bundle, bytes.
    pub output_len: u64,
    /// The error message.
    pub message: String,
}

/// An invalid page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PageError {
    /// Wrong magic number.
    #[error("it has not the magic number of this version of fairground")]
    Magic,
    /// An invalid field.
    #[error("its {0} is {1}")]
    Field(&'static str, u64),
}

impl HostPage {
    /// The page's bytes.
    pub(crate) fn to_bytes(self) -> [u8; PAGE_SIZE] {
        let mut page = [0; PAGE_SIZE];
        put(&mut page, 0, HOST_MAGIC);
        put(&mut page, 8, self.input_len);
        put(&mut page, 16, self.output_at);
        put(&mut page, 24, self.output_room);
        page
    }

    /// Reads a page in a memory of `total` bytes.
    pub(crate) fn parse(page: &[u8; PAGE_SIZE], total: u64) -> Result<Self, PageError> {
        if get(page, 0) != HOST_MAGIC {
            return Err(PageError::Magic);
        }
        let found =
            Self { input_len: get(page, 8), output_at: get(page, 16), output_room: get(page, 24) };
        let inside = |at: u64, len: u64| at.checked_add(len).is_some_and(|end| end <= total);
        // Also where the input is empty: the two pages are within the memory.
        if !inside(INPUT_AT, found.input_len) {
            return Err(PageError::Field("input's length", found.input_len));
        }
        if !inside(found.output_at, found.output_room) {
            return Err(PageError::Field("output's room", found.output_room));
        }
        Ok(found)
    }
}

impl GuestPage {
    /// The page's bytes, without its state: that is written last, at [`Self::STATE_AT`].
    pub(crate) fn to_bytes(&self) -> [u8; PAGE_SIZE] {
        let mut page = [0; PAGE_SIZE];
        put(&mut page, 0, GUEST_MAGIC);
        page[12..16].copy_from_slice(&self.exit_code.to_le_bytes());
        put(&mut page, 16, self.output_len);
        let mut length = self.message.len().min(MAX_MESSAGE);
        while !self.message.is_char_boundary(length) {
            length -= 1;
        }
        put(&mut page, MESSAGE_AT - 8, length as u64);
        page[MESSAGE_AT..MESSAGE_AT + length].copy_from_slice(&self.message.as_bytes()[..length]);
        page[Self::STATE_AT] = self.state as u8;
        page
    }

    /// Byte offset of the state.
    pub(crate) const STATE_AT: usize = 8;

    /// Parses a page of untrusted bytes; `room` is the maximum length of the guest's bundle.
    pub(crate) fn parse(page: &[u8; PAGE_SIZE], room: u64) -> Result<Self, PageError> {
        let state = match page[Self::STATE_AT] {
            0 => return Ok(Self::default()),
            1 => GuestState::Running,
            2 => GuestState::Collecting,
            3 => GuestState::Finished,
            4 => GuestState::Failed,
            other => return Err(PageError::Field("state", u64::from(other))),
        };
        if get(page, 0) != GUEST_MAGIC {
            return Err(PageError::Magic);
        }
        let output_len = get(page, 16);
        if output_len > room {
            return Err(PageError::Field("output's length", output_len));
        }
        let length = get(page, MESSAGE_AT - 8);
        let length = usize::try_from(length)
            .ok()
            .filter(|l| *l <= MAX_MESSAGE)
            .ok_or(PageError::Field("message's length", length))?;
        let message = &page[MESSAGE_AT..MESSAGE_AT + length];
        let exit_code = i32::from_le_bytes([page[12], page[13], page[14], page[15]]);
        let message = String::from_utf8_lossy(message).into_owned();
        Ok(Self { state, exit_code, output_len, message })
    }
}

fn put(page: &mut [u8; PAGE_SIZE], at: usize, value: u64) {
    page[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn get(page: &[u8; PAGE_SIZE], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[at..at + 8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOTAL: u64 = 1 << 20;

    #[test]
    fn a_page_of_zeros_is_a_guest_that_boots() {
        let page = GuestPage::parse(&[0; PAGE_SIZE], TOTAL).expect("a page");
        assert_eq!(page.state, GuestState::Booting);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let sent = GuestPage {
            state: GuestState::Failed,
            message: "ä".repeat(MAX_MESSAGE) + "x",
            ..GuestPage::default()
        };
        let got = GuestPage::parse(&sent.to_bytes(), TOTAL).expect("a page");
        assert_eq!(got.message, "ä".repeat(MAX_MESSAGE / 2));
    }

    proptest! {
        #[test]
        fn what_the_guest_tells_arrives(exit_code: i32, output_len in 0..TOTAL, message in ".{0,300}") {
            let sent = GuestPage { state: GuestState::Finished, exit_code, output_len, message };
            prop_assert_eq!(GuestPage::parse(&sent.to_bytes(), TOTAL), Ok(sent));
        }

        #[test]
        fn what_the_host_tells_arrives_or_is_refused(
            input_len in 0..2 * TOTAL,
            output_at in 0..2 * TOTAL,
            output_room: u64,
        ) {
            let sent = HostPage { input_len, output_at, output_room };
            match HostPage::parse(&sent.to_bytes(), TOTAL) {
                Ok(got) => {
                    prop_assert_eq!(got, sent);
                    prop_assert!(got.output_at + got.output_room <= TOTAL);
                }
                Err(error) => prop_assert!(matches!(error, PageError::Field(..))),
            }
        }

        #[test]
        fn garbage_of_a_guest_is_refused_or_within_bounds(
            mut page in proptest::collection::vec(any::<u8>(), PAGE_SIZE), signed: bool,
        ) {
            if signed {
                page[..8].copy_from_slice(&GUEST_MAGIC.to_le_bytes());
                page[8] %= 5;
            }
            let page: [u8; PAGE_SIZE] = page.try_into().expect("a page");
            if let Ok(got) = GuestPage::parse(&page, TOTAL) {
                prop_assert!(got.output_len <= TOTAL && got.message.len() <= 3 * MAX_MESSAGE);
            }
        }
    }
}
