/* merge: shards or several files in one file, or models by value. Tests: tests/cli/merge. */
#include "commands/commands.h"
#include "commands/convert/convert.h"
#include "commands/merge/merge.h"
#include "support/hints.h"
#include "support/models.h"
#include "support/output.h"
#include "support/parts.h"
#include "support/remote.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

/* By their names; an index says itself what belongs to its model, and the parts of GGUF are read
 * with the first. */
static void tell_missing(cli *c, const cli_parts *parts, size_t first) {
    sft_span base, other;
    uint64_t shard, of, more, count = 0;
    const char *path = parts->paths[first];
    if (cli_ends_with(sft_span_cstr(path), ".gguf")) return;
    if (!cli_shard_of(path, &shard, &of, &base)) return;
    for (size_t i = 0; i < parts->path_count; i++) {
        if (!cli_shard_of(parts->paths[i], &shard, &more, &other)) continue;
        if (more != of || !sft_span_equal(base, other)) continue;
        if (i < first) return; /* already reported */
        count++;
    }
    if (count >= of) return;
    cli_text(&c->err, "safetensors: note: ");
    cli_path(&c->err, path,
             ": one of %" PRIu64 " shards by its name, but only %" PRIu64 " %s given\n",
             of, count, count == 1 ? "is" : "are");
}

static sft_code merge_models(cli *c, char **operands, size_t count, cli_output *out,
                             cli_parts *parts, sft_error *err) {
    const char *input = count == 1 ? operands[0] : NULL;
    parts->path = NULL;
    sft_code code = cli_output_begin(out, c, input, CLI_TARGET_NEW, err);
    if (code) {
        parts->path = out->blame;
        return code;
    }
    code = cli_parts_open(c, (const char *const *)operands, count, parts, err);
    if (code) return code;
    parts->path = out->path;
    code = cli_output_sources(c, parts, out, err);
    if (!code) code = cli_parts_tell(c, parts, err);
    if (code) return code;
    for (size_t i = 0, at = 0; i < parts->set_count; i++) {
        if (!sft_set_index_path(parts->sets[i])) tell_missing(c, parts, at);
        at += sft_set_shard_count(parts->sets[i]);
    }
    code = cli_output_parts(out, c, parts, err);
    if (code == SFT_TENSOR_DUPLICATE) cli_hint(err, CLI_HINT_DROP_ONE);
    return code;
}

static void run_merge(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    bool by_method = c->set.method || c->set.recipe || c->set.replay;
    if (c->set.as_what && (by_method || strcmp(c->set.as_what, "checkpoint") != 0)) {
        (void)cli_usage_error(&err, "expected --as checkpoint without --method, --recipe and "
                                    "--replay, found \"%s\"", c->set.as_what);
        cli_fail_usage(c, &err);
        return;
    }
    if (!c->set.as_what && (c->set.architecture || c->set.ignore_unmatched)) {
        (void)cli_usage_error(&err, "expected --as checkpoint with %s, found none",
                              c->set.architecture ? "--architecture" : "--ignore-unmatched");
        cli_fail_usage(c, &err);
        return;
    }
    char *base = (char *)(uintptr_t)c->set.base, *replay = (char *)(uintptr_t)c->set.replay;
    if ((base && cli_remote_take(c, &base, 1, CLI_URLS_ALL, "--base", &err))
        || (replay && cli_remote_take(c, &replay, 1, CLI_URLS_ALL, "--replay", &err))) {
        cli_fail_usage(c, &err);
        return;
    }
    c->set.base = base;
    c->set.replay = replay;
    if (by_method) {
        merge_by_method(c, operands, count);
        return;
    }
    if (count == 0 || c->set.base || c->set.params.count > 0 || c->set.seed || c->set.dtype
        || c->set.ignore_missing || c->set.threads) {
        if (count == 0) (void)cli_usage_error(&err, "expected IN..., found none");
        else (void)cli_usage_error(&err, "expected --method beside --base, --param, --seed, "
                                         "--dtype, --threads and --ignore-missing, found none");
        cli_fail_usage(c, &err);
        return;
    }
    if (c->set.as_what) {
        c->set.layout = "single";
        convert_layouts(c, operands, count);
        return;
    }
    cli_parts parts = { .arena = { .alloc = c->alloc } };
    cli_output out;
    sft_code code = merge_models(c, operands, count, &out, &parts, &err);
    const char *input = count == 1 ? operands[0] : NULL;
    if (code) cli_fail_input(c, cli_parts_blame(&parts, code, input, parts.path), &err);
    cli_parts_free(&parts);
}

