//! `doctor`: what this machine can do with fairground, and how to get what is missing.

use std::process::ExitCode;

use fairground_report::{Cell, Column, Document, Table};
use fairground_session::Failure;

use super::kernels::saying;
use crate::args::{Cli, DoctorArgs};
use crate::doctor::{ABILITIES, Ability, Examined, Verdict, World, examine};
use crate::present;

/// When an ability that was asked for is not ready.
const NOT_READY: u8 = 1;

pub(super) fn doctor(cli: &Cli, args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let asked: Vec<&Ability> = args.abilities.iter().filter_map(|n| Ability::find(n)).collect();
    let looked_at = if asked.is_empty() { ABILITIES.iter().collect() } else { asked };
    let examined = examine(&World::here(), &looked_at, &mut saying(cli));
    present::print(&document(&examined), cli)?;
    let all_ready = examined.iter().all(|one| one.verdict() == Verdict::Ready);
    let fine = args.abilities.is_empty() || all_ready;
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::from(NOT_READY) })
}

/// The abilities; what was looked at for each; what to do.
fn document(examined: &[Examined]) -> Document {
    let columns = ["ability", "verdict", "what_for"].map(Column::text);
    let mut abilities = Table::new("abilities", "What this machine can do", columns);
    let columns = ["ability", "looked_at", "verdict", "found"].map(Column::text);
    let mut checks = Table::new("checks", "What was looked at", columns);
    let columns = ["ability", "missing", "how_to_get_it"].map(Column::text);
    let mut remedies = Table::new("remedies", "What is missing", columns);
    for one in examined {
        let name = one.ability.name;
        abilities.push([name, one.verdict().word(), one.ability.what].map(Cell::text));
        for (check, finding) in &one.findings {
            checks.push([name, check, finding.verdict.word(), &finding.found].map(Cell::text));
            if let Some(remedy) = &finding.remedy {
                remedies.push([name, check, remedy].map(Cell::text));
            }
        }
    }
    let mut document = Document::default();
    document.tables.extend([abilities, checks]);
    if !remedies.rows.is_empty() {
        document.tables.push(remedies);
    }
    document
}
