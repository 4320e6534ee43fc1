/* Quantising: targets, codes and scales by hand, any order of reading, memory. Bytes of
 * comfy-kitchen and ways back are in tests/quant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "convert/quantise.h"
#include "convert/targets.h"
#include "quant/quant.h"
#include "unit/make_file.h"

#include <math.h>
#include <stdio.h>

/* ── Targets ── */

static void reads_its_targets(void **unused) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_layouts layouts;
    size_t count = 0;
    (void)unused;
    assert_true(sfti_layouts_read(&arena, &layouts));
    for (size_t i = 0; i < layouts.count; i++) {
        sft_span lines = layouts.rows[i].writes;
        sfti_quant_target t;
        sfti_encoded m;
        bool good;
        while (sfti_quant_target_next(&layouts.rows[i], &lines, &t, &good)) {
            assert_true((layouts.rows[i].comfy.len > 0) != (t.members.len > 0));
            assert_null(sfti_encoded_begin(&t.how, 256, 256, &m));
            assert_in_range(sfti_encoded_parts(&t.how), 2, 3);
            assert_non_null(sfti_encoded_begin(&t.how, 0, 256, &m));
            assert_non_null(sfti_encoded_begin(&t.how, 4, SFTI_ENCODE_COLUMNS + 1, &m));
            count++;
        }
        assert_true(good || lines.len == 0);
    }
    assert_int_equal(count, 16);
    sfti_arena_free(&arena);
}

static void refuses_targets(void **unused) {
    static const struct { const char *layout, *format, *scale; bool good; } rows[] = {
        { "comfy", "fp8", NULL, true },     { "comfy", "int8", "row", true },
        { "comfy", "fp8", "row", false },   { "comfy", "fp4", NULL, false },
        { "gguf", "fp8", NULL, false },     { "modelopt", "int8", NULL, false },
        { "modelopt", "fp8", "row", true }, { "compressed-tensors", "fp8", "block", true },
    };
    static const char *const wrong[] = {
        "write a\n", "write a b c\n", "write a b c F8_E4M3\n", "write a b c F8_E4M3 F9\n",
        "write a b c F8_E4M3 F32 rows\n", "write a b c F8_E4M3 F32 rows=x\n",
        "write a b c F8_E4M3 F32 columns=9999999\n", "write a b c F8_E4M3 F32 quick\n",
    };
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        const sfti_quant_target *target;
        sft_error err = SFT_ERROR_INIT;
        sft_code code = sfti_quant_target_find(rows[i].layout, rows[i].format, rows[i].scale,
                                               &arena, &target, &err);
        assert_int_equal(code, rows[i].good ? SFT_OK : SFT_BAD_ARGUMENT);
        assert_true(rows[i].good == (target != NULL));
        sfti_arena_free(&arena);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sft_span lines = sft_span_cstr(wrong[i]);
        sfti_quant_target t;
        bool good = true;
        bool found = sfti_quant_target_next(NULL, &lines, &t, &good);
        assert_false(found && good);
    }
}

/* ── Bytes ── */

static const char *no_reason(void *ctx, size_t i, const sft_spec *values) {
    (void)ctx;
    (void)i;
    (void)values;
    return NULL;
}

static sft_code plan_of(const sft_set *set, const char *format, const char *scale,
                        sfti_arena *arena, const sft_allocator *alloc, sfti_quantising **out,
                        sft_error *err) {
    const sfti_quant_target *target;
    sft_code code = sfti_quant_target_find("comfy", format, scale, arena, &target, err);
    sfti_quantise_options options = { .target = target, .spares = no_reason, .alloc = alloc };
    return code ? code : sfti_quantising_new(set, &options, out, err);
}

