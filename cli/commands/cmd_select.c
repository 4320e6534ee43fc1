/* select: a model with fewer tensors. Tests: tests/cli/select. */
#include "base/order.h"
#include "commands/commands.h"
#include "commands/convert/layout.h"
#include "keys/digest_keys.h"
#include "quant/beside.h"
#include "support/fresh.h"
#include "support/hints.h"
#include "support/output.h"
#include "support/remote.h"
#include "support/renamed.h"
#include "support/words.h"

#include <string.h>

/* By --keep and --drop, or by names. */
typedef struct selection {
    cli *c;
    char **names; /* that go, or NULL */
    size_t name_count;
    cli_changed_pair *gone; /* records of other names of tensors, in the order of files */
    size_t gone_count;
} selection;

static bool name_stays(const selection *s, sft_span name) {
    const cli_settings *set = &s->c->set;
    bool stays = s->names || set->keep.count == 0 || cli_matches_any(&set->keep, name);
    for (size_t k = 0; k < s->name_count; k++) stays = stays && !cli_is(name, s->names[k]);
    return stays && (s->names || !cli_matches_any(&set->drop, name));
}

/* ── Other names of tensors ── */

static int compare_alias_tensors(const void *ctx, uint32_t a, uint32_t b) {
    const sft_pair *pairs = ctx;
    return sfti_bytes_compare(pairs[a].value, pairs[b].value);
}

/* Marks the aliases of a tensor that stays. order: by the names of tensors. */
static void mark_aliases(const cli_aliases *aliases, const uint32_t *order, sft_span tensor,
                         bool *kept) {
    size_t low = 0, high = aliases->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sfti_bytes_compare(aliases->pairs[order[middle]].value, tensor) < 0) low = middle + 1;
        else high = middle;
    }
    for (; low < aliases->count; low++) {
        if (!sft_span_equal(aliases->pairs[order[low]].value, tensor)) return;
        kept[order[low]] = true;
    }
}

/* A name that goes takes its record along; one that stays needs the tensor, unless parts are
 * chosen, of which a record does not tell. */
static sft_code select_aliases(selection *s, cli_parts *parts, const cli_aliases *aliases,
                               sft_error *err) {
    size_t count = aliases->count;
    uint32_t *order = sfti_arena_sorted(&parts->arena, count, compare_alias_tensors,
                                        aliases->pairs);
    bool *kept = sfti_arena_array(&parts->arena, count, sizeof *kept);
    s->gone = sfti_arena_array(&parts->arena, count, sizeof *s->gone);
    if (!order || !kept || !s->gone) return sfti_fail_memory(err, count * sizeof *s->gone);
    memset(kept, false, count);
    for (size_t i = 0; i < parts->count; i++)
        mark_aliases(aliases, order, parts->parts[i].spec.name, kept);
    for (size_t i = 0; i < count; i++) {
        sft_pair pair = aliases->pairs[i];
        bool stays = name_stays(s, pair.key);
        if (stays && kept[i]) continue;
        s->gone[s->gone_count++] = (cli_changed_pair){ aliases->shard[i], pair,
                                                       { { NULL, 0 }, { NULL, 0 } } };
        if (!stays || s->c->set.part) continue;
        sfti_fail_tensor(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, pair.value,
                         "expected \"%.*s\", another name of it by the metadata, to go, too, found "
                         "that it stays", SFTI_CLIP(pair.key, 200));
        cli_hint(err, CLI_HINT_OTHER_NAME);
        return SFT_BAD_ARGUMENT;
    }
    return SFT_OK;
}

/* Quantised layers of which nothing is left are declared no more. */
static sft_code select_layers(selection *s, cli_parts *parts, sft_error *err) {
    const sft_set *set = parts->sets[0];
    sft_span key = sft_span_cstr(SFTI_DECLARED_KEY);
    size_t shards = sft_set_shard_count(set);
    sft_pair *values = sfti_arena_array(&parts->arena, shards, sizeof *values);
    cli_changed_pair *gone = sfti_arena_array(&parts->arena, s->gone_count + shards, sizeof *gone);
    if (!values || !gone) return sfti_fail_memory(err, shards * sizeof *gone);
    sft_code code = sfti_declared_left(set, parts->parts, parts->count, &parts->arena, values, err);
    if (code) return code;
    if (s->gone_count > 0) memcpy(gone, s->gone, s->gone_count * sizeof *gone);
    s->gone = gone;
    for (size_t k = 0; k < shards; k++) {
        if (values[k].key.data == values[k].value.data) continue;
        sft_pair now = { key, values[k].value };
        if (now.value.len == 0) now.key = (sft_span){ NULL, 0 };
        gone[s->gone_count++] = (cli_changed_pair){ (uint32_t)k, { key, values[k].key }, now };
    }
    return SFT_OK;
}

