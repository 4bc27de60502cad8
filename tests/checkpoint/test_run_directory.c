/* A directory of runs: made, found again, begun anew, seen by others, cleaned and removed. The test also looks at what is there after
 * each failure: a plan is there whole or not at all, and files that are not ours stay. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "kernels/base/fault.h"
#include "src/checkpoint/run_directory.h"
#include "tests/support/tree.h"

static const struct written_plan good = {.id = 0xff,
                                         .elements = 1000000,
                                         .element_bytes = 8,
                                         .part_elements = 250000,
                                         .fence_elements = 4096,
                                         .checkpoint = ""};

/* The plan with one number changed: 0 to 4; 5: as it is. */
static struct written_plan other_plan(int which)
{
    struct written_plan plan = good;
    int64_t *const numbers[] = {&plan.elements, &plan.element_bytes, &plan.part_elements,
                                &plan.fence_elements};
    if (which == 0)
        plan.id++;
    else if (which < 5)
        ++*numbers[which - 1];
    return plan;
}

/* ---- Files --------------------------------------------------------------------------------------------- */

/* In the root, or in a directory of it. One at a time. */
static const char *in_root(const char *directory, const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s%s%s%s", tree_root(), directory[0] ? "/" : "", directory,
             name[0] ? "/" : "", name);
    return path;
}

static bool is_there(const char *directory, const char *name)
{
    struct stat facts;
    return lstat(in_root(directory, name), &facts) == 0;
}

