//! The page of `reproduce --seed --report`: the newest result, and the history of the seeds before it.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use fairground_session::Failure;

use crate::present::{DrawnResult, DrawnRow};

/// The largest page that is read, bytes.
const PAGE_BYTES_MAX: u64 = 1 << 20;
/// The most rows of the history; the oldest ones go.
const HISTORY_ROWS_MAX: usize = 500;
/// Before and after the rows of the history.
const HISTORY: [&str; 2] = ["<!-- history -->", "<!-- end of history -->"];
const SECONDS_PER_DAY: u64 = 86_400;

/// A page, and the rows of its history so far.
pub(super) struct SeedHistory {
    path: PathBuf,
    rows: Vec<String>,
}

impl SeedHistory {
    /// Reads the history of a page. A page that does not exist has none.
    ///
    /// # Errors
    /// If the file cannot be read, is longer than [`PAGE_BYTES_MAX`], or is another page.
    pub(super) fn read(path: &Path) -> Result<SeedHistory, Failure> {
        let name = path.display();
        let mut text = String::new();
        match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(SeedHistory { path: path.to_owned(), rows: Vec::new() });
            }
            Err(error) => return Err(Failure::io(name, &error)),
            Ok(file) => file
                .take(PAGE_BYTES_MAX + 1)
                .read_to_string(&mut text)
                .map_err(|error| Failure::io(&name, &error))?,
        };
        let rows = rows_of(&text).filter(|_| text.len() as u64 <= PAGE_BYTES_MAX);
        let rows = rows.ok_or_else(|| {
            Failure::new(format_args!(
                "{name}: not a page that `--report` wrote: it has no lines `{}` and `{}`, or more \
                 than {PAGE_BYTES_MAX} bytes (PAGE_BYTES_MAX)",
                HISTORY[0], HISTORY[1]
            ))
            .help("name another file; it is not replaced")
        })?;
        Ok(SeedHistory { path: path.to_owned(), rows })
    }

    /// Writes the page of a result, with a row for each of its comparisons in front of the history.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write(self, result: &DrawnResult<'_>) -> Result<(), Failure> {
        let text = page(&self.path, result, &today(), &self.rows);
        fs::write(&self.path, text).map_err(|error| Failure::io(self.path.display(), &error))
    }
}

/// The rows between the marks; `None` where there are no marks.
fn rows_of(text: &str) -> Option<Vec<String>> {
    let (_, rest) = text.split_once(HISTORY[0])?;
    let (table, _) = rest.split_once(HISTORY[1])?;
    // The heading and the rule come first.
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    Some(rows.take(HISTORY_ROWS_MAX).map(str::to_owned).collect())
}

fn page(path: &Path, result: &DrawnResult<'_>, date: &str, history: &[String]) -> String {
    let (seed, points) = (result.draw.seed, result.draw.points);
    let version = env!("CARGO_PKG_VERSION");
    let experiment = result.experiment_name();
    let mut text = format!(
        "# Drawn workloads: {experiment}\n\n\
         How near simulated runs are to real kernels on workloads that were drawn at random, and the seeds that were\n\
         taken so far. A cell is one metric of one group of tasks of one workload.\n\n\
         *Date: {date}, fairground {version}. Command:*\n\n\
         ```console fetch vm-load slow\n\
         $ fairground reproduce {experiment} --seed {seed} --points {points} --report {}\n\
         ```\n\n",
        path.display()
    );
    let tables = [result.summary(), result.by_metric()].into_iter().chain(result.decisions());
    for table in tables.chain([result.points_outside()]) {
        text += &table.to_markdown().replacen("### ", "## ", 1);
        text.push('\n');
    }
    text += "## History\n\nShares of the measured cells: within the tolerance, and together with those within the\n\
             kernel's own spread.\n\n";
    text += HISTORY[0];
    text += "\n\n| date | version | seed | points | comparison | CPUs: shares of cells |\n\
             |---|---|---|---|---|---|\n";
    let made = format!("| {date} | {version} | {seed} | {points}");
    for (comparison, shares) in shares(&result.rows()) {
        text += &format!("{made} | {} | {shares} |\n", comparison.replace('|', "\\|"));
    }
    for row in history {
        text += row;
        text.push('\n');
    }
    text + "\n" + HISTORY[1] + "\n"
}

/// Of each comparison its shares by the number of CPUs.
fn shares<'r>(rows: &[DrawnRow<'r>]) -> Vec<(&'r str, String)> {
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for row in rows {
        let measured = row.tally.measured();
        let percent = |part: usize| match measured {
            0 => "not measured".to_owned(),
            measured => format!("{:.0} %", 100.0 * part as f64 / measured as f64),
        };
        let cpus = row.cpus.map_or("all".to_owned(), |cpus| cpus.to_string());
        let share = format!(
            "{cpus}: {}, {} of {measured}",
            percent(row.tally.agree),
            percent(row.tally.agree + row.tally.within_spread)
        );
        match all.last_mut() {
            Some((comparison, shares)) if *comparison == row.comparison => shares.push(share),
            _ => all.push((row.comparison, vec![share])),
        }
    }
    all.into_iter().map(|(comparison, shares)| (comparison, shares.join("; "))).collect()
}

/// Today's date in UTC, `YYYY-MM-DD`.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs() / SECONDS_PER_DAY)
}

/// The date of a day after 1970-01-01 (H. Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`).
fn date(day: u64) -> String {
    let shifted = day + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March, so that the leap day is a year's last.
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        let dates = [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (19_782, "2024-02-29"),
            (20_819, "2027-01-01"),
        ];
        for (day, expected) in dates {
            assert_eq!(date(day), expected);
        }
    }

    #[test]
    fn the_rows_between_the_marks_are_kept() {
        let page = format!("x\n{}\n\n| a |\n|---|\n| 1 |\n| 2 |\n\n{}\n", HISTORY[0], HISTORY[1]);
        assert_eq!(rows_of(&page), Some(vec!["| 1 |".to_owned(), "| 2 |".to_owned()]));
        assert_eq!(rows_of("| 1 |"), None);
    }
}
