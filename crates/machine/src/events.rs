//! The event queue: which simulated event comes next.
//!
//! Determinism requires a total order: events are taken by time, and at equal times in the order in which they were
//! armed. The structure is a [heap](crate::heap) of 16-byte entries with an index from slot to position, so that
//! re-arming or cancelling a slot costs O(log n) without a search. A slot is the place of one possible event: a CPU's
//! tick, the end of a task's sleep. A slot that is not armed is not in the heap: idle CPUs and blocked tasks cost
//! nothing. Once grown, the queue does not allocate.

use crate::heap::{Heap, Keyed, ROOT};

/// The kinds of event that each CPU has one slot for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub(crate) enum CpuEvent {
    /// The CPU's current activity ends: a burst, or kernel work.
    Burst = 0,
    /// Another CPU's reschedule interrupt arrives.
    Resched = 1,
    /// Another CPU's interrupt for a signal arrives.
    Signal = 2,
    /// The timer interrupt for the first sleep that ends on the CPU.
    Timer = 3,
    /// The timer of the CPU's deadline server.
    Server = 4,
}

impl CpuEvent {
    const ALL: [CpuEvent; 5] =
        [CpuEvent::Burst, CpuEvent::Resched, CpuEvent::Signal, CpuEvent::Timer, CpuEvent::Server];
}

/// A possible event: each has one slot of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EventHandle {
    /// An event of the whole machine, by number: end of the run, watchdog, next setting.
    Machine(u32),
    /// An event of a CPU.
    Cpu(u32, CpuEvent),
    /// A timer of the scheduler's program (`bpf_timer`), by number.
    Timer(u32),
    /// The timer of a task, by number.
    Task(u32),
}

/// Slots of each CPU.
const CPU_SLOTS: u32 = CpuEvent::ALL.len() as u32;
/// Slots of the whole machine.
pub(crate) const MACHINE_SLOTS: u32 = 16;
/// Timers that a scheduler's program may have armed at the same time.
pub(crate) const TIMER_SLOTS: u32 = 4096;

const UNARMED: u32 = u32::MAX;
/// Armed events from which on prefetching the next one is worthwhile.
const PREPARED_EVENTS_MIN: usize = 8;
/// Low bits of an entry's key that name its slot; the bits above count armings.
pub(crate) const SLOT_BITS: u32 = 24;

/// Time, then order of arming; the slot in the low bits never decides, for every arming has its own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueuedEvent {
    time_ns: u64,
    sequence_slot: u64,
}

impl QueuedEvent {
    fn slot(self) -> usize {
        (self.sequence_slot & ((1 << SLOT_BITS) - 1)) as usize
    }
}

impl Keyed for QueuedEvent {
    const LAST: QueuedEvent = QueuedEvent { time_ns: u64::MAX, sequence_slot: u64::MAX };

    /// As one number, so that a comparison is two instructions and no branch.
    #[inline]
    fn key(self) -> u128 {
        u128::from(self.time_ns) << 64 | u128::from(self.sequence_slot)
    }
}

/// The event queue.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    heap: Heap<QueuedEvent>,
    /// Per slot: its place in the heap, or [`UNARMED`].
    places: Vec<u32>,
    cpus: u32,
    armings: u64,
    /// The event at the top of the heap has been taken out, but its entry is still there: it sorts before every other
    /// one, so none moves above it. Usually the next step arms an event, which replaces the top and moves down: one
    /// move through the heap instead of two.
    hole: bool,
}

impl EventQueue {
    /// An empty queue for a machine of `cpus` CPUs (at most 2^20) and, to begin with, `tasks` tasks.
    pub(crate) fn new(cpus: u32, tasks: u32) -> EventQueue {
        let mut queue =
            EventQueue { heap: Heap::default(), places: Vec::new(), cpus, armings: 0, hole: false };
        let slots = queue.index(EventHandle::Task(tasks));
        queue.places.resize(slots, UNARMED);
        queue.heap.reserve(slots.min(1 << 16));
        queue
    }

