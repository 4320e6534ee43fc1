/* lora convert. Tests: tests/cli/lora. */
#include "adapter/convert.h"
#include "base/json.h"
#include "base/names.h"
#include "base/sink.h"
#include "commands/convert/layout.h"
#include "commands/lora/lora.h"
#include "os/io.h"
#include "support/files.h"
#include "support/output.h"
#include "support/parts.h"
#include "support/words.h"

#include <string.h>

#define NAMED_MOST 10
#define CONFIG_KEY "lora_adapter_metadata"
#define ALPHA_KEY "sft_lora_alpha"

typedef struct lora_conversion {
    cli *c;
    cli_parts parts;
    lora_adapter adapter;
    sfti_layout_text layouts;
    const sfti_layout_model *model;
    sfti_lora_format to;
    sfti_lora_converted made;
    sft_buffer config;
    const char *blame;
} lora_conversion;

static sft_code find_model(lora_conversion *run, sft_error *err) {
    cli *c = run->c;
    if (c->set.architecture) {
        return layout_model_asked(c, &run->layouts, &run->model, err);
    } else if (c->set.model) {
        cli_inputs inputs = { .count = 0 };
        const cli_input *input;
        sft_set *set = NULL;
        char *path = sfti_arena_copy(&run->parts.arena, c->set.model, strlen(c->set.model));
        if (!path) return sfti_fail_memory(err, 1);
        run->blame = path;
        sft_code code = cli_open_operand(c, path, &inputs, &input, &set, err);
        if (!code) run->model = layout_model_by(c, &run->layouts, set);
        sft_set_close(set);
        cli_inputs_free(&inputs);
        if (code) return code;
    } else {
        run->model = layout_model_by(c, &run->layouts, run->adapter.set);
    }
    run->blame = run->adapter.path;
    if (run->model) return SFT_OK;
    return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected an adapter that tells its model, or a "
                     "model whose layouts are known, found neither; --architecture or --model "
                     "tells it");
}

static sft_code check_matched(const lora_conversion *run, sft_error *err) {
    cli *c = run->c;
    const sfti_lora *lora = &run->adapter.lora;
    size_t count = run->made.unmatched_count + lora->unread_count;
    size_t most = c->set.verbose ? count : NAMED_MOST;
    if (run->made.out.count == 0)
        return sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected modules of %.*s, found none among %zu",
                         SFTI_CLIP(run->model->id, 64), lora->count);
    if (count == 0) return SFT_OK;
    cli_flush(&c->out);
    for (size_t i = 0; i < count && i < most; i++) {
        size_t unread = i - run->made.unmatched_count;
        cli_text(&c->err, "safetensors: ");
        cli_path(&c->err, run->adapter.path, ": not known: ");
        cli_quoted(&c->err, i < run->made.unmatched_count
                   ? lora->modules[run->made.unmatched[i]].name
                   : sft_set_tensor_at(lora->set, lora->unread[unread])->name);
        cli_text(&c->err, "\n");
    }
    if (count > most) cli_printf(&c->err, "safetensors: and %zu more\n", count - most);
    cli_flush(&c->err);
    if (c->set.ignore_unmatched) return SFT_OK;
    return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected modules whose names in the other layout "
                     "are known, found %zu others; --ignore-unmatched leaves them out", count);
}

/* ── The configuration of PEFT ── */

static bool more_than_one(const lora_conversion *run) {
    for (size_t i = 1; i < run->made.count; i++)
        if (!sft_span_equal(run->made.modules[i].component, run->made.modules[0].component))
            return true;
    return false;
}

static void key_of(sfti_json_writer *w, bool diffusers, sft_span component, const char *key) {
    char text[96];
    size_t len = diffusers && component.len < 60 ? component.len : 0;
    memcpy(text, component.data, len);
    if (len) text[len++] = '.';
    memcpy(text + len, key, strlen(key));
    sfti_json_key_span(w, (sft_span){ text, len + strlen(key) });
}

static bool differs(const sfti_lora_written *one, const sfti_lora_written *other, bool rank) {
    return rank ? one->rank != other->rank
                : one->alpha < other->alpha || one->alpha > other->alpha;
}

static sft_span written_name(const void *modules, uint32_t i) {
    return ((const sfti_lora_written *)modules)[i].name;
}

/* How many names of the table a name ends in, from a dot on. */
static size_t endings_of(const sfti_names *names, sft_span name) {
    size_t count = 0;
    for (size_t i = 1; i < name.len; i++)
        count += name.data[i - 1] == '.'
              && sfti_names_find(names, sfti_from(name, i)) != SFTI_NO_NAME;
    return count;
}

/* The modules that are not as the first one. PEFT takes the first pattern that a name is, or ends
 * in from a dot on: who ends in another's name stands before it, also where it is as the first. */
