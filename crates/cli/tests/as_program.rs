//! `run --as-program`: the lines of the programs that the workloads imitate.

use crate::support::{refusal, success};

fn lines(workload: &str, more: &[&str]) -> Vec<String> {
    let run = ["run", workload, "--sched", "cfs@2.6.27-sle11", "--quiet", "--as-program"];
    let text = success(&[&run[..], more].concat());
    text.lines().map(str::to_owned).collect()
}

/// The number behind a word.
fn after(line: &str, word: &str) -> f64 {
    let rest = line.split_once(word).unwrap_or_else(|| panic!("no `{word}` in `{line}`")).1;
    let number = rest.split_whitespace().next().and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| panic!("no number behind `{word}` in `{line}`"))
}

#[test]
fn slice_prints_a_value_for_each_worker_and_their_means() {
    let lines = lines("slice:16", &["--duration", "4s", "--cpus", "2"]);
    assert!((3..=4).contains(&lines.len()), "{lines:#?}");
    for line in &lines {
        let (values, means) = line.split_once(" avg slice: ").expect("the means");
        assert_eq!((values.len(), means.find(" utime: ")), (16 * 7, Some(5)), "`{line}`");
        let values: Vec<f64> = values.split_whitespace().map(|v| v.parse().expect("ms")).collect();
        // The program drops the fraction of each worker's slice; a value of one decimal may hide which way.
        let floors = |slack: f64| values.iter().map(|v| (v + slack).floor()).sum::<f64>() / 16.0;
        let mean = after(line, "avg slice:");
        assert!((floors(-0.05) - 0.005..=floors(0.05) + 0.005).contains(&mean), "`{line}`");
        let (_, decimals) = line.rsplit_once('.').expect("a fraction");
        assert_eq!(decimals.len(), 6, "%f has six decimals: `{line}`");
    }
}

#[test]
fn several_schedulers_have_a_head_each() {
    let run = ["run", "lat_ctx:2,size_kb=16", "--sched", "cfs,rfs", "--quiet", "--as-program"];
    let text = success(&run);
    let parts: Vec<&str> = text.split("==> ").collect();
    let [nothing, cfs, rfs] = parts.as_slice() else { panic!("{text}") };
    assert!(nothing.is_empty() && cfs.starts_with("cfs <==\n") && rfs.starts_with("rfs <==\n"));
    for part in [cfs, rfs] {
        assert!(part.contains("\n\"size=16k ovr="), "{text}");
        assert!(
            part.trim_end().lines().last().is_some_and(|line| line.starts_with("2 ")),
            "{text}"
        );
    }
}

#[test]
fn the_matrix_of_lat_ctx_is_the_table_of_lmbenchs_summary() {
    let lines = lines("lat_ctx:matrix", &["--hz", "1000"]);
    assert_eq!(lines[1], "Context switching - times in microseconds - smaller is better");
    assert!(lines[3].ends_with("  2p/0K 2p/16K 2p/64K 8p/16K 8p/64K 16p/16K 16p/64K"));
    assert!(lines[5].ends_with(" ------ ------ ------ ------ ------ ------- -------"));
    let row = lines[6].strip_prefix("sim       cfs@2.6.27-sl ").expect("host and system");
    let figures: Vec<f64> =
        row.split_whitespace().map(|figure| figure.parse().expect("µs")).collect();
    assert_eq!((figures.len(), lines.len(), lines[6].len()), (7, 7, lines[5].len()));
    // A ring of two takes as long alone as in the matrix.
    let alone = self::lines("lat_ctx:2", &["--hz", "1000"]);
    let switch = alone.last().and_then(|line| line.split(' ').nth(1)?.parse::<f64>().ok());
    assert_eq!(switch, Some(figures[0]), "{alone:#?}");
    let said = refusal(&["run", "lat_ctx:matrix,size_kb=16", "--sched", "cfs", "--as-program"]);
    assert!(said.contains("`size_kb` beside `matrix`"), "{said}");
}

#[test]
fn programs_that_count_and_time() {
    let hackbench = lines("hackbench:1,rounds=2", &["--duration", "1s"]);
    assert_eq!(
        hackbench[..2],
        [
            "Running in process mode with 1 groups using 40 file descriptors each (== 40 tasks)",
            "Each sender will pass 100 messages of 100 bytes"
        ]
    );
    assert!(hackbench[2..].iter().all(|line| line.starts_with("Time: 0.")), "{hackbench:#?}");
    assert_eq!(hackbench.len(), 4);

    let counts = lines("massive_intr:3", &["--duration", "2s"]);
    assert_eq!(counts.len(), 3);
    assert!(counts.iter().all(|line| line.len() == 6 + 1 + 8 && line.as_bytes()[6] == b'\t'));

    let dd = lines("pipe-chain:dd", &["--duration", "2500ms", "--cpus", "1"]);
    let bytes: u64 = dd[0].strip_suffix("+0 records in").and_then(|n| n.parse().ok()).expect("n");
    assert!(bytes > 0 && bytes.is_multiple_of(1024), "{dd:#?}");
    assert!(dd[2].starts_with(&format!("{bytes} bytes (")) && dd[2].ends_with("B/s"), "{dd:#?}");
    // A line of vmstat for each whole second.
    assert!(dd[5].starts_with(" r  b   swpd"), "{dd:#?}");
    assert_eq!(dd.len(), 6 + 2);
    let switches: u64 =
        dd[6].split_whitespace().nth(11).and_then(|cs| cs.parse().ok()).expect("cs");
    assert!(switches > 10_000, "{dd:#?}");

    let top = lines("loop:3", &["--duration", "4s", "--cpus", "2"]);
    assert_eq!(top[0], "  PID USER      PR  NI  VIRT  RES  SHR S %CPU %MEM     TIME+ COMMAND");
    assert_eq!(top.len(), 4);
    assert!(
        top[1..].iter().all(|line| line.ends_with(" loop") && line.contains(" -         20   0 "))
    );
}

#[test]
fn every_program_prints_something() {
    for workload in [
        "aim7:4",
        "dbench:2",
        "netperf-stream",
        "pipe",
        "schbench:2",
        "volano:1",
        "fairtest:1",
        "hogs:2",
    ] {
        let lines = lines(workload, &["--duration", "1200ms", "--cpus", "2"]);
        assert!(!lines.is_empty() && lines.iter().all(|line| !line.contains("NaN")), "{workload}");
    }
    let percentiles = lines("schbench:2", &["--duration", "2s"]);
    assert!(percentiles[0].starts_with("Wakeup Latencies percentiles (usec) runtime 2 (s) ("));
    assert_eq!(percentiles.iter().filter(|line| line.starts_with("\t* ")).count(), 3);
    assert!(percentiles.last().is_some_and(|line| line.starts_with("average rps: ")));
}

#[test]
fn what_has_no_lines_is_refused_with_a_reason() {
    let says = |args: &[&str], parts: &[&str]| {
        let said = refusal(&[&["run", "--sched", "cfs", "--as-program"], args].concat());
        for part in parts {
            assert!(said.contains(part), "`{part}` is missing from:\n{said}");
        }
    };
    says(&["periodic:2"], &["no program is known", "`periodic:2`", "hackbench", "slice"]);
    says(&["slice:2 + pipe"], &["one program", "slice and perf bench sched pipe"]);
    says(&["slice:2", "--format", "json"], &["text", "--format"]);
    says(&["slice:2", "--trace", "-"], &["--trace"]);
    says(&["slice:2", "--duration", "100ms"], &["no report"]);
}
