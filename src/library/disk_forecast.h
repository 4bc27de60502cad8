/* What a sort by way of the disk would take, for `hypersort plan`: by the functions that the sort itself asks (disk_plan.h,
 * element_need.h), and by the model of cost.h. Needs no context and no GPU. */
#ifndef DISK_FORECAST_H
#define DISK_FORECAST_H

#include "src/library/cost.h"
#include "src/library/disk_plan.h"

enum {
    /* Host memory of a rank beside what it is told to take: for the program, MPI, threads, and aligned memory for direct requests;
     * with a GPU also for CUDA and pinned slots. */
    DISK_FIXED_BYTES_HOST = 128 << 20,
    DISK_FIXED_BYTES_CUDA = 512 << 20
};

struct disk_question {
    const hsort_rates *rates; /* engine_bytes in it: the memory of a GPU; 0: all that is needed */
    struct cost_disk disk;    /* 0: not known; then no seconds are forecast */
    int ranks, threads;       /* threads: of each, at least 1; the host engine's workspace grows with them */
    int64_t count;
    size_t memory_bytes;  /* that a rank may take of the host's */
    int64_t wanted_parts; /* 0: as few as memory allows */
    /* bare keys, */
    int key_bytes;
    const hsort_plan_result *plan; /* of them, and of these ranks, by hsort_plan() */
    /* or elements */
    size_t element_bytes;      /* 0: bare keys */
    size_t in_bytes, out_bytes, carried_bytes; /* of an element in memory: as it comes, as it goes, and of its widest column */
    size_t array_bytes; /* host memory for each element, if all lie there as a whole; 0: they may pass in streams */
    const hsort_field *fields; /* [field_count] the keys in an element */
    int field_count;
    /* either may then be dealt out to several files, by reading what is sorted so many times; 0: it is not */
    int deal_reads;
};

struct disk_forecast {
    bool by_disk;
    int64_t parts, part_elements;    /* runs, and segments, of all ranks; elements of one */
    int64_t temporary_bytes;         /* of runs and their fences */
    int64_t sorted_bytes;            /* of what is then dealt out, beside them */
    size_t fixed_bytes;              /* of a rank, beside memory_bytes */
    size_t one_pass_bytes;           /* engine memory for elements, of a rank, in one pass; bare keys: 0, their plan knows it */
    bool two_passes;                 /* of elements: the engine has less than one_pass_bytes */
    struct hsort_plan_exchange cost; /* seconds of the phases; all 0 if the disk's rates are not known */
};

/* Write forecast [1]. If the sort does not go by way of the disk, all members are 0 except fixed_bytes, one_pass_bytes and two_passes.
 * Not collective.
 * Errors HSORT_HOST_MEMORY: memory_bytes do not suffice, and the line says how many would; HSORT_ARGUMENT: the fields. */
hsort_status disk_forecast_make(const struct disk_question *question, struct disk_forecast *forecast);

#endif