static sft_set *one_matrix(const float *values, size_t rows, size_t columns, test_file *f) {
    char header[128];
    sft_file *file;
    sft_set *set;
    (void)snprintf(header, sizeof header, "{\"a.weight\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu],"
                   "\"data_offsets\":[0,%zu]}}", rows, columns, rows * columns * 4);
    uint8_t *data = malloc(rows * columns * 4);
    assert_non_null(data);
    for (size_t i = 0; i < rows * columns; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        for (size_t k = 0; k < 4; k++) data[4 * i + k] = (uint8_t)(bits >> (8 * k));
    }
    *f = make_file(header, data, rows * columns * 4);
    free(data);
    assert_int_equal(sft_open_memory(f->bytes, f->len, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
    return set;
}

static sft_code read_part(const sfti_quantising *q, size_t k, uint8_t *out, size_t room,
                          size_t *got) {
    const uint32_t *shard;
    size_t count;
    const sft_part *part = &sfti_quantising_parts(q, &count, &shard)[k];
    assert_true(k < count && part->source->size <= room);
    return sft_source_read(part->source, 0, out, (size_t)part->source->size, got, NULL);
}

/* Part k of the only matrix. */
static size_t part_bytes(const sfti_quantising *q, size_t k, uint8_t *out, size_t room) {
    size_t got;
    assert_int_equal(read_part(q, k, out, room, &got), SFT_OK);
    return got;
}

/* The scale of a block of E8M0 for its greatest value: the least power of two that keeps it below
 * 448, but for what rounding the logarithm hides; never 0 but of zeros. A matrix of which the codes
 * would all be 0 is refused. */
static void rounds_exponents_up(void **unused) {
    static const struct { float most; uint8_t code; } rows[] = {
        { 448, 127 },  { 0x1.c00002p8f, 128 }, { 0x1.bffffep8f, 127 },   { 0, 0 },
        { 1, 119 },    { 896, 128 },           { 0x1.c00002p108f, 227 }, { 0x1.c00060p108f, 228 },
        { 0x1p-149f, 1 }, { 0x1p-140f, 1 },    { 0x1.fffffep122f, 242 }, { 7, 121 },
        { 0x1.c00002p-1f, 118 }, { 0x1.c0000cp-1f, 119 }, { 0x1.c00002p9f, 129 },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float values[32 * 32] = { 0 };
        uint8_t codes[1024] = { 0 }, scales[512];
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_quantising *q;
        test_file f;
        values[33] = -rows[i].most;
        sft_set *set = one_matrix(values, 32, 32, &f);
        assert_int_equal(plan_of(set, "mxfp8", NULL, &arena, NULL, &q, NULL), SFT_OK);
        assert_int_equal(part_bytes(q, 1, scales, sizeof scales), 512);
        assert_int_equal(scales[16], rows[i].code);
        assert_int_equal(scales[0], 0);
        bool lost = rows[i].most > 0 && rows[i].most < 0x1p-136f;
        size_t got = 0;
        assert_int_equal(read_part(q, 0, codes, sizeof codes, &got),
                         lost ? SFT_CAST_VALUE : SFT_OK);
        assert_true(lost || got == 1024);
        int exponent = codes[33] >> 3 & 15, rest = codes[33] & 7;
        double value = exponent ? ldexp(8 + rest, exponent - 10) : ldexp(rest, -9);
        double back = ldexp(value, rows[i].code - 127);
        assert_true(lost
                    || fabs(back - (double)rows[i].most) <= (double)rows[i].most / 16 + 0x1p-136);
        sfti_quantising_free(q);
        sft_set_close(set);
        free_file(&f);
        sfti_arena_free(&arena);
    }
}

/* Zeros stay zeros, with a scale that is a number. */
static void keeps_zeros(void **unused) {
    static const struct { const char *format; size_t parts, scale; } rows[] = {
        { "fp8", 2, 4 }, { "int8", 2, 4 }, { "int8-convrot", 2, 4 * 64 }, { "mxfp8", 2, 512 },
        { "nvfp4", 3, 512 },
    };
    float values[64 * 64] = { 0 };
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[4096];
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_quantising *q;
        test_file f;
        sft_set *set = one_matrix(values, 64, 64, &f);
        double error, power;
        float scale;
        assert_int_equal(plan_of(set, rows[i].format, NULL, &arena, NULL, &q, NULL), SFT_OK);
        size_t size = part_bytes(q, 0, bytes, sizeof bytes);
        for (size_t k = 0; k < size; k++) assert_int_equal(bytes[k], 0);
        assert_int_equal(part_bytes(q, 1, bytes, sizeof bytes), rows[i].scale);
        if (rows[i].parts == 3) assert_int_equal(part_bytes(q, 2, bytes, sizeof bytes), 4);
        uint32_t bits = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16
                      | (uint32_t)bytes[3] << 24;
        memcpy(&scale, &bits, sizeof scale);
        assert_true(isfinite(scale) && (scale > 0 || rows[i].scale == 512));
        sfti_quantising_squares(q, 0, &error, &power);
        assert_true(error == 0 && power == 0);
        sfti_quantising_free(q);
        sft_set_close(set);
        free_file(&f);
        sfti_arena_free(&arena);
    }
}

/* Any stretch of any part gives what the whole gives, and each value counts once. */
static void encodes_in_any_order(void **unused) {
    static const struct { const char *format, *scale; } rows[] = {
        { "fp8", NULL }, { "int8", "row" }, { "int8-convrot", NULL }, { "mxfp8", NULL },
        { "nvfp4", NULL },
    };
    static float values[150 * 208];
    uint32_t chance = 1;
    (void)unused;
    for (size_t i = 0; i < 150 * 208; i++) {
        chance = chance * 1664525u + 1013904223u;
        values[i] = ((float)(chance >> 8) - 0x1p23f) * 0x1p-30f * (float)(1 + i % 7);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static uint8_t whole[3][40000];
        uint8_t some[300];
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_quantising *q;
        test_file f;
        sft_set *set = one_matrix(values, 150, 208, &f);
        const uint32_t *shard;
        size_t count, got, sizes[3] = { 0 };
        double before[2], after[2];
        assert_int_equal(plan_of(set, rows[i].format, rows[i].scale, &arena, NULL, &q, NULL),
                         SFT_OK);
        const sft_part *parts = sfti_quantising_parts(q, &count, &shard);
        assert_int_equal(sfti_quantising_try(q, NULL, NULL), SFT_OK);
        sfti_quantising_squares(q, 0, &before[0], &before[1]);
        assert_true(before[0] > 0 && before[1] > 4 * before[0]);
        for (size_t k = 0; k + 1 < count; k++)
            sizes[k] = part_bytes(q, k, whole[k], sizeof whole[k]);
        for (size_t n = 0; n < 400; n++) {
            size_t k = n % (count - 1), first = n * 7919 % sizes[k], len = 1 + n * 31 % 300;
            if (len > sizes[k] - first) len = sizes[k] - first;
            assert_int_equal(sft_source_read(parts[k].source, first, some, len, &got, NULL),
                             SFT_OK);
            assert_memory_equal(some, whole[k] + first, len);
        }
        sfti_quantising_squares(q, 0, &after[0], &after[1]);
        assert_true(before[0] == after[0] && before[1] == after[1]);
        sfti_quantising_free(q);
        sft_set_close(set);
        free_file(&f);
        sfti_arena_free(&arena);
    }
}

/* ── Memory ── */

static sft_code read_long_zeros(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                                sft_error *err) {
    const test_file *f = ctx;
    (void)err;
    memset(into, 0, len);
    if (offset < f->len)
        memcpy(into, f->bytes + offset, len < f->len - offset ? len : f->len - (size_t)offset);
    *got = len;
    return SFT_OK;
}

static const sft_source_vtable long_zeros = { sizeof(sft_source_vtable), read_long_zeros, NULL,
                                              NULL, NULL };

/* Rows as wide as they may be, and rows that are many. */
static void encodes_in_little_memory(void **unused) {
    static const struct { const char *header; uint64_t bytes; } models[] = {
        { "{\"a.weight\":{\"dtype\":\"BF16\",\"shape\":[300,524288],"
          "\"data_offsets\":[0,314572800]}}", 314572800 },
        { "{\"a.weight\":{\"dtype\":\"F32\",\"shape\":[1048576,64],"
          "\"data_offsets\":[0,268435456]}}", 268435456 },
    };
    static const char *const formats[] = { "fp8", "int8-convrot", "mxfp8", "nvfp4" };
    (void)unused;
    for (size_t k = 0; k < 8; k++) {
        test_file f = make_file(models[k / 4].header, "", 0);
        test_memory memory = { 0, 0, 0, 0 };
        sft_allocator alloc = { resize_test_memory, &memory };
        sft_source source = { &f, &long_zeros, f.len + models[k / 4].bytes, NULL, false };
        sfti_arena arena = { .alloc = alloc };
        sft_open_options how = SFT_OPEN_OPTIONS_INIT;
        sft_file *file;
        sft_set *set;
        sfti_quantising *q;
        const uint32_t *shard;
        size_t count, got;
        uint8_t bytes[64];
        how.alloc = &alloc;
        assert_int_equal(sft_open_source(source, &how, &file, NULL), SFT_OK);
        assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
        assert_int_equal(plan_of(set, formats[k % 4], NULL, &arena, &alloc, &q, NULL), SFT_OK);
        const sft_part *parts = sfti_quantising_parts(q, &count, &shard);
        for (size_t p = 0; p + 1 < count && k % 4 > 0; p++)
            assert_int_equal(sft_source_read(parts[p].source, 0, bytes,
                                             parts[p].source->size < 64 ? 4 : 64, &got, NULL),
                             SFT_OK);
        assert_true(memory.peak < (size_t)16 << 20);
        sfti_quantising_free(q);
        sfti_arena_free(&arena);
        sft_set_close(set);
        assert_int_equal(memory.held, 0);
        free_file(&f);
    }
}

/* The n-th allocation fails, for every n. */
static void quantises_or_lacks_memory(void **unused) {
    static float values[64 * 64];
    bool done = false;
    test_file f;
    (void)unused;
    for (size_t i = 0; i < 64 * 64; i++) values[i] = (float)i - 2048;
    sft_set *set = one_matrix(values, 64, 64, &f);
    for (size_t n = 1; !done; n++) {
        test_memory memory = { 0, 0, 0, n };
        sft_allocator alloc = { resize_test_memory, &memory };
        sfti_arena arena = { .alloc = alloc };
        sfti_quantising *q = NULL;
        sft_code code = plan_of(set, "nvfp4", NULL, &arena, &alloc, &q, NULL);
        if (!code) code = sfti_quantising_try(q, NULL, NULL);
        sfti_quantising_free(q);
        sfti_arena_free(&arena);
        assert_true(code == SFT_OK || code == SFT_OUT_OF_MEMORY);
        assert_int_equal(memory.held, 0);
        done = memory.calls < n;
        assert_true(!done || !code);
    }
    sft_set_close(set);
    free_file(&f);
}

/* ── Loops ── */

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* What this processor has is what portable C gives, bit for bit; and both what is plain to see. */
static void loops_are_equal(void **unused) {
    enum { MOST = 1024 };
    static const size_t blocks[] = { 16, 32, 128, MOST };
    static const size_t counts[] = { 1, 15, 16, 48, 64, 100, 513, MOST };
    static const sft_dtype dtypes[] = { SFT_I8, SFT_F8_E4M3, SFT_F8_E5M2, SFT_F4 };
    const sfti_encode_loops *loops[] = { &sfti_encode_portable, sfti_encode_loops_best() };
    static float values[MOST], factors[MOST], scaled[2][MOST], decoded[2][MOST], most[2][MOST];
    static uint8_t codes[2][MOST], fours[2][MOST / 2];
    uint32_t state = 4711;
    (void)unused;
    for (size_t n = 0; n < 2000; n++) {
        size_t block = blocks[n % 4], count = counts[n / 4 % 8];
        bool reciprocal = n & 1;
        double sums[2][2] = { { 0 } };
        for (size_t i = 0; i < MOST; i++) {
            float unit = (float)next_random(&state) / 0x1p23f - 1;
            values[i] = ldexpf(unit, (int)(next_random(&state) % 40) - 30);
            factors[i] = next_random(&state) % 9 == 0 ? 0 : ldexpf(1 + unit * 0.3f, -7);
            codes[0][i] = (uint8_t)next_random(&state);
            if ((codes[0][i] & 0x78) == 0x78) codes[0][i] = 0; /* NaN and infinities */
            codes[1][i] = codes[0][i];
        }
        memset(scaled, 0, sizeof scaled);
        memset(decoded, 0, sizeof decoded);
        memset(most, 0, sizeof most);
        for (size_t l = 0; l < 2; l++) {
            sft_dtype dtype = dtypes[n / 32 % 4];
            loops[l]->scale(values, count, block, factors, reciprocal, scaled[l]);
            loops[l]->decode(dtype, codes[l], dtype == SFT_F4 ? count / 2 * 2 : count, decoded[l]);
            loops[l]->squares(scaled[l], decoded[l], count, block, factors, sums[l]);
            loops[l]->magnitudes(values, count, block, most[l]);
            loops[l]->to_int8(values, count, codes[l]);
            loops[l]->to_f4(values, count / 2 * 2, fours[l]);
            assert_int_equal(loops[l]->greatest(values, count),
                             loops[0]->greatest(values, count));
        }
        assert_memory_equal(scaled[0], scaled[1], sizeof scaled[0]);
        assert_memory_equal(decoded[0], decoded[1], sizeof decoded[0]);
        assert_memory_equal(most[0], most[1], sizeof most[0]);
        assert_memory_equal(codes[0], codes[1], sizeof codes[0]);
        assert_memory_equal(fours[0], fours[1], sizeof fours[0]);
        assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
        double error = 0;
        for (size_t i = 0; i < count; i++) {
            double factor = (double)factors[i / block];
            float whole = rintf(values[i]), off = decoded[0][i] - scaled[0][i];
            error += (double)off * (double)off * factor * factor;
            whole = whole > 127 ? 127 : whole < -128 ? -128 : whole;
            assert_int_equal((int8_t)codes[0][i], (int8_t)whole);
            assert_true(fabsf(values[i]) <= most[0][i / block]);
        }
        assert_true(fabs(error - sums[0][0]) <= 1e-5 * error);
    }
    sfti_cast_kernels kernels;
    sfti_cast cast;
    sfti_cast_kernels_fill(&kernels, 0);
    sfti_cast_begin(&cast, &kernels, SFT_F32, SFT_F8_E4M3, true);
    for (uint32_t n = 0; n < 4096; n++) { /* ties too, and beyond both ends */
        for (size_t i = 0; i < MOST; i++) {
            uint32_t bits = (n * MOST + (uint32_t)i) % 0x8000 * 0x8000u;
            if (n >= 32) bits += next_random(&state) % 0x8000;
            memcpy(&values[i], &bits, sizeof bits);
            if (bits >= 0x7d000000) values[i] = 0;
        }
        for (size_t l = 0; l < 2; l++)
            loops[l]->pairs(values, MOST, 6, 0.375f, n & 1, codes[l], scaled[l]);
        assert_memory_equal(codes[0], codes[1], sizeof codes[0]);
        assert_memory_equal(scaled[0], scaled[1], sizeof scaled[0]);
        for (size_t i = 0; i < MOST; i++) {
            float scale = values[i] / 6;
            uint32_t bits;
            scale = n & 1 ? scale * 0.375f : scale / 0.375f;
            memcpy(&bits, &scale, sizeof bits);
            assert_int_equal(codes[0][i], sfti_cast_code(&cast, bits));
        }
    }
    for (size_t i = 0; i < MOST; i++) values[i] = ldexpf((float)next_random(&state) - 0x1p23f, -20);
    for (uint32_t n = 4; n <= SFTI_ROTATE_MOST; n *= 4) {
        memcpy(scaled[1], values, sizeof values);
        memcpy(scaled[0], values, sizeof values);
        sfti_quant_rotate(scaled[0], MOST, n);
        sfti_quant_rotate_portable(scaled[1], MOST, n);
        assert_memory_equal(scaled[0], scaled[1], sizeof scaled[0]);
    }
}

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Codes of 4 bits are those of the cast, of every BF16 over several scales, of any bits and of the
 * numbers beside every one where rounding changes. */
static void fours_are_casts(void **unused) {
    enum { MOST = 1024 };
    static const float halves[] = { 0.25f, 0.5f, 0.75f, 1, 1.25f, 1.75f, 2.5f, 3.5f, 5, 6, 7 };
    static const float scales[] = { 1, 0.3f, 7e-5f, 0x1p-126f, 1e30f };
    const sfti_encode_loops *loops[] = { &sfti_encode_portable, sfti_encode_loops_best() };
    static float values[MOST];
    static uint8_t in[4 * MOST], cast_to[MOST / 2], codes[MOST / 2];
    sfti_cast_kernels kernels;
    sfti_cast cast;
    uint32_t state = 1;
    (void)unused;
    sfti_cast_kernels_fill(&kernels, SFTI_CAST_PORTABLE);
    sfti_cast_begin(&cast, &kernels, SFT_F32, SFT_F4, true);
    for (uint32_t n = 0; n < 5 * 64 + 1 + 2000; n++) {
        for (uint32_t i = 0; i < MOST; i++) {
            uint32_t bits = next_random(&state) << 16 ^ next_random(&state);
            if (n < 5 * 64) {
                bits = (n % 64 * MOST + i) << 16;
                values[i] = float_of_bits(bits) / scales[n / 64];
                memcpy(&bits, &values[i], sizeof bits);
            } else if (n == 5 * 64) {
                memcpy(&bits, &halves[i / 4 % 11], sizeof bits);
                bits = (bits + i % 4 - 1) | (i / 4 % 2 ? 0x80000000u : 0);
            }
            if ((bits & 0x7fffffff) > 0x7f800000) bits &= 0x807fffff; /* NaN, of which none comes */
            values[i] = float_of_bits(bits);
            for (size_t k = 0; k < 4; k++) in[4 * i + k] = (uint8_t)(bits >> (8 * k));
        }
        assert_int_equal(sfti_cast_run(&cast, in, cast_to, MOST, NULL), MOST);
        for (size_t l = 0; l < 2; l++) {
            loops[l]->to_f4(values, MOST, codes);
            assert_memory_equal(codes, cast_to, sizeof codes);
        }
    }
}

/* NVFP4 of whole matrices is what its formula gives a value at a time: every finite BF16, and any
 * F32 bits, subnormal ones too, times several scales. */
static void nvfp4_is_its_formula(void **unused) {
    enum { ROWS = 64, COLUMNS = 1024, BLOCKS = COLUMNS / 16 };
    static const float scales[] = { 1, 0.3f, 1e-30f, 1e-38f, 0x1p-140f };
    static float values[ROWS * COLUMNS];
    static uint8_t codes[ROWS * COLUMNS / 2], stored[128 * BLOCKS];
    sfti_cast_kernels kernels;
    sfti_cast to_f4, to_f8;
    uint32_t state = 99;
    (void)unused;
    sfti_cast_kernels_fill(&kernels, SFTI_CAST_PORTABLE);
    sfti_cast_begin(&to_f4, &kernels, SFT_F32, SFT_F4, true);
    sfti_cast_begin(&to_f8, &kernels, SFT_F32, SFT_F8_E4M3, true);
    for (uint32_t n = 0; n < 15; n++) {
        float most = 0, factor;
        for (uint32_t i = 0; i < ROWS * COLUMNS; i++) {
            uint32_t at = n < 5 ? i : i * 40503u & 0xffff; /* like ones in a block, or unlike */
            uint32_t bits = n < 10 ? at << 16 : next_random(&state) << 16 ^ next_random(&state);
            values[i] = float_of_bits(bits & 0x7fffffff) < 0x1p122f ? float_of_bits(bits) : 0;
            values[i] *= scales[n % 5];
            most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
        }
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_quantising *q;
        test_file f;
        sft_set *set = one_matrix(values, ROWS, COLUMNS, &f);
        assert_int_equal(plan_of(set, "nvfp4", NULL, &arena, NULL, &q, NULL), SFT_OK);
        assert_int_equal(part_bytes(q, 0, codes, sizeof codes), sizeof codes);
        assert_int_equal(part_bytes(q, 1, stored, sizeof stored), sizeof stored);
        factor = most / 2688 > 0x1p-126f ? most / 2688 : 0x1p-126f;
        for (size_t b = 0; b < ROWS * BLOCKS; b++) {
            size_t row = b / BLOCKS, column = b % BLOCKS;
            float greatest = 0, scale;
            for (size_t i = 16 * b; i < 16 * b + 16; i++)
                greatest = fabsf(values[i]) > greatest ? fabsf(values[i]) : greatest;
            scale = greatest / 6 / factor;
            uint32_t bits;
            memcpy(&bits, &scale, sizeof bits);
            uint8_t one = (uint8_t)sfti_cast_code(&to_f8, bits);
            size_t place = column / 4 * 512 + row % 32 * 16 + row / 32 * 4 + column % 4;
            assert_int_equal(stored[place], one);
            bits = (uint32_t)sfti_code_to_bf16(SFT_F8_E4M3, one) << 16;
            scale = float_of_bits(bits) * factor;
            for (size_t i = 16 * b; i < 16 * b + 16; i++) {
                float over = scale > 0 ? values[i] / scale : 0;
                memcpy(&bits, &over, sizeof bits);
                assert_int_equal(codes[i / 2] >> (i % 2 ? 0 : 4) & 15,
                                 sfti_cast_code(&to_f4, bits));
            }
        }
        sfti_quantising_free(q);
        sft_set_close(set);
        free_file(&f);
        sfti_arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_its_targets),
        cmocka_unit_test(refuses_targets),
        cmocka_unit_test(rounds_exponents_up),
        cmocka_unit_test(keeps_zeros),
        cmocka_unit_test(encodes_in_any_order),
        cmocka_unit_test(encodes_in_little_memory),
        cmocka_unit_test(quantises_or_lacks_memory),
        cmocka_unit_test(loops_are_equal),
        cmocka_unit_test(fours_are_casts),
        cmocka_unit_test(nvfp4_is_its_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
