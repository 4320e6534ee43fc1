/* Garbage is found and removed. Tests: test_dataset_maintain.c, test_dataset_alive.c. */
#include "base/checked.h"
#include "base/error.h"
#include "dataset/maintain/results.h"
#include "dataset/read/stream.h"
#include "os/os.h"

#include <string.h>

#define GC_WAIT_MS 10000
#define GC_TRIES 100

/* How shards and folders become garbage:
 *
 * 1. A task writes its shards into the job's folder ("_job-<uuid>"). A crash leaves the folder.
 * 2. A commit moves them next to the others, and new segments of the manifest, too. A crash leaves
 *    shards and segments that no manifest names.
 * 3. The manifest is replaced. A crash leaves what it replaced, and the folder.
 *
 * So what no manifest names is garbage once its writer is dead. A running job is between 1 and 3,
 * and only its files' age distinguishes it from a dead one. A job that may outlast the grace period
 * therefore
 *
 * i.  writes SFTI_JOB_ALIVE in its folder, by each of its processes, every few minutes, also where
 *     names cannot be moved and its shards lie elsewhere. Each write replaces the whole file, so a
 *     crash leaves the last one or none, and its age is by the storage's own clock;
 * ii. ends: a commit or abort removes the folder. Where names cannot be moved it stays, as after a
 *     crash, until it is old and step d removes it.
 *
 * Removing therefore
 *
 * a. takes the commit lock, so that no commit is between 2 and 3 (without a lock, the age of a
 *    shard is that of its content or of its name, whichever is newer: moving sets the latter);
 * b. reads the manifest, then lists the folder;
 * c. without a lock, reads the manifest again: what it names by now stays. If a folder is young and
 *    names cannot be moved, so do all shards, because any may be of its job;
 * d. removes one item after another. A crash leaves some garbage to the next run.
 *
 * Versions that are kept name their shards as the manifest in force does, which is why a damaged
 * one is an error. What else goes with a version that does not stay is removed after its file: a
 * crash leaves shards that nothing names, not a version without some of its shards. */

/* A shard, folder, temporary or commit file that no manifest names, or a version that goes. */
typedef struct gc_item {
    struct gc_item *next;
    uint64_t bytes;
    uint64_t kept; /* files in a job's folder that are not ours */
    bool folder, part, young, timeless; /* part: a shard or a segment */
    bool version;
    bool skipped, removed; /* skipped: not ours, or named by now */
    char name[];
} gc_item;

typedef struct gc_work {
    const sft_storage *storage;
    sfti_arena arena;
    sfti_ds_manifest m;
    sfti_ds_names names; /* of its shards, and those of the versions that stay */
    sft_gc_options how;
    sfti_ds_version *versions; /* the last `stay` of them stay */
    size_t version_count, stay;
    sfti_ds_manifest *stays; /* their manifests */
    uint64_t grace_s, now_s;
    bool locked, unlockable;
    gc_item *first, **last;
    bool full, has_manifest;
} gc_work;

/* ── What is garbage ── */

/* A file without a time may have been written just now; without a grace period nothing is young. */
static bool gc_young(const gc_work *g, int64_t time_s) {
    if (!g->grace_s) return false;
    if (time_s <= 0 || g->now_s < (uint64_t)time_s) return true;
    return g->now_s - (uint64_t)time_s < g->grace_s;
}

/* Whether the manifest names a shard or a segment. Out of memory it counts as named. */
static bool gc_named(const gc_work *g, const char *name, sft_code *code, sft_error *err) {
    bool has = true;
    if (sfti_ds_is_addressed(sft_span_cstr(name))) {
        has = sfti_ds_manifest_addresses(&g->m, name);
        for (size_t i = 0; !has && i < g->stay; i++)
            has = sfti_ds_manifest_addresses(&g->stays[i], name);
        return has;
    }
    *code = sfti_ds_names_has(&g->names, name, &has, err);
    return has || *code;
}

/* Whether the file of a version goes: now, or once it is no longer young, as one of another
 * dataset that was in this folder. Those of a commit under way are of the manifest in force. */
