/* How long hsort_sort_to() takes over all ranks, from device memory to device memory, or from host memory to host memory, ordinary
 * or pinned; and hsort_sort(), in place in device memory.
 *
 *   mpirun -n RANKS bench_sort [--keys N] [--types u64,..] [--inputs uniform,..] [--exchanges auto,bitonic,direct,partition]
 *                              [--transports auto,staged,mpi,ipc] [--memory device,inplace,host,pinned] [--repeats N] [--csv FILE]
 *
 * N keys in all, also as 1G or 2^30. The input is left as it is, and before a sort in place it is copied to that place. Time is
 * that of the slowest rank from a barrier on; a row is the median of the repeats after one that warms up. Every row's last
 * result is checked: order over all ranks, and the fingerprint of its keys. Exits with 1 if one was wrong. */
#include <string.h>
#include "tests/support/check.h"
#include "src/command/cli.h"
#include "kernels/engine.h"
#include "hypersort.h"
#include "src/files/input.h"
#include "src/command/report.h"

enum { MOST_WORDS = 16, MOST_REPEATS = 101 };

struct options {
    int64_t keys;
    const char *types, *inputs, *exchanges, *transports, *memory, *csv;
    int repeats;
};

static int rank, size;
static FILE *csv;

/* ---- words ------------------------------------------------------------------------------------------------------- */

static void refuse(const char *what, const char *text)
{
    if (rank == 0)
        fprintf(stderr, "bench_sort: %s: %s\n", what, text);
    MPI_Finalize();
    exit(2);
}

/* The next word of a list with commas, in `word` [32]; NULL at its end. */
static const char *next_word(const char *list, char *word)
{
    const size_t length = strcspn(list, ",");
    if (length == 0)
        return NULL;
    if (length > 31)
        refuse("no such word", list);
    memcpy(word, list, length);
    word[length] = '\0';
    return list + length + (list[length] == ',');
}

static int place_of(const char *word, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    refuse("no such word", word);
    return 0;
}

static hsort_type type_of(const char *word)
{
    for (int type = 0; type < 6; type++)
        if (strcmp(word, hsort_type_name((hsort_type)type)) == 0)
            return (hsort_type)type;
    refuse("no such type", word);
    return HSORT_U32;
}

static int64_t number_of(const char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    if (*end == '^')
        number = 1LL << strtol(end + 1, &end, 10);
    const char *unit = *end ? strchr("KMG", *end) : NULL;
    if (unit) {
        number <<= 10 * (unit - "KMG" + 1);
        end++;
    }
    if (*end != '\0' || number < 0)
        refuse("no number", text);
    return number;
}

static struct options parse(int argc, char **argv)
{
    struct options o = {1 << 20, "u32,u64", "uniform", "auto", "auto", "device", NULL, 7};
    for (int i = 1; i < argc; i += 2) {
        const char *text = i + 1 < argc ? argv[i + 1] : "";
        const struct {
            const char *name, **field;
        } fields[] = {{"--types", &o.types},           {"--inputs", &o.inputs}, {"--exchanges", &o.exchanges},
                      {"--transports", &o.transports}, {"--memory", &o.memory}, {"--csv", &o.csv}};
        bool known = true;
        if (strcmp(argv[i], "--keys") == 0)
            o.keys = number_of(text);
        else if (strcmp(argv[i], "--repeats") == 0)
            o.repeats = (int)number_of(text);
        else
            known = false;
        for (int f = 0; f < 6; f++)
            if (strcmp(argv[i], fields[f].name) == 0) {
                *fields[f].field = text;
                known = true;
            }
        if (!known || *text == '\0')
            refuse("unknown, or without a value", argv[i]);
    }
    if (o.repeats < 1 || o.repeats > MOST_REPEATS)
        refuse("repeats", "1 to 101");
    return o;
}

/* ---- one row ------------------------------------------------------------------------------------------------------- */

/* All of it on this rank. */
struct bench {
    hsort_context *ctx;
    struct engine *engine; /* for device and pinned memory; NULL: ordinary memory */
    bool on_device, in_place;
    hsort_type type;
    struct input input;
    int64_t first, count; /* this rank's keys */
    void *in, *out;
};

