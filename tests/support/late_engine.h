/* A host engine whose streams do their work late. The engine of kernels/host/ does everything in the call, so nobody notices if a wait
 * is missing between two streams, or before the host looks. Here work that engine.h calls asynchronous is queued, and done in the
 * order of its stream: at stream_synchronize(), when another stream waits for it, or before a call that returns a result. A seed also
 * decides for each stream whether work is done at the next call, at any later call by chance, or only when somebody must have it.
 *
 *     copy(IN)  record(IN)  wait(WORK, IN)  merge(WORK)      nothing has been done yet
 *     stream_synchronize(WORK)                               copy, merge
 *     without wait(WORK, IN)                                 merge, of what was there before the copy
 *
 * Copies are queued between memory that the engine knows: from alloc(), alloc_host(), pin(), open(), and some of the caller's.
 * Other copies are done in the call. But if nothing is known about the source, which is then a variable of the library's, the bytes may
 * be read in the call and stored late, as CUDA does. The next event_done(), stream_synchronize() or call that returns a result reports
 * what has failed late.
 * Linked with --wrap=engine_open_host, this is every host engine of the program; with shared_engine.c, and SHARED_ENGINE and
 * LATE_ENGINE defined, it is around that engine. The queues belong to the process, not to an engine; one thread at a time calls. */
#ifndef LATE_ENGINE_H
#define LATE_ENGINE_H

#include <stdbool.h>
#include "kernels/engine.h"

/* Draw anew how late work is done. */
void late_engine_seed(uint64_t seed);

/* The nth next question of this process whether an event has come is answered with a failure; 0 or less: none. */
extern int late_question_fails;

/* The nth next work of this process fails when it is done, or the nth next work that packs; 0 or less: none. */
extern int late_work_fails, late_pack_fails;

/* Note memory of the caller's, until it is forgotten, which must be before it is freed. is_reached: asynchronous copies reach it, as
 * they do device memory. */
void late_engine_note(const void *memory, size_t bytes, bool is_reached);
void late_engine_forget(const void *memory);

/* How many faults there were since the last time, to be asked when a call of the public interface has returned; `failed`: the call
 * reported a failure. Each fault has had a line on stderr:
 *   - memory that queued work touches was freed, unpinned, unmapped or forgotten
 *   - work is still queued
 *   - something has failed that nobody has asked about, and the call reported no failure
 * After that, everything that is queued is done. Not collective. */
int late_engine_faults(bool failed);

/* Make an open engine late. */
void late_engine_wrap(struct engine *engine);

#endif
