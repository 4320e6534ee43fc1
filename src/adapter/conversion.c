/* Adapters under other names, for programs: which model it is, the configuration of PEFT, the file.
 * Tests: test_adapter_factors.c, tests/layout/run.py. */
#include "adapter/convert.h"
#include "adapter/merge.h"

#include "base/error.h"
#include "base/json.h"
#include "base/names.h"
#include "base/options.h"
#include "base/sink.h"
#include "label/records.h"
#include "layout/conversion.h"
#include "os/io.h"
#include "safetensors_adapter.h"

#include <string.h>

#define ALPHA_KEY "sft_lora_alpha"

struct sft_adapter_conversion {
    sft_allocator alloc;
    sfti_arena arena;
    sfti_lora lora;
    sfti_layout_text layouts;
    const sfti_layout_model *model;
    sft_adapter_format to;
    bool ignore_unmatched;
    sfti_lora_converted made;
    sft_buffer config;
    char alpha_form[24]; /* of the input */
    sft_adapter_conversion_facts told;
    sft_pair *pairs;
    size_t pair_count;
};

static SFTI_OPTIONS_TAKE(conversion_options_take, sft_adapter_conversion_options,
                         SFT_ADAPTER_CONVERSION_OPTIONS_INIT, alloc)

/* ── The model ── */

static sft_code find_converted_model(sft_adapter_conversion *run,
                                     const sft_adapter_conversion_options *own, sft_error *err) {
    if (own->architecture) {
        run->model = sfti_layout_model_near(&run->layouts, sfti_records_built_in(),
                                            sft_span_cstr(own->architecture));
        return run->model ? SFT_OK
                          : sfti_misuse(err, "expected an architecture whose layouts are known, "
                                        "found \"%s\"", own->architecture);
    }
    sft_code code = sfti_layout_model_by(&run->layouts, NULL,
                                         own->model ? own->model : run->lora.set, &run->alloc,
                                         &run->model, NULL, err);
    if (code || run->model) return code;
    return sfti_lora_no_model(own->model ? NULL : run->lora.set, "", err);
}

/* ── The configuration of PEFT ── */