static void must(hsort_status status, const char *text)
{
    if (status == HSORT_OK)
        return;
    fprintf(stderr, "bench_sort: rank %d: %s\n", rank, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *take(struct bench *b, size_t bytes)
{
    void *memory = NULL;
    if (b->engine)
        must(b->on_device ? b->engine->ops->alloc(b->engine, bytes, &memory)
                          : b->engine->ops->alloc_host(b->engine, bytes, &memory),
             status_text());
    else
        memory = malloc(bytes + 1);
    must(memory || bytes == 0 ? HSORT_OK : HSORT_HOST_MEMORY, "no memory");
    return memory;
}

static void give_back(struct bench *b, void *memory)
{
    if (b->engine && b->on_device)
        b->engine->ops->free(b->engine, memory);
    else if (b->engine)
        b->engine->ops->free_host(b->engine, memory);
    else
        free(memory);
}

/* Fill in [count] and poison out. */
static void load(struct bench *b)
{
    const size_t bytes = (size_t)b->count * hsort_type_bytes(b->type);
    void *here = b->on_device ? malloc(bytes + 1) : b->in;
    must(here ? HSORT_OK : HSORT_HOST_MEMORY, "no memory");
    input_fill(&b->input, b->first, b->count, here);
    if (!b->on_device) {
        memset(b->out, 0xa5, bytes);
        return;
    }
    const struct engine_ops *ops = b->engine->ops;
    must(ops->copy(b->engine, STREAM_WORK, b->in, here, bytes), status_text());
    must(ops->stream_synchronize(b->engine, STREAM_WORK), status_text());
    memset(here, 0xa5, bytes);
    must(ops->copy(b->engine, STREAM_WORK, b->out, here, bytes), status_text());
    must(ops->stream_synchronize(b->engine, STREAM_WORK), status_text());
    free(here);
}

static hsort_check_result look(struct bench *b, const void *keys)
{
    hsort_check_result result = {.struct_size = sizeof result};
    must(hsort_check(b->ctx, b->type, HSORT_ASCENDING, keys, b->count, NULL, &result),
         hsort_last_error(b->ctx));
    return result;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sort once; in place: what has been copied there. Seconds of the slowest rank. */
static double time_sort(struct bench *b)
{
    const size_t bytes = (size_t)b->count * hsort_type_bytes(b->type);
    if (b->in_place) {
        must(b->engine->ops->copy(b->engine, STREAM_WORK, b->out, b->in, bytes), status_text());
        must(b->engine->ops->stream_synchronize(b->engine, STREAM_WORK), status_text());
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime(), slowest;
    must(b->in_place
             ? hsort_sort(b->ctx, b->type, HSORT_ASCENDING, b->out, b->count, NULL)
             : hsort_sort_to(b->ctx, b->type, HSORT_ASCENDING, b->in, b->count, b->out, b->count, NULL),
         hsort_last_error(b->ctx));
    seconds = MPI_Wtime() - seconds;
    MPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* The median of the repeats, in ms; *stats of the last one. */
static double time_sorts(struct bench *b, int repeats, hsort_stats *stats)
{
    double ms[MOST_REPEATS];
    for (int i = -1; i < repeats; i++) // the first one warms up
        ms[i < 0 ? 0 : i] = time_sort(b) * 1e3;
    qsort(ms, (size_t)repeats, sizeof *ms, compare);
    *stats = (hsort_stats){.struct_size = sizeof *stats};
    must(hsort_get_stats(b->ctx, stats), "no statistics");
    return ms[repeats / 2];
}

/* The path to the next rank stands for all. */
static const char *path_word(const struct bench *b)
{
    return size > 1 ? hsort_transport_name(hsort_path(b->ctx, (rank + 1) % size)) : "none";
}

static void row(struct bench *b, const struct options *o, const char *input, const char *memory)
{
    hsort_stats stats;
    load(b);
    const hsort_check_result before = look(b, b->in);
    const double ms = time_sorts(b, o->repeats, &stats);
    const hsort_check_result after = look(b, b->out);
    const bool right = after.first_disorder < 0 && after.count == b->input.count &&
                       memcmp(before.fingerprint, after.fingerprint, sizeof before.fingerprint) == 0;
    CHECK(right, "%s %s: the result is wrong", hsort_type_name(b->type), input);
    if (rank != 0)
        return;
    fprintf(csv, "%d,%s,%s,%s,%s,%s,%lld,%.3f,%.3f", size, memory,
            hsort_exchange_name(hsort_exchange_in_use(b->ctx)), path_word(b), hsort_type_name(b->type), input,
            (long long)b->input.count, ms, (double)b->input.count / ms / 1e6);
    for (int phase = 0; phase < HSORT_PHASES; phase++)
        fprintf(csv, ",%.3f", stats.seconds[phase] * 1e3);
    fprintf(csv, ",%lld,%s\n", (long long)stats.moved_bytes, right ? "right" : "WRONG");
    fflush(csv);
}

/* ---- all rows ------------------------------------------------------------------------------------------------------ */

static void rows_of_type(struct bench *b, const struct options *o, const char *memory)
{
    char word[32];
    b->first = o->keys / size * rank + (o->keys % size < rank ? o->keys % size : rank);
    b->count = o->keys / size + (rank < o->keys % size);
    const size_t bytes = (size_t)b->count * hsort_type_bytes(b->type);
    b->in = take(b, bytes);
    b->out = take(b, bytes);
    for (const char *list = o->inputs; (list = next_word(list, word));) {
        b->input = (struct input){.type = b->type, .seed = 1, .count = o->keys};
        must(input_parse(word, &b->input), status_text());
        row(b, o, word, memory);
    }
    give_back(b, b->in);
    give_back(b, b->out);
}

static void rows_of_context(const struct options *o, const char *exchange, const char *transport,
                            const char *memory)
{
#define X(name, short_name) short_name,
    static const char *const exchanges[] = {HSORT_EXCHANGE_LIST(X)},
                             *const transports[] = {HSORT_TRANSPORT_LIST(X)},
#undef X
                             *const memories[] = {"device", "inplace", "pinned", "host"};
    struct bench b = {NULL};
    char word[32];
    hsort_options options;
    must(hsort_options_init(&options, sizeof options), "options");
    options.exchange = (hsort_exchange)place_of(exchange, exchanges, HSORT_EXCHANGES);
    options.transport = (hsort_transport)place_of(transport, transports, HSORT_TRANSPORTS);
    if (hsort_create(MPI_COMM_WORLD, &options, &b.ctx) != HSORT_OK) {
        if (rank == 0)
            printf("# left out: %s, %s: %s\n", exchange, transport, hsort_last_error(NULL));
        return;
    }
    const int where = place_of(memory, memories, 4);
    const bool has_gpu = hsort_engine_in_use(b.ctx) == HSORT_ENGINE_CUDA;
    b.in_place = where == 1 && has_gpu;
    b.on_device = where <= 1 && has_gpu;
    if (where <= 2 && has_gpu) {
        hsort_rank_info *infos = malloc((size_t)size * sizeof *infos);
        must(infos ? hsort_topology(b.ctx, infos, sizeof *infos) : HSORT_HOST_MEMORY, "hsort_topology");
        must(engine_open_cuda(infos[rank].gpu_index, 0, &b.engine), status_text());
        free(infos);
    }
    for (const char *list = o->types; (list = next_word(list, word));) {
        b.type = type_of(word);
        rows_of_type(&b, o, memories[has_gpu ? where : 3]);
    }
    if (b.engine)
        b.engine->ops->close(b.engine);
    hsort_destroy(&b.ctx);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const struct options o = parse(argc, argv);
    csv = rank == 0 && o.csv ? fopen(o.csv, "a") : stdout;
    if (!csv) {
        perror(o.csv);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (rank == 0)
        fprintf(csv,
                "ranks,memory,exchange,path,type,input,keys,ms,gkeys_per_s,h2d_ms,local_sort_ms,exchange_ms,"
                "merge_ms,d2h_ms,moved_bytes,result\n");
    char memory[32], exchange[32], transport[32];
    for (const char *m = o.memory; (m = next_word(m, memory));)
        for (const char *e = o.exchanges; (e = next_word(e, exchange));)
            for (const char *t = o.transports; (t = next_word(t, transport));)
                rows_of_context(&o, exchange, transport, memory);
    MPI_Finalize();
    return check_failures > 0;
}
