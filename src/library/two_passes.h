/* A sort of keys or elements in host memory that do not fit into engine memory: two passes through the engine, and no merge on
 * the CPU. src/library/README.md pictures it. */
#ifndef TWO_PASSES_H
#define TWO_PASSES_H

#include "src/library/sort_memory.h"

/* Sort s->in [s->in_count] to s->out [s->out_count] on all ranks; keys, or s->elements. s->passes is 2; counts are agreed
 * on, and positions are in the context.
 * Collective.
 * After    s->form is FORM_DELIVERED, s->runs and s->segments say what this rank had, s->seconds and
 *          s->x.moved_bytes are written. s->in is unchanged, except with options.overwrite_input.
 * Memory   engine memory: four slots in KEPT_SCRATCH, and workspace. All that the context keeps is dropped before, and these are
 *          dropped on return. Host memory for the runs, freed on return unless options.keep_host_memory is 1.
 * Errors   same on every rank. After HSORT_DEVICE_MEMORY and HSORT_HOST_MEMORY no key was touched.
 * Source   Peters, Schulz-Hildebrandt, Luttenberger 2010; Rahn, Sanders, Singler 2010; src/library/README.md. */
hsort_status two_passes_run(struct sort *s);

/* The same inside of a call on elements, to whose statistics it adds. The caller keeps the error line. Collective. */
hsort_status sort_elements_in_passes(struct sort *s);

/* Elements of the rank that has most, coming or going. Offsets [size + 1]: where those of each rank begin. Pure. */
int64_t most_of_ranks(int size, const int64_t *in_offset, const int64_t *out_offset);

#endif
