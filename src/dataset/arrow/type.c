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

/* Truth values, a byte each. */
static bool type_is_bool8(const struct ArrowSchema *schema) {
    return schema->format && strcmp(schema->format, "c") == 0 &&
           type_is_extension(schema, "arrow.bool8");
}

const char *const sfti_arrow_texts[3] = { "u", "U", "vu" };

bool sfti_arrow_has_format(const struct ArrowSchema *schema, const char *const formats[3]) {
    const char *format = schema->dictionary ? schema->dictionary->format : schema->format;
    for (int i = 0; format && i < 3; i++)
        if (strcmp(format, formats[i]) == 0) return true;
    return false;
}

/* ── Formats ── */

typedef struct format_leaf {
    const char *format, *text;
    sfti_arrow_leaf leaf;
    sft_dtype dtype;
    uint32_t bytes;
    sfti_arrow_width width;
} format_leaf;

#define NUMBER(format, text, dtype, bytes) \
    { format, text, SFTI_LEAF_NUMBER, dtype, bytes, SFTI_ARROW_32 }
#define BYTES(format, text, width) { format, text, SFTI_LEAF_BYTES, SFT_U8, 1, width }
static const format_leaf format_leaves[] = { /* of a dtype, its plain numbers come first */
    { "b", "bool", SFTI_LEAF_BITS, SFT_BOOL, 1, SFTI_ARROW_32 },
    NUMBER("c", "int8", SFT_I8, 1),
    NUMBER("C", "uint8", SFT_U8, 1),
    NUMBER("s", "int16", SFT_I16, 2),
    NUMBER("S", "uint16", SFT_U16, 2),
    NUMBER("i", "int32", SFT_I32, 4),
    NUMBER("I", "uint32", SFT_U32, 4),
    NUMBER("l", "int64", SFT_I64, 8),
    NUMBER("L", "uint64", SFT_U64, 8),
    NUMBER("e", "halffloat", SFT_F16, 2),
    NUMBER("f", "float", SFT_F32, 4),
    NUMBER("g", "double", SFT_F64, 8),
    NUMBER("tdD", "date32[day]", SFT_I32, 4),
    NUMBER("tdm", "date64[ms]", SFT_I64, 8),
    NUMBER("tts", "time32[s]", SFT_I32, 4),
    NUMBER("ttm", "time32[ms]", SFT_I32, 4),
    NUMBER("ttu", "time64[us]", SFT_I64, 8),
    NUMBER("ttn", "time64[ns]", SFT_I64, 8),
    NUMBER("tDs", "duration[s]", SFT_I64, 8),
    NUMBER("tDm", "duration[ms]", SFT_I64, 8),
    NUMBER("tDu", "duration[us]", SFT_I64, 8),
    NUMBER("tDn", "duration[ns]", SFT_I64, 8),
    BYTES("u", "string", SFTI_ARROW_32),
    BYTES("z", "binary", SFTI_ARROW_32),
    BYTES("U", "large_string", SFTI_ARROW_64),
    BYTES("Z", "large_binary", SFTI_ARROW_64),
    BYTES("vu", "string_view", SFTI_ARROW_VIEW),
    BYTES("vz", "binary_view", SFTI_ARROW_VIEW),
    { "+s", "struct", SFTI_LEAF_STRUCT, SFT_U8, 1, SFTI_ARROW_32 },
};
/* Formats with parameters, by prefix. */
static const format_leaf format_stamps[] = {
    NUMBER("tss:", "timestamp[s", SFT_I64, 8),
    NUMBER("tsm:", "timestamp[ms", SFT_I64, 8),
    NUMBER("tsu:", "timestamp[us", SFT_I64, 8),
    NUMBER("tsn:", "timestamp[ns", SFT_I64, 8),
};
static const format_leaf format_bytes = NUMBER("w:", "fixed_size_binary", SFT_U8, 0);
static const format_leaf format_decimals[] = { /* by bytes */
    NUMBER("d:", "decimal32", SFT_I32, 4),
    NUMBER("d:", "decimal64", SFT_I64, 8),
    NUMBER("d:", "decimal128", SFT_U8, 16),
    NUMBER("d:", "decimal256", SFT_U8, 32),
};

const char *sfti_ds_type_name(sft_dtype dtype) {
    for (size_t i = 0; i < sizeof format_leaves / sizeof *format_leaves; i++)
        if (format_leaves[i].dtype == dtype) return format_leaves[i].text;
    return sft_dtype_describe(dtype)->name;
}

