/* How long sorts of what travels with keys take, beside CUB's sorts of pairs and beside copies; all in device memory.
 *
 *     bench_records KEYS INPUT,... RECORDS RECORD_INPUT,... [REPEATS]     mpirun: so many on all ranks together; CUB only on one rank
 *
 *     argsort, pairs      KEYS
 *     records             2^26 of 32 and 64 bytes, RECORDS of 100, by a u64: `records` in place, `records_to` into another array
 *
 * Prints a row for each call, type, bytes that travel, and input: the median of REPEATS (5) calls of the slowest rank, in ms.
 * `cub` is CUB's stable sort of the same keys with values of that many bytes; beside an argsort, with an index of the key's size.
 * For floats it sorts their codes, because CUB has another order of zeros and NaNs. `argsort and copy` is what records take at
 * least: an argsort of their keys, and a copy that reads and writes each record once. Every result is checked: on one rank against
 * CUB's, on more ranks by order and fingerprint. Without a GPU it exits with 77. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <cub/cub.cuh>
#include <mpi.h>
#include "kernels/engine.h"
#include "src/files/input.h"
#include "src/hypersort.h"

static int ranks, rank, repeats = 5, wrong;
static int64_t total, count, first;
static hsort_context *ctx;
static struct engine *engine;

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "bench_records: %s: %s %s %s\n", what, status_text(), ctx ? hsort_last_error(ctx) : "",
            cudaGetErrorString(cudaGetLastError()));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#define MUST(call) must((call) == HSORT_OK, #call)
#define MUST_CUDA(call) must((call) == cudaSuccess, #call)

/* ---- arrays and inputs ------------------------------------------------------------------------------------ */

struct device_array {
    void *memory = nullptr;
    size_t bytes;
    explicit device_array(size_t wanted) : bytes(wanted) { MUST_CUDA(cudaMalloc(&memory, bytes + 1)); }
    device_array(const device_array &) = delete;
    ~device_array() { cudaFree(memory); }
    template <typename T> T *as() const { return (T *)memory; }
};

static struct input input_of(hsort_type type, const std::string &word)
{
    struct input input = {};
    MUST(input_parse(word.c_str(), &input));
    input.type = type;
    input.count = total;
    input.seed = 20261124;
    return input;
}

static void fill_keys(hsort_type type, const std::string &word, void *keys)
{
    const struct input input = input_of(type, word);
    MUST(engine->ops->yardstick->fill(engine, &input, first, count, keys));
    MUST(engine->ops->stream_synchronize(engine, STREAM_WORK));
}

/* values[i] = its position. */
template <typename V>
static __global__ void number_kernel(V *values, int64_t first, int64_t count)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] = (V)(first + i);
}

/* Write the words of a record behind its key: each is another function of the key, and the last one is the position. */
static __global__ void records_kernel(uint32_t *records, const uint64_t *keys, int words, int64_t first, int64_t count)
{
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, i = at / words;
    const int word = (int)(at % words);
    if (i < count)
        records[at] = word < 2           ? (uint32_t)(keys[i] >> 32 * word)
                      : word < words - 1 ? (uint32_t)(keys[i] * 0x9e3779b97f4a7c15u >> word)
                                         : (uint32_t)(first + i);
}

/* Count records that are out of order, torn, or equal and not in the order of their positions; and, with all keys [count] as
 * they came (otherwise NULL), records that have another key than came at their position. If there are none, each came once. */
static __global__ void check_records_kernel(const uint32_t *records, int words, const uint64_t *keys, int64_t count,
                                            unsigned long long *bad)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const uint32_t *own = records + i * words, *before = own - words;
    const uint64_t key = own[0] | (uint64_t)own[1] << 32;
    bool good = !keys || (own[words - 1] < count && keys[own[words - 1]] == key);
    for (int word = 2; word < words - 1; word++)
        good = good && own[word] == (uint32_t)(key * 0x9e3779b97f4a7c15u >> word);
    if (i > 0) {
        const uint64_t last = before[0] | (uint64_t)before[1] << 32;
        good = good && (last < key || (last == key && before[words - 1] < own[words - 1]));
    }
    if (!good)
        atomicAdd(bad, 1ull);
}

