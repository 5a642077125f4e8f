/* Calls of a header's inline function: read by tests/loader.rs. */
#include "fixture.h"
#include "inlined.h"

char terms[] SEC("license") = "GPL";

SEC("struct_ops/second") u64 second(u64 *context)
{
    return context[0];
}

SEC("struct_ops/caller") u64 caller(u64 *context)
{
    u64 first = context[0];
    if (first)
        first += of_header(first);
    return of_header(first);
}
