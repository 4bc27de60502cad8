/* The engine memory that one pass over elements takes, if they are sorted by codes: arithmetic of counts, for the sort itself
 * (element_passes.c) and for a sort that is only planned (disk_forecast.c). */
#ifndef ELEMENT_NEED_H
#define ELEMENT_NEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernels/base/status.h"

struct element_sizes {
    int ranks;
    int64_t total;            /* elements of all ranks */
    int64_t count, out_count; /* of this rank, coming and going */
    int code_bytes;
    int rung;           /* of the codes' sort */
    bool in_two_rounds; /* keys and positions do not fit into one code */
    size_t
        carried_bytes; /* of an element, those that go to where its key goes; 0: the order alone is wanted */
};

/* Bytes of each part by itself, because a context keeps some of the parts for other calls. */
struct element_need {
    size_t index;     /* the order, beside the elements */
    size_t apart;     /* between two rounds, and to carry elements to other ranks */
    size_t slice;     /* through which elements go there */
    size_t codes;     /* as they come and go */
    size_t buffer;    /* each of the two that sorts of codes take */
    size_t workspace; /* of the codes' sort */
};

/* Bytes of workspace that a sort of so many keys, with scratch for as many, takes. rung -1: whichever suits. */
typedef hsort_status (*element_workspace_fn)(void *user, int rung, int key_bytes, int64_t keys,
                                             size_t *bytes);

/* Write need [1]. Not collective. Errors: those of `workspace`. */
hsort_status element_need_find(const struct element_sizes *sizes, element_workspace_fn workspace, void *user,
                               struct element_need *need);

/* Bytes that a gather by an index of so many entries takes on a rank, beside the arrays. Pure. */
size_t element_need_of_gather(int ranks, int64_t entries, size_t element_bytes);

/* All bytes of a need. Pure. */
size_t element_need_bytes(const struct element_need *need);

#endif
