/* merge: merge shards or several files into one file. Tests: tests/cli/merge. */
#include "commands/commands.h"
#include "commands/convert/convert.h"
#include "support/hints.h"
#include "support/models.h"
#include "support/output.h"
#include "support/parts.h"
#include "support/remote.h"

#include <inttypes.h>
#include <string.h>

/* By their names; an index says itself what belongs to its model. */
static void tell_missing(cli *c, const cli_parts *parts, size_t first) {
    sft_span base, other;
    uint64_t shard, of, more, count = 0;
    const char *path = parts->paths[first];
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
    if (!code) code = cli_output_sources(c, parts, out, err);
    if (code) return code;
    parts->path = out->path;
    code = cli_parts_tell(c, parts, err);
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
    cli_parts parts = { .arena = { .alloc = c->alloc } };
    cli_output out;
    if (c->set.as_what) {
        if (strcmp(c->set.as_what, "checkpoint") == 0) {
            c->set.layout = "single";
            convert_layouts(c, operands, count);
            return;
        }
        cli_usage_error(&err, "expected --as checkpoint, found \"%s\"", c->set.as_what);
        cli_fail_usage(c, &err);
        return;
    }
    sft_code code = merge_models(c, operands, count, &out, &parts, &err);
    const char *unread = atomic_load(&parts.unread);
    if (cli_is_remote_error(code) && count == 1) parts.path = operands[0];
    else if (code && unread) parts.path = unread;
    if (code) cli_fail_input(c, parts.path, &err);
    cli_parts_free(&parts);
}

const cli_command cli_merge_command = {
    "merge", "IN... -o OUT", "merge shards or several files into one file",
    "Writes all tensors of all inputs to one file, byte for byte, in the order of the official "
    "writer. IN is a file, an index (all its shards) or a folder (all models in it). Two tensors "
    "of the same name are an error. The metadata of all files is combined; if several files have a "
    "key, the value of the first is kept, and a note says so; different declarations of quantised "
    "layers (_quantization_metadata) are an error. Digests of the old data "
    "(sshs_model_hash, sshs_legacy_hash, modelspec.hash_*) are dropped.\n"
    "OUT is written atomically.",
    CLI_EXAMPLES(
        { "safetensors merge model.safetensors.index.json -o model.safetensors",
          "the shards of a model, in one file" },
        { "safetensors merge unet.safetensors vae.safetensors -o all.safetensors",
          "the tensors of both" },
        { "safetensors merge unet.safetensors vae.safetensors clip.safetensors -o all.safetensors "
          "--as checkpoint --architecture sd-1",
          "one file as the programs for pictures load it" }),
    { CLI_OPTIONS(
        CLI_TAKES(0, "as", "checkpoint", as_what,
          "the components of one model, in whatever layout, as one file with the names and "
          "prefixes of the original code (as convert --layout single does it)"),
        CLI_TAKES(0, "architecture", "ID", architecture,
          "with --as checkpoint: what model it is, where tensors do not tell"),
        CLI_ON(0, "ignore-unmatched", ignore_unmatched,
          "with --as checkpoint: leave out tensors whose names there are not known")),
      cli_output_options, cli_writing_options, cli_json_options, cli_reading_options,
      cli_remote_options, cli_network_options, cli_common_options },
    { "OUT was written", NULL,
      "an input could not be read, OUT could not be written, or a usage error" },
    1, SIZE_MAX, run_merge, CLI_URLS_COPY,
};
