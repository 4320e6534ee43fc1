/* A cast from one dtype to another: its stages, and running them. Tests: test_convert.c. */
#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/options.h"
#include "convert/convert.h"

#include <string.h>

/* ── Which stages ── */

typedef enum cast_hub { HUB_NONE, HUB_F32, HUB_F64, HUB_I64, HUB_U64 } cast_hub;

/* Every dtype that has stages. Any other has no hub and is refused: a dtype new to the dtype table
 * must not be cast by the stages of another format. */
static const uint8_t dtype_hubs[SFT_DTYPE_COUNT] = {
    [SFT_BOOL] = HUB_I64,        [SFT_U8] = HUB_I64,          [SFT_I8] = HUB_I64,
    [SFT_U16] = HUB_I64,         [SFT_I16] = HUB_I64,         [SFT_U32] = HUB_I64,
    [SFT_I32] = HUB_I64,         [SFT_I64] = HUB_I64,         [SFT_U64] = HUB_U64,
    [SFT_F4] = HUB_F32,          [SFT_F6_E2M3] = HUB_F32,     [SFT_F6_E3M2] = HUB_F32,
    [SFT_F8_E5M2] = HUB_F32,     [SFT_F8_E4M3] = HUB_F32,     [SFT_F8_E8M0] = HUB_F32,
    [SFT_F8_E4M3FNUZ] = HUB_F32, [SFT_F8_E5M2FNUZ] = HUB_F32, [SFT_F16] = HUB_F32,
    [SFT_BF16] = HUB_F32,        [SFT_F32] = HUB_F32,         [SFT_F64] = HUB_F64,
};

static cast_hub hub_of(sft_dtype dtype) {
    return (unsigned)dtype < SFT_DTYPE_COUNT ? (cast_hub)dtype_hubs[dtype] : HUB_NONE;
}

bool sfti_cast_has_stages(sft_dtype dtype) {
    return hub_of(dtype) != HUB_NONE;
}

static bool is_dtype(sft_dtype dtype) {
    return sft_dtype_describe(dtype) != NULL;
}

bool sft_cast_exists(sft_dtype from, sft_dtype to) {
    if (!is_dtype(from) || !is_dtype(to)) return false;
    return from == to || (sfti_cast_has_stages(from) && sfti_cast_has_stages(to));
}

static void push_stage(sfti_cast *cast, sfti_cast_fn stage, uint32_t out_bits) {
    cast->stages[cast->count] = stage;
    cast->out_bits[cast->count++] = out_bits;
}

/* F32 to a float of at most 16 bits. */
static void push_narrow(sfti_cast *cast, const sfti_cast_kernels *kernels) {
    uint32_t bits = sft_dtype_describe(cast->to)->bits;
    if (cast->to == SFT_F16) push_stage(cast, kernels->f32_to_f16, 16);
    else if (cast->to == SFT_BF16) push_stage(cast, kernels->f32_to_bf16, 16);
    else if (cast->to == SFT_F8_E8M0) push_stage(cast, sfti_f32_to_e8m0, 8);
    else push_stage(cast, kernels->f32_to_small, 8);
    if (bits == 6) push_stage(cast, sfti_pack_6, 6);
    if (bits == 4) push_stage(cast, sfti_pack_4, 4);
}

/* The stages from a 64-bit hub. */
typedef struct hub_row {
    sfti_cast_fn to_bool, to_int, to_f64, to_f32, to_odd;
    sft_dtype own;
} hub_row;

static const hub_row hub_rows[] = {
    [HUB_F64] = { sfti_f64_to_bool, sfti_f64_to_int, NULL, sfti_f64_to_f32, sfti_f64_to_odd,
                  SFT_F64 },
    [HUB_I64] = { sfti_i64_to_bool, sfti_i64_to_int, sfti_i64_to_f64, sfti_i64_to_f32,
                  sfti_i64_to_odd, SFT_I64 },
    [HUB_U64] = { sfti_i64_to_bool, sfti_u64_to_int, sfti_u64_to_f64, sfti_u64_to_f32,
                  sfti_u64_to_odd, SFT_U64 },
};

/* ── Floats of a byte or less: looked up ── */

