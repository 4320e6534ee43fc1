/* Quantised layouts: their rows, odd numbers, reading out of order, memory, hostile declarations.
 * What packages made is in tests/quant, and every formula in tests/compat/dequantize.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "quant/quant.h"
#include "safetensors_convert.h"
#include "unit/make_file.h"

#include <math.h>
#include <stdio.h>

/* ── Rows ── */

static void reads_its_rows(void **unused) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_layouts layouts;
    size_t both = 0;
    (void)unused;
    assert_true(sfti_layouts_read(&arena, &layouts));
    assert_in_range(layouts.count, 40, SFTI_LAYOUTS_MOST);
    for (size_t i = 1; i < layouts.count; i++) {
        const sfti_quant_layout *row = &layouts.rows[i];
        assert_true(row->id.len > 0 && row->count > 1);
        assert_int_equal(row->parts[0].role, SFTI_PART_CODES);
        assert_true(row->alone || row->comfy.len || row->configs.len || row->torchao.len
                    || row->refused.len);
        both += row->comfy.len > 0;
    }
    assert_in_range(both, 8, 20);
    sfti_arena_free(&arena);
}

static void refuses_rows(void **unused) {
    static const struct { const char *text; size_t line; } texts[] = {
        { "layout a\n    codes * F4\n", 0 },
        { "# nothing\n\nlayout a\n    codes * F5\n", 4 },
        { "    codes * F4\n", 1 },
        { "layout\n", 1 },
        { "plan a\n", 1 },
        { "layout a\n    codes\n", 2 },
        { "layout a\n    codes * U8 as=F4 sideways\n", 2 },
        { "layout a\n    codes * U8 as=float\n", 2 },
        { "layout a\n    codes * U8 bits=9\n", 2 },
        { "layout a\n    scale *_s F32 rows=x\n", 2 },
        { "layout a\n    rotate\n", 2 },
        { "layout a\n    wheel 3\n", 2 },
        { "layout a\n    codes * U8 bits\n", 2 },
        { "layout a\n    codes * U8 bitsy=4\n", 2 },
        { "layout a\n    codes * U8 bits=x\n", 2 },
        { "layout a\n    codes * U8 as=F4|F8_E4M3\n", 2 },
        { "layout a\n    codes * U8 as=F9\n", 2 },
        { "layout a\n    scale *_s F32 rows=65537\n", 2 },
        { "layout a\n    scale *_s F32 rows=65536 columns=? blocks=?\n", 0 },
        { "layout a\n    scale *_s F32 blocks=x\n", 2 },
        { "layout a\n    scale *_s F32 plus=x\n", 2 },
        { "layout a\n    scale *_s F32 plus=9\n", 2 },
        { "layout a\n    scale *_s F32 plus=8\n", 0 },
        { "layout a\n    scale *_s\n", 2 },
        { "layout a\n    codes * I32 across\n", 2 },
        { "layout a\n    codes * I32 across bits=8\n", 2 },
        { "layout a\n    codes * I32 across bits=4\n    codes * I32 across words\n", 0 },
        { "layout a\n    refused\n    rotate 16 always\n    pad 16", 0 },
        { "layout a\n    pad x\n", 2 },
        { "layout a\n    drop a\n    drop a\n    drop a\n    drop a\n    drop a\n    drop a\n"
          "    drop a\n    drop a\n    drop a\n    drop a\n    drop a\n", 12 },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_layouts layouts;
        size_t line;
        assert_true(sfti_layouts_parse(sft_span_cstr(texts[i].text), &arena, &layouts, &line));
        assert_int_equal(line, texts[i].line);
        sfti_arena_free(&arena);
    }
    char many[64 * 9 + 1];
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_layouts layouts;
    size_t line;
    for (size_t i = 0; i < 64; i++) memcpy(many + 9 * i, "layout a\n", 10);
    assert_true(sfti_layouts_parse(sft_span_cstr(many), &arena, &layouts, &line));
    assert_int_equal(line, 64);
    sfti_arena_free(&arena);
}

/* ── Values ── */

