/* Key-value pairs of a GGUF file. Tests: test_import_gguf.c. */
#include "formats/gguf/gguf.h"

#include "base/number.h"
#include "base/order.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#define MOST_PAIRS 65536    /* a tokenizer's arrays are one pair each */
#define MOST_KEY 65535      /* bytes, by the format's specification */
#define MOST_STRING (1 << 20) /* bytes of a string that becomes metadata */
#define MOST_NESTING 64

enum { VALUE_UNSIGNED, VALUE_SIGNED, VALUE_FLOAT, VALUE_BOOL, VALUE_STRING, VALUE_ARRAY };

typedef struct value_type {
    const char *name;
    uint8_t bytes; /* 0: not of fixed size */
    uint8_t kind;
} value_type;

/* By number. */
static const value_type value_types[] = {
    { "u8", 1, VALUE_UNSIGNED },  { "i8", 1, VALUE_SIGNED },   { "u16", 2, VALUE_UNSIGNED },
    { "i16", 2, VALUE_SIGNED },   { "u32", 4, VALUE_UNSIGNED }, { "i32", 4, VALUE_SIGNED },
    { "f32", 4, VALUE_FLOAT },    { "bool", 1, VALUE_BOOL },   { "string", 0, VALUE_STRING },
    { "array", 0, VALUE_ARRAY },  { "u64", 8, VALUE_UNSIGNED }, { "i64", 8, VALUE_SIGNED },
    { "f64", 8, VALUE_FLOAT },
};
#define VALUE_TYPES (sizeof value_types / sizeof *value_types)

typedef struct gguf_key {
    sft_span name;
    uint64_t at;
} gguf_key;

typedef struct pair_reader {
    sfti_gguf_cursor *c;
    sfti_import *im;
    bool report;
    gguf_key *keys;
    sfti_gguf_pairs *out;
} pair_reader;

static sft_code read_type(pair_reader *r, const value_type **out) {
    uint64_t at = r->c->at;
    uint32_t number;
    sft_code code = sfti_gguf_u32(r->c, &number);
    if (code) return code;
    if (number >= VALUE_TYPES)
        return sfti_fail_byte(r->im->err, SFT_FOREIGN_SYNTAX, at,
                              "expected a type of value from 0 to 12, found %u", number);
    *out = &value_types[number];
    return SFT_OK;
}

/* ── Scalars ── */

static sft_code put_pair(pair_reader *r, sft_span key, sft_span value) {
    static const char prefix[] = "gguf.";
    char *name = sfti_arena_array(&r->im->arena, sizeof prefix + key.len, 1);
    if (!name) return sfti_fail_memory(r->im->err, key.len);
    memcpy(name, prefix, sizeof prefix - 1);
    memcpy(name + sizeof prefix - 1, key.data, key.len);
    name[sizeof prefix - 1 + key.len] = '\0';
    return sfti_import_meta(r->im, name, value);
}

/* Whether the key says which part of the model the file is; so is then noted. */
static bool note_split(sfti_gguf_pairs *out, sft_span key, uint64_t value) {
    const struct {
        const char *key;
        uint64_t *to, value;
    } rows[] = {
        { "split.no", &out->split_number, value },
        { "split.count", &out->split_count, value ? value : 1 },
        { "split.tensors.count", &out->split_tensors, value },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!sft_span_equal(key, sft_span_cstr(rows[i].key))) continue;
        *rows[i].to = rows[i].value;
        return true;
    }
    return false;
}

/* Other keys that the reader itself needs. */
static sft_code note_scalar(pair_reader *r, sft_span key, const value_type *type, uint64_t value,
                            uint64_t at) {
    sfti_gguf_pairs *out = r->out;
    if (!sft_span_equal(key, sft_span_cstr("general.alignment"))) return SFT_OK;
    if (type->kind != VALUE_UNSIGNED || type->bytes != 4)
        return sfti_fail_byte(r->im->err, SFT_FOREIGN_SYNTAX, at,
                              "expected general.alignment as u32, found %s", type->name);
    if (value == 0 || (value & (value - 1)) != 0)
        return sfti_fail_byte(r->im->err, SFT_FOREIGN_SYNTAX, at,
                              "expected a power of two as general.alignment, found %llu",
                              (unsigned long long)value);
    out->alignment = value;
    return SFT_OK;
}

static sft_code read_scalar(pair_reader *r, sft_span key, const value_type *type) {
    char text[SFTI_DOUBLE_SIZE + 1];
    uint64_t value, at = r->c->at;
    sft_code code = sfti_gguf_number(r->c, type->bytes, &value);
    if (code) return code;
    if (type->kind == VALUE_BOOL && value > 1)
        return sfti_fail_byte(r->im->err, SFT_FOREIGN_SYNTAX, at,
                              "expected 0 or 1 as bool, found %llu", (unsigned long long)value);
    bool whole = type->kind == VALUE_UNSIGNED || type->kind == VALUE_SIGNED;
    /* what one part says of itself is not true of all parts together */
    if (whole && note_split(r->out, key, value)) return SFT_OK;
    code = note_scalar(r, key, type, value, at);
    if (code || !r->report) return code;
    uint64_t sign = UINT64_C(1) << (8 * type->bytes - 1);
    bool negative = type->kind == VALUE_SIGNED && (value & sign);
    sft_span shown = { text, 0 };
    if (type->kind == VALUE_FLOAT) {
        sft_dtype dtype = type->bytes == 4 ? SFT_F32 : SFT_F64;
        shown.len = sfti_double_text(sfti_float_value(sfti_float_form_of(dtype), value), text);
    } else if (type->kind == VALUE_BOOL) {
        shown = sft_span_cstr(value ? "true" : "false");
    } else {
        text[0] = '-';
        if (negative) value = 0 - ((value ^ sign) - sign);
        shown.len = negative + sfti_uint_text(value, 0, text + negative);
    }
    return put_pair(r, key, shown);
}

