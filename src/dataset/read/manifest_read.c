/* A manifest out of JSON, and its sums. Tests: test_dataset_manifest.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/order.h"
#include "dataset/fields.h"
#include "dataset/read/manifest.h"

#include <string.h>

/* Capacities of the arrays: the ctx of sfti_fields. */
typedef struct manifest_caps {
    size_t shards, entries, columns, segments;
    sfti_ds_segment *segment;
} manifest_caps;

/* ── Shards ── */

static sft_code shard_path(sfti_fields *r, void *out) {
    sfti_ds_shard *s = out;
    sft_span path;
    sft_code code = sfti_fields_text(r, false, &path);
    if (code) return code;
    if (!sfti_ds_is_bare(path)) return sfti_fields_wrong(r, "the name of a file in this folder");
    s->facts.name = path.data;
    return SFT_OK;
}

#define OF_SHARD(member) SFTI_FIELD_UINT, offsetof(sfti_ds_shard, facts.member)
enum { SHARD_TENSORS, SHARD_VALID };
static const sfti_field shard_rows[] = {
    [SHARD_TENSORS] = { "tensors", OF_SHARD(tensors), false, NULL },
    [SHARD_VALID] = { "valid_samples", OF_SHARD(valid_samples), false, NULL },
    { "shard_path", SFTI_FIELD_TAKEN, 0, true, shard_path },
    { "samples_count", OF_SHARD(samples), true, NULL },
    { "bytes", OF_SHARD(bytes), true, NULL },
    { "sha256", SFTI_FIELD_SHA256_NULL, offsetof(sfti_ds_shard, facts.sha256), false, NULL },
    { "first_sample", OF_SHARD(first_sample), false, NULL },
    { "shadowed", OF_SHARD(shadowed), false, NULL },
};

static sft_code manifest_shards(sfti_fields *r, void *out) {
    sfti_ds_manifest *m = out;
    manifest_caps *caps = r->ctx;
    if (sfti_json_next(&r->json) != SFTI_JSON_ARRAY) return sfti_fields_wrong(r, "an array");
    while (sfti_json_next(&r->json) == SFTI_JSON_OBJECT) {
        uint64_t seen;
        sfti_ds_shard *all = sfti_arena_grow(r->arena, m->shards, m->shard_count, 1,
                                             &caps->shards, sizeof *all);
        if (!all) return sfti_fail_memory(r->err, sizeof *all);
        m->shards = all;
        sfti_ds_shard *s = &all[m->shard_count];
        memset(s, 0, sizeof *s);
        sft_code code = sfti_fields_read(r, SFTI_FIELDS(shard_rows), s, &seen);
        if (code) return code;
        s->known = seen >> SHARD_TENSORS & 1;
        if (!(seen >> SHARD_VALID & 1)) s->facts.valid_samples = s->facts.samples;
        m->shard_count++;
    }
    return r->json.type == SFTI_JSON_ARRAY_END ? SFT_OK : sfti_fields_wrong(r, "an object");
}

/* ── Segments ── */

static sft_code segment_digest(sfti_fields *r, void *out) {
    sfti_ds_segment *s = out;
    char name[SFTI_SEGMENT_FILE_NAME];
    sfti_ds_addressed_name(SFTI_SEGMENT_FILE, s->sha256, name);
    return sfti_ds_is_segment(sft_span_cstr(name)) ? SFT_OK
                                                   : sfti_fields_wrong(r, "64 hexadecimal digits");
}

#define OF_SEGMENT(member) offsetof(sfti_ds_segment, member)
static const sfti_field segment_rows[] = {
    { "sha256", SFTI_FIELD_SHA256, OF_SEGMENT(sha256), true, segment_digest },
    { "bytes", SFTI_FIELD_UINT, OF_SEGMENT(bytes), true, NULL },
    { "shards", SFTI_FIELD_UINT, OF_SEGMENT(shards), true, NULL },
};

