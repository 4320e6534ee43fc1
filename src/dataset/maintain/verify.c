/* A dataset is compared with its manifest. Tests: test_dataset_maintain.c. */
#include "base/error.h"
#include "base/options.h"
#include "dataset/maintain/results.h"
#include "dataset/maintain/verify.h"
#include "dataset/read/masks.h"
#include "dataset/read/places.h"

#include <string.h>

static void verify_numbers(verification *v, const char *shard, const char *what, uint64_t expected,
                           uint64_t found) {
    if (expected != found)
        sfti_verify_tell(v, shard, "%s: expected %llu by the manifest, found %llu", what,
                         (unsigned long long)expected, (unsigned long long)found);
}

/* ── One shard ── */

static sft_code verify_tick(void *ctx, uint64_t bytes, sft_error *err) {
    verification *v = ctx;
    v->done += bytes;
    return sfti_job_tick(v->job, v->done, v->total, err);
}

static void verify_digest(verification *v, const char *name, const char *expected) {
    sft_error e = SFT_ERROR_INIT;
    char found[65];
    if (!v->deep || !expected) return;
    v->digests++;
    if (sfti_ds_digest_file(v->storage, name, &v->alloc, verify_tick, v, found, &e))
        sfti_verify_find(v, name, &e);
    else if (strcmp(found, expected) != 0)
        sfti_verify_tell(v, name, "sha256: expected %s, found %s", expected, found);
}

/* In batch mode each tensor is a column with a row a sample, or a part of one. The file must have
 * these columns, which are the manifest's or some of them. */
static void verify_batch(verification *v, const sft_dataset_shard *s, const sft_file *file,
                         const sfti_ds_column *all, size_t count) {
    uint64_t columns = 0;
    sft_error e = SFT_ERROR_INIT;
    for (size_t i = 0; i < count; i++) columns += all[i].encoding == SFTI_ENCODING_NESTED;
    for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
        const sft_tensor *t = sft_file_tensor_at(file, i);
        sfti_ds_part part;
        const sfti_ds_column *c = sfti_ds_column_part(all, count, t->name, &part);
        if (c && c->encoding == SFTI_ENCODING_NESTED) continue; /* sfti_verify_rows */
        bool other = c && (part == SFTI_PART_VALID ? c->nullable : c->encoding > 0);
        if (part != SFTI_PART_VALUES && c) {
            if (other) continue;
            c = NULL;
        }
        columns++;
        if (!(other && sfti_ds_column_holds(c, t)) && (t->rank == 0 || t->shape[0] != s->samples))
            sfti_verify_tell(v, s->name, "tensor %.*s: expected %llu samples", (int)t->name.len,
                             t->name.data, (unsigned long long)s->samples);
        else if (v->m->column_count && (!c || !sfti_ds_column_holds(c, t)))
            sfti_verify_tell(v, s->name, "tensor %.*s: expected dtype and shape of a column of the "
                             "manifest", (int)t->name.len, t->name.data);
    }
    if (v->m->column_count) verify_numbers(v, s->name, "columns", count, columns);
    if (sfti_verify_rows(file, all, count, s->samples, v->deep, &v->alloc, &e))
        sfti_verify_find(v, s->name, &e);
}

static void verify_mark(verification *v, const sft_dataset_shard *s, const sft_file *file,
                        const char *key, uint64_t expected) {
    if (!sfti_ds_shard_marked(file, v->m, key, s->samples, expected))
        sfti_verify_tell(v, s->name, "%s in its metadata: expected %llu by the manifest", key,
                         (unsigned long long)expected);
}

static void verify_marks(verification *v, const sft_dataset_shard *s, const sft_file *file) {
    verify_mark(v, s, file, "samples", s->samples);
    verify_mark(v, s, file, "valid_samples", s->valid_samples);
}

/* The manifest's columns that are in this file of the shard, or in the shard itself (NULL). */
static size_t columns_in(const verification *v, const char *shard, const char *file,
                         sfti_ds_column *out) {
    size_t count = 0;
    for (size_t i = 0; i < v->m->column_count; i++) {
        const sfti_ds_column *c = &v->m->columns[i];
        const sfti_ds_place *p = sfti_ds_place_find(&v->m->places, shard, c->name);
        if (file ? p && sfti_ds_place_is(p, file) : !p) out[count++] = *c;
    }
    return count;
}

