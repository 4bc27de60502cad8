/* Which site HYPERSORT_FAULT arms, and when it fails, with sites of this test's own, whose words have everything that a word may have. */
#include <stdbool.h>
#include "tests/support/check.h"
#undef HSORT_FAULTS
#define HSORT_FAULTS
#define FAULT_H /* in the place of kernels/base/fault.h */
#define FAULT_SITE_LIST(X)                 \
    X(FAULT_PLAIN, "rates")                \
    X(FAULT_LONGER, "rates_of_every_rank") \
    X(FAULT_DIGIT, "copy2d")

enum fault_site {
#define X(name, word) name,
    FAULT_SITE_LIST(X)
#undef X
        FAULT_SITES
};
void fault_arm(int rank);
void fault_set(enum fault_site site, int nth);
bool fault_hit(enum fault_site site);
void fault_pause(bool paused);
#include "kernels/base/fault.c"

/* Arm on rank 1 what `order` says: `site` must fail at its passage `nth`, and at no other; 0: at none. */
static void arms(const char *order, enum fault_site site, int nth)
{
    setenv("HYPERSORT_FAULT", order, 1);
    fault_arm(1);
    for (int passage = 1; passage <= 5; passage++)
        CHECK(fault_hit(site) == (passage == nth), "%s: passage %d of %s", order, passage, words[site]);
}

int main(void)
{
    arms("rates:1", FAULT_PLAIN, 1);
    arms("rates:1:3", FAULT_PLAIN, 3);
    arms("rates:0", FAULT_PLAIN, 0);
    arms("rates", FAULT_PLAIN, 0);
    arms("rate:1", FAULT_PLAIN, 0);
    arms("rates_of_every_rank:1:2", FAULT_LONGER, 2);
    arms("rates_of_every_rank:1:2", FAULT_PLAIN, 0);
    arms("copy2d:1", FAULT_DIGIT, 1);
    arms("rates:0,copy2d:1:4,rates:1", FAULT_DIGIT, 4);
    arms("copy2d:0,rates:1:2", FAULT_PLAIN, 2);
    fault_set(FAULT_DIGIT, 1);
    fault_pause(true);
    CHECK(!fault_hit(FAULT_DIGIT), "a passage while paused");
    fault_pause(false);
    CHECK(fault_hit(FAULT_DIGIT), "the first passage after a pause");
    return check_failures > 0;
}
