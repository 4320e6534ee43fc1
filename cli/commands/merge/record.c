/* The header of a merge: how it was made, so that it can be made again. */
#include "commands/merge/merge.h"
#include "safetensors_hash.h"
#include "safetensors_io.h"
#include "support/models.h"
#include "support/remote.h"
#include "support/words.h"

#include <string.h>

/* ── Digests ── */

#define HASH_ALGOS \
    (SFT_HASH_BIT(SFT_HASH_SHA256) | SFT_HASH_BIT(SFT_HASH_CONTENT) | SFT_HASH_BIT(SFT_HASH_AUTOV1))

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
    in->sha256 = sft_hashes_get(hashes, SFT_HASH_SHA256);
    in->autov1 = sft_hashes_get(hashes, SFT_HASH_AUTOV1);
    in->content = sft_hashes_get(hashes, SFT_HASH_CONTENT);
    return code;
}

sft_code merge_hash(merge_run *run, bool at_end, sft_error *err) {
    cli *c = run->c;
    cli_progress progress;
    size_t who = SIZE_MAX;
    for (size_t i = 0; i < run->recipe.count; i++) {
        const merge_input *in = &run->inputs[i];
        sfti_merge_origin *o = &run->origins[i];
        *o = (sfti_merge_origin){ in->stored, in->name, NULL, NULL, NULL };
        if (!in->content || !sfti_merge_seen_again(in->seen, in->shards, &run->models[i])) continue;
        o->content = in->content;
        o->autov1 = in->autov1;
    }
    if (c->set.dry_run) return SFT_OK;
    sft_job job = cli_progress_begin(&progress, c, run->inputs[0].path);
    job.threads = run->threads;
    if (at_end && !c->set.replay
        && sfti_merge_hash_meanwhile(&run->hashing, run->models, run->origins, &run->recipe,
                                     &run->arena, &job))
        return SFT_OK;
    sft_code code = sfti_merge_hash(run->models, run->origins, &run->recipe, c->set.replay != NULL,
                                    &run->arena, &job, &who, err);
    cli_progress_end(&progress);
    if (who != SIZE_MAX) run->blame = run->inputs[who].path;
    return code;
}

/* ── The metadata ── */

static sft_code put_record(merge_run *run, size_t which, bool one_file, sft_error *err) {
    sfti_merge_record *record = &run->records[which];
    sft_code code = sfti_merge_record_make(&run->recipe, run->origins, &run->arena, record, err);
    return code ? code : cli_parts_record(run->c, &run->parts, one_file, record->pairs,
                                          SFTI_MERGE_PAIRS, err);
}

sft_code merge_record(merge_run *run, bool one_file, sft_error *err) {
    return put_record(run, 0, one_file, err);
}

sft_code merge_record_end(merge_run *run, sft_error *err) {
    cli_parts *p = &run->parts;
    if (!run->hashing.started) return SFT_OK;
    sft_code code = sfti_merge_hash_end(&run->hashing, &run->recipe, &run->changed, err);
    if (!code) code = put_record(run, 1, true, err);
    if (code) return code;
    sft_plan_options plan = cli_parts_plan(run->c, p);
    return sfti_merge_record_put(&run->records[0], &run->records[1], p->parts, p->count, NULL,
                                 p->metadata_count, &plan, p->sink, &run->arena, err);
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
    sft_span text = { NULL, 0 };
    if (!code && !sft_file_metadata_get_cstr(sft_set_shard_at(set, 0), SFTI_MERGE_KEY, &text))
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected the recipe of a merge in its header "
                         "(" SFTI_MERGE_KEY "), found none");
    char *copy = code ? NULL : sfti_arena_copy(&run->arena, text.data, text.len);
    if (!code && !copy) code = sfti_fail_memory(err, text.len);
    if (!code)
        code = sfti_merge_recipe_read((sft_span){ copy, text.len }, &run->arena, &run->recipe, err);
    run->replayed = set;
    cli_inputs_free(&inputs);
    return code;
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
            merge_input *in = &run->inputs[i];
            sft_span sha256 = run->recipe.sha256[i];
            if (!cli_is(run->recipe.content[i], found.content)) continue;
            found.exact = sha256.len == 0 ? !found.sha256
                                          : found.sha256 && cli_is(sha256, found.sha256);
            if (in->content && (in->exact || !found.exact)) continue;
            run->paths[i] = operands[k];
            in->name = run->recipe.models[i];
            in->content = found.content;
            in->autov1 = found.autov1;
            in->exact = found.exact;
            in->seen = found.seen;
            in->shards = sft_set_shard_count(set);
        }
        sft_set_close(set);
        cli_inputs_free(&inputs);
    }
    if (!code) run->blame = c->set.replay;
    for (size_t i = 0; !code && i < models; i++) {
        if (!run->inputs[i].content)
            code = sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected the model \"%.*s\" (content "
                             "digest %.*s) among the models named, found none with it",
                             SFTI_CLIP(run->recipe.models[i], 100),
                             SFTI_CLIP(run->recipe.content[i], 64));
        else if (run->recipe.sha256[i].len && !run->inputs[i].exact)
            cli_text(&c->err, "safetensors: note: a model has the same tensors and another "
                              "header: the result's header may not be the same\n");
    }
    if (code) run->recipe.count = 0; /* none is open */
    return code;
}

