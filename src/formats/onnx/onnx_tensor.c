/* A TensorProto: where its elements are, of the three places in which they may be. */
#include "formats/onnx/onnx.h"

#include "base/number.h"

#include <string.h>

#define TENSOR_DIMS 1
#define TENSOR_TYPE 2
#define TENSOR_SEGMENT 3
#define TENSOR_STRINGS 6
#define TENSOR_NAME 8
#define TENSOR_RAW 9
#define TENSOR_EXTERNAL 13
#define TENSOR_LOCATION 14

#define TENSOR_NAME_MOST 65536

/* TensorProto.DataType; field: where the typed elements are, 0: nowhere. */
typedef struct onnx_type {
    uint64_t number;
    sft_dtype dtype;
    uint8_t field;
} onnx_type;

#define FLOATS 4
#define INTS 5
#define LONGS 7
#define DOUBLES 10
#define UNSIGNED 11

static const onnx_type onnx_types[] = {
    { 1, SFT_F32, FLOATS },          { 2, SFT_U8, INTS },         { 3, SFT_I8, INTS },
    { 4, SFT_U16, INTS },            { 5, SFT_I16, INTS },        { 6, SFT_I32, INTS },
    { 7, SFT_I64, LONGS },           { 9, SFT_BOOL, INTS },       { 10, SFT_F16, INTS },
    { 11, SFT_F64, DOUBLES },        { 12, SFT_U32, UNSIGNED },   { 13, SFT_U64, UNSIGNED },
    { 14, SFT_C64, FLOATS },         { 16, SFT_BF16, INTS },      { 17, SFT_F8_E4M3, INTS },
    { 18, SFT_F8_E4M3FNUZ, INTS },   { 19, SFT_F8_E5M2, INTS },   { 20, SFT_F8_E5M2FNUZ, INTS },
    { 23, SFT_F4, INTS },            { 24, SFT_F8_E8M0, INTS },   { 27, SFT_F6_E2M3, 0 },
    { 28, SFT_F6_E3M2, 0 },
};

static const char *const onnx_type_names[] = {
    "no type", "FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "STRING", "BOOL",
    "FLOAT16", "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128", "BFLOAT16",
    "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT4", "INT4",
    "FLOAT4E2M1", "FLOAT8E8M0", "UINT2", "INT2",
};

/* Fields of a TensorProto that mean something here. Numbers that are repeated may be packed. Of a
 * field that is there once a protocol buffer's reader takes the last, another the first; one of
 * another type some pass over, and some read. */
static const struct tensor_field {
    uint8_t number, type;
    bool once;
    const char *name;
} tensor_fields[] = {
    { TENSOR_DIMS, SFTI_WIRE_VARINT, false, "dims" },
    { TENSOR_TYPE, SFTI_WIRE_VARINT, true, "data_type" },
    { TENSOR_SEGMENT, SFTI_WIRE_BYTES, true, "segment" },
    { FLOATS, SFTI_WIRE_32, false, "float_data" },
    { INTS, SFTI_WIRE_VARINT, false, "int32_data" },
    { TENSOR_STRINGS, SFTI_WIRE_BYTES, false, "string_data" },
    { LONGS, SFTI_WIRE_VARINT, false, "int64_data" },
    { TENSOR_NAME, SFTI_WIRE_BYTES, true, "name" },
    { TENSOR_RAW, SFTI_WIRE_BYTES, true, "raw_data" },
    { DOUBLES, SFTI_WIRE_64, false, "double_data" },
    { UNSIGNED, SFTI_WIRE_VARINT, false, "uint64_data" },
    { TENSOR_EXTERNAL, SFTI_WIRE_BYTES, false, "external_data" },
    { TENSOR_LOCATION, SFTI_WIRE_VARINT, true, "data_location" },
};

static const struct tensor_field *tensor_field_of(uint64_t number) {
    for (size_t i = 0; i < sizeof tensor_fields / sizeof *tensor_fields; i++)
        if (tensor_fields[i].number == number) return &tensor_fields[i];
    return NULL;
}