const cli_command cli_merge_command = {
    "merge", "IN... -o OUT | --method METHOD MODEL[:WEIGHT]... -o OUT",
    "join shards or files into one file, or merge models",
    "Without --method, --recipe and --replay writes all tensors of all inputs to one file, byte "
    "for byte, in the order of the official writer. IN is a file, an index (all its shards) or a "
    "folder (all models in it). Two tensors of the same name are an error. The metadata of all "
    "files is combined; if several files have a key, the value of the first is kept, and a note "
    "says so; lists of torchao's tensors (tensor_names) become one; different declarations of "
    "quantised layers (_quantization_metadata, quantization_config) or configurations of adapters "
    "(lora_adapter_metadata) are an error, and so is PEFT's adapter_config.json of one, unless all "
    "have one that tells the same. "
    "Digests of the old data (sshs_model_hash, sshs_legacy_hash, modelspec.hash_*) are dropped.\n"
    "With --method writes one model that is computed from several: linear, slerp, nuslerp, "
    "multislerp, karcher, task_arithmetic, ties, dare_linear, dare_ties, breadcrumbs, "
    "breadcrumbs_ties, della, della_linear, model_stock, sce, nearswap and passthrough as "
    "mergekit has them, with parameters by its names; add_difference is A + alpha * (B - BASE). "
    "docs/merging.md has the formulas. What follows the last colon of MODEL is its weight (1 "
    "without it) if it is a number and no file has the whole name. slerp and nearswap go from the "
    "first model, or from --base, to the other.\n"
    "--param NAME=VALUE is for all tensors, --param 'NAME@PATTERN=VALUE' for those whose names "
    "fit the pattern (with * and ?), of several the first; a list such as 0,0.5,1 is spread over "
    "the layers, from the first to the last.\n"
    "Tensors belong together by their names, also where only what stands before those of a part "
    "of the model differs (model.diffusion_model., diffusion_model., ...). Names and order are "
    "those of the base, else of the first model, and so are the dtypes, unless --dtype is given; "
    "quantised inputs count by their values. Sums are computed in F64 and rounded once. NaN, "
    "infinities, unlike shapes, and tensors that not all models have are errors; of vocabularies "
    "of unlike size the rows that all have are merged, and a note says so. Integers are copied.\n"
    "Random masks come from --seed (0 by default), the name of the tensor and the place of the "
    "value: the result is the same on every machine and for any number of threads.\n"
    "--recipe FILE reads all of that from mergekit's YAML (models, or slices of their layers; "
    "what is not supported is an error that names the line) or from JSON of the same form; models "
    "are paths, seen from the recipe's folder, unless they are given as operands in its order. "
    "The header of OUT records the recipe with the digests of all models (sft_merge, "
    "sd_merge_recipe, sd_merge_models, modelspec.merged_from). --replay OUT takes it from there, "
    "finds the models among the operands by these digests, and writes the same bytes.\n"
    "A model in several files becomes one file if OUT ends in .safetensors or .sft; otherwise OUT "
    "is a new or empty folder. OUT is written atomically.",
    CLI_EXAMPLES(
        { "safetensors merge model.safetensors.index.json -o model.safetensors",
          "the shards of a model, in one file" },
        { "safetensors merge unet.safetensors vae.safetensors -o all.safetensors",
          "the tensors of both" },
        { "safetensors merge unet.safetensors vae.safetensors clip.safetensors -o all.safetensors "
          "--as checkpoint --architecture sd-1",
          "one file as the programs for pictures load it" },
        { "safetensors merge --method linear a.safetensors:0.7 b.safetensors:0.3 -o ab.safetensors",
          "a weighted sum" },
        { "safetensors merge --method dare_ties --base base.safetensors a.safetensors:0.6 "
          "b.safetensors:0.4 --param density=0.5 --seed 7 -o merged.safetensors",
          "random halves of two differences" },
        { "safetensors merge --method add_difference --base sd15.safetensors photo.safetensors "
          "style.safetensors --param alpha=0.8 -o out.safetensors",
          "photo + 0.8 (style - sd15)" },
        { "safetensors merge --recipe mergekit.yml -o merged.safetensors --dry-run",
          "does it fit?" },
        { "safetensors merge --replay merged.safetensors base.safetensors a.safetensors "
          "b.safetensors -o again.safetensors", "the same bytes again" }),
    { CLI_OPTIONS(
        CLI_TAKES(0, "method", "METHOD", method, "merge models by value, by this method"),
        CLI_TAKES(0, "base", "MODEL", base, "with --method: what the models are differences to"),
        CLI_TAKES_MANY(0, "param", "NAME[@PATTERN]=VALUE", params,
          "with --method: a parameter: density, lambda, t, ..."),
        CLI_TAKES(0, "dtype", "DTYPE", dtype,
          "with --method or --recipe: of all merged tensors: F64, F32, F16, BF16"),
        CLI_TAKES(0, "seed", "NUMBER", seed, "of random masks; 0 by default"),
        CLI_ON(0, "ignore-missing", ignore_missing,
          "merge tensors without the models that lack them, and leave out those that the model "
          "lacks whose names the result has"),
        CLI_TAKES(0, "threads", "N", threads, "number of threads; default: one per processor"),
        CLI_TAKES(0, "recipe", "FILE", recipe,
          "merge as this file says: YAML of mergekit, or JSON"),
        CLI_TAKES(0, "replay", "FILE", replay,
          "merge as the header of this result says, with models that have the same digests"),
        CLI_TAKES(0, "as", "checkpoint", as_what,
          "the components of one model, in whatever layout, as one file with the names and "
          "prefixes of the original code (as convert --layout single does it)"),
        CLI_TAKES(0, "architecture", "ID", architecture,
          "with --as checkpoint: what model it is, where tensors do not tell"),
        CLI_ON(0, "ignore-unmatched", ignore_unmatched,
          "with --as checkpoint: leave out tensors whose names there are not known")),
      cli_output_options, cli_writing_options, cli_json_options, cli_reading_options,
      cli_remote_options, cli_network_options, cli_common_options },
    { "OUT was written",
      "models that do not go together, or hold NaN; --replay: a model that is not "
      "among those named, or another result: nothing was written",
      "an input could not be read, OUT could not be written, or a usage error" },
    0, SIZE_MAX, run_merge, CLI_URLS_COPY,
};
