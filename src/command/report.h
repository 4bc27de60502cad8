/* What the command prints: its results on stdout, as text or as one JSON object with `schema_version` 1, and
 * its error line on stderr. Rank 0 prints; nothing here is collective unless it says so. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include "kernels/base/keytype.h"
#include "mpi/comm/comm.h"
#include "hypersort.h"
#include "src/command/job.h"
#include "src/command/json.h"
#include "src/command/report_ranks.h"
#include "src/command/run_trace.h"
#include "src/files/file.h"

/* The number of phases that a sort of bare keys can have: the first phase that it cannot have is the last of the list. */
enum { REPORT_KEY_PHASES = HSORT_PHASE_GATHER };

/* What a sort that went on after a stop or a crash kept from earlier runs of the command. */
struct report_kept {
    bool resumed;  /* there were earlier runs */
    bool by_disk;  /* runs, segments, run_bytes and dealt mean something */
    int64_t bytes; /* of the output, or of the file from which it is dealt out */
    int64_t runs, segments;
    int64_t run_bytes; /* of these runs on disk */
    int64_t dealt;     /* pieces that were written to all outputs */
};

/* For such a sort, behind the text that says what is wrong with its result, because the input need not be at fault. */
#define REPORT_MAY_BE_DAMAGED ", so what an earlier command had kept of them may have been damaged, and is removed"

struct sort_report {
    const struct file_in *input;
    const char *output;
    hsort_type type;
    hsort_order order;
    int ranks;
    const char *engine, *exchange, *transport;
    hsort_stats stats;
    double read_seconds, write_seconds, verify_seconds; /* the largest of all ranks */
    bool verified;                                      /* the three below mean something */
    bool sorted, count_ok, fingerprint_ok;
    struct job job;
    struct report_kept kept;
    int64_t run_bytes; /* of runs on disk; 0: there were none */
    struct run_trace trace;
    const struct rank_report *per_rank; /* [ranks] */
};

struct check_report {
    const struct file_in *file;
    const struct file_in *against; /* or NULL */
    hsort_type type;
    hsort_order order;
    int ranks;
    hsort_check_result found, other; /* of the two files */
    bool unique;                     /* no key may occur twice: */
    int64_t first_repeat;            /* the position of the first key that does; -1: none */
    key_code disorder[2];            /* bits of the key before the first disorder, and of the key at it */
    const char *counts;              /* or NULL; else the keys of the file, each so often, must be those of the other file: */
    uint64_t counted[3];             /* their fingerprint and number */
    double seconds;
    struct run_trace trace;
};

struct disk_rate;
struct link_rate;

struct info_report {
    int ranks;
    const hsort_rank_info *infos; /* [ranks] */
    const int *paths;             /* [ranks * ranks] hsort_transport from one to another; -1 to itself */
    const hsort_path_speed *speeds; /* [ranks * ranks] hsort_measure_paths() of each rank */
    const char *not_measured;       /* why there is nothing in `speeds`, or "" */
    const char *engine, *no_gpu;  /* no_gpu: why there is no GPU, or "" */
    const char *mpi_library;
    int device_pointers;    /* hsort_mpi_takes_device_pointers() */
    int64_t lockable_bytes; /* memory that a rank may lock, the least of all ranks; INT64_MAX: no limit */
    const struct disk_rate *disk; /* with --disk, or NULL */
    const struct link_rate *link;
    bool verbose;           /* text: tables of all ranks, even if they are many */
    struct job job;
};

/* Print a report. Errors of all: HSORT_IO, stdout cannot be written. */
hsort_status report_sort(const struct sort_report *report, bool json);
hsort_status report_check(const struct check_report *report, bool json);
hsort_status report_info(const struct info_report *report, bool json);

/* Do the two files of a report hold the same keys? */
bool report_same_keys(const struct check_report *report);

/* Flush stdout and see whether all of it could be written. Errors HSORT_IO. */
hsort_status report_flush(void);

