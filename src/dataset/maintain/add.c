/* Columns are added: a commit that writes files beside the shards. Tests: test_dataset_add.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "base/order.h"
#include "dataset/commit/addressed.h"
#include "dataset/maintain/compact.h"
#include "dataset/maintain/results.h"

#include <stdio.h>
#include <string.h>

#define ADD_WAIT_MS 60000

/* An addition is a commit, with the state that a crash leaves:
 *
 * 1. Compare the values with the dataset: as many rows, columns that it lacks. Nothing is written.
 * 2. Write a file for each shard into the folder "_job-<uuid>" (where names cannot be moved, under
 *    their final names). From here on a crash leaves files that no manifest names: gc removes them.
 * 3. Take the guard, read the manifest in force. The shards must still be there: appends, deletions
 *    and additions of other columns leave them; a compaction or an overwrite does not, and is
 *    SFT_DATASET_CHANGED. In shards that were appended meanwhile the columns are null.
 * 4. Move the files next to the shards, write the file of all places under its final name, synced.
 * 5. Replace the manifest, if it is still the one that was read (swap.c): the commit point. An
 *    addition that lost removes its places and begins again with 3.
 * 6. Remove the old places, unless a version that is kept may name them, the old index and the
 *    folder. */

/* The file with the columns of a shard. */
typedef struct add_file {
    const sft_dataset_shard *shard;
    char *name;
    sfti_shard_sum sum;
} add_file;

typedef struct addition {
    sft_add_options how;
    compaction from; /* of the values, which are read */
    compaction to;   /* of the files, which are written; its dataset: whose rows they are */
    sfti_ds_column *columns;
    size_t column_count;
    add_file *files; /* by the names of shards */
    size_t count;
    bool moved;
    /* of each try */
    sfti_arena work;
    sfti_ds_manifest now;
    sft_buffer text;
    sft_error *err;
} addition;

/* ── Step 1 ── */

static sft_code add_chosen(addition *a) {
    const sfti_ds_manifest *m = sfti_ds_manifest_of(a->from.dataset);
    const size_t count = a->how.column_count ? a->how.column_count : m->column_count;
    a->columns = sfti_arena_array(&a->to.arena, count, sizeof *a->columns);
    if (!a->columns) return sfti_fail_memory(a->err, count * sizeof *a->columns);
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < count; i++) {
        const sft_span name = a->how.column_count ? a->how.columns[i] : m->columns[i].name;
        const sfti_ds_column *c = sfti_ds_column_find(m->columns, m->column_count, name);
        if (!c)
            return sfti_fail(a->err, SFT_COLUMN_UNKNOWN,
                             "there is no column \"%.*s\" in the values", SFTI_CLIP(name, 100));
        a->columns[i] = *c;
        a->columns[i].optional = true;
        a->columns[i].name.data = sfti_arena_copy(&a->to.arena, c->name.data, c->name.len);
        if (!a->columns[i].name.data) return sfti_fail_memory(a->err, c->name.len);
        code = sfti_ds_column_absent(c, a->err);
    }
    a->column_count = count;
    return code || count ? code : sfti_fail(a->err, SFT_COLUMN_UNKNOWN,
                                            "expected a column to add, found none");
}

/* The columns of a manifest, with the new ones. */
static sft_code add_joined(const addition *a, const sfti_ds_manifest *m, sfti_arena *arena,
                           sfti_ds_column **out) {
    const size_t count = m->column_count + a->column_count;
    sfti_ds_column *all = sfti_arena_array(arena, count, sizeof *all);
    *out = all;
    if (!all) return sfti_fail_memory(a->err, count * sizeof *all);
    if (m->column_count) memcpy(all, m->columns, m->column_count * sizeof *all);
    memcpy(all + m->column_count, a->columns, a->column_count * sizeof *all);
    for (size_t i = 0; i < a->column_count; i++)
        if (sfti_ds_column_find(m->columns, m->column_count, a->columns[i].name))
            return sfti_fail(a->err, SFT_DATASET_DISAGREES,
                             "column %.*s: expected one that the dataset lacks, found it in there",
                             SFTI_CLIP(a->columns[i].name, 100));
    return sfti_ds_columns_apart(all, count, m->column_count, a->err);
}

