/* convert --layout diffusers|single|comfy: whole models in another layout. Tests:
 * tests/cli/layout. */
#include "commands/convert/convert.h"
#include "commands/convert/layout.h"
#include "label/records.h"
#include "os/io.h"
#include "safetensors_info.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/models.h"
#include "support/output.h"
#include "support/records.h"
#include "support/remote.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

#define NAMED_MOST 10
#define SHARD_SIZE "10GB" /* as diffusers */

/* ── Components of what is given ── */

static sft_span metadata_of(const layout_run *run, size_t set, const char *key) {
    sft_span value = { "", 0 };
    const sft_file *file = sft_set_shard_at(run->parts.sets[set], 0);
    for (size_t i = 0; i < sft_file_metadata_count(file); i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        if (cli_is(pair.key, key)) value = pair.value;
    }
    return value;
}

/* The folder that a file lies in, which in a folder of diffusers is its component. */
static sft_span folder_of(const sft_set *set) {
    sft_span folder = cli_folder_of(sft_set_shard_path(set, 0));
    size_t at = folder.len;
    while (at > 0 && folder.data[at - 1] == '/') at--, folder.len--;
    while (at > 0 && folder.data[at - 1] != '/') at--;
    return (sft_span){ folder.data + at, folder.len - at };
}

static sft_code list_inputs(layout_run *run, sft_error *err) {
    cli_parts *p = &run->parts;
    size_t first = 0;
    run->inputs = sfti_arena_array(&p->arena, p->set_count, sizeof *run->inputs);
    if (!run->inputs) return sfti_fail_memory(err, p->set_count);
    for (size_t i = 0; i < p->set_count; i++) {
        size_t count = sft_set_tensor_count(p->sets[i]);
        run->inputs[i] = (sfti_layout_input){ p->parts + first, count, folder_of(p->sets[i]),
                                              metadata_of(run, i, SFTI_LAYOUT_PART_KEY) };
        first += count;
    }
    return sfti_layout_split(&run->layouts, run->inputs, p->set_count, &p->arena, &run->groups,
                             err);
}

/* ── The model ── */

const sfti_layout_model *layout_model_of(const sfti_layout_text *layouts, sft_span architecture) {
    const sfti_layout_model *model = sfti_layout_model_of(layouts, architecture);
    const sfti_record *record = sfti_record_find(cli_records(), SFTI_MODEL, architecture);
    for (int up = 0; !model && record && up < SFTI_RECORDS_PARENTS; up++, record = record->parent)
        model = sfti_layout_model_of(layouts, sft_span_cstr(record->id));
    return model;
}

sft_code layout_model_asked(const cli *c, const sfti_layout_text *layouts,
                            const sfti_layout_model **out, sft_error *err) {
    *out = layout_model_of(layouts, sft_span_cstr(c->set.architecture));
    return *out ? SFT_OK
                : cli_usage_error(err, "expected an architecture whose layouts are known for "
                                  "--architecture, found \"%s\"", c->set.architecture);
}

const sfti_layout_model *layout_model_by(const cli *c, const sfti_layout_text *layouts,
                                         const sft_set *set, const sfti_layout_model **exact) {
    const sfti_layout_model *model = NULL;
    sft_info_options how = SFT_INFO_OPTIONS_INIT;
    sft_info *info = NULL;
    sft_span value;
    how.alloc = &c->alloc;
    how.records = c->records;
    how.header_only = true;
    if (!sft_info_open(set, NULL, NULL, &how, &info, NULL)
        && sft_info_fact(info, SFT_FACT_ARCHITECTURE, &value, NULL, NULL)) {
        model = layout_model_of(layouts, value);
        if (exact) *exact = sfti_layout_model_of(layouts, value);
    }
    sft_info_close(info);
    return model;
}

