#include "base/checked.h"
#include "base/error.h"
#include "dataset/dataset.h"

#include <stdio.h>
#include <string.h>

/* ── Whose a file is ── */

static bool job_ends(sft_span name, const char *with) {
    size_t len = strlen(with);
    return name.len >= len && memcmp(name.data + name.len - len, with, len) == 0;
}

/* What src/bytes/sink_path.c names a file until it is whole: ".<name>.sft-<letters>". */
static sft_span job_temporary(sft_span name) {
    static const char mark[] = ".sft-";
    if (name.len < 2 || name.data[0] != '.') return name;
    for (size_t i = name.len - 1; i > 1; i--)
        if (name.len - i > sizeof mark - 1 && memcmp(name.data + i, mark, sizeof mark - 1) == 0)
            return (sft_span){ name.data + 1, i - 1 };
    return name;
}

static bool job_named(sft_span name) {
    static const char *const names[] = { SFTI_DATASET_INDEX, SFTI_DATASET_MANIFEST };
    uint64_t file, shard;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sft_span_equal(name, sft_span_cstr(names[i]))) return true;
    return sfti_ds_shard_parse(name, &file, &shard);
}

/* An index that Spark wrote, and the commit moved here: its parts, their checksums and marks. */
static bool job_sparks(sft_span name) {
    return job_ends(name, ".parquet") || job_ends(name, ".crc") ||
           (name.len && name.data[0] == '_');
}

bool sfti_ds_is_temporary(sft_span name) {
    sft_span of = job_temporary(name);
    return of.data != name.data && sft_span_equal(of, sft_span_cstr(SFTI_DATASET_MANIFEST));
}

bool sfti_ds_job_owns(const char *folder, const char *name) {
    sft_span whole = sft_span_cstr(name);
    bool index = job_ends(sft_span_cstr(folder), SFTI_JOB_INDEX);
    return job_named(job_temporary(whole)) || (index && job_sparks(whole));
}

/* ── Removing ── */

typedef struct job_list {
    const char *folder;
    sfti_arena arena;
    struct job_name {
        struct job_name *next;
        char text[];
    } *first;
    uint64_t kept;
    bool full;
} job_list;

static bool job_each(void *ctx, const sft_stored *object) {
    job_list *l = ctx;
    size_t folder = strlen(l->folder), len = strlen(object->name) + 1;
    if (object->folder || !sfti_ds_job_owns(l->folder, object->name)) {
        l->kept++;
        return true;
    }
    struct job_name *one = sfti_arena_take(&l->arena, sizeof *one + folder + 1 + len);
    l->full = !one;
    if (!one) return false;
    memcpy(one->text, l->folder, folder);
    one->text[folder] = '/';
    memcpy(one->text + folder + 1, object->name, len);
    one->next = l->first;
    l->first = one;
    return true;
}

static bool job_any(void *ctx, const sft_stored *object) {
    (void)object;
    *(bool *)ctx = true;
    return false;
}

sft_code sfti_ds_job_remove(const sft_storage *s, const char *folder, uint64_t *kept,
                            sft_error *err) {
    job_list l = { .folder = folder, .arena = { .alloc = sfti_allocator(NULL) } };
    bool left = false;
    sft_code code = sfti_call(s, list, folder, job_each, &l, err);
    if (code == SFT_OK && l.full) code = sfti_fail_memory(err, sizeof(struct job_name));
    for (struct job_name *one = l.first; one && code == SFT_OK; one = one->next)
        code = sfti_call(s, remove, one->text, false, err);
    sfti_arena_free(&l.arena);
    if (kept) *kept = l.kept;
    if (code || l.kept) return code;
    code = sfti_call(s, list, folder, job_any, &left, err);
    return code || left ? code : sfti_call(s, remove, folder, true, err);
}
