#include "src/checkpoint/manifest.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/status.h"
#include "kernels/base/checksum.h"
#include "src/files/file_internal.h"

enum { VERSION = 2 };
static const char first_words[] = "hypersort checkpoint ", last_word[] = "checksum ";
// Version 1 also saved keys, in files of their own.
static const char remedy_1[] = "remove it and any run-*.keys beside it to start from the beginning";

static const char record_word[] = "record";
static const char *const order_names[] = {"ascending", "descending"};
static const char *const format_names[] = {
#define X(name, short_name) short_name,
    FILE_FORMAT_LIST(X)
#undef X
};
static const char *const type_names[] = {
#define X(name, short_name, bytes) short_name,
    HSORT_TYPE_LIST(X)
#undef X
};
enum { ORDERS = sizeof order_names / sizeof *order_names, TYPES = sizeof type_names / sizeof *type_names };

const char *manifest_order_name(hsort_order order)
{
    return order_names[order];
}

hsort_status manifest_name_part(struct checkpoint *checkpoint)
{
    char tag[32];
    snprintf(tag, sizeof tag, "%016" PRIx64, checkpoint->id);
    return file_temporary_name(checkpoint->output, tag, checkpoint->part);
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

static void print_fields(FILE *file, const struct checkpoint *checkpoint)
{
    fprintf(file, "%s%d\n", first_words, VERSION);
    fprintf(file, "id %016" PRIx64 "\n", checkpoint->id);
    fprintf(file, "type %s\n", checkpoint->key[0] ? record_word : type_names[checkpoint->type]);
    if (checkpoint->key[0])
        fprintf(file, "key %s\n", checkpoint->key);
    fprintf(file, "order %s\n", order_names[checkpoint->order]);
    fprintf(file, "keys %" PRId64 "\n", checkpoint->keys);
    fprintf(file, "input_bytes %" PRId64 "\n", checkpoint->input_bytes);
    fprintf(file, "input_time %" PRId64 ".%09ld\n", (int64_t)checkpoint->input_time.tv_sec,
            checkpoint->input_time.tv_nsec);
    fprintf(file, "input %s\n", checkpoint->input);
    if (checkpoint->inputs > 1)
        fprintf(file, "inputs %" PRId64 " %016" PRIx64 "\n", checkpoint->inputs, checkpoint->inputs_digest);
    if (checkpoint->sample != 0)
        fprintf(file, "sample %016" PRIx64 "\n", checkpoint->sample);
    fprintf(file, "output_format %s\n", file_format_name(checkpoint->output_format));
    fprintf(file, "output %s\n", checkpoint->output);
    for (int r = 0; r < checkpoint->ranges; r++)
        fprintf(file, "written %" PRId64 " %" PRId64 "\n", checkpoint->written[r].first,
                checkpoint->written[r].count);
}

hsort_status manifest_format(const struct checkpoint *checkpoint, char **text, size_t *bytes)
{
    *text = NULL;
    FILE *file = open_memstream(text, bytes);
    bool whole = file != NULL;
    if (file) {
        print_fields(file, checkpoint);
        whole = fflush(file) == 0; // now *text and *bytes are what was printed
        if (whole)
            fprintf(file, "%s%016" PRIx64 "\n", last_word, checksum_add(CHECKSUM_START, *text, *bytes));
        whole = !ferror(file) && whole;
        whole = fclose(file) == 0 && whole;
    }
    if (whole)
        return HSORT_OK;
    free(*text);
    *text = NULL;
    return status_fail(HSORT_HOST_MEMORY, "no memory for the manifest of %s", checkpoint->directory);
}

/* ---- Reading: values ----------------------------------------------------------------------------------- */

/* Numbers are read as strtoll() takes them, so "+7" and "007" pass here. In the end, what was read is written again
 * and must be the same text: that leaves one way to write each number. A failure leaves `text` NULL, which
 * no later step reads. */
static bool take_decimal(const char **text, int64_t *number)
{
    char *end;
    errno = 0;
    *number = *text ? strtoll(*text, &end, 10) : 0;
    const bool taken = *text && end != *text && errno == 0;
    *text = taken ? end : NULL;
    return taken;
}

static bool take_hexadecimal(const char **text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = *text ? strtoull(*text, &end, 16) : 0;
    const bool taken = *text && end != *text && errno == 0;
    *text = taken ? end : NULL;
    return taken;
}

static bool take_mark(const char **text, char mark)
{
    const bool taken = *text && **text == mark;
    *text = taken ? *text + 1 : NULL;
    return taken;
}

static bool is_count(const char *value, int64_t *count)
{
    return take_decimal(&value, count) && *value == '\0' && *count >= 0;
}

static bool is_time(const char *value, struct timespec *time)
{
    int64_t seconds, fraction;
    if (!take_decimal(&value, &seconds) || !take_mark(&value, '.') || !take_decimal(&value, &fraction) ||
        *value != '\0' || fraction < 0 || fraction > 999999999)
        return false;
    *time = (struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = (long)fraction};
    return true;
}

static bool is_range(const char *value, struct checkpoint_range *range)
{
    return take_decimal(&value, &range->first) && take_mark(&value, ' ') &&
           take_decimal(&value, &range->count) && *value == '\0' && range->first >= 0 && range->count > 0;
}

static bool is_id(const char *value, uint64_t *id)
{
    return take_hexadecimal(&value, id) && *value == '\0';
}

/* Read the line about several inputs, which may be missing. */
static bool is_inputs(const char *value, int64_t *inputs, uint64_t *digest)
{
    *inputs = 1;
    *digest = 0;
    return !value || (take_decimal(&value, inputs) && *inputs > 1 && take_mark(&value, ' ') &&
                      take_hexadecimal(&value, digest) && *value == '\0');
}

/* Read the line of the sample, which may be missing. */
static bool is_sample(const char *value, uint64_t *sample)
{
    *sample = 0;
    return !value || is_id(value, sample);
}

static bool is_path(const char *value, char path[PATH_MAX])
{
    return value && value[0] == '/' && snprintf(path, PATH_MAX, "%s", value) < PATH_MAX;
}

/* Which of names [count] is `value`? -1: none. */
static int find_name(const char *value, const char *const *names, int count)
{
    for (int i = 0; value && i < count; i++)
        if (strcmp(value, names[i]) == 0)
            return i;
    return -1;
}

/* ---- Reading: lines ------------------------------------------------------------------------------------ */

/* A copy of the text, in which each line that was taken ends in a 0. */
struct reader {
    char *at;
    int line; /* the next one, from 1 on */
};

/* Take the next line if it begins with `word`, and return what follows the word. Else return NULL, and the line stays the next. */
static const char *take_line(struct reader *reader, const char *word)
{
    const size_t length = strlen(word);
    char *end = strchr(reader->at, '\n');
    if (!end || strncmp(reader->at, word, length) != 0 || reader->at[length] != ' ')
        return NULL;
    const char *value = reader->at + length + 1;
    *end = '\0';
    reader->at = end + 1;
    reader->line++;
    return value;
}

/* Read the type of keys, or for records, which have no other type, their key. */
static bool read_type(struct reader *reader, struct checkpoint *checkpoint, int *type)
{
    const char *word = take_line(reader, "type"), *key;
    checkpoint->key[0] = '\0';
    *type = find_name(word, type_names, TYPES);
    if (!word || strcmp(word, record_word) != 0)
        return *type >= 0;
    key = take_line(reader, "key");
    *type = HSORT_U32;
    return key && key[0] &&
           snprintf(checkpoint->key, sizeof checkpoint->key, "%s", key) < (int)sizeof checkpoint->key;
}

/* Read the lines of which there is one each. */
static bool read_fields(struct reader *reader, struct checkpoint *checkpoint)
{
    int type = -1, order = -1, format = -1;
    const bool read =
        is_id(take_line(reader, "id"), &checkpoint->id) && read_type(reader, checkpoint, &type) &&
        (order = find_name(take_line(reader, "order"), order_names, ORDERS)) >= 0 &&
        is_count(take_line(reader, "keys"), &checkpoint->keys) &&
        is_count(take_line(reader, "input_bytes"), &checkpoint->input_bytes) &&
        is_time(take_line(reader, "input_time"), &checkpoint->input_time) &&
        is_path(take_line(reader, "input"), checkpoint->input) &&
        is_inputs(take_line(reader, "inputs"), &checkpoint->inputs, &checkpoint->inputs_digest) &&
        is_sample(take_line(reader, "sample"), &checkpoint->sample) &&
        (format = find_name(take_line(reader, "output_format"), format_names, FILE_FORMATS)) >= 0 &&
        format != FILE_AUTO && is_path(take_line(reader, "output"), checkpoint->output);
    if (!read)
        return false;
    checkpoint->type = (hsort_type)type;
    checkpoint->order = (hsort_order)order;
    checkpoint->output_format = (enum file_format)format;
    return true;
}

/* Read the lines of which there are many. */
static bool read_ranges(struct reader *reader, struct checkpoint *checkpoint)
{
    int64_t behind = 0;
    const char *value;
    while ((value = take_line(reader, "written"))) {
        struct checkpoint_range range;
        if (!is_range(value, &range) || range.first > checkpoint->keys ||
            range.count > checkpoint->keys - range.first)
            return false;
        // Ranges that touch are one, so each begins after the end of the one before, not at it.
        if (checkpoint->ranges > 0 && range.first <= behind)
            return false;
        behind = range.first + range.count;
        checkpoint->written[checkpoint->ranges++] = range;
    }
    return true;
}

/* ---- Reading: the whole -------------------------------------------------------------------------------- */

static hsort_status damaged(const char *path, const char *how)
{
    return status_fail(HSORT_FORMAT, "%s: is damaged: %s; " MANIFEST_REMEDY, path, how);
}

/* Check the first and the last line: version and checksum. */
static hsort_status check_ends(const char *path, const char *text, size_t bytes)
{
    const size_t last_bytes = sizeof last_word - 1 + 16 + 1;
    const char *version = text + sizeof first_words - 1;
    if (strlen(text) != bytes || strncmp(text, first_words, sizeof first_words - 1) != 0)
        return damaged(path, "it does not begin as a manifest does");
    int64_t number = 0;
    if (take_decimal(&version, &number) && *version == '\n' && number != VERSION)
        return status_fail(HSORT_FORMAT, "%s: is of version %" PRId64 ", this is for version %d; %s", path,
                           number, VERSION, number == 1 ? remedy_1 : MANIFEST_REMEDY);

    uint64_t said;
    const char *last = bytes > last_bytes ? text + bytes - last_bytes : NULL;
    if (!last || last[-1] != '\n' || strncmp(last, last_word, sizeof last_word - 1) != 0)
        return damaged(path, "it does not end with a checksum");
    last += sizeof last_word - 1;
    if (!take_hexadecimal(&last, &said) || strcmp(last, "\n") != 0 ||
        said != checksum_add(CHECKSUM_START, text, bytes - last_bytes))
        return damaged(path, "its checksum is of another text");
    return HSORT_OK;
}

/* Read `copy` into `read`, and compare that with the text. */
static hsort_status read_lines(const char *path, const char *text, char *copy, struct checkpoint *read)
{
    char how[64], *again;
    size_t again_bytes;
    struct reader reader = {.at = copy, .line = 1};
    take_line(&reader, "hypersort");
    if (!read_fields(&reader, read) || !read_ranges(&reader, read)) {
        snprintf(how, sizeof how, "in or before line %d", reader.line);
        return damaged(path, how);
    }
    TRY(manifest_name_part(read));
    TRY(manifest_format(read, &again, &again_bytes));
    const bool same = strcmp(text, again) == 0;
    free(again);
    return same ? HSORT_OK : damaged(path, "it is not as it was written");
}

hsort_status manifest_parse(const char *path, const char *text, size_t bytes, struct checkpoint *checkpoint)
{
    TRY(check_ends(path, text, bytes));
    size_t lines = 1; // there are no more ranges than lines
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    struct checkpoint *read = malloc(sizeof *read);
    char *copy = strdup(text);
    struct checkpoint_range *written = malloc(lines * sizeof *written);

    hsort_status status = HSORT_OK;
    if (!read || !copy || !written) {
        status = status_fail(HSORT_HOST_MEMORY, "%s: no memory to read it", path);
    } else {
        *read = *checkpoint;
        read->ranges = 0;
        read->written = written;
        status = read_lines(path, text, copy, read);
        if (status == HSORT_OK)
            *checkpoint = *read;
    }
    if (status != HSORT_OK)
        free(written);
    free(copy);
    free(read);
    return status;
}
