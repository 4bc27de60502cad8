#include "kernels/base/host_memory.h"
#include <string.h>
#include <unistd.h>
#include "kernels/base/cgroup.h"

/* The two kinds of memory cgroups, and the names of their files. */
struct memory_kind {
    struct cgroup_kind cgroup;
    const char *limit, *usage; /* files of a cgroup */
    const char *inactive_cache,
        *active_cache; /* in its memory.stat: page cache, of all cgroups below it too */
};

static const struct memory_kind kinds[] = {
    {{"cgroup", "memory"}, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
     "total_active_file"},
    {{"cgroup2", ""}, "memory.max", "memory.current", "inactive_file", "active_file"},
};

struct limit_list {
    const struct memory_kind *kind; /* of the cgroups that are visited */
    struct host_memory_limit *limit;
    int count;
};

static void add_limit(struct limit_list *list, uint64_t place, uint64_t available)
{
    if (list->count < HOST_MEMORY_LIMITS_MAX)
        list->limit[list->count++] = (struct host_memory_limit){place, available};
}

/* Bytes of page cache charged to a cgroup; 0 if it does not say. */
static uint64_t cgroup_cache(const char *directory, const struct memory_kind *kind)
{
    char line[128], word[64];
    unsigned long long bytes;
    uint64_t cache = 0;
    FILE *file = cgroup_open(directory, "memory.stat");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%63s %llu", word, &bytes) == 2 &&
            (strcmp(word, kind->inactive_cache) == 0 || strcmp(word, kind->active_cache) == 0))
            cache += bytes;
    if (file)
        fclose(file);
    return cache;
}

/* For cgroup_visit(). */
static void add_cgroup(void *limits, const char *directory)
{
    struct limit_list *list = limits;
    uint64_t limit, usage = 0;
    const uint64_t place = cgroup_place(directory);
    if (!cgroup_number(directory, list->kind->limit, &limit) || limit >= CGROUP_NO_LIMIT || place == 0)
        return;
    cgroup_number(directory, list->kind->usage, &usage);
    const uint64_t cache = cgroup_cache(directory, list->kind);
    usage = usage > cache ? usage - cache : 0;
    const uint64_t available = limit > usage ? limit - usage : 0;
    add_limit(list, place, available - available / 64);
}

/* Memory that is free, and memory that the page cache would give back. */
static uint64_t machine_available(const char *root)
{
    unsigned long long kib = 0;
    char line[128];
    bool found = false;
    FILE *file = cgroup_open(root, "proc/meminfo");
    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, "MemAvailable: %llu kB", &kib) == 1;
    if (file)
        fclose(file);
    // If /proc is not mounted, the page cache is not counted, so the result is rather too small.
    return found ? (uint64_t)kib * 1024
                 : (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

int host_memory_limits_below(const char *root, struct host_memory_limit *limits)
{
    struct limit_list list = {.limit = limits};
    add_limit(&list, 0, machine_available(root));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        list.kind = &kinds[i];
        cgroup_visit(root, &kinds[i].cgroup, add_cgroup, &list);
    }
    return list.count;
}

int host_memory_limits(struct host_memory_limit *limits)
{
    return host_memory_limits_below("", limits);
}

size_t host_memory_available(void)
{
    struct host_memory_limit limits[HOST_MEMORY_LIMITS_MAX];
    uint64_t smallest = SIZE_MAX;
    for (int i = host_memory_limits(limits) - 1; i >= 0; i--)
        if (limits[i].available < smallest)
            smallest = limits[i].available;
    return (size_t)smallest;
}
