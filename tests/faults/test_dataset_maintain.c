/* Maintaining datasets on a system whose nth allocation or call fails. */
#include "support/cli.h"
#include "dataset_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#define WORDS_MOST 16

static size_t keep_output(int fd, char *text, size_t cap, bool *overflow) {
    size_t len;
    const char *bytes = os_fake_output(fd, &len);
    *overflow = *overflow || len >= cap;
    if (len >= cap) len = cap;
    if (len) memcpy(text, bytes, len);
    text[len] = '\0';
    return len;
}

static void run_line(const fault_scene *scene, fault_seen *seen) {
    static char words[200];
    char *argv[WORDS_MOST + 1] = { 0 };
    int argc = 0;
    memcpy(words, scene->line, strlen(scene->line) + 1);
    for (char *at = words; at && argc < WORDS_MOST; argc++) {
        argv[argc] = at;
        at = strchr(at, ' ');
        if (at) *at++ = '\0';
    }
    seen->status = sft_cli_main(argc, argv);
    seen->len = keep_output(1, seen->text, sizeof seen->text - 1, &seen->overflow);
    seen->err_len = keep_output(2, seen->err_text, sizeof seen->err_text - 1, &seen->overflow);
}

#define ORPHAN DS "/part-00009-0000-01234567-89ab-4def-8123-456789abcdef.safetensors"
#define JOB DS "/_job-01234567-89ab-4def-8123-456789abcdef"

static void set_form(const char *mode) {
    const world_commit first = { mode, SFT_COMMIT_NEW, "ab|bc|d", false, false };
    sft_error err = SFT_ERROR_INIT;
    size_t len;
    static char copy[1 << 12];
    if (world_run(&first, &err)) fail_msg("%s", err.message);
    os_fake_add_file(JOB "/x", "dead", 4);
    os_fake_add_file(DS "/mine.safetensors", "mine", 4);
    const void *model = fault_model(&len);
    assert_true(len <= sizeof copy);
    memcpy(copy, model, len);
    os_fake_add_file(ORPHAN, copy, len); /* with our name, but another's */
}

static void set_dataset(const fault_scene *scene) {
    (void)scene;
    set_form("lastWin");
}

static void set_segments(const fault_scene *scene) {
    (void)scene;
    set_form("lastWin segments");
}

/* Whatever failed: the dataset is complete, and foreign files remain. */
static const char *judge(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    const char *why, *letters;
    (void)scene, (void)seen, (void)lasting;
    os_fake_heal();
    letters = world_letters(&why);
    if (!letters) return why;
    if (strcmp(letters, "abcd") != 0) return letters;
    if (!os_fake_exists(DS "/mine.safetensors") || !os_fake_exists(ORPHAN))
        return "another's file is gone";
    const char *wrong = world_verify(false);
    return wrong;
}

/* The same, but for the row that was deleted or not. */
static const char *judge_deleted(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    const char *why, *letters;
    (void)scene, (void)seen, (void)lasting;
    os_fake_heal();
    letters = world_letters(&why);
    if (!letters) return why;
    if (strcmp(letters, "abcd") != 0 && strcmp(letters, "acd") != 0) return letters;
    return world_verify(false);
}

static void set_batches(const fault_scene *scene) {
    const world_commit first = { "fail batch", SFT_COMMIT_NEW, "ab|c", false, false };
    sft_error err = SFT_ERROR_INIT;
    (void)scene;
    if (world_run(&first, &err) || world_values("xyz", &err)) fail_msg("%s", err.message);
}

static void set_wide(const fault_scene *scene) {
    sft_error err = SFT_ERROR_INIT;
    set_batches(scene);
    if (world_add("xyz", &err)) fail_msg("%s", err.message);
}

/* The same, but for the column that was added or not. */
static const char *judge_added(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    const char *why, *letters;
    (void)seen, (void)lasting;
    os_fake_heal();
    letters = world_letters(&why);
    if (!letters) return why;
    if (strcmp(letters, "abxycz") != 0 && (scene->set == set_wide || strcmp(letters, "abc") != 0))
        return letters;
    return world_verify(false);
}

#define ADDED(words, how, changes) { .command = true, .line = "safetensors " words, \
                                     .run = run_line, .set = how, .after = judge_added, \
                                     .writes = changes, .believes = true }

#define DELETES(words, how) { .command = true, .line = "safetensors " words, .run = run_line, \
                              .set = how, .after = judge_deleted, .writes = true, \
                              .believes = true }

#define LINE(words, changes) { .command = true, .line = "safetensors " words, .run = run_line, \
                               .set = set_dataset, .after = judge, .writes = changes, \
                               .believes = true }

#define SEGMENTS(words, changes) { .command = true, .line = "safetensors " words, \
                                   .run = run_line, .set = set_segments, .after = judge, \
                                   .writes = changes, .believes = true }

