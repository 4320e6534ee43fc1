#include "base/error.h"
#include "dataset/commit.h"

#include <stdio.h>
#include <string.h>

typedef struct publishing {
    sft_commit *c;
    sft_warn_fn warn;
    void *warn_ctx;
} publishing;

/* ── After the commit point: nothing fails ── */

static void publish_warn(const publishing *p, const sft_error *what) {
    if (p->warn) p->warn(p->warn_ctx, what);
}

static void publish_remove(const publishing *p, const char *name, bool folder) {
    sft_error what;
    if (p->c->storage->remove(p->c->storage->ctx, name, folder, &what)) publish_warn(p, &what);
}

static void publish_clean(const publishing *p) {
    sft_commit *c = p->c;
    if (!c->next.index.data) publish_remove(p, SFTI_DATASET_INDEX, true);
    bool replaced = c->how.how == SFT_COMMIT_OVERWRITE && !c->options->keep_old_s;
    for (size_t i = 0; replaced && i < c->base.shard_count; i++)
        publish_remove(p, c->base.shards[i].facts.name, false);
    if (*c->job_folder) publish_remove(p, c->job_folder, true);
    sfti_commit_unlock(c);
}

/* ── Before it ── */

static sft_code publish_settle(sft_commit *c, const char *folder, sft_error *err) {
    return c->storage->settle ? c->storage->settle(c->storage->ctx, folder, err) : SFT_OK;
}

static sft_code publish_shards(sft_commit *c, const sft_job *job, sft_error *err) {
    for (size_t i = 0; i < c->shard_count; i++) {
        const commit_shard *s = &c->shards[i];
        if (job && job->tick && !job->tick(job->ctx, i, c->shard_count))
            return sfti_fail(err, SFT_CANCELLED, SFT_NO_OFFSET, "the caller stopped the commit");
        if (!s->receipt || !c->storage->move || strcmp(s->stored, s->shard.facts.name) == 0)
            continue;
        sft_code code =
            c->storage->move(c->storage->ctx, s->stored, s->shard.facts.name, err);
        if (code) return code;
    }
    return SFT_OK;
}

/* An index that Spark wrote is a folder, over which no file can be moved. */
static sft_code publish_index(sft_commit *c, const char *index, sft_error *err) {
    char from[128], aside[128];
    sft_error ignored;
    if (!index || !c->storage->move) return SFT_OK;
    (void)snprintf(from, sizeof from, "%s/%s", c->job_folder, index);
    if (c->storage->move(c->storage->ctx, from, SFTI_DATASET_INDEX, &ignored) == SFT_OK)
        return SFT_OK;
    (void)snprintf(aside, sizeof aside, "%s-index", c->job_folder);
    (void)c->storage->move(c->storage->ctx, SFTI_DATASET_INDEX, aside, &ignored);
    return c->storage->move(c->storage->ctx, from, SFTI_DATASET_INDEX, err);
}

/* Whether the manifest that is there now is ours. */
static commit_state publish_outcome(sft_commit *c) {
    sfti_arena arena = { .alloc = c->alloc };
    sfti_ds_manifest now;
    sft_error ignored;
    sft_code code = sfti_ds_manifest_read(c->storage, &arena, &now, &ignored);
    commit_state state = COMMIT_UNKNOWN;
    if (code == SFT_OK && memcmp(now.commit, c->next.commit, sizeof now.commit) == 0)
        state = COMMIT_PUBLISHED;
    else if (code == SFT_OK || code == SFT_MANIFEST_MISSING)
        state = COMMIT_FAILED;
    sfti_arena_free(&arena);
    return state;
}

/* Where nothing can be locked the version is looked at once more. */
static sft_code publish_recheck(sft_commit *c, sft_error *err) {
    sfti_arena arena = { .alloc = c->alloc };
    sfti_ds_manifest now;
    sft_error other;
    if (c->storage->lock) return SFT_OK;
    sft_code code = sfti_ds_manifest_read(c->storage, &arena, &now, &other);
    bool same = code == SFT_OK ? c->has_base && memcmp(now.commit, c->base.commit,
                                                       sizeof now.commit) == 0
                               : !c->has_base;
    sfti_arena_free(&arena);
    if (same) return SFT_OK;
    return sfti_fail(err, SFT_DATASET_CHANGED, SFT_NO_OFFSET,
                     "expected the dataset as it was, found another commit");
}

