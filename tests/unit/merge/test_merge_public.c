/* Merging by the calls of safetensors_merge.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors_merge.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sft_error err = SFT_ERROR_INIT;

/* Tensors of two F32 each. */
static sft_set *model_named(char *bytes, size_t cap, const char *const *names, size_t count,
                            const float *values) {
    char head[512] = "{";
    size_t len = 1, data = count * 8;
    sft_file *file;
    sft_set *set;
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(head + len, sizeof head - len, "%s\"%s\":{\"dtype\":\"F32\","
                                "\"shape\":[2],\"data_offsets\":[%zu,%zu]}", i ? "," : "",
                                names[i], i * 8, i * 8 + 8);
    head[len++] = '}';
    assert_true(8 + len + data <= cap);
    for (int i = 0; i < 8; i++) bytes[i] = (char)((uint64_t)len >> 8 * i);
    memcpy(bytes + 8, head, len);
    memcpy(bytes + 8 + len, values, data);
    assert_int_equal(sft_open_source(sft_source_memory(bytes, 8 + len + data), NULL, &file, &err),
                     SFT_OK);
    assert_int_equal(sft_set_from_file(file, "folder/m.safetensors", &set, &err), SFT_OK);
    return set;
}

static sft_set *model_of(char *bytes, size_t cap, const float *values) {
    static const char *const names[] = { "a", "layers.0.b" };
    return model_named(bytes, cap, names, 2, values);
}

static const float numbers[3][4] = { { 0, 0, 0, 0 }, { 1, 2, 3, 4 }, { 5, 6, 7, 9 } };
static char images[3][512];
static sft_set *sets[3];

static int open_models(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) sets[i] = model_of(images[i], sizeof images[i], numbers[i]);
    return 0;
}

static int close_models(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) sft_set_close(sets[i]);
    return 0;
}

