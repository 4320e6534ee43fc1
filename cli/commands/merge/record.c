/* The header of a merge: how it was made, so that it can be made again. */
#include "commands/merge/merge.h"
#include "os/workers.h"
#include "safetensors_hash.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/models.h"
#include "support/raw.h"
#include "support/remote.h"
#include "support/words.h"

#include <string.h>

#define MERGE_FROM "modelspec.merged_from"
#define MERGE_MODELS "sd_merge_models"
#define MERGE_RECIPE "sd_merge_recipe"

/* ── Digests ── */

#define HASH_ALGOS \
    (SFT_HASH_BIT(SFT_HASH_SHA256) | SFT_HASH_BIT(SFT_HASH_CONTENT) | SFT_HASH_BIT(SFT_HASH_AUTOV1))

/* Texts of digests that were computed; the hashes must live as long. */
static void take_hashes(merge_input *in, const sft_hashes *hashes) {
    if (in->content) return;
    in->sha256 = sft_hashes_get(hashes, SFT_HASH_SHA256);
    in->autov1 = sft_hashes_get(hashes, SFT_HASH_AUTOV1);
    in->content = sft_hashes_get(hashes, SFT_HASH_CONTENT);
}

static sft_code hash_input(merge_run *run, merge_input *in, const sft_set *set, const char *path,
                           sft_error *err) {
    cli *c = run->c;
    cli_progress progress;
    sft_hashes *hashes = sfti_arena_take(&run->arena, sizeof *hashes);
    if (!hashes) return sfti_fail_memory(err, sizeof *hashes);
    *hashes = (sft_hashes)SFT_HASHES_INIT(0);
    run->blame = path;
    sft_job job = cli_progress_begin(&progress, c, path);
    job.threads = 0;
    sft_code code = sft_hash_set(set, HASH_ALGOS, hashes, &job, err);
    cli_progress_end(&progress);
    take_hashes(in, hashes);
    return code;
}

/* Models side by side, one a thread: their digests take longer than reading them. */
typedef struct hash_all {
    sfti_workers workers;
    merge_run *run;
    size_t next;
    sft_hashes *hashes;
    sft_job job;
    size_t blame;
} hash_all;

static bool goes_on(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)done, (void)total;
    return sfti_os_stop_signal() == 0;
}

static bool hash_next(sfti_workers *workers, size_t thread, uint64_t *done, sft_error *err) {
    hash_all *all = workers->ctx;
    merge_run *run = all->run;
    sft_job quiet = SFT_JOB_INIT;
    quiet.tick = goes_on;
    sfti_workers_lock(workers);
    while (all->next < run->recipe.count && run->inputs[all->next].content) all->next++;
    size_t i = all->next;
    bool more = i < run->recipe.count && !workers->error.code;
    all->next += more;
    sfti_workers_unlock(workers);
    if (!more) return false;
    *done = 1;
    err->code = sft_hash_set(run->inputs[i].stored, HASH_ALGOS, &all->hashes[i],
                             thread == 0 ? &all->job : &quiet, err);
    if (!err->code) return true;
    sfti_workers_lock(workers);
    if (!workers->error.code) all->blame = i;
    sfti_workers_unlock(workers);
    return true;
}

sft_code merge_hash(merge_run *run, sft_error *err) {
    size_t count = run->recipe.count;
    cli_progress progress;
    hash_all all = { .run = run, .blame = SIZE_MAX };
    all.hashes = sfti_arena_array(&run->arena, count, sizeof *all.hashes);
    if (!all.hashes) return sfti_fail_memory(err, count * sizeof *all.hashes);
    for (size_t i = 0; i < count; i++) all.hashes[i] = (sft_hashes)SFT_HASHES_INIT(0);
    all.workers.step = hash_next;
    all.workers.ctx = &all;
    all.job = cli_progress_begin(&progress, run->c, run->inputs[0].path);
    all.job.threads = 0;
    size_t threads = sfti_workers_count(&all.job, SFTI_WORKERS_MOST, count);
    all.job.threads = threads > 1 ? 1 : 0; /* else the shards of a model have them */
    sft_code code = sfti_workers_run(&all.workers, threads, err);
    cli_progress_end(&progress);
    if (all.blame < count) run->blame = run->inputs[all.blame].path;
    for (size_t i = 0; !code && i < count; i++) {
        take_hashes(&run->inputs[i], &all.hashes[i]);
        if (run->c->set.replay) continue; /* as they were recorded */
        run->recipe.content[i] = sft_span_cstr(run->inputs[i].content);
        run->recipe.sha256[i] = sft_span_cstr(run->inputs[i].sha256 ? run->inputs[i].sha256 : "");
    }
    return code;
}

