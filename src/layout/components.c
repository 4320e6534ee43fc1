/* Which model is to be converted, and its components. Tests: test_layout_public.c,
 * tests/cli/layout. */
#include "layout/conversion.h"

#include "base/error.h"
#include "base/options.h"
#include "safetensors_info.h"
#include "text/text.h"

#include <string.h>

/* ── The model ── */

const sfti_layout_model *sfti_layout_model_near(const sfti_layout_text *layouts,
                                                const sfti_records *records, sft_span id) {
    const sfti_layout_model *model = sfti_layout_model_of(layouts, id);
    const sfti_record *record = sfti_record_find(records, SFTI_MODEL, id);
    for (; !model && record; record = record->parent) /* in no ring */
        model = sfti_layout_model_of(layouts, sft_span_cstr(record->id));
    return model;
}

static const sfti_records *records_of(const sft_records *records) {
    return records ? sfti_records_of(records) : sfti_records_built_in();
}

sft_code sfti_layout_model_by(const sfti_layout_text *layouts, const sft_records *records,
                              const sft_set *set, const sft_allocator *alloc,
                              const sfti_layout_model **out, const sfti_layout_model **exact,
                              sft_error *err) {
    sft_info_options how = SFT_INFO_OPTIONS_INIT;
    sft_info *info = NULL;
    sft_span value;
    how.alloc = alloc;
    how.records = records;
    how.header_only = true;
    *out = NULL;
    sft_code code = sft_info_open(set, NULL, NULL, &how, &info, err);
    if (!code && sft_info_fact(info, SFT_FACT_ARCHITECTURE, &value, NULL, NULL)) {
        *out = sfti_layout_model_near(layouts, records_of(records), value);
        if (exact) *exact = sfti_layout_model_of(layouts, value);
    }
    sft_info_close(info);
    return code;
}

static sft_code find_layout_model(sft_layout_conversion *run, sft_error *err) {
    const char *asked = run->options.architecture;
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && !asked && !run->model && i < run->set_count; i++)
        code = sfti_layout_model_by(&run->layouts, run->options.records, run->sets[i], &run->alloc,
                                    &run->model, &run->exact, err);
    if (!asked) return code;
    run->exact = sfti_layout_model_of(&run->layouts, sft_span_cstr(asked));
    run->model = sfti_layout_model_near(&run->layouts, records_of(run->options.records),
                                        sft_span_cstr(asked));
    return run->model ? SFT_OK
                      : sfti_misuse(err, "expected an architecture whose layouts are known, found "
                                    "\"%.*s\"", SFTI_CLIP(sft_span_cstr(asked), 64));
}

/* ── Its components ── */

static SFTI_OPTIONS_TAKE(take_layout, sft_layout_options, SFT_LAYOUT_OPTIONS_INIT, alloc)

static bool is_like(const sfti_naming_part *part, const sfti_naming_part *other) {
    while (part && part != other) part = part->like;
    return part != NULL;
}

/* A denoiser that is not the model's, whose architecture was given. */
static sft_code check_denoiser(const sft_layout_conversion *run, sft_error *err) {
    for (size_t i = 0; run->options.architecture && run->model && i < run->groups.count; i++) {
        const sfti_layout_group *one = &run->groups.items[i];
        bool has = false, own = false;
        if (!one->part || !sfti_is(one->part->comfy, "diffusion_models")) continue;
        for (unsigned k = 0; k < run->model->count; k++) {
            const sfti_naming_part *part = run->model->components[k].part;
            has = has || sfti_is(part->comfy, "diffusion_models");
            own = own || is_like(one->part, part) || is_like(part, one->part);
        }
        if (has && !own)
            return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected components of %.*s, found the "
                             "%.*s of %.*s", SFTI_CLIP(run->model->id, 64),
                             SFTI_CLIP(one->part->folder, 64), SFTI_CLIP(one->part->id, 64));
    }
    return SFT_OK;
}

