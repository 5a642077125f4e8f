//! `sched show`: what an object wants of its kernel, and what the simulated machine lacks of it.

use fairground_bpf::{Lack, LackKind, Object, Obstacle, OpsValue};
use fairground_machine::{
    KernelAbi, Policy, PolicyError, TracingProgram, lacks, never_called, tracing_programs,
};
use fairground_report::{Cell, Column, Table};

/// Reasons why the object cannot run in the simulated machine, its maps, kernel functions and helpers; with `all`, also what is
/// lacking and not reached. Tables without rows are left out.
pub(super) fn needs_tables(
    object: &Object,
    obstacles: &[Obstacle],
    abi: KernelAbi,
    all: bool,
) -> Vec<Table> {
    let mut lacking = lacks_table(object, abi);
    let count = lacking.rows.len();
    if !all && count > 0 {
        let names = format!("{count} name{}", if count == 1 { "" } else { "s" });
        let consequence = "none: behind tests, or in code that cannot be reached";
        lacking.rows =
            vec![vec![Cell::text(names), Cell::text("see --verbose"), Cell::text(consequence)]];
    }
    let mut tables = vec![
        obstacles_table(obstacles),
        tracing_table(object),
        maps_table(object),
        kfuncs_table(object),
        helpers_table(object),
        lacking,
    ];
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// Whether the object runs in the simulated machine, in a line.
pub(super) fn answer(policy: &Result<Policy, PolicyError>) -> String {
    match policy.as_ref().map(Policy::obstacles) {
        Err(error) => format!("cannot run in the simulated machine: {error}"),
        Ok(obstacles) if obstacles.is_empty() => "runs in the simulated machine".to_owned(),
        Ok(obstacles) => {
            let which = match obstacles.len() {
                1 => "an instruction that requires".to_owned(),
                count => format!("one of {count} instructions that require"),
            };
            format!(
                "runs in the simulated machine, but ends where it reaches {which} what the machine lacks"
            )
        }
    }
}

fn obstacles_table(obstacles: &[Obstacle]) -> Table {
    Table::of("obstacles", "What ends a run that reaches it", obstacles)
        .text("function", |obstacle| obstacle.function.clone())
        .text("reason", |obstacle| obstacle.reason.clone())
        .table()
}

/// The programs that are called at events of the kernel.
fn tracing_table(object: &Object) -> Table {
    Table::of("tracing_programs", "Programs of events", tracing_programs(object))
        .text("program", |program| program.name.clone())
        .text("event", |program| program.target.clone())
        .text("attached", attachment)
        .text("in_the_machine", |program| program.state.to_string())
        .table()
}

/// Whether a program is attached.
fn attachment(program: &TracingProgram) -> &'static str {
    match program.by_itself {
        true => "yes",
        false => "if named",
    }
}

fn maps_table(object: &Object) -> Table {
    Table::of("maps", "Maps", object.maps())
        .text("map", |map| map.name.clone())
        .text("type", |map| map.kind.clone())
        .column(Column::number_in("key", "bytes"), |map| Cell::count(map.key_size.into()))
        .column(Column::number_in("value", "bytes"), |map| Cell::count(map.value_size.into()))
        .count("entries", |map| map.max_entries.into())
        .table()
}

fn kfuncs_table(object: &Object) -> Table {
    Table::of("kfuncs", "Kernel functions", object.kfuncs())
        .text("kernel_function", |wanted| wanted.name.clone())
        .text("if_it_is_missing", |wanted| match wanted.weak {
            true => "it is loaded",
            false => "a real kernel refuses it",
        })
        .table()
}

fn helpers_table(object: &Object) -> Table {
    Table::of("helpers", "BPF helpers", object.helpers())
        .text("helper", |(_, name)| name.clone())
        .count("number", |(number, _)| u64::from(*number))
        .table()
}

fn lacks_table(object: &Object, abi: KernelAbi) -> Table {
    let mut lacking = Vec::new();
    for lack in lacks(object, abi) {
        lacking.push((kind(lack.kind), lack.name.clone(), consequence(&lack).to_owned()));
    }
    for ops in object.struct_ops() {
        let callbacks = ops.fields.iter().filter(|f| matches!(f.value, OpsValue::Function(_)));
        for field in callbacks {
            if let Some(why) = never_called(&field.name, abi) {
                lacking.push(("callback", field.name.clone(), why));
            }
        }
    }
    Table::of("lacks", "What the simulated machine lacks of what it names", lacking)
        .text("what", |lack| lack.0)
        .text("name", |lack| lack.1.clone())
        .text("consequence", |lack| lack.2.clone())
        .table()
}

fn kind(kind: LackKind) -> &'static str {
    match kind {
        LackKind::Kfunc => "kernel function",
        LackKind::Variable => "kernel variable",
        LackKind::Helper => "helper",
        LackKind::Map => "map",
        LackKind::Type => "kernel type",
    }
}

fn consequence(lack: &Lack) -> &'static str {
    match lack.kind {
        LackKind::Map => "an operation on it ends the run",
        LackKind::Variable | LackKind::Type => "an instruction that is reached ends the run",
        LackKind::Kfunc | LackKind::Helper => "a call that is reached ends the run",
    }
}