    /// The place of an event's slot: those of CPUs first, which come and go most often.
    #[inline(always)]
    fn index(&self, slot: EventHandle) -> usize {
        let index = match slot {
            EventHandle::Cpu(cpu, event) => cpu * CPU_SLOTS + event as u32,
            EventHandle::Machine(n) => self.cpus * CPU_SLOTS + n,
            EventHandle::Timer(n) => self.cpus * CPU_SLOTS + MACHINE_SLOTS + n,
            EventHandle::Task(task) => self.cpus * CPU_SLOTS + MACHINE_SLOTS + TIMER_SLOTS + task,
        };
        index as usize
    }

    #[inline]
    fn named(&self, index: usize) -> EventHandle {
        let index = index as u32;
        let Some(index) = index.checked_sub(self.cpus * CPU_SLOTS) else {
            let event = CpuEvent::ALL[(index % CPU_SLOTS) as usize];
            return EventHandle::Cpu(index / CPU_SLOTS, event);
        };
        if index < MACHINE_SLOTS {
            EventHandle::Machine(index)
        } else if index < MACHINE_SLOTS + TIMER_SLOTS {
            EventHandle::Timer(index - MACHINE_SLOTS)
        } else {
            EventHandle::Task(index - MACHINE_SLOTS - TIMER_SLOTS)
        }
    }

    /// Arms the slot's event for `time_ns`, after all events that are armed for that time; replaces an earlier arming.
    #[inline(always)]
    pub(crate) fn arm(&mut self, slot: EventHandle, time_ns: u64) {
        self.arm_index(self.index(slot), time_ns);
    }

    fn arm_index(&mut self, index: usize, time_ns: u64) {
        if index >= self.places.len() {
            assert!(
                index < 1 << SLOT_BITS,
                "2^24 slots are more than CPUs, timers and tasks can be"
            );
            self.places.resize((index + 1).next_power_of_two(), UNARMED);
        }
        // 2^40 armings: three days at five million a second, and the check below panics instead of wrapping.
        self.armings += 1;
        assert!(
            self.armings < 1 << (64 - SLOT_BITS),
            "a run of 2^40 armings is too long for one event queue"
        );
        let entry =
            QueuedEvent { time_ns, sequence_slot: self.armings << SLOT_BITS | index as u64 };
        if self.hole && self.places[index] != UNARMED && entry.key() < self.heap.at(ROOT).key() {
            // Armed for a time before the last event's, which the hole's entry could not stand above.
            self.fill_hole();
        }
        let places = &mut self.places;
        let standing = places[index];
        let put = |entry: QueuedEvent, place| places[entry.slot()] = place as u32;
        match standing {
            UNARMED if std::mem::take(&mut self.hole) => self.heap.replace(ROOT, entry, put),
            UNARMED => self.heap.push(entry, put),
            place => self.heap.replace(place as usize, entry, put),
        }
    }

    /// Takes the slot's event out, if it is armed.
    #[inline(always)]
    pub(crate) fn cancel(&mut self, slot: EventHandle) {
        let index = self.index(slot);
        if let Some(&place) = self.places.get(index)
            && place != UNARMED
        {
            self.remove(place as usize);
            self.places[index] = UNARMED;
        }
    }

    /// When the slot's event happens; `None`: it is not armed.
    #[inline(always)]
    pub(crate) fn armed(&self, slot: EventHandle) -> Option<u64> {
        let place = *self.places.get(self.index(slot))?;
        (place != UNARMED).then(|| self.heap.at(place as usize).time_ns)
    }

    /// When the next event happens; `None`: none is armed.
    pub(crate) fn first_ns(&mut self) -> Option<u64> {
        self.fill_hole();
        self.heap.first().map(|entry| entry.time_ns)
    }

    /// The time of the next event.
    #[cfg(test)]
    pub(crate) fn next_time(&self) -> Option<u64> {
        self.heap.entries().skip(usize::from(self.hole)).map(|entry| entry.time_ns).min()
    }

    /// Takes the next event out.
    #[cfg(test)]
    pub(crate) fn pop(&mut self) -> Option<(u64, EventHandle)> {
        self.pop_until(u64::MAX)
    }

