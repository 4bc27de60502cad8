/* An allocation is an anonymous file. Its first page holds the number of processes that map it; the memory
 * follows.
 *
 *     [ mapped | memory ............ ]      another process opens /proc/PID/fd/FD and maps the same pages
 *
 * Linked with --wrap=engine_open_host, this is every host engine of the program, and device_buffer_alloc()
 * gives memory of the caller's that can be exported, or that passes for pinned host memory. */
#include "tests/support/shared_engine.h"
#include <fcntl.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/support/device_buffer.h"
#ifdef LATE_ENGINE
#include "tests/support/late_engine.h"
#endif

enum { HEAD = 4096, ALLOCATIONS = 128, PINNED = 16, LEFT_MAX = ENGINE_REGIONS };

hsort_status __real_engine_open_host(int threads, size_t memory_limit, struct engine **engine);
hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine);

struct allocation_head {
    atomic_int mapped;
};

static struct allocation {
    char *pages; /* NULL: this place is free */
    size_t bytes;
    int file;
    bool lasting;
    int64_t serial;
} allocations[ALLOCATIONS];

static struct mapping {
    char *pages;
    size_t bytes;
    struct engine_peer_handle handle;
} mappings[ALLOCATIONS];

/* Host memory that only copies reach, or so the engine says. */
static struct pinned {
    char *memory; /* NULL: this place is free */
    size_t bytes;
} pinned[PINNED];

/* What is in a handle's bytes. */
struct allocation_name {
    int64_t serial, process, file, rank;
};

bool (*shared_may_map)(int owner, int reader);
bool shared_leaves_regions, shared_is_off, shared_can_partition = true;
int shared_open_fails, shared_opened, shared_mapped, shared_fills_up;
int64_t shared_written;

bool shared_some_may(int owner, int reader)
{
    return (owner + reader) % 3 == 1;
}

