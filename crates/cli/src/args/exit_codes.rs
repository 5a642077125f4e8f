//! With which codes the program ends: for `--help` and the man pages.

/// Each code and when the program ends with it.
pub(crate) const EXIT_CODES: [(u8, &str); 7] = [
    (0, "done"),
    (
        1,
        "a negative verdict: a claim of an experiment does not hold, a variable is not as `--expect` says, or an \
         ability that `doctor` was asked for is not ready",
    ),
    (2, "an error: bad input, or fairground cannot go on"),
    (41, "the scheduler left before the end (scx_bpf_exit)"),
    (42, "a task was runnable for too long without running: the scheduler stalled"),
    (
        43,
        "the scheduler was ejected for an error (a trap, a bad dispatch, a loop without end, its own scx_bpf_error)",
    ),
    (
        130,
        "interrupted (Ctrl-C, SIGTERM, SIGHUP): the result holds what was measured until then, and says so",
    ),
];

/// The end of `--help`.
pub(super) fn help() -> String {
    let lines: Vec<String> =
        EXIT_CODES.iter().map(|(code, when)| format!("  {code:<3} {when}")).collect();
    format!("Exit codes:\n{}", lines.join("\n"))
}
