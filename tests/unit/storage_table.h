/* A storage whose table of functions a test may change. */
#ifndef STORAGE_TABLE_H
#define STORAGE_TABLE_H

#include "safetensors_dataset.h"

/* Gives the storage a table of its own. */
static inline sft_storage_vtable *storage_own(sft_storage *storage) {
    static sft_storage_vtable tables[64];
    static size_t next;
    sft_storage_vtable *own = &tables[next++ % 64];
    *own = *storage->vtable;
    storage->vtable = own;
    return own;
}

#endif
