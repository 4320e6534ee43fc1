/* A TensorProto: where its elements are, of the three places in which they may be. */
#include "import/onnx.h"

#include "base/endian.h"

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

/* TensorProto.DataType; field: where the typed elements are (0: nowhere), width: of an element of
 * that field, 0: a varint each. */
typedef struct onnx_type {
    uint64_t number;
    sft_dtype dtype;
    uint8_t field, width;
} onnx_type;

#define FLOATS 4
#define INTS 5
#define LONGS 7
#define DOUBLES 10
#define UNSIGNED 11

static const onnx_type onnx_types[] = {
    { 1, SFT_F32, FLOATS, 4 },          { 2, SFT_U8, INTS, 0 },
    { 3, SFT_I8, INTS, 0 },             { 4, SFT_U16, INTS, 0 },
    { 5, SFT_I16, INTS, 0 },            { 6, SFT_I32, INTS, 0 },
    { 7, SFT_I64, LONGS, 0 },           { 9, SFT_BOOL, INTS, 0 },
    { 10, SFT_F16, INTS, 0 },           { 11, SFT_F64, DOUBLES, 8 },
    { 12, SFT_U32, UNSIGNED, 0 },       { 13, SFT_U64, UNSIGNED, 0 },
    { 14, SFT_C64, FLOATS, 4 },         { 16, SFT_BF16, INTS, 0 },
    { 17, SFT_F8_E4M3, INTS, 0 },       { 18, SFT_F8_E4M3FNUZ, INTS, 0 },
    { 19, SFT_F8_E5M2, INTS, 0 },       { 20, SFT_F8_E5M2FNUZ, INTS, 0 },
    { 23, SFT_F4, INTS, 0 },            { 24, SFT_F8_E8M0, INTS, 0 },
    { 27, SFT_F6_E2M3, 0, 0 },          { 28, SFT_F6_E3M2, 0, 0 },
};

static const char *const onnx_type_names[] = {
    "no type", "FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "STRING", "BOOL",
    "FLOAT16", "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128", "BFLOAT16",
    "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT4", "INT4",
    "FLOAT4E2M1", "FLOAT8E8M0", "UINT2", "INT2",
};