static void saves_and_tells(void **state) {
    static const char *const params[] = { "lambda@layers.*=2", "lambda=1" };
    sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
    sft_merge *merge;
    sft_buffer out = { 0 };
    sft_file *file;
    float found[4];
    size_t got;
    (void)state;
    options.method = "task_arithmetic";
    options.base = 0;
    options.params = params;
    options.param_count = 2;
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_OK);
    assert_int_equal(sft_merge_named(merge), 0);
    assert_int_equal(sft_merge_named_at(merge, 0).len, 0);
    assert_null(sft_merge_notes(merge));
    assert_null(sft_merge_part(merge, 0).source);
    assert_int_equal(sft_merge_add(merge, sets[0], "base", NULL, &err), SFT_OK);
    assert_int_equal(sft_merge_add(merge, sets[1], NULL, "0.5", &err), SFT_OK);
    assert_int_equal(sft_merge_plan(merge, &err), SFT_OK);
    assert_int_equal(sft_merge_notes(merge)->computed, 2);
    sft_part part = sft_merge_part(merge, 1);
    assert_int_equal(sft_source_read(part.source, part.begin, found, 8, &got, &err), SFT_OK);
    assert_true(got == 8 && found[0] > 2.99F && found[0] < 3.01F);
    assert_null(sft_merge_part(merge, 2).source);
    assert_int_equal(sft_merge_add(merge, sets[2], NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_merge_save(merge, sft_sink_memory(&out), NULL, &err), SFT_OK);
    assert_int_equal(sft_merge_blames(merge), SIZE_MAX);
    sft_merge_free(merge);
    assert_int_equal(sft_open_source(sft_source_memory(out.data, out.len), NULL, &file, &err),
                     SFT_OK);
    sft_span recipe;
    assert_true(sft_file_metadata_get(file, sft_span_cstr("sft_merge"), &recipe));
    assert_int_equal(sft_read_bytes(file, sft_file_tensor_at(file, 0)->offset, found, 16, &err),
                     SFT_OK);
    for (int i = 0; i < 4; i++)
        assert_true(found[i] * 2 > numbers[1][i] * (i < 2 ? 1 : 2) - 0.01F
                    && found[i] * 2 < numbers[1][i] * (i < 2 ? 1 : 2) + 0.01F);
    /* and again by what its header says */
    sft_merge_options again = SFT_MERGE_OPTIONS_INIT;
    sft_buffer copy = { 0 };
    again.recipe = recipe;
    assert_int_equal(sft_merge_new(&again, &merge, &err), SFT_OK);
    assert_int_equal(sft_merge_named(merge), 2);
    assert_true(sft_span_equal(sft_merge_named_at(merge, 1), sft_span_cstr("m.safetensors")));
    assert_int_equal(sft_merge_add(merge, sets[0], "base", NULL, &err), SFT_OK);
    assert_int_equal(sft_merge_add(merge, sets[1], NULL, "1", &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_merge_save(merge, sft_sink_memory(&copy), NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_merge_add(merge, sets[1], NULL, NULL, &err), SFT_OK);
    assert_int_equal(sft_merge_save(merge, sft_sink_memory(&copy), NULL, &err), SFT_OK);
    assert_true(copy.len == out.len && memcmp(copy.data, out.data, out.len) == 0);
    sft_merge_free(merge);
    sft_close(file);
    sft_buffer_free(&copy);
    sft_buffer_free(&out);
}

static void assert_recipe(const sft_buffer *out, const char *part) {
    sft_file *file;
    sft_span recipe;
    char text[1024];
    assert_int_equal(sft_open_source(sft_source_memory(out->data, out->len), NULL, &file, &err),
                     SFT_OK);
    assert_true(sft_file_metadata_get(file, sft_span_cstr("sft_merge"), &recipe));
    assert_true(recipe.len < sizeof text);
    memcpy(text, recipe.data, recipe.len);
    text[recipe.len] = 0;
    assert_non_null(strstr(text, part));
    sft_close(file);
}

/* A recipe is the same after a plan that failed, and in a locale with another decimal point. */
static void recipe_is_the_same(void **state) {
    static const char *const locales[] = { "C", "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8" };
    sft_buffer outs[2] = { { 0 } };
    (void)state;
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
        sft_buffer *out = &outs[i > 0];
        sft_merge *merge;
        if (!setlocale(LC_NUMERIC, locales[i])) continue;
        options.method = "task_arithmetic";
        options.base = 0;
        assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_OK);
        assert_int_equal(sft_merge_add(merge, sets[0], "base", NULL, &err), SFT_OK);
        assert_int_equal(sft_merge_plan(merge, &err), SFT_BAD_ARGUMENT);
        assert_int_equal(sft_merge_add(merge, sets[1], "m", "0.7", &err), SFT_OK);
        out->len = 0;
        assert_int_equal(sft_merge_save(merge, sft_sink_memory(out), NULL, &err), SFT_OK);
        sft_merge_free(merge);
        if (i > 0)
            assert_true(outs[1].len == outs[0].len
                        && memcmp(outs[1].data, outs[0].data, outs[0].len) == 0);
        else
            assert_recipe(out, "\"weight\":0.7}}],\"parameters\":{\"weight\":1},");
    }
    (void)setlocale(LC_NUMERIC, "C");
    for (int i = 0; i < 2; i++) sft_buffer_free(&outs[i]);
}

/* Two models of one name are two in the recipe that is written, which so can be read again. */
static void names_apart(void **state) {
    static const char *const want[] = { "a/b", "a/b (2)", "m.safetensors" };
    sft_merge_options options = SFT_MERGE_OPTIONS_INIT, again = SFT_MERGE_OPTIONS_INIT;
    sft_merge *merge;
    sft_buffer out = { 0 };
    sft_file *file;
    (void)state;
    options.method = "linear";
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sft_merge_add(merge, sets[i], i < 2 ? "a/b" : NULL, NULL, &err), SFT_OK);
    assert_int_equal(sft_merge_save(merge, sft_sink_memory(&out), NULL, &err), SFT_OK);
    sft_merge_free(merge);
    assert_int_equal(sft_open_source(sft_source_memory(out.data, out.len), NULL, &file, &err),
                     SFT_OK);
    assert_true(sft_file_metadata_get(file, sft_span_cstr("sft_merge"), &again.recipe));
    assert_int_equal(sft_merge_new(&again, &merge, &err), SFT_OK);
    for (size_t i = 0; i < 3; i++)
        assert_true(sft_span_equal(sft_merge_named_at(merge, i), sft_span_cstr(want[i])));
    sft_merge_free(merge);
    sft_close(file);
    sft_buffer_free(&out);
}

