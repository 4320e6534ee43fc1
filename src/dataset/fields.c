/* JSON objects are read by tables of their members. */
#include "dataset/fields.h"

#include "base/error.h"
#include "base/utf8.h"

#include <string.h>

sft_code sfti_fields_begin(sfti_fields *r, sft_span text) {
    size_t bad = sfti_utf8_check(text.data, text.len);
    if (bad != text.len)
        return sfti_fail_byte(r->err, r->code, bad, "expected UTF-8, found byte 0x%02x",
                              (unsigned)(uint8_t)text.data[bad]);
    sfti_json_begin(&r->json, text.data, text.len);
    return SFT_OK;
}

sft_code sfti_fields_wrong(const sfti_fields *r, const char *expected) {
    const sfti_json *json = &r->json;
    sft_span text = { json->begin, (size_t)(json->end - json->begin) };
    if (json->type == SFTI_JSON_ERROR)
        return sfti_fail_at(r->err, r->code, 0, text, json->error_at, json->why);
    return sfti_fail_at(r->err, r->code, 0, text, json->start, expected);
}

/* ── Values ── */

sft_code sfti_fields_text(sfti_fields *r, bool or_null, sft_span *out) {
    sfti_json_type type = sfti_json_next(&r->json);
    *out = (sft_span){ NULL, 0 };
    if (type == SFTI_JSON_NULL && or_null) return SFT_OK;
    if (type != SFTI_JSON_STRING)
        return sfti_fields_wrong(r, or_null ? "a string or null" : "a string");
    char *copy = sfti_arena_take(r->arena, r->json.text.len + 1);
    if (!copy) return sfti_fail_memory(r->err, r->json.text.len + 1);
    size_t len = sfti_json_decode(r->json.text, copy);
    copy[len] = '\0';
    *out = (sft_span){ copy, len };
    return SFT_OK;
}

/* ── Objects ── */

