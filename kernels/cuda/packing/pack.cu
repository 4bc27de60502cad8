/* Keys as differences: the engine_pack_ops of engine.h, which pictures what keys are packed to. A block of threads takes a block of
 * keys, one key for each thread, and then the next block:
 *
 *     measure   keys              ->  first, widths (where ends will be)     reads the keys
 *     place     widths            ->  ends, and how many bytes all take      one block of threads, a number for each block of keys
 *     write     keys, ends        ->  words                                  reads the keys again: a word a thread
 *     unpack    words, ends       ->  keys                                   a sum through the block
 *
 * All packings of a batch go in one launch of each kernel, with a row of the grid for each packing.
 *
 * Whether packing pays is first known on the device. If it does not, write copies the keys over what the other kernels have left, so it
 * cannot ask the ends. It asks the number of bytes, which lies in the device's memory: all blocks of threads read it, and reading it
 * from the host's memory would take longer than packing a chunk. */
#include "kernels/cuda/engine/block.cuh"

enum {
    PACK_THREADS = ENGINE_PACK_KEYS,
    PACK_WARPS = PACK_THREADS / WARP,
    PLACE_THREADS = 1024,
    PACK_BLOCKS = 8, /* of threads, on a multiprocessor */
    WORD_BITS = 32,
    WORDS_OF_BIT = ENGINE_PACK_KEYS / WORD_BITS /* of a full block, for each bit of its width */
};
static_assert(ENGINE_PACK_KEYS % WORD_BITS == 0, "a full block has whole words for each bit");

/* One of the packings of a launch: row y of the grid. */
template <typename K>
struct packed_keys {
    K *keys;    /* [count] */
    K *first;   /* [blocks] what they are packed to begins here */
    int64_t count;
    int64_t words;  /* that may be read */
    int64_t *bytes; /* written: host memory */
};

/* Passed to kernels by value. */
template <typename K>
struct packed_batch {
    int count;
    bool to_smallest;
    int64_t blocks_most; /* of one packing */
    packed_keys<K> of[CUDA_PACKINGS];
};
static_assert(sizeof(packed_batch<uint64_t>) <= 3900, "parameters of a kernel");

/* Where the parts of packed keys lie. */
template <typename K>
struct packed_layout {
    K *first;       /* [blocks] */
    uint32_t *ends; /* [blocks + 1] */
    uint32_t *word;
    int64_t blocks;
};

template <typename K>
static int64_t head_bytes(int64_t count)
{
    const int64_t blocks = divide_up(count, (int64_t)ENGINE_PACK_KEYS);
    return blocks * (int64_t)sizeof(K) + (blocks + 1) * (int64_t)sizeof(uint32_t);
}