/* ── Of a replay: the tensors that are made beside those that the recipe is of ── */

#define AGAIN_PIECE 8192

typedef struct again_part {
    merge_run *run;
    sft_part made;
    sft_source is; /* borrowed: of the file replayed, or nothing of one on a server */
    uint64_t begin;
    sft_source source;
} again_part;

static sft_code again_unlike(merge_run *run, sft_span name, const char *what, sft_error *err) {
    run->unlike = true;
    return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, name, "expected the recipe "
                            "in the header to make the tensors of the file, found %s: one of the "
                            "two was changed", what);
}

static sft_code again_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    const again_part *a = ctx;
    unsigned char piece[AGAIN_PIECE];
    sft_code code = sft_source_read(a->made.source, a->made.begin + offset, into, len, got, err);
    for (size_t done = 0, n = 0; !code && a->is.vtable && done < *got; done += n) {
        size_t most = *got - done < sizeof piece ? *got - done : sizeof piece;
        code = sft_source_read(&a->is, a->begin + offset + done, piece, most, &n, err);
        if (!code && (n == 0 || memcmp(piece, (char *)into + done, n) != 0))
            code = again_unlike(a->run, a->made.spec.name, "other values", err);
    }
    return code;
}

static void again_expect(void *ctx, const sft_run *runs, size_t count) {
    const again_part *a = ctx;
    for (size_t i = 0; i < count; i++) {
        sft_run run = { a->made.begin + runs[i].offset, runs[i].len };
        sft_source_expect(a->made.source, &run, 1);
    }
}

static uint32_t again_mode(void *ctx) {
    const again_part *a = ctx;
    return sft_source_mode(a->made.source);
}

sft_code merge_compared(merge_run *run, sft_error *err) {
    static const sft_source_vtable again_vtable = {
        sizeof(sft_source_vtable), again_read, NULL, again_expect, again_mode
    };
    cli_parts *p = &run->parts;
    const sft_set *set = run->replayed;
    if (!set) return SFT_OK;
    size_t shards = sft_set_shard_count(set);
    again_part *list = sfti_arena_array(&p->arena, p->count, sizeof *list);
    sft_source *sources = sfti_arena_array(&p->arena, shards, sizeof *sources);
    if (!list || !sources) return sfti_fail_memory(err, p->count * sizeof *list);
    for (size_t i = 0; i < shards; i++) sources[i] = sft_file_source(sft_set_shard_at(set, i));
    run->blame = run->c->set.replay;
    if (p->count != sft_set_tensor_count(set))
        return again_unlike(run, (sft_span){ NULL, 0 }, "others", err);
    for (size_t i = 0; i < p->count; i++) {
        size_t shard = 0;
        const sft_spec *spec = &p->parts[i].spec;
        const sft_tensor *is = sft_set_find(set, spec->name, &shard);
        if (!is || is->dtype != spec->dtype || is->rank != spec->rank
            || (is->rank && memcmp(is->shape, spec->shape, is->rank * sizeof *is->shape) != 0))
            return again_unlike(run, spec->name, is ? "another shape or dtype" : "none", err);
        again_part *a = &list[i];
        *a = (again_part){ .run = run, .made = p->parts[i] };
        if (!cli_is_remote(run->c, run->c->set.replay)) a->is = sources[shard];
        a->begin = is->offset;
        a->source = (sft_source){ a, &again_vtable, cli_spec_bytes(spec), NULL, true };
        p->parts[i].source = &a->source;
        p->parts[i].begin = 0;
    }
    return SFT_OK;
}