/* ── The metadata ── */

static sft_span metadata_of(const sft_set *set, const char *key) {
    sft_span value = { NULL, 0 };
    (void)sft_file_metadata_get(sft_set_shard_at(set, 0), sft_span_cstr(key), &value);
    return value;
}

#define ANCESTORS_MOST 256

static bool has_key(const sft_span *keys, size_t count, sft_span key) {
    size_t i = 0;
    while (i < count && !sft_span_equal(keys[i], key)) i++;
    return i < count;
}

/* As webui has them: each model by its SHA-256, with the recipe that it was made by, if it was;
 * then those that these were made of, from their headers. */
static sft_code write_models(merge_run *run, sft_error *err) {
    sft_sink sink = sft_sink_memory(&run->models_text);
    size_t direct = run->recipe.count, count = 0;
    sft_span *keys = sfti_arena_array(&run->arena, direct + ANCESTORS_MOST, sizeof *keys);
    sfti_json_writer w;
    if (!keys) return sfti_fail_memory(err, ANCESTORS_MOST * sizeof *keys);
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    for (size_t i = 0; i < direct; i++) {
        const merge_input *in = &run->inputs[i];
        sft_span recipe = metadata_of(in->stored, MERGE_RECIPE);
        if (!run->recipe.sha256[i].len || has_key(keys, count, run->recipe.sha256[i])) continue;
        keys[count++] = run->recipe.sha256[i];
        sfti_json_key_span(&w, run->recipe.sha256[i]);
        sfti_json_open(&w, '{');
        sfti_json_put_text(&w, "name", in->name);
        sfti_json_put_cstr(&w, "legacy_hash", in->autov1);
        if (recipe.data) sfti_json_key(&w, MERGE_RECIPE);
        if (recipe.data) sfti_json_text(&w, recipe);
        sfti_json_close(&w, '}');
    }
    for (size_t i = 0; i < direct; i++) {
        sft_span made = metadata_of(run->inputs[i].stored, MERGE_MODELS);
        cli_raw member;
        if (!made.data || !cli_raw_check(made) || *made.data != '{') continue;
        for (cli_raw_begin(&member, made); cli_raw_next(&member);) {
            if (count == direct + ANCESTORS_MOST || has_key(keys, count, member.key)) continue;
            keys[count++] = member.key;
            cli_raw_write(&w, member.key, member.value);
        }
    }
    sfti_json_close(&w, '}');
    return sfti_json_done(&w);
}

/* "type" first, then the recipe's own members. */
static sft_code write_recipes(merge_run *run, sft_error *err) {
    sft_span names[SFTI_MERGE_MODELS];
    sft_sink sink = sft_sink_memory(&run->record);
    sfti_json_writer w;
    for (size_t i = 0; i < run->recipe.count; i++) names[i] = run->inputs[i].name;
    sfti_json_write(&w, &sink, 0, err);
    sfti_merge_recipe_write(&run->recipe, names, &w);
    sft_code code = sfti_json_done(&w);
    if (code) return code;
    static const char type[] = "{\"type\":\"libsafetensors\",";
    bool fine = sfti_buffer_put(&run->recipe_text, type, sizeof type - 1)
             && sfti_buffer_put(&run->recipe_text, run->record.data + 1, run->record.len - 1);
    for (size_t i = 0; fine && i < run->recipe.count; i++)
        fine = (i == 0 || sfti_buffer_put(&run->names_text, ", ", 2))
            && sfti_buffer_put(&run->names_text, names[i].data, names[i].len);
    return fine ? SFT_OK : sfti_fail_memory(err, run->record.len);
}

