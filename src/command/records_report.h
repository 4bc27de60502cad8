/* The reports of sorts of records and values, of indices, and of gathers. Rank 0 prints; nothing here is collective unless
 * it says so. */
#ifndef RECORDS_REPORT_H
#define RECORDS_REPORT_H

#include "src/command/report.h"
#include "src/command/report_ranks.h"
#include "src/command/run_trace.h"

struct records_report {
    const char *word;                           /* of one element: "record", or the type of keys */
    const char *plural;                         /* of several: "records", "keys", "elements" */
    const struct file_in *input, *other;        /* other: values, index of a gather; or NULL */
    const char *other_word;                     /* "values", "by" */
    const char *output, *index, *values_output, *counts; /* or NULL */
    const char *key;                            /* --key, or NULL */
    const char *order;                          /* of bare keys, or NULL */
    int64_t count;
    size_t element_bytes, other_bytes;
    int ranks;
    const char *engine, *exchange;                                    /* exchange: or NULL */
    double read_seconds, sort_seconds, write_seconds, verify_seconds; /* the largest of all ranks */
    const char *work;  /* what sort_seconds are of: "sort", "gather" */
    bool streamed;     /* from file to file: sort_seconds are then what was spent beside reading and writing */
    hsort_stats stats; /* of its calls of the library, added up */
    bool gathers;      /* only the last of the four below means something then */
    int64_t
        readings; /* of a gather, or of HDF5: how often the elements of any file or dataset were read, at most */
    bool verified;    /* the four below mean something */
    bool sorted, stable, count_ok, fingerprint_ok;
    bool unique, unique_ok; /* --unique; what is kept is one of each key */
    int64_t distinct;       /* with --unique: how many are kept */
    int64_t run_bytes;      /* of runs on disk; 0: there were none */
    struct report_kept kept;
    const char *const *datasets; /* [dataset_count] of HDF5: what was carried; else NULL */
    int dataset_count;
    const char *left; /* what was not carried, and why, or NULL */
    bool indexed;     /* positions were found, though no file has them */
    struct job job;
    struct run_trace trace;
    struct rank_report own;       /* of this rank */
    struct rank_report *per_rank; /* [ranks] on rank 0; owned by records_report_end() */
};

struct records_check_report {
    const struct file_in *file;
    const struct file_in *against; /* or NULL */
    const char *key;
    int ranks;
    hsort_check_result found, other; /* of the two files; with `unique`, first_unstable has the key of the record before */
    bool unique;                     /* no key may occur twice */
    double seconds;
    struct run_trace trace;
};

/* Add what the last call of the library did. Not collective. Errors HSORT_ARGUMENT: there was none. */
hsort_status records_report_add(struct records_report *report, const hsort_context *ctx);

/* Print the report on rank 0, with what only all ranks together know: the largest times, each rank's own, and the job.
 * times: this rank's, in the order of the report's four. Collective.
 * Errors   agreed: those of rank_reports_gather() and job_open(); HSORT_IO: stdout cannot be written. */
hsort_status records_report_end(struct records_report *report, struct comm *comm, hsort_context *ctx,
                                const double *times, bool json);

/* Print the report. Errors HSORT_IO: stdout cannot be written. */
hsort_status records_report_check(const struct records_check_report *report, bool json);

/* Do the two files of a report hold the same records? */
bool records_report_same(const struct records_check_report *report);

/* Turn what was found into an error that is the same on every rank, or none; `word` is what one element is called. Errors
 * HSORT_MISMATCH. */
hsort_status records_report_judge(struct comm *comm, const struct records_check_report *report,
                                  const char *word);

#endif
