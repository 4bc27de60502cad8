#include "kernels/base/host_memory.h"
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The two kinds of memory cgroups, and the names of their files. */
struct cgroup_kind {
    const char *filesystem, *controller; /* in mountinfo; in /proc/self/cgroup, "" for version 2 */
    const char *limit, *usage;           /* files of a cgroup */
    const char *inactive_cache,
        *active_cache; /* in its memory.stat: page cache, of all cgroups below it too */
};

static const struct cgroup_kind kinds[] = {
    {"cgroup", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
     "total_active_file"},
    {"cgroup2", "", "memory.max", "memory.current", "inactive_file", "active_file"},
};

/* Version 1 says "no limit" by a number just below 2^63. */
static const uint64_t NO_LIMIT = UINT64_C(1) << 60;

struct limit_list {
    struct host_memory_limit *limit;
    int count;
};

static void add_limit(struct limit_list *list, uint64_t place, uint64_t available)
{
    if (list->count < HOST_MEMORY_LIMITS_MAX)
        list->limit[list->count++] = (struct host_memory_limit){place, available};
}

static FILE *open_below(const char *directory, const char *name)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    return length < (int)sizeof path ? fopen(path, "r") : NULL;
}

/* ---- one cgroup ---- */

/* The number that a file of a cgroup holds; false if it is not there or holds none, as "max". */
static bool read_number(const char *directory, const char *name, uint64_t *number)
{
    char line[64] = "", *end = line;
    FILE *file = open_below(directory, name);
    if (!file)
        return false;
    if (fgets(line, sizeof line, file)) {
        errno = 0;
        *number = strtoull(line, &end, 10);
    }
    fclose(file);
    return end != line && errno == 0;
}

/* Bytes of page cache charged to a cgroup; 0 if it does not say. */
static uint64_t cgroup_cache(const char *directory, const struct cgroup_kind *kind)
{
    char line[128], word[64];
    unsigned long long bytes;
    uint64_t cache = 0;
    FILE *file = open_below(directory, "memory.stat");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%63s %llu", word, &bytes) == 2 &&
            (strcmp(word, kind->inactive_cache) == 0 || strcmp(word, kind->active_cache) == 0))
            cache += bytes;
    if (file)
        fclose(file);
    return cache;
}

static void add_cgroup(const char *directory, const struct cgroup_kind *kind, struct limit_list *list)
{
    struct stat identity;
    uint64_t limit, usage = 0;
    if (!read_number(directory, kind->limit, &limit) || limit >= NO_LIMIT || stat(directory, &identity) != 0)
        return;
    read_number(directory, kind->usage, &usage);
    const uint64_t cache = cgroup_cache(directory, kind);
    usage = usage > cache ? usage - cache : 0;
    const uint64_t available = limit > usage ? limit - usage : 0;
    const uint64_t place =
        (uint64_t)identity.st_dev * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)identity.st_ino;
    add_limit(list, place ? place : 1, available - available / 64);
}

/* ---- where this process's cgroups are ---- */