static sft_code manifest_segments(sfti_fields *r, void *out) {
    sfti_ds_manifest *m = out;
    manifest_caps *caps = r->ctx;
    if (sfti_json_next(&r->json) != SFTI_JSON_ARRAY) return sfti_fields_wrong(r, "an array");
    while (sfti_json_next(&r->json) == SFTI_JSON_OBJECT) {
        sfti_ds_segment *all = sfti_arena_grow(r->arena, caps->segment, m->segment_count, 1,
                                               &caps->segments, sizeof *all);
        if (!all) return sfti_fail_memory(r->err, sizeof *all);
        m->segments = caps->segment = all;
        sft_code code =
            sfti_fields_read(r, SFTI_FIELDS(segment_rows), &all[m->segment_count++], NULL);
        if (code) return code;
    }
    return r->json.type == SFTI_JSON_ARRAY_END ? SFT_OK : sfti_fields_wrong(r, "an object");
}

/* ── Masks ── */

static sft_code manifest_digest(sfti_fields *r, const char *sha256) {
    char name[SFTI_SEGMENT_FILE_NAME];
    sfti_ds_addressed_name(SFTI_MASKS_FILE, sha256, name);
    if (sfti_ds_is_addressed(sft_span_cstr(name))) return SFT_OK;
    return sfti_fields_wrong(r, "64 hexadecimal digits");
}

static sft_code masks_digest(sfti_fields *r, void *out) {
    return manifest_digest(r, ((sfti_ds_masks *)out)->sha256);
}

#define OF_MASKS(member) SFTI_FIELD_UINT, offsetof(sfti_ds_masks, member), true, NULL
static const sfti_field masks_rows[] = {
    { "sha256", SFTI_FIELD_SHA256, offsetof(sfti_ds_masks, sha256), true, masks_digest },
    { "bytes", OF_MASKS(bytes) },
    { "shards", OF_MASKS(shards) },
    { "count", OF_MASKS(deleted) },
};

static sft_code manifest_masks(sfti_fields *r, void *out) {
    sfti_ds_manifest *m = out;
    if (sfti_json_next(&r->json) != SFTI_JSON_OBJECT) return sfti_fields_wrong(r, "an object");
    return sfti_fields_read(r, SFTI_FIELDS(masks_rows), &m->masks, NULL);
}

static sft_code places_digest(sfti_fields *r, void *out) {
    return manifest_digest(r, ((sfti_ds_places *)out)->sha256);
}

#define OF_PLACES(member) SFTI_FIELD_UINT, offsetof(sfti_ds_places, member), true, NULL
static const sfti_field places_rows[] = {
    { "sha256", SFTI_FIELD_SHA256, offsetof(sfti_ds_places, sha256), true, places_digest },
    { "bytes", OF_PLACES(bytes) },
    { "count", OF_PLACES(count) },
};

static sft_code manifest_places(sfti_fields *r, void *out) {
    sfti_ds_manifest *m = out;
    if (sfti_json_next(&r->json) != SFTI_JSON_OBJECT) return sfti_fields_wrong(r, "an object");
    return sfti_fields_read(r, SFTI_FIELDS(places_rows), &m->places, NULL);
}

/* What a reader has to know, beyond what format 2.0 has. */
static sft_code manifest_features(sfti_fields *r, void *out) {
    (void)out;
    if (sfti_json_next(&r->json) != SFTI_JSON_ARRAY) return sfti_fields_wrong(r, "an array");
    while (sfti_json_next(&r->json) == SFTI_JSON_STRING)
        if (r->json.escaped || (!sft_span_equal(r->json.text, sft_span_cstr("deleted")) &&
                                !sft_span_equal(r->json.text, sft_span_cstr("columns"))))
            return sfti_fields_wrong(r, "\"deleted\" or \"columns\" of features, and of others a "
                                        "newer version of libsafetensors");
    return r->json.type == SFTI_JSON_ARRAY_END ? SFT_OK : sfti_fields_wrong(r, "text");
}

static int segment_order(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_ds_segment *all = ctx;
    return strcmp(all[a].sha256, all[b].sha256);
}

