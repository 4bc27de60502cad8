#include "src/command/run_trace.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "src/command/launch.h"
#include "src/command/report.h"
#include "src/files/file_guard.h"
#include "src/files/hdf5_place.h"
#include "src/library/trace_file.h"

/* name = where FILE goes. It is one file of all ranks: no % in it stands for a rank. name, `in`, errors: file_output_name(). */
static hsort_status trace_name(const struct cli_options *options, const struct file_in *in, char *name)
{
    char as_is[PATH_MAX];
    TRY(file_name_as_is(options->trace, as_is));
    return file_output_name(as_is, in, name);
}

/* No output of any rank may be the same file. */
static hsort_status check_other_outputs(const struct cli_options *options, int ranks, const char *name)
{
    struct hdf5_place place;
    const bool in_hdf5 = hdf5_place_is(options->output) && hdf5_place_parse(options->output, &place) == HSORT_OK;
    const char *const others[] = {in_hdf5 ? place.file : options->output, options->values_output, options->index,
                                  options->counts, options->summary};
    char other[PATH_MAX];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (int rank = 0; others[i] && rank < (file_is_pattern(others[i]) ? ranks : 1); rank++)
            if (file_output_name_of(others[i], rank, NULL, other) == HSORT_OK && strcmp(other, name) == 0)
                return status_fail(HSORT_ARGUMENT, "%s: is named for two outputs", options->trace);
    status_clear(); // a name that cannot be used is reported when that output is opened
    return HSORT_OK;
}

/* Check the file on rank 0, which writes it. */
static hsort_status check_trace_file(const struct cli_options *options, int ranks, const struct file_in *in,
                                     const struct file_in *other)
{
    char name[PATH_MAX], temporary[PATH_MAX];
    TRY(trace_name(options, in, name));
    if (other)
        TRY(trace_name(options, other, name));
    TRY(check_other_outputs(options, ranks, name));
    const int file = trace_temporary(name, temporary, sizeof temporary)
                         ? open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                         : (errno = ENAMETOOLONG, -1);
    if (file < 0 && errno == EEXIST) // left by a killed process with the same number: it will be replaced
        return HSORT_OK;
    if (file < 0)
        return status_fail(HSORT_IO, "%s: cannot create: %s", options->trace, strerror(errno));
    close(file);
    unlink(temporary);
    return HSORT_OK;
}

hsort_status run_trace_check(struct comm *comm, const struct cli_options *options, const struct file_in *in,
                             const struct file_in *other)
{
    if (!options->trace)
        return HSORT_OK;
    return comm_agree(comm, comm->rank == 0 ? check_trace_file(options, comm->size, in, other) : HSORT_OK);
}

void run_trace_options(const struct cli_options *options, hsort_options *sort)
{
    sort->trace_spans = !options->trace                 ? 0
                        : options->sort.trace_spans > 0 ? options->sort.trace_spans
                                                        : RUN_TRACE_SPANS;
}

void run_trace_begin(struct comm *comm, const hsort_context *ctx)
{
    comm->trace = context_trace(ctx);
}

/* Write the trace; like any output, it is removed if a signal ends the run while it is written. */
static hsort_status write_guarded(struct comm *comm, const struct cli_options *options, hsort_context *ctx,
                                  struct run_trace *trace)
{
    char name[PATH_MAX] = "", temporary[PATH_MAX];
    const int guard = file_guard_take();
    if (comm->rank == 0 && trace_name(options, NULL, name) == HSORT_OK && guard >= 0 &&
        trace_temporary(name, temporary, sizeof temporary)) {
        struct sigaction stop;
        const bool handled = sigaction(SIGTERM, NULL, &stop) == 0 && stop.sa_handler != SIG_DFL; // by stop.h
        file_guard_begin(guard, temporary, handled ? FILE_STOP_SIGNALS : 0);
        *file_guard_exists(guard) = 1;
    }
    const hsort_status status =
        hsort_write_trace(ctx, name[0] ? name : options->trace, &trace->spans, &trace->lost);
    if (guard >= 0)
        file_guard_end(guard);
    return status;
}

hsort_status run_trace_end(struct comm *comm, const struct cli_options *options, hsort_context *ctx,
                           hsort_status status, struct run_trace *trace)
{
    *trace = (struct run_trace){.path = options->trace};
    comm->trace = NULL;
    if (!options->trace || !ctx || status == HSORT_MPI || launch_lost(comm, status))
        return status;
    const hsort_status written = write_guarded(comm, options, ctx, trace);
    trace->is_written = written == HSORT_OK;
    if (written == HSORT_OK || status != HSORT_OK) // the first failure is reported
        return status;
    return report_fail(comm, written, "%s", hsort_last_error(ctx));
}

hsort_status run_trace_open(struct comm *comm, const struct cli_options *options, const struct file_in *in,
                            const struct file_in *other, struct run_trace *trace)
{
    hsort_options sort = options->sort;
    *trace = (struct run_trace){.path = options->trace};
    if (!options->trace)
        return HSORT_OK;
    TRY(run_trace_check(comm, options, in, other));
    sort.engine = HSORT_ENGINE_HOST;
    sort.binding = HSORT_BINDING_NONE; // a trace changes nothing
    run_trace_options(options, &sort);
    const hsort_status status = hsort_create(comm->world, &sort, &trace->ctx);
    if (status != HSORT_OK)
        return report_fail(comm, status, "%s", hsort_last_error(NULL));
    status_clear();
    run_trace_begin(comm, trace->ctx);
    return HSORT_OK;
}

hsort_status run_trace_close(struct comm *comm, const struct cli_options *options, hsort_status status,
                             struct run_trace *trace)
{
    hsort_context *ctx = trace->ctx;
    const hsort_status ended = run_trace_end(comm, options, ctx, status, trace);
    if (!launch_lost(comm, ended))
        hsort_destroy(&ctx);
    return ended;
}

void run_trace_print(const struct run_trace *trace)
{
    if (!trace->path)
        return;
    printf("trace        ");
    report_name(trace->path);
    if (!trace->is_written)
        printf(", NOT WRITTEN\n");
    else if (trace->lost > 0)
        printf(", %" PRId64 " spans, %" PRId64 " more LOST: --trace-spans makes room\n", trace->spans,
               trace->lost);
    else
        printf(", %" PRId64 " spans\n", trace->spans);
}

void run_trace_json(struct json *json, const struct run_trace *trace)
{
    if (!json_known(json, "trace", trace->path != NULL))
        return;
    json_open(json, "trace", '{');
    json_text(json, "file", trace->path);
    json_bool(json, "written", trace->is_written);
    json_integer(json, "spans", trace->spans);
    json_integer(json, "lost_spans", trace->lost);
    json_close(json, '}');
}
