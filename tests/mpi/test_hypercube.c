/* The schedule of the hypercube sorts, for any number of ranks.
 *
 * A network of comparators sorts every input if it sorts every input of zeros and ones (Knuth, TAOCP 3, 5.3.4, theorem
 * Z). It then also sorts blocks, with each comparator replaced by a compare-split (same section, exercise 38). So for
 * every size up to 24 all 2^size inputs go through the schedule, one key per rank. They go 64 at a time: a word per
 * rank holds that rank's key of 64 inputs, and a comparator is one AND and one OR.
 *
 *     bit of the word      0 1 2 3 4 5 6 7 ..           lower  = a & b    (0 unless both are 1)
 *     key of rank 0        0 1 0 1 0 1 0 1 ..           upper  = a | b
 *     key of rank 1        0 0 1 1 0 0 1 1 ..           sorted where no lower rank has a 1 above a 0
 *     key of rank 2        0 0 0 0 1 1 1 1 ..
 *
 * Larger sizes get random zeros and ones. Blocks with short shards, which stand for shards padded with +infinity, are
 * run as well and compared with qsort. */
#include <limits.h>
#include "tests/support/check.h"
#include "mpi/exchange/hypercube.h"

enum { MOST_RANKS = 1024, MOST_ROUNDS = 55, MOST_PROVED = 24, BLOCK = 5, MOST_BLOCKS = 9 };

static short partners[MOST_ROUNDS][MOST_RANKS];

static int rounds_expected(int size)
{
    int levels = 0;
    while (1 << levels < size)
        levels++;
    return levels * (levels + 1) / 2;
}

/* Read the schedule for `size` ranks into partners[][] and check what must hold of any schedule. Returns its rounds. */
static int read_schedule(int size)
{
    const int rounds = hypercube_rounds(size);
    CHECK(rounds == rounds_expected(size), "%d ranks: %d rounds", size, rounds);
    if (rounds > MOST_ROUNDS)
        return 0;
    for (int round = 0; round < rounds; round++) {
        for (int rank = 0; rank < size; rank++) {
            const int partner = hypercube_partner(rank, size, round);
            CHECK(partner >= -1 && partner < size && partner != rank, "%d ranks, round %d: rank %d meets %d",
                  size, round, rank, partner);
            partners[round][rank] = (short)partner;
        }
        for (int rank = 0; rank < size; rank++) {
            const int partner = partners[round][rank];
            CHECK(partner < 0 || partners[round][partner] == rank,
                  "%d ranks, round %d: %d meets %d, who meets %d", size, round, rank, partner,
                  partner < 0 ? -1 : partners[round][partner]);
        }
    }
    return rounds;
}

/* Sort 64 inputs of zeros and ones by the schedule in partners[][]. Returns the inputs that come out wrong, as bits. */
static uint64_t sort_bits(int size, int rounds, uint64_t *key)
{
    for (int round = 0; round < rounds; round++) {
        for (int rank = 0; rank < size; rank++) {
            const int partner = partners[round][rank];
            if (partner <= rank)
                continue;
            const uint64_t a = key[rank], b = key[partner];
            key[rank] = a & b;
            key[partner] = a | b;
        }
    }
    uint64_t wrong = 0;
    for (int rank = 0; rank + 1 < size; rank++)
        wrong |= key[rank] & ~key[rank + 1];
    return wrong;
}

static void prove_all_inputs(int size)
{
    static const uint64_t counting[6] = {UINT64_C(0xaaaaaaaaaaaaaaaa), UINT64_C(0xcccccccccccccccc),
                                         UINT64_C(0xf0f0f0f0f0f0f0f0), UINT64_C(0xff00ff00ff00ff00),
                                         UINT64_C(0xffff0000ffff0000), UINT64_C(0xffffffff00000000)};
    const int rounds = read_schedule(size);
    const uint64_t words = size <= 6 ? 1 : UINT64_C(1) << (size - 6);
    for (uint64_t word = 0; word < words; word++) {
        uint64_t key[MOST_PROVED];
        for (int rank = 0; rank < size; rank++)
            key[rank] = rank < 6 ? counting[rank] : word >> (rank - 6) & 1 ? UINT64_MAX : 0;
        const uint64_t wrong = sort_bits(size, rounds, key);
        CHECK(wrong == 0, "%d ranks: inputs %#llx of word %llu are not sorted", size,
              (unsigned long long)wrong, (unsigned long long)word);
    }
}

