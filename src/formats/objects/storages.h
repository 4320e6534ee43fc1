/* Storages of PyTorch: where the bytes of tensors are, by the keys that pickles have for them. */
#ifndef SFTI_STORAGES_H
#define SFTI_STORAGES_H

#include "base/names.h"
#include "formats/pickle/globals.h"

typedef struct sfti_storage {
    sft_span key;
    const sfti_torch_dtype *dtype;
    const sft_source *source;
    uint64_t begin, bytes;
    uint32_t id;     /* of storages that share no byte with others; not 0 */
    uint64_t at;     /* byte of the pickle that names it first */
} sfti_storage;

typedef struct sfti_storages sfti_storages;
struct sfti_storages {
    sfti_import *im;
    sfti_storage *all;
    size_t count;
    sfti_names names;
    bool big_endian;
    bool views; /* ids may have a sixth member: a part of the storage */
    /* Find the bytes of a storage that is used for the first time: source, begin. Its size was
     * computed; that of the record must be the same. */
    sft_code (*locate)(sfti_storages *storages, sfti_storage *storage);
    void *ctx;
};

/* A table of the storages that as many ids name at most. */
sft_code sfti_storages_begin(sfti_storages *storages, sfti_import *im, uint64_t most);
/* The storage that a persistent id names: ("storage", type, key, location, elements[, view]).
 * SFT_FOREIGN_SYNTAX: an id of another shape; SFT_FOREIGN_AMBIGUOUS: one that contradicts another
 * of the same key. */
sft_code sfti_storages_get(sfti_storages *storages, const sfti_value *id,
                           const sfti_storage **out);

#endif
