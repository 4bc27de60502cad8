/* A table of values on CPU cores (values.c says how it works). engine.h has the contracts: a function takes what the
 * operation of its name takes. Nothing here can fail. */
#ifndef VALUES_H
#define VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernels/engine.h"

/* Bytes of room for a table of 2^log places, which is aligned to 256 bytes. */
size_t values_room(int log);

/* Returns whether the table holds all values. */
bool count_values(const struct raw_keys *bits, int64_t count, int log, void *room);

/* Returns how many values there are; -1: more than `most`. */
int64_t list_values(int log, void *room, struct engine_value *list, int64_t most);

void add_values(int log, void *room, const struct engine_value *list, int64_t values);

/* Returns whether the table holds all that was added. */
bool order_values(int log, void *room);

void write_values(int threads, const struct raw_keys *bits, void *room, int64_t from, int64_t until,
                  void *out);

#endif
