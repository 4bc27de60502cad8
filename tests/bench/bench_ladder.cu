/* The benchmark of the ladder: every rung x type x size x input, and the experiments of the sources. bench.h
 * says how things are timed; jobs/ladder.sh runs it and makes tables and plots of the CSV.
 *
 *   bench_ladder [--rungs 0,1,..] [--types u32,u64,4+4,8+4,8+8] [--sizes 10,12-20,..]
 *                [--inputs uniform,zipf,..] [--seconds LIMIT] [--csv FILE] [--experiment NAME]...
 *
 * Sizes are exponents of 2. Rows come by input, then size, then type: the limit cuts off the last inputs, or,
 * of a single input, the largest sizes. The CSV goes to FILE, behind what it holds already, or to stdout; notes on
 * what was left out go to stderr as well. Exits with 1 if a result was wrong. */
#include <string.h>
#include "tests/bench/bench.h"

enum { LARGEST_SIZE = 40, MOST_EXPERIMENTS = 8 };

struct options {
    uint64_t rungs, types, sizes, inputs; /* a bit for each */
    double seconds;
    const char *csv;
    const char *experiments[MOST_EXPERIMENTS];
    int experiment_count;
};

static const char usage[] =
    "usage: bench_ladder [--rungs 0,1,..] [--types u32,u64,4+4,8+4,8+8] [--sizes 10,12-20,..]\n"
    "                    [--inputs uniform,zipf,..] [--seconds LIMIT] [--csv FILE] [--experiment NAME]...\n";

static void refuse(const char *what, const char *text)
{
    fprintf(stderr, "bench_ladder: %s: %s\n%sexperiments: %s\ninputs:", what, text, usage,
            bench_experiment_names);
    for (int i = 0; i < LADDER_INPUT_COUNT; i++)
        fprintf(stderr, " %s", ladder_input_word(i));
    fputc('\n', stderr);
    exit(2);
}

/* ---- options ------------------------------------------------------------------------------------------- */

/* Numbers and ranges as a set of bits. */
static uint64_t parse_numbers(const char *option, const char *text, long largest)
{
    uint64_t set = 0;
    const char *at = text;
    while (*at != 0) {
        char *end;
        const long first = strtol(at, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        if (end == at || (*end != 0 && *end != ',') || first < 0 || last > largest)
            refuse(option, text);
        for (long number = first; number <= last; number++)
            set |= UINT64_C(1) << number;
        at = *end == ',' ? end + 1 : end;
    }
    return set;
}

static double parse_seconds(const char *option, const char *text)
{
    char *end;
    const double seconds = strtod(text, &end);
    if (end == text || *end != 0 || !(seconds > 0))
        refuse(option, text);
    return seconds;
}

static const char *type_word(int i)
{
    return ladder_types[i].word;
}

/* Words as a set of bits, by their place among `count` known ones. */
static uint64_t parse_words(const char *option, const char *text, const char *(*word)(int), int count)
{
    uint64_t set = 0;
    const char *at = text;
    while (*at != 0) {
        const size_t length = strcspn(at, ",");
        int i = 0;
        while (i < count && (strlen(word(i)) != length || strncmp(word(i), at, length) != 0))
            i++;
        if (i == count)
            refuse(option, text);
        set |= UINT64_C(1) << i;
        at += length + (at[length] == ',');
    }
    return set;
}

static struct options parse(int argc, char **argv)
{
    struct options o = {~UINT64_C(0), ~UINT64_C(0), 0, ~UINT64_C(0), 3600, NULL, {}, 0};
    for (int size = 10; size <= 30; size += 2)
        o.sizes |= UINT64_C(1) << size;
    for (int i = 1; i < argc; i += 2) {
        const char *option = argv[i], *text = argv[i + 1];
        if (text == NULL)
            refuse("no value", option);
        if (strcmp(option, "--rungs") == 0)
            o.rungs = parse_numbers(option, text, 63);
        else if (strcmp(option, "--types") == 0)
            o.types = parse_words(option, text, type_word, LADDER_TYPES);
        else if (strcmp(option, "--sizes") == 0)
            o.sizes = parse_numbers(option, text, LARGEST_SIZE);
        else if (strcmp(option, "--inputs") == 0)
            o.inputs = parse_words(option, text, ladder_input_word, LADDER_INPUT_COUNT);
        else if (strcmp(option, "--seconds") == 0)
            o.seconds = parse_seconds(option, text);
        else if (strcmp(option, "--csv") == 0)
            o.csv = text;
        else if (strcmp(option, "--experiment") == 0 && o.experiment_count < MOST_EXPERIMENTS)
            o.experiments[o.experiment_count++] = text;
        else
            refuse("unknown", option);
    }
    return o;
}

/* ---- the grid ------------------------------------------------------------------------------------------ */

/* Time all rungs on the data in hand; CUB's sorts come first, for the ratios. */
static void bench_data(struct bench *b, uint64_t rungs)
{
    const struct bench_subject merge = {"cub_merge_sort", "", cub_merge_sort, cub_merge_sort_workspace, 0, RUNG_STABLE};
    for (int rung : ladder_rungs) {
        const struct bench_subject subject = bench_rung(b, rung);
        if (rungs >> rung & 1)
            bench_row(b, &subject);
        if (rung == 0 && rungs & 1 && b->type.value_bytes == 0)
            bench_row(b, &merge);
    }
}

static void bench_grid(struct bench *b, const struct options *o)
{
    b->experiment = "ladder";
    for (int input = 0; input < LADDER_INPUT_COUNT; input++) {
        for (int size = 0; size <= LARGEST_SIZE; size++) {
            for (int type = 0; type < LADDER_TYPES; type++) {
                if (o->inputs >> input & o->sizes >> size & o->types >> type & 1 &&
                    bench_load(b, ladder_types[type], INT64_C(1) << size, input))
                    bench_data(b, o->rungs);
            }
        }
    }
}

int main(int argc, char **argv)
{
    char why[256];
    static struct bench b;
    const struct options o = parse(argc, argv);
    if (cuda_device_count(why, sizeof why) == 0) {
        fprintf(stderr, "no benchmark: %s\n", why);
        return hsort_exit_code(HSORT_NO_DEVICE);
    }
    FILE *csv = o.csv ? fopen(o.csv, "a") : stdout;
    if (csv == NULL) {
        perror(o.csv);
        return hsort_exit_code(HSORT_IO);
    }
    bench_open(&b, csv, o.seconds);
    for (int i = 0; i < o.experiment_count; i++) {
        if (!bench_experiment(&b, o.experiments[i]))
            refuse("no experiment of this name", o.experiments[i]);
    }
    if (o.experiment_count == 0)
        bench_grid(&b, &o);
    if (bench_now() > b.deadline)
        bench_note(&b, "left out: whatever follows; the time limit of %.0f s is over", o.seconds);
    bench_close(&b);
    const bool is_spoilt = ferror(csv) != 0;
    if (fclose(csv) != 0 || is_spoilt) {
        fprintf(stderr, "bench_ladder: the CSV could not be written\n");
        return hsort_exit_code(HSORT_IO);
    }
    return b.failures > 0;
}