static bool more_than_one(const sft_adapter_conversion *run) {
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
static sft_code put_pattern(sft_adapter_conversion *run, sfti_json_writer *w,
                            const sfti_lora_written *first, bool rank, sft_error *err) {
    const sfti_lora_written *modules = run->made.modules;
    sfti_names others;
    size_t count = run->made.count, most = 0;
    if (!sfti_names_draw(&others, count, written_name, modules, &run->arena))
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
static sft_code put_component(sft_adapter_conversion *run, sfti_json_writer *w,
                              const sfti_lora_written *first, sft_error *err) {
    bool diffusers = run->to == SFT_ADAPTER_DIFFUSERS, plain = false, dora = false, bias = false;
    sft_span component = first->component;
    for (size_t i = 0; i < run->made.count; i++) {
        const sfti_lora_written *one = &run->made.modules[i];
        if (!sft_span_equal(one->component, component)) continue;
        dora = dora || one->dora;
        plain = plain || !one->dora;
        bias = bias || one->bias;
    }
    if (dora && (plain || bias)) /* PEFT would leave out the magnitudes, or make its own */
        return sfti_fail(err, SFT_CAST_DTYPE, "expected DoRA's magnitudes in all modules, and no "
                         "bias, for one configuration of PEFT, found %s",
                         plain ? "modules without" : "a bias");
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
    if (dora) {
        key_of(w, diffusers, component, "use_dora");
        sfti_json_raw(w, sft_span_cstr("true"));
    }
    if (bias) {
        key_of(w, diffusers, component, "lora_bias");
        sfti_json_raw(w, sft_span_cstr("true"));
    }
    return SFT_OK;
}

static sft_code make_config(sft_adapter_conversion *run, sft_error *err) {
    bool diffusers = run->to == SFT_ADAPTER_DIFFUSERS;
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

/* ── The file ── */

/* Pairs of the adapter but digests and what the new names make stale. */
static sft_code put_pairs(sft_adapter_conversion *run, sft_error *err) {
    static const char *const stale[] = { SFTI_LORA_CONFIG_KEY, ALPHA_KEY, "ss_network_dim",
                                         "ss_network_alpha" };
    bool format = false, peft = run->to == SFT_ADAPTER_PEFT || run->to == SFT_ADAPTER_DIFFUSERS;
    size_t count;
    sft_pair *pairs;
    sft_code code = sfti_recipe_pairs(run->lora.set, &run->arena, stale, run->made.resized ? 4 : 2,
                                      SFTI_KEEPS_RECIPES, &pairs, &count, err);
    for (size_t i = 0; !code && i < count; i++) format = format || sfti_is(pairs[i].key, "format");
    if (code) return code;
    if (peft && !format)
        pairs[count++] = (sft_pair){ sft_span_cstr("format"), sft_span_cstr("pt") };
    if (peft && run->alpha_form[0])
        pairs[count++] = (sft_pair){ sft_span_cstr(ALPHA_KEY),
                                     sft_span_cstr(run->alpha_form) };
    if (run->to == SFT_ADAPTER_DIFFUSERS)
        pairs[count++] = (sft_pair){ sft_span_cstr(SFTI_LORA_CONFIG_KEY),
                                     { run->config.data, run->config.len } };
    run->pairs = pairs;
    run->pair_count = count;
    return SFT_OK;
}

/* "F32 0": dtype and rank of all alphas, "none", or "" if they differ. */
static void alpha_form_of(const sfti_lora *lora, char *out, size_t cap) {
    const sft_tensor *first = NULL;
    size_t with = 0;
    bool same = true;
    for (size_t i = 0; i < lora->count; i++) {
        const sft_tensor *alpha = sfti_lora_tensor(lora, &lora->modules[i], SFTI_SLOT_ALPHA);
        if (!alpha) continue;
        if (with++ == 0) first = alpha;
        same = same && alpha->dtype == first->dtype && alpha->rank == first->rank;
    }
    const char *name = first ? sft_dtype_describe(first->dtype)->name : "none";
    size_t len = strlen(name);
    *out = '\0';
    if (!same || (with && with != lora->count) || len + 3 > cap) return;
    memcpy(out, name, len + 1);
    if (!first) return;
    out[len] = ' ';
    out[len + 1] = first->rank ? '1' : '0';
    out[len + 2] = '\0';
}

static sft_code convert_adapter(sft_adapter_conversion *run,
                                const sft_adapter_conversion_options *own, sft_error *err) {
    sft_span form = { "", 0 };
    sft_code code = sfti_layouts_built_in(&run->arena, &run->layouts, err);
    if (!code) code = find_converted_model(run, own, err);
    if (code) return code;
    for (size_t s = sft_set_shard_count(run->lora.set); s-- > 0;)
        (void)sft_file_metadata_get_cstr(sft_set_shard_at(run->lora.set, s), ALPHA_KEY, &form);
    code = sfti_lora_convert(&run->lora, &run->layouts, run->model, run->to, form, &run->alloc,
                             &run->made, err);
    alpha_form_of(&run->lora, run->alpha_form, sizeof run->alpha_form);
    char *id = sfti_arena_copy(&run->arena, run->model->id.data, run->model->id.len);
    if (!code && !id) return sfti_fail_memory(err, run->model->id.len);
    if (!code && run->made.out.count == 0)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected modules of %s, found none among "
                         "%zu%s", id, run->lora.count,
                         sfti_convert_is_of_encoders(run->lora.set)
                             ? ": their names do not tell the text encoder" : "");
    if (!code && run->to == SFT_ADAPTER_PEFT && more_than_one(run))
        code = sfti_fail(err, SFT_CAST_DTYPE, "expected modules of one component for PEFT, found "
                         "several, which diffusers' format has a place for");
    if (!code && (run->to == SFT_ADAPTER_PEFT || run->to == SFT_ADAPTER_DIFFUSERS))
        code = make_config(run, err);
    if (!code) code = put_pairs(run, err);
    run->told = (sft_adapter_conversion_facts){ id, run->made.count, run->made.split,
                                                run->made.joined, run->made.folded };
    return code;
}

sft_code sft_adapter_conversion_new(const sft_set *adapter,
                                    const sft_adapter_conversion_options *options,
                                    sft_adapter_conversion **out, sft_error *err) {
    sft_adapter_conversion_options own;
    if (out) *out = NULL;
    if (!adapter || !out)
        return sfti_misuse(err, "expected an adapter and a place for it, found NULL");
    sft_code code = conversion_options_take(options, &own, err);
    if (code) return code;
    if (own.to == SFT_ADAPTER_USUAL || own.to > SFT_ADAPTER_DIFFUSERS)
        return sfti_misuse(err, "expected a format that is known, found another number");
    sft_allocator alloc = sfti_allocator(own.alloc);
    sft_adapter_conversion *run = sfti_take(&alloc, sizeof *run);
    if (!run) return sfti_fail_memory(err, sizeof *run);
    memset(run, 0, sizeof *run);
    run->alloc = run->arena.alloc = run->lora.arena.alloc = run->config.alloc = alloc;
    run->to = (sft_adapter_format)own.to;
    run->ignore_unmatched = own.ignore_unmatched;
    sfti_layout_out_begin(&run->made.out, &run->alloc);
    code = sfti_lora_open(adapter, own.config, &run->lora, err);
    if (!code && run->lora.count == 0)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected an adapter (LoRA and the like), found none of its tensors");
    if (!code) code = convert_adapter(run, &own, err);
    if (code) sft_adapter_conversion_free(run);
    else *out = run;
    return sfti_lora_told(code, err);
}

void sft_adapter_conversion_free(sft_adapter_conversion *run) {
    if (!run) return;
    sft_allocator alloc = run->alloc;
    sfti_lora_converted_free(&run->made);
    sft_buffer_free(&run->config);
    sfti_lora_close(&run->lora);
    sfti_arena_free(&run->arena);
    sfti_release(&alloc, run, sizeof *run);
}

const sft_adapter_conversion_facts *sft_adapter_conversion_told(
    const sft_adapter_conversion *run) {
    return &run->told;
}

size_t sft_adapter_conversion_unmatched(const sft_adapter_conversion *run) {
    return run->made.unmatched_count + run->lora.unread_count;
}

sft_span sft_adapter_conversion_unmatched_at(const sft_adapter_conversion *run, size_t i) {
    size_t modules = run->made.unmatched_count;
    if (i >= sft_adapter_conversion_unmatched(run)) return (sft_span){ "", 0 };
    if (i < modules) return run->lora.modules[run->made.unmatched[i]].name;
    return sft_set_tensor_at(run->lora.set, run->lora.unread[i - modules])->name;
}

sft_span sft_adapter_conversion_config(const sft_adapter_conversion *run) {
    bool peft = run->to == SFT_ADAPTER_PEFT;
    return peft ? (sft_span){ run->config.data, run->config.len } : (sft_span){ "", 0 };
}

const sft_part *sft_adapter_conversion_parts(const sft_adapter_conversion *run, size_t *count) {
    if (count) *count = run->made.out.count;
    return run->made.out.parts;
}

const sft_pair *sft_adapter_conversion_pairs(const sft_adapter_conversion *run, size_t *count) {
    if (count) *count = run->pair_count;
    return run->pairs;
}

sft_code sft_adapter_conversion_save(const sft_adapter_conversion *run, sft_sink sink,
                                     const sft_job *job, sft_error *err) {
    sft_job own;
    size_t left = run ? sft_adapter_conversion_unmatched(run) : 0;
    sft_code code = sfti_take_job(job, &own, err);
    if (!code && !run) code = sfti_misuse(err, "expected a conversion, found NULL");
    if (!code && left && !run->ignore_unmatched)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected modules whose names in the other "
                         "layout are known, found %zu others", left);
    if (code) {
        sft_sink_abandon(&sink);
        return code;
    }
    return sfti_lora_save(run->made.out.parts, run->made.out.count, run->pairs, run->pair_count,
                          &run->alloc, sink, &own, err);
}
