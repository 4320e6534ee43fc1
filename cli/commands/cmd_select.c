/* select: a model with fewer tensors. Tests: tests/cli/select. */
#include "commands/commands.h"
#include "commands/convert/layout.h"
#include "support/fresh.h"
#include "support/output.h"
#include "support/remote.h"
#include "support/words.h"

#include <string.h>

/* By --keep and --drop, or by names. */
typedef struct selection {
    cli *c;
    char **names; /* that go, or NULL */
    size_t name_count;
} selection;

/* What is left, in place. */
static sft_code select_parts(const selection *s, cli_parts *parts, sft_error *err) {
    const cli *c = s->c;
    size_t kept = 0;
    for (size_t i = 0; i < s->name_count; i++) {
        size_t shard;
        sft_span name = sft_span_cstr(s->names[i]);
        if (!sft_set_find(parts->sets[0], name, &shard))
            return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, name,
                                    "expected a tensor of this name, found none");
    }
    bool *keep = sfti_arena_array(&parts->arena, parts->count, sizeof *keep);
    if (!keep) return sfti_fail_memory(err, parts->count);
    memset(keep, true, parts->count);
    if (c->set.part || c->set.prune) {
        sft_code code = layout_keep(s->c, parts, keep, err);
        if (code) return code;
    }
    for (size_t i = 0; i < parts->count; i++) {
        sft_span name = parts->parts[i].spec.name;
        bool stays = s->names || c->set.keep.count == 0 || cli_matches_any(&c->set.keep, name);
        for (size_t k = 0; k < s->name_count; k++) stays = stays && !cli_is(name, s->names[k]);
        if (!stays || !keep[i] || (!s->names && cli_matches_any(&c->set.drop, name))) continue;
        parts->shard[kept] = parts->shard[i];
        parts->file[kept] = parts->file[i];
        parts->parts[kept++] = parts->parts[i];
    }
    size_t all = parts->count;
    parts->count = kept;
    if (kept > 0) return SFT_OK;
    return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected tensors to be left of %zu, found none",
                     all);
}

/* ── The command ── */

/* All tensors stay, in as many files: nothing is written, unless a copy is wanted. */
static bool is_unchanged(cli *c, const cli_parts *parts, const char *input, size_t all) {
    cli_written written = { .input = input, .output = input, .dtype = SFT_DTYPE_COUNT };
    bool merges = c->set.output && sft_set_index_path(parts->sets[0]);
    bool asked = c->set.output || c->set.in_place;
    bool copies = c->set.copy || cli_output_copies(c, input);
    if (parts->count < all || copies || merges || !asked) return false;
    cli_say_written(c, &written);
    return true;
}

static sft_code select_model(selection *s, const char *operand, cli_parts *parts,
                             sft_error *err) {
    cli *c = s->c;
    bool here = !c->set.output && (s->names || c->set.in_place);
    sft_code code = cli_output_agrees(c, err);
    if (!code) code = cli_parts_open_one(c, operand, here, parts, err);
    const char *input = parts->path; /* the model, not its folder */
    size_t all = parts->count;
    if (!code) code = select_parts(s, parts, err);
    if (code || is_unchanged(c, parts, input, all)) return code;
    bool several = sft_set_index_path(parts->sets[0]) != NULL;
    if (several && here) { /* the shards that lose tensors are rewritten */
        const sft_set *set = parts->sets[0];
        size_t shards = sft_set_shard_count(set);
        size_t *left = sfti_arena_array(&parts->arena, shards, sizeof *left);
        bool *touched = sfti_arena_array(&parts->arena, shards, sizeof *touched);
        if (!left || !touched) return sfti_fail_memory(err, shards * sizeof *left);
        for (size_t k = 0; k < shards; k++)
            left[k] = sft_file_tensor_count(sft_set_shard_at(set, k));
        for (size_t i = 0; i < parts->count; i++) left[parts->shard[i]]--;
        for (size_t k = 0; k < shards; k++) touched[k] = left[k] > 0;
        cli_rewrite how = CLI_REWRITE_INIT;
        how.touched = touched;
        return cli_rewrite_set(c, parts, &how, err);
    }
    parts->path = c->set.output ? c->set.output : input;
    if (several && c->set.output && !cli_output_is_file(c)) {
        uint32_t used;
        size_t shards = sft_set_shard_count(parts->sets[0]);
        if (!cli_renumber(&parts->arena, parts->shard, parts->count, shards, &used))
            return sfti_fail_memory(err, shards * sizeof used);
        return cli_output_set(c, parts, used, err);
    }
    cli_output out;
    cli_target target = s->names ? CLI_TARGET_EDIT : CLI_TARGET_EITHER;
    code = cli_parts_tell(c, parts, err);
    if (!code) code = cli_output_begin(&out, c, input, target, err);
    if (!code) code = cli_output_sources(c, parts, &out, err);
    return code ? code : cli_output_parts(&out, c, parts, err);
}

