#include "src/command/hdf5/hdf5_walk.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/command/hdf5/hdf5_error.h"

/* GROUP_AGAIN_MOST bounds the work if groups with several names hold groups with several names, and so on. */
enum { GROUP_DEPTH_MOST = 32, GROUP_AGAIN_MOST = 1024 };

struct walk {
    const char *path; /* of the group, for texts */
    hdf5_visit *visit;
    void *user;
    haddr_t around[GROUP_DEPTH_MOST]; /* the groups around the place of the walk, the outermost first */
    int depth;                        /* how many */
    int again;                        /* how many groups with several names were entered */
    char name[PATH_MAX];              /* of the member that is looked at */
};

static hsort_status walk_group(struct walk *walk, hid_t group);

/* The order in which members are visited: that of their creation if the group keeps it. */
static H5_index_t member_order(hid_t group)
{
    const hid_t given = H5Gget_create_plist(group);
    unsigned order = 0;
    H5Pget_link_creation_order(given, &order);
    H5Pclose(given);
    return order & H5P_CRT_ORDER_TRACKED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
}

/* Set the name, from `length` on, to the name of member `number`. */
static hsort_status read_member_name(struct walk *walk, hid_t group, H5_index_t order, hsize_t number,
                                     size_t length)
{
    const size_t room = sizeof walk->name - length;
    const ssize_t added = room == 0 ? 0
                                    : H5Lget_name_by_idx(group, ".", order, H5_ITER_INC, number,
                                                         walk->name + length, room, H5P_DEFAULT);
    if (added < 0)
        return hdf5_fail(HSORT_FORMAT, "%s: the names of its members cannot be read", walk->path);
    return (size_t)added < room
               ? HSORT_OK
               : status_fail(HSORT_FORMAT, "%s: '%.100s...' is too long a name", walk->path, walk->name);
}

/* Enter a group below the one that is walked. */
static hsort_status enter_group(struct walk *walk, hid_t group)
{
    H5O_info_t facts;
    if (H5Oget_info(group, &facts) < 0)
        return hdf5_fail(HSORT_FORMAT, "%s: '%.100s' cannot be looked at", walk->path, walk->name);
    for (int i = 0; i < walk->depth; i++)
        if (walk->around[i] == facts.addr)
            return walk->visit(walk->user, walk->name, H5I_INVALID_HID, "a group around it");
    if (walk->depth == GROUP_DEPTH_MOST)
        return status_fail(HSORT_FORMAT, "%s: '%.100s' is more than %d groups deep", walk->path, walk->name,
                           GROUP_DEPTH_MOST);
    if (facts.rc > 1 && ++walk->again > GROUP_AGAIN_MOST)
        return status_fail(HSORT_FORMAT,
                           "%s: '%.100s': more than %d names lead to groups that have several names",
                           walk->path, walk->name, GROUP_AGAIN_MOST);
    TRY(walk->visit(walk->user, walk->name, group, NULL));
    walk->around[walk->depth++] = facts.addr;
    const hsort_status status = walk_group(walk, group);
    walk->depth--;
    return status;
}

/* Visit the member of `group` whose own name begins at `own`. */
static hsort_status visit_member(struct walk *walk, hid_t group, const char *own)
{
    H5L_info_t link;
    if (H5Lget_info(group, own, &link, H5P_DEFAULT) >= 0 && link.type != H5L_TYPE_HARD)
        return walk->visit(walk->user, walk->name, H5I_INVALID_HID, "a link");
    const hid_t object = H5Oopen(group, own, H5P_DEFAULT);
    if (object < 0)
        return hdf5_fail(HSORT_FORMAT, "%s: '%.100s' cannot be opened", walk->path, walk->name);
    const H5I_type_t kind = H5Iget_type(object);
    const hsort_status status = kind == H5I_GROUP ? enter_group(walk, object)
                                : kind == H5I_DATASET
                                    ? walk->visit(walk->user, walk->name, object, NULL)
                                    : walk->visit(walk->user, walk->name, H5I_INVALID_HID, "a type");
    H5Oclose(object);
    return status;
}

static hsort_status walk_group(struct walk *walk, hid_t group)
{
    H5G_info_t facts;
    size_t length = strlen(walk->name);
    const H5_index_t order = member_order(group);
    if (H5Gget_info(group, &facts) < 0)
        return hdf5_fail(HSORT_FORMAT, "%s: cannot be looked at", walk->path);
    if (length > 0)
        length += (size_t)snprintf(walk->name + length, sizeof walk->name - length, "/");
    for (hsize_t i = 0; i < facts.nlinks; i++) {
        TRY(read_member_name(walk, group, order, i, length));
        TRY(visit_member(walk, group, walk->name + length));
    }
    return HSORT_OK;
}

hsort_status hdf5_walk(const char *path, hid_t group, hdf5_visit *visit, void *user)
{
    H5O_info_t facts;
    struct walk *walk = calloc(1, sizeof *walk);
    if (!walk)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory to look at its members", path);
    walk->path = path;
    walk->visit = visit;
    walk->user = user;
    hsort_status status = HSORT_OK;
    if (H5Oget_info(group, &facts) < 0)
        status = hdf5_fail(HSORT_FORMAT, "%s: cannot be looked at", path);
    walk->around[walk->depth++] = facts.addr;
    if (status == HSORT_OK)
        status = walk_group(walk, group);
    free(walk);
    return status;
}
