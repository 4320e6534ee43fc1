#include "base/checked.h"
#include "base/error.h"
#include "base/json.h"
#include "base/order.h"
#include "base/utf8.h"
#include "dataset/read/manifest.h"

#include <string.h>


typedef struct manifest_reader {
    sfti_ds_manifest *out;
    sfti_arena *arena;
    sfti_json json;
    size_t shard_room, entry_room, column_room;
    uint32_t seen; /* bits of manifest_fields */
    sft_error *err;
} manifest_reader;

typedef sft_code (*manifest_take)(manifest_reader *r);

/* ── Values ── */

static sft_code manifest_wrong(const manifest_reader *r, const char *expected) {
    sft_span text = { r->json.begin, (size_t)(r->json.end - r->json.begin) };
    if (r->json.type == SFTI_JSON_ERROR)
        return sfti_fail_at(r->err, SFT_MANIFEST_TYPE, 0, text, r->json.error_at, r->json.why);
    return sfti_fail_at(r->err, SFT_MANIFEST_TYPE, 0, text, r->json.start, expected);
}

static sft_code manifest_uint(manifest_reader *r, uint64_t *out) {
    if (sfti_json_next(&r->json) != SFTI_JSON_UINT)
        return manifest_wrong(r, "a whole number from 0 on");
    *out = r->json.value;
    return SFT_OK;
}

/* With a NUL behind it; null gives data NULL where it is allowed. */
static sft_code manifest_text(manifest_reader *r, bool or_null, sft_span *out) {
    sfti_json_type type = sfti_json_next(&r->json);
    *out = (sft_span){ NULL, 0 };
    if (type == SFTI_JSON_NULL && or_null) return SFT_OK;
    if (type != SFTI_JSON_STRING)
        return manifest_wrong(r, or_null ? "a string or null" : "a string");
    char *copy = sfti_arena_take(r->arena, r->json.text.len + 1);
    if (!copy) return sfti_fail_memory(r->err, r->json.text.len + 1);
    size_t len = sfti_json_decode(r->json.text, copy);
    copy[len] = '\0';
    *out = (sft_span){ copy, len };
    return SFT_OK;
}

static sft_code manifest_dims(manifest_reader *r, uint32_t *rank, const uint64_t **shape) {
    uint64_t dims[SFT_MAX_RANK];
    uint32_t count = 0;
    while (sfti_json_next(&r->json) == SFTI_JSON_UINT && count < SFT_MAX_RANK)
        dims[count++] = r->json.value;
    if (r->json.type != SFTI_JSON_ARRAY_END)
        return manifest_wrong(r, "an array of at most 64 whole numbers");
    uint64_t *copy = sfti_arena_array(r->arena, count, sizeof *copy);
    if (!copy) return sfti_fail_memory(r->err, count * sizeof *copy);
    memcpy(copy, dims, count * sizeof *copy);
    *rank = count;
    *shape = copy;
    return SFT_OK;
}

/* Room for one item more in an array that grows in the arena. */
static void *manifest_grow(manifest_reader *r, const void *old, size_t count, size_t *cap,
                           size_t each) {
    if (count < *cap) return (void *)(uintptr_t)old;
    uint64_t more = *cap ? 2 * (uint64_t)*cap : 16;
    char *all = sfti_arena_array(r->arena, more, each);
    if (!all) {
        (void)sfti_fail_memory(r->err, more * each);
        return NULL;
    }
    if (count) memcpy(all, old, count * each);
    *cap = (size_t)more;
    return all;
}

static sft_code manifest_any(manifest_reader *r) {
    sfti_json_next(&r->json);
    sfti_json_skip(&r->json);
    return SFT_OK;
}

/* ── Shards ── */

static sft_code shard_path(manifest_reader *r, sfti_ds_shard *s) {
    sft_span path;
    sft_code code = manifest_text(r, false, &path);
    if (code) return code;
    bool bare = path.len && !memchr(path.data, '/', path.len) &&
                !memchr(path.data, '\\', path.len) && strlen(path.data) == path.len &&
                strcmp(path.data, "..") != 0 && strcmp(path.data, ".") != 0;
    if (!bare) return manifest_wrong(r, "the name of a file in this folder");
    s->facts.name = path.data;
    return SFT_OK;
}