/* Whether a table lookup gives the target's bits, which then cannot fail. */
static bool is_looked_up(sft_dtype to) {
    const sft_dtype_info *info = sft_dtype_describe(to);
    return info->kind == SFT_KIND_FLOAT && info->bits >= 8 && info->bits <= 16;
}

static void push_codes(sfti_cast *cast, const sfti_cast_kernels *kernels) {
    sft_dtype to = cast->to;
    uint32_t bits = sft_dtype_describe(cast->from)->bits;
    if (bits == 4) push_stage(cast, sfti_unpack_4, 8);
    if (bits == 6) push_stage(cast, sfti_unpack_6, 8);
    for (unsigned code = 0; code < 256; code++) {
        uint16_t value = sfti_code_to_bf16(cast->from, (uint8_t)code);
        bool rounds = is_looked_up(to) && to != SFT_BF16;
        cast->table[code] = rounds ? sfti_cast_code(cast, (uint32_t)value << 16) : value;
    }
    if (!is_looked_up(to)) push_stage(cast, kernels->look_32, 32);
    else if (sft_dtype_describe(to)->bits == 8) push_stage(cast, kernels->look_8, 8);
    else push_stage(cast, kernels->look_16, 16);
}

/* ── A cast ── */

void sfti_cast_kernels_fill(sfti_cast_kernels *kernels, unsigned forbid) {
    kernels->f16_to_f32 = sfti_f16_to_f32;
    kernels->bf16_to_f32 = sfti_bf16_to_f32;
    kernels->f32_to_f16 = sfti_f32_to_f16;
    kernels->f32_to_bf16 = sfti_f32_to_bf16;
    kernels->f32_to_small = sfti_f32_to_small;
    kernels->look_8 = sfti_look_8;
    kernels->look_16 = sfti_look_16;
    kernels->look_32 = sfti_look_32;
    kernels->f32_bounds = sfti_f32_bounds;
    if (!(forbid & SFTI_CAST_NO_AVX2)) (void)sfti_cast_kernels_avx2(kernels);
    if (!(forbid & SFTI_CAST_NO_AVX512))
        (void)sfti_cast_kernels_avx512(kernels, !(forbid & SFTI_CAST_NO_VBMI));
    if (!(forbid & SFTI_CAST_NO_NEON)) (void)sfti_cast_kernels_neon(kernels);
}

static void push_from_f32_hub(sfti_cast *cast, const sfti_cast_kernels *kernels) {
    const sft_dtype_info *to = sft_dtype_describe(cast->to);
    uint32_t bits = sft_dtype_describe(cast->from)->bits;
    if (bits <= 8) push_codes(cast, kernels);
    if (bits <= 8 && is_looked_up(cast->to)) return;
    if (cast->from == SFT_F16) push_stage(cast, kernels->f16_to_f32, 32);
    if (cast->from == SFT_BF16) push_stage(cast, kernels->bf16_to_f32, 32);
    if (cast->to == SFT_F32) return;
    if (to->kind == SFT_KIND_BOOL) push_stage(cast, sfti_f32_to_bool, 8);
    else if (cast->to != SFT_F64 && to->kind == SFT_KIND_FLOAT) push_narrow(cast, kernels);
    else push_stage(cast, sfti_f32_to_f64, 64);
    if (to->kind == SFT_KIND_INT || to->kind == SFT_KIND_UINT)
        push_stage(cast, sfti_f64_to_int, to->bits);
}

void sfti_cast_begin(sfti_cast *cast, const sfti_cast_kernels *kernels, sft_dtype from,
                     sft_dtype to, bool saturate) {
    cast->from = from;
    cast->to = to;
    cast->saturate = saturate;
    cast->count = 0;
    cast->losses.kind = 0;
    const sfti_float *row = sfti_float_of(to);
    if (row) cast->small = *row;
    if (row && saturate) {
        cast->small.over = row->greatest;
        if (row->infinity == row->nan) cast->small.infinity = row->greatest;
    }
    if (from == to) return;
    cast_hub hub = hub_of(from);
    if (hub == HUB_F32) {
        push_from_f32_hub(cast, kernels);
        return;
    }
    if (hub == HUB_I64 && from != SFT_I64) push_stage(cast, sfti_int_to_i64, 64);
    const hub_row *wide = &hub_rows[hub];
    const sft_dtype_info *info = sft_dtype_describe(to);
    if (to == wide->own) return;
    if (info->kind == SFT_KIND_BOOL) push_stage(cast, wide->to_bool, 8);
    else if (info->kind != SFT_KIND_FLOAT) push_stage(cast, wide->to_int, info->bits);
    else if (to == SFT_F64) push_stage(cast, wide->to_f64, 64);
    else if (to == SFT_F32) push_stage(cast, wide->to_f32, 32);
    else {
        push_stage(cast, wide->to_odd, 32);
        push_narrow(cast, kernels);
    }
}