static bool text_begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* "10,2" and "10,-2,256": precision, scale and bits (128 without). */
static const format_leaf *decimal_find(const char *format, sft_span *parameters) {
    uint64_t number[3] = { 0, 0, 128 };
    size_t count = 0;
    const char *at = format + 2, *end;
    *parameters = (sft_span){ at, 0 };
    for (;; at = end + 1) {
        end = strchr(at, ',');
        size_t len = end ? (size_t)(end - at) : strlen(at), sign = count == 1 && *at == '-';
        if (count == 3 || !sfti_text_uint((sft_span){ at + sign, len - sign }, &number[count]))
            return NULL;
        if (++count == 2) parameters->len = (size_t)(at + len - parameters->data);
        if (!end) break;
    }
    for (size_t i = 0; count >= 2 && i < sizeof format_decimals / sizeof *format_decimals; i++)
        if (number[2] == UINT64_C(32) << i) return &format_decimals[i];
    return NULL;
}

/* Names of time zones: what stands in a type's text is not mistaken for the end of it. */
static bool zone_plain(const char *zone) {
    static const char more[] = "+-_/:";
    for (; *zone; zone++)
        if (!(*zone >= '0' && *zone <= '9') && !(*zone >= 'a' && *zone <= 'z') &&
            !(*zone >= 'A' && *zone <= 'Z') && !strchr(more, *zone))
            return false;
    return true;
}

/* NULL for formats without a place. parameters: behind the prefix, where there are any. */
static const format_leaf *leaf_find(const char *format, sft_span *parameters) {
    *parameters = (sft_span){ NULL, 0 };
    for (size_t i = 0; i < sizeof format_leaves / sizeof *format_leaves; i++)
        if (strcmp(format_leaves[i].format, format) == 0) return &format_leaves[i];
    for (size_t i = 0; i < sizeof format_stamps / sizeof *format_stamps; i++)
        if (text_begins(format, format_stamps[i].format)) {
            *parameters = sft_span_cstr(format + 4);
            return zone_plain(format + 4) ? &format_stamps[i] : NULL;
        }
    if (text_begins(format, "d:")) return decimal_find(format, parameters);
    if (!text_begins(format, "w:")) return NULL;
    *parameters = sft_span_cstr(format + 2);
    return &format_bytes;
}

static sft_code type_refused(const struct ArrowSchema *schema, const char *why, sft_error *err) {
    return sfti_fail(err, SFT_COLUMN_TYPE, "%s (Arrow format \"%s\")", why,
                     schema->format ? schema->format : "");
}

