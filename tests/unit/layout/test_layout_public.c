/* Layouts by the calls of safetensors_layout.h. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors_layout.h"

#include <stdio.h>
#include <string.h>

#include "unit/temp_dir.h"

static sft_error err = SFT_ERROR_INIT;

/* Marks of Z-Image, and a tensor that nobody knows. */
#define F32(name, shape, begin, end)                                                            \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static const char model_head[] =
    "{\"__metadata__\":{\"a\":\"b\",\"modelspec.hash_sha256\":\"0x00\"},"
    F32("layers.0.attention.qkv.weight", "[6,2]", 0, 48) ","
    F32("noise_refiner.0.attention.qkv.weight", "[6,2]", 48, 96) ","
    F32("layers.0.adaLN_modulation.0.weight", "[2,2]", 96, 112) ","
    F32("x_embedder.weight", "[1,64]", 112, 368) "," F32("no.such", "[1]", 368, 372) "}";

static char image[2048];
static sft_set *model;

static sft_set *set_of(char *bytes, size_t cap, const char *head, size_t data) {
    size_t len = strlen(head);
    sft_file *file;
    sft_set *set;
    assert_true(8 + len + data <= cap);
    for (int i = 0; i < 8; i++) bytes[i] = (char)((uint64_t)len >> 8 * i);
    memcpy(bytes + 8, head, len);
    for (size_t i = 0; i < data; i++) bytes[8 + len + i] = (char)i;
    assert_int_equal(sft_open_source(sft_source_memory(bytes, 8 + len + data), NULL, &file, &err),
                     SFT_OK);
    assert_int_equal(sft_set_from_file(file, "m.safetensors", &set, &err), SFT_OK);
    return set;
}

static int open_model(void **state) {
    (void)state;
    model = set_of(image, sizeof image, model_head, 372);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    sft_set_close(model);
    return 0;
}

static sft_layout_conversion *converted(uint32_t to, bool ignore) {
    const sft_set *sets[1] = { model };
    sft_layout_options options = SFT_LAYOUT_OPTIONS_INIT;
    sft_layout_conversion *conversion;
    size_t who = 7;
    options.to = to;
    options.architecture = "z-image";
    options.ignore_unmatched = ignore;
    assert_int_equal(sft_layout_conversion_new(sets, 1, &options, &conversion, &who, &err), SFT_OK);
    assert_int_equal(who, SIZE_MAX);
    return conversion;
}

static bool is_text(sft_span span, const char *text) {
    return sft_span_equal(span, sft_span_cstr(text));
}

static void tells(void **state) {
    sft_layout_conversion *conversion = converted(SFT_LAYOUT_DIFFUSERS, true);
    const sft_layout_facts *told = sft_layout_conversion_told(conversion);
    size_t set, count;
    bool lost;
    (void)state;
    assert_true(is_text(told->architecture, "z-image"));
    assert_true(is_text(told->pipeline, "ZImagePipeline"));
    assert_int_equal(told->unmatched, 1);
    assert_true(is_text(sft_layout_conversion_unmatched_at(conversion, 0, &set), "no.such"));
    assert_int_equal(set, 0);
    assert_int_equal(sft_layout_conversion_unmatched_at(conversion, 1, &set).len, 0);
    assert_int_equal(sft_layout_conversion_components(conversion), 1);
    const sft_layout_component *one = sft_layout_conversion_component_at(conversion, 0);
    assert_true(is_text(one->name, "transformer") && is_text(one->layout, "z-image"));
    assert_false(one->diffusers);
    assert_int_equal(one->tensors_before, 5);
    assert_int_equal(one->tensors, 8);
    assert_null(sft_layout_conversion_component_at(conversion, 1));
    assert_non_null(sft_layout_conversion_parts(conversion, &count));
    assert_int_equal(count, 8);
    const sft_pair *pairs = sft_layout_conversion_pairs(conversion, &count);
    assert_int_equal(count, 2); /* no digest, but format */
    assert_true(is_text(pairs[0].key, "a") && is_text(pairs[1].key, "format"));
    const sft_layout_file *file = sft_layout_conversion_file_at(conversion, 0);
    assert_string_equal(file->path, "transformer/diffusion_pytorch_model.safetensors");
    assert_int_equal(file->tensors, 8);
    assert_int_equal(file->bytes, 368);
    assert_true(sft_layout_conversion_note_at(conversion, 0, &lost).len > 0);
    assert_false(lost);
    assert_int_equal(sft_layout_conversion_note_at(conversion, 99, &lost).len, 0);
    sft_layout_conversion_free(conversion);
    sft_layout_conversion_free(NULL);
}

