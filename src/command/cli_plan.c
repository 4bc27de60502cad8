/* hypersort plan: what sorting a file would take on other numbers of ranks, by hsort_plan(). Only the header of the
 * file is read, and nothing is sorted. Rates that are not given are defaults. */
#include "src/command/cli.h"
#include "src/command/disk_sort.h"
#include "src/command/json.h"
#include "src/command/plan_disk.h"
#include "src/command/plan_rates.h"
#include "src/command/plan_records.h"
#include "src/command/progress.h"
#include "src/command/record_io.h"
#include "src/command/report.h"
#include <inttypes.h>
#include <stdio.h>

/* ---- JSON ---------------------------------------------------------------------------------------------- */

/* Is the plan for keys of 1 or 2 bytes, which no exchange moves? */
static bool is_counted(const hsort_plan_result *plan)
{
    return plan->exchange == HSORT_EXCHANGE_AUTO;
}

static double key_bytes_of(const hsort_plan_result *plan)
{
    return plan->shard_capacity > 0 ? plan->shard_bytes / (double)plan->shard_capacity : 0;
}

/* Put the member of an exchange. crossing: NULL: no keys cross between nodes. */
static void put_exchange(struct json *json, const char *name, const hsort_plan_exchange *cost, double key_bytes,
                         const hsort_plan_crossing *crossing)
{
    json_open(json, name, '{');
    json_real(json, "messages_per_rank", cost->messages);
    json_real(json, "messages", cost->messages_all);
    json_real(json, "moved_bytes_per_rank", cost->moved_bytes_largest);
    json_real(json, "moved_bytes", cost->moved_bytes);
    json_real(json, "crossed_bytes", crossing ? crossing->bytes : 0);
    if (json_known(json, "bytes_per_crossed_key", crossing && crossing->plain_bytes > 0))
        json_real(json, "bytes_per_crossed_key",
                  report_bytes_per_crossed_key(crossing->bytes, crossing->plain_bytes, key_bytes));
    json_open(json, "phases", '{');
    for (int phase = 0; phase < REPORT_KEY_PHASES; phase++)
        json_real(json, report_phase_names[phase], cost->seconds[phase]);
    json_close(json, '}');
    json_real(json, "total_seconds", cost->total_seconds);
    json_close(json, '}');
}

static void put_plan(struct json *json, int ranks, int ranks_per_node, const hsort_plan_result *plan,
                     const struct plan_disk *disk, int place)
{
    json_open(json, NULL, '{');
    json_integer(json, "ranks", ranks);
    json_integer(json, "ranks_per_node", ranks_per_node);
    json_integer(json, "keys_per_rank", plan->shard_capacity);
    json_real(json, "bytes_per_rank", plan->shard_bytes);
    json_real(json, "engine_bytes_per_rank", plan->engine_bytes);
    json_real(json, "caller_bytes_per_rank", plan->caller_bytes);
    json_integer(json, "passes", plan->passes);
    json_integer(json, "runs_per_rank", plan->runs);
    json_integer(json, "segments_per_rank", plan->segments);
    json_real(json, "host_bytes_per_rank", plan->host_bytes);
    json_text(json, "exchange",
              plan->passes == 1 && !is_counted(plan) ? hsort_exchange_name(plan->exchange) : "none");
    const double key_bytes = key_bytes_of(plan);
    if (is_counted(plan)) {
        put_exchange(json, "counted", &plan->counted, key_bytes, NULL);
    } else {
        put_exchange(json, hsort_exchange_name(HSORT_EXCHANGE_BITONIC), &plan->bitonic, key_bytes, &plan->bitonic_crossing);
        put_exchange(json, hsort_exchange_name(HSORT_EXCHANGE_DIRECT), &plan->direct, key_bytes, &plan->direct_crossing);
    }
    if (plan->can_partition)
        put_exchange(json, hsort_exchange_name(HSORT_EXCHANGE_PARTITION), &plan->partition, key_bytes,
                     &plan->partition_crossing);
    if (plan->passes == 2 && plan->runs > 0)
        put_exchange(json, "two_passes", &plan->two_passes, key_bytes, &plan->two_passes_crossing);
    plan_disk_json(json, disk, place);
    json_close(json, '}');
}

