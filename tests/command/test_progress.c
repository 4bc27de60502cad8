/* Lines of progress: what they say, when they come, and that each is one write. The clock is this file's, by --wrap, so that hours
 * pass at once. stderr is a socket of datagrams, which keeps apart what a log would join, or, for bars, a terminal. */
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "src/command/progress.h"
#include "tests/support/ranks.h"

double __wrap_MPI_Wtime(void);

static double now = 1000; /* what MPI_Wtime() says */

double __wrap_MPI_Wtime(void)
{
    return now;
}

/* ---- what was written ---- */

static int log_end; /* the socket's other end */
static int log_start(void)
{
    int ends[2];
    const int saved = dup(STDERR_FILENO);
    if (saved < 0 || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends) != 0) {
        perror("socketpair");
        exit(1);
    }
    dup2(ends[0], STDERR_FILENO);
    close(ends[0]);
    log_end = ends[1];
    return saved;
}

static void log_stop(int saved)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(log_end);
}

/* The next write's bytes as a text; false: there is none. */
static bool log_next(char *text, size_t bytes)
{
    const ssize_t got = recv(log_end, text, bytes - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return got >= 0;
}

static bool matches(const char *text, const char *pattern)
{
    regex_t regex;
    const bool good = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) == 0;
    const bool found = good && regexec(&regex, text, 0, NULL, 0) == 0;
    if (good)
        regfree(&regex);
    return found;
}

static char failure[512]; /* what the next CHECK shall print; stderr is the log while a case runs */

/* The next write is one line, of the pattern, which begins after the time of day; NULL: there is none. */
static void expect(const char *pattern)
{
    char line[512], whole[256];
    const bool any = log_next(line, sizeof line);
    snprintf(whole, sizeof whole, "^hypersort: [0-2][0-9]:[0-5][0-9]:[0-6][0-9] %s\n$",
             pattern ? pattern : "");
    if ((pattern ? !any || !matches(line, whole) : any) && failure[0] == '\0')
        snprintf(failure, sizeof failure, "'%.200s', not '%s'", line, pattern ? pattern : "nothing");
}

static void report_failure(const char *what)
{
    CHECK(failure[0] == '\0', "%s: %s", what, failure);
    failure[0] = '\0';
}

/* ---- cases ---- */

enum { GIB = 1 << 30 };

static void test_lines(void)
{
    struct progress progress;
    const int saved = log_start();
    progress_start(&progress, PROGRESS_LINES);
    now += 12;
    progress_bytes(&progress, "read", 10, 100, 4L * GIB); // the first chunk: too early, and no rate yet
    expect(NULL);
    now += 2;
    progress_bytes(&progress, "read", 60, 100, 4L * GIB); // 2 GiB in 2 s since then
    expect("14 s  read 60 % of 4\\.00 GiB  \\(1\\.00 GiB/s\\)");
    now += 0.5;
    progress_bytes(&progress, "read", 70, 100, 4L * GIB);
    expect(NULL);
    progress_bytes(&progress, "read", 100, 100, 4L * GIB); // 3.6 GiB in 2.5 s
    expect("14 s  read 100 % of 4\\.00 GiB  \\(1\\.44 GiB/s\\)");
    progress_steps(&progress, "local_sort", 1, 1);
    expect("14 s  local_sort of 4\\.00 GiB: done");
    progress_steps(&progress, "exchange", 1, 7);
    now += 1;
    progress_steps(&progress, "exchange", 2, 7);
    expect("16 s  exchange of 4\\.00 GiB: step 2 of 7");
    progress_steps(&progress, "exchange", 7, 7);
    expect("16 s  exchange of 4\\.00 GiB: step 7 of 7");
    progress_bytes(&progress, "write", 100, 100, 4L * GIB); // one chunk: there is no rate
    expect("16 s  write 100 % of 4\\.00 GiB");
    progress_bytes(&progress, "check", 0, 0, 0);
    expect("16 s  check 100 % of 0 bytes");
    expect(NULL);
    log_stop(saved);
    report_failure("lines");
}

