/* The C face of one device: what a rank's GPU, or its CPU cores, can do with keys. One rank opens one engine.
 *
 * mpi/ and src/ never launch a kernel and never call CUDA: they ask an engine, through the table of functions below.
 * There are two engines, with the same results bit for bit: `host` (kernels/host/, C17 + OpenMP) and `cuda`
 * (kernels/cuda/). Nothing here communicates; no function is collective. kernels/ knows no MPI.
 * Memory   "engine memory" is what the engine's kernels work on: device memory (plain cudaMalloc, so that IPC handles
 *          exist for it) or ordinary host memory. "Host memory" is pinned for the cuda engine.
 * Streams  three queues of work. Calls on one stream run in order; streams run side by side; an event recorded on one
 *          stream can be polled, or waited for by the host or by another stream. The host engine does all work at once,
 *          in the call, so its streams and events are always done.
 *            STREAM_WORK  kernels, and copies that belong to them
 *            STREAM_OUT   copies that carry keys towards another rank or the host
 *            STREAM_IN    copies that bring keys in
 * Keys     unsigned codes in ascending order (kernels/base/keytype.h). `key_bytes` is 4, 8 or 16; any other width is
 *          HSORT_INTERNAL. The exceptions: inspect(), gather(), count_runs() and write_runs() also take keys of 1 and 2
 *          bytes, and count_keys() and write_counted() take only these. Counts are int64_t and may be 0 or beyond 2^32.
 *          Pointers to keys are aligned to the key size only.
 * Errors   status_fail() with the failing call; texts name no rank (comm_agree() adds it). A failed asynchronous call
 *          may be reported by a later call on the engine. */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernels/base/fault.h"
#include "kernels/base/key_field.h"
#include "kernels/base/keytype.h"
#include "kernels/base/sample_place.h"
#include "kernels/base/status.h"
#include "kernels/engine_pairs.h"
#include "kernels/engine_partition.h"