/* ── Strings and arrays ── */

static sft_code leave_value(pair_reader *r, sft_span key, uint64_t count, uint64_t bytes,
                            const char *what) {
    if (!r->report) return SFT_OK;
    return sfti_import_leave(r->im, SFT_IMPORT_LEFT_VALUE, key, count ? count : 1, bytes, what);
}

static sft_code read_string(pair_reader *r, sft_span key) {
    uint64_t at = r->c->at;
    sft_span text;
    sft_code code = sfti_gguf_string(r->c, r->report ? MOST_STRING : 0, &text);
    if (code || !r->report) return code;
    if (sft_span_equal(key, sft_span_cstr("general.architecture"))) r->out->is_model = true;
    if (!text.data) return leave_value(r, key, 1, r->c->at - at - 8, "a string of over 1 MiB");
    if (sfti_utf8_check(text.data, text.len) < text.len)
        return leave_value(r, key, 1, text.len, "a string that is not UTF-8");
    return put_pair(r, key, text);
}

/* Arrays of arrays are skipped without recursion: left[depth] arrays are still to come at each
 * depth. *type and *count: of the outermost. */
static sft_code skip_array(pair_reader *r, const value_type **type, uint64_t *count) {
    uint64_t left[MOST_NESTING] = { 1 }, n, bytes;
    const value_type *of = NULL;
    sft_code code = SFT_OK;
    size_t depth = 0;
    bool outermost = true;
    while (!code) {
        while (depth > 0 && left[depth] == 0) depth--;
        if (left[depth] == 0) return SFT_OK;
        left[depth]--;
        uint64_t at = r->c->at;
        code = read_type(r, &of);
        if (!code) code = sfti_gguf_number(r->c, 8, &n);
        if (code) return code;
        if (outermost) *type = of, *count = n, outermost = false;
        if (of->kind == VALUE_STRING) {
            sft_span none;
            while (!code && n--) code = sfti_gguf_string(r->c, 0, &none);
        } else if (of->kind == VALUE_ARRAY) {
            if (++depth == MOST_NESTING)
                return sfti_fail_byte(r->im->err, SFT_FOREIGN_NESTING, at,
                                      "expected arrays nested less than %d deep, found more",
                                      MOST_NESTING);
            left[depth] = n;
        } else {
            code = sfti_gguf_skip(r->c, sfti_mul(n, of->bytes, &bytes) ? bytes : UINT64_MAX);
        }
    }
    return code;
}

/* ── Shapes ── */

#define SHAPE_PREFIX "comfy.gguf.orig_shape."

static bool is_shape_key(sft_span key) {
    size_t len = sizeof SHAPE_PREFIX - 1;
    return key.len > len && memcmp(key.data, SHAPE_PREFIX, len) == 0;
}

static sft_code read_dims(pair_reader *r, const value_type *of, const sfti_gguf_shape *shape) {
    uint64_t sign = UINT64_C(1) << (8 * of->bytes - 1);
    for (uint32_t d = 0; d < shape->rank; d++) {
        uint64_t at = r->c->at;
        sft_code code = sfti_gguf_number(r->c, of->bytes, &shape->dims[d]);
        if (code) return code;
        if ((of->kind == VALUE_SIGNED || of->bytes == 8) && (shape->dims[d] & sign))
            return sfti_fail_tensor(r->im->err, SFT_FOREIGN_SYNTAX, at, shape->name,
                                    "expected an original shape of numbers from 0 to 2^63 - 1, "
                                    "found another one");
    }
    return SFT_OK;
}

