//! Neighbours that are too short to be kept become one.

use super::Slice;

/// A slice, or what stands for several short ones: the value of that which has the most time among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) slice: Slice,
    pub(super) is_several: bool,
}

/// Makes one of neighbours that are shorter than `below_ns`, up to that length together.
pub(super) fn put_together(lane: &[Drawn], below_ns: u64) -> Vec<Drawn> {
    let mut kept = Vec::new();
    let mut open = Open::default();
    for drawn in lane {
        let slice = &drawn.slice;
        if slice.length_ns() >= below_ns {
            open.close(&mut kept);
            kept.push(*drawn);
            continue;
        }
        if open.first.is_some_and(|first| slice.end_ns - first.slice.start_ns > below_ns) {
            open.close(&mut kept);
        }
        open.add(drawn);
    }
    open.close(&mut kept);
    kept
}

/// Short slices on their way to become one.
#[derive(Default)]
struct Open {
    first: Option<Drawn>,
    end_ns: u64,
    /// The time of each value among them, ns.
    times: Vec<(u32, u64)>,
    slices: usize,
}

impl Open {
    fn add(&mut self, drawn: &Drawn) {
        let slice = &drawn.slice;
        self.first.get_or_insert(*drawn);
        self.end_ns = slice.end_ns;
        self.slices += 1;
        let ns = slice.length_ns();
        match self.times.iter_mut().find(|(value, _)| *value == slice.value) {
            Some((_, time)) => *time += ns,
            None => self.times.push((slice.value, ns)),
        }
    }

    fn close(&mut self, kept: &mut Vec<Drawn>) {
        let Some(first) = self.first.take() else { return };
        if self.slices == 1 {
            kept.push(first);
        } else {
            // The first of those with the most time.
            let most = self.times.iter().map(|(_, ns)| *ns).max().unwrap_or(0);
            let value =
                self.times.iter().find(|(_, ns)| *ns == most).map_or(0, |(value, _)| *value);
            let slice = Slice { start_ns: first.slice.start_ns, end_ns: self.end_ns, value, by: 0 };
            kept.push(Drawn { slice, is_several: true });
        }
        self.times.clear();
        self.slices = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(start_ns: u64, end_ns: u64, task: u32) -> Drawn {
        Drawn { slice: Slice::of_cpu(start_ns, end_ns, task), is_several: false }
    }

    #[test]
    fn a_long_slice_among_short_ones_is_kept() {
        let mut lane: Vec<Drawn> = (0..50).map(|i| drawn(i * 10, i * 10 + 9, 0)).collect();
        lane.push(drawn(500, 900, 1));
        lane.push(drawn(900, 910, 2));
        let merged = put_together(&lane, 100);
        assert_eq!(merged[merged.len() - 2..], [drawn(500, 900, 1), drawn(900, 910, 2)]);
        assert_eq!(merged.len(), 7, "five of ten slices each");
        assert!(merged[..5].iter().all(|drawn| drawn.is_several));
    }
}
