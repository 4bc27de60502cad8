/* A range of consecutive places of an array, or of consecutive global positions. */
#ifndef PLACE_SPAN_H
#define PLACE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct place_span {
    int64_t first, end;
};

static inline bool place_span_is_empty(struct place_span span)
{
    return span.first >= span.end;
}

static inline size_t place_span_length(struct place_span span)
{
    return place_span_is_empty(span) ? 0 : (size_t)(span.end - span.first);
}

#endif
