/* What the JSON files of a folder of diffusers say that a single file has no place for is kept by a
 * marker, or noted. Tests: tests/cli/layout. */
#include "layout/conversion.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "os/path.h"
#include "text/text.h"

#include <string.h>

#define TOLD_MOST (1u << 20)
#define TOLD_VALUE 60

/* The value of a member of the object at the top, as it is spelled; empty: none, or null. */
static sft_span member_of(sft_span text, const char *name) {
    sft_span value = { "", 0 };
    sfti_json json;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return value;
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        bool is = sfti_json_is(&json, name);
        sfti_json_type type = sfti_json_next(&json);
        size_t start = json.start;
        if (type == SFTI_JSON_OBJECT || type == SFTI_JSON_ARRAY) sfti_json_skip(&json);
        if (json.type == SFTI_JSON_ERROR) break;
        if (is && type != SFTI_JSON_NULL)
            value = (sft_span){ json.begin + start, (size_t)(json.at - json.begin) - start };
    }
    return value;
}

/* A small file in a folder; empty: there is none that can be read. */
static sft_code told_text(sft_layout_conversion *run, const char *folder, const char *name,
                          sft_span *out, sft_error *err) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    sft_source source;
    size_t got = 0;
    *out = (sft_span){ "", 0 };
    char *path = sfti_arena_join(&run->arena, sft_span_cstr(folder), sft_span_cstr(name));
    if (!path) return sfti_fail_memory(err, strlen(folder));
    how.beneath = folder;
    how.files = run->options.files;
    how.alloc = &run->alloc;
    if (sft_source_path(path, &how, &source, NULL)) return SFT_OK;
    char *text = NULL;
    if (source.size <= TOLD_MOST) text = sfti_arena_take(&run->arena, (size_t)source.size);
    if (text && !sft_source_read(&source, 0, text, (size_t)source.size, &got, NULL)) {
        size_t mark = got >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
        *out = (sft_span){ text + mark, got - mark };
    }
    sft_source_close(&source);
    return SFT_OK;
}

static sft_code note_lost(sft_layout_conversion *run, const sfti_layout_group *one,
                          const char *file, const char *key, sft_span value, sft_error *err) {
    bool cut = value.len > TOLD_VALUE;
    const sft_span words[] = { one->name, sft_span_cstr(": "), sft_span_cstr(key),
                               sft_span_cstr(" of "), sft_span_cstr(file),
                               sft_span_cstr(" is not in single files: "),
                               { value.data, cut ? TOLD_VALUE : value.len },
                               sft_span_cstr(cut ? "..." : "") };
    return sfti_layout_note_add(run, true, words, SFTI_COUNT(words), err);
}

/* What programs take for the model, or what the component has as a tensor, is not lost. */
static bool is_taken_for(const sft_layout_conversion *run, const sfti_layout_group *one,
                         const char *key, sft_span value) {
    for (unsigned i = 0; run->exact && i < run->exact->value_count; i++) {
        const sfti_layout_value *known = &run->exact->values[i];
        if (sft_span_equal(known->component, one->name) && sfti_is(known->key, key)
            && sft_span_equal(known->value, value))
            return true;
    }
    for (size_t i = 0; i < one->count; i++)
        if (sfti_is(one->parts[i].spec.name, key)) return true;
    return false;
}

static sft_code tell_factors(sft_layout_conversion *run, const sfti_layout_group *one,
                             const char *folder, sft_error *err) {
    static const char *const keys[] = { "scaling_factor", "shift_factor", "latents_mean",
                                        "latents_std" };
    sft_span text;
    sft_code code = told_text(run, folder, "config.json", &text, err);
    for (size_t i = 0; !code && i < SFTI_COUNT(keys); i++) {
        sft_span value = member_of(text, keys[i]);
        if (value.len > 0 && !is_taken_for(run, one, keys[i], value))
            code = note_lost(run, one, "config.json", keys[i], value, err);
    }
    return code;
}

static sft_code add_marker(sft_layout_conversion *run, sft_span marker, sft_error *err) {
    static const uint64_t none[] = { 0 };
    sft_spec spec = { marker, SFT_F32, 1, none };
    for (size_t i = 0; i < run->groups.marker_count; i++)
        if (sft_span_equal(run->groups.markers[i]->spec.name, marker)) return SFT_OK;
    return sfti_layout_out_add(&run->out, (sft_span){ "", 0 }, marker, &spec, NULL, err);
}

/* The folder of the scheduler: beside that of the denoiser. */
static char *scheduler_of(sft_layout_conversion *run, const char *folder) {
    sft_span trimmed = sfti_path_trimmed(sft_span_cstr(folder)), last = sfti_path_name(trimmed);
    bool named = last.len > 0 && !sfti_is(last, ".") && !sfti_is(last, "..");
    sft_span above = { folder, named ? trimmed.len - last.len : strlen(folder) };
    return sfti_arena_join(&run->arena, above,
                           sft_span_cstr(named ? "scheduler/" : "../scheduler/"));
}

static sft_code tell_prediction(sft_layout_conversion *run, const sfti_layout_group *one,
                                const char *folder, sft_error *err) {
    sft_span text, v_marker, zero_marker;
    const char *scheduler = scheduler_of(run, folder);
    if (!scheduler) return sfti_fail_memory(err, strlen(folder));
    sft_code code = told_text(run, scheduler, "scheduler_config.json", &text, err);
    if (code) return code;
    sft_span rest = run->model ? run->model->markers : (sft_span){ "", 0 };
    bool marks = sfti_layout_next(&rest, &v_marker) && sfti_layout_next(&rest, &zero_marker);
    sft_span predicts = member_of(text, "prediction_type");
    sfti_json json;
    sfti_json_begin(&json, predicts.data, predicts.len);
    bool v = sfti_json_next(&json) == SFTI_JSON_STRING && sfti_json_is(&json, "v_prediction");
    bool zero = sfti_is(member_of(text, "rescale_betas_zero_snr"), "true");
    if (v && marks) code = add_marker(run, v_marker, err);
    else if (v)
        code = note_lost(run, one, "the scheduler", "prediction_type",
                         sft_span_cstr("\"v_prediction\""), err);
    if (!code && zero && v && marks) code = add_marker(run, zero_marker, err);
    else if (!code && zero)
        code = note_lost(run, one, "the scheduler", "rescale_betas_zero_snr",
                         sft_span_cstr("true"), err);
    return code;
}

sft_code sfti_layout_tell(sft_layout_conversion *run, const sfti_layout_group *one,
                          sft_error *err) {
    const char *path = sft_set_shard_path(run->sets[one->input], 0);
    bool vae = sfti_is(one->part->comfy, "vae");
    if (!path || one->side != SFTI_DIFFUSERS) return SFT_OK;
    /* Elsewhere nothing is asked for that the names of folders do not promise. */
    if (sfti_files_claim(run->options.files, path, NULL)
        && !sft_span_equal(run->inputs[one->input].folder, one->name))
        return SFT_OK;
    const char *folder = sfti_arena_copy(&run->arena, path, sfti_folder_len(path));
    if (!folder) return sfti_fail_memory(err, strlen(path));
    if (vae) return tell_factors(run, one, folder, err);
    return sfti_is(one->part->comfy, "diffusion_models") ? tell_prediction(run, one, folder, err)
                                                         : SFT_OK;
}
