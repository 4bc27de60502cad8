/* hypersort select: the keys that a sort would put at some positions. Every rank reads its share of the file; nothing is
 * written. With N keys
 *
 *     --at 0,-1       the first and the last key in order
 *     --at 50%        the key at floor(0.5 * (N - 1)): a key of the file, the lower one if two are equally near
 *
 * Of records only the codes of their keys are kept. The fields that are printed come from the codes that were selected.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/keytype.h"
#include "mpi/comm/node_memory.h"
#include "src/command/launch.h"
#include "src/command/record_io.h"
#include "src/command/record_keys.h"
#include "src/command/report.h"
#include "src/command/run_trace.h"
#include "src/files/number.h"

enum { PLACES_MAX = 1024, PLACE_ROOM = 48, FRACTION_DIGITS = 15 };

struct select_run {
    struct comm *comm;
    const struct cli_options *options;
    hsort_context *ctx;
    struct progress progress;
    struct record_io io;
    struct file_in in;
    bool has_in;
    int64_t first, count;               /* of this rank's keys */
    struct record_keys fields;          /* of records; all 0 for bare keys */
    hsort_type type;                    /* of `keys` and `selected` */
    void *keys;                         /* [count] keys, or codes of keys; owned */
    char words[PLACES_MAX][PLACE_ROOM]; /* [wanted] as --at has them */
    int64_t positions[PLACES_MAX];      /* [wanted] */
    int wanted;
    _Alignas(16) char selected[PLACES_MAX * sizeof(key_code)]; /* [wanted] keys */
    double read_seconds, select_seconds;
    hsort_stats stats;
    struct run_trace trace;
    struct job job;
};

/* ---- Places: not collective ---------------------------------------------------------------------------- */

/* "99.9%": of `total` keys the one at floor(0.999 * (total - 1)), in whole numbers. False: the word is no quantile. */
static bool read_quantile(const char *word, int64_t total, int64_t *position)
{
    uint128 number = 0, whole = 100;
    int digits = 0, behind = 0;
    const char *at = word;
    for (; isdigit((unsigned char)*at) && digits < 4; at++, digits++)
        number = number * 10 + (unsigned)(*at - '0');
    if (*at == '.')
        for (at++; isdigit((unsigned char)*at) && behind < FRACTION_DIGITS; at++, behind++) {
            number = number * 10 + (unsigned)(*at - '0');
            whole *= 10;
        }
    if (digits + behind == 0 || strcmp(at, "%") != 0 || number > whole || total == 0)
        return false;
    *position = (int64_t)(number * (uint128)(total - 1) / whole);
    return true;
}

/* "12", or "-1" from the end. False: the word is no position. */
static bool read_position(const char *word, int64_t total, int64_t *position)
{
    const bool from_end = word[0] == '-';
    uint64_t number;
    if (!number_parse(word + from_end, true, INT64_MAX, &number))
        return false;
    *position = from_end ? total - (int64_t)number : (int64_t)number;
    return *position >= 0 && *position < total;
}

static hsort_status read_places(struct select_run *run)
{
    const int64_t total = run->in.count;
    if (total == 0)
        return status_fail(HSORT_ARGUMENT, "%s: has no keys to select from", run->in.path);
    for (const char *at = run->options->at;; at++) {
        const size_t length = strcspn(at, ",");
        if (run->wanted == PLACES_MAX)
            return status_fail(HSORT_ARGUMENT, "--at: more than %d places", PLACES_MAX);
        char *word = run->words[run->wanted];
        int64_t *position = &run->positions[run->wanted++];
        snprintf(word, PLACE_ROOM, "%.*s", (int)length, at);
        if (length >= PLACE_ROOM ||
            (!read_quantile(word, total, position) && !read_position(word, total, position)))
            return status_fail(HSORT_ARGUMENT,
                               "--at: '%.40s' is not a place of the %" PRId64
                               " keys of %.200s; they are 0 to %" PRId64 ", -1 to -%" PRId64
                               ", 0%% to 100%% with up to %d decimals",
                               word, total, run->in.path, total - 1, total, FRACTION_DIGITS);
        at += length;
        if (*at == '\0')
            return HSORT_OK;
    }
}

