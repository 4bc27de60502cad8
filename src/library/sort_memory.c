/* The memory of a sort: what it takes from its context, what it borrows from the caller, and how it manages with less. */
#include "src/library/sort_memory.h"
#include "kernels/base/lesser.h"
#include "mpi/comm/node_memory.h"
#include "src/library/disk_plan.h"
#include "src/library/narrow_counts.h"

int sort_rung(const hsort_context *ctx, int key_bytes)
{
    return key_bytes == sizeof(key_code) ? -1 : ctx->options.local_rung;
}

/* Workspace for the local sort of `capacity` keys: none for no keys. */
static hsort_status workspace_for(const hsort_context *ctx, int key_bytes, int64_t capacity, int64_t scratch,
                                  size_t *bytes)
{
    *bytes = 0;
    return capacity == 0 ? HSORT_OK
                         : ctx->engine->ops->sort_workspace(ctx->engine, sort_rung(ctx, key_bytes), key_bytes,
                                                            capacity, scratch, bytes);
}

/* The memory that this rank needs if the second buffer has room for `scratch` keys. keys_bytes: size of the first buffer, 0 if the
 * caller lends it. */
static hsort_status need_for(const struct sort *s, size_t keys_bytes, int64_t scratch,
                             struct memory_need *need)
{
    *need = (struct memory_need){
        .kept = {[KEPT_KEYS] = keys_bytes, [KEPT_SCRATCH] = (size_t)scratch * (size_t)s->map.key_bytes}};
    return workspace_for(s->ctx, s->map.key_bytes, s->room, scratch, &need->kept[KEPT_WORKSPACE]);
}

/* Does the caller's output serve as the keys' buffer? */
static bool lends(const struct sort *s)
{
    return s->out_space == SPACE_ENGINE && s->out_count >= s->room && s->out_count > 0;
}

/* Can all ranks of this node have the host memory that they want? GPU memory is not checked, because each rank has its own, and
 * small shards are not. A rank that is alone finds out when it allocates. Collective over the node. */
static hsort_status check_node_memory(const struct sort *s, const struct memory_need *need)
{
    const bool small = s->capacity < NODE_CHECK_BYTES / s->map.key_bytes;
    if (small || comm_is_alone(&s->ctx->comm) || hsort_engine_in_use(s->ctx) != HSORT_ENGINE_HOST)
        return HSORT_OK;
    return node_memory_check(&s->ctx->comm, memory_need_growth(s->ctx, need));
}

/* Scratch for a sort in so many chunks. It is a little more than one chunk: when two random chunks are merged, about one chunk
 * changes sides, and should fit. */
static int64_t scratch_for_chunks(const struct sort *s, int chunks)
{
    const int64_t part = divide_up(s->room, chunks);
    return chunks == 1 ? part : part + part / 64;
}

/* Free what earlier sorts have kept. With several ranks, all have unmapped this memory before. The codes stay if they are what is sorted.
 * keeps_keys: the keys' buffer stays. */
static void drop_others(const struct sort *s, bool keeps_keys)
{
    for (int i = 0; i < KEPT_MEMORIES; i++)
        if (!(i == KEPT_CODES && s->are_codes) && !(i == KEPT_KEYS && keeps_keys))
            kept_drop(&s->ctx->kept[i], s->ctx->engine);
}

/* A rank alone has no exchange, and the exchange in place needs little memory. Then the second buffer is only scratch for the local sort,
 * which can work with less. Find the most scratch that fits beside the keys' own buffer once everything that earlier sorts kept is freed.
 * It never goes down to no scratch at all, though a sorting network needs none: keys that fill memory to the last hundredth are more
 * likely a wrong count. */
static hsort_status find_less(struct sort *s, struct memory_need *need)
{
    const hsort_context *ctx = s->ctx;
    const size_t keys_bytes = need->kept[KEPT_KEYS],
                 codes_bytes = s->are_codes ? ctx->kept[KEPT_CODES].bytes : 0,
                 buffer_bytes =
                     keys_bytes > 0 ? greater_bytes(keys_bytes, ctx->kept[KEPT_KEYS].bytes) : 0; // stays
    size_t bytes;
    TRY(context_engine_bytes(ctx, &bytes));
    bytes -= lesser_bytes(bytes, buffer_bytes + codes_bytes);
    for (int chunks = 1; chunks <= ENGINE_CHUNKS_MAX; chunks++) {
        s->scratch_keys = scratch_for_chunks(s, chunks);
        TRY(need_for(s, keys_bytes, s->scratch_keys, need));
        if (memory_need_bytes(need) - keys_bytes <= usable_bytes(bytes))
            return HSORT_OK;
    }
    return HSORT_OK; // the least scratch; if it does not fit either, its allocation fails with a message
}

