/* A checkpoint under SIGKILL: a child of this process does one step of it and is killed before its 1st, 2nd, ... call that
 * changes a file, and in the middle of a write, until it comes through. After each kill, the next start must find the state before
 * or after the step, whole, and nothing else in the directory. */
#include "tests/checkpoint/killed_calls.h"

CATCH(unlinkat, (int fd, const char *path, int flags), (fd, path, flags))

/* ---- The steps ----------------------------------------------------------------------------------------- */

enum step { BEGIN, MARK, MARK_AGAIN, REMOVE, STEPS };

/* What is marked once all steps before `step` are done. */
static int ranges_before(enum step step)
{
    return step == BEGIN || step == MARK ? 0 : step == MARK_AGAIN ? 1 : 2;
}

static void do_step(struct checkpoint *checkpoint, enum step step)
{
    const struct checkpoint_range range = {step == MARK ? 10 : 100, 20};
    if (step == MARK || step == MARK_AGAIN)
        CHECK(checkpoint_mark(&self, checkpoint, range) == HSORT_OK, "%s", self.error);
    else if (step == REMOVE)
        checkpoint_remove(&self, checkpoint);
}

/* Bring the directory to where `step` begins: all steps before it were done. */
static void prepare(enum step step)
{
    struct checkpoint checkpoint;
    nftw(work.directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    if (step == BEGIN)
        return;
    CHECK(open_work(&self, &work, &checkpoint) == HSORT_OK, "%s", self.error);
    for (enum step done = MARK; done < step; done++)
        do_step(&checkpoint, done);
    checkpoint_close(&checkpoint);
}

/* A child does the step and is killed at its nth call; false if it came through. */
static bool kill_at(enum step step, long nth)
{
    char what[64];
    snprintf(what, sizeof what, "step %d, call %ld", step, nth);
    const pid_t child = fork();
    if (child == 0) {
        struct checkpoint checkpoint;
        calls_left = step == BEGIN ? nth : 0;
        hsort_status status = open_work(&self, &work, &checkpoint);
        calls_left = nth;
        if (status == HSORT_OK)
            do_step(&checkpoint, step);
        calls_left = 0;
        _exit(status == HSORT_OK && check_failures == 0 ? 0 : 1);
    }
    return was_killed(child, what);
}

/* What the next start finds after `step`, which was perhaps killed. Returns whether the step was done. */
static bool check_state(enum step step, bool killed, long nth)
{
    struct checkpoint checkpoint;
    char what[64];
    int64_t end;
    snprintf(what, sizeof what, "step %d, call %ld", step, nth);
    const hsort_status status = open_work(&self, &work, &checkpoint);
    CHECK(status == HSORT_OK, "%s: %s", what, self.error);
    status_clear();
    if (status != HSORT_OK)
        return false;
    const bool done = step == BEGIN    ? checkpoint.found
                      : step == REMOVE ? !checkpoint.found
                                       : checkpoint.ranges == ranges_before(step + 1);
    const int ranges =
        step == REMOVE && done ? 0 : ranges_before(step) + (done && step != BEGIN && step != REMOVE);
    CHECK(done || killed, "%s: came through, and nothing is done", what);
    CHECK(checkpoint.ranges == ranges, "%s: %d ranges instead of %d", what, checkpoint.ranges, ranges);
    for (int r = 0; r < ranges && r < checkpoint.ranges; r++)
        CHECK(checkpoint_has(&checkpoint, r == 0 ? 10 : 100, &end) && end == (r == 0 ? 30 : 120),
              "%s: range %d", what, r);
    checkpoint_remove(&self, &checkpoint);
    checkpoint_close(&checkpoint);
    CHECK(count_names(work.directory) == 1, "%s: something stays", what);
    return done;
}

static void test_step(enum step step)
{
    int undone = 0, done = 0;
    bool killed = true;
    for (long nth = 1; killed && nth < 1000; nth++) {
        prepare(step);
        if (step == BEGIN && mkdir(work.directory, 0777) != 0)
            CHECK(false, "mkdir");
        close(open(in_dir("checkpoint/manifest.new"), O_CREAT | O_WRONLY, 0666)); // not ours
        killed = kill_at(step, nth);
        *(check_state(step, killed, nth) ? &done : &undone) += 1;
    }
    printf("step %d: killed before it counted %d times, after it %d times\n", step, undone, done - 1);
    CHECK(undone > (step == REMOVE ? 0 : 4) && done > 1, "step %d was not cut into pieces: %d + %d", step,
          undone, done);
}

static void test_all(void)
{
    if (comm_open(MPI_COMM_SELF, &self) != HSORT_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    work = make_work(HSORT_U32);
    put_input(&work, 1000);
    for (enum step step = BEGIN; step < STEPS; step++)
        test_step(step);
    comm_close(&self);
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