/* Put a line that is the same on every rank into comm->error (printf style, no newline); return `status`. */
hsort_status report_fail(struct comm *comm, hsort_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What the command was built with: hsort_build_info(), and HDF5. Static. */
const char *report_build(void);

/* Begin the outermost object of a report in JSON, with the members that every report begins with; end it, and flush. */
void report_open_json(struct json *json);
hsort_status report_close_json(struct json *json);

/* Say what went between ranks: in a line for each transport, and in members of an object. key_bytes: of bare keys; 0: not only bare
 * keys went. */
void report_moved(const hsort_stats *stats, int64_t key_bytes);
void report_moved_json(struct json *json, const hsort_stats *stats, int64_t key_bytes);

/* Bytes that went between nodes for each key that did; 0: no key did. plain_bytes: these keys, not packed. */
double report_bytes_per_crossed_key(double bytes, double plain_bytes, double key_bytes);

/* For check --unique: say which key, or record, has the key of the one before it. Place -1: none has, so all keys
 * differ if they are in order; if they are not, that is not known. `unique` false: say nothing. bare: keys, not records. */
void report_repeat(bool unique, const hsort_check_result *found, int64_t place, bool bare);
void report_repeat_json(struct json *json, bool unique, const hsort_check_result *found, int64_t place);

/* For check, whatever it has looked at, put members: `sorted` and `first_disorder`, whose object stays open for more if this returns
 * true; the fingerprint; and `against`, with its count called `plural` and whether it has the same; file NULL: null. */
bool report_open_disorder_json(struct json *json, const hsort_check_result *found);
void report_fingerprint_json(struct json *json, const hsort_check_result *found);
void report_against_json(struct json *json, const struct file_in *file, const char *plural, int64_t count,
                         const char *same_word, bool same);

/* text [REPORT_FIGURE_TEXT] = a time in us, ms or s; a number with k, M, G and so on, powers of 1000, before its `unit`. Return
 * text. */
enum { REPORT_FIGURE_TEXT = 32 };
const char *report_time(double seconds, char *text);
const char *report_figure(double number, const char *unit, char *text);

/* For qsort(), of doubles. */
int report_compare(const void *a, const void *b);

/* Print the line of a phase; nothing if it did not run, or ran for less than a microsecond. */
void report_phase(const char *name, double seconds);

/* Print the line of a sort in two passes; run_bytes: of its runs on disk, or 0. */
void report_two_passes(const char *what, const hsort_stats *stats, int64_t run_bytes);

/* Say what was kept: in a line, if the sort went on, and in members of an object. stats: of the whole sort. */
void report_kept(const struct report_kept *kept, const hsort_stats *stats);
void report_kept_json(struct json *json, const struct report_kept *kept);

/* Say which job it is, in lines and in members of an object. */
void report_job(const struct job *job);
void report_job_json(struct json *json, const struct job *job);

/* Put what was read: member `name` is a text, for one file its path; member `list` has the paths of all files. */
void report_files_json(struct json *json, const char *name, const char *list, const struct file_in *file);

/* Print the name of a file on stdout, its control characters as '?'. */
void report_name(const char *name);

/* text [REPORT_KEY_TEXT] = a key in digits that name it exactly; a NaN by its bits. Returns text. */
enum { REPORT_KEY_TEXT = 48 };
const char *report_key_text(hsort_type type, key_code bits, char *text);

/* The name of the last sort's exchange; "none" if no exchange ran: in two passes, and for keys that are counted. */
const char *report_exchange(const hsort_context *ctx);

/* Print the error line: "hypersort: TEXT", in one line whatever the text holds. */
void report_error(const char *text);

/* Say in one line on stderr if another temporary file of this output lies beside it, or with a file per rank beside one of the files.
 * Nothing is removed, because the file may belong to a run that is at work. Collective. */
void report_stale(struct comm *comm, const struct file_out *file);

#endif
