/* Recognising how a tensor is quantised. Tests: test_convert.c. */
#include "base/checked.h"
#include "base/error.h"
#include "convert/convert.h"
#include "convert/dequant.h"

#include <string.h>

#define QUANT_BLOCK 128 /* DeepSeek's, where the last block of a dimension may be cut */

static sft_code quant_refuse(const sfti_quant *q, const char *expected, sft_error *err) {
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, q->packed.tensor->name,
                            "expected %s, found another layout", expected);
}

static bool has_kind(sfti_quant_part part, sft_kind kind) {
    return part.tensor && sft_dtype_describe(part.tensor->dtype)->kind == kind;
}

static void quant_shape(sfti_quant *q, uint32_t rank, const uint64_t *shape) {
    if (rank > 0) memcpy(q->shape, shape, rank * sizeof *shape);
    q->spec.rank = rank;
    q->spec.shape = q->shape;
    q->matrices = q->rows = q->columns = q->elements = 1;
    for (uint32_t d = 0; d < rank; d++) {
        uint64_t *of = d + 1 == rank ? &q->columns : d + 2 == rank ? &q->rows : &q->matrices;
        *of *= shape[d]; /* a tensor of as many elements was opened */
        q->elements *= shape[d];
    }
}

/* ── Factors for blocks ── */

/* How many elements of a dimension share a factor if there are `factors`; 0: no such layout, or
 * blocks of equal size and those of a power of two, the last one cut, have as many. */
static uint64_t block_of(uint64_t dimension, uint64_t factors) {
    if (factors == dimension || factors == 0) return factors > 0;
    if (factors == 1) return dimension;
    if ((dimension - 1) / QUANT_BLOCK + 1 == factors) return QUANT_BLOCK;
    uint64_t block = dimension / factors, power = 1;
    while (power < block) power *= 2;
    bool alone = power == block || (dimension - 1) / power + 1 != factors;
    return dimension % factors == 0 && alone ? block : 0;
}

/* A scalar is for all; one factor a row may lack the last dimension. */
static bool blocks_fit(sfti_quant *q) {
    const sft_tensor *t = q->packed.tensor, *s = q->scales.tensor;
    uint64_t all = 1;
    for (uint32_t d = 0; d < s->rank; d++)
        if (!sfti_mul(all, s->shape[d], &all)) return false;
    bool rows = s->rank + 1 == t->rank;
    if (all != 1 && s->rank != t->rank && !rows) return false;
    for (uint32_t d = 0; d < t->rank; d++) {
        uint64_t factors = all == 1 || (rows && d + 1 == t->rank) ? 1 : s->shape[d];
        if (rows && all != 1 && d + 1 < t->rank && factors != t->shape[d]) return false;
        q->block[d] = t->shape[d] == 0 ? 1 : block_of(t->shape[d], factors);
        if (q->block[d] == 0) return false;
    }
    return true;
}

/* Names of scales of tensors that keep their own name, and of what else changes values. */
static const char *const quant_scales[] = { "_scale_inv", "_scale", ".scale_weight" };
static const char *const quant_others[] = { "_scale_inv", "_scale", ".scale_weight", "_scale_2",
                                            "_global_scale", "_zero_point", "_g_idx", "_zeros",
                                            "_s_rel", "_s_channel", "_codebook", "_correction",
                                            ".pre_quant_scale", ".biases" };

/* The tensor of the same name with `instead` in place of its end. */
static sfti_quant_part part_named(const sft_set *set, sft_span name, const char *end,
                                  const char *instead) {
    size_t shard = 0;
    const sft_tensor *tensor = sfti_scale_named(set, name, end, instead, &shard);
    return (sfti_quant_part){ tensor, tensor ? sft_set_shard_at(set, shard) : NULL };
}

/* The tensor of this name for M.weight or, unless it begins with a dot, for any other name. */
static sfti_quant_part find_named(const sft_set *set, sft_span name, const char *end) {
    return part_named(set, name, end[0] == '.' ? ".weight" : "", end);
}

/* Scales of powers of two for blocks of 32 are also stored in tiles of 128 rows and 4 columns,
 * padded to whole ones. Whether their shape is that of such tiles, whatever else it is, too. */
static bool may_be_tiled(const sfti_quant *q) {
    const sft_tensor *t = q->packed.tensor, *s = q->scales.tensor;
    if (s->dtype != SFT_F8_E8M0 || t->rank < 2 || s->rank != t->rank || q->elements == 0)
        return false;
    const uint64_t *shape = t->shape + t->rank - 2, *scales = s->shape + s->rank - 2;
    return scales[0] % 128 == 0 && scales[0] / 128 == (shape[0] - 1) / 128 + 1
        && scales[1] % 4 == 0 && scales[1] / 4 == (shape[1] - 1) / 128 + 1;
}

