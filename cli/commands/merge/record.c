/* The header of a merge: how it was made, so that it can be made again. */
#include "commands/merge/merge.h"
#include "os/workers.h"
#include "safetensors_hash.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/models.h"
#include "support/remote.h"
#include "support/words.h"

#include <string.h>

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

/* A replay's models were hashed to be found, and opened again by their paths since. */
static sft_code check_replayed(merge_run *run, sft_error *err) {
    for (size_t i = 0; i < run->recipe.count; i++) {
        run->blame = run->inputs[i].path;
        if (!cli_is(run->recipe.content[i], run->inputs[i].content))
            return sfti_fail(err, SFT_IO_READ, "expected models that stay as they are while they "
                             "are merged, found another one in place of this one: nothing was "
                             "written");
    }
    return SFT_OK;
}

sft_code merge_hash(merge_run *run, sft_error *err) {
    size_t count = run->recipe.count;
    cli_progress progress;
    for (size_t i = 0; run->c->set.replay && i < count; i++)
        if (!sfti_merge_seen_again(run->inputs[i].seen, run->inputs[i].shards, &run->models[i]))
            run->inputs[i].content = NULL;
    hash_all all = { .run = run, .blame = SIZE_MAX };
    sft_job quiet = SFT_JOB_INIT;
    quiet.tick = goes_on;
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
    for (size_t i = 0; !code && i < count; i++) {
        run->blame = run->inputs[i].path;
        if (!run->c->set.replay) run->recipe.values[i] = (sft_span){ "", 0 };
        code = sfti_merge_values_hash(&run->models[i], &run->arena, &quiet, &run->recipe.values[i],
                                      err);
    }
    return !code && run->c->set.replay ? check_replayed(run, err) : code;
}

/* ── The metadata ── */

static sft_span metadata_of(const sft_set *set, const char *key) {
    sft_span value = { NULL, 0 };
    (void)sft_file_metadata_get(sft_set_shard_at(set, 0), sft_span_cstr(key), &value);
    return value;
}

sft_code merge_record(merge_run *run, bool one_file, sft_error *err) {
    sfti_merge_origin origins[SFTI_MERGE_MODELS];
    for (size_t i = 0; i < run->recipe.count; i++)
        origins[i] = (sfti_merge_origin){ run->inputs[i].stored, run->inputs[i].name,
                                          run->inputs[i].autov1 };
    sft_code code = sfti_merge_record_make(&run->recipe, origins, &run->arena, &run->record, err);
    return code ? code : cli_parts_record(run->c, &run->parts, one_file, run->record.pairs,
                                          SFTI_MERGE_PAIRS, err);
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
    sft_span text = code ? (sft_span){ NULL, 0 } : metadata_of(set, SFTI_MERGE_KEY);
    if (!code && !text.data)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected the recipe of a merge in its header "
                         "(" SFTI_MERGE_KEY "), found none");
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
        if (!code && !(found.seen = sfti_merge_look(set, &run->arena)))
            code = sfti_fail_memory(err, sizeof found);
        if (!code) code = hash_input(run, &found, set, operands[k], err);
        for (size_t i = 0; !code && i < models; i++) {
            sft_span content = run->recipe.content[i];
            if (run->inputs[i].content || !cli_is(content, found.content)) continue;
            run->paths[i] = operands[k];
            run->inputs[i].name = run->recipe.models[i];
            run->inputs[i].content = found.content;
            run->inputs[i].autov1 = found.autov1;
            run->inputs[i].seen = found.seen;
            run->inputs[i].shards = sft_set_shard_count(set);
            if (run->recipe.sha256[i].len && !cli_is(run->recipe.sha256[i], found.sha256))
                cli_text(&c->err, "safetensors: note: a model has the same tensors and another "
                                  "header: the result's header may not be the same\n");
        }
        sft_set_close(set);
        cli_inputs_free(&inputs);
    }
    if (!code) run->blame = c->set.replay;
    for (size_t i = 0; !code && i < models; i++)
        if (!run->inputs[i].content) code = lacks_input(run, i, err);
    if (code) run->recipe.count = 0; /* none is open */
    return code;
}
