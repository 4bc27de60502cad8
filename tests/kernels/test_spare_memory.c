/* Memory that calls take again (spare_memory.h): `test_spare_memory host` or `cuda`. Equal calls get the same blocks; calls that grow
 * leave little memory that nobody uses. */
#include "kernels/spare_memory.h"
#include "tests/kernels/engine_test.h"

enum { CALLS = 40, BLOCKS = 3 };

/* Take the blocks of a call and give them back; memory [BLOCKS]: where they were. */
static void call_with(struct spare_memory *spare, const size_t bytes[BLOCKS], void *memory[BLOCKS])
{
    for (int i = 0; i < BLOCKS; i++)
        must(spare_take(spare, bytes[i], &memory[i]), "spare_take");
    for (int i = 0; i < BLOCKS; i++)
        spare_give(spare, memory[i]);
}

static void check_growth(uint64_t *random)
{
    struct spare_memory spare = {.engine = engine};
    void *memory[BLOCKS];
    size_t bytes[BLOCKS] = {0}, all = 0;
    for (int call = 0; call < CALLS; call++) {
        all = 0;
        for (int i = 0; i < BLOCKS; i++)
            all += bytes[i] = (size_t)(i + 1) * 100000 + (size_t)call * 5000 + check_random(random) % 4000;
        call_with(&spare, bytes, memory);
        CHECK(spare_idle_bytes(&spare) <= 2 * all, "call %d of %zu bytes leaves %zu", call, all,
              spare_idle_bytes(&spare));
    }
    spare_drop(&spare);
    CHECK(spare_idle_bytes(&spare) == 0, "%zu bytes are left", spare_idle_bytes(&spare));
}

/* Make calls of two kinds in turn. */
static void check_turns(void)
{
    struct spare_memory spare = {.engine = engine};
    static const size_t bytes[2][BLOCKS] = {{1000, 200000, 50000}, {150000, 2000, 300000}};
    void *first[2][BLOCKS], *memory[BLOCKS];
    for (int call = 0; call < CALLS; call++) {
        call_with(&spare, bytes[call % 2], memory);
        if (call < 4)
            memcpy(first[call % 2], memory, sizeof memory);
        CHECK(memcmp(first[call % 2], memory, sizeof memory) == 0, "call %d gets other blocks than before",
              call);
    }
    spare_drop(&spare);
}

int main(int argc, char **argv)
{
    uint64_t random = check_seed();
    open_engine(argc, argv);
    printf("test_spare_memory %s: seed %llu\n", ops->name, (unsigned long long)random);
    check_growth(&random);
    check_turns();
    close_engine();
    return check_failures > 0;
}
