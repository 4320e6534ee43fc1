/* An open dataset: its facts and its shards. Tests: test_dataset_whole.c. */
#include "base/error.h"
#include "base/order.h"
#include "dataset/read/masks.h"
#include "dataset/read/places.h"

#include <stdio.h>
#include <string.h>

struct sft_dataset {
    sft_allocator alloc;
    const sft_storage *storage;
    sfti_arena arena;
    sfti_ds_manifest manifest;
    uint32_t *order; /* of samples */
};

/* ── What is odd ── */

typedef struct orphan_shards {
    const sft_dataset *dataset;
    size_t strangers;
    char first[SFTI_DATASET_NAME];
} orphan_shards;

static bool orphan_each(void *ctx, const sft_stored *object) {
    orphan_shards *l = ctx;
    uint64_t file, shard;
    if (object->folder || !sfti_ds_shard_parse(sft_span_cstr(object->name), &file, &shard) ||
        sfti_ds_manifest_names(&l->dataset->manifest, object->name))
        return true;
    if (l->strangers++ == 0)
        (void)snprintf(l->first, sizeof l->first, "%.*s", (int)sizeof l->first - 1, object->name);
    return true;
}

/* Warns of shards that a connector's append did not add to its manifest. */
static sft_code dataset_orphans(const sft_dataset *d, sft_warn_fn warn, void *warn_ctx,
                            sft_error *err) {
    orphan_shards l = { d, 0, { 0 } };
    sft_error what = SFT_ERROR_INIT;
    if (d->manifest.ours || !warn) return SFT_OK;
    sft_code code = sfti_call(d->storage, list, "", orphan_each, &l, err);
    if (code) return code;
    if (l.strangers) {
        (void)sfti_fail(&what, SFT_DATASET_SHARD, "the manifest does not name %zu of the shards in "
                        "the folder, first %s; they are ignored", l.strangers, l.first);
        warn(warn_ctx, &what);
    }
    return SFT_OK;
}

/* ── Opening ── */

sft_code sft_dataset_open(const sft_storage *storage, const sft_allocator *alloc,
                          sft_warn_fn warn, void *warn_ctx, sft_dataset **out, sft_error *err) {
    return sft_dataset_open_version(storage, 0, 0, alloc, warn, warn_ctx, out, err);
}

sft_code sft_dataset_open_version(const sft_storage *storage, uint64_t version, uint64_t asof_s,
                                  const sft_allocator *alloc, sft_warn_fn warn, void *warn_ctx,
                                  sft_dataset **out, sft_error *err) {
    if (!out)
        return sfti_misuse(err, "expected a place for the dataset, found NULL");
    *out = NULL;
    sft_code code = sfti_ds_storage_check(storage, err);
    if (code) return code;
    if (version && asof_s)
        return sfti_misuse(err, "expected a version or a time, found both");
    sft_allocator own = sfti_allocator(alloc);
    sft_dataset *d = sfti_take(&own, sizeof *d);
    if (!d) return sfti_fail_memory(err, sizeof *d);
    *d = (sft_dataset){ .alloc = own, .storage = storage, .arena = { .alloc = own } };
    code = sfti_ds_manifest_at(storage, version, asof_s, &d->arena, &d->manifest, err);
    size_t n = d->manifest.shard_count;
    if (!code) code = sfti_ds_manifest_totalled(&d->manifest, err);
    if (!code) d->order = sfti_arena_sorted(&d->arena, n, sfti_ds_by_sample, d->manifest.shards);
    if (!code && !d->order) code = sfti_fail_memory(err, n * sizeof *d->order);
    if (!code) code = dataset_orphans(d, warn, warn_ctx, err);
    if (!code) *out = d;
    else sft_dataset_close(d);
    return code;
}

void sft_dataset_close(sft_dataset *dataset) {
    if (!dataset) return;
    sft_allocator alloc = dataset->alloc;
    sfti_arena_free(&dataset->arena);
    sfti_release(&alloc, dataset, sizeof *dataset);
}

/* ── Facts ── */

sft_span sft_dataset_manifest(const sft_dataset *dataset) { return dataset->manifest.text; }

const sfti_ds_manifest *sfti_ds_manifest_of(const sft_dataset *dataset) {
    return &dataset->manifest;
}

sft_dataset_mode sft_dataset_get_mode(const sft_dataset *dataset) { return dataset->manifest.mode; }

uint64_t sft_dataset_samples(const sft_dataset *dataset) {
    return dataset->manifest.total_samples;
}

size_t sft_dataset_shard_count(const sft_dataset *dataset) {
    return dataset->manifest.shard_count;
}

const sft_dataset_shard *sft_dataset_shard_at(const sft_dataset *dataset, size_t i) {
    if (i >= dataset->manifest.shard_count) return NULL;
    return &dataset->manifest.shards[dataset->order[i]].facts;
}