/* Try 64 random inputs per word; the share of ones varies, because inputs with few or many ones are the harder ones. */
static void try_random_inputs(int size, int words, uint64_t *random)
{
    static uint64_t key[MOST_RANKS];
    const int rounds = read_schedule(size);
    for (int word = 0; word < words; word++) {
        for (int rank = 0; rank < size; rank++) {
            key[rank] = check_random(random);
            for (int thin = word % 5; thin > 1; thin--)
                key[rank] = word % 2 ? key[rank] | check_random(random) : key[rank] & check_random(random);
        }
        const uint64_t wrong = sort_bits(size, rounds, key);
        CHECK(wrong == 0, "%d ranks, random word %d: not sorted", size, word);
    }
}

static int compare_int(const void *a, const void *b)
{
    const int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

/* One rank's run. If its shard is short, the run has fewer than BLOCK keys, and those that are missing count as +infinity. */
struct run {
    int count;
    int key[BLOCK];
};

/* The lower rank keeps the lowest keys of both, as many as it has room for. */
static void compare_split(struct run *lower, struct run *upper)
{
    int both[2 * BLOCK];
    const int all = lower->count + upper->count;
    memcpy(both, lower->key, (size_t)lower->count * sizeof both[0]);
    memcpy(both + lower->count, upper->key, (size_t)upper->count * sizeof both[0]);
    qsort(both, (size_t)all, sizeof both[0], compare_int);
    lower->count = all < BLOCK ? all : BLOCK;
    upper->count = all - lower->count;
    memcpy(lower->key, both, (size_t)lower->count * sizeof both[0]);
    memcpy(upper->key, both + lower->count, (size_t)upper->count * sizeof both[0]);
}

static void try_blocks(int size, uint64_t *random)
{
    struct run run[MOST_BLOCKS];
    int expected[MOST_BLOCKS * BLOCK], all = 0;
    for (int rank = 0; rank < size; rank++) {
        run[rank].count = (int)(check_random(random) % (BLOCK + 1));
        for (int i = 0; i < run[rank].count; i++)
            expected[all++] = run[rank].key[i] = (int)(check_random(random) % 20);
        qsort(run[rank].key, (size_t)run[rank].count, sizeof(int), compare_int);
    }
    qsort(expected, (size_t)all, sizeof(int), compare_int);
    for (int round = 0; round < hypercube_rounds(size); round++)
        for (int rank = 0; rank < size; rank++) {
            const int partner = hypercube_partner(rank, size, round);
            if (partner > rank)
                compare_split(&run[rank], &run[partner]);
        }
    int position = 0;
    for (int rank = 0; rank < size; rank++) {
        const int due = all - position < BLOCK ? all - position : BLOCK;
        CHECK(run[rank].count == due, "%d ranks: rank %d holds %d keys instead of %d", size, rank,
              run[rank].count, due);
        for (int i = 0; i < run[rank].count && position < all; i++, position++)
            CHECK(run[rank].key[i] == expected[position], "%d ranks: position %d", size, position);
    }
}

int main(void)
{
    uint64_t random = check_seed();
    printf("seed %llu\n", (unsigned long long)random);
    for (int size = 1; size <= MOST_PROVED; size++)
        prove_all_inputs(size);
    for (int size = MOST_PROVED + 1; size <= 200; size++)
        try_random_inputs(size, 50, &random);
    try_random_inputs(1000, 100, &random);
    try_random_inputs(1024, 100, &random);
    for (int size = 1; size <= MOST_BLOCKS; size++)
        for (int repeat = 0; repeat < 2000; repeat++)
            try_blocks(size, &random);
    CHECK(hypercube_rounds(INT_MAX) == 31 * 32 / 2, "%d rounds", hypercube_rounds(INT_MAX));
    return check_failures > 0;
}
