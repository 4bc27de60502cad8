/* What the paths between ranks reach, for callers. */
#include "src/library/context.h"
#include "mpi/transport/path_table.h"
#include "src/library/struct_size.h"
#include <stdlib.h>
#include <string.h>

hsort_status hsort_try_paths(hsort_context *ctx, hsort_reach *reach, size_t reach_size)
{
    TRY(context_enter(ctx));
    hsort_status status = HSORT_OK;
    hsort_reach *all = malloc((size_t)ctx->comm.size * sizeof *all);
    if (!reach || !STRUCT_SIZE_IS_KNOWN(hsort_reach, reach_size))
        status = status_fail(HSORT_ARGUMENT, "hsort_try_paths: reach at %p, of %zu bytes each", (void *)reach,
                             reach_size);
    else if (!all)
        status = status_fail(HSORT_HOST_MEMORY, "no memory for the paths to %d ranks", ctx->comm.size);
    status = comm_agree(&ctx->comm, status);
    if (status == HSORT_OK)
        status = path_table_measure(&ctx->comm, ctx->engine, ctx->transport, all);
    for (int rank = 0; rank < ctx->comm.size && status == HSORT_OK; rank++)
        memcpy((char *)reach + (size_t)rank * reach_size, &all[rank], reach_size);
    free(all);
    return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
}
