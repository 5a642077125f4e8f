//! `netperf` and VolanoMark.

use fairground_workload::{Op, PipeId};

use super::text::seconds;
use super::{NO_ROUND, Run, find_op};

/// What netperf's receiver marks.
const MEBIBYTE: &str = "1 MiB";
/// The release of VolanoMark that the workload imitates.
const VOLANO_VERSION: &str = "2.1.2";

/// The table of `netperf -t TCP_STREAM`; a run of it for each pair.
pub(super) fn netperf(run: &Run<'_>) -> Result<String, String> {
    let marks = run.marks(MEBIBYTE);
    if marks.is_empty() {
        return Err(NO_ROUND.to_owned());
    }
    let mut text = String::new();
    for server in run.specs("netserver") {
        let count = marks.iter().filter(|mark| run.name(mark.task) == server.name).count() as u64;
        let read = find_op(&server.program, &|op| match op {
            Op::PipeRead(pipe, bytes) => Some((*pipe, *bytes)),
            _ => None,
        });
        let (pipe, message): (PipeId, u64) = read.unwrap_or((0, 0));
        let buffer = run.workload.pipes.get(pipe).map_or(0, |pipe| pipe.capacity);
        let s = seconds(run.length_ns());
        let megabits = (count << 20) as f64 * 8.0 / 1e6 / s;
        text += "Recv   Send    Send                          \n\
                 Socket Socket  Message  Elapsed              \n\
                 Size   Size    Size     Time     Throughput  \n\
                 bytes  bytes   bytes    secs.    10^6bits/sec  \n\n";
        text += &format!("{buffer:6} {buffer:6} {message:6}    {s:<6.2}   {megabits:7.2}   \n");
    }
    Ok(text)
}

/// VolanoMark's summary. A message that was sent reaches every other user of its room; those under way count as
/// neither.
pub(super) fn volano(run: &Run<'_>) -> Result<String, String> {
    let per_mark = run.specs("client-receive").find_map(|client| {
        find_op(&client.program, &|op| match op {
            Op::Loop(times, _) => *times,
            _ => None,
        })
    });
    let users = run.specs("client-receive").filter(|client| client.name.contains("/r0-")).count();
    let marks = run.marks_where(|label| label.ends_with(" messages"));
    if marks.is_empty() {
        return Err(NO_ROUND.to_owned());
    }
    let received = marks.len() as u64 * per_mark.unwrap_or(1);
    let sent = received / (users as u64).saturating_sub(1).max(1);
    let s = seconds(run.length_ns());
    let total = sent + received;
    Ok(format!(
        "VolanoMark version = {VOLANO_VERSION}\n\
         Messages sent      = {sent}\n\
         Messages received  = {received}\n\
         Total messages     = {total}\n\
         Elapsed time       = {s:.3} seconds\n\
         Average throughput = {:.0} messages per second\n",
        total as f64 / s
    ))
}
