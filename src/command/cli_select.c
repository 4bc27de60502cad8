/* hypersort select: the keys that a sort would put at some positions. Every rank reads its share of the file; nothing is
 * written. With N keys
 *
 *     --at 0,-1       the first and the last key in order
 *     --at 50%        the key at floor(0.5 * (N - 1)): a key of the file, the lower one if two are equally near
 *
 * Bare keys are selected in memory, if there is room. Of records, and of more keys, only the codes of some are kept (select_ranges.h), and
 * what is printed comes from the codes that were selected.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/keytype.h"
#include "kernels/base/lesser.h"
#include "mpi/comm/node_memory.h"
#include "src/command/launch.h"
#include "src/command/record_io.h"
#include "src/command/record_keys.h"
#include "src/command/report.h"
#include "src/command/run_trace.h"
#include "src/command/select_ranges.h"
#include "src/files/number.h"

enum { PLACES_MAX = 1024, PLACE_ROOM = 48, FRACTION_DIGITS = 15 };
enum {
    COPIES = 3 /* of the keys in host memory: hsort_select() may take two more */,
    CHUNKS_LOG = 2,
    CHUNK_LEAST = 1 << 16
};

struct select_run {
    struct comm *comm;
    const struct cli_options *options;
    hsort_context *ctx;
    struct progress progress;
    struct record_io io;
    struct file_in in;
    bool has_in;
    int64_t first, count;               /* of this rank's keys */
    struct record_keys fields;          /* of which codes are made */
    bool coded;                         /* `selected` has codes, not keys */
    hsort_type type;                    /* of `selected`: of the keys, or of their codes */
    void *keys;                         /* [count] bare keys in memory; owned */
    char *chunk, *codes;                /* [part] elements, and their codes; owned */
    int64_t part;
    int readings;                       /* of the file */
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
    run->fields = record_keys_bare(run->type, options->reverse ? HSORT_DESCENDING : HSORT_ASCENDING);
    if (options->key)
        TRY(comm_agree(run->comm, record_keys_parse(options->key, &run->in, &run->fields)));
    run->first = launch_share(run->in.count, run->comm->rank, run->comm->size);
    run->count = launch_share(run->in.count, run->comm->rank + 1, run->comm->size) - run->first;
    return comm_agree(run->comm, read_places(run));
}

/* ---- In memory: collective ----------------------------------------------------------------------------- */

/* Not collective, but over the node. */
static hsort_status read_selected(struct select_run *run)
{
    const uint64_t bytes = (uint64_t)run->count * hsort_type_bytes(run->type);
    const double start = MPI_Wtime();
    TRY(node_memory_check(run->comm, bytes));
    run->keys = malloc((size_t)bytes + 1);
    if (!run->keys)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory for %" PRId64 " keys", run->in.path, run->count);
    struct trace_span *span = trace_begin(run->comm->trace, "read");
    TRY(trace_end_with(span, record_io_read(&run->io, &run->in, run->first, run->count, run->keys)));
    run->read_seconds = MPI_Wtime() - start;
    run->readings = 1;
    return file_check_unchanged(&run->in);
}

/* selected [wanted] = keys of all ranks at these positions. */
static hsort_status select_in_memory(struct select_run *run, hsort_order order, const void *keys,
                                     int64_t count, const int64_t *positions, int wanted, void *selected)
{
    const double start = MPI_Wtime();
    const hsort_status status =
        hsort_select(run->ctx, run->type, order, keys, count, positions, wanted, selected, NULL);
    run->select_seconds = MPI_Wtime() - start;
    return status == HSORT_OK ? hsort_get_stats(run->ctx, &run->stats)
                              : report_fail(run->comm, status, "%s", hsort_last_error(run->ctx));
}

/* ---- By codes: collective ------------------------------------------------------------------------------ */

/* code_reader.read */
static hsort_status read_codes(void *select_run, void (*see)(void *seer, const void *codes, int64_t count),
                               void *seer)
{
    struct select_run *run = select_run;
    const size_t width = run->in.element.bytes;
    const double start = MPI_Wtime();
    struct engine *engine = run->io.engine;
    struct key_field fields[HSORT_FIELDS_MAX];
    struct trace_span *span = trace_begin(run->comm->trace, "read");
    hsort_status status = HSORT_OK;
    record_keys_point(&run->fields, run->chunk, width, fields);
    run->io.progress = NULL; // it would take each chunk for the whole
    for (int64_t done = 0, part; done < run->count && status == HSORT_OK; done += part) {
        part = lesser(run->part, run->count - done);
        status = record_io_read(&run->io, &run->in, run->first + done, part, run->chunk);
        if (status == HSORT_OK)
            status = engine->ops->make_codes(engine, (int)hsort_type_bytes(run->type), run->codes, part,
                                             fields, run->fields.count, 0, 0);
        if (status == HSORT_OK)
            see(seer, run->codes, part);
        progress_bytes(&run->progress, "read", done + part, run->count, run->in.count * (int64_t)width);
    }
    run->read_seconds += MPI_Wtime() - start;
    return trace_end_with(span, status == HSORT_OK ? file_check_unchanged(&run->in) : status);
}

