/* repair: rewrite a damaged file as a valid one; remove what interrupted writers left. Tests:
 * tests/cli/repair. */
#include "commands/commands.h"
#include "commands/repair/repair.h"
#include "edit/dropped.h"
#include "os/path.h"
#include "support/adapters.h"
#include "support/beside.h"
#include "support/edit.h"
#include "support/guard.h"
#include "support/output.h"
#include "safetensors_io.h"

#include <string.h>

/* ── One file ── */

typedef struct repaired {
    const char *input;
    const sft_repair *repair;
} repaired;

static void put_repaired(void *ctx, sfti_json_writer *w) {
    const repaired *r = ctx;
    sfti_json_put_open(w, "fixes", '[');
    cli_put_fixes(w, r->input, r->repair);
    sfti_json_close(w, ']');
}

/* Nothing is written of a file without a fault, unless --copy is given. */
static bool is_whole(const cli *c, const sft_repair *repair) {
    return sft_repair_fix_count(repair) == 0 && !(c->set.copy && c->set.output);
}

static void say_repaired(cli *c, const cli_output *out, const char *input,
                         const sft_repair *repair) {
    repaired r = { input, repair };
    cli_written_file file = cli_repaired_file(out->path, repair);
    bool none = is_whole(c, repair);
    if (!cli_is_json(c) && cli_print_fixes(c, input, repair) == 0) {
        bool skipped = c->set.output && !c->set.copy;
        cli_path(&c->out, input, ": nothing to repair%s\n",
                 skipped ? CLI_REPAIR_SKIPPED : "");
    }
    if (none && !cli_is_json(c)) {
        c->unchanged++;
        return;
    }
    if (!none) c->dropped = sfti_repair_dropped(repair);
    cli_written written = { .input = input, .output = out->path, .files = &file,
                            .file_count = !none, .dtype = SFT_DTYPE_COUNT,
                            .more = put_repaired, .ctx = &r };
    cli_say_written(c, &written);
}

static sft_code repair_file(cli *c, const char *input, const char **path, sft_error *err) {
    sft_repair *repair = NULL;
    cli_output out;
    *path = input;
    if (strcmp(input, "-") == 0)
        return cli_usage_error(err, "expected a file, found standard input");
    sft_code code = cli_output_begin(&out, c, input, CLI_TARGET_EITHER, err);
    *path = out.blame;
    if (code) return code;
    *path = input;
    if (out.in_place) code = cli_edit_recover(c, input, err);
    if (!code && out.in_place) code = cli_guard_lock(c, input, err);
    if (!code) code = sft_repair_open(input, &c->open, &repair, err);
    if (code) return code;
    *path = out.path;
    cli_progress progress;
    sft_sink sink;
    bool writes = !c->set.dry_run && !is_whole(c, repair);
    if (!out.in_place && !is_whole(c, repair)) {
        const char *to = out.stream ? NULL : out.path;
        code = cli_check_adapter_config(c, &input, 1, to, err);
        if (!code && to) code = cli_check_repaired_quantiser(c, repair, input, to, err);
    }
    if (writes && !code) code = cli_output_sink(&out, &sink, err);
    if (writes && !code) {
        sft_job job = cli_progress_begin(&progress, c, out.path);
        code = sft_repair_write(repair, sink, &job, err);
        cli_progress_end(&progress);
    }
    if (!code) say_repaired(c, &out, input, repair);
    sft_repair_close(repair);
    return code;
}

/* ── --clean ── */

static bool print_leftover(void *ctx, const char *name) {
    cli *c = ctx;
    const char joint[2] = { sfti_path_joint(sft_span_cstr(c->set.clean)), '\0' };
    cli_object object;
    if (cli_is_json(c)) {
        sfti_json_writer *w = cli_object_begin(&object, c, c->set.clean);
        sfti_json_put_bool(w, "dry_run", c->set.dry_run != 0);
        sfti_json_put_cstr(w, "removed", name);
        cli_object_end(&object);
    } else {
        cli_path(&c->out, c->set.clean, "%s", joint);
        cli_path(&c->out, name, c->set.dry_run ? ": would be removed\n" : ": removed\n");
    }
    return !cli_is_over(c);
}

/* ── The command ── */

static void fail_repair(cli *c, const char *path, const sft_error *err) {
    sft_class cls = sft_code_describe(err->code)->cls;
    bool is_answer = cls == SFT_CLASS_INVALID || cls == SFT_CLASS_UNSUPPORTED
                     || err->code == SFT_HEADER_TOO_LARGE;
    (is_answer ? cli_refuse : cli_fail_input)(c, path, err);
}