/* A TensorProto while it is read. */
typedef struct onnx_tensor {
    sfti_import *im;
    sfti_wire wire;
    uint64_t at; /* of its field */
    sft_span name;
    uint64_t type;
    uint64_t shape[SFT_MAX_RANK];
    uint32_t rank;
    bool too_many, negative, has_raw, has_segment, is_external;
    uint64_t raw, raw_end;
    sft_span location, offset, length;
    uint64_t typed; /* number of the field with typed elements, 0: none */
    uint64_t typed_begin, typed_end; /* if it is one packed field */
    uint64_t typed_fields;
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

/* StringStringEntryProto. Keys that mean nothing here are passed over. */
static sft_code take_external(onnx_tensor *t, const sfti_wire_field *field) {
    sfti_wire pair = sfti_wire_inside(&t->wire, field->begin, field->end);
    sfti_wire_field part;
    sft_span key = { "", 0 }, value = { "", 0 };
    bool more;
    for (;;) {
        sft_code code = sfti_wire_next(&pair, &part, &more);
        if (code) return code;
        if (!more) break;
        uint64_t at = pair.at;
        if (part.number == 1) code = sfti_wire_text(&pair, &part, TENSOR_NAME_MOST, &key);
        if (part.number == 2) code = sfti_wire_text(&pair, &part, TENSOR_NAME_MOST, &value);
        if (code) return code;
        pair = sfti_wire_inside(&pair, at, field->end);
    }
    if (sft_span_equal(key, sft_span_cstr("location"))) t->location = value;
    if (sft_span_equal(key, sft_span_cstr("offset"))) t->offset = value;
    if (sft_span_equal(key, sft_span_cstr("length"))) t->length = value;
    return SFT_OK;
}

static sft_code take_typed(onnx_tensor *t, const sfti_wire_field *field) {
    if (t->typed && t->typed != field->number)
        return sfti_fail_tensor(sfti_import_error(t->im), SFT_FOREIGN_AMBIGUOUS, field->at, t->name,
                                "expected elements in one field, found fields %llu and %llu",
                                (unsigned long long)t->typed, (unsigned long long)field->number);
    t->typed = field->number;
    t->typed_fields++;
    t->typed_begin = field->type == SFTI_WIRE_BYTES ? field->begin : 0;
    t->typed_end = field->type == SFTI_WIRE_BYTES ? field->end : 0;
    return SFT_OK;
}

static sft_code take_tensor_field(onnx_tensor *t, const sfti_wire_field *field) {
    switch (field->number) {
    case TENSOR_DIMS: return take_dims(t, field);
    case TENSOR_TYPE: t->type = field->value; return SFT_OK;
    case TENSOR_SEGMENT: t->has_segment = true; return SFT_OK;
    case TENSOR_NAME:
        return t->name.data ? SFT_OK : sfti_wire_text(&t->wire, field, TENSOR_NAME_MOST, &t->name);
    case TENSOR_RAW:
        if (t->has_raw || field->type != SFTI_WIRE_BYTES)
            return sfti_fail_tensor(sfti_import_error(t->im), SFT_FOREIGN_AMBIGUOUS, field->at,
                                    t->name, "expected raw_data once, found it again");
        t->has_raw = true;
        t->raw = field->begin;
        t->raw_end = field->end;
        return SFT_OK;
    case TENSOR_EXTERNAL:
        return field->type == SFTI_WIRE_BYTES ? take_external(t, field) : SFT_OK;
    case TENSOR_LOCATION: t->is_external = field->value == 1; return SFT_OK;
    case FLOATS: case INTS: case LONGS: case DOUBLES: case UNSIGNED: return take_typed(t, field);
    default: return SFT_OK;
    }
}

/* Each field is read through the one buffer, so the position is kept apart. */
static sft_code onnx_read(onnx_tensor *t, uint64_t begin, uint64_t end) {
    sfti_wire_field field;
    bool more = true;
    for (uint64_t at = begin;;) {
        t->wire = sfti_wire_inside(&t->wire, at, end);
        sft_code code = sfti_wire_next(&t->wire, &field, &more);
        if (code || !more) return code;
        at = t->wire.at;
        code = take_tensor_field(t, &field);
        if (code) return code;
    }
}

/* ── Elements ── */

static sft_code onnx_digits(onnx_tensor *t, sft_span text, uint64_t *out) {
    *out = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';
        if (digit > 9 || !sfti_mul(*out, 10, out) || !sfti_add(*out, digit, out))
            return sfti_fail_tensor(sfti_import_error(t->im), SFT_FOREIGN_SYNTAX, t->at, t->name,
                                    "expected a number of onnx_digits for external data, found "
                                    "\"%.*s\"", SFTI_CLIP(text, 40));
    }
    return SFT_OK;
}

static sft_code external_item(onnx_tensor *t, sfti_item *item) {
    uint64_t offset, length;
    sft_code code = sfti_import_file(t->im, t->location, &item->source);
    if (!code) code = onnx_digits(t, t->offset, &offset);
    if (!code) code = onnx_digits(t, t->length, &length);
    if (code) {
        if (sfti_import_error(t->im)) sfti_error_tensor(sfti_import_error(t->im), t->name);
        return code;
    }
    if (offset > item->source->size
        || (t->length.len > 0 && length > item->source->size - offset))
        return sfti_fail_tensor(sfti_import_error(t->im), SFT_FOREIGN_TRUNCATED, t->at, t->name,
                                "expected external data within %llu bytes, found bytes %llu to "
                                "%llu", (unsigned long long)item->source->size,
                                (unsigned long long)offset, (unsigned long long)(offset + length));
    item->begin = offset;
    item->stored = t->length.len > 0 ? length : item->source->size - offset;
    return SFT_OK;
}

