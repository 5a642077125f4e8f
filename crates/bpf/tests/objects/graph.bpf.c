/* Objects, trees, lists and locks: read by tests/graph.rs. */
#include "fixture.h"

char terms[] SEC("license") = "GPL";

struct node {
    u64 key;
    u64 number;
    u64 hook[4];
    u32 references;
};

struct root {
    u64 opaque[2];
};

extern void *bpf_obj_new_impl(u64 type, void *meta) __ksym;
extern void bpf_obj_drop_impl(void *object, void *meta) __ksym;
extern void *bpf_refcount_acquire_impl(void *object, void *meta) __ksym;
extern int bpf_rbtree_add_impl(struct root *root, void *node, bool (*less)(void *, void *),
                               void *meta, u64 offset) __ksym;
extern void *bpf_rbtree_remove(struct root *root, void *node) __ksym;
extern void *bpf_rbtree_first(struct root *root) __ksym;
extern int bpf_list_push_front_impl(struct root *head, void *node, void *meta, u64 offset) __ksym;
extern int bpf_list_push_back_impl(struct root *head, void *node, void *meta, u64 offset) __ksym;
extern void *bpf_list_pop_front(struct root *head) __ksym;
extern void *bpf_list_pop_back(struct root *head) __ksym;
extern int bpf_res_spin_lock(u32 *lock) __ksym;
extern void bpf_res_spin_unlock(u32 *lock) __ksym;

struct root tree, other, list;
u32 lock_a, lock_b;
u64 seen[16];

#define NEW() ((struct node *)bpf_obj_new_impl(__builtin_btf_type_id(*(struct node *)0, 0), 0))
#define OF(hooked) ((struct node *)((char *)(hooked) - __builtin_offsetof(struct node, hook)))

static bool less(void *a, void *b) {
    return OF(a)->key < OF(b)->key;
}

/* Keys 5, 3, 5, 1, 3: out they come by key, equals in the order in which they went in. */
SEC("syscall") u64 sorted(void *context) {
    u64 keys[5] = {5, 3, 5, 1, 3};
    for (int at = 0; at < 5; at++) {
        struct node *node = NEW();
        if (!node)
            return 100;
        node->key = keys[at];
        node->number = at;
        if (bpf_rbtree_add_impl(&tree, node->hook, less, 0, 0))
            return 101;
    }
    u64 out = 0;
    for (int at = 0; at < 5; at++) {
        void *hook = bpf_rbtree_first(&tree);
        if (!hook || bpf_rbtree_remove(&other, hook) || bpf_rbtree_remove(&tree, hook) != hook)
            return 102;
        seen[at] = OF(hook)->key * 10 + OF(hook)->number;
        bpf_obj_drop_impl(OF(hook), 0);
        out++;
    }
    return bpf_rbtree_first(&tree) ? 103 : out;
}

/* A node that hangs in a tree cannot hang in another place: the second reference is given back. */
SEC("syscall") u64 twice(void *context) {
    struct node *node = NEW();
    if (!node)
        return 100;
    bpf_refcount_acquire_impl(node, 0);
    s64 first = bpf_rbtree_add_impl(&tree, node->hook, less, 0, 0);
    s64 second = bpf_list_push_back_impl(&list, node->hook, 0, 0);
    bpf_rbtree_remove(&tree, node->hook);
    bpf_obj_drop_impl(node, 0);
    return first * 1000 - second;
}

SEC("syscall") u64 listed(void *context) {
    for (int at = 0; at < 4; at++) {
        struct node *node = NEW();
        if (!node)
            return 100;
        node->key = at;
        if (at & 1)
            bpf_list_push_front_impl(&list, node->hook, 0, 0);
        else
            bpf_list_push_back_impl(&list, node->hook, 0, 0);
    }
    u64 order = 0;
    for (int at = 0; at < 4; at++) {
        void *hook = at < 3 ? bpf_list_pop_front(&list) : bpf_list_pop_back(&list);
        if (!hook)
            return 101;
        order = order * 10 + OF(hook)->key;
        bpf_obj_drop_impl(OF(hook), 0);
    }
    return bpf_list_pop_front(&list) ? 102 : order;
}

/* A new object is all zeros, also where an old one lay. */
SEC("syscall") u64 zeroed(void *context) {
    for (int at = 0; at < 3; at++) {
        struct node *node = NEW();
        if (!node)
            return 100;
        if (node->key)
            return 101;
        node->key = 7;
        bpf_obj_drop_impl(node, 0);
    }
    return 0;
}

SEC("syscall") u64 drop_twice(void *context) {
    struct node *node = NEW();
    bpf_obj_drop_impl(node, 0);
    bpf_obj_drop_impl(node, 0);
    return 0;
}

/* 65,536 objects, then none. */
SEC("syscall") u64 too_many(void *context) {
    u64 made = 0;
    while (made < 70000 && NEW())
        made++;
    return made;
}

SEC("syscall") u64 locks(void *context) {
    s64 first = bpf_res_spin_lock(&lock_a), second = bpf_res_spin_lock(&lock_b);
    s64 again = bpf_res_spin_lock(&lock_a);
    bpf_res_spin_unlock(&lock_b);
    bpf_res_spin_unlock(&lock_a);
    s64 later = bpf_res_spin_lock(&lock_a);
    bpf_res_spin_unlock(&lock_a);
    return first || second || later ? 1 : -again;
}

SEC("syscall") u64 unlock_out_of_order(void *context) {
    bpf_res_spin_lock(&lock_a);
    bpf_res_spin_lock(&lock_b);
    bpf_res_spin_unlock(&lock_a);
    return 0;
}

/* What a value owns goes with it: the element, a value that is written over, one that is evicted, an object inside. */
struct __attribute__((packed)) pair {
    u64 key;
    struct node __attribute__((btf_type_tag("kptr"))) *node;
    struct inner {
        struct pair __attribute__((btf_type_tag("kptr"))) *pair[2];
    } inner;
};

struct {
    __uint(type, 1);
    __uint(max_entries, 4);
    __type(key, u32);
    __type(value, struct pair);
} table SEC(".maps");

struct {
    __uint(type, 9);
    __uint(max_entries, 2);
    __type(key, u32);
    __type(value, struct pair);
} recent SEC(".maps");

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*map_delete)(void *map, const void *key) = (void *)3;
static void *(*kptr_xchg)(void *to, void *object) = (void *)194;

#define NEW_PAIR() ((struct pair *)bpf_obj_new_impl(__builtin_btf_type_id(*(struct pair *)0, 0), 0))

/* A value with a node, and with a pair that owns a node, too; 0 if there is no room for one. */
static __noinline u64 fill(struct pair *value)
{
    struct node *node = NEW(), *inner = NEW();
    struct pair *pair = NEW_PAIR();

    if (!value || !node || !inner || !pair)
        return 0;
    return !kptr_xchg(&pair->node, inner) && !kptr_xchg(&value->node, node) &&
           !kptr_xchg(&value->inner.pair[1], pair);
}

SEC("syscall") u64 owned_by_values(void *context)
{
    struct pair empty = {};
    u64 done = 0;

    for (u32 at = 0; at < 30000; at++) {
        u32 key = 1;

        if (map_update(&table, &key, &empty, 0) || !fill(map_lookup(&table, &key)))
            return done;
        if (at % 2 && map_delete(&table, &key))
            return done;
        if (map_update(&recent, &at, &empty, 0) || !fill(map_lookup(&recent, &at)))
            return done;
        done++;
    }
    return done;
}
