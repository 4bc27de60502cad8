/* Counting values: the functions of engine.h, and what they queue. values.cuh has the kernels and pictures
 * them.
 *
 * The workspace, in arrays of 2^log; what is sorted into takes the place of the table, which is not needed
 * any more:
 *
 *     header | bucket codes | bucket keys | window | listed codes | listed keys | workspace of a sort
 *              scratch of the sort          begins   what is sorted                             */
#include "kernels/cuda/counting/values.cuh"
#include <string.h>

/* The one that sorts the table, as pairs of 8 and 8 bytes. It is not stable, but no two values are equal. */
enum { VALUES_RUNG = 8 };

static size_t header_bytes(void)
{
    return (size_t)divide_up(sizeof(struct value_header), 256) * 256;
}

static size_t array_bytes(int log)
{
    return sizeof(uint64_t) << log;
}

/* They are one more, and what follows is aligned as they are. */
static size_t begins_bytes(int log)
{
    return array_bytes(log) + 256;
}

static struct sort_args sort_args_of(const struct counting_table *table, uint64_t *codes, uint64_t *keys,
                              int64_t values)
{
    struct sort_args args = {};
    args.key_bytes = args.value_bytes = sizeof(uint64_t);
    args.count = values;
    args.keys = codes;
    args.values = keys;
    args.scratch_keys = table->buckets.codes;
    args.scratch_values = table->buckets.keys;
    return args;
}

static size_t cuda_values_workspace(const struct engine *engine, int log)
{
    const struct counting_table none = {};
    const struct sort_args args = sort_args_of(&none, NULL, NULL, INT64_C(1) << log);
    size_t workspace = 0;
    if (ladder_workspace((struct cuda_engine *)engine, VALUES_RUNG, &args, &workspace) != HSORT_OK)
        return SIZE_MAX;
    return header_bytes() + 4 * array_bytes(log) + begins_bytes(log) + workspace;
}

/* The arrays of a workspace; the window is as the header says. */
static struct counting_table table_of(void *workspace, int log)
{
    char *arrays = (char *)workspace + header_bytes();
    struct counting_table table = {};
    table.header = (struct value_header *)workspace;
    table.buckets = {(uint64_t *)arrays, (uint64_t *)(arrays + array_bytes(log)),
                     (1u << log) / VALUES_BUCKET - 1};
    table.window = table.begins = (uint64_t *)(arrays + 2 * array_bytes(log));
    table.sorted_codes = (uint64_t *)(arrays + 2 * array_bytes(log) + begins_bytes(log));
    table.sorted_keys = (uint64_t *)((char *)table.sorted_codes + array_bytes(log));
    return table;
}

/* Fetch what the header says, but for its chunks, once all before it in STREAM_WORK is done. */
static hsort_status fetch_header(struct cuda_engine *engine, void *workspace, struct value_header *header)
{
    static_assert(sizeof *header <= sizeof engine->result->codes, "it fits into pinned memory");
    constexpr size_t bytes = offsetof(struct value_header, chunks);
    TRY_CUDA(
        cudaMemcpyAsync(engine->result->codes, workspace, bytes, cudaMemcpyDefault, engine->streams[STREAM_WORK]));
    TRY_CUDA(cudaStreamSynchronize(engine->streams[STREAM_WORK]));
    memcpy(header, engine->result->codes, bytes);
    return HSORT_OK;
}

/* ---- the count ----------------------------------------------------------------------------------------- */

/* Let the window lie around codes low to high, if it is wide enough for them. */
static void lay_window(uint64_t low, uint64_t high, int log, struct counting_table *table)
{
    const uint64_t width = UINT64_C(1) << log;
    if (low > high || high - low >= width)
        return;
    const uint64_t slack = (width - 1 - (high - low)) / 2; // the sample has missed the extremes, if barely
    table->low = min(low - min(slack, low), UINT64_MAX - (width - 1));
    table->width = width;
}

static hsort_status empty_table(struct cuda_engine *engine, const struct counting_table &table, int log)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    struct value_header *header = (struct value_header *)engine->result->codes; // pinned
    TRY_CUDA(cudaStreamSynchronize(stream));                                    // nothing reads it any more
    memset(header, 0, sizeof *header);
    header->low = table.low;
    header->width = table.width;
    TRY_CUDA(cudaMemcpyAsync(table.header, header, sizeof *header, cudaMemcpyDefault, stream));
    TRY_CUDA(cudaMemsetAsync(table.buckets.codes, 0xff, array_bytes(log), stream)); // FREE_PLACE
    TRY_CUDA(cudaMemsetAsync(table.buckets.keys, 0, array_bytes(log), stream));
    if (table.width > 0)
        TRY_CUDA(cudaMemsetAsync(table.window, 0, array_bytes(log), stream));
    return HSORT_OK;
}

template <bool WINDOW, typename K>
static hsort_status queue_value_count(struct cuda_engine *engine, const struct raw_keys *raw, int64_t count,
                                const struct counting_table &table)
{
    const int64_t turns = divide_up(count * sizeof(K), sizeof(uint4) * VALUES_THREADS);
    int cache_log = VALUES_CACHE_LOG;
    while (cache_bytes<K>(cache_log) > engine->block_bytes)
        cache_log--;
    TRY_CUDA(cudaFuncSetAttribute(count_values_kernel<WINDOW, K>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  cache_bytes<K>(cache_log)));
    count_values_kernel<WINDOW>
        <<<(unsigned)min(turns, (int64_t)engine->multiprocessors), VALUES_THREADS, cache_bytes<K>(cache_log),
           engine->streams[STREAM_WORK]>>>(coding_of(raw), (const K *)raw->from, count, table, cache_log);
    TRY_LAUNCH("the count of values");
    return HSORT_OK;
}

