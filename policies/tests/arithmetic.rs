//! The schedulers' arithmetic against an independent model: weights, virtual time, and the running average of `rfs`.
//!
//! The C headers are compiled for the host and driven through a pipe: the code under test is that of the BPF objects,
//! without a simulator.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const WEIGHTS: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// Compiles the driver once and runs it on a script of operations: one line of numbers per operation.
fn run(script: &str) -> Vec<Vec<i128>> {
    static DRIVER: OnceLock<PathBuf> = OnceLock::new();
    let driver = DRIVER.get_or_init(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("arithmetic");
        let clang = fairground_policies::find_clang().expect("the package was built with a clang");
        let status = Command::new(clang)
            .args([
                "-O1",
                "-Wall",
                "-Werror",
                "-Wno-unused-const-variable",
                "-Wno-unknown-attributes",
                "-fsanitize=signed-integer-overflow,shift-exponent",
            ])
            .args(["-fsanitize-trap=all", "-I"])
            .arg(here.join("include"))
            .arg(here.join("tests/arithmetic.c"))
            .arg("-o")
            .arg(&program)
            .status()
            .expect("clang runs");
        assert!(status.success(), "the headers must compile for the host");
        program
    });
    let mut child = Command::new(driver.as_os_str())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the driver runs");
    let mut input = child.stdin.take().expect("piped");
    let script = script.to_owned();
    let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
    let output = child.wait_with_output().expect("the driver ends");
    writer.join().expect("no panic").expect("the driver reads everything");
    assert!(output.status.success(), "the driver trapped: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("digits");
    text.lines()
        .map(|l| l.split_whitespace().map(|n| n.parse().expect("a number")).collect())
        .collect()
}

fn script(operations: &[(char, i128, u64, u64)]) -> String {
    let mut text = String::new();
    for (operation, a, b, c) in operations {
        writeln!(text, "{operation} {} {b} {c}", *a as u64).expect("a string grows");
    }
    text
}

#[test]
fn weights_and_inverses_are_the_kernels() {
    let rows = run(&script(&(0..40).map(|n| ('t', n, 16, 0)).collect::<Vec<_>>()));
    let mut cut_off = Vec::new();
    for (n, row) in rows.iter().enumerate() {
        let weight = i128::from(WEIGHTS[n]);
        assert_eq!(row[0], weight);
        let nearest = ((1 << 32) + weight / 2) / weight;
        if row[1] != nearest {
            assert_eq!(row[1], (1 << 32) / weight, "entry {n} is neither rounded nor cut off");
            cut_off.push(n as i32 - 20);
        }
    }
    assert_eq!(cut_off, [13, 14, 16, 17], "the kernel's table cuts off four entries");
}

/// Law 1 of docs/laws/cfs.md: running d ns at nice n adds d * 1024 / w(n) within 1 ns + d * 2^-22.
#[test]
fn cfs_law_01_weighted_vruntime() {
    let lengths: [u64; 9] =
        [0, 1, 999, 1_000_000, 4_000_000, 999_999_937, 1 << 32, 60_000_000_000, 1 << 42];
    let cases: Vec<_> = (0..40).flat_map(|n| lengths.map(|d| (d, n))).collect();
    let rows =
        run(&script(&cases.iter().map(|(d, n)| ('v', i128::from(*d), *n, 0)).collect::<Vec<_>>()));
    for ((d, n), row) in cases.iter().zip(rows) {
        let weight = i128::from(WEIGHTS[*n as usize]);
        let off_by = (row[0] * weight - i128::from(*d) * 1024).abs();
        let bound = weight + ((weight * i128::from(*d)) >> 22);
        assert!(off_by <= bound, "{d} ns at nice {}: {}", *n as i64 - 20, row[0]);
        if *n == 20 {
            assert_eq!(row[0], i128::from(*d), "nice 0 is exact");
        }
    }
}

#[test]
fn wide_multiplication_matches_128_bit() {
    let values: [u64; 6] = [0, 1, 0xffff_ffff, 1 << 32, (1 << 45) + 12345, (1 << 52) + 987_654_321];
    let factors: [u64; 4] = [1, 48388, 4_194_304, 286_331_153];
    let cases: Vec<_> = values
        .into_iter()
        .flat_map(|a| factors.into_iter().flat_map(move |b| [1, 22, 32].map(|s| (a, b, s))))
        .collect();
    let cases: Vec<_> = cases
        .into_iter()
        .filter(|(a, b, s)| {
            (u128::from(*a) * u128::from(*b)) >> s < 1 << 64
                && u128::from(a >> 32) * u128::from(*b) < 1 << 63
        })
        .filter(|(a, b, s)| (u128::from(a >> 32) * u128::from(*b)) << (32 - s) < 1 << 64)
        .collect();
    let rows = run(&script(
        &cases.iter().map(|(a, b, s)| ('m', i128::from(*a), *b, *s)).collect::<Vec<_>>(),
    ));
    for ((a, b, s), row) in cases.iter().zip(rows) {
        assert_eq!(row[0] as u128, (u128::from(*a) * u128::from(*b)) >> s, "({a} * {b}) >> {s}");
    }
}

