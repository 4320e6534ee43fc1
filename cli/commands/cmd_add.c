/* add: add tensors from NumPy files. Tests: tests/cli/add. */
#include "base/files.h"
#include "commands/commands.h"
#include "os/os.h"
#include "safetensors_import.h"
#include "set/aliases.h"
#include "support/fresh.h"
#include "support/hints.h"
#include "support/output.h"
#include "support/parts.h"
#include "support/remote.h"

#include <string.h>

/* A file of one array. */
typedef struct cli_npy {
    sft_import *import;
    sft_part part;
    uint32_t mode; /* permission bits of the file */
} cli_npy;

typedef struct add_run {
    cli *c;
    cli_parts parts;
    cli_npy *arrays;
    size_t array_count;
    bool *touched; /* shards that change */
    const char *path; /* of what failed */
} add_run;

/* Open a file and check that it is one array, which is all that it holds. */
static sft_code npy_open(cli *c, const char *path, cli_npy *out, sft_error *err) {
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    os_info info;
    *out = (cli_npy){ .import = NULL };
    options.alloc = &c->alloc;
    sft_code code = sft_import_open(path, &options, &out->import, err);
    if (code && (err->hint == SFT_HINT_IMPORT_SKIP || err->hint == SFT_HINT_IMPORT_AS))
        err->hint = SFT_HINT_NONE; /* options of convert */
    if (code) return code;
    if (sfti_os_info_path(path, true, &info) == 0) out->mode = info.mode & 0777;
    sft_import_format format = sft_import_format_of(out->import);
    if (format != SFT_IMPORT_NPY)
        return sfti_fail(err, SFT_FOREIGN_KIND, "expected a .npy file of one array, found a %s",
                         sft_import_format_describe(format)->title);
    const sft_import_left *left = sft_import_left_at(out->import, 0);
    if (left)
        return sfti_fail(err, SFT_FOREIGN_SIZE,
                         "expected the array to end the file, found %llu more byte%s",
                         (unsigned long long)left->bytes, left->bytes == 1 ? "" : "s");
    out->part = sft_import_part(out->import, 0);
    return SFT_OK;
}

static sft_code add_part(add_run *a, sft_span name, const cli_npy *npy, sft_error *err) {
    sft_part part = npy->part;
    part.spec.name = name;
    size_t at = 0; /* where a tensor of that name stands, or the end */
    while (at < a->parts.count && !sft_span_equal(a->parts.parts[at].spec.name, name)) at++;
    if (at < a->parts.count && !a->c->set.replace) {
        a->path = a->parts.path;
        sfti_fail_tensor(err, SFT_EXISTS, SFT_NO_OFFSET, name, "already exists");
        cli_hint(err, CLI_HINT_REPLACE_TENSOR);
        return SFT_EXISTS;
    }
    sft_span of = sfti_set_alias_of(a->parts.sets[0], name);
    if (of.data) {
        a->path = a->parts.path;
        return sfti_fail_tensor(err, SFT_TENSOR_DUPLICATE, SFT_NO_OFFSET, name,
                                "is another name of \"%.*s\" already", SFTI_CLIP(of, 200));
    }
    if (at == a->parts.count) {
        size_t shards = sft_set_shard_count(a->parts.sets[0]);
        a->parts.shard[a->parts.count++] = (uint32_t)(shards - 1);
    }
    a->parts.parts[at] = part;
    a->parts.changed = true;
    a->touched[a->parts.shard[at]] = true;
    return SFT_OK;
}

