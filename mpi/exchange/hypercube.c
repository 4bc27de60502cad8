/* The rounds of the all-ascending bitonic network. Merge k joins neighbouring groups of 2^(k-1) ranks into
 * groups of 2^k: its first round pairs rank r with its mirror image in the group, r XOR (2^k - 1); the others
 * pair r with r XOR 2^j, j = k-2 .. 0. For 8 ranks:
 *
 *     merge    1     2        3
 *     mask     1     3  1     7  2  1
 *     round    0     1  2     3  4  5
 *
 * So every comparator ascends, the lower rank always takes the lower keys, and pairs with a rank that does not exist are skipped:
 * mpi/README.md says why. */
#include "mpi/exchange/hypercube.h"
#include "kernels/base/lesser.h"

int hypercube_rounds(int size)
{
    int dimension = depth_of(size);
    return dimension * (dimension + 1) / 2;
}

int hypercube_partner(int rank, int size, int round)
{
    int merge = 1;
    while (round >= merge) {
        round -= merge;
        merge++;
    }
    // `round` is now the number of the step inside this merge, 0 .. merge - 1.
    unsigned mask = round == 0 ? (1u << merge) - 1 : 1u << (merge - 1 - round);
    unsigned partner = (unsigned)rank ^ mask;
    return partner < (unsigned)size ? (int)partner : -1;
}
