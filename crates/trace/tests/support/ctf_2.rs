//! The description of the small CTF traces in version 2 of the format: JSON objects behind separators.

use serde_json::{Value, json};

use super::ctf_file::{FORK, IRQ_ENTRY, IRQ_EXIT, SWITCH, WAKEUP, WAKING};

/// The role of the clock.
const CLOCK: &str = "default-clock-timestamp";

/// Writes the description of the streams that `ctf_file` makes.
pub(crate) fn metadata(big: bool) -> String {
    let classes = Classes { order: if big { "big-endian" } else { "little-endian" } };
    let objects = classes.frame().into_iter().chain(classes.events());
    let text = |mut object: Value| {
        // The order of keys would depend on the features of the library.
        object.sort_all_objects();
        format!("\u{1e}{object:#}\n")
    };
    objects.map(text).collect()
}

/// The field classes, with the byte order of the trace.
#[derive(Clone, Copy)]
struct Classes {
    order: &'static str,
}

impl Classes {
    fn int(self, bits: u32, align: u32, role: &str) -> Value {
        let roles: Vec<&str> = Some(role).filter(|role| !role.is_empty()).into_iter().collect();
        json!({"type": "fixed-length-unsigned-integer", "length": bits, "alignment": align,
            "byte-order": self.order, "roles": roles})
    }

    fn word(self, role: &str) -> Value {
        self.int(64, 8, role)
    }

    fn signed(self) -> Value {
        json!({"type": "fixed-length-signed-integer", "length": 32, "alignment": 8,
            "byte-order": self.order})
    }

    /// What comes before the events. The names of fields with a role are free.
    fn frame(self) -> Vec<Value> {
        let uuid =
            json!({"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]});
        let packet_header = structure(
            8,
            &[
                ("magic", self.int(32, 8, "packet-magic-number")),
                ("uuid", uuid),
                ("class", self.int(32, 8, "data-stream-class-id")),
                ("instance", self.word("data-stream-id")),
            ],
        );
        let packet_context = structure(
            8,
            &[
                ("begin", self.word(CLOCK)),
                ("end", self.word("packet-end-default-clock-timestamp")),
                ("content", self.word("packet-content-length")),
                ("total", self.word("packet-total-length")),
                ("sequence", self.word("packet-sequence-number")),
                ("discarded", self.word("discarded-event-record-counter-snapshot")),
                ("cpu_id", self.int(32, 8, "")),
            ],
        );
        let comm = json!({"type": "static-length-string", "length": 16});
        vec![
            json!({"type": "preamble", "version": 2}),
            json!({"type": "field-class-alias", "name": "comm", "field-class": comm}),
            json!({"type": "trace-class", "packet-header-field-class": packet_header,
                "environment": {"domain": "kernel", "kernel_release": "6.1.0-test", "tracer_major": 2}}),
            json!({"type": "clock-class", "name": "monotonic", "frequency": 1_000_000_000}),
            json!({"type": "data-stream-class", "id": 0, "packet-context-field-class": packet_context,
                "event-record-header-field-class": self.event_header()}),
        ]
    }

    fn event_header(self) -> Value {
        let compact = structure(1, &[("timestamp", self.int(27, 1, CLOCK))]);
        let number = self.int(32, 8, "event-record-class-id");
        let extended = structure(8, &[("number", number), ("timestamp", self.word(CLOCK))]);
        let rest = json!({"type": "variant",
        "selector-field-location": {"origin": "event-record-header", "path": ["kind"]},
        "options": [
            {"name": "compact", "selector-field-ranges": [[0, 30]], "field-class": compact},
            {"name": "extended", "selector-field-ranges": [[31, 31]], "field-class": extended},
        ]});
        structure(8, &[("kind", self.int(5, 1, "event-record-class-id")), ("rest", rest)])
    }

    fn task(self, prefix: &str) -> [(String, Value); 3] {
        [("comm", json!("comm")), ("tid", self.signed()), ("prio", self.signed())]
            .map(|(name, class)| (format!("{prefix}{name}"), class))
    }

    fn events(self) -> Vec<Value> {
        let target = [("target_cpu".to_owned(), self.signed())];
        let woken: Vec<_> = self.task("").into_iter().chain(target).collect();
        let state = [("prev_state".to_owned(), self.word(""))];
        let switch: Vec<_> =
            self.task("prev_").into_iter().chain(state).chain(self.task("next_")).collect();
        let list = json!({"type": "dynamic-length-array", "element-field-class": self.signed(),
            "length-field-location": ["event-record-payload", "vtids_length"]});
        let fork = [
            ("parent_comm", json!("comm")),
            ("parent_tid", self.signed()),
            ("child_comm", json!("comm")),
            ("child_tid", self.signed()),
            ("vtids_length", self.int(8, 8, "")),
            ("vtids", list),
        ];
        let entry = [("irq", self.signed()), ("name", json!({"type": "null-terminated-string"}))];
        vec![
            event("sched_waking", WAKING, &woken),
            event("sched_wakeup", WAKEUP, &woken),
            event("sched_switch", SWITCH, &switch),
            event("sched_process_fork", FORK, &fork),
            event("irq_handler_entry", IRQ_ENTRY, &entry),
            event("irq_handler_exit", IRQ_EXIT, &entry[..1]),
        ]
    }
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