/* ---- Phases: collective -------------------------------------------------------------------------------- */

static hsort_status open_selected(struct select_run *run)
{
    const struct cli_options *options = run->options;
    const struct file_source source =
        options->key ? record_io_source(options) : record_io_key_source(options);
    TRY(file_open(run->comm, &source, &run->in));
    run->has_in = true;
    run->type = run->in.type;
    if (options->key) {
        TRY(comm_agree(run->comm, record_keys_parse(options->key, &run->in, &run->fields)));
        run->type = run->fields.key_bytes <= (int)sizeof(uint64_t) ? HSORT_U64 : HSORT_U128;
    }
    run->first = launch_share(run->in.count, run->comm->rank, run->comm->size);
    run->count = launch_share(run->in.count, run->comm->rank + 1, run->comm->size) - run->first;
    return comm_agree(run->comm, read_places(run));
}

/* run->keys = the codes of this rank's records. The records pass through `chunk` [CLI_CHUNK_BYTES]. */
static hsort_status read_codes(struct select_run *run, char *chunk)
{
    const size_t width = run->in.element.bytes, code_bytes = hsort_type_bytes(run->type);
    const int64_t most = CLI_CHUNK_BYTES / (int64_t)width;
    struct engine *engine = run->io.engine;
    struct key_field fields[HSORT_FIELDS_MAX];
    record_keys_point(&run->fields, chunk, width, fields);
    run->io.progress = NULL; // it would take each chunk for the whole
    for (int64_t done = 0; done < run->count;) {
        const int64_t part = run->count - done < most ? run->count - done : most;
        TRY(record_io_read(&run->io, &run->in, run->first + done, part, chunk));
        TRY(engine->ops->make_codes(engine, (int)code_bytes, (char *)run->keys + (size_t)done * code_bytes,
                                    part, fields, run->fields.count, 0, 0));
        done += part;
        progress_bytes(&run->progress, "read", done, run->count, run->in.count * (int64_t)width);
    }
    return HSORT_OK;
}

static hsort_status read_keys_or_codes(struct select_run *run)
{
    if (!run->options->key)
        return record_io_read(&run->io, &run->in, run->first, run->count, run->keys);
    char *chunk = malloc(CLI_CHUNK_BYTES);
    const hsort_status status =
        chunk ? read_codes(run, chunk) : status_fail(HSORT_HOST_MEMORY, "no memory for a chunk of records");
    free(chunk);
    return status;
}

/* Not collective, but over the node. */
static hsort_status read_selected(struct select_run *run)
{
    const uint64_t bytes = (uint64_t)run->count * hsort_type_bytes(run->type);
    const double start = MPI_Wtime();
    TRY(node_memory_check(run->comm, bytes + (run->options->key ? CLI_CHUNK_BYTES : 0)));
    run->keys = malloc((size_t)bytes + 1);
    if (!run->keys)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory for %" PRId64 " keys", run->in.path, run->count);
    struct trace_span *span = trace_begin(run->comm->trace, "read");
    TRY(trace_end_with(span, read_keys_or_codes(run)));
    run->read_seconds = MPI_Wtime() - start;
    return file_check_unchanged(&run->in);
}

static hsort_status select_keys(struct select_run *run)
{
    TRY(comm_agree(run->comm, read_selected(run)));
    const double start = MPI_Wtime();
    const hsort_status status =
        hsort_select(run->ctx, run->type, run->options->reverse ? HSORT_DESCENDING : HSORT_ASCENDING,
                     run->keys, run->count, run->positions, run->wanted, run->selected, NULL);
    run->select_seconds = MPI_Wtime() - start;
    return status == HSORT_OK ? hsort_get_stats(run->ctx, &run->stats)
                              : report_fail(run->comm, status, "%s", hsort_last_error(run->ctx));
}

/* ---- Report -------------------------------------------------------------------------------------------- */

