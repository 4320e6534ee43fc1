/* check of a file, and of a model with an index: each shard, then how they fit. */
#include "tools.h"

#include <stdlib.h>
#include <string.h>

typedef struct checking {
    const char *path;
    sft_open_options open;
    bool deep;
    const sft_job *job;
    bool ok;
    sft_error first;   /* the first failure of a model with an index */
    sft_buffer shards; /* their results, with commas */
} checking;

/* What a file says about itself (1xx, 2xx) is an answer; anything else means there is none. */
static bool is_answer(sft_code code) {
    return code >= 100 && code < 300;
}

static sft_code look_deep(const checking *check, sft_deep_counts *deep, sft_error *err) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_set *set = NULL;
    options.open = &check->open;
    sft_code code = sft_set_open(check->path, &options, &set, err);
    if (code == SFT_OK) code = sft_set_check_deep(set, deep, check->job, err);
    sft_set_close(set);
    return code;
}

/* ── A model with an index ── */

static void keep_first(checking *check, const sft_error *err) {
    if (check->ok) check->first = *err;
    check->ok = false;
}

/* Text into a buffer that goes on: memory sinks begin anew. */
static sft_code append_text(sft_buffer *all, const char *text, size_t len, sft_error *err) {
    if (all->cap - all->len < len) {
        size_t cap = 2 * all->cap + len + 4096;
        char *data = realloc(all->data, cap);
        if (!data) return sft_error_set(err, SFT_OUT_OF_MEMORY, 0, "out of memory");
        all->data = data;
        all->cap = cap;
    }
    memcpy(all->data + all->len, text, len);
    all->len += len;
    return SFT_OK;
}

static sft_code append_shard(checking *check, const sft_buffer *text, sft_error *err) {
    sft_code code = check->shards.len > 0 ? append_text(&check->shards, ",", 1, err) : SFT_OK;
    return code ? code : append_text(&check->shards, text->data, text->len, err);
}

/* A shard that is not there, or cannot be read, is part of the answer. */
static sft_code check_shard(checking *check, const char *path, sft_error *err) {
    sft_buffer text = { NULL, 0, 0, { NULL, NULL } };
    sft_sink sink = sft_sink_memory(&text);
    sft_error failed = SFT_ERROR_INIT;
    sft_scan *scan = NULL;
    sft_code code;
    if (sft_scan_open(path, &check->open, &scan, &failed) == SFT_OK) {
        if (sft_scan_error(scan)) keep_first(check, sft_scan_error(scan));
        code = sft_scan_json(scan, path, NULL, &sink, err);
        sft_scan_close(scan);
    } else {
        if (failed.code == SFT_NOT_FOUND)
            sft_error_set(&failed, SFT_INDEX_SHARD_MISSING, 0,
                          "expected this shard of the index, found no such file");
        keep_first(check, &failed);
        code = sft_error_json(&failed, path, &sink, err);
    }
    if (code == SFT_OK) code = append_shard(check, &text, err);
    sft_buffer_free(&text);
    return code;
}

/* The index's folder and a shard's name; NULL when out of memory. */
static char *shard_path(const char *folder, const char *name) {
    size_t before = strlen(folder), len = strlen(name);
    char *path = malloc(before + len + 1);
    if (!path) return NULL;
    memcpy(path, folder, before);
    memcpy(path + before, name, len + 1);
    return path;
}

static sft_code check_shards(checking *check, const sft_index *names, sft_error *err) {
    sft_code code = SFT_OK;
    check->open.beneath = sft_index_folder(names);
    for (size_t i = 0; code == SFT_OK && i < sft_index_shard_count(names); i++) {
        char *path = shard_path(check->open.beneath, sft_index_shard_at(names, i));
        code = path ? check_shard(check, path, err)
                    : sft_error_set(err, SFT_OUT_OF_MEMORY, 0, "out of memory");
        free(path);
    }
    check->open.beneath = NULL;
    return code;
}

/* The shards are sound: is the index, and what are the values? */
static sft_code check_fit(checking *check, sft_deep_counts *deep, sft_error *err) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_error failed = SFT_ERROR_INIT;
    sft_set *set = NULL;
    options.open = &check->open;
    if (sft_set_open(check->path, &options, &set, &failed)) {
        keep_first(check, &failed);
        return SFT_OK;
    }
    sft_code code = check->deep ? sft_set_check_deep(set, deep, check->job, err) : SFT_OK;
    sft_set_close(set);
    return code;
}

static sft_code check_parts(checking *check, sft_deep_counts *deep, sft_error *err) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_error failed = SFT_ERROR_INIT;
    sft_index *names = NULL;
    options.open = &check->open;
    if (sft_index_open(check->path, &options, &names, &failed)) {
        keep_first(check, &failed);
        if (is_answer(failed.code)) return SFT_OK;
        *err = failed;
        return failed.code;
    }
    sft_code code = check_shards(check, names, err);
    if (code == SFT_OK && check->ok) code = check_fit(check, deep, err);
    sft_index_close(names);
    return code;
}

static sft_code check_index(checking *check, sft_sink *sink, sft_error *err) {
    sft_deep_counts deep;
    sft_code code = check_parts(check, &deep, err);
    bool looked = check->ok && check->deep;
    if (code == SFT_OK)
        code = sft_set_check_json(check->ok ? NULL : &check->first, check->open.level,
                                  (sft_span){ check->shards.data, check->shards.len },
                                  check->path, looked ? &deep : NULL, sink, err);
    free(check->shards.data);
    return code;
}

/* ── A file ── */

static sft_code check_scan(checking *check, const sft_scan *scan, sft_sink *sink,
                           sft_error *err) {
    sft_deep_counts deep;
    bool look = check->deep && !sft_scan_error(scan);
    sft_code code = look ? look_deep(check, &deep, err) : SFT_OK;
    if (code) return code;
    return sft_scan_json(scan, check->path, look ? &deep : NULL, sink, err);
}

sft_code pysft_check(const char *path, sft_level level, bool deep, const sft_job *job,
                     sft_buffer *text, sft_error *err) {
    checking check = { .path = path, .open = SFT_OPEN_OPTIONS_INIT, .deep = deep, .job = job,
                       .ok = true, .first = SFT_ERROR_INIT };
    sft_scan *scan = NULL;
    memset(text, 0, sizeof *text);
    sft_sink sink = sft_sink_memory(text);
    check.open.level = level;
    if (sft_path_is_index(path)) return check_index(&check, &sink, err);
    sft_code code = sft_scan_open(path, &check.open, &scan, err);
    if (code) return code;
    const sft_error *found = sft_scan_error(scan);
    if (found && found->code == SFT_FOUND_INDEX) code = check_index(&check, &sink, err);
    else code = check_scan(&check, scan, &sink, err);
    sft_scan_close(scan);
    return code;
}
