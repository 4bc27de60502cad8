/* Numbers that tell the command lines of ranks apart: ranks must have the same ones. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "kernels/base/checksum.h"
#include "src/command/cli_rows.h"

enum { DIGEST_COMMAND, DIGEST_OPERAND, DIGEST_ROWS = CLI_DIGESTS_BESIDE_OPTIONS };
_Static_assert(DIGEST_ROWS == DIGEST_OPERAND + 1, "each has a place");

static uint64_t digest_value(const struct option_row *row, const struct cli_options *options)
{
    static const size_t bytes[] = {[FLAG] = sizeof(bool),      [WORD] = sizeof(int),
                                   [MAYBE_WORD] = sizeof(int), [NUMBER] = sizeof(int),
                                   [AT_LEAST_1] = sizeof(int), [SIZE] = sizeof(size_t),
                                   [COUNT] = sizeof(int64_t),  [RANKS] = sizeof options->ranks,
                                   [GIGA] = sizeof(double),    [MICRO] = sizeof(double),
                                   [SEED] = sizeof(uint64_t)};
    const void *field = (const char *)options + row->field;
    if (row->kind == TEXT || row->kind == ONE_TEXT) {
        const char *text = *(const char *const *)field;
        return text ? checksum_add(CHECKSUM_START, text, strlen(text)) : 0;
    }
    if (row->kind == TEXTS) {
        const struct cli_texts *texts = field;
        uint64_t hash = CHECKSUM_START;
        for (int i = 0; i < texts->count; i++)
            hash = checksum_add(hash, texts->text[i], strlen(texts->text[i]) + 1);
        return hash;
    }
    return checksum_add(CHECKSUM_START, field, bytes[row->kind]);
}

void cli_digest(const struct cli_options *options, uint64_t *digest)
{
    memset(digest, 0, CLI_DIGESTS * sizeof *digest);
    digest[DIGEST_COMMAND] = (uint64_t)options->command;
    digest[DIGEST_OPERAND] = CHECKSUM_START;
    for (int i = 0; i < options->files_count; i++) // including the 0 at the end of each
        digest[DIGEST_OPERAND] =
            checksum_add(digest[DIGEST_OPERAND], options->files[i], strlen(options->files[i]) + 1);
    // Nodes may have different numbers of cores.
    for (int row = 0; row < cli_row_count; row++)
        if (cli_rows[row].field != offsetof(struct cli_options, sort.threads))
            digest[DIGEST_ROWS + row] = digest_value(&cli_rows[row], options);
}

const char *cli_digest_name(const struct cli_options *options, int place, char *name)
{
    const bool is_operand = place == DIGEST_OPERAND && options->command < CLI_COMMANDS;
    const char *text = is_operand ? cli_commands[options->command].operand : "the command";
    snprintf(name, CLI_DIGEST_NAME, "%s%s", place >= DIGEST_ROWS ? "--" : "",
             place >= DIGEST_ROWS ? cli_rows[place - DIGEST_ROWS].name : text);
    return name;
}
