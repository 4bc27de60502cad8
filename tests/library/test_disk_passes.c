/* Keys and records that are sorted by way of a store of runs (src/library/disk_passes.h), compared byte for byte with a slow sort:
 * counts around the number of runs, which is 1 to 200; any type, order and distribution; elements of 5 to 65536 bytes by several
 * fields with many ties; the least memory that suffices, and less; fences from one at each element to none; equal keys over every
 * border.
 *
 *     test_disk_passes        the host engine, cases drawn by a seed for some seconds
 *     test_disk_passes all    the host engine, the whole matrix
 *     test_disk_passes cuda   the cuda engine */
#include "tests/library/disk_case.h"
#include "src/files/number.h"
#include "tests/support/order.h"

enum { SECONDS = 8, LONGEST_KEY = 16, MOST_ELEMENTS = 60000 };

static const int64_t part_counts[] = {0, 1, 2, 3, 17, 64, 200};
static const size_t record_sizes[] = {5, 13, 100, 4096, 65536};
enum {
    PART_COUNTS = sizeof part_counts / sizeof part_counts[0],
    RECORD_SIZES = sizeof record_sizes / sizeof record_sizes[0]
};

static int rank, size;
static struct disk_group all;
static int64_t key_cases, record_cases;

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

/* Draw a count around the number of runs, or a large count, so that runs have many fences. */
static int64_t draw_total(const struct disk_case *c, uint64_t *random)
{
    const int64_t parts = c->parts > 0 ? c->parts : size, most = (int64_t)(DISK_MOST_BYTES / 2 / c->bytes),
                  many = most < MOST_ELEMENTS ? most : MOST_ELEMENTS;
    const int64_t totals[] = {1, parts - 1, parts, parts + 1, 3 * parts + 1, 2 * (parts / 2) * 7 + 5};
    const uint64_t draw = check_random(random) % 10;
    const int64_t total = draw < 6 ? totals[draw] : 1 + (int64_t)(check_random(random) % (uint64_t)many);
    return total < 1 ? 1 : total > most ? most : total;
}

/* Draw the sizes of an earlier call, so that fences lie at any distance; parts are as large as each rank has room for. */
static void draw_kept_plan(struct disk_case *c, uint64_t *random)
{
    const int64_t parts = c->parts > 1 ? c->parts : 1 + (int64_t)(check_random(random) % 20);
    c->kept_part = (c->total + parts - 1) / parts;
    c->kept_fence =
        1 + (int64_t)(check_random(random) % (check_random(random) % 2 ? 4 : (uint64_t)c->kept_part));
}

static struct disk_case make_keys(hsort_type type, hsort_order order, int64_t parts, uint64_t seed)
{
    uint64_t random = seed;
    struct disk_case c = {.order = order, .parts = parts, .memory_bytes = DISK_PLENTY, .seed = seed};
    choose_distribution(&c.input, &random);
    c.input.type = type;
    c.input.seed = check_random(&random);
    c.bytes = hsort_type_bytes(type);
    c.total = c.input.count = draw_total(&c, &random);
    if (check_random(&random) % 2)
        draw_kept_plan(&c, &random);
    return c;
}

/* Draw fields that fit into a key of 16 bytes together, anywhere in a record. */
static void draw_fields(struct disk_case *c, uint64_t *random)
{
    const int most = c->bytes < LONGEST_KEY ? (int)c->bytes : LONGEST_KEY;
    const int fields = 1 + (int)(check_random(random) % 4);
    for (int left = 1 + (int)(check_random(random) % (uint64_t)most); left > 0 && c->field_count < fields;) {
        hsort_field field = {.type = (hsort_type)(check_random(random) % ORDER_TYPES),
                             .order = check_random(random) % 2 ? HSORT_DESCENDING : HSORT_ASCENDING,
                             .big_endian = check_random(random) % 3 == 0};
        int bytes = (int)hsort_type_bytes(field.type);
        if (bytes > left || check_random(random) % 3 == 0) {
            bytes = field.bytes = 1 + (int)(check_random(random) % (uint64_t)left);
            field.big_endian = 0;
        }
        field.offset = check_random(random) % (c->bytes - (size_t)bytes + 1);
        c->fields[c->field_count++] = field;
        left -= bytes;
    }
}

