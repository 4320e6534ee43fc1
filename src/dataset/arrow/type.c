/* Arrow's types: read from formats, and told to people. Tests: test_dataset_arrow.c. */
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "dataset/arrow/arrow.h"
#include "dataset/dataset.h"

#include <string.h>

/* ── Metadata: int32 count, then pairs of texts with int32 lengths, in the host's order ── */

static sft_span arrow_metadata(const struct ArrowSchema *schema, const char *wanted) {
    const char *at = schema->metadata;
    int32_t count = 0, len;
    if (at) memcpy(&count, at, sizeof count), at += sizeof count;
    for (int32_t i = 0; i < count; i++) {
        sft_span pair[2];
        for (int k = 0; k < 2; k++) {
            memcpy(&len, at, sizeof len);
            if (len < 0) return (sft_span){ NULL, 0 };
            pair[k] = (sft_span){ at + sizeof len, (size_t)len };
            at += sizeof len + (size_t)len;
        }
        if (sft_span_equal(pair[0], sft_span_cstr(wanted))) return pair[1];
    }
    return (sft_span){ NULL, 0 };
}

static bool type_is_extension(const struct ArrowSchema *schema, const char *name) {
    return sft_span_equal(arrow_metadata(schema, "ARROW:extension:name"), sft_span_cstr(name));
}

const char *const sfti_arrow_texts[3] = { "u", "U", "vu" };

bool sfti_arrow_has_format(const struct ArrowSchema *schema, const char *const formats[3]) {
    const char *format = schema->dictionary ? schema->dictionary->format : schema->format;
    for (int i = 0; format && i < 3; i++)
        if (strcmp(format, formats[i]) == 0) return true;
    return false;
}

/* ── Formats ── */

static const struct format_leaf {
    const char *format, *text;
    sfti_arrow_leaf leaf;
    sft_dtype dtype;
    uint32_t bytes;
    sfti_arrow_width width;
} format_leaves[] = {
    { "b", "bool", SFTI_LEAF_BITS, SFT_BOOL, 1, SFTI_ARROW_32 },
    { "c", "int8", SFTI_LEAF_NUMBER, SFT_I8, 1, SFTI_ARROW_32 },
    { "C", "uint8", SFTI_LEAF_NUMBER, SFT_U8, 1, SFTI_ARROW_32 },
    { "s", "int16", SFTI_LEAF_NUMBER, SFT_I16, 2, SFTI_ARROW_32 },
    { "S", "uint16", SFTI_LEAF_NUMBER, SFT_U16, 2, SFTI_ARROW_32 },
    { "i", "int32", SFTI_LEAF_NUMBER, SFT_I32, 4, SFTI_ARROW_32 },
    { "I", "uint32", SFTI_LEAF_NUMBER, SFT_U32, 4, SFTI_ARROW_32 },
    { "l", "int64", SFTI_LEAF_NUMBER, SFT_I64, 8, SFTI_ARROW_32 },
    { "L", "uint64", SFTI_LEAF_NUMBER, SFT_U64, 8, SFTI_ARROW_32 },
    { "e", "halffloat", SFTI_LEAF_NUMBER, SFT_F16, 2, SFTI_ARROW_32 },
    { "f", "float", SFTI_LEAF_NUMBER, SFT_F32, 4, SFTI_ARROW_32 },
    { "g", "double", SFTI_LEAF_NUMBER, SFT_F64, 8, SFTI_ARROW_32 },
    { "u", "string", SFTI_LEAF_BYTES, SFT_U8, 1, SFTI_ARROW_32 },
    { "z", "binary", SFTI_LEAF_BYTES, SFT_U8, 1, SFTI_ARROW_32 },
    { "U", "large_string", SFTI_LEAF_BYTES, SFT_U8, 1, SFTI_ARROW_64 },
    { "Z", "large_binary", SFTI_LEAF_BYTES, SFT_U8, 1, SFTI_ARROW_64 },
    { "vu", "string_view", SFTI_LEAF_BYTES, SFT_U8, 1, SFTI_ARROW_VIEW },
    { "vz", "binary_view", SFTI_LEAF_BYTES, SFT_U8, 1, SFTI_ARROW_VIEW },
    { "+s", "struct", SFTI_LEAF_STRUCT, SFT_U8, 1, SFTI_ARROW_32 },
};

