#include "src/library/element_need.h"
#include "kernels/base/key_width.h"
#include "kernels/base/lesser.h"
#include "mpi/exchange/element_gather.h"
#include "src/library/pass_plan.h"

enum { CARRY_BYTES = 40 /* for each entry of an index, of element_gather_open() */ };

/* Bytes between the two rounds of long keys, beside the arrays. */
static size_t round_bytes(const struct element_sizes *sizes)
{
    return sizes->in_two_rounds ? (size_t)sizes->count * (sizeof(uint128) + sizeof(uint64_t)) +
                                      (size_t)sizes->out_count * 2 * sizeof(int64_t)
                                : 0;
}

/* Bytes to carry elements, or the words between two rounds and the keys after them; and before that the positions of either.
 * In a sort, at most all that a rank brings or gets goes from one rank to another. */
static hsort_status carry_bytes(const struct element_sizes *sizes, element_workspace_fn workspace, void *user,
                                size_t *bytes, size_t *slice)
{
    const size_t carried = sizes->carried_bytes,
                 words = sizes->in_two_rounds ? sizeof(uint128) : sizeof(int64_t),
                 most = greater_bytes(carried, words);
    const int64_t count = greater(sizes->count, sizes->out_count);
    *bytes = *slice = 0;
    if ((carried == 0 && !sizes->in_two_rounds) || sizes->ranks == 1)
        return HSORT_OK;
    TRY(workspace(user, -1, (int)sizeof(key_code), sizes->out_count, bytes));
    *bytes += (size_t)sizes->out_count * CARRY_BYTES;
    *slice = gather_slice_room((size_t)count * most);
    *bytes += *slice; // what comes goes through a slice as large, which nobody else maps
    return HSORT_OK;
}

hsort_status element_need_find(const struct element_sizes *sizes, element_workspace_fn workspace, void *user,
                               struct element_need *need)
{
    const int64_t capacity = divide_up(sizes->total, sizes->ranks);
    const size_t width = (size_t)sizes->code_bytes;
    size_t carry;
    TRY(workspace(user, sizes->rung, sizes->code_bytes, capacity, &need->workspace));
    TRY(carry_bytes(sizes, workspace, user, &carry, &need->slice));
    need->index = sizes->carried_bytes > 0 ? (size_t)sizes->out_count * sizeof(int64_t) : 0;
    need->apart = round_bytes(sizes) + carry;
    need->codes = (size_t)(sizes->count + sizes->out_count) * width;
    need->buffer = (size_t)capacity * width;
    return HSORT_OK;
}

size_t element_need_of_gather(int ranks, int64_t entries, size_t element_bytes)
{
    const size_t slice = gather_slice_room((size_t)entries * element_bytes);
    return ranks == 1 ? 0 : (size_t)entries * CARRY_BYTES + 2 * slice;
}

size_t element_need_bytes(const struct element_need *need)
{
    return need->index + need->apart + need->slice + need->codes + 2 * need->buffer + need->workspace;
}