/* Engine memory for an exchange of `capacity` keys on each rank: none for no keys. Not collective. */
static size_t exchange_bytes(const hsort_context *ctx, const struct exchange_ops *ops, int key_bytes,
                             int64_t capacity)
{
    return ops && ops->memory_bytes && capacity > 0
               ? ops->memory_bytes(ctx->engine, &ctx->comm, ctx->transport, key_bytes, capacity)
               : 0;
}

/* Keys of scratch beyond the capacity that make this exchange faster. */
static int64_t exchange_spare(const hsort_context *ctx, const struct exchange_ops *exchange, int64_t capacity)
{
    return exchange && exchange->spare_keys
               ? exchange->spare_keys(ctx->engine, &ctx->comm, ctx->transport, capacity)
               : 0;
}

/* Ask for the additional scratch that makes the exchange faster, if it fits beside what the exchange needs. *spare: its keys. */
static hsort_status want_spare(const struct sort *s, struct memory_need *need, int64_t *spare)
{
    const int64_t liked = exchange_spare(s->ctx, s->raw_exchange, s->capacity);
    struct memory_need all = *need;
    bool has_room;
    if (liked == 0)
        return HSORT_OK;
    all.kept[KEPT_SCRATCH] += (size_t)liked * (size_t)s->map.key_bytes;
    all.kept[KEPT_EXCHANGE] = exchange_bytes(s->ctx, s->raw_exchange, s->map.key_bytes, s->capacity);
    TRY(context_has_room(s->ctx, &all, &has_room));
    if (has_room) {
        need->kept[KEPT_SCRATCH] = all.kept[KEPT_SCRATCH];
        *spare = liked;
    }
    return HSORT_OK;
}

hsort_status sort_reserve(struct sort *s)
{
    hsort_context *ctx = s->ctx;
    const bool lent = lends(s), may_take_less = s->in_place || comm_is_alone(&ctx->comm);
    const size_t keys_bytes = lent ? 0 : (size_t)s->room * (size_t)s->map.key_bytes;
    struct memory_need need = {0};
    bool has_room = true; // asked only once: the answer may change after ranks have unmapped
    int64_t spare = 0;
    s->scratch_keys = s->room;
    hsort_status status = need_for(s, keys_bytes, s->scratch_keys, &need);
    if (status == HSORT_OK)
        status = want_spare(s, &need, &spare);
    if (status == HSORT_OK && spare == 0)
        status = context_has_room(ctx, &need, &has_room);
    if (status == HSORT_OK && !has_room && may_take_less) {
        status = find_less(s, &need);
        if (status == HSORT_OK)
            status = context_has_room(ctx, &need, &has_room);
    }
    if (status == HSORT_OK)
        status = context_free_idle(ctx, &need); // before the ranks of the node ask for memory together
    // This call and the next one are made even after a failure, because the other ranks wait in them.
    TRY(context_unmap(ctx, !has_room || memory_need_outgrows(ctx, &need)));
    TRY(check_node_memory(s, &need));
    TRY(status);
    if (s->in_place)
        TRY(direct_reserve_in_place(ctx->exchange_tables[HSORT_EXCHANGE_DIRECT], ctx->comm.size));
    if (!has_room)
        drop_others(s, may_take_less && keys_bytes > 0);
    s->new_bytes = memory_need_growth(ctx, &need);
    TRY(context_reserve_all(ctx, &need));
    s->x = (struct exchange){.comm = &ctx->comm,
                             .engine = ctx->engine,
                             .transport = ctx->transport,
                             .key_bytes = s->map.key_bytes,
                             .capacity = s->capacity,
                             .keys = lent ? s->out : ctx->kept[KEPT_KEYS].memory,
                             .scratch = ctx->kept[KEPT_SCRATCH].memory,
                             .scratch_keys = s->scratch_keys + spare,
                             .in_place = s->in_place,
                             // The local sort no longer needs the workspace when the exchange runs.
                             .workspace = ctx->kept[KEPT_WORKSPACE].memory,
                             .workspace_bytes = ctx->kept[KEPT_WORKSPACE].bytes,
                             .rung = sort_rung(ctx, s->map.key_bytes),
                             .chunk_bytes = ctx->options.chunk_bytes,
                             .count = s->in_count};
    return HSORT_OK;
}

