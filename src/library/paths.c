/* How fast the paths between ranks are, for callers. */
#include "src/library/context.h"
#include "mpi/transport/path_table.h"

hsort_status hsort_measure_paths(hsort_context *ctx, hsort_path_speed *speeds)
{
    TRY(context_enter(ctx));
    hsort_status status =
        speeds ? HSORT_OK : status_fail(HSORT_ARGUMENT, "hsort_measure_paths: speeds is NULL");
    if ((status = comm_agree(&ctx->comm, status)) != HSORT_OK)
        return context_fail(ctx, status);
    status = path_table_measure(&ctx->comm, ctx->engine, ctx->transport, speeds);
    return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
}
