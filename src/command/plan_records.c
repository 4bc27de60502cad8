#include "src/command/plan_records.h"
#include <inttypes.h>
#include <stdio.h>
#include "kernels/base/lesser.h"
#include "src/command/json.h"
#include "src/command/plan_disk.h"
#include "src/command/plan_rates.h"
#include "src/command/progress.h"
#include "src/command/record_io.h"
#include "src/command/records_run.h"
#include "src/command/report.h"
#include "src/library/plan_elements.h"

/* What a number of ranks would take. */
struct ranks_plan {
    bool in_one_pass; /* else only memory, and what goes by way of the disk, is known */
    bool in_two_passes;
    double engine_bytes;
    const char *sorted; /* what is sorted, for texts */
    struct elements_plan sort;
};

struct records_plan {
    const struct cli_options *options;
    struct file_in file;
    struct record_keys keys;
    size_t value_bytes;   /* 0: no values */
    size_t element_bytes; /* of an element as it is sorted by way of the disk */
    hsort_rates rates;
    struct plan_disk disk;
    struct ranks_plan of[CLI_RANKS_MAX]; /* as plan_disk has them */
};

bool plan_is_of_elements(const struct cli_options *options)
{
    return options->key || options->values || options->index || options->unique;
}

int plan_deal_reads(const struct cli_options *options)
{
    const bool deals =
        options->values || options->index || (options->output && file_is_pattern(options->output));
    return options->unique ? 2 : deals ? 1 : 0;
}

/* The records of the rank that has most. */
static int64_t most_records(const struct records_plan *plan, int ranks)
{
    return divide_up(plan->file.count, ranks);
}

/* The calls of the sort: records_calls.c. */
static struct planned_elements planned_calls(const struct records_plan *plan)
{
    const struct cli_options *options = plan->options;
    const size_t bytes = plan->file.element.bytes, values = plan->value_bytes, key = (size_t)plan->keys.key_bytes;
    struct planned_elements e = {.count = plan->file.count,
                                 .key_bits = 8 * plan->keys.key_bytes,
                                 .bare_keys = !options->key && (bytes == 4 || bytes == 8),
                                 .in_bytes = bytes + values,
                                 .out_bytes = bytes + values};
    if (!records_are_indexed(options)) {
        e.carried_bytes = options->key ? bytes : values;
        return e;
    }
    const size_t gathered[] = {options->key ? bytes : 0, values};
    e.in_bytes = key;
    e.out_bytes = sizeof(int64_t) + (options->key ? 0 : bytes);
    for (int i = 0; i < 2; i++) {
        e.gathered_bytes[i] = gathered[i];
        e.in_bytes += gathered[i] > 0 ? gathered[i] + sizeof(int64_t) : 0;
        e.out_bytes += gathered[i];
    }
    return e;
}

/* --unique of bare keys sorts only the keys, in memory, as a sort without it does. */
static hsort_status plan_bare_keys(const struct records_plan *plan, int ranks, int ranks_per_node,
                                   bool by_disk, struct ranks_plan *of)
{
    hsort_plan_result keys = {.struct_size = sizeof keys};
    TRY(hsort_plan(&plan->rates, ranks, ranks_per_node, plan->file.type, plan->file.count, &keys));
    const struct hsort_plan_exchange *costs[] = {[HSORT_EXCHANGE_AUTO] = &keys.counted,
                                                 [HSORT_EXCHANGE_BITONIC] = &keys.bitonic,
                                                 [HSORT_EXCHANGE_DIRECT] = &keys.direct,
                                                 [HSORT_EXCHANGE_PARTITION] = &keys.partition};
    if (!by_disk) {
        of->in_one_pass = keys.passes == 1;
        of->in_two_passes = keys.passes == 2;
        of->engine_bytes = keys.engine_bytes;
    }
    of->sorted = "keys";
    of->sort = (struct elements_plan){
        .sorted_bytes = plan->keys.key_bytes, .exchange = keys.exchange, .cost = *costs[keys.exchange]};
    return HSORT_OK;
}

/* Add what one pass takes, if the sort takes one pass. */
static hsort_status add_one_pass(struct records_plan *plan, int i, bool by_disk)
{
    const struct cli_options *options = plan->options;
    const int ranks = options->ranks[i], per_node = plan_ranks_per_node(options, ranks);
    const struct planned_elements calls = planned_calls(plan);
    const struct disk_forecast *forecast = &plan->disk.of[i].forecast;
    struct ranks_plan *of = &plan->of[i];
    of->in_one_pass = !by_disk && !forecast->two_passes;
    of->in_two_passes = !by_disk && forecast->two_passes;
    of->engine_bytes = (double)forecast->one_pass_bytes;
    if (!options->key && !options->values && !options->index)
        return plan_bare_keys(plan, ranks, per_node, by_disk, of);
    TRY(plan_elements(&plan->rates, ranks, per_node, &calls, &of->sort));
    of->sorted = of->sort.with_keys ? "keys, with what travels with them," : "codes";
    return HSORT_OK;
}