/* Lines of a phase with a call every `step` seconds: those that are due. */
static void test_interval(void)
{
    static const int due[] = {1, 3, 7, 15, 25, 35, 45, 55, 65};
    struct progress progress;
    const int saved = log_start();
    progress_start(&progress, PROGRESS_LINES);
    const double start = now;
    for (int tenth = 0; tenth < 700; tenth++) {
        now = start + tenth / 10.0;
        progress_bytes(&progress, "write", tenth + 1, 1000000, GIB);
        char line[256];
        const bool any = log_next(line, sizeof line);
        bool expected = false;
        for (size_t i = 0; i < sizeof due / sizeof *due; i++)
            expected |= tenth == 10 * due[i];
        if (any != expected && failure[0] == '\0')
            snprintf(failure, sizeof failure, "%.1f s: %s", tenth / 10.0, any ? line : "no line");
    }
    // A phase of the same name is a new one, once the one before has ended.
    progress_bytes(&progress, "write", 1000000, 1000000, GIB);
    expect("70 s  write 100 % of 1\\.00 GiB  .*");
    progress_bytes(&progress, "write", 1, 10, GIB);
    expect(NULL);
    now += 1;
    progress_bytes(&progress, "write", 2, 10, GIB);
    expect("71 s  write 20 % of 1\\.00 GiB  \\(102\\.40 MiB/s\\)");
    log_stop(saved);
    report_failure("interval");
}

/* Nothing where it was not asked for; the job where there is one; nothing lost when nobody reads. */
static void test_surroundings(void)
{
    struct progress progress;
    int saved = log_start();
    progress_start(&progress, PROGRESS_NONE);
    now += 100;
    progress_bytes(&progress, "read", 100, 100, GIB);
    progress_steps(&progress, "exchange", 7, 7);
    expect(NULL);
    setenv("SLURM_JOB_ID", "4711", 1);
    progress_start(&progress, PROGRESS_LINES);
    progress_bytes(&progress, "read", 100, 100, GIB);
    char line[512];
    if (!log_next(line, sizeof line) ||
        !matches(line, "^hypersort: job 4711 ..:..:.. 0 s  read 100 % of 1\\.00 GiB\n$"))
        snprintf(failure, sizeof failure, "'%.400s'", line);
    unsetenv("SLURM_JOB_ID");
    close(log_end);
    progress_bytes(&progress, "read", 100, 100, GIB);
    log_end = -1;
    log_stop(saved);
    report_failure("surroundings");
}

/* What is read of a line and nothing else: it holds no carriage return, and is never longer than a pipe takes at once. */
static void test_random(uint64_t *random)
{
    static const char *const phases[] = {"read", "write", "a_phase_with_a_very_long_name", "x"};
    struct progress progress;
    int lines = 0;
    const int saved = log_start();
    progress_start(&progress, PROGRESS_LINES);
    for (int call = 0; call < 20000; call++) {
        const int64_t total = (int64_t)(check_random(random) >> (1 + check_random(random) % 62));
        const int64_t done = total > 0 ? (int64_t)(check_random(random) % ((uint64_t)total + 1)) : 0;
        const int64_t bytes = (int64_t)(check_random(random) >> (1 + check_random(random) % 62));
        const char *phase = phases[check_random(random) % 4];
        now += (double)(check_random(random) % 1000) / 100;
        if (check_random(random) % 2)
            progress_bytes(&progress, phase, done, total, bytes);
        else
            progress_steps(&progress, phase, done, total);
        char line[512];
        while (log_next(line, sizeof line)) {
            lines++;
            if ((strchr(line, '\r') || strchr(line, '\n') != line + strlen(line) - 1 ||
                 strlen(line) >= 200) &&
                failure[0] == '\0')
                snprintf(failure, sizeof failure, "'%.400s'", line);
        }
    }
    log_stop(saved);
    CHECK(lines > 1000, "only %d lines", lines);
    report_failure("random");
}

/* ---- bars ---- */

/* A terminal of so many columns for stderr, which was `saved`; log_end is its other end. False: there are none here. */
static bool terminal_start(unsigned short columns, int *saved)
{
    const struct winsize size = {.ws_row = 24, .ws_col = columns};
    log_end = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (log_end < 0 || grantpt(log_end) != 0 || unlockpt(log_end) != 0)
        return false;
    const int terminal = open(ptsname(log_end), O_RDWR | O_NOCTTY);
    if (terminal < 0 || ioctl(terminal, TIOCSWINSZ, &size) != 0)
        return false;
    *saved = dup(STDERR_FILENO);
    dup2(terminal, STDERR_FILENO);
    close(terminal);
    return true;
}

