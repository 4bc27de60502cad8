/* What ranks must have in common: numbers that tell their command lines apart. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "src/command/cli_rows.h"

enum { DIGEST_COMMAND, DIGEST_OPERAND, DIGEST_ROWS = CLI_DIGESTS_BESIDE_OPTIONS };
_Static_assert(DIGEST_ROWS == DIGEST_OPERAND + 1, "each has a place");

/* FNV-1a, as the manifest's. */
static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t digest_text(const char *text)
{
    return text ? add_bytes(UINT64_C(0xcbf29ce484222325), text, strlen(text)) : 0;
}

static uint64_t digest_value(const struct option_row *row, const struct cli_options *options)
{
    static const size_t bytes[] = {[FLAG] = sizeof(bool),      [WORD] = sizeof(int),
                                   [MAYBE_WORD] = sizeof(int), [NUMBER] = sizeof(int),
                                   [AT_LEAST_1] = sizeof(int), [SIZE] = sizeof(size_t),
                                   [COUNT] = sizeof(int64_t),  [RANKS] = sizeof options->ranks,
                                   [GIGA] = sizeof(double),    [MICRO] = sizeof(double),
                                   [SEED] = sizeof(uint64_t)};
    const void *field = (const char *)options + row->field;
    if (row->kind == TEXT)
        return digest_text(*(const char *const *)field);
    if (row->kind == TEXTS) {
        const struct cli_texts *texts = field;
        uint64_t hash = 1;
        for (int i = 0; i < texts->count; i++)
            hash = add_bytes(hash, texts->text[i], strlen(texts->text[i]) + 1);
        return hash;
    }
    return add_bytes(1, field, bytes[row->kind]);
}

void cli_digest(const struct cli_options *options, uint64_t *digest)
{
    memset(digest, 0, CLI_DIGESTS * sizeof *digest);
    digest[DIGEST_COMMAND] = (uint64_t)options->command;
    for (int i = 0; i < options->files_count; i++) // with the 0 behind each
        digest[DIGEST_OPERAND] =
            add_bytes(digest[DIGEST_OPERAND] + 1, options->files[i], strlen(options->files[i]) + 1);
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
