/* Signals while they are watched, and as the watch ends: none is lost. The linker puts __wrap_sigaction() in the place of
 * sigaction() (--wrap), at which a signal may come. */
#include <signal.h>
#include "src/command/stop.h"
#include "tests/support/ranks.h"

int __real_sigaction(int number, const struct sigaction *action, struct sigaction *before);
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before);

static int comes, comes_at; /* this signal, before the nth next call of sigaction() */
static volatile sig_atomic_t handled[2];

int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    if (comes_at-- == 1)
        raise(comes);
    return __real_sigaction(number, action, before);
}

static void handle(int number)
{
    handled[number == SIGTERM]++;
}

/* One that comes before the nth step of stop_unwatch() has its own handler's attention, once. */
static void test_unwatch(int number, int nth)
{
    handled[0] = handled[1] = 0;
    stop_watch();
    comes = number;
    comes_at = nth;
    stop_unwatch();
    CHECK(handled[0] == (number == SIGUSR1) && handled[1] == (number == SIGTERM),
          "%s before step %d: handled %d and %d times", stop_signal_name(number), nth, (int)handled[0],
          (int)handled[1]);
}

static void test_watch(void)
{
    handled[0] = handled[1] = 0;
    stop_watch();
    CHECK(stop_signal() == 0, "a signal before one came");
    raise(SIGUSR1);
    raise(SIGTERM);
    CHECK(stop_signal() == SIGUSR1, "%s came first", stop_signal_name(stop_signal()));
    stop_unwatch();
    CHECK(handled[0] == 1 && handled[1] == 0 && stop_signal() == 0, "handled %d and %d times",
          (int)handled[0], (int)handled[1]);
}

/* What a launcher has blocked is not blocked while it is watched, and is so again. */
static void test_blocked(void)
{
    sigset_t blocked, during, after;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    stop_watch();
    sigprocmask(SIG_BLOCK, NULL, &during);
    stop_unwatch();
    sigprocmask(SIG_UNBLOCK, &blocked, &after);
    CHECK(!sigismember(&during, SIGUSR1) && sigismember(&after, SIGUSR1) && !sigismember(&after, SIGTERM),
          "signals that were blocked");
}

int main(int argc, char **argv)
{
    struct sigaction own = {.sa_handler = handle};
    MPI_Init(&argc, &argv);
    __real_sigaction(SIGUSR1, &own, NULL);
    __real_sigaction(SIGTERM, &own, NULL);
    test_watch();
    for (int nth = 1; nth <= 2; nth++) {
        test_unwatch(SIGUSR1, nth);
        test_unwatch(SIGTERM, nth);
    }
    test_blocked();
    return ranks_finish();
}
