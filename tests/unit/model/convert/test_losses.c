/* What single values lose where they become integers, exponents or F32, and calls that are refused.
 * Floats of few bits: test_convert.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "convert/convert.h"
#include "safetensors_convert.h"
#include "unit/text_model.h"

#include <math.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MOST 6

#define LOST(z, i, s, n) { .zeros = z, .infinite = i, .saturated = s, .nonzero = n }

/* Values of a source of 64 bits as integers, else as floats. */
typedef struct loss_case {
    sft_dtype from, to;
    bool saturate;
    double floats[MOST];
    int64_t whole[MOST];
    size_t count;
    sfti_losses want;
} loss_case;

static const double huge = 3.4e38; /* 1.998 * 2^127 */

static void counts_losses(void **unused) {
    const loss_case cases[] = {
        /* truncated; 0 is not lost, and NaN is none of these */
        { SFT_F64, SFT_U8, true, { 255.5, 256, -0.5, -1, 0.25, 0 }, { 0 }, 6, LOST(2, 0, 2, 5) },
        { SFT_F32, SFT_I8, true, { 127.5, 128, -128.5, -129, 0.125, -1 }, { 0 }, 6,
          LOST(1, 0, 2, 6) },
        { SFT_F64, SFT_I64, true, { 0x1p62, 0x1p63, -0x1p63, -0x1.0000000000001p63 }, { 0 }, 4,
          LOST(0, 0, 2, 4) },
        { SFT_F64, SFT_U64, true, { 0x1p63, 0x1p64, -0x1p63 }, { 0 }, 3, LOST(0, 0, 2, 3) },
        { SFT_F64, SFT_U8, false, { 255.5, 0.5, 3 }, { 0 }, 3, LOST(1, 0, 0, 3) },
        { SFT_F64, SFT_I8, true, { (double)NAN, (double)INFINITY, -200, 5 }, { 0 }, 4,
          LOST(0, 0, 2, 3) },
        { SFT_F32, SFT_U64, true, { (double)NAN, -(double)NAN, 5 }, { 0 }, 3, LOST(0, 0, 0, 1) },
        { SFT_I64, SFT_I8, true, { 0 }, { -128, -129, 127, 128, 0 }, 5, LOST(0, 0, 2, 4) },
        { SFT_I64, SFT_U8, true, { 0 }, { -1, 255, 256, 1 }, 4, LOST(0, 0, 2, 4) },
        { SFT_I64, SFT_U64, true, { 0 }, { -1, INT64_MAX, INT64_MIN }, 3, LOST(0, 0, 2, 3) },
        { SFT_I64, SFT_I8, false, { 0 }, { -128, 127, 0 }, 3, LOST(0, 0, 0, 0) },
        { SFT_U64, SFT_I64, true, { 0 }, { INT64_MIN, INT64_MAX, 0 }, 3, LOST(0, 0, 1, 2) },
        { SFT_U64, SFT_U8, true, { 0 }, { 255, 256, -1 }, 3, LOST(0, 0, 2, 3) },
        { SFT_F64, SFT_F32, false, { 1e300, -1e300, 1e-300, 1, 0, (double)INFINITY }, { 0 }, 6,
          LOST(1, 2, 0, 4) },
        { SFT_F64, SFT_F32, true, { 1e300, -1e300, 1e-300, 1 }, { 0 }, 4, LOST(1, 0, 2, 4) },
        { SFT_F64, SFT_F32, false, { 0x1p-149, 0x1p-150, 0x1.8p-150 }, { 0 }, 3, LOST(1, 0, 0, 3) },
        /* powers of two have neither zero nor a sign: NaN */
        { SFT_F32, SFT_F8_E8M0, false, { 1, 0.5, -2, 0, huge }, { 0 }, 5, LOST(0, 3, 0, 5) },
        { SFT_F32, SFT_F8_E8M0, true, { 1, -2, huge }, { 0 }, 3, LOST(0, 1, 1, 3) },
        { SFT_F64, SFT_F8_E8M0, false, { 1, 4 }, { 0 }, 2, LOST(0, 0, 0, 2) },
    };
    size_t failed = 0;
    (void)unused;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const loss_case *c = &cases[i];
        uint8_t in[8 * MOST], out[8 * MOST];
        sfti_losses found = { 0, 0, 0, 0 };
        sfti_cast_kernels kernels;
        sfti_cast cast;
        for (size_t k = 0; k < c->count; k++) {
            float single = (float)c->floats[k];
            if (c->from == SFT_F32) memcpy(in + 4 * k, &single, 4);
            else if (c->from == SFT_F64) memcpy(in + 8 * k, &c->floats[k], 8);
            else memcpy(in + 8 * k, &c->whole[k], 8);
        }
        sfti_cast_kernels_fill(&kernels, 0);
        sfti_cast_begin(&cast, &kernels, c->from, c->to, c->saturate);
        sfti_losses_begin(&cast, &kernels);
        uint64_t good = sfti_cast_run(&cast, in, out, c->count, &found);
        bool fine = good == c->count && found.zeros == c->want.zeros
                 && found.infinite == c->want.infinite && found.saturated == c->want.saturated
                 && found.nonzero == c->want.nonzero;
        if (!fine)
            print_error("%s to %s: %llu good, %llu %llu %llu of %llu\n",
                        sft_dtype_describe(c->from)->name, sft_dtype_describe(c->to)->name,
                        (unsigned long long)good, (unsigned long long)found.zeros,
                        (unsigned long long)found.infinite, (unsigned long long)found.saturated,
                        (unsigned long long)found.nonzero);
        failed += !fine;
    }
    assert_int_equal(failed, 0);
}

