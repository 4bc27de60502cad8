#include "src/command/disk_deal.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "kernels/base/checksum.h"
#include "kernels/base/lesser.h"
#include "src/command/launch.h"
#include "src/command/report.h"

enum {
    TAG_ROOM = 32,
    JOINED_ONCE = 1 << 20, /* bytes of elements; a thread also has in memory what it reads of each column */
    RANKS_SKIPPED =
        64 /* this many ranks in a row of a killed run may have no file although later ranks have one */
};

/* ---- What is wanted ------------------------------------------------------------------------------------ */

/* Outputs in the order of FILE_OUTPUTS; NULL: not wanted. */
struct wanted_outputs {
    const char *path[DEAL_COLUMNS + 1];
};

static struct wanted_outputs outputs_of(const struct cli_options *options)
{
    return (struct wanted_outputs){
        .path = {options->output, options->values_output, options->index, options->counts}};
}

const char *disk_deal_main_output(const struct cli_options *options)
{
    const struct wanted_outputs outputs = outputs_of(options);
    int i = 0;
    while (!outputs.path[i] && i < DEAL_COLUMNS)
        i++;
    return outputs.path[i];
}

static void add_deal_column(struct disk_deal *deal, struct deal_column column)
{
    deal->column[deal->columns++] = column;
    deal->element_bytes += column.bytes;
}

void disk_deal_describe(const struct cli_options *options, const struct file_in *in,
                        const struct file_in *values, const struct record_keys *keys, bool bare,
                        struct disk_deal *deal)
{
    const struct wanted_outputs outputs = outputs_of(options);
    *deal = (struct disk_deal){.options = options,
                               .keys = *keys,
                               .bare = bare,
                               .count = in->count,
                               .main_output = disk_deal_main_output(options),
                               .kept = true};
    for (int i = 0; i <= DEAL_COLUMNS; i++)
        deal->by_rank = deal->by_rank || (outputs.path[i] && file_is_pattern(outputs.path[i]));
    deal->needed = options->unique || options->index || values || deal->by_rank;
    add_deal_column(deal, (struct deal_column){.in = in,
                                               .bytes = in->element.bytes,
                                               .path = options->output,
                                               .format = options->output_format,
                                               .type = in->type,
                                               .element = options->key ? &in->element : NULL});
    if (values)
        add_deal_column(deal, (struct deal_column){.in = values,
                                                   .bytes = values->element.bytes,
                                                   .path = options->values_output,
                                                   .type = in->type,
                                                   .element = &values->element});
    if (options->index)
        add_deal_column(
            deal, (struct deal_column){.bytes = sizeof(int64_t), .path = options->index, .type = HSORT_I64});
}

/* Add to the digest what a file of values is, and some of what it holds. */
static hsort_status add_values(const struct file_in *values, uint64_t *digest)
{
    char path[PATH_MAX];
    const struct file_part *part = &values->part[0];
    const int64_t facts[] = {part->bytes, part->changed.tv_sec, part->changed.tv_nsec,
                             (int64_t)values->element.bytes};
    if (!realpath(part->path, path))
        return status_fail(HSORT_IO, "%s: cannot be looked at", part->path);
    *digest = checksum_add(checksum_add(*digest, path, strlen(path) + 1), facts, sizeof facts);
    return checkpoint_sample(values, digest);
}

/* digest = a number for everything that --key and the output do not say. */
static hsort_status digest_deal(const struct disk_deal *deal, uint64_t *digest)
{
    const struct wanted_outputs outputs = outputs_of(deal->options);
    *digest = CHECKSUM_START;
    for (int i = 0; i <= DEAL_COLUMNS; i++) {
        char name[PATH_MAX];
        const char what[] = {(char)i, outputs.path[i] && file_is_pattern(outputs.path[i])};
        if (!outputs.path[i])
            continue;
        TRY(file_output_name(outputs.path[i], deal->column[0].in, name));
        *digest = checksum_add(checksum_add(*digest, name, strlen(name) + 1), what, sizeof what);
    }
    return deal->options->values ? add_values(deal->column[1].in, digest) : HSORT_OK;
}

