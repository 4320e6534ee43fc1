/* lora convert. Tests: tests/cli/lora, tests/layout/run.py. */
#include "base/error.h"
#include "base/json.h"
#include "base/sink.h"
#include "commands/convert/layout.h"
#include "commands/lora/lora.h"
#include "safetensors_adapter.h"
#include "support/adapters.h"
#include "support/files.h"
#include "support/output.h"
#include "support/parts.h"

#include <string.h>

#define NAMED_MOST 10

typedef struct lora_conversion {
    cli *c;
    cli_parts parts;
    lora_adapter adapter;
    sft_adapter_conversion *conversion;
    const char *blame;
} lora_conversion;

sft_code lora_architecture(cli *c, sfti_arena *arena, const sft_set *adapter, const char **blame,
                           const char **out, sft_error *err) {
    sfti_layout_text layouts;
    const sfti_layout_model *model = NULL;
    sft_code code = sfti_layouts_built_in(arena, &layouts, err);
    if (!code && c->set.architecture) {
        code = layout_model_asked(c, &layouts, &model, err);
    } else if (!code && c->set.model) {
        cli_inputs inputs = { .count = 0 };
        const cli_input *input;
        const char *before = *blame;
        sft_set *set = NULL;
        char *path = sfti_arena_copy(arena, c->set.model, strlen(c->set.model));
        if (!path) return sfti_fail_memory(err, 1);
        *blame = path;
        code = cli_open_operand(c, path, &inputs, &input, &set, err);
        if (!code)
            code = sfti_layout_model_by(&layouts, c->records, set, &c->alloc, &model, NULL, err);
        if (!code) *blame = before;
        sft_set_close(set);
        cli_inputs_free(&inputs);
    } else if (!code) {
        code = sfti_layout_model_by(&layouts, c->records, adapter, &c->alloc, &model, NULL, err);
    }
    if (code) return code;
    if (!model)
        return sfti_lora_no_model(c->set.model ? NULL : adapter,
                                  "; --architecture or --model tells it", err);
    *out = sfti_arena_copy(arena, model->id.data, model->id.len);
    return *out ? SFT_OK : sfti_fail_memory(err, model->id.len);
}

static sft_code check_matched(const lora_conversion *run, sft_error *err) {
    cli *c = run->c;
    size_t count = sft_adapter_conversion_unmatched(run->conversion);
    size_t most = c->set.verbose ? count : NAMED_MOST;
    if (count == 0) return SFT_OK;
    cli_flush(&c->out);
    for (size_t i = 0; i < count && i < most; i++) {
        cli_text(&c->err, "safetensors: ");
        cli_path(&c->err, run->adapter.path, ": not known: ");
        cli_quoted(&c->err, sft_adapter_conversion_unmatched_at(run->conversion, i));
        cli_text(&c->err, "\n");
    }
    if (count > most) cli_printf(&c->err, "safetensors: and %zu more\n", count - most);
    cli_flush(&c->err);
    if (c->set.ignore_unmatched) return SFT_OK;
    return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected modules whose names in the other layout "
                     "are known, found %zu others; --ignore-unmatched leaves them out", count);
}

static void put_converted(void *ctx, sfti_json_writer *w) {
    const lora_conversion *run = ctx;
    const sft_adapter_conversion_facts *told = sft_adapter_conversion_told(run->conversion);
    sfti_json_put_cstr(w, "architecture", told->architecture);
    sfti_json_put_uint(w, "modules", told->modules);
    sfti_json_put_uint(w, "split", told->split);
    sfti_json_put_uint(w, "joined", told->joined);
    sfti_json_put_uint(w, "folded", told->folded);
    sfti_json_put_uint(w, "unmatched", sft_adapter_conversion_unmatched(run->conversion));
}

/* adapter_config.json beside OUT: it appears when OUT is there, and is not OUT's without it. No
 * more people may read it than the adapter. */
static sft_code open_config(lora_conversion *run, const cli_output *out, sft_sink *sink,
                            sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_span text = sft_adapter_conversion_config(run->conversion);
    os_info there;
    char *config = cli_join_path(&run->parts.arena, cli_folder_of(out->path),
                                 CLI_ADAPTER_CONFIG);
    if (!config) return sfti_fail_memory(err, 1);
    run->blame = config;
    options.mode = out->options.mode;
    options.no_sync = run->c->set.no_sync != 0;
    options.no_clobber = !run->c->set.force;
    if (options.no_clobber && !sfti_os_info_path(config, false, &there))
        return sfti_fail(err, SFT_EXISTS, "already exists");
    if (run->c->set.dry_run) return SFT_OK;
    sft_code code = sft_sink_path(config, &options, sink, err);
    if (code) return code;
    code = sft_sink_write(sink, 0, text.data, text.len, err);
    if (code) sft_sink_abandon(sink);
    return code;
}