static sft_code shard_digest(manifest_reader *r, sfti_ds_shard *s) {
    sft_span text;
    sft_code code = manifest_text(r, true, &text);
    if (code == SFT_OK && text.data && text.len != 64)
        return manifest_wrong(r, "64 hexadecimal digits or null");
    s->facts.sha256 = text.data;
    return code;
}

static sft_code shard_field(manifest_reader *r, sfti_ds_shard *s, uint32_t *seen) {
    static const char *const names[] = { "samples_count", "bytes",  "valid_samples",
                                         "first_sample",  "tensors", "shadowed" };
    uint64_t *const places[] = { &s->facts.samples,      &s->facts.bytes,
                                 &s->facts.valid_samples, &s->facts.first_sample,
                                 &s->facts.tensors,       &s->facts.shadowed };
    sft_span key = sfti_json_string(&r->json, r->arena);
    if (!key.data) return sfti_fail_memory(r->err, r->json.text.len);
    if (sft_span_equal(key, sft_span_cstr("sha256"))) return shard_digest(r, s);
    if (sft_span_equal(key, sft_span_cstr("shard_path"))) {
        *seen |= 1u << 8;
        return shard_path(r, s);
    }
    for (unsigned i = 0; i < 6; i++)
        if (sft_span_equal(key, sft_span_cstr(names[i]))) {
            *seen |= 1u << i;
            return manifest_uint(r, places[i]);
        }
    return manifest_any(r);
}

static sft_code manifest_shard(manifest_reader *r, sfti_ds_shard *s) {
    uint32_t seen = 0;
    memset(s, 0, sizeof *s);
    while (sfti_json_next(&r->json) == SFTI_JSON_KEY) {
        sft_code code = shard_field(r, s, &seen);
        if (code) return code;
    }
    if (r->json.type != SFTI_JSON_OBJECT_END) return manifest_wrong(r, "',' or '}'");
    if ((seen & 0x103) != 0x103)
        return manifest_wrong(r, "shard_path, samples_count and bytes before the shard's '}'");
    s->known = (seen & 1u << 4) != 0;
    if (!(seen & 1u << 2)) s->facts.valid_samples = s->facts.samples;
    return SFT_OK;
}

static sft_code manifest_shards(manifest_reader *r) {
    sfti_ds_manifest *m = r->out;
    if (sfti_json_next(&r->json) != SFTI_JSON_ARRAY) return manifest_wrong(r, "an array");
    while (sfti_json_next(&r->json) == SFTI_JSON_OBJECT) {
        sfti_ds_shard *all =
            manifest_grow(r, m->shards, m->shard_count, &r->shard_room, sizeof *all);
        if (!all) return SFT_OUT_OF_MEMORY;
        m->shards = all;
        sft_code code = manifest_shard(r, &all[m->shard_count]);
        if (code) return code;
        m->shard_count++;
    }
    return r->json.type == SFTI_JSON_ARRAY_END ? SFT_OK : manifest_wrong(r, "an object");
}

/* ── schema and columns: name → {dtype, shape} ── */

typedef struct typed_name {
    sft_span name, dtype; /* dtype.data NULL: varies */
    bool has_shape;
    uint32_t rank;
    const uint64_t *shape;
} typed_name;

static sft_code typed_field(manifest_reader *r, typed_name *t) {
    if (sft_span_equal(r->json.text, sft_span_cstr("dtype")))
        return manifest_text(r, true, &t->dtype);
    if (!sft_span_equal(r->json.text, sft_span_cstr("shape"))) return manifest_any(r);
    sfti_json_type type = sfti_json_next(&r->json);
    t->has_shape = type == SFTI_JSON_ARRAY;
    if (type == SFTI_JSON_NULL) return SFT_OK;
    if (type != SFTI_JSON_ARRAY) return manifest_wrong(r, "an array or null");
    return manifest_dims(r, &t->rank, &t->shape);
}

