/* What commits, compactions, aborts and gc remove is decided here, on any storage. A listing only
 * proposes names, and so does a manifest, which anybody may have written. */
#include "base/error.h"
#include "dataset/dataset.h"

#include <stdio.h>
#include <string.h>

/* ── Whose a file is ── */

bool sfti_ds_is_ours(const sft_storage *storage, const char *name) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file = NULL;
    sft_error ignored;
    sft_span mark, text = sft_span_cstr(name);
    if (!sfti_ds_is_part(text) && !sfti_ds_is_addressed(text)) return false;
    options.header_only = true; /* a truncated shard counts, too */
    options.level = SFT_LEVEL_COMPAT; /* a dataset may be read at any level */
    if (sfti_ds_open_shard(storage, name, &options, &file, &ignored)) return false;
    bool ours = sft_file_metadata_get_cstr(file, SFTI_DATASET_MARK, &mark);
    sft_close(file);
    return ours;
}

/* src/core/bytes/sink_path.c names a file ".<name>.sft-<letters>" until it is complete. */
static sft_span job_temporary(sft_span name) {
    static const char mark[] = ".sft-";
    if (name.len < 2 || name.data[0] != '.') return name;
    for (size_t i = name.len - 1; i > 1; i--)
        if (name.len - i > sizeof mark - 1 && memcmp(name.data + i, mark, sizeof mark - 1) == 0)
            return (sft_span){ name.data + 1, i - 1 };
    return name;
}

bool sfti_ds_is_temporary(sft_span name) {
    sft_span of = job_temporary(name);
    if (of.data == name.data) return false;
    uint64_t version;
    return sft_span_equal(of, sft_span_cstr(SFTI_DATASET_MANIFEST)) || sfti_ds_is_addressed(of) ||
           sfti_ds_is_version(of, &version, &(sft_span){ NULL, 0 });
}

bool sfti_ds_job_owns(const char *folder, const char *name) {
    static const char *const names[] = { SFTI_DATASET_INDEX, SFTI_DATASET_MANIFEST,
                                         SFTI_JOB_ALIVE };
    sft_span whole = sft_span_cstr(name), own = job_temporary(whole);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sft_span_equal(own, sft_span_cstr(names[i]))) return true;
    if (sfti_ds_is_addressed(own) || sfti_ds_is_part(own)) return true;
    /* An index that Spark wrote and a commit moved here: parts, checksums and markers. */
    bool index = sfti_ds_ends(sft_span_cstr(folder), SFTI_JOB_INDEX) ||
                 strcmp(folder, SFTI_DATASET_INDEX) == 0;
    return index && (sfti_ds_ends(whole, ".parquet") || sfti_ds_ends(whole, ".crc") ||
                     *name == '_');
}

/* ── Files that a manifest named ── */

void sfti_ds_removal_of(sfti_ds_removal *r, const char *name) {
    sft_error what = SFT_ERROR_INIT;
    sft_source source;
    bool ours = sfti_ds_is_ours(r->storage, name);
    if (ours && sfti_call(r->storage, remove, name, false, &what) && r->warn)
        r->warn(r->warn_ctx, &what);
    if (ours || !r->warn) return;
    sft_code code = sfti_call(r->storage, open, name, &source, &what);
    if (!code) sft_source_close(&source);
    if (code != SFT_NOT_FOUND && r->kept++ == 0)
        (void)snprintf(r->first, sizeof r->first, "%s", name);
}

void sfti_ds_removal_index(const sfti_ds_removal *r, const char *name) {
    sft_error what = SFT_ERROR_INIT;
    sft_code code = sfti_call(r->storage, remove, name, false, &what);
    if (code) code = sfti_ds_job_remove(r->storage, name, NULL, &what);
    if (code && r->warn) r->warn(r->warn_ctx, &what);
}

void sfti_ds_removal_end(const sfti_ds_removal *r, const char *folder) {
    sft_error what = SFT_ERROR_INIT;
    if (*folder && sfti_call(r->storage, remove, folder, true, &what) && r->warn)
        r->warn(r->warn_ctx, &what);
    if (!r->kept) return;
    (void)sfti_fail(&what, SFT_DATASET_SHARD, "%zu files that the replaced manifest named are no "
                    "shards of libsafetensors by name and header, and stay: first %s", r->kept,
                    r->first);
    r->warn(r->warn_ctx, &what);
}

/* ── Folders of jobs ── */

typedef struct job_files {
    const char *folder;
    sfti_ds_listing ours;
    uint64_t kept;
} job_files;

static bool job_each(void *ctx, const sft_stored *object) {
    job_files *f = ctx;
    if (!object->folder && sfti_ds_job_owns(f->folder, object->name))
        return sfti_ds_listing_put(&f->ours, f->folder, object->name, 0);
    f->kept++;
    return true;
}

static bool job_any(void *ctx, const sft_stored *object) {
    (void)object;
    *(bool *)ctx = true;
    return false;
}

sft_code sfti_ds_job_remove(const sft_storage *s, const char *folder, uint64_t *kept,
                            sft_error *err) {
    job_files f = { .folder = folder, .ours = { .arena = { .alloc = sfti_allocator(NULL) } } };
    bool left = false;
    sft_code code = sfti_ds_listing_fill(&f.ours, s, folder, job_each, &f, err);
    for (const sfti_ds_listed *one = f.ours.first; one && !code; one = one->next)
        code = sfti_call(s, remove, one->name, false, err);
    sfti_arena_free(&f.ours.arena);
    if (kept) *kept = f.kept;
    if (code || f.kept) return code;
    code = sfti_call(s, list, folder, job_any, &left, err);
    return code || left ? code : sfti_call(s, remove, folder, true, err);
}