/* A TensorProto while it is read. */
typedef struct onnx_tensor {
    sfti_import *im;
    sfti_wire wire;
    uint64_t at, begin, end; /* of its field, and of the message in it */
    sft_span name;           /* of its own */
    uint32_t seen;           /* a bit for each number of a field */
    uint64_t type;
    uint64_t shape[SFT_MAX_RANK];
    uint32_t rank;
    bool too_many, negative, is_external;
    uint64_t raw, raw_end;
    sft_span location, offset, length; /* data NULL: not given */
    uint64_t typed; /* number of the field with typed elements, 0: none */
    uint64_t typed_fields;
    uint64_t typed_begin, typed_end; /* of its contents, if it is packed */
} onnx_tensor;

static void add_dim(onnx_tensor *t, uint64_t size) {
    if (size >> 63) t->negative = true;
    if (t->rank == SFT_MAX_RANK) t->too_many = true;
    else t->shape[t->rank++] = size;
}

static sft_code take_dims(onnx_tensor *t, const sfti_wire_field *field) {
    if (field->type != SFTI_WIRE_BYTES) {
        add_dim(t, field->value);
        return SFT_OK;
    }
    sfti_wire packed = sfti_wire_inside(&t->wire, field->begin, field->end);
    while (packed.at < packed.end && !t->too_many) {
        uint64_t size;
        sft_code code = sfti_wire_varint(&packed, &size);
        if (code) return code;
        add_dim(t, size);
    }
    return SFT_OK;
}

static sft_code tensor_ambiguous(onnx_tensor *t, uint64_t at, const char *what) {
    return sfti_fail_tensor(t->im->err, SFT_FOREIGN_AMBIGUOUS, at, t->name,
                            "expected %s once, found it again", what);
}

/* StringStringEntryProto. Keys that mean nothing here are passed over. */
static sft_code take_external(onnx_tensor *t, const sfti_wire_field *field) {
    sfti_wire pair = sfti_wire_inside(&t->wire, field->begin, field->end);
    sfti_wire_field part;
    sft_span texts[2] = { { NULL, 0 }, { NULL, 0 } }; /* key, value */
    bool more;
    for (;;) {
        sft_code code = sfti_wire_next(&pair, &part, &more);
        if (code) return code;
        if (!more) break;
        uint64_t at = pair.at;
        if (part.number > 2) continue;
        sft_span *text = &texts[part.number - 1];
        if (text->data) return tensor_ambiguous(t, part.at, "a key or value of external_data");
        code = sfti_wire_text(&pair, &part, TENSOR_NAME_MOST, text);
        if (code) return code;
        pair = sfti_wire_inside(&pair, at, field->end);
    }
    const struct { const char *key; sft_span *into; } keys[] = {
        { "location", &t->location }, { "offset", &t->offset }, { "length", &t->length },
    };
    for (size_t i = 0; texts[0].data && i < sizeof keys / sizeof *keys; i++) {
        if (!sft_span_equal(texts[0], sft_span_cstr(keys[i].key))) continue;
        if (keys[i].into->data) return tensor_ambiguous(t, field->at, keys[i].key);
        *keys[i].into = texts[1].data ? texts[1] : (sft_span){ "", 0 };
    }
    return SFT_OK;
}

static sft_code take_typed(onnx_tensor *t, const sfti_wire_field *field) {
    if (t->typed && t->typed != field->number)
        return sfti_fail_tensor(t->im->err, SFT_FOREIGN_AMBIGUOUS, field->at, t->name,
                                "expected elements in one field, found fields %llu and %llu",
                                (unsigned long long)t->typed, (unsigned long long)field->number);
    t->typed = field->number;
    t->typed_fields++;
    t->typed_begin = field->begin;
    t->typed_end = field->end;
    return SFT_OK;
}

static sft_code check_tensor_field(onnx_tensor *t, const sfti_wire_field *field,
                                   const struct tensor_field *row) {
    bool packed = field->type == SFTI_WIRE_BYTES && !row->once;
    if (field->type != row->type && !packed)
        return sfti_fail_tensor(t->im->err, SFT_FOREIGN_SYNTAX, field->at, t->name,
                                "expected %s of wire type %d, found %d", row->name, row->type,
                                (int)field->type);
    if (row->once && t->seen >> row->number & 1)
        return tensor_ambiguous(t, field->at, row->name);
    t->seen |= UINT32_C(1) << row->number;
    return SFT_OK;
}

