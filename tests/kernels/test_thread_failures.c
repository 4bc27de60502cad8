/* Of all threads' failures the first one is kept, with the text of the thread that failed, and no thread keeps a text of its own. */
#include "kernels/base/thread_failures.h"
#include <stdatomic.h>
#include "tests/support/check.h"

enum { THREADS = 8, NOTES = 1000 };

static atomic_int texts_left;

struct worker {
    struct thread_failures *failures;
    int number;
};

/* Fail again and again, each time with a cause of its own. */
static void *fail_often(void *argument)
{
    const struct worker *worker = argument;
    for (int i = 0; i < NOTES; i++) {
        const hsort_status status = worker->number % 2 ? HSORT_IO : HSORT_HOST_MEMORY;
        thread_failures_note(worker->failures, status_fail(status, "thread %d, note %d", worker->number, i));
        if (status_text()[0] != '\0')
            atomic_fetch_add(&texts_left, 1);
        thread_failures_note(worker->failures, HSORT_OK);
    }
    return NULL;
}

static void test_none(void)
{
    struct thread_failures failures;
    thread_failures_begin(&failures);
    thread_failures_note(&failures, HSORT_OK);
    CHECK(!thread_failures_any(&failures), "a failure without any");
    CHECK(thread_failures_end(&failures) == HSORT_OK && status_text()[0] == '\0', "'%s'", status_text());
}

static void test_first_stays(void)
{
    struct thread_failures failures;
    thread_failures_begin(&failures);
    thread_failures_note(&failures, status_fail(HSORT_IO, "the first"));
    CHECK(status_text()[0] == '\0', "the thread keeps '%s'", status_text());
    CHECK(thread_failures_any(&failures), "no failure");
    thread_failures_note(&failures, status_fail(HSORT_CUDA, "the second"));
    const hsort_status status = thread_failures_end(&failures);
    CHECK(status == HSORT_IO && strcmp(status_text(), "the first") == 0, "%d: '%s'", (int)status,
          status_text());
    status_clear();
}

/* Whichever thread was first: the status and the text are of the same failure. */
static void test_threads(void)
{
    struct thread_failures failures;
    struct worker worker[THREADS];
    pthread_t thread[THREADS];
    int number = -1, note = -1;
    thread_failures_begin(&failures);
    for (int i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){&failures, i};
        if (pthread_create(&thread[i], NULL, fail_often, &worker[i]) != 0)
            exit(EXIT_FAILURE);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    const hsort_status status = thread_failures_end(&failures);
    CHECK(sscanf(status_text(), "thread %d, note %d", &number, &note) == 2 && note == 0, "'%s'",
          status_text());
    CHECK(status == (number % 2 ? HSORT_IO : HSORT_HOST_MEMORY), "%d of thread %d", (int)status, number);
    CHECK(atomic_load(&texts_left) == 0, "%d texts stay with their threads", atomic_load(&texts_left));
    status_clear();
}

int main(void)
{
    test_none();
    test_first_stays();
    test_threads();
    return check_failures > 0;
}
