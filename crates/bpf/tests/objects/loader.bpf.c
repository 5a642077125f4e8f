/* Everything that a loader finds in an object: read by tests/loader.rs. */
#include "fixture.h"

char terms[] SEC("license") = "GPL";

struct task_struct;
struct value {
    u64 sum;
    u32 count;
};
struct sched_ext_ops___compat {
    s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 flags);
    void (*enqueue)(struct task_struct *p, u64 flags);
    void (*dispatch)(s32 cpu, struct task_struct *prev);
    u64 flags;
    s32 level;
    char name[16];
    u32 hotplug_seq;
    const u64 *table;
};

/* Global data of each kind. */
enum policy { FIFO, BY_DEADLINE = 7 };
enum sign { MINUS = -1, PLUS = 1 };
const volatile u64 slice_ns __tag("unit=ns") __tag("doc=longest run") = 20000000;
const volatile bool smt = 1;
const u32 folded[2] = {3, 4};
volatile enum policy policy = BY_DEADLINE;
enum sign sign = MINUS;
s32 offsets[3][2] = {{-1, 2}};
u64 zeroed;
static u64 hidden;
struct value structure = {5, 6};
u8 dump[1] SEC(".data.dump");

/* Maps. */
struct {
    __uint(type, 29);
    __uint(map_flags, 1);
    __type(key, s32);
    __type(value, struct value);
} tasks SEC(".maps");
struct {
    __uint(type, 1);
    __uint(max_entries, 77);
    __uint(key_size, 12);
    __type(value, struct value);
} table SEC(".maps");
struct {
    __uint(type, 27);
    __uint(max_entries, 8192);
} ring SEC(".maps");

/* The kernel. */
extern u64 CONFIG_HZ __kconfig __weak;
extern u32 LINUX_KERNEL_VERSION __kconfig;
extern bool CONFIG_ABSENT __kconfig __weak;
extern const char CONFIG_CC_VERSION_TEXT[8] __kconfig __weak;
extern const void runqueues __ksym;
extern const void absent_variable __ksym __weak;
extern u64 present(u64 x) __ksym;
extern u64 changed___v2(u64 x) __ksym;
extern u64 absent(u64 x) __ksym __weak;

static void *(*lookup)(void *map, const void *key) = (void *)1;
static long (*loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;

static __noinline u64 local_part(u64 x) {
    return x * hidden + slice_ns;
}

__noinline u64 global_part(u64 x) {
    return local_part(x) + offsets[2][1];
}

static s32 callback(u32 turn, void *context) {
    hidden += turn;
    return 0;
}

SEC("struct_ops/select_cpu") s32 select_cpu(u64 *context) {
    loop(10, callback, 0, 0);
    return global_part(context[1]);
}

SEC("struct_ops/enqueue") void enqueue(u64 *context) {
    u32 key[3] = {1, 2, 3};
    struct value *value = lookup(&table, key);
    if (value)
        value->sum += present(context[0]);
    lookup(&tasks, key);
    zeroed += structure.sum + folded[zeroed & 1] + dump[0] + policy + sign;
}

SEC("syscall") u64 hz(void *context) {
    return CONFIG_HZ;
}

SEC("syscall") u64 version(void *context) {
    return LINUX_KERNEL_VERSION + CONFIG_ABSENT;
}

SEC("syscall") u64 text(void *context) {
    u64 all = 0;
    for (u32 at = 0; at < 8; at++)
        all = all << 8 | (u8)CONFIG_CC_VERSION_TEXT[at];
    return all;
}

SEC("syscall") u64 variable(void *context) {
    return (u64)&runqueues + (u64)&absent_variable;
}

SEC("syscall") u64 flavoured(void *context) {
    return changed___v2(41);
}

SEC("syscall") u64 asks_first(void *context) {
    if (absent)
        return absent(1);
    return 17;
}

SEC("syscall") u64 asks_not(void *context) {
    return absent(1);
}

SEC("syscall") u64 sums(void *context) {
    hidden = 2;
    offsets[2][1] = -5;
    return global_part(100);
}

SEC(".struct_ops.link")
struct sched_ext_ops___compat ops = {
    .select_cpu = (void *)select_cpu,
    .enqueue = (void *)enqueue,
    .flags = 5,
    .level = -3,
    .name = "demo",
    .table = (const u64 *)&slice_ns,
};
