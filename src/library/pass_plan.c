#include "src/library/pass_plan.h"
#include "kernels/base/lesser.h"
#include "kernels/engine.h"
#include "mpi/exchange/piece_messages.h"
#include "mpi/exchange/run_cuts.h"

size_t pass_slot_bytes(int64_t elements, size_t element_bytes)
{
    return bytes_rounded_up((size_t)elements * element_bytes, ENGINE_ALIGNMENT);
}

size_t pass_bytes_beside_runs(int ranks, int64_t own_runs, int64_t own_segments, int64_t runs,
                              int64_t segments, size_t slot_bytes)
{
    const int64_t told = ranks > 1 ? (own_segments + 1) * runs : 0;
    const size_t messages = ranks > 1 ? PIECE_BUFFERS * piece_buffer_bytes(slot_bytes) : 0;
    return (size_t)((segments + 1) * own_runs + told) * sizeof(int64_t) +
           run_cuts_bytes(ranks, own_runs, RUN_CUTS_AT_ONCE) + messages;
}

/* Bytes of all slots and the workspace for them. */
static hsort_status pass_bytes(int64_t elements, size_t element_bytes, pass_workspace_fn workspace,
                               void *user, size_t *bytes)
{
    size_t workspace_bytes;
    TRY(workspace(user, elements, &workspace_bytes));
    *bytes = PASS_SLOTS * pass_slot_bytes(elements, element_bytes) + workspace_bytes;
    return HSORT_OK;
}

hsort_status pass_slot_find(int64_t most, size_t element_bytes, size_t engine_bytes,
                            pass_workspace_fn workspace, void *user, int64_t *elements, size_t *bytes)
{
    const int64_t least = divide_up(most, PASS_RUNS_MAX);
    const int64_t wanted = divide_up(most, PASS_RUNS_WANTED);
    const int64_t enough = divide_up(PASS_SLOT_BYTES_MIN, (int64_t)element_bytes);
    const int64_t fit = (int64_t)(engine_bytes / PASS_SLOTS / element_bytes);
    int64_t slot = lesser(lesser(greater(wanted, enough), most), fit);
    // The workspace grows with the slot, by no formula: try a little less each time until both fit, and the least slot last.
    for (; slot >= least; slot = slot > least ? greater(least, slot - slot / 16 - 1) : 0) {
        TRY(pass_bytes(slot, element_bytes, workspace, user, bytes));
        if (*bytes <= engine_bytes) {
            *elements = slot;
            return HSORT_OK;
        }
    }
    *elements = 0;
    return pass_bytes(least, element_bytes, workspace, user, bytes);
}
