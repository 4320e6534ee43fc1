/* split: split a model into shards with an index. Tests: tests/cli/split. */
#include "commands/commands.h"
#include "support/output.h"
#include "support/parts.h"
#include "support/remote.h"

#define SPLIT_SIZE "5GB" /* as transformers */

static sft_code split_model(cli *c, char **operands, cli_parts *parts, sft_error *err) {
    const cli_settings *set = &c->set;
    uint64_t max_bytes = 0;
    uint32_t shards = 0;
    parts->path = NULL;
    c->joins_shards = true;
    sft_code code = cli_output_is_folder(c, err);
    if (!code && set->max_size && set->count)
        code = cli_usage_error(err, "expected --max-size or --count, found both");
    if (!code && !set->output) code = cli_usage_error(err, "expected -o DIR, found none");
    if (!code && set->count)
        code = cli_parse_count(set->count, "shards", &shards, err);
    else if (!code)
        code = cli_parse_size(set->max_size ? set->max_size : SPLIT_SIZE, &max_bytes, err);
    if (!code) code = cli_parts_open_one(c, operands[0], false, parts, err);
    if (!code)
        code = sft_cut_parts(parts->parts, parts->count, max_bytes, parts->shard, &shards, err);
    if (code) return code;
    parts->path = c->set.output;
    code = cli_parts_tell(c, parts, err);
    return code ? code : cli_output_set(c, parts, shards, err);
}

static void run_split(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    cli_parts parts = { .arena = { .alloc = c->alloc } };
    (void)count;
    sft_code code = split_model(c, operands, &parts, &err);
    if (code) cli_fail_input(c, cli_parts_blame(&parts, code, operands[0], parts.path), &err);
    cli_parts_free(&parts);
}

const cli_command cli_split_command = {
    "split", "IN -o DIR", "split a model into shards with an index",
    "Writes shards and their index into DIR, with the names that transformers uses: "
    "model-00001-of-00003.safetensors and model.safetensors.index.json. Tensors are taken in "
    "natural order of their names (layer 2 before layer 10), are never split, and keep every byte; "
    "each shard has the metadata of the model; digests of the old data (sshs_model_hash, "
    "sshs_legacy_hash, modelspec.hash_*) are dropped. If one shard is enough, it is "
    "model.safetensors without an index. IN may itself be an index.\n"
    "DIR must be new or empty. The index is written last: if it exists, all shards do. After a "
    "failure or an interruption nothing is left.",
    CLI_EXAMPLES(
        { "safetensors split model.safetensors -o model", "shards of at most 5 GB" },
        { "safetensors split model.safetensors -o model --count 4", "four shards" },
        { "safetensors split model.safetensors -o model --max-size 500MB --dry-run",
          "which files would be written?" }),
    { CLI_OPTIONS(
        CLI_TAKES(0, "max-size", "SIZE", max_size,
          "maximum bytes of tensors in a shard: 5GB (the default), 500MiB; a larger tensor gets a "
          "shard of its own"),
        CLI_TAKES(0, "count", "N", count, "write this many shards of about equal size instead"),
        CLI_TAKES(0, "name", "STEM", stem, "how the file names begin (default: model)"),
        CLI_TAKES('o', "output", "DIR", output, "the folder for shards and index, new or empty"),
        CLI_ON(0, "dry-run", dry_run, "print what would be done; write nothing"),
        CLI_ON(0, "no-sync", no_sync, "do not fsync; a power failure may then lose the result"),
        CLI_ON(0, "keep-mtime", keep_mtime,
          "give each file the modification time of the file its tensors come from"),
        CLI_ON(0, "in-place-unsafe", in_place_unsafe,
          "for file systems that cannot rename (mounted object stores): write each file under its "
          "final name; a crash may leave a partial one")),
      cli_json_options, cli_reading_options, cli_remote_options, cli_network_options,
      cli_common_options },
    { "the shards were written, with an index if there are several", NULL,
      "IN could not be read, DIR could not be written, or a usage error" },
    1, 1, run_split, CLI_URLS_COPY,
};
