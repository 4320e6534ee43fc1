/* A prepared commit is published or given up. Tests: test_dataset_commit.c. */
#include "base/error.h"
#include "base/job.h"
#include "base/options.h"
#include "dataset/commit/commit.h"

#include <stdio.h>
#include <string.h>

/* Publishing, with the state that a crash leaves:
 *
 * 1. Move each shard from the job's folder next to the others; write new segments of the manifest
 *    into the job's folder, synced, and move them, too. A crash leaves the old dataset; no manifest
 *    names the moved files, and gc removes them.
 * 2. Keep the old manifest as a version (swap.c). A crash leaves a version that is in force.
 *    Claim: read the manifest again and fail if another commit has replaced it. With numbered
 *    commit files this is the commit point already (swap.c).
 * 3. Move the new index into its place and sync the folder. No file can be moved over a folder, as
 *    which Spark writes an index: that is renamed first. An old index that is a file stays until
 *    step 5, because it is the old dataset's. A crash leaves the old manifest with a new index or
 *    none; readers ignore the index of another commit.
 * 4. Replace the manifest: the commit point. A failure here may have happened after the
 *    replacement, so the manifest is read once more to see which one is in force.
 * 5. Move the new index over an old file. Remove the shards and segments that were replaced, unless
 *    an earlier version that is kept may name them, the old index, the job's folder. A crash leaves
 *    some of them to gc; failures are only warnings. A reader that finds no segment by the manifest
 *    that it read reads the manifest again.
 *
 * A failure in 1 to 4 moves the old index back and removes the new segments. An append that lost to
 * another commit also moves its shards back, so that it can be prepared again. */

typedef struct publication {
    sft_commit *c;
    const char *index; /* name of the new index in the job's folder, or NULL */
    sft_warn_fn warn;
    void *warn_ctx;
    bool old_there, old_is_folder; /* the old index; Spark's is a folder */
    bool late;                     /* the new one replaces it in step 5 */
    bool old_moved;                /* to old_name */
    bool new_moved;                /* the new one is in its place */
    char old_name[80];
} publication;

/* ── Step 3 ── */

static bool index_each(void *ctx, const sft_stored *object) {
    publication *p = ctx;
    if (strcmp(object->name, SFTI_DATASET_INDEX) != 0) return true;
    p->old_there = true;
    p->old_is_folder = object->folder;
    return false;
}

/* An old folder gets a name of its own next to the job's folder, which may hold files only. */
static sft_code index_move(publication *p, sft_error *err) {
    char from[SFTI_STORED_NAME];
    const sft_storage *s = p->c->storage;
    sft_code code = SFT_OK;
    sfti_ds_stored_name(p->c->job_folder, p->index, from);
    if (p->old_is_folder) {
        (void)snprintf(p->old_name, sizeof p->old_name, "%s" SFTI_JOB_INDEX, p->c->job_folder);
        code = sfti_call(s, move, SFTI_DATASET_INDEX, p->old_name, err);
        p->old_moved = !code;
    }
    if (!code) code = sfti_call(s, move, from, SFTI_DATASET_INDEX, err);
    p->new_moved = !code;
    return code;
}

static sft_code publish_index(void *ctx, bool committed, sft_error *err) {
    publication *p = ctx;
    sft_code code = SFT_OK;
    if (p->index && sfti_can(p->c->storage, move)) {
        code = sfti_call(p->c->storage, list, "", index_each, p, err);
        p->late = p->old_there && !p->old_is_folder && !committed;
        if (!code && !p->late) code = index_move(p, err);
    }
    return code ? code : sfti_ds_settle(p->c->storage, err);
}