static sft_code take_tensor_field(onnx_tensor *t, const sfti_wire_field *field) {
    const struct tensor_field *row = tensor_field_of(field->number);
    sft_code code = row ? check_tensor_field(t, field, row) : SFT_OK;
    if (code || !row) return code;
    switch (row->number) {
    case TENSOR_DIMS: return take_dims(t, field);
    case TENSOR_TYPE: t->type = field->value; return SFT_OK;
    case TENSOR_NAME: return sfti_wire_text(&t->wire, field, TENSOR_NAME_MOST, &t->name);
    case TENSOR_RAW:
        t->raw = field->begin;
        t->raw_end = field->end;
        return SFT_OK;
    case TENSOR_EXTERNAL: return take_external(t, field);
    case TENSOR_LOCATION:
        t->is_external = field->value == 1;
        if (field->value <= 1) return SFT_OK;
        return sfti_fail_tensor(t->im->err, SFT_FOREIGN_SYNTAX, field->at, t->name,
                                "expected data_location 0 or 1, found %llu",
                                (unsigned long long)field->value);
    case TENSOR_SEGMENT: return SFT_OK; /* seen */
    default: return take_typed(t, field);
    }
}

/* Each field is read through the one buffer, so the position is kept apart. */
static sft_code onnx_read(onnx_tensor *t) {
    sfti_wire_field field;
    bool more = true;
    for (uint64_t at = t->begin;;) {
        t->wire = sfti_wire_inside(&t->wire, at, t->end);
        sft_code code = sfti_wire_next(&t->wire, &field, &more);
        if (code || !more) return code;
        at = t->wire.at;
        code = take_tensor_field(t, &field);
        if (code) return code;
    }
}

/* ── Elements ── */

/* A decimal number of external_data, 0 if it is not given. */
static sft_code onnx_digits(onnx_tensor *t, sft_span text, uint64_t *out) {
    *out = 0;
    if (!text.data || sfti_text_uint(text, out)) return SFT_OK;
    return sfti_fail_tensor(t->im->err, SFT_FOREIGN_SYNTAX, t->at, t->name,
                            "expected digits for the offset and length of external data, found "
                            "\"%.*s\"", SFTI_CLIP(text, 40));
}

static sft_code external_item(onnx_tensor *t, sfti_item *item) {
    uint64_t offset, length;
    sft_span location = t->location.data ? t->location : (sft_span){ "", 0 };
    sft_code code = sfti_import_file(t->im, location, &item->source);
    if (!code) code = onnx_digits(t, t->offset, &offset);
    if (!code) code = onnx_digits(t, t->length, &length);
    if (code) {
        if (t->im->err) sfti_error_tensor(t->im->err, t->name);
        return code;
    }
    if (offset > item->source->size
        || (t->length.data && length > item->source->size - offset))
        return sfti_fail_tensor(t->im->err, SFT_FOREIGN_TRUNCATED, t->at, t->name,
                                "expected external data within %llu bytes, found bytes %llu to "
                                "%llu", (unsigned long long)item->source->size,
                                (unsigned long long)offset, (unsigned long long)(offset + length));
    item->begin = offset;
    item->stored = t->length.data ? length : item->source->size - offset;
    return SFT_OK;
}

static sft_code typed_item(onnx_tensor *t, const onnx_type *type, sfti_item *item) {
    unsigned bits = sft_dtype_describe(type->dtype)->bits;
    uint64_t bytes, count;
    if (type->field == 0)
        return sfti_import_refuse(t->im, t->name, t->end - t->begin, SFT_FOREIGN_KIND, t->at,
                                  "expected elements of 6 bits in raw_data, found them one by "
                                  "one");
    if (t->typed != type->field)
        return sfti_fail_tensor(t->im->err, SFT_FOREIGN_SYNTAX, t->at, t->name,
                                "expected elements in field %u, found field %llu", type->field,
                                (unsigned long long)t->typed);
    sfti_wire_type wire_type = (sfti_wire_type)tensor_field_of(type->field)->type;
    if (wire_type != SFTI_WIRE_VARINT && t->typed_fields == 1 && t->typed_end > 0) {
        item->begin = t->typed_begin; /* as they stand */
        item->stored = t->typed_end - t->typed_begin;
        return SFT_OK;
    }
    unsigned width = wire_type == SFTI_WIRE_32 ? 4 : bits < 8 ? 1 : bits / 8;
    sft_code code = sft_shape_size(type->dtype, t->shape, t->rank, NULL, &bytes, t->im->err);
    if (code) return code;
    /* An element has a byte at least. */
    if (bytes / width > t->end - t->begin)
        return sfti_fail_tensor(t->im->err, SFT_FOREIGN_SIZE, t->at, t->name,
                                "expected %llu bytes of elements, found a field of fewer",
                                (unsigned long long)bytes);
    sfti_wire message = sfti_wire_inside(&t->wire, t->begin, t->end);
    code = sfti_onnx_numbers(t->im, &message, t->typed, wire_type, width, bytes / width, &count,
                             &item->source);
    if (code) sfti_error_tensor(t->im->err, t->name);
    else item->stored = count * width;
    return code;
}

