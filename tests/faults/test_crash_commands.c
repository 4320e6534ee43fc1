/* Power cuts while the commands write: the models that stand there are the old ones or the new
 * ones, and an index names whole files. */
#include "crash.h"
#include "unit/make_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define NAMED 1  /* new files have names from the start */
#define CLONES 2 /* the file system shares blocks */

/* ── The disk ── */

static void add(const char *path, const char *header, size_t data_len) {
    static unsigned char data[700];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 5 % 100);
    test_file f = make_file(header, data, data_len);
    os_fake_add_file(path, f.bytes, f.len);
    free_file(&f);
}

#define PAD "                                                                "

static void add_models(void) {
    add("/w/m.safetensors",
        "{\"__metadata__\":{\"k\":\"v\",\"path\":\"/home/me/x\"},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[150],\"data_offsets\":[0,600]},"
        "\"b\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[600,608]},"
        "\"c\":{\"dtype\":\"U8\",\"shape\":[24],\"data_offsets\":[608,632]}}" PAD, 632);
    add("/w/bad.safetensors",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[300],\"data_offsets\":[0,300]}}", 320);
    add("/out/old.safetensors",
        "{\"x\":{\"dtype\":\"U8\",\"shape\":[40],\"data_offsets\":[0,40]}}", 40);
}

static void add_npy(void) {
    static const char head[] = "\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, "
                               "'shape': (2, 3), }          \n";
    char bytes[10 + 70 + 24] = { 0 };
    memcpy(bytes, head, sizeof head - 1);
    os_fake_add_file("/w/x.npy", bytes, sizeof bytes);
}

#define INDEX "/set/m.safetensors.index.json"

static void add_set(void) {
    static const char index[] =
        "{\"metadata\":{\"total_size\":360},\"weight_map\":{"
        "\"a\":\"m-00001-of-00003.safetensors\",\"b\":\"m-00002-of-00003.safetensors\","
        "\"c\":\"m-00003-of-00003.safetensors\"}}";
    for (int i = 0; i < 3; i++) {
        char path[64], header[128];
        snprintf(path, sizeof path, "/set/m-0000%d-of-00003.safetensors", i + 1);
        snprintf(header, sizeof header, "{\"%c\":{\"dtype\":\"F32\",\"shape\":[30],"
                 "\"data_offsets\":[0,120]}}" PAD, 'a' + i);
        add(path, header, 120);
    }
    os_fake_add_file(INDEX, index, sizeof index - 1);
}

static void set_disk(const crash_scene *scene) {
    static const char input[24] = "twenty-four bytes for c";
    add_models();
    add_npy();
    add_set();
    os_fake_add_dir("/out/empty");
    os_fake_no_unnamed((scene->way & NAMED) != 0);
    os_fake_can((scene->way & CLONES) != 0, false);
    os_fake_set_input(OS_FILE, input, sizeof input);
}

static sft_code run_line(const crash_scene *scene, sft_error *err) {
    int status = fault_command(scene->name);
    size_t len;
    const char *said = os_fake_output(2, &len);
    if (status == 0) return SFT_OK;
    snprintf(err->message, sizeof err->message, "exit %d: %.*s", status, (int)len, said);
    return SFT_IO_WRITE;
}

#define SCENE(text, how) { .name = "safetensors " text, .way = how, .set = set_disk, \
    .run = run_line, .keep = crash_keep, .judge = crash_judge }
#define LINE(text) SCENE(text, 0)
#define NAME(text) SCENE(text, NAMED)
#define CLONE(text) SCENE(text, CLONES)
#define M "/w/m.safetensors"
#define OUT "/out/o.safetensors"
#define OVER "/out/old.safetensors --force"
#define LONG "a-value-longer-than-all-the-padding-that-the-header-of-this-model-ends-with-today"

/* ── What they change in place ── */

