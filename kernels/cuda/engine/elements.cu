/* Elements, that is keys that something travels with: making their codes, and moving them to their places. All of it is
 * bound by the bytes that move. */
#include "kernels/cuda/engine/fields.cuh"
#include "kernels/cuda/engine/key_type.cuh"
#include "kernels/cuda/engine/scan.cuh"
#include "kernels/cuda/msd/coding.cuh"

/* ---- codes --------------------------------------------------------------------------------------------- */

template <typename C>
static __global__ void __launch_bounds__(ELEMENT_THREADS)
    fields_kernel(const __grid_constant__ struct field_list fields, C *codes, int64_t count,
                  bool has_position, int64_t first)
{
    for (int64_t i = (int64_t)blockIdx.x * ELEMENT_THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * ELEMENT_THREADS) {
        C code = has_position ? (C)(first + i) : 0;
        for (int f = 0; f < fields.count; f++)
            code |= (C)field_code_of_bits(&fields.field[f], load_field(fields.field[f], fields.word[f], i));
        codes[i] = code;
    }
}

/* Load a key K by words W. */
template <typename K, typename W>
static __device__ K load_key(const W *from)
{
    K key = 0;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(K) / sizeof(W)); i++)
        key |= (K)from[i] << i * (int)(8 * sizeof(W));
    return key;
}

/* Make the codes of keys that are numbers in this machine's format, `stride` words W apart: alone, or a field of records. */
template <typename C, typename K, typename W>
static __global__ void __launch_bounds__(ELEMENT_THREADS)
    numbers_kernel(struct keymap map, const W *__restrict__ keys, int64_t stride, int shift, C *codes,
                   int64_t count, bool has_position, int64_t first)
{
    constexpr int TILE = ELEMENT_THREADS * ELEMENT_CODES;
    for (int64_t tile = blockIdx.x; tile * TILE < count; tile += gridDim.x) {
        const int64_t own = tile * TILE + threadIdx.x;
        K bits[ELEMENT_CODES];
#pragma unroll
        for (int k = 0; k < ELEMENT_CODES; k++) {
            const int64_t i = own + k * ELEMENT_THREADS;
            bits[k] = i < count ? load_key<K>(keys + i * stride) : 0;
        }
#pragma unroll
        for (int k = 0; k < ELEMENT_CODES; k++) {
            const int64_t i = own + k * ELEMENT_THREADS;
            if (i < count)
                codes[i] = (C)encode(map, bits[k]) << shift | (has_position ? (C)(first + i) : 0);
        }
    }
}

/* Either of positions and keys may be NULL, the same for all threads. */
template <typename C, typename K>
static __global__ void __launch_bounds__(ELEMENT_THREADS)
    split_codes_kernel(const C *__restrict__ codes, int64_t count, int position_bits, uint64_t position_mask,
                       int64_t *positions, struct keymap map, K *keys)
{
    constexpr int TILE = ELEMENT_THREADS * ELEMENT_CODES;
    for (int64_t tile = blockIdx.x; tile * TILE < count; tile += gridDim.x) {
        const int64_t own = tile * TILE + threadIdx.x;
        C code[ELEMENT_CODES];
#pragma unroll
        for (int k = 0; k < ELEMENT_CODES; k++) {
            const int64_t i = own + k * ELEMENT_THREADS;
            code[k] = i < count ? codes[i] : 0;
        }
#pragma unroll
        for (int k = 0; k < ELEMENT_CODES; k++) {
            const int64_t i = own + k * ELEMENT_THREADS;
            if (i < count && positions)
                positions[i] = (int64_t)((uint64_t)code[k] & position_mask);
            if (i < count && keys)
                keys[i] = (K)keymap_decode_narrow(map, (uint64_t)(code[k] >> position_bits));
        }
    }
}

/* run(C()) with the type of a code. Errors HSORT_INTERNAL. */
template <typename F>
static hsort_status with_code_type(int code_bytes, F run)
{
    switch (code_bytes) {
    case 8:
        return run(uint64_t());
    case 16:
        return run(uint128());
    }
    return status_fail(HSORT_INTERNAL, "codes of elements cannot have %d bytes", code_bytes);
}

/* run(T()) with an unsigned integer of 1, 2, 4 or 8 bytes. Errors HSORT_INTERNAL. */
template <typename F>
static hsort_status with_part_type(int bytes, F run)
{
    return KEY_IS_COUNTED(bytes) ? with_counted_type(bytes, run) : with_narrow_key_type(bytes, run);
}