/* After the key. */
static sft_code manifest_typed(manifest_reader *r, typed_name *t) {
    memset(t, 0, sizeof *t);
    t->name = sfti_json_string(&r->json, r->arena);
    if (!t->name.data) return sfti_fail_memory(r->err, r->json.text.len);
    if (sfti_json_next(&r->json) != SFTI_JSON_OBJECT) return manifest_wrong(r, "an object");
    while (sfti_json_next(&r->json) == SFTI_JSON_KEY) {
        sft_code code = typed_field(r, t);
        if (code) return code;
    }
    return r->json.type == SFTI_JSON_OBJECT_END ? SFT_OK : manifest_wrong(r, "',' or '}'");
}

static sft_code manifest_entry(manifest_reader *r) {
    sfti_ds_manifest *m = r->out;
    typed_name t;
    sfti_ds_entry *all =
        manifest_grow(r, m->entries, m->entry_count, &r->entry_room, sizeof *all);
    if (!all) return SFT_OUT_OF_MEMORY;
    m->entries = all;
    sft_code code = manifest_typed(r, &t);
    if (code) return code;
    if (!t.dtype.data || !t.has_shape) return manifest_wrong(r, "dtype and shape before the '}'");
    all[m->entry_count++] = (sfti_ds_entry){ t.name, t.dtype, t.rank, t.shape };
    return SFT_OK;
}

static sft_code manifest_column(manifest_reader *r) {
    sfti_ds_manifest *m = r->out;
    typed_name t;
    sfti_ds_column *all =
        manifest_grow(r, m->columns, m->column_count, &r->column_room, sizeof *all);
    if (!all) return SFT_OUT_OF_MEMORY;
    m->columns = all;
    sft_code code = manifest_typed(r, &t);
    if (code) return code;
    sfti_ds_column *c = &all[m->column_count];
    memset(c, 0, sizeof *c);
    c->name = t.name;
    c->has_dtype = t.dtype.data != NULL;
    if (c->has_dtype && !sft_dtype_parse(t.dtype, &c->dtype))
        return manifest_wrong(r, "a known dtype of the column");
    c->has_shape = t.has_shape;
    c->rank = t.rank;
    c->shape = t.shape;
    m->column_count++;
    return SFT_OK;
}

static sft_code manifest_object(manifest_reader *r, manifest_take each) {
    if (sfti_json_next(&r->json) != SFTI_JSON_OBJECT) return manifest_wrong(r, "an object");
    while (sfti_json_next(&r->json) == SFTI_JSON_KEY) {
        sft_code code = each(r);
        if (code) return code;
    }
    return r->json.type == SFTI_JSON_OBJECT_END ? SFT_OK : manifest_wrong(r, "',' or '}'");
}

static sft_code manifest_schema(manifest_reader *r) {
    r->out->has_schema = true;
    return manifest_object(r, manifest_entry);
}

static sft_code manifest_columns(manifest_reader *r) {
    return manifest_object(r, manifest_column);
}

/* ── The top level ── */

static sft_code manifest_format(manifest_reader *r) {
    sft_span text;
    sft_code code = manifest_text(r, false, &text);
    if (code == SFT_OK && (text.len < 2 || memcmp(text.data, "1.", 2) != 0))
        return manifest_wrong(r, "format_version 1.0");
    return code;
}

static sft_code manifest_generator(manifest_reader *r) {
    static const char own[] = "libsafetensors";
    sft_code code = manifest_text(r, true, &r->out->generator);
    sft_span g = r->out->generator;
    r->out->ours = g.len >= sizeof own - 1 && memcmp(g.data, own, sizeof own - 1) == 0;
    return code;
}

static sft_code manifest_uuid(manifest_reader *r, char out[37]) {
    sft_span text;
    sft_code code = manifest_text(r, false, &text);
    if (code) return code;
    if (text.len != 36) return manifest_wrong(r, "a uuid");
    memcpy(out, text.data, 37);
    return SFT_OK;
}

static sft_code manifest_commit(manifest_reader *r) {
    return manifest_uuid(r, r->out->commit);
}
static sft_code manifest_row_order(manifest_reader *r) {
    return manifest_uuid(r, r->out->row_order);
}

