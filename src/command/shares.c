#include "src/command/shares.h"
#include "src/command/cli.h"
#include "src/command/launch.h"
#include "src/command/stop.h"
#include "mpi/comm/node_memory.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void share_open(struct share *share, struct comm *comm, struct progress *progress, hsort_type type,
                int64_t total)
{
    *share = (struct share){.comm = comm, .progress = progress, .type = type, .total = total};
    share->first = launch_share(total, comm->rank, comm->size);
    share->count = launch_share(total, comm->rank + 1, comm->size) - share->first;
}

void share_close(struct share *share)
{
    free(share->keys);
    share->keys = NULL;
}

static int64_t key_bytes(const struct share *share)
{
    return (int64_t)hsort_type_bytes(share->type);
}

/* Keys of the chunk that begins `done` keys into the share. */
static int64_t chunk_at(const struct share *share, int64_t done)
{
    const int64_t most = CLI_CHUNK_BYTES / key_bytes(share), left = share->count - done;
    return left < most ? left : most;
}

static void show_progress(const struct share *share, const char *phase, int64_t done)
{
    progress_bytes(share->progress, phase, done, share->count, share->total * key_bytes(share));
}

/* End a phase that ranks may leave early. Collective. */
static hsort_status end_share_phase(struct share *share, struct stop_vote *vote, hsort_status mine)
{
    bool stopped;
    mine = stop_vote_end(vote, mine, &stopped);
    TRY(comm_agree(share->comm, mine));
    return stopped ? HSORT_STOPPED : HSORT_OK;
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

static hsort_status read_chunks(struct share *share, const struct file_in *in, struct stop_vote *vote)
{
    for (int64_t done = 0; done < share->count;) {
        stop_hold(FAULT_HOLD_READ, "before the next chunk is read", vote);
        if (stop_vote_seen(vote))
            break;
        const int64_t first = share->first + done, chunk = chunk_at(share, done);
        char *to = (char *)share->keys + done * key_bytes(share);
        TRY(file_read(in, first, chunk, to));
        done += chunk;
        show_progress(share, "read", done);
    }
    return file_check_unchanged(in);
}

/* Memory for the keys, if the ranks of each node can all have theirs. Collective. */
static hsort_status take_memory(struct share *share, const struct file_in *in)
{
    const size_t bytes = (size_t)(share->count * key_bytes(share));
    hsort_status status = comm_agree(share->comm, node_memory_check(share->comm, bytes));
    if (status != HSORT_OK)
        return status;
    share->keys = fault_hit(FAULT_ALLOC) ? NULL : malloc(bytes > 0 ? bytes : 1);
    if (!share->keys)
        status = status_fail(HSORT_HOST_MEMORY, "no memory for %" PRId64 " keys, %zu bytes, of %s",
                             share->count, bytes, in->path);
    return comm_agree(share->comm, status);
}

hsort_status share_read(struct share *share, const struct file_in *in)
{
    TRY(take_memory(share, in));
    struct stop_vote vote;
    stop_vote_begin(&vote, share->comm);
    return end_share_phase(share, &vote, read_chunks(share, in, &vote));
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

/* Does the file hold these keys already? buffer has room for them. */
static hsort_status is_there(const struct file_out *out, int64_t first, int64_t count, const void *keys,
                             void *buffer, bool *there)
{
    TRY(file_read_back(out, first, count, buffer));
    *there = memcmp(buffer, keys, (size_t)count * hsort_type_bytes(out->type)) == 0;
    return HSORT_OK;
}

/* Write the chunk that begins `done` keys into the share, or a part of it; *chunk: how many keys. */
static hsort_status write_chunk(struct share *share, const struct file_out *out,
                                const struct checkpoint *before, void *buffer, int64_t *chunk)
{
    const int64_t first = share->first + share->written;
    const void *keys = (const char *)share->keys + share->written * key_bytes(share);
    int64_t end = first;
    bool there = false;
    *chunk = chunk_at(share, share->written);
    if (buffer) {
        there = checkpoint_has(before, first, &end);
        *chunk = end - first < *chunk ? end - first : *chunk;
    }
    if (there)
        TRY(is_there(out, first, *chunk, keys, buffer, &there));
    if (!there)
        return file_write(out, first, *chunk, keys);
    share->kept += *chunk;
    return HSORT_OK;
}

static hsort_status write_chunks(struct share *share, const struct file_out *out,
                                 const struct checkpoint *before, void *buffer, struct stop_vote *vote)
{
    for (int64_t chunk; share->written < share->count; share->written += chunk) {
        stop_hold(FAULT_HOLD_WRITE, "before the next chunk is written", vote);
        if (stop_vote_seen(vote))
            break;
        TRY(write_chunk(share, out, before, buffer, &chunk));
        show_progress(share, "write", share->written + chunk);
    }
    return HSORT_OK;
}

hsort_status share_write(struct share *share, const struct file_out *out, const struct checkpoint *before)
{
    // Without memory to read back with, all is written anew.
    void *buffer = before && before->ranges > 0 ? malloc(CLI_CHUNK_BYTES) : NULL;
    struct stop_vote vote;
    share->written = share->kept = 0;
    stop_vote_begin(&vote, share->comm);
    const hsort_status status =
        end_share_phase(share, &vote, write_chunks(share, out, before, buffer, &vote));
    free(buffer);
    return status;
}