static sft_set *quant_set(const test_file *f) {
    sft_file *file;
    sft_set *set;
    assert_int_equal(sft_open_memory(f->bytes, f->len, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
    return set;
}

static sft_code plan(const sft_set *set, const sft_allocator *alloc, sft_conversion **out) {
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    options.dequantize = true;
    options.alloc = alloc;
    return sft_conversion_new(set, SFT_F32, &options, out, NULL);
}

/* Values [first, first + count) of the tensor of that name. */
static void values_of(sft_conversion *conversion, const sft_set *set, const char *name,
                      uint64_t first, size_t count, float *out) {
    size_t i = 0, got = 0;
    while (!sft_span_equal(sft_set_tensor_at(set, i)->name, sft_span_cstr(name))) i++;
    sft_part part = sft_conversion_part(conversion, i);
    for (size_t done = 0; done < 4 * count; done += got) {
        assert_int_equal(sft_source_read(part.source, part.begin + 4 * first + done,
                                         (char *)out + done, 4 * count - done, &got, NULL), SFT_OK);
        assert_true(got > 0);
    }
}

#define TENSOR(name, dtype, shape, begin, end) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end \
    "]}"

/* Codes 1, -1, 448 and NaN by scales that are subnormal, zero, one and the greatest. */
static void keeps_odd_scales(void **unused) {
    static const uint8_t data[] = {
        0x38, 0xb8, 0x7e, 0x7f, 0x38, 0xb8, 0x7e, 0x7f, 0x38, 0xb8, 0x7e, 0x7f,
        0x38, 0xb8, 0x7e, 0x7f, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0x7f, 0xff,
    };
    test_file f = make_file("{" TENSOR("w", "F8_E4M3", "[4,4]", 0, 16) ","
                            TENSOR("w_scale", "F32", "[4,1]", 16, 32) "}", data, sizeof data);
    sft_set *set = quant_set(&f);
    sft_conversion *conversion;
    float v[16];
    (void)unused;
    assert_int_equal(plan(set, NULL, &conversion), SFT_OK);
    values_of(conversion, set, "w", 0, 16, v);
    assert_true(v[0] == 0x1p-149f && v[1] == -0x1p-149f && v[2] == 448 * 0x1p-149f);
    assert_true(v[4] == 0 && !signbit(v[4]) && v[5] == 0 && signbit(v[5]));
    assert_true(v[8] == 1 && v[9] == -1 && v[12] == -0x1.fep127f && v[14] == -INFINITY);
    for (size_t i = 3; i < 16; i += 4) assert_true(isnan(v[i]));
    sft_conversion_free(conversion);
    sft_set_close(set);
    free_file(&f);
}

/* Any stretch gives what the whole gives. */
static void reads_in_any_order(void **unused) {
    char marker[] = "{\"format\":\"nvfp4\"}";
    uint8_t data[16 * 24 + 512 + 4 + sizeof marker - 1];
    sft_conversion *conversion;
    float whole[16 * 48], some[16 * 48];
    (void)unused;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 37 % 120);
    memcpy(data + 384 + 512, "\0\0\0\x3f", 4);
    memcpy(data + 900, marker, sizeof marker - 1);
    test_file f = make_file("{" TENSOR("w.weight", "U8", "[16,24]", 0, 384) ","
                            TENSOR("w.weight_scale", "F8_E4M3", "[128,4]", 384, 896) ","
                            TENSOR("w.weight_scale_2", "F32", "[]", 896, 900) ","
                            TENSOR("w.comfy_quant", "U8", "[18]", 900, 918) "}",
                            data, sizeof data);
    sft_set *set = quant_set(&f);
    assert_int_equal(plan(set, NULL, &conversion), SFT_OK);
    values_of(conversion, set, "w.weight", 0, 768, whole);
    for (size_t k = 0; k < 200; k++) {
        size_t first = k * 53 % 768, count = 1 + k * 29 % 100;
        if (count > 768 - first) count = 768 - first;
        values_of(conversion, set, "w.weight", first, count, some);
        assert_memory_equal(some, whole + first, count * sizeof *some);
    }
    /* row 5, column 17: the low nibble of byte 5 * 24 + 8; its scale is the second of row 5 */
    static const float fp4[] = { 0,    .5f,  1,  1.5f,  2,  3,  4,  6,
                                 -0.f, -.5f, -1, -1.5f, -2, -3, -4, -6 };
    uint32_t scale = data[384 + 5 * 16 + 1];
    double factor = ldexp(1 + (scale & 7) / 8.0, (int)(scale >> 3) - 7);
    assert_true((scale >> 3) > 0);
    assert_true(whole[5 * 48 + 17] == fp4[data[5 * 24 + 8] & 15] * (float)(factor * .5));
    sft_conversion_free(conversion);
    sft_set_close(set);
    free_file(&f);
}

/* ── Memory ── */

/* A header and then zeros, however long. */
static sft_code read_zeros(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    const test_file *f = ctx;
    (void)err;
    memset(into, 0, len);
    if (offset < f->len)
        memcpy(into, f->bytes + offset, len < f->len - offset ? len : f->len - (size_t)offset);
    *got = len;
    return SFT_OK;
}

static const sft_source_vtable zeros_vtable = { sizeof(sft_source_vtable), read_zeros, NULL, NULL,
                                                NULL };

static void needs_little_memory(void **unused) {
    /* 2^35 values, also in one row, in one column, and across. */
    static const struct { const char *header; const char *name; uint64_t bytes; } models[] = {
        { "{" TENSOR("a", "F8_E4M3", "[4,8589934592]", 0, 34359738368) ","
          TENSOR("a_scale", "F32", "[4,67108864]", 34359738368, 35433480192) "}", "a",
          UINT64_C(35433480192) },
        { "{" TENSOR("a", "F8_E4M3", "[34359738368,1]", 0, 34359738368) ","
          TENSOR("a_scale", "F32", "[34359738368,1]", 34359738368, 171798691840) "}", "a",
          UINT64_C(171798691840) },
        { "{" TENSOR("a.qweight", "I32", "[33554432,128]", 0, 17179869184) ","
          TENSOR("a.qzeros", "I32", "[4194304,128]", 17179869184, 19327352832) ","
          TENSOR("a.scales", "F16", "[4194304,1024]", 19327352832, 27917287424) "}", "a.qweight",
          UINT64_C(27917287424) },
        { "{" TENSOR("e_blocks", "U8", "[2,1048576,512,16]", 0, 17179869184) ","
          TENSOR("e_scales", "U8", "[2,1048576,512]", 17179869184, 18253611008) "}", "e_blocks",
          UINT64_C(18253611008) },
    };
    (void)unused;
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        test_file f = make_file(models[k].header, "", 0);
        test_memory memory = { 0, 0, 0, 0 };
        sft_allocator alloc = { resize_test_memory, &memory };
        sft_source source = { &f, &zeros_vtable, f.len + models[k].bytes, NULL, false };
        sft_open_options how = SFT_OPEN_OPTIONS_INIT;
        sft_file *file;
        sft_set *set;
        sft_conversion *conversion;
        float v[64];
        how.alloc = &alloc;
        assert_int_equal(sft_open_source(source, &how, &file, NULL), SFT_OK);
        assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
        sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
        options.dequantize = true;
        options.alloc = &alloc;
        assert_int_equal(sft_conversion_new(set, SFT_F32, &options, &conversion, NULL), SFT_OK);
        values_of(conversion, set, models[k].name, 0, 64, v);
        values_of(conversion, set, models[k].name, (UINT64_C(1) << 34) + 12345, 64, v);
        values_of(conversion, set, models[k].name, (UINT64_C(1) << 35) - 64, 64, v);
        assert_true(memory.peak < (size_t)16 << 20);
        sft_conversion_free(conversion);
        sft_set_close(set);
        assert_int_equal(memory.held, 0);
        free_file(&f);
    }
}