static void there_and_back(void **state) {
    const char *out, *index, *shard;
    sft_layout_conversion *conversion = converted(SFT_LAYOUT_DIFFUSERS, true);
    sft_layout_options options = SFT_LAYOUT_OPTIONS_INIT;
    sft_buffer back = { 0 };
    sft_set *made;
    sft_file *file;
    assert_int_equal(temp_dir_make(state), 0);
    out = temp_path("out");
    index = temp_path("out/model_index.json");
    shard = temp_path("out/transformer/diffusion_pytorch_model.safetensors");
    assert_int_equal(sft_layout_conversion_save_folder(conversion, out, NULL, NULL, &err), SFT_OK);
    assert_int_equal(sft_layout_conversion_save_folder(conversion, out, NULL, NULL, &err),
                     SFT_EXISTS);
    sft_layout_conversion_free(conversion);
    assert_int_equal(unlink(index), 0);
    assert_int_equal(sft_set_open(shard, NULL, &made, &err), SFT_OK);
    const sft_set *sets[1] = { made };
    options.to = SFT_LAYOUT_SINGLE;
    assert_int_equal(sft_layout_conversion_new(sets, 1, &options, &conversion, NULL, &err),
                     SFT_OK);
    assert_int_equal(sft_layout_conversion_save(conversion, sft_sink_memory(&back), NULL, &err),
                     SFT_OK);
    assert_int_equal(sft_open_memory(back.data, back.len, NULL, &file, &err), SFT_OK);
    assert_int_equal(sft_file_tensor_count(file), 4);
    for (size_t i = 0; i < 4; i++) {
        const sft_tensor *now = sft_file_tensor_at(file, i);
        const sft_tensor *was = sft_set_find(model, now->name, NULL);
        char bytes[2][256];
        assert_non_null(was);
        size_t len = (size_t)(was->end - was->begin);
        assert_int_equal(sft_read_bytes(file, now->offset, bytes[0], len, &err), SFT_OK);
        assert_int_equal(sft_read_bytes(sft_set_shard_at(model, 0), was->offset, bytes[1], len,
                                        &err), SFT_OK);
        assert_memory_equal(bytes[0], bytes[1], len);
    }
    sft_close(file);
    sft_buffer_free(&back);
    sft_layout_conversion_free(conversion);
    sft_set_close(made);
    assert_int_equal(unlink(shard), 0);
    (void)unlink(temp_path("out/transformer/config.json"));
    assert_int_equal(rmdir(temp_path("out/transformer")), 0);
    assert_int_equal(rmdir(out), 0);
    assert_int_equal(temp_dir_remove(state), 0);
}

static bool stop(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)total;
    return done == 0;
}

static void leaves_nothing(void **state) {
    sft_job job = SFT_JOB_INIT;
    sft_layout_conversion *conversion = converted(SFT_LAYOUT_COMFY, true);
    assert_int_equal(temp_dir_make(state), 0);
    const char *out = temp_path("out");
    job.tick = stop;
    assert_int_equal(sft_layout_conversion_save_folder(conversion, out, NULL, &job, &err),
                     SFT_CANCELLED);
    assert_int_equal(temp_dir_count(), 0);
    job.tick = NULL;
    assert_int_equal(sft_layout_conversion_save_folder(conversion, out, NULL, &job, &err), SFT_OK);
    assert_string_equal(sft_layout_conversion_file_at(conversion, 0)->path,
                        "diffusion_models/transformer.safetensors");
    sft_layout_conversion_free(conversion);
    assert_int_equal(unlink(temp_path("out/diffusion_models/transformer.safetensors")), 0);
    assert_int_equal(rmdir(temp_path("out/diffusion_models")), 0);
    assert_int_equal(rmdir(out), 0);
    assert_int_equal(temp_dir_remove(state), 0);
}

static void refuses(void **state) {
    const sft_set *sets[1] = { model };
    sft_layout_options options = SFT_LAYOUT_OPTIONS_INIT;
    sft_layout_conversion *conversion;
    sft_buffer out = { 0 };
    size_t who;
    (void)state;
    assert_int_equal(sft_layout_conversion_new(NULL, 1, NULL, &conversion, &who, &err),
                     SFT_BAD_ARGUMENT);
    assert_null(conversion);
    assert_int_equal(sft_layout_conversion_new(sets, 0, NULL, &conversion, &who, &err),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_layout_conversion_new(sets, 1, NULL, NULL, &who, &err), SFT_BAD_ARGUMENT);
    options.to = 3;
    assert_int_equal(sft_layout_conversion_new(sets, 1, &options, &conversion, &who, &err),
                     SFT_BAD_ARGUMENT);
    options.to = SFT_LAYOUT_SINGLE;
    options.architecture = "no-such";
    assert_int_equal(sft_layout_conversion_new(sets, 1, &options, &conversion, &who, &err),
                     SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "no-such"));
    conversion = converted(SFT_LAYOUT_SINGLE, false);
    assert_null(sft_layout_conversion_file_at(conversion, 0));
    assert_int_equal(sft_layout_conversion_save(conversion, sft_sink_memory(&out), NULL, &err),
                     SFT_TENSOR_NOT_FOUND);
    assert_int_equal(sft_layout_conversion_save_folder(conversion, "x", NULL, NULL, &err),
                     SFT_BAD_ARGUMENT);
    sft_layout_conversion_free(conversion);
    conversion = converted(SFT_LAYOUT_COMFY, true);
    assert_int_equal(sft_layout_conversion_save(conversion, sft_sink_memory(&out), NULL, &err),
                     SFT_BAD_ARGUMENT);
    sft_layout_conversion_free(conversion);
    sft_buffer_free(&out);
}