    /// Takes the next event out unless it comes after `until_ns`.
    #[inline]
    pub(crate) fn pop_until(&mut self, until_ns: u64) -> Option<(u64, EventHandle)> {
        self.fill_hole();
        let first = self.heap.first()?;
        if first.time_ns > until_ns {
            return None;
        }
        self.hole = true;
        self.places[first.slot()] = UNARMED;
        Some((first.time_ns, self.named(first.slot())))
    }

    /// The event after the one that was taken out last, unless something else is armed before it; `None` also if too
    /// few are armed for prefetching to be worthwhile.
    #[inline]
    pub(crate) fn expected(&self) -> Option<EventHandle> {
        let many = self.hole && self.heap.len() >= PREPARED_EVENTS_MIN;
        let next = if many { self.heap.second()? } else { return None };
        Some(self.named(next.slot()))
    }

    /// The number of armed slots.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len() - usize::from(self.hole)
    }

    #[inline]
    fn fill_hole(&mut self) {
        if std::mem::take(&mut self.hole) {
            self.remove(ROOT);
        }
    }

    fn remove(&mut self, place: usize) {
        let places = &mut self.places;
        self.heap.remove(place, |entry, place| places[entry.slot()] = place as u32);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_times_keep_the_order_of_arming() {
        let mut queue = EventQueue::new(2, 1);
        queue.arm(EventHandle::Task(0), 5);
        queue.arm(EventHandle::Cpu(1, CpuEvent::Timer), 5);
        queue.arm(EventHandle::Cpu(0, CpuEvent::Burst), 5);
        queue.arm(EventHandle::Task(0), 5);
        assert_eq!(queue.len(), 3);
        assert_eq!(queue.pop(), Some((5, EventHandle::Cpu(1, CpuEvent::Timer))));
        assert_eq!(queue.pop(), Some((5, EventHandle::Cpu(0, CpuEvent::Burst))));
        assert_eq!(queue.pop(), Some((5, EventHandle::Task(0))));
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn every_slot_comes_back_as_it_went_in() {
        let mut queue = EventQueue::new(3, 0);
        let slots = [
            EventHandle::Machine(0),
            EventHandle::Machine(MACHINE_SLOTS - 1),
            EventHandle::Timer(0),
            EventHandle::Timer(TIMER_SLOTS - 1),
            EventHandle::Cpu(0, CpuEvent::Timer),
            EventHandle::Cpu(2, CpuEvent::Signal),
            EventHandle::Task(0),
            EventHandle::Task(1_000_000),
        ];
        for (time, slot) in slots.iter().enumerate() {
            queue.arm(*slot, time as u64);
        }
        for (time, slot) in slots.iter().enumerate() {
            assert_eq!(queue.armed(*slot), Some(time as u64));
            assert_eq!(queue.pop_until(slots.len() as u64), Some((time as u64, *slot)));
        }
        queue.cancel(EventHandle::Task(5_000_000));
        queue.arm(EventHandle::Task(3), 10);
        assert_eq!((queue.pop_until(9), queue.next_time()), (None, Some(10)));
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(steps in prop::collection::vec((0u32..4, 0u32..24, 0u64..40), 1..400)) {
            let mut queue = EventQueue::new(2, 4);
            let mut model: Vec<(u64, u64, u32)> = Vec::new();
            for (sequence, (what, task, time)) in steps.into_iter().enumerate() {
                match what {
                    0 | 1 => {
                        queue.arm(EventHandle::Task(task), time);
                        model.retain(|m| m.2 != task);
                        model.push((time, sequence as u64, task));
                        model.sort_unstable();
                    }
                    2 => {
                        queue.cancel(EventHandle::Task(task));
                        model.retain(|m| m.2 != task);
                    }
                    _ => {
                        let first = (!model.is_empty()).then(|| model.remove(0));
                        prop_assert_eq!(queue.pop(), first.map(|m| (m.0, EventHandle::Task(m.2))));
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.next_time(), model.first().map(|m| m.0));
                prop_assert_eq!(queue.armed(EventHandle::Task(task)), model.iter().find(|m| m.2 == task).map(|m| m.0));
            }
        }
    }
}