/* ── All together ── */

static sft_code check_tensor(onnx_tensor *t, bool *usable, uint64_t bytes) {
    *usable = false;
    if (t->too_many || t->negative)
        return sfti_import_refuse(t->im, t->name, bytes,
                                  t->too_many ? SFT_RANK_TOO_LARGE : SFT_FOREIGN_SIZE, t->at,
                                  "expected %s, found %s",
                                  t->too_many ? "at most 64 dimensions" : "sizes of 0 or more",
                                  t->too_many ? "more" : "a negative one");
    if (t->seen >> TENSOR_SEGMENT & 1)
        return sfti_import_refuse(t->im, t->name, bytes, SFT_FOREIGN_KIND, t->at,
                                  "expected a whole tensor, found a segment of one");
    if (t->is_external + (t->seen >> TENSOR_RAW & 1) + (t->typed != 0) > 1)
        return sfti_fail_tensor(t->im->err, SFT_FOREIGN_AMBIGUOUS, t->at, t->name,
                                "expected elements in one place, found raw, typed or external "
                                "ones side by side");
    *usable = true;
    return SFT_OK;
}

/* Elements in the model are as many as the shape has; external ones may have no length, and then
 * the file may go on. */
static sft_code check_length(onnx_tensor *t, const sfti_item *item, bool *usable) {
    uint64_t need;
    if (t->is_external && !t->length.data) return SFT_OK;
    if (sft_shape_size(item->dtype, item->shape, item->rank, NULL, &need, NULL)
        || item->stored <= need)
        return SFT_OK; /* it is compared when it is added */
    *usable = false;
    return sfti_import_refuse(t->im, t->name, item->stored, SFT_FOREIGN_SIZE, t->at,
                              "expected %llu bytes for this shape, found %llu",
                              (unsigned long long)need, (unsigned long long)item->stored);
}

sft_code sfti_onnx_tensor(sfti_import *im, const sfti_wire *wire, const sfti_wire_field *field,
                          sft_span name) {
    onnx_tensor t = { .im = im, .wire = *wire, .at = field->at, .begin = field->begin,
                      .end = field->end };
    uint64_t bytes = field->end - field->begin;
    bool usable;
    sft_code code = onnx_read(&t);
    if (name.data) t.name = name;
    if (!t.name.data) t.name = (sft_span){ "", 0 };
    if (!code) code = check_tensor(&t, &usable, bytes);
    if (code || !usable) return code;
    const onnx_type *type = NULL;
    for (size_t i = 0; i < sizeof onnx_types / sizeof *onnx_types; i++)
        if (onnx_types[i].number == t.type) type = &onnx_types[i];
    bool named = t.type < sizeof onnx_type_names / sizeof *onnx_type_names;
    if (!type)
        return sfti_import_refuse(im, t.name, bytes, SFT_FOREIGN_DTYPE, t.at,
                                  "expected elements that safetensors has, found %s",
                                  named ? onnx_type_names[t.type] : "an unknown type");
    uint64_t *shape = sfti_arena_array(&im->arena, t.rank, sizeof *shape);
    if (!shape) return sfti_fail_memory(im->err, t.rank);
    memcpy(shape, t.shape, t.rank * sizeof *shape);
    sfti_item item = { .name = t.name, .dtype = type->dtype, .rank = t.rank, .shape = shape,
                       .source = wire->source, .at = field->at };
    if (t.is_external) {
        code = external_item(&t, &item);
    } else if (t.typed) {
        code = typed_item(&t, type, &item);
        if (!code && !type->field) return SFT_OK; /* left out */
    } else {
        item.begin = t.raw;
        item.stored = t.raw_end - t.raw;
    }
    if (!code) code = check_length(&t, &item, &usable);
    return code || !usable ? code : sfti_import_add(im, &item);
}
