/* Checks a file, or a model with an index: each shard, then how they fit together.
 * Tests: test_tools.py. */
#include "tools.h"
#include "safetensors_index.h"
#include "safetensors_report.h"
#include "safetensors_scan.h"

#include <stdlib.h>
#include <string.h>

typedef struct check_call {
    const char *path;
    sft_open_options open;
    sft_source *again; /* instead of the path: to read the values from, if deep */
    bool deep;
    const sft_job *job;
    bool ok;
    sft_error first;   /* the first failure of a model with an index */
    sft_buffer shards; /* their JSON results, separated by commas */
    sft_sink out;      /* to which they are appended */
} check_call;

/* The set, to be closed in every case. */
static sft_code open_set(const check_call *check, sft_set **set, sft_error *err) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_file *file = NULL;
    *set = NULL;
    options.open = &check->open;
    if (!check->again) return sft_set_open(check->path, &options, set, err);
    sft_code code = sft_open_source(*check->again, &check->open, &file, err);
    *check->again = sft_source_memory(NULL, 0);
    return code ? code : sft_set_from_file(file, NULL, set, err);
}

/* ── A model with an index ── */

static void keep_first(check_call *check, const sft_error *err) {
    if (check->ok) check->first = *err;
    check->ok = false;
}

/* A missing or unreadable shard is part of the result. */
static sft_code check_shard(check_call *check, const char *path, sft_error *err) {
    sft_buffer text = { NULL, 0, 0, { NULL, NULL } };
    pysft_text_sink sink;
    sft_error failed = SFT_ERROR_INIT;
    sft_scan *scan = NULL;
    sft_code code;
    pysft_text_sink_begin(&sink, &text);
    if (!sft_scan_open(path, &check->open, &scan, &failed)) {
        if (sft_scan_error(scan)) keep_first(check, sft_scan_error(scan));
        code = sft_scan_json(scan, path, NULL, &sink.sink, err);
        sft_scan_close(scan);
    } else {
        if (failed.code == SFT_NOT_FOUND)
            sft_error_set(&failed, SFT_INDEX_SHARD_MISSING, 0,
                          "expected this shard of the index, found no such file");
        keep_first(check, &failed);
        code = sft_error_json(&failed, path, &sink.sink, err);
    }
    if (!code && check->shards.len > 0)
        code = sft_sink_write(&check->out, check->shards.len, ",", 1, err);
    if (!code) code = sft_sink_write(&check->out, check->shards.len, text.data, text.len, err);
    sft_buffer_free(&text);
    return code;
}

static sft_code check_shards(check_call *check, const sft_index *names, sft_error *err) {
    sft_code code = SFT_OK;
    check->open.beneath = sft_index_folder(names);
    for (size_t i = 0; !code && i < sft_index_shard_count(names); i++) {
        const char *name = sft_index_shard_at(names, i);
        const size_t before = strlen(check->open.beneath), len = strlen(name);
        char *path = malloc(before + len + 1);
        if (path) memcpy(path, check->open.beneath, before);
        if (path) memcpy(path + before, name, len + 1);
        code = path ? check_shard(check, path, err)
                    : sft_error_set(err, SFT_OUT_OF_MEMORY, 0, "out of memory");
        free(path);
    }
    check->open.beneath = NULL;
    return code;
}

/* Every shard is valid: checks the index against them and, with deep, the values. */
static sft_code check_fit(check_call *check, sft_deep_counts *deep, sft_error *err) {
    sft_error failed = SFT_ERROR_INIT;
    sft_set *set;
    if (open_set(check, &set, &failed)) {
        keep_first(check, &failed);
        return SFT_OK;
    }
    sft_code code = check->deep ? sft_set_check_deep(set, deep, check->job, err) : SFT_OK;
    sft_set_close(set);
    return code;
}

static sft_code check_parts(check_call *check, sft_deep_counts *deep, sft_error *err) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_error failed = SFT_ERROR_INIT;
    sft_index *names = NULL;
    options.open = &check->open;
    if (sft_index_open(check->path, &options, &names, &failed)) {
        keep_first(check, &failed);
        /* Codes 1xx and 2xx are findings about the file; with any other the check failed. */
        if (failed.code >= 100 && failed.code < 300) return SFT_OK;
        *err = failed;
        return failed.code;
    }
    sft_code code = check_shards(check, names, err);
    if (!code && check->ok) code = check_fit(check, deep, err);
    sft_index_close(names);
    return code;
}

static sft_code check_index(check_call *check, sft_sink *sink, sft_error *err) {
    sft_deep_counts deep;
    check->out = sft_sink_memory(&check->shards);
    sft_code code = check_parts(check, &deep, err);
    bool did_deep = check->ok && check->deep;
    if (!code)
        code = sft_set_check_json(check->ok ? NULL : &check->first, check->open.level,
                                  (sft_span){ check->shards.data, check->shards.len },
                                  check->path, did_deep ? &deep : NULL, sink, err);
    sft_buffer_free(&check->shards);
    return code;
}

/* ── A file ── */

static sft_code check_scan(check_call *check, const sft_scan *scan, sft_sink *sink,
                           sft_error *err) {
    sft_deep_counts deep;
    bool do_deep = check->deep && !sft_scan_error(scan);
    if (do_deep) {
        sft_set *set;
        sft_code code = open_set(check, &set, err);
        if (!code) code = sft_set_check_deep(set, &deep, check->job, err);
        sft_set_close(set);
        if (code) return code;
    }
    return sft_scan_json(scan, check->path, do_deep ? &deep : NULL, sink, err);
}

sft_code pysft_check(pysft_readable *what, sft_level level, bool deep, pysft_job *job) {
    check_call check = { .path = what->path.text, .open = pysft_opening, .deep = deep,
                         .again = what->is_object ? &what->again : NULL, .job = &job->job,
                         .ok = true, .first = SFT_ERROR_INIT };
    sft_scan *scan = NULL;
    sft_code code;
    check.open.level = level;
    check.open.files = pysft_remote_files(what->path.remote);
    if (what->is_object) {
        check.open.mode = SFT_READ;
        code = sft_scan_open_source(what->first, &check.open, &scan, &job->err);
        if (!code) code = check_scan(&check, scan, &job->out, &job->err);
        sft_source_close(&what->again);
    } else if (sft_path_is_index(check.path)) {
        code = check_index(&check, &job->out, &job->err);
    } else {
        code = sft_scan_open(check.path, &check.open, &scan, &job->err);
        const sft_error *found = code ? NULL : sft_scan_error(scan);
        if (found && found->code == SFT_FOUND_INDEX)
            code = check_index(&check, &job->out, &job->err);
        else if (!code) code = check_scan(&check, scan, &job->out, &job->err);
    }
    sft_scan_close(scan);
    return code;
}
