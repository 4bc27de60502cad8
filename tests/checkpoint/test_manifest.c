/* The manifest as text: what is written is read back the same. A text that is wrong in any byte, line or number is refused with
 * one line that says what to do, leaves the checkpoint alone, and never causes a crash. The checksum is computed here again, from its
 * definition, so that texts can be made that are wrong only in what they say. */
#include "tests/support/check.h"
#include "src/checkpoint/manifest.h"
#include "kernels/base/status.h"

static const char path[] = "DIR/manifest";
static uint64_t seed;

static void put_checksum(char *text)
{
    uint64_t hash = 14695981039346656037u;
    for (const char *c = text; *c; c++) {
        hash ^= (unsigned char)*c;
        hash *= 1099511628211u;
    }
    sprintf(text + strlen(text), "checksum %016llx\n", (unsigned long long)hash);
}

/* A checkpoint of random content. */
static struct checkpoint make(void)
{
    struct checkpoint made = {.directory = "DIR", .lock = -1};
    made.id = check_random(&seed);
    made.type = (hsort_type)(check_random(&seed) % (HSORT_BF16 + 1));
    if (check_random(&seed) % 2)
        snprintf(made.key, sizeof made.key, "@%d:bytes10,a name:desc", (int)(check_random(&seed) % 100));
    made.order = (hsort_order)(check_random(&seed) % 2);
    made.input_bytes = (int64_t)(check_random(&seed) >> 1);
    made.input_time.tv_sec = (time_t)(check_random(&seed) % 4000000000u) - 1000000000;
    made.input_time.tv_nsec = (long)(check_random(&seed) % 1000000000u >> check_random(&seed) % 30);
    strcpy(made.input, "/some where/in  put.npy");
    made.inputs = 1 + (int64_t)(check_random(&seed) % 3);
    made.inputs_digest = made.inputs > 1 ? check_random(&seed) : 0;
    made.sample = check_random(&seed) % 2 ? check_random(&seed) : 0;
    strcpy(made.output, "/out keys 7");
    made.output_format = check_random(&seed) % 2 ? FILE_RAW : FILE_NPY;
    made.keys = (int64_t)(check_random(&seed) >> (10 + check_random(&seed) % 54));
    made.written = calloc(20, sizeof *made.written);
    int64_t at = 0;
    for (int wanted = (int)(check_random(&seed) % 20); made.ranges < wanted && at < made.keys - 200;) {
        struct checkpoint_range *range = &made.written[made.ranges];
        range->first = at + (made.ranges > 0) + (int64_t)(check_random(&seed) % 50);
        range->count = 1 + (int64_t)(check_random(&seed) % 100);
        at = range->first + range->count;
        made.ranges++;
    }
    return made;
}

static void test_round_trip(void)
{
    struct checkpoint made = make(), read = {.directory = "DIR", .lock = 8, .found = true};
    char *text, part[64];
    size_t bytes;
    CHECK(manifest_format(&made, &text, &bytes) == HSORT_OK && strlen(text) == bytes, "%s", status_text());
    hsort_status status = manifest_parse(path, text, bytes, &read);
    CHECK(status == HSORT_OK, "%s\n%s", status_text(), text);
    free(text);
    if (status != HSORT_OK)
        return;
    // Records have no other type.
    CHECK(read.id == made.id && (made.key[0] || read.type == made.type) && strcmp(read.key, made.key) == 0 &&
              read.order == made.order && read.keys == made.keys && read.input_bytes == made.input_bytes &&
              read.output_format == made.output_format && read.inputs == made.inputs &&
              read.inputs_digest == made.inputs_digest && read.sample == made.sample,
          "fields");
    CHECK(read.input_time.tv_sec == made.input_time.tv_sec &&
              read.input_time.tv_nsec == made.input_time.tv_nsec,
          "time");
    CHECK(strcmp(read.input, made.input) == 0 && strcmp(read.output, made.output) == 0, "paths");
    CHECK(read.ranges == made.ranges &&
              memcmp(read.written, made.written, (size_t)made.ranges * sizeof *made.written) == 0,
          "ranges");
    CHECK(read.lock == 8 && read.found, "what is no part of the text");
    snprintf(part, sizeof part, "/out keys 7.hypersort-%016llx.part", (unsigned long long)made.id);
    CHECK(strcmp(read.part, part) == 0, "%s", read.part);
    free(made.written);
    free(read.written);
}

