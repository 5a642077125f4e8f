//! `doctor`: what this machine can do with fairground, and how to get what is missing.

use std::process::ExitCode;

use fairground_report::{Document, Table};
use fairground_session::Failure;

use super::kernels::saying;
use crate::args::{Cli, DoctorArgs};
use crate::doctor::{ABILITIES, Ability, Examined, Readiness, World, examine};
use crate::present;

/// When an ability that was asked for is not ready.
const NOT_READY: u8 = 1;

pub(super) fn doctor(cli: &Cli, args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let asked: Vec<&Ability> = args.abilities.iter().filter_map(|n| Ability::find(n)).collect();
    let looked_at = if asked.is_empty() { ABILITIES.iter().collect() } else { asked };
    let examined = examine(&World::here(args.thorough), &looked_at, &mut saying(cli));
    present::print(&document(&examined), cli)?;
    let all_ready = examined.iter().all(|one| one.verdict() == Readiness::Ready);
    let fine = args.abilities.is_empty() || all_ready;
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::from(NOT_READY) })
}

/// The abilities; the checks of each; what to do.
fn document(examined: &[Examined]) -> Document {
    let abilities = Table::of("abilities", "What this machine can do", examined)
        .text("ability", |one| one.ability.name)
        .text("verdict", |one| one.verdict().word())
        .text("what_for", |one| one.ability.what)
        .table();
    let findings = examined.iter().flat_map(|one| {
        one.findings.iter().map(|(check, finding)| (one.ability.name, *check, finding))
    });
    let findings: Vec<_> = findings.collect();
    let checks = Table::of("checks", "What was looked at", &findings)
        .text("ability", |(ability, ..)| *ability)
        .text("looked_at", |(_, check, _)| *check)
        .text("verdict", |(.., finding)| finding.verdict.word())
        .text("found", |(.., finding)| finding.found.as_str())
        .table();
    let missing = findings.iter().filter(|(.., finding)| finding.remedy.is_some());
    let remedies = Table::of("remedies", "What is missing", missing)
        .text("ability", |(ability, ..)| *ability)
        .text("missing", |(_, check, _)| *check)
        .text("how_to_get_it", |(.., finding)| finding.remedy.clone().unwrap_or_default())
        .table();
    let mut tables = vec![abilities, checks, remedies];
    tables.retain(|table| table.id != "remedies" || !table.rows.is_empty());
    Document { tables, ..Document::default() }
}