template <typename A, typename B>
static __global__ void compare_kernel(const A *a, const B *b, int64_t count, unsigned long long *bad)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && (uint64_t)a[i] != (uint64_t)b[i])
        atomicAdd(bad, 1ull);
}

enum { THREADS = 256 };
static unsigned blocks(int64_t items) { return (unsigned)((items + THREADS - 1) / THREADS + (items == 0)); }

/* Run check(bad), and count a wrong result if *bad is then not 0 on any rank. */
template <typename F>
static bool finds_nothing(F check)
{
    device_array bad(sizeof(unsigned long long));
    unsigned long long found;
    MUST_CUDA(cudaMemset(bad.memory, 0, bad.bytes));
    check(bad.as<unsigned long long>());
    MUST_CUDA(cudaMemcpy(&found, bad.memory, sizeof found, cudaMemcpyDeviceToHost));
    MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    wrong += found != 0;
    return found == 0;
}

/* ---- time --------------------------------------------------------------------------------------------------- */

static double median(std::vector<double> times)
{
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

/* Return the median milliseconds of call(), each after prepare(); the first call is not counted. */
template <typename P, typename C>
static double time_of(P prepare, C call)
{
    std::vector<double> times;
    for (int i = -1; i < repeats; i++) {
        prepare();
        MUST_CUDA(cudaDeviceSynchronize());
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        call();
        MUST_CUDA(cudaDeviceSynchronize());
        double mine = MPI_Wtime() - begin;
        MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (i >= 0)
            times.push_back(mine * 1e3);
    }
    return median(times);
}

static void print_row(const char *call, hsort_type type, size_t bytes, const std::string &word, double ms, double beside,
                      const char *beside_what, bool good)
{
    if (rank == 0)
        printf("%d,%s,%s,%zu,%s,%lld,%.3f,%s,%.3f,%.3f,%s\n", ranks, call, hsort_type_name(type), bytes, word.c_str(),
               (long long)total, ms, beside_what, beside, beside > 0 ? beside / ms : 0, good ? "right" : "WRONG");
    fflush(stdout);
}

/* ---- CUB ---------------------------------------------------------------------------------------------------- */

/* Keys and values in order, and the time that the sort takes. On one rank. */
template <typename K, typename V>
struct cub_sort {
    device_array keys[2], values[2], workspace;
    K *sorted_keys;
    V *sorted_values;

    static size_t workspace_bytes()
    {
        size_t bytes = 0;
        cub::DoubleBuffer<K> k;
        cub::DoubleBuffer<V> v;
        MUST_CUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, k, v, count));
        return bytes;
    }

    cub_sort()
        : keys{device_array(count * sizeof(K)), device_array(count * sizeof(K))},
          values{device_array(count * sizeof(V)), device_array(count * sizeof(V))}, workspace(workspace_bytes())
    {
    }

    double run(const void *from)
    {
        return time_of(
            [&] {
                MUST_CUDA(cudaMemcpy(keys[0].memory, from, count * sizeof(K), cudaMemcpyDeviceToDevice));
                number_kernel<<<blocks(count), THREADS>>>(values[0].as<V>(), first, count);
            },
            [&] {
                cub::DoubleBuffer<K> k(keys[0].as<K>(), keys[1].as<K>());
                cub::DoubleBuffer<V> v(values[0].as<V>(), values[1].as<V>());
                MUST_CUDA(cub::DeviceRadixSort::SortPairs(workspace.memory, workspace.bytes, k, v, count));
                sorted_keys = k.Current();
                sorted_values = v.Current();
            });
    }
};

/* ---- the calls ---------------------------------------------------------------------------------------------- */

/* Check the index against CUB's values, or, on several ranks, check that the keys it names are in order. */
template <typename K>
static bool check_index(hsort_type type, const device_array &keys, const device_array &index, const K *cub_values)
{
    if (cub_values)
        return finds_nothing([&](unsigned long long *bad) {
            compare_kernel<<<blocks(count), THREADS>>>(index.as<int64_t>(), cub_values, count, bad);
        });
    device_array gathered(keys.bytes);
    hsort_check_result before = {}, after = {};
    before.struct_size = after.struct_size = sizeof after;
    MUST(hsort_gather(ctx, keys.memory, count, sizeof(K), index.as<int64_t>(), gathered.memory, count, nullptr));
    MUST(hsort_check(ctx, type, HSORT_ASCENDING, keys.memory, count, nullptr, &before));
    MUST(hsort_check(ctx, type, HSORT_ASCENDING, gathered.memory, count, nullptr, &after));
    const bool good = after.first_disorder < 0 && memcmp(before.fingerprint, after.fingerprint, 16) == 0;
    wrong += !good;
    return good;
}