static const crash_scene edits[] = {
    LINE("meta set " M " k another-value"),          NAME("meta set " M " k another-value"),
    LINE("meta set " M " k another-value --safe"),   NAME("meta set " M " k another-value --safe"),
    LINE("meta set " M " k " LONG),      NAME("meta set " M " k " LONG),
    CLONE("meta set " M " k " LONG),     LINE("meta rm " M " k"),
    LINE("meta scrub " M),               LINE("meta set " M " k another-value -o " OUT),
    LINE("meta set " INDEX " k v"),      NAME("meta set " INDEX " k v"),
    LINE("meta set " INDEX " k v --each-shard"),
    LINE("rename " M " --map a=first"),  LINE("rename " M " --add-prefix " LONG),
    LINE("rename " INDEX " --map a=first"), LINE("rename " INDEX " --add-prefix y."),
    NAME("rename " INDEX " --add-prefix y."),
    LINE("rename " INDEX " --add-prefix y. -o /out/new"),
    NAME("rename " INDEX " --add-prefix y. -o /out/empty"),
    LINE("add " INDEX " n=/w/x.npy"),    NAME("add " INDEX " n=/w/x.npy a=/w/x.npy --replace"),
    LINE("select " INDEX " --in-place --drop b"),
    LINE("rm-tensor " INDEX " b"),
    LINE("convert " INDEX " --in-place --dtype F64"),
    NAME("convert " INDEX " --in-place --dtype F16"),
};

/* ── What they write anew ── */

static const crash_scene rewrites[] = {
    LINE("add " M " n=/w/x.npy"),        NAME("add " M " n=/w/x.npy"),
    LINE("put " M " c"),                 NAME("put " M " c"),
    LINE("put " M " c -o " OUT),
    LINE("convert " M " --dtype BF16 -o " OUT),
    NAME("convert " M " --dtype BF16 -o " M " --force"),
    LINE("repair /w/bad.safetensors -o " OUT),
    NAME("repair /w/bad.safetensors -o " OVER),
    LINE("merge " INDEX " -o " OUT),     NAME("merge " INDEX " -o " OVER),
    LINE("convert " M " --dtype F16 --in-place"), LINE("select " M " --in-place --drop a"),
    LINE("select " M " --keep b -o " OUT), NAME("select " M " --drop b -o " M " --force"),
};

static const crash_scene sets[] = {
    LINE("split " M " --count 3 -o /out/new"),   NAME("split " M " --count 3 -o /out/empty"),
    LINE("convert " INDEX " --dtype F64 -o /out/new"),
    NAME("convert " INDEX " --dtype F16 -o /out/empty"),
    LINE("select " INDEX " --drop b -o /out/new"),
    NAME("select " INDEX " --drop b -o /out/empty"),
    LINE("repair " INDEX " --copy -o /out/new"), NAME("repair " INDEX " --copy -o /out/empty"),
};

#define COUNT(scenes) (sizeof scenes / sizeof *scenes)

static void play_edits(void **state) {
    (void)state;
    assert_true(crash_play_all(edits, COUNT(edits), 300) >= 10000);
}

static void play_rewrites(void **state) {
    (void)state;
    assert_true(crash_play_all(rewrites, COUNT(rewrites), 300) >= 10000);
}

static void play_sets(void **state) {
    (void)state;
    assert_true(crash_play_all(sets, COUNT(sets), 300) >= 10000);
}

static void play_controls(void **state) {
    size_t journals;
    (void)state;
    assert_true(crash_play_controls(edits, COUNT(edits), 100, &journals));
    assert_true(journals >= 6);
    assert_true(crash_play_controls(rewrites, COUNT(rewrites), 100, NULL));
    assert_true(crash_play_controls(sets, COUNT(sets), 100, &journals));
    assert_int_equal(journals, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_edits),
        cmocka_unit_test(play_rewrites),
        cmocka_unit_test(play_sets),
        cmocka_unit_test(play_controls),
    };
    return cmocka_run_group_tests_name("power cuts while commands write", tests, NULL, NULL);
}