static const struct format_leaf *leaf_find(const char *format) {
    for (size_t i = 0; i < sizeof format_leaves / sizeof *format_leaves; i++)
        if (strcmp(format_leaves[i].format, format) == 0) return &format_leaves[i];
    return NULL;
}

static sft_code type_refused(const struct ArrowSchema *schema, const char *why, sft_error *err) {
    return sfti_fail(err, SFT_COLUMN_TYPE, "%s (Arrow format \"%s\")", why,
                     schema->format ? schema->format : "");
}

static bool list_read(const char *format, sfti_arrow_list *out) {
    *out = (sfti_arrow_list){ false, false, false, 0 };
    if (strncmp(format, "+w:", 3) == 0) {
        out->fixed = true;
        return sfti_text_uint(sft_span_cstr(format + 3), &out->length) &&
               out->length <= INT32_MAX;
    }
    out->view = format[0] == '+' && format[1] == 'v';
    const char *last = format + (out->view ? 2 : 1);
    if (format[0] != '+' || (*last != 'l' && *last != 'L') || last[1]) return false;
    out->large = *last == 'L';
    return true;
}

/* ── Types for people ── */

/* Formats without a dtype; those with parameters match by prefix. */
static const struct format_other {
    const char *format, *text;
    bool parameters;
} format_others[] = {
    { "n", "null", false },
    { "+m", "map", false },
    { "+r", "run_end_encoded", false },
    { "w:", "fixed_size_binary", true },
    { "d:", "decimal", true },
    { "td", "date", true },
    { "tt", "time", true },
    { "ts", "timestamp", true },
    { "tD", "duration", true },
    { "ti", "interval", true },
    { "+u", "union", true },
};

static const char *text_leaf(const char *format) {
    const struct format_leaf *leaf = format ? leaf_find(format) : NULL;
    if (leaf) return leaf->text;
    for (size_t i = 0; format && i < sizeof format_others / sizeof *format_others; i++) {
        const struct format_other *row = &format_others[i];
        size_t len = strlen(row->format);
        if (strncmp(row->format, format, len) == 0 && (row->parameters || !format[len]))
            return row->text;
    }
    return "unknown";
}

typedef struct text_run {
    char *at, *end;
} text_run;

static void text_put(text_run *t, const char *text) {
    while (*text && t->at < t->end) *t->at++ = *text++;
    *t->at = '\0';
}

/* Lists and their element type, a struct without its fields. Returns the innermost type. */
static const struct ArrowSchema *text_flat(text_run *t, const struct ArrowSchema *at) {
    sfti_arrow_list list[SFT_MAX_RANK];
    char digits[SFTI_UINT_SIZE + 1];
    uint32_t depth = 0;
    while (depth < SFT_MAX_RANK && at->format && !at->dictionary &&
           list_read(at->format, &list[depth]) && at->n_children == 1 && at->children &&
           at->children[0]) {
        const sfti_arrow_list *l = &list[depth++];
        if (l->large) text_put(t, "large_");
        text_put(t, l->fixed ? "fixed_size_list<" : l->view ? "list_view<" : "list<");
        at = at->children[0];
    }
    if (at->dictionary) text_put(t, "dictionary of ");
    text_put(t, text_leaf(at->dictionary ? at->dictionary->format : at->format));
    while (depth > 0) {
        text_put(t, ">");
        if (!list[--depth].fixed) continue;
        digits[sfti_uint_text(list[depth].length, 0, digits)] = '\0';
        text_put(t, "[");
        text_put(t, digits);
        text_put(t, "]");
    }
    return at;
}

void sfti_arrow_type_text(const struct ArrowSchema *schema, char buffer[SFTI_ARROW_TEXT]) {
    text_run t = { buffer, buffer + SFTI_ARROW_TEXT - 1 };
    *buffer = '\0';
    if (text_flat(&t, schema) != schema || !schema->format || strcmp(schema->format, "+s") != 0)
        return;
    text_put(&t, "<");
    for (int64_t i = 0; i < schema->n_children; i++) {
        const struct ArrowSchema *child = schema->children[i];
        if (i > 0) text_put(&t, ", ");
        text_put(&t, child->name ? child->name : "");
        text_put(&t, ": ");
        (void)text_flat(&t, child);
    }
    text_put(&t, ">");
}

/* ── fixed_shape_tensor ── */