static double time_of_argsort(hsort_type type, const device_array &keys, const device_array &index)
{
    return time_of([] {}, [&] {
        MUST(hsort_argsort(ctx, type, HSORT_ASCENDING, keys.memory, count, index.as<int64_t>(), nullptr, count, nullptr));
    });
}

/* Make codes: keys whose order as unsigned integers is that of the type. */
static void make_codes_of(hsort_type type, const device_array &keys, const device_array &codes)
{
    MUST(engine->ops->encode(engine, keymap_make(type, HSORT_ASCENDING), codes.memory, keys.memory, count));
    MUST(engine->ops->stream_synchronize(engine, STREAM_WORK));
}

/* K: an unsigned integer of the type's width. */
template <typename K>
static void measure_argsort(hsort_type type, const std::string &word)
{
    device_array keys(count * sizeof(K)), index(count * sizeof(int64_t));
    fill_keys(type, word, keys.memory);
    const double ms = time_of_argsort(type, keys, index);
    double cub_ms = 0;
    bool good;
    if (ranks == 1) {
        cub_sort<K, K> cub;
        device_array codes(keys.bytes);
        make_codes_of(type, keys, codes);
        cub_ms = cub.run(codes.memory);
        good = check_index<K>(type, keys, index, cub.sorted_values);
    } else {
        good = check_index<K>(type, keys, index, nullptr);
    }
    print_row("argsort", type, sizeof(int64_t), word, ms, cub_ms, "cub", good);
}

template <typename K, typename V>
static void measure_pairs(hsort_type type, const std::string &word)
{
    device_array from(count * sizeof(K)), keys(count * sizeof(K)), values(count * sizeof(V));
    fill_keys(type, word, from.memory);
    const double ms = time_of(
        [&] {
            MUST_CUDA(cudaMemcpy(keys.memory, from.memory, from.bytes, cudaMemcpyDeviceToDevice));
            number_kernel<<<blocks(count), THREADS>>>(values.as<V>(), first, count);
        },
        [&] {
            MUST(hsort_sort_pairs(ctx, type, HSORT_ASCENDING, keys.memory, values.memory, sizeof(V), count, nullptr));
        });
    double cub_ms = 0;
    hsort_check_result after = {};
    after.struct_size = sizeof after;
    MUST(hsort_check(ctx, type, HSORT_ASCENDING, keys.memory, count, nullptr, &after));
    bool good = after.first_disorder < 0;
    wrong += !good;
    if (ranks == 1) {
        cub_sort<K, V> cub;
        cub_ms = cub.run(from.memory);
        good = finds_nothing([&](unsigned long long *bad) {
            compare_kernel<<<blocks(count), THREADS>>>(keys.as<K>(), cub.sorted_keys, count, bad);
            compare_kernel<<<blocks(count), THREADS>>>(values.as<V>(), cub.sorted_values, count, bad);
        });
    }
    print_row("pairs", type, sizeof(V), word, ms, cub_ms, "cub", good);
}

/* Let all ranks together have so many elements. */
static void deal(int64_t elements)
{
    total = elements;
    first = total * rank / ranks;
    count = total * (rank + 1) / ranks - first;
}

static void check_and_print_records(const char *call, int record_bytes, const std::string &word, double ms, double floor_ms,
                                    const device_array &records, const device_array &keys)
{
    const bool good = finds_nothing([&](unsigned long long *bad) {
        check_records_kernel<<<blocks(count), THREADS>>>(records.as<uint32_t>(), record_bytes / 4,
                                                         ranks == 1 ? keys.as<uint64_t>() : nullptr, count, bad);
    });
    print_row(call, HSORT_U64, record_bytes, word, ms, floor_ms, "argsort and copy", good);
}