static sft_code append(void *ctx, const void *bytes, size_t len, sft_error *failure) {
    sft_buffer *out = ctx;
    (void)failure;
    memcpy(out->data + out->len, bytes, len);
    out->len += len;
    return SFT_OK;
}

/* Digests that are computed while data is written, and before it: the same header. */
static void records_meanwhile(void **state) {
    static char pipe[8192];
    char path[3][64];
    sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
    sft_buffer seekable = { 0 }, forward = { .data = pipe };
    sft_job job = SFT_JOB_INIT;
    sft_merge *merge;
    sft_sink sink;
    (void)state;
    job.threads = 2;
    options.method = "linear";
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_OK);
    sft_set *files[3];
    for (int i = 0; i < 3; i++) {
        (void)snprintf(path[i], sizeof path[i], "test_merge_public.%d.safetensors", i);
        FILE *file = fopen(path[i], "wb");
        assert_non_null(file);
        size_t size = (size_t)sft_file_size(sft_set_shard_at(sets[i], 0));
        assert_int_equal(fwrite(images[i], 1, size, file), size);
        assert_int_equal(fclose(file), 0);
        sft_file *opened;
        assert_int_equal(sft_open(path[i], NULL, &opened, &err), SFT_OK);
        assert_int_equal(sft_set_from_file(opened, path[i], &files[i], &err), SFT_OK);
        assert_int_equal(sft_merge_add(merge, files[i], NULL, NULL, &err), SFT_OK);
    }
    assert_int_equal(sft_merge_save(merge, sft_sink_memory(&seekable), &job, &err), SFT_OK);
    assert_int_equal(sft_sink_callback(append, &forward, NULL, &sink, &err), SFT_OK);
    assert_int_equal(sft_merge_save(merge, sink, &job, &err), SFT_OK);
    assert_int_equal(seekable.len, forward.len);
    assert_memory_equal(seekable.data, forward.data, forward.len);
    sft_merge_free(merge);
    sft_buffer_free(&seekable);
    for (int i = 0; i < 3; i++) {
        sft_set_close(files[i]);
        assert_int_equal(remove(path[i]), 0);
    }
}