/// Law 1 of docs/laws/cfs_2_6_23.md: wmult * weight is within a weight of 2^32, in the first tables as in the later
/// ones.
#[test]
fn cfs_2_6_23_law_01_inverses_belong_to_weights() {
    for operation in ['t', 'w'] {
        let rows = run(&script(&(0..40).map(|n| (operation, n, 16, 0)).collect::<Vec<_>>()));
        assert_eq!(rows[20][..2], [1024, 1 << 22]);
        for (n, row) in rows.iter().enumerate() {
            assert!(
                (row[0] * row[1] - (1 << 32)).abs() < row[0],
                "{operation}, entry {n}: {row:?}"
            );
        }
    }
}

/// Law 2 of docs/laws/cfs_2_6_23.md: scaling by a weight over itself gives the time back, within 1 ns, what the 16-bit
/// shift of large products loses (2^15 / w ns), and the error of a 32-bit inverse (w / 2^33 of the time; for nice 0
/// none).
#[test]
fn cfs_2_6_23_law_02_scaling_is_exact_within_its_rounding() {
    let lengths: [u64; 8] =
        [0, 1, 999, (1 << 22) - 1, 1 << 22, 4_999_999, 999_999_937, 20_000_000_000];
    let cases: Vec<_> = (0..40).flat_map(|n| lengths.map(|d| (d, WEIGHTS[n]))).collect();
    let operations: Vec<_> = cases.iter().map(|(d, w)| ('d', i128::from(*d), *w, *w)).collect();
    for ((d, w), row) in cases.iter().zip(run(&script(&operations))) {
        let (d, w) = (i128::from(*d), i128::from(*w));
        let bound = 1 + (1 << 15) / w + ((d * w) >> 33) + 1;
        assert!((row[0] - d).abs() <= bound, "{d} ns of weight {w}: {}", row[0]);
        assert!(
            row[1] <= d && d - row[1] <= 2 * bound,
            "{d} ns of weight {w}, cut off: {}",
            row[1]
        );
        if w == 1024 {
            assert!((row[0] - d).abs() <= 32, "{d} ns of nice 0: {}", row[0]);
            assert!(d >= 1 << 22 || row[0] == d, "{d} ns of nice 0: exact below 2^22");
        }
    }
}

/// The tree key: wait_runtime * 1024 / weight, for negative and positive values alike, except in -rc1; and
/// granularities by weight.
#[test]
fn cfs2623_keys_and_granularities_by_weight() {
    let owed: [i128; 4] = [-20_000_000, -1, 1, 20_000_000];
    let cases: Vec<_> = (0..40).flat_map(|n| owed.map(|ns| (ns, n))).collect();
    let gran = 4_000_000;
    let operations: Vec<_> = cases.iter().map(|(ns, n)| ('k', *ns, *n, gran)).collect();
    for ((ns, n), row) in cases.iter().zip(run(&script(&operations))) {
        let weight = i128::from(WEIGHTS[*n as usize]);
        let close = |value: i128, exact: i128| (value - exact).abs() <= 1 + (exact.abs() >> 15);
        assert!(close(row[0], ns * 1024 / weight), "{ns} ns at entry {n}: {row:?}");
        let first = if *ns > 0 { ns * weight / 1024 } else { ns * 1024 / weight };
        assert!(close(row[1], first), "rc1, {ns} ns at entry {n}: {row:?}");
        let gran = i128::from(gran);
        let (light, heavy) = (gran * weight / 1024, gran * 1024 / weight);
        assert!(close(row[2], light.min(heavy)), "entry {n}: {row:?}");
        assert!(close(row[3], light.min(gran)), "rc1, entry {n}: {row:?}");
    }
}

