/* One manifest replaces another, unless a third came first. Tests: test_dataset_swap.c. */
#include "base/error.h"
#include "dataset/commit/swap.h"
#include "dataset/read/segment.h"
#include "os/os.h"

#include <string.h>

#define SWAP_TRIES 100 /* of a commit that others overtake */

/* Replacing a manifest if it is still the one that was read, and what a crash leaves.
 *
 * LOCK:
 * 1. Take the lock, read the manifest, prepare the new one.
 * 2. Read it again, because not every writer may use the lock: a different one fails the commit.
 * 3. Replace it, atomically: the commit point. A crash leaves the one or the other.
 * 4. Release the lock; a crash does so, too.
 *
 * PUT_IF:
 * 1. Read the manifest, prepare the new one.
 * 2. Fetch the manifest and its tag: a different manifest fails the commit.
 * 3. Put the new one on condition of the tag: the commit point.
 *
 * NUMBER, where a file system has no locks:
 * 1. Read the manifest in force M (manifest_latest.c: SFTI_DATASET_MANIFEST and the commit files
 *    that follow it); prepare; move shards into place, sync the folder.
 * 2. Write the new manifest, complete and synced, into the job's folder. A crash here or before
 *    leaves M, and the job's folder to gc.
 * 3. Rename it, never replacing, to the commit file whose name M's version and digest determine:
 *    the commit point. Of all writers that read M one succeeds, and from now on every reader finds
 *    the new manifest. A writer that finds the name taken has lost and need not wait: no such file
 *    can be stale, because the file is the commit and not a claim to one.
 * 4. Follow the chain again. If it does not contain this commit, M was out of date and its
 *    successor already removed (see 6): remove the file, the commit has lost.
 * 5. Replace SFTI_DATASET_MANIFEST, and again while a commit file follows what was put: a slow
 *    writer cannot leave an older manifest in the place of a newer one. A crash before 5 leaves an
 *    old SFTI_DATASET_MANIFEST; the next commit updates it, and readers do not depend on it.
 * 6. Remove commit files of earlier versions that are an hour older than this one by the file
 *    system's own clock. The limit of this scheme: a writer that stops for more than an hour
 *    between 3 and 5, and is killed between replacing and reading again in 5, leaves an older
 *    manifest in force.
 *
 * With commit files in the folder every writer uses them, also those that have the lock. A manifest
 * of segments notes that there are some (numbered), from the first such commit on: its writers need
 * not list the folder.
 *
 * Versions: before any of this the old manifest is written to a file of its own
 * (SFTI_VERSION_FILE), complete and synced: at no moment is it neither in force nor kept. Its name
 * is made of its version and of a uuid, its history, which the manifests from then on repeat: files
 * of another dataset that was in this folder are never taken for versions of this one. Whoever
 * writes the file writes the same bytes. A crash leaves a version that is still in force; a commit
 * that failed removes the file only if it began the history. What old versions name is removed by
 * gc alone, which removes their files first.
 *
 * What is swapped is SFTI_DATASET_MANIFEST in either form. The segments that it names are in place
 * and synced before, and are never changed (publish.c). */

/* ── What there is ── */

static bool guard_by_tag(const sft_storage *s) { return sfti_can(s, fetch) && sfti_can(s, put_if); }

static sft_code guard_none(sft_error *err) {
    return sfti_fail(err, SFT_DATASET_UNGUARDED, "expected a storage with locks or conditional "
                     "writes, without which a commit can undo another's, found one with neither");
}

sft_code sfti_ds_guard_check(const sft_storage *s, bool single, sft_error *err) {
    if (sfti_can(s, lock) || guard_by_tag(s) || sfti_can(s, move_new)) return SFT_OK;
    if (s->single_writer || single) return SFT_OK;
    return guard_none(err);
}

static bool guard_numbered(void *ctx, const sft_stored *object) {
    bool *found = ctx;
    uint64_t number;
    *found = !object->folder && sfti_ds_is_commit_file(sft_span_cstr(object->name), &number);
    return !*found;
}

sft_code sfti_ds_guard_settle(sfti_ds_swap *w, const sfti_ds_manifest *m, sft_error *err) {
    const sft_storage *s = w->storage;
    bool segmented = m && m->segmented, found = segmented && m->numbered;
    sft_code code = SFT_OK;
    if (!w->locked || !sfti_can(s, move_new)) return SFT_OK;
    if (!segmented) code = sfti_call(s, list, "", guard_numbered, &found, err);
    if (found) w->guard = SFTI_GUARD_NUMBER;
    return code;
}