/* Step 5. */
static void publish_after(void *ctx) {
    publication *p = ctx;
    sft_error what = SFT_ERROR_INIT;
    if (p->late && index_move(p, &what) && p->warn) p->warn(p->warn_ctx, &what);

    sft_commit *c = p->c;
    sfti_ds_removal r = { .storage = c->storage, .warn = p->warn, .warn_ctx = p->warn_ctx };
    if (!c->next.index.data && sfti_ds_swap_is_last(&c->swap))
        sfti_ds_removal_index(&r, SFTI_DATASET_INDEX);
    bool overwrites = c->how.mode == SFT_COMMIT_OVERWRITE;
    /* What an older version may name is gc's. */
    bool own = c->has_base && !*c->next.history;
    bool replaced = own && overwrites && !c->options->keep_old_s;
    for (size_t i = 0; replaced && i < c->base.shard_count; i++) {
        const char *name = c->base.shards[i].facts.name;
        sfti_ds_removal_columns(&r, &c->base, name);
        sfti_ds_removal_of(&r, name);
    }
    for (size_t i = c->keep; own && (replaced || !overwrites) && i < c->base.segment_count; i++) {
        char name[SFTI_SEGMENT_FILE_NAME];
        sfti_ds_addressed_name(SFTI_SEGMENT_FILE, c->base.segments[i].sha256, name);
        sfti_ds_removal_of(&r, name);
    }
    if (own && (replaced || !overwrites)) sfti_ds_removal_addressed(&r, &c->base, &c->next);
    if (p->old_moved) sfti_ds_removal_index(&r, p->old_name);
    sfti_ds_removal_end(&r, c->job_folder);
}

static const commit_state state_after[] = { [SFTI_SWAP_FAILED] = COMMIT_FAILED,
                                            [SFTI_SWAP_DONE] = COMMIT_PUBLISHED,
                                            [SFTI_SWAP_UNKNOWN] = COMMIT_UNKNOWN };

/* An append that lost to another commit can be prepared again: its shards go back to where their
 * receipts say they are. */
static void publish_move_back(sft_commit *c) {
    sft_error ignored;
    size_t count = sfti_can(c->storage, move) ? c->shard_count : 0;
    for (size_t i = 0; i < count; i++) {
        const commit_shard *s = &c->shards[i];
        if (!s->receipt || strcmp(s->stored, s->shard.facts.name) == 0) continue;
        if (sfti_call(c->storage, move, s->shard.facts.name, s->stored, &ignored)) return;
    }
    sfti_ds_segments_free(&c->segments);
    c->state = COMMIT_BEGUN;
}

/* What the manifest says of the index that it names. One that is put in its place afterwards, where
 * names cannot be moved, is not there to be read. */
static sft_code publish_named(sft_commit *c, const char *index, sft_error *err) {
    char from[SFTI_STORED_NAME];
    sft_code code = SFT_OK;
    if (index && !sfti_can(c->storage, move)) return SFT_OK;
    if (index) {
        sfti_ds_stored_name(c->job_folder, index, from);
        code = sfti_ds_digest_file(c->storage, from, &c->alloc, NULL, NULL, c->next.index_sha256,
                                   err);
    } else {
        c->next.index = (sft_span){ NULL, 0 };
    }
    return code ? code : sfti_ds_manifest_write(&c->next, &c->text, err);
}