static sft_code manifest_mode(manifest_reader *r) {
    sft_span text;
    sft_code code = manifest_text(r, false, &text);
    if (code) return code;
    if (sft_span_equal(text, sft_span_cstr("batch"))) r->out->mode = SFT_DATASET_BATCH;
    else if (sft_span_equal(text, sft_span_cstr("kv"))) r->out->mode = SFT_DATASET_KV;
    else return manifest_wrong(r, "\"batch\" or \"kv\"");
    return SFT_OK;
}

static sft_code manifest_batch_size(manifest_reader *r) {
    sfti_json_type type = sfti_json_next(&r->json);
    if (type == SFTI_JSON_UINT) r->out->batch_size = r->json.value;
    else if (type != SFTI_JSON_NULL) return manifest_wrong(r, "a whole number or null");
    return SFT_OK;
}

static sft_code manifest_index(manifest_reader *r) {
    sft_code code = manifest_text(r, true, &r->out->index);
    if (code == SFT_OK && r->out->index.data &&
        !sft_span_equal(r->out->index, sft_span_cstr(SFTI_DATASET_INDEX)))
        return manifest_wrong(r, "\"" SFTI_DATASET_INDEX "\" or null");
    return code;
}

static sft_code manifest_name_col(manifest_reader *r) {
    return manifest_text(r, true, &r->out->name_col);
}
static sft_code manifest_separator(manifest_reader *r) {
    return manifest_text(r, true, &r->out->separator);
}
static sft_code manifest_tail(manifest_reader *r) {
    return manifest_text(r, true, &r->out->tail);
}
static sft_code manifest_keep(manifest_reader *r) {
    return manifest_uint(r, &r->out->keep_until);
}
static sft_code manifest_dropped(manifest_reader *r) {
    return manifest_uint(r, &r->out->dropped);
}
static sft_code manifest_version(manifest_reader *r) {
    return manifest_uint(r, &r->out->version);
}
static sft_code manifest_samples(manifest_reader *r) {
    return manifest_uint(r, &r->out->total_samples);
}
static sft_code manifest_valid(manifest_reader *r) {
    return manifest_uint(r, &r->out->total_valid);
}
static sft_code manifest_bytes(manifest_reader *r) {
    return manifest_uint(r, &r->out->total_bytes);
}

static const struct manifest_field {
    const char *name;
    manifest_take take;
    bool required;
} manifest_fields[] = {
    { "format_version", manifest_format, true },
    { "safetensors_version", manifest_format, true },
    { "total_samples", manifest_samples, true },
    { "total_bytes", manifest_bytes, true },
    { "shards", manifest_shards, true },
    { "schema", manifest_schema, false },
    { "generator", manifest_generator, false },
    { "commit", manifest_commit, false },
    { "row_order", manifest_row_order, false },
    { "version", manifest_version, false },
    { "mode", manifest_mode, false },
    { "batch_size", manifest_batch_size, false },
    { "name_col", manifest_name_col, false },
    { "kv_separator", manifest_separator, false },
    { "tail_strategy", manifest_tail, false },
    { "index", manifest_index, false },
    { "columns", manifest_columns, false },
    { "keep_until", manifest_keep, false },
    { "dropped_samples", manifest_dropped, false },
    { "total_valid_samples", manifest_valid, false },
};
#define FIELD_COUNT (sizeof manifest_fields / sizeof *manifest_fields)
#define FIELD_VALID (FIELD_COUNT - 1)

static sft_code manifest_key(manifest_reader *r) {
    sft_span key = sfti_json_string(&r->json, r->arena);
    if (!key.data) return sfti_fail_memory(r->err, r->json.text.len);
    for (unsigned i = 0; i < FIELD_COUNT; i++) {
        if (!sft_span_equal(key, sft_span_cstr(manifest_fields[i].name))) continue;
        if (r->seen & 1u << i) return manifest_wrong(r, "each field once");
        r->seen |= 1u << i;
        return manifest_fields[i].take(r);
    }
    return manifest_any(r);
}

static sft_code manifest_complete(const manifest_reader *r) {
    for (unsigned i = 0; i < FIELD_COUNT; i++)
        if (manifest_fields[i].required && !(r->seen & 1u << i))
            return sfti_fail(r->err, SFT_MANIFEST_TYPE, SFT_NO_OFFSET,
                             "expected the field \"%s\", found none", manifest_fields[i].name);
    return SFT_OK;
}

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

