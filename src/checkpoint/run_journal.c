#include "src/checkpoint/run_journal.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kernels/base/fault.h"
#include "kernels/base/checksum.h"
#include "src/files/file_internal.h"
#include "src/files/io_error.h"

static const char journal_words[] = "hypersort journal 1\n";
enum { JOURNAL_WORDS_BYTES = sizeof journal_words - 1 };

/* ---- Plans --------------------------------------------------------------------------------------------- */

size_t written_plan_format(const struct written_plan *plan, char *text)
{
    const int bytes =
        snprintf(text, WRITTEN_PLAN_ROOM,
                 "hypersort runs 1\nid %016" PRIx64 "\nelements %" PRId64 "\nelement_bytes %" PRId64
                 "\npart_elements %" PRId64 "\nfence_elements %" PRId64 "\ncheckpoint %s\n",
                 plan->id, plan->elements, plan->element_bytes, plan->part_elements, plan->fence_elements,
                 plan->checkpoint);
    const uint64_t checksum = checksum_add(CHECKSUM_START, text, (size_t)bytes);
    return (size_t)bytes + (size_t)snprintf(text + bytes, WRITTEN_PLAN_ROOM - (size_t)bytes,
                                            "checksum %016" PRIx64 "\n", checksum);
}

/* sscanf() takes several texts for one plan. What was read is written again, and must be the same text: that leaves one text, and
 * checks the checksum, too. */
bool written_plan_parse(const char *text, size_t bytes, struct written_plan *plan)
{
    char copy[WRITTEN_PLAN_ROOM], again[WRITTEN_PLAN_ROOM];
    int at = -1;
    if (bytes >= sizeof copy)
        return false;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    const int taken = sscanf(copy,
                             "hypersort runs 1\nid %" SCNx64 "\nelements %" SCNd64 "\nelement_bytes %" SCNd64
                             "\npart_elements %" SCNd64 "\nfence_elements %" SCNd64 "\ncheckpoint%n",
                             &plan->id, &plan->elements, &plan->element_bytes, &plan->part_elements,
                             &plan->fence_elements, &at);
    if (taken != 5 || at < 0 || copy[at] != ' ')
        return false;
    const size_t length = strcspn(copy + at + 1, "\n");
    if (length >= sizeof plan->checkpoint)
        return false;
    memcpy(plan->checkpoint, copy + at + 1, length);
    plan->checkpoint[length] = '\0';
    return plan->elements >= 0 && plan->element_bytes > 0 && plan->part_elements > 0 &&
           plan->fence_elements > 0 && written_plan_format(plan, again) == bytes &&
           memcmp(text, again, bytes) == 0;
}

/* ---- Lines --------------------------------------------------------------------------------------------- */

struct line_seeds line_seeds_make(const struct written_plan *plan, const uint64_t *output, int count)
{
    const uint64_t words[] = {plan->id, (uint64_t)plan->elements, (uint64_t)plan->element_bytes,
                              (uint64_t)plan->part_elements, (uint64_t)plan->fence_elements};
    const uint64_t runs = checksum_add(CHECKSUM_START, words, sizeof words);
    return (struct line_seeds){.runs = runs,
                               .segments = checksum_add(runs, output, (size_t)count * sizeof *output)};
}

static int print_code(char *text, size_t room, key_code code)
{
    return snprintf(text, room, " %016" PRIx64 "%016" PRIx64, (uint64_t)(code >> 64), (uint64_t)code);
}

static const char *const line_words[] = {"run", "segment", "output", "dealing", "counted", "dealt"};

static bool has_facts(enum run_line_kind kind)
{
    return kind == RUN_LINE || kind == SEGMENT_LINE;
}

static bool has_note(enum run_line_kind kind)
{
    return kind == COUNTED_LINE || kind == DEALT_LINE;
}

static int print_facts(char *text, size_t room, const struct run_facts *facts)
{
    int bytes =
        snprintf(text, room, " %" PRIu64 " %016" PRIx64 " %016" PRIx64 " %" PRIu64 " %016" PRIx64,
                 facts->count, facts->fingerprint[0], facts->fingerprint[1], facts->in_order, facts->fences);
    bytes += print_code(text + bytes, room - (size_t)bytes, facts->first);
    return bytes + print_code(text + bytes, room - (size_t)bytes, facts->last);
}

