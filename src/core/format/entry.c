/* Reads the entry of one tensor, however it is spelled. Tests: test_header.c. */
#include "format/header.h"

#include "base/error.h"

#include <string.h>

typedef enum entry_field {
    FIELD_DTYPE,
    FIELD_SHAPE,
    FIELD_OFFSETS,
    FIELD_LEGACY_OFFSETS,
    FIELD_UNKNOWN
} entry_field;

static const char *const field_names[] = { "dtype", "shape", "data_offsets", "offsets" };

/* One entry being read. */
typedef struct entry_parser {
    sfti_parser *r;
    sfti_json json;
    sfti_json offsets; /* on the key `offsets` */
    sft_span name;
    const char *at; /* of its value */
    unsigned seen;  /* a bit a field */
    sft_tensor tensor;
    sft_scan_entry scan;
} entry_parser;

static const char *event_at(const entry_parser *e) { return e->json.begin + e->json.start; }

/* The failure of the last event: one of grammar, or the code given. Always false. */
static bool entry_fail(entry_parser *e, sft_code code, const char *expected) {
    if (e->json.type == SFTI_JSON_ERROR) {
        sft_error error;
        sfti_json_fail(&e->json, SFTI_PREFIX, &error);
        sfti_error_tensor(&error, e->name);
        sfti_report(e->r, &error);
        e->r->fatal = true;
        return false;
    }
    sfti_report_at(e->r, code, event_at(e), &e->name, expected);
    return false;
}

/* Refused from a level on: false if the reading is to stop here. */
static bool entry_from_level(entry_parser *e, sft_level level, sft_code code,
                             const char *expected) {
    if (e->r->limits->level < level) return true;
    return sfti_report_at(e->r, code, event_at(e), &e->name, expected);
}

/* ── dtype ── */

/* Names of the layout of 2022, as torch and numpy spell dtypes. */
static const struct {
    const char *name;
    sft_dtype dtype;
} legacy_dtypes[] = {
    { "bool", SFT_BOOL },     { "uint8", SFT_U8 },      { "int8", SFT_I8 },
    { "int16", SFT_I16 },     { "uint16", SFT_U16 },    { "float16", SFT_F16 },
    { "bfloat16", SFT_BF16 }, { "int32", SFT_I32 },     { "uint32", SFT_U32 },
    { "float32", SFT_F32 },   { "float64", SFT_F64 },   { "int64", SFT_I64 },
    { "uint64", SFT_U64 },    { "complex64", SFT_C64 },
};

#define DTYPE_TEXT 128 /* every known name fits, even with each letter escaped */

/* The last event is a string or key that names a dtype. */
static bool name_dtype(entry_parser *e) {
    char buffer[DTYPE_TEXT];
    sft_span text = e->json.text;
    size_t legacy = 0, count = sizeof legacy_dtypes / sizeof *legacy_dtypes;
    if (text.len > sizeof buffer) return entry_fail(e, SFT_DTYPE_UNKNOWN, "a known dtype");
    text.len = sfti_json_decode(text, buffer);
    text.data = buffer;
    if (sft_dtype_parse(text, &e->tensor.dtype)) return true;
    while (legacy < count && !sft_span_equal(text, sft_span_cstr(legacy_dtypes[legacy].name)))
        legacy++;
    if (legacy == count) return entry_fail(e, SFT_DTYPE_UNKNOWN, "a known dtype");
    e->tensor.dtype = legacy_dtypes[legacy].dtype;
    if (e->r->limits->legacy) return true;
    return entry_fail(e, SFT_LEGACY_LAYOUT, "a dtype of today");
}

