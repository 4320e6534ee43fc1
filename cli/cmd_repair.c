/* repair: a bad file written anew as a valid one; and what interrupted writers left. */
#include "output.h"
#include "progress.h"

#include <string.h>

/* ── One file ── */

static void print_fix(cli *c, const char *path, const sft_fix *fix) {
    cli_escaped(&c->out, sft_span_cstr(path));
    cli_printf(&c->out, ": %s: ", fix->name);
    sft_error found = fix->found;
    found.hint = NULL;
    cli_error_text(&c->out, &found);
    cli_text(&c->out, ": ");
    cli_text(&c->out, fix->done);
    cli_text(&c->out, "\n");
}

/* Of many fixes of one kind the first few are shown. */
#define REPAIR_SHOWN 5

static void print_fixes(cli *c, const char *path, const sft_repair *repair) {
    size_t count = sft_repair_count(repair);
    for (size_t i = 0; i < count;) {
        const char *name = sft_repair_at(repair, i)->name;
        size_t end = i;
        while (end < count && strcmp(sft_repair_at(repair, end)->name, name) == 0) end++;
        size_t shown = c->set.verbose || end - i <= REPAIR_SHOWN ? end : i + REPAIR_SHOWN - 1;
        for (size_t j = i; j < shown; j++) print_fix(c, path, sft_repair_at(repair, j));
        if (shown < end) {
            cli_escaped(&c->out, sft_span_cstr(path));
            cli_printf(&c->out, ": %s: %zu more, -v shows them\n", name, end - shown);
        }
        i = end;
    }
    if (count > 0) return;
    cli_escaped(&c->out, sft_span_cstr(path));
    cli_text(&c->out, ": nothing to repair\n");
}

static sft_code write_repaired(cli *c, const cli_output *out, const sft_repair *repair,
                               sft_error *err) {
    cli_progress progress;
    sft_sink sink;
    if (c->set.dry_run) return SFT_OK;
    sft_code code = cli_output_sink(out, &sink, err);
    if (code) return code;
    sft_job job = cli_progress_begin(&progress, c, out->path);
    code = sft_repair_write(repair, sink, &job, err);
    cli_progress_end(&progress);
    return code;
}

static sft_code repair_file(cli *c, const char *input, const char **path, sft_error *err) {
    sft_set_options options = cli_set_options(c);
    sft_repair *repair = NULL;
    cli_output out;
    sft_code code = cli_output_begin(&out, c, input, CLI_TARGET_NEW, err);
    *path = out.blame;
    if (code) return code;
    *path = input;
    code = sft_repair_open(input, &options.open, &repair, err);
    if (code) return code;
    *path = out.path;
    code = write_repaired(c, &out, repair, err);
    if (!code) print_fixes(c, input, repair);
    sft_repair_close(repair);
    return code;
}

static bool is_answer(sft_code code) {
    sft_class cls = sft_code_describe(code)->cls;
    return cls == SFT_CLASS_INVALID || cls == SFT_CLASS_UNSUPPORTED ||
           code == SFT_HEADER_TOO_LARGE;
}

/* ── --clean ── */

typedef struct cleaning {
    cli *c;
    const char *folder;
} cleaning;

static bool print_litter(void *ctx, const char *name) {
    const cleaning *clean = ctx;
    cli *c = clean->c;
    size_t len = strlen(clean->folder);
    cli_escaped(&c->out, sft_span_cstr(clean->folder));
    if (len > 0 && clean->folder[len - 1] != '/') cli_text(&c->out, "/");
    cli_escaped(&c->out, sft_span_cstr(name));
    cli_text(&c->out, c->set.dry_run ? ": would be removed\n" : ": removed\n");
    return !cli_is_over(c);
}

static sft_code clean_folder(cli *c, const char *folder, sft_error *err) {
    cleaning clean = { c, folder };
    return sft_sweep(folder, c->set.dry_run != 0, print_litter, &clean, NULL, err);
}

/* ── The command ── */

static sft_code repair_usage(const cli *c, size_t operands, sft_error *err) {
    if (c->set.clean && operands == 0 && !c->set.output) return SFT_OK;
    if (!c->set.clean && operands == 1) return SFT_OK;
    sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET,
              c->set.clean ? "expected --clean DIR alone, found more"
                           : "expected IN -o OUT, or --clean DIR, found %zu operands", operands);
    err->hint = NULL;
    return SFT_BAD_ARGUMENT;
}

static int run_repair(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    const char *path = c->set.clean;
    sft_code code = repair_usage(c, count, &err);
    if (code) {
        cli_complain(c, "repair", &err);
        return CLI_FAILED;
    }
    if (c->set.clean) code = clean_folder(c, c->set.clean, &err);
    else code = repair_file(c, operands[0], &path, &err);
    if (code && path == operands[0] && is_answer(code)) cli_refuse(c, path, &err);
    else if (code) cli_complain(c, path, &err);
    return c->status;
}

static const cli_option repair_options[] = {
    { 0, "clean", "DIR", CLI_WORD, 0, offsetof(cli_settings, clean),
      "instead: remove the hidden files (.NAME.sft-XXXXXX) that interrupted writers left in this "
      "folder; nothing may be writing there" },
    { 'v', "verbose", NULL, CLI_FLAG, 1, offsetof(cli_settings, verbose),
      "tell of each thing that was found" },
    { 0, NULL, NULL, CLI_FLAG, 0, 0, NULL },
};

static const cli_example repair_examples[] = {
    { "safetensors repair broken.safetensors -o fixed.safetensors", "say what was wrong, and "
      "write it anew" },
    { "safetensors repair broken.safetensors -o fixed.safetensors --dry-run", "can it be "
      "repaired?" },
    { "safetensors repair --clean ~/models", "remove what a crash left" },
    { NULL, NULL },
};

const cli_command cli_repair_command = {
    "repair", "IN -o OUT", "write a bad file anew as a valid one",
    "Mends what has one meaning: bytes after the last tensor, NULs or no padding after the "
    "header, bytes that belong to no tensor, bytes that belong to two, names and metadata keys "
    "given twice (the last counts, as in the official reader), metadata that are no strings, "
    "entries spelled oddly, the layout of 2022. A line tells of each thing found and what became "
    "of it. The bytes of the tensors are copied as they are.\n"
    "A file that is cut short, whose shapes do not fit its bytes or whose header is no JSON "
    "cannot be repaired: nothing is written, and the message is that of check.",
    repair_examples,
    { repair_options, cli_writing_options, cli_reading_options, cli_common_options, NULL },
    { "OUT was written (or, with --clean, nothing is left)", "IN cannot be repaired",
      "IN could not be read, OUT not be written, or the usage was wrong" },
    0, 1, run_repair,
};