static uint64_t seed_of(enum run_line_kind kind, const struct line_seeds *seeds)
{
    return kind == RUN_LINE || kind == OUTPUT_LINE ? seeds->runs
           : kind == COUNTED_LINE                  ? seeds->counted
           : kind == DEALT_LINE                    ? seeds->dealt
                                                   : seeds->segments;
}

size_t run_line_format(const struct run_line *line, const struct line_seeds *seeds, char *text)
{
    int bytes = snprintf(text, RUN_LINE_ROOM, "%s %" PRId64, line_words[line->kind], line->number);
    if (has_facts(line->kind))
        bytes += print_facts(text + bytes, RUN_LINE_ROOM - (size_t)bytes, &line->facts);
    for (int i = 0; i < RUN_NOTE_WORDS && has_note(line->kind); i++)
        bytes += snprintf(text + bytes, RUN_LINE_ROOM - (size_t)bytes, " %" PRIx64, line->note.word[i]);
    bytes += snprintf(text + bytes, RUN_LINE_ROOM - (size_t)bytes, " %016" PRIx64 "\n",
                      checksum_add(seed_of(line->kind, seeds), text, (size_t)bytes));
    return (size_t)bytes;
}

/* Read the facts after the number of a line. */
static bool read_facts(const char *text, struct run_facts *facts)
{
    uint64_t words[4]; // two of each code, the upper one first
    if (sscanf(text,
               " %" SCNu64 " %" SCNx64 " %" SCNx64 " %" SCNu64 " %" SCNx64 " %16" SCNx64 "%16" SCNx64
               " %16" SCNx64 "%16" SCNx64,
               &facts->count, &facts->fingerprint[0], &facts->fingerprint[1], &facts->in_order,
               &facts->fences, &words[0], &words[1], &words[2], &words[3]) != 9)
        return false;
    facts->first = (key_code)words[0] << 64 | words[1];
    facts->last = (key_code)words[2] << 64 | words[3];
    facts->is_made = 1;
    return facts->in_order <= 1;
}

/* Read the words after the number of a line. */
static bool read_note(const char *text, struct run_note *note)
{
    int at = 0, more;
    for (int i = 0; i < RUN_NOTE_WORDS; i++, at += more)
        if (sscanf(text + at, " %" SCNx64 "%n", &note->word[i], &more) != 1)
            return false;
    note->is_made = 1;
    return true;
}

/* Find the kind of line that begins with `word`; RUN_LINE_KINDS: no line does. */
static enum run_line_kind find_kind(const char *word)
{
    int kind = 0;
    while (kind < RUN_LINE_KINDS && strcmp(word, line_words[kind]) != 0)
        kind++;
    return (enum run_line_kind)kind;
}

bool run_line_parse(const char *text, size_t bytes, const struct line_seeds *seeds, struct run_line *line)
{
    char copy[RUN_LINE_ROOM], again[RUN_LINE_ROOM], word[8];
    int at = -1;
    if (bytes + 1 >= sizeof copy)
        return false;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    *line = (struct run_line){.number = 0};
    if (sscanf(copy, "%7s %" SCNd64 "%n", word, &line->number, &at) != 2 || at < 0)
        return false;
    line->kind = find_kind(word);
    if (line->kind == RUN_LINE_KINDS || (has_facts(line->kind) && !read_facts(copy + at, &line->facts)) ||
        (has_note(line->kind) && !read_note(copy + at, &line->note)))
        return false;
    return run_line_format(line, seeds, again) == bytes + 1 && memcmp(text, again, bytes) == 0;
}

/* ---- One journal --------------------------------------------------------------------------------------- */

/* *begins = an open file begins like a journal, as far as it goes: a short one was left by a run that was killed as it began it. Errors
 * HSORT_IO, with the cause in errno. */