/* Files with columns of a shard, each once. */
static void verify_columns(verification *v, const sft_dataset_shard *s, sfti_ds_column *columns) {
    size_t count;
    const sfti_ds_place *of = sfti_ds_places_of(&v->m->places, s->name, &count);
    v->placed += count;
    for (size_t i = 0; i < count && !v->code; i++) {
        sft_error e = SFT_ERROR_INIT;
        sft_file *file = NULL;
        if (sfti_ds_place_check(&of[i], v->m, &e)) sfti_verify_find(v, s->name, &e);
        if (!sfti_ds_place_first(of, i)) continue;
        sft_dataset_shard one = *s;
        one.name = of[i].file;
        one.bytes = of[i].bytes;
        one.sha256 = of[i].sha256;
        if (sfti_ds_place_open(v->storage, v->m, &of[i], &v->open, &file, &e)) {
            sfti_verify_find(v, of[i].file, &e);
            continue;
        }
        verify_marks(v, &one, file);
        verify_batch(v, &one, file, columns, columns_in(v, s->name, of[i].file, columns));
        sft_close(file);
        verify_digest(v, one.name, one.sha256);
    }
}

static void verify_shard(verification *v, const sft_dataset_shard *s) {
    const bool known = v->m->ours || s->tensors;
    sft_error e = SFT_ERROR_INIT;
    sft_file *file = NULL;
    v->bytes += s->bytes;
    if (sfti_ds_shard_open(v->storage, v->m, s, &v->open, &file, &e)) {
        v->opened_all = false;
        sfti_verify_find(v, s->name, &e);
        return;
    }
    if (known) verify_numbers(v, s->name, "tensors", s->tensors, sft_file_tensor_count(file));
    v->tensors += sft_file_tensor_count(file);
    verify_marks(v, s, file);
    if (v->m->mode == SFT_DATASET_BATCH)
        verify_batch(v, s, file, v->columns, columns_in(v, s->name, NULL, v->columns));
    sft_close(file);
    verify_digest(v, s->name, s->sha256);
    if (v->m->mode == SFT_DATASET_BATCH) verify_columns(v, s, v->columns);
    const sfti_ds_mask *mask = sfti_ds_mask_find(&v->m->masks, s->name);
    v->masked += mask != NULL;
    if (mask && sfti_ds_mask_check(mask, s, v->m->mode, &e)) sfti_verify_find(v, s->name, &e);
    if (v->m->ours && v->opened_all)
        verify_numbers(v, s->name, "first_sample", s->first_sample, v->samples);
    v->samples += s->samples;
    v->valid += s->valid_samples;
    v->shadowed += s->shadowed;
    if (!v->deep && !v->code) v->code = verify_tick(v, s->bytes, v->err);
}

/* ── The whole ── */

static sfti_ds_stream verify_stream(const verification *v) {
    return (sfti_ds_stream){ .storage = v->storage, .m = v->m, .texts = { .alloc = v->alloc },
                             .array = { .alloc = v->alloc } };
}

/* A segment that is wrong ends the list of shards: a finding, or another commit replaced it. */
static void verify_unlisted(verification *v, sft_code code, const sft_error *what) {
    sft_error e = SFT_ERROR_INIT;
    bool finding = code == SFT_DATASET_SHARD || code == SFT_MANIFEST_TYPE;
    if (!finding) {
        v->code = code;
        if (v->err) *v->err = *what;
    } else if (sfti_ds_manifest_changed(v->storage, &v->alloc, v->m->text)) {
        (void)sfti_fail(&e, SFT_DATASET_CHANGED, "replaced by another commit while reading");
        sfti_verify_find(v, SFTI_DATASET_MANIFEST, &e);
    } else {
        sfti_verify_find(v, SFTI_DATASET_MANIFEST, what);
    }
}

static void verify_totals(verification *v) {
    sfti_ds_manifest found = *v->m;
    found.sums.shadowed = v->shadowed;
    found.sums.rows = v->samples;
    found.sums.padding = v->samples - v->valid;
    sfti_ds_manifest_total(&found);
    verify_numbers(v, SFTI_DATASET_MANIFEST, "total_bytes", v->m->total_bytes, v->bytes);
    if (v->opened_all) {
        verify_numbers(v, SFTI_DATASET_MANIFEST, "total_samples", v->m->total_samples,
                       found.total_samples);
        verify_numbers(v, SFTI_DATASET_MANIFEST, "total_valid_samples", v->m->total_valid,
                       found.total_valid);
    }
}

