/* convert --layout of a folder of diffusers: what its JSON files say that a single file has no
 * place for is kept by a marker, or named. Tests: tests/cli/layout. */
#include "base/json.h"
#include "commands/convert/layout.h"
#include "support/files.h"
#include "support/remote.h"
#include "support/words.h"

#include <string.h>

#define TOLD_MOST (1u << 20)

/* The value of a member of the object at the top, as it is spelled; empty: none, or null. */
static sft_span member_of(sft_span text, const char *name) {
    sft_span value = { "", 0 };
    sfti_json json;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return value;
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        bool is = cli_is(json.text, name);
        sfti_json_type type = sfti_json_next(&json);
        size_t start = json.start;
        if (type == SFTI_JSON_OBJECT || type == SFTI_JSON_ARRAY) sfti_json_skip(&json);
        if (json.type == SFTI_JSON_ERROR) break;
        if (is && type != SFTI_JSON_NULL)
            value = (sft_span){ json.begin + start, (size_t)(json.at - json.begin) - start };
    }
    return value;
}

/* A file beside a component, or in a folder beside its own; empty: there is none, or it is not read
 * from here. */
static sft_span told_text(layout_run *run, const sfti_layout_group *one, const char *name,
                          sft_buffer *bytes) {
    const char *path = sft_set_shard_path(run->parts.sets[one->input], 0);
    sft_error err = SFT_ERROR_INIT;
    int fd;
    *bytes = (sft_buffer){ .alloc = run->c->alloc };
    if (cli_is_remote(run->c, path)) return (sft_span){ "", 0 };
    char *beside = cli_join_path(&run->parts.arena, cli_folder_of(path), name);
    if (!beside || cli_open_beside(beside, &fd)) return (sft_span){ "", 0 };
    if (cli_read_beside(run->c, fd, TOLD_MOST, bytes, &err)) return (sft_span){ "", 0 };
    return cli_read_text(bytes);
}

static void name_lost(const layout_run *run, const sfti_layout_group *one, const char *file,
                      const char *key, sft_span value) {
    cli *c = run->c;
    cli_flush(&c->out);
    cli_text(&c->err, "safetensors: note: ");
    cli_escaped(&c->err, one->name);
    cli_printf(&c->err, ": %s of %s is not in single files: ", key, file);
    cli_escaped(&c->err, value.len > 60 ? (sft_span){ value.data, 60 } : value);
    cli_text(&c->err, value.len > 60 ? "...\n" : "\n");
    cli_flush(&c->err);
}

/* What programs take for the model, or what the component has as a tensor, is not lost. */
static bool is_taken_for(const layout_run *run, const sfti_layout_group *one, const char *key,
                         sft_span value) {
    for (unsigned i = 0; run->exact && i < run->exact->value_count; i++) {
        const sfti_layout_value *known = &run->exact->values[i];
        if (sft_span_equal(known->component, one->name) && cli_is(known->key, key)
            && sft_span_equal(known->value, value))
            return true;
    }
    for (size_t i = 0; i < one->count; i++)
        if (cli_is(one->parts[i].spec.name, key)) return true;
    return false;
}

static void tell_factors(layout_run *run, const sfti_layout_group *one) {
    static const char *const keys[] = { "scaling_factor", "shift_factor", "latents_mean",
                                        "latents_std" };
    sft_buffer bytes;
    sft_span text = told_text(run, one, "config.json", &bytes);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        sft_span value = member_of(text, keys[i]);
        if (value.len > 0 && !is_taken_for(run, one, keys[i], value))
            name_lost(run, one, "config.json", keys[i], value);
    }
    sft_buffer_free(&bytes);
}

static sft_code add_marker(layout_run *run, sft_span marker, sft_error *err) {
    static const uint64_t none[] = { 0 };
    sft_spec spec = { marker, SFT_F32, 1, none };
    for (size_t i = 0; i < run->groups.marker_count; i++)
        if (sft_span_equal(run->groups.markers[i]->spec.name, marker)) return SFT_OK;
    return sfti_layout_out_add(&run->out, (sft_span){ "", 0 }, marker, &spec, NULL, err);
}

sft_code layout_tell_prediction(layout_run *run, const sfti_layout_group *one, sft_error *err) {
    static const char file[] = "../scheduler/scheduler_config.json";
    sft_buffer bytes;
    sft_span text = told_text(run, one, file, &bytes), v_marker, zero_marker;
    sft_span rest = run->model ? run->model->markers : (sft_span){ "", 0 };
    bool marks = sfti_layout_next(&rest, &v_marker) && sfti_layout_next(&rest, &zero_marker);
    sft_span predicts = member_of(text, "prediction_type");
    bool v = cli_is(predicts, "\"v_prediction\"");
    bool zero = cli_is(member_of(text, "rescale_betas_zero_snr"), "true");
    sft_code code = SFT_OK;
    if (v && marks) code = add_marker(run, v_marker, err);
    else if (v) name_lost(run, one, "the scheduler", "prediction_type", predicts);
    if (!code && zero && v && marks) code = add_marker(run, zero_marker, err);
    else if (!code && zero)
        name_lost(run, one, "the scheduler", "rescale_betas_zero_snr", sft_span_cstr("true"));
    sft_buffer_free(&bytes);
    return code;
}

void layout_tell_factors(layout_run *run) {
    for (size_t i = 0; i < run->groups.count; i++) {
        const sfti_layout_group *one = &run->groups.items[i];
        if (one->part && one->side == SFTI_DIFFUSERS && cli_is(one->part->comfy, "vae"))
            tell_factors(run, one);
    }
}