static hsort_status begins_as_journal(const char *path, int fd, int64_t bytes, bool *begins)
{
    char found[JOURNAL_WORDS_BYTES];
    const ssize_t wanted = bytes < JOURNAL_WORDS_BYTES ? (ssize_t)bytes : JOURNAL_WORDS_BYTES;
    const ssize_t taken = pread(fd, found, (size_t)wanted, 0);
    *begins = taken == wanted && memcmp(found, journal_words, (size_t)wanted) == 0;
    return taken >= 0 ? HSORT_OK : io_fail(path, "cannot be read");
}

static bool ends_with_newline(int fd, int64_t bytes)
{
    char last;
    return bytes == 0 || (pread(fd, &last, 1, bytes - 1) == 1 && last == '\n');
}

/* Add bytes at the end and bring them to disk. */
static hsort_status append(struct run_journal *journal, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t moved = io_fault(FAULT_WRITE, ENOSPC) ? -1 : write(journal->fd, text, bytes);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0) {
            const int cause = moved < 0 ? errno : 0;
            journal->torn = true;
            status_fail(HSORT_IO, "%s: cannot be added to: %s", journal->path,
                        moved < 0 ? strerror(cause) : "nothing was taken");
            errno = cause;
            return HSORT_IO;
        }
        text += moved;
        bytes -= (size_t)moved;
    }
    journal->torn = false;
    return file_sync(journal->path, journal->fd);
}

