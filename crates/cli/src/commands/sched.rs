//! `sched list|show|build`, and where the other commands of `sched` are.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use fairground_bpf::{Global, GlobalType, Object, OpsValue};
use fairground_machine::{Engine, KernelAbi, Policy, is_kernel_constant, is_number};
use fairground_report::{Cell, Column, Document, Table};
use fairground_session::{
    CompileFor, Failure, Scheduler, SchedulerObject, compile_scheduler, find_object,
    parameter_sets, profile_of, split_set,
};

use super::capture::capture;
use super::fetch::{fetch, published_table};
use super::needs::{answer, needs_tables};
use super::policy_cost::cost_table;
use super::verify::verified_table;
use crate::args::{Cli, SchedCommand};
use crate::present;

pub(super) fn sched(cli: &Cli, command: &SchedCommand) -> Result<ExitCode, Failure> {
    match command {
        SchedCommand::List => list(cli)?,
        SchedCommand::Fetch { scheds } => fetch(cli, scheds)?,
        SchedCommand::Show { sched, cost, kernel_abi, verify } => {
            let more = More { cost: *cost, verify: verify.as_deref() };
            show(cli, sched, kernel_abi.0, more)?;
        }
        SchedCommand::Capture(args) => return capture(cli, args),
        SchedCommand::Build { source, output } => build(source, output.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(cli: &Cli) -> Result<(), Failure> {
    let mut policies = Vec::new();
    for policy in fairground_policies::all() {
        let sets = parameter_sets(&*find_object(policy.name)?);
        let sets: Vec<_> = sets.keys().map(|set| format!("{}@{set}", policy.name)).collect();
        policies.push((policy, sets.join(" ")));
    }
    let table = Table::of("schedulers", "Schedulers", policies)
        .text("scheduler", |(policy, _)| policy.name)
        .text("what_it_is", |(policy, _)| policy.summary)
        .text("parameter_sets", |(_, sets)| sets.clone())
        .column(Column::number_in("object", "bytes"), |(policy, _)| {
            Cell::count(policy.object.len() as u64)
        })
        .table();
    present::print_tables([table, published_table()], cli)
}

/// Tables that need a run.
struct More<'a> {
    cost: bool,
    /// The target whose kernel verifies the object.
    verify: Option<&'a str>,
}

fn show(cli: &Cli, spec: &str, abi: KernelAbi, more: More<'_>) -> Result<(), Failure> {
    // The parameter set is checked, if one is named; what is shown of the object is the same for all.
    let object = SchedulerObject::find(spec, None)?.object;
    let (name, _) = split_set(spec);
    let mut document = Document::new(name);
    document.tables.extend(options_table(spec)?);
    document.tables.push(tunables_table(&object));
    document.tables.push(callbacks_table(&object));
    let policy = Policy::load_for(&object, Engine::Interpreter, abi);
    let obstacles = policy.as_ref().map(Policy::obstacles).unwrap_or_default();
    document.title = format!("{name}: {}", answer(&policy));
    document.tables.extend(needs_tables(&object, &obstacles, abi, cli.verbose));
    document.tables.push(sections_table(&object));
    if let Some(on) = more.verify {
        document.tables.push(verified_table(spec, on, cli.quiet)?);
    }
    if more.cost {
        document.tables.push(cost_table(&Scheduler::load(
            spec,
            None,
            CompileFor { engine: Engine::Jit, abi },
        )?)?);
    }
    present::print(&document, cli)
}

/// The options of a published scheduler's entry; `None` if it has none.
fn options_table(spec: &str) -> Result<Option<Table>, Failure> {
    let Some(profile) = profile_of(spec).transpose()? else { return Ok(None) };
    let options = profile.options();
    if options.is_empty() {
        return Ok(None);
    }
    let table = Table::of("options", "Options (--sched NAME:OPTION=VALUE)", options)
        .text("option", |(name, _, _)| *name)
        .text("value", |(_, value, _)| *value)
        .text("sets", |(_, _, sets)| {
            if sets.is_empty() { "what it has anyway".to_owned() } else { sets.join(" ") }
        });
    Ok(Some(table.table()))
}

/// A tag's text: `unit:ns` → `ns`.
pub(super) fn tag<'a>(global: &'a Global, prefix: &str) -> &'a str {
    global.tags.iter().find_map(|t| t.strip_prefix(prefix)).unwrap_or("")
}

/// Variables that say what they are are tunables; the rest is the scheduler's own state.
pub(super) fn is_tunable(global: &Global) -> bool {
    !tag(global, "doc:").is_empty()
        || (global.read_only && !is_kernel_constant(global) && is_number(&global.ty))
}

fn tunables_table(object: &Object) -> Table {
    let sets = parameter_sets(object);
    let tunables = object.globals().iter().filter(|global| is_tunable(global));
    let mut rows = Table::of("tunables", "Tunables and features (--set NAME=VALUE)", tunables)
        .text("tunable", |global| global.name.as_str())
        .column(Column::number("value"), |global| {
            Cell::text(value_text(global, &object.initial(global)))
        })
        .text("unit", |global| unit(global));
    for (set, values) in &sets {
        rows = rows.column(Column::number(format!("@{set}")), |global| {
            let value = values.iter().find(|(name, _)| *name == global.name);
            Cell::text(value.map_or("=", |(_, value)| value))
        });
    }
    let mut table = rows.text("what_it_does", |global| tag(global, "doc:")).table();
    if !sets.is_empty() {
        table.note("= : the set leaves the value as it is. `NAME@SET` chooses a set.");
    }
    table
}

/// The unit of a tunable; `switch` for on or off.
pub(super) fn unit(global: &Global) -> &str {
    if global.ty == GlobalType::Bool { "switch" } else { tag(global, "unit:") }
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
    let functions = object.functions();
    let fields = object.struct_ops().iter().flat_map(|ops| &ops.fields);
    let callbacks = fields.filter_map(|field| match field.value {
        OpsValue::Function(index) => Some((&field.name, functions.get(index)?)),
        _ => None,
    });
    Table::of("callbacks", "Callbacks", callbacks)
        .text("callback", |(name, _)| name.as_str())
        .text("function", |(_, function)| function.name.as_str())
        .count("instructions", |(_, function)| function.slots as u64)
        .table()
}

fn sections_table(object: &Object) -> Table {
    Table::of("sections", "Sections of the object", object.sections())
        .text("section", |section| section.name.clone())
        .column(Column::number_in("size", "bytes"), |section| Cell::count(section.size))
        .table()
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