static void put(const char *directory, const char *name, const char *text)
{
    const int fd = open(in_root(directory, name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s/%s", directory, name);
    close(fd);
}

/* Everything in a directory of the root goes, and it. */
static void drop(const char *directory)
{
    char command[PATH_MAX + 80];
    snprintf(command, sizeof command, "rm -rf '%s'", in_root(directory, ""));
    CHECK(system(command) == 0, "%s", command);
}

static struct run_directory directory_of(const char *name)
{
    struct run_directory directory;
    memset(&directory, 0x5a, sizeof directory);
    snprintf(directory.path, sizeof directory.path, "%s", in_root(name, ""));
    return directory;
}

/* A line that names the path, and has the words; then no line any more. */
static void check_line(hsort_status status, const char *path, const char *words)
{
    CHECK(status == HSORT_IO, "%s: status %d", path, (int)status);
    CHECK(strstr(status_text(), path) && strstr(status_text(), words), "'%s' lacks '%s' or '%s'",
          status_text(), path, words);
    status_clear();
}

static void expect_ok(hsort_status status, const char *what)
{
    CHECK(status == HSORT_OK, "%s: %s", what, status_text());
    status_clear();
}

/* Files of runs, of which one is not whole, and files that are not ours. */
static const char *const ours[] = {"run-000000", "run-000001", "run-000002.part", "run-1000000"};
static const char *const foreign[] = {"run-1", "run-000001.partial", "run--00001", "notes"};
enum { OURS = sizeof ours / sizeof *ours, FOREIGN = sizeof foreign / sizeof *foreign };

static void fill(const char *name)
{
    for (int i = 0; i < OURS; i++)
        put(name, ours[i], "keys");
    for (int i = 0; i < FOREIGN; i++)
        put(name, foreign[i], "not ours");
}

static struct run_directory begun(const char *name, const struct written_plan *plan)
{
    struct run_directory directory = directory_of(name);
    expect_ok(run_directory_find(&directory, plan), "find");
    expect_ok(run_directory_begin(&directory, plan), "begin");
    return directory;
}

static void check_foreign(const char *name, const char *when)
{
    for (int i = 0; i < FOREIGN; i++)
        CHECK(is_there(name, foreign[i]), "%s is gone: %s", foreign[i], when);
}

static void check_ours(const char *name, bool there, const char *when)
{
    for (int i = 0; i < OURS; i++)
        CHECK(is_there(name, ours[i]) == there, "%s is %s: %s", ours[i], there ? "gone" : "there", when);
}

/* ---- Finding ------------------------------------------------------------------------------------------- */

static void test_find(void)
{
    struct stat facts;
    struct run_directory directory = directory_of("new");
    expect_ok(run_directory_find(&directory, &good), "a new one");
    CHECK(directory.made && !directory.has_plan, "made %d, plan %d", directory.made, directory.has_plan);
    CHECK(stat(in_root("new", ""), &facts) == 0 && (facts.st_mode & 0777) == 0700, "its mode");
    CHECK(directory.device == facts.st_dev && directory.inode == facts.st_ino, "another file");
    directory = directory_of("new");
    expect_ok(run_directory_find(&directory, &good), "the same");
    CHECK(!directory.made && !directory.has_plan, "made %d, plan %d", directory.made, directory.has_plan);
    directory = directory_of("missing/new");
    check_line(run_directory_find(&directory, &good), "missing/new", "cannot be made");
#ifdef HSORT_FAULTS
    directory = directory_of("full");
    fault_set(FAULT_WRITE, 1);
    check_line(run_directory_find(&directory, &good), "/full", "cannot be made");
    fault_set(FAULT_COMMIT, 1);
    check_line(run_directory_find(&directory, &good), "/full", "cannot be synced to disk");
    fault_set(FAULT_COMMIT, 1); // the name of one that was there is on disk
    expect_ok(run_directory_find(&directory, &good), "one that was there");
    fault_set(FAULT_COMMIT, 0);
    drop("full");
#endif
    put("", "file", "");
    directory = directory_of("file");
    check_line(run_directory_find(&directory, &good), "/file", "is not a directory");
    char link_path[PATH_MAX];
    snprintf(link_path, sizeof link_path, "%s", in_root("link", ""));
    CHECK(symlink(in_root("new", ""), link_path) == 0, "symlink");
    directory = directory_of("link");
    check_line(run_directory_find(&directory, &good), "/link", "is not a directory");
    CHECK(unlink(link_path) == 0, "unlink");
    drop("file");
    drop("new");
}

/* Of the numbers of a plan only these make it another one for who looks whether there is one. */
static void test_find_plan(void)
{
    begun("runs", &good);
    for (int which = 0; which < 6; which++) {
        const struct written_plan wanted = other_plan(which);
        struct run_directory directory = directory_of("runs");
        expect_ok(run_directory_find(&directory, &wanted), "find");
        CHECK(directory.has_plan == (which > 2), "number %d: has a plan: %d", which, directory.has_plan);
        if (directory.has_plan)
            CHECK(directory.plan.part_elements == good.part_elements, "the plan that was found");
    }
    put("runs", "plan", "hypersort runs 1\n");
    struct run_directory directory = directory_of("runs");
    expect_ok(run_directory_find(&directory, &good), "a damaged plan");
    CHECK(!directory.has_plan, "a damaged plan is one");
    drop("runs");
}

/* Runs of another sort, whose checkpoint is somewhere. */
static void test_living(void)
{
    static const struct {
        const char *text;
        bool lives;
    } manifests[] = {{"hypersort sort 3\nid 00000000000000ff\n", true},
                     {"hypersort sort 3\nid 00000000000000fe\n", false},
                     {"id 00000000000000ff\n", false},
                     {"", false}};
    struct written_plan plan = good, wanted = other_plan(0);
    snprintf(plan.checkpoint, sizeof plan.checkpoint, "%s", in_root("checkpoint", ""));
    begun("runs", &plan);
    struct run_directory directory = directory_of("runs");
    expect_ok(run_directory_find(&directory, &wanted), "no checkpoint");
    CHECK(mkdir(in_root("checkpoint", ""), 0700) == 0, "mkdir");
    expect_ok(run_directory_find(&directory, &wanted), "no manifest");
    for (size_t i = 0; i < sizeof manifests / sizeof *manifests; i++) {
        put("checkpoint", "manifest", manifests[i].text);
        if (manifests[i].lives)
            check_line(run_directory_find(&directory, &wanted), "/runs", "has the runs of another sort");
        else
            expect_ok(run_directory_find(&directory, &wanted), manifests[i].text);
        expect_ok(run_directory_find(&directory, &good), "its own sort");
    }
    CHECK(unlink(in_root("checkpoint", "manifest")) == 0 &&
              mkdir(in_root("checkpoint", "manifest"), 0700) == 0,
          "a directory");
    expect_ok(run_directory_find(&directory, &wanted), "a manifest that is a directory");
    CHECK(rmdir(in_root("checkpoint", "manifest")) == 0 &&
              mkfifo(in_root("checkpoint", "manifest"), 0600) == 0,
          "a FIFO");
    expect_ok(run_directory_find(&directory, &wanted), "a manifest that is a FIFO");
    drop("checkpoint");
    put("", "checkpoint", "");
    expect_ok(run_directory_find(&directory, &wanted), "a checkpoint that is a file");
    drop("checkpoint");
    drop("runs");
}

/* ---- Beginning ----------------------------------------------------------------------------------------- */

static void test_begin(void)
{
    char text[WRITTEN_PLAN_ROOM], read_text[WRITTEN_PLAN_ROOM] = "";
    struct stat facts;
    struct run_directory directory = begun("runs", &good);
    fill("runs");
    put("runs", "plan", "an old one");
    expect_ok(run_directory_begin(&directory, &good), "anew");
    CHECK(directory.has_plan && directory.plan.id == good.id, "its plan");
    check_ours("runs", false, "begun anew");
    check_foreign("runs", "begun anew");
    const size_t bytes = written_plan_format(&good, text);
    const int fd = open(in_root("runs", "plan"), O_RDONLY);
    CHECK(fd >= 0 && read(fd, read_text, sizeof read_text) == (ssize_t)bytes &&
              memcmp(text, read_text, bytes) == 0,
          "the plan: '%s'", read_text);
    CHECK(fstat(fd, &facts) == 0 && (facts.st_mode & 0777) == 0600, "its mode");
    close(fd);
    CHECK(unlink(in_root("runs", "plan")) == 0 && mkdir(in_root("runs", "plan"), 0700) == 0, "mkdir");
    check_line(run_directory_begin(&directory, &good), "/runs/plan", "cannot be removed");
    drop("runs");
}

static bool is_faster; /* another command writes its plan as soon as the old one is gone */

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    const int result = __real_unlink(path);
    if (is_faster && strstr(path, "/plan"))
        put("runs", "plan", "another one");
    return result;
}

static void test_faster(void)
{
    char text[32] = "";
    struct run_directory directory = begun("runs", &good);
    is_faster = true;
    check_line(run_directory_begin(&directory, &good), "/runs/plan", "another command has just begun");
    is_faster = false;
    const int fd = open(in_root("runs", "plan"), O_RDONLY);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0 && strcmp(text, "another one") == 0,
          "the plan of the faster one: '%s'", text);
    close(fd);
    drop("runs");
}

