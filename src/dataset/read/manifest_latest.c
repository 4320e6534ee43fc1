/* Which manifest is in force. Tests: test_dataset_swap.c. */
#include "base/checked.h"
#include "base/error.h"
#include "dataset/read/segment.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

#define TORN_TRIES 8
#define TORN_PAUSE_MS 20
#define LOAD_TRIES 100

/* ── Commit files ──
 *
 * Where a file system has no locks, each manifest has at most one successor: the name of a commit
 * file is made from its predecessor's version and digest, and the file is created exclusively and
 * complete (the steps are in commit/swap.c). SFTI_DATASET_MANIFEST may be behind, if a writer was
 * killed or is slow: readers follow the files. */

sft_code sfti_ds_commit_file(sft_span text, uint64_t version, const sft_allocator *alloc,
                             char out[SFTI_COMMIT_FILE_NAME], sft_error *err) {
    char digest[65] = "none";
    if (!sfti_add(version, 1, &version))
        return sfti_ds_overflow("a version", err);
    if (text.data) {
        sft_code code = sfti_ds_digest(text, alloc, digest, err);
        if (code) return code;
    }
    (void)snprintf(out, SFTI_COMMIT_FILE_NAME, SFTI_COMMIT_FILE "%llu-%.*s",
                   (unsigned long long)version, SFTI_COMMIT_DIGITS, digest);
    return SFT_OK;
}

/* ── Reading ── */

sft_code sfti_ds_commit_read(const sft_storage *storage, const char *name, sfti_arena *arena,
                             sfti_ds_manifest *out, sft_error *err) {
    sft_span text = { NULL, 0 };
    memset(out, 0, sizeof *out);
    /* Usually no commit file follows, and before the first commit there is no manifest: no text is
     * made of that. What fails otherwise is tried once more, to say why; not by requests. */
    bool moves = sfti_can(storage, move);
    sft_code code = sfti_ds_read_all(storage, name, SFTI_MANIFEST_MOST, arena, &text,
                                     moves ? NULL : err);
    if (code && code != SFT_NOT_FOUND && moves)
        code = sfti_ds_read_all(storage, name, SFTI_MANIFEST_MOST, arena, &text, err);
    if (!code) code = sfti_ds_manifest_parse(text, arena, out, err);
    return code;
}

/* An object store needs two requests for an object's size and bytes, between which another commit
 * may put a manifest of another size. A damaged manifest is the same when read again. */
static sft_code latest_object(const sft_storage *storage, sfti_arena *arena,
                              sfti_ds_manifest *out, sft_error *err) {
    sft_span last = { NULL, 0 };
    sft_code code = SFT_OK;
    for (uint32_t i = 0; i < TORN_TRIES; i++) {
        if (i) sfti_os_sleep_ms(TORN_PAUSE_MS * (i - 1));
        code = sfti_ds_commit_read(storage, SFTI_DATASET_MANIFEST, arena, out, err);
        bool torn = code == SFT_IO_SHRUNK || code == SFT_MANIFEST_TYPE;
        bool same = out->text.data && last.data && sft_span_equal(out->text, last);
        if (!torn || same) break;
        last = out->text;
    }
    return code;
}

sft_code sfti_ds_manifest_seek(const sft_storage *storage, sfti_arena *arena,
                               const char *commit, sfti_ds_manifest *out, bool *seen,
                               sft_error *err) {
    sft_error first = SFT_ERROR_INIT;
    sft_code code = sfti_can(storage, move)
                        ? sfti_ds_commit_read(storage, SFTI_DATASET_MANIFEST, arena, out, &first)
                        : latest_object(storage, arena, out, &first);
    bool known = !code || code == SFT_NOT_FOUND || code == SFT_MANIFEST_TYPE;
    if (code == SFT_MANIFEST_TYPE) { /* only the bytes count */
        sft_span text = out->text;
        memset(out, 0, sizeof *out);
        out->text = text;
    }
    if (seen) *seen = !code && strcmp(out->commit, commit) == 0;
    /* The chain of commit files after it. */
    while (known && sfti_can(storage, move_new) && out->version < UINT64_MAX) {
        char name[SFTI_COMMIT_FILE_NAME];
        sfti_ds_manifest next;
        sft_error what = SFT_ERROR_INIT;
        sft_code more = sfti_ds_commit_file(out->text, out->version, &arena->alloc, name, err);
        if (more) return more;
        more = sfti_ds_commit_read(storage, name, arena, &next, &what);
        if (more == SFT_NOT_FOUND) break;
        if (more) return sfti_fail_as(err, more, &what);
        next.ahead = out->ahead + 1;
        *out = next;
        if (seen) *seen = *seen || strcmp(out->commit, commit) == 0;
        code = SFT_OK;
    }
    if (code == SFT_NOT_FOUND) return SFT_MANIFEST_MISSING;
    return code ? sfti_fail_as(err, code, &first) : SFT_OK;
}

sft_code sfti_ds_manifest_read(const sft_storage *storage, sfti_arena *arena,
                               sfti_ds_manifest *out, sft_error *err) {
    sft_code code = sfti_ds_manifest_seek(storage, arena, NULL, out, NULL, err);
    if (code != SFT_MANIFEST_MISSING) return code;
    return sfti_fail(err, code, "expected " SFTI_DATASET_MANIFEST " in the folder, found none");
}

bool sfti_ds_manifest_changed(const sft_storage *storage, const sft_allocator *alloc,
                              sft_span text) {
    sfti_arena arena = { .alloc = *alloc };
    sfti_ds_manifest now;
    sft_error ignored;
    sft_code code = sfti_ds_manifest_read(storage, &arena, &now, &ignored);
    bool other = !code && !sft_span_equal(now.text, text);
    sfti_arena_free(&arena);
    return other;
}

/* A commit that merges segments removes the old ones: a segment may be gone once the manifest that
 * names it was read. Then the manifest in force is another one. */
sft_code sfti_ds_manifest_read_all(const sft_storage *storage, sfti_arena *arena,
                                   sfti_ds_manifest *out, sft_error *err) {
    sft_span last = { NULL, 0 };
    sft_error what = SFT_ERROR_INIT;
    for (uint32_t i = 0;; i++) {
        sft_code code = sfti_ds_manifest_read(storage, arena, out, err);
        if (code) return code;
        bool same = last.data && sft_span_equal(last, out->text);
        if (i == LOAD_TRIES || same) return sfti_fail_as(err, what.code, &what);
        code = sfti_ds_manifest_load(storage, arena, out, &what);
        if (code != SFT_DATASET_SHARD) return code ? sfti_fail_as(err, code, &what) : SFT_OK;
        last = out->text;
    }
}
