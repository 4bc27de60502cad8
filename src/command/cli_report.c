/* hypersort report: a page that shows what sort --json or gather --json has printed, and a trace. Rank 0 reads and draws; the page is an
 * output like any other, under a temporary name until it is whole. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "src/command/cli.h"
#include "src/command/launch.h"
#include "src/command/page_run.h"
#include "src/command/page_timeline.h"
#include "src/command/report.h"

/* A file in memory, and the value that it holds. */
struct json_file {
    char *text; /* [bytes], or NULL */
    size_t bytes;
    struct json_value value;
};

/* Read all of the file, which is not mapped: a mapped file that is cut short meanwhile ends the process by a signal. */
static hsort_status load_json(const char *path, int file, struct json_file *json)
{
    struct stat there;
    if (fstat(file, &there) != 0)
        return status_fail(HSORT_IO, "%s: cannot be looked at: %s", path, strerror(errno));
    if (!S_ISREG(there.st_mode))
        return status_fail(HSORT_IO, "%s: is not a regular file", path);
    if (there.st_size == 0)
        return status_fail(HSORT_FORMAT, "%s: is empty", path);
    json->bytes = (size_t)there.st_size;
    json->text = malloc(json->bytes);
    if (!json->text)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory to read it", path);
    return block_read_cached(path, file, 0, json->bytes, json->text);
}

static int line_of(const char *text, size_t where)
{
    int line = 1;
    for (size_t i = 0; i < where; i++)
        line += text[i] == '\n';
    return line;
}

static hsort_status read_json(const char *path, struct json_file *json)
{
    size_t where;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return status_fail(HSORT_IO, "%s: cannot open: %s", path, strerror(errno));
    const hsort_status status = load_json(path, file, json);
    close(file);
    if (status != HSORT_OK)
        return status;
    json->value = json_parse(json->text, json->bytes, &where);
    return json->value.kind != JSON_NONE ? HSORT_OK
                                         : status_fail(HSORT_FORMAT, "%s: is not JSON, by line %d, byte %zu",
                                                       path, line_of(json->text, where), where);
}

/* Read the files and draw the page, on rank 0. */
static hsort_status draw_page(const struct cli_options *options, struct page *page)
{
    struct json_file run = {.text = NULL}, trace = {.text = NULL};
    char title[256];
    hsort_status status = read_json(options->files[0], &run);
    if (status == HSORT_OK && !is_run_report(&run.value))
        status = status_fail(HSORT_FORMAT, "%s: is not what sort --json or gather --json prints",
                             options->files[0]);
    if (status == HSORT_OK && options->trace)
        status = read_json(options->trace, &trace);
    if (status == HSORT_OK && options->trace && !is_trace(&trace.value))
        status = status_fail(HSORT_FORMAT, "%s: is not what --trace has written", options->trace);
    if (status == HSORT_OK && options->trace && !is_trace_of(&trace.value, &run.value))
        status = status_fail(HSORT_ARGUMENT, "%s: is the trace of another run than %s", options->trace,
                             options->files[0]);
    if (status == HSORT_OK) {
        page_begin(page, run_title(&run.value, title, sizeof title));
        page_run(page, &run.value);
        if (options->trace)
            status = page_timeline(page, &trace.value);
        page_end(page);
    }
    free(run.text);
    free(trace.text);
    return status == HSORT_OK ? page_status(page) : status;
}

/* The name of the page: -o, or the name of the report, ending in .html. It is one file of all ranks: no % in it stands for a rank. */
static hsort_status name_page(const struct cli_options *options, char *name)
{
    const char *given = options->output ? options->output : options->files[0];
    const char *slash = strrchr(given, '/'), *dot = strrchr(given, '.');
    size_t length = strlen(given);
    if (!options->output && dot && strcmp(dot, ".json") == 0 && dot > (slash ? slash + 1 : given))
        length -= strlen(dot);
    if (snprintf(name, PATH_MAX, "%.*s%s", (int)length, given, options->output ? "" : ".html") >= PATH_MAX)
        return status_fail(HSORT_IO, "%.200s...: cannot create: %s", given, strerror(ENAMETOOLONG));
    return HSORT_OK;
}

/* The page must not be one of the files that are read. Not collective. */
static hsort_status check_page_name(const struct cli_options *options, const char *name)
{
    const char *const inputs[] = {options->files[0], options->trace};
    struct stat page, input;
    for (int i = 0; i < 2; i++)
        if (inputs[i] && stat(name, &page) == 0 && stat(inputs[i], &input) == 0 &&
            page.st_dev == input.st_dev && page.st_ino == input.st_ino)
            return status_fail(HSORT_ARGUMENT, "%s: is the input; the page must be another file", name);
    return HSORT_OK;
}

/* Collective. */
static hsort_status write_page(struct comm *comm, const struct cli_options *options, const struct page *page,
                               const char *name)
{
    const struct npy_element byte = {.bytes = 1};
    int64_t length = (int64_t)page->length;
    struct file_out file;
    char as_is[PATH_MAX];
    TRY(comm_range(comm, length, NULL, &length));
    TRY(comm_agree(comm, file_name_as_is(name, as_is)));
    const struct file_target target = {.path = as_is,
                                       .format = FILE_RAW,
                                       .element = &byte,
                                       .count = length,
                                       .mine = comm->rank == 0 ? length : 0,
                                       .direct_io = HSORT_CHOICE_OFF,
                                       .no_clobber = options->no_clobber};
    TRY(file_create(comm, &target, &file));
    return file_commit(comm, &file, comm->rank == 0 ? file_write(&file, 0, length, page->text) : HSORT_OK);
}

hsort_status cli_report(struct comm *comm, const struct cli_options *options)
{
    struct page page = {.text = NULL};
    char name[PATH_MAX];
    hsort_status status = name_page(options, name);
    if (status == HSORT_OK && comm->rank == 0)
        status = check_page_name(options, name);
    if (status == HSORT_OK && comm->rank == 0)
        status = draw_page(options, &page);
    status = comm_agree(comm, status);
    if (status == HSORT_OK)
        status = write_page(comm, options, &page, name);
    page_free(&page);
    if (status == HSORT_OK && comm->rank == 0) {
        printf("page         ");
        report_name(name);
        printf("\n");
        status = report_flush();
    }
    return comm_agree(comm, status);
}