/* The bytes of the words in which numbers_kernel() can load a field, 4 or 8. 0: the field is no such number, or not aligned for it. */
static int word_of_numbers(const struct key_field &field)
{
    const int unit = unit_of((uintptr_t)field.from | field.stride, field.bytes == 8 ? 8 : 4);
    const bool is_number =
        (field.bytes == 4 || field.bytes == 8) && !field.big_endian && field.map.key_bytes == field.bytes;
    return is_number && unit >= 4 ? unit : 0;
}

template <typename K, typename W, typename C>
static hsort_status launch_numbers(struct cuda_engine *engine, C *codes, int64_t count,
                                   const struct key_field &field, bool has_position, int64_t first)
{
    const unsigned blocks = element_blocks(engine, divide_up(count, ELEMENT_THREADS * ELEMENT_CODES));
    numbers_kernel<C, K, W><<<blocks, ELEMENT_THREADS, 0, engine->streams[STREAM_WORK]>>>(
        field.map, (const W *)field.from, (int64_t)(field.stride / sizeof(W)), field.shift, codes, count,
        has_position, first);
    TRY_LAUNCH("codes of numbers");
    return HSORT_OK;
}

template <typename C>
static hsort_status launch_codes(struct cuda_engine *engine, C *codes, int64_t count,
                                 const struct key_field *fields, int field_count, bool has_position,
                                 int64_t first)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const int word = field_count == 1 ? word_of_numbers(*fields) : 0;
    if (word == 8)
        return launch_numbers<uint64_t, uint64_t>(engine, codes, count, *fields, has_position, first);
    if (word == 4)
        return fields->bytes == 8
                   ? launch_numbers<uint64_t, uint32_t>(engine, codes, count, *fields, has_position, first)
                   : launch_numbers<uint32_t, uint32_t>(engine, codes, count, *fields, has_position, first);
    fields_kernel<<<element_blocks(engine, divide_up(count, ELEMENT_THREADS)), ELEMENT_THREADS, 0, stream>>>(
        list_fields(fields, field_count), codes, count, has_position, first);
    TRY_LAUNCH("codes");
    return HSORT_OK;
}

extern "C" hsort_status elements_make_codes(struct engine *base, int code_bytes, void *codes, int64_t count,
                                            const struct key_field *fields, int field_count,
                                            int position_bits, int64_t first)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    TRY(kernel_fault("codes"));
    if (field_count < 0 || field_count > ENGINE_FIELDS_MAX)
        return status_fail(HSORT_INTERNAL, "codes cannot have %d fields", field_count);
    return with_code_type(code_bytes, [&](auto code) {
        typedef decltype(code) C;
        return count > 0
                   ? launch_codes(engine, (C *)codes, count, fields, field_count, position_bits > 0, first)
                   : HSORT_OK;
    });
}

extern "C" hsort_status elements_split_codes(struct engine *base, int code_bytes, const void *codes,
                                             int64_t count, int position_bits, int64_t *positions,
                                             struct keymap map, void *keys)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    const uint64_t mask = position_bits > 0 ? UINT64_MAX >> (64 - position_bits) : 0;
    const unsigned blocks = element_blocks(engine, divide_up(count, ELEMENT_THREADS * ELEMENT_CODES));
    TRY(kernel_fault("codes"));
    return with_code_type(code_bytes, [&](auto code) {
        return with_part_type(keys ? map.key_bytes : (int)sizeof(uint64_t), [&](auto key) {
            if (count == 0)
                return HSORT_OK;
            split_codes_kernel<<<blocks, ELEMENT_THREADS, 0, engine->streams[STREAM_WORK]>>>(
                (const decltype(code) *)codes, count, position_bits, mask, positions, map,
                (decltype(key) *)keys);
            TRY_LAUNCH("split of codes");
            return HSORT_OK;
        });
    });
}

/* ---- elements ------------------------------------------------------------------------------------------ */

/* Elements that move between a near array [count], where they lie in order, and a far one [far_count], where each lies at its
 * position. The far array may have a gap. Passed to kernels by value. */
struct move {
    void *to;
    const void *from;
    const int64_t *positions; /* [count] */
    int64_t first;            /* the position of the first far element */
    uint64_t far_count;
    uint64_t gap_before; /* the far element that the gap lies before */
    int64_t gap_bytes;   /* may be negative */
    int64_t count;
    int64_t *outside; /* [blocks] pinned: how many positions of each block name no far element; NULL: nobody asks */
};

#define NOWHERE (UINT64_C(1) << 63) /* a place that no element has, not even in a second array that lies before the first one */

/* The place of the first word of the far element that belongs to near element i. Each element has `words` words of word_bytes. If its
 * position lies outside, it is counted, and the place is NOWHERE. */