static bool read_dtype(entry_parser *e) {
    if (e->json.type == SFTI_JSON_STRING) return name_dtype(e);
    if (e->json.type != SFTI_JSON_OBJECT) return entry_fail(e, SFT_DTYPE_TYPE, "a dtype name");
    /* {"F32":null}, which the official reader takes for a dtype. */
    if (!entry_from_level(e, SFT_LEVEL_DEFAULT, SFT_DTYPE_NOT_STRING, "a string"))
        return false;
    if (sfti_json_next(&e->json) != SFTI_JSON_KEY)
        return entry_fail(e, SFT_DTYPE_TYPE, "one dtype name");
    if (!name_dtype(e)) return false;
    if (sfti_json_next(&e->json) != SFTI_JSON_NULL)
        return entry_fail(e, SFT_DTYPE_TYPE, "null");
    if (sfti_json_next(&e->json) != SFTI_JSON_OBJECT_END)
        return entry_fail(e, SFT_DTYPE_TYPE, "one dtype name");
    return true;
}

/* ── shape ── */

#define DIM_WORDS "an integer from 0 to 18446744073709551615"

static bool read_shape(entry_parser *e) {
    uint64_t few[SFT_MAX_RANK], *dims = few, most = SFT_MAX_RANK, count;
    if (e->json.type != SFTI_JSON_ARRAY) return entry_fail(e, SFT_SHAPE_TYPE, "an array");
    if (e->r->watch || e->r->limits->level < SFT_LEVEL_DEFAULT) {
        /* A scan and level compat go on after a shape of too many dimensions. It is read into its
         * place at once, for counting dimensions takes as long: each has a digit, and a comma
         * behind it. */
        size_t left = (size_t)(e->json.end - e->json.at);
        const char *close = memchr(e->json.at, ']', left);
        uint64_t follow = ((close ? (uint64_t)(close - e->json.at) : left) + 1) / 2;
        if (follow > most) {
            most = follow;
            dims = sfti_arena_array(e->r->arena, most, sizeof *dims);
            if (!dims) return sfti_report_memory(e->r, most * sizeof *dims);
        }
    }
    count = sfti_json_uints(&e->json, dims, most);
    for (; sfti_json_next(&e->json) != SFTI_JSON_ARRAY_END; count++) {
        if (e->json.type != SFTI_JSON_UINT) return entry_fail(e, SFT_SHAPE_TYPE, DIM_WORDS);
        if (count < most) dims[count] = e->json.value; /* further ones are counted only */
    }
    e->tensor.rank = (uint32_t)count; /* a text under 2 GiB has no more */
    if (dims == few && count > 0 && count <= most) {
        dims = sfti_arena_array(e->r->arena, count, sizeof *dims);
        if (!dims) return sfti_report_memory(e->r, count * sizeof *dims);
        memcpy(dims, few, (size_t)count * sizeof *dims);
    }
    e->tensor.shape = dims == few || count == 0 ? NULL : dims;
    return count <= SFT_MAX_RANK
           || entry_from_level(e, SFT_LEVEL_DEFAULT, SFT_RANK_TOO_LARGE, "at most 64 dimensions");
}

/* ── data_offsets ── */

static bool read_offsets(entry_parser *e) {
    uint64_t *pair[2] = { &e->tensor.begin, &e->tensor.end };
    if (e->json.type != SFTI_JSON_ARRAY)
        return entry_fail(e, SFT_OFFSETS_TYPE, "an array of two integers");
    for (int i = 0; i < 2; i++) {
        if (sfti_json_next(&e->json) != SFTI_JSON_UINT)
            return entry_fail(e, SFT_OFFSETS_TYPE, DIM_WORDS);
        *pair[i] = e->json.value;
    }
    if (sfti_json_next(&e->json) != SFTI_JSON_ARRAY_END)
        return entry_fail(e, SFT_OFFSETS_TYPE, "two integers");
    return true;
}

/* ── The entry ── */

/* The field's value, whose first event is the last one; its raw text is kept. */
static bool read_field(entry_parser *e, entry_field field) {
    const char *begin = event_at(e);
    sft_span *raw[] = { &e->scan.dtype, &e->scan.shape, &e->scan.offsets, &e->scan.offsets };
    bool fine = field == FIELD_DTYPE ? read_dtype(e)
                : field == FIELD_SHAPE ? read_shape(e) : read_offsets(e);
    raw[field]->data = begin;
    raw[field]->len = (size_t)(e->json.at - begin);
    return fine;
}