static struct disk_case make_records(size_t bytes, int64_t parts, uint64_t seed)
{
    static const int different[] = {0, 1, 2, 5, 30};
    uint64_t random = seed;
    struct disk_case c = {
        .is_records = true, .bytes = bytes, .parts = parts, .memory_bytes = DISK_PLENTY, .seed = seed};
    draw_fields(&c, &random);
    c.different = different[check_random(&random) % 5];
    c.total = draw_total(&c, &random);
    c.is_spread = check_random(&random) % 2;
    if (check_random(&random) % 2)
        draw_kept_plan(&c, &random);
    return c;
}

static void run_case(const struct disk_case *c, const struct disk_group *group)
{
    struct stream_check check;
    disk_prepare(c);
    const hsort_status status = disk_sort(c, group, &check);
    const struct disk_made made = disk_made_parts();
    CHECK(status == HSORT_OK, "%s: %s", group->ctx ? hsort_last_error(group->ctx) : "", disk_text);
    CHECK(made.runs == made.parts && made.segments == made.parts, "%lld runs and %lld segments of %lld: %s",
          (long long)made.runs, (long long)made.segments, (long long)made.parts, disk_text);
    if (status == HSORT_OK)
        disk_check_whole(c, group, &check);
    if (c->is_records)
        record_cases++;
    else
        key_cases++;
}

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

/* Return the size of which the line says that it would do, as -S. */
static size_t size_in_line(void)
{
    char word[32] = "";
    uint64_t bytes = 0;
    const char *at = all.ctx ? strstr(hsort_last_error(all.ctx), ": -S ") : NULL;
    if (at)
        sscanf(at, ": -S %31s would do", word);
    return number_parse(word, true, INT64_MAX, &bytes) ? (size_t)bytes : 0;
}

static void check_refusal(const struct disk_case *c, hsort_status status)
{
    const struct disk_made made = disk_made_parts();
    CHECK(status == HSORT_HOST_MEMORY &&
              strstr(hsort_last_error(all.ctx), "rank 0 on ") == hsort_last_error(all.ctx),
          "%zu bytes of memory: status %d, %s: %s", c->memory_bytes, (int)status, hsort_last_error(all.ctx),
          disk_text);
    CHECK(made.runs == 0 && made.segments == 0, "made with %zu bytes of memory: %s", c->memory_bytes,
          disk_text);
    disk_check_agreed(&all, status);
}

/* Sort with too little memory, then with as much as the line says, which must do; then find the least memory that does, by halving. It
 * makes the most runs. */
static void test_memory(struct disk_case c)
{
    struct stream_check check;
    c.kept_part = c.kept_fence = c.parts = 0;
    c.memory_bytes = check_random(&c.seed) % 2 * 1000;
    disk_prepare(&c);
    check_refusal(&c, disk_sort(&c, &all, &check));
    const size_t says = size_in_line();
    size_t low = c.memory_bytes, high = says;
    CHECK(says > 4 * c.bytes, "no least memory in '%s': %s", hsort_last_error(all.ctx), disk_text);
    for (c.memory_bytes = says; check_failures == 0 && high - low > 1 + high / 64;
         c.memory_bytes = low + (high - low) / 2) {
        disk_prepare(&c);
        const hsort_status status = disk_sort(&c, &all, &check);
        CHECK(status == HSORT_OK || c.memory_bytes < says, "%zu bytes do not do: %s", says,
              hsort_last_error(all.ctx));
        if (status == HSORT_OK)
            disk_check_whole(&c, &all, &check);
        else
            check_refusal(&c, status);
        if (status == HSORT_OK)
            high = c.memory_bytes;
        else
            low = c.memory_bytes;
    }
    for (size_t times = 2; times <= 64; times *= 4) { // fewer runs, and fences nearer to each other
        c.memory_bytes = high * times;
        run_case(&c, &all);
    }
}

