//! Means of several recordings, and the interval of their difference.

/// The two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// A quantity before and after: means of the recordings of each side, both for the work that the recordings after did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// The mean of the recordings before.
    pub before: f64,
    /// The mean of the recordings after.
    pub after: f64,
    /// From where to where the difference of the means lies with a confidence of 95 % (Welch's interval); `None` with
    /// fewer than two recordings on a side.
    pub interval: Option<(f64, f64)>,
}

impl Change {
    /// Of a quantity per unit of work, measured in each recording; the result is for `units` of work.
    pub(super) fn of(before: &[f64], after: &[f64], units: f64) -> Self {
        let ((mean_before, error_before), (mean_after, error_after)) = (mean(before), mean(after));
        let interval = error_before.zip(error_after).map(|errors| {
            let half = half_width(errors, (before.len(), after.len()));
            let difference = mean_after - mean_before;
            ((difference - half) * units, (difference + half) * units)
        });
        Self { before: mean_before * units, after: mean_after * units, interval }
    }

    /// How much more it is after than before.
    pub fn difference(&self) -> f64 {
        self.after - self.before
    }

    /// Whether the interval excludes zero; `None` where there is no interval.
    pub fn is_beyond_noise(&self) -> Option<bool> {
        self.interval.map(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// The mean, and the square of its standard error where there is one.
fn mean(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / count };
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (values.len() > 1).then(|| squares / (count - 1.0) / count))
}

/// Half of Welch's interval: Student's t with the degrees of freedom of Welch and Satterthwaite, rounded down.
fn half_width((before, after): (f64, f64), counts: (usize, usize)) -> f64 {
    let sum = before + after;
    if sum == 0.0 {
        return 0.0;
    }
    let part = |error: f64, count: usize| error.powi(2) / (count as f64 - 1.0);
    let freedom = sum.powi(2) / (part(before, counts.0) + part(after, counts.1));
    let index = (freedom as usize).clamp(1, T_95.len()) - 1;
    T_95[index] * sum.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of two samples in "Welch's t-test" (Wikipedia, example 1): t = −2.46, 24.9 degrees of freedom.
    #[test]
    fn the_interval_is_that_of_welch() {
        let before = [
            27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7,
            21.4,
        ];
        let after = [
            27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5,
            34.4,
        ];
        let change = Change::of(&before, &after, 1.0);
        let ((_, b), (_, a)) = (mean(&before), mean(&after));
        let t = change.difference() / (b.unwrap() + a.unwrap()).sqrt();
        assert!((2.4..2.9).contains(&t), "{t}");
        assert_eq!(change.is_beyond_noise(), Some(true));
        let (low, high) = change.interval.unwrap();
        assert!(((low + high) / 2.0 - change.difference()).abs() < 1e-9);
    }

    #[test]
    fn one_recording_a_side_has_no_interval() {
        assert_eq!(Change::of(&[1.0], &[2.0], 10.0).interval, None);
        assert_eq!(Change::of(&[1.0, 1.5], &[2.0], 10.0).interval, None);
        assert_eq!(Change::of(&[], &[2.0], 10.0).before, 0.0);
        assert_eq!(Change::of(&[1.0, 1.0], &[2.0, 2.0], 10.0).interval, Some((10.0, 10.0)));
        assert_eq!(Change::of(&[1.0, 3.0], &[2.0, 2.5], 1.0).is_beyond_noise(), Some(false));
    }
}
