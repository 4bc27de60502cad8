#include "src/command/record_share.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/lesser.h"
#include "src/command/launch.h"

struct record_part {
    struct record_part *next;
    int64_t record; /* of this rank */
    size_t passed;  /* bytes of it */
    char bytes[];   /* [record_bytes] */
};

/* ---- looking at what passes: any thread ------------------------------------------------------------------ */

/* What a number of whole records that follow each other are like. */
struct record_seen {
    int64_t first; /* their first record, among all */
    struct verifier verifier;
};

/* Keep what was seen until all records have passed. */
static hsort_status keep_seen(struct record_look *look, const struct record_seen *seen)
{
    hsort_status status = HSORT_OK;
    pthread_mutex_lock(&look->lock);
    if (look->seen_count == look->room) {
        const int64_t room = 2 * look->room + 64;
        struct record_seen *more =
            fault_hit(FAULT_ALLOC) ? NULL : realloc(look->seen, (size_t)room * sizeof *more);
        if (more) {
            look->seen = more;
            look->room = room;
        } else {
            status = status_fail(HSORT_HOST_MEMORY, "no memory to look at records");
        }
    }
    if (status == HSORT_OK)
        look->seen[look->seen_count++] = *seen;
    pthread_mutex_unlock(&look->lock);
    return status;
}

/* Look at whole records [count]; the first of them is record `record` of this rank. */
static hsort_status look_at_records(struct record_look *look, int64_t record, int64_t count,
                                    const void *records)
{
    struct record_seen seen = {.first = look->first + record};
    const struct engine_elements elements =
        record_keys_elements(look->keys, records, look->record_bytes, seen.first, count);
    if (count == 0)
        return HSORT_OK;
    verify_start(&seen.verifier, elements.field[0].map);
    TRY(verify_add_elements(&seen.verifier, look->engine, &elements));
    return keep_seen(look, &seen);
}

/* Add bytes to those of a record that have passed. *whole = the record, taken out of the list, if all its bytes have passed now. */
static hsort_status add_part(struct record_look *look, int64_t record, size_t begin, size_t bytes,
                             const char *from, struct record_part **whole)
{
    hsort_status status = HSORT_OK;
    pthread_mutex_lock(&look->lock);
    struct record_part **at = &look->waiting;
    while (*at && (*at)->record != record)
        at = &(*at)->next;
    if (!*at) {
        *at = fault_hit(FAULT_ALLOC) ? NULL : malloc(sizeof **at + look->record_bytes);
        if (*at)
            **at = (struct record_part){.record = record};
    }
    struct record_part *part = *at;
    *whole = NULL;
    if (part) {
        memcpy(part->bytes + begin, from, bytes);
        part->passed += bytes;
        if (part->passed == look->record_bytes) {
            *whole = part;
            *at = part->next;
        }
    } else {
        status = status_fail(HSORT_HOST_MEMORY, "no memory for a record of %zu bytes", look->record_bytes);
    }
    pthread_mutex_unlock(&look->lock);
    return status;
}

/* Look at a part of a record; 0 bytes are no part. */
static hsort_status look_at_part(struct record_look *look, int64_t record, size_t begin, size_t bytes,
                                 const char *from)
{
    struct record_part *whole = NULL;
    if (bytes == 0)
        return HSORT_OK;
    TRY(add_part(look, record, begin, bytes, from, &whole));
    if (!whole)
        return HSORT_OK;
    const hsort_status status = look_at_records(look, record, 1, whole->bytes);
    free(whole);
    return status;
}

