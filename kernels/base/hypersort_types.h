/* What every layer of hypersort and its callers share: statuses, key types, orders, and the names of engines,
 * exchanges and transports. No MPI. Installed beside hypersort.h, which includes it. */
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

/* What an enum takes of an entry of a list. It is not called X, because programs may have a macro X. */
#define HSORT_LIST_NAME(name, ...) name,

/* ---- Statuses and key types: each list is the only place where its members are named ----------------- */

/* X(name, exit code of the command, message). If ranks fail differently, the last in the list wins. So
 * STOPPED comes before all failures: if one rank was asked to stop and another has failed, the sort has
 * failed. If STOPPED won, the caller would rely on keys that are not there. */
#define HSORT_STATUS_LIST(X)                                                                                \
    X(HSORT_OK, 0, "ok")                                                                                    \
    X(HSORT_STOPPED, 75, "stopped, can be resumed")                                                         \
    X(HSORT_MISMATCH, 1, "not in order, or not the same keys")                                              \
    X(HSORT_ARGUMENT, 2, "invalid argument")                                                                \
    X(HSORT_FORMAT, 2, "bad input")                                                                         \
    X(HSORT_IO, 3, "input/output error")                                                                    \
    X(HSORT_NO_DEVICE, 4, "no usable GPU")                                                                  \
    X(HSORT_LAUNCH, 4, "ranks were not started together")                                                   \
    X(HSORT_DEVICE_MEMORY, 5, "out of device memory")                                                       \
    X(HSORT_HOST_MEMORY, 5, "out of host memory")                                                           \
    X(HSORT_CUDA, 6, "CUDA failure")                                                                        \
    X(HSORT_MPI, 6, "MPI failure")                                                                          \
    X(HSORT_INTERNAL, 70, "internal error")

typedef enum hsort_status { HSORT_STATUS_LIST(HSORT_LIST_NAME) } hsort_status;

/* Unsigned and signed integers, IEEE floats, and bf16, which is the upper half of an f32. u128 is the type
 * unsigned __int128 of gcc, clang and nvcc. The list grows at its end. X(name, short name, bytes per key) */
#define HSORT_TYPE_LIST(X)                                                                                  \
    X(HSORT_U32, "u32", 4)                                                                                  \
    X(HSORT_I32, "i32", 4)                                                                                  \
    X(HSORT_F32, "f32", 4)                                                                                  \
    X(HSORT_U64, "u64", 8)                                                                                  \
    X(HSORT_I64, "i64", 8)                                                                                  \
    X(HSORT_F64, "f64", 8)                                                                                  \
    X(HSORT_U128, "u128", 16)                                                                               \
    X(HSORT_U8, "u8", 1)                                                                                    \
    X(HSORT_I8, "i8", 1)                                                                                    \
    X(HSORT_U16, "u16", 2)                                                                                  \
    X(HSORT_I16, "i16", 2)                                                                                  \
    X(HSORT_F16, "f16", 2)                                                                                  \
    X(HSORT_BF16, "bf16", 2)

typedef enum hsort_type { HSORT_TYPE_LIST(HSORT_LIST_NAME) } hsort_type;

typedef enum hsort_order { HSORT_ASCENDING, HSORT_DESCENDING } hsort_order;

/* What sorts on one rank. X(name, short name) */
#define HSORT_ENGINE_LIST(X)                                                                                \
    X(HSORT_ENGINE_AUTO, "auto") /* CUDA if every rank can use a GPU, else HOST on all ranks */             \
    X(HSORT_ENGINE_HOST, "host") /* CPU cores */                                                            \
    X(HSORT_ENGINE_CUDA, "cuda") /* a GPU */

typedef enum hsort_engine { HSORT_ENGINE_LIST(HSORT_LIST_NAME) HSORT_ENGINES } hsort_engine;

/* How keys move between ranks: mpi/README.md has the algorithms. PARTITION takes up to 128 ranks; with more
 * ranks, and for keys that do not suit it, BITONIC or DIRECT runs. X(name, short name) */
#define HSORT_EXCHANGE_LIST(X)                                                                              \
    X(HSORT_EXCHANGE_AUTO, "auto")           /* chosen by ranks, keys and links */                          \
    X(HSORT_EXCHANGE_BITONIC, "bitonic")     /* rounds of merges over a hypercube: few messages */          \
    X(HSORT_EXCHANGE_DIRECT, "direct")       /* each key moves once, after the local sort */                \
    X(HSORT_EXCHANGE_PARTITION, "partition") /* each key moves once, before it is sorted */

typedef enum hsort_exchange { HSORT_EXCHANGE_LIST(HSORT_LIST_NAME) HSORT_EXCHANGES } hsort_exchange;

/* How bytes travel between two ranks: mpi/README.md has the mechanisms. It is an error to ask for MPI or IPC
 * where it cannot work. X(name, short name) */
#define HSORT_TRANSPORT_LIST(X)                                                                             \
    X(HSORT_TRANSPORT_AUTO, "auto")     /* for each pair of ranks the last of these that works */           \
    X(HSORT_TRANSPORT_STAGED, "staged") /* through pinned host memory */                                    \
    X(HSORT_TRANSPORT_MPI, "mpi")       /* MPI reads and writes engine memory */                            \
    X(HSORT_TRANSPORT_IPC, "ipc")       /* ranks of a node map each other's memory */

typedef enum hsort_transport { HSORT_TRANSPORT_LIST(HSORT_LIST_NAME) HSORT_TRANSPORTS } hsort_transport;