/* ---- two passes, or in place ---------------------------------------------------------------------------- */

/* Does this rank lack the engine memory for one pass? That takes two buffers, and the caller may lend the first. */
static hsort_status lacks_memory(const struct sort *s, bool *lacks)
{
    const size_t keys_bytes = lends(s) ? 0 : (size_t)s->capacity * (size_t)s->map.key_bytes;
    struct memory_need need;
    size_t bytes;
    *lacks = false;
    TRY(need_for(s, keys_bytes, s->capacity, &need));
    if (memory_need_growth(s->ctx, &need) == 0) // the context holds all of it: no need to ask the system
        return HSORT_OK;
    TRY(context_engine_bytes(s->ctx, &bytes));
    // A limit counts exactly the bytes asked for. Of free memory the last part is not counted on (usable_bytes()), as long as there is
    // another way. If the caller lends a buffer, this holds for a limit, too: sort_reserve() counts in the same way then.
    const bool exact = s->ctx->options.device_memory_limit > 0 && !lends(s);
    *lacks = memory_need_bytes(&need) > (exact ? bytes : usable_bytes(bytes));
    if (!*lacks || !comm_is_alone(&s->ctx->comm))
        return HSORT_OK;
    // The least memory that find_less() may choose.
    TRY(need_for(s, 0, scratch_for_chunks(s, ENGINE_CHUNKS_MAX), &need));
    *lacks = keys_bytes > bytes || memory_need_bytes(&need) > usable_bytes(bytes - keys_bytes);
    return HSORT_OK;
}

/* Where this rank's keys come from and go to. Only `direct` sorts in place, and only keys that are themselves what the caller wants
 * sorted. */
static struct passes_answer answer_for(const struct sort *s)
{
    const hsort_context *ctx = s->ctx;
    const hsort_exchange wanted = ctx->options.exchange;
    const bool none = s->in_count == 0 && s->out_count == 0;
    const bool on_host = (s->in_count == 0 || s->in_space != SPACE_ENGINE) &&
                         (s->out_count == 0 || s->out_space != SPACE_ENGINE);
    const bool in_engine = s->out_space == SPACE_ENGINE && s->in_count == s->out_count && !s->are_codes &&
                           !s->source && (wanted == HSORT_EXCHANGE_AUTO || wanted == HSORT_EXCHANGE_DIRECT) &&
                           (ctx->usable_exchanges >> HSORT_EXCHANGE_DIRECT & 1);
    return (struct passes_answer){.on_host = !none && on_host,
                                  .in_engine = !none && in_engine,
                                  .elsewhere = !none && !on_host && !in_engine};
}

hsort_status sort_agree_on_passes(struct comm *comm, const struct passes_answer *answer, hsort_status mine,
                                  int *passes, bool *in_place)
{
    enum { ON_HOST, IN_ENGINE, ELSEWHERE, LACKS, FAILED, FLAGS };
    const int64_t own[FLAGS] = {answer->on_host, answer->in_engine, answer->elsewhere, answer->lacks,
                                mine != HSORT_OK};
    int64_t ranks[FLAGS];
    TRY(comm_sums(comm, own, FLAGS, ranks));
    if (ranks[FAILED] > 0)
        return comm_agree(comm, mine);
    const bool lacks = ranks[LACKS] > 0 && ranks[ELSEWHERE] == 0;
    *passes = lacks && ranks[IN_ENGINE] == 0 ? 2 : 1;
    *in_place = lacks && ranks[ON_HOST] == 0 && *passes == 1;
    return HSORT_OK;
}

/* Sort in place: each rank keeps its count, whatever it is. */
static void choose_in_place(struct sort *s)
{
    s->room = s->in_count;
    s->fits = s->any_target_fits = true;
    s->raw_exchange = NULL;
    s->sorted_exchange = &exchange_direct;
    s->ctx->exchange = s->sorted_exchange->kind;
}

