/* check: models in other formats. */
#include "commands/check/check.h"

#include "base/result.h"
#include "support/cli.h"
#include "support/models.h"

/* A model in another format is valid if all of it can be imported: its table of contents holds
 * together, and with --deep its records have their checksums. */

typedef struct check_import {
    cli *c;
    const char *path;
    sft_import *import;
    sft_error err;
} check_import;

static void show_import_json(const check_import *check, bool valid) {
    cli *c = check->c;
    cli_object object = { .c = c, .path = check->path, .sink = cli_result_begin(c) };
    sfti_json_writer *w = &object.w;
    sfti_json_write(w, &object.sink, 0, &object.err);
    sfti_result_begin(w, check->path);
    sfti_json_put_bool(w, "ok", valid);
    sfti_json_put_cstr(w, "level", cli_level_names[c->set.level]);
    sfti_result_error(w, "error", valid ? NULL : &check->err);
    sfti_json_put_open(w, "findings", '[');
    sfti_json_close(w, ']');
    sfti_json_put_open(w, "notes", '[');
    sfti_json_close(w, ']');
    sfti_json_put_null(w, "deep");
    if (check->import) cli_put_import(c, w, check->path, check->import);
    cli_object_end(&object);
}

static void show_import(const check_import *check, bool valid) {
    cli *c = check->c;
    if (cli_is_json(c)) {
        show_import_json(check, valid);
        return;
    }
    if (!valid) {
        cli_verdict_line(c, check->path, &check->err);
        return;
    }
    const sft_import_format_info *format =
        sft_import_format_describe(sft_import_format_of(check->import));
    size_t count = sft_import_tensor_count(check->import);
    cli_styled(&c->out, CLI_BOLD, check->path);
    cli_printf(&c->out, ": valid, but not safetensors: %s, %zu tensor%s\n", format->title, count,
               count == 1 ? "" : "s");
    cli_say_import(c, check->path, check->import);
}

bool cli_check_import(cli *c, const char *path) {
    check_import check = { .c = c, .path = path, .err = SFT_ERROR_INIT };
    sft_import_format format;
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    options.alloc = &c->alloc;
    options.files = c->open.files;
    if (sft_import_recognise(path, c->open.files, &format, NULL)) return false;
    sft_code code = sft_import_open(path, &options, &check.import, &check.err);
    /* a zip archive that is cut is not recognised, and may be a checkpoint all the same */
    if (format == SFT_IMPORT_NONE && code != SFT_FOREIGN_TRUNCATED) {
        sft_import_close(check.import);
        return false;
    }
    if (!code && c->set.deep) {
        cli_progress progress;
        sft_job job = cli_progress_begin(&progress, c, path);
        code = sft_import_verify(check.import, &job, &check.err);
        cli_progress_end(&progress);
    }
    show_import(&check, !code);
    if (code) cli_status(c, CLI_NO);
    sft_import_close(check.import);
    return true;
}