/* The n-th allocation fails, for every n: an error, and nothing is kept. */
static void survives_lack_of_memory(void **unused) {
    static const char state[] = "{\"blocksize\":64,\"shape\":[4,32],\"nested_blocksize\":256,"
                                "\"nested_offset\":-0.5e-1}";
    uint8_t data[64 + 2 + 64 + 4 + 1024 + sizeof state - 1];
    bool done = false;
    (void)unused;
    memset(data, 0, sizeof data);
    memcpy(data + 1158, state, sizeof state - 1);
    char header[768];
    (void)snprintf(header, sizeof header, "{" TENSOR("w", "U8", "[64,1]", 0, 64) ","
                   TENSOR("w.absmax", "U8", "[2]", 64, 66) ","
                   TENSOR("w.quant_map", "F32", "[16]", 66, 130) ","
                   TENSOR("w.nested_absmax", "F32", "[1]", 130, 134) ","
                   TENSOR("w.nested_quant_map", "F32", "[256]", 134, 1158) ","
                   "\"w.quant_state.bitsandbytes__nf4\":{\"dtype\":\"U8\",\"shape\":[%zu],"
                   "\"data_offsets\":[1158,%zu]}}", sizeof state - 1, sizeof data);
    test_file f = make_file(header, data, sizeof data);
    sft_set *set = quant_set(&f);
    for (size_t n = 1; !done; n++) {
        test_memory memory = { 0, 0, 0, n };
        sft_allocator alloc = { resize_test_memory, &memory };
        sft_conversion *conversion;
        sft_code code = plan(set, &alloc, &conversion);
        if (!code) {
            float v[128];
            size_t got = 0;
            sft_part part = sft_conversion_part(conversion, 0);
            code = sft_source_read(part.source, part.begin, v, sizeof v, &got, NULL);
            for (size_t i = 0; !code && i < 128; i++) assert_true(v[i] == 0);
            sft_conversion_free(conversion);
        }
        assert_true(code == SFT_OK || code == SFT_OUT_OF_MEMORY);
        assert_int_equal(memory.held, 0);
        done = memory.calls < n;
        assert_true(!done || !code);
    }
    sft_set_close(set);
    free_file(&f);
}

