//! The bits of `prev_state`, whose meaning depends on the kernel: Perfetto and LTTng keep the number and not the text.

use crate::TaskState;

/// How a kernel reports the states of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StateBits {
    /// Before 4.8, and where a trace of Perfetto does not name its kernel, as Perfetto assumes: `TASK_STATE_MAX` is
    /// 2048.
    #[default]
    Old,
    /// Before 4.14: `TASK_STATE_MAX` is 4096.
    Since4_8,
    /// `TASK_REPORT`: parked is 64, idle 128, and 256 was preempted.
    Since4_14,
}

impl StateBits {
    /// From the kernel's release (`5.10.43-android12-…`).
    pub(super) fn of_release(release: &str) -> Self {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (4, 14) => Self::Since4_14,
            (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (4, 8) => Self::Since4_8,
            _ => Self::Old,
        }
    }

    /// The state of the bits, of several the lowest one that has a name.
    pub(super) fn state(self, bits: u64) -> TaskState {
        const DEAD: u64 = 64;
        const PARKED: u64 = 512;
        const NO_LOAD: u64 = 1024;
        let preempted = match self {
            Self::Since4_14 => return TaskState::of_bits(bits),
            Self::Since4_8 => 4096,
            Self::Old => 2048,
        };
        match bits {
            0 => TaskState::Runnable,
            // `TASK_IDLE`: TASK_UNINTERRUPTIBLE | TASK_NOLOAD.
            bits if bits & (2 | NO_LOAD) == 2 | NO_LOAD => TaskState::Idle,
            bits if bits & 0x3f != 0 => TaskState::of_bits(bits & 0x3f),
            bits if bits & DEAD != 0 => TaskState::Dead,
            bits if bits & PARKED != 0 => TaskState::Parked,
            bits if bits & preempted != 0 => TaskState::Preempted,
            _ => TaskState::Parked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_means_what_its_kernel_says() {
        use TaskState::{
            Dead, Idle, Parked, Preempted, Runnable, Sleeping, Uninterruptible, Zombie,
        };
        let old = StateBits::of_release("4.4.1");
        let middle = StateBits::of_release("4.9.112-perf");
        let new = StateBits::of_release("5.10.43-android12-9");
        assert_eq!([old, middle, new], [StateBits::Old, StateBits::Since4_8, StateBits::Since4_14]);
        assert_eq!(StateBits::of_release("unknown"), StateBits::Old);
        let all = |bits: u64| [old, middle, new].map(|release| release.state(bits));
        assert_eq!(all(0), [Runnable; 3]);
        assert_eq!(all(1), [Sleeping; 3]);
        assert_eq!(all(2 | 128), [Uninterruptible; 3]);
        assert_eq!(all(32), [Zombie; 3]);
        assert_eq!(all(64), [Dead, Dead, Parked]);
        assert_eq!(all(2 | 1024), [Idle, Idle, Uninterruptible]);
        assert_eq!((old.state(2048), middle.state(4096)), (Preempted, Preempted));
        assert_eq!((new.state(128), new.state(256)), (Idle, Preempted));
    }
}
