/* A rank's arrays for tests of calls on elements: in memory of a drawn kind, with a guard behind them. */
#ifndef DRAWN_ARRAY_H
#define DRAWN_ARRAY_H

#include "tests/support/check.h"
#include "tests/support/device_buffer.h"
#include "tests/support/ranks.h"
#ifdef LATE_ENGINE
#include "tests/support/late_engine.h"
#endif

enum { GUARD = 64, POISON = 0xa7 };

static int buffer_kinds = 1; /* of which one is drawn */
static char what[300];       /* the trial under way */
static uint64_t random_state;

/* An array of this rank in memory of some kind, with a guard behind it. */
struct array {
    enum buffer_kind kind;
    unsigned char *memory, *image; /* image: what the whole of it should hold */
    size_t bytes;
};

static uint64_t draw(uint64_t below)
{
    return check_random(&random_state) % below;
}

/* from NULL: poisoned. */
static struct array array_make(const void *from, size_t bytes)
{
    struct array a = {.kind = (enum buffer_kind)draw((uint64_t)buffer_kinds), .bytes = bytes};
    a.memory = device_buffer_alloc(a.kind, bytes + GUARD);
    a.image = malloc(bytes + GUARD);
    if (!a.memory || !a.image) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(a.image, POISON, bytes + GUARD);
    if (from)
        memcpy(a.image, from, bytes);
    device_buffer_copy(a.memory, a.image, bytes + GUARD);
#ifdef LATE_ENGINE
    late_engine_note(a.memory, bytes + GUARD, draw(2) == 0);
#endif
    return a;
}

/* Compare with the image, and free. */
static void array_check(struct array *a, const char *name)
{
    unsigned char *now = malloc(a->bytes + GUARD);
    device_buffer_copy(now, a->memory, a->bytes + GUARD);
    if (memcmp(now, a->image, a->bytes + GUARD) != 0) {
        size_t at = 0;
        while (now[at] == a->image[at])
            at++;
        CHECK(0, "%s differs at byte %zu of %zu: %s", name, at, a->bytes, what);
    }
    free(now);
    free(a->image);
#ifdef LATE_ENGINE
    late_engine_forget(a->memory);
#endif
    device_buffer_free(a->kind, a->memory);
}

static void expect(struct array *a, const void *bytes)
{
    memcpy(a->image, bytes, a->bytes);
}

#endif
