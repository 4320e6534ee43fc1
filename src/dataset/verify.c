#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "dataset/care.h"
#include "safetensors_hash.h"

#include <stdio.h>
#include <string.h>

#define READ_BYTES (UINT64_C(1) << 20)
#define VERIFY_MOST 1000

/* Findings are kept as text until it is known whether the whole is well. */
typedef struct verifying {
    const sft_storage *storage;
    const sft_job *job;
    bool deep;
    sft_allocator alloc;
    sfti_arena arena;
    sft_dataset *dataset;
    const sfti_ds_manifest *m;
    sft_buffer findings, orphans;
    size_t count, orphan_count;
    uint64_t done, total; /* bytes */
    uint64_t samples, valid, shadowed, digests, tensors;
    bool opened_all;
    bool index, index_folder; /* what has that name is there; Spark wrote it */
    sft_code code; /* what ends the work: memory, cancelling */
    sft_error *err;
} verifying;

/* ── Findings ── */

static sft_code verify_append(void *ctx, const void *bytes, size_t len, sft_error *err) {
    return sfti_buffer_put(ctx, bytes, len) ? SFT_OK : sfti_fail_memory(err, len);
}

static void verify_put(verifying *v, sft_buffer *to, bool first, const char *shard,
                       const sft_error *what) {
    sft_sink sink;
    sfti_json_writer w;
    const char *message = what->message;
    size_t len = strlen(shard);
    /* Which shard it is stands beside. */
    if (strncmp(message, shard, len) == 0 && strncmp(message + len, ": ", 2) == 0)
        message += len + 2;
    if (v->code) return;
    v->code = sft_sink_callback(verify_append, to, &v->alloc, &sink, v->err);
    if (v->code) return;
    if (!first && !sfti_buffer_put(to, ",", 1)) v->code = sfti_fail_memory(v->err, 1);
    sfti_json_write(&w, &sink, 0, v->err);
    sfti_json_open(&w, '{');
    sfti_ds_put_text(&w, "code", sft_span_cstr(sft_code_describe(what->code)->name));
    sfti_ds_put_text(&w, "shard", sft_span_cstr(shard));
    sfti_ds_put_text(&w, "message", sft_span_cstr(message));
    sfti_json_close(&w, '}');
    if (v->code == SFT_OK) v->code = sfti_json_done(&w);
    sft_sink_abandon(&sink);
}

static void verify_find(verifying *v, const char *shard, const sft_error *what) {
    if (what->code == SFT_OUT_OF_MEMORY || what->code == SFT_CANCELLED) {
        v->code = what->code;
        if (v->err) *v->err = *what;
        return;
    }
    if (v->count < VERIFY_MOST) verify_put(v, &v->findings, v->count == 0, shard, what);
    v->count++;
}

static void verify_numbers(verifying *v, const char *shard, const char *what, uint64_t expected,
                           uint64_t found) {
    sft_error e = SFT_ERROR_INIT;
    if (expected == found) return;
    (void)sfti_fail(&e, SFT_DATASET_SHARD, SFT_NO_OFFSET,
                    "%s: expected %llu by the manifest, found %llu", what,
                    (unsigned long long)expected, (unsigned long long)found);
    verify_find(v, shard, &e);
}

/* ── One shard ── */

static sft_code verify_tick(verifying *v, uint64_t bytes, sft_error *err) {
    v->done += bytes;
    if (!v->job->tick || v->job->tick(v->job->ctx, v->done, v->total)) return SFT_OK;
    return sfti_fail(err, SFT_CANCELLED, SFT_NO_OFFSET, "the caller stopped the check");
}

static sft_code digest_bytes(verifying *v, const sft_source *source, sft_hasher *hasher,
                             char *room, sft_error *err) {
    for (uint64_t at = 0; at < source->size;) {
        uint64_t left = source->size - at;
        size_t got = 0, want = (size_t)(left < READ_BYTES ? left : READ_BYTES);
        sft_code code = sft_source_read(source, at, room, want, &got, err);
        if (code == SFT_OK && got == 0)
            code = sfti_fail(err, SFT_IO_SHRUNK, at, "the file became shorter");
        if (code == SFT_OK) code = verify_tick(v, got, err);
        if (code) return code;
        sft_hasher_update(hasher, room, got);
        at += got;
    }
    return SFT_OK;
}