/* Whatever fails, no plan is left, or all of it. passages: of the site. */
static void test_failing(enum fault_site site, int passages)
{
#ifdef HSORT_FAULTS
    struct run_directory directory = begun("runs", &good);
    int failed = 0;
    for (int nth = 1; nth < 20; nth++) {
        struct written_plan seen;
        char text[WRITTEN_PLAN_ROOM] = "";
        directory.has_plan = false;
        fault_set(site, nth);
        const hsort_status status = run_directory_begin(&directory, &good);
        fault_set(site, 0);
        CHECK(directory.has_plan == (status == HSORT_OK), "passage %d: has a plan: %d", nth,
              directory.has_plan);
        const int fd = open(in_root("runs", "plan"), O_RDONLY);
        const ssize_t bytes = fd >= 0 ? read(fd, text, sizeof text) : 0;
        CHECK(fd < 0 || (written_plan_parse(text, (size_t)bytes, &seen) && seen.id == good.id),
              "passage %d leaves a plan '%s'", nth, text);
        CHECK(fd >= 0 || status != HSORT_OK, "passage %d leaves none", nth);
        if (fd >= 0)
            close(fd);
        status_clear();
        if (status == HSORT_OK)
            break;
        failed++;
    }
    CHECK(failed == passages, "%d passages failed, not %d", failed, passages);
    drop("runs");
#else
    (void)site, (void)passages;
#endif
}

/* ---- Seeing -------------------------------------------------------------------------------------------- */

static void test_see(void)
{
    begun("runs", &good);
    for (int which = 0; which < 6; which++) {
        const struct written_plan wanted = other_plan(which);
        if (which == 5) {
            expect_ok(run_directory_see(in_root("runs", ""), &wanted), "see");
            expect_ok(run_directory_check(in_root("runs", ""), &wanted), "check");
        } else {
            check_line(run_directory_see(in_root("runs", ""), &wanted), "/runs", "this rank does not");
            check_line(run_directory_check(in_root("runs", ""), &wanted), "/runs", "gone or another one");
        }
    }
    if (geteuid() == 0) {
        printf("skipped a directory that may not be written to: root may\n");
    } else {
        CHECK(chmod(in_root("runs", ""), 0500) == 0, "chmod");
        check_line(run_directory_see(in_root("runs", ""), &good), "/runs", "cannot be written to");
        CHECK(chmod(in_root("runs", ""), 0700) == 0, "chmod");
    }
    CHECK(unlink(in_root("runs", "plan")) == 0, "unlink");
    check_line(run_directory_see(in_root("runs", ""), &good), "/runs", "this rank does not");
    check_line(run_directory_check(in_root("runs", ""), &good), "/runs", "gone or another one");
    drop("runs");
}

/* ---- Removing ------------------------------------------------------------------------------------------ */

static bool is_second(void *user, int64_t run)
{
    ++*(int *)user;
    return run == 1 || run == 2;
}

