/* Power cuts while the library writes files anew: whole from parts, with a plan, tensor by
 * tensor into reserved space, past the page cache, and as a model of several files. */
#include "crash.h"
#include "safetensors_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define TARGET "/e/m.safetensors"

/* What is written, and whether over an old file and through a file that has a name. */
enum { PARTS, PLAN, ADDED, DIRECT, SET };
#define OVER 16
#define NAMED 32
#define INTO 64 /* a folder that is there */

static char data[20000];

static sft_source source_of(void) {
    return sft_source_memory(data, sizeof data);
}

static void set_save(const crash_scene *scene) {
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 7 + i / 100);
    os_fake_add_dir("/e");
    os_fake_add_file("/e/other", "not ours", 8);
    if (scene->way & OVER) os_fake_add_file(TARGET, "\2\0\0\0\0\0\0\0{}", 10);
    if (scene->way & INTO) os_fake_add_dir("/e/set");
    os_fake_no_unnamed((scene->way & NAMED) != 0);
    os_fake_can_direct((scene->way & 15) == DIRECT);
}

static const uint64_t side[] = { 300 }, wide[] = { 9000 };
static const sft_pair pair = { { "k", 1 }, { "v", 1 } };

static void make_parts(sft_part *parts, const sft_source *source, bool large) {
    static const char *const names[] = { "a", "b", "c", "d" };
    for (size_t i = 0; i < 4; i++) {
        sft_spec spec = { sft_span_cstr(names[i]), SFT_U8, 1, large ? wide : side };
        parts[i] = (sft_part){ spec, source, i * 500 };
    }
}

static sft_code save_parts(sft_sink sink, bool large, sft_error *err) {
    sft_part parts[4];
    sft_source source = source_of();
    make_parts(parts, &source, large);
    return sft_save_parts(parts, 4, &pair, 1, NULL, sink, NULL, err);
}

static sft_code put_backwards(const sft_plan *plan, sft_writer *writer, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = sft_plan_tensor_count(plan); i-- > 0 && !code;) {
        code = sft_writer_put(writer, i, data, 100, err);
        if (!code) code = sft_writer_put(writer, i, data + 100, 200, err);
    }
    if (!code) return sft_writer_finish(writer, err);
    sft_writer_abandon(writer);
    return code;
}

static sft_code save_plan(sft_sink sink, sft_error *err) {
    const sft_spec specs[] = { { { "a", 1 }, SFT_U8, 1, side }, { { "b", 1 }, SFT_U8, 1, side } };
    sft_plan *plan = NULL;
    sft_writer *writer;
    sft_code code = sft_plan_new(specs, 2, &pair, 1, NULL, &plan, err);
    if (code) sft_sink_abandon(&sink);
    if (!code) code = sft_writer_begin(plan, sink, &writer, err);
    if (!code) code = put_backwards(plan, writer, err);
    sft_plan_free(plan);
    return code;
}

static sft_code save_added(sft_sink sink, sft_error *err) {
    static const char *const names[] = { "z", "y", "x" };
    sft_writer_options options = SFT_WRITER_OPTIONS_INIT;
    sft_writer *writer;
    options.header_bytes = 600;
    sft_code code = sft_writer_begin_unplanned(&options, sink, &writer, err);
    if (code) return code;
    for (size_t n = 0; n < 3 && !code; n++) {
        size_t i;
        sft_spec spec = { sft_span_cstr(names[n]), SFT_U8, 1, side };
        code = sft_writer_add(writer, &spec, &i, err);
        if (!code) code = sft_writer_put(writer, i, data + n, 300, err);
    }
    if (!code) return sft_writer_finish(writer, err);
    sft_writer_abandon(writer);
    return code;
}

static sft_code save_set(sft_error *err) {
    static const uint32_t shard_of[] = { 0, 1, 1, 2 };
    sft_part parts[4];
    sft_source source = source_of();
    make_parts(parts, &source, false);
    return sft_save_set("/e/set", parts, shard_of, 4, 3, &pair, 1, NULL, NULL, err);
}

static sft_code run_save(const crash_scene *scene, sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_sink sink;
    int what = scene->way & 15;
    if (what == SET) return save_set(err);
    options.direct = what == DIRECT;
    sft_code code = sft_sink_path(TARGET, &options, &sink, err);
    if (code) return code;
    if (what == PLAN) return save_plan(sink, err);
    return what == ADDED ? save_added(sink, err) : save_parts(sink, what == DIRECT, err);
}

#define SAVE(what) { .name = "save " #what, .way = what, .set = set_save, .run = run_save, \
    .keep = crash_keep, .judge = crash_judge }

static const crash_scene saves[] = {
    SAVE(PARTS),  SAVE(PARTS | OVER),  SAVE(PARTS | NAMED),  SAVE(PARTS | NAMED | OVER),
    SAVE(PLAN),   SAVE(PLAN | OVER),   SAVE(PLAN | NAMED),
    SAVE(ADDED),  SAVE(ADDED | OVER),  SAVE(ADDED | NAMED),  SAVE(ADDED | NAMED | OVER),
    SAVE(DIRECT), SAVE(DIRECT | OVER), SAVE(DIRECT | NAMED),
    SAVE(SET),    SAVE(SET | NAMED),   SAVE(SET | INTO),     SAVE(SET | INTO | NAMED),
};
#define SAVES (sizeof saves / sizeof *saves)

static void play_saves(void **state) {
    (void)state;
    assert_true(crash_play_all(saves, SAVES, 300) >= 10000);
}

static void play_controls(void **state) {
    size_t journals = 1;
    (void)state;
    assert_true(crash_play_controls(saves, SAVES, 100, &journals));
    assert_int_equal(journals, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_saves),
        cmocka_unit_test(play_controls),
    };
    return cmocka_run_group_tests_name("power cuts while files are written", tests, NULL, NULL);
}