/* Each segment once, and as many shards as the manifest says. */
static sft_code manifest_segmented(sfti_ds_manifest *m, sfti_arena *arena, sft_error *err) {
    uint64_t shards = 0;
    if (m->segment_count > UINT32_MAX / 2) return sfti_fail_memory(err, SIZE_MAX);
    const uint32_t *order = sfti_arena_sorted(arena, m->segment_count, segment_order, m->segments);
    if (!order) return sfti_fail_memory(err, m->segment_count * sizeof *order);
    for (size_t i = 1; i < m->segment_count; i++)
        if (segment_order(m->segments, order[i - 1], order[i]) == 0)
            return sfti_fail(err, SFT_MANIFEST_TYPE, "expected each segment once, found %s again",
                             m->segments[order[i]].sha256);
    for (size_t i = 0; i < m->segment_count; i++) sfti_total_add(&shards, m->segments[i].shards);
    if (m->sums.padding > m->sums.rows)
        return sfti_fail(err, SFT_MANIFEST_TYPE,
                         "expected at most %llu rows of padding, found %llu",
                         (unsigned long long)m->sums.rows, (unsigned long long)m->sums.padding);
    if (shards == m->sums.shards) return SFT_OK;
    return sfti_fail(err, SFT_MANIFEST_TYPE, "expected %llu shards in the segments, found %llu",
                     (unsigned long long)m->sums.shards, (unsigned long long)shards);
}

/* ── schema and columns: name → {dtype, shape} ── */

static sft_code manifest_entry(sfti_fields *r, sfti_ds_manifest *m, const sfti_ds_entry *e) {
    manifest_caps *caps = r->ctx;
    sfti_ds_entry *all = sfti_arena_grow(r->arena, m->entries, m->entry_count, 1, &caps->entries,
                                         sizeof *all);
    if (!all) return sfti_fail_memory(r->err, sizeof *all);
    m->entries = all;
    if (!e->dtype.data || !e->shape) /* null */
        return sfti_fields_wrong(r, "dtype and shape before the '}'");
    all[m->entry_count++] = *e;
    return SFT_OK;
}

static sft_code manifest_column(sfti_fields *r, sfti_ds_manifest *m, const sfti_ds_entry *e) {
    manifest_caps *caps = r->ctx;
    sfti_ds_column *all = sfti_arena_grow(r->arena, m->columns, m->column_count, 1,
                                          &caps->columns, sizeof *all);
    if (!all) return sfti_fail_memory(r->err, sizeof *all);
    m->columns = all;
    return sfti_fields_column(r, e, &all[m->column_count++]);
}

static sft_code manifest_entries(sfti_fields *r, sfti_ds_manifest *m,
                                 sft_code (*put)(sfti_fields *r, sfti_ds_manifest *m,
                                                 const sfti_ds_entry *e)) {
    if (sfti_json_next(&r->json) != SFTI_JSON_OBJECT) return sfti_fields_wrong(r, "an object");
    while (sfti_json_next(&r->json) == SFTI_JSON_KEY) {
        sfti_ds_entry e;
        sft_span key = sfti_json_string(&r->json, r->arena);
        if (!key.data) return sfti_fail_memory(r->err, r->json.text.len);
        if (sfti_json_next(&r->json) != SFTI_JSON_OBJECT) return sfti_fields_wrong(r, "an object");
        sft_code code = sfti_fields_entry(r, &e);
        e.key = key;
        if (!code && !e.whole) code = sfti_fields_wrong(r, "dtype and shape before the '}'");
        if (!code) code = put(r, m, &e);
        if (code) return code;
    }
    return r->json.type == SFTI_JSON_OBJECT_END ? SFT_OK : sfti_fields_wrong(r, "',' or '}'");
}

static int batch_order(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_ds_batch *all = ctx;
    return sfti_bytes_compare(all[a].stream, all[b].stream);
}

/* Each stream once: of two numbers one would be believed. */
static sft_code batches_once(const sfti_fields *r, const sfti_ds_manifest *m) {
    if (m->batch_count > UINT32_MAX / 2) return sfti_fail_memory(r->err, SIZE_MAX);
    const uint32_t *order = sfti_arena_sorted(r->arena, m->batch_count, batch_order, m->batches);
    if (!order) return sfti_fail_memory(r->err, m->batch_count * sizeof *order);
    for (size_t i = 1; i < m->batch_count; i++)
        if (batch_order(m->batches, order[i - 1], order[i]) == 0)
            return sfti_fields_wrong(r, "each stream once in \"batches\" before the '}'");
    return SFT_OK;
}