static hsort_status add_ranks(struct records_plan *plan, int i)
{
    const int ranks = plan->options->ranks[i];
    const struct cli_options *options = plan->options;
    const size_t bytes = plan->file.element.bytes, values = plan->value_bytes;
    const bool indexed = records_are_indexed(options);
    struct disk_question question = {.rates = &plan->rates,
                                     .ranks = ranks,
                                     .count = plan->file.count,
                                     .element_bytes = plan->element_bytes,
                                     .in_bytes = bytes + values,
                                     .out_bytes = bytes + values + (indexed ? sizeof(int64_t) : 0),
                                     .carried_bytes = bytes > values ? bytes : values,
                                     .fields = plan->keys.fields,
                                     .field_count = plan->keys.count,
                                     .deal_reads = plan_deal_reads(options)};
    if (values > 0 || options->index || options->unique)
        question.array_bytes = records_bytes(options, &plan->keys, bytes, values);
    bool by_disk;
    TRY(plan_disk_add(&plan->disk, question, plan_ranks_per_node(plan->options, ranks), &by_disk));
    return add_one_pass(plan, i, by_disk);
}

/* ---- reports ------------------------------------------------------------------------------------------- */

/* Print how the sort goes in memory, and if in one pass, what that costs. */
static void print_in_memory(const struct ranks_plan *of, int ranks)
{
    const struct hsort_plan_exchange *cost = &of->sort.cost;
    const bool counted = of->sort.exchange == HSORT_EXCHANGE_AUTO;
    char most[16], all[16];
    if (of->in_two_passes)
        printf("  two passes through the engine, which has less than that\n");
    if (!of->in_one_pass || cost->total_seconds <= 0)
        return;
    printf("  sorts      %s of %d bytes", of->sorted, of->sort.sorted_bytes);
    if (ranks > 1)
        printf(", %s%s; a rank sends %s, all %s", counted ? "" : "by ",
               counted ? "counted" : hsort_exchange_name(of->sort.exchange),
               progress_size_real(cost->moved_bytes_largest, most),
               progress_size_real(cost->moved_bytes, all));
    printf("\n  takes      ");
    for (int phase = 0; phase < HSORT_PHASES; phase++)
        printf("%s %.3g, ", report_phase_names[phase], cost->seconds[phase]);
    printf("in all %.3g s\n", cost->total_seconds);
}

/* Member "one_pass": the same, or null. */
static void put_one_pass(struct json *json, const struct ranks_plan *of)
{
    const struct hsort_plan_exchange *cost = &of->sort.cost;
    if (!json_known(json, "one_pass", of->in_one_pass))
        return;
    json_open(json, "one_pass", '{');
    json_bool(json, "with_keys", of->sort.with_keys);
    json_integer(json, "sorted_bytes", of->sort.sorted_bytes);
    json_text(json, "exchange",
              of->sort.exchange == HSORT_EXCHANGE_AUTO ? "none" : hsort_exchange_name(of->sort.exchange));
    json_real(json, "messages_per_rank", cost->messages);
    json_real(json, "messages", cost->messages_all);
    json_real(json, "moved_bytes_per_rank", cost->moved_bytes_largest);
    json_real(json, "moved_bytes", cost->moved_bytes);
    json_open(json, "phases", '{');
    for (int phase = 0; phase < HSORT_PHASES; phase++)
        json_real(json, report_phase_names[phase], cost->seconds[phase]);
    json_close(json, '}');
    json_real(json, "total_seconds", cost->total_seconds);
    json_close(json, '}');
}