/* Is `word` in a list with commas between them? */
static bool is_listed(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* The path of this process's cgroup, as /proc/self/cgroup has it: lines ID:CONTROLLERS:PATH. */
static bool find_cgroup(const char *root, const struct cgroup_kind *kind, char *path)
{
    char *line = NULL;
    size_t bytes = 0;
    bool found = false;
    FILE *file = open_below(root, "proc/self/cgroup");
    while (file && !found && getline(&line, &bytes, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *place = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!place)
            continue;
        *controllers++ = *place++ = '\0';
        found = (kind->controller[0] ? is_listed(controllers, kind->controller) : controllers[0] == '\0') &&
                snprintf(path, PATH_MAX, "%s", place) < PATH_MAX;
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

/* Undo the escapes of mountinfo, such as \040 for a blank, in place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        unsigned code;
        if (sscanf(from, "\\%3o", &code) == 1) {
            *to = (char)code;
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* Read a line of mountinfo, "ID PARENT DEVICE TOP POINT OPTIONS ... - FILESYSTEM SOURCE SUPER_OPTIONS": is it
 * of this kind? Then
 * *top is the cgroup that is mounted, *point where. The line is changed. */
static bool read_mount(char *line, const struct cgroup_kind *kind, char **top, char **point)
{
    char *kept = NULL, *tail = strstr(line, " - ");
    if (!tail)
        return false;
    *tail = '\0';
    char *filesystem = strtok_r(tail + 3, " \n", &kept);
    if (!filesystem || strcmp(filesystem, kind->filesystem) != 0)
        return false;
    strtok_r(NULL, " \n", &kept);
    char *options = strtok_r(NULL, " \n", &kept);
    if (kind->controller[0] && !(options && is_listed(options, kind->controller)))
        return false;
    strtok_r(line, " ", &kept);
    strtok_r(NULL, " ", &kept);
    strtok_r(NULL, " ", &kept);
    *top = strtok_r(NULL, " ", &kept);
    *point = strtok_r(NULL, " ", &kept);
    if (!*top || !*point)
        return false;
    unescape(*top);
    unescape(*point);
    return true;
}

/* What follows `top` in `path`; NULL if that is not below it: a container may show a cgroup as "/" that is
 * none of "/". */
static const char *path_below(const char *top, const char *path)
{
    const size_t length = strcmp(top, "/") == 0 ? 0 : strlen(top);
    if (strncmp(path, top, length) != 0 || (path[length] != '/' && path[length] != '\0') ||
        strstr(path + length, "/.."))
        return NULL;
    return strcmp(path + length, "/") == 0 ? "" : path + length;
}

/* Add the limits of the cgroup at `below` in the mount at `point`, and of those above it. */
static void add_cgroups(const char *root, const char *point, const char *below,
                        const struct cgroup_kind *kind, struct limit_list *list)
{
    char directory[2 * PATH_MAX];
    const int length = snprintf(directory, sizeof directory, "%s%s%s", root, point, below);
    const size_t highest = strlen(root) + strlen(point);
    if (length >= (int)sizeof directory)
        return;
    for (size_t end = (size_t)length;;) {
        add_cgroup(directory, kind, list);
        if (end <= highest)
            return;
        do
            end--;
        while (end > highest && directory[end] != '/');
        directory[end] = '\0';
    }
}

/* Find the cgroup among the mounts of its kind: one that shows it, else any, which then shows what this
 * process may see. */
static void add_kind(const char *root, const struct cgroup_kind *kind, struct limit_list *list)
{
    char path[PATH_MAX], *line = NULL, *top, *point, *any = NULL;
    const char *below = NULL;
    size_t bytes = 0;
    if (!find_cgroup(root, kind, path))
        return;
    FILE *file = open_below(root, "proc/self/mountinfo");
    while (file && !below && getline(&line, &bytes, file) > 0) {
        if (!read_mount(line, kind, &top, &point))
            continue;
        below = path_below(top, path);
        if (below)
            add_cgroups(root, point, below, kind, list);
        else if (!any)
            any = strdup(point);
    }
    if (!below && any)
        add_cgroups(root, any, "", kind, list);
    free(any);
    free(line);
    if (file)
        fclose(file);
}

/* ---- the machine ---- */

/* Free, and what the page cache would give back. */
static uint64_t machine_available(const char *root)
{
    unsigned long long kib = 0;
    char line[128];
    bool found = false;
    FILE *file = open_below(root, "proc/meminfo");
    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, "MemAvailable: %llu kB", &kib) == 1;
    if (file)
        fclose(file);
    // Where /proc is not mounted: without the page cache, so rather too little.
    return found ? (uint64_t)kib * 1024
                 : (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

int host_memory_limits_below(const char *root, struct host_memory_limit *limits)
{
    struct limit_list list = {.limit = limits};
    add_limit(&list, 0, machine_available(root));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        add_kind(root, &kinds[i], &list);
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
