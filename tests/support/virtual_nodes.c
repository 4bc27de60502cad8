/* Ranks of this machine, as if they were on several nodes of one and of three ranks: 0 | 1 2 3 | 4 | 5 6 7 | ... Linked with
 * --wrap=MPI_Comm_split_type, by which the library asks for the ranks of its node. */
#include <mpi.h>

enum { RANKS_OF_TWO_NODES = 4 };

int __real_MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *node);
int __wrap_MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *node);

int __wrap_MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *node)
{
    int rank;
    (void)info;
    MPI_Comm_rank(comm, &rank);
    if (type != MPI_COMM_TYPE_SHARED)
        return __real_MPI_Comm_split_type(comm, type, key, info, node);
    return MPI_Comm_split(comm, rank / RANKS_OF_TWO_NODES * 2 + (rank % RANKS_OF_TWO_NODES > 0), key, node);
}