static sft_code add_check(const addition *a, const sfti_ds_manifest *m, const char *what) {
    sft_code code = sfti_ds_manifest_ours(m, a->err);
    if (code || m->mode == SFT_DATASET_BATCH) return code;
    return sfti_misuse(a->err, "expected %s in batch mode, found KV mode, where a row has a tensor "
                       "of its own for each column", what);
}

static sft_code add_plan(addition *a) {
    sft_code code = sfti_ds_guard_check(a->to.storage, false, a->err);
    if (!code)
        code = sft_dataset_open_version(a->to.storage, a->how.version, 0, &a->to.alloc, NULL, NULL,
                                        &a->to.dataset, a->err);
    if (!code)
        code = sft_dataset_open(a->from.storage, &a->from.alloc, NULL, NULL, &a->from.dataset,
                                a->err);
    if (code) return code;
    const sfti_ds_manifest *m = sfti_ds_manifest_of(a->to.dataset);
    const sfti_ds_manifest *values = sfti_ds_manifest_of(a->from.dataset);
    sfti_ds_column *joined;
    code = add_check(a, m, "a dataset");
    if (!code) code = add_check(a, values, "values");
    if (!code && m->total_valid != values->total_valid)
        return sfti_fail(a->err, SFT_DATASET_DISAGREES,
                         "expected values of %llu rows, as the dataset has in version %llu, found "
                         "%llu", (unsigned long long)m->total_valid,
                         (unsigned long long)m->version, (unsigned long long)values->total_valid);
    if (!code) code = add_chosen(a);
    return code ? code : add_joined(a, m, &a->to.arena, &joined);
}

/* ── Step 2 ── */

static sft_code add_name(addition *a, add_file *f, char stored[SFTI_STORED_NAME]) {
    uint64_t file = 0, shard = 0;
    if (!sfti_ds_shard_parse(sft_span_cstr(f->shard->name), &file, &shard))
        return sfti_fail(a->err, SFT_MANIFEST_TYPE,
                         "expected names of shards as docs/dataset.md defines them, found %s",
                         f->shard->name);
    f->name = sfti_arena_take(&a->to.arena, SFTI_COLUMNS_NAME);
    if (!f->name) return sfti_fail_memory(a->err, SFTI_COLUMNS_NAME);
    f->name[0] = '.';
    sfti_ds_shard_name(file, shard, a->to.uuid, f->name + 1);
    sfti_ds_stored_name(a->to.folder, f->name, stored);
    return SFT_OK;
}

static int files_order(const void *files, uint32_t x, uint32_t y) {
    const add_file *all = files;
    return strcmp(all[x].shard->name, all[y].shard->name);
}

static sft_code add_files(addition *a) {
    sfti_arena arena = { .alloc = a->from.alloc };
    const sfti_ds_manifest *m = sfti_ds_manifest_of(a->to.dataset);
    const compact_group g = { .end = sft_dataset_shard_count(a->from.dataset) };
    const sft_span none = { NULL, 0 };
    sfti_compact_rows *rows = NULL;
    uint64_t next = 0;
    a->count = sft_dataset_shard_count(a->to.dataset);
    add_file *all = sfti_arena_array(&a->to.arena, a->count, sizeof *all);
    add_file *files = sfti_arena_array(&a->to.arena, a->count, sizeof *files);
    if (!all || !files) return sfti_fail_memory(a->err, a->count * sizeof *all);
    for (size_t i = 0; i < a->count; i++)
        all[i] = (add_file){ .shard = sft_dataset_shard_at(a->to.dataset, i) };
    const bool writes = !a->how.dry_run;
    sft_code code = writes ? sfti_compact_rows_open(&a->from, &g, a->columns, a->column_count,
                                                    &arena, &rows)
                           : SFT_OK;
    for (size_t i = 0; writes && !code && i < a->count; i++) {
        const sft_dataset_shard *s = all[i].shard;
        sfti_arena work = { .alloc = a->from.alloc };
        char stored[SFTI_STORED_NAME];
        sft_part *parts = NULL;
        size_t count = 0;
        code = add_name(a, &all[i], stored);
        if (!code)
            code = sfti_compact_rows_spread(rows, s, sfti_ds_mask_find(&m->masks, s->name), &next,
                                            &work, &parts, &count);
        if (!code)
            code = sfti_compact_save(&a->to, parts, count, "batch", s->samples, s->valid_samples,
                                     none, stored, &all[i].sum);
        sfti_arena_free(&work);
    }
    sfti_compact_rows_close(rows);
    sfti_arena_free(&arena);
    const uint32_t *order =
        code ? NULL : sfti_arena_sorted(&a->to.arena, a->count, files_order, all);
    if (!code && !order) code = sfti_fail_memory(a->err, a->count * sizeof *order);
    for (size_t i = 0; i < a->count; i++) files[i] = all[order ? order[i] : i];
    a->files = files;
    return code;
}

