/* select: a model with fewer tensors. */
#include "output.h"
#include "parts.h"
#include "progress.h"
#include "words.h"

#include <string.h>

static bool matches_any(const cli_words *globs, sft_span name) {
    for (size_t i = 0; i < globs->count; i++) {
        if (cli_glob_match(sft_span_cstr(globs->items[i]), name)) return true;
    }
    return false;
}

static bool is_selected(const cli *c, sft_span name) {
    if (c->set.keep.count > 0 && !matches_any(&c->set.keep, name)) return false;
    return !matches_any(&c->set.drop, name);
}

/* What is left, in place. */
static sft_code select_parts(cli *c, cli_parts *parts, sft_error *err) {
    size_t kept = 0;
    for (size_t i = 0; i < parts->count; i++) {
        if (!is_selected(c, parts->parts[i].spec.name)) continue;
        parts->shard[kept] = parts->shard[i];
        parts->parts[kept++] = parts->parts[i];
    }
    size_t all = parts->count;
    parts->count = kept;
    if (kept > 0) return SFT_OK;
    sfti_fail(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET,
              "expected tensors to be left of %zu, found none", all);
    err->hint = "safetensors ls shows the names";
    return SFT_TENSOR_NOT_FOUND;
}

/* ── A model in several files stays one ── */

static bool names_file(const char *path) {
    size_t len = strlen(path);
    return (len > 12 && strcmp(path + len - 12, ".safetensors") == 0) ||
           (len > 4 && strcmp(path + len - 4, ".sft") == 0);
}

/* Shards without tensors are gone; the others count from 0. Returns how many. */
static uint32_t renumber(cli_parts *parts, uint32_t *fresh, size_t shards) {
    uint32_t used = 0;
    for (size_t i = 0; i < shards; i++) fresh[i] = UINT32_MAX;
    for (size_t i = 0; i < parts->count; i++) fresh[parts->shard[i]] = 0;
    for (size_t i = 0; i < shards; i++) {
        if (fresh[i] == 0) fresh[i] = used++;
    }
    for (size_t i = 0; i < parts->count; i++) parts->shard[i] = fresh[parts->shard[i]];
    return used;
}

static sft_code select_set(cli *c, cli_parts *parts, sft_error *err) {
    size_t shards = sft_set_shard_count(parts->sets[0]);
    uint32_t *fresh = sfti_arena_array(&parts->arena, shards, sizeof *fresh);
    if (!fresh) return sfti_fail_memory(err, shards * sizeof *fresh);
    return cli_output_set(c, parts->parts, parts->shard, parts->count,
                          renumber(parts, fresh, shards), parts->metadata, parts->metadata_count,
                          parts->has_metadata, err);
}

/* ── The command ── */

static sft_code select_file(cli *c, const char *input, cli_parts *parts, sft_error *err) {
    cli_output out;
    sft_code code = cli_output_begin(&out, c, input, CLI_TARGET_NEW, err);
    if (code) return code;
    return cli_output_parts(&out, c, parts->parts, parts->count, parts->metadata,
                            parts->metadata_count, parts->has_metadata, err);
}

static sft_code select_model(cli *c, char **operands, cli_parts *parts, sft_error *err) {
    const char *output = c->set.output;
    sft_code code = cli_parts_open(c, operands, 1, parts, err);
    if (code) return code;
    if (parts->set_count != 1) {
        parts->path = operands[0];
        return sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET,
                         "expected one model, found a folder with several, or none");
    }
    code = select_parts(c, parts, err);
    if (code) return code;
    parts->path = output;
    bool several = sft_set_shard_count(parts->sets[0]) > 1;
    if (several && output && !names_file(output)) return select_set(c, parts, err);
    cli_parts_tell(c, parts);
    return select_file(c, operands[0], parts, err);
}

static int run_select(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    cli_parts parts;
    (void)count;
    sft_code code = select_model(c, operands, &parts, &err);
    if (code == SFT_TENSOR_NOT_FOUND) cli_refuse(c, operands[0], &err);
    else if (code) cli_complain(c, parts.path, &err);
    cli_parts_free(&parts);
    return c->status;
}

static const cli_option select_options[] = {
    { 'k', "keep", "GLOB", CLI_MANY, 0, offsetof(cli_settings, keep),
      "only tensors whose name matches; may be given again" },
    { 'd', "drop", "GLOB", CLI_MANY, 0, offsetof(cli_settings, drop),
      "no tensors whose name matches; may be given again" },
    { 0, NULL, NULL, CLI_FLAG, 0, 0, NULL },
};

static const cli_example select_examples[] = {
    { "safetensors select model.safetensors -o text.safetensors --keep 'text_model.*'",
      "only the text encoder" },
    { "safetensors select model.safetensors -o lean.safetensors --drop '*.ema' --drop '*_ema'",
      "without what only training needs" },
    { NULL, NULL },
};

const cli_command cli_select_command = {
    "select", "IN -o OUT", "write a model with some of its tensors",
    "A tensor goes to OUT if its name matches one of --keep (all do when there is none) and none "
    "of --drop. In a GLOB * stands for any bytes, ? for one character, [a-z] for a set. Bytes "
    "and metadata are kept.\n"
    "A model of several files becomes one file if OUT ends in .safetensors or .sft; else OUT is "
    "a new or empty folder for its shards and their index.",
    select_examples,
    { select_options, cli_writing_options, cli_reading_options, cli_common_options, NULL },
    { "OUT was written", "no tensor is left; nothing was written",
      "IN could not be read, OUT not be written, or the usage was wrong" },
    1, 1, run_select,
};
