/* Elements of a distributed array, carried to where they are asked for, or to where they belong:
 *
 *     gather    out[i] = in[index[i]]        global positions count through the ranks in order
 *     scatter   out[index[i]] = in[i]
 *
 * Each rank sorts its index, with the place of each entry below it, and tells every other rank which of that rank's elements it names.
 * Both directions then walk the same lists:
 *
 *     rank 1, index  7 2 5 0      owners: rank 0 has 0..3, rank 1 has 4..7
 *     sorted         0 2 | 5 7    rank 0 is told "0 2", and the places are 3 1 | 2 0
 *     gather         rank 0 takes its elements 0 2, sends them; they go to places 3 1 here
 *     scatter        the elements at places 3 1 go to rank 0, which puts them at 0 2
 *
 * An element crosses between ranks once for each time that another rank's index names it. Index, in and out lie in engine memory. */
#ifndef ELEMENT_GATHER_H
#define ELEMENT_GATHER_H

#include "kernels/spare_memory.h"
#include "mpi/comm/comm.h"
#include "mpi/transport/transport.h"

struct element_gather;

/* What other ranks may map of this rank's memory: one allocation. Everything that leaves goes through it, and gathers that follow each
 * other share it, because mapping memory takes longer than carrying a million elements. */
struct gather_slice {
    struct kept_memory *kept; /* borrowed */
    size_t most_bytes; /* that go at a time, or one element; 0: 64 MiB. The same on every rank */
};

/* Bytes of a slice's memory if `bytes` go from one rank to another, or 64 MiB if that is less: a little more, so that it need not grow if
 * the next gather is like this one. Pure. */
size_t gather_slice_room(size_t bytes);

/* Learn which rank names which elements. Collective.
 *   spare      all other engine memory is taken from it, and given back by close(); borrowed until then
 *   slice      borrowed until close(); grows here and in run(), after all ranks have unmapped what they mapped. It is freed like
 *              other memory that the transport was given: transport_unmap(). A rank that is alone needs none
 *   transport  borrowed until close(), too; a rank that is alone needs none
 *   offset     [size + 1] global position of each rank's first element of the array that the index is into; borrowed until
 *              close(), the same on every rank
 *   index      [count] global positions, any, also repeated; engine memory, not changed, borrowed until close()
 *   gather     [1] written; NULL after an error
 * Memory   engine memory: 32 bytes for each entry, or 24 if 64 bits hold the number of elements beside the number of entries; what
 *          the engine's sort needs; and 8 bytes for each entry of other ranks that names an element here. Until close() it takes 16
 *          and 8 of these bytes, and two slices, one of them the caller's, of 64 MiB each or of what goes between any two ranks. A
 *          rank that is alone takes none.
 * Errors   agreed: HSORT_ARGUMENT, a position outside of the array, which a rank that is alone finds in run(); HSORT_DEVICE_MEMORY,
 *          HSORT_HOST_MEMORY, HSORT_MPI, those of the engine. */
hsort_status element_gather_open(struct comm *comm, struct spare_memory *spare, struct gather_slice *slice,
                                 struct transport *transport, const int64_t *offset, const int64_t *index,
                                 int64_t count, struct element_gather **gather);

/* Gather, or scatter. Collective. As often as wanted, for elements of any size.
 *   scatters       the same on every rank
 *   element_bytes  1 .. 65536, the same on every rank
 *   in             of a gather [offset[rank + 1] - offset[rank]] elements, of a scatter [count]; not changed
 *   out            the other number; overlaps nothing; undefined after an error. An element of it that no index of a scatter names
 *                  stays as it was; one that several entries name becomes any of theirs, or parts of several
 *   moved_bytes    grows by what this rank has sent; the positions that open() sends are not counted
 * Memory   the slices are made anew if elements are larger than in all calls before.
 * Errors   agreed, as above. Complete on return. */
hsort_status element_gather_run(struct element_gather *gather, bool scatters, size_t element_bytes,
                                const void *in, void *out, int64_t *moved_bytes);

/* Give everything back. NULL is fine. No other rank maps what is given back here. If open() has failed there is nothing to close. Not
 * collective. */
void element_gather_close(struct element_gather *gather);

#endif
