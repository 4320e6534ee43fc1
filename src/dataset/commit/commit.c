/* A commit from its beginning to the manifest that is to be published. Tests:
 * test_dataset_commit.c, test_dataset_keys.c, test_dataset_segments.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "dataset/commit/commit.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

#define LOCK_WAIT_MS 60000
#define SEGMENT_TRIES 100

/* A commit, with the state that a crash leaves:
 *
 * 1. Begin, before any task: read the manifest, check that the options fit it. Nothing is written.
 * 2. Tasks write their shards into the folder "_job-<uuid>" (where names cannot be moved, next to
 *    the other shards). A crash leaves files that no manifest names: gc removes them.
 * 3. Add: collect the tasks' receipts. Nothing is written.
 * 4. Prepare: take the guard that keeps other commits out, read the manifest again, open every
 *    shard, merge their headers, render the new manifest. Nothing is written that readers see.
 * 5. Publish (publish.c): move the shards next to the others, the index into its place, replace
 *    the manifest. That replacement is the commit point: before it readers see the old dataset,
 *    after it the new one, never a mixture.
 * 6. Remove what was replaced. Failures are only warnings; gc removes what is left. */

/* ── Shards without a manifest ── */

static sft_code commit_exists(sft_error *err, const char *what) {
    sft_code code = sfti_fail(err, SFT_EXISTS, "expected a folder without a dataset, found %s",
                              what);
    sfti_hint(err, SFT_HINT_DATASET_EXISTS);
    return code;
}

/* Shards without a manifest: it was deleted, and once there is another gc would remove them. Where
 * names cannot be moved they may be those of a running job. */
static sft_code orphans_found(const sft_commit *c, bool *found, sft_error *err) {
    commit_numbers l;
    *found = false;
    if (!sfti_can(c->storage, move)) return SFT_OK;
    sft_code code = sfti_commit_numbers(c, &l, err);
    *found = !code && l.any;
    return code;
}

static sft_code orphans_fail(sft_error *err) {
    sft_code code =
        sfti_fail(err, SFT_MANIFEST_MISSING,
                  "expected " SFTI_DATASET_MANIFEST " next to the shards, found none: nothing can "
                  "be appended");
    sfti_hint(err, SFT_HINT_DATASET_BEGIN);
    return code;
}

/* Without a lock another append may be between moving its shards and replacing the manifest: wait
 * until it publishes or moves them back. */
#define ORPHAN_WAITS 100
#define ORPHAN_PAUSE_MS 20

/* ── Beginning ── */

static sft_code begin_manifest(sft_commit *c, sfti_ds_manifest *base, sft_error *err) {
    sft_error other = SFT_ERROR_INIT;
    sft_code code = sfti_ds_manifest_seek(c->storage, &c->arena, NULL, base, NULL, &other);
    if (code == SFT_MANIFEST_MISSING) return SFT_OK;
    /* A manifest that cannot be parsed can still be overwritten. */
    bool broken = code == SFT_MANIFEST_TYPE && c->how.mode == SFT_COMMIT_OVERWRITE;
    if (code && !broken) return sfti_fail_as(err, code, &other);
    c->began_with = true;
    c->began_version = broken ? 0 : base->version;
    c->began_text = base->text;
    return SFT_OK;
}

/* An append where no manifest was found. */
static sft_code begin_orphans(sft_commit *c, sfti_ds_manifest *base, sft_error *err) {
    bool found = false;
    sft_code code = orphans_found(c, &found, err);
    if (code || !found) return code;
    /* Once we get the guard its former holder has published or moved its shards back. */
    code = sfti_ds_guard_take(&c->swap, c->how.lock_wait_ms, err);
    if (code) return code;
    code = sfti_ds_guard_settle(&c->swap, NULL, err);
    bool waits = c->swap.guard == SFTI_GUARD_NUMBER;
    sfti_ds_guard_drop(&c->swap);
    if (!code) code = begin_manifest(c, base, err);
    for (int i = 0; i < ORPHAN_WAITS && waits && found && !code && !c->began_with; i++) {
        sfti_os_sleep_ms(ORPHAN_PAUSE_MS);
        code = begin_manifest(c, base, err);
        if (!code && !c->began_with) code = orphans_found(c, &found, err);
    }
    return code || c->began_with || !found ? code : orphans_fail(err);
}

