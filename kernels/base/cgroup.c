#include "kernels/base/cgroup.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- one cgroup ---- */

FILE *cgroup_open(const char *directory, const char *name)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    return length < (int)sizeof path ? fopen(path, "r") : NULL;
}

bool cgroup_number(const char *directory, const char *name, uint64_t *number)
{
    char line[64] = "", *end = line;
    FILE *file = cgroup_open(directory, name);
    if (!file)
        return false;
    if (fgets(line, sizeof line, file)) {
        errno = 0;
        *number = strtoull(line, &end, 10);
    }
    fclose(file);
    return end != line && errno == 0;
}

uint64_t cgroup_place(const char *directory)
{
    struct stat identity;
    if (stat(directory, &identity) != 0)
        return 0;
    const uint64_t place =
        (uint64_t)identity.st_dev * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)identity.st_ino;
    return place ? place : 1;
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

/* Find the path of this process's cgroup in /proc/self/cgroup, which has lines ID:CONTROLLERS:PATH. */
static bool find_cgroup(const char *root, const struct cgroup_kind *kind, char *path)
{
    char *line = NULL;
    size_t bytes = 0;
    bool found = false;
    FILE *file = cgroup_open(root, "proc/self/cgroup");
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

/* Is a line of mountinfo, "ID PARENT DEVICE TOP POINT OPTIONS ... - FILESYSTEM SOURCE SUPER_OPTIONS", a mount
 * of this kind? If so, *top is the cgroup that is mounted, and *point is where. Changes the line. */
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

/* The part of `path` below `top`; NULL if `path` is not below it: a container may show as "/" a cgroup that is
 * not "/". */
static const char *path_below(const char *top, const char *path)
{
    const size_t length = strcmp(top, "/") == 0 ? 0 : strlen(top);
    if (strncmp(path, top, length) != 0 || (path[length] != '/' && path[length] != '\0') ||
        strstr(path + length, "/.."))
        return NULL;
    return strcmp(path + length, "/") == 0 ? "" : path + length;
}

/* Visit the cgroup at `below` in the mount at `point`, and those above it. */
static void visit_up(const char *root, const char *point, const char *below,
                     void (*visit)(void *user, const char *directory), void *user)
{
    char directory[2 * PATH_MAX];
    const int length = snprintf(directory, sizeof directory, "%s%s%s", root, point, below);
    const size_t highest = strlen(root) + strlen(point);
    if (length >= (int)sizeof directory)
        return;
    for (size_t end = (size_t)length;;) {
        visit(user, directory);
        if (end <= highest)
            return;
        do
            end--;
        while (end > highest && directory[end] != '/');
        directory[end] = '\0';
    }
}

/* Takes a mount of its kind that shows the cgroup; if there is none, any mount of its kind, which shows what this process may see. */
void cgroup_visit(const char *root, const struct cgroup_kind *kind,
                  void (*visit)(void *user, const char *directory), void *user)
{
    char path[PATH_MAX], *line = NULL, *top, *point, *any = NULL;
    const char *below = NULL;
    size_t bytes = 0;
    if (!find_cgroup(root, kind, path))
        return;
    FILE *file = cgroup_open(root, "proc/self/mountinfo");
    while (file && !below && getline(&line, &bytes, file) > 0) {
        if (!read_mount(line, kind, &top, &point))
            continue;
        below = path_below(top, path);
        if (below)
            visit_up(root, point, below, visit, user);
        else if (!any)
            any = strdup(point);
    }
    if (!below && any)
        visit_up(root, any, "", visit, user);
    free(any);
    free(line);
    if (file)
        fclose(file);
}
