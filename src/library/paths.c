/* What the paths between ranks reach, for callers. */
#include "src/library/context.h"
#include "mpi/transport/path_table.h"

hsort_status hsort_try_paths(hsort_context *ctx, hsort_reach *reach)
{
    TRY(context_enter(ctx));
    hsort_status status = reach ? HSORT_OK : status_fail(HSORT_ARGUMENT, "hsort_try_paths: reach is NULL");
    if ((status = comm_agree(&ctx->comm, status)) != HSORT_OK)
        return context_fail(ctx, status);
    status = path_table_measure(&ctx->comm, ctx->engine, ctx->transport, reach);
    return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
}
