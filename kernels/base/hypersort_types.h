/* What every layer of hypersort and its callers share: statuses, key types, orders, and the names of engines, exchanges and
 * transports. No MPI. Installed beside hypersort.h, which includes it. */
#ifndef HYPERSORT_TYPES_H
#define HYPERSORT_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HSORT_API __attribute__((visibility("default")))
#else
#define HSORT_API
#endif

/* ---- Statuses and key types: each list is the only place where its members are named ------------------- */

/* X(name, exit code of the command, message). Where ranks fail differently, the last in the list wins. So STOPPED comes before
 * all failures: where one rank was asked to stop and another has failed, the sort has failed; said the other way round, the
 * caller would count on keys that are not there. */
#define HSORT_STATUS_LIST(X)                                                                                  \
    X(HSORT_OK, 0, "ok")                                                                                      \
    X(HSORT_STOPPED, 75, "stopped, can be resumed")                                                           \
    X(HSORT_MISMATCH, 1, "not in order, or not the same keys")                                                \
    X(HSORT_ARGUMENT, 2, "invalid argument")                                                                  \
    X(HSORT_FORMAT, 2, "bad input")                                                                           \
    X(HSORT_IO, 3, "input/output error")                                                                      \
    X(HSORT_NO_DEVICE, 4, "no usable GPU")                                                                    \
    X(HSORT_LAUNCH, 4, "ranks were not started together")                                                     \
    X(HSORT_DEVICE_MEMORY, 5, "out of device memory")                                                         \
    X(HSORT_HOST_MEMORY, 5, "out of host memory")                                                             \
    X(HSORT_CUDA, 6, "CUDA failure")                                                                          \
    X(HSORT_MPI, 6, "MPI failure")                                                                            \
    X(HSORT_INTERNAL, 70, "internal error")

typedef enum hsort_status {
#define X(name, exit_code, message) name,
    HSORT_STATUS_LIST(X)
#undef X
} hsort_status;

/* X(name, short name, bytes per key) */
#define HSORT_TYPE_LIST(X)                                                                                    \
    X(HSORT_U32, "u32", 4)                                                                                    \
    X(HSORT_I32, "i32", 4)                                                                                    \
    X(HSORT_F32, "f32", 4)                                                                                    \
    X(HSORT_U64, "u64", 8)                                                                                    \
    X(HSORT_I64, "i64", 8)                                                                                    \
    X(HSORT_F64, "f64", 8)

typedef enum hsort_type {
#define X(name, short_name, bytes) name,
    HSORT_TYPE_LIST(X)
#undef X
} hsort_type;

typedef enum hsort_order { HSORT_ASCENDING, HSORT_DESCENDING } hsort_order;

/* What sorts on one rank. AUTO: CUDA if every rank can use a GPU, else HOST on all of them. */
typedef enum hsort_engine { HSORT_ENGINE_AUTO, HSORT_ENGINE_HOST, HSORT_ENGINE_CUDA } hsort_engine;

/* The strategy that moves keys between ranks. BITONIC: rounds of compare-splits over the hypercube; a round is a
 * handful of messages. DIRECT: each key moves once, to the rank where it stays, in P - 1 messages per rank; or, where that
 * costs less on many nodes, once between nodes and once inside one, in a message to each node and one to each rank of its
 * own. PARTITION: each key moves once, before it is sorted, or, where few values repeat, none moves, as keys are counted; only
 * where all ranks read each other's memory (transport IPC), there is memory for three quarters of a shard more, and keys are
 * not in order already; elsewhere, also if it is asked for, one of the two others. AUTO: PARTITION for large shards where it can be, else for each sort the cheaper
 * of the two others by hsort_plan(), at the rates of hsort_rates_in_use(). */
typedef enum hsort_exchange {
    HSORT_EXCHANGE_AUTO,
    HSORT_EXCHANGE_BITONIC,
    HSORT_EXCHANGE_DIRECT,
    HSORT_EXCHANGE_PARTITION
} hsort_exchange;

/* How bytes travel between two ranks. STAGED: through pinned host memory, works everywhere; between ranks of a node through
 * memory that both see, if they can share some (HYPERSORT_SHM=0 in the environment: they do not). MPI: the engine's
 * memory is handed to MPI; with the CUDA engine that needs a CUDA-aware MPI. IPC: ranks of one node read each
 * other's device memory, over NVLink where there is one; pairs that cannot go the way that AUTO gives them; an
 * error if no pair can. AUTO: IPC between two ranks that could read each other's memory at creation, if a few swaps by what
 * follows were not clearly faster (not asked where ranks share a GPU; HYPERSORT_IPC=1 in the environment: in any case, 0: not
 * at all); else MPI where a checked message arrived whole; else STAGED. */
typedef enum hsort_transport {
    HSORT_TRANSPORT_AUTO,
    HSORT_TRANSPORT_STAGED,
    HSORT_TRANSPORT_MPI,
    HSORT_TRANSPORT_IPC,
    HSORT_TRANSPORTS
} hsort_transport;

/* Where a rank's threads and its GPU come from. AUTO: bind only what the launcher left unbound. */
typedef enum hsort_binding { HSORT_BINDING_AUTO, HSORT_BINDING_NONE } hsort_binding;

/* The phases of a sort, in order; hsort_stats has a time for each. X(name, short name) */
#define HSORT_PHASE_LIST(X)                                                                                   \
    X(HSORT_PHASE_H2D, "h2d")                                                                                 \
    X(HSORT_PHASE_LOCAL_SORT, "local_sort")                                                                   \
    X(HSORT_PHASE_EXCHANGE, "exchange")                                                                       \
    X(HSORT_PHASE_MERGE, "merge")                                                                             \
    X(HSORT_PHASE_D2H, "d2h")

typedef enum hsort_phase {
#define X(name, short_name) name,
    HSORT_PHASE_LIST(X)
#undef X
    HSORT_PHASES
} hsort_phase;

/* What one rank runs on. Texts are empty and numbers -1 where there is nothing to say. */
typedef struct hsort_rank_info {
    char host[64];
    char gpu_name[64];
    char gpu_uuid[48];       /* "GPU-xxxxxxxx-xxxx-..." as the driver's tools print it */
    char gpu_pci[16];        /* domain:bus:device.function */
    int64_t gpu_bytes;       /* memory of the GPU */
    int gpu_index;           /* as CUDA counts them in this process */
    int gpu_sharers;         /* ranks on this GPU, this one included */
    int numa_node;           /* nearest to the GPU, or where the cores are */
    int cores;               /* that the rank's threads may use */
    char cpus[64];           /* the list of those cores' processing units, e.g. "0-7,16-23" */
    int bound_by_launcher;   /* 1: the mask came from the launcher and was left alone */
} hsort_rank_info;

/* What the path between two ranks reaches. Both 0: it was not tried. */
typedef struct hsort_reach {
    double bytes_per_second;  /* each way, both ways at once */
    double latency;           /* seconds of a swap of 64 bytes */
} hsort_reach;

/* ---- Names ----------------------------------------------------------------------------------------------- */

/* The message of a status, from the list above. Not collective. Static; never NULL. */
HSORT_API const char *hsort_strerror(hsort_status status);

/* The exit code the command uses for a status. Not collective. */
HSORT_API int hsort_exit_code(hsort_status status);

/* "u32" ... of a type, NULL if it is none. Not collective. Static. */
HSORT_API const char *hsort_type_name(hsort_type type);

/* Bytes per key of a type, 0 if it is none. Not collective. */
HSORT_API size_t hsort_type_bytes(hsort_type type);

#ifdef __cplusplus
}
#endif

#endif
