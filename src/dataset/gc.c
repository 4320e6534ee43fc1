#include "base/error.h"
#include "dataset/care.h"
#include "os/os.h"

#include <string.h>

#define GC_WAIT_MS 10000

/* One thing that may go. */
typedef struct gc_item {
    struct gc_item *next;
    uint64_t bytes;
    bool folder, young;
    char name[];
} gc_item;

typedef struct gc_work {
    const sft_storage *storage;
    sfti_arena arena;
    sfti_ds_manifest m;
    uint64_t grace_s, now_s;
    gc_item *first, **last;
    bool full, has_manifest;
} gc_work;

/* ── What is ours ── */

bool sfti_ds_is_ours(const sft_storage *storage, const char *name) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file = NULL;
    sft_error ignored;
    sft_span mark;
    options.header_only = true; /* one that was cut short is ours, too */
    if (sfti_ds_open_shard(storage, name, &options, &file, &ignored)) return false;
    bool ours = sft_file_metadata_get_cstr(file, SFTI_DATASET_MARK, &mark);
    sft_close(file);
    return ours;
}

/* Names first: files are opened when the listing is over. */
static bool gc_each(void *ctx, const sft_stored *object) {
    gc_work *g = ctx;
    uint64_t file, shard;
    size_t len = strlen(object->name);
    sft_span name = { object->name, len };
    bool part = !object->folder && sfti_ds_shard_parse(name, &file, &shard);
    /* Without a manifest, which may be lost, no shard is known to be garbage. */
    if (part && !g->has_manifest) return true;
    bool garbage = part && !sfti_ds_manifest_names(&g->m, object->name);
    if (!garbage && !(object->folder && sfti_ds_is_job(name)))
        return true;
    gc_item *item = sfti_arena_take(&g->arena, sizeof *item + len + 1);
    g->full = !item;
    if (!item) return false;
    uint64_t age = object->mtime_s < 0 || g->now_s < (uint64_t)object->mtime_s
                       ? 0
                       : g->now_s - (uint64_t)object->mtime_s;
    bool kept = part && g->now_s < g->m.keep_until;
    *item = (gc_item){ NULL, object->bytes, object->folder, kept || age < g->grace_s };
    memcpy(item->name, object->name, len + 1);
    *g->last = item;
    g->last = &item->next;
    return true;
}

typedef struct gc_folder {
    uint64_t bytes;
    int64_t mtime_s; /* of the youngest file */
} gc_folder;

static bool gc_folder_each(void *ctx, const sft_stored *object) {
    gc_folder *f = ctx;
    f->bytes += object->bytes;
    if (object->mtime_s > f->mtime_s) f->mtime_s = object->mtime_s;
    return true;
}

/* A job that still writes has young files. */
static sft_code gc_look_folder(const gc_work *g, gc_item *item, sft_error *err) {
    gc_folder f = { 0, 0 };
    sft_code code = g->storage->list(g->storage->ctx, item->name, gc_folder_each, &f, err);
    item->bytes = f.bytes;
    uint64_t youngest = f.mtime_s < 0 ? 0 : (uint64_t)f.mtime_s;
    if (youngest && (g->now_s < youngest || g->now_s - youngest < g->grace_s))
        item->young = true;
    return code;
}

/* ── The result ── */

static sft_code gc_item_done(const gc_work *g, gc_item *item, bool remove, sft_error *err) {
    if (!remove || item->young) return SFT_OK;
    return g->storage->remove(g->storage->ctx, item->name, item->folder, err);
}

static sft_code gc_write_item(const gc_work *g, sfti_json_writer *w, gc_item *item, bool remove,
                              uint64_t *bytes, sft_error *err) {
    sft_code code = SFT_OK;
    if (item->folder) code = gc_look_folder(g, item, err);
    else if (!sfti_ds_is_ours(g->storage, item->name)) return SFT_OK;
    if (code == SFT_OK) code = gc_item_done(g, item, remove, err);
    if (code) return code;
    if (!item->young) *bytes += item->bytes;
    sfti_json_open(w, '{');
    sfti_ds_put_text(w, "name", sft_span_cstr(item->name));
    sfti_ds_put_uint(w, "bytes", item->bytes);
    sfti_json_key(w, "young");
    sfti_json_bool(w, item->young);
    sfti_json_key(w, "removed");
    sfti_json_bool(w, remove && !item->young);
    sfti_json_close(w, '}');
    return SFT_OK;
}

static sft_code gc_write(const gc_work *g, bool remove, const char *path, const char *command,
                         sft_sink *sink, sft_error *err) {
    sfti_json_writer w;
    uint64_t bytes = 0;
    sfti_ds_put_begin(&w, path, command, true, sink, err);
    sfti_json_key(&w, "garbage");
    sfti_json_open(&w, '[');
    for (gc_item *item = g->first; item; item = item->next) {
        sft_code code = gc_write_item(g, &w, item, remove, &bytes, err);
        if (code) return code;
    }
    sfti_json_close(&w, ']');
    sfti_ds_put_uint(&w, "bytes", bytes);
    return sfti_ds_put_end(&w);
}

/* Where a manifest is but cannot be understood nothing can be told to be garbage. */
static sft_code gc_manifest(gc_work *g, sft_error *err) {
    sft_error e = SFT_ERROR_INIT;
    sft_code code = sfti_ds_manifest_read(g->storage, &g->arena, &g->m, &e);
    g->has_manifest = code == SFT_OK;
    if (code == SFT_OK || code == SFT_MANIFEST_MISSING) return SFT_OK;
    if (err) *err = e;
    return code;
}

static sft_code gc_look(gc_work *g, sft_error *err) {
    const sft_storage *s = g->storage;
    g->first = NULL;
    g->last = &g->first;
    memset(&g->m, 0, sizeof g->m);
    sft_code code = gc_manifest(g, err);
    if (code == SFT_OK) code = s->list(s->ctx, "", gc_each, g, err);
    if (code == SFT_OK && g->full) code = sfti_fail_memory(err, sizeof(gc_item));
    return code;
}

sft_code sft_dataset_gc_json(const sft_storage *storage, uint64_t grace_s, bool remove,
                             const char *path, const char *command, sft_sink *sink,
                             sft_error *err) {
    gc_work g = { .storage = storage, .grace_s = grace_s, .now_s = os_time_s() };
    g.arena.alloc = sfti_allocator(NULL);
    sft_code code = gc_look(&g, err);
    /* No commit may move shards into place between the manifest and the listing: they can be
     * older than the grace. */
    bool lock = code == SFT_OK && g.first && remove && storage->lock;
    if (lock) code = storage->lock(storage->ctx, GC_WAIT_MS, err);
    lock = lock && code == SFT_OK;
    if (lock) code = gc_look(&g, err);
    if (code == SFT_OK) code = gc_write(&g, remove, path, command, sink, err);
    if (lock) storage->unlock(storage->ctx);
    sfti_arena_free(&g.arena);
    return code;
}
