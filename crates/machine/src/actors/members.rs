//! The living tasks of a group, in the order of their numbers.

const GONE: u32 = u32::MAX;

/// A sorted list with gaps: an exit leaves a gap, and the list is compacted when half of it is gaps. So an exit costs
/// O(log n), and a walk never passes more gaps than actors.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    list: Vec<(u64, u32)>,
    gaps: usize,
    ever: u64,
}

impl Members {
    /// The number of the next task.
    pub(super) fn next_nth(&self) -> u64 {
        self.ever
    }

    /// Adds the next task.
    pub(super) fn push(&mut self, actor: u32) {
        self.list.push((self.ever, actor));
        self.ever += 1;
    }

    /// Removes the task of a number.
    pub(super) fn remove(&mut self, nth: u64) {
        let place = self.list.partition_point(|(known, _)| *known < nth);
        if let Some(entry) =
            self.list.get_mut(place).filter(|entry| entry.0 == nth && entry.1 != GONE)
        {
            entry.1 = GONE;
            self.gaps += 1;
        }
        if self.gaps > 16 && self.gaps * 2 > self.list.len() {
            self.list.retain(|(_, actor)| *actor != GONE);
            self.gaps = 0;
        }
    }

    /// The living task with the smallest number from `nth` on, with that number.
    pub(super) fn at_or_after(&self, nth: u64) -> Option<(u64, u32)> {
        let place = self.list.partition_point(|(known, _)| *known < nth);
        self.list[place..].iter().copied().find(|(_, actor)| *actor != GONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_with_their_tasks() {
        let mut members = Members::default();
        (0..100).for_each(|actor| members.push(actor));
        (0..100).filter(|n| n % 3 != 0).for_each(|n| members.remove(n));
        members.remove(1);
        let mut seen = Vec::new();
        let mut from = 0;
        while let Some((nth, actor)) = members.at_or_after(from) {
            assert_eq!(nth, u64::from(actor));
            seen.push(nth);
            from = nth + 1;
        }
        assert_eq!(seen, (0..100).step_by(3).collect::<Vec<_>>());
        assert_eq!(members.next_nth(), 100);
    }
}