/* This text must be refused, in words that have `cause` in them. */
static void refuse(const char *text, size_t bytes, const char *cause)
{
    const struct checkpoint before = {.directory = "DIR", .keys = 77};
    struct checkpoint checkpoint;
    memcpy(&checkpoint, &before, sizeof before);
    const hsort_status status = manifest_parse(path, text, bytes, &checkpoint);
    CHECK(status == HSORT_FORMAT, "taken:\n%s", text);
    CHECK(memcmp(&checkpoint, &before, sizeof before) == 0, "the checkpoint was changed by:\n%s", text);
    CHECK(strncmp(status_text(), path, strlen(path)) == 0 && strstr(status_text(), cause) &&
              strstr(status_text(), "; remove it ") && strstr(status_text(), "to start from the beginning") &&
              !strchr(status_text(), '\n'),
          "\"%s\" instead of \"%s\" for:\n%s", status_text(), cause, text);
    if (status == HSORT_OK)
        free(checkpoint.written);
    status_clear();
}

/* Every bit of every byte, every cut, a byte too much at every place. */
static void test_damage(void)
{
    struct checkpoint made = make();
    char *text;
    size_t bytes;
    manifest_format(&made, &text, &bytes);
    char *other = calloc(bytes + 2, 1);
    for (size_t at = 0; at < bytes; at++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(other, text, bytes + 1);
            other[at] ^= (char)(1 << bit);
            refuse(other, bytes, "manifest: is ");
        }
    for (size_t cut = 0; cut < bytes; cut++) {
        memcpy(other, text, cut);
        other[cut] = '\0';
        refuse(other, cut, "is damaged: ");
    }
    for (size_t at = 0; at <= bytes; at++) {
        memcpy(other, text, at);
        other[at] = (char)check_random(&seed);
        memcpy(other + at + 1, text + at, bytes - at + 1);
        if (memcmp(other, text, bytes) != 0 || at == bytes)
            refuse(other, bytes + 1, "manifest: is ");
    }
    free(other);
    free(text);
    free(made.written);
}

static const char good[] = "hypersort checkpoint 2\n"
                           "id 00000000000000ff\n"
                           "type u64\n"
                           "order ascending\n"
                           "keys 1000\n"
                           "input_bytes 8000\n"
                           "input_time 17.000000005\n"
                           "input /in\n"
                           "output_format raw\n"
                           "output /out\n"
                           "written 0 10\n"
                           "written 20 980\n";

/* text = `good` with one line replaced, which begins with `line`. */
static void edit(const char *line, const char *replacement, char *text)
{
    const char *at = strstr(good, line), *end = strchr(at, '\n') + 1;
    sprintf(text, "%.*s%s\n%s", (int)(at - good), good, replacement, end);
    put_checksum(text);
}

