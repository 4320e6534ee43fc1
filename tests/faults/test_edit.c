/* Editing over a system of which the nth allocation or call fails: the file is as it was or
 * as it was to be; where it is neither, recovery makes it so; and no leftover files. */
#include "faults.h"
#include "safetensors_edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TARGET "/e/m.safetensors"
#define JOURNAL "/e/.m.safetensors.sft-journal"
#define OUTPUT "/e/out.safetensors"

/* What a scene does, and over which file system. */
enum { PLACE, MTIME, RENAME, GROW, SAFE, LINK, SAVE, PLAN, PUT, PUT_BOTH, PUT_GROW, PUT_LARGE,
       PUT_SAVE, PUT_PIPE, RECOVER, RECOVER_INSERT, RECOVER_PUT };
enum { PLAIN, NAMED, CLONES, INSERTS, REFUSES }; /* REFUSES: asked to insert, and cannot */

#define PAD "                                                                "
static const char header[] =
    "{\"__metadata__\":{\"k\":\"v\"},"
    "\"a\":{\"dtype\":\"U8\",\"shape\":[600],\"data_offsets\":[0,600]},"
    "\"b\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[600,608]}}" PAD;
#define LEN (8 + sizeof header - 1 + 608)

static unsigned char old[LEN];
static size_t files_before;

static void make_old(void) {
    size_t n = sizeof header - 1;
    memset(old, 0, 8);
    old[0] = (unsigned char)n;
    old[1] = (unsigned char)(n >> 8);
    memcpy(old + 8, header, n);
    for (size_t i = 0; i < 608; i++) old[8 + n + i] = (unsigned char)(i * 7 + 3);
}

static sft_edit_options options_of(const fault_scene *scene) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    static sft_open_options open;
    open = (sft_open_options)SFT_OPEN_OPTIONS_INIT;
    options.open = &open;
    open.alloc = &fault_alloc;
    options.keep_mtime = scene->way == MTIME;
    options.safe = scene->way == SAFE;
    options.min_insert_bytes = scene->mode == INSERTS || scene->mode == REFUSES ? 1 : 0;
    options.max_place_bytes = scene->way == PUT_LARGE ? 600 : 0;
    return options;
}

/* ── What is asked ── */

static unsigned char others[600];

/* Ends as its size says, or is found out to. */
static sft_code read_pipe(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                          sft_error *err) {
    size_t left = offset < sizeof others ? sizeof others - (size_t)offset : 0;
    (void)ctx, (void)err;
    *got = len < left ? len : left;
    memcpy(into, others + (sizeof others - left), *got);
    return SFT_OK;
}

static const sft_source_vtable pipe_source_vtable = {
    sizeof(sft_source_vtable), read_pipe, NULL, NULL, NULL
};

static sft_code ask_bytes(const fault_scene *scene, sft_edit *edit, sft_error *err) {
    sft_source pipe = { NULL, &pipe_source_vtable, SFT_SIZE_UNKNOWN, NULL, false };
    for (size_t i = 0; i < sizeof others; i++) others[i] = (unsigned char)(i * 5 + 1);
    sft_source all = sft_source_memory(others, sizeof others), some = sft_source_memory(others, 8);
    sft_code code = sft_edit_put(edit, sft_span_cstr("b"), &some, err);
    if (!code && scene->way == PUT_BOTH)
        code = sft_edit_rename(edit, sft_span_cstr("a"), sft_span_cstr("other"), err);
    if (code || scene->way == PUT) return code;
    return sft_edit_put(edit, sft_span_cstr("a"), scene->way == PUT_PIPE ? &pipe : &all, err);
}

static sft_code ask(const fault_scene *scene, sft_edit *edit, sft_error *err) {
    static const char text[] = "a text that is longer than the padding of this header, which "
                               "has room for sixty-four bytes";
    sft_span key = sft_span_cstr("k"), value = sft_span_cstr("other");
    if (scene->way == RENAME) return sft_edit_rename(edit, sft_span_cstr("a"), key, err);
    if (scene->way >= PUT && scene->way < RECOVER) {
        sft_code code = ask_bytes(scene, edit, err);
        if (code || scene->way != PUT_GROW) return code;
    }
    if (scene->way == GROW || scene->way == PUT_GROW) value = sft_span_cstr(text);
    sft_code code = sft_edit_set(edit, key, value, err);
    return code ? code : sft_edit_set(edit, sft_span_cstr("n"), sft_span_cstr("1"), err);
}

