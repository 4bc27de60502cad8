#include "src/command/bench.h"
#include <stdio.h>
#include <string.h>
#include "src/files/nearest.h"
#include "src/files/number.h"

static const char *const memory_words[BENCH_MEMORIES] = {
#define X(name, word) word,
    BENCH_MEMORY_LIST(X)
#undef X
};

const char *bench_memory_word(enum bench_memory memory)
{
    return memory_words[memory];
}

/* Put one word of a list into place `i` of the plan. */
typedef hsort_status take_word(struct bench_plan *plan, int i, const char *word);

static hsort_status take_size(struct bench_plan *plan, int i, const char *word)
{
    uint64_t number;
    if (!number_parse(word, true, INT64_MAX / 16, &number))
        return status_fail(HSORT_ARGUMENT, "--sizes: '%s' is not a number of keys", word);
    plan->sizes[i] = (int64_t)number;
    return HSORT_OK;
}

/* Fail because `word` is none of `words`, "|this|that". */
static hsort_status fail_word(const char *option, const char *word, const char *words)
{
    struct nearest nearest;
    char hint[NEAREST_HINT];
    nearest_begin(&nearest, word, strlen(word));
    nearest_offer_all(&nearest, words + 1);
    return status_fail(HSORT_ARGUMENT, "%s: '%s' is not one of %s%s", option, word, words + 1,
                       nearest_hint(&nearest, "", hint));
}

static hsort_status take_type(struct bench_plan *plan, int i, const char *word)
{
#define X(name, short_name, bytes) "|" short_name
    static const char words[] = HSORT_TYPE_LIST(X);
#undef X
    return cli_parse_type(word, &plan->types[i]) ? HSORT_OK : fail_word("--types", word, words);
}

static hsort_status take_input(struct bench_plan *plan, int i, const char *word)
{
    static const char many[] = "mixtures:";
    struct bench_input *input = &plan->inputs[i];
    uint64_t number = 0;
    memset(input, 0, sizeof *input);
    snprintf(input->word, sizeof input->word, "%s", word);
    if (strncmp(word, many, strlen(many)) != 0)
        return input_parse_option("--inputs", word, &input->input);
    if (!number_parse(word + strlen(many), true, 1000000, &number) || number == 0)
        return status_fail(HSORT_ARGUMENT, "--inputs: '%s': the number of mixtures is from 1 to 1000000",
                           word);
    input->input.distribution = INPUT_MIXTURE;
    input->mixtures = (int)number;
    return HSORT_OK;
}

static hsort_status take_memory_word(struct bench_plan *plan, int i, const char *word)
{
#define X(name, memory_word) "|" memory_word
    static const char words[] = BENCH_MEMORY_LIST(X);
#undef X
    for (int memory = 0; memory < BENCH_MEMORIES; memory++)
        if (strcmp(word, memory_words[memory]) == 0) {
            plan->memories[i] = (enum bench_memory)memory;
            return HSORT_OK;
        }
    return fail_word("--memory", word, words);
}

/* Take the words of a list, between commas; *count = how many there are. */
static hsort_status take_list(const char *option, const char *list, struct bench_plan *plan, take_word *take,
                              int *count)
{
    char word[BENCH_WORD_BYTES];
    for (const char *at = list;; at++) {
        const size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof word)
            return status_fail(HSORT_ARGUMENT,
                               "%s: '%.128s': words of at most %d letters, with commas between", option, list,
                               BENCH_WORD_BYTES - 1);
        if (*count == BENCH_WORDS_MAX)
            return status_fail(HSORT_ARGUMENT, "%s: more than %d words", option, BENCH_WORDS_MAX);
        memcpy(word, at, length);
        word[length] = '\0';
        TRY(take(plan, (*count)++, word));
        at += length;
        if (*at == '\0')
            return HSORT_OK;
    }
}

hsort_status bench_plan_make(const struct cli_options *options, struct bench_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    plan->repeats = options->repeats;
    plan->warm_up = options->warm_up;
    if (plan->repeats > BENCH_REPEATS_MAX)
        return status_fail(HSORT_ARGUMENT, "--repeats: at most %d", BENCH_REPEATS_MAX);
    TRY(take_list("--sizes", options->sizes, plan, take_size, &plan->size_count));
    TRY(take_list("--types", options->types, plan, take_type, &plan->type_count));
    TRY(take_list("--inputs", options->inputs, plan, take_input, &plan->input_count));
    return options->memory
               ? take_list("--memory", options->memory, plan, take_memory_word, &plan->memory_count)
               : HSORT_OK;
}
