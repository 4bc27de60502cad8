/* The inspection of elements: whether they are in order, and their fingerprints. Bound by the bytes that are read. */
#include "kernels/base/element_digest.h"
#include "kernels/cuda/engine/fields.cuh"
#include "kernels/cuda/engine/block.cuh"

/* Elements, passed to kernels by value. `lanes` lanes of a warp share an element, and each takes every lanes-th word of it:
 *
 *     12 bytes, 2 lanes      warp    0a 0b 1a 1b 2a 2b ...      16 elements at a time */
struct looked_at {
    int64_t count;
    const unsigned char *part[ENGINE_ELEMENT_PARTS];
    size_t bytes[ENGINE_ELEMENT_PARTS];
    int word[ENGINE_ELEMENT_PARTS]; /* bytes that are loaded at a time, as their alignment allows */
    const int64_t *index;
    int64_t first, step;
    int lanes; /* 1, 2, 4 .. WARP */
};
static_assert(sizeof(struct field_list) + sizeof(struct looked_at) <= 4000, "parameters of a kernel");

/* What a thread has found. */
struct sights {
    int64_t descent, unstable;
    uint64_t sum[4]; /* fingerprint, placed */
};

static __device__ int64_t element_number(const struct looked_at &of, int64_t i)
{
    return of.index ? of.index[i] : of.first + i * of.step;
}

static __device__ uint128 element_code(const struct field_list &fields, int64_t i)
{
    uint128 code = 0;
    for (int f = 0; f < fields.count; f++)
        code |= field_code_of_bits(&fields.field[f], load_field(fields.field[f], fields.word[f], i));
    return code;
}

/* The next 8 bytes, or all that is left. */
static __device__ uint64_t load_bytes(const unsigned char *from, size_t left, int word)
{
    uint64_t bytes = 0;
    for (int at = 0; at < (int)sizeof bytes && at < left; at += word)
        bytes |= load_word(from + at, word) << 8 * at;
    return bytes;
}

/* Add this lane's words of element i to its digest. */
static __device__ void add_words(const struct looked_at &of, int64_t i, int lane, uint64_t digest[2])
{
    uint64_t place = 0;
    for (int p = 0; p < ENGINE_ELEMENT_PARTS; p++) {
        const size_t bytes = of.bytes[p], words = (bytes + 7) / 8;
        const unsigned char *from = of.part[p] + (size_t)i * bytes;
        for (size_t w = lane; w < words; w += of.lanes)
            digest_add_word(place + w, load_bytes(from + 8 * w, bytes - 8 * w, of.word[p]), digest);
        place += words;
    }
}

/* Give each lane of an element the sum of the digests of all of its lanes. Whole warps call it. */
static __device__ void join_lanes(int lanes, uint64_t digest[2])
{
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        for (int word = 0; word < 2; word++)
            digest[word] += __shfl_xor_sync(ALL_LANES, (unsigned long long)digest[word], distance);
}

/* Look at element i, and at the one before it. */
static __device__ void look_at(const struct field_list &fields, const struct looked_at &of, int64_t i,
                               const uint64_t digest[2], struct sights &sights)
{
    const int64_t number = element_number(of, i);
    digest_shares(digest, number, sights.sum, sights.sum + 2);
    if (i == 0 || fields.count == 0)
        return;
    const uint128 code = element_code(fields, i), before = element_code(fields, i - 1);
    if (code < before)
        sights.descent = min(sights.descent, i);
    if (code == before && number <= element_number(of, i - 1))
        sights.unstable = min(sights.unstable, i);
}

static __global__ void start_sights_kernel(const __grid_constant__ struct field_list fields,
                                           const __grid_constant__ struct looked_at of,
                                           struct engine_inspection *found)
{
    found->first_descent = found->first_unstable = of.count;
    found->first = element_code(fields, 0);
    found->last = element_code(fields, of.count - 1);
    found->first_number = element_number(of, 0);
    found->last_number = element_number(of, of.count - 1);
    found->fingerprint[0] = found->fingerprint[1] = 0;
    found->placed[0] = found->placed[1] = 0;
}

static __global__ void __launch_bounds__(ELEMENT_THREADS)
    look_at_kernel(const __grid_constant__ struct field_list fields,
                   const __grid_constant__ struct looked_at of, struct engine_inspection *found)
{
    struct sights sights = {INT64_MAX, INT64_MAX, {0, 0, 0, 0}};
    const int lane = threadIdx.x % of.lanes, together = ELEMENT_THREADS / of.lanes;
    for (int64_t first = (int64_t)blockIdx.x * together; first < of.count;
         first += (int64_t)gridDim.x * together) {
        const int64_t i = first + threadIdx.x / of.lanes;
        uint64_t digest[2] = {0, 0};
        if (i < of.count)
            add_words(of, i, lane, digest);
        join_lanes(of.lanes, digest);
        if (lane == 0 && i < of.count)
            look_at(fields, of, i, digest, sights);
    }
    tell_least(sights.descent, &found->first_descent);
    tell_least(sights.unstable, &found->first_unstable);
    for (int word = 0; word < 2; word++) {
        tell_sum(sights.sum[word], &found->fingerprint[word]);
        tell_sum(sights.sum[2 + word], &found->placed[word]);
    }
}

static struct looked_at look_list(const struct engine_elements *elements)
{
    struct looked_at of = {};
    size_t words = 0;
    of.count = elements->count;
    of.index = elements->index;
    of.first = elements->first;
    of.step = elements->step;
    for (int p = 0; p < ENGINE_ELEMENT_PARTS; p++) {
        of.part[p] = (const unsigned char *)elements->part[p];
        of.bytes[p] = elements->part_bytes[p];
        of.word[p] = unit_of((uintptr_t)elements->part[p] | elements->part_bytes[p], 8);
        words += (elements->part_bytes[p] + 7) / 8;
    }
    of.lanes = 1;
    while (of.lanes < WARP && (size_t)of.lanes < words)
        of.lanes *= 2;
    return of;
}

extern "C" hsort_status elements_inspect(struct engine *base, const struct engine_elements *elements,
                                         struct engine_inspection *found)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    cudaStream_t stream = engine->streams[STREAM_WORK];
    device_scope scope(engine);
    TRY(kernel_fault("look at elements"));
    *found = {};
    if (elements->field_count < 0 || elements->field_count > ENGINE_FIELDS_MAX)
        return status_fail(HSORT_INTERNAL, "codes cannot have %d fields", elements->field_count);
    if (elements->count == 0)
        return HSORT_OK;
    const struct looked_at of = look_list(elements);
    const struct field_list fields = list_fields(elements->field, elements->field_count);
    const unsigned blocks = element_blocks(engine, divide_up(of.count, ELEMENT_THREADS / of.lanes));
    start_sights_kernel<<<1, 1, 0, stream>>>(fields, of, engine->inspection);
    look_at_kernel<<<blocks, ELEMENT_THREADS, 0, stream>>>(fields, of, engine->inspection);
    TRY_LAUNCH("look at elements");
    TRY_CUDA(cudaMemcpyAsync(&engine->result->inspection, engine->inspection, sizeof *found,
                             cudaMemcpyDefault, stream));
    TRY_CUDA(cudaStreamSynchronize(stream));
    *found = engine->result->inspection;
    return HSORT_OK;
}
