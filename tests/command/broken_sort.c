/* A hypersort whose sort is wrong where BROKEN_SORT says so: the linker puts __wrap_hsort_sort() in the place
 * of hsort_sort() (--wrap), which then damages what the real one has sorted; and the same of hsort_sort_to(). The
 * last rank does it.
 *     swap   its first and last keys change places      lose   its last key becomes the one before it
 *     idle   from the second sort on: nothing is sorted, and the result is what the memory held before */
#include <stdlib.h>
#include <string.h>
#include "hypersort.h"

hsort_status __real_hsort_sort(hsort_context *ctx, hsort_type type, hsort_order order, void *keys,
                               int64_t count, void *stream);
hsort_status __wrap_hsort_sort(hsort_context *ctx, hsort_type type, hsort_order order, void *keys,
                               int64_t count, void *stream);
hsort_status __real_hsort_sort_to(hsort_context *ctx, hsort_type type, hsort_order order, const void *in,
                                  int64_t count, void *out, int64_t out_count, void *stream);
hsort_status __wrap_hsort_sort_to(hsort_context *ctx, hsort_type type, hsort_order order, const void *in,
                                  int64_t count, void *out, int64_t out_count, void *stream);

static void damage_keys(hsort_type type, void *keys, int64_t count)
{
    const char *damage = getenv("BROKEN_SORT");
    const size_t bytes = hsort_type_bytes(type);
    char *first = keys, *last = first + ((size_t)count - 1) * bytes;
    char kept[8];
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!damage || strcmp(damage, "idle") == 0 || rank != size - 1 || count < 2)
        return;
    memcpy(kept, last, bytes);
    memcpy(last, strcmp(damage, "swap") == 0 ? first : last - bytes, bytes);
    if (strcmp(damage, "swap") == 0)
        memcpy(first, kept, bytes);
}

hsort_status __wrap_hsort_sort(hsort_context *ctx, hsort_type type, hsort_order order, void *keys,
                               int64_t count, void *stream)
{
    const hsort_status status = __real_hsort_sort(ctx, type, order, keys, count, stream);
    damage_keys(type, keys, count);
    return status;
}

hsort_status __wrap_hsort_sort_to(hsort_context *ctx, hsort_type type, hsort_order order, const void *in,
                                  int64_t count, void *out, int64_t out_count, void *stream)
{
    static int sorts;
    const char *damage = getenv("BROKEN_SORT");
    if (sorts++ > 0 && damage && strcmp(damage, "idle") == 0)
        return HSORT_OK;
    const hsort_status status = __real_hsort_sort_to(ctx, type, order, in, count, out, out_count, stream);
    damage_keys(type, out, out_count);
    return status;
}
