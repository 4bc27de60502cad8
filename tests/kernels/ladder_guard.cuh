/* Buffers for a rung under test: keys, values and their scratch between stretches of poison, each at an
 * address that is a multiple of its element's size and of nothing larger.
 *
 *     GUARD + element bytes     the elements     GUARD
 *     a5a5a5a5a5a5a5a5a5a5a5a5|k0 k1 .. kn-1   |a5a5a5a5a5a5     scratch is poison throughout
 *
 * In bare mode, for compute-sanitizer, memory ends with the last element and nothing is poisoned. So the tool
 * itself sees reads beyond the end, and reads of memory that nothing has written. */
#ifndef LADDER_GUARD_CUH
#define LADDER_GUARD_CUH

#include "tests/support/check.h"
#include "tests/kernels/ladder_verify.cuh"

enum { GUARD = 1024, POISON = 0xa5 };

struct guarded {
    unsigned char *memory;
    void *elements; /* NULL if they have 0 bytes each */
    size_t front, bytes, back;
};

/* What one sort works on; its args point into the buffers. */
struct guarded_sort {
    struct cuda_engine *engine;
    bool bare;
    struct sort_args args;
    struct guarded keys, scratch_keys, values, scratch_values, workspace;
};

static inline struct guarded guarded_make(struct guarded_sort *g, size_t element_bytes, size_t count,
                                          bool is_aligned)
{
    struct guarded made = {};
    if (element_bytes == 0)
        return made;
    made.bytes = element_bytes * count;
    made.front = is_aligned ? (g->bare ? 0 : GUARD) : (g->bare ? 0 : GUARD) + element_bytes;
    made.back = g->bare ? 0 : GUARD;
    const size_t bytes = made.front + made.bytes + made.back;
    if (bytes == 0)
        return made;
    MUST(g->engine->base.ops->alloc(&g->engine->base, bytes, (void **)&made.memory));
    made.elements = made.memory + made.front;
    device_scope scope(g->engine);
    if (!g->bare)
        MUST(cuda_check(cudaMemsetAsync(made.memory, POISON, bytes, g->engine->streams[STREAM_WORK]), "poison"));
    return made;
}

/* Make buffers for `count` keys of this type and for the workspace of `rung`, and fill the keys from original [count]. */
static inline void guarded_sort_make(struct guarded_sort *g, struct cuda_engine *engine, bool bare, int rung,
                                    struct ladder_type type, const void *original, int64_t count)
{
    size_t workspace_bytes;
    *g = {};
    g->engine = engine;
    g->bare = bare;
    g->args.key_bytes = type.key_bytes;
    g->args.value_bytes = type.value_bytes;
    g->args.count = count;
    MUST(ladder_workspace(engine, rung, &g->args, &workspace_bytes));
    g->keys = guarded_make(g, type.key_bytes, count, false);
    g->scratch_keys = guarded_make(g, type.key_bytes, count, false);
    g->values = guarded_make(g, type.value_bytes, count, false);
    g->scratch_values = guarded_make(g, type.value_bytes, count, false);
    g->workspace = guarded_make(g, 1, workspace_bytes, true);
    g->args.keys = g->keys.elements;
    g->args.scratch_keys = g->scratch_keys.elements;
    g->args.values = g->values.elements;
    g->args.scratch_values = g->scratch_values.elements;
    g->args.workspace = g->workspace.elements;
    if (count > 0) {
        MUST(engine->base.ops->copy(&engine->base, STREAM_WORK, g->args.keys, original, g->keys.bytes));
        fill_values(engine, type.value_bytes, g->args.values, count);
    }
}

static __global__ void not_poison_kernel(const unsigned char *memory, size_t bytes, unsigned long long *found)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < bytes;
         i += (size_t)gridDim.x * blockDim.x) {
        if (memory[i] != POISON)
            atomicAdd(found, 1ull);
    }
}

static inline void find_spoilt(struct guarded_sort *g, const unsigned char *memory, size_t bytes,
                               unsigned long long *found)
{
    const unsigned blocks = bytes > 65536 ? 1024 : 4;
    if (bytes > 0)
        not_poison_kernel<<<blocks, 256, 0, g->engine->streams[STREAM_WORK]>>>(memory, bytes, found);
}

/* Free the buffers. Returns how many bytes around them were overwritten; `with_scratch`: also how many in scratch. */
static inline unsigned long long guarded_sort_free(struct guarded_sort *g, bool with_scratch)
{
    const struct engine_ops *ops = g->engine->base.ops;
    const struct guarded all[] = {g->scratch_keys, g->scratch_values, g->keys, g->values, g->workspace};
    unsigned long long *found, spoilt = 0;
    if (!g->bare) {
        MUST(ops->alloc(&g->engine->base, sizeof *found, (void **)&found));
        device_scope scope(g->engine);
        MUST(cuda_check(cudaMemsetAsync(found, 0, sizeof *found, g->engine->streams[STREAM_WORK]), "clear"));
        for (int i = 0; i < 5; i++) {
            find_spoilt(g, all[i].memory, all[i].front, found);
            find_spoilt(g, all[i].memory + all[i].front + all[i].bytes, all[i].back, found);
            if (with_scratch && i < 2)
                find_spoilt(g, all[i].memory + all[i].front, all[i].bytes, found);
        }
        MUST(cuda_check(cudaGetLastError(), "look for poison"));
        MUST(ops->copy(&g->engine->base, STREAM_WORK, &spoilt, found, sizeof spoilt));
        MUST(ops->stream_synchronize(&g->engine->base, STREAM_WORK));
        ops->free(&g->engine->base, found);
    }
    for (const struct guarded &buffer : all)
        ops->free(&g->engine->base, buffer.memory);
    return spoilt;
}

template <typename K>
static __global__ void differ_kernel(const K *a, const K *b, int64_t count, unsigned long long *differ)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        if (a[i] != b[i])
            atomicAdd(differ, 1ull);
    }
}

/* Count the positions at which a and b [count] differ; elements have 4 or 8 bytes. */
static inline unsigned long long count_different(struct cuda_engine *engine, int element_bytes, const void *a,
                                                 const void *b, int64_t count)
{
    const struct engine_ops *ops = engine->base.ops;
    unsigned long long *differ, result;
    MUST(ops->alloc(&engine->base, sizeof *differ, (void **)&differ));
    {
        device_scope scope(engine);
        cudaStream_t stream = engine->streams[STREAM_WORK];
        MUST(cuda_check(cudaMemsetAsync(differ, 0, sizeof *differ, stream), "clear"));
        if (element_bytes == 4)
            differ_kernel<<<1024, 256, 0, stream>>>((const uint32_t *)a, (const uint32_t *)b, count, differ);
        else
            differ_kernel<<<1024, 256, 0, stream>>>((const uint64_t *)a, (const uint64_t *)b, count, differ);
        MUST(cuda_check(cudaGetLastError(), "compare"));
    }
    MUST(ops->copy(&engine->base, STREAM_WORK, &result, differ, sizeof result));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
    ops->free(&engine->base, differ);
    return result;
}

#endif
