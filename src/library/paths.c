/* How fast the paths between ranks are, for callers. */
#include "src/library/context.h"
#include "mpi/transport/path_table.h"
#include "src/library/struct_size.h"
#include <stdlib.h>
#include <string.h>

hsort_status hsort_measure_paths(hsort_context *ctx, hsort_path_speed *speeds, size_t speed_size)
{
    TRY(context_enter(ctx));
    hsort_status status = HSORT_OK;
    hsort_path_speed *all = malloc((size_t)ctx->comm.size * sizeof *all);
    if (!speeds || !STRUCT_SIZE_IS_KNOWN(hsort_path_speed, speed_size))
        status = status_fail(HSORT_ARGUMENT, "hsort_measure_paths: speeds at %p, of %zu bytes each",
                             (void *)speeds, speed_size);
    else if (!all)
        status = status_fail(HSORT_HOST_MEMORY, "no memory for the paths to %d ranks", ctx->comm.size);
    status = comm_agree(&ctx->comm, status);
    spare_drop(&ctx->spare);
    if (status == HSORT_OK)
        status = path_table_measure(&ctx->comm, ctx->engine, ctx->transport, all);
    for (int rank = 0; rank < ctx->comm.size && status == HSORT_OK; rank++)
        memcpy((char *)speeds + (size_t)rank * speed_size, &all[rank], speed_size);
    free(all);
    return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
}