static hsort_status cuda_count_values(struct engine *base, int key_bytes, const struct raw_keys *raw,
                                          int64_t count, uint64_t low, uint64_t high, int log, void *workspace,
                                          bool *fits)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    struct counting_table table = table_of(workspace, log);
    struct value_header header;
    *fits = false;
    TRY(kernel_takes("count of values", key_bytes));
    lay_window(low, high, log, &table);
    TRY(empty_table(engine, table, log));
    if (count > 0 && table.width > 0)
        TRY(with_key_type(key_bytes, [&](auto key) {
            return queue_value_count<true, decltype(key)>(engine, raw, count, table);
        }));
    else if (count > 0)
        TRY(with_key_type(key_bytes, [&](auto key) {
            return queue_value_count<false, decltype(key)>(engine, raw, count, table);
        }));
    TRY(fetch_header(engine, workspace, &header));
    *fits = header.full == 0;
    return HSORT_OK;
}

/* ---- lists --------------------------------------------------------------------------------------------- */

/* List the table's values. header->listed: how many there are, more than list.most perhaps. */
static hsort_status make_list(struct cuda_engine *engine, const struct counting_table &table, int log,
                              const struct value_list &list, struct value_header *header)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    TRY_CUDA(cudaMemsetAsync(&table.header->listed, 0, sizeof table.header->listed, stream));
    list_values_kernel<<<(1u << log) / PASS_THREADS, PASS_THREADS, 0, stream>>>(table, list);
    TRY_LAUNCH("the list of values");
    return fetch_header(engine, table.header, header);
}

static hsort_status cuda_list_values(struct engine *base, int log, void *workspace, struct engine_value *list,
                                         int64_t most, int64_t *values)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    const struct counting_table table = table_of(workspace, log);
    struct value_header header;
    static_assert(sizeof *list == 2 * sizeof(uint64_t), "a code and a number of keys");
    *values = -1;
    TRY(kernel_fault("list of values"));
    TRY(make_list(engine, table, log, {&list->code, (uint64_t *)&list->keys, 2, (uint64_t)most}, &header));
    *values = header.listed <= (uint64_t)most ? (int64_t)header.listed : -1;
    return HSORT_OK;
}

static hsort_status cuda_add_values(struct engine *base, int log, void *workspace,
                                        const struct engine_value *list, int64_t values)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    TRY(kernel_fault("sum of values"));
    if (values == 0)
        return HSORT_OK;
    add_values_kernel<<<(unsigned)divide_up(values, PASS_THREADS), PASS_THREADS, 0,
                        engine->streams[STREAM_WORK]>>>(list, values, table_of(workspace, log));
    TRY_LAUNCH("the sum of values");
    return HSORT_OK;
}

/* ---- the sorted keys ----------------------------------------------------------------------------------- */

static hsort_status cuda_order_values(struct engine *base, int log, void *workspace, bool *fits)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    struct counting_table table = table_of(workspace, log);
    struct value_header header;
    *fits = false;
    TRY(kernel_fault("order of values"));
    TRY(make_list(engine, table, log, {table.sorted_codes, table.sorted_keys, 1, UINT64_C(1) << log},
                  &header));
    *fits = header.full == 0 && header.listed <= UINT64_C(1) << log;
    if (!*fits || header.listed == 0)
        return HSORT_OK;
    const uint32_t values = (uint32_t)header.listed, chunks = (uint32_t)divide_up(values, SUMS_CHUNK);
    struct sort_args args = sort_args_of(&table, table.sorted_codes, table.sorted_keys, values);
    args.workspace = (char *)table.sorted_keys + array_bytes(log);
    TRY(ladder_sort(engine, VALUES_RUNG, &args));
    table.sorted_codes = (uint64_t *)args.sorted_keys;
    table.sorted_keys = (uint64_t *)args.sorted_values;
    chunk_sums_kernel<<<chunks, SUMS_THREADS, 0, stream>>>(table, values);
    value_begins_kernel<<<chunks, SUMS_THREADS, 0, stream>>>(table, values);
    TRY_LAUNCH("the begins of values");
    TRY_CUDA(cudaStreamSynchronize(stream));
    return HSORT_OK;
}

static hsort_status cuda_write_values(struct engine *base, int key_bytes, const struct raw_keys *raw,
                                          int log, void *workspace, int64_t from, int64_t until, void *out)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const struct counting_table table = table_of(workspace, log);
    const struct coding coding = {raw->map, false, !raw->map.identity && raw->decode};
    const unsigned blocks =
        (unsigned)divide_up(until - from + sizeof(uint4), MSD_WRITE_THREADS * MSD_WRITE_KEYS);
    TRY(kernel_takes("write of values", key_bytes));
    if (from == until)
        return HSORT_OK;
    return with_key_type(key_bytes, [&](auto key) {
        write_sorted_kernel<<<blocks, MSD_WRITE_THREADS, 0, stream>>>(coding, table, from, until,
                                                                      (decltype(key) *)out);
        TRY_LAUNCH("a write of sorted keys");
        return HSORT_OK;
    });
}

const struct engine_counting_ops cuda_counting_ops = {
    .workspace = cuda_values_workspace,
    .count = cuda_count_values,
    .list = cuda_list_values,
    .add = cuda_add_values,
    .order = cuda_order_values,
    .write = cuda_write_values,
};
