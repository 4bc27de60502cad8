/* --trace FILE: what the ranks did when (hsort_write_trace()), including the command's files and checks.
 *
 *     run_trace_check()     can FILE be written? Asked before there is work to lose
 *     run_trace_options()   let the context record
 *     run_trace_begin()     record also what the command does by its communicator
 *     run_trace_end()       after the work, also if it failed: write the file; the communicator records no more
 *
 *     run_trace_open()      all that comes before the work, and
 *     run_trace_close()     all that comes after it, for commands that have no context: check and gen
 *
 * Without --trace none of these functions does anything. */
#ifndef RUN_TRACE_H
#define RUN_TRACE_H

#include "src/command/cli.h"
#include "src/command/json.h"

struct run_trace {
    const char *path; /* as the command line has it; NULL: there is no trace */
    bool is_written;
    int64_t spans, lost; /* of all ranks */
    hsort_context *ctx;  /* from run_trace_open() to run_trace_close(), or NULL */
};

enum { RUN_TRACE_SPANS = 1 << 16 }; /* of each rank, unless --trace-spans is given */

/* Check that FILE can be written and is no other file of the command. Collective. in, other: the inputs, or NULL. Errors, the same on
 * every rank: HSORT_IO, HSORT_ARGUMENT. */
hsort_status run_trace_check(struct comm *comm, const struct cli_options *options, const struct file_in *in,
                             const struct file_in *other);

/* Let a context record; let the communicator record to it. Not collective. */
void run_trace_options(const struct cli_options *options, hsort_options *sort);
void run_trace_begin(struct comm *comm, const hsort_context *ctx);

/* Write the file; ctx NULL: there is nothing to write. Returns `status`, of the work before, unless the work went well and the file
 * cannot be written. Collective. */
hsort_status run_trace_end(struct comm *comm, const struct cli_options *options, hsort_context *ctx,
                           hsort_status status, struct run_trace *trace);

/* run_trace_check(); then create a context of the host engine that does nothing but record. Collective. Errors of both, the same on
 * every rank: then there is nothing to close. */
hsort_status run_trace_open(struct comm *comm, const struct cli_options *options, const struct file_in *in,
                            const struct file_in *other, struct run_trace *trace);

/* run_trace_end(); then destroy that context. Collective. */
hsort_status run_trace_close(struct comm *comm, const struct cli_options *options, hsort_status status,
                             struct run_trace *trace);

/* Print the line of a report; put its member of an object, null if there is no trace. */
void run_trace_print(const struct run_trace *trace);
void run_trace_json(struct json *json, const struct run_trace *trace);

#endif
