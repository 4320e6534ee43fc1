/* Commits on a system whose nth allocation or call fails: the dataset is the old one or the new
 * one, complete; after the commit point nothing fails. */
#include "dataset_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

typedef struct commit_scene {
    const char *name;
    world_commit before; /* letters NULL: nothing is there */
    world_commit run;
    const char *old, *fresh; /* letters */
    bool foreign_index;
} commit_scene;

static const commit_scene scenes[] = {
    { "new", { 0 }, { "fail", SFT_COMMIT_NEW, "ab|c", false, false }, "-", "abc", false },
    { "append", { "fail", SFT_COMMIT_NEW, "ab", false, false },
      { "fail", SFT_COMMIT_APPEND, "c|d", false, false }, "ab", "abcd", false },
    { "append with an index", { "fail", SFT_COMMIT_NEW, "ab", true, false },
      { "fail", SFT_COMMIT_APPEND, "c", true, false }, "ab", "abc", false },
    { "overwrite", { "fail", SFT_COMMIT_NEW, "ab|c", true, false },
      { "fail", SFT_COMMIT_OVERWRITE, "d", false, false }, "abc", "d", false },
    { "overwrite of an index folder", { "fail", SFT_COMMIT_NEW, "ab", false, false },
      { "fail", SFT_COMMIT_OVERWRITE, "d", true, false }, "ab", "d", true },
    { "lastWin", { "lastWin", SFT_COMMIT_NEW, "ab|c", false, false },
      { "lastWin", SFT_COMMIT_APPEND, "bc", false, false }, "abc", "abc", false },
    { "segments", { 0 }, { "fail segments", SFT_COMMIT_NEW, "ab|c", false, false }, "-", "abc",
      false },
    { "segments: append", { "fail batch segments", SFT_COMMIT_NEW, "a|b|c", false, false },
      { "fail batch", SFT_COMMIT_APPEND, "d", false, false }, "abc", "abcd", false },
    { "segments: merge", { "fail batch segments", SFT_COMMIT_NEW, "a", false, false },
      { "fail batch", SFT_COMMIT_APPEND, "b|c", false, false }, "a", "abc", false },
    { "segments: lastWin", { "lastWin segments", SFT_COMMIT_NEW, "a|b|c", false, false },
      { "lastWin", SFT_COMMIT_APPEND, "bd", false, false }, "abc", "acbd", false },
    { "segments: overwrite", { "fail segments", SFT_COMMIT_NEW, "a|b", false, false },
      { "fail segments", SFT_COMMIT_OVERWRITE, "c", false, false }, "ab", "c", false },
    { "segments: index", { "fail segments", SFT_COMMIT_NEW, "ab", true, false },
      { "fail", SFT_COMMIT_APPEND, "c", true, false }, "ab", "abc", false },
    { "into segments", { "fail batch", SFT_COMMIT_NEW, "a", false, false },
      { "fail batch segments", SFT_COMMIT_APPEND, "b", false, false }, "a", "ab", false },
    { "out of segments", { "fail batch segments", SFT_COMMIT_NEW, "a", false, false },
      { "fail batch whole", SFT_COMMIT_APPEND, "b", false, false }, "a", "ab", false },
};

static void set_scene(const commit_scene *scene) {
    sft_error err = SFT_ERROR_INIT;
    os_fake_reset();
    if (scene->before.letters && world_run(&scene->before, &err)) fail_msg("%s", err.message);
    if (scene->foreign_index)
        os_fake_add_file(DS "/_tensor_index.parquet/part-0.parquet", "spark", 5);
    world_warned = 0;
}

/* ── One run ── */

typedef struct fault_point {
    bool memory, forever;
    size_t nth;
    int error;
} fault_point;

static size_t runs, wrongs;

static void complain(const commit_scene *scene, const fault_point *f, const char *what,
                     sft_code code, const sft_error *err) {
    if (++wrongs > 40) return;
    const char *call = os_fake_call_name(f->nth);
    fprintf(stderr, "%s, %s %zu (%s), errno %d%s: %s; code %d: %s\n", scene->name,
            f->memory ? "allocation" : "call", f->nth, f->memory || !call ? "-" : call, f->error,
            f->forever ? " from then on" : "", what, (int)code, err->message);
}

