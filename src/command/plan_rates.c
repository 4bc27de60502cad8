#include "src/command/plan_rates.h"
#include <inttypes.h>
#include <stdio.h>
#include "kernels/base/lesser.h"
#include "src/command/report.h"

enum { RANKS_PER_NODE = 8 }; /* unless told otherwise */

/* The most that is planned for. Copies of an element, its code and its place then have fewer than 2^63 bytes together. */
enum { ELEMENTS_MOST_LOG = 54, BYTES_MOST_LOG = 60 };

static const char *const source_names[] = {"default", "given"};

static const struct {
    const char *name, *unit;
} rate_names[HSORT_RATES] = {
#define X(name, short_name, unit) {short_name, unit},
    HSORT_RATE_LIST(X)
#undef X
};

hsort_status plan_rates_take(const struct cli_options *options, hsort_rates *rates)
{
    TRY(hsort_rates_init(rates, sizeof *rates, options->sort.engine, options->sort.transport));
    rates->engine_bytes = (double)options->sort.device_memory_limit;
    for (int i = 0; i < HSORT_RATES; i++) {
        // --sort-gkeys counts keys of the file's type.
        const double given = options->rates[i == HSORT_RATE_SORT_8 ? HSORT_RATE_SORT_4 : i];
        if (given > 0) {
            rates->value[i] = given;
            rates->source[i] = HSORT_RATE_GIVEN;
        }
    }
    return HSORT_OK;
}

int plan_ranks_per_node(const struct cli_options *options, int ranks)
{
    if (options->nodes > 0)
        return (int)divide_up(ranks, options->nodes);
    return options->ranks_per_node > 0 ? options->ranks_per_node : RANKS_PER_NODE;
}

hsort_status plan_check_size(struct comm *comm, const struct file_in *in, size_t element_bytes)
{
    if (in->count <= INT64_C(1) << ELEMENTS_MOST_LOG &&
        in->count <= (INT64_C(1) << BYTES_MOST_LOG) / (int64_t)element_bytes)
        return HSORT_OK;
    return report_fail(comm, HSORT_ARGUMENT,
                       "%s: has %" PRId64
                       " elements of %zu bytes%s; plan reckons with up to 2^%d elements and "
                       "2^%d bytes",
                       in->path, in->count, element_bytes,
                       element_bytes > in->element.bytes ? ", with what travels with them" : "",
                       ELEMENTS_MOST_LOG, BYTES_MOST_LOG);
}

void plan_rates_print(const hsort_rates *rates)
{
    printf("rates        of the engine %s, %s between ranks of a node\n", hsort_engine_name(rates->engine),
           hsort_transport_name(rates->link));
    for (int i = 0; i < HSORT_RATES; i++) {
        const bool is_time = rate_names[i].unit[0] == 's';
        printf("  %-16s %9.4g %s%-7s  %s\n", rate_names[i].name, rates->value[i] * (is_time ? 1e6 : 1e-9),
               is_time ? "us" : "G",
               is_time                        ? ""
               : rate_names[i].unit[0] == 'b' ? "B/s"
                                              : rate_names[i].unit,
               source_names[rates->source[i]]);
    }
}

void plan_rates_json(struct json *json, const hsort_rates *rates)
{
    json_open(json, "rates", '{');
    for (int i = 0; i < HSORT_RATES; i++) {
        json_open(json, rate_names[i].name, '{');
        json_real(json, "value", rates->value[i]);
        json_text(json, "unit", rate_names[i].unit);
        json_text(json, "source", source_names[rates->source[i]]);
        json_close(json, '}');
    }
    json_close(json, '}');
}
