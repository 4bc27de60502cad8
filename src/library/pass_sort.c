/* A slot of elements is sorted by codes, like elements in memory (element_order.c), but with positions in the slot,
 * which are short:
 *
 *     elements    7a 3b 7c        codes   7|0 3|1 7|2        sorted   3|1 7|0 7|2        take()   3b 7a 7c
 *
 * The engine memory for that is in the context's workspace. The positions lie where the codes no longer are:
 *
 *     codes [slot]             unsorted, or sorted
 *     other codes [slot]       scratch of their sort; then, or in the place above, positions
 *     workspace of that sort
 *
 * Keys of so many bits that no position fits beside them are sorted twice, by the lower word of their codes and then by
 * the upper one. The elements move each time, so they come back to where they were. Elements in memory have only their words
 * and positions moved; here the elements themselves move, because within the engine they move faster than they came. */
#include "src/library/pass_sort.h"
#include "kernels/base/key_width.h"
#include "src/library/element_order.h"
#include "src/library/sort_memory.h"

struct slot_codes pass_slot_codes(int key_bits, int64_t slot)
{
    struct slot_codes codes = {.position_bits = element_position_bits(slot)};
    codes.by_words = key_bits + codes.position_bits > ELEMENT_CODE_BITS;
    codes.bytes = element_code_bytes(key_bits + codes.position_bits);
    codes.room = pass_slot_bytes(slot, (size_t)codes.bytes);
    return codes;
}

size_t pass_element_bytes(const struct pass_sort *sort)
{
    return sort->elements ? sort->elements->bytes : (size_t)sort->map.key_bytes;
}

hsort_status pass_sort_workspace(void *pass_sort, int64_t slot, size_t *bytes)
{
    const struct pass_sort *sort = pass_sort;
    const struct engine_ops *ops = sort->ctx->engine->ops;
    const struct slot_codes codes = sort->elements ? pass_slot_codes(sort->elements->key_bits, slot)
                                                   : (struct slot_codes){.bytes = sort->map.key_bytes};
    TRY(ops->sort_workspace(sort->ctx->engine, sort_rung(sort->ctx, codes.bytes), codes.bytes, slot, slot,
                            bytes));
    *bytes += 2 * codes.room;
    return HSORT_OK;
}

hsort_status pass_take_slots(const struct pass_sort *sort, int64_t slot, char **slots)
{
    hsort_context *ctx = sort->ctx;
    const size_t bytes = pass_slot_bytes(slot, pass_element_bytes(sort));
    struct memory_need need = {.kept = {[KEPT_SCRATCH] = PASS_SLOTS * bytes}};
    TRY(pass_sort_workspace((void *)sort, slot, &need.kept[KEPT_WORKSPACE]));
    context_drop_all(ctx);
    TRY(context_reserve_all(ctx, &need));
    for (int i = 0; i < PASS_SLOTS; i++)
        slots[i] = (char *)ctx->kept[KEPT_SCRATCH].memory + (size_t)i * bytes;
    return HSORT_OK;
}

void pass_give_slots(const struct pass_sort *sort, char **slots)
{
    if (slots[0])
        context_drop_all(sort->ctx);
    for (int i = 0; i < PASS_SLOTS; i++)
        slots[i] = NULL;
}

/* to [count] = elements in the order of fields whose codes leave room for the position. `to` overlaps nothing. */
static hsort_status sort_by_fields(const struct pass_sort *sort, const struct slot_codes *codes, int64_t slot,
                                   const struct key_field *fields, int field_count, const void *from,
                                   void *to, int64_t count)
{
    hsort_context *ctx = sort->ctx;
    struct engine *engine = ctx->engine;
    char *made = ctx->kept[KEPT_WORKSPACE].memory, *other = made + codes->room;
    void *sorted;
    int64_t outside;
    TRY(engine->ops->make_codes(engine, codes->bytes, made, count, fields, field_count, codes->position_bits,
                                0));
    TRY(engine->ops->sort(engine, sort_rung(ctx, codes->bytes), codes->bytes, made, other, slot, count,
                          other + codes->room, NULL, &sorted));
    int64_t *positions = (int64_t *)(sorted == made ? other : made);
    TRY(engine->ops->split_codes(engine, codes->bytes, sorted, count, codes->position_bits, positions,
                                 fields[0].map, NULL));
    TRY(engine->ops->take(engine,
                          &(struct engine_take){.element_bytes = sort->elements->bytes,
                                                .to = to,
                                                .from = {from},
                                                .from_count = {count},
                                                .positions = positions,
                                                .count = count},
                          &outside));
    return outside == 0 ? HSORT_OK
                        : status_fail(HSORT_INTERNAL, "%lld positions outside of a slot", (long long)outside);
}

