//! Bad input is answered with file, place, cause and remedy on stderr, and exit code 2. Nothing else is printed.

use crate::support::{Files, fairground, refusal, success};

fn says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "`{part}` is missing from:\n{said}");
    }
}

#[test]
fn an_unknown_key_in_a_workload() {
    let files = Files::new();
    let text = "format = 1\nname = \"w\"\nduration = \"1s\"\n\n[[task]]\nname = \"hog\"\n\
                cuont = 2\nprogram = [{ run = \"forever\" }]\n";
    let file = files.write("w.toml", text);
    says(&refusal(&["run", &file]), &["w.toml:7:1", "cuont", "count"]);
    says(&refusal(&["workload", "check", &file]), &["w.toml:7:1", "cuont", "count"]);
}

#[test]
fn a_file_without_an_end() {
    let cases: [&[&str]; 5] = [
        &["run", "/dev/zero"],
        &["run", "hogs:2", "--topology", "/dev/zero"],
        &["run", "hogs:2", "--profile", "/dev/zero"],
        &["run", "hogs:2", "--sched", "/dev/zero"],
        &["reproduce", "/dev/zero"],
    ];
    for case in cases {
        says(&refusal(case), &["/dev/zero", "longer than", "MiB, the limit for such a file"]);
    }
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_the_run() {
    let files = Files::new();
    let [nowhere, odd, folder] =
        ["none/page.html", "trace.xyz", ""].map(|name| files.path(name).display().to_string());
    let cases: [(&[&str], &[&str]); 4] = [
        (&["--html", &nowhere], &["none/page.html", "the folder", "must be there"]),
        (&["--trace", &odd], &["trace.xyz: no known kind of trace", ".txt or .ftrace"]),
        (&["--html", &folder], &["it is a folder"]),
        (&["--duration", "-1s"], &["`-1s` is negative"]),
    ];
    for (options, parts) in cases {
        says(&refusal(&[&["run", "hogs:2"], options].concat()), parts);
    }
    success(&["run", "hogs:2", "--duration", "0.0001min", "--trace", "/dev/null"]);
}

#[test]
fn a_limit_of_file_sizes_is_an_error_of_writing() {
    let files = Files::new();
    let trace = files.path("run.txt");
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 16; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_fairground")])
        .args(["run", "sleepers:2", "--duration", "1s", "--trace"])
        .arg(&trace)
        .env_remove("FAIRGROUND_SEED")
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    says(&said, &["run.txt", "File too large"]);
    assert!(!trace.exists(), "nothing is left");
}

#[test]
fn a_cyclic_wait() {
    let files = Files::new();
    let text = r#"format = 1
name = "stuck"
duration = "1s"

[[queue]]
name = "to-a"

[[queue]]
name = "to-b"

[[task]]
name = "a"
program = [{ receive = "to-a" }, { send = "to-b" }]

[[task]]
name = "b"
program = [{ receive = "to-b" }, { send = "to-a" }]
"#;
    let file = files.write("stuck.toml", text);
    says(&refusal(&["run", &file]), &["stuck.toml:", "to-a", "to-b", "waits"]);
}

#[test]
fn an_object_that_is_not_elf() {
    let files = Files::new();
    let file = files.write("mine.bpf.o", "#!/bin/sh\n");
    says(&refusal(&["run", "hogs:2", "--sched", &file]), &["mine.bpf.o", "ELF"]);
}

const EMPTY_SCHEDULER: &str = "#include \"scx.bpf.h\"\n\
                               char _license[] SEC(\"license\") = \"GPL\";\nSCX_OPS_DEFINE(ops, .name = \"empty\");\n";

#[test]
fn an_object_without_btf() {
    let files = Files::new();
    let file = files.compile("nobtf", EMPTY_SCHEDULER, &["-target", "bpfel", "-mcpu=v3", "-O2"]);
    says(&refusal(&["run", "hogs:2", "--sched", &file]), &["nobtf.bpf.o", "BTF", "-g"]);
}

#[test]
fn an_object_without_a_scheduler() {
    let files = Files::new();
    let source =
        "#include \"scx.bpf.h\"\nchar _license[] SEC(\"license\") = \"GPL\";\nint counter = 3;\n";
    let file = files.compile("noops", source, fairground_policies::CLANG_FLAGS);
    says(&refusal(&["run", "hogs:2", "--sched", &file]), &["noops.bpf.o", "sched_ext_ops"]);
}

#[test]
fn a_kernel_function_that_does_not_exist() {
    let files = Files::new();
    let source = r#"#include "scx.bpf.h"
char _license[] SEC("license") = "GPL";
extern void scx_bpf_make_coffee(s32 cpu) __ksym;
void BPF_STRUCT_OPS(coffee_tick, struct task_struct *p)
{
    scx_bpf_make_coffee(0);
}
SCX_OPS_DEFINE(coffee_ops, .tick = (void *)coffee_tick, .name = "coffee");
"#;
    let file = files.compile("coffee", source, fairground_policies::CLANG_FLAGS);
    let output = fairground(&["run", "hogs:2", "--sched", &file]);
    assert_eq!(output.status.code(), Some(43), "it is ejected where it calls it");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    says(&said, &["coffee.bpf.o", "scx_bpf_make_coffee"]);
}

#[test]
fn an_unknown_tunable() {
    let said = refusal(&["run", "hogs:2", "--sched", "cfs", "--set", "sched_latncy_ns=1ms"]);
    says(&said, &["sched_latncy_ns", "did you mean `sched_latency_ns`"]);
    let said = refusal(&["run", "hogs:2", "--sched", "cfs@7.1"]);
    says(&said, &["7.1", "cfs@6.1", "cfs@2.6.24"]);
    let said = refusal(&["run", "hogs:2", "--sched", "csf"]);
    says(&said, &["csf", "did you mean `cfs`"]);
}

#[test]
fn flags_that_make_no_sense() {
    says(&refusal(&["run", "hogs:2", "--hz", "17"]), &["--hz 17", "250"]);
    says(&refusal(&["run", "hogs:2", "--duration", "5"]), &["--duration", "unit"]);
    says(&refusal(&["run", "hogs:2", "--costs", "modrn"]), &["modrn", "modern"]);
    says(&refusal(&["run", "hgs:2"]), &["hgs", "hogs"]);
    says(&refusal(&["run", "no/such/file.toml"]), &["no/such/file.toml"]);
    says(&refusal(&["reproduce", "slice-2010"]), &["slice-2010", "slice-2009"]);
}

#[test]
fn a_recording_cut_off_in_the_middle_is_analysed_as_far_as_it_goes() {
    let files = Files::new();
    let trace = files.path("whole.txt").display().to_string();
    success(&["run", "sleepers:4", "--duration", "200ms", "--trace", &trace, "--format", "json"]);
    let whole = std::fs::read(&trace).expect("the trace was written");
    let cut = files.write("cut.txt", &whole[..whole.len() * 2 / 3 - 7]);
    let printed = success(&["analyze", &cut]);
    says(&printed, &["cut.txt", "ends in the middle", "switches"]);
    let nothing = files.write("nothing.txt", "these are not\nscheduler events\n");
    says(&refusal(&["analyze", &nothing]), &["nothing.txt", "perf sched"]);
}

#[test]
fn an_unknown_key_in_a_topology_file() {
    let files = Files::new();
    let text = "format = 1\n[[socket]]\ncount = 2\ncoers = 4\n";
    let file = files.write("box.toml", text);
    let said = refusal(&["run", "hogs:2", "--topology", &file]);
    says(&said, &["box.toml", "line 4", "coers", "`cores`", "docs/reference/topology.md"]);
    let said = refusal(&["run", "hogs:2", "--topology", "2x4"]);
    says(&said, &["`2x4` names no topology", "NAME.toml"]);
}

#[test]
fn a_node_that_no_machine_has() {
    let files = Files::new();
    let file = files.write("box.toml", "format = 1\n[[socket]]\nnode = 4294967295\n");
    let said = refusal(&["run", "hogs:2", "--topology", &file]);
    says(&said, &["box.toml", "socket entry 1", "node = 4294967295", "give 0 to 1023"]);
}

#[test]
fn a_topology_file_is_the_machine() {
    let files = Files::new();
    let file = files.write("box.toml", "format = 1\n[[socket]]\ncount = 4\nnode = 0\n");
    let said = success(&["run", "hogs:8", "--topology", &file, "--duration", "100ms"]);
    says(&said, &["box.toml: 4 CPUs, 4 cores, 4 last-level caches, 1 nodes, 4 sockets"]);
}

#[test]
fn the_speed_of_a_guest_where_there_is_none() {
    let run = |costs, ns| {
        ["run", "hogs:2", "--duration", "20ms", "--costs", costs, "--instruction-ns", ns]
    };
    says(&refusal(&run("modern", "1")), &["nothing counts instructions", "--costs linux-7.2-scx"]);
    says(&refusal(&run("linux-7.2", "3")), &["--instruction-ns 3: unsupported", "1, 2, 4 or 8"]);
    let table = success(&[&run("linux-7.2", "1")[..], &["--verbose"]].concat());
    says(&table, &["instruction_ns", "context_switch_ns", "2000 ns"]);
}

#[test]
fn a_run_too_long_for_its_trace() {
    let run = ["run", "hogs:2", "--trace", "-", "--max-events", "100"];
    says(
        &refusal(&run),
        &["cfs: the trace is full: 100 events", "--duration ", "--max-events 200"],
    );
    says(&refusal(&["run", "hogs:2", "--max-events", "0"]), &["a trace of 0 events", "from 1 to"]);
    let real = [&run[..], &["--on", "vm:6.1"]].concat();
    says(&refusal(&real), &["--max-events applies to the simulator only"]);
}

#[test]
fn callbacks_are_for_a_trace() {
    let said = refusal(&["run", "hogs:1", "--callbacks", "--duration", "10ms"]);
    assert!(said.contains("--trace"), "{said}");
}