static bool gc_version(const gc_work *g, uint64_t version, sft_span history, bool *now) {
    if (!g->has_manifest) return false;
    *now = memcmp(history.data, g->m.history, history.len) == 0;
    return !*now || version < (g->stay ? g->versions[g->version_count - g->stay].version
                                       : g->m.version);
}

/* Collects names only; files are opened after the listing. */
static bool gc_each(void *ctx, const sft_stored *object) {
    gc_work *g = ctx;
    uint64_t file;
    size_t len = strlen(object->name);
    sft_span name = { object->name, len };
    bool part = !object->folder && sfti_ds_is_part(name);
    /* Without a manifest, which may have been deleted, no shard counts as garbage. */
    if (part && !g->has_manifest) return true;
    const bool segment = !object->folder && sfti_ds_is_addressed(name);
    sft_code code = SFT_OK;
    if (segment && !g->has_manifest) return true;
    bool garbage = object->folder ? sfti_ds_is_job(name) : sfti_ds_is_temporary(name);
    sft_span history;
    bool now = false;
    const bool version = !object->folder && sfti_ds_is_version(name, &file, &history);
    if (version) garbage = gc_version(g, file, history, &now);
    else if (part || segment) garbage = !gc_named(g, object->name, &code, NULL);
    else if (!object->folder && g->has_manifest && g->m.ahead == 0 &&
             sfti_ds_is_commit_file(name, &file) && file < g->m.version)
        /* SFTI_DATASET_MANIFEST has overtaken this commit file. */
        garbage = garbage || (object->mtime_s > 0 && g->now_s > (uint64_t)object->mtime_s &&
                              g->now_s - (uint64_t)object->mtime_s > SFTI_COMMIT_FILE_S);
    g->full = code == SFT_OUT_OF_MEMORY;
    if (g->full) return false;
    if (!garbage) return true;
    gc_item *item = sfti_arena_take(&g->arena, sizeof *item + len + 1);
    g->full = !item;
    if (!item) return false;
    bool kept = (part || segment) && g->now_s < g->m.keep_until;
    /* Without a lock a file may belong to a commit that has moved it and not yet published: its age
     * is that of its name. A folder is as old as its contents: see gc_check_folder. */
    bool moved = !object->folder && sfti_can(g->storage, move) && g->unlockable &&
                 object->changed_s > object->mtime_s;
    bool young = (!object->folder || object->mtime_s > 0) &&
                 gc_young(g, moved ? object->changed_s : object->mtime_s);
    *item = (gc_item){ NULL, object->bytes, 0, object->folder, part || segment, kept || young,
                       object->mtime_s <= 0, version, false, false };
    if (now) item->young = false;
    memcpy(item->name, object->name, len + 1);
    *g->last = item;
    g->last = &item->next;
    return true;
}

typedef struct gc_folder {
    const gc_work *g;
    const char *name;
    uint64_t bytes, kept, count;
    bool young, over;
} gc_folder;

static bool gc_folder_each(void *ctx, const sft_stored *object) {
    gc_folder *f = ctx;
    f->count++;
    f->young = f->young || gc_young(f->g, object->mtime_s);
    if (object->folder || !sfti_ds_job_owns(f->name, object->name)) f->kept++;
    else if (!sfti_add(f->bytes, object->bytes, &f->bytes)) f->over = true;
    return true;
}

/* A running job has young files. */
static sft_code gc_check_folder(const gc_work *g, gc_item *item, sft_error *err) {
    gc_folder f = { g, item->name, 0, 0, 0, false, false };
    sft_code code = sfti_call(g->storage, list, item->name, gc_folder_each, &f, err);
    item->bytes = f.over ? UINT64_MAX : f.bytes;
    item->kept = f.kept;
    bool unknown = f.count == 0 && item->timeless && g->grace_s;
    item->young = item->young || f.young || unknown;
    return code;
}

/* ── Finding and removing ── */

/* How many of the versions stay, and their manifests: from the newest on, until one has been
 * replaced for too long and is beyond those to keep. */