template <typename K>
static __device__ packed_layout<K> layout_of(const packed_keys<K> &own)
{
    packed_layout<K> layout;
    layout.blocks = (own.count + ENGINE_PACK_KEYS - 1) / ENGINE_PACK_KEYS;
    layout.first = own.first;
    layout.ends = (uint32_t *)(own.first + layout.blocks);
    layout.word = layout.ends + layout.blocks + 1;
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

/* The difference of this thread's key of a block from the key before; 0 for the first key, and if the thread has none. */
template <typename K>
static __device__ K difference_of(const K *__restrict__ keys, int64_t block, int number)
{
    const int i = threadIdx.x;
    const K *from = keys + block * ENGINE_PACK_KEYS;
    return i > 0 && i < number ? (K)(from[i] - from[i - 1]) : (K)0;
}

template <typename K>
static __global__ void __launch_bounds__(PACK_THREADS)
    measure_blocks_kernel(const __grid_constant__ packed_batch<K> batch)
{
    __shared__ K lows[PACK_WARPS], highs[PACK_WARPS];
    __shared__ uint32_t widest[PACK_WARPS];
    const packed_keys<K> own = batch.of[blockIdx.y];
    const packed_layout<K> packed = layout_of(own);
    for (int64_t block = blockIdx.x; block < packed.blocks; block += gridDim.x) {
        const int number = keys_in_block(block, own.count);
        const K *keys = own.keys + block * ENGINE_PACK_KEYS;
        if (batch.to_smallest) {
            K low = keys[min((int)threadIdx.x, number - 1)], high = low;
            extremes_to_first_warp<PACK_WARPS>(low, high, lows, highs);
            if (threadIdx.x == 0) {
                packed.first[block] = low;
                packed.ends[block] = (uint32_t)bits_of<K>(high - low);
            }
        } else {
            uint32_t width = warp_max((uint32_t)bits_of<K>(difference_of(own.keys, block, number)));
            if (threadIdx.x % WARP == 0)
                widest[threadIdx.x / WARP] = width;
            __syncthreads();
            if (threadIdx.x == 0) {
                for (int warp = 1; warp < PACK_WARPS; warp++)
                    width = max(width, widest[warp]);
                packed.first[block] = keys[0];
                packed.ends[block] = width;
            }
        }
        __syncthreads(); // the next block of keys takes the same shared memory
    }
}

/* Turn the widths into ends. *bytes: how many bytes all of it takes; as many as the keys have, if it would not be fewer. */
template <typename K>
static __global__ void __launch_bounds__(PLACE_THREADS)
    place_blocks_kernel(const __grid_constant__ packed_batch<K> batch, int64_t *used)
{
    __shared__ uint64_t sums[PLACE_THREADS / WARP], all;
    const packed_keys<K> own = batch.of[blockIdx.y];
    const packed_layout<K> packed = layout_of(own);
    uint64_t before = 0;
    if (threadIdx.x == 0)
        packed.ends[packed.blocks] = packed.ends[packed.blocks - 1];
    __syncthreads();
    for (int64_t from = 0; from < packed.blocks; from += PLACE_THREADS) {
        const int64_t block = from + threadIdx.x;
        const bool is_there = block < packed.blocks;
        const uint64_t words = is_there ? words_for(keys_in_block(block, own.count), (int)packed.ends[block]) : 0;
        const uint64_t through = before + block_sum_before(words, sums) + words;
        if (is_there)
            packed.ends[block] = (uint32_t)through;
        if (threadIdx.x == PLACE_THREADS - 1)
            all = through;
        __syncthreads();
        before = all;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        const int64_t head = (int64_t)((char *)packed.word - (char *)packed.first);
        used[blockIdx.y] = min(head + (int64_t)before * (int64_t)sizeof(uint32_t), own.count * (int64_t)sizeof(K));
        *(volatile int64_t *)own.bytes = used[blockIdx.y];
    }
}

/* Word `at` of a block, made of the differences that have bits in it. */
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
    write_blocks_kernel(const __grid_constant__ packed_batch<K> batch, const int64_t *__restrict__ used)
{
    __shared__ K differences[PACK_THREADS];
    const packed_keys<K> own = batch.of[blockIdx.y];
    const packed_layout<K> packed = layout_of(own);
    const bool is_plain = used[blockIdx.y] == own.count * (int64_t)sizeof(K);
    for (int64_t block = blockIdx.x; block < packed.blocks; block += gridDim.x) {
        const int number = keys_in_block(block, own.count);
        const int64_t at = block * ENGINE_PACK_KEYS + threadIdx.x;
        if (is_plain) {
            if ((int)threadIdx.x < number)
                packed.first[at] = own.keys[at];
            continue;
        }
        const uint32_t begin = block > 0 ? packed.ends[block - 1] : 0, words = packed.ends[block] - begin;
        const int width = block == packed.blocks - 1 ? (int)packed.ends[packed.blocks] : (int)(words / WORDS_OF_BIT);
        if (batch.to_smallest)
            differences[threadIdx.x] = (int)threadIdx.x < number ? (K)(own.keys[at] - packed.first[block]) : (K)0;
        else
            differences[threadIdx.x] = difference_of(own.keys, block, number);
        __syncthreads();
        for (uint32_t word = threadIdx.x; word < words; word += PACK_THREADS)
            packed.word[begin + word] = word_of(differences, number, width, (int)word);
        __syncthreads();
    }
}

/* Value `i` in the words of a block. */
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

/* Whatever the ends say, words are read only where there are some. */
template <typename K>
static __global__ void __launch_bounds__(PACK_THREADS)
    unpack_blocks_kernel(const __grid_constant__ packed_batch<K> batch)
{
    __shared__ K sums[PACK_WARPS];
    const packed_keys<K> own = batch.of[blockIdx.y];
    const packed_layout<K> packed = layout_of(own);
    for (int64_t block = blockIdx.x; block < packed.blocks; block += gridDim.x) {
        const int number = keys_in_block(block, own.count);
        const int64_t begin = block > 0 ? packed.ends[block - 1] : 0;
        int64_t width = block == packed.blocks - 1 ? (int64_t)packed.ends[packed.blocks]
                                                   : ((int64_t)packed.ends[block] - begin) / WORDS_OF_BIT;
        if (width < 0 || width > (int64_t)(8 * sizeof(K)) || begin + words_for(number, (int)width) > own.words)
            width = 0;
        const bool is_there = (int)threadIdx.x < number;
        const K difference = is_there ? packed_value<K>(packed.word + begin, (int)width, threadIdx.x) : (K)0;
        const K sum = batch.to_smallest ? difference : (K)(block_sum_before(difference, sums) + difference);
        if (is_there)
            own.keys[block * ENGINE_PACK_KEYS + threadIdx.x] = (K)(packed.first[block] + sum);
        __syncthreads(); // the next block of keys takes the same sums
    }
}

/* ---- the operations -------------------------------------------------------------------------------------- */

/* Blocks of threads in x: as many as keep all multiprocessors busy. A short packing beside long ones has blocks that find nothing to do. */
template <typename K>
static dim3 pack_grid(const struct cuda_engine *engine, const packed_batch<K> &batch)
{
    const int64_t each = divide_up((int64_t)engine->multiprocessors * PACK_BLOCKS, (int64_t)batch.count);
    return dim3((unsigned)min(batch.blocks_most, each), (unsigned)batch.count);
}

template <typename K>
static hsort_status queue_packing(struct cuda_engine *engine, const packed_batch<K> &batch)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    measure_blocks_kernel<K><<<pack_grid(engine, batch), PACK_THREADS, 0, stream>>>(batch);
    TRY_LAUNCH("widths of packed keys");
    place_blocks_kernel<K><<<dim3(1, (unsigned)batch.count), PLACE_THREADS, 0, stream>>>(batch, engine->packed_bytes);
    TRY_LAUNCH("places of packed keys");
    write_blocks_kernel<K><<<pack_grid(engine, batch), PACK_THREADS, 0, stream>>>(batch, engine->packed_bytes);
    TRY_LAUNCH("packing of keys");
    return HSORT_OK;
}

