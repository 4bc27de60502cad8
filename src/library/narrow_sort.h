/* A sort of keys of 1 or 2 bytes: they are counted, and written anew. src/library/README.md pictures it. */
#ifndef NARROW_SORT_H
#define NARROW_SORT_H

#include "src/library/sort_memory.h"

/* Sort s->in [s->in_count], or what the source gives, to s->out [s->out_count], or the sink, on all ranks. Counts are agreed
 * on; any counts will do. No key leaves its rank. Collective.
 * After    s->form is FORM_DELIVERED, s->seconds are written. s->in is unchanged, unless it is s->out.
 * Memory   engine memory of the context: a table in workspace, and up to STREAM_PART_BYTES of KEPT_SCRATCH for keys that
 *          the engine does not reach. Host memory for three tables, freed on return.
 * Stop     there is no safe point; streams may be left.
 * Errors   same on every rank. No key is touched before all keys of all ranks are counted. */
hsort_status narrow_sort_run(struct sort *s);

#endif
