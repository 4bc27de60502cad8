/* What tests of several ranks share: one seed for all of them, one result. */
#ifndef RANKS_H
#define RANKS_H

#include <mpi.h>
#include <stdbool.h>
#include "kernels/engine.h"
#include "tests/support/check.h"

/* Rank 0's check_seed(), printed there.                                                        Collective. */
static inline uint64_t ranks_seed(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    uint64_t seed = check_seed();
    MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("seed %llu\n", (unsigned long long)seed);
    return seed;
}

/* Say on rank 0 why the test is skipped, finalise MPI, return what main() returns.             Collective. */
static inline int ranks_skip(const char *why)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("skipped: %s\n", why);
    MPI_Finalize();
    return CHECK_SKIPPED;
}

/* MPI_Init(); *rank, *size = which rank this is, of how many; *cuda = the program's first argument is "cuda". False if it is and
 * there is no GPU: the test has been skipped, and main() returns CHECK_SKIPPED.                Collective. */
static inline bool ranks_begin(int argc, char **argv, int *rank, int *size, bool *cuda)
{
    char why[256] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    *cuda = argc > 1 && strcmp(argv[1], "cuda") == 0;
    if (*cuda && cuda_device_count(why, sizeof why) == 0) {
        ranks_skip(why);
        return false;
    }
    return true;
}

/* Add up the failures of all ranks, finalise MPI, return what main() returns.                  Collective. */
static inline int ranks_finish(void)
{
    int all;
    MPI_Allreduce(&check_failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all > 0;
}

#endif
