#include "base/error.h"
#include "base/options.h"
#include "dataset/commit.h"

#include <stdio.h>
#include <string.h>

typedef struct publishing {
    sft_commit *c;
    sft_warn_fn warn;
    void *warn_ctx;
    bool aside, aside_folder; /* the old index was moved there */
    bool placed;              /* the new one is in its place */
    char aside_name[80];
} publishing;

/* ── After the commit point: nothing fails ── */

static void publish_warn(const publishing *p, const sft_error *what) {
    if (p->warn) p->warn(p->warn_ctx, what);
}

static void publish_remove(const publishing *p, const char *name, bool folder) {
    sft_error what;
    if (sfti_call(p->c->storage, remove, name, folder, &what)) publish_warn(p, &what);
}

static void publish_clean(const publishing *p) {
    sft_commit *c = p->c;
    if (!c->next.index.data && sfti_ds_swap_last(&c->swap))
        publish_remove(p, SFTI_DATASET_INDEX, true);
    bool replaced = c->how.how == SFT_COMMIT_OVERWRITE && !c->options->keep_old_s;
    for (size_t i = 0; replaced && i < c->base.shard_count; i++)
        publish_remove(p, c->base.shards[i].facts.name, false);
    if (p->aside_folder) publish_remove(p, p->aside_name, true);
    if (*c->job_folder) publish_remove(p, c->job_folder, true);
}

/* ── Before it ── */

static sft_code publish_settle(sft_commit *c, const char *folder, sft_error *err) {
    if (!sfti_can(c->storage, settle)) return SFT_OK;
    return sfti_call(c->storage, settle, folder, err);
}

static sft_code publish_shards(sft_commit *c, const sft_job *job, sft_error *err) {
    bool moves = sfti_can(c->storage, move);
    for (size_t i = 0; i < c->shard_count; i++) {
        const commit_shard *s = &c->shards[i];
        if (job->tick && !job->tick(job->ctx, i, c->shard_count))
            return sfti_fail(err, SFT_CANCELLED, SFT_NO_OFFSET, "the caller stopped the commit");
        if (!moves || !s->receipt || strcmp(s->stored, s->shard.facts.name) == 0) continue;
        sft_code code =
            sfti_call(c->storage, move, s->stored, s->shard.facts.name, err);
        if (code) return code;
    }
    return SFT_OK;
}

static bool index_look(void *ctx, const sft_stored *object) {
    publishing *p = ctx;
    if (strcmp(object->name, SFTI_DATASET_INDEX) != 0) return true;
    p->aside = true;
    p->aside_folder = object->folder;
    return false;
}

/* Out of the way, and not lost before the commit point. One that Spark wrote is a folder, over
 * which no file can be moved, and which has no place in the job's. */
static sft_code index_aside(publishing *p, sft_error *err) {
    sft_commit *c = p->c;
    sft_code code = sfti_call(c->storage, list, "", index_look, p, err);
    if (code || !p->aside) return code;
    (void)snprintf(p->aside_name, sizeof p->aside_name, "%s%s", c->job_folder,
                   p->aside_folder ? SFTI_JOB_INDEX : "/" SFTI_JOB_REPLACED);
    code = sfti_call(c->storage, move, SFTI_DATASET_INDEX, p->aside_name, err);
    p->aside = code == SFT_OK;
    return code;
}

/* When the commit does not come to its point, as far as that goes. */
static void index_back(const publishing *p) {
    const sft_storage *s = p->c->storage;
    sft_error ignored;
    if (p->c->state != COMMIT_FAILED) return;
    if (p->placed) (void)sfti_call(s, remove, SFTI_DATASET_INDEX, false, &ignored);
    if (p->aside) (void)sfti_call(s, move, p->aside_name, SFTI_DATASET_INDEX, &ignored);
}

static sft_code publish_index(publishing *p, const char *index, sft_error *err) {
    char from[128];
    sft_commit *c = p->c;
    if (!index || !sfti_can(c->storage, move)) return SFT_OK;
    (void)snprintf(from, sizeof from, "%s/%s", c->job_folder, index);
    sft_code code = index_aside(p, err);
    if (code == SFT_OK) code = sfti_call(c->storage, move, from, SFTI_DATASET_INDEX, err);
    p->placed = code == SFT_OK;
    return code;
}

/* What the outcome of a step makes of the commit. */
static void publish_state(sft_commit *c, sfti_ds_outcome outcome) {
    c->state = outcome == SFTI_SWAP_DONE      ? COMMIT_PUBLISHED
               : outcome == SFTI_SWAP_UNKNOWN ? COMMIT_UNKNOWN
                                              : COMMIT_FAILED;
}

static void publish_swap(sft_commit *c) {
    sfti_ds_swap *w = &c->swap;
    w->old = c->base_text;
    w->old_version = c->base.version;
    w->text = (sft_span){ c->text.data, c->text.len };
    w->commit = c->next.commit;
    w->folder = c->job_folder;
    w->shard = NULL;
    for (size_t i = 0; i < c->shard_count && !w->shard; i++)
        if (c->shards[i].receipt) w->shard = c->shards[i].shard.facts.name;
}