sft_code sfti_ds_guard_take(sfti_ds_swap *w, uint64_t wait_ms, sft_error *err) {
    const sft_storage *s = w->storage;
    sft_error what = SFT_ERROR_INIT;
    sft_code code = sfti_can(s, lock) ? sfti_call(s, lock, wait_ms, &what)
                                      : SFT_DATASET_UNGUARDED;
    w->single = w->single || s->single_writer;
    w->locked = !code;
    w->guard = SFTI_GUARD_LOCK;
    if (!code) return SFT_OK;
    if (code != SFT_DATASET_UNGUARDED) return sfti_fail_as(err, code, &what);
    if (!guard_by_tag(s) && !sfti_can(s, move_new) && !w->single) return guard_none(err);
    w->guard = guard_by_tag(s) ? SFTI_GUARD_PUT_IF
               : sfti_can(s, move_new)   ? SFTI_GUARD_NUMBER
                               : SFTI_GUARD_NOTHING;
    return SFT_OK;
}

void sfti_ds_guard_drop(sfti_ds_swap *w) {
    if (w->locked && sfti_can(w->storage, unlock)) w->storage->vtable->unlock(w->storage->ctx);
    w->locked = false;
}

/* ── Versions ── */

void sfti_ds_swap_begin(sfti_ds_swap *w, const sfti_ds_manifest *old, bool keeps,
                          const char *commit, sfti_ds_manifest *next) {
    uint64_t now = sfti_os_time_s();
    keeps = keeps && old->version > 0; /* a connector's has no number */
    next->generator = sft_span_cstr(SFTI_DATASET_GENERATOR);
    memcpy(next->commit, commit, sizeof next->commit);
    w->old = old->text;
    w->old_version = old->version;
    w->commit = commit;
    next->committed = now > old->committed ? now : old->committed;
    if (*old->history) memcpy(next->history, old->history, sizeof next->history);
    else if (keeps) memcpy(next->history, commit, sizeof next->history);
    w->history = keeps ? next->history : NULL;
    w->first = keeps && !*old->history;
}

/* Whether another commit has kept this one as a version. */
static bool swap_kept(const sfti_ds_swap *w) {
    sfti_arena arena = { .alloc = w->alloc };
    sfti_ds_manifest kept;
    sft_error ignored;
    char name[SFTI_VERSION_FILE_NAME];
    if (!w->history || w->old_version == UINT64_MAX) return false;
    sfti_ds_version_name(w->old_version + 1, w->history, name);
    bool ours = !sfti_ds_commit_read(w->storage, name, &arena, &kept, &ignored) &&
                strcmp(kept.commit, w->commit) == 0;
    sfti_arena_free(&arena);
    return ours;
}

/* ── What is in force ── */

static bool swap_ours(const sfti_ds_swap *w, const sfti_ds_manifest *now) {
    return strcmp(now->commit, w->commit) == 0 ||
           (w->shard && sfti_ds_manifest_names(now, w->shard));
}

static bool swap_is_old(const sfti_ds_swap *w, sft_span text) {
    return !text.data == !w->old.data && sft_span_equal(text, w->old);
}

/* Another commit may have replaced this one's manifest already, unless the storage reported that it
 * was not put. */
sfti_ds_outcome sfti_ds_swap_check(const sfti_ds_swap *w, sft_code failed) {
    sfti_arena arena = { .alloc = w->alloc };
    sfti_ds_manifest now;
    sft_error ignored;
    sft_code code = sfti_ds_manifest_read(w->storage, &arena, &now, &ignored);
    sfti_ds_outcome outcome = SFTI_SWAP_UNKNOWN;
    bool other = !code && !swap_is_old(w, now.text) && !swap_ours(w, &now);
    if (other && w->shard && sfti_ds_manifest_load(w->storage, &arena, &now, &ignored))
        code = SFT_DATASET_SHARD;
    if (!code && (swap_ours(w, &now) || (other && swap_kept(w)))) outcome = SFTI_SWAP_DONE;
    else if (failed == SFT_DATASET_CHANGED) outcome = code ? outcome : SFTI_SWAP_FAILED;
    else if (code == SFT_MANIFEST_MISSING || code == SFT_MANIFEST_TYPE) outcome = SFTI_SWAP_FAILED;
    else if (!code && swap_is_old(w, now.text)) outcome = SFTI_SWAP_FAILED;
    sfti_arena_free(&arena);
    return outcome;
}

bool sfti_ds_swap_again(const sfti_ds_swap *w, sft_code failed, sft_span old, unsigned tried) {
    bool again = failed == SFT_DATASET_CHANGED && tried + 1 < SWAP_TRIES &&
                 sfti_ds_manifest_changed(w->storage, &w->alloc, old);
    if (again) sfti_os_sleep_ms(tried < 7 ? UINT32_C(10) << tried : 1000);
    return again;
}