static sft_code convert_adapter(lora_conversion *run, char *operand, sft_error *err) {
    cli *c = run->c;
    sft_adapter_conversion_options options = SFT_ADAPTER_CONVERSION_OPTIONS_INIT;
    if (c->set.to == 0)
        return cli_usage_error(err, "expected --to kohya, peft, diffusers or comfy, found none");
    bool peft = c->set.to == SFT_ADAPTER_PEFT;
    run->blame = operand;
    sft_code code = cli_output_agrees(c, err);
    if (!code && peft) code = cli_output_no_stream(c, err);
    if (!code) code = cli_parts_open_each(c, (const char *const *)&operand, 1, &run->parts, err);
    if (run->parts.path) run->blame = run->parts.path;
    if (!code)
        code = lora_borrow(c, run->parts.sets[0], run->parts.opened[0], &run->adapter, err);
    if (!code)
        code = lora_architecture(c, &run->parts.arena, run->adapter.set, &run->blame,
                                 &options.architecture, err);
    if (code) return code;
    options.to = (uint32_t)c->set.to;
    options.config = cli_read_text(&run->adapter.config);
    options.alloc = &c->alloc;
    code = sft_adapter_conversion_new(run->adapter.set, &options, &run->conversion, err);
    if (!code) code = check_matched(run, err);
    if (!code) code = sfti_lora_open(run->adapter.set, options.config, &run->adapter.lora, err);
    if (!code) lora_warn_of_alpha(c, &run->adapter);
    cli_output out;
    if (code) return code;
    code = cli_output_begin(&out, c, run->adapter.path, CLI_TARGET_NEW, err);
    if (code) run->blame = out.blame;
    run->parts.configured = true;
    if (!code) code = cli_output_sources(c, &run->parts, &out, err);
    if (!code) run->parts.changed = true;
    if (!code) code = cli_parts_drop_digests(c, &run->parts, true, err);
    if (code) return code;
    if (peft && !cli_is_adapter_model(out.path))
        return cli_usage_error(err, "expected an OUT called adapter_model.safetensors for "
                               "PEFT, for only beside that adapter_config.json is read, found "
                               "another");
    sft_sink config = { 0 };
    bool has_config = peft && !c->set.dry_run;
    if (peft) code = open_config(run, &out, &config, err);
    if (code) return code;
    const char *beside = run->blame;
    cli_parts *p = &run->parts;
    size_t count;
    const sft_part *parts = sft_adapter_conversion_parts(run->conversion, &count);
    p->parts = sfti_arena_array(&p->arena, count, sizeof *parts);
    if (p->parts) memcpy(p->parts, parts, count * sizeof *parts);
    else code = sfti_fail_memory(err, count * sizeof *parts);
    p->count = count;
    p->pairs = sft_adapter_conversion_pairs(run->conversion, &p->metadata_count);
    p->has_metadata = p->has_metadata || p->metadata_count > 0;
    p->untold = true;
    run->blame = out.path;
    if (!code) code = cli_output_parts(&out, c, p, err);
    bool written = has_config && !code;
    if (has_config) code = sfti_sink_end(&config, code, err);
    if (written && code) {
        run->blame = beside;
        if (out.options.no_clobber) (void)sfti_os_unlink(out.path); /* ours alone */
    }
    if (code) return code;
    cli_say_parts(c, p, out.path,
                  (cli_written){ .input = run->adapter.path, .dtype = SFT_DTYPE_COUNT,
                                 .more = put_converted, .ctx = run });
    if (run->adapter.lora.base_count > 0) {
        cli_flush(&c->out);
        cli_text(&c->err, "safetensors: ");
        cli_path(&c->err, run->adapter.path,
                 ": %zu weights of the base model (base_layer) are left out\n",
                 run->adapter.lora.base_count);
        cli_flush(&c->err);
    }
    const sft_adapter_conversion_facts *told = sft_adapter_conversion_told(run->conversion);
    if (!cli_is_json(c) && told->split + told->joined > 0)
        cli_printf(&c->out, "  %zu fused module%s %sdivided, %zu made\n", told->split,
                   told->split == 1 ? "" : "s", c->set.dry_run ? "would be " : "", told->joined);
    if (!cli_is_json(c) && told->folded > 0)
        cli_printf(&c->out, "  alphas of %zu module%s %s: the way back is not exact\n",
                   told->folded, told->folded == 1 ? "" : "s",
                   c->set.dry_run ? "would go into the matrices" : "are in the matrices now");
    return SFT_OK;
}

void lora_convert(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    lora_conversion run = { .c = c, .parts = { .arena = { .alloc = c->alloc } } };
    (void)count;
    sft_code code = convert_adapter(&run, operands[0], &err);
    if (code) lora_fail(c, run.blame, &err);
    sft_adapter_conversion_free(run.conversion);
    lora_close(&run.adapter);
    cli_parts_free(&run.parts);
}