static sft_code put_pattern(lora_conversion *run, sfti_json_writer *w,
                            const sfti_lora_written *first, bool rank, sft_error *err) {
    const sfti_lora_written *modules = run->made.modules;
    sfti_names others;
    size_t count = run->made.count, most = 0;
    if (!sfti_names_draw(&others, count, written_name, modules, &run->parts.arena))
        return sfti_fail_memory(err, count);
    for (size_t i = 0; i < count; i++)
        if (sft_span_equal(modules[i].component, first->component)
            && differs(&modules[i], first, rank))
            (void)sfti_names_add(&others, modules[i].name, (uint32_t)i);
    for (size_t i = 0; i < count; i++) {
        size_t endings = endings_of(&others, modules[i].name);
        if (endings > most) most = endings;
    }
    for (size_t level = most + 1; level-- > 0;)
        for (size_t i = 0; i < count; i++) {
            const sfti_lora_written *one = &modules[i];
            if (!sft_span_equal(one->component, first->component)
                || endings_of(&others, one->name) != level
                || (level == 0 && !differs(one, first, rank)))
                continue;
            sfti_json_key_span(w, one->name);
            if (rank) sfti_json_uint(w, one->rank);
            else sfti_json_double(w, one->alpha);
        }
    return SFT_OK;
}

/* Members for the modules of one component; the first module's rank and alpha are those of all. */
static sft_code put_component(lora_conversion *run, sfti_json_writer *w,
                              const sfti_lora_written *first, sft_error *err) {
    bool diffusers = run->to == SFTI_LORA_DIFFUSERS;
    sft_span component = first->component;
    key_of(w, diffusers, component, "r");
    sfti_json_uint(w, first->rank);
    key_of(w, diffusers, component, "lora_alpha");
    sfti_json_double(w, first->alpha);
    key_of(w, diffusers, component, "target_modules");
    sfti_json_open(w, '[');
    for (size_t i = 0; i < run->made.count; i++) {
        const sfti_lora_written *one = &run->made.modules[i];
        if (sft_span_equal(one->component, component)) sfti_json_span(w, one->name);
    }
    sfti_json_close(w, ']');
    for (int rank = 1; rank >= 0; rank--) {
        key_of(w, diffusers, component, rank ? "rank_pattern" : "alpha_pattern");
        sfti_json_open(w, '{');
        sft_code code = put_pattern(run, w, first, rank == 1, err);
        if (code) return code;
        sfti_json_close(w, '}');
    }
    return SFT_OK;
}

static sft_code make_config(lora_conversion *run, sft_error *err) {
    bool diffusers = run->to == SFTI_LORA_DIFFUSERS;
    sft_sink sink = sft_sink_memory(&run->config);
    sfti_json_writer w;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    if (!diffusers) {
        sfti_json_put_cstr(&w, "peft_type", "LORA");
        sfti_json_put_null(&w, "task_type");
        sfti_json_put_cstr(&w, "bias", "none");
    }
    for (unsigned i = 0; i < run->model->count; i++) {
        sft_span name = run->model->components[i].name;
        size_t k = 0;
        while (k < run->made.count && !sft_span_equal(run->made.modules[k].component, name)) k++;
        sft_code code = k < run->made.count
                      ? put_component(run, &w, &run->made.modules[k], err) : SFT_OK;
        if (code) return code;
    }
    sfti_json_close(&w, '}');
    return sfti_json_done(&w);
}

/* ── Writing ── */

static sft_code put_metadata(lora_conversion *run, sft_error *err) {
    cli_parts *p = &run->parts;
    size_t count = 0;
    p->changed = true;
    sft_code code = cli_parts_drop_digests(run->c, p, true, err);
    sft_pair *pairs = sfti_arena_array(&p->arena, (uint64_t)p->metadata_count + 3, sizeof *pairs);
    if (!code && !pairs) code = sfti_fail_memory(err, p->metadata_count * sizeof *pairs);
    if (code) return code;
    bool format = false, peft = run->to == SFTI_LORA_PEFT || run->to == SFTI_LORA_DIFFUSERS;
    for (size_t i = 0; i < p->metadata_count; i++) {
        sft_pair pair = cli_parts_pair(p, i);
        if (cli_is(pair.key, CONFIG_KEY) || cli_is(pair.key, ALPHA_KEY)) continue;
        format = format || cli_is(pair.key, "format");
        pairs[count++] = pair;
    }
    if (peft && !format)
        pairs[count++] = (sft_pair){ sft_span_cstr("format"), sft_span_cstr("pt") };
    if (peft && run->made.alpha_form[0])
        pairs[count++] = (sft_pair){ sft_span_cstr(ALPHA_KEY),
                                     sft_span_cstr(run->made.alpha_form) };
    if (run->to == SFTI_LORA_DIFFUSERS)
        pairs[count++] = (sft_pair){ sft_span_cstr(CONFIG_KEY),
                                     { run->config.data, run->config.len } };
    p->pairs = pairs;
    p->metadata_count = count;
    p->has_metadata = p->has_metadata || count > 0;
    return SFT_OK;
}

