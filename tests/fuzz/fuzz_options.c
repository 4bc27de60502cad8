/* The command line: any words are taken or refused in one line, and values that were taken are in range. The lines of an input
 * are the words behind `hypersort`. */
#include "tests/fuzz/fuzz.h"
#include "src/command/cli.h"

enum { WORDS_MOST = 64 };

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
    PROMISE((options->command != CLI_GEN && options->command != CLI_SORT) || options->output[0] != '\0');
    PROMISE(!options->file || options->file[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *argv[WORDS_MOST + 1];
    struct cli_options options;
    char *text = malloc(bytes + 1);
    PROMISE(text != NULL);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    status_clear();
    const hsort_status status = cli_parse(split_lines(text, argv), argv, &options);
    if (status != HSORT_OK)
        PROMISE(status == HSORT_ARGUMENT && strstr(status_text(), "--help'"));
    else if (!options.help && !options.version)
        check_values(&options);
    free(text);
    return 0;
}
