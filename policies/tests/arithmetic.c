/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The schedulers' pure arithmetic, compiled for the host. Reads one operation a line, prints its result; tests/arithmetic.rs
 * compares with its own model. See there for the operations.
 */
#include "weights.bpf.h"
#include "rfs_sums.bpf.h"
#include "cfs2623_math.bpf.h"

int printf(const char *format, ...);
int scanf(const char *format, ...);

static struct rfs_sums sums;

static void print_sums(void)
{
    printf("%llu %lld %llu %u %llu %llu %llu\n", sums.time_norm_base, sums.time_sum_off, sums.time_norm_inc,
           sums.inc_log2, sums.time_sum_max, sums.weight_sum_app, sums_average(&sums));
}

int main(void)
{
    char operation;
    u64 a, b, c;

    while (scanf(" %c %llu %llu %llu", &operation, &a, &b, &c) == 4) {
        switch (operation) {
        case 't': /* table entry of nice a - 20; inverse with b fraction bits */
            printf("%u %u %u %u\n", nice_weight[a], nice_inverse[a], nice_shift[a],
                   inverse_of(nice_weight[a], (u32)b));
            break;
        case 'v': /* a ns of a task of index b */
            printf("%llu\n", virtual_time(a, nice_weight[b], nice_inverse[b]));
            break;
        case 'm':
            printf("%llu\n", mul_shift_right(a, (u32)b, (u32)c));
            break;
        case 'w': /* first table's entry of nice a - 20 */
            printf("%u %u\n", first_weight[a], first_inverse[a]);
            break;
        case 'd': /* a ns * weight b / load c, to the nearest and, as before -rc3, below */
            printf("%llu %llu\n", calc_delta_mine(a, b, inverse_of_load(c, true), true),
                   calc_delta_mine(a, b, inverse_of_load(c, false), false));
            break;
        case 'k': /* key distance of wait_runtime a (two's complement) at index b, and as -rc1 had it; granularity */
            printf("%lld %lld %lld %lld\n", key_distance((s64)a, nice_weight[b], nice_inverse[b], false),
                   key_distance((s64)a, nice_weight[b], nice_inverse[b], true),
                   niced_granularity(c, nice_weight[b], nice_inverse[b], true),
                   niced_granularity(c, nice_weight[b], nice_inverse[b], false));
            break;
        case '+': /* time_norm a, shift b, log2 of the bound c */
            sums_add(&sums, a, 1ULL << b, (u32)c);
            print_sums();
            break;
        case '-':
            sums_remove(&sums, a, 1ULL << b, (u32)c);
            print_sums();
            break;
        case 'g': /* the current task advances by a (two's complement), shift b */
            sums_advance(&sums, (s64)a, 1ULL << b);
            print_sums();
            break;
        case '0':
            sums = (struct rfs_sums){};
            printf("\n");
            break;
        default:
            return 1;
        }
    }
    return 0;
}
