/* hypersort plan --key: what sorting records would take. */
#ifndef PLAN_RECORDS_H
#define PLAN_RECORDS_H

#include "src/command/cli.h"
#include "src/command/launch.h"

/* Memory, and the way by the disk; of times those of that way alone. Rank 0 prints. Collective.
 * Errors agreed: file_open()'s; HSORT_ARGUMENT: the key; disk_rate_measure()'s. */
hsort_status plan_records(struct comm *comm, const struct cli_options *options);

#endif