static sft_code manifest_batches(sfti_fields *r, void *out) {
    sfti_ds_manifest *m = out;
    size_t cap = 0;
    if (sfti_json_next(&r->json) != SFTI_JSON_OBJECT) return sfti_fields_wrong(r, "an object");
    while (sfti_json_next(&r->json) == SFTI_JSON_KEY) {
        sfti_ds_batch *all = sfti_arena_grow(r->arena, m->batches, m->batch_count, 1, &cap,
                                             sizeof *all);
        if (all) m->batches = all;
        sft_span stream = sfti_json_string(&r->json, r->arena);
        if (!all || !stream.data) return sfti_fail_memory(r->err, sizeof *all);
        all[m->batch_count].stream = stream;
        if (sfti_json_next(&r->json) != SFTI_JSON_UINT)
            return sfti_fields_wrong(r, "the number of a batch");
        all[m->batch_count++].number = r->json.value;
    }
    if (r->json.type != SFTI_JSON_OBJECT_END) return sfti_fields_wrong(r, "',' or '}'");
    return batches_once(r, m);
}

static sft_code manifest_schema(sfti_fields *r, void *out) {
    sfti_ds_manifest *m = out;
    m->has_schema = true;
    return manifest_entries(r, m, manifest_entry);
}

static sft_code manifest_columns(sfti_fields *r, void *out) {
    return manifest_entries(r, out, manifest_column);
}

/* ── The top level ── */

/* 2.x has segments, 3.x features: what reads only 1.x or 2.x fails here. */
static sft_code manifest_format(sfti_fields *r, void *out) {
    sfti_ds_manifest *m = out;
    sft_span text;
    sft_code code = sfti_fields_text(r, false, &text);
    if (code) return code;
    if (text.len < 2 || !memchr("123", text.data[0], 3) || text.data[1] != '.')
        return sfti_fields_wrong(r, "format_version 1.0, 2.0 or 3.0");
    m->format = (unsigned)(text.data[0] - '0');
    return SFT_OK;
}

static sft_code manifest_safetensors(sfti_fields *r, void *out) {
    sft_span text;
    sft_code code = sfti_fields_text(r, false, &text);
    (void)out;
    if (!code && (text.len < 2 || memcmp(text.data, "1.", 2) != 0))
        return sfti_fields_wrong(r, "safetensors_version 1.0");
    return code;
}

/* It becomes part of file names. */
static sft_code manifest_history(sfti_fields *r, void *out) {
    sfti_ds_manifest *m = out;
    char name[SFTI_VERSION_FILE_NAME];
    uint64_t version;
    sfti_ds_version_name(0, m->history, name);
    return sfti_ds_is_version(sft_span_cstr(name), &version, &(sft_span){ NULL, 0 })
               ? SFT_OK : sfti_fields_wrong(r, "a uuid");
}

static sft_code manifest_numbered(sfti_fields *r, void *out) {
    sfti_ds_manifest *m = out;
    sfti_json_type type = sfti_json_next(&r->json);
    m->numbered = type == SFTI_JSON_TRUE;
    if (type == SFTI_JSON_TRUE || type == SFTI_JSON_FALSE) return SFT_OK;
    return sfti_fields_wrong(r, "true or false");
}

static sft_code manifest_generator(sfti_fields *r, void *out) {
    static const char own[] = "libsafetensors";
    sfti_ds_manifest *m = out;
    (void)r;
    m->ours = m->generator.len >= sizeof own - 1 &&
              memcmp(m->generator.data, own, sizeof own - 1) == 0;
    return SFT_OK;
}

static sft_code manifest_mode(sfti_fields *r, void *out) {
    sfti_ds_manifest *m = out;
    sft_span text;
    sft_code code = sfti_fields_text(r, false, &text);
    if (code) return code;
    if (sft_span_equal(text, sft_span_cstr("batch"))) m->mode = SFT_DATASET_BATCH;
    else if (sft_span_equal(text, sft_span_cstr("kv"))) m->mode = SFT_DATASET_KV;
    else return sfti_fields_wrong(r, "\"batch\" or \"kv\"");
    return SFT_OK;
}