/* ---- All of it -------------------------------------------------------------------------------------------------- */

/* Cuts lie inside equal keys of many runs: all keys are one value, or two, with fences that tell nothing. */
static void test_equal_keys(uint64_t seed)
{
    for (int different = 1; different <= 2; different++)
        for (int64_t fence = 1; fence <= 64; fence *= 8) {
            struct disk_case c = {.is_records = true,
                                  .bytes = 13,
                                  .fields = {{.type = HSORT_U16, .offset = 3, .order = HSORT_DESCENDING}},
                                  .field_count = 1,
                                  .different = different,
                                  .parts = 17,
                                  .total = 17 * 50 - 11,
                                  .memory_bytes = DISK_PLENTY,
                                  .kept_part = 50,
                                  .kept_fence = fence,
                                  .seed = seed + (uint64_t)fence};
            run_case(&c, &all);
        }
}

/* Sort with parts of more bytes than are moved at a time. */
static void test_long_parts(uint64_t seed)
{
    struct disk_case c = make_keys(HSORT_U64, HSORT_ASCENDING, 1, seed);
    c.total = c.input.count = DISK_MOST_BYTES / 8 - 3;
    c.kept_part = c.kept_fence = 0;
    run_case(&c, &all);
}

static struct disk_case draw_case(uint64_t seed, int64_t number)
{
    uint64_t random = seed + (uint64_t)number * 1000003;
    const int64_t parts = part_counts[check_random(&random) % PART_COUNTS];
    const hsort_type type = (hsort_type)(check_random(&random) % (HSORT_U128 + 1));
    const hsort_order order = check_random(&random) % 2 ? HSORT_DESCENDING : HSORT_ASCENDING;
    const size_t bytes = record_sizes[check_random(&random) % RECORD_SIZES];
    return number % 2 ? make_records(bytes, parts, check_random(&random))
                      : make_keys(type, order, parts, check_random(&random));
}

static void run_drawn(uint64_t seed)
{
    const double begin = MPI_Wtime();
    int go_on = 1;
    for (int64_t number = 0; go_on; number++) {
        const struct disk_case c = draw_case(seed, number);
        run_case(&c, &all);
        go_on = MPI_Wtime() - begin < SECONDS;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

static void run_matrix(uint64_t seed)
{
    for (int parts = 0; parts < PART_COUNTS; parts++) {
        for (int type = HSORT_U32; type <= HSORT_U128; type++)
            for (int order = HSORT_ASCENDING; order <= HSORT_DESCENDING; order++)
                for (int kind = 0; kind < INPUTS; kind++) {
                    struct disk_case c;
                    do
                        c = make_keys((hsort_type)type, (hsort_order)order, part_counts[parts], ++seed);
                    while (c.input.distribution != (enum input_distribution)kind);
                    run_case(&c, &all);
                }
        for (int bytes = 0; bytes < RECORD_SIZES; bytes++)
            for (int i = 0; i < 20; i++) {
                const struct disk_case c = make_records(record_sizes[bytes], part_counts[parts], ++seed);
                run_case(&c, &all);
            }
    }
}

int main(int argc, char **argv)
{
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    const bool every = argc > 1 && strcmp(argv[argc - 1], "all") == 0;
    const uint64_t seed = ranks_seed();
    disk_begin();
    all =
        disk_group_open(0, size, seed % 2, cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST, 1 + (int)(seed % 3));
    test_equal_keys(seed);
    test_long_parts(seed);
    if (!cuda)
        test_memory(draw_case(seed, (int64_t)(seed % 1000)));
    if (every)
        run_matrix(seed);
    run_drawn(seed);
    if (rank == 0)
        printf("%lld sorts of keys and %lld of records on %d ranks\n", (long long)key_cases,
               (long long)record_cases, size);
    disk_group_close(&all);
    check_failures += disk_end();
    return ranks_finish();
}
