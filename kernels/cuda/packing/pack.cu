/* Keys as differences: engine_pack_ops of engine.h, which pictures what they are packed to. A block of threads takes a block of
 * keys, a key a thread, then the next one:
 *
 *     measure   keys              ->  first, widths (where ends will be)     reads the keys
 *     place     widths            ->  ends, and how many bytes all take      one block of threads, a number for each block of keys
 *     write     keys, ends        ->  words                                  reads the keys again: a word a thread
 *     unpack    words, ends       ->  keys                                   a sum through the block
 *
 * Whether packing pays is known on the device first: where it does not, write copies the keys over what the others have
 * left, so it asks the number of bytes, which lies in the host's memory, and not the ends. Each block of threads asks once. */
#include "kernels/cuda/engine/key_type.cuh"

enum {
    PACK_THREADS = ENGINE_PACK_KEYS,
    PACK_WARPS = PACK_THREADS / WARP,
    PLACE_THREADS = 1024,
    PACK_BLOCKS = 8, /* of threads, of a multiprocessor */
    WORD_BITS = 32,
    WORDS_OF_BIT = ENGINE_PACK_KEYS / WORD_BITS /* of a full block, for each bit of its width */
};
static_assert(ENGINE_PACK_KEYS % WORD_BITS == 0, "a full block has whole words for each bit");

/* Where the parts of packed keys lie. By value, to kernels. */
template <typename K>
struct packed_layout {
    K *first;             /* [blocks] */
    uint32_t *ends;       /* [blocks + 1] */
    uint32_t *word;       /* [words] */
    int64_t count, blocks, words; /* words: that there is room for */
};

template <typename K>
static int64_t head_bytes(int64_t count)
{
    const int64_t blocks = divide_up(count, (int64_t)ENGINE_PACK_KEYS);
    return blocks * (int64_t)sizeof(K) + (blocks + 1) * (int64_t)sizeof(uint32_t);
}

template <typename K>
static packed_layout<K> layout_of(void *packed, int64_t bytes, int64_t count)
{
    packed_layout<K> layout;
    layout.count = count;
    layout.blocks = divide_up(count, (int64_t)ENGINE_PACK_KEYS);
    layout.first = (K *)packed;
    layout.ends = (uint32_t *)(layout.first + layout.blocks);
    layout.word = layout.ends + layout.blocks + 1;
    layout.words = (bytes - head_bytes<K>(count)) / (int64_t)sizeof(uint32_t);
    return layout;
}

static __device__ int keys_in_block(int64_t block, int64_t count)
{
    return (int)min(count - block * ENGINE_PACK_KEYS, (int64_t)ENGINE_PACK_KEYS);
}

static __device__ uint32_t words_for(int keys, int width)
{
    return (uint32_t)((keys * width + WORD_BITS - 1) / WORD_BITS);
}

template <typename K>
static __device__ int bits_of_key(K value)
{
    if constexpr (sizeof(K) == sizeof(uint32_t)) {
        return 32 - __clz((int)value);
    } else if constexpr (sizeof(K) == sizeof(uint64_t)) {
        return 64 - __clzll((long long)value);
    } else {
        const uint64_t upper = (uint64_t)(value >> 64);
        return upper ? 128 - __clzll((long long)upper) : 64 - __clzll((long long)(uint64_t)value);
    }
}

/* The difference of this thread's key of a block to the one before; 0 of the first one, and where there is none. */
template <typename K>
static __device__ K difference_of(const K *__restrict__ keys, int64_t block, int number)
{
    const int i = threadIdx.x;
    const K *from = keys + block * ENGINE_PACK_KEYS;
    return i > 0 && i < number ? (K)(from[i] - from[i - 1]) : (K)0;
}

template <typename K>
static __global__ void __launch_bounds__(PACK_THREADS)
    measure_blocks_kernel(const K *__restrict__ keys, packed_layout<K> packed)
{
    __shared__ int widest[PACK_WARPS];
    for (int64_t block = blockIdx.x; block < packed.blocks; block += gridDim.x) {
        int width = bits_of_key(difference_of(keys, block, keys_in_block(block, packed.count)));
        for (int distance = WARP / 2; distance > 0; distance /= 2)
            width = max(width, __shfl_xor_sync(ALL_LANES, width, distance));
        if (threadIdx.x % WARP == 0)
            widest[threadIdx.x / WARP] = width;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int warp = 1; warp < PACK_WARPS; warp++)
                width = max(width, widest[warp]);
            packed.first[block] = keys[block * ENGINE_PACK_KEYS];
            packed.ends[block] = (uint32_t)width;
        }
        __syncthreads();
    }
}

