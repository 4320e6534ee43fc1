/* convert --layout diffusers|single|comfy: whole models in another layout. Tests:
 * tests/cli/layout. */
#include "commands/convert/convert.h"
#include "commands/convert/layout.h"
#include "support/adapters.h"
#include "support/files.h"
#include "support/output.h"
#include "support/records.h"
#include "support/remote.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

#define NAMED_MOST 10

/* ── The model ── */

sft_code layout_model_asked(const cli *c, const sfti_layout_text *layouts,
                            const sfti_layout_model **out, sft_error *err) {
    *out = sfti_layout_model_near(layouts, cli_records(), sft_span_cstr(c->set.architecture));
    return *out ? SFT_OK
                : cli_usage_error(err, "expected an architecture whose layouts are known for "
                                  "--architecture, found \"%s\"", c->set.architecture);
}

static sft_code check_asked(layout_run *run, sft_error *err) {
    sfti_layout_text layouts;
    const sfti_layout_model *model;
    sft_code code = sfti_layouts_built_in(&run->parts.arena, &layouts, err);
    return code ? code : layout_model_asked(run->c, &layouts, &model, err);
}

sft_code layout_open(layout_run *run, char **operands, size_t count, bool plans,
                     sft_layout_options options, sft_error *err) {
    cli *c = run->c;
    run->blame = operands[0];
    c->enters_pipelines = true;
    sft_code code = cli_parts_open(c, (const char *const *)operands, count, &run->parts, err);
    c->enters_pipelines = false;
    if (run->parts.path) run->blame = run->parts.path;
    return code ? code : layout_find(run, &run->parts, plans, options, err);
}

sft_code layout_find(layout_run *run, const cli_parts *p, bool plans, sft_layout_options options,
                     sft_error *err) {
    cli *c = run->c;
    size_t who = SIZE_MAX;
    sft_code code = c->set.architecture ? check_asked(run, err) : SFT_OK;
    if (code) return code;
    options.architecture = c->set.architecture;
    options.records = c->records;
    options.files = c->open.files;
    options.alloc = &c->alloc;
    const sft_set *const *sets = (const sft_set *const *)p->sets;
    code = plans ? sft_layout_conversion_new(sets, p->set_count, &options, &run->conversion, &who,
                                             err)
                 : sfti_layout_components(sets, p->set_count, &options, &run->conversion, &who,
                                          err);
    if (who < p->set_count) run->blame = sft_set_shard_path(p->sets[who], 0);
    return code;
}

void layout_close(layout_run *run) {
    sft_layout_conversion_free(run->conversion);
    cli_parts_free(&run->parts);
}

/* ── What is told before ── */

static void say_lost(const layout_run *run) {
    cli *c = run->c;
    bool lost;
    sft_span note;
    cli_flush(&c->out);
    for (size_t i = 0; note = sft_layout_conversion_note_at(run->conversion, i, &lost), note.len;
         i++) {
        if (!lost) continue;
        cli_text(&c->err, "safetensors: note: ");
        cli_escaped(&c->err, note);
        cli_text(&c->err, "\n");
    }
    cli_flush(&c->err);
}

static sft_code name_unmatched(layout_run *run, sft_error *err) {
    cli *c = run->c;
    size_t count = sft_layout_conversion_told(run->conversion)->unmatched, set;
    size_t most = c->set.verbose ? count : NAMED_MOST;
    for (size_t i = 0; i < count && i < most; i++) {
        sft_span name = sft_layout_conversion_unmatched_at(run->conversion, i, &set);
        cli_text(&c->err, "safetensors: ");
        cli_path(&c->err, sft_set_shard_path(run->parts.sets[set], 0), ": not known: ");
        cli_quoted(&c->err, name);
        cli_text(&c->err, "\n");
        run->blame = sft_set_shard_path(run->parts.sets[set], 0);
    }
    if (count > most) cli_printf(&c->err, "safetensors: and %zu more\n", count - most);
    cli_flush(&c->err);
    if (count == 0 || c->set.ignore_unmatched) return SFT_OK;
    return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected tensors whose places in the other layout "
                     "are known, found %zu others; --ignore-unmatched leaves them out", count);
}

/* ── Results ── */

static void put_layout(void *ctx, sfti_json_writer *w) {
    const sft_layout_conversion *conversion = ((const layout_run *)ctx)->conversion;
    const sft_layout_facts *told = sft_layout_conversion_told(conversion);
    const sft_layout_component *one;
    if (told->pipeline.len) sfti_json_put_text(w, "pipeline", told->pipeline);
    else sfti_json_put_null(w, "pipeline");
    sfti_json_put_open(w, "components", '[');
    for (size_t i = 0; (one = sft_layout_conversion_component_at(conversion, i)) != NULL; i++) {
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "name", one->name);
        sfti_json_put_text(w, "layout", one->layout);
        sfti_json_put_cstr(w, "from", one->diffusers ? "diffusers" : "original");
        sfti_json_put_uint(w, "tensors_before", one->tensors_before);
        sfti_json_put_uint(w, "tensors", one->tensors);
        sfti_json_put_uint(w, "kept", one->kept);
        sfti_json_put_bool(w, "config", one->config.len > 0);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    sfti_json_put_uint(w, "unmatched", told->unmatched);
    sfti_json_put_uint(w, "left_out", told->left_out);
    sft_span note;
    bool lost;
    sfti_json_put_open(w, "notes", '[');
    for (size_t i = 0; note = sft_layout_conversion_note_at(conversion, i, &lost), note.len; i++)
        if (!lost) sfti_json_span(w, note);
    sfti_json_close(w, ']');
}