static int compare_positions(const void *a, const void *b)
{
    const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

/* Put the codes at all wanted places into run->selected. */
static hsort_status take_codes(struct select_run *run, const struct code_selection *found)
{
    const size_t bytes = hsort_type_bytes(run->type);
    _Alignas(16) char kept[PLACES_MAX * sizeof(key_code)];
    int64_t among[PLACES_MAX], place;
    int count = 0;
    for (int i = 0; i < run->wanted; i++) {
        select_ranges_place(found, run->positions[i], &place);
        if (place >= 0)
            among[count++] = place;
    }
    if (count > 0)
        TRY(select_in_memory(run, HSORT_ASCENDING, found->codes, found->count, among, count, kept));
    for (int i = 0, next = 0; i < run->wanted; i++) {
        const int in = select_ranges_place(found, run->positions[i], &place);
        memcpy(run->selected + (size_t)i * bytes,
               place >= 0 ? kept + (size_t)next++ * bytes : (const char *)&found->range[in].first, bytes);
    }
    return HSORT_OK;
}

/* Room for the parts in which elements pass. */
static hsort_status make_code_parts(struct select_run *run, size_t memory_bytes)
{
    const size_t width = run->in.element.bytes, code_bytes = hsort_type_bytes(run->type);
    size_t bytes = memory_bytes >> CHUNKS_LOG;
    bytes = bytes > CLI_CHUNK_BYTES ? CLI_CHUNK_BYTES : bytes < CHUNK_LEAST ? CHUNK_LEAST : bytes;
    run->part = greater(1, (int64_t)(bytes / (width > code_bytes ? width : code_bytes)));
    run->chunk = malloc((size_t)run->part * width + 1);
    run->codes = malloc((size_t)run->part * code_bytes);
    return run->chunk && run->codes
               ? HSORT_OK
               : status_fail(HSORT_HOST_MEMORY, "no memory for parts of %s", run->in.path);
}

static hsort_status select_by_codes(struct select_run *run, size_t memory_bytes)
{
    int64_t ascending[PLACES_MAX];
    struct code_selection found = {0};
    struct code_reader source = {
        .read = read_codes, .user = run, .name = run->in.path, .own = run->count, .total = run->in.count};
    run->coded = true;
    run->type = run->fields.key_bytes <= (int)sizeof(uint64_t) ? HSORT_U64 : HSORT_U128;
    source.code_bytes = (int)hsort_type_bytes(run->type);
    TRY(comm_agree(run->comm, make_code_parts(run, memory_bytes)));
    source.bytes = (size_t)run->part * (run->in.element.bytes + (size_t)source.code_bytes);
    TRY(launch_threads(run->comm, run->options->sort.threads, &source.threads));
    memcpy(ascending, run->positions, (size_t)run->wanted * sizeof *ascending);
    qsort(ascending, (size_t)run->wanted, sizeof *ascending, compare_positions);
    const size_t room = memory_bytes / COPIES / (size_t)source.code_bytes;
    hsort_status status = select_ranges_find(run->comm, &source, ascending, run->wanted,
                                             room < INT64_MAX ? (int64_t)room : INT64_MAX, &found);
    run->readings = found.readings;
    if (status == HSORT_OK)
        status = take_codes(run, &found);
    select_ranges_free(&found);
    return status;
}

static hsort_status select_keys(struct select_run *run)
{
    size_t memory_bytes;
    bool fit;
    run->stats.engine = hsort_engine_in_use(run->ctx);
    TRY(comm_agree(run->comm, cli_memory(run->comm, run->options, &memory_bytes)));
    const uint64_t most = memory_bytes / COPIES / hsort_type_bytes(run->type);
    TRY(comm_agree(run->comm, comm_all(run->comm, (uint64_t)run->count <= most, &fit)));
    if (run->options->key || !fit)
        return select_by_codes(run, memory_bytes);
    TRY(comm_agree(run->comm, read_selected(run)));
    return select_in_memory(run, run->options->reverse ? HSORT_DESCENDING : HSORT_ASCENDING, run->keys,
                            run->count, run->positions, run->wanted, run->selected);
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

/* Field `field` of the key that was selected. */
static const char *selected_text(const struct select_run *run, int which, int field, char *text)
{
    const key_code bits = selected_bits(run, which);
    return run->coded ? record_field_text(&run->fields, field, bits, text)
                      : report_key_text(run->type, bits, text);
}

/* "key": a text, or for records a list of texts, one for each field. */
static void print_key_json(const struct select_run *run, int which, struct json *json)
{
    char text[RECORD_FIELD_TEXT];
    if (!run->options->key) {
        json_text(json, "key", selected_text(run, which, 0, text));
        return;
    }
    json_open(json, "key", '[');
    for (int field = 0; field < run->fields.count; field++)
        json_text(json, NULL, selected_text(run, which, field, text));
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
    json_text(&json, "type", key ? "record" : hsort_type_name(run->in.type));
    json_text(&json, "order", key ? NULL : run->options->reverse ? "descending" : "ascending");
    json_text(&json, "key", key);
    json_integer(&json, key ? "records" : "keys", run->in.count);
    json_integer(&json, "readings", run->readings);
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
        printf("%" PRId64, run->positions[i]);
        for (int field = 0; field < run->fields.count; field++)
            printf(" %s", selected_text(run, i, field, text));
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
    free(run->chunk);
    free(run->codes);
    free(run);
    return status;
}
