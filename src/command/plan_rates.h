/* What `plan` reckons with: rates, given ones or defaults, and the size of the input. Nothing here is collective. */
#ifndef PLAN_RATES_H
#define PLAN_RATES_H

#include "src/command/cli.h"
#include "src/command/json.h"

/* rates [1] is written. Errors hsort_rates_init()'s. */
hsort_status plan_rates_take(const struct cli_options *options, hsort_rates *rates);

/* The ranks of a node, if `ranks` are planned for. */
int plan_ranks_per_node(const struct cli_options *options, int ranks);

/* Is the input so small that no figure of a plan overflows? element_bytes: of an element, with what travels with it.
 * Errors   the same on every rank: HSORT_ARGUMENT. */
hsort_status plan_check_size(struct comm *comm, const struct file_in *in, size_t element_bytes);

void plan_rates_print(const hsort_rates *rates);
void plan_rates_json(struct json *json, const hsort_rates *rates);

#endif