/* The key that was selected there, or its code. */
static key_code selected_bits(const struct select_run *run, int which)
{
    const size_t bytes = hsort_type_bytes(run->type);
    key_code bits = 0;
    memcpy(&bits, run->selected + (size_t)which * bytes, bytes); // little-endian
    return bits;
}

/* "key": a text, or for records a list of texts, one for each field. */
static void print_key_json(const struct select_run *run, int which, struct json *json)
{
    char text[RECORD_FIELD_TEXT];
    const key_code bits = selected_bits(run, which);
    if (!run->options->key) {
        json_text(json, "key", report_key_text(run->type, bits, text));
        return;
    }
    json_open(json, "key", '[');
    for (int field = 0; field < run->fields.count; field++)
        json_text(json, NULL, record_field_text(&run->fields, field, bits, text));
    json_close(json, ']');
}

static hsort_status print_selected_json(const struct select_run *run, const double *seconds)
{
    struct json json = {false};
    report_open_json(&json);
    report_files_json(&json, "file", "files", &run->in);
    json_integer(&json, "ranks", run->comm->size);
    json_text(&json, "engine", hsort_engine_name(run->stats.engine));
    const char *key = run->options->key;
    json_text(&json, "type", key ? "record" : hsort_type_name(run->type));
    json_text(&json, "order", key ? NULL : run->options->reverse ? "descending" : "ascending");
    json_text(&json, "key", key);
    json_integer(&json, key ? "records" : "keys", run->in.count);
    json_open(&json, "selected", '[');
    for (int i = 0; i < run->wanted; i++) {
        json_open(&json, NULL, '{');
        json_text(&json, "at", run->words[i]);
        json_integer(&json, "position", run->positions[i]);
        print_key_json(run, i, &json);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_open(&json, "phases", '{');
    json_real(&json, "read", seconds[0]);
    json_real(&json, "select", seconds[1]);
    json_close(&json, '}');
    report_job_json(&json, &run->job);
    run_trace_json(&json, &run->trace);
    return report_close_json(&json);
}

/* Print what was selected, on rank 0. */
static hsort_status print_selected(const struct select_run *run, const double *seconds)
{
    char text[RECORD_FIELD_TEXT];
    if (run->options->json)
        return print_selected_json(run, seconds);
    for (int i = 0; i < run->wanted; i++) {
        const key_code bits = selected_bits(run, i);
        printf("%" PRId64, run->positions[i]);
        for (int field = 0; field < run->fields.count; field++)
            printf(" %s", record_field_text(&run->fields, field, bits, text));
        if (!run->options->key)
            printf(" %s", report_key_text(run->type, bits, text));
        putchar('\n');
    }
    return report_flush();
}

/* Collective. */
static hsort_status report_selected(struct select_run *run)
{
    const double own[] = {run->read_seconds, run->select_seconds};
    double most[2];
    TRY(comm_largest(run->comm, own, 2, most));
    TRY(job_open(run->comm, &run->job));
    const hsort_status printed = run->comm->rank == 0 ? print_selected(run, most) : HSORT_OK;
    job_close(&run->job);
    return comm_agree(run->comm, printed);
}

static hsort_status select_phases(struct select_run *run)
{
    TRY(open_selected(run));
    TRY(run_trace_check(run->comm, run->options, &run->in, NULL));
    hsort_status status = record_io_library(run->comm, run->options, &run->progress, &run->ctx, &run->io);
    if (status == HSORT_OK)
        status = select_keys(run);
    TRY(run_trace_end(run->comm, run->options, run->ctx, status, &run->trace));
    return report_selected(run);
}

hsort_status cli_select(struct comm *comm, const struct cli_options *options)
{
    struct select_run *run = calloc(1, sizeof *run);
    TRY(comm_agree(comm, run ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for a list of places")));
    run->comm = comm;
    run->options = options;
    run->stats.struct_size = sizeof run->stats;
    progress_start(&run->progress, progress_choose(options->progress, comm->rank));
    const hsort_status status = select_phases(run);
    if (!launch_lost(comm, status))
        hsort_destroy(&run->ctx);
    record_io_close(&run->io);
    if (run->has_in)
        file_close(&run->in);
    free(run->keys);
    free(run);
    return status;
}
