/* Tensors of the base model that an adapter carries (carried.c), beside those of a model, or of
 * another adapter: they change nothing where these are the same. Tests: tests/cli/lora/base.txt. */
#include "adapter/adapter.h"

#include "base/error.h"
#include "os/io.h"
#include "safetensors_cast.h"

#include <string.h>

#define BASE_CHUNK 512 /* elements at a time */

/* ── Values ── */

/* Elements of a tensor, from `first` on. */
typedef struct base_values {
    const sft_set *set;
    const sft_tensor *tensor;
    uint64_t first;
} base_values;

static bool is_compared(const sft_tensor *tensor) {
    const sft_dtype_info *dtype = sft_dtype_describe(tensor->dtype);
    return dtype->kind == SFT_KIND_FLOAT && dtype->bits >= 8
        && sft_cast_exists(tensor->dtype, SFT_F32);
}

static sft_code read_values(const base_values *of, uint64_t at, uint64_t count, float *into,
                            sft_error *err) {
    uint8_t raw[BASE_CHUNK * 8];
    size_t shard;
    (void)sft_set_find(of->set, of->tensor->name, &shard);
    return sfti_lora_elements(of->set, sft_set_shard_at(of->set, shard), of->tensor, of->first + at,
                              count, raw, into, err);
}

static bool is_same(float a, float b) {
    bool numbers = a - a <= 0 && b - b <= 0;
    return memcmp(&a, &b, sizeof a) == 0 || (numbers && !(a < b) && !(a > b));
}

/* Whether values, rounded to a dtype, are the others. */
static bool become(const float *values, const float *others, uint64_t count, sft_dtype dtype) {
    float told[BASE_CHUNK];
    uint8_t bytes[BASE_CHUNK * 8];
    bool same = true;
    memcpy(told, values, (size_t)count * sizeof *told);
    sfti_floats_turn(told, count);
    if (sft_cast(SFT_F32, told, dtype, bytes, count, NULL, NULL, NULL)
        || sft_cast(dtype, bytes, SFT_F32, told, count, NULL, NULL, NULL))
        return false;
    sfti_floats_turn(told, count);
    for (uint64_t i = 0; same && i < count; i++) same = is_same(told[i], others[i]);
    return same;
}

/* *differs: an element that does, or count. Values are the same if those of one, in the dtype of
 * the other, are its. */
static sft_code compare_values(base_values a, base_values b, uint64_t count, uint64_t *differs,
                               sft_error *err) {
    float one[BASE_CHUNK], other[BASE_CHUNK];
    bool a_rounds = true, b_rounds = true;
    for (uint64_t at = 0; at < count; at += BASE_CHUNK) {
        uint64_t n = count - at < BASE_CHUNK ? count - at : BASE_CHUNK, i = 0;
        sft_code code = read_values(&a, at, n, one, err);
        if (!code) code = read_values(&b, at, n, other, err);
        if (code) return code;
        while (i < n && is_same(one[i], other[i])) i++;
        if (i == n) continue;
        a_rounds = a_rounds && become(one, other, n, b.tensor->dtype);
        b_rounds = b_rounds && become(other, one, n, a.tensor->dtype);
        *differs = at + i;
        if (!a_rounds && !b_rounds) return SFT_OK;
    }
    *differs = count;
    return SFT_OK;
}

static sft_code fail_other(const sft_tensor *base, const char *expected, sft_span of,
                           const char *found, uint64_t element, sft_error *err) {
    sft_code code = sfti_fail_tensor(err, SFT_CAST_VALUE, base->offset, base->name,
                                     "expected %s%.*s, found %s (element %llu): PEFT would put "
                                     "these in their place", expected, SFTI_CLIP(of, 120), found,
                                     (unsigned long long)element);
    return sfti_lora_hint(code, SFT_HINT_ADAPTER_TENSOR, err);
}

/* ── A model ── */