/* Whether the tensors are those of a declared format, which sfti_declared_find knows. */
static sft_code check_declared(const sfti_quant *q, const sfti_declared_layer *layer,
                               const sfti_declared_format *format, sft_error *err) {
    static const struct { const char *name; sft_dtype dtype; } dtypes[] = {
        { "float8_e4m3fn", SFT_F8_E4M3 }, { "float8_e5m2", SFT_F8_E5M2 },
        { "int8_tensorwise", SFT_I8 },
    };
    const sft_tensor *t = q->packed.tensor, *s = q->scales.tensor;
    bool fits = false;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        fits = fits || (t->dtype == dtypes[i].dtype
                        && sft_span_equal(format->name, sft_span_cstr(dtypes[i].name)));
    fits = fits && s && sft_dtype_describe(s->dtype)->bits >= 16;
    bool single = true;
    for (uint32_t d = 0; s && d < s->rank; d++) single = single && s->shape[d] == 1;
    if (fits && !single)
        fits = t->dtype == SFT_I8 && format->per_row && t->rank > 0 && s->rank > 0
            && s->shape[0] == t->shape[0] && (s->rank == 1 || (s->rank == 2 && s->shape[1] == 1));
    if (fits && !layer->odd) return SFT_OK;
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, t->name,
                            "expected the tensors of \"%.*s\", as which it is declared, found %s",
                            SFTI_CLIP(format->name, 100), fits ? "more" : "others");
}

/* told: a quantization_config has a method whose scales are in rows. */
static sft_code find_scaled(const sft_set *set, sfti_quant *q, bool told, sft_error *err) {
    const sft_tensor *t = q->packed.tensor;
    q->kind = SFTI_QUANT_SCALED;
    q->bits = sft_dtype_describe(t->dtype)->bits;
    q->spec.name = t->name;
    quant_shape(q, t->rank, t->shape);
    if (!has_kind(q->scales, SFT_KIND_FLOAT) || !blocks_fit(q))
        return quant_refuse(q, "one factor a tensor, row or block in the scale", err);
    if (!told && may_be_tiled(q))
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, q->packed.tensor->name,
                                "expected a quantization_config, for by their shape the scales of "
                                "blocks may be in rows or in tiles, found none");
    for (size_t i = 0; i < sizeof quant_others / sizeof *quant_others; i++) {
        const sft_tensor *other = find_named(set, t->name, quant_others[i]).tensor;
        if (!other || other == q->scales.tensor) continue;
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, t->name,
                                "expected one scale and nothing else that changes values, found "
                                "\"%.*s\" too", (int)other->name.len, other->name.data);
    }
    return SFT_OK;
}

/* ── MXFP4 ── */

static sft_code find_mxfp4(sfti_quant *q, sft_error *err) {
    const sft_tensor *t = q->packed.tensor, *s = q->scales.tensor;
    uint64_t shape[SFT_MAX_RANK];
    uint32_t rank = t->rank;
    if (rank < 3 || t->dtype != SFT_U8 || t->shape[rank - 1] != 16 || s->dtype != SFT_U8 ||
        s->rank + 1 != rank || memcmp(t->shape, s->shape, s->rank * sizeof *s->shape) != 0)
        return quant_refuse(q, "blocks of 16 bytes, each with a scale of a byte", err);
    memcpy(shape, t->shape, (rank - 3) * sizeof *shape);
    if (!sfti_mul(t->shape[rank - 2], 32, &shape[rank - 3])) /* another dimension is 0 */
        return quant_refuse(q, "a shape below 2^64", err);
    shape[rank - 2] = t->shape[rank - 3];
    q->kind = SFTI_QUANT_MXFP4;
    q->bits = 4;
    q->spec.name = (sft_span){ t->name.data, t->name.len - strlen("_blocks") };
    quant_shape(q, rank - 1, shape);
    q->stored_rows = q->columns;
    q->units = q->rows / 2;
    q->unit_bytes = 1;
    q->groups = q->rows / 32;
    return SFT_OK;
}

/* ── GPTQ and AWQ ── */

/* Input and output features, from the shapes of weights, scales and zero points. */
static bool find_words(sfti_quant *q) {
    const sft_tensor *t = q->packed.tensor, *s = q->scales.tensor, *z = q->zeros.tensor;
    uint64_t in, out;
    if (t->dtype != SFT_I32 || t->rank != 2 || s->rank != 2 || !z || z->dtype != SFT_I32)
        return false;
    q->groups = s->shape[0];
    out = s->shape[1];
    if (z->rank != 2 || z->shape[0] != q->groups || z->shape[1] == 0 || out % z->shape[1] != 0 ||
        q->groups == 0)
        return false;
    uint64_t per_word = out / z->shape[1];
    bool gptq = t->shape[1] == out;
    if (per_word != 8 && per_word != 4) return false;
    if (!gptq && (t->shape[1] != z->shape[1] || per_word != 8)) return false;
    in = gptq ? t->shape[0] * per_word : t->shape[0]; /* as many bits were opened */
    q->kind = gptq ? SFTI_QUANT_GPTQ : SFTI_QUANT_AWQ;
    q->per_word = (uint32_t)per_word;
    q->bits = 32 / q->per_word;
    q->stored_rows = t->shape[0];
    q->units = t->shape[1];
    q->unit_bytes = 4;
    quant_shape(q, 2, (const uint64_t[]){ out, in });
    if (q->order.tensor)
        return gptq && q->order.tensor->dtype == SFT_I32 && q->order.tensor->rank == 1 &&
               q->order.tensor->shape[0] == in;
    return in % q->groups == 0;
}

