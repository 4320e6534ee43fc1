/* lora merge. */
#include "base/json.h"
#include "commands/lora/lora.h"
#include "keys/digest_keys.h"
#include "safetensors_hash.h"
#include "support/hints.h"
#include "support/files.h"
#include "support/output.h"
#include "support/parts.h"
#include "support/remote.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

#define NAMED_MOST 10
#define RECIPE_KEY "sft_lora_merge"
#define MERGED_KEY "modelspec.merged_from"

typedef struct merge_run {
    cli *c;
    cli_parts parts;
    const char *model; /* path */
    lora_adapter *adapters;
    size_t count;
    sfti_patched_input *inputs;
    sfti_patched *patched;
    const char *blame; /* path that an error is about */
    sft_buffer recipe, merged_from;
} merge_run;

/* ── What is not matched ── */

static size_t unmatched_count(const lora_adapter *adapter) {
    return adapter->lora.count - adapter->map.matched + adapter->lora.unread_count;
}

/* Names of modules, then of tensors; i counts both. */
static sft_span unmatched_name(const lora_adapter *adapter, size_t i) {
    for (size_t k = 0; k < adapter->lora.count; k++)
        if (!adapter->lora.modules[k].targets && i-- == 0) return adapter->lora.modules[k].name;
    return sft_set_tensor_at(adapter->set, adapter->lora.unread[i])->name;
}

static void name_unmatched(cli *c, const lora_adapter *adapter) {
    size_t count = unmatched_count(adapter), most = c->set.verbose ? count : NAMED_MOST;
    cli_flush(&c->out);
    for (size_t i = 0; i < count && i < most; i++) {
        cli_text(&c->err, "safetensors: ");
        cli_path(&c->err, adapter->path, ": not in the model: ");
        cli_quoted(&c->err, unmatched_name(adapter, i));
        cli_text(&c->err, "\n");
    }
    if (count > most) {
        cli_text(&c->err, "safetensors: ");
        cli_path(&c->err, adapter->path, ": and %zu more\n", count - most);
    }
    cli_flush(&c->err);
}

static sft_code check_matched(merge_run *run, const lora_adapter *adapter, sft_error *err) {
    const cli *c = run->c;
    size_t count = unmatched_count(adapter);
    run->blame = adapter->path;
    if (adapter->map.matched == 0)
        return sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected modules of this model's layers, found none among %zu",
                         adapter->lora.count);
    if (count == 0) return SFT_OK;
    name_unmatched(run->c, adapter);
    if (c->set.ignore_unmatched) return SFT_OK;
    return sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                     "expected tensors of the model for every module, found none for %zu of its "
                     "modules and tensors; --ignore-unmatched leaves them out", count);
}

/* PEFT keeps alpha out of the file. */
static void warn_of_alpha(merge_run *run, const lora_adapter *adapter) {
    size_t count = 0;
    for (size_t i = 0; i < adapter->lora.count; i++) {
        const sfti_lora_module *m = &adapter->lora.modules[i];
        count += m->rank > 0 && !m->has_alpha && m->name.len > 11
              && memcmp(m->name.data, "base_model.", 11) == 0;
    }
    if (count == 0) return;
    cli_flush(&run->c->out);
    cli_text(&run->c->err, "safetensors: ");
    cli_path(&run->c->err, adapter->path,
             ": warning: no adapter_config.json of PEFT says what alpha is: taken as the rank\n");
    cli_flush(&run->c->err);
}

/* ── Another base ── */

static void warn_of_base(merge_run *run, const lora_adapter *adapter) {
    cli *c = run->c;
    sft_info_options how = SFT_INFO_OPTIONS_INIT;
    sft_info *model = NULL, *other = NULL;
    char reason[512];
    how.alloc = &c->alloc;
    how.records = c->records;
    how.header_only = true;
    bool both = !sft_info_open(run->parts.sets[0], NULL, NULL, &how, &model, NULL)
             && !sft_info_open(adapter->set, NULL, NULL, &how, &other, NULL);
    if (both && sft_info_fits(model, other, reason, sizeof reason) == SFT_FIT_NO) {
        cli_flush(&c->out);
        cli_text(&c->err, "safetensors: ");
        cli_path(&c->err, adapter->path, ": warning: made for another model: ");
        cli_escaped(&c->err, sft_span_cstr(reason));
        cli_text(&c->err, "\n");
        cli_flush(&c->err);
    }
    sft_info_close(other);
    sft_info_close(model);
}