hsort_status run_journal_open(const char *directory, int rank, struct run_journal *journal)
{
    struct stat facts;
    journal->made = journal->torn = false;
    snprintf(journal->path, sizeof journal->path, "%s/journal-%d", directory, rank);
    const int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    journal->fd = open(journal->path, flags | O_CREAT | O_EXCL, 0600);
    journal->made = journal->fd >= 0;
    if (!journal->made && errno == EEXIST)
        journal->fd = open(journal->path, flags);
    if (journal->fd < 0) {
        const int cause = errno;
        status_fail(HSORT_IO, "%s: cannot be opened: %s", journal->path, file_open_cause(cause));
        errno = cause;
        return HSORT_IO;
    }
    bool begins = false;
    if (fstat(journal->fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_nlink <= 1)
        TRY(begins_as_journal(journal->path, journal->fd, facts.st_size, &begins));
    errno = 0;
    if (!begins)
        return status_fail(HSORT_IO,
                           "%s: is not a journal of hypersort: remove it, or give another directory",
                           journal->path);
    if (facts.st_size >= JOURNAL_WORDS_BYTES) {
        journal->torn = !ends_with_newline(journal->fd, facts.st_size);
        return HSORT_OK;
    }
    return append(journal, journal_words + facts.st_size, JOURNAL_WORDS_BYTES - (size_t)facts.st_size);
}

hsort_status run_journal_add(struct run_journal *journal, const struct run_line *line,
                             const struct line_seeds *seeds)
{
    char text[RUN_LINE_ROOM + 1] = "\n";
    const size_t before = journal->torn;
    const size_t bytes = run_line_format(line, seeds, text + before);
    journal->made = false; // it has a line
    return append(journal, text, before + bytes);
}

void run_journal_close(struct run_journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = -1;
}

/* ---- All journals -------------------------------------------------------------------------------------- */

/* Is this a name that run_journal_open() gives a file? */
static bool is_journal_name(const char *name)
{
    char again[32];
    int rank;
    if (sscanf(name, "journal-%d", &rank) != 1)
        return false;
    snprintf(again, sizeof again, "journal-%d", rank);
    return rank >= 0 && strcmp(name, again) == 0;
}

/* Open a journal in `directory` for reading. *fd is -1 if the file is none of our journals. */
static hsort_status open_to_read(const char *directory, const char *name, char *path, int *fd, int64_t *bytes)
{
    struct stat facts;
    *fd = -1;
    if (!is_journal_name(name))
        return HSORT_OK;
    snprintf(path, PATH_MAX, "%s/%s", directory, name);
    if (lstat(path, &facts) != 0 || !S_ISREG(facts.st_mode))
        return HSORT_OK;
    TRY(file_open_regular(path, false, fd, &facts));
    *bytes = facts.st_size;
    bool begins;
    const hsort_status status = begins_as_journal(path, *fd, facts.st_size, &begins);
    if (begins)
        return HSORT_OK;
    close(*fd);
    *fd = -1;
    return status;
}

/* Add what one journal holds to text [*bytes]. */
static hsort_status read_more(const char *directory, const char *name, char **text, size_t *bytes)
{
    char path[PATH_MAX];
    int64_t more = 0;
    int fd;
    TRY(open_to_read(directory, name, path, &fd, &more));
    if (fd < 0)
        return HSORT_OK;
    hsort_status status = HSORT_OK;
    char *longer = fault_hit(FAULT_ALLOC) ? NULL : realloc(*text, *bytes + (size_t)more + 1);
    if (!longer)
        status = status_fail(HSORT_HOST_MEMORY, "%s: no memory to read it", path);
    else
        status = block_read_cached(path, fd, 0, (size_t)more, longer + *bytes);
    close(fd);
    *text = longer ? longer : *text;
    TRY(status);
    *bytes += (size_t)more;
    (*text)[(*bytes)++] = '\n';
    return HSORT_OK;
}

hsort_status run_journals_read(const char *directory, char **text, size_t *bytes)
{
    hsort_status status = HSORT_OK;
    *text = NULL;
    *bytes = 0;
    DIR *listing = io_fault(FAULT_READ, EIO) ? NULL : opendir(directory);
    if (!listing)
        return io_fail(directory, "cannot be read");
    for (struct dirent *entry; status == HSORT_OK && (errno = 0, entry = readdir(listing));)
        status = read_more(directory, entry->d_name, text, bytes);
    if (status == HSORT_OK && errno != 0)
        status = io_fail(directory, "cannot be read");
    closedir(listing);
    if (status == HSORT_OK)
        return HSORT_OK;
    free(*text);
    *text = NULL;
    return status;
}

/* Find the next valid line, and set *at to where the line after it begins. False: there is none. */
static bool next_line(const char *text, size_t bytes, const struct line_seeds *seeds, size_t *at,
                      struct run_line *line)
{
    while (*at < bytes) {
        const char *begin = text + *at, *end = memchr(begin, '\n', bytes - *at);
        const size_t length = end ? (size_t)(end - begin) : bytes - *at;
        *at += length + 1;
        if (run_line_parse(begin, length, seeds, line))
            return true;
    }
    return false;
}

int64_t run_journals_last(const char *text, size_t bytes, const struct line_seeds *seeds,
                          enum run_line_kind kind)
{
    struct run_line line;
    int64_t last = 0;
    for (size_t at = 0; next_line(text, bytes, seeds, &at, &line);)
        if (line.kind == kind && line.number > last)
            last = line.number;
    return last;
}

void run_journals_apply(const char *text, size_t bytes, const struct line_seeds *seeds, struct run_plan *plan)
{
    struct run_line line;
    for (size_t at = 0; next_line(text, bytes, seeds, &at, &line);) {
        if (!has_facts(line.kind) || line.number < 0 || line.number >= plan->parts ||
            line.facts.count != (uint64_t)plan_part_count(plan, line.number))
            continue;
        if (line.kind == RUN_LINE)
            plan->runs[line.number] = line.facts;
        else
            plan->segments[line.number] = line.facts;
    }
}

void run_journals_notes(const char *text, size_t bytes, const struct line_seeds *seeds,
                        enum run_line_kind kind, struct run_note *notes, int64_t count)
{
    struct run_line line;
    for (size_t at = 0; next_line(text, bytes, seeds, &at, &line);)
        if (line.kind == kind && line.number >= 0 && line.number < count)
            notes[line.number] = line.note;
}

void run_journals_remove(const char *directory)
{
    char path[PATH_MAX];
    int64_t bytes = 0;
    int fd;
    const bool was_clear = status_text()[0] == '\0';
    DIR *listing = opendir(directory);
    for (struct dirent *entry; listing && (entry = readdir(listing));)
        if (open_to_read(directory, entry->d_name, path, &fd, &bytes) == HSORT_OK && fd >= 0) {
            unlink(path);
            close(fd);
        }
    if (listing)
        closedir(listing);
    if (was_clear) // a journal that could not be opened is no cause of a later failure
        status_clear();
}
