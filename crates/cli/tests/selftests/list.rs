//! The list of the kernel's tests: what each asserts, and how that is seen here.

use super::runs::{
    BACKGROUND, CHILDREN, ERROR, FROM_USER, Here, MOVER, ONE_BY_ONE, RT_AND_EXT, Run, STAYED,
    Selftest, YIELDERS, bypassing, ejected, hotplug, keeping, leaving, run, scenario,
};

pub(super) const SELFTESTS: &[Selftest] = &[
    Selftest {
        name: "allowed_cpus",
        asserts: "`scx_bpf_select_cpu_and()` gives idle CPUs of the mask only, claimed, also to a program that user space \
                  runs",
        here: Here::Holds(
            &[Run { profile: FROM_USER, expect: STAYED, ..run("allowed_cpus", BACKGROUND) }],
            "",
        ),
    },
    Selftest {
        name: "create_dsq",
        asserts: "1024 queues are made and destroyed in `init()`, and one for each task",
        here: Here::Holds(&[run("create_dsq", CHILDREN)], ""),
    },
    Selftest {
        name: "cyclic_kick_wait",
        asserts: "three CPUs that kick each other in a circle and wait for it (`SCX_KICK_WAIT`) go on",
        here: Here::Holds(
            &[Run {
                words: "--cpus 4 --set test_cpu_a=0 --set test_cpu_b=1 --set test_cpu_c=2",
                expect: &["uei.kind=64", "nr_wait_kicks>0"],
                ..run("cyclic_kick_wait", YIELDERS)
            }],
            "",
        ),
    },
    Selftest {
        name: "ddsp_bogus_dsq_fail",
        asserts: "a dispatch from `select_cpu()` into a queue that does not exist ejects the scheduler",
        here: Here::Holds(&[ejected("ddsp_bogus_dsq_fail", "non-existent DSQ", ERROR)], ""),
    },
    Selftest {
        name: "ddsp_vtimelocal_fail",
        asserts: "a dispatch by virtual time into a built-in queue ejects the scheduler",
        here: Here::Holds(&[ejected("ddsp_vtimelocal_fail", "vtime ordering", ERROR)], ""),
    },
    Selftest {
        name: "dequeue",
        asserts: "`dequeue()` is called once for each task that leaves the scheduler, by dispatch or by a change, and for no \
                  task that it never had",
        here: Here::Holds(
            &[
                bypassing(scenario!(0)),
                bypassing(scenario!(1)),
                keeping(scenario!(2)),
                bypassing(scenario!(3)),
                bypassing(scenario!(4)),
                keeping(scenario!(5)),
                keeping(scenario!(6)),
            ],
            "all seven scenarios; the changes are moves between control groups, where the test changes affinities",
        ),
    },
    Selftest {
        name: "dsp_local_on",
        asserts: "`dispatch()` can put a task into the local queue of any CPU",
        here: Here::Holds(
            &[Run {
                words: "--cpus 4 --set nr_cpus=cpus",
                expect: STAYED,
                ..run("dsp_local_on", BACKGROUND)
            }],
            "",
        ),
    },
    Selftest {
        name: "enq_last_no_enq_fails",
        asserts: "`SCX_OPS_ENQ_LAST` without `enqueue()` ejects the scheduler",
        here: Here::Holds(
            &[ejected("enq_last_no_enq_fails", "SCX_OPS_ENQ_LAST requires", &["exit_kind=1024"])],
            "",
        ),
    },
    Selftest {
        name: "enq_select_cpu",
        asserts: "`scx_bpf_select_cpu_dfl()` works in `enqueue()` and in a program that user space runs",
        here: Here::Holds(
            &[Run { profile: FROM_USER, expect: STAYED, ..run("enq_select_cpu", BACKGROUND) }],
            "",
        ),
    },
    Selftest {
        name: "exit",
        asserts: "`scx_bpf_exit()` ends the scheduler from six callbacks, with its code and message",
        here: Here::Holds(
            &[
                leaving(
                    "--cpus 4 --set exit_point=0",
                    &["uei.kind=65", "uei.exit_code=0", "uei.msg=0"],
                    "in ops.select_cpu()",
                ),
                leaving(
                    "--cpus 4 --set exit_point=1",
                    &["uei.kind=65", "uei.exit_code=1", "uei.msg=1"],
                    "in ops.enqueue()",
                ),
                leaving(
                    "--cpus 4 --set exit_point=2",
                    &["uei.kind=65", "uei.exit_code=2", "uei.msg=2"],
                    "in ops.dispatch()",
                ),
                leaving(
                    "--cpus 4 --set exit_point=3",
                    &["uei.kind=65", "uei.exit_code=3", "uei.msg=3"],
                    "in ops.enable()",
                ),
                leaving(
                    "--cpus 4 --set exit_point=4",
                    &["uei.kind=65", "uei.exit_code=4", "uei.msg=4"],
                    "in ops.init_task()",
                ),
                leaving(
                    "--cpus 4 --set exit_point=5",
                    &["uei.kind=65", "uei.exit_code=5", "uei.msg=5"],
                    "in ops.init()",
                ),
            ],
            "",
        ),
    },
    Selftest {
        name: "hotplug",
        asserts: "a CPU that comes or goes calls `cpu_online()` or `cpu_offline()`, and ends a scheduler without them",
        here: Here::Holds(
            &[
                hotplug(
                    "--cpus 2 --set cpu.1.online=off --at 100ms:cpu.1.online=on",
                    "scheduler = \"hotplug_cb_ops\"\n",
                    "hotplug event detected (1 going online)",
                    &["uei.kind=65", "uei.exit_code=0x1000000000003"],
                ),
                hotplug(
                    "--cpus 2 --at 100ms:cpu.1.online=off",
                    "scheduler = \"hotplug_cb_ops\"\n",
                    "hotplug event detected (1 going offline)",
                    &["uei.kind=65", "uei.exit_code=0x1000000000001"],
                ),
                hotplug(
                    "--cpus 2 --set cpu.1.online=off --at 100ms:cpu.1.online=on",
                    "scheduler = \"hotplug_nocb_ops\"\n",
                    "cpu 1 going online, exiting scheduler",
                    &["uei.kind=66", "uei.exit_code=0x1000100000000"],
                ),
                hotplug(
                    "--cpus 2 --at 100ms:cpu.1.online=off",
                    "scheduler = \"hotplug_nocb_ops\"\n",
                    "cpu 1 going offline, exiting scheduler",
                    &["uei.kind=66", "uei.exit_code=0x1000100000000"],
                ),
                hotplug(
                    "--cpus 2 --set cpu.1.online=off",
                    "scheduler = \"hotplug_nocb_ops\"\n[ops]\nhotplug_seq = 2\n",
                    "expected hotplug seq 2 did not match actual 3",
                    &["uei.kind=66", "uei.exit_code=0x1000100000000"],
                ),
            ],
            "",
        ),
    },
    Selftest {
        name: "init_enable_count",
        asserts: "`init_task()`, `enable()`, `disable()` and `exit_task()` are called for each task, forked or there before",
        here: Here::Fails(
            &[Run {
                expect: &[
                    "init_task_cnt>=1028",
                    "exit_task_cnt>=1028",
                    "enable_cnt>=1028",
                    "disable_cnt>=1028",
                    "init_fork_cnt>=10",
                    "init_transition_cnt>0",
                ],
                ..run("init_enable_count", CHILDREN)
            }],
            "no task exists before the scheduler is attached, and none is left to another class \
             (`SCX_OPS_SWITCH_PARTIAL`); the counts of forked tasks are right",
        ),
    },
    Selftest {
        name: "maximal",
        asserts: "a scheduler with every callback can be loaded",
        here: Here::Holds(&[run("maximal", BACKGROUND), run("maximal", CHILDREN)], ""),
    },
    Selftest {
        name: "maybe_null",
        asserts: "a program that checks pointers which may be NULL is loaded, and two that do not are refused",
        here: Here::Holds(
            &[
                run("maybe_null", BACKGROUND),
                run("maybe_null", MOVER),
                ejected("maybe_null_fail_yld", "ops.yield(): load through a NULL pointer", &[]),
                Run {
                    workload: MOVER,
                    ..ejected(
                        "maybe_null_fail_dsp",
                        "ops.dispatch(): load through a NULL pointer",
                        &[],
                    )
                },
            ],
            "there is no verifier; the two are ejected at the load through NULL",
        ),
    },
    Selftest {
        name: "minimal",
        asserts: "a scheduler without callbacks can be loaded",
        here: Here::Holds(&[run("minimal", BACKGROUND), run("minimal", CHILDREN)], ""),
    },
    Selftest {
        name: "nohz_tick",
        asserts: "the tick comes back with a task of finite slice, after one of infinite slice and after idle time",
        here: Here::Holds(
            &[Run {
                words: "--cpus 2 --set test_cpu=1 --at 250ms:finite_phase=on",
                profile: Some("[ops]\nflags = 2\n"),
                expect: &[
                    "uei.kind=64",
                    "nr_inf_running=1",
                    "nr_finite_running>=2",
                    "nr_finite_ticks>=6",
                ],
                ..run("nohz_tick", ONE_BY_ONE)
            }],
            "without `NOHZ_FULL`: only idle CPUs stop their tick",
        ),
    },
    Selftest {
        name: "non_scx_kfunc_deny",
        asserts: "a program of another kind of `struct_ops` that calls a kernel function of sched_ext is refused",
        here: Here::Holds(
            &[Run {
                code: 2,
                says: "has no `struct sched_ext_ops` variable",
                ..run("non_scx_kfunc_deny", BACKGROUND)
            }],
            "it is refused for being no scheduler",
        ),
    },
    Selftest {
        name: "numa",
        asserts: "with `SCX_OPS_BUILTIN_IDLE_PER_NODE` idle CPUs are found in the node that is named",
        here: Here::Holds(
            &[Run {
                words: "--topology 2x4x1",
                profile: Some("[set]\n__COMPAT_SCX_PICK_IDLE_IN_NODE = 2\n[ops]\nflags = 64\n"),
                expect: STAYED,
                ..run("numa", BACKGROUND)
            }],
            "",
        ),
    },
    Selftest {
        name: "peek_dsq",
        asserts: "`scx_bpf_dsq_peek()` gives NULL of an empty queue, and else its first task",
        here: Here::Holds(
            &[Run {
                expect: &[
                    "uei.kind=64",
                    "insert_test_cpu!=-1",
                    "dsq_peek_result1=0",
                    "successful_peeks>0",
                ],
                equal: &["dsq_peek_result2", "dsq_peek_result2_expected"],
                ..run("peek_dsq", BACKGROUND)
            }],
            "",
        ),
    },
    Selftest {
        name: "prog_run",
        asserts: "a program that user space runs can call kernel functions of sched_ext, and end the scheduler",
        here: Here::Holds(
            &[Run {
                profile: Some("[run]\nafter = [\"prog_run_syscall\"]\n"),
                code: 41,
                says: "Exited from PROG_RUN",
                expect: &["uei.kind=65", "uei.exit_code=0xdeadbeef"],
                ..run("prog_run", BACKGROUND)
            }],
            "",
        ),
    },
    Selftest {
        name: "reload_loop",
        asserts: "two threads attach and detach a scheduler 1024 times each",
        here: Here::Without("a run has one scheduler from its beginning to its end"),
    },
    Selftest {
        name: "rt_stall",
        asserts: "real-time tasks leave tasks of the scheduler 4 % of a CPU at least",
        here: Here::Holds(
            &[Run {
                words: "--cpus 2",
                expect: STAYED,
                share: Some(("ext", 4.0)),
                ..run("rt_stall", RT_AND_EXT)
            }],
            "its half without a scheduler is not run: there is no fair class",
        ),
    },
    Selftest {
        name: "select_cpu_dfl",
        asserts: "the default `select_cpu()` dispatches to idle CPUs, without `enqueue()`",
        here: Here::Holds(
            &[Run { expect: &["saw_local=off"], ..run("select_cpu_dfl", CHILDREN) }],
            "",
        ),
    },
    Selftest {
        name: "select_cpu_dfl_nodispatch",
        asserts: "`scx_bpf_select_cpu_dfl()` says whether the CPU was idle, and dispatches nothing",
        here: Here::Holds(
            &[Run { expect: &["saw_local=on"], ..run("select_cpu_dfl_nodispatch", CHILDREN) }],
            "",
        ),
    },
    Selftest {
        name: "select_cpu_dispatch",
        asserts: "`select_cpu()` can dispatch into built-in queues",
        here: Here::Holds(&[run("select_cpu_dispatch", CHILDREN)], ""),
    },
    Selftest {
        name: "select_cpu_dispatch_bad_dsq",
        asserts: "a dispatch from `select_cpu()` into a queue that does not exist ejects the scheduler",
        here: Here::Holds(&[ejected("select_cpu_dispatch_bad_dsq", "non-existent DSQ", ERROR)], ""),
    },
    Selftest {
        name: "select_cpu_dispatch_dbl_dsp",
        asserts: "a second dispatch in `select_cpu()` ejects the scheduler",
        here: Here::Holds(
            &[ejected("select_cpu_dispatch_dbl_dsp", "already direct-dispatched", ERROR)],
            "",
        ),
    },
    Selftest {
        name: "select_cpu_vtime",
        asserts: "`select_cpu()` can dispatch by virtual time into a queue of the scheduler",
        here: Here::Holds(
            &[Run { expect: &["consumed=on"], ..run("select_cpu_vtime", BACKGROUND) }],
            "",
        ),
    },
    Selftest {
        name: "test_example",
        asserts: "the runner of the tests calls a test's functions in order",
        here: Here::Without("it has no scheduler"),
    },
    Selftest {
        name: "total_bw",
        asserts: "the deadline bandwidth that debugfs shows is the same with and without a scheduler",
        here: Here::Without("there is no debugfs, and no admission of deadline tasks"),
    },
];