static void repair_model(cli *c, const char *input, void *ctx) {
    sft_error err = SFT_ERROR_INIT;
    if (c->set.clip) {
        repair_clip(c, input);
        return;
    }
    sfti_arena arena = { .alloc = c->alloc };
    const char *path = input;
    (void)ctx;
    bool set = cli_repairs_set(input);
    const char *file = set ? cli_repairs_one(c, input, &arena) : input;
    cli_guard_watch(c);
    sft_code code = file ? repair_file(c, file, &path, &err)
                         : cli_repair_set(c, input, &arena, &path, &err);
    cli_guard_watched(c);
    if (code) fail_repair(c, path, &err);
    sfti_arena_free(&arena);
}

static void run_repair(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    c->no_imports = !c->set.clip;
    bool told = count > 0 || c->set.output || c->set.clip || c->set.in_place || c->set.recursive;
    if (c->set.clean && told) {
        cli_usage_error(&err, "expected --clean DIR alone, found more");
        cli_fail_usage(c, &err);
    } else if (c->set.clean) {
        if (sft_sweep(c->set.clean, c->set.dry_run != 0, print_leftover, c, NULL, &err))
            fail_repair(c, c->set.clean, &err);
    } else if (count == 0) {
        cli_usage_error(&err, "expected IN -o OUT, or --clean DIR, found none");
        cli_fail_usage(c, &err);
    } else {
        cli_write_each(c, operands, count, repair_model, NULL);
    }
}

const cli_command cli_repair_command = {
    "repair", "IN... -o OUT|--in-place", "rewrite a damaged file as a valid one",
    "Repairs damage that has only one interpretation: bytes after the last tensor, NULs or no "
    "padding after the header, bytes that belong to no tensor or to two, names and metadata keys "
    "given twice (the last counts, as in the official reader), metadata values that are not "
    "strings, oddly spelled entries, the 2022 layout. Prints a line for each finding and its "
    "repair. The bytes of the tensors are copied unchanged; digests that no longer hold "
    "(sshs_model_hash, sshs_legacy_hash, modelspec.hash_*) are dropped.\n"
    "A file that is truncated, whose shapes do not fit its bytes or whose header is not JSON "
    "cannot be repaired: nothing is written, and the message is that of check.\n"
    "For a model in several files (an index, or a folder with one), each file is rewritten into "
    "the folder OUT, new or empty, and the index is rewritten, with the shard of every tensor "
    "and the correct total_size. A folder with all shards of a model, called "
    "STEM-00001-of-00003.safetensors and so on, and no index gets one; a folder with one file "
    "stands for that.\n"
    "Several models, or those of a tree with -r, go into the folder OUT/ under their names. "
    "A model without faults is not written unless --copy is given.",
    CLI_EXAMPLES(
        { "safetensors repair broken.safetensors -o fixed.safetensors",
          "report what is wrong and write a valid file" },
        { "safetensors repair broken.safetensors -o fixed.safetensors --dry-run",
          "can it be repaired?" },
        { "safetensors repair model.safetensors.index.json -o fixed", "a model in several files" },
        { "safetensors repair -r ~/models -o fixed/", "every damaged model in a tree" },
        { "safetensors repair anything-v3.safetensors -o fixed.safetensors --clip",
          "a text encoder with broken position ids" },
        { "safetensors repair --clean ~/models", "remove what a crash left" }),
    { CLI_OPTIONS(
        CLI_TAKES(0, "clean", "DIR", clean,
          "instead: remove the hidden files (.NAME.sft-XXXXXX) that interrupted writers left in "
          "this folder, to which nothing may be writing"),
        CLI_ON(0, "clip", clip,
          "instead: position_ids of CLIP that a cast made wrong become 0 to 76 as I64 again; tells "
          "which differ"),
        CLI_ON('v', "verbose", verbose, "report every finding"),
        CLI_ON(0, "copy", copy, "with -o: write OUT even if there is nothing to repair")),
      cli_input_options, cli_in_place_options, cli_output_options, cli_writing_options,
      cli_json_options, cli_reading_options, cli_common_options },
    { "OUT was written, or there was nothing to repair; with --clean, nothing is left",
      "IN cannot be repaired",
      "IN could not be read, OUT could not be written, or a usage error" },
    0, SIZE_MAX, run_repair, CLI_URLS_NONE,
};