/* Look at the bytes at .. at + bytes - 1 of this rank's records. */
static hsort_status look_at_bytes(struct record_look *look, int64_t at, size_t bytes, const char *from)
{
    const int64_t width = (int64_t)look->record_bytes, end = at + (int64_t)bytes;
    const int64_t first = divide_up(at, width), last = end / width;           // whole records
    if (first > last)                                                         // not even one border
        return look_at_part(look, at / width, (size_t)(at % width), bytes, from);
    const size_t head = (size_t)(first * width - at), tail = (size_t)(end - last * width);
    TRY(look_at_part(look, first - 1, look->record_bytes - head, head, from));
    TRY(look_at_records(look, first, last - first, from + head));
    return look_at_part(look, last, 0, tail, from + bytes - tail);
}

static int compare_firsts(const void *a, const void *b)
{
    const int64_t left = ((const struct record_seen *)a)->first,
                  right = ((const struct record_seen *)b)->first;
    return (left > right) - (left < right);
}

hsort_status record_look_finish(struct record_look *look, struct comm *comm, hsort_check_result *result)
{
    const struct keymap none = {0};
    struct verifier all;
    hsort_status status = HSORT_OK;
    verify_start(&all, none);
    if (look->seen_count > 0)
        qsort(look->seen, (size_t)look->seen_count, sizeof *look->seen, compare_firsts);
    for (int64_t i = 0; i < look->seen_count; i++)
        verify_append(&all, &look->seen[i].verifier);
    if (all.count != look->count || look->waiting)
        status = status_fail(HSORT_INTERNAL, "of %" PRId64 " records %" PRId64 " have passed", look->count,
                             all.count);
    TRY(comm_agree(comm, status));
    return verify_finish(&all, comm, result);
}

/* ---- both ends ------------------------------------------------------------------------------------------- */

static int64_t first_byte(const struct record_share *share)
{
    return share->first * (int64_t)share->record_bytes;
}

static void show_records(const struct record_share *share, const char *phase, int64_t done)
{
    if (done > 0)
        progress_bytes(share->progress, phase, done, share->count,
                       share->in->count * (int64_t)share->record_bytes);
}

static void begin_records(struct record_share *share, const char *phase)
{
    share->began = MPI_Wtime();
    share->phase = phase;
    if (share->stops)
        stop_vote_begin(&share->vote, share->comm);
}

static void begin_records_in(void *user)
{
    begin_records(user, "records were read");
}

static void begin_records_out(void *user)
{
    begin_records(user, "records were written");
}

/* May the next part be moved? A sort of records in memory cannot be stopped. */
static bool goes_on(struct record_share *share)
{
    return !share->stops || !stop_vote_seen(&share->vote);
}

static struct stop_vote *vote_of(struct record_share *share)
{
    return share->stops ? &share->vote : NULL;
}

static hsort_status end_records(struct record_share *share, double *seconds, hsort_status mine)
{
    bool stopped = false;
    if (share->stops)
        mine = stop_vote_end(&share->vote, mine, &stopped);
    *seconds = MPI_Wtime() - share->began;
    return mine == HSORT_OK && stopped ? status_fail(HSORT_STOPPED, "asked to stop while %s", share->phase)
                                       : mine;
}

/* ---- the source ------------------------------------------------------------------------------------------ */

static bool next_records_in(void *user, int64_t done, bool together)
{
    (void)together;
    show_records(user, "read", done);
    stop_hold(FAULT_HOLD_READ, "before the next records are read", vote_of(user));
    return goes_on(user);
}

static hsort_status read_in_records(void *user, int64_t at, size_t bytes, void *host)
{
    struct record_share *share = user;
    struct trace_span *span = trace_begin(share->comm->trace, "read file");
    trace_bytes(span, (int64_t)bytes);
    TRY(trace_end_with(span, share->joined ? disk_deal_join(share->joined, first_byte(share) + at, bytes, host)
                                           : file_read_at(share->in, first_byte(share) + at, bytes, host)));
    return share->looks ? look_at_bytes(&share->before, at, bytes, host) : HSORT_OK;
}

static size_t lead_of_records_in(void *user, int64_t at)
{
    const struct record_share *share = user;
    // With several columns no place is better than another.
    return share->joined && share->joined->columns > 1 ? 0 : file_in_lead(share->in, first_byte(share) + at);
}