bool sfti_ds_swap_is_last(const sfti_ds_swap *w) {
    sfti_arena arena = { .alloc = w->alloc };
    sfti_ds_manifest now;
    sft_error ignored;
    if (w->locked) return true;
    sft_code code = sfti_ds_manifest_read(w->storage, &arena, &now, &ignored);
    bool last = !code && strcmp(now.commit, w->commit) == 0;
    sfti_arena_free(&arena);
    return last;
}

/* ── The claim ── */

static sft_code swap_changed(sft_error *err) {
    return sfti_fail(err, SFT_DATASET_CHANGED,
                     "expected the dataset as it was read, found another commit");
}

static sft_code swap_fetch(sfti_ds_swap *w, sft_error *err) {
    sft_buffer bytes = { .alloc = w->alloc };
    sft_error other = SFT_ERROR_INIT;
    sft_code code = sfti_call(w->storage, fetch, SFTI_DATASET_MANIFEST,
                              SFTI_MANIFEST_MOST, &bytes, w->tag, &other);
    bool none = code == SFT_NOT_FOUND;
    sft_span text = { none ? NULL : bytes.data ? bytes.data : "", bytes.len };
    bool same = (!code || none) && swap_is_old(w, text);
    if (none) w->tag[0] = '\0';
    sft_buffer_free(&bytes);
    if (code && !none) return sfti_fail_as(err, code, &other);
    return same ? SFT_OK : swap_changed(err);
}

/* Step 4. Another commit may follow this one already: only a writer that found it in force makes
 * such a file. */
static sft_code swap_confirm(const sfti_ds_swap *w, sfti_ds_outcome *outcome, sft_error *err) {
    sfti_arena arena = { .alloc = w->alloc };
    sfti_ds_manifest now;
    sft_error ignored;
    sft_source source;
    char next[SFTI_COMMIT_FILE_NAME];
    bool seen = false;
    sft_code code =
        sfti_ds_manifest_seek(w->storage, &arena, w->commit, &now, &seen, err);
    sfti_arena_free(&arena);
    if (!code && !seen) {
        code = sfti_ds_commit_file(w->text, w->old_version + 1, &w->alloc, next, err);
        if (!code) {
            code = sfti_call(w->storage, open, next, &source, err);
            seen = !code;
        }
        if (seen) sft_source_close(&source);
        if (code == SFT_NOT_FOUND) code = SFT_OK;
    }
    *outcome = seen ? SFTI_SWAP_DONE : code ? SFTI_SWAP_UNKNOWN : SFTI_SWAP_FAILED;
    if (code || seen) return code;
    (void)sfti_call(w->storage, remove, w->file, false, &ignored);
    return swap_changed(err);
}

/* Steps 2 to 4. */
static sft_code swap_number(sfti_ds_swap *w, sfti_ds_outcome *outcome, sft_error *err) {
    const sft_storage *s = w->storage;
    char from[SFTI_STORED_NAME];
    sfti_ds_stored_name(w->folder, SFTI_DATASET_MANIFEST, from);
    sft_code code = sfti_ds_commit_file(w->old, w->old_version, &w->alloc, w->file, err);
    if (!code) code = sfti_ds_settle(s, err);
    if (!code) code = sfti_ds_put(s, from, w->text, err);
    if (code) return code;
    code = sfti_call(s, move_new, from, w->file, err);
    if (code == SFT_DATASET_UNGUARDED) return code;
    if (code) { /* the file may be there nevertheless, and this commit's */
        sfti_arena arena = { .alloc = w->alloc };
        sfti_ds_manifest at;
        sft_error ignored;
        bool ours = !sfti_ds_commit_read(s, w->file, &arena, &at, &ignored) &&
                    strcmp(at.commit, w->commit) == 0;
        sfti_arena_free(&arena);
        if (!ours) return code == SFT_EXISTS ? swap_changed(err) : code;
    }
    code = swap_confirm(w, outcome, err);
    if (code || *outcome != SFTI_SWAP_DONE) return code;
    return sfti_ds_settle(s, err);
}

sft_code sfti_ds_swap_claim(sfti_ds_swap *w, sfti_ds_outcome *outcome, sft_error *err) {
    *outcome = SFTI_SWAP_FAILED;
    sft_code code = SFT_OK;
    if (w->guard == SFTI_GUARD_PUT_IF) {
        code = swap_fetch(w, err);
        if (code != SFT_DATASET_UNGUARDED || !w->single) return code;
        w->guard = SFTI_GUARD_NOTHING;
    }
    sfti_arena arena = { .alloc = w->alloc };
    sfti_ds_manifest now;
    sft_error other = SFT_ERROR_INIT;
    code = sfti_ds_manifest_seek(w->storage, &arena, NULL, &now, NULL, &other);
    bool known = !code || code == SFT_MANIFEST_MISSING || code == SFT_MANIFEST_TYPE;
    bool same = known && swap_is_old(w, now.text);
    sfti_arena_free(&arena);
    if (!known) return sfti_fail_as(err, code, &other);
    if (!same) return swap_changed(err);
    if (w->guard != SFTI_GUARD_NUMBER) return SFT_OK;
    code = swap_number(w, outcome, err);
    if (code != SFT_DATASET_UNGUARDED || !(w->single || w->locked)) return code;
    w->guard = w->locked ? SFTI_GUARD_LOCK : SFTI_GUARD_NOTHING;
    return SFT_OK;
}