bool sfti_arrow_list_read(const char *format, sfti_arrow_list *out) {
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

/* Formats without a place in a dataset, by prefix. */
static const char *const format_others[][2] = {
    { "n", "null" }, { "+m", "map" },       { "+r", "run_end_encoded" }, { "d:", "decimal" },
    { "ts", "timestamp" }, { "ti", "interval" }, { "+u", "union" },
};

typedef struct text_run {
    char *at, *end;
    size_t len; /* of all, also of what does not fit */
} text_run;

static void text_bytes(text_run *t, const char *text, size_t len) {
    t->len += len;
    for (; len && t->at < t->end; len--) *t->at++ = *text++;
}

static void text_put(text_run *t, const char *text) { text_bytes(t, text, strlen(text)); }

static void text_leaf(text_run *t, const char *format) {
    sft_span parameters = { NULL, 0 };
    const format_leaf *leaf = format ? leaf_find(format, &parameters) : NULL;
    if (!leaf) {
        const char *text = "unknown";
        for (size_t i = 0; format && i < sizeof format_others / sizeof *format_others; i++)
            if (text_begins(format, format_others[i][0])) text = format_others[i][1];
        text_put(t, text);
        return;
    }
    text_put(t, leaf->text);
    if (!parameters.data) return;
    const bool decimal = *format == 'd', stamp = *format == 't';
    if (stamp && parameters.len) text_put(t, ", tz=");
    if (!stamp) text_put(t, decimal ? "(" : "[");
    for (size_t i = 0; i < parameters.len; i++) {
        text_bytes(t, parameters.data + i, 1);
        if (decimal && parameters.data[i] == ',') text_put(t, " ");
    }
    text_put(t, decimal ? ")" : "]");
}

/* A field's name as it is, or in quotes as in JSON. */
static void text_name(text_run *t, const char *name) {
    static const char digits[] = "0123456789abcdef";
    bool plain = *name != '\0';
    for (const char *c = name; *c; c++)
        plain = plain && (*c == '_' || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                          (*c >= '0' && *c <= '9'));
    if (plain) {
        text_put(t, name);
        return;
    }
    text_put(t, "\"");
    for (const char *c = name; *c; c++) {
        const uint8_t byte = (uint8_t)*c;
        if (byte < 0x20) {
            text_put(t, (char[]){ '\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15], 0 });
            continue;
        }
        if (*c == '"' || *c == '\\') text_put(t, "\\");
        text_bytes(t, c, 1);
    }
    text_put(t, "\"");
}

/* A type whose children are being put. */
typedef struct text_frame {
    const struct ArrowSchema *schema;
    sfti_arrow_list list;
    bool fields;
    int64_t next;
} text_frame;

static void text_close(text_run *t, const text_frame *frame) {
    char digits[SFTI_UINT_SIZE + 1];
    text_put(t, ">");
    if (frame->fields || !frame->list.fixed) return;
    digits[sfti_uint_text(frame->list.length, 0, digits)] = '\0';
    text_put(t, "[");
    text_put(t, digits);
    text_put(t, "]");
}

/* Puts what a type begins with; whether its children follow. */
static bool text_open(text_run *t, const struct ArrowSchema *schema, bool dictionaries,
                      const char *name, text_frame *frame) {
    const char *format = schema->format;
    const struct ArrowSchema *value = schema->dictionary ? schema->dictionary : schema;
    *frame = (text_frame){ .schema = schema };
    frame->fields = format && strcmp(format, "+s") == 0;
    const bool list =
        format && sfti_arrow_list_read(format, &frame->list) && schema->n_children == 1;
    if (schema->dictionary || !(frame->fields || list) ||
        schema->n_children < 0 || (schema->n_children && !schema->children)) {
        if (schema->dictionary && dictionaries) text_put(t, "dictionary of ");
        if (name) text_put(t, name);
        else text_leaf(t, type_is_bool8(value) ? "b" : value->format);
        return false;
    }
    const sfti_arrow_list *l = &frame->list;
    if (!frame->fields && l->large) text_put(t, "large_");
    text_put(t, frame->fields ? "struct<" : l->fixed ? "fixed_size_list<"
                            : l->view ? "list_view<" : "list<");
    return true;
}

size_t sfti_arrow_type_put(const struct ArrowSchema *schema, bool dictionaries, const char *leaf,
                           char *buffer, size_t size) {
    text_run t = { buffer, buffer + size - 1, 0 };
    text_frame stack[SFT_MAX_RANK];
    uint32_t depth = text_open(&t, schema, dictionaries, leaf, &stack[0]);
    while (depth) {
        text_frame *top = &stack[depth - 1];
        if (top->next == top->schema->n_children) {
            text_close(&t, top);
            depth--;
            continue;
        }
        const struct ArrowSchema *child = top->schema->children[top->next++];
        if (top->fields) {
            if (top->next > 1) text_put(&t, ", ");
            text_name(&t, child && child->name ? child->name : "");
            text_put(&t, ": ");
        }
        if (child && depth < SFT_MAX_RANK)
            depth += text_open(&t, child, dictionaries, leaf, &stack[depth]);
        else text_put(&t, "…");
    }
    *t.at = '\0';
    return t.len;
}

void sfti_arrow_type_text(const struct ArrowSchema *schema, char buffer[SFTI_ARROW_TEXT]) {
    (void)sfti_arrow_type_put(schema, true, NULL, buffer, SFTI_ARROW_TEXT);
}

/* ── fixed_shape_tensor ── */

#define SHAPE_NAME "arrow.fixed_shape_tensor"

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
        if (sfti_json_is(&json, "shape")) {
            if (!shape_dims(&json, dims, rank)) return false;
            found = true;
        } else if (sfti_json_is(&json, "permutation")) {
            if (!shape_dims(&json, order, &ordered)) return false;
        } else {
            sfti_json_next(&json);
            sfti_json_skip(&json);
        }
    }
    for (uint32_t i = 0; i < ordered; i++)
        if (order[i] != i) return false;
    return found && (!ordered || ordered == *rank) && json.type == SFTI_JSON_OBJECT_END;
}

static sft_code shape_dims_of(const struct ArrowSchema *schema, uint64_t dims[SFT_MAX_RANK],
                              uint32_t *rank, sft_error *err) {
    uint64_t elements;
    sfti_arrow_list list;
    sft_span text = arrow_metadata(schema, "ARROW:extension:metadata");
    if (!text.data || !shape_text(text, dims, rank))
        return type_refused(schema, "a fixed_shape_tensor without a shape, or permuted", err);
    sft_code code = sft_shape_size(SFT_U8, dims, *rank, &elements, NULL, err);
    if (code) return code;
    if (schema->dictionary ||
        !sfti_arrow_list_read(schema->format, &list) || !list.fixed || elements != list.length)
        return type_refused(schema, "a fixed_shape_tensor whose shape does not match its length",
                            err);
    return SFT_OK;
}

sft_code sfti_arrow_shapes_check(const struct ArrowSchema *schema, sft_error *err) {
    uint64_t dims[SFT_MAX_RANK];
    uint32_t rank;
    sfti_arrow_list list;
    for (const struct ArrowSchema *at = schema; at && at->format; at = at->children[0]) {
        sft_code code = type_is_extension(at, SHAPE_NAME) ? shape_dims_of(at, dims, &rank, err)
                                                          : SFT_OK;
        if (code) return code;
        if (at->dictionary || !sfti_arrow_list_read(at->format, &list) || at->n_children != 1 ||
            !at->children)
            break;
    }
    return SFT_OK;
}

static sft_code shape_read(const struct ArrowSchema *schema, sfti_arena *arena,
                           sfti_arrow_type *out, sft_error *err) {
    uint64_t dims[SFT_MAX_RANK];
    sft_code code = shape_dims_of(schema, dims, &out->rank, err);
    if (code) return code;
    if (out->depth != 1)
        return type_refused(schema, "a fixed_shape_tensor of lists", err);
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
    sft_span parameters, none;
    const format_leaf *row = value->format ? leaf_find(value->format, &parameters) : NULL;
    uint64_t width = 0;
    out->dictionary = at->dictionary != NULL;
    if (out->dictionary) {
        const format_leaf *key = at->format ? leaf_find(at->format, &none) : NULL;
        if (!key || key->leaf != SFTI_LEAF_NUMBER || key->format[1] || key->dtype == SFT_F16 ||
            key->dtype == SFT_F32 || key->dtype == SFT_F64 ||
            (row && row->leaf == SFTI_LEAF_STRUCT))
            return type_refused(at, "this kind of dictionary is not supported", err);
        out->key_bytes = key->bytes;
    }
    if (!row || (row->leaf == SFTI_LEAF_STRUCT && out->depth))
        return type_refused(value, "values of this type have no dtype", err);
    if (row == &format_bytes && (!sfti_text_uint(parameters, &width) || width > INT32_MAX))
        return type_refused(value, "expected the width of fixed-size bytes", err);
    out->leaf = row->leaf;
    out->dtype = row->dtype;
    out->bytes = width ? (uint32_t)width : row->bytes;
    out->opaque = row == &format_bytes || (row->leaf == SFTI_LEAF_NUMBER && row->bytes > 8);
    out->swapped = row != &format_bytes;
    out->width = row->width;
    if (type_is_bool8(value)) out->dtype = SFT_BOOL;
    return SFT_OK;
}

sft_code sfti_arrow_type_read(const struct ArrowSchema *schema, sfti_arena *arena,
                              sfti_arrow_type *out, sft_error *err) {
    const struct ArrowSchema *at = schema;
    memset(out, 0, sizeof *out);
    while (at->format && !at->dictionary &&
           sfti_arrow_list_read(at->format, &out->list[out->depth])) {
        if (at->n_children != 1 || !at->children || !at->children[0])
            return type_refused(at, "expected a list with one child", err);
        if (++out->depth == SFT_MAX_RANK)
            return type_refused(schema, "lists are nested too deep", err);
        at = at->children[0];
    }
    sft_code code = leaf_read(at, out, err);
    if (!code && out->leaf == SFTI_LEAF_BYTES && out->depth)
        return type_refused(at, "lists of text or bytes have no dtype", err);
    if (!code && out->opaque && out->depth)
        return type_refused(at, "lists of decimals or fixed-size bytes have no dtype", err);
    if (!code && type_is_extension(schema, SHAPE_NAME))
        code = shape_read(schema, arena, out, err);
    return code;
}
