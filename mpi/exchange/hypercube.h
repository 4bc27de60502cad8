/* Who meets whom in which round: Batcher's bitonic network over the ranks, all comparators ascending, for any
 * number of ranks. Pure arithmetic; not collective. mpi/README.md pictures it for 4 ranks. */
#ifndef HYPERCUBE_H
#define HYPERCUBE_H

/* Rounds of the network over `size` >= 1 ranks: L (L + 1) / 2 with L = ceil(log2(size)). */
int hypercube_rounds(int size);

/* The rank that `rank` meets in `round` (0-based), or -1 if it meets none: its partner would be a rank >=
 * size, which stands for +infinity and keeps its keys in any case. The lower rank of a pair keeps the lower
 * keys. */
int hypercube_partner(int rank, int size, int round);

#endif
