/* hypersort plan --key, --values, --index, --unique: what sorting records, or keys with what travels with them, would take. */
#ifndef PLAN_RECORDS_H
#define PLAN_RECORDS_H

#include "src/command/cli.h"

/* Do the options ask for such a sort? Not collective. */
bool plan_is_of_elements(const struct cli_options *options);

/* How often would the result of a sort by way of the disk be read to be dealt out to several files? 0: it would not be. Not collective. */
int plan_deal_reads(const struct cli_options *options);

/* Plan such a sort: memory, one pass, and by way of the disk. Rank 0 prints. Collective.
 * Errors agreed: file_open()'s; HSORT_ARGUMENT: the key; disk_rate_measure()'s. */
hsort_status plan_records(struct comm *comm, const struct cli_options *options);

#endif
