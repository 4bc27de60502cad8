/* Values of options: from words of the command line to fields of struct cli_options. */
#include "src/command/cli_rows.h"
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/keytype.h"
#include "src/files/nearest.h"
#include "src/files/number.h"

#define CLI_NUMBERS                                                                              \
    "; numbers are written as 1500, 1e6, 2^30, 1.5M; K M G T, as well as Ki or KiB and so on, are " \
    "powers of 1024"

/* ---- Numbers --------------------------------------------------------------------------------------------- */

/* Between these, so that nothing that is made of rates overflows. */
static const double rate_least = 1e-9, rate_most = 1e15;

/* Read a rate or a time, times `unit`. Refuses what strtod() also takes: blanks, signs, hexadecimal, "nan". */
static bool parse_rate(const char *text, double unit, double *number)
{
    char *end;
    if (text[strspn(text, "0123456789.e+-")] != '\0' || !(isdigit((unsigned char)text[0]) || text[0] == '.'))
        return false;
    const double read = strtod(text, &end);
    *number = read * unit;
    return end != text && *end == '\0' && read >= rate_least && read <= rate_most;
}

hsort_status cli_add_ranks(const char *text, struct cli_options *options)
{
    uint64_t number;
    if (!number_parse(text, true, 1 << 30, &number) || number == 0)
        return cli_complain(options, "'%.128s' is not a number of ranks (1 to 1G)", text);
    if (options->ranks_count == CLI_RANKS_MAX)
        return cli_complain(options, "more than %d numbers of ranks", CLI_RANKS_MAX);
    options->ranks[options->ranks_count++] = (int)number;
    return HSORT_OK;
}

static hsort_status add_text(const struct option_row *row, const char *value, struct cli_texts *texts,
                             const struct cli_options *options)
{
    if (value[0] == '\0')
        return cli_complain(options, "--%s: '' cannot be %s", row->name, row->value);
    if (texts->count == CLI_TEXTS_MAX)
        return cli_complain(options, "--%s: more than %d", row->name, CLI_TEXTS_MAX);
    texts->text[texts->count++] = value;
    return HSORT_OK;
}

/* ---- Words --------------------------------------------------------------------------------------------- */

int cli_parse_word(const char *text, const char *words)
{
    const size_t length = strlen(text);
    for (int place = 0; *words; place++) {
        const size_t word_length = strcspn(words, "|");
        if (length == word_length && memcmp(text, words, length) == 0)
            return place;
        words += word_length + (words[word_length] == '|');
    }
    return -1;
}

