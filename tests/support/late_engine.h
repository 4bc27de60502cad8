/* A host engine whose streams do their work late. The one of kernels/host/ does everything in the call, so nobody notices a wait that
 * is missing between two streams, or before the host looks. Here work that engine.h calls asynchronous is queued, and done in the
 * order of its stream: at stream_synchronize(), when another stream waits for it, before a call that returns a result; and, as a seed
 * decides for each stream, at the next call, at any other call by chance, or not before somebody must have it.
 *
 *     copy(IN)  record(IN)  wait(WORK, IN)  merge(WORK)      nothing has been done yet
 *     stream_synchronize(WORK)                               copy, merge
 *     without wait(WORK, IN)                                 merge, of what was there before the copy
 *
 * Copies are queued between memory that the engine knows: of alloc(), alloc_host(), pin(), open(), and some of the caller's.
 * Others are done in the call; but where nothing is known of the source, which is a variable of the library's, the bytes may be read
 * in the call and stored late, as CUDA does. What fails late is told of by the next event_done(), stream_synchronize() or call that
 * returns a result.
 * Linked with --wrap=engine_open_host this is every host engine of the program; with shared_engine.c, and SHARED_ENGINE and
 * LATE_ENGINE defined, around that. The queues are the process's, not an engine's; one thread at a time calls. */
#ifndef LATE_ENGINE_H
#define LATE_ENGINE_H

#include <stdbool.h>
#include "kernels/engine.h"

/* Draw anew how late work is done. */
void late_engine_seed(uint64_t seed);

/* The nth next question of this process whether an event has come is answered by a failure; 0 or less: none. */
extern int late_question_fails;

/* The nth next work of this process fails when it is done, or the nth next that packs; 0 or less: none. */
extern int late_work_fails, late_pack_fails;

/* Memory of the caller's; until it is forgotten, before it is freed. is_reached: asynchronous copies reach it, as they do device
 * memory. */
void late_engine_note(const void *memory, size_t bytes, bool is_reached);
void late_engine_forget(const void *memory);

/* To be asked when a call of the public interface has returned, and whether it told of a failure: how much was wrong since the last
 * time. Each has had a line on stderr:
 *   - memory was freed, unpinned, unmapped or forgotten that queued work touches
 *   - work is still queued
 *   - something has failed, of which nobody has asked, and the call told of none
 * What is queued is then done. Not collective. */
int late_engine_faults(bool failed);

/* Make an open engine late. */
void late_engine_wrap(struct engine *engine);

#endif