sft_span sft_dataset_shard_mask(const sft_dataset *dataset, size_t i) {
    const sft_dataset_shard *s = sft_dataset_shard_at(dataset, i);
    const sfti_ds_mask *mask = s ? sfti_ds_mask_find(&dataset->manifest.masks, s->name) : NULL;
    if (!mask) return (sft_span){ NULL, 0 };
    return (sft_span){ (const char *)mask->at, (size_t)sfti_ds_mask_bytes(mask->bits) };
}

const sft_dataset_place *sft_dataset_shard_places(const sft_dataset *dataset, size_t i,
                                                  size_t *count) {
    const sft_dataset_shard *s = sft_dataset_shard_at(dataset, i);
    *count = 0;
    return s ? sfti_ds_places_of(&dataset->manifest.places, s->name, count) : NULL;
}

sft_code sft_dataset_place_open(const sft_dataset *d, const sft_dataset_place *place,
                                const sft_open_options *options, sft_file **out,
                                sft_error *err) {
    if (!place || !place->file || !out)
        return sfti_misuse(err, "expected a place that has a file, found none");
    return sfti_ds_place_open(d->storage, &d->manifest, place, options, out, err);
}

/* ── Shards ── */

/* A shard is not as the manifest says: perhaps the dataset was replaced. */
static sft_code shard_wrong(const sft_storage *storage, const sfti_ds_manifest *m,
                            const sft_dataset_shard *s, uint64_t found, sft_error *err) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_ds_manifest now;
    sft_error ignored;
    sft_code code = sfti_ds_manifest_read(storage, &arena, &now, &ignored);
    bool other = !code && memcmp(now.commit, m->commit, sizeof now.commit) != 0;
    uint64_t version = !code ? now.version : 0;
    sfti_arena_free(&arena);
    if (other)
        return sfti_fail(err, SFT_DATASET_CHANGED,
                         "%s: replaced (version %llu to %llu) while reading", s->name,
                         (unsigned long long)m->version, (unsigned long long)version);
    if (found == SFT_SIZE_UNKNOWN)
        return sfti_fail(err, SFT_DATASET_SHARD,
                         "%s: expected the shard that the manifest names, found none", s->name);
    return sfti_fail(err, SFT_DATASET_SHARD, "%s: expected %llu bytes by the manifest, found %llu",
                     s->name, (unsigned long long)s->bytes, (unsigned long long)found);
}

sft_code sfti_ds_shard_open(const sft_storage *storage, const sfti_ds_manifest *m,
                            const sft_dataset_shard *s, const sft_open_options *options,
                            sft_file **out, sft_error *err) {
    sft_source source;
    *out = NULL;
    sft_code code = sfti_call(storage, open, s->name, &source, err);
    if (code == SFT_NOT_FOUND) return shard_wrong(storage, m, s, SFT_SIZE_UNKNOWN, err);
    if (code) return code;
    if (source.size == s->bytes) return sft_open_source(source, options, out, err);
    uint64_t found = source.size;
    sft_source_close(&source);
    return shard_wrong(storage, m, s, found, err);
}

sft_code sfti_ds_place_open(const sft_storage *storage, const sfti_ds_manifest *m,
                            const sfti_ds_place *p, const sft_open_options *options,
                            sft_file **out, sft_error *err) {
    const sft_dataset_shard shard = { .name = p->file, .bytes = p->bytes };
    return sfti_ds_shard_open(storage, m, &shard, options, out, err);
}

bool sfti_ds_shard_marked(const sft_file *file, const sfti_ds_manifest *m, const char *key,
                          uint64_t samples, uint64_t number) {
    const bool valid = strcmp(key, "valid_samples") == 0;
    char text[24];
    sft_span found;
    if (!sft_file_metadata_get_cstr(file, SFTI_DATASET_MARK, &found) || (valid && !m->ours))
        return true;
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return sft_file_metadata_get_cstr(file, key, &found)
               ? sft_span_equal(found, sft_span_cstr(text)) : valid && number == samples;
}

/* A manifest that tells fewer rows than there are would hide some. */
static sft_code shard_counts(const sft_file *file, const sfti_ds_manifest *m,
                             const sft_dataset_shard *s, sft_error *err) {
    const char *const keys[] = { "samples", "valid_samples" };
    const uint64_t numbers[] = { s->samples, s->valid_samples };
    for (int i = 0; i < 2; i++)
        if (!sfti_ds_shard_marked(file, m, keys[i], s->samples, numbers[i]))
            return sfti_fail(err, SFT_DATASET_SHARD,
                             "%s: expected %llu %s by the manifest, found another number in its "
                             "metadata", s->name, (unsigned long long)numbers[i], keys[i]);
    return SFT_OK;
}

sft_code sft_dataset_shard_open(const sft_dataset *d, size_t i, const sft_open_options *options,
                                sft_file **out, sft_error *err) {
    const sft_dataset_shard *s = sft_dataset_shard_at(d, i);
    if (!s || !out)
        return sfti_misuse(err, "expected a shard of the dataset, found number %zu", i);
    sft_code code = sfti_ds_shard_open(d->storage, &d->manifest, s, options, out, err);
    if (!code) code = shard_counts(*out, &d->manifest, s, err);
    if (!code || !*out) return code;
    sft_close(*out);
    *out = NULL;
    return code;
}
