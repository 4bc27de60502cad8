/* The two ends of a sort whose keys come from a stream and go to one (key_stream.h). */
#ifndef SORT_STREAM_H
#define SORT_STREAM_H

#include "src/library/sort_memory.h"

/* Fill s->x.keys [x.count] from the source, and look at them. Collective. Errors HSORT_STOPPED, and all others of
 * the source and the engine, the same on every rank. */
hsort_status sort_load_stream(struct sort *s);

/* Look at the keys at s->held, which are the caller's bits again, as many as this rank asked for, and let the sink have
 * them. Collective. Errors as above. */
hsort_status sort_store_stream(struct sort *s);

/* Begin to look at keys. If s->check is NULL, the next two functions do nothing. Not collective. */
void stream_check_begin(struct sort *s);

/* Look at the next keys [count], in engine memory. Not collective. Errors: the engine's. */
hsort_status stream_check_add(const struct sort *s, struct verifier *verifier, const void *keys,
                              int64_t count);

/* Join what all ranks saw, in s->check. Collective. Errors HSORT_MPI, HSORT_HOST_MEMORY. */
hsort_status stream_check_end(struct sort *s);

/* Book the time since the last phase ended, for passes that have waited for all their work. Not collective. */
void sort_end_pass(struct sort *s, hsort_phase phase);

/* The transfer of `count` keys, or elements, from position `first` of a stream on. Its `memory` is not set. Pure. */
struct engine_transfer stream_transfer(const struct key_stream *stream, int64_t element_bytes, int64_t first,
                                       int64_t count);

#endif