static sft_code find_model(layout_run *run, sft_error *err) {
    const char *asked = run->c->set.architecture;
    if (asked) run->exact = sfti_layout_model_of(&run->layouts, sft_span_cstr(asked));
    if (asked) return layout_model_asked(run->c, &run->layouts, &run->model, err);
    for (size_t i = 0; !run->model && i < run->parts.set_count; i++)
        run->model = layout_model_by(run->c, &run->layouts, run->parts.sets[i], &run->exact);
    return SFT_OK;
}

sft_code layout_open(layout_run *run, char **operands, size_t count, sft_error *err) {
    run->blame = operands[0];
    run->c->enters_pipelines = true;
    sft_code code = cli_parts_open(run->c, (const char *const *)operands, count, &run->parts, err);
    run->c->enters_pipelines = false;
    if (run->parts.path) run->blame = run->parts.path;
    if (!code && run->parts.count == 0)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected tensors, found none");
    if (!code) code = sfti_layouts_built_in(&run->parts.arena, &run->layouts, err);
    if (!code) code = list_inputs(run, err);
    if (!code) code = find_model(run, err);
    return code ? code : sfti_layout_settle(&run->layouts, run->inputs, run->model, run->to,
                                            &run->parts.arena, &run->groups, err);
}

/* Whether a denoiser is among them whose model is not known. */
static sft_code check_model(const layout_run *run, sft_error *err) {
    for (size_t i = 0; i < run->groups.count; i++) {
        const sfti_layout_group *one = &run->groups.items[i];
        if (one->part && !run->model && cli_is(one->part->comfy, "diffusion_models")
            && run->groups.count > 1)
            return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected a model whose pipeline is known, "
                             "found none by its tensors; --architecture tells it");
    }
    return SFT_OK;
}

/* ── What is not matched ── */

static sft_code name_unmatched(layout_run *run, sft_error *err) {
    cli *c = run->c;
    size_t count = 0, most = c->set.verbose ? SIZE_MAX : NAMED_MOST;
    cli_flush(&c->out);
    run->unmatched = 0;
    for (size_t i = 0; i < run->groups.count; i++) {
        const sfti_layout_group *one = &run->groups.items[i];
        for (size_t k = 0; k < one->count; k++) {
            if (one->part && !one->unmatched[k]) continue;
            if (run->unmatched++ >= most) continue;
            cli_text(&c->err, "safetensors: ");
            cli_path(&c->err, sft_set_shard_path(run->parts.sets[one->input], 0), ": not known: ");
            cli_quoted(&c->err, (sft_span){ one->parts[k].spec.name.data - one->prefix.len,
                                            one->parts[k].spec.name.len + one->prefix.len });
            cli_text(&c->err, "\n");
            count++;
        }
    }
    if (run->unmatched > count)
        cli_printf(&c->err, "safetensors: and %zu more\n", run->unmatched - count);
    cli_flush(&c->err);
    if (run->unmatched == 0 || c->set.ignore_unmatched) return SFT_OK;
    return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected tensors whose places in the other layout "
                     "are known, found %zu others; --ignore-unmatched leaves them out",
                     run->unmatched);
}

/* ── Applying ── */