/* The error code is that of the failed call. */
static bool code_fits(const fault_point *f, sft_code code, const sft_error *err) {
    sft_class cls = sft_code_describe(code)->cls;
    if (f->memory) return code == SFT_OUT_OF_MEMORY;
    /* Code for missing features is not reached. */
    if (f->error == ENOENT && (code == SFT_MANIFEST_MISSING || code == SFT_DATASET_SHARD ||
                               code == SFT_DATASET_CHANGED || cls == SFT_CLASS_IO))
        return true;
    if (f->error == EAGAIN && code == SFT_DATASET_BUSY) return true;
    if (f->error == EEXIST && code == SFT_EXISTS) return true;
    return cls == SFT_CLASS_IO && err->os_errno == f->error;
}

static void play(const commit_scene *scene, const fault_point *f) {
    sft_error err = SFT_ERROR_INIT;
    const char *why;
    set_scene(scene);
    if (f->memory) os_fake_fail_memory(f->nth, f->forever);
    else os_fake_fail_system(f->nth, f->error, f->forever);
    sft_code code = world_run(&scene->run, &err);
    size_t failed = os_fake_failed();
    os_fake_heal();
    runs++;
    if (!failed) complain(scene, f, "nothing failed", code, &err);
    if (os_fake_open_fds() || os_fake_blocks())
        complain(scene, f, "memory or descriptors are left", code, &err);
    if (code && (!err.message[0] || err.code != code || !code_fits(f, code, &err)))
        complain(scene, f, "another code or no message", code, &err);
    const char *letters = world_letters(&why);
    if (!letters) {
        complain(scene, f, why, code, &err);
        return;
    }
    bool is_old = strcmp(letters, scene->old) == 0, is_new = strcmp(letters, scene->fresh) == 0;
    /* When nothing can be read any more, whether it was published is unknown. */
    if (!is_new && (!code || !is_old)) complain(scene, f, letters, code, &err);
    if (code && !is_old && !f->forever) complain(scene, f, "failed, and is new", code, &err);
    const char *wrong = strcmp(letters, "-") == 0 ? NULL : world_verify(true);
    /* A renamed index cannot be moved back when every call fails. */
    bool index = wrong && strstr(wrong, "expected the index that the manifest names") &&
                 strstr(wrong, "\"finding_count\":1,");
    if (wrong && !(index && f->forever)) complain(scene, f, wrong, code, &err);
}

/* ── All of them ── */

static void play_scene(const commit_scene *scene) {
    static const int errors[] = { EIO, ENOSPC, EACCES, ENOENT };
    sft_error err = SFT_ERROR_INIT;
    const char *why;
    set_scene(scene);
    os_fake_fail(0, 0, false);
    assert_int_equal(world_run(&scene->run, &err), SFT_OK);
    size_t calls = os_fake_calls(), allocations = os_fake_allocations();
    assert_string_equal(world_letters(&why), scene->fresh);
    assert_null(world_verify(true));
    assert_int_equal(world_warned, 0);
    for (size_t n = 1; n <= allocations; n++)
        for (int forever = 0; forever < 2; forever++)
            play(scene, &(fault_point){ true, forever, n, ENOMEM });
    for (size_t n = 1; n <= calls - allocations; n++)
        for (int forever = 0; forever < 2; forever++)
            play(scene, &(fault_point){ false, forever, n, errors[(n + (size_t)forever) % 4] });
    for (size_t n = 1; n <= calls - allocations; n++)
        play(scene, &(fault_point){ false, false, n, EIO });
    printf("# %s: %zu allocations, %zu calls\n", scene->name, allocations, calls - allocations);
}

static void all_scenes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) play_scene(&scenes[i]);
    printf("# %zu runs, %zu failures\n", runs, wrongs);
    assert_int_equal(wrongs, 0);
    assert_true(runs > 3000);
}

/* ── A full disk ── */

static void full_disk(void **state) {
    size_t refused = 0;
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        bool done = false;
        for (size_t cap = 0; !done; cap += 37) {
            sft_error err = SFT_ERROR_INIT;
            const char *why;
            set_scene(&scenes[i]);
            os_fake_disk_space(cap);
            sft_code code = world_run(&scenes[i].run, &err);
            os_fake_disk_space(SIZE_MAX);
            done = code == SFT_OK;
            if (code) assert_int_equal(err.os_errno, ENOSPC);
            assert_string_equal(world_letters(&why), done ? scenes[i].fresh : scenes[i].old);
            if (strcmp(scenes[i].old, "-") != 0 || done) assert_null(world_verify(true));
            refused += !done;
        }
    }
    assert_true(refused > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_scenes),
        cmocka_unit_test(full_disk),
    };
    return cmocka_run_group_tests_name("faults of commits", tests, NULL, NULL);
}