static sft_code digest_shard(verifying *v, const sft_dataset_shard *s, sft_hashes *out,
                             sft_error *err) {
    sft_source source;
    sft_hasher *hasher = NULL;
    char *room = sfti_take(&v->alloc, READ_BYTES);
    if (!room) return sfti_fail_memory(err, READ_BYTES);
    sft_code code = sfti_call(v->storage, open, s->name, &source, err);
    if (code == SFT_OK) {
        code = sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), &v->alloc, &hasher, err);
        if (code == SFT_OK) code = digest_bytes(v, &source, hasher, room, err);
        if (code == SFT_OK) sft_hasher_result(hasher, out);
        sft_hasher_free(hasher);
        sft_source_close(&source);
    }
    sfti_release(&v->alloc, room, READ_BYTES);
    return code;
}

static void verify_digest(verifying *v, const sft_dataset_shard *s) {
    sft_error e = SFT_ERROR_INIT;
    sft_hashes found;
    if (!v->deep || !s->sha256) return;
    v->digests++;
    if (digest_shard(v, s, &found, &e)) {
        verify_find(v, s->name, &e);
    } else if (strcmp(sft_hashes_get(&found, SFT_HASH_SHA256), s->sha256) != 0) {
        (void)sfti_fail(&e, SFT_DATASET_SHARD, SFT_NO_OFFSET, "sha256: expected %s, found %s",
                        s->sha256, sft_hashes_get(&found, SFT_HASH_SHA256));
        verify_find(v, s->name, &e);
    }
}

static const sfti_ds_column *verify_column(const verifying *v, sft_span name) {
    for (size_t i = 0; i < v->m->column_count; i++)
        if (sft_span_equal(v->m->columns[i].name, name)) return &v->m->columns[i];
    return NULL;
}

static bool column_holds(const sfti_ds_column *c, const sft_tensor *t) {
    if (c->has_dtype && c->dtype != t->dtype) return false;
    if (!c->has_shape) return true;
    return t->rank == c->rank + 1 &&
           (c->rank == 0 || memcmp(t->shape + 1, c->shape, c->rank * sizeof *c->shape) == 0);
}

/* In batch mode each tensor is a column, with one sample a row. */
static void verify_batch(verifying *v, const sft_dataset_shard *s, const sft_file *file) {
    if (v->m->column_count)
        verify_numbers(v, s->name, "columns", v->m->column_count, sft_file_count(file));
    for (size_t i = 0; i < sft_file_count(file); i++) {
        const sft_tensor *t = sft_file_tensor(file, i);
        const sfti_ds_column *c = verify_column(v, t->name);
        sft_error e = SFT_ERROR_INIT;
        if (t->rank == 0 || t->shape[0] != s->samples)
            (void)sfti_fail_tensor(&e, SFT_DATASET_SHARD, SFT_NO_OFFSET, t->name,
                                   "tensor %.*s: expected %llu samples", (int)t->name.len,
                                   t->name.data, (unsigned long long)s->samples);
        else if (v->m->column_count && (!c || !column_holds(c, t)))
            (void)sfti_fail_tensor(&e, SFT_DATASET_SHARD, SFT_NO_OFFSET, t->name,
                                   "tensor %.*s: expected dtype and shape of a column of the "
                                   "manifest", (int)t->name.len, t->name.data);
        if (e.code) verify_find(v, s->name, &e);
    }
}

static void verify_marks(verifying *v, const sft_dataset_shard *s, const sft_file *file) {
    char number[24];
    sft_span mark, told;
    sft_error e = SFT_ERROR_INIT;
    if (!sft_file_metadata_get_cstr(file, SFTI_DATASET_MARK, &mark)) return;
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)s->samples);
    if (sft_file_metadata_get_cstr(file, "samples", &told) &&
        sft_span_equal(told, sft_span_cstr(number)))
        return;
    (void)sfti_fail(&e, SFT_DATASET_SHARD, SFT_NO_OFFSET,
                    "samples in its metadata: expected %s by the manifest", number);
    verify_find(v, s->name, &e);
}