static void test_clean(void)
{
    int asked = 0;
    begun("runs", &good);
    fill("runs");
    run_directory_clean(in_root("runs", ""), is_second, &asked);
    CHECK(asked == 3, "%d runs asked for, not the 3 that are whole", asked);
    for (int i = 0; i < OURS; i++) // run 2 is not whole, and never stays
        CHECK(is_there("runs", ours[i]) == (i == 1), "%s: %s", ours[i], i == 1 ? "gone" : "there");
    CHECK(is_there("runs", "plan"), "the plan is gone");
    check_foreign("runs", "cleaned");
    run_directory_clean(in_root("none", ""), NULL, NULL);
    drop("runs");
}

static void test_remove(void)
{
    struct run_directory directory = begun("runs", &good);
    fill("runs");
    run_directory_remove(&directory, good.id + 1);
    CHECK(is_there("runs", "plan"), "the plan of another sort is gone");
    check_ours("runs", true, "of another sort");
    run_directory_remove(&directory, good.id);
    CHECK(!is_there("runs", "plan"), "the plan is there");
    check_ours("runs", false, "removed");
    check_foreign("runs", "removed");
    drop("runs");
    directory = begun("runs", &good);
    put("runs", ours[0], "keys");
    run_directory_remove(&directory, good.id);
    CHECK(!is_there("runs", ""), "the directory is there");
    run_directory_remove(&directory, good.id); // again, of nothing
    CHECK(status_text()[0] == '\0', "what is gone leaves a line: %s", status_text());
}

/* A plan that cannot be read now is the one that was seen. And what removing meets is no cause of a failure before. */
static void test_remove_unread(void)
{
    for (int has_plan = 0; has_plan < 2; has_plan++) {
        struct run_directory directory = begun("runs", &good);
        fill("runs");
        CHECK(unlink(in_root("runs", "plan")) == 0 && mkdir(in_root("runs", "plan"), 0700) == 0, "mkdir");
        directory.has_plan = has_plan;
        run_directory_remove(&directory, good.id);
        check_ours("runs", !has_plan, "a plan that cannot be read");
        CHECK(status_text()[0] == '\0', "it leaves a line: %s", status_text());
        (void)status_fail(HSORT_IO, "what came before");
        run_directory_remove(&directory, good.id);
        CHECK(status_text()[0] != '\0', "the line of what came before is gone");
        status_clear();
        drop("runs");
    }
}

/* ---- Room ---------------------------------------------------------------------------------------------- */

static void test_space(void)
{
    struct statvfs facts;
    struct run_directory directories[] = {begun("runs", &good), begun("more", &good)};
    CHECK(statvfs(tree_root(), &facts) == 0, "statvfs");
    const int64_t all = (int64_t)((double)facts.f_bavail * (double)facts.f_frsize), half = all / 8 * 5;
    const int64_t nothing[] = {0, 0}, little[] = {1 << 10, 1 << 10}, first[] = {half, 0},
                  second[] = {0, half}, both[] = {half, half}, much[] = {0, 2 * all};
    expect_ok(run_directories_check_space(directories, 2, nothing), "nothing");
    expect_ok(run_directories_check_space(directories, 2, little), "little");
    expect_ok(run_directories_check_space(directories, 2, first), "the first");
    expect_ok(run_directories_check_space(directories, 2, second), "the second");
    check_line(run_directories_check_space(directories, 2, both), "/runs", "bytes more there");
    check_line(run_directories_check_space(directories, 2, much), "/runs", "bytes more there");
#ifdef HSORT_FAULTS
    fault_set(FAULT_READ, 1);
    check_line(run_directories_check_space(directories, 2, little), "/runs", "free space");
    fault_set(FAULT_READ, 0);
#endif
    directories[1].device++; // another file system counts for itself
    expect_ok(run_directories_check_space(directories, 2, both), "on two");
    drop("runs");
    drop("more");
}

static void test_names(void)
{
    char name[PATH_MAX];
    run_directory_name_run("/a", 7, true, name);
    CHECK(strcmp(name, "/a/run-000007") == 0, "%s", name);
    run_directory_name_run("/a", 1234567, false, name);
    CHECK(strcmp(name, "/a/run-1234567.part") == 0, "%s", name);
}

int main(void)
{
    tree_open();
    test_names();
    test_find();
    test_find_plan();
    test_living();
    test_begin();
    test_faster();
    test_failing(FAULT_WRITE, 1);
    test_failing(FAULT_COMMIT, 3); // old names, the plan, its name
    test_see();
    test_clean();
    test_remove();
    test_remove_unread();
    test_space();
    tree_close();
    return check_failures > 0;
}
