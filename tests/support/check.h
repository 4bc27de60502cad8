/* The tests' only tools. A test program exits 0 (passed), 1 (failed) or 77 (skipped, with one line that says why). */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHECK_SKIPPED = 77 };

static int check_failures __attribute__((unused)); /* unused in a test that only draws */

/* Count a failure with place and printf text; the test goes on. */
#define CHECK(condition, ...)                                                                                 \
    do {                                                                                                      \
        if (!(condition)) {                                                                                   \
            if (check_failures++ < 20) {                                                                      \
                fprintf(stderr, "%s:%d: failed: %s: ", __FILE__, __LINE__, #condition);                       \
                fprintf(stderr, __VA_ARGS__);                                                                 \
                fputc('\n', stderr);                                                                          \
            }                                                                                                 \
        }                                                                                                     \
    } while (0)

/* The statement must find something wrong, that is, count a failure. The failure's lines go nowhere. */
#define CHECK_FINDS(statement)                      \
    do {                                            \
        const int counted = check_failures;         \
        FILE *const shown = stderr;                 \
        stderr = fopen("/dev/null", "w");           \
        statement;                                  \
        fclose(stderr);                             \
        stderr = shown;                             \
        const int found = check_failures - counted; \
        check_failures = counted;                   \
        CHECK(found > 0, "it finds nothing wrong"); \
    } while (0)

/* A fresh seed, or the one of the environment variable HYPERSORT_SEED, so that a failure can be repeated. */
static inline uint64_t check_seed(void)
{
    const char *given = getenv("HYPERSORT_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return given ? strtoull(given, NULL, 0) : (uint64_t)now.tv_sec * 1000003u + (uint64_t)now.tv_nsec;
}

/* The next number of a SplitMix64 sequence. */
static inline uint64_t check_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

#endif