bool sfti_cast_is_light(const sfti_cast *cast, const sfti_cast_kernels *k) {
    /* Rounding to a byte or less takes more instructions than reading and writing the element. */
    const sfti_cast_fn rows[][2] = {
        { k->f16_to_f32, sfti_f16_to_f32 }, { k->bf16_to_f32, sfti_bf16_to_f32 },
        { k->f32_to_f16, sfti_f32_to_f16 }, { k->f32_to_bf16, sfti_f32_to_bf16 },
        { k->look_8, sfti_look_8 },         { k->look_16, sfti_look_16 },
        { k->look_32, sfti_look_32 },
    };
    const size_t count = sizeof rows / sizeof *rows;
    for (size_t s = 0; s < cast->count; s++) {
        size_t i = 0;
        while (i < count && cast->stages[s] != rows[i][0]) i++;
        if (i == count || rows[i][0] == rows[i][1]) return false;
    }
    return true;
}

/* ── Running ── */

typedef struct cast_buffers {
    _Alignas(64) uint8_t buffer[2][SFTI_CAST_BLOCK * 8];
} cast_buffers;

static size_t run_block(const sfti_cast *cast, cast_buffers *buffers, const uint8_t *in,
                        uint8_t *out, size_t n, sfti_losses *losses) {
    for (size_t s = 0; s < cast->count; s++) {
        if (losses && s == cast->losses.stage) sfti_losses_count(cast, in, n, losses);
        uint8_t *to = s + 1 == cast->count ? out : buffers->buffer[s & 1];
        size_t good = cast->stages[s](cast, in, to, n);
        if (good < n) return good;
        in = to;
    }
    return n;
}

uint64_t sfti_cast_run(const sfti_cast *cast, const uint8_t *in, uint8_t *out, uint64_t n,
                       sfti_losses *losses) {
    uint32_t from = sft_dtype_describe(cast->from)->bits, to = sft_dtype_describe(cast->to)->bits;
    cast_buffers buffers;
    if (cast->count == 0) {
        if (n > 0) memcpy(out, in, (size_t)(n / 8 * from + n % 8 * from / 8));
        return n;
    }
    for (uint64_t at = 0; at < n; at += SFTI_CAST_BLOCK) {
        size_t block = n - at < SFTI_CAST_BLOCK ? (size_t)(n - at) : SFTI_CAST_BLOCK;
        size_t good = run_block(cast, &buffers, in + (size_t)(at / 8) * from,
                                out + (size_t)(at / 8) * to, block, losses);
        if (good < block) return at + good;
    }
    return n;
}

/* ── Values the target cannot represent ── */

static sft_code refuse_number(const sfti_cast *cast, const char *value, uint64_t element,
                              sft_error *err) {
    const sft_dtype_info *to = sft_dtype_describe(cast->to);
    uint64_t all = UINT64_MAX >> (64 - to->bits);
    if (to->kind == SFT_KIND_FLOAT) {
        sfti_fail(err, SFT_CAST_VALUE,
                  "expected numbers, for %s has no NaN, found %s in element %llu", to->name, value,
                  (unsigned long long)element);
        sfti_hint(err, SFT_HINT_NONE);
        return SFT_CAST_VALUE;
    }
    if (to->kind == SFT_KIND_UINT)
        return sfti_fail(err, SFT_CAST_VALUE,
                         "expected values of %s (0 to %llu), found %s in element %llu", to->name,
                         (unsigned long long)all, value, (unsigned long long)element);
    return sfti_fail(err, SFT_CAST_VALUE,
                     "expected values of %s (-%llu to %llu), found %s in element %llu", to->name,
                     (unsigned long long)(all >> 1) + 1, (unsigned long long)(all >> 1), value,
                     (unsigned long long)element);
}

