/* What is made of private files is private: modes of sources, of sinks, of edited files, and of
 * what a label tells. */
#define _GNU_SOURCE
#include "safetensors_edit.h"
#include "safetensors_info.h"
#include "safetensors_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_dir.h"

#include <fcntl.h>

#define HEADER "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}   "
#define MODEL "\x38\0\0\0\0\0\0\0" HEADER "abcd"

_Static_assert(sizeof HEADER == 0x38 + 1, "what MODEL begins with");

static void put_mode(const char *name, const char *bytes, size_t len, mode_t mode) {
    temp_write(name, bytes, len);
    assert_int_equal(chmod(temp_path(name), mode), 0);
}

static void put_model(const char *name, mode_t mode) {
    put_mode(name, MODEL, sizeof MODEL - 1, mode);
}

static uint32_t older_mode(void *ctx) {
    (void)ctx;
    return 0644;
}

static void sources(void **state) {
    const sft_source_vtable older = { offsetof(sft_source_vtable, mode), NULL, NULL, NULL,
                                      older_mode };
    sft_source source = { NULL, &older, 0, NULL, false };
    int pipes[2];
    (void)state;
    assert_int_equal(sft_source_mode(&source), 0);
    put_model("file", 0640);
    assert_int_equal(sft_source_path(temp_path("file"), NULL, &source, NULL), SFT_OK);
    assert_int_equal(sft_source_mode(&source), 0640);
    assert_int_equal(chmod(temp_path("file"), 0604), 0);
    assert_int_equal(sft_source_mode(&source), 0640); /* when it was opened */
    sft_source_close(&source);
    int fd = open(temp_path("file"), O_RDONLY);
    assert_int_equal(chmod(temp_path("file"), 0), 0);
    assert_int_equal(sft_source_fd(fd, NULL, &source, NULL), SFT_OK);
    assert_int_equal(sft_source_mode(&source), 0600); /* no bit at all is not "not known" */
    sft_source_close(&source);
    assert_int_equal(close(fd), 0);
    source = sft_source_memory("abc", 3);
    assert_int_equal(sft_source_mode(&source), 0);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(sft_source_fd(pipes[0], NULL, &source, NULL), SFT_OK);
    assert_int_equal(sft_source_mode(&source), 0);
    sft_source_close(&source);
    assert_int_equal(close(pipes[0]) | close(pipes[1]), 0);
}

static void files(void **state) {
    static const sft_mode modes[] = { SFT_READ, SFT_MAP, SFT_MAP_COW, SFT_AUTO };
    (void)state;
    put_model("file", 0640);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        sft_open_options options = SFT_OPEN_OPTIONS_INIT;
        sft_file *file;
        options.mode = modes[i];
        assert_int_equal(sft_open(temp_path("file"), &options, &file, NULL), SFT_OK);
        sft_source source = sft_file_source(file);
        assert_int_equal(sft_source_mode(&source), 0640);
        sft_close(file);
    }
}