/* Numbers of a typed field, one after another, to elements of the dtype. */
typedef struct onnx_numbers {
    uint8_t *out;
    uint64_t have, most; /* bytes */
    unsigned width;
} onnx_numbers;

static sft_code onnx_put(onnx_tensor *t, onnx_numbers *n, uint64_t value) {
    if (n->most - n->have < n->width)
        return sfti_fail_tensor(sfti_import_error(t->im), SFT_FOREIGN_SIZE, t->at, t->name,
                                "expected as many elements as the shape has, found more");
    for (unsigned i = 0; i < n->width; i++) n->out[n->have++] = (uint8_t)(value >> 8 * i);
    return SFT_OK;
}

static sft_code put_packed(onnx_tensor *t, onnx_numbers *n, const onnx_type *type,
                           const sfti_wire_field *field) {
    sfti_wire packed = sfti_wire_inside(&t->wire, field->begin, field->end);
    if (type->width && (field->end - field->begin) % type->width != 0)
        return sfti_fail_tensor(sfti_import_error(t->im), SFT_FOREIGN_SIZE, field->at, t->name,
                                "expected whole elements, found %llu bytes",
                                (unsigned long long)(field->end - field->begin));
    while (packed.at < packed.end) {
        uint64_t value = 0;
        sft_code code = SFT_OK;
        if (type->width) {
            uint8_t bytes[8] = { 0 };
            code = sfti_import_read(t->im, packed.source, packed.at, bytes, type->width);
            value = sfti_get_u64(bytes);
            packed.at += type->width;
        } else {
            code = sfti_wire_varint(&packed, &value);
        }
        if (!code) code = onnx_put(t, n, value);
        if (code) return code;
    }
    return SFT_OK;
}

/* Reads the message once more: elements may be in several fields, packed or not. */
static sft_code put_all(onnx_tensor *t, onnx_numbers *n, const onnx_type *type, uint64_t begin,
                        uint64_t end) {
    sfti_wire_field field;
    bool more = true;
    for (uint64_t at = begin;;) {
        t->wire = sfti_wire_inside(&t->wire, at, end);
        sft_code code = sfti_wire_next(&t->wire, &field, &more);
        if (code || !more) return code;
        at = t->wire.at;
        if (field.number != type->field) continue;
        code = field.type == SFTI_WIRE_BYTES ? put_packed(t, n, type, &field)
                                             : onnx_put(t, n, field.value);
        if (code) return code;
    }
}

static sft_code typed_item(onnx_tensor *t, const onnx_type *type, uint64_t begin, uint64_t end,
                           sfti_item *item) {
    unsigned bits = sft_dtype_describe(type->dtype)->bits;
    if (type->field == 0)
        return sfti_import_refuse(t->im, t->name, end - begin, SFT_FOREIGN_KIND, t->at,
                                  "expected elements of 6 bits in raw_data, found them one by "
                                  "one");
    if (t->typed != type->field)
        return sfti_fail_tensor(sfti_import_error(t->im), SFT_FOREIGN_SYNTAX, t->at, t->name,
                                "expected elements in field %u, found field %llu", type->field,
                                (unsigned long long)t->typed);
    if (type->width && t->typed_fields == 1 && t->typed_end > 0) { /* as they stand */
        item->source = t->wire.source;
        item->begin = t->typed_begin;
        item->stored = t->typed_end - t->typed_begin;
        return SFT_OK;
    }
    uint64_t bytes;
    sft_code code = sft_shape_size(type->dtype, t->shape, t->rank, NULL, &bytes,
                                   sfti_import_error(t->im));
    if (code) return code;
    /* An element has a byte at least, so a shape that asks for more is not filled. */
    if (bytes / (bits < 8 ? 1 : bits / 8) > end - begin)
        return sfti_fail_tensor(sfti_import_error(t->im), SFT_FOREIGN_SIZE, t->at, t->name,
                                "expected %llu bytes of elements, found a field of fewer",
                                (unsigned long long)bytes);
    onnx_numbers n = { sfti_arena_array(sfti_import_arena(t->im), bytes, 1), 0, bytes,
                       type->width ? type->width : bits < 8 ? 1 : bits / 8 };
    if (!n.out) return sfti_fail_memory(sfti_import_error(t->im), bytes);
    code = put_all(t, &n, type, begin, end);
    if (code) return code;
    item->stored = n.have;
    return sfti_import_memory(t->im, n.out, (size_t)n.have, &item->source);
}

