/* Arrays of test_element_gather: each lies in engine memory between guards, and has an image of what it must hold. New arrays take
 * the memory that others gave back, because getting memory from a driver takes longer than what is tested. */
#ifndef GUARDED_ARRAY_H
#define GUARDED_ARRAY_H

#include "kernels/spare_memory.h"
#include "tests/mpi/rank_engine.h"
#include "tests/support/faults.h"

enum { GUARD = 64, POISON = 0xa5 };

static struct spare_memory array_memory;

/* A buffer in engine memory, between guards, and what it must hold. */
struct guarded_array {
    char *memory; /* [bytes + 2 * GUARD], as image and found */
    unsigned char *image, *found;
    size_t bytes;
};

/* Write the image to engine memory. */
static void array_put(struct guarded_array *a)
{
    copy_and_wait(a->memory, a->image, a->bytes + 2 * GUARD);
}

static void array_fetch(struct guarded_array *a)
{
    copy_and_wait(a->found, a->memory, a->bytes + 2 * GUARD);
}

/* Make an array that is all poison. */
static struct guarded_array array_make(size_t bytes)
{
    struct guarded_array a = {.bytes = bytes};
    const size_t room = bytes + 2 * GUARD;
    a.image = malloc(room);
    a.found = malloc(room);
    array_memory.engine = engine;
    if (!a.image || !a.found || spare_take(&array_memory, room, (void **)&a.memory) != HSORT_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(a.image, POISON, room);
    array_put(&a);
    return a;
}

static void *array_at(const struct guarded_array *a)
{
    return a->memory + GUARD;
}

static unsigned char *array_image(const struct guarded_array *a)
{
    return a->image + GUARD;
}

static void array_check(struct guarded_array *a, const char *which)
{
    size_t wrong = 0;
    array_fetch(a);
    while (wrong < a->bytes + 2 * GUARD && a->found[wrong] == a->image[wrong])
        wrong++;
    CHECK(wrong == a->bytes + 2 * GUARD, "%s: rank %d: byte %lld of %s, of %zu", faults_case, comm.rank,
          (long long)wrong - GUARD, which, a->bytes);
}

static void array_drop(struct guarded_array *a)
{
    spare_give(&array_memory, a->memory);
#ifdef __SANITIZE_ADDRESS__
    spare_drop(&array_memory); // each array has memory of its own, so that accesses beyond its guards are seen
#endif
    free(a->image);
    free(a->found);
}

#endif
