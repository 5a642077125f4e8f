/* An array of maps: read by tests/nested.rs. */
#include "fixture.h"

char terms[] SEC("license") = "GPL";

#define __array(name, type) typeof(type) *name[]

struct queue {
    __uint(type, 22);
    __uint(max_entries, 2);
    __type(value, u32);
} low SEC(".maps"), high SEC(".maps");

struct {
    __uint(type, 12);
    __uint(max_entries, 3);
    __type(key, u32);
    __array(values, struct queue);
} queues SEC(".maps") = {
    .values = {[0] = &low, [2] = &high},
};

static void *(*lookup)(void *map, const void *key) = (void *)1;
static long (*update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*push)(void *map, const void *value, u64 flags) = (void *)87;
static long (*pop)(void *map, void *value) = (void *)88;

/* 30 and 31 go into the third, 10 into the first; out they come in that order. */
SEC("syscall") u64 through(void *context) {
    u32 at = 2, value = 30;
    void *queue = lookup(&queues, &at);
    if (!queue || push(queue, &value, 0))
        return 1;
    value = 31;
    if (push(queue, &value, 0) || !push(queue, &value, 0))
        return 2;
    at = 0;
    value = 10;
    queue = lookup(&queues, &at);
    if (!queue || push(queue, &value, 0))
        return 3;
    u32 first, second, third;
    if (pop(&high, &first) || pop(&high, &second) || pop(&low, &third))
        return 4;
    return first * 10000 + second * 100 + third;
}

SEC("syscall") u64 absent(void *context) {
    u32 empty = 1, beyond = 3;
    return lookup(&queues, &empty) == 0 && lookup(&queues, &beyond) == 0;
}

SEC("syscall") u64 replace(void *context) {
    u32 at = 1;
    return update(&queues, &at, &at, 0);
}
