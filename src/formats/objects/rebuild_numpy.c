/* NumPy's arrays and scalars in a pickle. Tests: test_import_pickle.c. */
#include "formats/objects/rebuild_parts.h"

#include "formats/arrays/npy_head.h"

#include <string.h>

typedef struct numpy_dtype {
    sft_dtype dtype;
    uint8_t swap;
    bool opaque;
    sft_span refused; /* what has no dtype; empty: none */
} numpy_dtype;

/* False: no description of a dtype. */
static bool dtype_named(const sfti_value *name, numpy_dtype *out) {
    if (sfti_value_meaning(name) == SFTI_MEANS_TORCH_DTYPE && name->kind == SFTI_VALUE_GLOBAL) {
        const sfti_torch_dtype *dtype = name->u.global->dtype;
        if (dtype->kind != SFTI_TORCH_PLAIN) return false;
        *out = (numpy_dtype){ dtype->dtype, dtype->swap, false, { NULL, 0 } };
        return true;
    }
    if (name->kind != SFTI_VALUE_TEXT || !name->u.text || name->count == 0) return false;
    sft_span text = { name->u.text, name->count };
    if (text.len > 1 && text.data[0] && strchr("<>|=", text.data[0])) text.data++, text.len--;
    /* Without its byte order, which is in the state. */
    const sfti_npy_type *type = sfti_npy_type_named(text);
    if (type) *out = (numpy_dtype){ type->dtype, type->swap, type->opaque, { NULL, 0 } };
    else *out = (numpy_dtype){ .refused = text };
    return true;
}

/* An object of numpy.dtype, with its state. */
static bool dtype_of(const sfti_value *value, numpy_dtype *out) {
    if (value->kind != SFTI_VALUE_OBJECT || sfti_value_meaning(value) != SFTI_MEANS_NUMPY_DTYPE)
        return false;
    const sfti_value *name = sfti_object_arg(value, 0), *state = value->u.object->state;
    if (!name || !dtype_named(name, out)) return false;
    bool big = name->kind == SFTI_VALUE_TEXT && name->u.text[0] == '>';
    if (state && state->kind == SFTI_VALUE_TUPLE && state->count >= 2) {
        const sfti_value *order = state->u.items[1], *names = sfti_value_item(state, 3);
        if (sfti_value_is(order, ">")) big = true;
        if (names && names->kind != SFTI_VALUE_NONE) out->refused = sft_span_cstr("fields");
    }
    if (!big) out->swap = 0;
    return true;
}

/* Latin-1 that was pickled as text: the bytes as they were, or fewer if there are others. */
static size_t latin1(const uint8_t *text, size_t len, uint8_t *into) {
    size_t n = 0;
    for (size_t i = 0; i < len; n++) {
        if (text[i] < 0x80) {
            into[n] = text[i++];
            continue;
        }
        if (i + 1 >= len || (text[i] & 0xfe) != 0xc2 || (text[i + 1] & 0xc0) != 0x80) return n;
        into[n] = (uint8_t)(text[i] << 6 | (text[i + 1] & 0x3f));
        i += 2;
    }
    return n;
}

/* The value becomes bytes in memory: arrays that share it share them. */
static sft_code keep_bytes(sfti_rebuild *r, sfti_value *value, const void *bytes, uint64_t len) {
    sfti_item *item = sfti_rebuild_tensor(r, value);
    if (!item) return SFT_OUT_OF_MEMORY;
    value->kind = SFTI_VALUE_BYTES;
    value->raw = true;
    item->stored = len;
    return sfti_import_memory(r->im, bytes, (size_t)len, &item->source);
}

static sft_code bytes_encoded(sfti_rebuild *r, sfti_value *value, const sfti_value *text) {
    uint8_t *bytes = NULL;
    const uint8_t *from = (const uint8_t *)text->u.text;
    sft_code code = sfti_rebuild_copy(r, text, text->count);
    if (code) return code;
    if (!from) {
        code = sfti_import_load(r->im, r->source, text->at, text->count, &bytes);
        if (code) return code;
        from = bytes; /* never longer than what is read */
    } else if (!(bytes = sfti_arena_take(&r->im->arena, text->count))) {
        return sfti_fail_memory(r->im->err, text->count);
    }
    return keep_bytes(r, value, bytes, latin1(from, text->count, bytes));
}

/* Bytes that have to be computed are, once. */
static sft_code compute_bytes(sfti_rebuild *r, sfti_value *value) {
    if (value->kind == SFTI_VALUE_TEXT && value->raw && value->escaped) {
        char *bytes = sfti_arena_copy(&r->im->arena, value->u.text, value->count);
        return bytes ? keep_bytes(r, value, bytes, value->count)
                     : sfti_fail_memory(r->im->err, value->count);
    }
    if (value->kind != SFTI_VALUE_OBJECT || sfti_value_meaning(value) != SFTI_MEANS_ENCODE)
        return SFT_OK;
    const sfti_value *text = sfti_object_arg(value, 0), *code = sfti_object_arg(value, 1);
    if (!text || !code || text->kind != SFTI_VALUE_TEXT || text->raw ||
        !sfti_value_is(code, "latin1"))
        return SFT_OK;
    return bytes_encoded(r, value, text);
}

