/* Parts that form another matrix than the values: of bitsandbytes one line, of HQQ a line for each
 * group. Tests: test_quant.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
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
    sft_span type;
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
        if (type == SFTI_JSON_STRING && sft_span_equal(key, sft_span_cstr("quant_type"))) {
            out->type = sfti_json_string(&json, f->search->arena);
            if (!out->type.data) return sfti_fail_memory(err, size);
        }
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

static const float nf4_values[16] = {
    -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
    -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
    0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
    0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f,
};
static const float fp4_values[16] = { /* twelfths, the second half negative */
    0.0f, 0.0625f, 8.0f, 12.0f, 4.0f, 6.0f, 2.0f, 3.0f,
    -0.0f, -0.0625f, -8.0f, -12.0f, -4.0f, -6.0f, -2.0f, -3.0f,
};

/* Whether codes have the type that the state tells: by its name, and by the table. */
static sft_code check_type(const sfti_quant_fit *f, sft_span type, sft_error *err) {
    const sfti_quant_part *book = &f->q->book;
    const sft_tensor *state = sfti_fit_role(f, SFTI_PART_STATE, NULL), *table = book->tensor;
    bool nf4 = sft_span_equal(type, sft_span_cstr("nf4"));
    uint8_t bytes[16 * 8];
    double values[16];
    if (!type.data) return SFT_OK;
    if ((!nf4 && !sft_span_equal(type, sft_span_cstr("fp4")))
        || !sfti_name_ends(state->name, nf4 ? "nf4" : "fp4"))
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, state->name,
                                "expected the quant_type of its name, found \"%.*s\"",
                                SFTI_CLIP(type, 100));
    size_t size = (size_t)(sfti_tensor_bits(table) / 8);
    if (table->rank != 1 || table->shape[0] != 16) return SFT_OK; /* which is looked at later */
    sft_code code = sft_read_bytes(book->file, table->offset, bytes, 16 * size, err);
    if (code) return code;
    sfti_to_doubles(table->dtype, bytes, 0, 16, values);
    double room = size < 4 ? 1.0 / 256 : 1e-6; /* of what was rounded */
    for (size_t i = 0; i < 16; i++) {
        double off = values[i] - (nf4 ? (double)nf4_values[i] : (double)fp4_values[i] / 12);
        if (!(off <= room && off >= -room))
            return sfti_fail_tensor(err, SFT_CAST_DTYPE, table->offset + i * size, table->name,
                                    "expected the values of %.*s, as the quant_type says, found "
                                    "%g as number %zu", SFTI_CLIP(type, 100), values[i], i);
    }
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
    code = check_type(f, state.type, err);
    if (code) return code;
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

/* Whether a number that HQQ keeps of a tensor says what its shapes do; least, most: what it may
 * be. */
static sft_code check_number(const sfti_quant_fit *f, const char *name, double least, double most,
                            sft_error *err) {
    const sfti_quant_search *search = f->search;
    uint32_t at = sfti_quant_named(search, sft_span_cstr(name), f->match->stem);
    const sft_tensor *t = at == NONE ? NULL : sft_set_tensor_at(search->set, at);
    uint8_t bytes[8];
    uint64_t size = t ? t->end - t->begin : 0;
    double value;
    if (!t || t->dtype == SFT_C64 || size == 0 || size > sizeof bytes
        || size != sfti_tensor_bits(t) / 8)
        return SFT_OK;
    const sft_file *file = sft_set_shard_at(search->set, sft_set_tensor_shard(search->set, at));
    sft_code code = sft_read_bytes(file, t->offset, bytes, (size_t)size, err);
    if (code) return code;
    sfti_to_doubles(t->dtype, bytes, 0, 1, &value);
    if (value >= least && value <= most) return SFT_OK;
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, t->offset, t->name,
                            "expected %g, as shapes tell, found %g", most, value);
}

/* "4bit_u8" and the like, a byte a character. */
static sft_code check_packing(const sfti_quant_fit *f, uint32_t bits, sft_error *err) {
    const sfti_quant_search *search = f->search;
    uint32_t at = sfti_quant_named(search, sft_span_cstr(".packing"), f->match->stem);
    const sft_tensor *t = at == NONE ? NULL : sft_set_tensor_at(search->set, at);
    char text[16], wanted[16];
    uint64_t size = t ? t->end - t->begin : 0;
    if (!t) return SFT_OK;
    memcpy(wanted, bits == 3 ? "3bit_32" : "0bit_u8", 8);
    if (bits != 3) wanted[0] = (char)('0' + bits);
    const sft_file *file = sft_set_shard_at(search->set, sft_set_tensor_shard(search->set, at));
    sft_code code = size < sizeof text ? sft_read_bytes(file, t->offset, text, (size_t)size, err)
                                       : SFT_OK;
    if (code || (size == strlen(wanted) && memcmp(text, wanted, (size_t)size) == 0)) return code;
    return sfti_fit_fail(t, wanted, "another text", err);
}

/* What HQQ keeps beside the codes, if it does. */
static sft_code check_entries(const sfti_quant_fit *f, sft_error *err) {
    const sfti_quant *q = f->q;
    uint32_t bits = q->parts[0].bits;
    bool rows = q->parts[1].columns == 1;
    double group = (double)(rows ? q->columns : q->rows);
    /* 5 to 7 bits are stored as 8, 1.58 as 2. */
    sft_code code = check_number(f, ".nbits", bits == 8 ? 5 : bits == 2 ? 1.5 : bits, bits, err);
    bool both = rows && q->parts[1].rows == 1;
    if (!code) code = check_number(f, ".axis", rows && !both, rows, err);
    if (!code && !both) code = check_number(f, ".group_size", group, group, err);
    return code ? code : check_packing(f, bits, err);
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
    return check_entries(f, err);
}
