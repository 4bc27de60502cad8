/* The bitonic sort for one key width: bitonic.c includes this once for each, with KEY the key and NAMED(name)
 * its name. */

/* One step: every key i meets key i XOR mask. A pair is touched by the iteration of its lower place alone. */
static void NAMED(compare_step)(KEY *keys, int64_t count, int64_t mask, int threads)
{
#pragma omp parallel for num_threads(threads) if (threads > 1 && count >= PARALLEL_MERGE)
    for (int64_t i = 0; i < count; i++) {
        const int64_t partner = i ^ mask;
        if (partner > i && partner < count && keys[partner] < keys[i]) {
            const KEY lower = keys[partner];
            keys[partner] = keys[i];
            keys[i] = lower;
        }
    }
}

static void NAMED(sort_by_network)(KEY *keys, int64_t count, int threads)
{
    for (int64_t block = 2; block / 2 < count; block *= 2) {
        NAMED(compare_step)(keys, count, block - 1, threads);
        for (int64_t stride = block / 4; stride > 0; stride /= 2)
            NAMED(compare_step)(keys, count, stride, threads);
    }
}