/* ── The recipe ── */

static sft_span pair_named(const cli_parts *parts, const char *key) {
    for (size_t i = 0; i < parts->metadata_count; i++) {
        sft_pair pair = cli_parts_pair(parts, i);
        if (cli_is(pair.key, key)) return pair.value;
    }
    return (sft_span){ NULL, 0 };
}

static sft_code write_recipe(merge_run *run, sft_error *err) {
    sft_sink sink = sft_sink_memory(&run->recipe);
    sft_span before = pair_named(&run->parts, RECIPE_KEY);
    sfti_json_writer w;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    sfti_json_put_open(&w, "model", '{');
    sfti_json_put_text(&w, "name", cli_name_of(run->model));
    sfti_json_put_text(&w, "recorded_sha256", pair_named(&run->parts, "modelspec.hash_sha256"));
    sfti_json_put_text(&w, "recorded_sshs", pair_named(&run->parts, "sshs_model_hash"));
    sfti_json_close(&w, '}');
    sfti_json_put_open(&w, "adapters", '[');
    for (size_t i = 0; i < run->count; i++) {
        const lora_adapter *adapter = &run->adapters[i];
        uint32_t algos = UINT32_C(1) << SFT_HASH_SHA256 | UINT32_C(1) << SFT_HASH_CONTENT;
        sft_hashes hashes = SFT_HASHES_INIT(0);
        run->blame = adapter->path;
        if (!run->c->set.dry_run) {
            sft_code code = sft_hash_set(adapter->set, algos, &hashes, NULL, err);
            if (code) return code;
        }
        sfti_json_open(&w, '{');
        sfti_json_put_text(&w, "name", cli_name_of(adapter->path));
        sfti_json_put_double(&w, "strength", adapter->strength);
        sfti_json_put_cstr(&w, "sha256", sft_hashes_get(&hashes, SFT_HASH_SHA256));
        sfti_json_put_cstr(&w, "content", sft_hashes_get(&hashes, SFT_HASH_CONTENT));
        sfti_json_close(&w, '}');
    }
    sfti_json_close(&w, ']');
    sfti_json_put_cstr(&w, "dora", run->c->set.dora == SFTI_DORA_COMFY ? "comfy" : "exact");
    if (before.data) {
        sfti_json_key(&w, "before");
        sfti_json_text(&w, before);
    }
    sfti_json_close(&w, '}');
    return sfti_json_done(&w);
}

static bool write_names(merge_run *run) {
    sft_span name = cli_name_of(run->model);
    bool fine = sfti_buffer_put(&run->merged_from, name.data, name.len);
    for (size_t i = 0; i < run->count && fine; i++) {
        name = cli_name_of(run->adapters[i].path);
        fine = sfti_buffer_put(&run->merged_from, ", ", 2)
            && sfti_buffer_put(&run->merged_from, name.data, name.len);
    }
    return fine;
}