sft_code sft_commit_publish(sft_commit *c, const char *index, sft_warn_fn warn, void *warn_ctx,
                            const sft_job *job, sft_error *err) {
    publication p = { .c = c, .index = index, .warn = warn, .warn_ctx = warn_ctx };
    const sfti_ds_steps steps = { &p, publish_index, publish_after, warn, warn_ctx };
    sfti_ds_outcome outcome = SFTI_SWAP_FAILED;
    if (c->state == COMMIT_REPEATED) { /* the dataset is as it is to be; what was written goes */
        sft_error what = SFT_ERROR_INIT;
        if (sft_commit_abort(c, &what) && warn) warn(warn_ctx, &what);
        c->state = COMMIT_PUBLISHED;
        return SFT_OK;
    }
    if (c->state != COMMIT_PREPARED)
        return sfti_fail(err, SFT_OUT_OF_ORDER, "expected a commit that is prepared");
    sft_job own;
    sft_code code = sfti_take_job(job, &own, err);
    if (code) return code;
    if (c->indexed) { /* an index that nobody asked for: files may be open */
        sfti_ds_merge_close(c->merge);
        c->merge = NULL;
    }
    if (c->next.index.data) code = publish_named(c, index, err);
    bool moves = sfti_can(c->storage, move);
    for (size_t i = 0; !code && i < c->shard_count; i++) { /* step 1 */
        const commit_shard *s = &c->shards[i];
        code = sfti_job_tick(&own, i, c->shard_count, err);
        if (!code && moves && s->receipt && strcmp(s->stored, s->shard.facts.name) != 0)
            code = sfti_call(c->storage, move, s->stored, s->shard.facts.name, err);
    }
    if (!code && c->next.segmented)
        code = sfti_ds_segments_put(&c->segments, c->storage, c->job_folder, err);
    if (!code && c->places.len)
        code = sfti_ds_addressed_put(c->storage, SFTI_PLACES_FILE, c->next.places.sha256,
                                     &c->places, err);
    if (!code) {
        sfti_ds_swap *w = &c->swap;
        w->old = c->base_text;
        w->old_version = c->base.version;
        w->text = (sft_span){ c->text.data, c->text.len };
        w->commit = c->next.commit;
        w->folder = c->job_folder;
        w->shard = NULL;
        for (size_t i = 0; i < c->shard_count && !w->shard; i++)
            if (c->shards[i].receipt) w->shard = c->shards[i].shard.facts.name;
        code = sfti_ds_swap_run(w, &steps, &outcome, err);
    }
    c->state = state_after[outcome];
    if (c->state == COMMIT_FAILED) {
        const sft_storage *s = c->storage;
        sft_error ignored;
        if (p.new_moved) (void)sfti_call(s, remove, SFTI_DATASET_INDEX, false, &ignored);
        if (p.old_moved) (void)sfti_call(s, move, p.old_name, SFTI_DATASET_INDEX, &ignored);
        sfti_ds_segments_remove(&c->segments, s);
        sfti_ds_addressed_remove(s, SFTI_PLACES_FILE, c->next.places.sha256, &c->places);
    }
    bool overtaken = code == SFT_DATASET_CHANGED && c->state == COMMIT_FAILED;
    if (overtaken && c->how.mode == SFT_COMMIT_APPEND) publish_move_back(c);
    sfti_ds_guard_drop(&c->swap);
    return code;
}

/* ── Giving up ── */

static void abort_keep_first(sft_code *code, sft_code next, sft_error *err,
                             const sft_error *what) {
    if (*code || !next) return;
    *code = next;
    if (err) *err = *what;
}

/* Removes shards under the names of their receipts and under their final names: they may have been
 * moved already. */
static sft_code abort_remove(sft_commit *c, const sfti_ds_manifest *now, sft_error *err) {
    sft_code code = SFT_OK;
    sft_error what = SFT_ERROR_INIT;
    for (size_t i = 0; i < c->receipt_count; i++) {
        const char *stored = c->receipts[i].stored.data;
        if (*c->job_folder || sfti_ds_manifest_names(now, stored)) continue;
        abort_keep_first(&code, sfti_call(c->storage, remove, stored, false, &what), err,
                         &what);
    }
    for (size_t i = 0; i < c->shard_count; i++) {
        const char *name = c->shards[i].shard.facts.name;
        if (!c->shards[i].receipt || sfti_ds_manifest_names(now, name)) continue;
        abort_keep_first(&code, sfti_call(c->storage, remove, name, false, &what), err,
                         &what);
    }
    sfti_ds_segments_remove(&c->segments, c->storage);
    sfti_ds_addressed_remove(c->storage, SFTI_PLACES_FILE, c->next.places.sha256, &c->places);
    if (*c->job_folder)
        abort_keep_first(&code, sfti_call(c->storage, remove, c->job_folder, true, &what),
                         err, &what);
    return code;
}

sft_code sft_commit_abort(sft_commit *c, sft_error *err) {
    sfti_arena arena = { .alloc = c->alloc };
    sfti_ds_manifest now;
    sft_error ignored;
    if (c->state == COMMIT_UNKNOWN) c->state = state_after[sfti_ds_swap_check(&c->swap, SFT_OK)];
    if (c->state == COMMIT_PUBLISHED || c->state == COMMIT_UNKNOWN) return SFT_OK;
    memset(&now, 0, sizeof now);
    sft_code code = sfti_ds_manifest_read_all(c->storage, &arena, &now, &ignored);
    /* A manifest that cannot be parsed does not name our shards any more than an old one does. */
    bool known = !code || code == SFT_MANIFEST_MISSING || code == SFT_MANIFEST_TYPE;
    if (code) memset(&now, 0, sizeof now);
    code = known ? abort_remove(c, &now, err) : SFT_OK;
    sfti_arena_free(&arena);
    sfti_ds_guard_drop(&c->swap);
    return code;
}