/// Law 1 of docs/laws/rfs.md: inv = floor((2^S + w/2) / w) and shift = round(log2 w) for all 40 nice values, and how
/// far their product is from 1.
#[test]
fn rfs_law_01_inverse_and_shift() {
    for (bits, from) in [(16u64, 20usize), (20, 0), (24, 0)] {
        let rows = run(&script(&(0..40).map(|n| ('t', n, bits, 0)).collect::<Vec<_>>()));
        for (n, row) in rows.iter().enumerate() {
            let weight = i128::from(WEIGHTS[n]);
            assert_eq!(row[3], ((1 << bits) + weight / 2) / weight);
            assert_eq!(row[2], (WEIGHTS[n] as f64).log2().round() as i128);
            if n >= from {
                let product = row[3] as f64 * 2f64.powi(row[2] as i32) / 2f64.powi(bits as i32);
                assert!(
                    (1.0 / 1.42..=1.42).contains(&product),
                    "S={bits} nice {}: {product}",
                    n as i64 - 20
                );
            }
        }
    }
    let literal = run(&script(&(0..40).map(|n| ('t', n, 16, 0)).collect::<Vec<_>>()));
    let inverses: Vec<_> = literal.iter().map(|row| row[3]).collect();
    assert_eq!(
        inverses[..10],
        [1, 1, 1, 1, 2, 2, 3, 4, 4, 5],
        "S = 16 rounds the heavy weights badly, as stated"
    );
    assert_eq!(
        inverses[20..],
        [
            64, 80, 100, 125, 155, 196, 241, 305, 381, 478, 596, 753, 936, 1170, 1456, 1820, 2260,
            2849, 3641, 4369
        ]
    );
}

/// A task of the model.
#[derive(Clone)]
struct Task {
    time_norm: i128,
    inv: i128,
    shift: u64,
    queued: bool,
}

fn task(nice: i64, bits: u32) -> Task {
    let weight = WEIGHTS[(nice + 20) as usize];
    Task {
        time_norm: 0,
        inv: i128::from(((1 << bits) + weight / 2) / weight),
        shift: (weight as f64).log2().round() as u64,
        queued: false,
    }
}

/// A printed row is base, off, inc, log2 inc, max, sum of weights, average.
fn check_invariants(row: &[i128], tasks: &[Task], max_log2: u64, start: i128) {
    let [base, off, inc, inc_log2, max, weight_sum, average] = row else {
        panic!("seven numbers, not {row:?}")
    };
    // Times wrap at 2^64: compare relative to where the run started.
    let base = i128::from((*base as u64).wrapping_sub(start as u64) as i64);
    let queued = || tasks.iter().filter(|t| t.queued);
    assert_eq!(*weight_sum, queued().map(|t| 1i128 << t.shift).sum::<i128>(), "(16)");
    if *weight_sum == 0 {
        return;
    }
    assert_eq!(*inc, 1i128 << inc_log2);
    assert_eq!(*max, inc * weight_sum, "(21)");
    assert!(*max >= 1 << (max_log2 - 1) && *max < 1 << max_log2, "invariant N: {max}");
    assert!(*off >= 0 && off < max, "invariant O: {off} of {max}");
    let sum: i128 = queued().map(|t| (t.time_norm - base) << t.shift).sum();
    assert_eq!(*off, sum, "(25)");
    let mean = queued().map(|t| t.time_norm << t.shift).sum::<i128>().div_euclid(*weight_sum);
    assert_eq!(
        i128::from((*average as u64).wrapping_sub(start as u64) as i64),
        mean,
        "(20) is the exact mean"
    );
}

/// Laws 2, 3, 5, 6 and 7 of docs/laws/rfs.md over random histories, from 0 and from just below the wrap of 64 bits:
/// the same numbers.
#[test]
fn rfs_laws_02_03_05_06_07_sums_are_exact_and_wrap() {
    for (bits, max_log2) in [(16u32, 46u64), (16, 40), (24, 54), (24, 60)] {
        let mut relative: Option<Vec<Vec<i128>>> = None;
        for start in [0i128, (1 << 63) - 5_000_000_000, (1 << 64) - 5_000_000_000] {
            let (operations, states) = random_history(bits, max_log2, start);
            let rows = run(&script(&operations));
            for (row, tasks) in rows.iter().zip(&states) {
                check_invariants(row, tasks, max_log2, start);
            }
            let mut shifted = rows;
            for row in &mut shifted {
                for at in [0, 6] {
                    row[at] = i128::from((row[at] as u64).wrapping_sub(start as u64));
                }
            }
            match &relative {
                None => relative = Some(shifted),
                Some(first) => assert_eq!(*first, shifted, "law 7: from {start} as from 0"),
            }
        }
    }
}