static sft_code manifest_index(sfti_fields *r, void *out) {
    const sfti_ds_manifest *m = out;
    if (!m->index.data || sft_span_equal(m->index, sft_span_cstr(SFTI_DATASET_INDEX)))
        return SFT_OK;
    return sfti_fields_wrong(r, "\"" SFTI_DATASET_INDEX "\" or null");
}

#define OF_MANIFEST(member) offsetof(sfti_ds_manifest, member)
enum { MANIFEST_VALID, MANIFEST_SHARDS, MANIFEST_SEGMENTS, MANIFEST_COMMIT, MANIFEST_FEATURES,
       MANIFEST_DELETED, MANIFEST_PLACES };
static const sfti_field manifest_rows[] = {
    [MANIFEST_VALID] = { "total_valid_samples", SFTI_FIELD_UINT, OF_MANIFEST(total_valid), false,
                         NULL },
    [MANIFEST_SHARDS] = { "shards", SFTI_FIELD_TAKEN, 0, false, manifest_shards },
    [MANIFEST_SEGMENTS] = { "segments", SFTI_FIELD_TAKEN, 0, false, manifest_segments },
    [MANIFEST_COMMIT] = { "commit", SFTI_FIELD_UUID, OF_MANIFEST(commit), false, NULL },
    [MANIFEST_FEATURES] = { "features", SFTI_FIELD_TAKEN, 0, false, manifest_features },
    [MANIFEST_DELETED] = { "deleted", SFTI_FIELD_TAKEN, 0, false, manifest_masks },
    [MANIFEST_PLACES] = { "places", SFTI_FIELD_TAKEN, 0, false, manifest_places },
    { "index_commit", SFTI_FIELD_UUID, OF_MANIFEST(index_commit), false, NULL },
    { "index_sha256", SFTI_FIELD_SHA256, OF_MANIFEST(index_sha256), false, NULL },
    { "format_version", SFTI_FIELD_TAKEN, 0, true, manifest_format },
    { "safetensors_version", SFTI_FIELD_TAKEN, 0, true, manifest_safetensors },
    { "total_samples", SFTI_FIELD_UINT, OF_MANIFEST(total_samples), true, NULL },
    { "total_bytes", SFTI_FIELD_UINT, OF_MANIFEST(total_bytes), true, NULL },
    { "total_shards", SFTI_FIELD_UINT, OF_MANIFEST(sums.shards), false, NULL },
    { "total_rows", SFTI_FIELD_UINT, OF_MANIFEST(sums.rows), false, NULL },
    { "total_padding", SFTI_FIELD_UINT, OF_MANIFEST(sums.padding), false, NULL },
    { "total_tensors", SFTI_FIELD_UINT, OF_MANIFEST(sums.tensors), false, NULL },
    { "total_shadowed", SFTI_FIELD_UINT, OF_MANIFEST(sums.shadowed), false, NULL },
    { "largest_shard", SFTI_FIELD_UINT, OF_MANIFEST(sums.largest), false, NULL },
    { "next_file", SFTI_FIELD_UINT, OF_MANIFEST(sums.next_file), false, NULL },
    { "numbered_commits", SFTI_FIELD_TAKEN, 0, false, manifest_numbered },
    { "schema", SFTI_FIELD_TAKEN, 0, false, manifest_schema },
    { "generator", SFTI_FIELD_TEXT_NULL, OF_MANIFEST(generator), false, manifest_generator },
    { "row_order", SFTI_FIELD_UUID, OF_MANIFEST(row_order), false, NULL },
    { "version", SFTI_FIELD_UINT, OF_MANIFEST(version), false, NULL },
    { "committed", SFTI_FIELD_UINT, OF_MANIFEST(committed), false, NULL },
    { "history", SFTI_FIELD_UUID, OF_MANIFEST(history), false,
      manifest_history },
    { "mode", SFTI_FIELD_TAKEN, 0, false, manifest_mode },
    { "batch_size", SFTI_FIELD_UINT_NULL, OF_MANIFEST(batch_size), false, NULL },
    { "name_col", SFTI_FIELD_TEXT_NULL, OF_MANIFEST(name_col), false, NULL },
    { "kv_separator", SFTI_FIELD_TEXT_NULL, OF_MANIFEST(separator), false, NULL },
    { "tail_strategy", SFTI_FIELD_TEXT_NULL, OF_MANIFEST(tail), false, NULL },
    { "index", SFTI_FIELD_TEXT_NULL, OF_MANIFEST(index), false, manifest_index },
    { "columns", SFTI_FIELD_TAKEN, 0, false, manifest_columns },
    { "batches", SFTI_FIELD_TAKEN, 0, false, manifest_batches },
    { "keep_until", SFTI_FIELD_UINT, OF_MANIFEST(keep_until), false, NULL },
    { "dropped_samples", SFTI_FIELD_UINT, OF_MANIFEST(dropped), false, NULL },
};

