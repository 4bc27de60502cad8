/* The manifest of a checkpoint: any text is read or refused; what was read is written again as the same text. An input is the
 * text without its last line, because no mutation finds a checksum; an input that begins with a 0 has the whole text after it. */
#include "tests/fuzz/fuzz.h"
#include "src/checkpoint/manifest.h"

/* A new text [*text_bytes] and a 0: `data` and the line of its checksum. */
static char *with_checksum(const uint8_t *data, size_t bytes, size_t *text_bytes)
{
    char line[32];
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ data[i]) * 1099511628211u;
    const size_t line_bytes =
        (size_t)snprintf(line, sizeof line, "checksum %016llx\n", (unsigned long long)hash);
    char *text = malloc(bytes + line_bytes + 1);
    PROMISE(text != NULL);
    memcpy(text, data, bytes);
    memcpy(text + bytes, line, line_bytes + 1);
    *text_bytes = bytes + line_bytes;
    return text;
}

static char *whole_text(const uint8_t *data, size_t bytes, size_t *text_bytes)
{
    char *text = malloc(bytes);
    PROMISE(text != NULL);
    memcpy(text, data + 1, bytes - 1);
    text[bytes - 1] = '\0';
    *text_bytes = bytes - 1;
    return text;
}

static void check_taken(const struct checkpoint *read, const char *text, size_t bytes)
{
    char *again = NULL;
    size_t again_bytes = 0;
    PROMISE(manifest_format(read, &again, &again_bytes) == HSORT_OK);
    PROMISE(again_bytes == bytes && memcmp(again, text, bytes) == 0);
    free(again);
    PROMISE(hsort_type_bytes(read->type) > 0 && read->keys >= 0);
    PROMISE(read->input[0] == '/' && read->output[0] == '/' && strlen(read->part) < sizeof read->part);
    for (int r = 0; r < read->ranges; r++) {
        const struct checkpoint_range *range = &read->written[r];
        PROMISE(range->count > 0 && range->first >= 0 && range->first <= read->keys - range->count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct checkpoint before = {.directory = "DIR", .keys = 77, .lock = -1};
    struct checkpoint read;
    size_t text_bytes;
    char *text = bytes > 0 && data[0] == 0 ? whole_text(data, bytes, &text_bytes)
                                           : with_checksum(data, bytes, &text_bytes);
    memcpy(&read, &before, sizeof before); // with its padding, which is compared below
    status_clear();
    const hsort_status status = manifest_parse("DIR/manifest", text, text_bytes, &read);
    if (status == HSORT_OK) {
        check_taken(&read, text, text_bytes);
        free(read.written);
    } else {
        PROMISE(status == HSORT_FORMAT && strncmp(status_text(), "DIR/manifest: ", 14) == 0);
        PROMISE(!strchr(status_text(), '\n') && memcmp(&read, &before, sizeof before) == 0);
    }
    free(text);
    return 0;
}