static sft_code publish_manifest(sft_commit *c, const char *index, sft_error *err) {
    if (!index && c->next.index.data) {
        c->next.index = (sft_span){ NULL, 0 };
        sft_code code = sfti_commit_render_text(c, err);
        if (code) return code;
    }
    sft_code code = publish_recheck(c, err);
    if (code) return code;
    sft_span text = { c->text.data, c->text.len };
    code = sfti_ds_put(c->storage, SFTI_DATASET_MANIFEST, text, err);
    c->state = code ? publish_outcome(c) : COMMIT_PUBLISHED;
    return c->state == COMMIT_PUBLISHED ? SFT_OK : code;
}

sft_code sft_commit_publish(sft_commit *c, const char *index, sft_warn_fn warn, void *warn_ctx,
                            const sft_job *job, sft_error *err) {
    publishing p = { c, warn, warn_ctx };
    if (c->state != COMMIT_PREPARED)
        return sfti_fail(err, SFT_OUT_OF_ORDER, SFT_NO_OFFSET,
                         "expected a commit that is prepared");
    c->state = COMMIT_FAILED;
    sft_code code = publish_shards(c, job, err);
    if (code == SFT_OK && index) code = publish_index(c, index, err);
    if (code == SFT_OK) code = publish_settle(c, "", err);
    if (code == SFT_OK) code = publish_manifest(c, index, err);
    if (code == SFT_OK) publish_clean(&p);
    else sfti_commit_unlock(c);
    return code;
}

/* ── Giving up ── */

static bool abort_named(const sfti_ds_manifest *now, const char *name) {
    for (size_t i = 0; i < now->shard_count; i++)
        if (strcmp(now->shards[i].facts.name, name) == 0) return true;
    return false;
}

static void abort_keep_first(sft_code *code, sft_code next, sft_error *err,
                             const sft_error *what) {
    if (*code || !next) return;
    *code = next;
    if (err) *err = *what;
}

static sft_code abort_remove(sft_commit *c, const sfti_ds_manifest *now, sft_error *err) {
    sft_code code = SFT_OK;
    sft_error what;
    for (size_t i = 0; i < c->receipt_count; i++) {
        const char *stored = c->receipts[i].stored.data;
        if (*c->job_folder || abort_named(now, stored)) continue;
        abort_keep_first(&code, c->storage->remove(c->storage->ctx, stored, false, &what), err,
                         &what);
    }
    /* Those that were moved already. */
    for (size_t i = 0; i < c->shard_count; i++) {
        const char *name = c->shards[i].shard.facts.name;
        if (!c->shards[i].receipt || abort_named(now, name)) continue;
        abort_keep_first(&code, c->storage->remove(c->storage->ctx, name, false, &what), err,
                         &what);
    }
    if (*c->job_folder)
        abort_keep_first(&code, c->storage->remove(c->storage->ctx, c->job_folder, true, &what),
                         err, &what);
    return code;
}

sft_code sft_commit_abort(sft_commit *c, sft_error *err) {
    sfti_arena arena = { .alloc = c->alloc };
    sfti_ds_manifest now;
    sft_error ignored;
    if (c->state == COMMIT_UNKNOWN) c->state = publish_outcome(c);
    if (c->state == COMMIT_PUBLISHED || c->state == COMMIT_UNKNOWN) return SFT_OK;
    memset(&now, 0, sizeof now);
    sft_code code = sfti_ds_manifest_read(c->storage, &arena, &now, &ignored);
    /* Another's manifest that cannot be read may name what is ours no more than an old one. */
    bool known = code == SFT_OK || code == SFT_MANIFEST_MISSING || code == SFT_MANIFEST_TYPE;
    if (code) memset(&now, 0, sizeof now);
    code = known ? abort_remove(c, &now, err) : SFT_OK;
    sfti_arena_free(&arena);
    sfti_commit_unlock(c);
    return code;
}