static bool is_saved(const fault_scene *scene) {
    return scene->way == SAVE || scene->way == PUT_SAVE;
}

static sft_code change(const fault_scene *scene, sft_edit *edit, sft_error *err) {
    sft_path_options path = SFT_PATH_OPTIONS_INIT;
    sft_edit_report report;
    sft_code code = ask(scene, edit, err);
    path.alloc = &fault_alloc;
    if (code) return code;
    if (scene->way == PLAN) return sft_edit_plan(edit, &report, err);
    if (is_saved(scene)) return sft_edit_save(edit, OUTPUT, &path, NULL, &report, err);
    return sft_edit_apply(edit, NULL, &report, err);
}

/* Bytes of the file as they should be are known from the run in which nothing failed. */
static void see_file(const fault_scene *scene, fault_seen *seen) {
    size_t len;
    const void *bytes = os_fake_file(is_saved(scene) ? OUTPUT : TARGET, &len);
    if (seen->status == SFT_OK && bytes) fault_see_bytes(seen, bytes, len);
}

static void run_edit(const fault_scene *scene, fault_seen *seen) {
    sft_edit_options options = options_of(scene);
    sft_edit *edit = NULL;
    sft_code code = sft_edit_open(TARGET, &options, &edit, &seen->err);
    if (!code) code = change(scene, edit, &seen->err);
    sft_edit_close(edit);
    seen->status = code;
    see_file(scene, seen);
}

static void run_recover(const fault_scene *scene, fault_seen *seen) {
    sft_edit_options options = options_of(scene);
    sft_edit_found found = SFT_EDIT_CLEAN;
    seen->status = sft_edit_recover(TARGET, &options, &found, &seen->err);
    if (!seen->status && found == SFT_EDIT_CLEAN) /* the system says so: believed */
        seen->status = sft_error_set(&seen->err, SFT_NOT_FOUND, ENOENT, "no journal");
    see_file(scene, seen);
}

/* ── The world before ── */

static void add_target(void) {
    make_old();
    os_fake_add_file(TARGET, old, sizeof old);
}

static void set_scene(const fault_scene *scene) {
    add_target();
    os_fake_short_writes(50);
    os_fake_no_unnamed(scene->mode == NAMED);
    os_fake_can(scene->mode == CLONES, scene->mode == INSERTS);
    if (scene->way == LINK) {
        os_fake_add_file("/e/real", old, sizeof old);
        os_fake_add_link(TARGET, "real");
    }
    files_before = os_fake_count_files();
}

/* Everything fails from the nth write on, of five bytes each. */
static void break_edit(const fault_scene *scene, size_t nth, fault_seen *seen) {
    fault_world();
    set_scene(scene);
    os_fake_short_writes(5);
    os_fake_fail_call("sfti_os_pwrite", nth, EIO, true);
    run_edit(scene, seen);
    os_fake_fail(0, 0, false);
    assert_int_not_equal(seen->status, SFT_OK);
}

/* An edit that ended in the middle: the journal is there, and ten bytes of the file. */
static void set_recovery(const fault_scene *scene) {
    static size_t first[3]; /* write of all that goes to the file itself */
    size_t *nth = &first[scene->way - RECOVER];
    fault_scene broken = *scene;
    fault_seen *seen = calloc(1, sizeof *seen);
    assert_non_null(seen);
    broken.way = scene->way == RECOVER_INSERT ? GROW : scene->way == RECOVER_PUT ? PUT_BOTH : PLACE;
    for (size_t n = 1; *nth == 0; n++) {
        break_edit(&broken, n, seen);
        if (os_fake_exists(JOURNAL)) *nth = n;
    }
    break_edit(&broken, *nth + 2, seen);
    assert_true(os_fake_exists(JOURNAL));
    os_fake_short_writes(50);
    files_before = os_fake_count_files() - 1;
    free(seen);
}

/* ── What is left ── */

static bool is_file(const void *bytes, size_t len) {
    size_t have;
    const void *found = os_fake_file(TARGET, &have);
    if (!found) found = os_fake_file("/e/real", &have); /* still a link */
    return found && have == len && memcmp(found, bytes, len) == 0;
}

static unsigned char fresh[1 << 14];
static size_t fresh_len;