/* Where the bytes are that a value stands for. *source NULL: it stands for none. */
static sft_code bytes_of(sfti_rebuild *r, sfti_value *value, const sft_source **source,
                         uint64_t *begin, uint64_t *len) {
    sft_code code = compute_bytes(r, value);
    bool none = value->kind == SFTI_VALUE_OBJECT &&
                sfti_value_meaning(value) == SFTI_MEANS_BYTES &&
                value->u.object->args->count == 0;
    *source = r->source;
    *begin = none ? 0 : value->at;
    *len = 0;
    if (none || code) return code;
    if (value->kind == SFTI_VALUE_BYTES && value->raw) {
        *source = value->u.item->source;
        *begin = 0;
        *len = value->u.item->stored;
    } else if (value->kind == SFTI_VALUE_BYTES) {
        *len = value->u.length;
    } else if (value->kind == SFTI_VALUE_TEXT && value->raw) {
        *len = value->count;
    } else {
        *source = NULL;
    }
    return SFT_OK;
}

static sft_code array_make(sfti_rebuild *r, sfti_value *value, const sfti_value *shape,
                           const sfti_value *dtype, bool fortran, sfti_value *data) {
    numpy_dtype is = { 0 };
    uint64_t *sizes, begin = 0, len = 0, bytes;
    const sft_source *source;
    if (!dtype_of(dtype, &is) || !sfti_rebuild_sizes(r, shape, &sizes)) return SFT_OK;
    if (!sizes) return SFT_OUT_OF_MEMORY;
    if (is.refused.len > 0)
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_DTYPE, SFT_HINT_NONE, 0,
                                   "expected numbers, found an array of \"%.*s\"",
                                   SFTI_CLIP(is.refused, 40));
    sft_code code = bytes_of(r, data, &source, &begin, &len);
    if (code || !source) return code;
    uint32_t rank = shape->count;
    code = sft_shape_size(is.dtype, sizes, rank, NULL, &bytes, NULL);
    if (code || bytes != len)
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_SIZE, SFT_HINT_NONE, len,
                                   "expected as many bytes as the array's shape needs, found "
                                   "%llu", (unsigned long long)len);
    sfti_item *item = sfti_rebuild_tensor(r, value);
    uint64_t *strides = fortran ? sfti_arena_array(&r->im->arena, rank, 8) : NULL;
    if (!item || (fortran && !strides)) return sfti_fail_memory(r->im->err, rank);
    for (uint64_t d = 0, step = 1; strides && d < rank; step *= sizes[d++]) strides[d] = step;
    *item = (sfti_item){ .dtype = is.dtype, .rank = rank, .shape = sizes, .source = source,
                         .begin = begin, .stored = len, .strides = strides, .swap = is.swap,
                         .opaque = is.opaque, .at = value->at };
    return SFT_OK;
}

sft_code sfti_rebuild_array(sfti_rebuild *r, sfti_value *value) {
    const sfti_value *state = value->u.object->state;
    if (!state || state->kind != SFTI_VALUE_TUPLE || state->count != 5) return SFT_OK;
    sfti_value **items = state->u.items;
    bool fortran = (items[3]->kind == SFTI_VALUE_BOOL && items[3]->u.truth) ||
                   (items[3]->kind == SFTI_VALUE_INT && items[3]->u.integer != 0);
    return array_make(r, value, items[1], items[2], fortran, items[4]);
}

/* An array of protocol 5: (bytes, dtype, shape, order). */
sft_code sfti_rebuild_buffer(sfti_rebuild *r, sfti_value *value) {
    const sfti_value *args = value->u.object->args;
    if (args->count != 4) return SFT_OK;
    sfti_value **items = args->u.items;
    return array_make(r, value, items[2], items[1], sfti_value_is(items[3], "F"), items[0]);
}

/* A number, unless numbers are wanted as tensors. */
sft_code sfti_rebuild_scalar(sfti_rebuild *r, sfti_value *value) {
    const sfti_value *args = value->u.object->args;
    if (args->count != 2) return SFT_OK;
    if (!r->im->options.scalars) {
        value->kind = SFTI_VALUE_NUMBER;
        return SFT_OK;
    }
    sfti_value shape = { .kind = SFTI_VALUE_TUPLE };
    return array_make(r, value, &shape, args->u.items[0], false, args->u.items[1]);
}
