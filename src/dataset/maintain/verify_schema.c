/* The manifest's schema is compared with its columns, or in KV mode with the tensors. Tests:
 * test_dataset_verify.c. */
#include "base/order.h"
#include "dataset/maintain/verify.h"

static bool schema_dtype_is(const sfti_ds_entry *e, sft_dtype dtype) {
    sft_dtype is;
    return sft_dtype_parse(e->dtype, &is) && is == dtype;
}

static void schema_tell(verification *v, sft_span key) {
    sfti_verify_tell(v, SFTI_DATASET_MANIFEST, "schema, %.*s: expected dtype and shape of a tensor "
                     "of the dataset, found others", SFTI_CLIP(key, 100));
}

void sfti_verify_columns(verification *v) {
    const sfti_ds_manifest *m = v->m;
    if (!m->ours || m->mode != SFT_DATASET_BATCH) return;
    for (size_t i = 0; i < m->entry_count; i++) {
        const sfti_ds_entry *e = &m->entries[i];
        const sfti_ds_column *c = sfti_ds_column_find(m->columns, m->column_count, e->key);
        if (!c || !e->rank || (c->has_dtype && !schema_dtype_is(e, c->dtype)) ||
            (c->has_shape && !sfti_ds_shape_same(e->shape + 1, e->rank - 1, c->shape, c->rank)))
            schema_tell(v, e->key);
    }
}

static int schema_by_key(const void *entries, uint32_t a, uint32_t b) {
    const sfti_ds_entry *all = entries;
    return sfti_bytes_compare(all[a].key, all[b].key);
}

bool sfti_verify_keys_begin(verification *v, verify_keys *k) {
    const sfti_ds_manifest *m = v->m;
    *k = (verify_keys){ .count = m->ours && m->has_schema ? m->entry_count : 0,
                        .has = m->ours && m->has_schema };
    k->order = sfti_arena_sorted(&v->arena, k->count, schema_by_key, m->entries);
    if (!k->order) v->code = sfti_fail_memory(v->err, k->count * sizeof *k->order);
    return k->order;
}

void sfti_verify_keys_next(verification *v, verify_keys *k, const sfti_ds_row *row) {
    const sfti_ds_entry *all = v->m->entries;
    if (!k->has || (row && (row->shadowed || row->deleted))) return;
    int order = -1;
    for (; k->at < k->count && order < 0; k->at += order <= 0) {
        const sfti_ds_entry *e = &all[k->order[k->at]];
        order = row ? sfti_bytes_compare(e->key, row->key) : -1;
        if (order < 0 || (order == 0 && !(schema_dtype_is(e, row->dtype) &&
                                          sfti_ds_shape_same(e->shape, e->rank, row->shape,
                                                             row->rank))))
            schema_tell(v, e->key);
    }
    if (row && order != 0)
        sfti_verify_tell(v, SFTI_DATASET_MANIFEST, "schema: expected the tensor %.*s, found none",
                         SFTI_CLIP(row->key, 100));
}