/* The sum of the values of all threads up to this one. Whole blocks call it; sums [threads / WARP] in shared memory. */
template <typename T>
static __device__ T block_sum_through(T value, T *sums)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int distance = 1; distance < WARP; distance *= 2) {
        const T below = of_lane(value, max(lane - distance, 0));
        value += lane >= distance ? below : (T)0;
    }
    if (lane == WARP - 1)
        sums[warp] = value;
    __syncthreads();
    for (int other = 0; other < warp; other++)
        value += sums[other];
    __syncthreads();
    return value;
}

/* *bytes: what all takes; so many as the keys have, if it would not be less. */
template <typename K>
static __global__ void __launch_bounds__(PLACE_THREADS)
    place_blocks_kernel(packed_layout<K> packed, int64_t head, int64_t *bytes)
{
    __shared__ uint64_t sums[PLACE_THREADS / WARP], all;
    const int64_t plain = packed.count * (int64_t)sizeof(K);
    uint64_t before = 0;
    if (threadIdx.x == 0)
        packed.ends[packed.blocks] = packed.ends[packed.blocks - 1];
    __syncthreads();
    for (int64_t from = 0; from < packed.blocks; from += PLACE_THREADS) {
        const int64_t block = from + threadIdx.x;
        const bool is_there = block < packed.blocks;
        const uint64_t own =
            is_there ? words_for(keys_in_block(block, packed.count), (int)packed.ends[block]) : 0;
        const uint64_t through = before + block_sum_through(own, sums);
        if (is_there)
            packed.ends[block] = (uint32_t)through;
        if (threadIdx.x == PLACE_THREADS - 1)
            all = through;
        __syncthreads();
        before = all;
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *(volatile int64_t *)bytes = min(head + (int64_t)before * (int64_t)sizeof(uint32_t), plain);
}

/* Word `at` of a block: the differences that have bits of it. */
template <typename K>
static __device__ uint32_t word_of(const K *differences, int number, int width, int at)
{
    const int end = (at + 1) * WORD_BITS;
    uint32_t word = 0;
    int bit = at * WORD_BITS, i = bit / width;
    for (; bit < end && i < number; i++) {
        word |= (uint32_t)(differences[i] >> (bit - i * width)) << (bit - at * WORD_BITS);
        bit = (i + 1) * width;
    }
    return word;
}

template <typename K>
static __global__ void __launch_bounds__(PACK_THREADS)
    write_blocks_kernel(const K *__restrict__ keys, packed_layout<K> packed, const int64_t *bytes)
{
    __shared__ K differences[PACK_THREADS];
    __shared__ int64_t used;
    if (threadIdx.x == 0)
        used = *(const volatile int64_t *)bytes;
    __syncthreads();
    const bool is_plain = used == packed.count * (int64_t)sizeof(K);
    for (int64_t block = blockIdx.x; block < packed.blocks; block += gridDim.x) {
        const int number = keys_in_block(block, packed.count);
        const int64_t at = block * ENGINE_PACK_KEYS + threadIdx.x;
        if (is_plain) {
            if ((int)threadIdx.x < number)
                packed.first[at] = keys[at];
            continue;
        }
        const uint32_t begin = block > 0 ? packed.ends[block - 1] : 0, words = packed.ends[block] - begin;
        const int width = block == packed.blocks - 1 ? (int)packed.ends[packed.blocks] : (int)(words / WORDS_OF_BIT);
        differences[threadIdx.x] = difference_of(keys, block, number);
        __syncthreads();
        for (uint32_t word = threadIdx.x; word < words; word += PACK_THREADS)
            packed.word[begin + word] = word_of(differences, number, width, (int)word);
        __syncthreads();
    }
}

/* Value `i` of the words of a block. */
template <typename K>
static __device__ K packed_value(const uint32_t *__restrict__ words, int width, int i)
{
    K value = 0;
    int at = i * width;
    for (int have = 0; have < width;) {
        const int within = at % WORD_BITS, some = min(WORD_BITS - within, width - have);
        const uint32_t bits = words[at / WORD_BITS] >> within;
        value |= (K)(some == WORD_BITS ? bits : bits & ((1u << some) - 1)) << have;
        have += some;
        at += some;
    }
    return value;
}

/* Whatever ends say, words are read where there are some. */
template <typename K>
static __global__ void __launch_bounds__(PACK_THREADS)
    unpack_blocks_kernel(packed_layout<K> packed, K *__restrict__ keys)
{
    __shared__ K sums[PACK_WARPS];
    for (int64_t block = blockIdx.x; block < packed.blocks; block += gridDim.x) {
        const int number = keys_in_block(block, packed.count);
        const int64_t begin = block > 0 ? packed.ends[block - 1] : 0;
        int64_t width = block == packed.blocks - 1 ? (int64_t)packed.ends[packed.blocks]
                                                   : ((int64_t)packed.ends[block] - begin) / WORDS_OF_BIT;
        if (width < 0 || width > (int64_t)(8 * sizeof(K)) || begin + words_for(number, (int)width) > packed.words)
            width = 0;
        const bool is_there = (int)threadIdx.x < number;
        const K own = is_there ? packed_value<K>(packed.word + begin, (int)width, threadIdx.x) : (K)0;
        const K sum = block_sum_through(own, sums);
        if (is_there)
            keys[block * ENGINE_PACK_KEYS + threadIdx.x] = (K)(packed.first[block] + sum);
    }
}

/* ---- the operations -------------------------------------------------------------------------------------- */

static unsigned pack_grid(const struct cuda_engine *engine, int64_t blocks)
{
    return (unsigned)min(blocks, (int64_t)engine->multiprocessors * PACK_BLOCKS);
}

static hsort_status copy_plain(const struct cuda_engine *engine, void *to, const void *from, int64_t bytes)
{
    if (bytes == 0)
        return HSORT_OK;
    return cuda_check(
        cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, engine->streams[STREAM_WORK]),
        "a copy of keys that are not packed");
}