/* ── Order and sums ── */

int sfti_ds_by_name(const void *shards, uint32_t a, uint32_t b) {
    const sfti_ds_shard *all = shards;
    return strcmp(all[a].facts.name, all[b].facts.name);
}

int sfti_ds_by_sample(const void *shards, uint32_t a, uint32_t b) {
    const sfti_ds_shard *all = shards;
    uint64_t x = all[a].facts.first_sample, y = all[b].facts.first_sample;
    return x < y ? -1 : x > y;
}

bool sfti_ds_manifest_names(const sfti_ds_manifest *manifest, const char *name) {
    size_t low = 0, high = manifest->shard_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(manifest->shards[middle].facts.name, name);
        if (order == 0) return true;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return false;
}

sft_code sfti_ds_manifest_ours(const sfti_ds_manifest *manifest, sft_error *err) {
    if (manifest->ours) return SFT_OK;
    return sfti_fail(err, SFT_MANIFEST_TYPE, "expected a dataset that libsafetensors wrote, found "
                     "another program's; an append adopts it");
}

bool sfti_ds_manifest_addresses(const sfti_ds_manifest *m, const char *name) {
    const char *const digest = name + strlen(name) - 64;
    if (strncmp(name, SFTI_MASKS_FILE, sizeof SFTI_MASKS_FILE - 1) == 0)
        return strcmp(digest, m->masks.sha256) == 0;
    if (strncmp(name, SFTI_PLACES_FILE, sizeof SFTI_PLACES_FILE - 1) == 0)
        return strcmp(digest, m->places.sha256) == 0;
    for (size_t i = 0; i < m->segment_count; i++)
        if (strcmp(digest, m->segments[i].sha256) == 0) return true;
    return false;
}

sft_code sfti_ds_manifest_sort(sfti_ds_manifest *m, sfti_ds_shard *shards, size_t n,
                               sfti_arena *arena, sft_error *err) {
    bool sorted = true;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = strcmp(shards[i - 1].facts.name, shards[i].facts.name) <= 0;
    m->shards = shards;
    m->shard_count = n;
    if (sorted) return SFT_OK;
    uint32_t *order = sfti_arena_sorted(arena, n, sfti_ds_by_name, shards);
    m->shards = sfti_arena_array(arena, n, sizeof *m->shards);
    if (!order || !m->shards) return sfti_fail_memory(err, n * sizeof *m->shards);
    for (size_t i = 0; i < n; i++) m->shards[i] = shards[order[i]];
    return SFT_OK;
}

/* Once sums are checked here other code adds without checks. */
bool sfti_ds_sums_add(sfti_ds_sums *sums, const sft_dataset_shard *s) {
    uint64_t file, number, end;
    if (sfti_ds_shard_parse(sft_span_cstr(s->name), &file, &number) &&
        file >= sums->next_file && file < UINT64_MAX)
        sums->next_file = file + 1;
    if (s->samples > sums->largest) sums->largest = s->samples;
    return sfti_add(sums->shards, 1, &sums->shards) &&
           sfti_add(sums->bytes, s->bytes, &sums->bytes) &&
           sfti_add(sums->rows, s->samples, &sums->rows) &&
           sfti_add(sums->padding, s->samples - s->valid_samples, &sums->padding) &&
           sfti_add(sums->tensors, s->tensors, &sums->tensors) &&
           sfti_add(sums->shadowed, s->shadowed, &sums->shadowed) &&
           sfti_add(s->first_sample, s->samples, &end) &&
           end <= INT64_MAX && sums->rows <= INT64_MAX; /* as sfti_ds_shard_check wants it */
}