/* ── All together ── */

static const onnx_type *onnx_type_of(uint64_t number) {
    for (size_t i = 0; i < sizeof onnx_types / sizeof *onnx_types; i++)
        if (onnx_types[i].number == number) return &onnx_types[i];
    return NULL;
}

static sft_code refuse_type(onnx_tensor *t, uint64_t bytes) {
    bool known = t->type < sizeof onnx_type_names / sizeof *onnx_type_names;
    return sfti_import_refuse(t->im, t->name, bytes, SFT_FOREIGN_DTYPE, t->at,
                              "expected elements that safetensors has, found %s",
                              known ? onnx_type_names[t->type] : "an unknown type");
}

static sft_code check_tensor(onnx_tensor *t, bool *usable, uint64_t bytes) {
    *usable = false;
    if (t->too_many || t->negative)
        return sfti_import_refuse(t->im, t->name, bytes,
                                  t->too_many ? SFT_RANK_TOO_LARGE : SFT_FOREIGN_SIZE, t->at,
                                  "expected %s, found %s",
                                  t->too_many ? "at most 64 dimensions" : "sizes of 0 or more",
                                  t->too_many ? "more" : "a negative one");
    if (t->has_segment)
        return sfti_import_refuse(t->im, t->name, bytes, SFT_FOREIGN_KIND, t->at,
                                  "expected a whole tensor, found a segment of one");
    if (t->is_external + t->has_raw + (t->typed != 0) > 1)
        return sfti_fail_tensor(sfti_import_error(t->im), SFT_FOREIGN_AMBIGUOUS, t->at, t->name,
                                "expected elements in one place, found raw, typed or external "
                                "ones side by side");
    *usable = true;
    return SFT_OK;
}

sft_code sfti_onnx_tensor(sfti_import *im, const sfti_wire *wire, const sfti_wire_field *field,
                          sft_span name) {
    onnx_tensor t = { .im = im, .wire = *wire, .at = field->at, .name = name };
    uint64_t bytes = field->end - field->begin;
    bool usable;
    sft_code code = onnx_read(&t, field->begin, field->end);
    if (!t.name.data) t.name = (sft_span){ "", 0 };
    if (!code) code = check_tensor(&t, &usable, bytes);
    if (code || !usable) return code;
    const onnx_type *type = onnx_type_of(t.type);
    if (!type) return refuse_type(&t, bytes);
    uint64_t *shape = sfti_arena_array(sfti_import_arena(im), t.rank, sizeof *shape);
    if (!shape) return sfti_fail_memory(sfti_import_error(im), t.rank);
    memcpy(shape, t.shape, t.rank * sizeof *shape);
    sfti_item item = { .name = t.name, .dtype = type->dtype, .rank = t.rank, .shape = shape,
                       .source = wire->source, .at = field->at };
    if (t.is_external) {
        code = external_item(&t, &item);
    } else if (t.typed) {
        code = typed_item(&t, type, field->begin, field->end, &item);
        if (!code && !type->field) return SFT_OK; /* left out */
    } else {
        item.begin = t.raw;
        item.stored = t.raw_end - t.raw;
    }
    return code ? code : sfti_import_add(im, &item);
}