static void refuses_arguments(void **unused) {
    uint8_t in[8] = { 0 }, out[8];
    sft_error err = SFT_ERROR_INIT;
    sft_conversion *conversion;
    const sft_tensor *scale;
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    case_model m = case_open("w F32 2 #1,2;m.w F8_E4M3 2;m.w_scale F32 1 #2;c C64 1", NULL);
    sft_dtype none = (sft_dtype)99;
    (void)unused;
    assert_false(sft_cast_exists(none, SFT_F32));
    assert_false(sft_cast_exists(SFT_F32, none));
    assert_int_equal(sft_cast(SFT_F32, in, none, out, 1, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "another number"));
    assert_int_equal(sft_cast(SFT_F32, in, SFT_F16, NULL, 1, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "NULL"));
    assert_int_equal(sft_conversion_new(NULL, SFT_F32, NULL, &conversion, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "found NULL"));
    assert_int_equal(sft_conversion_new(m.set, SFT_F32, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "found NULL"));
    assert_int_equal(sft_conversion_new(m.set, none, NULL, &conversion, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "found another number"));
    assert_null(conversion);
    options.dequantize = true;
    assert_int_equal(sft_conversion_new(m.set, SFT_I8, &options, &conversion, &err),
                     SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a floating-point dtype for values of quantised"));
    options.dequantize = false;
    options.size = 1;
    assert_int_equal(sft_conversion_new(m.set, SFT_F16, &options, &conversion, &err),
                     SFT_BAD_ARGUMENT);
    /* past the last tensor, and of what is dropped */
    options = (sft_convert_options)SFT_CONVERT_OPTIONS_INIT;
    options.dequantize = true;
    assert_int_equal(sft_conversion_new(m.set, SFT_F32, &options, &conversion, NULL), SFT_OK);
    size_t count = sft_set_tensor_count(m.set), dropped = 0;
    assert_int_equal(sft_conversion_action(conversion, count, &scale), SFT_CONVERT_OTHER);
    assert_null(scale);
    assert_int_equal(sft_conversion_bytes(conversion, count), 0);
    assert_false(sft_conversion_overrules(conversion, count));
    assert_null(sft_conversion_part(conversion, count).source);
    assert_int_equal(sft_conversion_count(conversion, (sft_convert_action)99), 0);
    assert_int_equal(sft_conversion_lost(conversion, 0, (sft_convert_loss)99), 0);
    assert_int_equal(sft_conversion_lost(conversion, count, SFT_LOSS_OF), 0);
    for (size_t i = 0; i < count; i++) {
        if (sft_conversion_action(conversion, i, NULL) != SFT_CONVERT_DROP) continue;
        assert_true(sft_span_equal(sft_set_tensor_at(m.set, i)->name, sft_span_cstr("m.w_scale")));
        assert_int_equal(sft_conversion_bytes(conversion, i), 0);
        assert_null(sft_conversion_part(conversion, i).source);
        dropped++;
    }
    assert_int_equal(dropped, 1);
    sft_buffer saved = { 0 };
    assert_int_equal(sft_conversion_save_shard(conversion, 1, sft_sink_memory(&saved), NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a shard of the set, found a higher number"));
    sft_conversion_free(conversion);
    sft_conversion_free(NULL);
    sft_buffer_free(&saved);
    case_close(&m);
}

static bool begins_so(void *ctx, const sft_tensor *tensor) {
    size_t len = strlen(ctx);
    return tensor->name.len >= len && memcmp(tensor->name.data, ctx, len) == 0;
}

/* The value of a key once quantised tensors are computed, of a model that is saved whole and by its
 * one shard. NULL: there is none. */
static void ends_declarations(void **unused) {
#define AO(name) "@" name ".weight ={\"_type\":\"Float8Tensor\"};" \
    name "._weight_qdata F8_E4M3 2,4;" name "._weight_scale F32 2,1"
#define OTHER_AO "@m.weight ={\"_data\":{},\"\\u005ftype\" : \"Float8Tensor\"};" \
    "m._weight_qdata F8_E4M3 2,4;m._weight_scale F32 2,1"
#define LAYER(name) name ".weight F8_E4M3 2,4;" name ".weight_scale F32 -"
#define F8 "{\"format\":\"float8_e4m3fn\"}"
#define DECLARED "@_quantization_metadata ={\"layers\":{"
#define TENSOR "{\"_type\": \"Tensor\"}"
#define CLASS "{\"_type\":\"Float8Tensor\"}"
    /* match: how the names of those that are computed begin, or NULL: all; marker: "+NAME", a
     * tensor that stays, or "-NAME" */
    static const struct { const char *tensors, *match, *key, *value, *marker; } cases[] = {
        { AO("m") ";@tensor_names =[\"m.weight\"]", NULL, "m.weight", NULL, NULL },
        { AO("m") ";@tensor_names =[\"m.weight\"]", NULL, "tensor_names", NULL, NULL },
        { OTHER_AO, NULL, "m.weight", NULL, NULL },
        { OTHER_AO ";" AO("n"), "m", "m.weight", TENSOR, NULL },
        { OTHER_AO ";@k ={\"a\":1,\"_type\":\"b\"}", NULL, "k", "{\"a\":1,\"_type\":\"b\"}",
          NULL },
        { AO("m"), NULL, "a", "b", NULL },
        { AO("m") ";" AO("n"), "m", "m.weight", TENSOR, NULL },
        { AO("m") ";" AO("n"), "m", "n.weight", CLASS, NULL },
        { AO("m") ";" AO("n") ";@tensor_names =[]", "m", "tensor_names", "[]", NULL },
        { AO("m") ";" AO("n") ";@w =" CLASS, "m", "w", CLASS, NULL },
        { AO("m") ";" AO("n") ";@q.w =" CLASS, "m", "q.w", CLASS, NULL },
        { AO("m") ";" AO("n") ";@~~~~~~.w =" CLASS, "m", "m.weight", TENSOR, NULL },
        { LAYER("m") ";@quantization_config ={\"quant_method\":\"fp8\"}", NULL,
          "quantization_config", NULL, NULL },
        { LAYER("m") ";" LAYER("n") ";@quantization_config ={\"quant_method\":\"fp8\"}", "m",
          "quantization_config", "{\"quant_method\":\"fp8\"}", NULL },
        { LAYER("m") ";" DECLARED "\"m\":" F8 "}}", NULL, "_quantization_metadata", NULL, NULL },
        { LAYER("m") ";" DECLARED "\"m\":" F8 ",\"n\":" F8 "}};n.a F32 1", NULL,
          "_quantization_metadata", NULL, NULL },
        { LAYER("m") ";" LAYER("n") ";" DECLARED "\"m\":" F8 ",\"n\":" F8 "}}", "m",
          "_quantization_metadata", "{\"layers\":{\"n\":" F8 "}}", NULL },
        { LAYER("m") ";" LAYER("n") ";" LAYER("o") ";" DECLARED "\"m\":" F8 ",\"n\":" F8
          ",\"o\":" F8 "}}", "m", "_quantization_metadata",
          "{\"layers\":{\"n\":" F8 ",\"o\":" F8 "}}", NULL },
        { LAYER("m") ";" LAYER("n") ";" DECLARED "\"m\":" F8 ",\"n\":" F8 "}}", "none",
          "_quantization_metadata", "{\"layers\":{\"m\":" F8 ",\"n\":" F8 "}}", NULL },
        { "w F32 2;" DECLARED "\"m\":" F8 "}}", NULL, "_quantization_metadata",
          "{\"layers\":{\"m\":" F8 "}}", NULL },
        { "w F32 2;@k =" CLASS, NULL, "k", CLASS, NULL },
        { "w F32 2;@tensor_names =[]", NULL, "tensor_names", "[]", NULL },
        /* a marker of all that stand beneath its prefix */
        { LAYER("m") ";scaled_fp8 F8_E4M3 2", NULL, "a", "b", "-scaled_fp8" },
        { LAYER("m") ";" LAYER("n") ";scaled_fp8 F8_E4M3 2", "m", "a", "b", "+scaled_fp8" },
        { LAYER("p.m") ";p.scaled_fp8 F8_E4M3 2", NULL, "a", "b", "-p.scaled_fp8" },
        { LAYER("p.m") ";" LAYER("q.m") ";p.scaled_fp8 F8_E4M3 2", "p", "a", "b", "-p.scaled_fp8" },
        { LAYER("p.m") ";q.scaled_fp8 F8_E4M3 2", NULL, "a", "b", "+q.scaled_fp8" },
        { LAYER("m") ";zz.w_scaled_fp8 F8_E4M3 2", NULL, "a", "b", "+zz.w_scaled_fp8" },
        { LAYER("m") ";scaled_fp8 F8_E4M3 2,2 #56;scaled_fp8_scale F32 -", NULL, "a", "b",
          "+scaled_fp8" },
    };
    (void)unused;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int by_shard = 0; by_shard < 2; by_shard++) {
            case_model m = case_open(cases[i].tensors, NULL);
            sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
            sft_error err = SFT_ERROR_INIT;
            sft_buffer saved = { 0 };
            sft_conversion *conversion;
            sft_file *file;
            sft_span value = { NULL, 0 };
            options.dequantize = true;
            if (cases[i].match) options.match = begins_so;
            options.match_ctx = (void *)(uintptr_t)cases[i].match;
            sft_code code = sft_conversion_new(m.set, SFT_F32, &options, &conversion, &err);
            if (code) print_error("%s: %s\n", cases[i].tensors, err.message);
            assert_int_equal(code, SFT_OK);
            sft_sink sink = sft_sink_memory(&saved);
            code = by_shard ? sft_conversion_save_shard(conversion, 0, sink, NULL, NULL)
                            : sft_conversion_save(conversion, sink, NULL, NULL);
            assert_int_equal(code, SFT_OK);
            assert_int_equal(sft_open_memory(saved.data, saved.len, NULL, &file, NULL), SFT_OK);
            bool there = sft_file_metadata_get(file, sft_span_cstr(cases[i].key), &value);
            if (there != (cases[i].value != NULL))
                print_error("%s: %.*s\n", cases[i].tensors, (int)value.len, value.data);
            assert_int_equal(there, cases[i].value != NULL);
            if (there && !sft_span_equal(value, sft_span_cstr(cases[i].value)))
                fail_msg("%s: %.*s", cases[i].tensors, (int)value.len, value.data);
            const char *marker = cases[i].marker;
            if (marker)
                assert_int_equal(sft_file_find(file, sft_span_cstr(marker + 1)) != NULL,
                                 *marker == '+');
            sft_close(file);
            sft_conversion_free(conversion);
            sft_buffer_free(&saved);
            case_close(&m);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_losses), cmocka_unit_test(refuses_arguments),
        cmocka_unit_test(ends_declarations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