/* Without an index the manifest says so. */
static sft_code publish_text(sft_commit *c, const char *index, sft_error *err) {
    if (index || !c->next.index.data) return SFT_OK;
    c->next.index = (sft_span){ NULL, 0 };
    return sfti_commit_render_text(c, err);
}

/* With numbered commit files all is done but to follow: what goes wrong is only told, and what was
 * replaced stays for those who still read SFTI_DATASET_MANIFEST. */
static void publish_follow(publishing *p, const char *index) {
    sft_commit *c = p->c;
    sfti_ds_outcome outcome;
    sft_error what;
    sft_code code = publish_index(p, index, &what);
    if (code == SFT_OK) code = publish_settle(c, "", &what);
    if (code) publish_warn(p, &what);
    code = sfti_ds_swap_put(&c->swap, &outcome, &what);
    if (code == SFT_OK) publish_clean(p);
    if (code == SFT_OK) code = sfti_ds_swap_clean(&c->swap, c->next.version, &what);
    if (code) publish_warn(p, &what);
}

/* A put that fails may have been done all the same: then it is published, but what it replaced
 * stays, for a power cut may take the manifest back. */
static sft_code publish_put(publishing *p, sft_error *err) {
    sft_commit *c = p->c;
    sfti_ds_outcome outcome;
    sft_error what;
    sft_code code = sfti_ds_swap_put(&c->swap, &outcome, &what);
    publish_state(c, outcome);
    if (code == SFT_OK) {
        publish_clean(p);
    } else if (c->state == COMMIT_PUBLISHED) {
        publish_warn(p, &what);
    } else {
        if (err) *err = what;
        return code;
    }
    return SFT_OK;
}

/* The claim, and what follows it. */
static sft_code publish_point(publishing *p, const char *index, sft_error *err) {
    sft_commit *c = p->c;
    sfti_ds_outcome outcome;
    sft_error what;
    publish_swap(c);
    sft_code code = sfti_ds_swap_claim(&c->swap, &outcome, &what);
    publish_state(c, outcome);
    if (c->state == COMMIT_PUBLISHED) {
        if (code) publish_warn(p, &what);
        publish_follow(p, index);
        return SFT_OK;
    }
    if (code) {
        if (err) *err = what;
        return code;
    }
    code = publish_index(p, index, err);
    if (code == SFT_OK) code = publish_settle(c, "", err);
    return code ? code : publish_put(p, err);
}

/* An append that lost can be prepared again: its shards go back to where their receipts say. */
static void publish_again(sft_commit *c) {
    sft_error ignored;
    size_t count = sfti_can(c->storage, move) ? c->shard_count : 0;
    for (size_t i = 0; i < count; i++) {
        const commit_shard *s = &c->shards[i];
        if (!s->receipt || strcmp(s->stored, s->shard.facts.name) == 0) continue;
        if (sfti_call(c->storage, move, s->shard.facts.name, s->stored, &ignored)) return;
    }
    c->state = COMMIT_BEGUN;
}

sft_code sft_commit_publish(sft_commit *c, const char *index, sft_warn_fn warn, void *warn_ctx,
                            const sft_job *job, sft_error *err) {
    publishing p = { c, warn, warn_ctx, false, false, false, { 0 } };
    if (c->state != COMMIT_PREPARED)
        return sfti_fail(err, SFT_OUT_OF_ORDER, SFT_NO_OFFSET,
                         "expected a commit that is prepared");
    sft_job own;
    sft_code code = sfti_take_job(job, &own, err);
    if (code != SFT_OK) return code;
    c->state = COMMIT_FAILED;
    code = publish_text(c, index, err);
    if (code == SFT_OK) code = publish_shards(c, &own, err);
    if (code == SFT_OK) code = publish_point(&p, index, err);
    if (code) index_back(&p);
    bool lost = code == SFT_DATASET_CHANGED && c->state == COMMIT_FAILED;
    if (lost && c->how.how == SFT_COMMIT_APPEND) publish_again(c);
    sfti_commit_unlock(c);
    return code;
}

/* ── Giving up ── */

static void abort_keep_first(sft_code *code, sft_code next, sft_error *err,
                             const sft_error *what) {
    if (*code || !next) return;
    *code = next;
    if (err) *err = *what;
}

/* Of a shard: under its last name it may have been moved already. */
static sft_code abort_remove(sft_commit *c, const sfti_ds_manifest *now, sft_error *err) {
    sft_code code = SFT_OK;
    sft_error what;
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
    if (*c->job_folder)
        abort_keep_first(&code, sfti_call(c->storage, remove, c->job_folder, true, &what),
                         err, &what);
    return code;
}

sft_code sft_commit_abort(sft_commit *c, sft_error *err) {
    sfti_arena arena = { .alloc = c->alloc };
    sfti_ds_manifest now;
    sft_error ignored;
    if (c->state == COMMIT_UNKNOWN) publish_state(c, sfti_ds_swap_look(&c->swap, SFT_OK));
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