static void verify_shard(verifying *v, size_t i) {
    const sft_dataset_shard *s = sft_dataset_shard_at(v->dataset, i);
    const bool known = v->m->ours || s->tensors;
    sft_error e = SFT_ERROR_INIT;
    sft_file *file = NULL;
    if (sft_dataset_shard_open(v->dataset, i, NULL, &file, &e)) {
        v->opened_all = false;
        verify_find(v, s->name, &e);
        return;
    }
    if (known) verify_numbers(v, s->name, "tensors", s->tensors, sft_file_count(file));
    v->tensors += sft_file_count(file);
    verify_marks(v, s, file);
    if (v->m->mode == SFT_DATASET_BATCH) verify_batch(v, s, file);
    sft_close(file);
    verify_digest(v, s);
    v->samples += s->samples;
    v->valid += s->valid_samples;
    v->shadowed += s->shadowed;
    if (!v->deep && v->code == SFT_OK) v->code = verify_tick(v, s->bytes, v->err);
}

/* ── The whole ── */

static void verify_totals(verifying *v) {
    uint64_t bytes = 0, columns = v->m->column_count ? v->m->column_count : 1;
    uint64_t lost = v->shadowed / columns;
    for (size_t i = 0; i < v->m->shard_count; i++) bytes += v->m->shards[i].facts.bytes;
    verify_numbers(v, SFTI_DATASET_MANIFEST, "total_bytes", v->m->total_bytes, bytes);
    if (v->opened_all) {
        verify_numbers(v, SFTI_DATASET_MANIFEST, "total_samples", v->m->total_samples,
                       v->samples - lost);
        verify_numbers(v, SFTI_DATASET_MANIFEST, "total_valid_samples", v->m->total_valid,
                       v->valid - lost);
    }
}

static sft_code duplicates_count(sfti_ds_merge *merge, uint64_t *shadowed, sft_error *err) {
    for (;;) {
        const sfti_ds_row *row;
        sft_code code = sfti_ds_merge_next(merge, &row, err);
        if (code || !row) return code;
        if (row->shadowed) shadowed[row->source]++;
    }
}

static void verify_duplicates(verifying *v) {
    size_t n = v->m->shard_count;
    sft_error e = SFT_ERROR_INIT;
    sfti_ds_merge *merge = NULL;
    sfti_ds_source *sources = sfti_arena_array(&v->arena, n, sizeof *sources);
    uint64_t *shadowed = sfti_arena_array(&v->arena, n, sizeof *shadowed);
    if (v->m->mode != SFT_DATASET_KV || !v->opened_all || v->code) return;
    if (!sources || !shadowed) {
        v->code = sfti_fail_memory(v->err, n * sizeof *sources);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const char *name = sft_dataset_shard_at(v->dataset, i)->name;
        sources[i] = (sfti_ds_source){ name, name };
        shadowed[i] = 0;
    }
    sft_code code = sfti_ds_merge_open(v->storage, sources, n, &v->alloc, v->job, &merge, &e);
    if (code == SFT_OK) code = duplicates_count(merge, shadowed, &e);
    sfti_ds_merge_close(merge);
    if (code) verify_find(v, SFTI_DATASET_MANIFEST, &e);
    for (size_t i = 0; code == SFT_OK && i < n; i++)
        verify_numbers(v, sources[i].name, "tensors that a later shard has again",
                       sft_dataset_shard_at(v->dataset, i)->shadowed, shadowed[i]);
}

static bool verify_orphan(void *ctx, const sft_stored *object) {
    verifying *v = ctx;
    uint64_t file, shard;
    sft_span name = sft_span_cstr(object->name);
    bool part = !object->folder && sfti_ds_shard_parse(name, &file, &shard);
    bool index = strcmp(object->name, SFTI_DATASET_INDEX) == 0;
    if (part && sfti_ds_manifest_names(v->m, object->name)) return true;
    v->index = v->index || index;
    v->index_folder = v->index_folder || (index && object->folder);
    /* A connector's manifest names no index. */
    bool stale = index && v->m->ours && !v->m->index.data;
    if (!part && !stale && !(object->folder && sfti_ds_is_job(name))) return true;
    sft_error e = SFT_ERROR_INIT;
    (void)sfti_fail(&e, SFT_DATASET_SHARD, SFT_NO_OFFSET, "%s",
                    part ? "the manifest does not name this shard"
                    : stale ? "the manifest names no index" : "a job's folder");
    if (v->orphan_count < VERIFY_MOST)
        verify_put(v, &v->orphans, v->orphan_count == 0, object->name, &e);
    v->orphan_count++;
    return v->code == SFT_OK;
}

static void verify_listing(verifying *v) {
    sft_code code = sfti_call(v->storage, list, "", verify_orphan, v, v->err);
    if (v->code == SFT_OK) v->code = code;
}

/* ── The index ── */

