/* What hsort_get_stats() returns. */
#include <string.h>
#include "src/library/context.h"
#include "src/library/struct_size.h"

/* What the statistics take the largest of, and what they add up, over all ranks: one message each, so only
 * doubles in one and only 64-bit counts in the other. */
struct stats_largest {
    double seconds[HSORT_PHASES], total_seconds;
    double path_bytes[HSORT_TRANSPORTS], path_seconds[HSORT_TRANSPORTS];
};

struct stats_sums {
    int64_t moved_bytes, runs, segments;
    int64_t pairs[HSORT_TRANSPORTS], path_bytes[HSORT_TRANSPORTS], crossed[HSORT_TRANSPORTS], crossed_plain;
};

void stats_of_traffic(hsort_stats *stats, hsort_transport path, const struct traffic *traffic)
{
    stats->paths[path].moved_bytes += traffic->bytes;
    stats->paths[path].seconds += traffic->seconds;
    stats->paths_crossed_bytes[path] += traffic->crossed;
    stats->crossed_plain_bytes += traffic->crossed_plain;
}

/* This rank's part of hsort_stats.paths; `beside`: what it has sent beside the transport. */
static void count_paths(const hsort_context *ctx, const hsort_stats *beside, struct stats_largest *own,
                        struct stats_sums *mine)
{
    struct traffic traffic[HSORT_TRANSPORTS];
    transport_traffic(ctx->transport, traffic);
    for (int path = 0; path < HSORT_TRANSPORTS; path++) {
        traffic[path].bytes += beside->paths[path].moved_bytes;
        traffic[path].seconds += beside->paths[path].seconds;
        mine->crossed[path] = traffic[path].crossed + beside->paths_crossed_bytes[path];
        mine->crossed_plain += traffic[path].crossed_plain;
        own->path_bytes[path] = (double)traffic[path].bytes;
        own->path_seconds[path] = traffic[path].seconds;
        mine->path_bytes[path] = traffic[path].bytes;
    }
    mine->crossed_plain += beside->crossed_plain_bytes;
    for (int peer = ctx->comm.rank + 1; peer < ctx->comm.size; peer++) // each pair once
        mine->pairs[transport_path(ctx->transport, peer)]++;
}

hsort_status stats_keep(hsort_context *ctx, const hsort_stats *mine, const double *seconds)
{
    struct stats_largest own = {.total_seconds = mine->total_seconds}, most;
    struct stats_sums added = {
                          .moved_bytes = mine->moved_bytes, .runs = mine->runs, .segments = mine->segments},
                      all;
    memcpy(own.seconds, seconds, sizeof own.seconds);
    count_paths(ctx, mine, &own, &added);
    TRY(comm_largest(&ctx->comm, (const double *)&own, sizeof own / sizeof(double), (double *)&most));
    TRY(comm_sums(&ctx->comm, (const int64_t *)&added, sizeof added / sizeof(int64_t), (int64_t *)&all));
    ctx->stats = (hsort_stats){.struct_size = sizeof ctx->stats,
                               .keys = mine->keys,
                               .moved_bytes = all.moved_bytes,
                               .rounds = mine->rounds,
                               .total_seconds = most.total_seconds,
                               .passes = mine->passes,
                               .runs = all.runs,
                               .segments = all.segments,
                               .crossed_plain_bytes = all.crossed_plain,
                               .engine = hsort_engine_in_use(ctx)};
    memcpy(ctx->stats.seconds, most.seconds, sizeof most.seconds);
    memcpy(ctx->own_seconds, own.seconds, sizeof own.seconds);
    ctx->own_moved_bytes = mine->moved_bytes;
    for (int path = 0; path < HSORT_TRANSPORTS; path++) {
        ctx->stats.paths[path] = (hsort_path_stats){.pairs = all.pairs[path],
                                                    .moved_bytes = all.path_bytes[path],
                                                    .moved_bytes_largest = (int64_t)most.path_bytes[path],
                                                    .seconds = most.path_seconds[path]};
        ctx->stats.paths_crossed_bytes[path] = all.crossed[path];
        ctx->stats.crossed_bytes += all.crossed[path];
    }
    ctx->has_stats = true;
    return HSORT_OK;
}

/* ---- calls on elements ----------------------------------------------------------------------------------- */

void stats_begin(hsort_context *ctx)
{
    memset(&ctx->call, 0, sizeof ctx->call);
    ctx->call.sorts.passes = 1;
    ctx->call.entered = ctx->call.phase_began = MPI_Wtime();
    transport_clear(ctx->transport);
}

void stats_book(hsort_context *ctx, hsort_phase phase)
{
    const double now = MPI_Wtime();
    ctx->call.seconds[phase] += now - ctx->call.phase_began;
    ctx->call.phase_began = now;
}

void stats_add(hsort_context *ctx, const hsort_stats *sort, const double *seconds)
{
    hsort_stats *sorts = &ctx->call.sorts;
    for (int phase = 0; phase < HSORT_PHASES; phase++)
        ctx->call.seconds[phase] += seconds[phase];
    for (int path = 0; path < HSORT_TRANSPORTS; path++) { // what went beside the transport
        sorts->paths[path].moved_bytes += sort->paths[path].moved_bytes;
        sorts->paths[path].seconds += sort->paths[path].seconds;
        sorts->paths_crossed_bytes[path] += sort->paths_crossed_bytes[path];
    }
    sorts->crossed_plain_bytes += sort->crossed_plain_bytes;
    sorts->rounds += sort->rounds;
    sorts->runs += sort->runs;
    sorts->segments += sort->segments;
    if (sort->passes > sorts->passes)
        sorts->passes = sort->passes;
    ctx->call.phase_began = MPI_Wtime();
}

hsort_status stats_finish(hsort_context *ctx, int64_t keys)
{
    hsort_stats own = ctx->call.sorts;
    struct traffic traffic[HSORT_TRANSPORTS];
    transport_traffic(ctx->transport, traffic);
    own.keys = keys;
    own.total_seconds = MPI_Wtime() - ctx->call.entered;
    for (int path = 0; path < HSORT_TRANSPORTS; path++)
        own.moved_bytes += traffic[path].bytes + own.paths[path].moved_bytes;
    return context_agree(ctx, stats_keep(ctx, &own, ctx->call.seconds));
}

hsort_status hsort_get_stats(const hsort_context *ctx, hsort_stats *stats)
{
    if (!ctx || !stats || !STRUCT_SIZE_IS_KNOWN(hsort_stats, stats->struct_size) || !ctx->has_stats)
        return HSORT_ARGUMENT;
    struct_size_copy(stats, &ctx->stats);
    return HSORT_OK;
}
