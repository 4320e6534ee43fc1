/* repair: a bad file written anew as a valid one; and what interrupted writers left. */
#include "edit.h"
#include "progress.h"
#include "repair.h"

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

size_t cli_print_fixes(cli *c, const char *path, const sft_repair *repair) {
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
    return count;
}

void cli_put_fix(sfti_json_writer *w, const char *path, const char *fix, const sft_error *found,
                 const char *done) {
    sfti_json_open(w, '{');
    cli_json_path(w, path);
    sfti_json_key(w, "fix");
    sfti_json_cstr(w, fix);
    sfti_json_key(w, "offset");
    if (found->offset == SFT_NO_OFFSET) sfti_json_null(w);
    else sfti_json_uint(w, found->offset);
    sfti_json_key(w, "tensor");
    if (found->tensor_len == SFT_NO_TENSOR) sfti_json_null(w);
    else sfti_json_span(w, (sft_span){ found->tensor, found->tensor_len });
    sfti_json_key(w, "message");
    sfti_json_cstr(w, found->message);
    sfti_json_key(w, "done");
    sfti_json_cstr(w, done);
    sfti_json_close(w, '}');
}

void cli_put_fixes(sfti_json_writer *w, const char *path, const sft_repair *repair) {
    for (size_t i = 0; i < sft_repair_count(repair); i++) {
        const sft_fix *fix = sft_repair_at(repair, i);
        cli_put_fix(w, path, fix->name, &fix->found, fix->done);
    }
}

cli_written_file cli_repaired_file(const char *path, const sft_repair *repair) {
    cli_written_file file = { path, sft_repair_tensor_count(repair), 0 };
    uint64_t bytes;
    for (size_t i = 0; i < file.tensors; i++) {
        sft_spec spec = sft_repair_tensor(repair, i);
        if (!sft_shape_size(spec.dtype, spec.shape, spec.rank, NULL, &bytes, NULL))
            file.bytes += bytes;
    }
    return file;
}

typedef struct repaired {
    const char *input;
    const sft_repair *repair;
} repaired;

static void put_repaired(void *ctx, sfti_json_writer *w) {
    const repaired *r = ctx;
    sfti_json_key(w, "fixes");
    sfti_json_open(w, '[');
    cli_put_fixes(w, r->input, r->repair);
    sfti_json_close(w, ']');
}

static void say_repaired(cli *c, const cli_output *out, const char *input,
                         const sft_repair *repair) {
    repaired r = { input, repair };
    cli_written written = CLI_WRITTEN_INIT;
    cli_written_file file = cli_repaired_file(out->path, repair);
    bool none = sft_repair_count(repair) == 0;
    if (!cli_is_json(c) && cli_print_fixes(c, input, repair) == 0) {
        cli_escaped(&c->out, sft_span_cstr(input));
        cli_text(&c->out, ": nothing to repair\n");
    }
    if (none && out->in_place && !cli_is_json(c)) return;
    written.input = input;
    written.output = out->path;
    written.files = &file;
    written.file_count = 1;
    written.more = put_repaired;
    written.ctx = &r;
    cli_say_written(c, &written);
}

static sft_code write_repaired(cli *c, const cli_output *out, const sft_repair *repair,
                               sft_error *err) {
    cli_progress progress;
    sft_sink sink;
    if (c->set.dry_run || (out->in_place && sft_repair_count(repair) == 0)) return SFT_OK;
    sft_code code = cli_output_sink(out, &sink, err);
    if (code) return code;
    sft_job job = cli_progress_begin(&progress, c, out->path);
    code = sft_repair_write(repair, sink, &job, err);
    cli_progress_end(&progress);
    return code;
}

static sft_code repair_file(cli *c, const char *input, const char **path, sft_error *err) {
    sft_repair *repair = NULL;
    cli_output out;
    sft_code code = cli_output_begin(&out, c, input, CLI_TARGET_EITHER, err);
    *path = out.blame;
    if (code) return code;
    *path = input;
    if (out.in_place) code = cli_edit_mend(c, input, err);
    if (!code) code = sft_repair_open(input, &c->open, &repair, err);
    if (code) return code;
    *path = out.path;
    code = write_repaired(c, &out, repair, err);
    if (!code) say_repaired(c, &out, input, repair);
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

static bool put_litter(cli *c, const char *name) {
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink = cli_result_sink(c);
    sfti_json_writer w;
    cli_result_begin(c);
    sfti_json_write(&w, &sink, 0, &err);
    cli_edit_result_head(&w, c->set.clean);
    sfti_json_key(&w, "dry_run");
    sfti_json_bool(&w, c->set.dry_run != 0);
    sfti_json_key(&w, "removed");
    sfti_json_cstr(&w, name);
    sfti_json_close(&w, '}');
    if (sfti_json_done(&w)) cli_complain(c, name, &err);
    cli_result_end(c);
    return !cli_is_over(c);
}

static bool print_litter(void *ctx, const char *name) {
    const cleaning *clean = ctx;
    cli *c = clean->c;
    size_t len = strlen(clean->folder);
    if (cli_is_json(c)) return put_litter(c, name);
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
    sfti_arena arena = { .alloc = c->alloc };
    sft_code code = repair_usage(c, count, &err);
    if (code) {
        cli_complain(c, "repair", &err);
        return CLI_FAILED;
    }
    cli_results_begin(c);
    if (c->set.clean) code = clean_folder(c, c->set.clean, &err);
    else if (cli_repairs_set(operands[0]))
        code = cli_repair_set(c, operands[0], &arena, &path, &err);
    else code = repair_file(c, operands[0], &path, &err);
    if (code && is_answer(code)) cli_refuse(c, path, &err);
    else if (code) cli_fail_input(c, path, &err);
    cli_results_end(c);
    sfti_arena_free(&arena);
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
    { "safetensors repair model.safetensors.index.json -o fixed", "a model in several files" },
    { "safetensors repair --clean ~/models", "remove what a crash left" },
    { NULL, NULL },
};

const cli_command cli_repair_command = {
    "repair", "IN -o OUT|--in-place", "write a bad file anew as a valid one",
    "Mends what has one meaning: bytes after the last tensor, NULs or no padding after the "
    "header, bytes that belong to no tensor, bytes that belong to two, names and metadata keys "
    "given twice (the last counts, as in the official reader), metadata that are no strings, "
    "entries spelled oddly, the layout of 2022. A line tells of each thing found and what became "
    "of it. The bytes of the tensors are copied as they are.\n"
    "A file that is cut short, whose shapes do not fit its bytes or whose header is no JSON "
    "cannot be repaired: nothing is written, and the message is that of check.\n"
    "Of a model in several files (an index, or a folder with one) each file is written anew into "
    "the folder OUT, new or empty, and the index with every tensor in the shard that has it and "
    "the right total_size. A folder with all shards of a model and no index gets one.",
    repair_examples,
    { repair_options, cli_in_place_options, cli_writing_options, cli_json_options,
      cli_reading_options, cli_common_options, NULL },
    { "OUT was written (or, with --clean, nothing is left)", "IN cannot be repaired",
      "IN could not be read, OUT not be written, or the usage was wrong" },
    0, 1, run_repair,
};