/* If NumPy and C disagree about a type's name, or C with itself: what the name may mean; otherwise NULL. */
static const char *doubtful_type(const char *word)
{
    static const char unsigned_int[] = "uint32 in C and uint64 in NumPy";
    static const char *const names[][2] = {{"float", "float32 in C and float64 in NumPy"},
                                           {"int", "int32 in C and int64 in NumPy"},
                                           {"long", "int64 or int32 in C and NumPy, by the system"},
                                           {"char", "int8 or uint8 in C, by the machine, and text in NumPy"},
                                           {"ulong", "uint64 or uint32 in C and NumPy, by the system"},
                                           {"unsigned long", "uint64 or uint32 in C, by the system"},
                                           {"unsigned", unsigned_int},
                                           {"unsigned int", unsigned_int},
                                           {"uint", unsigned_int}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(word, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

/* Our name for a key type by NumPy's or C's name; any other word as it is. */
static const char *short_type(const char *word)
{
    static const char *const names[][5] = {{"u32", "uint32", "<u4", "uint32_t"},
                                           {"i32", "int32", "<i4", "int32_t"},
                                           {"f32", "float32", "<f4", "single"},
                                           {"u64", "uint64", "<u8", "uint64_t"},
                                           {"i64", "int64", "<i8", "int64_t"},
                                           {"f64", "float64", "<f8", "double"},
                                           {"u8", "uint8", "|u1", "uint8_t", "<u1"},
                                           {"i8", "int8", "|i1", "int8_t", "<i1"},
                                           {"u16", "uint16", "<u2", "uint16_t", "ushort"},
                                           {"u16", "unsigned short"},
                                           {"i16", "int16", "<i2", "int16_t", "short"},
                                           {"f16", "float16", "<f2", "half"},
                                           {"bf16", "bfloat16", "bfloat16", "bfloat16"},
                                           {"u128", "uint128", "uint128", "uint128_t"}};
    for (size_t type = 0; type < sizeof names / sizeof *names; type++)
        for (int alias = 1; alias < 5 && names[type][alias]; alias++)
            if (strcmp(word, names[type][alias]) == 0)
                return names[type][0];
    return word;
}

bool cli_parse_type(const char *word, hsort_type *type)
{
    const char *name = short_type(word);
#define X(type_name, type_word, bytes)  \
    if (strcmp(name, type_word) == 0) { \
        *type = type_name;              \
        return true;                    \
    }
    HSORT_TYPE_LIST(X)
#undef X
    return false;
}

/* Store a word of a list, by its place in the list. */
static hsort_status store_word(const struct option_row *row, const char *value, void *field,
                               const struct cli_options *options)
{
    const bool is_type = row->field == offsetof(struct cli_options, type);
    const char *word = is_type ? short_type(value) : value, *doubt = is_type ? doubtful_type(value) : NULL;
    if (doubt)
        return cli_complain(options, "--%s: '%s' is %s: say which", row->name, value, doubt);
    const int place = cli_parse_word(word, row->value);
    if (place < 0) {
        struct nearest nearest;
        char hint[NEAREST_HINT];
        nearest_begin(&nearest, value, strlen(value));
        // NumPy's >u8 is a number of 8 bytes, so u8, which is a byte, is not near it.
        if (!is_type || !strpbrk(value, "<>=|"))
            nearest_offer_all(&nearest, row->value);
        return cli_complain(options, "--%s: '%.128s' is not one of %s%s", row->name, value, row->value,
                            nearest_hint(&nearest, "", hint));
    }
    memcpy(field, &place, sizeof place);
    return HSORT_OK;
}

hsort_status cli_store_value(const struct option_row *row, const char *value, struct cli_options *options)
{
    void *field = (char *)options + row->field;
    uint64_t number = 0;
    switch (row->kind) {
    case FLAG:
        *(bool *)field = true;
        return HSORT_OK;
    case ONE_TEXT:
        if (*(const char **)field)
            return cli_complain(options, "--%s is given twice, and takes one %s", row->name, row->value);
        // fall through
    case TEXT:
        if (value[0] == '\0')
            return cli_complain(options, "--%s: '' cannot be %s", row->name, row->value);
        *(const char **)field = value;
        return HSORT_OK;
    case TEXTS:
        return add_text(row, value, field, options);
    case MAYBE_WORD:
        if (!value) {
            memset(field, 0, sizeof(int));
            return HSORT_OK;
        }
        // fall through
    case WORD:
        return store_word(row, value, field, options);
    case NUMBER:
    case AT_LEAST_1:
        if (!number_parse(value, true, INT_MAX, &number) || (row->kind == AT_LEAST_1 && number == 0))
            break;
        *(int *)field = (int)number;
        return HSORT_OK;
    case SIZE:
        if (!number_parse(value, true, SIZE_MAX, &number))
            break;
        *(size_t *)field = number;
        return HSORT_OK;
    case COUNT:
        if (!number_parse(value, true, INT64_MAX / 16, &number))
            break;
        *(int64_t *)field = (int64_t)number;
        return HSORT_OK;
    case RANKS:
        return cli_add_ranks(value, options);
    case GIGA:
    case MICRO:
        if (!parse_rate(value, row->kind == GIGA ? 1e9 : 1e-6, field))
            break;
        return HSORT_OK;
    case SEED:
        if (!number_parse(value, true, UINT64_MAX, &number))
            break;
        *(uint64_t *)field = number;
        return HSORT_OK;
    }
    // If the value is a number, but not one that this option takes, do not explain how numbers are written.
    const bool is_number = number_parse(value, true, UINT64_MAX, &number);
    return cli_complain(options, "--%s: '%.128s' is %s%s", row->name, value,
                        !is_number     ? "not a number that it can take"
                        : number == 0 ? "too small"
                                      : "too large",
                        is_number || row->kind == GIGA || row->kind == MICRO ? "" : CLI_NUMBERS);
}