template <typename K>
static hsort_status queue_unpacking(struct cuda_engine *engine, const packed_batch<K> &batch)
{
    unpack_blocks_kernel<K>
        <<<pack_grid(engine, batch), PACK_THREADS, 0, engine->streams[STREAM_WORK]>>>(batch);
    TRY_LAUNCH("unpacking of keys");
    return HSORT_OK;
}

/* Add a packing to a batch. Queue the packings so far first, if there are as many as a launch takes, or if they are of the other kind. */
template <typename K>
static hsort_status add_packing(struct cuda_engine *engine, hsort_status (*queue)(struct cuda_engine *, const packed_batch<K> &),
                                const packed_keys<K> &one, bool to_smallest, packed_batch<K> *batch)
{
    if (batch->count == CUDA_PACKINGS || (batch->count > 0 && batch->to_smallest != to_smallest)) {
        TRY(queue(engine, *batch));
        batch->count = 0;
        batch->blocks_most = 0;
    }
    batch->to_smallest = to_smallest;
    batch->of[batch->count++] = one;
    batch->blocks_most = max(batch->blocks_most, divide_up(one.count, (int64_t)ENGINE_PACK_KEYS));
    return HSORT_OK;
}

static hsort_status copy_plain(const struct cuda_engine *engine, void *to, const void *from, int64_t bytes)
{
    if (bytes == 0)
        return HSORT_OK;
    return cuda_check(
        cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, engine->streams[STREAM_WORK]),
        "a copy of keys that are not packed");
}

/* Pack, or unpack. If packed keys would take no fewer bytes, the keys are copied. Bytes that cannot be packed keys are left alone. */
static hsort_status run_packings(struct engine *base, int key_bytes, const struct engine_packing *packings,
                                 int number, bool packs)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    TRY(kernel_takes(packs ? "packing of keys" : "unpacking of keys", key_bytes));
    return with_key_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        const auto queue = packs ? queue_packing<K> : queue_unpacking<K>;
        const int64_t word = sizeof(uint32_t);
        packed_batch<K> batch = {};
        for (int i = 0; i < number; i++) {
            const struct engine_packing &one = packings[i];
            const int64_t plain = one.count * (int64_t)sizeof(K), head = head_bytes<K>(one.count);
            if (packs)
                *one.bytes = plain;
            if (packs ? head >= plain || plain / word > (int64_t)UINT32_MAX : *one.bytes >= plain)
                TRY(copy_plain(engine, one.to, one.from, plain));
            else if (packs)
                TRY(add_packing<K>(engine, queue, {(K *)one.from, (K *)one.to, one.count, 0, one.bytes},
                                   one.to_smallest, &batch));
            else if (*one.bytes >= head)
                TRY(add_packing<K>(
                    engine, queue, {(K *)one.to, (K *)one.from, one.count, (*one.bytes - head) / word, NULL},
                    one.to_smallest, &batch));
        }
        return batch.count > 0 ? queue(engine, batch) : (hsort_status)HSORT_OK;
    });
}

static hsort_status cuda_pack(struct engine *base, int key_bytes, const struct engine_packing *packings, int number)
{
    return run_packings(base, key_bytes, packings, number, true);
}

static hsort_status cuda_unpack(struct engine *base, int key_bytes, const struct engine_packing *packings, int number)
{
    return run_packings(base, key_bytes, packings, number, false);
}

const struct engine_pack_ops cuda_pack_ops = {
    .pack = cuda_pack,
    .unpack = cuda_unpack,
};