/* Copies what the merge needs of every shard. */
static sft_code duplicates_sources(verification *v, sfti_ds_source *sources, uint64_t *told,
                                   sft_error *err) {
    sfti_ds_stream stream = verify_stream(v);
    const sft_dataset_shard *s = NULL;
    sft_code code = sfti_ds_stream_next(&stream, &s, err);
    for (size_t i = 0; !code && s; i++) {
        const char *name = sfti_arena_copy(&v->arena, s->name, strlen(s->name));
        if (name)
            sources[i] = (sfti_ds_source){ name, name, sfti_ds_mask_find(&v->m->masks, name) };
        told[i] = s->shadowed;
        code = name ? sfti_ds_stream_next(&stream, &s, err) : sfti_fail_memory(err, 1);
    }
    sfti_ds_stream_close(&stream);
    return code;
}

static void verify_duplicates(verification *v) {
    size_t n = (size_t)v->m->sums.shards;
    sft_error e = SFT_ERROR_INIT;
    sfti_ds_merge *merge = NULL;
    if (v->m->mode != SFT_DATASET_KV || !v->opened_all || v->code) return;
    sfti_ds_source *sources = sfti_arena_array(&v->arena, n, sizeof *sources);
    uint64_t *told = sfti_arena_array(&v->arena, n, sizeof *told);
    uint64_t *shadowed = sfti_arena_array(&v->arena, n, sizeof *shadowed);
    if (!sources || !told || !shadowed) {
        v->code = sfti_fail_memory(v->err, n * sizeof *sources);
        return;
    }
    memset(shadowed, 0, n * sizeof *shadowed);
    sft_code code = duplicates_sources(v, sources, told, &e);
    if (!code)
        code = sfti_ds_merge_open(v->storage, sources, n, &v->open, &v->alloc, v->job, &merge, &e);
    const sfti_ds_row *row = NULL;
    verify_keys keys;
    if (!sfti_verify_keys_begin(v, &keys)) code = SFT_OUT_OF_MEMORY;
    if (!code) code = sfti_ds_merge_next(merge, &row, &e);
    while (!code && row) {
        if (row->shadowed) shadowed[row->source]++;
        sfti_verify_keys_next(v, &keys, row);
        code = sfti_ds_merge_next(merge, &row, &e);
    }
    if (!code) sfti_verify_keys_next(v, &keys, NULL);
    sfti_ds_merge_close(merge);
    if (v->code) return;
    if (code) sfti_verify_find(v, SFTI_DATASET_MANIFEST, &e);
    for (size_t i = 0; !code && i < n; i++)
        verify_numbers(v, sources[i].name, "tensors that a later shard has again", told[i],
                       shadowed[i]);
}

/* Whether only a version that is kept names a shard or segment. */
static bool verify_kept(verification *v, const char *name, bool segment) {
    bool has = false;
    for (size_t i = 0; segment && !has && i < v->version_count; i++)
        has = sfti_ds_manifest_addresses(&v->versions[i], name);
    sft_code code = segment ? SFT_OK : sfti_ds_names_has(&v->kept, name, &has, v->err);
    if (!v->code) v->code = code;
    return has || code;
}

static bool verify_orphan(void *ctx, const sft_stored *object) {
    verification *v = ctx;
    sft_span name = sft_span_cstr(object->name);
    bool part = !object->folder && sfti_ds_is_part(name);
    bool index = strcmp(object->name, SFTI_DATASET_INDEX) == 0;
    bool segment = !object->folder && sfti_ds_is_addressed(name);
    if (part && sfti_verify_names(v, object->name)) return !v->code;
    if (segment && sfti_ds_manifest_addresses(v->m, object->name)) return true;
    if ((part || segment) && verify_kept(v, object->name, segment)) return !v->code;
    v->index = v->index || index;
    v->index_folder = v->index_folder || (index && object->folder);
    /* A connector's manifest names no index. */
    bool stale = index && v->m->ours && !v->m->index.data;
    if (!part && !segment && !stale && !(object->folder && sfti_ds_is_job(name))) return true;
    sft_error e = SFT_ERROR_INIT;
    (void)sfti_fail(&e, SFT_DATASET_SHARD, "%s",
                    part ? sfti_ds_is_columns(name) ? "the manifest does not name these columns"
                                                    : "the manifest does not name this shard"
                    : segment && strncmp(object->name, SFTI_PLACES_FILE,
                                         sizeof SFTI_PLACES_FILE - 1) == 0
                        ? "the manifest does not name these places of columns"
                    : segment && !sfti_ds_is_segment(name)
                        ? "the manifest does not name these masks"
                    : segment ? "the manifest does not name this segment"
                    : stale ? "the manifest names no index" : "a job's folder");
    sfti_verify_put(v, &v->orphans, object->name, &e);
    return !v->code;
}

/* ── Versions ── */