static bool shape_dims(sfti_json *json, uint64_t *dims, uint32_t *rank) {
    *rank = 0;
    if (sfti_json_next(json) != SFTI_JSON_ARRAY) return false;
    while (sfti_json_next(json) == SFTI_JSON_UINT && *rank < SFT_MAX_RANK - 1)
        dims[(*rank)++] = json->value;
    return json->type == SFTI_JSON_ARRAY_END;
}

/* A permutation changes the order of elements in memory: only the identity is accepted. */
static bool shape_text(sft_span text, uint64_t *dims, uint32_t *rank) {
    sfti_json json;
    bool found = false;
    uint64_t order[SFT_MAX_RANK];
    uint32_t ordered = 0;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return false;
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        if (sft_span_equal(json.text, sft_span_cstr("shape"))) {
            found = shape_dims(&json, dims, rank);
        } else if (sft_span_equal(json.text, sft_span_cstr("permutation"))) {
            if (!shape_dims(&json, order, &ordered)) return false;
        } else {
            sfti_json_next(&json);
            sfti_json_skip(&json);
        }
    }
    for (uint32_t i = 0; i < ordered; i++)
        if (order[i] != i) return false;
    return found && json.type == SFTI_JSON_OBJECT_END;
}

static sft_code shape_read(const struct ArrowSchema *schema, sfti_arena *arena,
                           sfti_arrow_type *out, sft_error *err) {
    uint64_t dims[SFT_MAX_RANK], elements;
    sft_span text = arrow_metadata(schema, "ARROW:extension:metadata");
    if (!text.data || !shape_text(text, dims, &out->rank))
        return type_refused(schema, "a fixed_shape_tensor without a shape, or permuted", err);
    sft_code code = sft_shape_size(SFT_U8, dims, out->rank, &elements, NULL, err);
    if (code) return code;
    if (out->depth != 1 || elements != out->list[0].length)
        return type_refused(schema, "a fixed_shape_tensor whose shape does not match its length",
                            err);
    uint64_t *shape = sfti_arena_array(arena, out->rank, sizeof *shape);
    if (!shape) return sfti_fail_memory(err, out->rank * sizeof *shape);
    memcpy(shape, dims, out->rank * sizeof *shape);
    out->shape = shape;
    out->has_shape = true;
    return SFT_OK;
}

/* ── A column ── */

static sft_code leaf_read(const struct ArrowSchema *at, sfti_arrow_type *out, sft_error *err) {
    const struct ArrowSchema *value = at->dictionary ? at->dictionary : at;
    const struct format_leaf *row = value->format ? leaf_find(value->format) : NULL;
    out->dictionary = at->dictionary != NULL;
    if (out->dictionary) {
        const struct format_leaf *key = at->format ? leaf_find(at->format) : NULL;
        if (!key || key->leaf != SFTI_LEAF_NUMBER || key->dtype == SFT_F16 ||
            key->dtype == SFT_F32 || key->dtype == SFT_F64 ||
            (row && row->leaf == SFTI_LEAF_STRUCT))
            return type_refused(at, "this kind of dictionary is not supported", err);
        out->key_bytes = key->bytes;
    }
    if (!row || (row->leaf == SFTI_LEAF_STRUCT && out->depth))
        return type_refused(value, "values of this type have no dtype", err);
    out->leaf = row->leaf;
    out->dtype = row->dtype;
    out->bytes = row->bytes;
    out->width = row->width;
    if (type_is_extension(value, "arrow.bool8") && row->dtype == SFT_I8)
        out->dtype = SFT_BOOL;
    return SFT_OK;
}

sft_code sfti_arrow_type_read(const struct ArrowSchema *schema, sfti_arena *arena,
                              sfti_arrow_type *out, sft_error *err) {
    const struct ArrowSchema *at = schema;
    memset(out, 0, sizeof *out);
    while (at->format && !at->dictionary && list_read(at->format, &out->list[out->depth])) {
        if (at->n_children != 1 || !at->children || !at->children[0])
            return type_refused(at, "expected a list with one child", err);
        if (++out->depth == SFT_MAX_RANK)
            return type_refused(schema, "lists are nested too deep", err);
        at = at->children[0];
    }
    sft_code code = leaf_read(at, out, err);
    if (!code && out->leaf == SFTI_LEAF_BYTES && out->depth)
        return type_refused(at, "lists of text or bytes have no dtype", err);
    if (!code && type_is_extension(schema, "arrow.fixed_shape_tensor"))
        code = shape_read(schema, arena, out, err);
    return code;
}
