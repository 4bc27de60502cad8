#include "kernels/spare_memory.h"

enum { WASTE = 4 }; // a block is not given to a call that wants less than this part of it

/* The smallest block that is large enough and not too large, or NULL. */
static struct spare_block *find_block(struct spare_memory *spare, size_t bytes)
{
    const size_t waste = spare->exact ? 1 : WASTE;
    struct spare_block *found = NULL;
    for (struct spare_block *b = spare->block; b < spare->block + SPARE_BLOCKS; b++)
        if (b->memory && !b->taken && b->bytes >= bytes && b->bytes / waste <= bytes &&
            (!found || b->bytes < found->bytes))
            found = b;
    return found;
}

/* Free the block that one of so many bytes is to replace: the largest idle one that is too small. Otherwise a context
 * whose calls grow would keep one block of each size. */
static void drop_outgrown(struct spare_memory *spare, size_t bytes)
{
    struct spare_block *found = NULL;
    for (struct spare_block *b = spare->block; b < spare->block + SPARE_BLOCKS; b++)
        if (b->memory && !b->taken && b->bytes < bytes && (!found || b->bytes > found->bytes))
            found = b;
    if (found) {
        spare->engine->ops->free(spare->engine, found->memory);
        *found = (struct spare_block){0};
    }
}

/* A place for one more block, or NULL. */
static struct spare_block *empty_block(struct spare_memory *spare)
{
    for (struct spare_block *b = spare->block; b < spare->block + SPARE_BLOCKS; b++)
        if (!b->memory)
            return b;
    return NULL;
}

size_t spare_idle_bytes(const struct spare_memory *spare)
{
    size_t bytes = 0;
    for (const struct spare_block *b = spare->block; b < spare->block + SPARE_BLOCKS; b++)
        bytes += b->memory && !b->taken ? b->bytes : 0;
    return bytes;
}

/* The last part of what is left does not count, because an engine may round up what it is asked for. Rejected: alloc() first, and once
 * more if it fails. As it is, every failure of alloc() is a failure of the call. */
hsort_status spare_make_room(struct spare_memory *spare, size_t bytes)
{
    size_t left;
    if (bytes == 0 || spare_idle_bytes(spare) == 0)
        return HSORT_OK;
    TRY(spare->engine->ops->memory_free(spare->engine, &left));
    left /= spare->sharers > 1 ? (size_t)spare->sharers : 1;
    if (left - left / 64 < bytes)
        spare_drop(spare);
    return HSORT_OK;
}

hsort_status spare_take(struct spare_memory *spare, size_t bytes, void **memory)
{
    struct engine *engine = spare->engine;
    *memory = NULL;
    if (bytes == 0)
        return HSORT_OK;
    struct spare_block *block = find_block(spare, bytes);
    if (!block) {
        drop_outgrown(spare, bytes);
        TRY(spare_make_room(spare, bytes));
        TRY(engine->ops->alloc(engine, bytes, memory));
        if (!(block = empty_block(spare)))
            return HSORT_OK; // it is freed when it is given back
        *block = (struct spare_block){.memory = *memory, .bytes = bytes};
    }
    block->taken = true;
    *memory = block->memory;
    return HSORT_OK;
}

void spare_give(struct spare_memory *spare, void *memory)
{
    for (struct spare_block *b = spare->block; memory && b < spare->block + SPARE_BLOCKS; b++)
        if (b->memory == memory) {
            b->taken = false;
            return;
        }
    if (memory)
        spare->engine->ops->free(spare->engine, memory);
}

void spare_drop(struct spare_memory *spare)
{
    for (struct spare_block *b = spare->block; b < spare->block + SPARE_BLOCKS; b++)
        if (b->memory && !b->taken) {
            spare->engine->ops->free(spare->engine, b->memory);
            *b = (struct spare_block){0};
        }
}

void kept_drop(struct kept_memory *kept, struct engine *engine)
{
    engine->ops->free(engine, kept->memory);
    *kept = (struct kept_memory){0};
}

hsort_status kept_reserve(struct kept_memory *kept, struct spare_memory *spare, size_t bytes)
{
    if (bytes <= kept->bytes)
        return HSORT_OK;
    kept_drop(kept, spare->engine); // first: both at once would need the sum
    TRY(spare_make_room(spare, bytes));
    TRY(spare->engine->ops->alloc(spare->engine, bytes, &kept->memory));
    kept->bytes = bytes;
    return HSORT_OK;
}