static void print_plans_json(const struct cli_options *options, const struct file_in *file,
                             const hsort_rates *rates, const hsort_plan_result *plans,
                             const struct plan_disk *disk)
{
    struct json json = {false};
    json_open(&json, NULL, '{');
    json_integer(&json, "schema_version", 1);
    json_text(&json, "build", report_build());
    report_files_json(&json, "input", "inputs", file);
    json_text(&json, "type", hsort_type_name(file->type));
    json_integer(&json, "keys", file->count);
    json_integer(&json, "bytes", file->count * (int64_t)hsort_type_bytes(file->type));
    json_text(&json, "engine", hsort_engine_name(rates->engine));
    json_text(&json, "link", hsort_transport_name(rates->link));
    plan_rates_json(&json, rates);
    plan_disk_rates_json(&json, disk);
    json_open(&json, "plans", '[');
    for (int i = 0; i < options->ranks_count; i++)
        put_plan(&json, options->ranks[i], plan_ranks_per_node(options, options->ranks[i]), &plans[i],
                 disk, i);
    json_close(&json, ']');
    json_close(&json, '}');
    printf("\n");
}

/* ---- text ---------------------------------------------------------------------------------------------- */

static void print_exchange(const char *name, bool chosen, const hsort_plan_exchange *cost)
{
    char most[16], all[16];
    printf("  %-9s%c%10.0f %12.0f %12s %12s", name, chosen ? '*' : ' ', cost->messages, cost->messages_all,
           progress_size_real(cost->moved_bytes_largest, most), progress_size_real(cost->moved_bytes, all));
    for (int phase = 0; phase < REPORT_KEY_PHASES; phase++)
        printf(" %10.3g", cost->seconds[phase]);
    printf(" %10.3g\n", cost->total_seconds);
}

/* Print an exchange, which sorts in one pass. */
static void print_entry(const hsort_plan_result *plan, hsort_exchange exchange,
                        const hsort_plan_exchange *cost)
{
    print_exchange(hsort_exchange_name(exchange), plan->passes == 1 && exchange == plan->exchange, cost);
}

/* Print what goes between nodes, if there are several. */
static void print_crossings(const hsort_plan_result *plan)
{
    const struct {
        const char *name;
        const hsort_plan_crossing *crossing;
    } all[] = {{"bitonic", &plan->bitonic_crossing},
               {"direct", &plan->direct_crossing},
               {"partition", &plan->partition_crossing},
               {"2 passes", &plan->two_passes_crossing}};
    char bytes[16];
    bool any = false;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const hsort_plan_crossing *c = all[i].crossing;
        if (c->plain_bytes <= 0)
            continue;
        printf("%s%s %s, %.2f bytes per key", any ? "; " : "  between nodes: ", all[i].name, progress_size_real(c->bytes, bytes),
               report_bytes_per_crossed_key(c->bytes, c->plain_bytes, key_bytes_of(plan)));
        any = true;
    }
    if (any)
        printf("\n");
}

/* Print whether one pass is enough, if a limit was given. */
static void print_passes(const hsort_plan_result *plan)
{
    char host[16];
    if (plan->passes == 2 && plan->runs > 0)
        printf("  two passes %" PRId64 " runs, %" PRId64 " segments; host memory: %s besides the caller's\n",
               plan->runs, plan->segments, progress_size_real(plan->host_bytes, host));
    if (plan->passes == 0)
        printf("  does not fit: %s at least the %s of the engine\n",
               is_counted(plan) ? "the counts take" : "two passes take", progress_size_real(plan->engine_bytes, host));
}