const char *sfti_ds_manifest_index(const sfti_ds_manifest *m) {
    return *m->index_commit ? m->index_commit : m->commit;
}

void sfti_ds_manifest_total(sfti_ds_manifest *m) {
    uint64_t columns = m->column_count ? m->column_count : 1;
    bool by_key = m->mode == SFT_DATASET_KV; /* tensors are deleted there, not rows */
    uint64_t hidden = by_key ? m->sums.shadowed : m->sums.shadowed / columns;
    sfti_total_add(&hidden, m->masks.deleted);
    if (by_key) hidden /= columns;
    uint64_t valid = m->sums.rows - m->sums.padding;
    m->total_bytes = m->sums.bytes;
    m->total_samples = m->sums.rows - (hidden < m->sums.rows ? hidden : m->sums.rows);
    m->total_valid = valid - (hidden < valid ? hidden : valid);
}

sft_code sfti_ds_manifest_totalled(const sfti_ds_manifest *m, sft_error *err) {
    sfti_ds_manifest sums = *m;
    sfti_ds_manifest_total(&sums);
    const struct { const char *name; uint64_t sum, told; } totals[] = {
        { "total_samples", sums.total_samples, m->total_samples },
        { "total_valid_samples", sums.total_valid, m->total_valid },
        { "total_bytes", sums.total_bytes, m->total_bytes },
    };
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++)
        if (totals[i].sum != totals[i].told)
            return sfti_fail(err, SFT_MANIFEST_TYPE, "%s: expected %llu, the sum over the shards, "
                             "found %llu", totals[i].name, (unsigned long long)totals[i].sum,
                             (unsigned long long)totals[i].told);
    return SFT_OK;
}

sft_code sfti_ds_shard_check(sfti_ds_sums *sums, const sft_dataset_shard *s, sft_error *err) {
    if (s->valid_samples > s->samples)
        return sfti_fail(err, SFT_MANIFEST_TYPE,
                         "%s: expected at most %llu valid samples, found %llu", s->name,
                         (unsigned long long)s->samples, (unsigned long long)s->valid_samples);
    uint64_t end;
    if (!sfti_add(s->first_sample, s->samples, &end) || end > INT64_MAX ||
        s->samples > INT64_MAX - sums->rows)
        return sfti_fail(err, SFT_MANIFEST_TYPE,
                         "%s: expected a samples_count that ends before sample 2^63, found %llu",
                         s->name, (unsigned long long)s->samples);
    if (sfti_ds_sums_add(sums, s)) return SFT_OK;
    return sfti_fail(err, SFT_MANIFEST_TYPE,
                     "expected sums of samples, bytes and tensors within 64 bits, found more in %s",
                     s->name);
}

sft_code sfti_ds_sums_check(const sfti_ds_sums *found, const sfti_ds_sums *told, sft_error *err) {
    if (found->shards == told->shards && found->rows == told->rows &&
        found->padding == told->padding && found->tensors == told->tensors &&
        found->shadowed == told->shadowed)
        return SFT_OK;
    return sfti_fail(err, SFT_MANIFEST_TYPE,
                     "expected totals of the segments' shards, found others");
}

sft_code sfti_ds_order_fail(const char *name, sft_error *err) {
    return sfti_fail(err, SFT_MANIFEST_TYPE,
                     "expected shards in the order of samples, found %s after a later one", name);
}