static sft_code apply_all(layout_run *run, sft_error *err) {
    sft_code code = SFT_OK;
    size_t known = 0, markers = 0;
    for (size_t i = 0; i < run->groups.count; i++) {
        const sfti_layout_group *one = &run->groups.items[i];
        known += one->part != NULL;
        run->blame = sft_set_shard_path(run->parts.sets[one->input], 0);
    }
    if (known == 0 || run->parts.count == 0)
        return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected a model whose layouts are known, "
                         "found none by its %zu tensors", run->parts.count);
    for (size_t i = 0; !code && i < run->groups.count; i++) {
        sfti_layout_group *one = &run->groups.items[i];
        if (!one->part) continue;
        sft_span prefix = { "", 0 };
        if (run->single) {
            sft_span told = metadata_of(run, one->input, SFTI_LAYOUT_PREFIX_KEY);
            bool has = false;
            for (size_t k = 0; k < run->layouts.prefix_count; k++)
                has = has || sft_span_equal(run->layouts.prefixes[k], told);
            prefix = has ? told : known > 1 ? one->target : one->prefix;
        }
        run->blame = sft_set_shard_path(run->parts.sets[one->input], 0);
        one->first = run->out.count;
        size_t kept = run->out.kept;
        sfti_side to = one->part->old ? SFTI_DIFFUSERS : run->to;
        code = sfti_layout_apply(&run->layouts, one->part, one->side, to, one->parts, one->count,
                                 prefix, &run->out, one->unmatched, err);
        bool denoiser = cli_is(one->part->comfy, "diffusion_models");
        for (size_t k = 0; !code && denoiser && k < run->groups.marker_count; k++) {
            const sft_part *marker = run->groups.markers[k];
            code = sfti_layout_out_add(&run->out, (sft_span){ "", 0 }, marker->spec.name,
                                       &marker->spec, marker, err);
            markers++;
        }
        if (!code && denoiser && run->to == SFTI_ORIGINAL && one->side == SFTI_DIFFUSERS)
            code = layout_tell_prediction(run, one, err);
        one->made = run->out.count - one->first;
        one->kept = run->out.kept - kept;
    }
    if (!code && markers != run->groups.marker_count)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected the denoiser that %zu markers (v_pred, "
                         "ztsnr) are about, found none or two", run->groups.marker_count);
    if (!code && run->to == SFTI_ORIGINAL) layout_tell_factors(run);
    return code ? code : name_unmatched(run, err);
}

/* ── Results ── */

static void put_layout(void *ctx, sfti_json_writer *w) {
    const layout_run *run = ctx;
    if (run->model) sfti_json_put_text(w, "pipeline", run->model->pipeline);
    else sfti_json_put_null(w, "pipeline");
    sfti_json_put_open(w, "components", '[');
    for (size_t i = 0; i < run->groups.count; i++) {
        const sfti_layout_group *one = &run->groups.items[i];
        if (!one->part) continue;
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "name", one->name);
        sfti_json_put_text(w, "layout", one->part->id);
        sfti_json_put_cstr(w, "from", one->side == SFTI_ORIGINAL ? "original" : "diffusers");
        sfti_json_put_uint(w, "tensors_before", one->count);
        sfti_json_put_uint(w, "tensors", one->made);
        sfti_json_put_uint(w, "kept", one->kept);
        sfti_json_put_bool(w, "config", one->has_config);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    sfti_json_put_uint(w, "unmatched", run->unmatched);
    sfti_json_put_uint(w, "left_out", run->groups.stray);
}

static void say(const layout_run *run) {
    cli *c = run->c;
    if (cli_is_json(c)) return;
    for (size_t i = 0; i < run->groups.count; i++) {
        const sfti_layout_group *one = &run->groups.items[i];
        if (!one->part) continue;
        cli_text(&c->out, "  ");
        cli_escaped(&c->out, one->name);
        cli_printf(&c->out, ": %zu tensor%s of %zu", one->made, one->made == 1 ? "" : "s",
                   one->count);
        if (one->kept)
            cli_printf(&c->out, ", %zu of them kept though diffusers has no place for %s",
                       one->kept, one->kept == 1 ? "it" : "them");
        if (run->folder && run->to == SFTI_DIFFUSERS && !one->has_config)
            cli_text(&c->out, "; no config.json: not all of it is in the tensors, take that of the "
                              "model it was made from");
        cli_text(&c->out, "\n");
    }
    if (run->groups.stray)
        cli_printf(&c->out, "  left out: %zu tensor%s that only training needs\n",
                   run->groups.stray, run->groups.stray == 1 ? "" : "s");
    if (run->to == SFTI_DIFFUSERS)
        for (size_t i = 0; i < run->groups.marker_count; i++) {
            cli_text(&c->out, "  the scheduler's configuration has to say what the marker ");
            cli_escaped(&c->out, run->groups.markers[i]->spec.name);
            cli_text(&c->out, " says\n");
        }
    if (run->to == SFTI_DIFFUSERS && run->folder && !run->exact)
        cli_text(&c->out, "  no model_index.json: the pipeline of this model is not known\n");
    if (run->to == SFTI_DIFFUSERS && run->model && run->model->lacks.len > 0) {
        cli_text(&c->out, "  a pipeline also needs ");
        cli_escaped(&c->out, run->model->lacks);
        cli_text(&c->out, "\n");
    }
}

