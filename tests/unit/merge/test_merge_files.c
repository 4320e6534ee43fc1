/* Merges of models in files: digests that are computed while the result is written, where that can
 * be, and before it where it cannot, make the same header. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors_merge.h"
#include "unit/temp_dir.h"
#include "unit/text_model.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define A "v F32 1 #1;w F32 2 #1,2"
#define B "v F32 1 #5;w F32 2 #3,4"

static void write_file(const char *name, const void *bytes, size_t len) {
    FILE *file = fopen(temp_path(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void write_model(const char *name, const char *text) {
    case_model m = case_open(text, NULL);
    write_file(name, m.file.bytes, m.file.len);
    case_close(&m);
}

static sft_code append(void *ctx, const void *bytes, size_t len, sft_error *failure) {
    sft_buffer *out = ctx;
    (void)failure;
    memcpy(out->data + out->len, bytes, len);
    out->len += len;
    return SFT_OK;
}

static void records_the_same(void **state) {
    static const char index[] = "{\"weight_map\":{\"v\":\"s1.safetensors\","
                                "\"w\":\"s2.safetensors\"}}";
    /* text: of b.safetensors beside a.safetensors; NULL: the shards */
    static const struct { const char *text; uint32_t threads; float first; } cases[] = {
        { B, 2, 3 }, { B, 1, 3 }, { A, 2, 1 }, { NULL, 2, 5 },
        { "@sd_merge_models ={\"ab\":{\"name\":\"x\"}};" B, 2, 3 },
        { "v F32 1 #5;w F8_E4M3 2 #56;w_scale F32 1 #3", 2, 3 },
    };
    (void)state;
    write_model("a.safetensors", A);
    write_model("s1.safetensors", "v F32 1 #9");
    write_model("s2.safetensors", "w F32 2 #3,4");
    write_file("s.safetensors.index.json", index, sizeof index - 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        static char pipe[8192];
        sft_buffer seekable = { 0 }, forward = { .data = pipe };
        sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
        sft_error err = SFT_ERROR_INIT;
        sft_job job = SFT_JOB_INIT;
        const char *names[2] = { "a.safetensors", cases[i].text ? "b.safetensors"
                                                                : "s.safetensors.index.json" };
        sft_set *sets[2];
        sft_merge *merge;
        sft_sink sink;
        sft_file *file;
        float first;
        if (cases[i].text) write_model("b.safetensors", cases[i].text);
        job.threads = cases[i].threads;
        options.method = "linear";
        assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_OK);
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(sft_set_open(temp_path(names[k]), NULL, &sets[k], &err), SFT_OK);
            assert_int_equal(sft_merge_add(merge, sets[k], NULL, NULL, &err), SFT_OK);
        }
        if (sft_merge_save(merge, sft_sink_memory(&seekable), &job, &err))
            fail_msg("case %zu: %s", i, err.message);
        assert_int_equal(sft_sink_callback(append, &forward, NULL, &sink, &err), SFT_OK);
        assert_int_equal(sft_merge_save(merge, sink, &job, &err), SFT_OK);
        assert_int_equal(seekable.len, forward.len);
        assert_memory_equal(seekable.data, forward.data, forward.len);
        assert_int_equal(sft_open_memory(seekable.data, seekable.len, NULL, &file, NULL), SFT_OK);
        const sft_tensor *v = sft_file_find_cstr(file, "v");
        assert_int_equal(sft_read_bytes(file, v->offset, &first, 4, NULL), SFT_OK);
        assert_true(first >= cases[i].first && first <= cases[i].first);
        sft_close(file);
        sft_merge_free(merge);
        sft_buffer_free(&seekable);
        for (size_t k = 0; k < 2; k++) sft_set_close(sets[k]);
    }
}

/* A model that changes while it is merged: nothing is written, and it is named. */
static bool change_model(void *ctx, uint64_t done, uint64_t total) {
    (void)done, (void)total;
    write_model(ctx, "v F32 1 #5;w F32 2 #3,4;longer F32 2");
    return true;
}

static void sees_a_change(void **state) {
    sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_job job = SFT_JOB_INIT;
    sft_buffer out = { 0 };
    sft_set *sets[2];
    sft_merge *merge;
    static char name[] = "b.safetensors";
    (void)state;
    write_model("a.safetensors", A);
    write_model(name, B);
    options.method = "linear";
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_OK);
    for (size_t k = 0; k < 2; k++) {
        assert_int_equal(sft_set_open(temp_path(k ? name : "a.safetensors"), NULL, &sets[k], &err),
                         SFT_OK);
        assert_int_equal(sft_merge_add(merge, sets[k], NULL, NULL, &err), SFT_OK);
    }
    job.tick = change_model;
    job.ctx = name;
    assert_int_equal(sft_merge_save(merge, sft_sink_memory(&out), &job, &err), SFT_IO_READ);
    assert_non_null(strstr(err.message, "expected models that stay as they are while they are "
                                        "merged, found that this one changed"));
    assert_int_equal(sft_merge_blames(merge), 1);
    sft_merge_free(merge);
    sft_buffer_free(&out);
    for (size_t k = 0; k < 2; k++) sft_set_close(sets[k]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(records_the_same, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(sees_a_change, temp_dir_make, temp_dir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
