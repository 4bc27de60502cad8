/* The numbers that speed depends on, and which rung is taken when none is asked for. Results depend on none
 * of them. tests/bench_ladder measures what a change is worth. */
#ifndef TUNING_H
#define TUNING_H

#include <stdint.h>

enum {
    PAGEABLE_BYTES_MIN = 1 << 20, /* below, the driver's own copy is as good */

    /* rung 1 */
    BITONIC_GLOBAL_THREADS = 256,

    /* rung 7: threads per block, keys per thread by key bytes. Two blocks share a multiprocessor (64
     * registers per thread); a tile and its tables fit into 64 KiB, the least that any supported device
     * has. */
    ONESWEEP_THREADS = 512,
    ONESWEEP_KEYS_4 = 16,
    ONESWEEP_KEYS_8 = 12,
    ONESWEEP_HISTOGRAM_KEYS = 8,   /* per thread and turn */
    ONESWEEP_HISTOGRAM_BLOCKS = 4, /* per multiprocessor */

    /* merge: odd numbers of keys per thread, so that the threads of a warp start in different banks */
    MERGE_THREADS = 256,
    MERGE_KEYS_4 = 15,
    MERGE_KEYS_8 = 11,

    /* encode, decode, inspect */
    PASS_THREADS = 256,
    PASS_KEYS = 8,
    INSPECT_BLOCKS = 8 /* per multiprocessor */
};

/* The rung for `count` keys of `key_bytes`: the first row that covers them. */
static inline int tuning_rung(int key_bytes, int64_t count)
{
    static const struct {
        int key_bytes;
        int64_t up_to;
        int rung;
    } rows[] = {
        {4, INT64_MAX, 7},
        {8, INT64_MAX, 7},
    };
    int row = 0;
    while (rows[row].key_bytes != key_bytes || rows[row].up_to < count)
        row++;
    return rows[row].rung;
}

#endif