/* Texts with a right checksum that say what cannot be. */
static void test_wrong_lines(void)
{
    static const struct {
        const char *line, *replacement;
    } edits[] = {
        {"id", "id 0"},
        {"id", "id 00000000000000FF"},
        {"id", "id 000000000000000ff"},
        {"id", "id -0000000000000ff"},
        {"id", "id"},
        {"type", "type u24"},
        {"type", "Type u64"},
        {"order", "order up"},
        {"keys", "keys 01000"},
        {"keys", "keys +1000"},
        {"keys", "keys  1000"},
        {"keys", "keys 1000 "},
        {"keys", "keys 1000.0"},
        {"keys", "keys 0x3e8"},
        {"keys", "keys 999"},
        {"keys", "keys -1000"},
        {"keys", "keys 9223372036854775808"},
        {"keys", "keys 99999999999999999999999999"},
        {"input_bytes", "input_bytes -1"},
        {"input_time", "input_time 17"},
        {"input_time", "input_time 17.5"},
        {"input_time", "input_time 17.1000000000"},
        {"input_time", "input_time 17.-00000005"},
        {"input_time", "input_time 99999999999999999999.000000005"},
        {"input ", "input in"},
        {"input ", "input /in\ninputs 1 0000000000000001"},
        {"input ", "input /in\ninputs 2"},
        {"input ", "input /in\ninputs 2 1"},
        {"input ", "input /in\nsample 1"},
        {"input ", "input /in\nsample 0000000000000000"},
        {"input ", "input "},
        {"output_format", "output_format auto"},
        {"output ", "output out"},
        {"output ", "\noutput /out"},
        {"written 0", "written 10 10"}, // touches the next
        {"written 0", "written 0 30"},
        {"written 0", "written 0 0"},
        {"written 0", "written -1 5"},
        {"written 0", "written 0"},
        {"written 20", "written 20 981"},
        {"written 20", "written 1001 1"},
        {"written 20", "written 20 9223372036854775807"},
        {"written 20", "written 9223372036854775807 9223372036854775807"},
        {"written 20", "written 20 980\nmore 1"},
        {"written 20", "written 20 980\n"},
    };
    char text[2048], long_path[1200];
    struct checkpoint checkpoint = {.directory = "DIR"};
    strcpy(text, good);
    put_checksum(text);
    CHECK(manifest_parse(path, text, strlen(text), &checkpoint) == HSORT_OK, "%s", status_text());
    free(checkpoint.written);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        edit(edits[i].line, edits[i].replacement, text);
        refuse(text, strlen(text), "is damaged: ");
    }
    // Every line that must be there missing, twice, and after the next one. Ranges have their own laws, above.
    for (const char *at = strchr(good, '\n') + 1, *end; strncmp(at, "written", 7) != 0; at = end) {
        end = strchr(at, '\n') + 1;
        const char *next = strchr(end, '\n') + 1;
        sprintf(text, "%.*s%s", (int)(at - good), good, end);
        put_checksum(text);
        refuse(text, strlen(text), "is damaged: in or before line ");
        sprintf(text, "%.*s%s", (int)(end - good), good, at);
        put_checksum(text);
        refuse(text, strlen(text), "is damaged: ");
        sprintf(text, "%.*s%.*s%.*s%s", (int)(at - good), good, (int)(next - end), end, (int)(end - at), at,
                next);
        put_checksum(text);
        refuse(text, strlen(text), "is damaged: in or before line ");
    }
    edit("hypersort", "hypersort checkpoint 3", text);
    refuse(text, strlen(text), "is of version 3, this is for version 2");
    edit("hypersort", "hypersort checkpoint 1", text);
    refuse(text, strlen(text), "this is for version 2; remove it and any run-*.keys beside it to start");
    edit("hypersort", "hypersort checkpoint 02", text);
    refuse(text, strlen(text), "is damaged: it is not as it was written");
    refuse("", 0, "it does not begin as a manifest does");
    refuse(good, strlen(good), "it does not end with a checksum");
    memset(long_path, 'a', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    char *huge = calloc(8, 1200);
    sprintf(huge, "%.*soutput /%s/%s/%s/%s\n%s", (int)(strstr(good, "output /") - good), good, long_path,
            long_path, long_path, long_path, strstr(good, "written"));
    put_checksum(huge);
    refuse(huge, strlen(huge), "is damaged: in or before line ");
    free(huge);
}

/* Lines of a manifest thrown together, with a right checksum: refused, or, by chance, a manifest. */
static void test_rubbish(void)
{
    char text[4096];
    strcpy(text, "hypersort checkpoint 2\n");
    for (int lines = (int)(check_random(&seed) % 30); lines > 0; lines--) {
        const char *at = good + check_random(&seed) % (sizeof good - 1);
        const size_t most = strlen(at), length = check_random(&seed) % 40;
        strncat(text, at, length < most ? length : most);
    }
    if (check_random(&seed) % 2)
        strcat(text, "\n");
    put_checksum(text);
    struct checkpoint checkpoint = {.directory = "DIR"};
    const hsort_status status = manifest_parse(path, text, strlen(text), &checkpoint);
    CHECK(status == HSORT_OK || status == HSORT_FORMAT, "%s", status_text());
    if (status == HSORT_OK)
        free(checkpoint.written);
    status_clear();
}

int main(void)
{
    seed = check_seed();
    printf("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 2000; i++) {
        test_round_trip();
        test_rubbish();
    }
    for (int i = 0; i < 20; i++)
        test_damage();
    test_wrong_lines();
    return check_failures > 0;
}