static sft_code gc_versions(gc_work *g, sft_error *err) {
    const bool by_count = g->how.keep > 0, by_age = g->how.older_s > 0;
    sft_code code = sfti_ds_versions_list(g->storage, &g->m, &g->arena, &g->versions,
                                          &g->version_count, err);
    g->stay = 0;
    g->stays = sfti_arena_array(&g->arena, g->version_count, sizeof *g->stays);
    if (!code && !g->stays)
        code = sfti_fail_memory(err, g->version_count * sizeof *g->stays);
    uint64_t replaced_s = g->m.committed;
    for (size_t i = g->version_count; !code && i-- > 0;) {
        bool beyond = by_count && g->stay + 1 >= g->how.keep;
        bool old = by_age && g->now_s > replaced_s && g->now_s - replaced_s >= g->how.older_s;
        if (by_count && by_age ? beyond && old : beyond || old) break;
        sfti_ds_manifest *m = &g->stays[g->stay];
        code = sfti_ds_version_read(g->storage, &g->versions[i], &g->arena, m, err);
        if (code == SFT_NOT_FOUND)
            code = sfti_fail(err, SFT_DATASET_CHANGED, "%s: removed by another program",
                             g->versions[i].name);
        if (code) break;
        replaced_s = m->committed;
        g->stay++;
    }
    return code;
}

static sft_code gc_names(gc_work *g, sft_error *err) {
    sfti_ds_names_free(&g->names);
    g->names = (sfti_ds_names){ .alloc = g->arena.alloc, .m = &g->m, .several = true };
    sft_code code = sfti_ds_names_add_all(&g->names, g->storage, &g->m, err);
    g->names.own = g->names.count;
    if (!code) code = sfti_ds_names_add_columns(&g->names, g->storage, &g->m, err);
    if (!code) code = gc_versions(g, err);
    sft_error what = SFT_ERROR_INIT;
    for (size_t i = 0; !code && i < g->stay; i++) {
        code = sfti_ds_names_add_all(&g->names, g->storage, &g->stays[i], &what);
        if (!code)
            code = sfti_ds_names_add_columns(&g->names, g->storage, &g->stays[i], &what);
        if (code) /* its segments are gone: it has to be forgotten */
            (void)sfti_fail(err, code, "version %llu: %s",
                            (unsigned long long)g->stays[i].version, what.message);
    }
    return code ? code : sfti_ds_names_sort(&g->names, err);
}

/* With a manifest that cannot be read nothing counts as garbage. Another commit may merge segments
 * meanwhile. */
static sft_code gc_manifest(gc_work *g, sft_error *err) {
    sft_error e = SFT_ERROR_INIT;
    sft_code code = SFT_OK;
    for (int i = 0; i < GC_TRIES; i++) {
        code = sfti_ds_manifest_read(g->storage, &g->arena, &g->m, &e);
        if (!code) code = gc_names(g, &e);
        bool again = code == SFT_DATASET_SHARD &&
                     sfti_ds_manifest_changed(g->storage, &g->arena.alloc, g->m.text);
        if (!again) break;
    }
    g->has_manifest = !code;
    if (!code) return SFT_OK;
    memset(&g->m, 0, sizeof g->m);
    g->version_count = g->stay = 0;
    if (code == SFT_MANIFEST_MISSING) return SFT_OK;
    if (err) *err = e;
    return code;
}

static sft_code gc_list(gc_work *g, sft_error *err) {
    g->first = NULL;
    g->last = &g->first;
    memset(&g->m, 0, sizeof g->m);
    sft_code code = gc_manifest(g, err);
    if (!code) code = sfti_call(g->storage, list, "", gc_each, g, err);
    if (!code && g->full) code = sfti_fail_memory(err, sizeof(gc_item));
    return code;
}

/* Steps a to c. */
static sft_code gc_find(gc_work *g, bool remove, sft_error *err) {
    const sft_storage *s = g->storage;
    sft_error what = SFT_ERROR_INIT;
    sft_code code = gc_list(g, err);
    if (code || !g->first || !remove) return code;
    code = sfti_can(s, lock) ? sfti_call(s, lock, GC_WAIT_MS, &what) : SFT_DATASET_UNGUARDED;
    g->locked = !code;
    g->unlockable = !g->locked;
    if (code && code != SFT_DATASET_UNGUARDED) return sfti_fail_as(err, code, &what);
    code = gc_list(g, err);
    return code || g->locked ? code : gc_manifest(g, err);
}