static entry_field name_field(const sfti_json *json) {
    char buffer[DTYPE_TEXT];
    sft_span text = json->text;
    if (text.len > sizeof buffer) return FIELD_UNKNOWN;
    text.len = sfti_json_decode(text, buffer);
    text.data = buffer;
    for (int i = 0; i < FIELD_UNKNOWN; i++)
        if (sft_span_equal(text, sft_span_cstr(field_names[i]))) return (entry_field)i;
    return FIELD_UNKNOWN;
}

static bool skip_unknown(entry_parser *e) {
    if (!entry_from_level(e, SFT_LEVEL_STRICT, SFT_STRICT_FIELD, "a known field")) return false;
    sfti_remark(e->r, "unknown_field", event_at(e), &e->name,
                "the entry has a field that readers ignore");
    if (sfti_json_skip(&e->json) == SFTI_JSON_ERROR) return entry_fail(e, SFT_OK, NULL);
    return true;
}

/* At the end of the entry: a field "offsets", which was set aside, is read as the layout of 2022 or
 * as one that readers ignore. */
static bool read_deferred(entry_parser *e) {
    sfti_json end = e->json;
    bool today = e->seen & 1U << FIELD_OFFSETS, fine = true;
    if (!(e->seen & 1U << FIELD_LEGACY_OFFSETS) || (!today && !e->r->limits->legacy)) return true;
    e->json = e->offsets;
    if (today) {
        fine = skip_unknown(e);
    } else {
        e->seen |= 1U << FIELD_OFFSETS;
        sfti_json_next(&e->json);
        fine = read_field(e, FIELD_OFFSETS);
    }
    e->json = end;
    return fine;
}

static bool read_entry_object(entry_parser *e) {
    while (sfti_json_next(&e->json) == SFTI_JSON_KEY) {
        entry_field field = name_field(&e->json);
        bool is_legacy = field == FIELD_LEGACY_OFFSETS;
        if (field == FIELD_UNKNOWN) {
            if (!skip_unknown(e)) return false;
            continue;
        }
        if (e->seen & 1U << field && (!is_legacy || e->r->limits->legacy))
            return entry_fail(e, SFT_FIELD_DUPLICATE, "each field once");
        e->seen |= 1U << field;
        if (is_legacy) {
            /* Whether it is the layout of 2022 or an unknown field is known at the end. */
            e->offsets = e->json;
            if (sfti_json_skip(&e->json) == SFTI_JSON_ERROR) return entry_fail(e, SFT_OK, NULL);
        } else {
            sfti_json_next(&e->json);
            if (!read_field(e, field)) return false;
        }
    }
    if (e->json.type != SFTI_JSON_OBJECT_END) return entry_fail(e, SFT_OK, NULL);
    if (!read_deferred(e)) return false;
    unsigned absent = ~e->seen & 7U;
    if (!absent) return true;
    if (absent == 1U << FIELD_OFFSETS && e->seen & 1U << FIELD_LEGACY_OFFSETS)
        return entry_fail(e, SFT_LEGACY_LAYOUT, "the field data_offsets");
    return entry_fail(e, SFT_FIELD_MISSING,
                      absent & 1U ? "the field dtype" : absent & 2U ? "the field shape"
                                                               : "the field data_offsets");
}

/* ["F32",[2],[0,8]], which the official reader takes for an entry. */
static bool read_entry_array(entry_parser *e) {
    if (!entry_from_level(e, SFT_LEVEL_DEFAULT, SFT_ENTRY_NOT_OBJECT, "a JSON object"))
        return false;
    for (int field = FIELD_DTYPE; field <= FIELD_OFFSETS; field++) {
        if (sfti_json_next(&e->json) == SFTI_JSON_ARRAY_END)
            return entry_fail(e, SFT_FIELD_MISSING, "dtype, shape and data_offsets");
        if (e->json.type == SFTI_JSON_ERROR) return entry_fail(e, SFT_OK, NULL);
        if (!read_field(e, (entry_field)field)) return false;
    }
    if (sfti_json_next(&e->json) != SFTI_JSON_ARRAY_END)
        return entry_fail(e, SFT_ENTRY_TYPE, "three elements");
    return true;
}

