/* The command line: any words are accepted, or refused in one line, and accepted values are in range. The lines of an input
 * are the words after `hypersort`. */
#include "tests/fuzz/fuzz.h"
#include "src/command/cli.h"

enum { WORDS_MOST = 64 };

/* A new text: the bytes and a 0. */
static char *as_text(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    PROMISE(text != NULL);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    return text;
}

/* argv [return value] and a NULL: the lines of `text`, of which each now ends in a 0. */
static int split_lines(char *text, char **argv)
{
    int argc = 0;
    argv[argc++] = "hypersort";
    for (char *word = text; word && argc < WORDS_MOST; argc++) {
        char *end = strchr(word, '\n');
        argv[argc] = word;
        if (end)
            *end++ = '\0';
        word = end;
    }
    argv[argc] = NULL;
    return argc;
}

static void check_values(const struct cli_options *options)
{
    PROMISE(options->command < CLI_COMMANDS);
    PROMISE(options->ranks_count >= 0 && options->ranks_count <= CLI_RANKS_MAX);
    for (int i = 0; i < options->ranks_count; i++)
        PROMISE(options->ranks[i] > 0);
    PROMISE(options->command != CLI_PLAN || options->ranks_count > 0);
    PROMISE(options->command != CLI_GEN || options->count >= 0);
    PROMISE(options->nodes >= 0 && options->ranks_per_node >= 0 && options->sort.threads >= 0);
    PROMISE(!options->type_given || hsort_type_bytes(options->type) > 0);
    PROMISE(options->command != CLI_GEN || options->output[0] != '\0');
    PROMISE(options->command != CLI_SORT || options->output || options->index || options->values);
    PROMISE(options->command == CLI_PLAN || !options->values == !options->values_output); // a plan writes none
    PROMISE(options->count <= INT64_MAX / 16 && (!options->quiet || !options->json));
    for (int i = 0; i < options->files_count; i++)
        PROMISE(options->files[i][0] != '\0');
}

/* Of the harness: the one that is built knows the commit, which says nothing here. */
const char *hsort_build_info(void)
{
    return "fuzz";
}

/* Two ranks that were given the same words agree, though these lie elsewhere. */
static void check_agreement(const struct cli_options *options, const uint8_t *data, size_t bytes)
{
    char *argv[WORDS_MOST + 1];
    struct cli_options other;
    uint64_t digest[CLI_DIGESTS], other_digest[CLI_DIGESTS];
    char *text = as_text(data, bytes);
    PROMISE(cli_parse(split_lines(text, argv), argv, &other) == HSORT_OK);
    cli_digest(options, digest);
    cli_digest(&other, other_digest);
    PROMISE(memcmp(digest, other_digest, sizeof digest) == 0);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *argv[WORDS_MOST + 1];
    struct cli_options options;
    char *text = as_text(data, bytes);
    status_clear();
    const hsort_status status = cli_parse(split_lines(text, argv), argv, &options);
    if (status != HSORT_OK) {
        PROMISE(status == HSORT_ARGUMENT && strstr(status_text(), "--help'"));
    } else {
        if (!options.help && !options.version)
            check_values(&options);
        check_agreement(&options, data, bytes);
    }
    free(text);
    return 0;
}