static hsort_status check_unchanged(const struct record_share *share)
{
    for (int i = 0; share->joined && i < share->joined->columns; i++)
        if (share->joined->column[i].in)
            TRY(file_check_unchanged(share->joined->column[i].in));
    return file_check_unchanged(share->in);
}

static hsort_status end_records_in(void *user, int64_t done, hsort_status mine)
{
    struct record_share *share = user;
    show_records(share, "read", done);
    if (mine == HSORT_OK)
        mine = check_unchanged(share);
    return end_records(share, &share->read_seconds, mine);
}

/* ---- the sink -------------------------------------------------------------------------------------------- */

static bool next_records_out(void *user, int64_t done, bool together)
{
    (void)together;
    show_records(user, "write", done);
    stop_hold(FAULT_HOLD_WRITE, "before the next records are written", vote_of(user));
    return goes_on(user);
}

static hsort_status write_out_records(void *user, int64_t at, size_t bytes, void *host)
{
    struct record_share *share = user;
    if (share->looks)
        TRY(look_at_bytes(&share->after, at, bytes, host));
    struct trace_span *span = trace_begin(share->comm->trace, "write file");
    trace_bytes(span, (int64_t)bytes);
    return trace_end_with(span, file_write_at(share->out, first_byte(share) + at, bytes, host));
}

static size_t lead_of_records_out(void *user, int64_t at)
{
    const struct record_share *share = user;
    return file_out_lead(share->out, first_byte(share) + at);
}

static hsort_status end_records_out(void *user, int64_t done, hsort_status mine)
{
    struct record_share *share = user;
    show_records(share, "write", done);
    return end_records(share, &share->write_seconds, mine);
}

/* ---- the share ------------------------------------------------------------------------------------------- */

static void open_look(struct record_look *look, const struct record_share *share,
                      const struct record_keys *keys)
{
    *look = (struct record_look){.keys = keys,
                                 .engine = share->looker,
                                 .record_bytes = share->record_bytes,
                                 .first = share->first,
                                 .count = share->count};
    pthread_mutex_init(&look->lock, NULL);
}

hsort_status record_share_open(struct record_share *share, struct comm *comm, struct progress *progress,
                               const struct file_in *in, const struct record_keys *keys, bool looks)
{
    struct engine *looker = NULL;
    *share = (struct record_share){.comm = NULL};
    TRY(engine_open_host(1, 0, &looker));
    *share = (struct record_share){.comm = comm,
                                   .progress = progress,
                                   .in = in,
                                   .record_bytes = in->element.bytes,
                                   .looks = looks,
                                   .looker = looker,
                                   .source = {.user = share,
                                              .begin = begin_records_in,
                                              .next = next_records_in,
                                              .move = read_in_records,
                                              .lead = lead_of_records_in,
                                              .end = end_records_in},
                                   .sink = {.user = share,
                                            .begin = begin_records_out,
                                            .next = next_records_out,
                                            .move = write_out_records,
                                            .lead = lead_of_records_out,
                                            .end = end_records_out}};
    share->first = launch_share(in->count, comm->rank, comm->size);
    share->count = launch_share(in->count, comm->rank + 1, comm->size) - share->first;
    open_look(&share->before, share, NULL);
    open_look(&share->after, share, keys);
    return HSORT_OK;
}

static void close_look(struct record_look *look)
{
    free(look->seen);
    while (look->waiting) {
        struct record_part *next = look->waiting->next;
        free(look->waiting);
        look->waiting = next;
    }
    pthread_mutex_destroy(&look->lock);
}

void record_share_close(struct record_share *share)
{
    if (!share->comm)
        return;
    close_look(&share->before);
    close_look(&share->after);
    share->looker->ops->close(share->looker);
    share->comm = NULL;
}
