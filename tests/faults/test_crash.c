/* Power cuts while a file is edited or saved: after them the file is the old one or the new
 * one, never a mixture, and once the call has returned it is the new one. With a sync or the
 * journal taken away the same play must find torn files, or it would prove nothing. */
#include "crash.h"
#include "safetensors_edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "/e"
#define TARGET FOLDER "/m.safetensors"
#define JOURNAL FOLDER "/.m.safetensors.sft-journal"
#define PAD "                                                                "

enum { PLACE, PLACE_NAMED, RENAME, COPY, CLONE, INSERT, SAFE, SAVE_NEW, SAVE_OVER, SAVE_NAMED,
       RECOVER, RECOVER_INSERT, INSERT_FULL };

static const char header[] =
    "{\"__metadata__\":{\"k\":\"v\"},"
    "\"a\":{\"dtype\":\"U8\",\"shape\":[600],\"data_offsets\":[0,600]},"
    "\"b\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[600,608]}}" PAD;
#define LEN (8 + sizeof header - 1 + 608)

typedef struct kept {
    bool there;
    size_t len;
    unsigned char bytes[1 << 14];
} kept;
static kept old, fresh, meant; /* meant: would have been, had the disk not been full */

static void put_target(void) {
    static unsigned char bytes[LEN];
    size_t n = sizeof header - 1;
    memset(bytes, 0, 8);
    bytes[0] = (unsigned char)n;
    bytes[1] = (unsigned char)(n >> 8);
    memcpy(bytes + 8, header, n);
    for (size_t i = 0; i < 608; i++) bytes[8 + n + i] = (unsigned char)(i * 7 + 3);
    os_fake_add_file(TARGET, bytes, sizeof bytes);
}

static void keep_as(kept *to) {
    const void *bytes = os_fake_file(TARGET, &to->len);
    to->there = bytes != NULL;
    assert_true(to->len <= sizeof to->bytes);
    if (bytes) memcpy(to->bytes, bytes, to->len);
}

static void keep(const crash_scene *scene, bool after) {
    (void)scene;
    keep_as(after ? &fresh : &old);
    if (!after) meant.there = false;
}

static bool is_kept(const kept *k) {
    size_t len;
    const void *bytes = os_fake_file(TARGET, &len);
    if (!bytes) return !k->there;
    return k->there && k->len == len && memcmp(bytes, k->bytes, len) == 0;
}

static bool is_whole(void) {
    return is_kept(&old) || is_kept(&fresh) || (meant.there && is_kept(&meant));
}

/* ── Scenes ── */

static sft_code edit_target(int way, sft_error *err) {
    static const char text[] = "a text that is longer than the padding of this header, which "
                               "has room for sixty-four bytes";
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_edit *edit = NULL;
    options.safe = way == SAFE;
    options.min_insert_bytes = 1;
    bool grows = way == COPY || way == CLONE || way == INSERT || way >= RECOVER_INSERT;
    sft_span value = sft_span_cstr(grows ? text : "quite another value");
    sft_code code = sft_edit_open(TARGET, &options, &edit, err);
    if (!code && way == RENAME)
        code = sft_edit_rename(edit, sft_span_cstr("a"), sft_span_cstr("first"), err);
    else if (!code)
        code = sft_edit_set(edit, sft_span_cstr("k"), value, err);
    if (!code) code = sft_edit_apply(edit, NULL, NULL, err);
    sft_edit_close(edit);
    return code;
}

static sft_code save_target(sft_error *err) {
    static const uint64_t shape[] = { 300 };
    static const sft_spec spec = { { "w", 1 }, SFT_U8, 1, shape };
    static const char bytes[300] = "other bytes";
    sft_plan *plan = NULL;
    sft_writer *writer = NULL;
    sft_sink sink;
    sft_code code = sft_plan_new(&spec, 1, NULL, 0, NULL, &plan, err);
    if (!code) code = sft_sink_path(TARGET, NULL, &sink, err);
    if (!code) code = sft_writer_begin(plan, sink, &writer, err);
    if (!code) code = sft_writer_put(writer, 0, bytes, sizeof bytes, err);
    if (!code) code = sft_writer_finish(writer, err);
    sft_plan_free(plan);
    return code;
}

