//! Prices of a scheduler's calls into the kernel.

use fairground_bpf::MAX_PRICES;

use super::CostModel;

/// The price of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Price {
    /// Its instruction: it reads or writes a word, or the kernel translates it in line (`bpf_get_smp_processor_id`,
    /// `bpf_jiffies64`, look-ups in arrays).
    Instruction,
    /// [`CostModel::call_ns`] beyond: it takes a lock, walks a queue or scans a mask.
    Call,
}

impl Price {
    /// The index in [`CostModel::prices`]; `None`: none but the instruction.
    pub(crate) fn index(self) -> Option<u8> {
        match self {
            Price::Instruction => None,
            Price::Call => Some(0),
        }
    }
}

impl CostModel {
    /// The prices by [index](Price::index), ns.
    pub(crate) fn prices(&self) -> [u32; MAX_PRICES] {
        let mut prices = [0; MAX_PRICES];
        // No cost is above a second.
        prices[0] = u32::try_from(self.call_ns).unwrap_or(u32::MAX);
        prices
    }
}