static void print_plan(int ranks, int ranks_per_node, const hsort_plan_result *plan,
                       const struct plan_disk *disk, int place)
{
    char capacity[16], engine[16], caller[16];
    printf("\n%d rank%s, %d to a node\n", ranks, ranks == 1 ? "" : "s", ranks_per_node);
    printf("  each       %" PRId64 " keys, %s; memory: %s of the engine, %s of the caller\n",
           plan->shard_capacity, progress_size_real(plan->shard_bytes, capacity),
           progress_size_real(plan->engine_bytes, engine), progress_size_real(plan->caller_bytes, caller));
    print_passes(plan);
    plan_disk_print(disk, place);
    printf("  %-9s %10s %12s %12s %12s", "exchange", "messages", "of all", "sent", "of all");
    for (int phase = 0; phase < REPORT_KEY_PHASES; phase++)
        printf(" %10s", report_phase_names[phase]);
    printf(" %10s\n", "seconds");
    if (is_counted(plan)) {
        print_exchange("counted", true, &plan->counted);
        return;
    }
    print_entry(plan, HSORT_EXCHANGE_BITONIC, &plan->bitonic);
    print_entry(plan, HSORT_EXCHANGE_DIRECT, &plan->direct);
    if (plan->can_partition)
        print_entry(plan, HSORT_EXCHANGE_PARTITION, &plan->partition);
    if (plan->passes == 2 && plan->runs > 0)
        print_exchange("2 passes", true, &plan->two_passes);
    print_crossings(plan);
}

static void print_plans(const struct cli_options *options, const struct file_in *file,
                        const hsort_rates *rates, const hsort_plan_result *plans,
                        const struct plan_disk *disk)
{
    char size[16];
    printf("input        ");
    report_name(file->path);
    printf(": %" PRId64 " %s keys, %s\n", file->count, hsort_type_name(file->type),
           progress_size(file->count * (int64_t)hsort_type_bytes(file->type), size));
    plan_rates_print(rates);
    plan_disk_print_rates(disk);
    for (int i = 0; i < options->ranks_count; i++)
        print_plan(options->ranks[i], plan_ranks_per_node(options, options->ranks[i]), &plans[i],
                   disk, i);
    printf(
        "\n* is what auto takes. Uniform keys; messages and bytes of the rank that sends most; seconds.\n");
}

/* ---- the command --------------------------------------------------------------------------------------- */

/* Add what goes by way of the disk. Such a sort takes two passes, and its runs are not in memory. */
static hsort_status add_disk(const struct cli_options *options, struct plan_disk *disk,
                             const struct file_in *file, const hsort_rates *rates,
                             int ranks, int ranks_per_node, hsort_plan_result *plan)
{
    const struct disk_question question = {.rates = rates,
                                           .ranks = ranks,
                                           .count = file->count,
                                           .key_bytes = (int)hsort_type_bytes(file->type),
                                           .plan = plan,
                                           .deal_reads = plan_deal_reads(options)};
    bool by_disk;
    TRY(plan_disk_add(disk, question, ranks_per_node, &by_disk));
    if (!by_disk)
        return HSORT_OK;
    plan->passes = 2;
    plan->runs = plan->segments = 0;
    plan->host_bytes = 0;
    return HSORT_OK;
}

/* Make and print the plans, on rank 0. */
static hsort_status make_plans(const struct cli_options *options, const struct file_in *file,
                               struct plan_disk *disk)
{
    hsort_rates rates;
    hsort_plan_result plans[CLI_RANKS_MAX];
    TRY(plan_rates_take(options, &rates));
    for (int i = 0; i < options->ranks_count; i++) {
        const int ranks = options->ranks[i], per_node = plan_ranks_per_node(options, ranks);
        plans[i].struct_size = sizeof plans[i];
        TRY(hsort_plan(&rates, ranks, per_node, file->type, file->count, &plans[i]));
        TRY(add_disk(options, disk, file, &rates, ranks, per_node, &plans[i]));
    }
    if (options->json)
        print_plans_json(options, file, &rates, plans, disk);
    else
        print_plans(options, file, &rates, plans, disk);
    return report_flush();
}

hsort_status cli_plan(struct comm *comm, const struct cli_options *options)
{
    struct file_in file;
    struct plan_disk disk;
    struct file_source source = record_io_key_source(options);
    if (plan_is_of_elements(options))
        return plan_records(comm, options);
    source.direct_io = HSORT_CHOICE_OFF; // nothing is read
    TRY(file_open(comm, &source, &file));
    hsort_status status = plan_check_size(comm, &file, file.element.bytes);
    if (status == HSORT_OK)
        status = disk_sort_check_runs(comm, options, &file);
    if (status == HSORT_OK)
        status = plan_disk_open(&disk, comm, options);
    if (status == HSORT_OK)
        status = comm_agree(comm, comm->rank == 0 ? make_plans(options, &file, &disk) : HSORT_OK);
    file_close(&file);
    return status;
}