static void set_edit(const crash_scene *scene) {
    os_fake_add_dir(FOLDER);
    if (scene->way != SAVE_NEW) put_target();
    os_fake_no_unnamed(scene->way == PLACE_NAMED || scene->way == SAVE_NAMED);
    os_fake_can(scene->way == CLONE, scene->way == INSERT || scene->way >= RECOVER_INSERT);
}

static sft_code run_edit(const crash_scene *scene, sft_error *err) {
    bool saves = scene->way >= SAVE_NEW && scene->way <= SAVE_NAMED;
    return saves ? save_target(err) : edit_target(scene->way, err);
}

/* Cut off in the middle; then what recovers it is cut off too. */
static void set_recovery(const crash_scene *scene) {
    sft_error err = SFT_ERROR_INIT;
    set_edit(scene);
    keep(scene, false);
    os_fake_short_writes(9);
    for (size_t nth = 1; !os_fake_exists(JOURNAL); nth++) {
        os_fake_fail_call("sfti_os_pwrite", nth, 5, true);
        assert_int_not_equal(edit_target(scene->way, &err), SFT_OK);
        os_fake_fail(0, 0, false);
        if (!os_fake_exists(JOURNAL)) continue;
        assert_int_equal(sft_edit_recover(TARGET, NULL, NULL, &err), SFT_OK);
        os_fake_reset();
        set_edit(scene);
        os_fake_short_writes(9);
        os_fake_fail_call("sfti_os_pwrite", nth + 2, 5, true);
        assert_int_not_equal(edit_target(scene->way, &err), SFT_OK);
        os_fake_fail(0, 0, false);
        assert_true(os_fake_exists(JOURNAL));
    }
    os_fake_short_writes(0);
}

/* ── Blocks come in, and then the disk is full: they go again ── */

/* Calls of sfti_os_pwrite before the blocks come in. */
static size_t writes_before_insert(void) {
    size_t writes = 0;
    for (size_t n = 1; os_fake_call_name(n); n++) {
        if (strcmp(os_fake_call_name(n), "sfti_os_insert_range") == 0) return writes;
        writes += strcmp(os_fake_call_name(n), "sfti_os_pwrite") == 0;
    }
    fail_msg("no blocks came in");
    return 0;
}

static size_t full_at;

static void set_full(const crash_scene *scene) {
    sft_error err = SFT_ERROR_INIT;
    set_edit(scene);
    os_fake_short_writes(1500);
    os_fake_fail(0, 0, false);
    assert_int_equal(edit_target(scene->way, &err), SFT_OK);
    full_at = writes_before_insert() + 2;
    keep_as(&meant);
    os_fake_reset();
    set_edit(scene);
    os_fake_short_writes(1500);
}

static void keep_full(const crash_scene *scene, bool after) {
    keep(scene, after);
    meant.there = true;
}

static sft_code run_full(const crash_scene *scene, sft_error *err) {
    os_fake_fail_call("sfti_os_pwrite", full_at, 28 /* ENOSPC */, false);
    sft_code code = edit_target(scene->way, err);
    os_fake_fail(0, 0, false);
    if (code != SFT_IO_WRITE || os_fake_exists(JOURNAL) || !is_kept(&old)) return SFT_IO_SYNC;
    return SFT_OK;
}

static void keep_recovered(const crash_scene *scene, bool after) {
    if (after) keep(scene, true);
}

static sft_code run_recover(const crash_scene *scene, sft_error *err) {
    (void)scene;
    return sft_edit_recover(TARGET, NULL, NULL, err);
}

/* ── After the cut ── */

