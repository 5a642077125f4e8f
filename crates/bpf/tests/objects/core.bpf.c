/* Each kind of CO-RE question, one function each: read by tests/core_reloc.rs. */
#include "fixture.h"

char terms[] SEC("license") = "GPL";

#define FIELD(field, question) __builtin_preserve_field_info(field, question)
#define TYPE(type, question) __builtin_preserve_type_info(*(typeof(type) *)0, question)
#define CONSTANT(type, constant, question) \
    __builtin_preserve_enum_value(*(typeof(type) *)constant, question)

struct part {
    u32 first;
    u32 list[4];
} CORE;

struct task {
    u32 pid;
    s32 prio;
    u64 stamp;
    struct part part;
    union {
        u32 flat;
        u64 wide;
    };
    u32 odd : 3;
    u32 bits : 7;
    s32 minus : 5;
    char name[8];
    struct task *parent;
    u64 gone;
    u32 turned;
} CORE;

struct task___old {
    u32 pid;
    u64 ancient;
} CORE;

struct nowhere {
    u32 x;
} CORE;

enum state { RUNNING = 1, WAITING = 2, LOST = 3, BIG = 0x100000000ULL };
enum color { RED = 1 };
typedef u64 (*hook_t)(u64 x, struct task *task);

#define ASK(name, expression) \
    SEC("syscall") u64 name(struct task *t) { \
        return expression; \
    }

ASK(load_pid, t->pid)
ASK(load_prio, t->prio)
ASK(load_stamp, t->stamp)
ASK(load_nested, t->part.list[2])
ASK(load_flat, t->flat)
ASK(load_parent_pid, t->parent->pid)
ASK(load_name, t->name[3])
ASK(load_earlier, ((struct task___old *)t)->pid)
ASK(load_gone, t->gone)
ASK(load_turned, t->turned)
ASK(load_gone_if_there, FIELD(t->gone, 2) ? t->gone : 17)
ASK(load_ancient_if_there, FIELD(((struct task___old *)t)->ancient, 2) ? t->stamp : 18)
ASK(offset_of_nested, FIELD(t->part.list[3], 0))
ASK(size_of_name, FIELD(t->name, 1))
ASK(size_of_nested, FIELD(t->part.list[3], 1))
ASK(exists_pid, FIELD(t->pid, 2))
ASK(exists_turned, FIELD(t->turned, 2))
ASK(signed_prio, FIELD(t->prio, 3))
ASK(signed_pid, FIELD(t->pid, 3))
ASK(shift_left_pid, FIELD(t->pid, 4))
ASK(shift_right_pid, FIELD(t->pid, 5))
ASK(exists_task, TYPE(struct task, 0))
ASK(exists_earlier, TYPE(struct task___old, 0))
ASK(exists_nowhere, TYPE(struct nowhere, 0))
ASK(exists_hook, TYPE(hook_t, 0))
ASK(size_of_part, TYPE(struct part, 1))
ASK(size_of_nowhere, TYPE(struct nowhere, 1))
ASK(matches_part, TYPE(struct part, 2))
ASK(matches_task, TYPE(struct task, 2))
ASK(value_waiting, CONSTANT(enum state, WAITING, 1))
ASK(value_big, CONSTANT(enum state, BIG, 1))
ASK(value_lost, CONSTANT(enum state, LOST, 1))
ASK(exists_waiting, CONSTANT(enum state, WAITING, 0))
ASK(exists_lost, CONSTANT(enum state, LOST, 0))
ASK(id_in_object, __builtin_btf_type_id(*(struct part *)0, 0))
ASK(id_in_kernel, __builtin_btf_type_id(*(struct part *)0, 1))
ASK(exists_red, CONSTANT(enum color, RED, 0))

/* A bit field: the kernel's offset, width and shifts decide. */
#define BITFIELD(t, field) \
    ({ \
        const void *at = (const void *)t + FIELD(t->field, 0); \
        u64 value = 0; \
        switch (FIELD(t->field, 1)) { \
        case 1: value = *(const u8 *)at; break; \
        case 2: value = *(const u16 *)at; break; \
        case 4: value = *(const u32 *)at; break; \
        case 8: value = *(const u64 *)at; break; \
        } \
        value <<= FIELD(t->field, 4); \
        FIELD(t->field, 3) ? (u64)((s64)value >> FIELD(t->field, 5)) \
                           : value >> FIELD(t->field, 5); \
    })

ASK(load_bits, BITFIELD(t, bits))
ASK(load_minus, BITFIELD(t, minus))

SEC("syscall") u64 store_pid(struct task *t) {
    t->pid = 7;
    return 0;
}
