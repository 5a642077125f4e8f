//! `--profile`, with an object of the tests' own.

use crate::support::{Files, bootable, fairground, refusal, success};

/// A scheduler whose constants its loader sets.
const SOURCE: &str = r#"
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

const volatile u64 slice_ns;
const volatile u32 nr_cpus;
u32 counts[1] SEC(".data.counts");
const volatile struct { u32 llcs; struct { u8 depth; bool on; } levels[2]; } config;
u32 cpu_llc[8];
char tag[8];
u32 hellos, seconds;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2);
    __type(key, u32);
    __type(value, u64);
} limits SEC(".maps");

struct {
    __uint(type, 5); /* BPF_MAP_TYPE_PERCPU_HASH */
    __uint(max_entries, 2);
    __type(key, u64);
    __type(value, u64);
} quotas SEC(".maps");

SEC("syscall") s32 hello(void *context)
{
    bpf_printk("hello from the loader");
    hellos++;
    return 0;
}

struct give { u32 count; u64 result; u16 more[2]; };
u64 given;

SEC("syscall") s32 give(struct give *args)
{
    args->result = args->count + args->more[1];
    given = args->result;
    return 0;
}

u32 switches, left_out;

SEC("?tp_btf/sched_switch") int count_switch(u64 *ctx)
{
    switches++;
    return 0;
}

SEC("tp_btf/sched_switch") int leave_out(u64 *ctx)
{
    left_out++;
    return 0;
}