/* The element at index `at` as a value of the hub; casts the whole group that shares its bytes. */
static uint64_t hub_value(const sfti_cast *cast, const uint8_t *in, uint64_t at, sft_dtype hub) {
    uint32_t bits = sft_dtype_describe(cast->from)->bits;
    uint32_t group = bits == 4 ? 2 : bits == 6 ? 4 : 1, place = (uint32_t)(at % group);
    uint8_t wide[4 * 8];
    sfti_cast_kernels kernels;
    sfti_cast to_hub;
    sfti_cast_kernels_fill(&kernels, SFTI_CAST_PORTABLE);
    sfti_cast_begin(&to_hub, &kernels, cast->from, hub, false);
    (void)sfti_cast_run(&to_hub, in + (size_t)((at - place) / group) * (group * bits / 8), wide,
                        group, NULL);
    return sfti_get_u64(wide + 8 * place);
}

sft_code sfti_cast_refuse(const sfti_cast *cast, const uint8_t *in, uint64_t at,
                          uint64_t element, sft_error *err) {
    sft_error text = SFT_ERROR_INIT;
    const char *value = text.message;
    if (hub_of(cast->from) == HUB_U64) {
        sfti_error_text(&text, "%llu", (unsigned long long)hub_value(cast, in, at, SFT_U64));
    } else if (hub_of(cast->from) == HUB_I64) {
        uint64_t bits = hub_value(cast, in, at, SFT_I64);
        bool negative = bits >> 63;
        sfti_error_text(&text, "%s%llu", negative ? "-" : "",
                        (unsigned long long)(negative ? 0 - bits : bits));
    } else {
        uint64_t bits = hub_value(cast, in, at, SFT_F64);
        double number;
        memcpy(&number, &bits, sizeof number);
        if (number == number) sfti_error_text(&text, "%.9g", number);
        else value = "NaN";
    }
    return refuse_number(cast, value, element, err);
}

/* ── The public call ── */

static sft_code check_call(sft_dtype from, const void *in, sft_dtype to, const void *out,
                           uint64_t count, sft_error *err) {
    uint64_t bytes[2];
    if (!is_dtype(from) || !is_dtype(to) || (count > 0 && (!in || !out)))
        return sfti_misuse(err, "expected two dtypes and memory, found %s",
                           is_dtype(from) && is_dtype(to) ? "NULL" : "another number");
    if (!sft_cast_exists(from, to))
        return sfti_fail(err, SFT_CAST_DTYPE,
                         "expected dtypes with a cast between them, found %s and %s",
                         sft_dtype_describe(from)->name, sft_dtype_describe(to)->name);
    sft_code code = sft_shape_size(from, &count, 1, NULL, &bytes[0], err);
    if (!code) code = sft_shape_size(to, &count, 1, NULL, &bytes[1], err);
    if (code || (sfti_fits_size(bytes[0]) && sfti_fits_size(bytes[1]))) return code;
    return sfti_fail(err, SFT_ADDRESS_SPACE,
                     "expected elements that fit the memory of this host, found %llu",
                     (unsigned long long)count);
}

static SFTI_OPTIONS_TAKE(cast_take, sft_cast_options, SFT_CAST_OPTIONS_INIT, saturate)

sft_code sft_cast(sft_dtype from, const void *in, sft_dtype to, void *out, uint64_t count,
                  const sft_cast_options *options, uint64_t *element, sft_error *err) {
    sfti_cast_kernels kernels;
    sfti_cast cast;
    sft_cast_options own;
    if (element) *element = 0;
    sft_code code = cast_take(options, &own, err);
    if (!code) code = check_call(from, in, to, out, count, err);
    if (code) return code;
    sfti_cast_kernels_fill(&kernels, 0);
    sfti_cast_begin(&cast, &kernels, from, to, own.saturate);
    uint64_t good = sfti_cast_run(&cast, in, out, count, NULL);
    if (good == count) return SFT_OK;
    if (element) *element = good;
    return sfti_cast_refuse(&cast, in, good, good, err);
}