/* Step c, where names cannot be moved. */
static sft_code gc_living(gc_work *g, sft_error *err) {
    bool living = false;
    if (sfti_can(g->storage, move)) return SFT_OK;
    for (gc_item *item = g->first; item; item = item->next) {
        if (!item->folder) continue;
        sft_code code = gc_check_folder(g, item, err);
        if (code) return code;
        living = living || item->young;
    }
    for (gc_item *item = g->first; living && item; item = item->next)
        item->young = item->young || item->part;
    return SFT_OK;
}

/* Step d, for one item. */
static sft_code gc_item_remove(const gc_work *g, gc_item *item, bool remove, sft_error *err) {
    sft_code code = SFT_OK;
    item->skipped = item->part && (!g->has_manifest || gc_named(g, item->name, &code, err) ||
                                   !sfti_ds_is_ours(g->storage, item->name));
    if (code || item->skipped) return code;
    if (item->folder) code = gc_check_folder(g, item, err);
    if (code || !remove || item->young) return code;
    if (item->folder) code = sfti_ds_job_remove(g->storage, item->name, &item->kept, err);
    else code = sfti_call(g->storage, remove, item->name, false, err);
    item->removed = !code;
    return code;
}

/* ── The result ── */

static sft_code gc_result(const gc_work *g, const char *path, sft_tree *tree, sft_error *err) {
    sfti_json_writer w;
    uint64_t bytes = 0;
    sfti_ds_result_begin(&w, tree, path, true, err);
    sfti_json_put_open(&w, "garbage", '[');
    for (const gc_item *item = g->first; item; item = item->next) {
        if (item->skipped) continue;
        if (!item->young) sfti_total_add(&bytes, item->bytes);
        sfti_json_open(&w, '{');
        sfti_json_put_cstr(&w, "name", item->name);
        sfti_json_put_uint(&w, "bytes", item->bytes);
        sfti_json_put_bool(&w, "young", item->young);
        sfti_json_put_bool(&w, "removed", item->removed);
        if (item->folder) sfti_json_put_uint(&w, "foreign", item->kept);
        sfti_json_close(&w, '}');
    }
    sfti_json_close(&w, ']');
    sfti_json_put_uint(&w, "bytes", bytes);
    return sfti_result_end(&w);
}

static SFTI_OPTIONS_TAKE(gc_options_take, sft_gc_options, SFT_GC_OPTIONS_INIT, older_s)

sft_code sft_dataset_gc_tree(const sft_storage *storage, const sft_gc_options *options,
                             const char *path, sft_tree *tree, sft_error *err) {
    gc_work g = { .storage = storage, .now_s = sfti_os_time_s() };
    g.arena.alloc = sfti_allocator(NULL);
    sft_code code = sfti_ds_storage_check(storage, err);
    if (!code) code = gc_options_take(options, &g.how, err);
    g.grace_s = g.how.grace_s;
    if (!code) code = gc_find(&g, g.how.remove, err);
    if (!code) code = gc_living(&g, err);
    for (int rest = 0; rest < 2; rest++)
        for (gc_item *item = g.first; !code && item; item = item->next)
            if (item->version == !rest) code = gc_item_remove(&g, item, g.how.remove, err);
    if (!code) code = gc_result(&g, path, tree, err);
    if (g.locked && sfti_can(storage, unlock)) storage->vtable->unlock(storage->ctx);
    sfti_ds_names_free(&g.names);
    sfti_arena_free(&g.arena);
    return code;
}

sft_code sft_dataset_gc_json(const sft_storage *storage, const sft_gc_options *options,
                             const char *path, sft_sink *sink, sft_error *err) {
    sft_tree *tree = NULL;
    sft_code code = sft_tree_new(NULL, &tree, err);
    if (!code)
        code = sft_dataset_gc_tree(storage, options, path, tree, err);
    return sfti_ds_result_render(tree, code, sink, err);
}