static sft_code find_gptq(sfti_quant *q, sfti_arena *arena, sft_error *err) {
    if (!has_kind(q->scales, SFT_KIND_FLOAT) || !find_words(q))
        return quant_refuse(q, "qweight, scales, qzeros and g_idx of GPTQ or AWQ, 4 or 8 bits",
                            err);
    sft_span old = q->packed.tensor->name; /* "M.qweight" becomes "M.weight" */
    size_t stem = old.len - strlen("qweight");
    char *name = sfti_arena_take(arena, old.len);
    if (!name) return sfti_fail_memory(err, old.len);
    memcpy(name, old.data, stem);
    memcpy(name + stem, "weight", 6);
    q->spec.name = (sft_span){ name, stem + 6 };
    return SFT_OK;
}

/* ── All kinds ── */

/* Elements are floats of 8 bits or I8. */
static bool is_scaled(const sft_set *set, sfti_quant *q) {
    const sft_tensor *t = q->packed.tensor;
    const sft_dtype_info *info = sft_dtype_describe(t->dtype);
    bool fits = t->dtype == SFT_I8 ||
                (info->kind == SFT_KIND_FLOAT && info->bits == 8 && t->dtype != SFT_F8_E8M0);
    for (size_t i = 0; fits && i < sizeof quant_scales / sizeof *quant_scales; i++) {
        q->scales = find_named(set, t->name, quant_scales[i]);
        if (q->scales.tensor) return true;
    }
    return false;
}

static bool is_mxfp4(const sft_set *set, sfti_quant *q) {
    q->scales = part_named(set, q->packed.tensor->name, "_blocks", "_scales");
    return q->scales.tensor != NULL;
}

static bool is_gptq(const sft_set *set, sfti_quant *q) {
    sft_span name = q->packed.tensor->name;
    q->scales = part_named(set, name, ".qweight", ".scales");
    q->zeros = part_named(set, name, ".qweight", ".qzeros");
    q->order = part_named(set, name, ".qweight", ".g_idx");
    return q->scales.tensor != NULL;
}

static sft_code find_layout(const sft_set *set, const sfti_declared *declared, sfti_arena *arena,
                            sfti_quant *q, sft_error *err) {
    const sft_tensor *tensor = q->packed.tensor;
    const sfti_declared_layer *layer = sfti_declared_of(declared, tensor->name, NULL);
    sfti_declared_format format;
    sft_code code = SFT_OK;
    if (tensor->rank > SFT_MAX_RANK) return quant_refuse(q, "at most 64 dimensions", err);
    if (layer && layer->weight == tensor) {
        code = sfti_declared_find(layer, arena, &format, err);
        (void)is_scaled(set, q);
        if (!code) code = check_declared(q, layer, &format, err);
        if (!code) code = find_scaled(set, q, true, err);
    } else if (is_gptq(set, q)) {
        code = find_gptq(q, arena, err);
    } else if (is_mxfp4(set, q)) {
        code = find_mxfp4(q, err);
    } else if (is_scaled(set, q)) {
        code = find_scaled(set, q, declared->method != NULL, err);
    } else {
        return quant_refuse(q, "scaled floats of 8 bits, MXFP4, GPTQ or AWQ", err);
    }
    if (code || !declared->kinds || declared->kinds >> q->kind & 1) return code;
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, tensor->name,
                            "expected what the quantization_config's \"%s\" stores, found another "
                            "layout", declared->method);
}

sft_code sfti_quant_find(const sft_set *set, const sfti_declared *declared, size_t i,
                         sfti_arena *arena, sfti_quant **out, sft_error *err) {
    const sft_tensor *tensor = sft_set_tensor_at(set, i);
    sft_convert_action action = SFT_CONVERT_OTHER;
    *out = NULL;
    if (!sfti_scale_find(set, declared, tensor, &action) || action != SFT_CONVERT_SCALED)
        return SFT_OK;
    sfti_quant *q = sfti_arena_take(arena, sizeof *q);
    if (!q) return sfti_fail_memory(err, sizeof *q);
    memset(q, 0, sizeof *q);
    q->packed = (sfti_quant_part){ tensor,
                                   sft_set_shard_at(set, sft_set_tensor_shard(set, i)) };
    sft_code code = find_layout(set, declared, arena, q, err);
    if (!code) *out = q;
    else if (code == SFT_CAST_DTYPE) sfti_hint(err, SFT_HINT_CHOOSE_TENSORS);
    return code;
}