#ifdef __cplusplus
extern "C" {
#endif

enum engine_stream { STREAM_WORK, STREAM_OUT, STREAM_IN, ENGINE_STREAMS };

/* Where a pointer of the caller's can be used. */
enum engine_space {
    SPACE_ENGINE, /* kernels can work on it */
    SPACE_HOST,   /* only the host can: keys must be copied */
    SPACE_PINNED  /* the same, but copies are asynchronous, as from and to alloc_host() */
};

/* What engine_ops.inspect() finds in one pass over keys. */
struct engine_inspection {
    int64_t first_descent;    /* smallest i >= 1 with key[i] < key[i-1]; the count if there is none */
    key_code first, last;     /* codes of the first and last key; undefined for a count of 0 */
    uint64_t fingerprint[2];  /* sum of key_fingerprint_add() over the keys as they lie in memory */
    /* set by inspect_elements() alone; its fingerprint is that of element_digest.h */
    int64_t first_unstable;   /* smallest i >= 1 with the same code as i - 1 and no greater number; the count if there is none */
    int64_t first_number, last_number;
    uint64_t placed[2];       /* the fingerprint of (element, number) */
};

/* What a sort takes if its keys are not codes yet. */
struct raw_keys {
    struct keymap map;
    const void *from; /* [count] the keys as they came, engine memory; not changed, unless this is `keys` */
    bool decode;      /* the result is to be decoded bits, in `keys`; otherwise it is codes */
    bool in_scratch;  /* codes are wanted in scratch, if that costs nothing */
    /* For numbered keys (numbered_keys.h), in sort() and engine_partition_ops; 0: the keys are not numbered. 1 .. 63:
     * keys of map.key_bytes, 4 or 8, lie at `from`, which overlaps nothing. Codes of key_bytes, 8 or 16, are sorted, as
     * make_codes() makes them of such a field and of positions from `first` on; both fit. A sort by regions takes only
     * keys of 4 bytes with codes of 8. With decode the result is the positions [count] alone, in memory that overlaps
     * nothing. Without decode, or if positions is NULL, it is the codes. */
    int position_bits;
    int64_t first;
    int64_t *positions;
};

enum {
    ENGINE_ALIGNMENT = 256, /* of engine memory, and of what is laid out there */
    ENGINE_GATHER_MAX = 1024,
    ENGINE_SEARCH_MAX = 8192,
    ENGINE_CHUNKS_MAX = 64, /* the most chunks that a sort with less scratch than keys is cut into */
    ENGINE_REGIONS = 1024,
    ENGINE_PIECES_MAX = 128,
    ENGINE_PACK_KEYS = 256, /* in a block of packed keys */
    ENGINE_FIELDS_MAX = 8,
    ENGINE_ELEMENT_PARTS = 2,
    ENGINE_RUN_PARTS = 2048, /* of the keys whose runs are found */
    ENGINE_MAP_BYTES = 36 << 10,
    ENGINE_SAMPLE_LOG_MIN = 12,
    ENGINE_SAMPLE_LOG_USUAL = 14, /* up to here a map is made fast; larger samples are for even regions */
    ENGINE_SAMPLE_LOG_MAX = 19,
    ENGINE_PEER_BYTES = 2 << 20, /* every engine that exports memory exports allocations from this size on */
    ENGINE_MOVE_BYTES = 2 << 20  /* the most that engine_transfer.move() is asked for at a time */
};

/* Elements to look at: each has parts that belong together, a key, and a number.
 *
 *     part 0, keys       7   3   3          codes        7 3 3        first_descent 1
 *     part 1, values     a   b   c          numbers      0 9 4        first_unstable 2
 *     index              0   9   4          fingerprint  of {7a 3b 3c}
 *                                           placed       of {7a0 3b9 3c4} */
struct engine_elements {
    int64_t count;
    const void *part[ENGINE_ELEMENT_PARTS];    /* [count * part_bytes] engine memory, any alignment */
    size_t part_bytes[ENGINE_ELEMENT_PARTS];   /* 0: there is no such part */
    struct key_field field[ENGINE_FIELDS_MAX]; /* as make_codes() takes them */
    int field_count;                           /* 0: order is not looked at */
    const int64_t *index; /* [count] engine memory, 8-byte aligned: the numbers; or NULL */
    int64_t first, step;  /* without index, element i has the number first + i * step. Step 0: any equal keys are unstable */
};

/* Elements that are taken by position from two arrays, the second as if it lay behind the first. */
struct engine_take {
    size_t element_bytes; /* 1 .. 131080: two of the largest elements, and a position; 0: nothing is written */
    void *to;             /* [count] engine memory; overlaps nothing */
    const void *from[2];  /* [from_count[i]] engine memory */
    int64_t from_count[2];
    const int64_t *positions; /* [count] engine memory */
    int64_t first;            /* the position of from[0][0] */
    int64_t count;
};

/* Bytes that go between engine memory and the host's side, which is ordinary host memory, or whatever a
 * function reaches, such as a file. */
struct engine_transfer {
    char *memory; /* [bytes] engine memory */
    size_t bytes;
    char *host; /* [bytes] host memory; NULL: move() reaches the bytes */
    /* Bring the bytes at .. at + bytes - 1 of what the function knows to `host`, or take them from there. Several
     * threads call it at a time, each for other bytes. The first bytes begin `lead` bytes behind a border, and all
     * other calls begin at one; borders are ENGINE_MOVE_BYTES apart. Errors: status_fail() with a text, in that thread. */
    hsort_status (*move)(void *user, int64_t at, size_t bytes, void *host);
    void *user;
    int64_t at;  /* of the first byte, for move() */
    size_t lead; /* how far the first byte lies behind a border in what move() reaches: in its file */
    bool joins;  /* move() knows no borders: it may be given any place in host memory. All transfers of host memory join */
};

/* What another process needs to map memory of this engine's kind; engine_peer_ops.export_memory() makes it. Plain
 * bytes, so it can be sent. */
struct engine_peer_handle {
    unsigned char allocation[64]; /* names the allocation; never the same for two that lived in this job */
    uint64_t offset, bytes;       /* of the memory in the allocation; of the whole allocation */
    int32_t lasting;              /* 1: memory of alloc(), gone only at free(); 0: the caller's, which may go at any time */
};

/* Which region of ENGINE_REGIONS a key belongs to: a function of its code that never falls as codes rise. Plain bytes,
 * so it can be sent, between engines of one name. */
struct engine_map {
    key_code bytes[ENGINE_MAP_BYTES / sizeof(key_code)]; /* aligned for keys of any width */
};

/* Runs of equal keys: keys that lie one behind the other and have equal bits. A run begins at its head, a key that
 * differs from the one before it. The keys here are a part of all keys; some of the others may belong to the same runs.
 *
 *     before     5                              of another engine, say
 *     keys         5 5 7 7 7 9                  position 10
 *     found      2: 7 and 9                     first_head 2
 *     unique     7 9        first   12 15       end 20: where the run of 9 ends
 *     ids        3 3 4 4 4 5                    first_id 4
 *                           counts  3 5 */
struct engine_runs {
    int key_bytes;
    const void *keys; /* [count] engine memory */
    int64_t count;
    const key_code *before; /* the key before keys[0]; NULL: there is none, and keys[0] is a head */

    /* found by count_runs() */
    int64_t found;      /* heads */
    int64_t first_head; /* where in `keys` the first of them is; the count if there is none */
    int64_t part_heads[ENGINE_RUN_PARTS]; /* of parts of the keys: what the engine itself needs again */
    int64_t part_first[ENGINE_RUN_PARTS];

    /* given to write_runs() */
    int64_t position; /* of keys[0] among all keys */
    int64_t end;      /* where among all keys the last run that begins here ends */
    int64_t first_id; /* of the first run that begins here; a run that began before has the id below */
    /* Written; each may be NULL. Engine memory; the arrays overlap neither each other nor the keys. */
    void *unique;    /* [found] the heads */
    int64_t *first;  /* [found] their positions among all keys */
    int64_t *counts; /* [found] keys in each of their runs */
    int64_t *ids;    /* [count] number of each key's run */
};

/* Keys in order that lie nowhere: only how many there are of each value. For 3 7 7 7 9:
 *
 *     keys       3 7 9
 *     ends       1 4 5       behind the last of each
 *     positions  2 .. 3      are written as 7 7 */
struct engine_counted {
    const void *keys;    /* [values] engine memory, of the width that the call says */
    const int64_t *ends; /* [values] engine memory, rising */
    int64_t values;
};

struct input; /* kernels/base/input_draw.h */
struct engine;
struct engine_event; /* a point in a stream's work */

/* When a stream reached a point in its work. */
struct engine_timing_ops {
    /* As event_create(), but the event keeps its time, too. event_record() and event_destroy() take both kinds. */
    hsort_status (*create)(struct engine *engine, struct engine_event **event);
    /* Seconds from one such event to another, on any streams; the streams have passed both. Negative: `to` came before
     * `from`. */
    hsort_status (*seconds)(struct engine *engine, struct engine_event *from, struct engine_event *to, double *seconds);
};

/* Memory of other processes. */
struct engine_peer_ops {
    /* Name the place of `memory` for other processes: it is memory of alloc(), or the caller's memory on this device.
     * Errors HSORT_ARGUMENT, without a text, if it is of a kind that cannot be mapped (host, managed or pool memory),
     * or in an allocation of less than ENGINE_PEER_BYTES. */
    hsort_status (*export_memory)(struct engine *engine, const void *memory,
                                  struct engine_peer_handle *handle);

    /* Map the whole of another process's allocation: *memory is where its first byte appears, and copy() and kernels
     * can read it there; NULL after an error. The call takes long, so the caller keeps the mapping. A handle must not
     * be open twice at a time, and must not be of this process. Errors HSORT_CUDA: no path between the devices, or none
     * for this process. */
    hsort_status (*open)(struct engine *engine, const struct engine_peer_handle *handle, void **memory);

    /* End the mapping; nothing may be reading it. The owner must not free the allocation before that (CUDA leaves
     * undefined what happens then). NULL is fine. */
    void (*close)(struct engine *engine, void *memory);
};

/* Keys packed into fewer bytes, to be sent. For each block of ENGINE_PACK_KEYS keys, the first key is stored, and for
 * each key the difference to the key before it, in as many bits as the largest difference of the block takes. For keys
 * in no order, the smallest key of the block is stored, and differences to it. Blocks of 4:
 *
 *     keys         50 53 53 57   90 91              the last block is short           53 57 50 53   91 90
 *     differences  0 3 0 4       0 1                                                  3 7 0 3       1 0
 *     packed       50 90 | 1 2 1 | 12 bits and a gap | 2 bits and a gap               50 90 | 1 2 1 | ...
 * The parts are: first [blocks] keys; ends [blocks + 1], the number of words up to the end of each block, and the width
 * of the last block; the words. Ends and words have 4 bytes. Value i of a block has the bits from i * width on of its
 * words, the lowest first. */
struct engine_packing {
    const void *from; /* pack: keys [count]; unpack: what they are packed to, [*bytes] */
    void *to;         /* pack: [count * key_bytes], aligned as keys are; unpack: keys [count] */
    int64_t count;
    int64_t *bytes; /* [1] of alloc_host(). pack: how many of `to` are used, known once the work is done; unpack: read in the call */
    bool to_smallest; /* the differences are to the smallest of a block; the same for pack and unpack */
};

/* Both functions take many packings [number] at a time, which are read in the call. All `from` and `to` are engine
 * memory, and no `to` overlaps another array. */
struct engine_pack_ops {
    /* Keys are best in order, or close to each other; others come back just as exactly. If packing saves no bytes, the
     * keys are copied. unpack() is the way back. Bytes that pack() has not made become some keys, and nothing outside
     * is touched. */
    hsort_status (*pack)(struct engine *engine, int key_bytes, const struct engine_packing *packings, int number);
    hsort_status (*unpack)(struct engine *engine, int key_bytes, const struct engine_packing *packings, int number);
};

/* Sorts of other libraries, measured for comparison. X(name, word) */
#define ENGINE_YARDSTICK_LIST(X)                                                       \
    X(YARDSTICK_CUB, "cub")             /* cub::DeviceRadixSort of the CUDA Toolkit */ \
    X(YARDSTICK_LIBCUSORT, "libcusort") /* where the build was given its header */

enum engine_yardstick {
#define X(name, word) name,
    ENGINE_YARDSTICK_LIST(X)
#undef X
        ENGINE_YARDSTICKS
};

/* What only measurements need: other libraries' sorts, and generated keys, which a device makes many times faster than
 * they could be copied to it. */
struct engine_yardstick_ops {
    /* Is the library in this build, and does it sort keys of this type? Pure. */
    bool (*has)(enum engine_yardstick which, hsort_type type);

    /* Bytes of workspace that its sort needs for `count` keys, aligned to 256 bytes; never 0. */
    hsort_status (*workspace)(struct engine *engine, enum engine_yardstick which, hsort_type type,
                              int64_t count, size_t *bytes);

    /* Sort keys [count] of a type, ascending, as the library does it with two buffers: floats by their bits, except
     * zeros, which are equal. keys, scratch [count] in engine memory, both overwritten; *sorted is set to whichever of
     * them holds the result. Waits for the result. */
    hsort_status (*sort)(struct engine *engine, enum engine_yardstick which, hsort_type type, void *keys,
                         void *scratch, int64_t count, void *workspace, size_t workspace_bytes,
                         void **sorted);

    /* *different = how many of the keys a and b [count] are not the same number. Waits for the result. */
    hsort_status (*compare)(struct engine *engine, hsort_type type, const void *a, const void *b,
                            int64_t count, int64_t *different);

    /* keys [count] = keys first .. first + count - 1 of an input (kernels/base/input_draw.h). */
    hsort_status (*fill)(struct engine *engine, const struct input *input, int64_t first, int64_t count,
                         void *keys);
};

struct engine_ops {
    const char *name;
    hsort_engine kind; /* never HSORT_ENGINE_AUTO */

    /* What not every engine can do; NULL if this one cannot. */
    const struct engine_peer_ops *peer;           /* map memory of other processes */
    const struct engine_partition_ops *partition; /* sort by regions (engine_partition.h) */
    const struct engine_pack_ops *packing;        /* keys in fewer bytes */
    const struct engine_pair_ops *pairs;          /* sort keys with a value each (engine_pairs.h) */
    const struct engine_yardstick_ops *yardstick; /* be measured beside other libraries */
    const struct engine_timing_ops *timing;       /* time streams; an engine without it is done when a call returns */

    /* Free the engine. Memory it handed out must have been given back. */
    void (*close)(struct engine *engine);

    /* ---- memory ---- */

    /* [bytes] of engine memory, aligned to 256 bytes; *memory is NULL after an error and for 0 bytes.
     * Errors HSORT_DEVICE_MEMORY (cuda, and beyond a limit), HSORT_HOST_MEMORY (host): text with the bytes asked for and, if
     * known, free. */
    hsort_status (*alloc)(struct engine *engine, size_t bytes, void **memory);
    void (*free)(struct engine *engine, void *memory); /* NULL is fine */

    /* [bytes] of host memory from and to which copies run asynchronously. Errors HSORT_HOST_MEMORY. */
    hsort_status (*alloc_host)(struct engine *engine, size_t bytes, void **memory);
    void (*free_host)(struct engine *engine, void *memory); /* NULL is fine */

    /* Pin the caller's host memory [bytes], so that copies from and to it run asynchronously. False if it cannot be
     * pinned, which is no error: copies then run in the call. It must be unpinned before it is unmapped. */
    bool (*pin)(struct engine *engine, void *memory, size_t bytes);
    void (*unpin)(struct engine *engine, void *memory); /* memory that pin() was true for */

    /* Bytes of engine memory that alloc() could hand out now. Host: what the system says is available. */
    hsort_status (*memory_free)(struct engine *engine, size_t *bytes);

    /* Where the caller's pointer lies; NULL is SPACE_ENGINE. Memory of another device is HSORT_ARGUMENT. */
    hsort_status (*space_of)(struct engine *engine, const void *pointer, enum engine_space *space);

    /* ---- streams ---- */

    /* Copy [bytes] between engine and host memory, in any direction; the two ranges do not overlap. Asynchronous on
     * `stream` if the host memory is from alloc_host(); from and to other host memory the copy may be done in the call. */
    hsort_status (*copy)(struct engine *engine, enum engine_stream stream, void *to, const void *from, size_t bytes);

    /* Do the transfers in [in_count] into engine memory and out [out_count] out of it, by all cores of the rank, both
     * directions at once. They do not overlap; the lists are read in the call. Transfers out wait for what STREAM_OUT
     * waits for, and are complete on return. Transfers in wait for what STREAM_IN waits for; on return the host's bytes
     * have been read, and the rest is work of STREAM_IN.
     * Errors   HSORT_HOST_MEMORY, HSORT_CUDA, those of move(); other transfers are then done in part. */
    hsort_status (*transfer)(struct engine *engine, const struct engine_transfer *in, int in_count,
                             const struct engine_transfer *out, int out_count);

    hsort_status (*event_create)(struct engine *engine, struct engine_event **event);
    void (*event_destroy)(struct engine *engine, struct engine_event *event); /* NULL is fine */
    hsort_status (*event_record)(struct engine *engine, struct engine_event *event, enum engine_stream stream);
    hsort_status (*event_done)(struct engine *engine, struct engine_event *event, bool *done); /* never waits */
    hsort_status (*stream_wait_event)(struct engine *engine, enum engine_stream stream,
                                      struct engine_event *event);

    /* Order STREAM_WORK after the work already in the caller's stream (a cudaStream_t or NULL). The host engine does
     * nothing. */
    hsort_status (*stream_wait_caller)(struct engine *engine, void *stream);

    /* Wait on the host until a stream has nothing left to do; reports what failed in it. */
    hsort_status (*stream_synchronize)(struct engine *engine, enum engine_stream stream);

    /* ---- work on keys, asynchronous on STREAM_WORK unless said otherwise ---- */

    /* to[i] = code of from[i]; decode is the inverse. `to` may be `from`. [count] each. */
    hsort_status (*encode)(struct engine *engine, struct keymap map, void *to, const void *from, int64_t count);
    hsort_status (*decode)(struct engine *engine, struct keymap map, void *to, const void *from, int64_t count);

    /* Bytes of workspace that sort() needs besides keys and scratch; they suffice for fewer keys too, with scratch for
     * all of them. `rung` -1: the rung chosen for these sizes.
     * Errors HSORT_ARGUMENT for a rung that this engine does not have, naming those it has, or for a rung that needs more
     * scratch. */
    hsort_status (*sort_workspace)(struct engine *engine, int rung, int key_bytes, int64_t count,
                                   int64_t scratch_count, size_t *bytes);

    /* Sort codes ascending. keys [count], scratch [scratch_count] in engine memory, both overwritten; workspace as said
     * above, aligned to 256 bytes. *sorted is set, before the work is done, to whichever of keys and scratch will hold
     * the result. raw NULL: keys holds codes. Otherwise this is encode(), sort() and decode() in one, which saves
     * passes over the keys if a rung can encode what it loads first and decode what it stores last. A radix rung wants
     * scratch_count >= count. With less it sorts chunks and merges them in place (in_place.h); the result is then in
     * keys, and the call waits for some of the work. With less than 1 / ENGINE_CHUNKS_MAX of count, only a network
     * sorts, which needs no scratch at all; rung -1 takes one. The cuda engine has no network for keys of 16 bytes:
     * HSORT_DEVICE_MEMORY. For numbered keys, this is make_codes(), sort() and split_codes() in one: keys and scratch
     * have room for codes, and if raw wants positions, *sorted is raw->positions. */
    hsort_status (*sort)(struct engine *engine, int rung, int key_bytes, void *keys, void *scratch,
                         int64_t scratch_count, int64_t count, void *workspace, const struct raw_keys *raw,
                         void **sorted);

    /* Merge two runs, a [a_count] and b [b_count], into out [a_count + b_count]; out overlaps neither. Equal
     * keys: those of `a` first. Runs that are not sorted (a rank that failed sent them) give keys in no
     * order, but nothing outside the buffers is touched. */
    hsort_status (*merge)(struct engine *engine, int key_bytes, const void *a, int64_t a_count, const void *b,
                          int64_t b_count, void *out);

    /* Merge k >= 1 runs that lie one behind the other: run i is runs[run_offset[i]] .. runs[run_offset[i + 1] - 1].
     *   runs, out   [run_offset[k]] each, engine memory, no overlap; both may be overwritten
     *   run_offset  [k + 1] on the host, ascending from 0; read in the call. Empty runs are fine
     *   merged      [1] set, before the work is done, to whichever of `runs` and `out` will hold the result; if no two
     *               runs hold keys, that is `runs`, and nothing is done
     * Equal keys: in the order of the runs. Runs that are not sorted: as for merge(), and keys may be lost. */
    hsort_status (*merge_runs)(struct engine *engine, int key_bytes, void *runs, const int64_t *run_offset, int k,
                               void *out, void **merged);

    /* Where a merge of two runs, a [a_count] and b [b_count], stands after its first `outputs` keys, 0 .. a_count +
     * b_count: *from_a of these are of a; equal keys: those of a first. For runs that are not sorted, it is some number
     * that the counts allow. Waits for the result. */
    hsort_status (*cut)(struct engine *engine, int key_bytes, const void *a, int64_t a_count, const void *b,
                        int64_t b_count, int64_t outputs, int64_t *from_a);

    /* Let a and b [count] change places; they do not overlap. */
    hsort_status (*swap)(struct engine *engine, int key_bytes, void *a, void *b, int64_t count);

    /* codes[i] = keys[positions[i]], widened. positions, codes [count <= ENGINE_GATHER_MAX] on the
     * host. Waits for the result. */
    hsort_status (*gather)(struct engine *engine, int key_bytes, const void *keys, const int64_t *positions, int count,
                           key_code *codes);

    /* How many keys of a run are less than each probe, and how many are not greater.
     *   keys               [count] a run, engine memory; count may be 0
     *   probes             [probe_count <= ENGINE_SEARCH_MAX] codes on the host, in any order; wider ones are beyond all keys
     *   less, not_greater  [probe_count] on the host, written
     * For keys that are not sorted, these are some numbers of 0 .. count. Waits for the result. */
    hsort_status (*search)(struct engine *engine, int key_bytes, const void *keys, int64_t count,
                           const key_code *probes, int probe_count, int64_t *less, int64_t *not_greater);

    /* ---- elements: keys that something travels with ---- */

    /* codes[i] = the fields of element i, each encoded and shifted, | first + i: different for all elements of all
     * ranks, and in the order of (fields, position).
     *   codes          [count] of code_bytes, 8 or 16
     *   fields         [field_count <= ENGINE_FIELDS_MAX], read in the call; their codes overlap neither each other nor
     *                  the position
     *   position_bits  the lowest bits, which first + i fits into; 0: the position is left out */
    hsort_status (*make_codes)(struct engine *engine, int code_bytes, void *codes, int64_t count,
                               const struct key_field *fields, int field_count, int position_bits,
                               int64_t first);

    /* The way back: positions[i] = the lowest position_bits of codes[i], and keys[i] = the key whose code the rest
     * is, of map.key_bytes (1, 2, 4, 8). Either may be NULL; neither overlaps the codes. [count] each. */
    hsort_status (*split_codes)(struct engine *engine, int code_bytes, const void *codes, int64_t count,
                                int position_bits, int64_t *positions, struct keymap map, void *keys);

    /* to[i] = from[positions[i] - first].
     *   outside  [1] host; how many positions lie outside; their to[i] are not written. Waits for the result. NULL: no
     *            position can lie outside, and the call waits for nothing */
    hsort_status (*take)(struct engine *engine, const struct engine_take *take, int64_t *outside);

    /* The inverse: to[positions[i] - first] = from[i], to [to_count]. If positions are equal, any of their elements is
     * there, or parts of several. */
    hsort_status (*place)(struct engine *engine, size_t element_bytes, void *to, int64_t to_count,
                          const void *from, const int64_t *positions, int64_t first, int64_t count,
                          int64_t *outside);

    /* Count the runs that begin among some keys; then write them, for the same keys and `before`. Each call waits for
     * the result. */
    hsort_status (*count_runs)(struct engine *engine, struct engine_runs *runs);
    hsort_status (*write_runs)(struct engine *engine, const struct engine_runs *runs);

    /* ---- keys of 1 and 2 bytes, which are counted and not moved ---- */

    /* counts[k] += how often k is among keys [count], as they lie in memory.
     *   counts  [256], for keys of 2 bytes [65536]; engine memory, 8-byte aligned */
    hsort_status (*count_keys)(struct engine *engine, int key_bytes, const void *keys, int64_t count,
                               int64_t *counts);

    /* The way back: out [count] = the keys at positions first .. first + count - 1 of the counted ones; all of these
     * positions exist. The struct is read in the call, its arrays as the work is done. */
    hsort_status (*write_counted)(struct engine *engine, int key_bytes, const struct engine_counted *counted,
                                  int64_t first, int64_t count, void *out);

    /* One pass over keys [count] as they lie in memory (not yet encoded). Waits for the result. */
    hsort_status (*inspect)(struct engine *engine, struct keymap map, const void *keys, int64_t count,
                            struct engine_inspection *result);

    /* The same over elements. Waits for the result. */
    hsort_status (*inspect_elements)(struct engine *engine, const struct engine_elements *elements,
                                     struct engine_inspection *result);
};

struct engine {
    const struct engine_ops *ops;
    struct traced_engine *traced; /* traced_engine.h; NULL: nobody records what the engine does */
};

/* Open the host engine with `threads` >= 1 OpenMP threads. *engine is NULL after an error; engine->ops->close() frees
 * it. With a memory_limit (0: none) it acts as a device of so many bytes: alloc() fails beyond them, and memory that it
 * has not handed out is SPACE_PINNED. Errors HSORT_HOST_MEMORY. */
hsort_status engine_open_host(int threads, size_t memory_limit, struct engine **engine);

/* ---- CUDA, present in every build: without the CUDA Toolkit there are no devices ----------------------- */

struct cuda_device {
    char name[64];
    char uuid[48];    /* "GPU-...", as the driver's tools print it; "MIG-..." for a MIG instance */
    char pci[16];     /* domain:bus:device.function, as hwloc reads it */
    int64_t bytes;    /* of memory */
    int numa_node;    /* that the device itself names; -1 if it names none */
    int compute;      /* capability, 90 for sm_90 */
};

/* Devices this process can see. Never an error: 0 without a driver, a GPU or the CUDA build; `why` [bytes] then says
 * which is missing, on one line, and is "" otherwise. Does not create a CUDA context. */
int cuda_device_count(char *why, size_t bytes);

/* What device `index` is. Errors HSORT_CUDA, HSORT_NO_DEVICE. */
hsort_status cuda_device_get(int index, struct cuda_device *device);

/* Open device `index`; alloc() fails beyond `memory_limit` bytes in use (0: no limit). The caller's current
 * device is the same afterwards; every engine call makes its own device current and restores the caller's.
 * Errors HSORT_NO_DEVICE, HSORT_CUDA, HSORT_DEVICE_MEMORY. */
hsort_status engine_open_cuda(int index, size_t memory_limit, struct engine **engine);

/* CUDA runtime version the build used, e.g. 13000; 0 without CUDA. */
int cuda_build_version(void);

#ifdef __cplusplus
}
#endif

#endif