static sft_code fail_shape(const sft_tensor *base, const sft_tensor *tensor, sft_error *err) {
    sft_code code = sfti_fail_tensor(err, SFT_SIZE_MISMATCH, base->offset, base->name,
                                     "expected the floats that the model has for this layer "
                                     "(%.*s), found another shape or dtype: the adapter is of "
                                     "another base model", SFTI_CLIP(tensor->name, 120));
    return sfti_lora_hint(code, SFT_HINT_ADAPTER_TENSOR, err);
}

/* The tensor of a target that is the layer's, and where its rows begin in it. */
static sft_code compare_target(const sfti_lora *lora, const sfti_lora_base *one,
                               const sfti_lora_target *target, const sft_set *model,
                               uint64_t *covered, sft_error *err) {
    const sft_tensor *base = sft_set_tensor_at(lora->set, one->tensor);
    const sft_tensor *weight = sft_set_tensor_at(model, target->tensor), *tensor = weight;
    uint64_t rows = 0, cols = 0, all = 0, across = 0, differs = 0;
    if (one->bias) tensor = sfti_set_sibling(model, sfti_lora_layer(weight->name), ".bias");
    if (!tensor) return fail_shape(base, weight, err);
    (void)sfti_lora_shape(base, &rows, &cols);
    (void)sfti_lora_shape(tensor, &all, &across);
    bool whole = target->turned; /* as it is stored */
    uint64_t from = whole ? 0 : target->from, row = whole ? 0 : target->row;
    uint64_t count = whole ? all : target->rows;
    if (!is_compared(base) || !is_compared(tensor) || target->transposed || cols != across
        || from > rows || count > rows - from || row > all || count > all - row)
        return fail_shape(base, tensor, err);
    base_values a = { lora->set, base, from * cols }, b = { model, tensor, row * cols };
    sft_code code = compare_values(a, b, count * cols, &differs, err);
    *covered += count;
    if (code || differs == count * cols) return code;
    return fail_other(base, "the values of the model's ", tensor->name,
                      one->bias ? "those of another base model, or trained ones (bias)"
                                : "those of another base model", from * cols + differs, err);
}

sft_code sfti_lora_check_bases(const sfti_lora *lora, const sfti_lora_map *map,
                               const sft_set *model, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < lora->base_count; i++) {
        const sfti_lora_base *one = &lora->bases[i];
        const sft_tensor *base = sft_set_tensor_at(lora->set, one->tensor);
        const sfti_lora_target *target = NULL;
        uint64_t covered = 0, rows = 0, cols = 0;
        for (uint32_t at = lora->modules[one->module].targets; !code && at; at = target->next) {
            target = &map->targets[at - 1];
            if (!target->bias) code = compare_target(lora, one, target, model, &covered, err);
        }
        (void)sfti_lora_shape(base, &rows, &cols);
        if (!code && target && covered != rows)
            code = fail_shape(base, sft_set_tensor_at(model, target->tensor), err);
    }
    return code;
}

/* ── Other adapters ── */

sft_code sfti_lora_same_bases(const sfti_lora *lora, const sfti_lora *before, size_t i, bool *has,
                              sft_error *err) {
    const sft_tensor *base = sft_set_tensor_at(lora->set, lora->bases[i].tensor);
    const sft_tensor *other = sft_set_find(before->set, base->name, NULL);
    uint64_t differs = 0, count = sft_tensor_elements(base);
    *has = other != NULL;
    if (!other) return SFT_OK;
    if (!is_compared(base) || !is_compared(other) || base->rank != other->rank
        || memcmp(base->shape, other->shape, base->rank * sizeof *base->shape) != 0)
        return fail_shape(base, other, err);
    sft_code code = compare_values((base_values){ lora->set, base, 0 },
                                   (base_values){ before->set, other, 0 }, count, &differs, err);
    if (code || differs == count) return code;
    return fail_other(base, "the values of another adapter's ", base->name,
                      "those of another base model", differs, err);
}
