/* The manifest's schema is compared with its columns, or in KV mode with the tensors. Tests:
 * test_dataset_verify.c. */
#include "base/error.h"
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

/* Whether rows of one shape, of lists around values, are of this type. */
static bool type_shape_fits(const sfti_ds_column *c, const sfti_ds_inner *all, size_t count) {
    const sfti_ds_inner *leaf = &all[count - 1]; /* behind the lists around it */
    if (leaf->form != SFTI_FORM_PLAIN || (c->has_dtype && c->dtype != leaf->dtype)) return false;
    for (size_t i = 0; i + 1 < count; i++)
        if (all[i].form != SFTI_FORM_LIST ||
            (all[i].fixed && c->has_shape && (i >= c->rank || c->shape[i] != all[i].size)))
            return false;
    if (!c->has_shape || (!leaf->width && c->rank == count - 1)) return true;
    /* Bytes of a fixed number, which may be 0. */
    return leaf->dtype == SFT_U8 && c->rank == count && c->shape[count - 1] == leaf->width;
}

static bool type_fits(const sfti_ds_column *c, const sfti_ds_inner *all, size_t count) {
    switch (c->encoding) {
    case SFTI_ENCODING_NESTED: return all->form == SFTI_FORM_LIST || all->form == SFTI_FORM_STRUCT;
    case SFTI_ENCODING_BINARY:
    case SFTI_ENCODING_UTF8:
        return all->form == SFTI_FORM_BYTES && (!c->has_dtype || c->dtype == SFT_U8) &&
               all->text == (c->encoding == SFTI_ENCODING_UTF8);
    case SFTI_ENCODING_LIST:
        return count == 2 && !all[1].width && type_shape_fits(c, all, count);
    default: return type_shape_fits(c, all, count);
    }
}

/* A column whose values are none of its type could be read by numbers, but not by Arrow. */
static void schema_type(verification *v, const sfti_ds_column *c) {
    sfti_arena work = { .alloc = v->alloc };
    sfti_ds_inner *all = NULL;
    size_t count = 0;
    sft_error e = SFT_ERROR_INIT;
    sft_code code = SFT_OK;
    const bool tensor = sft_span_equal(c->type, sft_span_cstr("fixed_shape_tensor"));
    if (!tensor) code = sfti_ds_type_parse(c->name, c->type, &work, &all, &count, &e);
    if (code == SFT_OUT_OF_MEMORY) v->code = sfti_fail_as(v->err, code, &e);
    else if (code || (tensor ? c->encoding != SFTI_ENCODING_FIXED : !type_fits(c, all, count)))
        sfti_verify_tell(v, SFTI_DATASET_MANIFEST, "columns, %.*s: expected a type of its dtype, "
                         "shape and encoding, found %.*s", SFTI_CLIP(c->name, 100),
                         SFTI_CLIP(c->type, 150));
    sfti_arena_free(&work);
}

void sfti_verify_columns(verification *v) {
    const sfti_ds_manifest *m = v->m;
    if (!m->ours || m->mode != SFT_DATASET_BATCH) return;
    for (size_t i = 0; i < m->column_count && !v->code; i++)
        if (m->columns[i].type.data) schema_type(v, &m->columns[i]);
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