static __device__ uint64_t far_place(const struct move &move, int64_t i, uint32_t words, int word_bytes,
                                     uint64_t *outside)
{
    const uint64_t at = (uint64_t)move.positions[i] - (uint64_t)move.first; // a position below the first wraps far beyond the end
    if (at < move.far_count)
        return at * words + (at >= move.gap_before ? (uint64_t)(move.gap_bytes / word_bytes) : 0);
    ++*outside;
    return NOWHERE;
}

/* Tell the host how many positions outside a block has found. A word for each block costs less than atomics on the host's
 * memory. Every thread calls it. */
static __device__ void tell_outside(const struct move &move, uint64_t outside)
{
    __shared__ uint64_t sums[ELEMENT_THREADS / WARP];
    if (!move.outside)
        return;
    const uint64_t before = block_sum_before(outside, sums);
    if (threadIdx.x == ELEMENT_THREADS - 1)
        move.outside[blockIdx.x] = (int64_t)(before + outside);
}

static __global__ void __launch_bounds__(ELEMENT_THREADS)
    find_outside_kernel(const __grid_constant__ struct move move)
{
    uint64_t outside = 0;
    for (int64_t i = (int64_t)blockIdx.x * ELEMENT_THREADS + threadIdx.x; i < move.count;
         i += (int64_t)gridDim.x * ELEMENT_THREADS)
        far_place(move, i, 1, 1, &outside);
    tell_outside(move, outside);
}

/* Move elements E, each by one thread. */
template <bool TAKES, typename E>
static __global__ void __launch_bounds__(ELEMENT_THREADS, ELEMENT_TOGETHER)
    move_whole_kernel(const __grid_constant__ struct move move)
{
    constexpr int TILE = ELEMENT_THREADS * ELEMENT_MOVES;
    const E *from = (const E *)move.from;
    E *to = (E *)move.to;
    uint64_t outside = 0;
    for (int64_t tile = blockIdx.x; tile * TILE < move.count; tile += gridDim.x) {
        const int64_t own = tile * TILE + threadIdx.x;
        uint64_t places[ELEMENT_MOVES];
        E elements[ELEMENT_MOVES];
#pragma unroll
        for (int k = 0; k < ELEMENT_MOVES; k++) {
            const int64_t i = own + k * ELEMENT_THREADS;
            places[k] = i < move.count ? far_place(move, i, 1, sizeof(E), &outside) : NOWHERE;
            if (!TAKES && i < move.count)
                elements[k] = from[i];
        }
#pragma unroll
        for (int k = 0; k < ELEMENT_MOVES; k++)
            if (TAKES && places[k] != NOWHERE)
                elements[k] = from[places[k]];
#pragma unroll
        for (int k = 0; k < ELEMENT_MOVES; k++)
            if (places[k] != NOWHERE)
                to[TAKES ? (uint64_t)(own + k * ELEMENT_THREADS) : places[k]] = elements[k];
    }
    tell_outside(move, outside);
}

/* Copy the elements of a tile, near elements from `first` on, by words W. Consecutive lanes have consecutive words of the near
 * elements, and of the far ones as long as they stay within an element.
 *   places  [elements] the first word of each far element, or NOWHERE
 *   words   of an element */
template <bool TAKES, typename W>
static __device__ void block_copy_words(const W *from, W *to, const uint64_t *places, int64_t first,
                                        uint32_t elements, uint32_t words)
{
    const uint32_t all = elements * words, step = ELEMENT_THREADS / words,
                   step_words = ELEMENT_THREADS % words;
    const uint64_t near_first = (uint64_t)first * words;
    uint32_t element = threadIdx.x / words, word = threadIdx.x % words;
    for (uint32_t own = threadIdx.x; own < all; own += ELEMENT_WORDS * ELEMENT_THREADS) {
        W loaded[ELEMENT_WORDS];
        uint64_t far[ELEMENT_WORDS];
#pragma unroll
        for (int k = 0; k < ELEMENT_WORDS; k++) {
            const uint32_t at = own + k * ELEMENT_THREADS;
            far[k] = at < all ? places[element] : NOWHERE;
            if (far[k] != NOWHERE) {
                far[k] += word;
                loaded[k] = from[TAKES ? far[k] : near_first + at];
            }
            element += step; // avoids a division for each word
            word += step_words;
            if (word >= words) {
                word -= words;
                element++;
            }
        }
#pragma unroll
        for (int k = 0; k < ELEMENT_WORDS; k++)
            if (far[k] != NOWHERE)
                to[TAKES ? near_first + own + k * ELEMENT_THREADS : far[k]] = loaded[k];
    }
}