/* What readers pass over does no harm: a commit that was killed can leave an index of its own, an
 * overwrite of the connector's leaves the old one. */
static void index_note(verifying *v, const sft_error *what) {
    verify_put(v, &v->orphans, v->orphan_count == 0, SFTI_DATASET_INDEX, what);
    v->orphan_count++;
}

static void index_stale(verifying *v, const char *whose) {
    sft_error e = SFT_ERROR_INIT;
    (void)sfti_fail(&e, SFT_DATASET_SHARD, SFT_NO_OFFSET,
                    "an index of %s; readers do without it", whose);
    index_note(v, &e);
}

static void index_unlike(verifying *v, const char *expected) {
    sft_error e = SFT_ERROR_INIT;
    (void)sfti_fail(&e, SFT_DATASET_SHARD, SFT_NO_OFFSET, "expected %s, found %s", expected,
                    v->index ? "others" : "none");
    verify_find(v, SFTI_DATASET_INDEX, &e);
}

static bool index_names_shard(verifying *v, sft_span name) {
    char *copy = name.data ? sfti_arena_take(&v->arena, name.len + 1) : NULL;
    if (!name.data) return true;
    if (!copy) {
        v->code = sfti_fail_memory(v->err, name.len + 1);
        return true;
    }
    memcpy(copy, name.data, name.len);
    copy[name.len] = '\0';
    return sfti_ds_manifest_names(v->m, copy);
}

/* Of one file; false when there is nothing more to say. */
static bool index_file(verifying *v, const char *name, uint64_t *rows) {
    sft_error e = SFT_ERROR_INIT;
    sfti_ds_index index;
    const bool ours = v->m->ours;
    sft_code code = sfti_ds_index_look(v->storage, name, &v->arena, &index, &e);
    if (code == SFT_DATASET_SHARD && !ours) index_note(v, &e);
    else if (code) verify_find(v, SFTI_DATASET_INDEX, &e);
    if (code) return false;
    if (!sfti_add(*rows, index.rows, rows)) *rows = UINT64_MAX;
    bool full = index.columns == SFTI_INDEX_COLUMNS;
    bool same = !ours || sft_span_equal(index.commit, sft_span_cstr(v->m->commit));
    bool known = index_names_shard(v, index.first) && index_names_shard(v, index.last);
    if (!same) index_stale(v, "another commit");
    else if (!ours && !(full && known)) index_stale(v, "other shards");
    else if (!full) index_unlike(v, "the columns tensor_key, file_name, shape and dtype");
    else if (!known) index_unlike(v, "names of the manifest's shards");
    return same && known && full;
}

typedef struct index_parts {
    verifying *v;
    size_t count;
    sft_buffer text; /* their names, each with its NUL */
} index_parts;

static bool index_part(void *ctx, const sft_stored *object) {
    static const char ending[] = ".parquet";
    index_parts *p = ctx;
    size_t len = strlen(object->name), end = sizeof ending - 1;
    if (object->folder || object->name[0] == '_' || object->name[0] == '.' || len < end ||
        strcmp(object->name + len - end, ending) != 0)
        return true;
    p->count++;
    if (sfti_buffer_put(&p->text, SFTI_DATASET_INDEX "/", sizeof SFTI_DATASET_INDEX) &&
        sfti_buffer_put(&p->text, object->name, len + 1))
        return true;
    p->v->code = sfti_fail_memory(p->v->err, len);
    return false;
}

static bool index_folder(verifying *v, uint64_t *rows) {
    index_parts p = { .v = v, .text = { .alloc = v->alloc } };
    sft_code code =
        sfti_call(v->storage, list, SFTI_DATASET_INDEX, index_part, &p, v->err);
    bool good = true;
    if (v->code == SFT_OK) v->code = code;
    const char *name = p.text.data;
    for (size_t i = 0; good && v->code == SFT_OK && i < p.count; i++) {
        good = index_file(v, name, rows);
        name += strlen(name) + 1;
    }
    sft_buffer_free(&p.text);
    return good && v->code == SFT_OK;
}

