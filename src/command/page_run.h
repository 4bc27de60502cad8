/* What `hypersort report` draws of the report of a run: what sort --json or gather --json has printed. */
#ifndef PAGE_RUN_H
#define PAGE_RUN_H

#include "src/command/json_read.h"
#include "src/command/page.h"

/* Is `run` such a report? Not collective. */
bool is_run_report(const struct json_value *run);

/* title [bytes] = what was done, in a few words. Returns title. */
const char *run_title(const struct json_value *run, char *title, size_t bytes);

/* Add the head of the page, with what the run was; its phases, by rank; its paths; and what it took beside the least possible. */
void page_run(struct page *page, const struct json_value *run);

#endif