static void say(const layout_run *run, uint32_t to) {
    cli *c = run->c;
    const sft_layout_component *one;
    size_t left_out = sft_layout_conversion_told(run->conversion)->left_out;
    sft_span note;
    bool lost;
    if (cli_is_json(c)) return;
    for (size_t i = 0; (one = sft_layout_conversion_component_at(run->conversion, i)) != NULL;
         i++) {
        cli_text(&c->out, "  ");
        cli_escaped(&c->out, one->name);
        cli_printf(&c->out, ": %zu tensor%s of %zu", one->tensors, one->tensors == 1 ? "" : "s",
                   one->tensors_before);
        if (one->kept)
            cli_printf(&c->out, ", %zu of them kept though diffusers has no place for %s",
                       one->kept, one->kept == 1 ? "it" : "them");
        if (to == SFT_LAYOUT_DIFFUSERS && one->config.len == 0)
            cli_text(&c->out, "; no config.json: not all of it is in the tensors, take that of the "
                              "model it was made from");
        cli_text(&c->out, "\n");
    }
    if (left_out)
        cli_printf(&c->out, "  left out: %zu tensor%s that only training needs\n", left_out,
                   left_out == 1 ? "" : "s");
    for (size_t i = 0; note = sft_layout_conversion_note_at(run->conversion, i, &lost), note.len;
         i++) {
        if (lost) continue;
        cli_text(&c->out, "  ");
        cli_escaped(&c->out, note);
        cli_text(&c->out, "\n");
    }
}

/* ── Writing ── */

static sft_code write_single(layout_run *run, sft_error *err) {
    cli *c = run->c;
    cli_parts *p = &run->parts;
    cli_output out;
    size_t count;
    const char *input = sft_set_shard_path(p->sets[0], 0);
    sft_code code = cli_output_begin(&out, c, p->path_count == 1 ? input : NULL, CLI_TARGET_NEW,
                                     err);
    run->blame = code ? out.blame : input;
    if (!code) code = cli_output_sources(c, p, &out, err);
    if (!code) code = cli_parts_drop_digests(c, p, true, err);
    if (code) return code;
    const sft_part *parts = sft_layout_conversion_parts(run->conversion, &count);
    run->blame = out.path;
    p->parts = sfti_arena_array(&p->arena, count, sizeof *parts);
    if (!p->parts) return sfti_fail_memory(err, count * sizeof *parts);
    memcpy(p->parts, parts, count * sizeof *parts);
    p->count = count;
    p->pairs = sft_layout_conversion_pairs(run->conversion, &p->metadata_count);
    p->has_metadata = p->has_metadata || p->metadata_count > 0;
    code = cli_output_parts(&out, c, p, err);
    if (code) return code;
    cli_say_parts(c, p, out.path,
                  (cli_written){ .input = input, .dtype = SFT_DTYPE_COUNT, .more = put_layout,
                                 .ctx = run });
    say(run, SFT_LAYOUT_SINGLE);
    return SFT_OK;
}

static sft_code list_written(layout_run *run, cli_written *written, sft_error *err) {
    sfti_arena *arena = &run->parts.arena;
    const sft_layout_file *file;
    size_t count = 0;
    while (sft_layout_conversion_file_at(run->conversion, count)) count++;
    cli_written_file *files = sfti_arena_array(arena, count, sizeof *files);
    if (!files) return sfti_fail_memory(err, count * sizeof *files);
    for (size_t i = 0; (file = sft_layout_conversion_file_at(run->conversion, i)) != NULL; i++) {
        if (file->tensors == 0) continue;
        char *path = cli_join_path(arena, sft_span_cstr(run->c->set.output), file->path);
        if (!path) return sfti_fail_memory(err, strlen(file->path));
        files[written->file_count++] = (cli_written_file){ path, file->tensors, file->bytes };
    }
    written->files = files;
    written->is_set = written->file_count > 1;
    return SFT_OK;
}

