/* The index of a dataset is compared with the manifest. Tests: test_dataset_maintain.c. */
#include "base/checked.h"
#include "base/error.h"
#include "dataset/maintain/verify.h"

/* An index that readers ignore does no harm: a killed commit may leave its own, a connector's
 * overwrite leaves the old one. */
static void index_note(verification *v, const sft_error *what) {
    sfti_verify_put(v, &v->orphans, SFTI_DATASET_INDEX, what);
}

static void index_stale(verification *v, const char *whose) {
    sft_error e = SFT_ERROR_INIT;
    (void)sfti_fail(&e, SFT_DATASET_SHARD, "an index of %s; readers ignore it", whose);
    index_note(v, &e);
}

static void index_unlike(verification *v, const char *expected) {
    sfti_verify_tell(v, SFTI_DATASET_INDEX, "expected %s, found %s", expected,
                v->index ? "others" : "none");
}

static bool index_names_shard(verification *v, sft_span name) {
    if (!name.data) return true;
    const char *copy = sfti_arena_copy(&v->arena, name.data, name.len);
    if (!copy) {
        v->code = sfti_fail_memory(v->err, name.len + 1);
        return true;
    }
    return sfti_verify_names(v, copy);
}

/* Checks one file; false when it needs no further check. */
static bool index_file(verification *v, const char *name, uint64_t *rows) {
    sft_error e = SFT_ERROR_INIT;
    sfti_ds_index index;
    const bool ours = v->m->ours;
    sft_code code = sfti_ds_index_read(v->storage, name, &v->arena, &index, &e);
    if (code == SFT_DATASET_SHARD && !ours) index_note(v, &e);
    else if (code) sfti_verify_find(v, SFTI_DATASET_INDEX, &e);
    if (code) return false;
    sfti_total_add(rows, index.rows);
    bool full = index.columns == SFTI_INDEX_COLUMNS;
    const sft_span whose = sft_span_cstr(sfti_ds_manifest_index(v->m));
    bool same = !ours || sft_span_equal(index.commit, whose);
    bool known = index_names_shard(v, index.first) && index_names_shard(v, index.last);
    if (!same) index_stale(v, "another commit");
    else if (!ours && !(full && known)) index_stale(v, "other shards");
    else if (!full) index_unlike(v, "the columns tensor_key, file_name, shape and dtype");
    else if (!known) index_unlike(v, "names of the manifest's shards");
    return same && known && full;
}

static bool index_part(void *ctx, const sft_stored *object) {
    if (object->folder || object->name[0] == '_' || object->name[0] == '.' ||
        !sfti_ds_ends(sft_span_cstr(object->name), ".parquet"))
        return true;
    return sfti_ds_listing_put(ctx, SFTI_DATASET_INDEX, object->name, 0);
}

static bool index_folder(verification *v, uint64_t *rows) {
    sfti_ds_listing parts = { .arena = { .alloc = v->alloc } };
    sft_code code = sfti_ds_listing_fill(&parts, v->storage, SFTI_DATASET_INDEX, index_part,
                                         &parts, v->err);
    bool good = true;
    if (!v->code) v->code = code;
    for (const sfti_ds_listed *one = parts.first; good && !v->code && one; one = one->next)
        good = index_file(v, one->name, rows);
    sfti_arena_free(&parts.arena);
    return good && !v->code;
}

/* A connector's manifest does not say whether there is one. */
bool sfti_verify_index(verification *v) {
    uint64_t rows = 0;
    if (v->m->index.data && !v->index) index_unlike(v, "the index that the manifest names");
    if (!v->index || (v->m->ours && !v->m->index.data)) return false;
    bool good = v->index_folder ? index_folder(v, &rows)
                                : index_file(v, SFTI_DATASET_INDEX, &rows);
    if (!good || v->code) return false;
    bool counts = !v->opened_all || rows == v->tensors;
    if (!counts && v->m->ours)
        sfti_verify_tell(v, SFTI_DATASET_INDEX,
                         "expected a row for each of %llu tensors, found %llu",
                         (unsigned long long)v->tensors, (unsigned long long)rows);
    else if (!counts) index_stale(v, "other shards");
    return !v->index_folder;
}