/* Each of its modes takes bits away; its owner's stay. 0 ends the list. */
static int mode_after(const uint32_t *limits, bool tee) {
    sft_buffer buffer = { 0 };
    sft_sink sink;
    assert_int_equal(sft_sink_path(temp_path("out"), NULL, &sink, NULL), SFT_OK);
    if (tee)
        assert_int_equal(sft_sink_tee(sft_sink_memory(&buffer), sink, NULL, &sink, NULL), SFT_OK);
    do assert_int_equal(sft_sink_limit_mode(&sink, *limits, NULL), SFT_OK);
    while (*limits++);
    assert_int_equal(sft_sink_write(&sink, 0, "x", 1, NULL), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
    sft_buffer_free(&buffer);
    return temp_mode("out");
}

static void sinks(void **state) {
    static const uint32_t none[] = { 0 }, group[] = { 0640, 0 }, twice[] = { 0640, 0604, 0 },
                          nobody[] = { 04, 0 };
    mode_t mask = umask(022);
    (void)state;
    for (int tee = 0; tee < 2; tee++) {
        assert_int_equal(mode_after(none, tee), 0644);
        assert_int_equal(mode_after(group, tee), 0640);
        assert_int_equal(mode_after(none, tee), 0640); /* that of the file it replaces */
        assert_int_equal(mode_after(twice, tee), 0600);
        assert_int_equal(unlink(temp_path("out")), 0);
    }
    assert_int_equal(mode_after(nobody, false), 0604);
    umask(mask);
}

static void copies(void **state) {
    sft_source source;
    sft_sink sink;
    sft_buffer buffer = { 0 };
    (void)state;
    put_mode("private", "bytes", 5, 0600);
    assert_int_equal(sft_source_path(temp_path("private"), NULL, &source, NULL), SFT_OK);
    assert_int_equal(sft_sink_path(temp_path("out"), NULL, &sink, NULL), SFT_OK);
    assert_int_equal(sft_copy(&source, 0, 5, sink, NULL, NULL), SFT_OK);
    assert_int_equal(temp_mode("out"), 0600);
    sink = sft_sink_memory(&buffer);
    assert_int_equal(sft_sink_limit_mode(&sink, 0600, NULL), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
    sft_source_close(&source);
}

/* Ways to change a file: where it is, as a new one, and into another. */
static void edits(void **state) {
    (void)state;
    for (int way = 0; way < 6; way++) {
        sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
        sft_source source;
        sft_edit *edit;
        sft_code code;
        options.safe = way % 3 == 1;
        put_model("file", 0644);
        put_mode("private", "ABCD", 4, 0600);
        (void)unlink(temp_path("out"));
        assert_int_equal(sft_edit_open(temp_path("file"), &options, &edit, NULL), SFT_OK);
        assert_int_equal(sft_source_path(temp_path("private"), NULL, &source, NULL), SFT_OK);
        if (way < 3) {
            code = sft_edit_put(edit, sft_span_cstr("a"), &source, NULL);
        } else {
            code = sft_edit_set(edit, sft_span_cstr("k"), sft_span_cstr("v"), NULL);
            sft_edit_limit_mode(edit, 0);
            sft_edit_limit_mode(edit, sft_source_mode(&source));
        }
        assert_int_equal(code, SFT_OK);
        if (way % 3 < 2) {
            assert_int_equal(sft_edit_apply(edit, NULL, NULL, NULL), SFT_OK);
        } else {
            assert_int_equal(sft_edit_save(edit, temp_path("out"), NULL, NULL, NULL, NULL), 0);
        }
        assert_int_equal(temp_mode(way % 3 < 2 ? "file" : "out"), 0600);
        sft_source_close(&source);
        sft_edit_close(edit);
    }
}

static uint32_t mode_of_label(const sft_set *set, const char *path, const char *folder) {
    sft_info_folder *listed = NULL;
    sft_info *info;
    if (folder)
        assert_int_equal(sft_info_folder_open(folder, NULL, NULL, &listed, NULL), SFT_OK);
    assert_int_equal(sft_info_open(set, path, listed, NULL, &info, NULL), SFT_OK);
    uint32_t mode = sft_info_output_mode(info);
    sft_info_close(info);
    sft_info_folder_close(listed);
    return mode;
}

static void labels(void **state) {
    static const char about[] = "{\"id\":5,\"trainedWords\":[\"neon\"]}";
    sft_set *set;
    sft_file *file;
    (void)state;
    put_model("x.safetensors", 0644);
    assert_int_equal(sft_set_open(temp_path("x.safetensors"), NULL, &set, NULL), SFT_OK);
    assert_int_equal(mode_of_label(set, temp_path("x.safetensors"), NULL), 0644);
    put_mode("x.civitai.info", about, sizeof about - 1, 0640);
    assert_int_equal(mode_of_label(set, temp_path("x.safetensors"), NULL), 0640);
    assert_int_equal(mode_of_label(set, temp_path("x.safetensors"), temp_dir), 0640);
    put_mode("y.civitai.info", about, sizeof about - 1, 0600); /* another model's */
    assert_int_equal(mode_of_label(set, temp_path("x.safetensors"), temp_dir), 0640);
    sft_set_close(set);
    assert_int_equal(sft_open_memory(MODEL, sizeof MODEL - 1, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
    assert_int_equal(mode_of_label(set, NULL, NULL), 0);
    sft_set_close(set);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, temp_dir_make, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_DIR(sources), IN_DIR(files), IN_DIR(sinks), IN_DIR(copies), IN_DIR(edits),
        IN_DIR(labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