bool sfti_entry_read(sfti_parser *r, sft_span name, sft_span raw) {
    entry_parser e;
    memset(&e, 0, sizeof e);
    e.r = r;
    e.name = name;
    e.at = r->lex.at;
    sfti_value_begin(r, 1, &e.json);
    sfti_json_type type = sfti_json_next(&e.json);
    bool fine = type == SFTI_JSON_OBJECT  ? read_entry_object(&e)
                : type == SFTI_JSON_ARRAY ? read_entry_array(&e)
                                          : entry_fail(&e, SFT_ENTRY_TYPE, "a JSON object");
    /* After a finding, to the end of the entry. */
    while (!r->fatal && e.json.depth > 1)
        if (sfti_json_next(&e.json) == SFTI_JSON_ERROR) entry_fail(&e, SFT_OK, NULL);
    r->lex.at = e.json.at;
    if (r->fatal) return false;
    if (r->watch) {
        e.scan.name = (sft_span){ raw.data - 1, raw.len + 2 };
        e.scan.name_begin = SFTI_PREFIX + (uint64_t)(raw.data - 1 - e.json.begin);
        e.scan.value_begin = SFTI_PREFIX + (uint64_t)(e.at - e.json.begin);
        e.scan.value_end = SFTI_PREFIX + (uint64_t)(e.json.at - e.json.begin);
        r->watch->entry(r->watch->ctx, &e.scan);
    }
    r->lost |= !fine;
    return fine && sfti_keep(r, &e.tensor, name);
}

/* ── As spelled ── */

static sft_span spelled_value(sfti_json *json) {
    sfti_json_type type = sfti_json_next(json);
    sft_span raw = { json->begin + json->start, 0 };
    if (type == SFTI_JSON_OBJECT || type == SFTI_JSON_ARRAY) (void)sfti_json_skip(json);
    raw.len = (size_t)(json->at - raw.data);
    return raw;
}

static void spelled_fields(sfti_json *json, sft_scan_entry *out) {
    sft_span legacy = { NULL, 0 }, *fields[] = { &out->dtype, &out->shape, &out->offsets, &legacy };
    sfti_json_type type = sfti_json_next(json);
    if (type == SFTI_JSON_OBJECT)
        while (sfti_json_next(json) == SFTI_JSON_KEY) {
            entry_field field = name_field(json);
            sft_span raw = spelled_value(json);
            if (field != FIELD_UNKNOWN && !fields[field]->data) *fields[field] = raw;
        }
    if (type == SFTI_JSON_ARRAY)
        for (int i = 0; i < 3; i++) {
            sft_span raw = spelled_value(json);
            if (json->depth == 0) return;
            *fields[i] = raw;
        }
    if (!out->offsets.data) out->offsets = legacy;
}

/* The text was read before, and the entry is sound JSON. */
sft_scan_entry sfti_entry_spelled(sft_span text, size_t at) {
    sft_scan_entry out = { .name_begin = SFTI_PREFIX + at };
    sfti_json json;
    sfti_json_begin(&json, text.data + at, text.len - at);
    sfti_json_next(&json);
    out.name = (sft_span){ text.data + at, (size_t)(json.at - json.begin) };
    const char *value = json.at;
    /* A value stands behind the colon, for the entry is sound. */
    while (!sfti_never(value == text.data + text.len) && memchr(" \t\r\n:", *value, 5)) value++;
    sfti_json_begin(&json, value, (size_t)(text.data + text.len - value));
    spelled_fields(&json, &out);
    out.value_begin = SFTI_PREFIX + (uint64_t)(value - text.data);
    sfti_json_begin(&json, value, (size_t)(text.data + text.len - value));
    (void)spelled_value(&json);
    out.value_end = SFTI_PREFIX + (uint64_t)(json.at - text.data);
    return out;
}