/* Arguments that may be NULL, and of a conversion that is. */
static void takes_null(void **state) {
    const sft_set *sets[2] = { model, NULL };
    sft_layout_options options = SFT_LAYOUT_OPTIONS_INIT;
    sft_layout_conversion *conversion;
    sft_buffer out = { 0 };
    sft_job job = SFT_JOB_INIT;
    char bytes[64];
    size_t set = 3, count = 3;
    bool lost = true;
    (void)state;
    assert_null(sft_layout_conversion_told(NULL));
    assert_int_equal(sft_layout_conversion_unmatched_at(NULL, 0, &set).len, 0);
    assert_int_equal(set, SIZE_MAX);
    assert_int_equal(sft_layout_conversion_components(NULL), 0);
    assert_null(sft_layout_conversion_component_at(NULL, 0));
    assert_int_equal(sft_layout_conversion_note_at(NULL, 0, &lost).len, 0);
    assert_false(lost);
    assert_null(sft_layout_conversion_file_at(NULL, 0));
    assert_null(sft_layout_conversion_parts(NULL, &count));
    assert_int_equal(count, 0);
    count = 3;
    assert_null(sft_layout_conversion_pairs(NULL, &count));
    assert_int_equal(count, 0);
    assert_int_equal(sft_layout_conversion_save(NULL, sft_sink_memory(&out), NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a conversion, found NULL"));
    assert_int_equal(sft_layout_conversion_save_folder(NULL, "x", NULL, NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a conversion and a folder, found NULL"));
    assert_int_equal(sft_layout_conversion_new(sets, 2, NULL, &conversion, NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a model, found NULL"));
    options.size = 1;
    assert_int_equal(sft_layout_conversion_new(sets, 1, &options, &conversion, NULL, &err),
                     SFT_BAD_ARGUMENT);
    /* models of no tensors, and of none that is known */
    sft_set *none = set_of(bytes, sizeof bytes, "{}", 0);
    sets[0] = none;
    assert_int_equal(sft_layout_conversion_new(sets, 1, NULL, &conversion, &set, &err),
                     SFT_TENSOR_NOT_FOUND);
    assert_non_null(strstr(err.message, "expected tensors, found none"));
    assert_int_equal(set, 0);
    assert_int_equal(sft_layout_conversion_new(sets, 1, NULL, &conversion, NULL, &err),
                     SFT_TENSOR_NOT_FOUND);
    sft_set_close(none);
    conversion = converted(SFT_LAYOUT_DIFFUSERS, true);
    assert_true(sft_layout_conversion_note_at(conversion, 0, NULL).len > 0);
    assert_true(is_text(sft_layout_conversion_unmatched_at(conversion, 0, NULL), "no.such"));
    assert_non_null(sft_layout_conversion_parts(conversion, NULL));
    assert_non_null(sft_layout_conversion_pairs(conversion, NULL));
    assert_int_equal(sft_layout_conversion_save_folder(conversion, NULL, NULL, NULL, &err),
                     SFT_BAD_ARGUMENT);
    job.size = 1;
    assert_int_equal(sft_layout_conversion_save_folder(conversion, "x", NULL, &job, &err),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_layout_conversion_save(conversion, sft_sink_memory(&out), &job, &err),
                     SFT_BAD_ARGUMENT);
    sft_layout_conversion_free(conversion);
    sft_buffer_free(&out);
}

/* Models that are not what they should be: each by its header, with what is said. */
static void refuses_models(void **state) {
    static const struct {
        const char *head, *architecture;
        sft_code code;
        const char *says;
    } cases[] = {
        { "{" F32("loss.w", "[1]", 0, 4) "}", NULL, SFT_TENSOR_NOT_FOUND,
          "expected a model whose layouts are known, found none by its 1 tensor" },
        { "{" F32("v_pred", "[1]", 0, 4) "}", NULL, SFT_TENSOR_NOT_FOUND,
          "expected a model whose layouts are known" },
        { "{\"__metadata__\":{\"_quantization_metadata\":\"{}\"},"
          F32("layers.0.attention.qkv.weight", "[6,2]", 0, 48) ","
          F32("noise_refiner.0.attention.qkv.weight", "[6,2]", 48, 96) ","
          F32("layers.0.adaLN_modulation.0.weight", "[2,2]", 96, 112) ","
          F32("x_embedder.weight", "[1]", 112, 116) "}", "z-image", SFT_SIZE_MISMATCH,
          "expected a model that is not quantised, found _quantization_metadata, which names" },
        { "{" F32("layers.0.attention.qkv.weight", "[6,2]", 0, 48) ","
          F32("noise_refiner.0.attention.qkv.weight", "[6,2]", 48, 96) ","
          F32("layers.0.adaLN_modulation.0.weight", "[2,2]", 96, 112) ","
          F32("x_embedder.weight", "[1]", 112, 116) "}", "flux.1", SFT_TENSOR_NOT_FOUND,
          "expected components of flux.1, found the transformer of z-image" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char bytes[1024];
        sft_set *own = set_of(bytes, sizeof bytes, cases[i].head, i < 2 ? 4 : 116);
        const sft_set *sets[1] = { own };
        sft_layout_options options = SFT_LAYOUT_OPTIONS_INIT;
        sft_layout_conversion *conversion;
        options.to = SFT_LAYOUT_DIFFUSERS;
        options.architecture = cases[i].architecture;
        sft_code code = sft_layout_conversion_new(sets, 1, &options, &conversion, NULL, &err);
        if (code != cases[i].code || !strstr(err.message, cases[i].says))
            print_error("%s\n  %d %s\n", cases[i].head, (int)code, err.message);
        assert_int_equal(code, cases[i].code);
        assert_non_null(strstr(err.message, cases[i].says));
        sft_set_close(own);
    }
}

#define DECLARES(text) "{\"__metadata__\":{\"_quantization_metadata\":\"" text "\"},"
#define DENOISER F32("layers.0.attention.qkv.weight", "[6,2]", 0, 48) "," \
    F32("noise_refiner.0.attention.qkv.weight", "[6,2]", 48, 96) "," \
    F32("layers.0.adaLN_modulation.0.weight", "[2,2]", 96, 112) "," \
    F32("x_embedder.weight", "[1]", 112, 116) "}"
#define DECODER F32("decoder.up.3.block.0.norm1.weight", "[1]", 0, 4) "," \
    F32("encoder.down.0.block.0.norm1.weight", "[1]", 4, 8) "}"

/* Two files: what both declare of quantised layers is the same, and the pipeline is known. */
static void takes_two_models(void **state) {
    static const struct { const char *heads[2], *architecture; sft_code code; const char *says; }
    cases[] = {
        { { "{" DENOISER, "{" DECODER }, "z-image", SFT_OK, "" },
        { { DECLARES("{}") DENOISER, DECLARES("{}") DECODER }, "z-image", SFT_OK, "" },
        { { DECLARES("{}") DENOISER, DECLARES("[]") DECODER }, "z-image", SFT_CAST_DTYPE,
          "expected one _quantization_metadata, which says how tensors are read, in all files" },
        { { "{" DENOISER, "{" DENOISER }, "z-image", SFT_TENSOR_DUPLICATE,
          "expected one transformer, found two" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char bytes[2][1024];
        sft_set *own[2];
        sft_layout_options options = SFT_LAYOUT_OPTIONS_INIT;
        sft_layout_conversion *conversion;
        size_t who;
        for (size_t k = 0; k < 2; k++)
            own[k] = set_of(bytes[k], sizeof bytes[k], cases[i].heads[k],
                            strstr(cases[i].heads[k], "decoder") ? 8 : 116);
        options.to = SFT_LAYOUT_SINGLE;
        options.architecture = cases[i].architecture;
        sft_code code = sft_layout_conversion_new((const sft_set *const *)own, 2, &options,
                                                  &conversion, &who, &err);
        if (code != cases[i].code) print_error("case %zu: %d %s\n", i, (int)code, err.message);
        assert_int_equal(code, cases[i].code);
        if (code) assert_non_null(strstr(err.message, cases[i].says));
        else assert_int_equal(sft_layout_conversion_components(conversion), 2);
        if (!code) sft_layout_conversion_free(conversion);
        for (size_t k = 0; k < 2; k++) sft_set_close(own[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(leaves_nothing),
        cmocka_unit_test(refuses),
        cmocka_unit_test(takes_null),
        cmocka_unit_test(refuses_models),
        cmocka_unit_test(takes_two_models),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