/* ── Declarations that are changed ── */

static uint64_t chance;

static uint32_t next_chance(uint32_t below) {
    chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(chance >> 33) % below;
}

/* Words that mean something there, and bytes. */
static size_t mutate(const char *text, char *out, size_t most) {
    static const char *const words[] = {
        "float8_e4m3fn", "float8_e5m2", "int8_tensorwise", "mxfp8", "nvfp4", "convrot_w4a4", "true",
        "asym_w4a8_int8", "awq_w4a16", "\"convrot\":true,", "\"group_size\":16,", "{", "}", "\"",
        "\"params\":{", "\"orig_shape\":[2,2],", "\"per_row\":true,", "false",
        "\"convrot_groupsize\":4,",
    };
    size_t len = strlen(text);
    memcpy(out, text, len);
    for (uint32_t n = next_chance(3); n < 3; n += 2) {
        size_t at = next_chance((uint32_t)len + 1), cut = next_chance(8);
        if (cut > len - at) cut = len - at;
        const char *word = words[next_chance(sizeof words / sizeof *words)];
        size_t more = next_chance(4) ? strlen(word) : 1;
        if (next_chance(2)) at = 1, cut = 0; /* before the first member */
        if (len - cut + more > most) continue;
        memmove(out + at + more, out + at + cut, len - at - cut);
        if (more == 1) out[at] = (char)next_chance(256);
        else memcpy(out + at, word, more);
        len += more - cut;
    }
    return len;
}

/* Of an F8_E4M3 with one factor nothing but its product is right. */
static void is_right_or_refuses(void **unused) {
    static const char text[] = "{\"format\":\"float8_e4m3fn\",\"full_precision_matrix_mult\":true}";
    const char *target = getenv("SFT_TARGET"), *every = getenv("FAULTS_EVERY");
    bool short_of_time = (target && strcmp(target, "check") == 0) ||
                         (every && strtoul(every, NULL, 10) >= 30); /* part of `make test` */
    unsigned count = short_of_time ? 10000 : 100000;
    unsigned accepted = 0, refused = 0;
    (void)unused;
    for (unsigned n = 0; n < count; n++) {
        char marker[256], header[512];
        uint8_t data[4 + 4 + sizeof marker] = { 0x38, 0x40, 0xb8, 0x3c, 0, 0, 0, 0x40 };
        size_t len = n ? mutate(text, marker, sizeof marker) : sizeof text - 1;
        if (n == 0) memcpy(marker, text, len);
        memcpy(data + 8, marker, len);
        (void)snprintf(header, sizeof header, "{" TENSOR("l.weight", "F8_E4M3", "[2,2]", 0, 4) ","
                       TENSOR("l.weight_scale", "F32", "[]", 4, 8) ",\"l.comfy_quant\":{\"dtype\":"
                       "\"U8\",\"shape\":[%u],\"data_offsets\":[8,%u]}}", (unsigned)len,
                       (unsigned)len + 8);
        test_file f = make_file(header, data, 8 + len);
        sft_set *set = quant_set(&f);
        sft_conversion *conversion;
        sft_code code = plan(set, NULL, &conversion);
        if (code) {
            assert_int_equal(code, SFT_CAST_DTYPE);
            refused++;
        } else {
            float v[4];
            values_of(conversion, set, "l.weight", 0, 4, v);
            assert_true(v[0] == 2 && v[1] == 4 && v[2] == -2 && v[3] == 3);
            sft_conversion_free(conversion);
            accepted++;
        }
        sft_set_close(set);
        free_file(&f);
    }
    assert_in_range(accepted, count / 100, count - count / 100);
    assert_int_equal(accepted + refused, count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_its_rows), cmocka_unit_test(refuses_rows),
        cmocka_unit_test(keeps_odd_scales), cmocka_unit_test(reads_in_any_order),
        cmocka_unit_test(needs_little_memory), cmocka_unit_test(survives_lack_of_memory),
        cmocka_unit_test(is_right_or_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
