/* The tests' tools find what is wrong. `test_checks fails`: only the last rank counts a failure, and the program must fail. */
#include "tests/library/drawn_array.h"
#include "tests/support/faults.h"

static void test_array(void)
{
    struct array same = array_make("some", 4), other = array_make("some", 4), beyond = array_make("some", 4);
    other.memory[3] ^= 1;
    beyond.memory[4 + GUARD - 1] ^= 1;
    same.memory[3] ^= 1;
    expect(&same, "somd");
    array_check(&same, "what is expected");
    CHECK_FINDS(array_check(&other, "another byte"));
    CHECK_FINDS(array_check(&beyond, "another byte behind it"));
}

static void test_passages(void)
{
#ifdef HSORT_FAULTS
    fault_set(FAULT_ALLOC, 2);
    CHECK(!fault_hit(FAULT_ALLOC) && fault_untouched(FAULT_ALLOC, 2), "the second passage was not reached");
    fault_set(FAULT_ALLOC, 2);
    CHECK(!fault_hit(FAULT_ALLOC) && fault_hit(FAULT_ALLOC) && !fault_untouched(FAULT_ALLOC, 2), "it was");
#endif
}

int main(int argc, char **argv)
{
    int rank, size;
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    CHECK(argc == 1 || rank < size - 1, "as it must be");
    test_array();
    test_passages();
    return ranks_finish();
}