static sft_code read_original_shape(pair_reader *r, const gguf_key *key, const value_type *type) {
    sfti_gguf_pairs *out = r->out;
    const value_type *of = type;
    uint64_t count = 0;
    bool array = type->kind == VALUE_ARRAY;
    size_t len = sizeof SHAPE_PREFIX - 1;
    sfti_gguf_shape *shapes = sfti_arena_grow(&r->im->arena, out->shapes, out->shape_count, 1,
                                              &out->shape_cap, sizeof *shapes);
    if (!shapes) return sfti_fail_memory(r->im->err, sizeof *shapes);
    out->shapes = shapes;
    sfti_gguf_shape *shape = &shapes[out->shape_count++];
    *shape = (sfti_gguf_shape){ .key = key->name, .at = key->at,
                                .name = { key->name.data + len, key->name.len - len } };
    sft_code code = array ? read_type(r, &of) : SFT_OK;
    if (!code && array) code = sfti_gguf_number(r->c, 8, &count);
    if (code) return code;
    if (!r->report)
        return sfti_fail_tensor(r->im->err, SFT_FOREIGN_AMBIGUOUS, key->at, shape->name,
                                "expected original shapes in the first part, found one in another");
    if (!array || (of->kind != VALUE_UNSIGNED && of->kind != VALUE_SIGNED))
        return sfti_fail_tensor(r->im->err, SFT_FOREIGN_SYNTAX, key->at, shape->name,
                                "expected its original shape as an array of integers, found %s%s",
                                array ? "an array of " : "", of->name);
    if (count > SFT_MAX_RANK)
        return sfti_fail_tensor(r->im->err, SFT_RANK_TOO_LARGE, key->at, shape->name,
                                "expected an original shape of at most %d dimensions, found %llu",
                                SFT_MAX_RANK, (unsigned long long)count);
    shape->rank = (uint32_t)count;
    shape->dims = sfti_arena_array(&r->im->arena, count, sizeof *shape->dims);
    return shape->dims ? read_dims(r, of, shape) : sfti_fail_memory(r->im->err, count);
}

/* ── Keys ── */

static sft_code read_key(pair_reader *r, gguf_key *key) {
    const char *wrong = NULL;
    key->at = r->c->at;
    sft_code code = sfti_gguf_string(r->c, MOST_KEY, &key->name);
    if (code) return code;
    sft_span name = key->name;
    if (!name.data) wrong = "a longer one";
    else if (name.len == 0) wrong = "an empty one";
    else if (memchr(name.data, '\0', name.len)) wrong = "one with a NUL";
    else if (sfti_utf8_check(name.data, name.len) < name.len) wrong = "bytes that are not UTF-8";
    if (!wrong) return SFT_OK;
    return sfti_fail_byte(r->im->err, SFT_FOREIGN_SYNTAX, key->at,
                          "expected a key of 1 to %d bytes, found %s", MOST_KEY, wrong);
}

static sft_code read_pair(pair_reader *r, gguf_key *key) {
    const value_type *type = NULL;
    sft_code code = read_key(r, key);
    if (!code) code = read_type(r, &type);
    if (code) return code;
    if (is_shape_key(key->name)) return read_original_shape(r, key, type);
    if (type->kind == VALUE_STRING || type->kind == VALUE_ARRAY) {
        if (sft_span_equal(key->name, sft_span_cstr("general.alignment")))
            return sfti_fail_byte(r->im->err, SFT_FOREIGN_SYNTAX, key->at,
                                  "expected general.alignment as u32, found %s", type->name);
    }
    if (type->kind == VALUE_STRING) return read_string(r, key->name);
    if (type->kind != VALUE_ARRAY) return read_scalar(r, key->name, type);
    char what[40];
    uint64_t at = r->c->at, count = 0;
    code = skip_array(r, &type, &count);
    if (code) return code;
    (void)snprintf(what, sizeof what, "an array of %s", type->name);
    return leave_value(r, key->name, count, r->c->at - at, what);
}

static int compare_pair_keys(const void *ctx, uint32_t a, uint32_t b) {
    const gguf_key *keys = ctx;
    return sfti_bytes_compare(keys[a].name, keys[b].name);
}

static sft_code check_unique(pair_reader *r, size_t count) {
    uint32_t *order = sfti_arena_sorted(&r->im->arena, count, compare_pair_keys, r->keys);
    if (!order) return sfti_fail_memory(r->im->err, count * sizeof *order);
    for (size_t i = 1; i < count; i++) {
        const gguf_key *key = &r->keys[order[i]];
        if (!sft_span_equal(key->name, r->keys[order[i - 1]].name)) continue;
        return sfti_fail_byte(r->im->err, SFT_FOREIGN_AMBIGUOUS, key->at,
                              "expected each key once, found \"%.*s\" twice",
                              SFTI_CLIP(key->name, 200));
    }
    return SFT_OK;
}

sft_code sfti_gguf_read_pairs(sfti_gguf_cursor *c, uint64_t count, bool report,
                              sfti_gguf_pairs *out) {
    pair_reader r = { .c = c, .im = c->im, .report = report, .out = out };
    size_t cap = 0;
    *out = (sfti_gguf_pairs){ .alignment = 32, .split_count = 1, .split_tensors = UINT64_MAX };
    if (count > MOST_PAIRS)
        return sfti_fail_byte(c->im->err, SFT_FOREIGN_TABLE, c->at - 8,
                              "expected at most %d key-value pairs, found %llu", MOST_PAIRS,
                              (unsigned long long)count);
    for (size_t i = 0; i < count; i++) {
        gguf_key *keys = sfti_arena_grow(&c->im->arena, r.keys, i, 1, &cap, sizeof *keys);
        if (!keys) return sfti_fail_memory(c->im->err, sizeof *keys);
        r.keys = keys;
        sft_code code = read_pair(&r, &keys[i]);
        if (code) return code;
    }
    return check_unique(&r, (size_t)count);
}