sft_code sfti_fields_read(sfti_fields *r, const sfti_field *rows, size_t count, void *out,
                          uint64_t *seen) {
    uint64_t found = 0;
    while (sfti_json_next(&r->json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(&r->json, r->arena);
        size_t i = 0;
        if (!key.data) return sfti_fail_memory(r->err, r->json.text.len);
        while (i < count && !sft_span_equal(key, sft_span_cstr(rows[i].name))) i++;
        if (i == count) {
            if (r->strict) return sfti_fields_wrong(r, "a known field");
            sfti_json_next(&r->json);
            sfti_json_skip(&r->json);
            continue;
        }
        if (found >> i & 1) return sfti_fields_wrong(r, "each field once");
        found |= UINT64_C(1) << i;

        const sfti_field_kind kind = rows[i].kind;
        const bool or_null = kind == SFTI_FIELD_UINT_NULL || kind == SFTI_FIELD_TEXT_NULL ||
                             kind == SFTI_FIELD_SHA256_NULL;
        void *at = (char *)out + rows[i].offset;
        sft_code code = SFT_OK;
        sft_span text = { NULL, 0 };
        switch (kind) {
        case SFTI_FIELD_TAKEN: break;
        case SFTI_FIELD_UINT:
        case SFTI_FIELD_UINT_NULL:
            if (sfti_json_next(&r->json) == SFTI_JSON_UINT) *(uint64_t *)at = r->json.value;
            else if (!or_null || r->json.type != SFTI_JSON_NULL)
                return sfti_fields_wrong(r, or_null ? "a whole number or null" : "a whole number");
            break;
        case SFTI_FIELD_TEXT:
        case SFTI_FIELD_TEXT_NULL: code = sfti_fields_text(r, or_null, at); break;
        case SFTI_FIELD_UUID:
            code = sfti_fields_text(r, false, &text);
            if (!code && text.len != 36) return sfti_fields_wrong(r, "a uuid");
            if (!code) memcpy(at, text.data, text.len + 1);
            break;
        case SFTI_FIELD_SHA256:
        case SFTI_FIELD_SHA256_NULL:
            code = sfti_fields_text(r, or_null, &text);
            if (!code && text.data && text.len != 64)
                return sfti_fields_wrong(r, or_null ? "64 hexadecimal digits or null"
                                                    : "64 hexadecimal digits");
            if (or_null) *(const char **)at = text.data;
            else if (!code) memcpy(at, text.data, text.len + 1);
        }
        if (!code && rows[i].take) code = rows[i].take(r, out);
        if (code) return code;
    }
    if (r->json.type != SFTI_JSON_OBJECT_END) return sfti_fields_wrong(r, "',' or '}'");
    for (size_t i = 0; i < count; i++)
        if (rows[i].required && !(found >> i & 1))
            return sfti_fail_byte(r->err, r->code, r->json.start,
                                  "expected the field \"%s\", found none", rows[i].name);
    if (seen) *seen = found;
    return SFT_OK;
}

/* ── Columns ── */

static sft_code entry_shape(sfti_fields *r, void *out) {
    sfti_ds_entry *e = out;
    uint64_t dims[SFT_MAX_RANK];
    sfti_json_type type = sfti_json_next(&r->json);
    if (type == SFTI_JSON_NULL) return SFT_OK;
    if (type != SFTI_JSON_ARRAY) return sfti_fields_wrong(r, "an array or null");
    while (sfti_json_next(&r->json) == SFTI_JSON_UINT && e->rank < SFT_MAX_RANK)
        dims[e->rank++] = r->json.value;
    if (r->json.type != SFTI_JSON_ARRAY_END)
        return sfti_fields_wrong(r, "an array of at most 64 whole numbers");
    uint64_t *shape = sfti_arena_array(r->arena, e->rank, sizeof *shape);
    if (!shape) return sfti_fail_memory(r->err, e->rank * sizeof *shape);
    if (e->rank) memcpy(shape, dims, e->rank * sizeof *shape);
    e->shape = shape;
    return SFT_OK;
}

static sft_code entry_flag(sfti_fields *r, bool *flag) {
    sfti_json_type type = sfti_json_next(&r->json);
    *flag = type == SFTI_JSON_TRUE;
    if (type == SFTI_JSON_TRUE || type == SFTI_JSON_FALSE) return SFT_OK;
    return sfti_fields_wrong(r, "true or false");
}

static sft_code entry_nullable(sfti_fields *r, void *out) {
    return entry_flag(r, &((sfti_ds_entry *)out)->nullable);
}

static sft_code entry_optional(sfti_fields *r, void *out) {
    return entry_flag(r, &((sfti_ds_entry *)out)->optional);
}

enum { ENTRY_DTYPE, ENTRY_SHAPE };
static const sfti_field entry_rows[] = {
    [ENTRY_DTYPE] = { "dtype", SFTI_FIELD_TEXT_NULL, offsetof(sfti_ds_entry, dtype), false, NULL },
    [ENTRY_SHAPE] = { "shape", SFTI_FIELD_TAKEN, 0, false, entry_shape },
    { "name", SFTI_FIELD_TEXT, offsetof(sfti_ds_entry, key), false, NULL },
    { "encoding", SFTI_FIELD_TEXT_NULL, offsetof(sfti_ds_entry, encoding), false, NULL },
    { "nullable", SFTI_FIELD_TAKEN, 0, false, entry_nullable },
    { "optional", SFTI_FIELD_TAKEN, 0, false, entry_optional },
    { "type", SFTI_FIELD_TEXT_NULL, offsetof(sfti_ds_entry, type), false, NULL },
};

sft_code sfti_fields_entry(sfti_fields *r, sfti_ds_entry *out) {
    uint64_t seen = 0;
    memset(out, 0, sizeof *out);
    sft_code code = sfti_fields_read(r, SFTI_FIELDS(entry_rows), out, &seen);
    out->whole = seen >> ENTRY_DTYPE & 1 && seen >> ENTRY_SHAPE & 1;
    return code;
}

sft_code sfti_fields_column(sfti_fields *r, const sfti_ds_entry *entry, sfti_ds_column *out) {
    *out = (sfti_ds_column){ .name = entry->key, .has_dtype = entry->dtype.data != NULL,
                             .has_shape = entry->shape != NULL, .rank = entry->rank,
                             .shape = entry->shape, .nullable = entry->nullable,
                             .optional = entry->optional, .type = entry->type };
    if (out->has_dtype && !sft_dtype_parse(entry->dtype, &out->dtype))
        return sfti_fields_wrong(r, "a known dtype of the column");
    if (!entry->encoding.data) return SFT_OK;
    for (int i = SFTI_ENCODING_LIST; i <= SFTI_ENCODING_UTF8; i++) {
        const char *name = sfti_ds_encoding_name((sfti_ds_encoding)i);
        if (sft_span_equal(entry->encoding, sft_span_cstr(name)))
            out->encoding = (sfti_ds_encoding)i;
    }
    if (!out->encoding) return sfti_fields_wrong(r, "a known encoding of the column");
    if (out->encoding == SFTI_ENCODING_NESTED) {
        if (out->type.len && !out->has_dtype && !out->has_shape) return SFT_OK;
        return sfti_fields_wrong(r, "a nested column with a type, without a dtype and a shape");
    }
    if (!out->has_dtype || out->has_shape ||
        (out->encoding != SFTI_ENCODING_LIST && out->dtype != SFT_U8))
        return sfti_fields_wrong(r, "a column of varying length with a dtype (U8 of text and "
                                    "bytes) and without a shape");
    return SFT_OK;
}
