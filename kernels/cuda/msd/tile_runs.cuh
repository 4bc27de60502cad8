/* The keys of a tile lie in shared memory in the order of their buckets: one run for each bucket that has keys. The run that a place is
 * in tells where the key goes. Bits say where runs begin, row by row; a row has a place for each lane of a warp. With rows of 4:
 *
 *     the tile            a a a c | c d     runs 0, 1, 2, of buckets a, c, d
 *     a run begins        1 0 0 1 | 0 1
 *     before the row      0       | 2       so the first key of the second row is in run 2 + 0 - 1, the other one in 2 + 1 - 1
 *
 * Rejected: keeping the bucket of each place beside its key. That is one more write to a random place of shared memory, which is what a
 * scatter waits for most. */
#ifndef TILE_RUNS_CUH
#define TILE_RUNS_CUH

#include "kernels/cuda/engine/block.cuh"

struct alignas(2 * sizeof(uint32_t)) row_of_runs {
    uint32_t begins; /* bit i: a run begins at place i of the row */
    uint32_t before; /* runs that begin in front of the row */
};

/* The rows of a tile, and one more, so that note_run() need not ask whether a row is the last. */
static __host__ __device__ constexpr int rows_of_tile(int places)
{
    return places / WARP + 1;
}

/* The runs and the keys of buckets are added up together, in one word. */
enum { RUN_SHIFT = 16 };

static __device__ uint32_t run_and_keys(uint32_t keys)
{
    return (keys > 0 ? 1u << RUN_SHIFT : 0) | keys;
}

static __device__ uint32_t runs_before(uint32_t sum)
{
    return sum >> RUN_SHIFT;
}

static __device__ uint32_t keys_before(uint32_t sum)
{
    return sum & ((1u << RUN_SHIFT) - 1);
}

/* Clear the rows, before any run is noted. All threads of a block call it. */
template <int THREADS, int ROWS>
static __device__ void clear_rows(struct row_of_runs (&rows)[ROWS])
{
    for (int row = threadIdx.x; row < ROWS; row += THREADS)
        rows[row] = {0, 0};
}

/* Note that run `run`, counted from 0, has places first .. next - 1, at least one. */
static __device__ void note_run(struct row_of_runs *rows, uint32_t run, uint32_t first, uint32_t next)
{
    atomicOr(&rows[first / WARP].begins, 1u << first % WARP);
    for (uint32_t row = first / WARP + 1; row * WARP <= next; row++) // most often one
        rows[row].before = run + 1;
}

/* The run that has a place. */
static __device__ uint32_t run_of_place(const struct row_of_runs *rows, uint32_t place)
{
    const struct row_of_runs row = rows[place / WARP];
    return row.before + __popc(row.begins << (WARP - 1 - place % WARP)) - 1;
}

#endif