static void run_selection(cli *c, const char *input, void *ctx) {
    selection *s = ctx;
    sft_error err = SFT_ERROR_INIT;
    cli_parts parts = { .arena = { .alloc = c->alloc }, .path = input };
    sft_code code = select_model(s, input, &parts, &err);
    if (code == SFT_TENSOR_NOT_FOUND) cli_refuse(c, input, &err);
    else if (code) cli_fail_input(c, cli_is_remote_error(code) ? input : parts.path, &err);
    cli_parts_free(&parts);
}

static void run_select(cli *c, char **operands, size_t count) {
    selection s = { .c = c };
    cli_write_each(c, operands, count, run_selection, &s);
}

void cli_select_without(cli *c, char **operands, size_t count) {
    selection s = { c, operands + 1, count - 1 };
    cli_write_each(c, operands, 1, run_selection, &s);
}

const cli_command cli_select_command = {
    "select", "IN... -o OUT|--in-place", "keep or drop some of the tensors of a model",
    "A tensor is kept if its name matches one of --keep (all match if there is none) and none of "
    "--drop. In a GLOB, * stands for any bytes, ? for one character, [a-z] for a set. Bytes and "
    "metadata are kept; digests of the old data (sshs_model_hash, sshs_legacy_hash, "
    "modelspec.hash_*) are dropped.\n"
    "A model in several files becomes one file if OUT ends in .safetensors or .sft; otherwise "
    "OUT is a new or empty folder for its shards and their index. With --in-place, the shards "
    "that lose tensors are written under new names, then the index, then the old shards are "
    "removed unless another index in the folder names them.\n"
    "Several models, or those of a tree with -r, go into the folder OUT/ under their names. "
    "A model that keeps all its tensors is not written unless --copy is given or IN is a URL.",
    CLI_EXAMPLES(
        { "safetensors select model.safetensors -o text.safetensors --keep \"text_model.*\"",
          "only the text encoder" },
        { "safetensors select model.safetensors --in-place --drop \"vae.*\"", "remove the VAE" },
        { "safetensors select model.safetensors -o lean.safetensors --drop \"*.ema\" --drop "
          "\"*_ema\"",
          "without weights that only training needs" },
        { "safetensors select sdxl.safetensors -o vae.safetensors --part vae", "the VAE" },
        { "safetensors select model.safetensors -o small.safetensors --prune",
          "without EMA and other training state" },
        { "safetensors select hf://Qwen/Qwen3-4B -o layer0.safetensors --keep \"model.layers.0.*\"",
          "one layer of a repository; nothing else is downloaded" }),
    { CLI_OPTIONS(
        CLI_TAKES_MANY('k', "keep", "GLOB", keep,
          "only tensors whose name matches; may be repeated"),
        CLI_TAKES_MANY('d', "drop", "GLOB", drop, "no tensors whose name matches; may be repeated"),
        CLI_TAKES(0, "part", "NAME", part,
          "only one component: unet, transformer, vae, text_encoder, ... (ls --parts lists them)"),
        CLI_ON(0, "prune", prune,
          "no tensors that only training needs: EMA, optimiser states, schedules, losses"),
        CLI_TAKES(0, "architecture", "ID", architecture,
          "with --part and --prune: what model it is, where tensors do not tell (sdxl, wan)"),
        CLI_ON(0, "copy", copy, "with -o: write OUT even if all tensors stay")),
      cli_input_options, cli_in_place_options, cli_output_options, cli_writing_options,
      cli_json_options, cli_reading_options, cli_remote_options, cli_network_options,
      cli_common_options },
    { "OUT was written", "no tensor is left; nothing was written",
      "IN could not be read, OUT could not be written, or a usage error" },
    1, SIZE_MAX, run_select, CLI_URLS_COPY,
};
