/* What the files of kernels/host/ share: the engine's state, and the groups of functions that not every
 * engine has. */
#ifndef HOST_ENGINE_H
#define HOST_ENGINE_H

#include "kernels/base/key_width.h"
#include "kernels/engine.h"

enum {
    PARALLEL_COUNT = 1 << 14, // from so many keys on, waking the threads pays
    PARALLEL_MERGE = 1 << 15  // the same for merges, and for a step of the bitonic network
};

struct host_allocation; /* engine_host.c */

struct host_engine {
    struct engine base;
    int threads;
    size_t memory_limit, bytes_in_use;   /* bytes that alloc() has handed out, if there is a limit (0: none) */
    struct host_allocation *allocations; /* of those bytes, the youngest first */
};

static inline int host_threads(const struct engine *engine)
{
    return ((const struct host_engine *)engine)->threads;
}

/* Where part `part` of `count` keys begins, if parts are as equal as can be; part `parts` begins at the end of all. */
static inline int64_t part_begin(int64_t count, int part, int parts)
{
    return count / parts * part + (part < count % parts ? part : count % parts);
}

/* Bits up to the highest one set; 0 for 0. */
static inline int bit_width(uint128 bits)
{
    const uint64_t upper = (uint64_t)(bits >> 64), lower = (uint64_t)bits;
    return upper ? 128 - __builtin_clzll(upper) : lower ? 64 - __builtin_clzll(lower) : 0;
}

/* The place where a kernel can be made to fail: nothing else makes one fail on the host. */
static inline hsort_status kernel_passes(const char *name)
{
    return fault_hit(FAULT_KERNEL) ? status_fail(HSORT_INTERNAL, "%s on the host failed", name) : HSORT_OK;
}

/* The same for a kernel that takes keys: the only place that asks whether the host engine knows their width. */
static inline hsort_status kernel_takes(const char *name, int key_bytes)
{
    TRY(key_width_check(key_bytes));
    return kernel_passes(name);
}

/* The same for a kernel that looks at keys as they lie: counted ones, too. */
static inline hsort_status kernel_looks(const char *name, int key_bytes)
{
    TRY(any_width_check(key_bytes));
    return kernel_passes(name);
}

extern const struct engine_partition_ops host_partition_ops; /* partition.c */
extern const struct engine_pack_ops host_pack_ops;           /* pack.c */
extern const struct engine_pair_ops host_pair_ops;           /* pairs.c */

/* radix.c: sort keys [count] of `key_bytes` (4, 8 or 16) ascending; the result is in keys. scratch [count] is
 * overwritten or not touched. workspace [radix_workspace(threads)] is aligned to 128 bytes. */
void radix_sort(int threads, int key_bytes, void *keys, void *scratch, int64_t count, void *workspace);
size_t radix_workspace(int threads);

/* bitonic.c: sort keys [count] likewise, in place. */
void bitonic_sort(int threads, int key_bytes, void *keys, int64_t count);

/* merge.c: merge runs a [a_count] and b [b_count] of keys of `key_bytes` (4, 8 or 16) into out [a_count + b_count],
 * which overlaps neither. Equal keys: those of `a` first. merge_alone(): by the calling thread alone. */
void merge_runs(int threads, int key_bytes, const void *a, int64_t a_count, const void *b, int64_t b_count,
                void *out);
void merge_alone(int key_bytes, const void *a, int64_t a_count, const void *b, int64_t b_count, void *out);

/* How many of the first `rank` keys of the merged whole are of a. */
int64_t merge_cut(int key_bytes, const void *a, int64_t a_count, const void *b, int64_t b_count,
                  int64_t rank);

/* merge_many.c: merge k >= 1 runs of keys of `key_bytes` (4, 8 or 16) that lie one behind the other in runs
 * [run_offset[k]], run i from run_offset[i] on; out is as long and overlaps nothing. Returns whichever of the two
 * holds the result; the other holds nothing of use. Equal keys: in the order of the runs. */
void *merge_many(int threads, int key_bytes, void *runs, const int64_t *run_offset, int k, void *out);

/* How many keys of a run [count] are less than `code`, or, if or_equal, not greater. */
int64_t merge_find(int key_bytes, const void *keys, int64_t count, key_code code, bool or_equal);

/* keys.c: to[i] = the code of from[i]; decode: the key of the code from[i]. [count] each; `to` may be `from`. */
void map_keys(int threads, struct keymap map, bool decode, void *to, const void *from, int64_t count);

/* out[from] .. out[until - 1] = key. */
void repeat_key(int key_bytes, key_code key, void *out, int64_t from, int64_t until);

/* engine_ops.inspect(). */
void inspect_keys(int threads, struct keymap map, const void *keys, int64_t count,
                  struct engine_inspection *found);

/* engine_pair_ops.split(): partition.c; its part of the workspace. */
size_t host_split_workspace(int threads);
hsort_status host_split_pairs(struct engine *engine, const struct engine_pair_regions *regions, int64_t first,
                              const struct engine_map *map, int64_t *counts);

/* engine_ops of these names: codes.c; and the check where they fail. */
hsort_status host_make_codes(struct engine *engine, int code_bytes, void *codes, int64_t count,
                             const struct key_field *fields, int field_count, int position_bits, int64_t first);
hsort_status host_split_codes(struct engine *engine, int code_bytes, const void *codes, int64_t count,
                              int position_bits, int64_t *positions, struct keymap map, void *keys);
hsort_status host_check_codes(int code_bytes, int field_count);

/* engine_ops of these names: elements.c. */
hsort_status host_take(struct engine *engine, const struct engine_take *take, int64_t *outside);
hsort_status host_place(struct engine *engine, size_t element_bytes, void *to, int64_t to_count, const void *from,
                        const int64_t *positions, int64_t first, int64_t count, int64_t *outside);

hsort_status host_inspect_elements(struct engine *engine, const struct engine_elements *elements,
                                   struct engine_inspection *result);

/* engine_ops of these names: counted.c. */
hsort_status host_count_keys(struct engine *engine, int key_bytes, const void *keys, int64_t count, int64_t *counts);
hsort_status host_write_counted(struct engine *engine, int key_bytes, const struct engine_counted *counted, int64_t first,
                                int64_t count, void *out);

/* engine_ops of these names: runs.c. */
hsort_status host_count_runs(struct engine *engine, struct engine_runs *runs);
hsort_status host_write_runs(struct engine *engine, const struct engine_runs *runs);

#endif
