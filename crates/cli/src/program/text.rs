//! Numbers as C programs print them.

/// `%g`: six significant digits, no zeros at the end.
pub(super) fn g(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match exponent {
        -4..=5 => {
            let decimals = usize::try_from(5 - exponent).unwrap_or(0);
            trim(&format!("{value:.decimals$}"))
        }
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trim(digits), exponent.abs())
        }
    }
}

/// An amount of bytes as dd prints it: powers of 1000, rounded to the nearest, a decimal below 10.
pub(super) fn human(bytes: f64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut amount = bytes;
    for (nth, unit) in UNITS.iter().enumerate() {
        let is_last = nth + 1 == UNITS.len();
        let text = match nth > 0 && (amount * 10.0).round() < 100.0 {
            true => format!("{amount:.1}"),
            false => format!("{amount:.0}"),
        };
        if amount.round() < 1000.0 || is_last {
            return format!("{text} {unit}");
        }
        amount /= 1000.0;
    }
    String::new()
}

/// Seconds of nanoseconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_printf_g() {
        let known = [
            (3.75104, "3.75104"),
            (0.005_469, "0.005469"),
            (225.554, "225.554"),
            (1_234_567.0, "1.23457e+06"),
            (0.000_012_5, "1.25e-05"),
            (10.0, "10"),
            (999_999.9, "1e+06"),
            (0.0, "0"),
        ];
        for (value, text) in known {
            assert_eq!(g(value), text);
        }
    }

    #[test]
    fn bytes_are_those_of_dd() {
        let known = [
            (1_048_576.0, "1.0 MB"),
            (1_048_576.0 / 3.751_04, "280 kB"),
            (1_048_576.0 / 0.005_469, "192 MB"),
            (512.0, "512 B"),
            (9_960.0, "10 kB"),
            (999_700.0, "1.0 MB"),
            (25_600.0, "26 kB"),
        ];
        for (bytes, text) in known {
            assert_eq!(human(bytes), text);
        }
    }
}
