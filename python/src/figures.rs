//! The metrics of an analysis as tables of Arrow: the names, the units and the values of `fairground_analysis::metric`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use fairground_analysis::metric::{self, MetricValue, Unit};
use fairground_analysis::{Analysis, Figures};

/// A column and what it is called.
pub(crate) type Column = (Field, ArrayRef);

/// A table of equally long columns.
pub(crate) fn table(
    columns: Vec<Column>,
    metadata: HashMap<String, String>,
) -> Result<RecordBatch, ArrowError> {
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new_with_metadata(fields, metadata)), arrays)
}

/// A column of texts; `None` is null.
pub(crate) fn texts<T: AsRef<str>>(
    name: &str,
    values: impl IntoIterator<Item = Option<T>>,
) -> Column {
    let array: StringArray = values.into_iter().collect();
    (Field::new(name, DataType::Utf8, true), Arc::new(array))
}

/// A column of numbers that fit into 32 bits.
pub(crate) fn numbers(name: &str, values: impl IntoIterator<Item = Option<u32>>) -> Column {
    let array: UInt32Array = values.into_iter().collect();
    (Field::new(name, DataType::UInt32, true), Arc::new(array))
}

/// A column of large numbers.
pub(crate) fn large_numbers(name: &str, values: impl IntoIterator<Item = Option<u64>>) -> Column {
    let array: UInt64Array = values.into_iter().collect();
    (Field::new(name, DataType::UInt64, true), Arc::new(array))
}

/// A column of yes and no.
pub(crate) fn booleans(name: &str, values: Vec<bool>) -> Column {
    (Field::new(name, DataType::Boolean, true), Arc::new(BooleanArray::from(values)))
}

/// A column of measured values; null is "not measured".
pub(crate) fn values(name: &str, values: impl IntoIterator<Item = Option<MetricValue>>) -> Column {
    let array: Float64Array =
        values.into_iter().map(|value| value.map(MetricValue::as_f64)).collect();
    (Field::new(name, DataType::Float64, true), Arc::new(array))
}

/// A unit's symbol; `None` where the value has none.
pub(crate) fn symbol(unit: Unit) -> Option<&'static str> {
    Some(unit.symbol()).filter(|symbol| !symbol.is_empty())
}

/// The metrics of the machine, one a row.
pub(crate) fn machine(analysis: &Analysis) -> Result<RecordBatch, ArrowError> {
    let all = metric::MACHINE;
    let columns = vec![
        texts("metric", all.iter().map(|metric| Some(metric.key()))),
        texts("unit", all.iter().map(|metric| symbol(metric.unit))),
        values("value", all.iter().map(|metric| (metric.read)(&analysis.machine))),
    ];
    table(columns, HashMap::new())
}

/// The metrics of several selections of tasks, a column each, with its unit beside its name.
fn of_figures<'a>(all: impl Iterator<Item = &'a Figures> + Clone) -> Vec<Column> {
    let column = |metric: &metric::Metric<Figures>| {
        let (field, array) = values(&metric.key(), all.clone().map(metric.read));
        let unit = symbol(metric.unit).map(|unit| ("unit".to_owned(), unit.to_owned()));
        (field.with_metadata(unit.into_iter().collect::<HashMap<_, _>>()), array)
    };
    metric::GROUP.iter().map(column).collect()
}

/// One row for each task.
pub(crate) fn tasks(analysis: &Analysis) -> Result<RecordBatch, ArrowError> {
    let tasks = &analysis.tasks;
    let group = |number: usize| analysis.groups.get(number).map(|group| &group.name);
    let mut columns = vec![
        numbers("task", tasks.iter().map(|task| Some(task.task.0))),
        numbers("pid", tasks.iter().map(|task| Some(task.pid))),
        texts("comm", tasks.iter().map(|task| Some(&task.name))),
        texts("group", tasks.iter().map(|task| group(task.group))),
        numbers("weight", tasks.iter().map(|task| Some(task.weight))),
    ];
    columns.extend(of_figures(tasks.iter().map(|task| &task.figures)));
    table(columns, HashMap::new())
}

/// One row for each group of equal tasks.
pub(crate) fn groups(analysis: &Analysis) -> Result<RecordBatch, ArrowError> {
    let groups = &analysis.groups;
    let mut columns = vec![
        texts("group", groups.iter().map(|group| Some(&group.name))),
        large_numbers("tasks", groups.iter().map(|group| Some(group.figures.tasks))),
    ];
    columns.extend(of_figures(groups.iter().map(|group| &group.figures)));
    table(columns, HashMap::new())
}

/// One row for each control group; none where there are none.
pub(crate) fn cgroups(analysis: &Analysis) -> Result<RecordBatch, ArrowError> {
    let cgroups = &analysis.cgroups;
    let mut columns = vec![
        texts("cgroup", cgroups.iter().map(|cgroup| Some(&cgroup.path))),
        numbers("weight", cgroups.iter().map(|cgroup| cgroup.weight)),
        large_numbers("tasks", cgroups.iter().map(|cgroup| Some(cgroup.figures.tasks))),
        values(
            "jain_within",
            cgroups.iter().map(|cgroup| cgroup.jain_index.map(MetricValue::Float)),
        ),
    ];
    columns.extend(of_figures(cgroups.iter().map(|cgroup| &cgroup.figures)));
    table(columns, HashMap::new())
}