static void refuses(void **state) {
    sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
    sft_merge *merge;
    (void)state;
    assert_int_equal(sft_merge_new(NULL, &merge, &err), SFT_BAD_ARGUMENT);
    assert_null(merge);
    options.method = "linear";
    assert_int_equal(sft_merge_new(&options, NULL, &err), SFT_BAD_ARGUMENT);
    options.base = 0;
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_BAD_ARGUMENT);
    options.base = SIZE_MAX;
    options.dtype = SFT_I8;
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_BAD_ARGUMENT);
    options.dtype = SFT_BF16;
    options.recipe = sft_span_cstr("merge_method: linear\n");
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_BAD_ARGUMENT);
    options.method = NULL;
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_BAD_ARGUMENT);
    options.recipe.len = 0;
    options.method = "slerp";
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_OK);
    assert_int_equal(sft_merge_add(merge, sets[1], NULL, "1", &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_merge_blames(merge), 0);
    assert_int_equal(sft_merge_add(merge, NULL, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_merge_add(merge, sets[1], NULL, NULL, &err), SFT_OK);
    assert_int_equal(sft_merge_plan(merge, &err), SFT_BAD_ARGUMENT);
    sft_merge_free(merge);
    sft_merge_free(NULL);
}

/* What a model was to weigh that was not added is not what the next one weighs. */
static void forgets_refused(void **state) {
    sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
    sft_merge *merge;
    float found[2];
    size_t got;
    (void)state;
    options.method = "linear";
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_OK);
    assert_int_equal(sft_merge_add(merge, sets[1], "\xff", "3", &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_merge_add(merge, sets[1], NULL, NULL, &err), SFT_OK);
    assert_int_equal(sft_merge_add(merge, sets[2], NULL, NULL, &err), SFT_OK);
    assert_int_equal(sft_merge_plan(merge, &err), SFT_OK);
    sft_part part = sft_merge_part(merge, 0);
    assert_int_equal(sft_source_read(part.source, part.begin, found, 8, &got, &err), SFT_OK);
    assert_true(got == 8 && found[0] > 2.99F && found[0] < 3.01F);
    sft_merge_free(merge);
}

/* With the prefix that the first model has, the second one would have two tensors of one name. */
static void fails_again(void **state) {
    static const char *const names[] = { "model.diffusion_model.w" };
    static const char *const others[] = { "model.diffusion_model.z", "w", "z" };
    static const float values[6] = { 0 };
    sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
    sft_merge *merge;
    char bytes[2][512];
    sft_set *own[2] = { model_named(bytes[0], sizeof bytes[0], names, 1, values),
                        model_named(bytes[1], sizeof bytes[1], others, 3, values) };
    sft_buffer out = { 0 };
    (void)state;
    options.method = "linear";
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sft_merge_add(merge, own[i], NULL, NULL, &err), SFT_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sft_merge_plan(merge, &err), SFT_TENSOR_DUPLICATE);
        assert_int_equal(sft_merge_blames(merge), 1);
    }
    assert_int_equal(sft_merge_save(merge, sft_sink_memory(&out), NULL, &err),
                     SFT_TENSOR_DUPLICATE);
    sft_merge_free(merge);
    for (int i = 0; i < 2; i++) sft_set_close(own[i]);
    sft_buffer_free(&out);
}

/* Overwrites memory that was freed. */
static void take_freed(void) {
    void *taken[4096];
    for (size_t i = 0; i < 4096; i++) {
        size_t size = 16 * (i / 8 + 1);
        taken[i] = malloc(size);
        if (taken[i]) memset(taken[i], 0xA5, size);
    }
    for (size_t i = 0; i < 4096; i++) free(taken[i]);
}

static void finds_mixtures(void **state) {
    const sft_set *models[2] = { sets[1], sets[2] };
    sft_mixture *mixture;
    size_t who;
    (void)state;
    assert_int_equal(sft_mixture_new(sets[2], models, 2, NULL, NULL, &mixture, &who, &err), SFT_OK);
    take_freed();
    assert_int_equal(sft_mixture_count(mixture), 3);
    const sft_mixture_block *all = sft_mixture_at(mixture, 2);
    /* Of its own memory: what was made of the models to compare them is gone. */
    sft_span layer = sft_mixture_at(mixture, 1)->name;
    assert_int_equal(layer.len, 8);
    assert_memory_equal(layer.data, "layers.0", 8);
    assert_int_equal(sft_mixture_at(mixture, 0)->name.len, 0);
    assert_true(all->fits && all->weights[1] > 0.999 && all->weights[1] < 1.001);
    assert_int_equal(sft_mixture_left_out(mixture), 0);
    assert_null(sft_mixture_at(mixture, 3));
    sft_mixture_free(mixture);
    assert_int_equal(sft_mixture_new(sets[2], models, 0, NULL, NULL, &mixture, &who, &err),
                     SFT_BAD_ARGUMENT);
    sft_mixture_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saves_and_tells), cmocka_unit_test(recipe_is_the_same),
        cmocka_unit_test(names_apart),
        cmocka_unit_test(records_meanwhile),
        cmocka_unit_test(refuses), cmocka_unit_test(forgets_refused),
        cmocka_unit_test(fails_again),
        cmocka_unit_test(finds_mixtures),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