/* The fields of the elements at `from`, their codes shifted by so many bits more. */
static void point_pass_fields(const struct pass_elements *elements, const void *from, int shift,
                              struct key_field *fields)
{
    for (int i = 0; i < elements->field_count; i++) {
        fields[i] = elements->fields[i];
        fields[i].from = (const char *)from + elements->offsets[i];
        fields[i].stride = elements->bytes;
        fields[i].shift += shift;
    }
}

/* As sort_by_fields(), but by one word of the keys' codes. These lie in the place of the other codes until the sort takes it for scratch. */
static hsort_status sort_by_word(const struct pass_sort *sort, const struct slot_codes *codes, int64_t slot,
                                 int word, const void *from, void *to, int64_t count)
{
    struct engine *engine = sort->ctx->engine;
    char *keys = (char *)sort->ctx->kept[KEPT_WORKSPACE].memory + codes->room;
    struct key_field fields[HSORT_FIELDS_MAX];
    point_pass_fields(sort->elements, from, 0, fields);
    TRY(engine->ops->make_codes(engine, codes->bytes, keys, count, fields, sort->elements->field_count, 0,
                                0));
    const struct key_field field = element_word(keys, word, sizeof(uint128), codes->position_bits);
    return sort_by_fields(sort, codes, slot, &field, 1, from, to, count);
}

static hsort_status sort_elements(const struct pass_sort *sort, void *elements, void *scratch, int64_t slot,
                                  int64_t count, void **sorted)
{
    const struct slot_codes codes = pass_slot_codes(sort->elements->key_bits, slot);
    struct key_field fields[HSORT_FIELDS_MAX];
    *sorted = codes.by_words ? elements : scratch;
    if (codes.by_words) {
        TRY(sort_by_word(sort, &codes, slot, 0, elements, scratch, count));
        return sort_by_word(sort, &codes, slot, 1, scratch, elements, count);
    }
    point_pass_fields(sort->elements, elements, codes.position_bits, fields);
    return sort_by_fields(sort, &codes, slot, fields, sort->elements->field_count, elements, scratch, count);
}

hsort_status pass_sort_slot(const struct pass_sort *sort, void *elements, void *scratch, int64_t slot,
                            int64_t count, void **sorted)
{
    hsort_context *ctx = sort->ctx;
    const int key_bytes = sort->map.key_bytes;
    if (sort->elements)
        return sort_elements(sort, elements, scratch, slot, count, sorted);
    const struct raw_keys raw = {.map = sort->map, .from = elements, .decode = true};
    return ctx->engine->ops->sort(ctx->engine, sort_rung(ctx, key_bytes), key_bytes, elements, scratch, slot,
                                  count, ctx->kept[KEPT_WORKSPACE].memory, &raw, sorted);
}

hsort_status pass_look(const struct pass_sort *sort, struct verifier *verifier, const void *elements,
                       int64_t count)
{
    struct engine *engine = sort->ctx->engine;
    if (!sort->elements)
        return verify_add(verifier, engine, elements, count);
    struct engine_elements look = {.count = count,
                                   .part = {elements},
                                   .part_bytes = {sort->elements->bytes},
                                   .field_count = sort->elements->field_count,
                                   .step = 1};
    point_pass_fields(sort->elements, elements, 0, look.field);
    return verify_add_elements(verifier, engine, &look);
}

key_code pass_code_at(const struct pass_sort *sort, const void *run, int64_t i)
{
    struct key_field fields[HSORT_FIELDS_MAX];
    key_code code = 0;
    if (!sort->elements)
        return keymap_encode(sort->map, key_load(sort->map.key_bytes, run, i));
    point_pass_fields(sort->elements, run, 0, fields);
    for (int field = 0; field < sort->elements->field_count; field++)
        code |= field_code(&fields[field], i);
    return code;
}
