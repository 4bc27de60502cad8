/* What `hypersort report` draws of a trace (hsort_write_trace()): a timeline, and where the time went. */
#ifndef PAGE_TIMELINE_H
#define PAGE_TIMELINE_H

#include "src/command/json_read.h"
#include "src/command/page.h"

/* Is it a trace? Not collective, as the next. */
bool is_trace(const struct json_value *trace);

/* May it be the one that a run has written, by what the report of the run says: as many ranks, and as many spans in all? */
bool is_trace_of(const struct json_value *trace, const struct json_value *run);

/* Errors HSORT_HOST_MEMORY. */
hsort_status page_timeline(struct page *page, const struct json_value *trace);

#endif