/* ── The put ── */

/* Step 5: repeats until no commit file followed the manifest when it was put. */
static sft_code swap_forward(const sfti_ds_swap *w, sft_error *err) {
    sft_span put = w->text;
    sfti_arena arena = { .alloc = w->alloc };
    sft_code code;
    do {
        sfti_ds_manifest now;
        code = sfti_ds_put(w->storage, SFTI_DATASET_MANIFEST, put, err);
        if (!code) code = sfti_ds_manifest_read(w->storage, &arena, &now, err);
        if (code || !now.ahead) break;
        put = now.text;
    } while (true);
    sfti_arena_free(&arena);
    return code;
}

/* ── Old commit files ── */

typedef struct old_commits {
    sfti_ds_listing files;
    uint64_t version;
    int64_t newest_s; /* of all commit files: the file system's current time */
} old_commits;

static bool old_each(void *ctx, const sft_stored *object) {
    old_commits *o = ctx;
    uint64_t number;
    if (object->folder || !sfti_ds_is_commit_file(sft_span_cstr(object->name), &number))
        return true;
    if (object->mtime_s > o->newest_s) o->newest_s = object->mtime_s;
    if (number >= o->version || object->mtime_s <= 0) return true;
    return sfti_ds_listing_put(&o->files, "", object->name, object->mtime_s);
}

/* Step 6. */
static sft_code swap_clean(const sfti_ds_swap *w, sft_error *err) {
    old_commits o = { .files = { .arena = { .alloc = w->alloc } }, .version = w->old_version + 1 };
    sft_code code = sfti_ds_listing_fill(&o.files, w->storage, "", old_each, &o, err);
    for (const sfti_ds_listed *one = o.files.first; one && !code; one = one->next)
        if (o.newest_s - one->mtime_s > SFTI_COMMIT_FILE_S)
            code = sfti_call(w->storage, remove, one->name, false, err);
    sfti_arena_free(&o.files.arena);
    return code;
}

/* ── All of it ── */

sft_code sfti_ds_swap_run(sfti_ds_swap *w, const sfti_ds_steps *steps, sfti_ds_outcome *outcome,
                          sft_error *err) {
    const sft_storage *s = w->storage;
    sft_error what = SFT_ERROR_INIT, ignored;
    char version[SFTI_VERSION_FILE_NAME];
    sft_code code = SFT_OK;
    *outcome = SFTI_SWAP_FAILED;
    if (w->history) {
        sfti_ds_version_name(w->old_version, w->history, version);
        code = sfti_ds_put(s, version, w->old, &what);
        if (code) goto done;
    }
    code = sfti_ds_swap_claim(w, outcome, &what);
    bool committed = *outcome == SFTI_SWAP_DONE;
    if (code && !committed) goto done;
    if (code && steps->warn) steps->warn(steps->warn_ctx, &what);

    code = steps->before ? steps->before(steps->ctx, committed, &what) : SFT_OK;
    if (code && !committed) goto done;
    if (code && steps->warn) steps->warn(steps->warn_ctx, &what);

    /* A put that fails may have replaced the manifest nevertheless: see what is in force. */
    if (w->guard == SFTI_GUARD_NUMBER) code = swap_forward(w, &what);
    else if (w->guard == SFTI_GUARD_PUT_IF)
        code = sfti_call(s, put_if, SFTI_DATASET_MANIFEST, w->tag, w->text, &what);
    else code = sfti_ds_put(s, SFTI_DATASET_MANIFEST, w->text, &what);
    if (!committed)
        *outcome = code && w->guard != SFTI_GUARD_NUMBER ? sfti_ds_swap_check(w, code)
                                                         : SFTI_SWAP_DONE;
    if (*outcome != SFTI_SWAP_DONE) goto done;
    if (code && steps->warn) steps->warn(steps->warn_ctx, &what);
    /* After a failed put what was replaced stays: readers may still see the old
     * SFTI_DATASET_MANIFEST, or a power failure may bring it back. */
    if (code) return SFT_OK;
    steps->after(steps->ctx);
    if (w->guard == SFTI_GUARD_NUMBER && swap_clean(w, &what) && steps->warn)
        steps->warn(steps->warn_ctx, &what);
    return SFT_OK;
done:
    if (*outcome == SFTI_SWAP_FAILED && w->history && w->first)
        (void)sfti_call(s, remove, version, false, &ignored);
    return sfti_fail_as(err, code, &what);
}