/* ── Step 3 ── */

/* The places in force, with those of the files; in shards without one the columns are nowhere. */
static sft_code add_places(addition *a, sfti_ds_column *fresh) {
    const sfti_ds_manifest *m = &a->now;
    uint64_t most = 0;
    size_t count = m->places.place ? (size_t)m->places.count : 0, at = 0;
    if (!sfti_mul(m->shard_count, a->column_count, &most) || !sfti_add(most, count, &most))
        return sfti_fail_memory(a->err, SIZE_MAX);
    sfti_ds_place *all = sfti_arena_array(&a->work, most, sizeof *all);
    if (!all) return sfti_fail_memory(a->err, SIZE_MAX);
    if (count) memcpy(all, m->places.place, count * sizeof *all);
    const char *gone = NULL;
    for (size_t i = 0; i < m->shard_count && !gone; i++) { /* both by name */
        const sft_dataset_shard *s = &m->shards[i].facts;
        const add_file *f = at < a->count ? &a->files[at] : NULL;
        if (f && strcmp(f->shard->name, s->name) < 0) gone = f->shard->name;
        if (f && strcmp(f->shard->name, s->name) != 0) f = NULL;
        at += f != NULL;
        if (f && (f->shard->samples != s->samples ||
                  f->shard->valid_samples != s->valid_samples || f->shard->bytes != s->bytes ||
                  (s->sha256 && f->shard->sha256 && strcmp(s->sha256, f->shard->sha256))))
            gone = s->name;
        for (size_t k = 0; k < a->column_count; k++) {
            fresh[k].nullable = fresh[k].nullable || !f;
            all[count++] = (sfti_ds_place){ s->name, fresh[k].name.data, f ? f->name : NULL,
                                            f ? f->sum.bytes : 0, f ? f->sum.sha256 : NULL };
        }
    }
    if (!gone && at < a->count) gone = a->files[at].shard->name;
    if (gone)
        return sfti_fail(a->err, SFT_DATASET_CHANGED,
                         "%s: expected the shards of version %llu, to which columns are to be "
                         "added, found version %llu, which replaced some", gone,
                         (unsigned long long)sfti_ds_manifest_of(a->to.dataset)->version,
                         (unsigned long long)m->version);
    return sfti_ds_places_make(all, count, a->to.uuid, &a->to.alloc, &a->to.places,
                               &a->to.next.places, a->err);
}

/* The manifest's schema has columns whose rows have one shape. */
static sft_code add_schema(addition *a) {
    sfti_ds_manifest *m = &a->to.next;
    m->has_schema = m->has_schema && m->column_count <= SFTI_SCHEMA_MOST;
    if (!m->has_schema) return SFT_OK;
    sfti_ds_entry *all = sfti_arena_array(&a->work, (uint64_t)m->entry_count + a->column_count,
                                          sizeof *all);
    if (!all) return sfti_fail_memory(a->err, sizeof *all);
    if (m->entry_count) memcpy(all, m->entries, m->entry_count * sizeof *all);
    for (size_t i = 0; i < a->column_count; i++) {
        const sfti_ds_column *c = &a->columns[i];
        if (c->encoding || !m->sums.shards) continue;
        uint64_t *shape = sfti_arena_array(&a->work, (uint64_t)c->rank + 1, sizeof *shape);
        if (!shape) return sfti_fail_memory(a->err, sizeof *shape);
        shape[0] = m->sums.largest;
        if (c->rank) memcpy(shape + 1, c->shape, c->rank * sizeof *shape);
        all[m->entry_count++] =
            (sfti_ds_entry){ .key = c->name, .rank = c->rank + 1, .shape = shape,
                             .dtype = sft_span_cstr(sft_dtype_describe(c->dtype)->name) };
    }
    m->entries = all;
    return SFT_OK;
}