SEC("syscall") s32 refresh(void *context)
{
    if (!switches || left_out)
        return -6;
    return ++seconds < 2 ? 0 : -5;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(own_init)
{
    u32 one = 1;
    u64 seven = 7;
    u64 *limit = bpf_map_lookup_elem(&limits, &one);
    u64 *quota = bpf_map_lookup_elem(&quotas, &seven);

    bpf_printk("slice %llu, CPUs %u, limit %llu", slice_ns, nr_cpus, limit ? *limit : 0);
    if (!limit || *limit != 12 || !quota || *quota != 34 || hellos != 1)
        return -7;
    if (config.llcs != 1 || config.levels[1].depth != 3 || !config.levels[1].on || config.levels[0].depth != 2)
        return -8;
    if (cpu_llc[2] != 0 || cpu_llc[3] != 9 || tag[2] != 'g')
        return -9;
    if (given != 13)
        return -10;
    return slice_ns && nr_cpus == 3 ? 0 : -22;
}

SCX_OPS_DEFINE(own_ops, .init = (void *)own_init, .name = "own");
"#;

const PROFILE: &str = r#"
object = "own"
required = ["slice_ns"]

[set]
slice_ns = "5ms"
nr_cpus = "cpus"
config = { llcs = "llcs", levels = [{ depth = 2 }, { depth = "cpus", on = true }] }
"cpu_llc[*]" = 9
cpu_llc = "cpu.llc"
tag = "tag"

[resize]
counts = "cpus"
quotas = "cpus"

[ops]
timeout_ms = 2000

[maps.limits]
1 = 12

[maps.quotas]
7 = 34

[run]
before = [
    "hello",
    { program = "give", args = { count = "cpus", more = [0, 4] }, save = { root = "result" } },
    { program = "give", args = { count = "$root", "more[*]" = 6 } },
]
each_second = ["refresh"]
attach = ["count_switch"]
detach = ["leave_out"]
"#;

struct Scene {
    files: Files,
    object: String,
}

impl Scene {
    fn new() -> Scene {
        let files = Files::new();
        let object = files.compile("own", SOURCE, fairground_policies::CLANG_FLAGS);
        Scene { files, object }
    }

    /// What is said of a run in a virtual machine that must end with an error.
    fn refused_on(&self, target: &str, profile: &str) -> String {
        let path = self.files.write("real.toml", profile);
        refusal(&[
            "run",
            "hogs:1",
            "--cpus",
            "3",
            "--duration",
            "3s",
            "--quiet",
            "--on",
            target,
            "--sched",
            &self.object,
            "--profile",
            &path,
        ])
    }

    fn arguments<'a>(&'a self, profile: &'a str) -> Vec<&'a str> {
        let fixed = ["run", "hogs:2", "--cpus", "3", "--duration", "50ms", "--quiet"];
        [&fixed[..], &["--sched", &self.object, "--profile", profile]].concat()
    }

    /// What is said of a profile that is wrong.
    fn refused(&self, profile: &str) -> String {
        let path = self.files.write("wrong.toml", profile);
        refusal(&self.arguments(&path))
    }
}

#[test]
fn a_profile_does_what_the_loader_would() {
    let scene = Scene::new();
    let path = scene.files.write("own.toml", PROFILE);
    let text = success(&scene.arguments(&path));
    assert!(text.contains("hello from the loader"), "{text}");
    assert!(text.contains("slice 5000000, CPUs 3, limit 12"), "{text}");
    let over = success(&[&scene.arguments(&path)[..], &["--set", "slice_ns=1ms"]].concat());
    assert!(over.contains("slice 1000000, CPUs 3"), "--set counts before the profile: {over}");
}

#[test]
fn what_is_wrong_is_named() {
    let scene = Scene::new();
    let without = |part: &str| PROFILE.replace(part, "");
    let said = scene.refused(&without("slice_ns = \"5ms\""));
    assert!(said.contains("cannot run without `slice_ns`"), "{said}");
    for (from, to, message) in [
        ("nr_cpus =", "nr_cpu =", "no variable `nr_cpu`"),
        ("nr_cpus =", "nr_cpu =", "did you mean `nr_cpus`"),
        ("object = \"own\"", "object = \"other\"", "is for `other`"),
        ("counts = \"cpus\"", "slice_ns = 4", "it is not an array"),
        ("counts = \"cpus\"", "limits = 0", "it needs `max_entries`"),
        ("timeout_ms = 2000", "timeout = 1", "timeout"),
        ("quotas = \"cpus\"", "quota = 1", "no such variable"),
        ("llcs = \"llcs\"", "llc = \"llcs\"", "did you mean `llcs`"),
        ("tag = \"tag\"", "tag = \"far too long\"", "takes 7"),
        ("depth = 2", "depth = 256", "0 to 255"),
        ("1 = 12", "2 = 12", "beyond its 2 elements"),
        ("1 = 12", "1 = { burst = 2 }", "`limits` has no members"),
        ("[maps.limits]", "[maps.limit]", "limit"),
        ("\"hello\"", "\"hallo\"", "no such program"),
        ("\"hello\"", "\"hallo\"", "did you mean `hello`"),
        ("\"hello\"", "\"own_init\"", "own_init"),
        ("save = { root", "save = { route", "no earlier step saves `root`"),
        ("\"count_switch\"", "\"count_swich\"", "did you mean `count_switch`"),
        ("\"leave_out\"", "\"hello\"", "no program of events with that name"),
        ("\"result\"", "\"more\"", "no number of up to 8 bytes"),
        ("{ count = \"$root\"", "{ cont = 1", "did you mean `count`"),
        ("args = { count = \"$root\"", "arg = { count = 1", "arg"),
        ("[set]", "[sets]", "sets"),
    ] {
        let said = scene.refused(&PROFILE.replace(from, to));
        assert!(said.contains(message), "{from} → {to}: `{message}` is missing from:\n{said}");
    }
}

#[test]
fn all_that_is_wrong_is_named_at_once() {
    let scene = Scene::new();
    let mut wrong = PROFILE.to_owned();
    for (from, to) in [
        ("nr_cpus =", "nr_cpu ="),
        ("timeout_ms = 2000", "timeout = 1"),
        ("[maps.limits]", "[maps.limit]"),
        ("\"count_switch\"", "\"count_swich\""),
    ] {
        wrong = wrong.replace(from, to);
    }
    let said = scene.refused(&wrong);
    for message in ["`nr_cpus`?", "timeout", "limit", "`count_switch`?"] {
        assert!(said.contains(message), "`{message}` is missing from:\n{said}");
    }
}

/// Before a run one sees what the loader does and the profile does not; after it, it may look as a scheduler's own fault.
#[test]
fn what_a_profile_leaves_out_is_told() {
    let scene = Scene::new();
    let left_out = PROFILE.replace("each_second = [\"refresh\"]", "");
    let path = scene.files.write("partial.toml", left_out);
    let text = success(&scene.arguments(&path));
    assert!(text.contains("its loader may run `refresh`, which nothing runs here"), "{text}");
    let path = scene.files.write("own.toml", PROFILE);
    assert!(!success(&scene.arguments(&path)).contains("its loader may"), "all is done");
}

/// `init` checks variables, maps and the program before it, and the program of each second fails in the second
/// second. The kernel takes no timeout above 30 s.
#[test]
fn a_kernel_sees_what_the_loader_does() {
    let Some(vm) = bootable() else { return };
    let scene = Scene::new();
    let said = scene.refused_on(vm, PROFILE);
    assert!(said.contains("`refresh`, which its loader runs, failed: it returned -5"), "{said}");
    let said = scene.refused_on(vm, &PROFILE.replace("timeout_ms = 2000", "timeout_ms = 40000"));
    assert!(said.contains("the kernel does not attach it"), "{said}");
    assert!(said.contains("Argument list too long"), "{said}");
}

#[test]
fn what_an_object_is_and_wants_is_shown() {
    let scene = Scene::new();
    let shown = success(&["sched", "show", &scene.object, "--format", "markdown"]);
    for part in [
        "| limits | array | 4 | 8 | 2 |",
        "bpf\\_map\\_lookup\\_elem | 1 |",
        "own.bpf.o: runs in the simulated machine\n",
        "| count\\_switch | tp\\_btf/sched\\_switch | if named | called: ",
        "| leave\\_out | tp\\_btf/sched\\_switch | yes | called: ",
    ] {
        assert!(shown.contains(part), "`{part}` is missing from:\n{shown}");
    }
    let source = SOURCE.replacen(
        "SEC(\"syscall\")",
        "void scx_bpf_unheard_of(void) __ksym;\n\
         SEC(\"syscall\") s32 ask(void *c) { scx_bpf_unheard_of(); return 0; }\nSEC(\"syscall\")",
        1,
    );
    let stranger = scene.files.compile("stranger", &source, fairground_policies::CLANG_FLAGS);
    let show = ["sched", "show", &stranger, "--format", "markdown"];
    let shown = success(&show);
    assert!(!shown.contains("unheard\\_of | a call") && shown.contains("| 1 name |"), "{shown}");
    let shown = success(&[&show[..], &["--verbose"]].concat());
    let lack =
        "| kernel function | scx\\_bpf\\_unheard\\_of | a call that is reached ends the run |";
    assert!(shown.contains(lack), "{shown}");
}

/// What variables hold at the end is shown and compared, after the scheduler's own `exit` and with the values that its
/// programs left.
#[test]
fn values_at_the_end_are_shown_and_expected() {
    let scene = Scene::new();
    let profile = scene.files.write("own.toml", PROFILE);
    let fixed = ["run", "hogs:1", "--cpus", "3", "--duration", "1500ms", "--quiet"];
    let of_object = ["--sched", &scene.object, "--profile", &profile];
    let run = |more: &[&str]| fairground(&[&fixed[..], &of_object, more].concat());
    let expected = [
        "--expect",
        "seconds=1",
        "--expect",
        "config.levels[1].depth=cpus",
        "--expect",
        "hellos>0",
        "--expect",
        "switches>0",
    ];
    let shown = run(&[&expected[..], &["--show-globals=given,cpu_llc[2..4]"]].concat());
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert_eq!(shown.status.code(), Some(0), "{text}");
    for line in ["given        13", "cpu_llc[2]   0", "cpu_llc[3]   9"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let failed = run(&["--expect", "seconds=2", "--expect", "given=13", "--format", "json"]);
    let text = String::from_utf8_lossy(&failed.stdout).into_owned();
    assert_eq!(failed.status.code(), Some(1), "{text}");
    assert!(text.contains("not as expected: `seconds`: expected 2, found 1"), "{text}");
    assert!(text.contains("1 of 2"), "{text}");
    assert!(text.contains("SCX_EXIT_UNREG"), "{text}");
    let all = String::from_utf8_lossy(&run(&["--show-globals"]).stdout).into_owned();
    assert!(all.contains("config.levels[1].on") && all.contains("slice_ns"), "{all}");
    assert!(
        !all.contains("__SCX_"),
        "the kernel's constants are no values of the scheduler: {all}"
    );
    let fixed = [&fixed[..], &of_object].concat();
    let text = refusal(&[&fixed[..], &["--expect", "second=1"]].concat());
    assert!(text.contains("--expect: ") && text.contains("did you mean `seconds`?"), "{text}");
    let text = refusal(&["run", "hogs:1", "--on", "vm:newest", "--show-globals"]);
    assert!(text.contains("--show-globals applies to the simulator only"), "{text}");
}

/// Two schedulers in one object.
const SEVERAL: &str = r#"
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

u32 inits;

s32 BPF_STRUCT_OPS_SLEEPABLE(first_init)
{
    inits = 1;
    return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(second_init)
{
    inits = 2;
    return 0;
}

SCX_OPS_DEFINE(first_ops, .init = (void *)first_init, .name = "first");
SCX_OPS_DEFINE(second_ops, .init = (void *)second_init, .timeout_ms = 1000, .name = "second");
"#;

#[test]
fn a_profile_chooses_one_of_several_schedulers() {
    let files = Files::new();
    let object = files.compile("several", SEVERAL, fairground_policies::CLANG_FLAGS);
    let run = |profile: Option<&str>, expect: &str| {
        let mut words = vec!["run", "hogs:2", "--duration", "100ms", "--quiet", "--sched", &object];
        words.extend(profile.into_iter().flat_map(|profile| ["--profile", profile]));
        fairground(&[&words[..], &["--expect", expect]].concat())
    };
    let said = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let refused = run(None, "inits=1");
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("`scheduler = \"first_ops\"`"), "{}", said(&refused));
    for (name, expect) in [("first_ops", "inits=1"), ("second_ops", "inits=2")] {
        let text =
            format!("object = \"several\"\nscheduler = \"{name}\"\n[ops]\ntimeout_ms = 900\n");
        let output = run(Some(&files.write("several.toml", text)), expect);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", said(&output));
    }
    let wrong = files.write("wrong.toml", "object = \"several\"\nscheduler = \"secnd_ops\"\n");
    let refused = run(Some(&wrong), "inits=2");
    assert!(said(&refused).contains("did you mean `second_ops`?"), "{}", said(&refused));
    let Some(kernel) = bootable() else { return };
    let profile = files.write("several.toml", "object = \"several\"\nscheduler = \"second_ops\"\n");
    let fixed = ["run", "hogs:1", "--cpus", "1", "--duration", "1s", "--quiet", "--on", kernel];
    success(&[&fixed[..], &["--sched", &object, "--profile", &profile]].concat());
}