/* The shards of a version that the one in force does not name: they must be there, of this size. */
static sft_code version_shards(verification *v, const sfti_ds_manifest *m, const char *name,
                               sft_error *err) {
    sfti_ds_stream stream = { .storage = v->storage, .m = m, .texts = { .alloc = v->alloc },
                              .array = { .alloc = v->alloc } };
    const sft_dataset_shard *s = NULL;
    sft_code code = sfti_ds_stream_next(&stream, &s, err);
    while (!code && s && !v->code) {
        bool has;
        sft_source source;
        sft_error e = SFT_ERROR_INIT;
        code = sfti_ds_names_has(&v->names, s->name, &has, err);
        sft_code opened = code || has ? SFT_OK : sfti_call(v->storage, open, s->name, &source, &e);
        if (!code && !has && !opened) {
            if (source.size != s->bytes)
                sfti_verify_tell(v, name, "%s: expected %llu bytes, found %llu", s->name,
                                 (unsigned long long)s->bytes, (unsigned long long)source.size);
            sft_source_close(&source);
        } else if (opened == SFT_NOT_FOUND) {
            sfti_verify_tell(v, name, "expected the shard %s, found none", s->name);
        } else if (opened) {
            sfti_verify_find(v, name, &e);
        }
        if (!code && !has) code = sfti_ds_names_add(&v->kept, s->name, err);
        if (!code) code = sfti_ds_stream_next(&stream, &s, err);
    }
    sfti_ds_stream_close(&stream);
    if (!code && *m->places.sha256) code = sfti_ds_names_add_columns(&v->kept, v->storage, m, err);
    return code;
}

static void verify_versions(verification *v) {
    sfti_ds_version *all;
    size_t count;
    v->kept = (sfti_ds_names){ .alloc = v->alloc, .m = v->m, .several = true };
    v->code = sfti_ds_versions_list(v->storage, v->m, &v->arena, &all, &count, v->err);
    v->versions = sfti_arena_array(&v->arena, count, sizeof *v->versions);
    if (!v->code && !v->versions) v->code = sfti_fail_memory(v->err, count * sizeof *v->versions);
    for (size_t i = 0; !v->code && i < count; i++) {
        sfti_ds_manifest *m = &v->versions[v->version_count];
        sft_error e = SFT_ERROR_INIT;
        sft_code code = sfti_ds_version_read(v->storage, &all[i], &v->arena, m, &e);
        if (!code) {
            v->version_count++;
            code = version_shards(v, m, all[i].name, &e);
            if (!code) code = sfti_ds_masks_read(v->storage, &v->arena, &m->masks, &e);
        }
        if (code && code != SFT_NOT_FOUND) sfti_verify_find(v, all[i].name, &e);
    }
    if (!v->code) v->code = sfti_ds_names_sort(&v->kept, v->err);
}

static void verify_all(verification *v) {
    v->m = &v->manifest;
    v->names = (sfti_ds_names){ .alloc = v->alloc, .m = v->m, .several = true };
    v->opened_all = true;
    v->total = v->m->sums.bytes;

    sfti_ds_stream stream = verify_stream(v);
    const sft_dataset_shard *s = NULL;
    sft_error e = SFT_ERROR_INIT;
    v->columns = sfti_arena_array(&v->arena, v->m->column_count, sizeof *v->columns);
    sft_code code = v->columns ? SFT_OK : sfti_fail_memory(&e, v->m->column_count);
    if (!code) code = sfti_ds_masks_read(v->storage, &v->arena, &v->manifest.masks, &e);
    if (!code) code = sfti_ds_places_read(v->storage, &v->arena, &v->manifest.places, &e);
    if (!code) code = sfti_ds_stream_next(&stream, &s, &e);
    while (!code && s && !v->code) {
        code = sfti_ds_names_add(&v->names, s->name, &e);
        if (!code) verify_shard(v, s);
        if (!code && !v->code) code = sfti_ds_stream_next(&stream, &s, &e);
    }
    sfti_ds_stream_close(&stream);
    v->names.own = v->names.count;
    if (!code && !v->code)
        code = sfti_ds_names_add_columns(&v->names, v->storage, v->m, &e);
    if (!code && !v->code) code = sfti_ds_names_sort(&v->names, &e);
    if (code) verify_unlisted(v, code, &e);
    v->listed = !code;

    if (!v->listed) return;
    const uint64_t masks = *v->m->masks.sha256 ? v->m->masks.shards : 0;
    const uint64_t places = *v->m->places.sha256 ? v->m->places.count : 0;
    if (!v->code && v->opened_all)
        verify_numbers(v, SFTI_DATASET_MANIFEST, "columns in other files", places, v->placed);
    if (!v->code && v->opened_all)
        verify_numbers(v, SFTI_DATASET_MANIFEST, "shards with deleted rows", masks, v->masked);
    if (!v->code) verify_totals(v);
    if (!v->code) sfti_verify_columns(v);
    if (!v->code) verify_duplicates(v);
    if (!v->code) verify_versions(v);
    if (!v->code) {
        sft_code code = sfti_call(v->storage, list, "", verify_orphan, v, v->err);
        if (!v->code) v->code = code;
    }
    if (!v->code && sfti_verify_index(v) && *v->m->index_sha256)
        verify_digest(v, SFTI_DATASET_INDEX, v->m->index_sha256);
}