static void print_records_plan(const struct records_plan *plan)
{
    const size_t bytes = plan->element_bytes;
    char size[16], share[16], engine[16];
    printf("input        ");
    report_name(plan->file.path);
    printf(": %" PRId64 " records of %zu bytes%s, keys of %d, %s\n", plan->file.count, bytes,
           bytes > plan->file.element.bytes ? " with what travels with them" : "", plan->keys.key_bytes,
           progress_size(plan->file.count * (int64_t)bytes, size));
    plan_rates_print(&plan->rates);
    plan_disk_print_rates(&plan->disk);
    for (int i = 0; i < plan->disk.count; i++) {
        const int ranks = plan->options->ranks[i];
        const int64_t most = most_records(plan, ranks);
        printf("\n%d rank%s, %d to a node\n", ranks, ranks == 1 ? "" : "s",
               plan_ranks_per_node(plan->options, ranks));
        printf("  each       %" PRId64 " records, %s; in memory they take %s of the engine\n", most,
               progress_size(most * (int64_t)bytes, share),
               progress_size_real(plan->of[i].engine_bytes, engine));
        print_in_memory(&plan->of[i], ranks);
        plan_disk_print(&plan->disk, i);
    }
}

static void print_records_json(const struct records_plan *plan)
{
    const int64_t bytes = (int64_t)plan->element_bytes;
    struct json json = {false};
    json_open(&json, NULL, '{');
    json_integer(&json, "schema_version", 1);
    json_text(&json, "build", report_build());
    report_files_json(&json, "input", "inputs", &plan->file);
    json_text(&json, "key", plan->options->key);
    json_integer(&json, "records", plan->file.count);
    json_integer(&json, "element_bytes", bytes);
    json_integer(&json, "key_bytes", plan->keys.key_bytes);
    json_integer(&json, "bytes", plan->file.count * bytes);
    json_text(&json, "engine", hsort_engine_name(plan->rates.engine));
    plan_rates_json(&json, &plan->rates);
    plan_disk_rates_json(&json, &plan->disk);
    json_open(&json, "plans", '[');
    for (int i = 0; i < plan->disk.count; i++) {
        const int ranks = plan->options->ranks[i];
        const int64_t most = most_records(plan, ranks);
        json_open(&json, NULL, '{');
        json_integer(&json, "ranks", ranks);
        json_integer(&json, "ranks_per_node", plan_ranks_per_node(plan->options, ranks));
        json_integer(&json, "records_per_rank", most);
        json_integer(&json, "bytes_per_rank", most * bytes);
        json_integer(&json, "engine_bytes_per_rank", (int64_t)plan->of[i].engine_bytes);
        put_one_pass(&json, &plan->of[i]);
        plan_disk_json(&json, &plan->disk, i);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    printf("\n");
}

/* ---- the command --------------------------------------------------------------------------------------- */

/* Make and print the plans, on rank 0. */
static hsort_status plan_and_print(struct records_plan *plan)
{
    const struct cli_options *options = plan->options;
    TRY(plan_rates_take(options, &plan->rates));
    for (int i = 0; i < options->ranks_count; i++)
        TRY(add_ranks(plan, i));
    if (options->json)
        print_records_json(plan);
    else
        print_records_plan(plan);
    return report_flush();
}

static hsort_status look_at_values(struct comm *comm, struct records_plan *plan)
{
    struct cli_options options = *plan->options;
    struct file_in values;
    options.direct_io = HSORT_CHOICE_OFF; // nothing is read
    TRY(record_io_open_values(comm, &options, &plan->file, &values));
    plan->value_bytes = values.element.bytes;
    file_close(&values);
    return HSORT_OK;
}

/* Open the inputs. Collective. */
static hsort_status open_inputs(struct comm *comm, struct records_plan *plan)
{
    const struct cli_options *options = plan->options;
    struct file_source source = options->key ? record_io_source(options) : record_io_key_source(options);
    source.direct_io = HSORT_CHOICE_OFF;
    TRY(file_open(comm, &source, &plan->file));
    plan->keys = record_keys_bare(plan->file.type, HSORT_ASCENDING);
    const hsort_status parsed =
        options->key ? record_keys_parse(options->key, &plan->file, &plan->keys) : HSORT_OK;
    hsort_status status = comm_agree(comm, parsed);
    if (status == HSORT_OK && options->values)
        status = look_at_values(comm, plan);
    plan->element_bytes =
        plan->file.element.bytes + plan->value_bytes + (options->index ? sizeof(int64_t) : 0);
    return status;
}

hsort_status plan_records(struct comm *comm, const struct cli_options *options)
{
    struct records_plan plan = {.options = options};
    hsort_status status = open_inputs(comm, &plan);
    if (status == HSORT_OK)
        status = plan_check_size(comm, &plan.file, plan.element_bytes);
    if (status == HSORT_OK)
        status = plan_disk_open(&plan.disk, comm, options);
    if (status == HSORT_OK)
        status = comm_agree(comm, comm->rank == 0 ? plan_and_print(&plan) : HSORT_OK);
    if (plan.file.path)
        file_close(&plan.file);
    return status;
}
