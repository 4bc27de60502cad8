#include "kernels/base/fault.h"

#ifdef HSORT_FAULTS
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const words[FAULT_SITES] = {
#define X(name, word) word,
    FAULT_SITE_LIST(X)
#undef X
};

static atomic_int passages_left[FAULT_SITES];
static atomic_bool is_paused;

void fault_pause(bool paused)
{
    atomic_store(&is_paused, paused);
}

void fault_set(enum fault_site site, int nth)
{
    atomic_store(&passages_left[site], nth);
}

bool fault_hit(enum fault_site site)
{
    if (atomic_load(&is_paused))
        return false;
    // Disarmed sites stay at 0: decrementing them would arm them again after 2^32 passages.
    if (atomic_load(&passages_left[site]) <= 0)
        return false;
    return atomic_fetch_sub(&passages_left[site], 1) == 1;
}

void fault_arm(int rank)
{
    for (const char *order = getenv("HYPERSORT_FAULT"); order; order = strchr(order, ',')) {
        int on_rank, nth = 1;
        order += *order == ',';
        const size_t length = strcspn(order, ":,");
        if (sscanf(order + length, ":%d:%d", &on_rank, &nth) < 1 || on_rank != rank)
            continue;
        for (int site = 0; site < FAULT_SITES; site++)
            if (strlen(words[site]) == length && memcmp(order, words[site], length) == 0)
                fault_set((enum fault_site)site, nth);
    }
}
#else
typedef int fault_is_empty; // ISO C wants a declaration in every file
#endif