type History = (Vec<(char, i128, u64, u64)>, Vec<Vec<Task>>);

/// Joins, leaves and running times of twelve tasks by a fixed random sequence; every state after every operation.
fn random_history(bits: u32, max_log2: u64, start: i128) -> History {
    let nices = [-20, -10, -5, -1, 0, 0, 0, 1, 5, 10, 15, 19];
    let mut tasks: Vec<Task> = nices.iter().map(|n| task(*n, bits)).collect();
    let (mut operations, mut states) = (Vec::new(), Vec::new());
    let mut seed = 88_172_645_463_325_252u64;
    let mut random = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let mut emptied_at = 0;
    for _ in 0..4000 {
        let t = random(12) as usize;
        let least = (0..12).filter(|i| tasks[*i].queued).min_by_key(|i| tasks[*i].time_norm);
        let alone = tasks.iter().filter(|t| t.queued).count() == 1;
        if !tasks[t].queued {
            // As a wake-up does: not far behind the others.
            let floor = least.map_or(emptied_at, |l| tasks[l].time_norm) - 640_000;
            let task = &mut tasks[t];
            task.time_norm = task.time_norm.max(floor);
            task.queued = true;
            operations.push(('+', start + task.time_norm, task.shift, max_log2));
        } else if random(4) == 0 {
            let task = &mut tasks[t];
            task.queued = false;
            emptied_at = task.time_norm;
            operations.push(('-', start + task.time_norm, task.shift, max_log2));
        } else if let Some(runs) = least {
            // The smallest time runs: up to 4 ms; now and then a correction backwards; alone also 4 s without a tick.
            let ns = match random(20) {
                0 => -i128::from(random(1000)),
                1..=9 if alone => i128::from(random(4_000_000_000)),
                _ => i128::from(random(4_000_000)),
            };
            let task = &mut tasks[runs];
            task.time_norm += ns * task.inv;
            operations.push(('g', ns * task.inv, task.shift, 0));
        }
        states.push(tasks.clone());
    }
    (operations, states)
}

/// Law 14 of docs/laws/rfs.md: the worked example, digit for digit (S = 16, MAX_TIMESUM = 2^40).
#[test]
fn rfs_law_14_worked_example() {
    const MS: i128 = 1_000_000;
    let (a, b, c) = ((64, 10), (196, 8), (21, 12));
    let run_of = |(inv, shift): (i128, u64), ms: i128| ('g', ms * MS * inv, shift, 0);
    let mut operations = vec![('+', 0, 10, 40), ('+', 0, 8, 40), ('+', 0, 12, 40)];
    operations.extend([run_of(a, 4), run_of(b, 4), run_of(c, 4), run_of(c, 4), run_of(c, 4)]);
    operations.push(('-', 784_000_000, 8, 40));
    operations.extend("CCACCACCCACCACC".chars().map(|t| run_of(if t == 'A' { a } else { c }, 4)));
    operations.push(('+', 784_000_000, 8, 40));
    let rows = run(&script(&operations));
    // base, off, log2 of inc, max, sum of weights, average
    let expected = [
        (0, [0, 0, 29, 549_755_813_888, 1024, 0]),
        (1, [0, 0, 29, 687_194_767_360, 1280, 0]),
        (2, [0, 0, 27, 721_554_505_728, 5376, 0]),
        (3, [0, 262_144_000_000, 27, 721_554_505_728, 5376, 48_761_904]),
        (4, [0, 462_848_000_000, 27, 721_554_505_728, 5376, 86_095_238]),
        (5, [134_217_728, 85_357_494_272, 27, 721_554_505_728, 5376, 150_095_238]),
        (6, [134_217_728, 429_421_494_272, 27, 721_554_505_728, 5376, 214_095_238]),
        (7, [268_435_456, 51_930_988_544, 27, 721_554_505_728, 5376, 278_095_238]),
        (8, [134_217_728, 607_141_232_640, 27, 687_194_767_360, 5120, 252_800_000]),
        (23, [1_073_741_824, 630_057_861_120, 27, 687_194_767_360, 5120, 1_196_800_000]),
        (24, [1_073_741_824, 555_883_954_176, 27, 721_554_505_728, 5376, 1_177_142_857]),
    ];
    for (at, [base, off, inc_log2, max, weight_sum, average]) in expected {
        assert_eq!(
            rows[at],
            [base, off, 1 << inc_log2, inc_log2, max, weight_sum, average],
            "row {at}"
        );
    }
}
