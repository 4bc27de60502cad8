/* A hypersort that is wrong where BROKEN_SORT says so: the linker puts __wrap_... in the place of a function
 * (--wrap). Keys of hsort_sort_to() are damaged when they are sorted. Keys that the command sorts, by the host
 * engine, are damaged between the sort and the look at its result: at the second inspect(). The last rank does it.
 *     swap   its first and last keys change places      lose   its last key becomes the one before it
 *     idle   from the second sort on: nothing is sorted, and the result is what the memory held before
 *     reread the last byte that is read back of an output is another one; not so for files in the directory of runs, nor, if
 *            BROKEN_FILE is given, for files other than that */
#include <stdlib.h>
#include <string.h>
#include "hypersort.h"
#include "kernels/engine.h"
#include "src/files/file.h"

hsort_status __real_file_read_back_at(const struct file_out *file, int64_t at, size_t bytes, void *to);
hsort_status __wrap_file_read_back_at(const struct file_out *file, int64_t at, size_t bytes, void *to);
hsort_status __real_engine_open_host(int threads, size_t memory_limit, struct engine **engine);
hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine);

hsort_status __real_hsort_sort_to(hsort_context *ctx, hsort_type type, hsort_order order, const void *in,
                                  int64_t count, void *out, int64_t out_count, void *stream);
hsort_status __wrap_hsort_sort_to(hsort_context *ctx, hsort_type type, hsort_order order, const void *in,
                                  int64_t count, void *out, int64_t out_count, void *stream);

/* Is this damage asked for, on this rank? */
static int is_asked(const char *word)
{
    const char *damage = getenv("BROKEN_SORT");
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return damage && strcmp(damage, word) == 0 && rank == size - 1;
}

static void damage_keys(hsort_type type, void *keys, int64_t count)
{
    const size_t bytes = hsort_type_bytes(type);
    char *first = keys, *last = first + ((size_t)count - 1) * bytes;
    char kept[8];
    const int swaps = is_asked("swap");
    if ((!swaps && !is_asked("lose")) || count < 2)
        return;
    memcpy(kept, last, bytes);
    memcpy(last, swaps ? first : last - bytes, bytes);
    if (swaps)
        memcpy(first, kept, bytes);
}

static const struct engine_ops *host;
static int sorts; /* by hsort_sort_to() */

static hsort_status inspect_damaged(struct engine *engine, struct keymap map, const void *keys, int64_t count,
                                    struct engine_inspection *result)
{
    static int looks;
    if (looks++ > 0 && sorts == 0)
        damage_keys(map.key_bytes == 4 ? HSORT_U32 : HSORT_U64, (void *)keys, count);
    return host->inspect(engine, map, keys, count, result);
}

hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine)
{
    static struct engine_ops ops;
    const hsort_status status = __real_engine_open_host(threads, memory_limit, engine);
    if (status != HSORT_OK)
        return status;
    host = (*engine)->ops;
    ops = *host;
    ops.inspect = inspect_damaged;
    (*engine)->ops = &ops;
    return HSORT_OK;
}

hsort_status __wrap_hsort_sort_to(hsort_context *ctx, hsort_type type, hsort_order order, const void *in,
                                  int64_t count, void *out, int64_t out_count, void *stream)
{
    const char *damage = getenv("BROKEN_SORT");
    if (sorts++ > 0 && damage && strcmp(damage, "idle") == 0)
        return HSORT_OK;
    const hsort_status status = __real_hsort_sort_to(ctx, type, order, in, count, out, out_count, stream);
    damage_keys(type, out, out_count);
    return status;
}

hsort_status __wrap_file_read_back_at(const struct file_out *file, int64_t at, size_t bytes, void *to)
{
    const hsort_status status = __real_file_read_back_at(file, at, bytes, to);
    const char *only = getenv("BROKEN_FILE");
    if (bytes > 0 && is_asked("reread") && (!only || strstr(file->path, only)) &&
        !strstr(file->path, "runs/"))
        ((char *)to)[bytes - 1] ^= 1;
    return status;
}