/* Time sorts into another array and in place, beside what their order takes and a copy of all records. */
static void measure_records(int record_bytes, const std::string &word, const device_array &keys, double argsort_ms)
{
    const int words = record_bytes / 4;
    const hsort_field key = {0, HSORT_U64, HSORT_ASCENDING, 0, 0};
    device_array from((size_t)count * record_bytes), records((size_t)count * record_bytes);
    records_kernel<<<blocks(count * words), THREADS>>>(from.as<uint32_t>(), keys.as<uint64_t>(), words, first, count);
    const auto copy = [&] {
        MUST_CUDA(cudaMemcpyAsync(records.memory, from.memory, from.bytes, cudaMemcpyDeviceToDevice));
    };
    const double floor_ms = argsort_ms + time_of([] {}, copy);
    const auto poison = [&] { MUST_CUDA(cudaMemset(records.memory, 0xa5, records.bytes)); };
    double ms = time_of(poison, [&] {
        MUST(hsort_sort_records_to(ctx, from.memory, record_bytes, &key, 1, count, records.memory, count, nullptr));
    });
    check_and_print_records("records_to", record_bytes, word, ms, floor_ms, records, keys);
    ms = time_of(copy, [&] { MUST(hsort_sort_records(ctx, records.memory, record_bytes, &key, 1, count, nullptr)); });
    check_and_print_records("records", record_bytes, word, ms, floor_ms, records, keys);
}

static void measure_all_records(int64_t most, const std::string &word)
{
    static const int sizes[2][2] = {{32, 64}, {100, 0}};
    for (int turn = 0; turn < 2; turn++) {
        deal(turn == 0 ? (int64_t)1 << 26 : most);
        device_array keys(count * 8), index(count * 8);
        fill_keys(HSORT_U64, word, keys.memory);
        const double argsort_ms = time_of_argsort(HSORT_U64, keys, index);
        for (int record_bytes : sizes[turn])
            if (record_bytes > 0)
                measure_records(record_bytes, word, keys, argsort_ms);
    }
}

static void measure_keys(const std::string &word)
{
    measure_argsort<uint32_t>(HSORT_U32, word);
    measure_argsort<uint64_t>(HSORT_U64, word);
    measure_argsort<uint64_t>(HSORT_F64, word);
    measure_pairs<uint32_t, uint32_t>(HSORT_U32, word);
    measure_pairs<uint32_t, uint64_t>(HSORT_U32, word);
    measure_pairs<uint64_t, uint32_t>(HSORT_U64, word);
    measure_pairs<uint64_t, uint64_t>(HSORT_U64, word);
}

/* Call measure() with each word of a list, whose words are separated by commas. */
template <typename F>
static void for_each_word(const char *list, F measure)
{
    for (const char *end; *list; list = *end ? end + 1 : end) {
        end = strchrnul(list, ',');
        measure(std::string(list, end));
    }
}

int main(int argc, char **argv)
{
    char why[256];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 5 || cuda_device_count(why, sizeof why) == 0) {
        fprintf(stderr, "bench_records: %s\n",
                argc < 5 ? "usage: bench_records KEYS INPUT,... RECORDS RECORD_INPUT,... [REPEATS]" : why);
        MPI_Finalize();
        return argc < 5 ? 2 : 77;
    }
    repeats = argc > 5 ? atoi(argv[5]) : repeats;
    MUST(hsort_create(MPI_COMM_WORLD, nullptr, &ctx));
    std::vector<hsort_rank_info> infos(ranks);
    MUST(hsort_topology(ctx, infos.data(), sizeof(hsort_rank_info)));
    MUST_CUDA(cudaSetDevice(infos[rank].gpu_index));
    MUST(engine_open_cuda(infos[rank].gpu_index, 0, &engine));
    if (rank == 0)
        printf("ranks,call,type,bytes,input,keys,ms,beside,beside_ms,ratio,result\n");
    deal(atoll(argv[1]));
    for_each_word(argv[2], measure_keys);
    for_each_word(argv[4], [&](const std::string &word) { measure_all_records(atoll(argv[3]), word); });
    engine->ops->close(engine);
    hsort_destroy(&ctx);
    MPI_Finalize();
    return wrong > 0;
}