/* What is left, in place. */
static sft_code select_parts(selection *s, cli_parts *parts, sft_error *err) {
    const cli *c = s->c;
    size_t kept = 0;
    cli_aliases aliases, once;
    s->gone_count = 0;
    sft_code code = cli_aliases_of(parts->sets[0], &parts->arena, &aliases, err);
    once = aliases;
    if (!code) code = cli_aliases_once(&once, &parts->arena, err);
    if (code) return code;
    for (size_t i = 0; i < s->name_count; i++) {
        size_t shard, at = 0;
        sft_span name = sft_span_cstr(s->names[i]);
        if (sft_set_find(parts->sets[0], name, &shard)) continue;
        while (at < once.count && !sft_span_equal(once.pairs[at].key, name)) at++;
        if (at == once.count)
            return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, name,
                                    "expected a tensor of this name, found none");
    }
    bool *keep = sfti_arena_array(&parts->arena, parts->count, sizeof *keep);
    if (!keep) return sfti_fail_memory(err, parts->count);
    memset(keep, true, parts->count);
    if (c->set.part || c->set.prune) code = layout_keep(s->c, parts, keep, err);
    if (code) return code;
    for (size_t i = 0; i < parts->count; i++) {
        if (!keep[i] || !name_stays(s, parts->parts[i].spec.name)) continue;
        parts->shard[kept] = parts->shard[i];
        parts->file[kept] = parts->file[i];
        parts->parts[kept++] = parts->parts[i];
    }
    size_t all = parts->count;
    parts->count = kept;
    if (kept > 0) return select_aliases(s, parts, &aliases, err);
    return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected at least one tensor to remain, found "
                     "none of %zu", all);
}

/* ── The command ── */

static bool is_several(const cli_parts *parts) {
    return sft_set_index_path(parts->sets[0]) || sft_set_shard_count(parts->sets[0]) > 1;
}

/* All tensors stay, in as many files: nothing is written, unless a copy is wanted. */
static bool is_unchanged(const selection *s, const cli_parts *parts, const char *input,
                         size_t all) {
    cli *c = s->c;
    cli_written written = { .input = input, .output = input, .dtype = SFT_DTYPE_COUNT };
    bool merges = c->set.output && is_several(parts);
    bool asked = c->set.output || c->set.in_place;
    bool copies = c->set.copy || cli_output_copies(c, input);
    if (parts->count < all || s->gone_count > 0 || copies || merges || !asked) return false;
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
    if (code || is_unchanged(s, parts, input, all)) return code;
    bool several = is_several(parts);
    /* In place, shards that lose nothing stay as they are, and all tell the same. */
    if (!(several && here)) code = select_layers(s, parts, err);
    if (code) return code;
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
        for (size_t i = 0; i < s->gone_count; i++) touched[s->gone[i].shard] = true;
        cli_rewrite how = CLI_REWRITE_INIT;
        how.touched = touched;
        how.gone = s->gone;
        how.gone_count = s->gone_count;
        how.same_elements = parts->count == all;
        return cli_rewrite_set(c, parts, &how, err);
    }
    parts->path = c->set.output ? c->set.output : input;
    bool one_file = !several || !c->set.output || cli_output_is_file(c);
    code = cli_parts_change(c, parts, one_file, s->gone, s->gone_count, err);
    if (code) return code;
    code = cli_parts_tell(c, parts, err);
    if (code) return code;
    if (!one_file) {
        uint32_t used;
        size_t shards = sft_set_shard_count(parts->sets[0]);
        if (!cli_renumber(&parts->arena, parts->shard, parts->count, shards, &used))
            return sfti_fail_memory(err, shards * sizeof used);
        return cli_output_set(c, parts, used, err);
    }
    cli_output out;
    cli_target target = s->names ? CLI_TARGET_EDIT : CLI_TARGET_EITHER;
    code = cli_output_begin(&out, c, input, target, err);
    if (!code) code = cli_output_sources(c, parts, &out, err);
    return code ? code : cli_output_parts(&out, c, parts, err);
}

static void run_selection(cli *c, const char *input, void *ctx) {
    selection *s = ctx;
    sft_error err = SFT_ERROR_INIT;
    cli_parts parts = { .arena = { .alloc = c->alloc }, .path = input };
    sft_code code = select_model(s, input, &parts, &err);
    if (code == SFT_TENSOR_NOT_FOUND) cli_refuse(c, input, &err);
    else if (code) cli_fail_input(c, cli_parts_blame(&parts, code, input, parts.path), &err);
    cli_parts_free(&parts);
}

static void run_select(cli *c, char **operands, size_t count) {
    selection s = { .c = c };
    c->joins_shards = !c->set.in_place;
    cli_write_each(c, operands, count, run_selection, &s);
}

void cli_select_without(cli *c, char **operands, size_t count) {
    selection s = { .c = c, .names = operands + 1, .name_count = count - 1 };
    cli_write_each(c, operands, 1, run_selection, &s);
}

const cli_command cli_select_command = {
    "select", "IN... -o OUT|--in-place", "keep or drop some of the tensors of a model",
    "A tensor is kept if its name matches one of --keep (all match if there is none) and none of "
    "--drop. In a GLOB, * stands for any bytes, ? for one character, [a-z] for a set. Bytes and "
    "metadata are kept; digests of the old data (sshs_model_hash, sshs_legacy_hash, "
    "modelspec.hash_*) are dropped. Other names of a tensor that the metadata gives (aliases) are "
    "chosen like tensors: one that is dropped loses its record, and one that stays is an error if "
    "the tensor does not.\n"
    "A model in several files becomes one file if OUT ends in .safetensors or .sft; otherwise "
    "OUT is a new or empty folder for its shards and their index. With --in-place, the shards "
    "that lose tensors are written under new names, then the index, then the old shards are "
    "removed unless another index in the folder names them.\n"
    "Several models, or those of a tree with -r, go into the folder OUT/ under their names. "
    "Numbered shards in a folder without their index are one model, refused if one is missing; "
    "with --in-place, each is a file of its own. "
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
    { "OUT was written, or all tensors stay", "no tensor is left; nothing was written",
      "IN could not be read, OUT could not be written, or a usage error" },
    1, SIZE_MAX, run_select, CLI_URLS_COPY,
};