static sft_code add_manifest(addition *a) {
    sfti_ds_manifest *m = &a->to.next;
    sfti_ds_swap *w = &a->to.swap;
    *m = a->now;
    sft_code code = add_joined(a, &a->now, &a->work, &m->columns);
    m->column_count += a->column_count;
    if (!code && !a->how.dry_run) code = add_places(a, m->columns + a->now.column_count);
    if (!code) code = add_schema(a);
    if (code) return code;
    m->index = (sft_span){ NULL, 0 };
    *m->index_commit = '\0';
    if (!sfti_add(m->version, 1, &m->version)) return sfti_ds_overflow("a version", a->err);
    if (!*m->row_order) memcpy(m->row_order, m->commit, sizeof m->row_order);
    m->numbered = m->numbered || w->guard == SFTI_GUARD_NUMBER;
    sfti_ds_swap_begin(w, &a->now, true, a->to.uuid, m);
    a->text.len = 0;
    return sfti_ds_manifest_write(m, &a->text, a->err);
}

/* ── Publishing ── */

/* Step 4. */
static sft_code add_move(addition *a) {
    const sft_storage *s = a->to.storage;
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && !a->moved && *a->to.folder && i < a->count; i++) {
        char from[SFTI_STORED_NAME];
        sfti_ds_stored_name(a->to.folder, a->files[i].name, from);
        code = sfti_call(s, move, from, a->files[i].name, a->err);
    }
    a->moved = !code;
    if (!code)
        code = sfti_ds_addressed_put(s, SFTI_PLACES_FILE, a->to.next.places.sha256, &a->to.places,
                                     a->err);
    return code ? code : sfti_ds_settle(s, a->err);
}

/* Step 6. */
static void add_after(void *ctx) {
    const addition *a = ctx;
    sfti_ds_removal r = { .storage = a->to.storage, .warn = a->how.warn,
                          .warn_ctx = a->how.warn_ctx };
    if (!*a->to.next.history) sfti_ds_removal_addressed(&r, &a->now, &a->to.next);
    if (a->now.index.data && sfti_ds_swap_is_last(&a->to.swap))
        sfti_ds_removal_index(&r, SFTI_DATASET_INDEX);
    sfti_ds_removal_end(&r, a->to.folder);
}

static sft_code add_publish(addition *a, sfti_ds_outcome *outcome) {
    const sfti_ds_steps steps = { a, NULL, add_after, a->how.warn, a->how.warn_ctx };
    sfti_ds_swap *w = &a->to.swap;
    w->text = (sft_span){ a->text.data, a->text.len };
    w->folder = a->to.folder;
    sft_code code = add_move(a);
    if (!code) code = sfti_ds_swap_run(w, &steps, outcome, a->err);
    if (*outcome == SFTI_SWAP_FAILED)
        sfti_ds_addressed_remove(a->to.storage, SFTI_PLACES_FILE, a->to.next.places.sha256,
                                 &a->to.places);
    return code;
}

static sft_code add_once(addition *a, sfti_ds_outcome *outcome) {
    const bool writes = !a->how.dry_run;
    sft_code code = writes ? sfti_ds_guard_take(&a->to.swap, ADD_WAIT_MS, a->err) : SFT_OK;
    sfti_arena_free(&a->work);
    a->work = (sfti_arena){ .alloc = a->to.alloc };
    memset(&a->now, 0, sizeof a->now);
    *outcome = SFTI_SWAP_FAILED;
    if (!code) code = sfti_ds_manifest_read_all(a->to.storage, &a->work, &a->now, a->err);
    if (!code) code = add_check(a, &a->now, "a dataset");
    if (!code && writes) code = sfti_ds_guard_settle(&a->to.swap, &a->now, a->err);
    if (!code) code = add_manifest(a);
    if (!code && writes) code = add_publish(a, outcome);
    sfti_ds_guard_drop(&a->to.swap);
    return code;
}

/* Nothing was published: what was written goes. */
static void add_undo(const addition *a) {
    const sft_storage *s = a->to.storage;
    sft_error ignored;
    for (size_t i = 0; i < a->count; i++)
        if (a->files && a->files[i].name)
            (void)sfti_call(s, remove, a->files[i].name, false, &ignored);
    if (*a->to.folder) (void)sfti_call(s, remove, a->to.folder, true, &ignored);
}

