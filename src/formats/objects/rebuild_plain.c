/* PyTorch's plain tensors in a pickle. Tests: test_import_torch.c. */
#include "formats/objects/rebuild_parts.h"

/* Arguments of _rebuild_tensor and its successors. */
typedef struct tensor_args {
    const sfti_storage *storage;
    const sfti_torch_dtype *dtype;
    uint64_t offset, *shape, *strides; /* in elements */
    uint32_t rank;
    bool conj, neg;
} tensor_args;

/* {"conj": True} and {"neg": True}: what PyTorch does lazily. False: something else is there, such
 * as {"conj": False}, which PyTorch takes for True. */
static bool take_flags(const sfti_value *flags, tensor_args *out) {
    if (!flags || flags->kind == SFTI_VALUE_NONE) return true;
    if (flags->kind != SFTI_VALUE_MAP) return false;
    bool told[2] = { false, false };
    for (uint32_t i = 0; i + 1 < flags->count; i += 2) {
        const sfti_value *on = flags->u.items[i + 1];
        bool conj = sfti_value_is(flags->u.items[i], "conj");
        if (on->kind != SFTI_VALUE_BOOL || !on->u.truth || told[conj]) return false;
        if (!conj && !sfti_value_is(flags->u.items[i], "neg")) return false;
        told[conj] = true;
        *(conj ? &out->conj : &out->neg) = true;
    }
    return !out->conj || out->dtype->dtype == SFT_C64 || out->dtype->kind == SFTI_TORCH_NONE;
}

/* storage, offset, size, stride. False: they are something else; *code set: a failure. */
static bool take_place(sfti_rebuild *r, const sfti_value *args, tensor_args *out,
                       sft_code *code) {
    const sfti_value *offset = sfti_value_item(args, 1);
    *code = SFT_OK;
    if (args->count < 4 || args->u.items[0]->kind != SFTI_VALUE_OUTSIDE || !r->storages)
        return false;
    if (offset->kind != SFTI_VALUE_INT || offset->u.integer < 0) return false;
    if (args->u.items[2]->count != args->u.items[3]->count) return false;
    if (!sfti_rebuild_sizes(r, args->u.items[2], &out->shape)) return false;
    if (!sfti_rebuild_sizes(r, args->u.items[3], &out->strides)) return false;
    if (!out->shape || !out->strides) *code = SFT_OUT_OF_MEMORY;
    else *code = sfti_storages_get(r->storages, args->u.items[0]->u.outside, &out->storage);
    if (*code) return true;
    out->rank = args->u.items[2]->count;
    out->offset = (uint64_t)offset->u.integer;
    out->dtype = out->storage->dtype;
    return true;
}

static bool row_major(const tensor_args *t, uint64_t *elements) {
    uint64_t packed = 1;
    bool plain = true, empty = false;
    for (uint32_t d = t->rank; d-- > 0;) {
        empty = empty || t->shape[d] == 0;
        plain = plain && (t->shape[d] == 1 || t->strides[d] == packed);
        if (!sfti_mul(packed, t->shape[d], &packed)) packed = UINT64_MAX; /* refused when added */
    }
    *elements = empty ? 0 : packed;
    return plain || empty;
}

sft_code sfti_rebuild_plain(sfti_rebuild *r, sfti_value *value, const sfti_value *args,
                            unsigned version) {
    tensor_args t = { 0 };
    sft_code code;
    bool has_dtype = version == 3;
    uint32_t least = version == 1 ? 4 : 4 + version;
    if (args->count < least || args->count > least + (version > 1)) return SFT_OK;
    if (version > 1 && args->u.items[4]->kind != SFTI_VALUE_BOOL) return SFT_OK;
    if (!take_place(r, args, &t, &code) || code) return code;
    const sfti_value *dtype = has_dtype ? sfti_value_item(args, 6) : NULL;
    if (has_dtype) {
        if (!dtype || dtype->kind != SFTI_VALUE_GLOBAL ||
            dtype->u.global->meaning != SFTI_MEANS_TORCH_DTYPE)
            return sfti_rebuild_refuse(r, value, SFT_FOREIGN_DTYPE, SFT_HINT_NONE, 0,
                                       "expected a dtype of PyTorch, found %s",
                                       dtype ? sfti_value_kind_name(dtype->kind) : "none");
        t.dtype = dtype->u.global->dtype;
    }
    if (has_dtype && r->storages->big_endian && t.storage->dtype->kind != SFTI_TORCH_UNTYPED)
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_DTYPE, SFT_HINT_NONE, 0,
                                   "expected an untyped storage of big-endian elements, found one "
                                   "of a dtype, by which some readers would swap them");
    if (!has_dtype && t.dtype->kind == SFTI_TORCH_UNTYPED)
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_DTYPE, SFT_HINT_NONE, 0,
                                   "expected a storage of a dtype, found an untyped one");
    if (!take_flags(sfti_value_item(args, has_dtype ? 7 : 6), &t))
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_OBJECT, SFT_HINT_NONE, 0,
                                   "expected the flags conj and neg only, found others");

    const sfti_storage *storage = t.storage;
    uint64_t elements, skip, bytes;
    bool plain = row_major(&t, &elements);
    if (!sfti_mul(elements, t.dtype->size, &bytes)) bytes = 0;
    if (t.dtype->kind == SFTI_TORCH_NONE)
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_DTYPE, SFT_HINT_NONE, bytes,
                                   "expected elements that have a dtype, found torch.%s",
                                   t.dtype->name);
    /* PyTorch counts two elements of a pair as one; here each counts. */
    uint64_t *row = t.rank > 0 ? &t.shape[t.rank - 1] : NULL;
    if (t.dtype->kind == SFTI_TORCH_PAIRS && !(plain && row && sfti_mul(*row, 2, row)))
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_DTYPE, SFT_HINT_NONE, bytes,
                                   "expected rows of pairs of F4, found them strided");
    if (elements == 0) skip = 0;
    else if (!sfti_mul(t.offset, t.dtype->size, &skip) || skip > storage->bytes)
        return sfti_fail_byte(r->im->err, SFT_FOREIGN_SIZE, value->at, "expected a tensor within "
                              "storage %.*s of %llu bytes, found one that begins beyond",
                              SFTI_CLIP(storage->key, 40), (unsigned long long)storage->bytes);
    sfti_item *item = sfti_rebuild_tensor(r, value);
    if (!item) return SFT_OUT_OF_MEMORY;
    *item = (sfti_item){
        .dtype = t.dtype->dtype, .rank = t.rank, .shape = t.shape, .source = storage->source,
        .begin = storage->begin + skip, .stored = storage->bytes - skip,
        .strides = plain ? NULL : t.strides, .conj = t.conj, .neg = t.neg,
        .swap = r->storages->big_endian ? t.dtype->swap : 0, .storage = storage->id,
        .at = value->at,
    };
    return SFT_OK;
}
