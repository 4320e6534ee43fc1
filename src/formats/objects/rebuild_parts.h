/* The parts of rebuild.c, by where objects come from. Each turns an object into what it stands
 * for, or refuses it; an object of another form than expected stays what it is. */
#ifndef SFTI_REBUILD_PARTS_H
#define SFTI_REBUILD_PARTS_H

#include "formats/objects/rebuild.h"
#include "formats/parts/state.h"

/* Argument i of an object; NULL past the last. */
static inline sfti_value *sfti_object_arg(const sfti_value *object, uint32_t i) {
    return sfti_value_item(object->u.object->args, i);
}

/* What a pickle says once it can mention often, for a byte or two each. So whatever is copied at a
 * mention, values or bytes, is counted here, and refused where it comes to more than the file and
 * the pickle have bytes: SFT_FOREIGN_TABLE. */
sft_code sfti_rebuild_copy(sfti_rebuild *r, const sfti_value *value, uint64_t count);
/* The value becomes a tensor; its item, zeroed but for `at`, or NULL. */
sfti_item *sfti_rebuild_tensor(sfti_rebuild *r, sfti_value *value);
/* The value becomes a refusal. */
sft_code sfti_rebuild_refuse(sfti_rebuild *r, sfti_value *value, sft_code code, sft_hint hint,
                             uint64_t bytes, const char *format, ...) SFTI_FORMAT(6, 7);
/* The value becomes a tensor of bytes in memory. */
sft_code sfti_rebuild_memory(sfti_rebuild *r, sfti_value *value, sft_dtype dtype,
                             const uint64_t *shape, uint32_t rank, const void *bytes,
                             size_t len);
/* Numbers of a tuple or list, none of them negative, into the arena; false: it is something
 * else. NULL and no memory: *out is NULL and err set. */
bool sfti_rebuild_sizes(sfti_rebuild *r, const sfti_value *list, uint64_t **out);
/* Attributes that a state sets: tensors among them are reported. */
sft_code sfti_rebuild_attributes(sfti_rebuild *r, sfti_value *state);
/* A map without items, and a name with its value for it. */
sfti_value *sfti_rebuild_value(sfti_rebuild *r, sfti_value_kind kind, uint64_t at);
sft_code sfti_rebuild_map(sfti_rebuild *r, sfti_value *value, const char *const *names,
                          sfti_value *const *values, uint32_t count);

/* NumPy */
sft_code sfti_rebuild_array(sfti_rebuild *r, sfti_value *value);
sft_code sfti_rebuild_buffer(sfti_rebuild *r, sfti_value *value);
sft_code sfti_rebuild_scalar(sfti_rebuild *r, sfti_value *value);

/* PyTorch: a tensor of (storage, offset, size, strides), and in version 2 (…, requires_grad,
 * hooks[, flags]), in version 3 (…, requires_grad, hooks, dtype[, flags]);
 * anything that its functions make; those that are not plain. */
sft_code sfti_rebuild_plain(sfti_rebuild *r, sfti_value *value, const sfti_value *args,
                            unsigned version);
sft_code sfti_rebuild_torch(sfti_rebuild *r, sfti_value *value, const sfti_value *args,
                            uint8_t meaning);
sft_code sfti_rebuild_quantised(sfti_rebuild *r, sfti_value *value, const sfti_value *args);
sft_code sfti_rebuild_sparse(sfti_rebuild *r, sfti_value *value, const sfti_value *args);

/* ── dequantise.c: integers with a scale and a zero point ── */

typedef struct sfti_dequantise {
    const sft_source *from; /* first: see sfti_mode_inner */
    uint64_t begin, elements;
    sft_dtype dtype; /* one that sfti_dequantise_takes */
    /* Element i has those of channel i / inner % channels. */
    double *scales, *zeros;
    uint64_t channels, inner;
    bool one; /* a scale of the whole tensor: PyTorch subtracts integers, else floats */
} sfti_dequantise;

/* Whether the dtype is one of quantised integers: U8, I8, I32. */
bool sfti_dequantise_takes(sft_dtype dtype);
/* A source of elements * 4 bytes, F32: (integer - zero) in F32, * scale in F64. What *how points
 * to lives as long as the import. Of one scale, a difference beyond 32 bits, which PyTorch lets
 * overflow, fails as it is read: SFT_FOREIGN_OBJECT. */
sft_code sfti_dequantise_source(sfti_import *im, const sfti_dequantise *how,
                                const sft_source **out);

/* ── sparse.c: sparse tensors in coordinates as dense ones ── */

/* Row i of the values is row places[i] of the tensor, and all else is 0; places ascend. It lives in
 * the import's arena. */
typedef struct sfti_sparse {
    const sft_source *from; /* of the values; first: see sfti_mode_inner */
    uint64_t begin, rows, row_bytes;
    const uint64_t *places;
} sfti_sparse;

/* The tensor, of so many bytes, put together where it is read: zeros take no memory. */
sft_code sfti_sparse_source(sfti_import *im, const sfti_sparse *sparse, uint64_t bytes,
                            const sft_source **out);

#endif
