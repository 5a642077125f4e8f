extern u64 present(u64 x) __ksym;

static inline __attribute__((always_inline)) u64 of_header(u64 x)
{
    return present(x + 1) + 2;
}