static hsort_status cuda_pack(struct engine *base, int key_bytes, const void *keys, int64_t count, void *to,
                              int64_t *bytes)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    TRY(kernel_takes("packing of keys", key_bytes));
    *bytes = count * key_bytes;
    return with_key_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        const int64_t plain = count * (int64_t)sizeof(K), head = head_bytes<K>(count);
        if (head >= plain || plain / (int64_t)sizeof(uint32_t) > (int64_t)UINT32_MAX)
            return copy_plain(engine, to, keys, plain);
        const packed_layout<K> packed = layout_of<K>(to, plain, count);
        const unsigned grid = pack_grid(engine, packed.blocks);
        measure_blocks_kernel<K><<<grid, PACK_THREADS, 0, stream>>>((const K *)keys, packed);
        TRY_LAUNCH("widths of packed keys");
        place_blocks_kernel<K><<<1, PLACE_THREADS, 0, stream>>>(packed, head, bytes);
        TRY_LAUNCH("places of packed keys");
        write_blocks_kernel<K><<<grid, PACK_THREADS, 0, stream>>>((const K *)keys, packed, bytes);
        TRY_LAUNCH("packing of keys");
        return HSORT_OK;
    });
}

static hsort_status cuda_unpack(struct engine *base, int key_bytes, const void *packed, int64_t bytes,
                                int64_t count, void *keys)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    TRY(kernel_takes("unpacking of keys", key_bytes));
    return with_key_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        const int64_t plain = count * (int64_t)sizeof(K);
        if (bytes >= plain)
            return copy_plain(engine, keys, packed, plain);
        if (bytes < head_bytes<K>(count))
            return (hsort_status)HSORT_OK;
        const packed_layout<K> layout = layout_of<K>((void *)packed, bytes, count);
        unpack_blocks_kernel<K><<<pack_grid(engine, layout.blocks), PACK_THREADS, 0,
                                  engine->streams[STREAM_WORK]>>>(layout, (K *)keys);
        TRY_LAUNCH("unpacking of keys");
        return (hsort_status)HSORT_OK;
    });
}

const struct engine_pack_ops cuda_pack_ops = {
    .pack = cuda_pack,
    .unpack = cuda_unpack,
};
