/* Parts that form another matrix than the values: of bitsandbytes one line, of HQQ a line for each
 * group. Tests: test_quant.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "quant/fit.h"

#include <float.h>
#include <string.h>

#define STATE_MOST 65536

/* A decimal number, near enough for an F32 that was printed with 17 digits. */
static double decimal_of(sft_span text) {
    double value = 0;
    int exponent = 0, told = 0;
    bool minus = false, fraction = false, down = false;
    size_t i = 0;
    for (; i < text.len && text.data[i] != 'e' && text.data[i] != 'E'; i++) {
        char c = text.data[i];
        if (c == '-') minus = true;
        if (c == '.') fraction = true;
        if (c < '0' || c > '9') continue;
        if (value < 1e17) value = value * 10 + (c - '0'), exponent -= fraction;
        else exponent += !fraction;
    }
    for (; i < text.len && told < 1000; i++) {
        if (text.data[i] == '-') down = true;
        if (text.data[i] >= '0' && text.data[i] <= '9') told = told * 10 + (text.data[i] - '0');
    }
    exponent += down ? -told : told;
    double power = 1;
    for (int e = exponent < 0 ? -exponent : exponent; e > 0 && power < 1e300; e--) power *= 10;
    value = exponent < 0 ? value / power : value * power;
    return minus ? -value : value;
}

typedef struct quant_state {
    uint64_t block, nested_block, shape[8];
    uint32_t rank;
    bool has_offset;
    double offset;
} quant_state;

