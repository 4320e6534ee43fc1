/* Tensors as structs of data, shape and dtype. Tests: test_dataset_arrow.c. */
#include "base/endian.h"
#include "base/error.h"
#include "dataset/arrow/arrow.h"

#include <string.h>

/* ── The type ── */

static sft_code tensor_refused(sft_error *err) {
    return sfti_fail(err, SFT_COLUMN_TYPE, "expected struct<data: binary, shape: list<int32>, "
                     "dtype: string>, or numbers or lists of them");
}

static sft_code tensor_child(const struct ArrowSchema *schema, const char *name, size_t *at,
                             sfti_arena *arena, sfti_arrow_type *type, sft_error *err) {
    for (*at = 0; *at < (size_t)schema->n_children; ++*at) {
        const struct ArrowSchema *child = schema->children[*at];
        if (child && child->name && strcmp(child->name, name) == 0)
            return sfti_arrow_type_read(child, arena, type, err);
    }
    return tensor_refused(err);
}

sft_code sfti_arrow_tensor_read(const struct ArrowSchema *schema, sfti_arena *arena,
                                sfti_arrow_tensor *out, sft_error *err) {
    static const char *const bytes[] = { "z", "Z", "vz" }, *const text[] = { "u", "U", "vu" };
    if (schema->n_children != 3 || !schema->children) return tensor_refused(err);
    sft_code code = tensor_child(schema, "data", &out->data, arena, &out->data_type, err);
    if (!code)
        code = tensor_child(schema, "shape", &out->shape, arena, &out->shape_type, err);
    if (!code)
        code = tensor_child(schema, "dtype", &out->dtype, arena, &out->dtype_type, err);
    if (code) return code;
    const sfti_arrow_type *shape = &out->shape_type;
    bool good = sfti_arrow_has_format(schema->children[out->data], bytes) &&
                sfti_arrow_has_format(schema->children[out->dtype], text) && shape->depth == 1 &&
                shape->leaf == SFTI_LEAF_NUMBER &&
                (shape->dtype == SFT_I32 || shape->dtype == SFT_I64);
    return good ? SFT_OK : tensor_refused(err);
}

sft_code sfti_arrow_tensor_check(const sfti_arrow_tensor *type, const struct ArrowArray *array,
                                 sft_error *err) {
    const sfti_arrow_type *const types[] = { &type->data_type, &type->shape_type,
                                             &type->dtype_type };
    const size_t places[] = { type->data, type->shape, type->dtype };
    sft_code code = SFT_OK;
    bool good = array->n_children == 3 && array->children && array->n_buffers >= 1 &&
                array->buffers && array->offset >= 0 && array->length >= 0;
    for (int i = 0; good && !code && i < 3; i++) {
        good = sfti_arrow_has_child(array, places[i]);
        if (good) code = sfti_arrow_check(types[i], array->children[places[i]], err);
    }
    if (good) return code;
    return sfti_misuse(err, "expected an array that keeps Arrow's rules, found a struct without "
                       "its children");
}

/* ── A row ── */

static sft_code tensor_null(sft_error *err, const char *what) {
    return sfti_fail(err, SFT_ROW_NULL, "expected %s, found null", what);
}

static sft_code tensor_dims(const sfti_arrow_tensor *type, const struct ArrowArray *array,
                            uint64_t i, sft_buffer *scratch, sfti_arrow_rows *out,
                            sft_error *err) {
    sfti_arrow_rows dims;
    bool wide = type->shape_type.dtype == SFT_I64;
    scratch->len = 0;
    sft_code code =
        sfti_arrow_elements(&type->shape_type, array, i, 1, scratch, &dims, err);
    if (code) return code;
    if (dims.elements >= SFT_MAX_RANK)
        return sfti_fail(err, SFT_ROW_SHAPE, "expected at most %d dimensions, found %llu",
                         SFT_MAX_RANK - 1, (unsigned long long)dims.elements);
    out->rank = (uint32_t)dims.elements;
    const char *at = dims.bytes ? dims.bytes : scratch->data + dims.at;
    for (uint32_t d = 0; d < out->rank; d++) {
        out->shape[d] = wide ? sfti_get_u64(at + 8 * d) : sfti_get_u32(at + 4 * d);
        if (out->shape[d] > (wide ? INT64_MAX : INT32_MAX))
            return sfti_fail(err, SFT_ROW_SHAPE,
                             "expected dimensions from 0 on, found a negative one");
    }
    return SFT_OK;
}

static sft_code tensor_measure(sft_span data, sft_dtype dtype, sfti_arrow_rows *out,
                               sft_error *err) {
    uint64_t bytes;
    sft_code code =
        sft_shape_size(dtype, out->shape, out->rank, &out->elements, &bytes, err);
    if (code) return SFT_ROW_SHAPE;
    if (bytes != data.len)
        return sfti_fail(err, SFT_ROW_SHAPE,
                         "expected %llu bytes of data by its shape and %s, found %llu",
                         (unsigned long long)bytes, sft_dtype_describe(dtype)->name,
                         (unsigned long long)data.len);
    out->rows = 1;
    out->bytes = data.len ? data.data : "";
    return SFT_OK;
}

sft_code sfti_arrow_tensor_row(const sfti_arrow_tensor *type, const struct ArrowArray *array,
                               uint64_t i, sft_buffer *scratch, sft_dtype *dtype,
                               sfti_arrow_rows *out, sft_error *err) {
    sft_span data, name;
    uint64_t at = (uint64_t)array->offset + i;
    if (sfti_arrow_null(array, i)) return tensor_null(err, "a tensor");
    if (!sfti_arrow_bytes(&type->data_type, array->children[type->data], at, &data))
        return tensor_null(err, "data");
    if (!sfti_arrow_bytes(&type->dtype_type, array->children[type->dtype], at, &name))
        return tensor_null(err, "a dtype");
    if (!sft_dtype_parse(name, dtype))
        return sfti_fail(err, SFT_ROW_VALUE, "expected the name of a dtype, found \"%.*s\"",
                         SFTI_CLIP(name, 40));
    sft_code code = tensor_dims(type, array->children[type->shape], at, scratch, out, err);
    return code ? code : tensor_measure(data, *dtype, out, err);
}
