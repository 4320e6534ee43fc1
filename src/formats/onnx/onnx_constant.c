/* Constants that are no TensorProto: the numbers and text of a Constant's attribute, and sparse
 * tensors. */
#include "formats/onnx/onnx.h"

#include "base/error.h"

#define ATTRIBUTE_OF_CALL 21
#define SPARSE_VALUES 1
#define VALUES_NAME 8

#define CONSTANT_NAME_MOST 65536

/* Attributes of Constant that hold numbers or text, and the rank of its output; its tensors are in
 * `value` and `sparse_value`. */
static const struct onnx_value {
    const char *attribute;
    uint8_t field, rank, type;
    sft_dtype dtype;
} onnx_values[] = {
    { "value_float", 2, 0, SFTI_WIRE_32, SFT_F32 },
    { "value_int", 3, 0, SFTI_WIRE_VARINT, SFT_I64 },
    { "value_string", 4, 0, SFTI_WIRE_BYTES, SFT_U8 },
    { "value_floats", 7, 1, SFTI_WIRE_32, SFT_F32 },
    { "value_ints", 8, 1, SFTI_WIRE_VARINT, SFT_I64 },
    { "value_strings", 9, 1, SFTI_WIRE_BYTES, SFT_U8 },
};
#define VALUES (sizeof onnx_values / sizeof *onnx_values)

/* The row of an attribute, NULL if it has none: then it is a tensor's, or a function's caller gives
 * the value. */
static sft_code find_value(sfti_import *im, const sfti_wire *wire, const sfti_wire_field *field,
                           const struct onnx_value **out) {
    sft_span name = { NULL, 0 };
    *out = NULL;
    for (uint64_t at = field->begin;;) {
        sfti_wire inside = sfti_wire_inside(wire, at, field->end);
        sfti_wire_field part;
        bool more;
        sft_code code = sfti_wire_next(&inside, &part, &more);
        if (code) return code;
        if (!more) break;
        at = inside.at;
        if (part.type == SFTI_WIRE_BYTES && part.number == ATTRIBUTE_OF_CALL) return SFT_OK;
        if (part.type != SFTI_WIRE_BYTES || part.number != SFTI_ONNX_ATTRIBUTE_NAME) continue;
        if (name.data)
            return sfti_fail_byte(im->err, SFT_FOREIGN_AMBIGUOUS, part.at,
                                  "expected the name of an attribute once, found it again");
        code = sfti_wire_text(&inside, &part, CONSTANT_NAME_MOST, &name);
        if (code) return code;
    }
    for (size_t i = 0; name.data && i < VALUES; i++)
        if (sft_span_equal(name, sft_span_cstr(onnx_values[i].attribute))) *out = &onnx_values[i];
    return SFT_OK;
}

sft_code sfti_onnx_is_value(sfti_import *im, const sfti_wire *wire, const sfti_wire_field *field,
                            bool *out) {
    const struct onnx_value *value;
    sft_code code = find_value(im, wire, field, &value);
    *out = value != NULL;
    return code;
}

/* Refuses a number that is there twice or has another wire type: some readers take it, some not. */
static sft_code check_value(sfti_import *im, const sfti_wire *wire, const sfti_wire_field *field,
                            const struct onnx_value *value, sft_span name) {
    sfti_wire inside = sfti_wire_inside(wire, field->begin, field->end);
    bool more = true, again = false;
    while (more) {
        sfti_wire_field part;
        sft_code code = sfti_wire_next(&inside, &part, &more);
        if (code) return code;
        if (!more || part.number != value->field) continue;
        bool is_packed = value->rank > 0 && part.type == SFTI_WIRE_BYTES;
        if (part.type != value->type && !is_packed)
            return sfti_fail_tensor(im->err, SFT_FOREIGN_SYNTAX, part.at, name,
                                    "expected numbers of wire type %d, found %d", value->type,
                                    (int)part.type);
        if (again && value->rank == 0)
            return sfti_fail_tensor(im->err, SFT_FOREIGN_AMBIGUOUS, part.at, name,
                                    "expected a number once, found it again");
        again = true;
    }
    return SFT_OK;
}

sft_code sfti_onnx_value(sfti_import *im, const sfti_wire *wire, const sfti_wire_field *field,
                         sft_span name) {
    static const uint8_t zero[8];
    const struct onnx_value *value;
    sft_code code = find_value(im, wire, field, &value);
    if (code || !value) return code;
    if (!name.data) name = (sft_span){ "", 0 };
    if (value->type == SFTI_WIRE_BYTES)
        return sfti_import_refuse(im, name, field->end - field->begin, SFT_FOREIGN_DTYPE, field->at,
                                  "expected elements that safetensors has, found STRING");
    uint64_t *shape = sfti_arena_array(&im->arena, 1, sizeof *shape), count;
    if (!shape) return sfti_fail_memory(im->err, sizeof *shape);
    unsigned width = sft_dtype_describe(value->dtype)->bits / 8;
    sfti_item item = { .name = name, .dtype = value->dtype, .rank = value->rank, .shape = shape,
                       .at = field->at };
    sfti_wire message = sfti_wire_inside(wire, field->begin, field->end);
    code = check_value(im, wire, field, value, name);
    if (code) return code;
    code = sfti_onnx_numbers(im, &message, value->field, (sfti_wire_type)value->type, width,
                             field->end - field->begin, &count, &item.source);
    if (!code && value->rank == 0 && count == 0) { /* as protocol buffers may leave out what is 0 */
        code = sfti_import_memory(im, zero, width, &item.source);
        count = 1;
    }
    *shape = count;
    item.stored = count * width;
    return code ? code : sfti_import_add(im, &item);
}

/* The first field of this number that is a message or text. */
static sft_code find_field(const sfti_wire *wire, uint64_t number, sfti_wire_field *at,
                           bool *found) {
    sfti_wire inside = sfti_wire_inside(wire, at->begin, at->end);
    do {
        sft_code code = sfti_wire_next(&inside, at, found);
        if (code) return code;
    } while (*found && (at->number != number || at->type != SFTI_WIRE_BYTES));
    return SFT_OK;
}

sft_code sfti_onnx_sparse(sfti_import *im, const sfti_wire *wire, const sfti_wire_field *field,
                          sft_span name) {
    sfti_wire_field at = *field;
    sfti_wire text = *wire;
    bool found = false;
    sft_code code = name.data ? SFT_OK : find_field(wire, SPARSE_VALUES, &at, &found);
    if (!code && found) code = find_field(wire, VALUES_NAME, &at, &found);
    if (!code && found) code = sfti_wire_text(&text, &at, CONSTANT_NAME_MOST, &name);
    if (code) return code;
    if (!name.data) name = sft_span_cstr("sparse_initializer");
    return sfti_import_refuse(im, name, field->end - field->begin, SFT_FOREIGN_OBJECT, field->at,
                              "expected dense tensors, found a sparse one");
}