/* Step 1. */
static sft_code begin_checks(sft_commit *c, const struct ArrowSchema *schema, sft_error *err) {
    sfti_ds_manifest base;
    commit_numbers listing;
    memset(&base, 0, sizeof base);
    sft_code code = SFT_OK;
    if (schema) code = sfti_ds_columns_resolve(c->options, schema, &c->arena, &c->columns, err);
    if (!code) code = sfti_ds_guard_check(c->storage, c->options->single, err);
    if (!code) code = begin_manifest(c, &base, err);
    if (code) return code;
    if (c->how.mode == SFT_COMMIT_NEW && !c->how.job.len) {
        /* A job that is resumed was checked when it began. */
        if (c->began_with) return commit_exists(err, SFTI_DATASET_MANIFEST);
        code = sfti_commit_numbers(c, &listing, err);
        if (!code && listing.any) code = commit_exists(err, "shards and no manifest");
    }
    if (c->how.mode == SFT_COMMIT_APPEND) {
        if (!c->began_with) code = begin_orphans(c, &base, err);
        if (!code && c->began_with)
            code = sfti_commit_agree(c, &base, c->columns.column, c->columns.count, err);
    }
    if (!code) code = sfti_commit_keys(c, &base, c->columns.column, c->columns.count, err);

    if (code) return code;
    /* The job's text, given or new. It ends with the columns that rows of an append must fit. */
    const sft_span given = c->how.job;
    const bool append = c->how.mode == SFT_COMMIT_APPEND;
    const sfti_ds_column *columns = NULL;
    size_t count = 0;
    char id[64];
    code = SFT_OK;
    bool room = true;
    if (given.len) {
        room = sfti_buffer_put(&c->job_text, given.data, given.len);
    } else {
        code = sfti_ds_uuid(c->job.uuid, err);
        if (!code && append) code = sfti_commit_first(c, &base, &c->job.first, err);
        if (!code) code = sfti_commit_known(c, &base, &columns, &count, err);
        if (code) return code;
        int len = snprintf(id, sizeof id, "%s:%llu", c->job.uuid,
                           (unsigned long long)c->job.first);
        room = sfti_buffer_put(&c->job_text, id, (size_t)len);
        if (room && append && count) {
            room = sfti_buffer_put(&c->job_text, ":", 1);
            if (room) code = sfti_ds_columns_write(columns, count, &c->job_text, err);
        }
    }
    if (code) return code;
    if (!room || !sfti_buffer_put(&c->job_text, "", 1)) return sfti_fail_memory(err, sizeof id);
    c->job_text.len--; /* the NUL */
    code = sfti_ds_job_parse(sft_commit_job(c), &c->job, err);
    if (code) return code;
    if (sfti_can(c->storage, move)) memcpy(c->job_folder, c->job.folder, SFTI_JOB_FOLDER);
    return SFT_OK;
}

static SFTI_OPTIONS_TAKE(commit_how_take, sft_commit_options, SFT_COMMIT_OPTIONS_INIT, open)

sft_code sft_commit_open(const sft_dataset_options *options, const sft_storage *storage,
                         const struct ArrowSchema *schema, const sft_commit_options *how,
                         sft_commit **out, sft_error *err) {
    sft_commit_options own_how;
    sft_open_options open;
    if (!options || !out)
        return sfti_misuse(err, "expected options and a place for the commit, found NULL");
    *out = NULL;
    sft_code code = sfti_ds_storage_check(storage, err);
    if (!code) code = commit_how_take(how, &own_how, err);
    if (!code) code = sfti_take_open(own_how.open, &open, err);
    if (code) return code;
    sft_allocator own = options->alloc;
    sft_commit *c = sfti_take(&own, sizeof *c);
    if (!c) return sfti_fail_memory(err, sizeof *c);
    memset(c, 0, sizeof *c);
    c->alloc = c->arena.alloc = c->work.alloc = c->text.alloc = own;
    c->job_text.alloc = c->places.alloc = own;
    c->options = options;
    c->storage = storage;
    c->how = own_how;
    c->open = open;
    c->how.open = NULL;
    c->swap = (sfti_ds_swap){ .storage = storage, .alloc = own, .single = options->single };
    c->segments = (sfti_ds_segments){ .alloc = own, .commit = c->job.uuid,
                                      .attempt = c->attempt };
    if (!c->how.lock_wait_ms) c->how.lock_wait_ms = LOCK_WAIT_MS;
    code = begin_checks(c, schema, err);
    c->how.job = (sft_span){ NULL, 0 };
    if (!code) *out = c;
    else sft_commit_close(c);
    return code;
}

sft_span sft_commit_job(const sft_commit *commit) {
    return (sft_span){ commit->job_text.data, commit->job_text.len };
}

const char *sft_commit_job_folder(const sft_commit *commit) { return commit->job_folder; }

