/* The agreement of ranks on one status, sums over ranks, and who is on a node with whom. Whatever mix of ranks fails, every rank gets
 * the greatest status of all and the same line of text, which names the lowest rank that has that status. */
#include <stdbool.h>
#include "mpi/comm/comm.h"
#include "tests/support/ranks.h"

enum { MOST_RANKS = 64 };

static struct comm comm;

/* Does every rank hold the same line? Collective. */
static bool same_everywhere(const char *line)
{
    char first[sizeof comm.error];
    snprintf(first, sizeof first, "%s", line);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    int same = strcmp(first, line) == 0, all;
    MPI_Allreduce(&same, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all != 0;
}

/* Let every rank bring the status that statuses [size] has for it, with a text of its own unless `silent`. */
static void agree_on(const hsort_status *statuses, bool silent)
{
    int worst = 0;
    for (int rank = 1; rank < comm.size; rank++)
        if (statuses[rank] > statuses[worst])
            worst = rank;
    const hsort_status mine = statuses[comm.rank];
    status_clear();
    if (mine != HSORT_OK && !silent)
        status_fail(mine, "cause %d.", comm.rank * 7);
    const hsort_status agreed = comm_agree(&comm, mine);
    CHECK(agreed == statuses[worst], "rank %d: got %d instead of %d", comm.rank, agreed, statuses[worst]);
    if (agreed == HSORT_OK)
        return;
    char who[32], cause[32];
    snprintf(who, sizeof who, "rank %d on ", worst);
    snprintf(cause, sizeof cause, ": cause %d.", worst * 7);
    CHECK(strncmp(comm.error, who, strlen(who)) == 0, "wanted '%s' in '%s'", who, comm.error);
    CHECK(strstr(comm.error, silent ? hsort_strerror(agreed) : cause), "wanted the cause in '%s'",
          comm.error);
    // All ranks of a test run on one host, so this rank's name for it is the failing rank's as well.
    CHECK(strlen(comm.host) > 0 && strstr(comm.error, comm.host), "wanted '%s' in '%s'", comm.host,
          comm.error);
    CHECK(same_everywhere(comm.error), "rank %d has '%s'", comm.rank, comm.error);
}

static void test_agreement(uint64_t random)
{
    hsort_status statuses[MOST_RANKS] = {HSORT_OK};
    agree_on(statuses, false);
    for (int rank = 0; rank < comm.size; rank++) {
        statuses[rank] = HSORT_ARGUMENT;
        agree_on(statuses, false);
        agree_on(statuses, true);
        statuses[rank] = HSORT_OK;
        agree_on(statuses, false);
    }
    for (int rank = 0; rank < comm.size; rank++)
        statuses[rank] = HSORT_DEVICE_MEMORY;
    agree_on(statuses, false);
    for (int repeat = 0; repeat < 200; repeat++) {
        for (int rank = 0; rank < comm.size; rank++)
            statuses[rank] =
                (hsort_status)(check_random(&random) % (HSORT_INTERNAL + 1) * (check_random(&random) % 2));
        agree_on(statuses, false);
    }
}

/* A text as long as a text can be must neither cut off who failed nor run over. */
static void test_longest_text(void)
{
    char text[2 * STATUS_TEXT_BYTES];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    status_clear();
    const bool last = comm.rank == comm.size - 1;
    const hsort_status agreed = comm_agree(&comm, last ? status_fail(HSORT_IO, "%s", text) : HSORT_OK);
    CHECK(agreed == HSORT_IO, "got %d", agreed);
    CHECK(strlen(comm.error) > STATUS_TEXT_BYTES && strlen(comm.error) < sizeof comm.error,
          "%zu bytes of text", strlen(comm.error));
    CHECK(same_everywhere(comm.error), "rank %d has '%s'", comm.rank, comm.error);
}

/* Check sums and ranges of values [size], of which this rank brings its own. */
static void sum_up(const int64_t *values)
{
    int64_t all = 0, low = values[0], high = values[0];
    for (int rank = 0; rank < comm.size; rank++) {
        all += values[rank];
        low = values[rank] < low ? values[rank] : low;
        high = values[rank] > high ? values[rank] : high;
    }
    int64_t got = -1, got_low = -1, got_high = -1, gathered[MOST_RANKS];
    CHECK(comm_sum(&comm, values[comm.rank], &got) == HSORT_OK && got == all, "sum %lld instead of %lld",
          (long long)got, (long long)all);
    CHECK(comm_range(&comm, values[comm.rank], &got_low, &got_high) == HSORT_OK && got_low == low &&
              got_high == high,
          "range %lld .. %lld instead of %lld .. %lld", (long long)got_low, (long long)got_high,
          (long long)low, (long long)high);
    got_low = got_high = -1;
    CHECK(comm_range(&comm, values[comm.rank], &got_low, NULL) == HSORT_OK && got_low == low,
          "the smallest alone");
    CHECK(comm_range(&comm, values[comm.rank], NULL, &got_high) == HSORT_OK && got_high == high,
          "the largest alone");
    CHECK(comm_gather(&comm, values[comm.rank], gathered) == HSORT_OK, "%s", status_text());
    for (int rank = 0; rank < comm.size; rank++)
        CHECK(gathered[rank] == values[rank], "value of rank %d", rank);
}

/* Sum several numbers of each rank at a time. Rank r's number i is r's part of a sum that is known. */
static void test_many(void)
{
    enum { NUMBERS = 5 };
    int64_t own[NUMBERS], sums[NUMBERS];
    double reals[NUMBERS], largest[NUMBERS];
    uint64_t words[NUMBERS], all[MOST_RANKS * NUMBERS];
    const int64_t ranks_below = (int64_t)comm.size * (comm.size - 1) / 2;
    for (int i = 0; i < NUMBERS; i++) {
        own[i] = INT64_C(1000000007) * i + comm.rank;
        reals[i] = i % 2 ? comm.rank + 0.5 : -comm.rank - 0.5;
        words[i] = ((uint64_t)comm.rank + 1) << (60 - i);
    }
    CHECK(comm_sums(&comm, own, NUMBERS, sums) == HSORT_OK, "%s", status_text());
    CHECK(comm_largest(&comm, reals, NUMBERS, largest) == HSORT_OK, "%s", status_text());
    CHECK(comm_gather_words(&comm, words, NUMBERS, all) == HSORT_OK, "%s", status_text());
    for (int i = 0; i < NUMBERS; i++) {
        CHECK(sums[i] == INT64_C(1000000007) * i * comm.size + ranks_below, "sum %d is %lld", i,
              (long long)sums[i]);
        CHECK(largest[i] == (i % 2 ? comm.size - 0.5 : -0.5), "largest %d is %g", i, largest[i]);
        for (int rank = 0; rank < comm.size; rank++)
            CHECK(all[rank * NUMBERS + i] == ((uint64_t)rank + 1) << (60 - i), "word %d of rank %d", i, rank);
    }
}

static void test_sums(uint64_t random)
{
    const int64_t many = (INT64_C(1) << 31) + 1;
    int64_t values[MOST_RANKS];
    for (int kind = 0; kind < 5; kind++) {
        for (int rank = 0; rank < comm.size; rank++) {
            const int64_t kinds[5] = {0, many, INT64_MAX / comm.size, -rank,
                                      rank == comm.size / 2 ? many << 20 : 0};
            values[rank] = kinds[kind];
        }
        sum_up(values);
    }
    values[0] = INT64_MAX; // as large and as small as a value can be
    for (int rank = 1; rank < comm.size; rank++)
        values[rank] = rank == 1 ? INT64_MIN : 0;
    sum_up(values);
    for (int repeat = 0; repeat < 100; repeat++) {
        for (int rank = 0; rank < comm.size; rank++)
            values[rank] = (int64_t)check_random(&random) >> (8 + check_random(&random) % 40);
        sum_up(values);
    }
}

static void test_open(void)
{
    int result, rank, size;
    MPI_Comm_compare(MPI_COMM_WORLD, comm.world, &result);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(result == MPI_CONGRUENT, "the communicator is no duplicate");
    CHECK(comm.rank == rank && comm.size == size, "rank %d of %d", comm.rank, comm.size);
    CHECK(comm.node_rank >= 0 && comm.node_rank < comm.node_size && comm.node_size <= size,
          "rank %d of %d on a node", comm.node_rank, comm.node_size);
    // There is no such rank: this must be an error, and not end the program.
    CHECK(comm_check(MPI_Send(NULL, 0, MPI_BYTE, size, 0, comm.world), "MPI_Send", false) == HSORT_MPI,
          "sent");
    CHECK(comm_check(MPI_Send(NULL, 0, MPI_BYTE, size, 0, comm.node), "MPI_Send", false) == HSORT_MPI,
          "sent");
}

/* ---- nodes ----------------------------------------------------------------------------------------------- */

static const int *node_of; /* [size] the node of each rank; NULL: as MPI finds them */
static int kept;           /* communicators and groups that were made and not freed */

int MPI_Comm_split_type(MPI_Comm all, int type, int key, MPI_Info info, MPI_Comm *node)
{
    int rank;
    PMPI_Comm_rank(all, &rank);
    kept++;
    return node_of ? PMPI_Comm_split(all, node_of[rank], key, node)
                   : PMPI_Comm_split_type(all, type, key, info, node);
}

int MPI_Comm_dup(MPI_Comm of, MPI_Comm *made)
{
    kept++;
    return PMPI_Comm_dup(of, made);
}

int MPI_Comm_group(MPI_Comm of, MPI_Group *made)
{
    kept++;
    return PMPI_Comm_group(of, made);
}

int MPI_Comm_free(MPI_Comm *made)
{
    kept--;
    return PMPI_Comm_free(made);
}

int MPI_Group_free(MPI_Group *made)
{
    kept--;
    return PMPI_Group_free(made);
}

static int ranks_on_node(int node)
{
    int ranks = 0;
    for (int rank = 0; rank < comm.size; rank++)
        ranks += node_of[rank] == node;
    return ranks;
}

/* Check, for nodes [size] of the ranks, who is near, who leads, and whether all nodes have equally many ranks, one node behind the
 * other. */
static void check_nodes(const int *nodes)
{
    struct comm split;
    int64_t leaders[MOST_RANKS];
    const int before = kept;
    node_of = nodes;
    CHECK(comm_open(MPI_COMM_WORLD, &split) == HSORT_OK, "comm_open: %s", status_text());
    CHECK(comm_leaders(&split, leaders) == HSORT_OK, "%s", status_text());
    int each = ranks_on_node(nodes[0]);
    for (int rank = 0; rank < comm.size; rank++) {
        int leader = 0;
        while (nodes[leader] != nodes[rank])
            leader++;
        CHECK(leaders[rank] == leader, "rank %d is led by %lld, not %d", rank, (long long)leaders[rank],
              leader);
        CHECK(comm_is_near(&split, rank) == (nodes[rank] == nodes[comm.rank]), "is %d near %d?", rank,
              comm.rank);
        if (ranks_on_node(nodes[rank]) != each || nodes[rank] != nodes[rank / each * each])
            each = 1;
    }
    CHECK(split.node_size == ranks_on_node(nodes[comm.rank]), "%d ranks on a node", split.node_size);
    CHECK(split.even_node_ranks == each, "%d ranks on every node, not %d", split.even_node_ranks, each);
    comm_close(&split);
    CHECK(kept == before, "%d communicators and groups are left", kept - before);
    node_of = NULL;
}

static void test_nodes(uint64_t random)
{
    int nodes[MOST_RANKS];
    for (int kind = 0; kind < 30; kind++) {
        for (int rank = 0; rank < comm.size; rank++) {
            const int kinds[] = {0, rank, rank / 2, rank % 2, (rank + 1) / 2, rank / 3, (rank + 1) / 2 % 2};
            enum { KINDS = sizeof kinds / sizeof *kinds };
            nodes[rank] = kind < KINDS ? kinds[kind] : (int)(check_random(&random) % 3);
        }
        check_nodes(nodes);
    }
}

static void test_mpi_codes(void)
{
    status_clear();
    CHECK(comm_check(MPI_SUCCESS, "MPI_Example", true) == HSORT_OK, "success is no failure");
    CHECK(comm_check(MPI_ERR_COUNT, "MPI_Example", true) == HSORT_MPI, "a code is a failure");
    CHECK(strstr(status_text(), "MPI_Example"), "'%s' does not name the call", status_text());
    status_clear();
#ifdef HSORT_FAULTS
    fault_set(FAULT_MPI, 1);
    CHECK(comm_check(MPI_SUCCESS, "MPI_Example", false) == HSORT_OK, "this call may not be made to fail");
    CHECK(comm_check(MPI_SUCCESS, "MPI_Example", true) == HSORT_MPI, "this call was to fail");
    CHECK(comm_check(MPI_SUCCESS, "MPI_Example", true) == HSORT_OK, "a fault happens once");
    status_clear();
#endif
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const uint64_t seed = ranks_seed();
    const hsort_status status = comm_open(MPI_COMM_WORLD, &comm);
    CHECK(status == HSORT_OK, "comm_open: %s", status_text());
    if (status == HSORT_OK) {
        test_open();
        test_agreement(seed);
        test_longest_text();
        test_sums(seed);
        test_many();
        test_mpi_codes();
        test_nodes(seed);
        comm_close(&comm);
    }
    return ranks_finish();
}
