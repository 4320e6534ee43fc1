/* Models with an index: each shard, then how they fit together. */
#include "base/mem.h"
#include "commands/check/check.h"
#include "support/cli.h"
#include "support/files.h"

#include <string.h>

/* The verdict on a model with an index, as it grows. */
typedef struct verdict {
    cli *c;
    const char *path;
    bool ok;
    sft_error err;     /* the first failure */
    sft_buffer shards; /* JSON results of the shards, with commas */
    bool lost;         /* memory ran out for them */
    const sft_deep_counts *deep;
} verdict;

/* What a file says about itself (1xx, 2xx) is an answer; anything else means there is
 * none. */
static bool is_answer(sft_code code) {
    return code >= 100 && code < 300;
}

static void keep_first(verdict *v, const sft_error *err) {
    if (v->ok) v->err = *err;
    v->ok = false;
    cli_status(v->c, is_answer(err->code) ? CLI_NO : CLI_FAILED);
}

static void tell(verdict *v, const char *path, const sft_error *err) {
    keep_first(v, err);
    if (!is_answer(err->code)) {
        cli_complain(v->c, path, err);
    } else if (!cli_is_json(v->c)) {
        sft_error shown = *err;
        if (v->c->set.explain) shown.hint = SFT_HINT_NONE; /* it comes with the rule */
        cli_verdict_line(v->c, path, &shown);
        if (v->c->set.explain) cli_explain_rule(v->c, err);
    }
}

/* ── Shards ── */

static sft_code append_at(void *ctx, uint64_t offset, const void *bytes, size_t len,
                          sft_error *err) {
    (void)offset;
    if (sfti_buffer_put(ctx, bytes, len)) return SFT_OK;
    return sfti_fail_memory(err, len);
}

static const sft_sink_vtable append_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, append_at, NULL, NULL, NULL
};

static void shard_json(verdict *v, const char *path, const sft_scan *scan,
                       const sft_error *failed) {
    sft_sink sink = { &v->shards, &append_sink_vtable, false };
    sft_error err = SFT_ERROR_INIT;
    if (v->shards.len && !sfti_buffer_put(&v->shards, ",", 1)) v->lost = true;
    sft_code code = scan ? sft_scan_json(scan, path, NULL, &sink, &err)
                         : sft_error_json(failed, path, &sink, &err);
    if (code) v->lost = true;
}

static void judge_shard(verdict *v, const char *folder, const char *path) {
    sft_open_options options = v->c->open;
    sft_error err = SFT_ERROR_INIT;
    sft_scan *scan = NULL;
    options.beneath = folder;
    if (!sft_scan_open(path, &options, &scan, &err)) {
        const sft_error *found = sft_scan_error(scan);
        if (found) keep_first(v, found);
        if (cli_is_json(v->c)) shard_json(v, path, scan, NULL);
        else if (v->c->set.explain) cli_explain(v->c, path, scan);
        else if (found) cli_verdict_line(v->c, path, found);
        sft_scan_close(scan);
        return;
    }
    if (err.code == SFT_NOT_FOUND)
        sfti_fail(&err, SFT_INDEX_SHARD_MISSING,
                  "expected this shard of the index, found no such file");
    if (cli_is_json(v->c)) shard_json(v, path, NULL, &err);
    tell(v, path, &err);
}

static void judge_shards(verdict *v, const sft_index *names) {
    sft_error err = SFT_ERROR_INIT;
    sfti_arena arena = { .alloc = v->c->alloc };
    const char *folder = sft_index_folder(names);
    for (size_t i = 0; i < sft_index_shard_count(names) && !cli_is_over(v->c); i++) {
        char *path = cli_join_path(&arena, sft_span_cstr(folder), sft_index_shard_at(names, i));
        if (path) {
            judge_shard(v, folder, path);
        } else {
            sfti_fail_memory(&err, strlen(folder));
            tell(v, v->path, &err);
        }
    }
    sfti_arena_free(&arena);
}

/* ── Values ── */

sft_code cli_check_values(cli *c, const char *path, const sft_set *set, sft_deep_counts *deep,
                          sft_error *err) {
    cli_progress progress;
    sft_job job = cli_progress_begin(&progress, c, path);
    sft_code code = sft_set_check_deep(set, deep, &job, err);
    cli_progress_end(&progress);
    if (!code && (deep->nan || deep->inf)) cli_status(c, CLI_NO);
    return code;
}

/* ── The whole ── */

void cli_check_set(cli *c, const cli_input *input) {
    verdict v = { .c = c, .path = input->path, .ok = true, .shards = { .alloc = c->alloc } };
    sft_set_options options = cli_set_options(c);
    sft_error err = SFT_ERROR_INIT;
    sft_index *names = NULL;
    sft_set *set = NULL;
    sft_deep_counts deep;
    if (sft_index_open(input->path, &options, &names, &err)) {
        tell(&v, input->path, &err);
    } else {
        judge_shards(&v, names);
        if (v.ok && !cli_is_over(c)) {
            /* the shards are sound: is the index, and what are the values? */
            sft_code code = cli_open_model(c, input, &set, &err);
            if (!code && c->set.deep) code = cli_check_values(c, v.path, set, &deep, &err);
            if (!code && c->set.deep) v.deep = &deep;
            if (code) tell(&v, v.path, &err);
        }
    }
    sft_span shards = { v.shards.data, v.shards.len };
    if (cli_is_json(c) && v.lost) {
        sfti_fail_memory(&err, shards.len);
        cli_fail_input(c, v.path, &err);
    } else if (cli_is_json(c)) {
        sft_sink sink = cli_result_begin(c);
        sft_code code = sft_set_check_json(v.ok ? NULL : &v.err, (sft_level)c->set.level, shards,
                                           v.path, v.deep, &sink, &err);
        cli_result_end(c, v.path, code, &err);
    }
    if (!cli_is_json(c) && v.ok && c->set.explain) {
        cli_styled(&c->out, CLI_BOLD, v.path);
        cli_text(&c->out, ": index and shards are consistent\n");
    }
    if (!cli_is_json(c) && v.deep) cli_deep_line(c, v.path, set, &deep, c->set.explain != 0);
    sft_set_close(set);
    sft_index_close(names);
    sft_buffer_free(&v.shards);
}
