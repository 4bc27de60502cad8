/* What `hypersort report` draws of a trace (hsort_write_trace()): a timeline, and where the time went. */
#ifndef PAGE_TIMELINE_H
#define PAGE_TIMELINE_H

#include "src/command/json_read.h"
#include "src/command/page.h"

/* Is it a trace? Nothing here is collective. */
bool is_trace(const struct json_value *trace);

/* May it be the trace that a run wrote, judging by the report of the run: does it have as many ranks, and as many spans in all? */
bool is_trace_of(const struct json_value *trace, const struct json_value *run);

/* Add the timeline, and a table of where the time went. Errors HSORT_HOST_MEMORY. */
hsort_status page_timeline(struct page *page, const struct json_value *trace);

#endif
