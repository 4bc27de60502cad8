/* Sizes in the texts of errors: they have four digits, the rest is cut off. As options they are read back, and are no less and hardly
 * more. Sizes are drawn, and checked against sscanf() and the reader of options. */
#include "kernels/base/size_text.h"
#include "src/files/number.h"
#include "tests/support/check.h"

enum { DRAWS = 100000 };

static void expect_text(uint64_t bytes, const char *wanted)
{
    char text[SIZE_TEXT_BYTES];
    CHECK(strcmp(size_text(bytes, text), wanted) == 0, "%llu bytes: '%s', not '%s'",
          (unsigned long long)bytes, text, wanted);
}

static void expect_option(uint64_t bytes, const char *wanted)
{
    char text[SIZE_TEXT_BYTES];
    CHECK(strcmp(size_option_text(bytes, text), wanted) == 0, "%llu bytes: '%s', not '%s'",
          (unsigned long long)bytes, text, wanted);
}

static void test_examples(void)
{
    expect_text(0, "0 B");
    expect_text(999, "999 B");
    expect_text(1000, "1 kB");
    expect_text(1009, "1.009 kB");
    expect_text(10010, "10.01 kB");
    expect_text(10009, "10 kB");
    expect_text(100100, "100.1 kB");
    expect_text(999999, "999.9 kB");
    expect_text(2272959, "2.272 MB");
    expect_text(UINT64_MAX, "18.44 EB");
    expect_option(1, "1K");
    expect_option(1024, "1K");
    expect_option(1025, "2K");
    expect_option(2272959, "2220K");
    expect_option((10 << 20) - 1, "10240K");
    expect_option(10 << 20, "10M");
    expect_option((10 << 20) + 1, "11M");
    expect_option(UINT64_C(10) << 40, "10T");
}

/* Draw a size; every length in bits is equally likely. */
static uint64_t draw_bytes(uint64_t *state)
{
    const int shift = (int)(check_random(state) % 64);
    return check_random(state) >> shift;
}

/* The text of a size must be below the size by less than a unit of its last digit. */
static void check_text(uint64_t bytes)
{
    static const char prefixes[] = "kMGTPE";
    char text[SIZE_TEXT_BYTES], prefix = ' ';
    double number = 0;
    CHECK(sscanf(size_text(bytes, text), "%lf %cB", &number, &prefix) == 2, "'%s'", text);
    const char *place = strchr(prefixes, prefix);
    for (int i = 0; place && i <= place - prefixes; i++)
        number *= 1000;
    CHECK(number <= (double)bytes * (1 + 1e-12) && number >= (double)bytes * 0.999, "%llu bytes: '%s'",
          (unsigned long long)bytes, text);
}

static void check_option(uint64_t bytes)
{
    char text[SIZE_TEXT_BYTES];
    uint64_t read = 0;
    CHECK(number_parse(size_option_text(bytes, text), true, UINT64_MAX, &read), "'%s' is not a size", text);
    CHECK(read >= bytes && (read - bytes < 1024 || (double)(read - bytes) < 0.1 * (double)bytes),
          "%llu bytes: '%s'", (unsigned long long)bytes, text);
}

int main(void)
{
    const uint64_t seed = check_seed();
    uint64_t state = seed;
    printf("seed %llu\n", (unsigned long long)seed);
    test_examples();
    for (int i = 0; i < DRAWS; i++) {
        const uint64_t bytes = draw_bytes(&state);
        check_text(bytes);
        check_option(bytes < UINT64_MAX >> 1 ? bytes : bytes >> 1); // rounded up, it must still be a number
    }
    return check_failures > 0;
}
