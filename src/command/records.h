/* hypersort sort with --key, --index or --values: records, positions, and values that travel with keys. They lie in host
 * memory as a whole, unlike bare keys, which pass as streams (shares.h).
 *
 *     rank r of P: elements N*r/P ... N*(r+1)/P - 1, of each input and of each output
 *
 *     read        the files, by all threads of the rank       elements, values
 *     look        fingerprint of what belongs together        element, value, position
 *     sort        the library                                 sorted elements, sorted values, index
 *     look        again: in order, ties by position, the same fingerprint; otherwise nothing gets its name
 *     write       each output; then all get their names
 */
#ifndef RECORDS_H
#define RECORDS_H

#include "src/command/cli.h"

/* cli_sort(), cli_check() and cli_gen() for these. Collective. */
hsort_status records_sort(struct comm *comm, const struct cli_options *options);
hsort_status records_check(struct comm *comm, const struct cli_options *options);
hsort_status records_gen(struct comm *comm, const struct cli_options *options);

/* cli_check() for --format gensort. Collective. */
hsort_status gensort_check(struct comm *comm, const struct cli_options *options);

#endif