hsort_status disk_deal_text(struct comm *comm, const struct disk_deal *deal, char *text, size_t room)
{
    const struct cli_options *options = deal->options;
    const char *key = options->key ? options->key : "";
    uint64_t digest = 0;
    snprintf(text, room, "%s", key);
    if (!deal->needed)
        return HSORT_OK;
    TRY(comm_agree(comm, comm->rank == 0 ? digest_deal(deal, &digest) : HSORT_OK));
    snprintf(text, room, "%s%s%s%s%s%s to %016" PRIx64,
             options->key ? key : hsort_type_name(deal->column[0].type), options->unique ? " --unique" : "",
             options->counts ? " --counts" : "", options->values ? " --values" : "",
             options->index ? " --index" : "", file_is_pattern(deal->main_output) ? " %r" : "", digest);
    return HSORT_OK;
}

/* ---- Columns joined ------------------------------------------------------------------------------------ */

/* Copy the part of from [bytes], which belongs at `at` of to [room], that lies inside `to`. */
static void place_part(char *to, int64_t at, size_t room, const char *from, size_t bytes)
{
    const int64_t begin = at < 0 ? -at : 0, left = (int64_t)room - at;
    const int64_t end = left < (int64_t)bytes ? left : (int64_t)bytes;
    if (begin < end)
        memcpy(to + at + begin, from + begin, (size_t)(end - begin));
}

/* Copy a column of all elements that bytes at .. at + bytes - 1 touch, each part to its place in `to`; `base` is its place in an element. */
static hsort_status join_column(const struct disk_deal *deal, const struct deal_column *column, int64_t base,
                                int64_t at, size_t bytes, char *to)
{
    const int64_t width = (int64_t)deal->element_bytes, first = at / width,
                  end = divide_up(at + (int64_t)bytes, width);
    const size_t all = (size_t)(end - first) * column->bytes;
    char *part = column->in ? malloc(all + 1) : NULL;
    if (column->in && !part)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory to read it", column->in->path);
    const hsort_status status =
        part ? file_read_at(column->in, first * (int64_t)column->bytes, all, part) : HSORT_OK;
    for (int64_t i = first; i < end && status == HSORT_OK; i++)
        place_part(to, i * width + base - at, bytes,
                   part ? part + (size_t)(i - first) * column->bytes : (const char *)&i, column->bytes);
    free(part);
    return status;
}

hsort_status disk_deal_join(const struct disk_deal *deal, int64_t at, size_t bytes, void *to)
{
    if (deal->columns == 1)
        return file_read_at(deal->column[0].in, at, bytes, to);
    for (size_t done = 0; done < bytes; done += JOINED_ONCE) {
        const size_t part = bytes - done < JOINED_ONCE ? bytes - done : JOINED_ONCE;
        int64_t base = 0;
        for (int i = 0; i < deal->columns; i++) {
            TRY(join_column(deal, &deal->column[i], base, at + (int64_t)done, part, (char *)to + done));
            base += (int64_t)deal->column[i].bytes;
        }
    }
    return HSORT_OK;
}

/* ---- Outputs ------------------------------------------------------------------------------------------- */

static void make_deal_tag(const struct disk_deal *deal, char *tag)
{
    snprintf(tag, TAG_ROOM, "%016" PRIx64 "-dealt", deal->tag); // differs from the name of what segments go to
}

/* Remove what a stopped or killed run has left of an output: this rank's file, if `own_too`, and the files of ranks that do not exist now. */
static hsort_status remove_left(const struct comm *comm, const char *path, const char *tag, bool own_too)
{
    char name[PATH_MAX];
    if (comm->rank > 0 && !file_is_pattern(path))
        return HSORT_OK;
    TRY(file_name_tagged(path, comm->rank, tag, name));
    file_forget_old(name);
    if (own_too)
        unlink(name);
    const bool was_clear = status_text()[0] == '\0';
    int last = comm->rank == 0 && file_is_pattern(path) ? comm->size + RANKS_SKIPPED : 0;
    for (int rank = comm->size; rank < last; rank++) {
        if (file_name_tagged(path, rank, tag, name) != HSORT_OK)
            continue; // what lies there is no output of this sort
        file_forget_old(name);
        if (unlink(name) == 0)
            last = rank + 1 + RANKS_SKIPPED;
    }
    if (was_clear)
        status_clear();
    return HSORT_OK;
}

