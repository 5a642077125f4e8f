//! Priorities above the normal class.

/// The priority of a task of the real-time, deadline or stop class, as the kernel's events print it
/// (`task_struct::prio`): −1 deadline; 0…98 real-time, where 98 is `sched_priority` 1; 0 is `sched_priority` 99 or the
/// stop class, which events do not tell apart.
///
/// A task of the normal class that holds a lock with priority inheritance has one for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RtPrio(i8);

impl RtPrio {
    const DEADLINE: i32 = -1;
    /// `MAX_RT_PRIO` − 2: that of `sched_priority` 1.
    const LOWEST: i32 = 98;

    /// From the kernel's number; `None` outside −1…98.
    pub const fn new(prio: i32) -> Option<Self> {
        if prio >= Self::DEADLINE && prio <= Self::LOWEST { Some(Self(prio as i8)) } else { None }
    }

    /// The kernel's number.
    pub fn prio(self) -> i32 {
        self.0.into()
    }

    /// Whether it is that of the deadline class.
    pub fn is_deadline(self) -> bool {
        self.prio() == Self::DEADLINE
    }

    /// `sched_priority` (1…99, a higher one first) of `SCHED_FIFO` and `SCHED_RR`; `None` for the deadline class.
    pub fn sched_priority(self) -> Option<u8> {
        (!self.is_deadline()).then(|| (99 - self.prio()) as u8)
    }

    /// As an operand of a packed event.
    pub(crate) fn operand(self) -> u32 {
        u32::from(self.0 as u8)
    }

    /// From the operand; damage becomes the nearest priority.
    pub(crate) fn of_operand(operand: u32) -> Self {
        Self((operand as u8 as i8).clamp(Self::DEADLINE as i8, Self::LOWEST as i8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_priority_above_the_normal_class() {
        for prio in -300..300 {
            let known = RtPrio::new(prio);
            assert_eq!(known.is_some(), (-1..=98).contains(&prio));
            let Some(known) = known else { continue };
            assert_eq!((known.prio(), RtPrio::of_operand(known.operand())), (prio, known));
        }
        let priority = |prio| RtPrio::new(prio).and_then(RtPrio::sched_priority);
        assert_eq!(
            [priority(98), priority(49), priority(0), priority(-1)],
            [Some(1), Some(50), Some(99), None]
        );
    }
}