/* The new file, from the run in which nothing fails, which comes first. */
static void keep_new(void) {
    const void *bytes = os_fake_file(TARGET, &fresh_len);
    if (fresh_len <= sizeof fresh) memcpy(fresh, bytes, fresh_len);
}

static const char *judge_file(const fault_scene *scene, const fault_seen *seen) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    bool done = seen->status == SFT_OK;
    if (os_fake_exists(JOURNAL)) {
        options.open = &open;
        open.alloc = &fault_alloc;
        if (!done && scene->way < RECOVER && !is_file(old, sizeof old) &&
            !is_file(fresh, fresh_len) &&
            seen->err.hint != SFT_HINT_RECOVER)
            return "the file is torn, and nobody says how to recover it";
        if (sft_edit_recover(TARGET, &options, NULL, NULL)) return "cannot be recovered";
    }
    if (done && !is_file(fresh, fresh_len)) return "success, and not the new file";
    if (is_file(old, sizeof old) || is_file(fresh, fresh_len)) return NULL;
    return "neither the old nor the new file";
}

static const char *judge_edit(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    bool clean = os_fake_failed() == 0 && seen->status == SFT_OK;
    os_fake_heal();
    if (clean) keep_new();
    const char *wrong = judge_file(scene, seen);
    size_t most = files_before + (is_saved(scene) && os_fake_exists(OUTPUT));
    if (wrong) return wrong;
    if (scene->way >= RECOVER) return NULL;
    return os_fake_count_files() > most + lasting ? "a hidden file is left" : NULL;
}

#define EDIT(what, system) { .name = "edit " #what " " #system, .run = run_edit, .way = what, \
    .mode = system, .writes = true, .set = set_scene, .after = judge_edit }

static const fault_scene edits[] = {
    EDIT(PLACE, PLAIN),  EDIT(PLACE, NAMED), EDIT(PLACE, CLONES),  EDIT(MTIME, PLAIN),
    EDIT(RENAME, PLAIN), EDIT(GROW, PLAIN),  EDIT(GROW, NAMED),    EDIT(GROW, CLONES),
    EDIT(GROW, INSERTS), EDIT(GROW, REFUSES), EDIT(SAFE, PLAIN),   EDIT(SAFE, CLONES),
    EDIT(LINK, PLAIN),   EDIT(SAVE, PLAIN),  EDIT(SAVE, CLONES),   EDIT(PLAN, PLAIN),
    EDIT(PLAN, CLONES),  EDIT(PLAN, INSERTS),
};

static const fault_scene put_scenes[] = {
    EDIT(PUT, PLAIN),       EDIT(PUT, NAMED),       EDIT(PUT_BOTH, PLAIN),
    EDIT(PUT_PIPE, PLAIN),  EDIT(PUT_GROW, PLAIN),  EDIT(PUT_GROW, CLONES),
    EDIT(PUT_GROW, INSERTS), EDIT(PUT_LARGE, PLAIN), EDIT(PUT_LARGE, CLONES),
    EDIT(PUT_SAVE, PLAIN),  EDIT(PUT_SAVE, CLONES),
};

static const fault_scene recoveries[] = {
    { .name = "recover", .run = run_recover, .way = RECOVER, .mode = PLAIN, .writes = true,
      .set = set_recovery, .after = judge_edit },
    { .name = "recover insert", .run = run_recover, .way = RECOVER_INSERT, .mode = INSERTS,
      .writes = true, .set = set_recovery, .after = judge_edit },
    { .name = "recover put", .run = run_recover, .way = RECOVER_PUT, .mode = PLAIN, .writes = true,
      .set = set_recovery, .after = judge_edit },
};

static void play_edits(void **state) {
    (void)state;
    assert_true(fault_play(edits, sizeof edits / sizeof *edits, 180, 1800));
}

static void play_puts(void **state) {
    (void)state;
    assert_true(fault_play(put_scenes, sizeof put_scenes / sizeof *put_scenes, 100, 700));
}

static void play_recoveries(void **state) {
    (void)state;
    assert_true(fault_play(recoveries, sizeof recoveries / sizeof *recoveries, 3, 200));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_edits),
        cmocka_unit_test(play_puts),
        cmocka_unit_test(play_recoveries),
    };
    return cmocka_run_group_tests_name("editing over a failing system", tests, NULL, NULL);
}
