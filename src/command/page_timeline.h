/* What `hypersort report` draws of a trace (hsort_write_trace()): a timeline, and where the time went. */
#ifndef PAGE_TIMELINE_H
#define PAGE_TIMELINE_H

#include "src/command/json_read.h"
#include "src/command/page.h"

/* Is it a trace? Not collective. */
bool is_trace(const struct json_value *trace);

/* Errors HSORT_HOST_MEMORY. */
hsort_status page_timeline(struct page *page, const struct json_value *trace);

#endif