hsort_status sort_choose_passes(struct sort *s)
{
    hsort_context *ctx = s->ctx;
    const bool limited = ctx->options.device_memory_limit > 0;
    const bool small = s->capacity < PASS_SLOT_BYTES_MIN / s->map.key_bytes;
    hsort_status status = HSORT_OK;
    s->passes = 1;
    // The answer here is the same on every rank. Few keys fit any GPU, and short sorts should not pay for a question. The host engine
    // without a limit works where the keys lie.
    if (s->total == 0 || (!limited && (small || hsort_engine_in_use(ctx) == HSORT_ENGINE_HOST)))
        return HSORT_OK;
    struct passes_answer answer = answer_for(s);
    if (answer.on_host || !comm_is_alone(&ctx->comm)) // a rank alone takes less scratch for keys in engine memory
        status = lacks_memory(s, &answer.lacks);
    TRY(sort_agree_on_passes(&ctx->comm, &answer, status, &s->passes, &s->in_place));
    if (s->in_place)
        choose_in_place(s);
    return HSORT_OK;
}

hsort_status sort_choose_store(struct sort *s, size_t memory_bytes, bool *needs)
{
    hsort_context *ctx = s->ctx;
    struct memory_need need = {0};
    hsort_status status = HSORT_OK;
    *needs = false;
    if (s->total == 0 || KEY_IS_COUNTED(s->map.key_bytes))
        return HSORT_OK;
    const bool on_host = hsort_engine_in_use(ctx) == HSORT_ENGINE_HOST;
    if (on_host)
        status = need_for(s, (size_t)s->capacity * (size_t)s->map.key_bytes, s->capacity, &need);
    else
        TRY(sort_choose_passes(s));
    const bool mine =
        disk_plan_needs(on_host, memory_need_bytes(&need), s->passes == 2, sort_run_bytes(s), memory_bytes);
    TRY(comm_agree(&ctx->comm, status));
    return comm_any(&ctx->comm, mine, needs);
}

size_t sort_run_bytes(const struct sort *s)
{
    const bool in_input = s->ctx->options.overwrite_input && s->in != s->out && !s->source;
    const struct pass_sort sort = {.map = s->map, .elements = s->elements};
    return in_input ? 0 : (size_t)s->in_count * pass_element_bytes(&sort);
}

/* ---- memory of an exchange, and what callers ask --------------------------------------------------------- */

/* Reserve so many bytes for an exchange in the context. False: there is no such memory, which is no error. */
static bool reserve_exchange_bytes(hsort_context *ctx, size_t bytes)
{
    fault_pause(true); // a failure here is not an error of the sort
    const bool has = context_reserve(ctx, KEPT_EXCHANGE, bytes) == HSORT_OK;
    fault_pause(false);
    if (!has)
        status_clear();
    return has;
}

/* *has: all ranks of this node can have so many bytes for an exchange. Collective over the node, as check_node_memory(). */
static hsort_status node_has_exchange_bytes(const struct sort *s, size_t bytes, bool *has)
{
    const struct memory_need need = {.kept = {[KEPT_EXCHANGE] = bytes}, .apart = s->new_bytes};
    fault_pause(true);
    const hsort_status status = check_node_memory(s, &need);
    fault_pause(false);
    *has = status == HSORT_OK;
    if (status != HSORT_HOST_MEMORY)
        return status;
    status_clear();
    return HSORT_OK;
}

void sort_make_codes(struct sort *s)
{
    if (!s->numbered)
        return;
    keep_first_error(&s->status, numbered_keys_encode(s->ctx->engine, s->map.key_bytes, s->numbered,
                                                      s->x.keys, s->x.count));
    s->held = s->x.keys;
    s->numbered = NULL;
}

hsort_status sort_reserve_exchange(struct sort *s)
{
    hsort_context *ctx = s->ctx;
    const size_t raw = exchange_bytes(ctx, s->raw_exchange, s->map.key_bytes, s->capacity),
                 sorted = exchange_bytes(ctx, s->sorted_exchange, s->map.key_bytes, s->capacity);
    bool fits;
    TRY(node_has_exchange_bytes(s, greater_bytes(raw, sorted), &fits));
    if (s->raw_exchange) {
        bool all;
        TRY(comm_all(&ctx->comm, fits && reserve_exchange_bytes(ctx, greater_bytes(raw, sorted)), &all));
        if (!all)
            s->raw_exchange = NULL;
    }
    // Sorted runs can move without this memory, too: ranks agree on that when they move them.
    const bool has = fits && reserve_exchange_bytes(ctx, s->raw_exchange ? raw : sorted);
    s->x.memory = has ? ctx->kept[KEPT_EXCHANGE].memory : NULL;
    return HSORT_OK;
}