/* Who only reads sees the old file or the new one, or is told. */
static const char *judge_reader(void) {
    sft_file *file = NULL;
    sft_error err = SFT_ERROR_INIT;
    sft_code code = sft_open(TARGET, NULL, &file, &err);
    sft_close(file);
    if (code == SFT_EDIT_INTERRUPTED) return NULL;
    if (code == SFT_NOT_FOUND) return old.there ? "the file is gone" : NULL;
    if (code) return "a reader finds a broken file and is not told why";
    return is_whole() ? NULL : "a reader takes a mixture for a model";
}

static size_t strangers;

/* What may be left besides the file: a temporary where there is no other way. */
static void count_stranger(void *ctx, const char *path, uint64_t inode) {
    (void)ctx, (void)inode;
    strangers += strcmp(path, TARGET) != 0 && !strstr(path, ".m.safetensors.sft-");
}

static const char *judge_cut(const crash_scene *scene, bool done) {
    sft_error err = SFT_ERROR_INIT;
    const char *wrong = judge_reader();
    (void)scene;
    if (wrong) return wrong;
    sft_code code = sft_edit_recover(TARGET, NULL, NULL, &err);
    if (code && (old.there || code != SFT_NOT_FOUND)) {
        static char buffer[600];
        (void)snprintf(buffer, sizeof buffer, "cannot be recovered: %s", err.message);
        return buffer;
    }
    if (os_fake_exists(JOURNAL)) return "the journal is still there";
    strangers = 0;
    os_fake_each(count_stranger, NULL);
    if (strangers) return "another file is left";
    if (done) return is_kept(&fresh) ? NULL : "was done, and is not there";
    return is_whole() ? NULL : "neither the old nor the new file";
}

#define SCENE(what) { .name = "crash " #what, .way = what, .set = set_edit, .run = run_edit, \
    .keep = keep, .judge = judge_cut }
#define RECOVERS(what) { .name = "crash " #what, .way = what, .set = set_recovery, \
    .run = run_recover, .keep = keep_recovered, .judge = judge_cut }

static const crash_scene scenes[] = {
    SCENE(PLACE), SCENE(PLACE_NAMED), SCENE(RENAME), SCENE(COPY), SCENE(CLONE), SCENE(INSERT),
    SCENE(SAFE), SCENE(SAVE_NEW), SCENE(SAVE_OVER), SCENE(SAVE_NAMED), RECOVERS(RECOVER),
    RECOVERS(RECOVER_INSERT),
    { .name = "crash INSERT_FULL", .way = INSERT_FULL, .set = set_full, .run = run_full,
      .keep = keep_full, .judge = judge_cut },
};

static void play_scenes(void **state) {
    (void)state;
    assert_true(crash_play_all(scenes, sizeof scenes / sizeof *scenes, 5000) >= 10000);
}

/* Which scenes miss what. */
static const struct control {
    crash_without without;
    const char *name;
    int ways[8], count;
} controls[] = {
    { CRASH_NO_FILE_SYNC, "fsync of the file",
      { PLACE, RENAME, COPY, CLONE, INSERT, SAFE, SAVE_NEW, SAVE_OVER }, 8 },
    { CRASH_NO_FOLDER_SYNC, "fsync of the folder",
      { PLACE, PLACE_NAMED, RENAME, COPY, CLONE, INSERT, SAVE_NEW, SAVE_OVER }, 8 },
    { CRASH_NO_JOURNAL, "the journal", { PLACE, PLACE_NAMED, RENAME, INSERT }, 4 },
};

static void play_controls(void **state) {
    (void)state;
    for (size_t c = 0; c < sizeof controls / sizeof *controls; c++) {
        for (int i = 0; i < controls[c].count; i++) {
            const crash_scene *scene = &scenes[controls[c].ways[i]];
            crash_count count = crash_play(scene, controls[c].without, 100);
            printf("# %s without %s: %zu of %zu states torn: %s\n", scene->name,
                   controls[c].name, count.torn, count.distinct, count.first);
            assert_true(count.torn > 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_scenes),
        cmocka_unit_test(play_controls),
    };
    return cmocka_run_group_tests_name("power cuts", tests, NULL, NULL);
}
