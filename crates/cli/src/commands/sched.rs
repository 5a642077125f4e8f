//! `sched list|show|build`.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use fairground_bpf::{Global, GlobalType, Object};
use fairground_machine::{Engine, is_kernel_constant};
use fairground_report::{Cell, Column, Document, Table};
use fairground_session::{
    Failure, Scheduler, SchedulerObject, compile_scheduler, find_object, parameter_sets, split_set,
};

use super::needs::needs_tables;
use super::policy_cost::cost_table;
use crate::args::{Cli, SchedCommand};
use crate::present;

pub(super) fn sched(cli: &Cli, command: &SchedCommand) -> Result<ExitCode, Failure> {
    match command {
        SchedCommand::List => list(cli)?,
        SchedCommand::Show { sched, cost } => show(cli, sched, *cost)?,
        SchedCommand::Build { source, output } => build(source, output.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(cli: &Cli) -> Result<(), Failure> {
    let columns = [
        Column::text("scheduler"),
        Column::text("what_it_is"),
        Column::text("parameter_sets"),
        Column::number_in("object", "bytes"),
    ];
    let mut table = Table::new("schedulers", "Schedulers", columns);
    for policy in fairground_policies::all() {
        let sets = parameter_sets(&find_object(policy.name)?);
        let sets: Vec<_> = sets.keys().map(|set| format!("{}@{set}", policy.name)).collect();
        table.push([
            Cell::text(policy.name),
            Cell::text(policy.summary),
            Cell::text(sets.join(" ")),
            Cell::count(policy.object.len() as u64),
        ]);
    }
    let mut document = Document::default();
    document.tables.push(table);
    present::print(&document, cli)
}

fn show(cli: &Cli, spec: &str, cost: bool) -> Result<(), Failure> {
    // The parameter set is checked, if one is named; what is shown of the object is the same for all.
    let object = SchedulerObject::find(spec, None)?.object;
    let (name, _) = split_set(spec);
    let mut document = Document::new(name);
    document.tables.push(tunables_table(&object));
    document.tables.push(callbacks_table(&object));
    document.tables.extend(needs_tables(&object));
    document.tables.push(sections_table(&object));
    if cost {
        document.tables.push(cost_table(&Scheduler::load(spec, None, Engine::Jit)?)?);
    }
    present::print(&document, cli)
}

/// A tag's text: `unit:ns` → `ns`.
pub(super) fn tag<'a>(global: &'a Global, prefix: &str) -> &'a str {
    global.tags.iter().find_map(|t| t.strip_prefix(prefix)).unwrap_or("")
}

/// Variables that say what they are are tunables; the rest is the scheduler's own state.
pub(super) fn is_tunable(global: &Global) -> bool {
    !tag(global, "doc:").is_empty()
        || (global.read_only
            && !is_kernel_constant(global)
            && !matches!(global.ty, GlobalType::Other | GlobalType::Array { .. }))
}

fn tunables_table(object: &Object) -> Table {
    let sets = parameter_sets(object);
    let mut columns = vec![Column::text("tunable"), Column::number("value"), Column::text("unit")];
    columns.extend(sets.keys().map(|set| Column::number(format!("@{set}"))));
    columns.push(Column::text("what_it_does"));
    let mut table = Table::new("tunables", "Tunables and features (--set NAME=VALUE)", columns);
    for global in object.globals().iter().filter(|g| is_tunable(g)) {
        let unit = if global.ty == GlobalType::Bool { "switch" } else { tag(global, "unit:") };
        let mut row = vec![
            Cell::text(&global.name),
            Cell::text(value_text(global, &object.initial(global))),
            Cell::text(unit),
        ];
        for values in sets.values() {
            let value = values.iter().find(|(name, _)| *name == global.name);
            row.push(value.map_or(Cell::text("="), |(_, value)| Cell::text(value)));
        }
        row.push(Cell::text(tag(global, "doc:")));
        table.push(row);
    }
    if !sets.is_empty() {
        table.note("= : the set leaves the value as it is. `NAME@SET` chooses a set.");
    }
    table
}

pub(super) fn value_text(global: &Global, bytes: &[u8]) -> String {
    let mut wide = [0; 8];
    let length = bytes.len().min(8);
    wide[..length].copy_from_slice(&bytes[..length]);
    let number = u64::from_le_bytes(wide);
    match &global.ty {
        GlobalType::Bool => (if number == 0 { "off" } else { "on" }).to_owned(),
        GlobalType::Enum { values, .. } => values
            .iter()
            .find(|(_, value)| *value as u64 == number)
            .map_or(number.to_string(), |(name, _)| name.clone()),
        GlobalType::Int { bits, signed: true } if (1..64).contains(bits) => {
            let shift = 64 - *bits;
            (((number << shift) as i64) >> shift).to_string()
        }
        GlobalType::Int { signed: true, .. } => (number as i64).to_string(),
        _ => number.to_string(),
    }
}

fn callbacks_table(object: &Object) -> Table {
    let columns =
        [Column::text("callback"), Column::text("function"), Column::number("instructions")];
    let mut table = Table::new("callbacks", "Callbacks", columns);
    let functions = object.functions();
    for ops in object.struct_ops() {
        for field in &ops.fields {
            if let fairground_bpf::OpsValue::Function(index) = field.value {
                let Some(function) = functions.get(index) else { continue };
                table.push([
                    Cell::text(&field.name),
                    Cell::text(&function.name),
                    Cell::count(function.slots as u64),
                ]);
            }
        }
    }
    table
}

fn sections_table(object: &Object) -> Table {
    let columns = [Column::text("section"), Column::number_in("size", "bytes")];
    let mut table = Table::new("sections", "Sections of the object", columns);
    for section in object.sections() {
        table.push([Cell::text(&section.name), Cell::count(section.size)]);
    }
    table
}

/// Compiles a source to an object file, and checks that it loads as an object.
fn build(source: &Path, output: Option<&Path>) -> Result<(), Failure> {
    let output = match output {
        Some(output) => output.to_owned(),
        None => source.with_extension("o"),
    };
    compile_scheduler(source, &output)?;
    let bytes = fs::read(&output).map_err(|e| Failure::io(output.display(), &e))?;
    Object::parse(&output.display().to_string(), &bytes).map_err(Failure::new)?;
    present::write_stdout(&format!("{}\n", output.display()))
}