static sft_code add_arrays(add_run *a, char **words, size_t count, sft_error *err) {
    /* room for this many more tensors */
    cli_parts *p = &a->parts;
    size_t shards = sft_set_shard_count(p->sets[0]);
    sft_part *parts = sfti_arena_array(&p->arena, p->count + count, sizeof *parts);
    uint32_t *shard = sfti_arena_array(&p->arena, p->count + count, sizeof *shard);
    a->arrays = sfti_arena_array(&p->arena, count, sizeof *a->arrays);
    a->touched = sfti_arena_array(&p->arena, shards, sizeof *a->touched);
    if (!parts || !shard || !a->arrays || !a->touched)
        return sfti_fail_memory(err, count * sizeof *a->arrays);
    if (p->count > 0) memcpy(parts, p->parts, p->count * sizeof *parts);
    if (p->count > 0) memcpy(shard, p->shard, p->count * sizeof *shard);
    if (shards > 0) memset(a->touched, 0, shards * sizeof *a->touched);
    p->parts = parts;
    p->shard = shard;
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < count; i++) {
        /* NAME=PATH: the last "=" of which a path follows that is there may belong to the name, so
         * the first one parts them */
        const char *equals = strchr(words[i], '=');
        a->path = NULL;
        if (!equals || !equals[1])
            return cli_usage_error(err, "expected NAME=x.npy, found \"%s\"", words[i]);
        a->path = equals + 1;
        code = npy_open(a->c, a->path, &a->arrays[a->array_count++], err);
        sft_span name = { words[i], (size_t)(equals - words[i]) };
        if (!code) code = add_part(a, name, &a->arrays[i], err);
    }
    return code;
}

/* To -o, or to where the model is: one file, or one with an index. */
static sft_code add_to_model(add_run *a, char **operands, size_t count, sft_error *err) {
    cli *c = a->c;
    cli_output out;
    sft_code code = cli_parts_open_one(c, operands[0], !c->set.output, &a->parts, err);
    const char *input = a->path = a->parts.path; /* the model, not its folder */
    bool here = !code && !c->set.output && sft_set_index_path(a->parts.sets[0]);
    if (here) code = cli_fresh_own_index(input, err);
    if (code) return code;
    code = cli_output_begin(&out, c, input, CLI_TARGET_EDIT, err);
    a->path = out.blame;
    if (!code) code = cli_output_sources(c, &a->parts, &out, err);
    if (!code) code = add_arrays(a, operands + 1, count - 1, err);
    if (code) return code;
    for (size_t i = 0; i < a->array_count && !out.in_place; i++)
        sfti_mode_common(&out.options.mode, a->arrays[i].mode);
    a->path = out.path;
    if (here) {
        cli_rewrite how = CLI_REWRITE_INIT;
        how.touched = a->touched;
        return cli_rewrite_set(c, &a->parts, &how, err);
    }
    code = cli_parts_tell(c, &a->parts, err);
    return code ? code : cli_output_parts(&out, c, &a->parts, err);
}

static void run_add(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    add_run a = { .c = c, .parts = { .arena = { .alloc = c->alloc } } };
    sft_code code = add_to_model(&a, operands, count, &err);
    if (code) cli_fail_input(c, cli_parts_blame(&a.parts, code, operands[0], a.path), &err);
    for (size_t i = 0; i < a.array_count; i++) sft_import_close(a.arrays[i].import);
    cli_parts_free(&a.parts);
}

const cli_command cli_add_command = {
    "add", "FILE NAME=x.npy...", "add tensors from NumPy files",
    "Rewrites the model with the arrays as additional tensors (of a dtype that safetensors has, in "
    "any byte order, C or Fortran order) and replaces FILE atomically; with -o it is written to "
    "OUT instead. A name that exists is an error, or is replaced with --replace. Mode, metadata "
    "and all other tensors are kept; digests of the old data (sshs_model_hash, sshs_legacy_hash, "
    "modelspec.hash_*) are dropped.\n"
    "For a model with an index, new tensors go to the last shard, and replaced ones stay in "
    "theirs: the shard is written under a new name, then the index, then the old shard is removed "
    "unless another index in the folder names it. With -o the whole model becomes one file.",
    CLI_EXAMPLES(
        { "safetensors add model.safetensors scale=scale.npy", "add a tensor named scale" },
        { "safetensors add model.safetensors -o more.safetensors a=a.npy b=b.npy",
          "FILE itself is not changed" }),
    { CLI_OPTIONS(CLI_ON(0, "replace", replace, "replace tensors that exist")),
      cli_output_options, cli_writing_options, cli_json_options, cli_reading_options,
      cli_remote_options, cli_network_options, cli_common_options },
    { "the tensors were added", NULL,
      "FILE or an array could not be read, the result could not be written, or a usage error" },
    2, SIZE_MAX, run_add, CLI_URLS_COPY_FIRST,
};
