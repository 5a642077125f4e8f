//! `diagnose`: what is wrong in a recording, and how one sees it; of two recordings, what is new.

use std::process::ExitCode;

use fairground_analysis::diagnose::{ChangedFinding, Diagnosis, Finding, compare_findings};
use fairground_analysis::{Analysis, Options};
use fairground_report::{Cell, Document};
use fairground_session::{Failure, Recording};
use fairground_trace::Trace;

use crate::args::{Cli, DiagnoseArgs};
use crate::input::{asked_tasks, find_recording};
use crate::present;

/// A recording with what is wrong in it.
struct Diagnosed {
    recording: Recording,
    analysis: Analysis,
    diagnosis: Diagnosis,
    /// By task: whether findings about it are asked for.
    asked: Option<Vec<bool>>,
}

impl Diagnosed {
    fn of(cli: &Cli, args: &DiagnoseArgs, name: &str) -> Result<Self, Failure> {
        let recording = find_recording(name, &args.source, cli.quiet)?;
        let asked = asked_tasks(&args.of, &recording)?;
        let analysis = Analysis::of(&recording.trace, &Options::default());
        let diagnosis = Diagnosis::with(&recording.trace, &analysis);
        Ok(Self { recording, analysis, diagnosis, asked })
    }

    /// Whether a finding is about a task that is asked for.
    fn is_asked(&self, finding: &Finding) -> bool {
        self.asked.as_ref().is_none_or(|asked| {
            finding.tasks.iter().any(|task| asked.get(task.index()) == Some(&true))
        })
    }

    fn side(&self) -> (&Trace, &Diagnosis) {
        (&self.recording.trace, &self.diagnosis)
    }

    fn loss_notes(&self) -> Vec<String> {
        present::loss_notes(&self.recording.name, &self.analysis.irregularities)
    }
}

/// A finding is no failure: the exit code is that of success with and without findings.
pub(super) fn diagnose(cli: &Cli, args: &DiagnoseArgs) -> Result<ExitCode, Failure> {
    let first = Diagnosed::of(cli, args, &args.recording)?;
    let document = match &args.after {
        None => one(args, first),
        Some(after) => two(args, &first, &Diagnosed::of(cli, args, after)?),
    };
    present::print(&document, cli)?;
    Ok(ExitCode::SUCCESS)
}

fn one(args: &DiagnoseArgs, mut diagnosed: Diagnosed) -> Document {
    let name = diagnosed.recording.name.clone();
    let mut document = Document::new(format!("Diagnosis of {name}"));
    let mut findings = std::mem::take(&mut diagnosed.diagnosis.findings);
    let all = findings.len();
    if args.all {
        // A stable sort: each part stays in the order of cost.
        findings.sort_by_key(|finding| !diagnosed.is_asked(finding));
    } else {
        findings.retain(|finding| diagnosed.is_asked(finding));
    }
    let left_out = all - findings.len();
    diagnosed.diagnosis.findings = findings;
    let trace = &diagnosed.recording.trace;
    let (events, cpus) = (trace.len() as u64, trace.cpus);
    present::describe_recording(&mut document, &diagnosed.analysis, events, cpus);
    let unknown = diagnosed.analysis.irregularities.unknown_time();
    present::describe_diagnosis(
        &mut document,
        &diagnosed.diagnosis,
        &args.recording,
        left_out,
        unknown.as_deref(),
    );
    add_asked(&mut document, &diagnosed, left_out);
    document.notes.extend(diagnosed.loss_notes());
    document
}

/// Says which tasks the findings are about, if not about all.
fn add_asked(document: &mut Document, diagnosed: &Diagnosed, left_out: usize) {
    let Some(asked) = &diagnosed.asked else { return };
    let count = asked.iter().filter(|asked| **asked).count();
    document.set("diagnosis", "tasks asked for", Cell::count(count as u64));
    document.set("diagnosis", "findings about others", Cell::count(left_out as u64));
    if left_out > 0 {
        let findings = if left_out == 1 { "finding" } else { "findings" };
        let note = format!("{left_out} {findings} about other tasks only: --all shows them");
        document.notes.push(note);
    }
}

fn two(args: &DiagnoseArgs, before: &Diagnosed, after: &Diagnosed) -> Document {
    let names = [before, after].map(|one| one.recording.name.as_str());
    let mut changed = compare_findings(before.side(), after.side());
    let asked = |one: &ChangedFinding<'_>| {
        one.before.is_some_and(|finding| before.is_asked(finding))
            || one.after.is_some_and(|finding| after.is_asked(finding))
    };
    let all = changed.len();
    changed.retain(|one| args.all || asked(one));
    let left_out = all - changed.len();
    let mut document = Document::new(present::changes_headline(&changed));
    document.set("compared", "before", Cell::text(names[0]));
    document.set("compared", "after", Cell::text(names[1]));
    for (word, one) in [("scheduler before", before), ("scheduler after", after)] {
        if !one.diagnosis.scheduler.is_empty() {
            document.set("compared", word, Cell::text(&one.diagnosis.scheduler));
        }
    }
    present::describe_changes(&mut document, &changed, names);
    add_asked(&mut document, after, left_out);
    for one in [before, after] {
        for (rule, why) in &one.diagnosis.not_judged {
            let name = &one.recording.name;
            document.notes.push(format!("{name}: not judged: {}: {why}", rule.name()));
        }
        document.notes.extend(one.loss_notes());
    }
    document
}