sft_code sfti_ds_manifest_take(sfti_ds_manifest *m, sfti_ds_shard *shards, size_t n,
                               sfti_arena *arena, sft_error *err) {
    if (n > UINT32_MAX / 2)
        return sfti_fail(err, SFT_MANIFEST_TYPE, "expected fewer shards");
    sft_code code = sfti_ds_manifest_sort(m, shards, n, arena, err);
    for (size_t i = 1; !code && i < n; i++)
        if (strcmp(m->shards[i - 1].facts.name, m->shards[i].facts.name) == 0)
            return sfti_fail(err, SFT_MANIFEST_TYPE, "expected each shard once, found %s again",
                             m->shards[i].facts.name);

    if (code) return code;
    /* A connector's shards have no first_sample: their samples are in the order of names. */
    m->sums = (sfti_ds_sums){ .shards = 0 };
    for (size_t i = 0; i < m->shard_count; i++) {
        sft_dataset_shard *s = &m->shards[i].facts;
        if (!m->ours) s->first_sample = m->sums.rows;
        sft_code code = sfti_ds_shard_check(&m->sums, s, err);
        if (code) return code;
    }
    return SFT_OK;
}

/* Which of both forms it is, by format_version. */
static sft_code manifest_form(sfti_ds_manifest *m, uint64_t seen, sft_error *err) {
    static const char *const fields[] = { "shards", "segments" };
    static const char *const formats[] = { "", "1.0", "2.0", "3.0" };
    const bool named = seen >> MANIFEST_DELETED & 1 || seen >> MANIFEST_PLACES & 1;
    m->segmented = m->format == 2 || (m->format == 3 && !(seen >> MANIFEST_SHARDS & 1));
    if ((m->format == 3) != (seen >> MANIFEST_FEATURES & 1) || (named && m->format != 3))
        return sfti_fail(err, SFT_MANIFEST_TYPE, "expected \"features\" in format_version 3.0 "
                         "alone, and \"deleted\" and \"places\" there");
    const int wanted = m->segmented ? MANIFEST_SEGMENTS : MANIFEST_SHARDS;
    const int other = m->segmented ? MANIFEST_SHARDS : MANIFEST_SEGMENTS;
    if (!(seen >> wanted & 1))
        return sfti_fail(err, SFT_MANIFEST_TYPE, "expected the field \"%s\", found none",
                         fields[m->segmented]);
    if (seen >> other & 1)
        return sfti_fail(err, SFT_MANIFEST_TYPE, "expected no field \"%s\" in format_version %s",
                         fields[!m->segmented], formats[m->format]);
    if (m->segmented && !(seen >> MANIFEST_COMMIT & 1))
        return sfti_fail(err, SFT_MANIFEST_TYPE, "expected the field \"commit\", found none");
    return SFT_OK;
}

sft_code sfti_ds_manifest_parse(sft_span text, sfti_arena *arena, sfti_ds_manifest *out,
                                sft_error *err) {
    manifest_caps caps = { 0, 0, 0, 0, NULL };
    sfti_fields r = { .arena = arena, .code = SFT_MANIFEST_TYPE, .ctx = &caps, .err = err };
    uint64_t seen;
    memset(out, 0, sizeof *out);
    out->text = text;
    sft_code code = sfti_fields_begin(&r, text);
    if (code) return code;
    if (sfti_json_next(&r.json) != SFTI_JSON_OBJECT) return sfti_fields_wrong(&r, "an object");
    code = sfti_fields_read(&r, SFTI_FIELDS(manifest_rows), out, &seen);
    if (code) return code;
    if (sfti_json_next(&r.json) != SFTI_JSON_END)
        return sfti_fields_wrong(&r, "the end of the manifest");
    if (!(seen >> MANIFEST_VALID & 1)) out->total_valid = out->total_samples;
    /* Rows are numbered by signed numbers in other languages. */
    const struct { const char *name; uint64_t count; } counts[] = {
        { "total_samples", out->total_samples }, { "total_valid_samples", out->total_valid },
        { "total_rows", out->sums.rows },
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].count > INT64_MAX)
            return sfti_fail(err, SFT_MANIFEST_TYPE, "%s: expected a number below 2^63, found %llu",
                             counts[i].name, (unsigned long long)counts[i].count);
    code = manifest_form(out, seen, err);
    if (code) return code;
    if (!out->segmented)
        return sfti_ds_manifest_take(out, out->shards, out->shard_count, arena, err);
    out->ours = true;
    out->sums.bytes = out->total_bytes;
    return manifest_segmented(out, arena, err);
}
