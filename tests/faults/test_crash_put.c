/* Power cuts while the bytes of tensors are changed: the whole header may be the same before
 * and after, so that only the journal tells a reader of torn data. */
#include "crash.h"
#include "safetensors_edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define FOLDER "/e"
#define TARGET FOLDER "/m.safetensors"
#define JOURNAL FOLDER "/.m.safetensors.sft-journal"

/* One tensor in place, two, with metadata and a name; by a new file; and recovery. */
enum { ONE, NAMED, TWO, MIXED, COPY, CLONE, SAFE, GROW, RECOVER };

static const char header[] =
    "{\"__metadata__\":{\"k\":\"v\"},"
    "\"a\":{\"dtype\":\"U8\",\"shape\":[300],\"data_offsets\":[0,300]},"
    "\"b\":{\"dtype\":\"U8\",\"shape\":[40],\"data_offsets\":[300,340]},"
    "\"c\":{\"dtype\":\"U8\",\"shape\":[300],\"data_offsets\":[340,640]}}                  ";
#define N (sizeof header - 1)

static void set_put(const crash_scene *scene) {
    static unsigned char bytes[8 + N + 640];
    memset(bytes, 0, 8);
    bytes[0] = (unsigned char)N;
    bytes[1] = (unsigned char)(N >> 8);
    memcpy(bytes + 8, header, N);
    for (size_t i = 0; i < 640; i++) bytes[8 + N + i] = (unsigned char)(i * 7 + 3);
    os_fake_add_dir(FOLDER);
    os_fake_add_file(TARGET, bytes, sizeof bytes);
    os_fake_no_unnamed(scene->way == NAMED);
    os_fake_can(scene->way == CLONE, scene->way == GROW);
}

static sft_code ask_put(int way, sft_edit *edit, sft_error *err) {
    static unsigned char bytes[300];
    sft_code code = SFT_OK;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 5 + 1);
    sft_source source = sft_source_memory(bytes, sizeof bytes);
    if (way == MIXED || way == GROW) {
        sft_span value = way == MIXED ? sft_span_cstr("other")
                                      : sft_span_cstr("a text that has no room in the padding");
        code = sft_edit_set(edit, sft_span_cstr("k"), value, err);
        if (!code) code = sft_edit_rename(edit, sft_span_cstr("c"), sft_span_cstr("d"), err);
    }
    if (!code && way != ONE && way != NAMED)
        code = sft_edit_put(edit, sft_span_cstr("c"), &source, err);
    return code ? code : sft_edit_put(edit, sft_span_cstr("a"), &source, err);
}

static sft_code put_target(int way, sft_error *err) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_edit *edit = NULL;
    options.safe = way == SAFE;
    options.max_place_bytes = way == COPY || way == CLONE ? 1 : 0;
    options.min_insert_bytes = 1;
    sft_code code = sft_edit_open(TARGET, &options, &edit, err);
    if (!code) code = ask_put(way, edit, err);
    if (!code) code = sft_edit_apply(edit, NULL, NULL, err);
    sft_edit_close(edit);
    return code;
}

static sft_code run_put(const crash_scene *scene, sft_error *err) {
    return put_target(scene->way, err);
}

/* Everything fails from the nth write on, of at most a hundred bytes each. */
static void cut_put(const crash_scene *scene, size_t nth) {
    sft_error err = SFT_ERROR_INIT;
    os_fake_reset();
    set_put(scene);
    crash_keep(scene, false);
    os_fake_short_writes(100);
    os_fake_fail_call("sfti_os_pwrite", nth, 5, true);
    assert_int_not_equal(put_target(MIXED, &err), SFT_OK);
    os_fake_fail(0, 0, false);
    os_fake_short_writes(0);
}

/* Cut off in the middle of the data; then what recovers it is cut off too. */
static void set_recovery(const crash_scene *scene) {
    size_t first = 0; /* write of all that goes to the file itself */
    do cut_put(scene, ++first);
    while (!os_fake_exists(JOURNAL));
    cut_put(scene, first + 2);
    assert_true(os_fake_exists(JOURNAL));
}

/* What was before is before the edit that was cut off. */
static void keep_recovered(const crash_scene *scene, bool after) {
    if (after) crash_keep(scene, true);
}

static sft_code run_recover(const crash_scene *scene, sft_error *err) {
    (void)scene;
    return sft_edit_recover(TARGET, NULL, NULL, err);
}

#define SCENE(what) { .name = "crash put " #what, .way = what, .set = set_put, .run = run_put, \
    .keep = crash_keep, .judge = crash_judge }

static const crash_scene scenes[] = {
    SCENE(ONE), SCENE(NAMED), SCENE(TWO), SCENE(MIXED), SCENE(COPY), SCENE(CLONE), SCENE(SAFE),
    SCENE(GROW),
};
static const crash_scene recoveries[] = {
    { .name = "crash put RECOVER", .way = RECOVER, .set = set_recovery, .run = run_recover,
      .keep = keep_recovered, .judge = crash_judge },
};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static void play_scenes(void **state) {
    (void)state;
    size_t distinct = crash_play_all(scenes, COUNT(scenes), 4000);
    assert_true(distinct >= 10000);
    assert_true(crash_play_all(recoveries, COUNT(recoveries), 4000) > 0);
}

static void play_controls(void **state) {
    size_t journals = 0;
    (void)state;
    assert_true(crash_play_controls(scenes, COUNT(scenes), 200, &journals));
    assert_int_equal(journals, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_scenes),
        cmocka_unit_test(play_controls),
    };
    return cmocka_run_group_tests_name("power cuts while tensors change", tests, NULL, NULL);
}