static int own_rank(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/* Unless the condition holds, end the test: it has failed, and what follows would make no sense. */
static void fail_unless(bool condition, const char *text)
{
    if (condition)
        return;
    fprintf(stderr, "shared_engine.c: rank %d %s\n", own_rank(), text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *make_shared(size_t bytes, bool lasting)
{
    static int64_t serial;
    int place = 0;
    while (place < ALLOCATIONS && allocations[place].pages)
        place++;
    if (place == ALLOCATIONS)
        return NULL;
    struct allocation *a = &allocations[place];
    *a = (struct allocation){.bytes = HEAD + bytes, .lasting = lasting, .serial = ++serial};
    a->file = memfd_create("hypersort_test", MFD_CLOEXEC);
    if (a->file < 0)
        return NULL;
    void *pages = MAP_FAILED;
    if (ftruncate(a->file, (off_t)a->bytes) == 0)
        pages = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->file, 0);
    if (pages == MAP_FAILED) {
        close(a->file);
        return NULL;
    }
    a->pages = pages;
    return a->pages + HEAD;
}

void *shared_alloc(size_t bytes)
{
    return make_shared(bytes, false);
}

void shared_free(void *memory)
{
    for (int place = 0; memory && place < ALLOCATIONS; place++) {
        struct allocation *a = &allocations[place];
        if (!a->pages || a->pages + HEAD != memory)
            continue;
        fail_unless(atomic_load(&((struct allocation_head *)a->pages)->mapped) == 0,
                    "frees memory that others still map");
        munmap(a->pages, a->bytes);
        close(a->file);
        a->pages = NULL;
        return;
    }
    fail_unless(!memory, "frees what was never allocated");
}

static hsort_status alloc_pages(struct engine *engine, size_t bytes, void **memory)
{
    (void)engine;
    *memory = NULL;
    if (bytes > 0 && !fault_hit(FAULT_ALLOC))
        *memory = make_shared(bytes, true);
    return *memory || bytes == 0 ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no %zu bytes to share", bytes);
}

static void free_pages(struct engine *engine, void *memory)
{
    (void)engine;
    shared_free(memory);
}

static hsort_status export_memory(struct engine *engine, const void *memory,
                                  struct engine_peer_handle *handle)
{
    (void)engine;
    memset(handle, 0, sizeof *handle);
    for (int place = 0; place < ALLOCATIONS; place++) {
        const struct allocation *a = &allocations[place];
        const char *at = memory;
        if (!a->pages || at < a->pages || at >= a->pages + a->bytes)
            continue;
        const struct allocation_name name = {a->serial, getpid(), a->file, own_rank()};
        memcpy(handle->allocation, &name, sizeof name);
        handle->offset = (uint64_t)(at - a->pages);
        handle->bytes = a->bytes;
        handle->lasting = a->lasting;
        return HSORT_OK;
    }
    return HSORT_ARGUMENT;
}

static hsort_status open_memory(struct engine *engine, const struct engine_peer_handle *handle, void **memory)
{
    struct allocation_name name;
    char path[64];
    int place = 0;
    (void)engine;
    *memory = NULL;
    memcpy(&name, handle->allocation, sizeof name);
    fail_unless(name.rank != own_rank(), "opens its own memory");
    for (int i = 0; i < ALLOCATIONS; i++)
        fail_unless(!mappings[i].pages || memcmp(mappings[i].handle.allocation, handle->allocation,
                                                 sizeof handle->allocation) != 0,
                    "opens an allocation twice");
    while (place < ALLOCATIONS - 1 && mappings[place].pages)
        place++;
    const bool may = !shared_may_map || shared_may_map((int)name.rank, own_rank());
    if (!may || (shared_open_fails > 0 && --shared_open_fails == 0))
        return status_fail(HSORT_CUDA, "memory of rank %d may not be mapped", (int)name.rank);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)name.process, (int)name.file);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    void *pages =
        file < 0 ? MAP_FAILED : mmap(NULL, handle->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (pages == MAP_FAILED || mappings[place].pages)
        return status_fail(HSORT_CUDA, "cannot map %s", path);
    atomic_fetch_add(&((struct allocation_head *)pages)->mapped, 1);
    mappings[place] = (struct mapping){pages, handle->bytes, *handle};
    shared_opened++;
    shared_mapped++;
    *memory = pages;
    return HSORT_OK;
}

static void close_memory(struct engine *engine, void *memory)
{
    (void)engine;
    for (int place = 0; memory && place < ALLOCATIONS; place++) {
        if (mappings[place].pages != memory)
            continue;
        atomic_fetch_sub(&((struct allocation_head *)memory)->mapped, 1);
        munmap(memory, mappings[place].bytes);
        mappings[place].pages = NULL;
        shared_mapped--;
        return;
    }
    fail_unless(!memory, "closes what is not open");
}

/* ---- regions that are left in no order ----------------------------------------------------------------- */

static const struct engine_ops *host_ops;
static struct exchanged {
    char *first, *last;
} exchanged[LEFT_MAX];
static int exchanged_count, sorts, settles;

static void exchange_keys(struct exchanged ends, size_t key_bytes)
{
    char key[sizeof(uint128)];
    memcpy(key, ends.first, key_bytes);
    memcpy(ends.first, ends.last, key_bytes);
    memcpy(ends.last, key, key_bytes);
}

static hsort_status partition_keys(struct engine *engine, int key_bytes, const struct raw_keys *bits,
                                   int64_t count, const struct engine_map *map, void *workspace, void *to)
{
    exchanged_count = 0;
    return host_ops->partition->scatter(engine, key_bytes, bits, count, map, workspace, to);
}

static hsort_status partition_to_rooms(struct engine *engine, int key_bytes, const struct raw_keys *bits,
                                       int64_t count, const struct engine_map *map, void *workspace, void *to,
                                       int64_t room, int64_t *counts, int64_t *begins,
                                       enum engine_scattered *done)
{
    exchanged_count = 0;
    return host_ops->partition->scatter_to_rooms(engine, key_bytes, bits, count, map, workspace, to, room,
                                                 counts, begins, done);
}

static hsort_status sort_regions(struct engine *engine, int key_bytes, const struct engine_map *map,
                                 const struct engine_piece *pieces, int count, const struct raw_keys *bits,
                                 void *workspace, void *scratch, void *out)
{
    TRY(host_ops->partition->sort_regions(engine, key_bytes, map, pieces, count, bits, workspace, scratch,
                                          out));
    for (int i = 0; i < count; i++)
        shared_written += pieces[i].keys ? 0 : pieces[i].count;
    if (!bits || !shared_leaves_regions || sorts++ % 3 == 0)
        return HSORT_OK;
    char *first = out;
    for (int i = 0; i < count;) {
        const int region = pieces[i].region;
        int64_t keys = 0;
        for (; i < count && pieces[i].region == region; i++)
            keys += pieces[i].count;
        if (keys > 1 && exchanged_count < LEFT_MAX) {
            exchanged[exchanged_count] = (struct exchanged){first, first + (keys - 1) * key_bytes};
            exchange_keys(exchanged[exchanged_count++], (size_t)key_bytes);
        }
        first += keys * key_bytes;
    }
    return HSORT_OK;
}

static hsort_status settle_regions(struct engine *engine, int key_bytes, const struct raw_keys *bits,
                                   void *workspace, void *scratch, size_t scratch_bytes, bool *unsorted)
{
    TRY(host_ops->partition->settle_regions(engine, key_bytes, bits, workspace, scratch, scratch_bytes,
                                            unsorted));
    *unsorted = *unsorted || (exchanged_count > 0 && settles++ % 2 == 0);
    for (int i = 0; i < exchanged_count && !*unsorted; i++)
        exchange_keys(exchanged[i], (size_t)key_bytes);
    exchanged_count = 0;
    return HSORT_OK;
}

/* ---- host memory --------------------------------------------------------------------------------------- */

static hsort_status space_of(struct engine *engine, const void *pointer, enum engine_space *space)
{
    const char *at = pointer;
    TRY(host_ops->space_of(engine, pointer, space));
    for (int place = 0; place < PINNED; place++)
        if (pinned[place].memory && at >= pinned[place].memory &&
            at < pinned[place].memory + pinned[place].bytes)
            *space = SPACE_PINNED;
    return HSORT_OK;
}

static hsort_status memory_free(struct engine *engine, size_t *bytes)
{
    TRY(host_ops->memory_free(engine, bytes));
    if (shared_fills_up == 1)
        *bytes = 1;
    else if (shared_fills_up > 1)
        shared_fills_up--;
    return HSORT_OK;
}

static void *alloc_pinned(size_t bytes)
{
    for (int place = 0; place < PINNED; place++)
        if (!pinned[place].memory) {
            pinned[place] = (struct pinned){aligned_alloc(16, (bytes + 15) / 16 * 16), bytes};
            return pinned[place].memory;
        }
    return NULL;
}

static void free_pinned(void *memory)
{
    for (int place = 0; memory && place < PINNED; place++)
        if (pinned[place].memory == memory)
            pinned[place].memory = NULL;
    free(memory);
}

/* ---- the engine ---------------------------------------------------------------------------------------- */

static bool can_partition(const struct engine *engine)
{
    (void)engine;
    return shared_can_partition;
}

static void share(struct engine *engine)
{
    static const struct engine_peer_ops peer = {
        .export_memory = export_memory, .open = open_memory, .close = close_memory};
    static struct engine_partition_ops partition;
    static struct engine_ops shared;
    host_ops = engine->ops;
    shared = *host_ops;
    partition = *host_ops->partition;
    partition.can = can_partition;
    partition.scatter = partition_keys;
    partition.scatter_to_rooms = partition_to_rooms;
    partition.sort_regions = sort_regions;
    partition.settle_regions = settle_regions;
    shared.partition = &partition;
    shared.space_of = space_of;
    shared.alloc = alloc_pages;
    shared.free = free_pages;
    shared.memory_free = memory_free;
    shared.peer = &peer;
    engine->ops = &shared;
}

hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine)
{
    TRY(__real_engine_open_host(threads, memory_limit, engine));
    if (!shared_is_off)
        share(*engine);
#ifdef LATE_ENGINE
    late_engine_wrap(*engine);
#endif
    return HSORT_OK;
}

hsort_status shared_engine_open(struct engine **engine)
{
    return __wrap_engine_open_host(1, 0, engine);
}

/* ---- device_buffer.h ----------------------------------------------------------------------------------- */

int device_buffer_kinds(int device)
{
    return device < 0 ? 1 : BUFFER_PINNED + 1;
}

void *device_buffer_alloc(enum buffer_kind kind, size_t bytes)
{
    return kind == BUFFER_PINNED ? alloc_pinned(bytes) : shared_alloc(bytes);
}

void device_buffer_free(enum buffer_kind kind, void *memory)
{
    if (kind == BUFFER_PINNED)
        free_pinned(memory);
    else
        shared_free(memory);
}

bool device_buffer_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return true;
}

bool device_buffer_copy_late(void *to, const void *from, size_t bytes, bool by_default, void **stream)
{
    (void)by_default;
    *stream = NULL;
    return device_buffer_copy(to, from, bytes);
}
