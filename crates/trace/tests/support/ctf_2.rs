//! The description of the small CTF traces in version 2 of the format: JSON objects behind separators.

use serde_json::{Value, json};

use super::ctf_file::{FORK, IRQ_ENTRY, IRQ_EXIT, SWITCH, WAKEUP, WAKING};

/// Writes the description of the streams that `ctf_file` makes.
pub(crate) fn metadata(big: bool) -> String {
    let order = if big { "big-endian" } else { "little-endian" };
    let int = |bits: u32, align: u32, role: &str| {
        let roles: Vec<&str> = Some(role).filter(|role| !role.is_empty()).into_iter().collect();
        json!({"type": "fixed-length-unsigned-integer", "length": bits, "alignment": align,
            "byte-order": order, "roles": roles})
    };
    let signed = || json!({"type": "fixed-length-signed-integer", "length": 32, "alignment": 8, "byte-order": order});
    let clock = "default-clock-timestamp";
    let word = |role| int(64, 8, role);
    let trace = json!({"type": "trace-class",
    "environment": {"domain": "kernel", "kernel_release": "6.1.0-test", "tracer_major": 2},
    "packet-header-field-class": structure(8, &[
        ("magic", int(32, 8, "packet-magic-number")),
        ("uuid", json!({"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]})),
        ("class", int(32, 8, "data-stream-class-id")),
        ("instance", word("data-stream-id")),
    ])});
    // The names of fields with a role are free.
    let packet = structure(
        8,
        &[
            ("begin", word(clock)),
            ("end", word("packet-end-default-clock-timestamp")),
            ("content", word("packet-content-length")),
            ("total", word("packet-total-length")),
            ("sequence", word("packet-sequence-number")),
            ("discarded", word("discarded-event-record-counter-snapshot")),
            ("cpu_id", int(32, 8, "")),
        ],
    );
    let compact = structure(1, &[("timestamp", int(27, 1, clock))]);
    let extended = structure(
        8,
        &[("number", int(32, 8, "event-record-class-id")), ("timestamp", word(clock))],
    );
    let rest = json!({"type": "variant",
    "selector-field-location": {"origin": "event-record-header", "path": ["kind"]},
    "options": [
        {"name": "compact", "selector-field-ranges": [[0, 30]], "field-class": compact},
        {"name": "extended", "selector-field-ranges": [[31, 31]], "field-class": extended},
    ]});
    let header = structure(8, &[("kind", int(5, 1, "event-record-class-id")), ("rest", rest)]);
    let stream = json!({"type": "data-stream-class", "id": 0, "packet-context-field-class": packet,
        "event-record-header-field-class": header});
    let frame = [
        json!({"type": "preamble", "version": 2}),
        json!({"type": "field-class-alias", "name": "comm",
            "field-class": {"type": "static-length-string", "length": 16}}),
        trace,
        json!({"type": "clock-class", "name": "monotonic", "frequency": 1_000_000_000}),
        stream,
    ];
    let comm = || json!("comm");
    let task = |prefix: &str| {
        ["comm", "tid", "prio"]
            .map(|name| (format!("{prefix}{name}"), if name == "comm" { comm() } else { signed() }))
    };
    let woken: Vec<_> = task("").into_iter().chain([("target_cpu".to_owned(), signed())]).collect();
    let state = [("prev_state".to_owned(), word(""))];
    let switch: Vec<_> = task("prev_").into_iter().chain(state).chain(task("next_")).collect();
    let list = json!({"type": "dynamic-length-array", "element-field-class": signed(),
        "length-field-location": ["event-record-payload", "vtids_length"]});
    let fork = [
        ("parent_comm", comm()),
        ("parent_tid", signed()),
        ("child_comm", comm()),
        ("child_tid", signed()),
        ("vtids_length", int(8, 8, "")),
        ("vtids", list),
    ];
    let entry = [("irq", signed()), ("name", json!({"type": "null-terminated-string"}))];
    let events = [
        event("sched_waking", WAKING, &woken),
        event("sched_wakeup", WAKEUP, &woken),
        event("sched_switch", SWITCH, &switch),
        event("sched_process_fork", FORK, &fork),
        event("irq_handler_entry", IRQ_ENTRY, &entry),
        event("irq_handler_exit", IRQ_EXIT, &entry[..1]),
    ];
    frame.iter().chain(&events).map(|object| format!("\u{1e}{object:#}\n")).collect()
}

fn structure<N: AsRef<str>>(align: u32, fields: &[(N, Value)]) -> Value {
    let members: Vec<Value> = fields
        .iter()
        .map(|(name, class)| json!({"name": name.as_ref(), "field-class": class}))
        .collect();
    json!({"type": "structure", "minimum-alignment": align, "member-classes": members})
}

fn event<N: AsRef<str>>(name: &str, id: u32, fields: &[(N, Value)]) -> Value {
    json!({"type": "event-record-class", "id": id, "name": name, "data-stream-class-id": 0,
        "payload-field-class": structure(8, fields)})
}
