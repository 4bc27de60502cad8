/* A made-up tree of files, in a folder of its own that is removed at the end. */
#ifndef TREE_H
#define TREE_H

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/support/check.h"

static char tree_folder[256];

static inline const char *tree_root(void)
{
    return tree_folder;
}

static inline void tree_open(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(tree_folder, sizeof tree_folder, "%s/hypersort-tree-XXXXXX", parent ? parent : "/tmp");
    CHECK(mkdtemp(tree_folder) != NULL, "no folder %s", tree_folder);
}

static inline int tree_remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind;
    return place->level > 0 ? remove(path) : 0;
}

/* Remove everything in it. */
static inline void tree_clear(void)
{
    nftw(tree_folder, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void tree_close(void)
{
    tree_clear();
    rmdir(tree_folder);
}

/* Write a file at `path` below the root, and make the folders that it needs. */
__attribute__((format(printf, 2, 3))) static inline void tree_write(const char *path, const char *format, ...)
{
    char whole[1024];
    snprintf(whole, sizeof whole, "%s/%s", tree_folder, path);
    for (char *slash = strchr(whole + strlen(tree_folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    CHECK(file != NULL, "cannot write %s", whole);
    if (!file)
        return;
    va_list args;
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    fclose(file);
}

#endif