/* All pairs of the model but digests of its data, and the recipe. */
static sft_code put_recipe(merge_run *run, bool one_file, sft_error *err) {
    cli_parts *p = &run->parts;
    size_t count = 0;
    sft_code code = write_recipe(run, err);
    if (!code && !write_names(run)) code = sfti_fail_memory(err, run->merged_from.len);
    p->changed = true;
    if (!code) code = cli_parts_drop_digests(run->c, p, one_file, err);
    sft_pair *pairs = sfti_arena_array(&p->arena, (uint64_t)p->metadata_count + 2, sizeof *pairs);
    if (!code && !pairs) return sfti_fail_memory(err, p->metadata_count * sizeof *pairs);
    if (code) return code;
    for (size_t i = 0; i < p->metadata_count; i++) {
        sft_pair pair = cli_parts_pair(p, i);
        if (!cli_is(pair.key, RECIPE_KEY) && !cli_is(pair.key, MERGED_KEY)) pairs[count++] = pair;
    }
    pairs[count++] = (sft_pair){ sft_span_cstr(MERGED_KEY),
                                 { run->merged_from.data, run->merged_from.len } };
    pairs[count++] = (sft_pair){ sft_span_cstr(RECIPE_KEY),
                                 { run->recipe.data, run->recipe.len } };
    p->pairs = pairs;
    p->metadata_count = count;
    p->has_metadata = true;
    return SFT_OK;
}

/* ── Results ── */

