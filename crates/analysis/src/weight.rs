//! The weight of a nice value.

/// The weight of nice 0.
pub const NICE_0_WEIGHT: u32 = 1024;

/// The weights of nice −20…19: each step is a factor of about 1.25, so that one step of nice between two competing
/// tasks moves about 10 % of the CPU. The values are those of Linux since 2.6.23 (`sched_prio_to_weight` in
/// `kernel/sched/core.c`).
pub const NICE_WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// The weight of a nice value; one outside −20…19 counts as the nearest end.
pub fn weight_of_nice(nice: i8) -> u32 {
    let index = (i32::from(nice) + 20).clamp(0, 39);
    NICE_WEIGHTS[index as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nice_zero_stands_in_the_middle_and_ends_are_clamped() {
        assert_eq!(weight_of_nice(0), NICE_0_WEIGHT);
        assert_eq!(weight_of_nice(-128), 88761);
        assert_eq!(weight_of_nice(127), 15);
    }

    #[test]
    fn a_step_is_about_one_and_a_quarter() {
        for pair in NICE_WEIGHTS.windows(2) {
            let ratio = f64::from(pair[0]) / f64::from(pair[1]);
            assert!((1.18..1.30).contains(&ratio), "{pair:?}");
        }
    }
}