sft_code sft_commit_renew(const sft_storage *storage, sft_span job, sft_error *err) {
    static const char text[] = "libsafetensors\n";
    char name[SFTI_STORED_NAME];
    sfti_ds_job parsed;
    sft_code code = sfti_ds_storage_check(storage, err);
    if (!code) code = sfti_ds_job_parse(job, &parsed, err);
    if (code) return code;
    sfti_ds_stored_name(parsed.folder, SFTI_JOB_ALIVE, name);
    return sfti_ds_put(storage, name, sft_span_cstr(text), err);
}

/* ── Receipts ── */

/* A task that dropped all its rows; its receipt may come twice. */
static sft_code add_dropped(sft_commit *c, const sfti_ds_receipt *r, sft_error *err) {
    for (const commit_drop *d = c->drops; d; d = d->next)
        if (d->partition == r->partition) return SFT_OK;
    commit_drop *drop = sfti_arena_take(&c->arena, sizeof *drop);
    if (!drop) return sfti_fail_memory(err, sizeof *drop);
    *drop = (commit_drop){ c->drops, r->partition, r->dropped };
    c->drops = drop;
    return SFT_OK;
}

/* Step 3. */
sft_code sft_commit_add(sft_commit *c, sft_span receipts, sft_error *err) {
    size_t i = c->receipt_count, count = i;
    if (c->state != COMMIT_BEGUN)
        return sfti_fail(err, SFT_OUT_OF_ORDER, "expected receipts before the commit is prepared");
    sft_code code = sfti_ds_receipts_read(receipts, &c->job, &c->arena, &c->receipts, &count,
                                          &c->receipt_cap, err);
    for (; !code && i < count; i++) {
        const sfti_ds_receipt r = c->receipts[i];
        uint64_t file, shard, number;
        if (!r.name.data) {
            code = add_dropped(c, &r, err);
            continue;
        }
        (void)sfti_ds_shard_parse(r.name, &file, &shard);
        if (!sfti_add(c->job.first, r.partition, &number))
            return sfti_ds_overflow("numbers of files", err);
        if (file != number || shard != r.shard)
            return sfti_fail(err, SFT_DATASET_RECEIPT, "expected file %llu, shard %llu, found %s",
                             (unsigned long long)number, (unsigned long long)r.shard, r.name.data);
        c->receipts[c->receipt_count++] = r;
    }
    return code;
}

/* ── Preparing ── */

/* Reads the manifest that is in force now and checks that the commit may replace it. */
static sft_code prepare_manifest(sft_commit *c, sft_error *err) {
    sft_error other = SFT_ERROR_INIT;
    bool orphans = false;
    sft_code code = sfti_ds_manifest_seek(c->storage, &c->work, NULL, &c->base, NULL, &other);
    sft_span text = c->base_text = c->base.text;
    bool broken = code == SFT_MANIFEST_TYPE && c->how.mode == SFT_COMMIT_OVERWRITE;
    c->has_base = !code;
    if (broken) memset(&c->base, 0, sizeof c->base);
    if (code && !broken && code != SFT_MANIFEST_MISSING) return sfti_fail_as(err, code, &other);
    if (c->how.mode == SFT_COMMIT_NEW && c->has_base)
        return commit_exists(err, SFTI_DATASET_MANIFEST);
    if (c->how.mode == SFT_COMMIT_APPEND && c->has_base)
        return sfti_commit_agree(c, &c->base, c->columns.column, c->columns.count, err);
    if (c->how.mode == SFT_COMMIT_APPEND) {
        code = orphans_found(c, &orphans, err);
        return code || !orphans ? code : orphans_fail(err);
    }
    if (!text.data == !c->began_text.data && sft_span_equal(text, c->began_text)) return SFT_OK;
    return sfti_fail(err, SFT_DATASET_CHANGED, "expected the dataset as it was at the start "
                     "(version %llu), found version %llu: another job has committed since",
                     (unsigned long long)c->began_version, (unsigned long long)c->base.version);
}