static void put_converted(void *ctx, sfti_json_writer *w) {
    const lora_conversion *run = ctx;
    sfti_json_put_text(w, "architecture", run->model->id);
    sfti_json_put_uint(w, "modules", run->made.count);
    sfti_json_put_uint(w, "split", run->made.split);
    sfti_json_put_uint(w, "joined", run->made.joined);
    sfti_json_put_uint(w, "folded", run->made.folded);
    sfti_json_put_uint(w, "unmatched", run->made.unmatched_count + run->adapter.lora.unread_count);
}

/* adapter_config.json beside OUT: it appears when OUT is there, and is not OUT's without it. */
static sft_code open_config(lora_conversion *run, const char *path, sft_sink *sink,
                            sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    os_info there;
    char *config = cli_join_path(&run->parts.arena, cli_folder_of(path), "adapter_config.json");
    if (!config) return sfti_fail_memory(err, 1);
    run->blame = config;
    options.no_sync = run->c->set.no_sync != 0;
    options.no_clobber = !run->c->set.force;
    if (options.no_clobber && !sfti_os_info_path(config, false, &there)) {
        sft_code code = sfti_fail(err, SFT_EXISTS, "expected no such file beside OUT, found one");
        return code;
    }
    sft_code code = sft_sink_path(config, &options, sink, err);
    if (code) return code;
    code = sft_sink_write(sink, 0, run->config.data, run->config.len, err);
    if (code) sft_sink_abandon(sink);
    return code;
}

static sft_code convert_adapter(lora_conversion *run, char *operand, sft_error *err) {
    cli *c = run->c;
    static const sfti_lora_format formats[] = { SFTI_LORA_KOHYA, SFTI_LORA_PEFT, SFTI_LORA_COMFY,
                                                SFTI_LORA_DIFFUSERS };
    if (c->set.to == 0)
        return cli_usage_error(err, "expected --to kohya, peft, diffusers or comfy, found none");
    run->to = formats[c->set.to - 1];
    run->blame = operand;
    sft_code code = cli_output_agrees(c, err);
    if (!code && run->to == SFTI_LORA_PEFT) code = cli_output_no_stream(c, err);
    if (!code) code = lora_open(c, operand, false, &run->adapter, err);
    run->blame = run->adapter.path ? run->adapter.path : operand;
    if (!code) code = sfti_layouts_built_in(&run->adapter.lora.arena, &run->layouts, err);
    if (!code) code = cli_parts_open_one(c, operand, false, &run->parts, err);
    if (!code) code = find_model(run, err);
    if (code) return code;
    sft_span form = { "", 0 };
    for (size_t i = 0; i < run->parts.metadata_count; i++)
        if (cli_is(cli_parts_pair(&run->parts, i).key, ALPHA_KEY))
            form = cli_parts_pair(&run->parts, i).value;
    code = sfti_lora_convert(&run->adapter.lora, &run->layouts, run->model, run->to, form,
                             &c->alloc, &run->made, err);
    if (!code) code = check_matched(run, err);
    if (!code && run->to == SFTI_LORA_PEFT && more_than_one(run))
        code = sfti_fail(err, SFT_CAST_DTYPE, "expected modules of one component for PEFT, found "
                         "several; --to diffusers has a place for them");
    if (!code) code = make_config(run, err);
    cli_output out;
    if (!code) code = cli_output_begin(&out, c, run->adapter.path, CLI_TARGET_NEW, err);
    if (!code) code = cli_output_sources(c, &run->parts, &out, err);
    if (!code) code = put_metadata(run, err);
    if (code) return code;
    sft_sink config = { 0 };
    bool has_config = run->to == SFTI_LORA_PEFT && !c->set.dry_run;
    if (has_config) code = open_config(run, out.path, &config, err);
    if (code) return code;
    run->parts.parts = run->made.out.parts;
    run->parts.count = run->made.out.count;
    run->parts.untold = true;
    run->blame = out.path;
    code = cli_output_parts(&out, c, &run->parts, err);
    if (has_config) code = sfti_sink_end(&config, code, err);
    if (code) return code;
    cli_say_parts(c, &run->parts, out.path,
                  (cli_written){ .input = run->adapter.path, .dtype = SFT_DTYPE_COUNT,
                                 .more = put_converted, .ctx = run });
    if (!cli_is_json(c) && run->made.split + run->made.joined > 0)
        cli_printf(&c->out, "  %zu fused module%s divided, %zu made\n", run->made.split,
                   run->made.split == 1 ? "" : "s", run->made.joined);
    if (!cli_is_json(c) && run->made.folded > 0)
        cli_printf(&c->out, "  alphas of %zu modules are in their matrices now: the way back is "
                   "not exact\n", run->made.folded);
    return SFT_OK;
}

void lora_convert(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    lora_conversion run = { .c = c, .parts = { .arena = { .alloc = c->alloc } } };
    run.config.alloc = c->alloc;
    (void)count;
    sfti_layout_out_begin(&run.made.out, &c->alloc);
    sft_code code = convert_adapter(&run, operands[0], &err);
    if (code) lora_fail(c, run.blame, &err);
    sfti_lora_converted_free(&run.made);
    sft_buffer_free(&run.config);
    lora_close(&run.adapter);
    cli_parts_free(&run.parts);
}
