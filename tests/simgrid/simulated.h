/* What the pieces of the simulation share. Every rank has its own copy of all globals (smpi/privatization:dlopen). */
#ifndef SIMULATED_H
#define SIMULATED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The GPU and the size of shard whose time is counted. */
struct modelled {
    int64_t scale;           /* keys that one real key stands for */
    double sort_keys_per_s;  /* local sort */
    double merge_keys_per_s; /* keys of the result, one pass over 2 to 16 runs */
    double copy_bytes_per_s; /* inside the GPU's memory, read and written both counted */
    double count_keys_per_s, scatter_keys_per_s, regions_keys_per_s, map_s; /* of partition: engine_partition_ops */
    double group_s;          /* what sort_regions() to codes takes besides its rate */
    double call_s;           /* a kernel, from its launch until the host knows that it is done */
    double nvlink_bytes_per_s, nvlink_s, network_bytes_per_s, network_s; /* as platform.cpp has them */
    int per_node;
    int64_t shard_bytes;     /* real ones, that a rank may have at most */
};
extern struct modelled modelled;

/* The clock of the simulation, and waiting for a time. Not collective. */
double simulated_now(void);
void simulated_sleep_until(double at);

/* The engine was asked whether something is done that will be at `at`: who polls need not ask again before, unless a message
 * comes. Not collective. */
void simulated_asked_for(double at);

/* What this rank has sent since traffic_clear(). */
struct traffic {
    int64_t key_messages, key_bytes; /* Isend: pieces of shards; bytes as modelled */
    int64_t short_messages;          /* Sendrecv: greetings and probes of compare-splits */
    int64_t collectives;             /* calls */
};
extern struct traffic traffic;

/* Messages that SMPI has delivered to any rank, those inside collectives too; 0 on all ranks but one: add them up. */
extern int64_t messages_delivered;

/* Count deliveries from now on, and let messages of keys carry real keys and modelled sizes.             Collective. */
void simulated_copy_start(void);

/* How many bytes on the wire a message of `bytes` real bytes of keys is timed as, and back. An odd size marks a message of
 * keys: no other message of the library has one. */
static inline int64_t nominal_bytes(int64_t bytes)
{
    return modelled.scale == 1 ? bytes : bytes * modelled.scale + 1;
}

static inline size_t real_bytes(size_t nominal)
{
    return modelled.scale > 1 && nominal % 2 == 1 ? (nominal - 1) / (size_t)modelled.scale : nominal;
}

/* What the library plans for uniform keys. */
struct formula {
    double moved;    /* keys sent per key */
    double messages; /* of one rank, short ones too */
    double exchange_s, merge_s, sort_s;
    double crossed_key_bytes; /* that each key takes which changes its node; 0: none does */
};

/* Not collective. exchange: hsort_exchange; keys: of one rank, as modelled, 8 bytes each. Returns whether there is a plan. */
int formula_of(int ranks, int exchange, int64_t keys, struct formula *formula);


#ifdef __cplusplus
}
#endif

#endif