static sft_code find_components(sft_layout_conversion *run, sft_error *err) {
    size_t tensors = 0;
    sft_source *sources;
    sft_code code = sfti_layouts_built_in(&run->arena, &run->layouts, err);
    run->inputs = sfti_arena_array(&run->arena, run->set_count, sizeof *run->inputs);
    if (!code && !run->inputs) code = sfti_fail_memory(err, run->set_count);
    for (size_t i = 0; !code && i < run->set_count; i++) {
        run->blames = i;
        code = sfti_layout_input_of(run->sets[i], &run->arena, &sources, &run->inputs[i], err);
        tensors += run->inputs[i].count;
    }
    if (!code && tensors == 0)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected tensors, found none");
    if (!code) run->blames = 0;
    if (!code)
        code = sfti_layout_split(&run->layouts, run->inputs, run->set_count, &run->arena,
                                 &run->groups, err);
    if (!code) code = find_layout_model(run, err);
    if (!code)
        code = sfti_layout_settle(&run->layouts, run->inputs, run->model, run->to, &run->arena,
                                  &run->groups, err);
    return code ? code : check_denoiser(run, err);
}

sft_code sfti_layout_components(const sft_set *const *sets, size_t count,
                                const sft_layout_options *options, sft_layout_conversion **out,
                                size_t *blames, sft_error *err) {
    sft_layout_options own;
    if (out) *out = NULL;
    if (blames) *blames = SIZE_MAX;
    sft_code code = take_layout(options, &own, err);
    if (code) return code;
    if (!out || !sets || count == 0)
        return sfti_misuse(err, "expected a model and a place for the conversion, found none");
    for (size_t i = 0; i < count; i++)
        if (!sets[i]) return sfti_misuse(err, "expected a model, found NULL");
    if (own.to > SFT_LAYOUT_COMFY)
        return sfti_misuse(err, "expected a layout that is known, found another number");
    sft_allocator alloc = sfti_allocator(own.alloc);
    sft_layout_conversion *run = sfti_take(&alloc, sizeof *run);
    if (!run) return sfti_fail_memory(err, sizeof *run);
    memset(run, 0, sizeof *run);
    run->alloc = run->arena.alloc = run->index.alloc = alloc;
    run->options = own;
    run->to = own.to == SFT_LAYOUT_DIFFUSERS ? SFTI_DIFFUSERS : SFTI_ORIGINAL;
    run->set_count = count;
    sfti_layout_out_begin(&run->out, &run->alloc);
    const sft_set **kept = sfti_arena_array(&run->arena, count, sizeof(const sft_set *));
    if (kept) memcpy(kept, sets, count * sizeof(const sft_set *));
    run->sets = kept;
    code = kept ? find_components(run, err) : sfti_fail_memory(err, count * sizeof(sft_set *));
    if (!code) {
        *out = run;
        return SFT_OK;
    }
    if (blames) *blames = run->blames;
    sft_layout_conversion_free(run);
    return code;
}

void sft_layout_conversion_free(sft_layout_conversion *run) {
    if (!run) return;
    sft_allocator alloc = run->alloc;
    for (size_t i = 0; i < run->component_count; i++) sft_buffer_free(&run->configs[i]);
    sft_buffer_free(&run->index);
    sfti_layout_out_free(&run->out);
    sfti_arena_free(&run->arena);
    sfti_release(&alloc, run, sizeof *run);
}

/* ── What its conversion shares ── */

sft_code sfti_layout_note_add(sft_layout_conversion *run, bool lost, const sft_span *words,
                              size_t count, sft_error *err) {
    size_t len = 0, at = 0;
    for (size_t i = 0; i < count; i++) len += words[i].len;
    char *text = sfti_arena_take(&run->arena, len + 1);
    sfti_layout_note *notes = sfti_arena_grow(&run->arena, run->notes, run->note_count, 1,
                                              &run->note_room, sizeof *notes);
    if (notes) run->notes = notes;
    if (!text || !notes) return sfti_fail_memory(err, len + 1);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + at, words[i].data, words[i].len);
        at += words[i].len;
    }
    notes[run->note_count++] = (sfti_layout_note){ { text, len }, lost };
    return SFT_OK;
}

sft_code sfti_layout_check_matched(const sft_layout_conversion *run, sft_error *err) {
    if (run->told.unmatched == 0 || run->options.ignore_unmatched) return SFT_OK;
    return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, run->unmatched[0].name,
                            "expected tensors whose places in the other layout are known, found "
                            "%zu others", run->told.unmatched);
}