static sft_code add_run(addition *a) {
    sft_code code = add_plan(a);
    if (!code) code = sfti_ds_uuid(a->to.uuid, a->err);
    if (code) return code;
    if (sfti_can(a->to.storage, move)) sfti_ds_job_folder(a->to.uuid, a->to.folder);
    code = add_files(a);
    sfti_ds_outcome outcome = SFTI_SWAP_FAILED;
    sft_error *err = a->err;
    for (unsigned i = 0; !code; i++) {
        sft_error what = SFT_ERROR_INIT;
        a->err = a->to.err = &what;
        code = add_once(a, &outcome);
        a->err = a->to.err = err;
        if (!code) return SFT_OK;
        if (outcome == SFTI_SWAP_FAILED && sfti_ds_swap_again(&a->to.swap, code, a->now.text, i))
            code = SFT_OK;
        else (void)sfti_fail_as(err, code, &what);
    }
    if (outcome == SFTI_SWAP_FAILED && !a->how.dry_run) add_undo(a);
    return code;
}

static sft_code add_result(const addition *a, const char *path, sft_tree *tree, sft_error *err) {
    sfti_json_writer w;
    uint64_t bytes = 0;
    const bool dry = a->how.dry_run;
    for (size_t i = 0; i < a->count; i++) sfti_total_add(&bytes, a->files[i].sum.bytes);
    sfti_ds_result_begin(&w, tree, path, true, err);
    sfti_json_put_bool(&w, "dry_run", dry);
    sfti_json_put_uint(&w, "version", a->now.version + !dry);
    sfti_json_put_uint(&w, "rows", sfti_ds_manifest_of(a->from.dataset)->total_valid);
    sfti_json_put_open(&w, "columns", '[');
    for (size_t i = 0; i < a->column_count; i++) sfti_json_span(&w, a->columns[i].name);
    sfti_json_close(&w, ']');
    sfti_json_put_uint(&w, "files", a->count);
    sfti_json_put_known(&w, "bytes", dry ? UINT64_MAX : bytes);
    sfti_json_put_bool(&w, "index_removed", a->now.index.data != NULL);
    return sfti_result_end(&w);
}

static SFTI_OPTIONS_TAKE(add_options_take, sft_add_options, SFT_ADD_OPTIONS_INIT, open)

sft_code sft_dataset_add_tree(const sft_storage *storage, const sft_storage *values,
                              const sft_add_options *options, const char *path, sft_tree *tree,
                              const sft_job *job, sft_error *err) {
    sft_job own;
    addition a = { .err = err };
    const sft_allocator alloc = sfti_allocator(NULL);
    a.from = (compaction){ .job = &own, .alloc = alloc, .arena = { .alloc = alloc }, .err = err };
    a.to = (compaction){ .storage = storage, .job = &own, .alloc = alloc,
                         .arena = { .alloc = alloc }, .places = { .alloc = alloc }, .err = err,
                         .swap = { .storage = storage, .alloc = alloc } };
    a.work.alloc = a.text.alloc = alloc;
    sft_code code = sfti_ds_storage_check(storage, err);
    if (!code) code = sfti_take_job(job, &own, err);
    if (!code) code = add_options_take(options, &a.how, err);
    if (!code) code = sfti_take_open(a.how.open, &a.to.open, err);
    a.from.open = a.to.open;
    a.from.storage = values;
    if (!code) code = sfti_ds_storage_check(values, err);
    if (!code) code = add_run(&a);
    if (code == SFT_DATASET_DISAGREES) sfti_hint(err, SFT_HINT_NONE); /* no overwrite helps */
    if (!code) code = add_result(&a, path, tree, err);
    sft_dataset_close(a.from.dataset);
    sft_dataset_close(a.to.dataset);
    sft_buffer_free(&a.to.places);
    sft_buffer_free(&a.text);
    sfti_arena_free(&a.work);
    sfti_arena_free(&a.from.arena);
    sfti_arena_free(&a.to.arena);
    return code;
}

sft_code sft_dataset_add_json(const sft_storage *storage, const sft_storage *values,
                              const sft_add_options *options, const char *path, sft_sink *sink,
                              const sft_job *job, sft_error *err) {
    sft_tree *tree = NULL;
    sft_code code = sft_tree_new(NULL, &tree, err);
    if (!code) code = sft_dataset_add_tree(storage, values, options, path, tree, job, err);
    return sfti_ds_result_render(tree, code, sink, err);
}