/* Refuse an output if the names of two ranks lead to one file, by a link: each rank would write all of it. Collective. */
static hsort_status refuse_common_file(struct comm *comm, const char *path)
{
    char name[PATH_MAX];
    int64_t *all = malloc((size_t)comm->size * sizeof *all);
    hsort_status status = all ? file_output_name_of(path, comm->rank, NULL, name)
                              : status_fail(HSORT_HOST_MEMORY, "no memory for %d ranks", comm->size);
    status = comm_agree(comm, status);
    if (status != HSORT_OK) { // agreed, with its line
        free(all);
        return status;
    }
    status = comm_gather(comm, (int64_t)checksum_add(CHECKSUM_START, name, strlen(name)), all);
    for (int rank = 0; rank < comm->rank && status == HSORT_OK; rank++)
        if (all[rank] == all[comm->rank])
            status = status_fail(HSORT_ARGUMENT, "%s: is the output of rank %d, too", name, rank);
    free(all);
    return comm_agree(comm, status);
}

/* Create an output, or find the one of an earlier call. */
static hsort_status open_dealt(struct comm *comm, struct disk_deal *deal, const struct file_target *target,
                               struct file_out *out)
{
    const bool own = file_is_pattern(target->path);
    char name[PATH_MAX] = "";
    bool kept = false;
    if (own)
        TRY(refuse_common_file(comm, target->path));
    hsort_status status = remove_left(comm, target->path, target->tag, false);
    if (status == HSORT_OK && (own || comm->rank == 0))
        status = file_name_tagged(target->path, comm->rank, target->tag, name);
    TRY(comm_agree(comm, status));
    TRY(file_resume(comm, target, name, out, &kept));
    deal->kept = deal->kept && kept;
    return HSORT_OK;
}

hsort_status disk_deal_create(struct comm *comm, struct disk_deal *deal, int64_t total, int64_t first,
                              int64_t mine)
{
    const struct deal_column counts = {.path = deal->options->counts, .type = HSORT_I64};
    char tag[TAG_ROOM];
    make_deal_tag(deal, tag);
    for (int i = 0; i <= deal->columns; i++) {
        const struct deal_column *column = i < deal->columns ? &deal->column[i] : &counts;
        const struct file_target target = {.path = column->path,
                                           .format = column->format,
                                           .type = column->type,
                                           .element = column->element,
                                           .count = total,
                                           .first = first,
                                           .mine = mine,
                                           .input = deal->column[0].in,
                                           .other_input = deal->options->values ? deal->column[1].in : NULL,
                                           .direct_io = deal->options->direct_io,
                                           .no_clobber = deal->options->no_clobber,
                                           .tag = tag};
        if (!column->path)
            continue;
        struct file_out *out = &deal->out[deal->outs];
        const hsort_status status = open_dealt(comm, deal, &target, out);
        deal->is_full = deal->is_full || out->was_full;
        TRY(status);
        deal->column_of[deal->outs++] = i < deal->columns ? i : DEAL_COLUMNS;
        report_stale(comm, out);
    }
    return HSORT_OK;
}

hsort_status disk_deal_open(struct comm *comm, struct disk_deal *deal)
{
    const int64_t first = launch_share(deal->count, comm->rank, comm->size);
    if (!deal->needed || deal->options->unique)
        return HSORT_OK;
    return disk_deal_create(comm, deal, deal->count, first,
                            launch_share(deal->count, comm->rank + 1, comm->size) - first);
}

bool disk_deal_is_full(const struct disk_deal *deal)
{
    bool full = deal->is_full;
    for (int i = 0; i < deal->outs; i++)
        full = full || block_was_full(deal->out[i].blocks);
    return full;
}

/* Remove what an earlier call has left and this one has not opened. */
static void remove_all_left(const struct comm *comm, const struct disk_deal *deal)
{
    const struct wanted_outputs outputs = outputs_of(deal->options);
    char tag[TAG_ROOM];
    make_deal_tag(deal, tag);
    for (int i = 0; i <= DEAL_COLUMNS && deal->tag != 0; i++)
        if (outputs.path[i] && remove_left(comm, outputs.path[i], tag, true) != HSORT_OK)
            status_clear(); // where no file can be
}

hsort_status disk_deal_end(struct comm *comm, struct disk_deal *deal, hsort_status status, bool stays)
{
    struct file_out *files[FILE_OUTPUTS];
    const bool fails = status != HSORT_OK;
    for (int i = 0; i < deal->outs; i++) {
        files[i] = &deal->out[i];
        if (stays)
            file_leave(comm, files[i]);
    }
    if (deal->outs > 0 && !stays)
        status = launch_commit_all(comm, files, deal->outs, status);
    if (fails && !stays)
        remove_all_left(comm, deal);
    deal->outs = 0;
    return status;
}