sft_code merge_record(merge_run *run, bool one_file, sft_error *err) {
    sft_code code = write_recipes(run, err);
    if (!code) code = write_models(run, err);
    if (code) return code;
    const sft_pair pairs[] = {
        { sft_span_cstr(MERGE_FROM), { run->names_text.data, run->names_text.len } },
        { sft_span_cstr(MERGE_MODELS), { run->models_text.data, run->models_text.len } },
        { sft_span_cstr(MERGE_RECIPE), { run->recipe_text.data, run->recipe_text.len } },
        { sft_span_cstr(MERGE_KEY), { run->record.data, run->record.len } },
    };
    return cli_parts_record(run->c, &run->parts, one_file, pairs, sizeof pairs / sizeof *pairs,
                            err);
}

/* ── Again ── */

/* The recipe that the header of a result has. */
static sft_code take_recipe(merge_run *run, sft_error *err) {
    cli *c = run->c;
    cli_inputs inputs;
    const cli_input *input;
    sft_set *set = NULL;
    memset(&inputs, 0, sizeof inputs);
    run->blame = c->set.replay;
    sft_code code = cli_open_operand(c, c->set.replay, &inputs, &input, &set, err);
    sft_span text = code ? (sft_span){ NULL, 0 } : metadata_of(set, MERGE_KEY);
    if (!code && !text.data)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected the recipe of a merge in its header "
                         "(" MERGE_KEY "), found none");
    char *copy = code ? NULL : sfti_arena_copy(&run->arena, text.data, text.len);
    if (!code && !copy) code = sfti_fail_memory(err, text.len);
    if (!code)
        code = sfti_merge_recipe_read((sft_span){ copy, text.len }, &run->arena, &run->recipe, err);
    sft_set_close(set);
    cli_inputs_free(&inputs);
    return code;
}

static sft_code lacks_input(const merge_run *run, size_t i, sft_error *err) {
    sft_span name = run->recipe.models[i], content = run->recipe.content[i];
    return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected the model \"%.*s\" (content digest %.*s) "
                     "among the models named, found none with it", SFTI_CLIP(name, 100),
                     SFTI_CLIP(content, 64));
}

sft_code merge_replay(merge_run *run, char **operands, size_t count, sft_error *err) {
    cli *c = run->c;
    if (c->set.seed || c->set.dtype || c->set.ignore_missing)
        return cli_usage_error(err, "expected --replay without --seed, --dtype and "
                               "--ignore-missing, which its recipe tells, found them");
    sft_code code = take_recipe(run, err);
    size_t models = code ? 0 : run->recipe.count;
    for (size_t k = 0; !code && k < count; k++) {
        cli_inputs inputs;
        const cli_input *input;
        sft_set *set = NULL;
        merge_input found = { .path = operands[k] };
        memset(&inputs, 0, sizeof inputs);
        run->blame = operands[k];
        code = cli_open_operand(c, operands[k], &inputs, &input, &set, err);
        if (!code) code = hash_input(run, &found, set, operands[k], err);
        for (size_t i = 0; !code && i < models; i++) {
            sft_span content = run->recipe.content[i];
            if (run->inputs[i].content || !cli_is(content, found.content)) continue;
            run->paths[i] = operands[k];
            run->inputs[i].name = run->recipe.models[i];
            run->inputs[i].content = found.content;
            run->inputs[i].autov1 = found.autov1;
            if (run->recipe.sha256[i].len && !cli_is(run->recipe.sha256[i], found.sha256))
                cli_text(&c->err, "safetensors: note: a model has the same tensors and another "
                                  "header: the result's header may not be the same\n");
        }
        sft_set_close(set);
        cli_inputs_free(&inputs);
    }
    run->blame = c->set.replay;
    for (size_t i = 0; !code && i < models; i++)
        if (!run->inputs[i].content) code = lacks_input(run, i, err);
    if (code) run->recipe.count = 0; /* none is open */
    return code;
}