static const fault_scene scenes[] = {
    LINE("dataset info " DS, false),
    LINE("dataset info --json " DS, false),
    LINE("dataset ls " DS, false),
    LINE("dataset ls --jsonl --match b* " DS, false),
    LINE("dataset verify " DS, false),
    LINE("dataset verify --deep --json " DS, false),
    LINE("dataset gc --grace 0 " DS, false),
    LINE("dataset gc --json --grace 0 --delete " DS, true),
    LINE("dataset compact --dry-run --target 1MB " DS, false),
    LINE("dataset compact --target 1MB " DS, true),
    LINE("dataset compact --jsonl --no-sync " DS, true),
    LINE("dataset compact --manifest segments " DS, true),
    LINE("dataset delete --key b --dry-run " DS, false),
    DELETES("dataset delete --key b " DS, set_dataset),
    DELETES("dataset delete --key b --no-sync --json " DS, set_segments),
    ADDED("dataset add-column --from /x " DS, set_batches, true),
    ADDED("dataset add-column --from /x --no-sync --json " DS, set_batches, true),
    ADDED("dataset verify --deep " DS, set_wide, false),
    ADDED("dataset compact " DS, set_wide, true),
    SEGMENTS("dataset verify " DS, false),
    SEGMENTS("dataset gc --grace 0 --delete " DS, true),
    SEGMENTS("dataset compact --target 1MB " DS, true),
    SEGMENTS("dataset compact --manifest whole " DS, true),
};

static void commands(void **state) {
    (void)state;
    assert_true(fault_play(scenes, sizeof scenes / sizeof *scenes, 300, 300));
}

/* ── The storage of a folder ── */

static sft_storage storage_begin(void) {
    sft_storage s;
    sft_error err = SFT_ERROR_INIT;
    os_fake_reset();
    os_fake_add_dir(DS);
    os_fake_add_file(DS "/one.safetensors", "one", 3);
    assert_int_equal(sft_storage_local(DS, false, &fault_alloc, &s, &err), SFT_OK);
    return s;
}

static void storage_end(sft_storage *s) {
    sft_storage_close(s);
    assert_int_equal(os_fake_open_fds(), 0);
    os_fake_reset();
}

static void out_of_memory_in_every_call(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_source source;
    sft_storage s = storage_begin();
    (void)state;
    os_fake_fail_call("sfti_os_open_beneath", 1, ENOMEM, true);
    assert_int_equal(s.vtable->open(s.ctx, "one.safetensors", &source, &err), SFT_OUT_OF_MEMORY);
    assert_int_equal(err.code, SFT_OUT_OF_MEMORY);
    assert_int_equal(s.vtable->lock(s.ctx, 0, &err), SFT_OUT_OF_MEMORY);
    os_fake_fail_call("sfti_os_unlink_beneath", 1, ENOMEM, true);
    assert_int_equal(s.vtable->remove(s.ctx, "one.safetensors", false, &err), SFT_OUT_OF_MEMORY);
    storage_end(&s);
}

static void what_opening_says(void **state) {
    static const struct { int error; sft_code code; } rows[] = {
        { ENOENT, SFT_NOT_FOUND }, { EXDEV, SFT_INDEX_PATH }, { ELOOP, SFT_IO_OPEN },
        { EACCES, SFT_IO_OPEN }, { ENXIO, SFT_IO_NOT_FILE }, { EISDIR, SFT_IO_NOT_FILE },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_error err = SFT_ERROR_INIT;
        sft_source source;
        sft_storage s = storage_begin();
        os_fake_fail_call("sfti_os_open_beneath", 1, rows[i].error, true);
        assert_int_equal(s.vtable->open(s.ctx, "one.safetensors", &source, &err), rows[i].code);
        assert_int_equal(err.code, rows[i].code);
        storage_end(&s);
    }
}

static void folders_that_cannot_be_synced(void **state) {
    static const struct { int error; sft_code code; } rows[] = {
        { EINVAL, SFT_OK }, { EOPNOTSUPP, SFT_OK }, { ENOSYS, SFT_OK }, { EIO, SFT_IO_SYNC },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_error err = SFT_ERROR_INIT;
        sft_storage s = storage_begin();
        os_fake_fail_call("sfti_os_sync_folder", 1, rows[i].error, true);
        assert_int_equal(s.vtable->sync_folder(s.ctx, "", &err), rows[i].code);
        storage_end(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands),
        cmocka_unit_test(out_of_memory_in_every_call),
        cmocka_unit_test(what_opening_says),
        cmocka_unit_test(folders_that_cannot_be_synced),
    };
    return cmocka_run_group_tests_name("faults of dataset", tests, NULL, NULL);
}
