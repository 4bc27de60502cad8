#include "src/command/report_ranks.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "src/library/trace_file.h"

const char *const report_phase_names[HSORT_PHASES] = {
#define X(name, short_name) short_name,
    HSORT_PHASE_LIST(X)
#undef X
};

void rank_report_add(struct rank_report *own, const hsort_context *ctx)
{
    double seconds[HSORT_PHASES];
    int64_t moved_bytes;
    context_own_stats(ctx, seconds, &moved_bytes);
    for (int phase = 0; phase < HSORT_PHASES; phase++)
        own->seconds[phase] += seconds[phase];
    own->moved_bytes += moved_bytes;
}

hsort_status rank_reports_gather(struct comm *comm, hsort_context *ctx, const struct rank_report *own,
                                 struct rank_report **ranks)
{
    hsort_rank_info *infos = malloc((size_t)comm->size * sizeof *infos);
    *ranks = comm->rank == 0 ? calloc((size_t)comm->size, sizeof **ranks) : NULL;
    const bool lacks = !infos || (comm->rank == 0 && !*ranks);
    hsort_status status =
        comm_agree(comm, lacks ? status_fail(HSORT_HOST_MEMORY, "no memory to report of %d ranks", comm->size)
                               : HSORT_OK);
    if (status == HSORT_OK)
        status = hsort_topology(ctx, infos, sizeof *infos);
    if (status == HSORT_OK)
        status = comm_agree(comm, comm_check(MPI_Gather(own, sizeof *own, MPI_BYTE, *ranks, sizeof *own,
                                                        MPI_BYTE, 0, comm->world),
                                             "MPI_Gather", false));
    for (int rank = 0; rank < comm->size && status == HSORT_OK && *ranks; rank++) {
        struct rank_report *r = &(*ranks)[rank];
        snprintf(r->host, sizeof r->host, "%.63s", infos[rank].host);
        snprintf(r->gpu_name, sizeof r->gpu_name, "%.63s", infos[rank].gpu_name);
        r->gpu = hsort_engine_in_use(ctx) == HSORT_ENGINE_CUDA ? infos[rank].gpu_index : -1;
    }
    free(infos);
    if (status != HSORT_OK) {
        free(*ranks);
        *ranks = NULL;
    }
    return status;
}

void rank_reports_json(struct json *json, const struct rank_report *ranks, int count)
{
    json_open(json, "per_rank", '[');
    for (int rank = 0; rank < count && ranks; rank++) {
        const struct rank_report *r = &ranks[rank];
        json_open(json, NULL, '{');
        json_integer(json, "rank", rank);
        json_text(json, "host", r->host);
        if (json_known(json, "gpu", r->gpu >= 0)) {
            json_integer(json, "gpu", r->gpu);
            json_text(json, "gpu_name", r->gpu_name);
        }
        json_integer(json, "moved_bytes", r->moved_bytes);
        json_open(json, "phases", '{');
        json_real(json, "read", r->read_seconds);
        for (int phase = 0; phase < HSORT_PHASES; phase++)
            json_real(json, report_phase_names[phase], r->seconds[phase]);
        json_real(json, "write", r->write_seconds);
        json_real(json, "verify", r->verify_seconds);
        json_close(json, '}');
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* ---- how it was started -------------------------------------------------------------------------------- */

/* Add a word of a command, quoted as a shell needs it: at most four bytes for each byte of the word, including its ending zero. */
static size_t add_word(char *text, size_t length, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
    const bool quotes = word[0] == '\0' || word[strspn(word, plain)] != '\0';
    if (length > 0)
        text[length++] = ' ';
    if (quotes)
        text[length++] = '\'';
    for (; *word; word++) {
        text[length++] = *word;
        if (*word == '\'') { // ' is '\'' inside quotes
            memcpy(text + length, "\\''", 3);
            length += 3;
        }
    }
    if (quotes)
        text[length++] = '\'';
    text[length] = '\0';
    return length;
}

/* The words that this process was started with, as the system keeps them, each ended by a zero. Those that main() got are not
 * used, because parsing has changed their order. Returns words [*bytes], owned, or NULL. */
static char *read_command(size_t *bytes)
{
    size_t room = 4096, got;
    char *words = NULL, *more;
    FILE *file = fopen("/proc/self/cmdline", "re");
    *bytes = 0;
    while (file && (more = realloc(words, room))) {
        words = more;
        got = fread(words + *bytes, 1, room - *bytes - 1, file);
        *bytes += got;
        words[*bytes] = '\0';
        if (got == 0)
            break;
        room *= 2;
    }
    if (file)
        fclose(file);
    return words;
}

/* The whole command as a line. Returns text, owned, or NULL. */
static char *command_text(void)
{
    size_t bytes, length = 0;
    char *words = read_command(&bytes);
    char *text = words ? malloc(4 * bytes + 1) : NULL;
    if (text)
        text[0] = '\0';
    for (size_t at = 0; text && at < bytes; at += strlen(words + at) + 1) {
        const char *base = at == 0 ? strrchr(words, '/') : NULL; // the program's name is enough, without its folder
        length = add_word(text, length, base ? base + 1 : words + at);
    }
    free(words);
    return text;
}

void report_start_json(struct json *json)
{
    char *text = command_text(), ended[32];
    const time_t now = time(NULL);
    struct tm utc;
    json_text(json, "command", text);
    free(text);
    strftime(ended, sizeof ended, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    json_text(json, "ended", ended);
}