static sft_code prepare_once(sft_commit *c, const sft_job *job, sft_error *err) {
    sfti_arena_free(&c->work);
    c->work = (sfti_arena){ .alloc = c->alloc };
    c->shard_count = c->places.len = 0;
    c->has_base = c->indexed = c->shadowing = c->wide = c->apart = false;
    c->keep = 0;
    c->base_text = (sft_span){ NULL, 0 };
    memset(&c->base, 0, sizeof c->base);
    memset(&c->next, 0, sizeof c->next);

    sft_code code = sfti_ds_guard_take(&c->swap, c->how.lock_wait_ms, err);
    const sft_dataset_options *o = c->options;
    bool append = c->how.mode == SFT_COMMIT_APPEND;
    if (!code) { /* tried again while another append may be about to publish */
        sft_error what = SFT_ERROR_INIT;
        sft_code base = prepare_manifest(c, &what);
        if (!base || base == SFT_MANIFEST_MISSING)
            code = sfti_ds_guard_settle(&c->swap, c->has_base ? &c->base : NULL, err);
        bool waits = !code && append && c->swap.guard == SFTI_GUARD_NUMBER;
        for (int i = 0; i < ORPHAN_WAITS && waits && base == SFT_MANIFEST_MISSING; i++) {
            sfti_os_sleep_ms(ORPHAN_PAUSE_MS);
            base = prepare_manifest(c, &what);
        }
        if (!code && base) code = sfti_fail_as(err, base, &what);
    }

    bool repeated = false; /* the dataset has this batch of its stream, or a later one */
    for (size_t i = 0; !code && c->has_base && o->stream.data && i < c->base.batch_count; i++)
        if (sft_span_equal(c->base.batches[i].stream, o->stream)) {
            repeated = c->base.batches[i].number >= o->batch;
            break;
        }
    if (repeated) {
        sfti_ds_guard_drop(&c->swap);
        c->text.len = 0;
        if (!sfti_buffer_put(&c->text, c->base_text.data, c->base_text.len))
            return sfti_fail_memory(err, c->base_text.len);
        c->state = COMMIT_REPEATED;
        return SFT_OK;
    }
    c->next.segmented = o->form == SFT_FORM_SEGMENTS ||
                        (o->form == SFT_FORM_SAME && c->base.segmented && append);
    c->extends = append && c->base.ours && c->base.column_count;
    c->apart = append && c->has_base && c->base.segmented && c->next.segmented &&
               o->mode == SFT_DATASET_BATCH && !o->index && !c->base.index.data &&
               !sfti_commit_widens(c);
    /* Shards in segments need not be read where nothing that is checked or written depends on
     * them. An overwrite leaves those of a damaged segment to gc. */
    const bool listed =
        c->base.segmented || *c->base.masks.sha256 || *c->base.places.sha256;
    if (!code && listed && !c->apart) {
        sft_error what = SFT_ERROR_INIT;
        code = sfti_ds_manifest_load(c->storage, &c->work, &c->base, &what);
        bool broken = code == SFT_DATASET_SHARD || code == SFT_MANIFEST_TYPE;
        if (broken && c->how.mode == SFT_COMMIT_OVERWRITE) code = SFT_OK;
        else if (code) code = sfti_fail_as(err, code, &what);
    }

    if (!code) code = sfti_commit_columns(c, err);
    if (!code) code = sfti_commit_gather(c, err);
    c->indexed = o->index || (append && c->base.index.data);
    if (!code && append && c->has_base) code = sfti_commit_places(c, err);
    if (!code && (o->mode == SFT_DATASET_KV || c->indexed)) code = sfti_commit_count(c, job, err);
    if (!code) code = sfti_commit_render(c, err);
    if (!code) {
        c->state = COMMIT_PREPARED;
    } else {
        sfti_ds_merge_close(c->merge);
        c->merge = NULL;
        sfti_ds_segments_free(&c->segments);
        sfti_ds_guard_drop(&c->swap);
    }
    return code;
}

/* Step 4. Without a lock another commit may remove segments while this one reads them. */
sft_code sft_commit_prepare(sft_commit *c, const sft_job *job, sft_error *err) {
    if (c->state != COMMIT_BEGUN)
        return sfti_fail(err, SFT_OUT_OF_ORDER, "expected a commit that was not prepared");
    sft_job own;
    sft_error what = SFT_ERROR_INIT;
    sft_code code = sfti_take_job(job, &own, err);
    if (code) return code;
    for (int i = 0; i < SEGMENT_TRIES; i++) {
        code = prepare_once(c, &own, &what);
        bool listed = c->base.segmented || *c->base.masks.sha256 || *c->base.places.sha256;
        bool again = code == SFT_DATASET_SHARD && listed &&
                     sfti_ds_manifest_changed(c->storage, &c->alloc, c->base_text);
        if (!again) break;
    }
    return code ? sfti_fail_as(err, code, &what) : SFT_OK;
}

bool sft_commit_indexed(const sft_commit *commit) { return commit->indexed; }

sft_span sft_commit_manifest(const sft_commit *commit) {
    return (sft_span){ commit->text.data, commit->text.len };
}

void sft_commit_close(sft_commit *c) {
    if (!c) return;
    sft_allocator alloc = c->alloc;
    sfti_ds_guard_drop(&c->swap);
    sfti_ds_segments_free(&c->segments);
    sfti_ds_merge_close(c->merge);
    sfti_arena_free(&c->work);
    sfti_arena_free(&c->arena);
    sft_buffer_free(&c->text);
    sft_buffer_free(&c->places);
    sft_buffer_free(&c->job_text);
    sfti_release(&alloc, c, sizeof *c);
}
