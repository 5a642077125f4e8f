//! `sched show`: what an object wants of its kernel, and what the simulated machine lacks of it.

use fairground_bpf::{Lack, LackKind, Object, OpsValue};
use fairground_machine::{is_called, lacks};
use fairground_report::{Cell, Column, Table};

/// Maps, kernel functions, helpers, and what is lacking. Tables without rows are left out, the last one apart.
pub(super) fn needs_tables(object: &Object) -> Vec<Table> {
    let mut tables = vec![maps_table(object), kfuncs_table(object), helpers_table(object)];
    tables.retain(|table| !table.rows.is_empty());
    tables.push(lacks_table(object));
    tables
}

fn maps_table(object: &Object) -> Table {
    let columns = [
        Column::text("map"),
        Column::text("type"),
        Column::number_in("key", "bytes"),
        Column::number_in("value", "bytes"),
        Column::number("entries"),
    ];
    let mut table = Table::new("maps", "Maps", columns);
    for map in object.maps() {
        table.push([
            Cell::text(map.name),
            Cell::text(map.kind),
            Cell::count(u64::from(map.key_size)),
            Cell::count(u64::from(map.value_size)),
            Cell::count(u64::from(map.max_entries)),
        ]);
    }
    table
}

fn kfuncs_table(object: &Object) -> Table {
    let columns = [Column::text("kernel_function"), Column::text("if_it_is_missing")];
    let mut table = Table::new("kfuncs", "Kernel functions", columns);
    for wanted in object.kfuncs() {
        let missing = if wanted.weak { "it is loaded" } else { "it cannot be loaded" };
        table.push([Cell::text(wanted.name), Cell::text(missing)]);
    }
    table
}

fn helpers_table(object: &Object) -> Table {
    let columns = [Column::text("helper"), Column::number("number")];
    let mut table = Table::new("helpers", "BPF helpers", columns);
    for (number, name) in object.helpers() {
        table.push([Cell::text(name), Cell::count(u64::from(number))]);
    }
    table
}

fn lacks_table(object: &Object) -> Table {
    let columns = [Column::text("what"), Column::text("name"), Column::text("consequence")];
    let title = "What the simulated machine lacks for it";
    let mut table = Table::new("lacks", title, columns);
    for lack in lacks(object) {
        let consequence = consequence(&lack);
        table.push([Cell::text(kind(lack.kind)), Cell::text(lack.name), Cell::text(consequence)]);
    }
    for ops in object.struct_ops() {
        let callbacks = ops.fields.iter().filter(|f| matches!(f.value, OpsValue::Function(_)));
        for field in callbacks.filter(|field| !is_called(&field.name)) {
            let consequence = "it is never called";
            table.push([Cell::text("callback"), Cell::text(&field.name), Cell::text(consequence)]);
        }
    }
    if table.rows.is_empty() {
        table.note("Nothing: all that it names is there.");
    }
    table
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
    match (lack.fatal, lack.kind) {
        (true, _) => "it cannot be loaded",
        (false, LackKind::Type) => "an instruction that is reached ends the run",
        (false, _) => "it is loaded; a call that is reached ends the run",
    }
}
