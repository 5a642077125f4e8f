//! Lines that a scheduler's program printed.

use fairground_trace::{Event, EventKind, Trace, read};

/// As the kernel shows them: the text is taken as it stands.
#[test]
fn a_kernel_s_text() {
    let text = "# tracer: nop\n\
        \x20         <idle>-0       [001] d..2.    10.000001: bpf_trace_printk: 100%41 of a: b\n\
        \x20            cat-77      [001] d..2.    10.000002: bpf_trace_printk: \n";
    let trace = read("text", text.as_bytes()).unwrap();
    let said: Vec<(u64, u32, &str)> = trace
        .events()
        .map(|event| match event.kind {
            EventKind::Print { label } => (event.time_ns, event.cpu, trace.label(label)),
            kind => panic!("{kind:?}"),
        })
        .collect();
    assert_eq!(said, [(10_000_001_000, 1, "100%41 of a: b"), (10_000_002_000, 1, "")]);
    assert_eq!(trace.loss, fairground_trace::Loss::default());
}

/// A full table takes no new text and goes on with the ones that it has.
#[test]
fn too_many_different_lines_are_counted() {
    let mut trace = Trace::new(1);
    let first = trace.intern_print("0");
    for number in 1..Trace::PRINT_LABELS_MAX + 5 {
        trace.intern_print(&number.to_string());
    }
    assert_eq!((trace.loss.prints, trace.labels().len()), (5, Trace::PRINT_LABELS_MAX));
    assert_eq!((trace.intern_print("0"), trace.loss.prints), (first, 5));
}

/// A printed line changes the digest.
#[test]
fn the_digest_has_them() {
    let with = |kind: fn(fairground_trace::Label) -> EventKind| {
        let mut trace = Trace::new(1);
        let label = trace.intern("a");
        trace.push(Event { time_ns: 1, cpu: 0, insns: 0, kind: kind(label) });
        trace.digest()
    };
    assert_ne!(with(|label| EventKind::Print { label }), with(|label| EventKind::Param { label }));
}