/* Which threads the library binds to cores. X(name, short name) */
#define HSORT_BINDING_LIST(X)                                                                               \
    X(HSORT_BINDING_AUTO, "auto") /* bind only what the launcher left unbound */                            \
    X(HSORT_BINDING_NONE, "none") /* bind nothing */

typedef enum hsort_binding { HSORT_BINDING_LIST(HSORT_LIST_NAME) HSORT_BINDINGS } hsort_binding;

/* Whether to use something that cannot be trusted everywhere. X(name, short name) */
#define HSORT_CHOICE_LIST(X)                                                                                \
    X(HSORT_CHOICE_AUTO, "auto") /* as the option says */                                                   \
    X(HSORT_CHOICE_OFF, "off")   /* never */                                                                \
    X(HSORT_CHOICE_ON, "on")     /* wherever a try shows that it works */

typedef enum hsort_choice { HSORT_CHOICE_LIST(HSORT_LIST_NAME) HSORT_CHOICES } hsort_choice;

/* The phases of a sort, in order; hsort_stats has a time for each. GATHER carries what travels with keys to
 * its place, before D2H; it takes no time for bare keys. X(name, short name) */
#define HSORT_PHASE_LIST(X)                                                                                 \
    X(HSORT_PHASE_H2D, "h2d")                                                                               \
    X(HSORT_PHASE_LOCAL_SORT, "local_sort")                                                                 \
    X(HSORT_PHASE_EXCHANGE, "exchange")                                                                     \
    X(HSORT_PHASE_MERGE, "merge")                                                                           \
    X(HSORT_PHASE_D2H, "d2h")                                                                               \
    X(HSORT_PHASE_GATHER, "gather")

typedef enum hsort_phase { HSORT_PHASE_LIST(HSORT_LIST_NAME) HSORT_PHASES } hsort_phase;

/* The rates from which the cost of a sort is calculated. X(name, short name, unit)
 *   SORT_4, SORT_8    local sort of keys of 4 and of 8 bytes, on one rank; for 16 bytes, half of SORT_8
 *   MERGE             a merge on one rank: bytes read plus bytes written. Keys of 1 and 2 bytes are counted
 *                     and written at this rate
 *   HOST_COPY         between the caller's host memory and the engine's, each way; 0: the engine needs no
 *                     copies
 *   STEP              from a small request to the engine until its answer
 *   MESSAGE           a message of a few bytes between two ranks of a node
 *   LINK_LATENCY      of a transfer of keys between two ranks of a node, besides its bytes
 *   LINK              bytes that a rank sends to another of its node while it receives as many
 *   NETWORK_LATENCY   of a message or a transfer between two nodes
 *   NETWORK           as LINK, between two nodes, all ranks of both at once */
#define HSORT_RATE_LIST(X)                                                                                  \
    X(HSORT_RATE_SORT_4, "sort_4", "keys/s")                                                                \
    X(HSORT_RATE_SORT_8, "sort_8", "keys/s")                                                                \
    X(HSORT_RATE_MERGE, "merge", "bytes/s")                                                                 \
    X(HSORT_RATE_HOST_COPY, "host_copy", "bytes/s")                                                         \
    X(HSORT_RATE_STEP, "step", "s")                                                                         \
    X(HSORT_RATE_MESSAGE, "message", "s")                                                                   \
    X(HSORT_RATE_LINK_LATENCY, "link_latency", "s")                                                         \
    X(HSORT_RATE_LINK, "link", "bytes/s")                                                                   \
    X(HSORT_RATE_NETWORK_LATENCY, "network_latency", "s")                                                   \
    X(HSORT_RATE_NETWORK, "network", "bytes/s")

typedef enum hsort_rate { HSORT_RATE_LIST(HSORT_LIST_NAME) HSORT_RATES } hsort_rate;

/* Where a rate comes from. DEFAULT: a round number for the engine. GIVEN: the caller, who also sets this. */
typedef enum hsort_rate_source { HSORT_RATE_DEFAULT, HSORT_RATE_GIVEN } hsort_rate_source;

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
    int cores;               /* that the rank's threads may use; fewer if a quota limits CPU time */
    char cpus[64];           /* the list of those cores' processing units, e.g. "0-7,16-23" */
    int bound_by_launcher;   /* 1: the mask came from the launcher and was left alone */
} hsort_rank_info;

/* How fast the path between two ranks is. Both 0: it was not measured. */
typedef struct hsort_path_speed {
    double bytes_per_second;  /* each way, both ways at once */
    double latency;           /* seconds for 64 bytes each way */
} hsort_path_speed;

#undef HSORT_LIST_NAME

/* ---- Names --------------------------------------------------------------------------------------------- */

/* The message of a status, from the list above. Not collective. Static; never NULL. */
HSORT_API const char *hsort_strerror(hsort_status status);

/* The exit code the command uses for a status. Not collective. */
HSORT_API int hsort_exit_code(hsort_status status);

/* The short name of a type ("u32" ...), NULL if it is none. Not collective. Static. */
HSORT_API const char *hsort_type_name(hsort_type type);

/* Bytes per key of a type, 0 if it is none. Not collective. */
HSORT_API size_t hsort_type_bytes(hsort_type type);

/* The short name of an engine, an exchange, a transport ("host", "bitonic", "staged" ...), NULL if it is
 * none. Not collective. Static. */
HSORT_API const char *hsort_engine_name(hsort_engine engine);
HSORT_API const char *hsort_exchange_name(hsort_exchange exchange);
HSORT_API const char *hsort_transport_name(hsort_transport transport);

#ifdef __cplusplus
}
#endif

#endif
