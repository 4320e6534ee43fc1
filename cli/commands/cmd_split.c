/* split: one model becomes several files and their index. */
#include "commands/commands.h"
#include "support/output.h"
#include "support/parts.h"

#define SPLIT_SIZE "5GB" /* as transformers */

static sft_code split_usage(const cli *c, uint64_t *max_bytes, uint32_t *shards, sft_error *err) {
    const char *found = NULL;
    *max_bytes = 0;
    *shards = 0;
    if (!c->set.output) found = "expected -o DIR, found none";
    if (c->set.max_size && c->set.count) found = "expected --max-size or --count, found both";
    if (found) {
        sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, "%s", found);
        err->hint = NULL;
        return SFT_BAD_ARGUMENT;
    }
    if (c->set.count) return cli_parse_count(c->set.count, "shards", shards, err);
    return cli_parse_size(c->set.max_size ? c->set.max_size : SPLIT_SIZE, max_bytes, err);
}

static sft_code split_model(cli *c, char **operands, cli_parts *parts, sft_error *err) {
    uint64_t max_bytes;
    uint32_t shards;
    parts->path = NULL;
    sft_code code = split_usage(c, &max_bytes, &shards, err);
    if (code) return code;
    code = cli_parts_open_one(c, operands, false, parts, err);
    if (code) return code;
    code = sft_cut_parts(parts->parts, parts->count, max_bytes, parts->shard, &shards, err);
    if (code) return code;
    parts->path = c->set.output;
    cli_parts_tell(c, parts);
    return cli_output_set(c, parts, shards, err);
}

static int run_split(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    cli_parts parts = { .arena = { .alloc = c->alloc } };
    (void)count;
    cli_results_begin(c);
    if (split_model(c, operands, &parts, &err)) cli_fail_input(c, parts.path, &err);
    cli_parts_free(&parts);
    cli_results_end(c);
    return c->status;
}

static const cli_option split_options[] = {
    { 0, "max-size", "SIZE", CLI_WORD, 0, offsetof(cli_settings, max_size),
      "bytes of tensors in a shard at most: 5GB (the default), 500MiB; a larger tensor has one "
      "of its own" },
    { 0, "count", "N", CLI_WORD, 0, offsetof(cli_settings, count),
      "instead: so many shards, as even as can be" },
    { 0, "name", "STEM", CLI_WORD, 0, offsetof(cli_settings, stem),
      "how the names of the files begin; model unless given" },
    { 0, NULL, NULL, CLI_FLAG, 0, 0, NULL },
};

static const cli_option split_writing[] = {
    { 'o', "output", "DIR", CLI_WORD, 0, offsetof(cli_settings, output),
      "the folder for shards and index: new, or empty" },
    { 0, "dry-run", NULL, CLI_FLAG, 1, offsetof(cli_settings, dry_run),
      "say what would be done, write nothing" },
    { 0, "no-sync", NULL, CLI_FLAG, 1, offsetof(cli_settings, no_sync),
      "do not wait until the disk has it; a power cut may then lose it" },
    { 0, "keep-mtime", NULL, CLI_FLAG, 1, offsetof(cli_settings, keep_mtime),
      "give each file the time of the last change of what its tensors come from" },
    { 0, "in-place-unsafe", NULL, CLI_FLAG, 1, offsetof(cli_settings, in_place_unsafe),
      "where the file system cannot rename (mounted object stores): write each file "
      "where it belongs; a crash may leave one that is not whole" },
    { 0, NULL, NULL, CLI_FLAG, 0, 0, NULL },
};

static const cli_example split_examples[] = {
    { "safetensors split model.safetensors -o model", "shards of at most 5 GB" },
    { "safetensors split model.safetensors -o model --count 4", "four of them" },
    { "safetensors split model.safetensors -o model --max-size 500MB --dry-run",
      "which files would there be?" },
    { NULL, NULL },
};

const cli_command cli_split_command = {
    "split", "IN -o DIR", "cut a model into several files and an index",
    "Writes shards and their index into DIR, named as transformers names them: "
    "model-00001-of-00003.safetensors and model.safetensors.index.json. Tensors are taken in "
    "natural order of their names (layer 2 before layer 10), are never cut, and keep every byte; "
    "each shard has the model's metadata. Where one shard is enough it is model.safetensors, "
    "without an index. IN may be an index, too: the model is cut anew.\n"
    "DIR must be new or empty. The index is written last: where it is, all shards are. On any "
    "failure, and when interrupted, nothing is left.",
    split_examples,
    { split_options, split_writing, cli_json_options, cli_reading_options, cli_common_options,
      NULL },
    { "shards and index were written", NULL,
      "IN could not be read, DIR not be written, or the usage was wrong" },
    1, 1, run_split,
};