static sft_code read_state(const sfti_quant_fit *f, quant_state *out, sft_error *err) {
    const sft_file *file;
    const sft_tensor *tensor = sfti_fit_role(f, SFTI_PART_STATE, &file);
    uint64_t size = tensor->end - tensor->begin;
    char *text = size <= STATE_MOST ? sfti_arena_take(f->search->arena, (size_t)size) : NULL;
    memset(out, 0, sizeof *out);
    if (size <= STATE_MOST && !text) return sfti_fail_memory(err, size);
    sft_code code = text ? sft_read_bytes(file, tensor->offset, text, (size_t)size, err) : SFT_OK;
    if (code) return code;
    sfti_json json;
    bool good = text && sfti_utf8_check(text, (size_t)size) == size;
    if (good) sfti_json_begin(&json, text, (size_t)size);
    good = good && sfti_json_next(&json) == SFTI_JSON_OBJECT;
    while (good && sfti_json_next(&json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(&json, f->search->arena);
        if (!key.data) return sfti_fail_memory(err, size);
        sfti_json_type type = sfti_json_next(&json);
        bool is_shape = sft_span_equal(key, sft_span_cstr("shape"));
        if (type == SFTI_JSON_UINT && sft_span_equal(key, sft_span_cstr("blocksize")))
            out->block = json.value;
        if (type == SFTI_JSON_UINT && sft_span_equal(key, sft_span_cstr("nested_blocksize")))
            out->nested_block = json.value;
        if (sft_span_equal(key, sft_span_cstr("nested_offset"))) {
            out->has_offset = type == SFTI_JSON_UINT || type == SFTI_JSON_NUMBER;
            out->offset = decimal_of(json.text);
        }
        while (is_shape && type == SFTI_JSON_ARRAY && sfti_json_next(&json) == SFTI_JSON_UINT
               && out->rank < 8)
            out->shape[out->rank++] = json.value;
        if (json.type == SFTI_JSON_ERROR) break;
        if (!is_shape) (void)sfti_json_skip(&json);
    }
    if (!good || json.type != SFTI_JSON_OBJECT_END || sfti_json_next(&json) != SFTI_JSON_END
        || out->block == 0 || out->rank == 0)
        return sfti_fit_fail(tensor, "a shape and a block size in JSON", "other bytes", err);
    return SFT_OK;
}

sft_code sfti_fit_flat(sfti_quant_fit *f, sft_error *err) {
    sfti_quant *q = f->q;
    const sft_tensor *t = sfti_fit_tensor(f, 0), *scale = q->parts[1].tensor;
    quant_state state;
    sft_code code = read_state(f, &state, err);
    if (code) return code;
    uint64_t count = 1;
    for (uint32_t d = 0; d < state.rank; d++)
        if (!sfti_mul(count, state.shape[d], &count)) return sfti_fit_shape(t, state.shape, 2, err);
    memcpy(f->shape, state.shape, state.rank * sizeof *f->shape);
    q->spec.rank = state.rank;
    q->spec.shape = f->shape;
    q->matrices = q->rows = 1;
    q->columns = count;
    uint64_t bytes = sfti_divide_up(count, 2);
    if (t->end - t->begin != bytes)
        return sfti_fit_shape(t, (uint64_t[]){ bytes, 1 }, 2, err);
    for (size_t k = 0; k < q->count; k++) {
        sfti_quant_part *part = &q->parts[k];
        uint64_t block = k == 0 ? 1 : state.block;
        if (k == 2 && (state.nested_block == 0
                       || !sfti_mul(block, state.nested_block, &block)))
            return sfti_fit_fail(part->tensor, "a nested block size", "none", err);
        part->rows = part->lines = part->row_block = 1;
        part->column_block = block;
        part->columns = sfti_divide_up(count, block);
        part->bits = k == 0 ? 4 : sfti_tensor_bits(part->tensor);
        part->line_bytes = part->tensor->end - part->tensor->begin;
        if (k > 0 && (part->tensor->rank != 1 || part->tensor->shape[0] != part->columns))
            return sfti_fit_shape(part->tensor, &part->columns, 1, err);
    }
    bool nested = q->count > 2;
    if ((scale->dtype == SFT_U8) != nested || (q->nested_book.tensor != NULL) != nested)
        return sfti_fit_fail(scale, "nested statistics for those that are codes only", "others",
                             err);
    if (!nested) return SFT_OK;
    if (!state.has_offset || !(state.offset <= FLT_MAX && state.offset >= -FLT_MAX))
        return sfti_fit_fail(sfti_fit_role(f, SFTI_PART_STATE, NULL), "a nested offset that is "
                             "finite in F32", state.has_offset ? "a greater one" : "none", err);
    q->nested_offset = (float)state.offset;
    return SFT_OK;
}

sft_code sfti_fit_planes(sfti_quant_fit *f, sft_error *err) {
    sfti_quant *q = f->q;
    sfti_quant_part *codes = &q->parts[0];
    const sft_tensor *t = codes->tensor;
    uint32_t unit = sfti_tensor_bits(t);
    uint64_t count, width = t->rank == 2 ? t->shape[1] : 0, lines = t->rank == 2 ? t->shape[0] : 0;
    sft_code code = sfti_fit_told_shape(f, f->shape, err);
    if (code) return code;
    if (!sfti_mul(f->shape[0], f->shape[1], &count) || width == 0 || lines == 0
        || count % width != 0)
        return sfti_fit_shape(t, f->shape, 2, err);
    q->spec.rank = 2;
    q->spec.shape = f->shape;
    q->matrices = 1;
    q->rows = count / width;
    q->columns = width;
    uint64_t planes = unit == 8 ? q->rows / lines : 10;
    bool whole = unit == 8 ? q->rows % lines == 0 && (planes == 1 || planes == 2 || planes == 4
                                                      || planes == 8)
                           : sfti_divide_up(q->rows, planes) == lines;
    if (!whole)
        return sfti_fit_fail(t, "rows of 1, 2, 4 or 8 bits in bytes, or of 3 in words", "others",
                             err);
    codes->bits = unit == 8 ? 8 / (uint32_t)planes : 3;
    codes->planes = (uint32_t)planes;
    codes->rows = q->rows;
    codes->columns = width;
    codes->row_block = codes->column_block = 1;
    codes->lines = lines;
    codes->line_bytes = width * unit / 8;
    for (size_t k = 1; k < q->count; k++) {
        sfti_quant_part *part = &q->parts[k];
        const sft_tensor *s = part->tensor;
        bool rows = s->rank == 2 && s->shape[0] == q->rows && s->shape[1] == 1;
        if (!rows && (s->rank != 2 || s->shape[0] != 1 || s->shape[1] != width))
            return sfti_fit_shape(s, (uint64_t[]){ q->rows, 1 }, 2, err);
        part->bits = sfti_tensor_bits(s);
        part->rows = part->lines = s->shape[0];
        part->columns = s->shape[1];
        part->row_block = rows ? 1 : q->rows;
        part->column_block = rows ? width : 1;
        part->line_bytes = s->shape[1] * part->bits / 8;
    }
    return SFT_OK;
}