static sft_code manifest_sort(manifest_reader *r) {
    sfti_ds_manifest *m = r->out;
    size_t n = m->shard_count;
    if (n > UINT32_MAX / 2) return manifest_wrong(r, "fewer shards");
    uint32_t *order = sfti_arena_array(r->arena, 2 * (uint64_t)n, sizeof *order);
    sfti_ds_shard *sorted = sfti_arena_array(r->arena, n, sizeof *sorted);
    if (!order || !sorted) return sfti_fail_memory(r->err, n * sizeof *sorted);
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    sfti_sort(order, order + n, n, sfti_ds_by_name, m->shards);
    for (size_t i = 0; i < n; i++) sorted[i] = m->shards[order[i]];
    m->shards = sorted;
    for (size_t i = 1; i < n; i++)
        if (strcmp(sorted[i - 1].facts.name, sorted[i].facts.name) == 0)
            return sfti_fail(r->err, SFT_MANIFEST_TYPE, SFT_NO_OFFSET,
                             "expected each shard once, found %s again", sorted[i].facts.name);
    return SFT_OK;
}

/* Sums of all shards, which who has a manifest may make again unchecked. */
typedef struct manifest_sums {
    uint64_t samples, bytes, tensors, shadowed;
} manifest_sums;

static bool manifest_sum(manifest_sums *sums, const sft_dataset_shard *s) {
    uint64_t end;
    return sfti_add(sums->samples, s->samples, &sums->samples) &&
           sfti_add(sums->bytes, s->bytes, &sums->bytes) &&
           sfti_add(sums->tensors, s->tensors, &sums->tensors) &&
           sfti_add(sums->shadowed, s->shadowed, &sums->shadowed) &&
           sfti_add(s->first_sample, s->samples, &end);
}

/* A connector's shards have no first_sample: theirs are in the order of names. */
static sft_code manifest_number(manifest_reader *r) {
    sfti_ds_manifest *m = r->out;
    manifest_sums sums = { 0, 0, 0, 0 };
    for (size_t i = 0; i < m->shard_count; i++) {
        sft_dataset_shard *s = &m->shards[i].facts;
        if (!m->ours) s->first_sample = sums.samples;
        if (s->valid_samples > s->samples)
            return sfti_fail(r->err, SFT_MANIFEST_TYPE, SFT_NO_OFFSET,
                             "%s: expected at most %llu valid samples, found %llu", s->name,
                             (unsigned long long)s->samples,
                             (unsigned long long)s->valid_samples);
        if (!manifest_sum(&sums, s))
            return sfti_fail(r->err, SFT_MANIFEST_TYPE, SFT_NO_OFFSET,
                             "expected sums of samples, bytes and tensors within 64 bits, found "
                             "more in %s", s->name);
    }
    if (!(r->seen & 1u << FIELD_VALID)) m->total_valid = m->total_samples;
    return SFT_OK;
}

sft_code sfti_ds_manifest_parse(sft_span text, sfti_arena *arena, sfti_ds_manifest *out,
                                sft_error *err) {
    manifest_reader r = { out, arena, { 0 }, 0, 0, 0, 0, err };
    memset(out, 0, sizeof *out);
    out->text = text;
    size_t bad = sfti_utf8_check(text.data, text.len);
    if (bad != text.len)
        return sfti_fail(err, SFT_MANIFEST_TYPE, bad, "expected UTF-8, found the byte 0x%02x",
                         (unsigned)(uint8_t)text.data[bad]);
    sfti_json_begin(&r.json, text.data, text.len);
    sft_code code = manifest_object(&r, manifest_key);
    if (code == SFT_OK && sfti_json_next(&r.json) != SFTI_JSON_END)
        code = manifest_wrong(&r, "the end of the manifest");
    if (code == SFT_OK) code = manifest_complete(&r);
    if (code == SFT_OK) code = manifest_sort(&r);
    if (code == SFT_OK) code = manifest_number(&r);
    return code;
}
