/* Bitonic sort on CPU cores, step by step as the GPU's first kernel does it; the bitonic rungs are checked against it.
 * It is the plain network, without blocking for the cache; the radix sort is the fast one.
 *
 * In the all-ascending form, the first step of a phase compares each key with its mirror image in the block, and the
 * other steps compare it with the key one stride away; the lower place always keeps the lower key. So places beyond the
 * last key would hold +infinity from beginning to end and may be left out: any count works, and none is padded.
 *
 *   block  partner   pairs (in brackets: left out)   keys 5 3 6 1 4 2
 *   2      i ^ 1     0-1  2-3  4-5                        3 5 1 6 2 4
 *   4      i ^ 3     0-3  1-2  [4-7  5-6]                 3 1 5 6 2 4     mirror
 *          i ^ 1     0-1  2-3  4-5                        1 3 5 6 2 4
 *   8      i ^ 7     2-5  3-4  [0-7  1-6]                 1 3 4 2 6 5     mirror
 *          i ^ 2     0-2  1-3  [4-6  5-7]                 1 2 4 3 6 5
 *          i ^ 1     0-1  2-3  4-5                        1 2 3 4 5 6
 *
 * Cost     log2(n) (log2(n) + 1) / 2 steps, each one pass over all keys.
 * Source   Batcher, "Sorting networks and their applications", 1968; Peters, Schulz-Hildebrandt,
 *          Luttenberger, "Fast in-place sorting with CUDA based on bitonic sort", 2010, section 3.3. */
#include "kernels/host/host_engine.h"

#define KEY_WIDTH_BODY "kernels/host/bitonic_body.h"
#include "kernels/host/for_key_widths.h"

void bitonic_sort(int threads, int key_bytes, void *keys, int64_t count)
{
    KEY_CALL(key_bytes, sort_by_network, keys, count, threads);
}