/* The largest count that can be asked for: the bytes of both buffers of a sort fit 64 bits. */
static int64_t most_keys(size_t width)
{
    return INT64_MAX / 2 / (int64_t)greater_bytes(width, sizeof(uint64_t));
}

/* Memory for keys in host memory that are counted, not moved. */
static size_t narrow_bytes(const hsort_context *ctx, int width, int64_t count)
{
    const bool reaches =
        hsort_engine_in_use(ctx) == HSORT_ENGINE_HOST && ctx->options.device_memory_limit == 0;
    const size_t bytes = (size_t)count * (size_t)width;
    return narrow_table_bytes(width) + (reaches ? 0 : lesser_bytes(bytes, STREAM_PART_BYTES));
}

hsort_status hsort_workspace(const hsort_context *ctx, hsort_type type, int64_t count, size_t *bytes)
{
    const size_t width = hsort_type_bytes(type);
    if (!ctx || !bytes || width == 0 || count < 0 || count > most_keys(width))
        return HSORT_ARGUMENT;
    if (comm_usable() != HSORT_OK) { // MPI is asked which ranks are near
        status_clear();
        return HSORT_MPI;
    }
    if (KEY_IS_COUNTED(width)) {
        *bytes = narrow_bytes(ctx, (int)width, count);
        return HSORT_OK;
    }
    size_t workspace_bytes;
    TRY(workspace_for(ctx, (int)width, count, count, &workspace_bytes));
    size_t most = 0; // only one of the exchanges runs at a time
    for (int i = 0; i < EXCHANGES; i++) {
        const struct exchange_ops *exchange = exchange_table[i];
        if (ctx->usable_exchanges >> exchange->kind & 1)
            most = greater_bytes(most, exchange_bytes(ctx, exchange, (int)width, count) +
                                           (size_t)exchange_spare(ctx, exchange, count) * width);
    }
    *bytes = 2 * (size_t)count * width + workspace_bytes + most;
    return HSORT_OK;
}

/* Host memory that two passes take beside the runs, given the memory that this rank's engine has now. Not collective. */
static hsort_status bytes_beside_runs(const struct sort *s, size_t *bytes)
{
    struct pass_sort sort = {.ctx = s->ctx, .map = s->map};
    const int64_t ranks = s->ctx->comm.size;
    size_t have, need;
    int64_t slot;
    TRY(context_engine_bytes(s->ctx, &have));
    TRY(pass_slot_find(s->capacity, pass_element_bytes(&sort), usable_bytes(have), pass_sort_workspace, &sort,
                       &slot, &need));
    const int64_t runs = slot > 0 ? divide_up(s->capacity, slot) : 0;
    *bytes = pass_bytes_beside_runs(s->ctx->comm.size, runs, runs, ranks * runs, ranks * runs,
                                    pass_slot_bytes(slot, pass_element_bytes(&sort)));
    return HSORT_OK;
}

hsort_status hsort_host_workspace(const hsort_context *ctx, hsort_type type, int64_t count, size_t *bytes)
{
    const size_t width = hsort_type_bytes(type);
    if (!ctx || !bytes || width == 0 || count < 0 || count > most_keys(width))
        return HSORT_ARGUMENT;
    *bytes = 0;
    if (KEY_IS_COUNTED(width))
        return HSORT_OK;
    struct sort s = {.ctx = (hsort_context *)ctx, // nothing below writes to it
                     .capacity = count,
                     .room = count,
                     .map = keymap_make(type, HSORT_ASCENDING)};
    bool lacks = false;
    const bool limited = ctx->options.device_memory_limit > 0;
    if (count > 0 && (limited || hsort_engine_in_use(ctx) != HSORT_ENGINE_HOST))
        TRY(lacks_memory(&s, &lacks));
    if (!lacks)
        return HSORT_OK;
    TRY(bytes_beside_runs(&s, bytes));
    *bytes += (size_t)count * width;
    return HSORT_OK;
}
