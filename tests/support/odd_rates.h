/* Rates for tests of the cost model: no sum of a few of them can be taken for another. */
#ifndef ODD_RATES_H
#define ODD_RATES_H

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "hypersort.h"
#include "tests/support/check.h"

static const double NEARLY = 1e-9;

/* Are these the same, except for what rounding makes of sums in another order? */
static inline bool same(double a, double b)
{
    return fabs(a - b) <= NEARLY * fabs(b) + 1e-300;
}

static inline hsort_rates odd_rates(hsort_engine engine, hsort_transport link)
{
    hsort_rates rates;
    CHECK(hsort_rates_init(&rates, sizeof rates, engine, link) == HSORT_OK, "rates");
    const double values[HSORT_RATES] = {
        [HSORT_RATE_SORT_4] = 2000,      [HSORT_RATE_SORT_8] = 1000, [HSORT_RATE_MERGE] = 16000,
        [HSORT_RATE_HOST_COPY] = 4000,   [HSORT_RATE_STEP] = 0.001,  [HSORT_RATE_MESSAGE] = 0.03,
        [HSORT_RATE_LINK_LATENCY] = 0.5, [HSORT_RATE_LINK] = 1000,   [HSORT_RATE_NETWORK_LATENCY] = 0.07,
        [HSORT_RATE_NETWORK] = 100};
    memcpy(rates.value, values, sizeof values);
    return rates;
}

#endif