/* A connector's manifest does not tell whether there is one. */
static void verify_index(verifying *v) {
    uint64_t rows = 0;
    if (v->m->index.data && !v->index) index_unlike(v, "the index that the manifest names");
    if (!v->index || (v->m->ours && !v->m->index.data)) return;
    bool good = v->index_folder ? index_folder(v, &rows)
                                : index_file(v, SFTI_DATASET_INDEX, &rows);
    if (!good || !v->opened_all || rows == v->tensors || v->code) return;
    sft_error e = SFT_ERROR_INIT;
    (void)sfti_fail(&e, SFT_DATASET_SHARD, SFT_NO_OFFSET,
                    "expected a row for each of %llu tensors, found %llu",
                    (unsigned long long)v->tensors, (unsigned long long)rows);
    if (v->m->ours) verify_find(v, SFTI_DATASET_INDEX, &e);
    else index_stale(v, "other shards");
}

static void verify_all(verifying *v) {
    v->m = sfti_ds_manifest_of(v->dataset);
    v->opened_all = true;
    for (size_t i = 0; i < v->m->shard_count; i++)
        if (!sfti_add(v->total, v->m->shards[i].facts.bytes, &v->total)) v->total = UINT64_MAX;
    for (size_t i = 0; v->code == SFT_OK && i < v->m->shard_count; i++) verify_shard(v, i);
    if (v->code == SFT_OK) verify_totals(v);
    if (v->code == SFT_OK) verify_duplicates(v);
    if (v->code == SFT_OK) verify_listing(v);
    if (v->code == SFT_OK) verify_index(v);
}

/* ── The result ── */

static void verify_array(sfti_json_writer *w, const char *key, const sft_buffer *text) {
    sfti_json_key(w, key);
    sfti_json_open(w, '[');
    if (text->len) sfti_json_raw(w, (sft_span){ text->data, text->len });
    sfti_json_close(w, ']');
}

static sft_code verify_write(const verifying *v, const char *path, sft_sink *sink,
                             sft_error *err) {
    sfti_json_writer w;
    sft_span none = { NULL, 0 };
    sfti_ds_put_begin(&w, path, v->count == 0, sink, err);
    sfti_json_key(&w, "deep");
    sfti_json_bool(&w, v->deep);
    sfti_ds_put_uint(&w, "digests", v->digests);
    sfti_ds_put_uint(&w, "shards", v->m ? v->m->shard_count : 0);
    sfti_ds_put_uint(&w, "bytes", v->m ? v->m->total_bytes : 0);
    sfti_ds_put_uint(&w, "samples", v->m ? v->m->total_samples : 0);
    sfti_ds_put_text(&w, "commit", v->m && *v->m->commit ? sft_span_cstr(v->m->commit) : none);
    sfti_ds_put_text(&w, "index", v->m ? v->m->index : none);
    sfti_ds_put_uint(&w, "finding_count", v->count);
    verify_array(&w, "findings", &v->findings);
    sfti_ds_put_uint(&w, "orphan_count", v->orphan_count);
    verify_array(&w, "orphans", &v->orphans);
    return sfti_ds_put_end(&w);
}

/* A manifest that is not right is a finding; one that cannot be got at is an error. */
static sft_code verify_open(verifying *v) {
    sft_error e = SFT_ERROR_INIT;
    sft_code code = sft_dataset_open(v->storage, &v->alloc, NULL, NULL, &v->dataset, &e);
    if (code == SFT_OK) return SFT_OK;
    if (code == SFT_MANIFEST_TYPE || code == SFT_MANIFEST_MISSING) {
        verify_find(v, SFTI_DATASET_MANIFEST, &e);
        return v->code;
    }
    if (v->err) *v->err = e;
    return code;
}

sft_code sft_dataset_verify_json(const sft_storage *storage, bool deep, const char *path,
                                 sft_sink *sink, bool *whole, const sft_job *job,
                                 sft_error *err) {
    sft_job own;
    verifying v = { .storage = storage, .job = &own, .deep = deep,
                    .alloc = sfti_allocator(NULL), .err = err };
    v.arena.alloc = v.findings.alloc = v.orphans.alloc = v.alloc;
    if (whole) *whole = false;
    v.code = sfti_ds_storage_check(storage, err);
    if (v.code == SFT_OK) v.code = sfti_take_job(job, &own, err);
    if (v.code == SFT_OK) v.code = verify_open(&v);
    if (v.code == SFT_OK && v.dataset) verify_all(&v);
    if (v.code == SFT_OK) v.code = verify_write(&v, path, sink, err);
    if (whole) *whole = v.code == SFT_OK && v.count == 0;
    sft_dataset_close(v.dataset);
    sft_buffer_free(&v.findings);
    sft_buffer_free(&v.orphans);
    sfti_arena_free(&v.arena);
    return v.code;
}
