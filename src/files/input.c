#include "src/files/input.h"
#include "kernels/base/keytype.h"
#include "kernels/base/status.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "src/files/nearest.h"
#include "src/files/number.h"

void input_fill(const struct input *input, int64_t first, int64_t count, void *keys)
{
    const struct input_source source = input_source_make(input);
    const size_t width = hsort_type_bytes(input->type);
#pragma omp parallel for
    for (int64_t i = 0; i < count; i++) {
        const uint128 key = source.is_wide ? input_wide_key(&source, first + i) : input_key(&source, first + i);
        memcpy((char *)keys + (size_t)i * width, &key, width); // little-endian
    }
}

/* ---- Names --------------------------------------------------------------------------------------------- */

static const struct {
    const char *word, *number; /* "": none */
    int least, most, without;
} distributions[INPUTS] = {
#define X(name, word, number, least, most, without, text) {word, number, least, most, without},
    INPUT_LIST(X)
#undef X
};

static hsort_status fail_unknown(const char *text)
{
    struct nearest nearest;
    char words[320] = "", hint[NEAREST_HINT];
    size_t length = 0;
    for (int d = 0; d < INPUTS && length < sizeof words; d++)
        length += (size_t)snprintf(words + length, sizeof words - length, "%s%s%s", d > 0 ? ", " : "",
                                   distributions[d].word, distributions[d].number);
    nearest_begin(&nearest, text, strcspn(text, ":"));
    for (int d = 0; d < INPUTS; d++)
        nearest_offer(&nearest, distributions[d].word, strlen(distributions[d].word));
    return status_fail(HSORT_ARGUMENT, "'%.64s' is not a distribution%s; there are %s", text,
                       nearest_hint(&nearest, "", hint), words);
}

hsort_status input_parse(const char *text, struct input *input)
{
    const size_t length = strcspn(text, ":");
    const char *number = text[length] == ':' ? text + length + 1 : NULL;
    int d = 0;
    while (d < INPUTS &&
           (strlen(distributions[d].word) != length || memcmp(distributions[d].word, text, length) != 0))
        d++;
    if (d == INPUTS)
        return fail_unknown(text);
    if (number && distributions[d].number[0] == '\0')
        return status_fail(HSORT_ARGUMENT, "'%.64s': '%s' takes no number", text, distributions[d].word);
    if (!number && distributions[d].without < 0)
        return status_fail(HSORT_ARGUMENT, "'%s' needs a number: %s%s, from %d to %d", distributions[d].word,
                           distributions[d].word, distributions[d].number, distributions[d].least,
                           distributions[d].most);

    uint64_t value = 0;
    const int least = distributions[d].least, most = distributions[d].most;
    if (number && (!number_parse(number, true, (uint64_t)most, &value) || value < (uint64_t)least))
        return status_fail(HSORT_ARGUMENT, "'%.64s': the number of '%s' is from %d to %d", text,
                           distributions[d].word, least, most);
    input->distribution = (enum input_distribution)d;
    input->parameter = number ? (int)value : distributions[d].without;
    return HSORT_OK;
}

hsort_status input_parse_option(const char *option, const char *text, struct input *input)
{
    if (input_parse(text, input) == HSORT_OK)
        return HSORT_OK;
    char cause[STATUS_TEXT_BYTES];
    strcpy(cause, status_text());
    status_clear();
    return status_fail(HSORT_ARGUMENT, "%s: %.400s", option, cause);
}