static void put_merged(void *ctx, sfti_json_writer *w) {
    const merge_run *run = ctx;
    sfti_json_put_uint(w, "changed", sfti_patched_count(run->patched));
    sfti_json_put_open(w, "adapters", '[');
    for (size_t i = 0; i < run->count; i++) {
        const lora_adapter *adapter = &run->adapters[i];
        sfti_json_open(w, '{');
        sfti_json_path(w, adapter->path);
        sfti_json_put_double(w, "strength", adapter->strength);
        sfti_json_put_uint(w, "modules", adapter->lora.count);
        sfti_json_put_uint(w, "matched", adapter->map.matched);
        sfti_json_put_open(w, "unmatched", '[');
        for (size_t k = 0; k < unmatched_count(adapter) && k < NAMED_MOST; k++)
            sfti_json_span(w, unmatched_name(adapter, k));
        sfti_json_close(w, ']');
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void say_merged(merge_run *run) {
    cli *c = run->c;
    if (cli_is_json(c)) return;
    for (size_t i = 0; i < run->count; i++) {
        const lora_adapter *adapter = &run->adapters[i];
        cli_path(&c->out, adapter->path, ": strength %g, %zu of %zu module%s\n", adapter->strength,
                 adapter->map.matched, adapter->lora.count,
                 adapter->lora.count == 1 ? "" : "s");
    }
    size_t changed = sfti_patched_count(run->patched);
    cli_printf(&c->out, "%zu tensor%s changed\n", changed, changed == 1 ? "" : "s");
}

/* ── Writing ── */

static sft_code write_file(merge_run *run, sft_error *err) {
    cli *c = run->c;
    cli_output out;
    sft_code code = cli_output_begin(&out, c, run->model, CLI_TARGET_NEW, err);
    run->blame = code ? out.blame : run->model;
    if (!code) code = cli_output_sources(c, &run->parts, &out, err);
    if (!code) code = put_recipe(run, true, err);
    if (!code) run->blame = out.path;
    if (!code) code = cli_output_parts(&out, c, &run->parts, err);
    if (code) return code;
    cli_written written = CLI_WRITTEN_INIT;
    const cli_parts *p = &run->parts;
    cli_written_file file = cli_written_parts(out.path, p->parts, p->count, NULL, 0);
    written.input = run->model;
    written.output = out.path;
    written.files = &file;
    written.file_count = 1;
    written.more = put_merged;
    written.ctx = run;
    cli_say_written(c, &written);
    return SFT_OK;
}

static sft_code write_shards(merge_run *run, sft_error *err) {
    cli *c = run->c;
    cli_parts *p = &run->parts;
    uint32_t used;
    char stem[CLI_STEM_SIZE];
    size_t shards = sft_set_shard_count(p->sets[0]);
    if (!cli_renumber(&p->arena, p->shard, p->count, shards, &used))
        return sfti_fail_memory(err, shards * sizeof used);
    sft_code code = put_recipe(run, used == 1, err);
    run->blame = c->set.output;
    if (!code) code = cli_output_set(c, p, used, err);
    if (code) return code;
    cli_written written = CLI_WRITTEN_INIT;
    written.input = run->model;
    written.more = put_merged;
    written.ctx = run;
    return cli_say_shards(c, p, used, cli_index_stem(run->model, stem), written, err);
}

/* Tensors that change come from the merge, the others from their files. */
static void take_patched(merge_run *run) {
    cli_parts *p = &run->parts;
    const sft_set *set = p->sets[0];
    for (size_t i = 0; i < p->count; i++) {
        size_t shard;
        uint64_t begin;
        const sft_tensor *tensor = sft_set_find(set, p->parts[i].spec.name, &shard);
        size_t number = sft_file_tensor_index(sft_set_shard_at(set, shard), tensor);
        for (size_t s = 0; s < shard; s++)
            number += sft_file_tensor_count(sft_set_shard_at(set, s));
        if (!sfti_patched_changes(run->patched, number, &begin)) continue;
        p->parts[i].source = sfti_patched_source(run->patched);
        p->parts[i].begin = begin;
    }
}

static sft_code merge_all(merge_run *run, char **operands, sft_error *err) {
    cli *c = run->c;
    run->blame = operands[0];
    sft_code code = cli_output_agrees(c, err);
    if (!code) code = cli_parts_open_one(c, operands[0], false, &run->parts, err);
    if (code) return code;
    run->model = run->blame = run->parts.path;
    code = cli_parts_tell(c, &run->parts, err);
    run->adapters = sfti_arena_array(&run->parts.arena, run->count, sizeof *run->adapters);
    run->inputs = sfti_arena_array(&run->parts.arena, run->count, sizeof *run->inputs);
    if (!run->adapters || !run->inputs) {
        run->count = 0;
        return sfti_fail_memory(err, sizeof *run->adapters);
    }
    memset(run->adapters, 0, run->count * sizeof *run->adapters);
    for (size_t i = 0; !code && i < run->count; i++) {
        lora_adapter *adapter = &run->adapters[i];
        code = lora_open(c, operands[1 + i], true, adapter, err);
        run->blame = adapter->path;
        if (code) return code;
        code = sfti_lora_map_model(&adapter->lora, run->parts.sets[0], &adapter->map, err);
        if (!code) code = check_matched(run, adapter, err);
        if (!code) warn_of_base(run, adapter);
        if (!code) warn_of_alpha(run, adapter);
        run->inputs[i] = (sfti_patched_input){ &adapter->lora, &adapter->map, adapter->strength };
    }
    if (code) return code;
    run->blame = run->model;
    code = sfti_patched_new(run->parts.sets[0], run->inputs, run->count, (sfti_dora)c->set.dora,
                            &c->alloc, &run->patched, err);
    if (code == SFT_CAST_DTYPE) cli_hint(err, CLI_HINT_DEQUANTIZE);
    if (code) return code;
    take_patched(run);
    run->parts.untold = true;
    bool folder = sft_set_index_path(run->parts.sets[0]) && !cli_output_is_file(c);
    code = folder ? write_shards(run, err) : write_file(run, err);
    if (!code) say_merged(run);
    bool computing = code == SFT_CAST_VALUE || code == SFT_SIZE_MISMATCH || code == SFT_CAST_DTYPE;
    size_t who = computing ? sfti_patched_blames(run->patched) : SIZE_MAX;
    if (computing) run->blame = who == SIZE_MAX ? run->model : run->adapters[who].path;
    return code;
}

void lora_merge(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    merge_run run = { .c = c, .count = count - 1, .parts = { .arena = { .alloc = c->alloc } } };
    run.recipe.alloc = run.merged_from.alloc = c->alloc;
    sft_code code = merge_all(&run, operands, &err);
    const char *unread = atomic_load(&run.parts.unread);
    if (code && unread) run.blame = unread;
    if (code) lora_fail(c, run.blame, &err);
    sfti_patched_free(run.patched);
    for (size_t i = 0; run.adapters && i < run.count; i++) lora_close(&run.adapters[i]);
    sft_buffer_free(&run.recipe);
    sft_buffer_free(&run.merged_from);
    cli_parts_free(&run.parts);
}