/* ── The result ── */

static void verify_array(sfti_json_writer *w, const char *key, const verify_finding *one) {
    sfti_json_put_open(w, key, '[');
    for (; one; one = one->next) {
        sfti_json_open(w, '{');
        sfti_json_put_cstr(w, "code", sft_code_describe(one->code)->name);
        sfti_json_put_cstr(w, "shard", one->shard);
        sfti_json_put_cstr(w, "message", one->message);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static sft_code verify_result(const verification *v, const char *path, sft_tree *tree,
                              sft_error *err) {
    static const sfti_ds_manifest none;
    const sfti_ds_manifest *m = v->m ? v->m : &none;
    sfti_json_writer w;
    sfti_ds_result_begin(&w, tree, path, v->findings.count == 0, err);
    sfti_json_put_bool(&w, "deep", v->deep);
    sfti_json_put_uint(&w, "digests", v->digests);
    sfti_json_put_uint(&w, "shards", m->sums.shards);
    sfti_json_put_uint(&w, "bytes", m->total_bytes);
    sfti_json_put_uint(&w, "samples", m->total_samples);
    sfti_json_put_cstr(&w, "commit", *m->commit ? m->commit : NULL);
    sfti_json_put_text(&w, "index", m->index);
    sfti_json_put_uint(&w, "versions", v->version_count + (v->m && m->version));
    sfti_json_put_uint(&w, "finding_count", v->findings.count);
    verify_array(&w, "findings", v->findings.first);
    sfti_json_put_uint(&w, "orphan_count", v->orphans.count);
    verify_array(&w, "orphans", v->orphans.first);
    return sfti_result_end(&w);
}

/* An invalid manifest is a finding; one that cannot be read is an error. */
static sft_code verify_open(verification *v) {
    sft_error e = SFT_ERROR_INIT;
    sft_code code = sfti_ds_manifest_read(v->storage, &v->arena, &v->manifest, &e);
    if (!code) verify_all(v);
    if (!code) return v->code;
    if (code == SFT_MANIFEST_TYPE || code == SFT_MANIFEST_MISSING) {
        sfti_verify_find(v, SFTI_DATASET_MANIFEST, &e);
        return v->code;
    }
    if (v->err) *v->err = e;
    return code;
}

sft_code sft_dataset_verify_tree(const sft_storage *storage, bool deep,
                                 const sft_open_options *open, const char *path, sft_tree *tree,
                                 bool *whole, const sft_job *job, sft_error *err) {
    sft_job own;
    verification v = { .storage = storage, .job = &own, .deep = deep,
                       .alloc = sfti_allocator(NULL), .err = err };
    v.arena.alloc = v.alloc;
    if (whole) *whole = false;
    v.code = sfti_ds_storage_check(storage, err);
    if (!v.code) v.code = sfti_take_job(job, &own, err);
    if (!v.code) v.code = sfti_take_open(open, &v.open, err);
    if (!v.code) v.code = verify_open(&v);
    if (!v.code) v.code = verify_result(&v, path, tree, err);
    if (whole) *whole = !v.code && v.findings.count == 0;
    sfti_ds_names_free(&v.names);
    sfti_ds_names_free(&v.kept);
    sfti_arena_free(&v.arena);
    return v.code;
}

sft_code sft_dataset_verify_json(const sft_storage *storage, bool deep,
                                 const sft_open_options *open, const char *path, sft_sink *sink,
                                 bool *whole, const sft_job *job, sft_error *err) {
    sft_tree *tree = NULL;
    sft_code code = sft_tree_new(NULL, &tree, err);
    if (whole) *whole = false;
    if (!code)
        code = sft_dataset_verify_tree(storage, deep, open, path, tree, whole, job, err);
    return sfti_ds_result_render(tree, code, sink, err);
}