/* Move elements of `words` words W each. A block moves `tile` of them at a time. */
template <bool TAKES, typename W>
static __global__ void __launch_bounds__(ELEMENT_THREADS, ELEMENT_TOGETHER)
    move_words_kernel(const __grid_constant__ struct move move, uint32_t words, int tile)
{
    __shared__ uint64_t places[ELEMENT_TILE_MOST];
    uint64_t outside = 0;
    for (int64_t first = (int64_t)blockIdx.x * tile; first < move.count; first += (int64_t)gridDim.x * tile) {
        const int elements = (int)min((int64_t)tile, move.count - first);
        __syncthreads(); // the places of the tile before are in use until here
        for (int e = threadIdx.x; e < elements; e += ELEMENT_THREADS)
            places[e] = far_place(move, first + e, words, sizeof(W), &outside);
        __syncthreads();
        block_copy_words<TAKES>((const W *)move.from, (W *)move.to, places, first, (uint32_t)elements, words);
    }
    tell_outside(move, outside);
}

/* run(W()) with a word of 1, 2, 4, 8 or 16 bytes. */
template <typename F>
static hsort_status with_word_type(int bytes, F run)
{
    return bytes == 16 ? run(uint4()) : with_part_type(bytes, run);
}

/* Launch the kernel that moves elements. *blocks: how many blocks it has, each of which tells what it found. */
template <bool TAKES>
static hsort_status launch_move(struct cuda_engine *engine, size_t element_bytes, const struct move &move,
                                unsigned *blocks)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    if (element_bytes == 0) {
        *blocks = element_blocks(engine, divide_up(move.count, ELEMENT_THREADS));
        find_outside_kernel<<<*blocks, ELEMENT_THREADS, 0, stream>>>(move);
        TRY_LAUNCH("search for positions outside");
        return HSORT_OK;
    }
    const int unit = unit_of((uintptr_t)move.to | (uintptr_t)move.from | (uintptr_t)move.gap_bytes | element_bytes,
                             sizeof(uint4));
    return with_word_type(unit, [&](auto whole) {
        typedef decltype(whole) W;
        if constexpr (sizeof(W) >= sizeof(uint32_t)) {
            if (element_bytes == sizeof(W)) {
                *blocks = element_blocks(engine, divide_up(move.count, ELEMENT_THREADS * ELEMENT_MOVES));
                move_whole_kernel<TAKES, W><<<*blocks, ELEMENT_THREADS, 0, stream>>>(move);
                TRY_LAUNCH("elements");
                return HSORT_OK;
            }
        }
        const int tile = max(min(ELEMENT_TILE_BYTES / (int)element_bytes, (int)ELEMENT_TILE_MOST), 1);
        *blocks = element_blocks(engine, divide_up(move.count, tile));
        move_words_kernel<TAKES, W>
            <<<*blocks, ELEMENT_THREADS, 0, stream>>>(move, (uint32_t)(element_bytes / sizeof(W)), tile);
        TRY_LAUNCH("elements by words");
        return HSORT_OK;
    });
}

template <bool TAKES>
static hsort_status move_elements(struct engine *base, const char *what, size_t element_bytes,
                                  struct move move, int64_t *outside)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    unsigned blocks = 0;
    if (outside)
        *outside = 0;
    TRY(kernel_fault(what));
    if (move.count == 0)
        return HSORT_OK;
    move.outside = outside ? engine->result->less : NULL;
    TRY(launch_move<TAKES>(engine, element_bytes, move, &blocks));
    if (!outside)
        return HSORT_OK;
    TRY_CUDA(cudaStreamSynchronize(engine->streams[STREAM_WORK]));
    for (unsigned block = 0; block < blocks; block++)
        *outside += engine->result->less[block];
    return HSORT_OK;
}

extern "C" hsort_status elements_take(struct engine *base, const struct engine_take *take, int64_t *outside)
{
    const uint64_t before = (uint64_t)take->from_count[0], more = (uint64_t)take->from_count[1];
    struct move move = {take->to, take->from[0], take->positions, take->first, before + more, before, 0, take->count, NULL};
    if (more > 0) // two arrays are taken as one with a gap, which is negative if the second lies before the first
        move.gap_bytes =
            (const char *)take->from[1] - ((const char *)take->from[0] + before * take->element_bytes);
    return move_elements<true>(base, "take", take->element_bytes, move, outside);
}

extern "C" hsort_status elements_place(struct engine *base, size_t element_bytes, void *to, int64_t to_count,
                                       const void *from, const int64_t *positions, int64_t first,
                                       int64_t count, int64_t *outside)
{
    return move_elements<false>(base, "place", element_bytes,
                                {to, from, positions, first, (uint64_t)to_count, 0, 0, count, NULL}, outside);
}
