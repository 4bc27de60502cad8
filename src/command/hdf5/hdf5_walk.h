/* A walk over all objects that hard links lead to below a group, including the groups within it: by name, or in the order of creation if a
 * group keeps it; a group comes before its members.
 *
 *     /PartType1  ParticleIDs                 "ParticleIDs"    a dataset
 *                 stars  Age                  "stars"          a group
 *                        back -> /PartType1   "stars/Age"      a dataset
 *                 old -> ParticleIDs          "stars/back"     left: a group around it
 *                                             "old"            a dataset if the link is hard, else left: a link
 *
 * An object that several hard links lead to comes under each name, a group with all its members. */
#ifndef HDF5_WALK_H
#define HDF5_WALK_H

#include <hdf5.h>
#include "kernels/base/status.h"

/* Called for each member.
 *   name    from the group on, with "/" between two names
 *   object  a dataset or a group, open during the call; -1: it is left out
 *   why     it is left out; else NULL */
typedef hsort_status hdf5_visit(void *user, const char *name, hid_t object, const char *why);

/* Visit what is below `group` until a visit fails; `path` is for texts. Not collective. Errors HSORT_FORMAT: the file is damaged or of a
 * later version of HDF5, groups are too deep, a name is too long, the same groups have too many names; those of `visit`. */
hsort_status hdf5_walk(const char *path, hid_t group, hdf5_visit *visit, void *user);

#endif