static sft_code save_folder(layout_run *run, sft_error *err) {
    cli *c = run->c;
    sft_save_set_options options = SFT_SAVE_SET_OPTIONS_INIT;
    cli_output from = { .in_place = true, .options = SFT_PATH_OPTIONS_INIT };
    cli_progress progress;
    if (c->set.dry_run) return cli_check_folder(c, c->set.output, err);
    options.no_sync = c->set.no_sync != 0;
    options.in_place_unsafe = c->set.in_place_unsafe != 0;
    sft_code code = cli_output_sources(c, &run->parts, &from, err);
    if (code) return code;
    if (from.options.has_mtime) options.mtimes_ns = &from.options.mtime_ns;
    sft_job job = cli_progress_begin(&progress, c, c->set.output);
    code = sft_layout_conversion_save_folder(run->conversion, c->set.output, &options,
                                                      &job, err);
    cli_progress_end(&progress);
    return code;
}

static sft_code write_folder(layout_run *run, uint32_t to, sft_error *err) {
    cli *c = run->c;
    cli_written written = CLI_WRITTEN_INIT;
    const char *input = sft_set_shard_path(run->parts.sets[0], 0);
    run->parts.changed = true;
    sft_code code = cli_check_adapter_config(c, run->parts.opened, run->parts.set_count, NULL, err);
    if (!code) code = cli_parts_drop_digests(c, &run->parts, true, err);
    if (!code) code = save_folder(run, err);
    bool of_input = code == SFT_IO_READ || code == SFT_IO_SHRUNK || cli_is_remote_error(code);
    run->blame = of_input ? input : c->set.output;
    if (!code) code = list_written(run, &written, err);
    if (code) return code;
    written.input = input;
    written.output = c->set.output;
    written.more = put_layout;
    written.ctx = run;
    cli_say_written(c, &written);
    say(run, to);
    return SFT_OK;
}

/* An option of other conversions that was given; NULL: none. */
static const char *other_option(const cli_settings *set) {
    return set->dtype ? "--dtype" : set->dequantize ? "--dequantize"
         : cli_is_matching(set) ? "--match or --exclude" : set->scale ? "--scale"
         : set->only.count + set->spare.count ? "--only or --spare"
         : set->from_quantised ? "--from-quantised" : set->cast_scaled ? "--cast-scaled"
         : set->saturate ? "--saturate" : set->opaque ? "--opaque"
         : set->in_place ? "--in-place"
         : set->recursive ? "-r" : set->list_branches ? "--list" : NULL;
}

/* Options of imports say something of one of the models. */
static sft_code check_import(layout_run *run, sft_error *err) {
    const cli_settings *set = &run->c->set;
    const char *option = convert_import_option(set);
    if (option && !run->parts.imported) return cli_usage_error(err, CLI_NO_IMPORT, option);
    return set->as_dtypes.count > 0 && !run->parts.as_matched
             ? sfti_fail(err, SFT_TENSOR_NOT_FOUND, CLI_NO_AS)
             : SFT_OK;
}

static sft_code convert_layout(layout_run *run, char **operands, size_t count, sft_error *err) {
    cli *c = run->c;
    const char *layout = c->set.layout;
    sft_layout_options options = SFT_LAYOUT_OPTIONS_INIT;
    options.to = strcmp(layout, "single") == 0 ? SFT_LAYOUT_SINGLE
               : strcmp(layout, "comfy") == 0 ? SFT_LAYOUT_COMFY : SFT_LAYOUT_DIFFUSERS;
    bool folder = options.to != SFT_LAYOUT_SINGLE;
    const char *other = other_option(&c->set);
    if (other)
        return cli_usage_error(err, "expected --layout without %s, found both: convert twice",
                               other);
    if (c->set.max_size && options.to != SFT_LAYOUT_DIFFUSERS)
        return cli_usage_error(err, CLI_NO_SHARDS, layout);
    if (!c->set.output) return cli_usage_error(err, "expected -o OUT, found none");
    sft_code code = folder ? cli_output_no_stream(c, err) : SFT_OK;
    if (!code && c->set.max_size) code = cli_parse_size(c->set.max_size, &options.max_bytes, err);
    if (!code && folder && cli_output_is_file(c))
        code = cli_usage_error(err, "expected -o FOLDER with --layout %s, found a file", layout);
    if (code) return code;
    options.ignore_unmatched = c->set.ignore_unmatched != 0;
    code = layout_open(run, operands, count, true, options, err);
    if (!code) code = check_import(run, err);
    if (code) return code;
    say_lost(run);
    code = name_unmatched(run, err);
    if (code) return code;
    run->parts.changed = run->parts.untold = true;
    return folder ? write_folder(run, options.to, err) : write_single(run, err);
}

void convert_layouts(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    layout_run run = { .c = c, .parts = { .arena = { .alloc = c->alloc } } };
    sft_code code = convert_layout(&run, operands, count, &err);
    bool no = code == SFT_TENSOR_NOT_FOUND || code == SFT_SIZE_MISMATCH || code == SFT_INCOMPLETE
           || code == SFT_TENSOR_DUPLICATE;
    if (no) cli_refuse(c, run.blame, &err);
    else if (code) cli_fail_input(c, run.blame, &err);
    layout_close(&run);
}
