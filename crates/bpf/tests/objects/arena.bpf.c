/* Variables in an arena: read by tests/loader.rs. */
#include "fixture.h"

char terms[] SEC("license") = "GPL";

#define __arena __attribute__((address_space(1)))

struct {
    __uint(type, 33);
    __uint(map_flags, 1 << 10);
    __uint(max_entries, 4);
} arena SEC(".maps");

u64 __arena first = 5;
u64 __arena second[3] = {6, 7, 8};

extern void __arena *bpf_arena_alloc_pages(void *map, void __arena *address, u32 pages, s32 node,
                                           u64 flags) __ksym;

SEC("syscall") u64 sum(void *context) {
    second[2] += 10;
    return first + second[2];
}

SEC("syscall") u64 pages(void *context) {
    u64 __arena *page = bpf_arena_alloc_pages(&arena, 0, 3, -1, 0);
    if (!page)
        return 0;
    *page = 1;
    return first + *page;
}

SEC("syscall") u64 too_many(void *context) {
    return bpf_arena_alloc_pages(&arena, 0, 4, -1, 0) != 0;
}