/* ── Writing ── */

static sft_code write_single(layout_run *run, sft_error *err) {
    cli *c = run->c;
    cli_parts *p = &run->parts;
    cli_output out;
    const char *input = sft_set_shard_path(p->sets[0], 0);
    sft_code code = cli_output_begin(&out, c, p->path_count == 1 ? input : NULL, CLI_TARGET_NEW,
                                     err);
    run->blame = code ? out.blame : input;
    if (!code) code = cli_output_sources(c, p, &out, err);
    if (!code) code = layout_metadata(run, NULL, err);
    if (code) return code;
    run->blame = out.path;
    p->parts = run->out.parts;
    p->count = run->out.count;
    p->pairs = run->pairs;
    p->metadata_count = run->pair_count;
    p->has_metadata = p->has_metadata || run->pair_count > 0;
    code = cli_output_parts(&out, c, p, err);
    if (code) return code;
    cli_say_parts(c, p, out.path,
                  (cli_written){ .input = input, .dtype = SFT_DTYPE_COUNT, .more = put_layout,
                                 .ctx = run });
    say(run);
    return SFT_OK;
}

static sft_code write_folder(layout_run *run, sft_error *err) {
    cli *c = run->c;
    cli_written written = CLI_WRITTEN_INIT;
    sft_code code = layout_write(run, &written, err);
    if (code) return code;
    written.input = sft_set_shard_path(run->parts.sets[0], 0);
    written.output = c->set.output;
    written.more = put_layout;
    written.ctx = run;
    cli_say_written(c, &written);
    say(run);
    return SFT_OK;
}

static sft_code convert_layout(layout_run *run, char **operands, size_t count, sft_error *err) {
    cli *c = run->c;
    const char *layout = c->set.layout;
    run->folder = strcmp(layout, "single") != 0;
    run->single = !run->folder;
    run->comfy = strcmp(layout, "comfy") == 0;
    run->to = strcmp(layout, "diffusers") == 0 ? SFTI_DIFFUSERS : SFTI_ORIGINAL;
    if (!c->set.output) return cli_usage_error(err, "expected -o OUT, found none");
    sft_code code = run->folder ? cli_output_no_stream(c, err) : SFT_OK;
    if (!code)
        code = cli_parse_size(c->set.max_size ? c->set.max_size : SHARD_SIZE, &run->max_bytes, err);
    if (!code && run->folder && cli_output_is_file(c))
        code = cli_usage_error(err, "expected -o FOLDER with --layout %s, found a file", layout);
    if (code) return code;
    code = layout_open(run, operands, count, err);
    if (!code) code = check_model(run, err);
    if (!code) code = apply_all(run, err);
    if (code) return code;
    run->parts.untold = true;
    return run->folder ? write_folder(run, err) : write_single(run, err);
}

void convert_layouts(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    layout_run run = { .c = c, .parts = { .arena = { .alloc = c->alloc } } };
    sfti_layout_out_begin(&run.out, &c->alloc);
    sft_code code = convert_layout(&run, operands, count, &err);
    const char *unread = atomic_load(&run.parts.unread);
    if (code && unread) run.blame = unread;
    bool no = code == SFT_TENSOR_NOT_FOUND || code == SFT_SIZE_MISMATCH || code == SFT_INCOMPLETE
           || code == SFT_TENSOR_DUPLICATE;
    if (no) cli_refuse(c, run.blame, &err);
    else if (code) cli_fail_input(c, run.blame, &err);
    sfti_layout_out_free(&run.out);
    cli_parts_free(&run.parts);
}