/* What has come to the terminal since the last time is this text. */
static void expect_bar(const char *wanted)
{
    char text[1024];
    const ssize_t got = read(log_end, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    if (strcmp(text, wanted) != 0 && failure[0] == '\0')
        snprintf(failure, sizeof failure, "'%.200s', not '%.200s'", text, wanted);
}

#define CLEAR "\r\033[K"

static void test_bars(void)
{
    struct progress progress;
    int saved;
    if (!terminal_start(100, &saved)) {
        printf("skipped bars: there are no pseudo-terminals\n");
        return;
    }
    progress_start(&progress, PROGRESS_BAR);
    progress_bytes(&progress, "read", 10, 100, 4L * GIB);
    now += 0.1;
    progress_bytes(&progress, "read", 11, 100, 4L * GIB); // too early: short phases draw nothing
    expect_bar("");
    now += 1.9;
    progress_bytes(&progress, "read", 60, 100, 4L * GIB);
    expect_bar(
        "\rread  60 % [########################----------------]  2.40 GiB of 4.00 GiB  1.00 GiB/s  2 s "
        "left\033[K");
    now += 100;
    progress_bytes(&progress, "read", 61, 100, 4L * GIB);
    expect_bar(
        "\rread  61 % [########################----------------]  2.44 GiB of 4.00 GiB  20.48 MiB/s  1:18 "
        "left\033[K");
    now += 0.1;
    progress_bytes(&progress, "read", 62, 100, 4L * GIB);
    expect_bar("");
    progress_bytes(&progress, "read", 100, 100, 4L * GIB);
    expect_bar(CLEAR);
    progress_steps(&progress, "local_sort", 1, 1);
    expect_bar("");
    progress_steps(&progress, "exchange", 1, 7);
    now += 3000;
    progress_steps(&progress, "exchange", 3, 7);
    expect_bar("\rexchange  43 % [#################-----------------------]  step 3 of 7 of 4.00 GiB  "
               "1:40:00 left\033[K");
    progress_bytes(&progress, "write", 0, 100, 4L * GIB); // the phase before has not said that it ended
    expect_bar(CLEAR);
    const struct winsize narrow = {.ws_row = 24, .ws_col = 30};
    ioctl(log_end, TIOCSWINSZ, &narrow);
    now += 1;
    progress_bytes(&progress, "write", 50, 100, 4L * GIB);
    expect_bar("\rwrite  50 %  2.00 GiB of 4.00\033[K"); // 29 columns
    progress_clear();                                    // before an error line, say
    expect_bar(CLEAR);
    progress_clear();
    expect_bar("");
    log_stop(saved);
    report_failure("bars");
}

static void test_choice(void)
{
    enum progress_form on_terminal[3] = {0}, dumb[3] = {0}, in_log[3], others[3];
    int saved;
    const bool any = terminal_start(80, &saved);
    for (int choice = PROGRESS_ON; any && choice <= PROGRESS_OFF; choice++) {
        setenv("TERM", "xterm", 1);
        on_terminal[choice] = progress_choose(choice, 0);
        others[choice] = progress_choose(choice, 1);
        setenv("TERM", "dumb", 1);
        dumb[choice] = progress_choose(choice, 0);
        setenv("TERM", "xterm", 1);
    }
    if (any)
        log_stop(saved);
    saved = log_start();
    for (int choice = PROGRESS_ON; choice <= PROGRESS_OFF; choice++)
        in_log[choice] = progress_choose(choice, 0);
    log_stop(saved);
    CHECK(!any || (on_terminal[PROGRESS_ON] == PROGRESS_BAR && on_terminal[PROGRESS_AUTO] == PROGRESS_BAR &&
                   dumb[PROGRESS_ON] == PROGRESS_LINES && dumb[PROGRESS_AUTO] == PROGRESS_NONE &&
                   others[PROGRESS_ON] == PROGRESS_NONE && on_terminal[PROGRESS_OFF] == PROGRESS_NONE),
          "on a terminal");
    CHECK(in_log[PROGRESS_ON] == PROGRESS_LINES && in_log[PROGRESS_AUTO] == PROGRESS_NONE &&
              in_log[PROGRESS_OFF] == PROGRESS_NONE,
          "in a log");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    signal(SIGPIPE, SIG_IGN);
    unsetenv("SLURM_JOB_ID");
    uint64_t random = ranks_seed();
    test_lines();
    test_interval();
    test_surroundings();
    test_random(&random);
    test_bars();
    test_choice();
    return ranks_finish();
}
