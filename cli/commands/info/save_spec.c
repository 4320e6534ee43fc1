/* What is known as the keys of ModelSpec, and of SwarmUI beside them. */
#include "base/error.h"
#include "commands/info/facts.h"
#include "commands/info/save_as.h"
#include "support/models.h"
#include "support/words.h"

#include <string.h>

static const char prefix[] = "modelspec.";

static bool header_value(const cli_saving *saving, sft_span key, sft_span *out) {
    return sft_file_metadata_get(sft_set_shard_at(saving->model->set, 0), key, out);
}

static bool is_ours(const sfti_derived *was, cli_saving *saving, sft_span key, sft_span value) {
    char *pointer = sfti_arena_take(&saving->arena, key.len + 1);
    saving->is_full = saving->is_full || !pointer;
    if (!pointer) return false;
    *pointer = '/';
    memcpy(pointer + 1, key.data, key.len);
    sft_span place = { pointer, key.len + 1 };
    return sfti_derived_has(was, sfti_derived_digest(place, SFTI_JSON_STRING, value));
}

/* A key that has another value keeps it, but with --force, or where that was written so: then, too,
 * while the file that it came from is taken for another model's, and others tell what it does not.
 */
static void put_pair(cli_saving *saving, cli_spec *spec, const char *name, sft_span value) {
    sft_span there;
    size_t len = strlen(name);
    if (value.len == 0 || spec->count == CLI_SPEC_MOST) return;
    char *text = sfti_arena_take(&saving->arena, sizeof prefix + len);
    saving->is_full = saving->is_full || !text;
    if (!text) return;
    memcpy(text, prefix, sizeof prefix - 1);
    memcpy(text + sizeof prefix - 1, name, len + 1);
    sft_span key = { text, sizeof prefix - 1 + len };
    bool has = header_value(saving, key, &there);
    if (has && sft_span_equal(there, value)
        && !(spec->is_all && is_ours(&spec->was, saving, key, value)))
        return;
    bool may = !has || saving->c->set.force || (is_ours(&spec->was, saving, key, there)
                                                && !is_ours(&spec->silent, saving, key, there));
    if (!may) spec->kept[spec->kept_count++] = key;
    else spec->pairs[spec->count++] = (sft_pair){ key, value };
}

/* The text of a list, which the keys join by commas. */
static sft_span joined(cli_saving *saving, const char *fact) {
    const sft_node *list = cli_known(saving, fact);
    size_t len = 0;
    if (!list) return (sft_span){ "", 0 };
    if (list->type != SFT_NODE_LIST) return list->text;
    for (const sft_node *one = list->first; one; one = one->next) len += one->text.len + 1;
    char *text = sfti_arena_take(&saving->arena, len + 1), *at = text;
    saving->is_full = saving->is_full || !text;
    for (const sft_node *one = list->first; text && one; one = one->next) {
        if (at > text) *at++ = ',';
        if (one->text.len) memcpy(at, one->text.data, one->text.len);
        at += one->text.len;
    }
    return (sft_span){ text ? text : "", text ? (size_t)(at - text) : 0 };
}

static bool will_be_set(const cli_spec *spec, sft_span key) {
    for (size_t i = 0; i < spec->count; i++)
        if (sft_span_equal(spec->pairs[i].key, key)) return true;
    return false;
}

static void known_keys(cli_saving *saving, cli_spec *spec) {
    static const struct spec_row { const char *key, *fact; } rows[] = {
        { "title", "model.name" }, { "description", "model.description" },
        { "author", "model.author" }, { "date", "model.date" },
        { "license", "model.license" }, { "usage_hint", "model.usage_hint" },
        { "tags", "model.tags" }, { "resolution", "model.resolution" },
        { "encoder_layer", "model.clip_skip" }, { "language", "model.language" },
    };
    static const char *const needed[] = { "modelspec.architecture", "modelspec.implementation",
                                          "modelspec.title", "modelspec.resolution" };
    const char *implementation = cli_modelspec_implementation(saving);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        put_pair(saving, spec, rows[i].key, joined(saving, rows[i].fact));
    put_pair(saving, spec, "architecture", cli_modelspec_architecture(saving));
    if (implementation)
        put_pair(saving, spec, "implementation", sft_span_cstr(implementation));
    put_pair(saving, spec, "trigger_phrase", cli_known_words(saving, false));
    sft_span prediction = cli_known_text(saving, "model.prediction_type");
    if (cli_is(prediction, "v") || cli_is(prediction, "epsilon"))
        put_pair(saving, spec, "prediction_type", prediction);
    if (sft_node_get(saving->root, "adapter")->type == SFT_NODE_OBJECT)
        put_pair(saving, spec, "lora_default_weight",
                 cli_known_text(saving, "model.preferred_weight"));
    /* the digest of the tensors' bytes, which setting these keys does not change */
    sft_span hex = cli_known_digest(saving, "sshs_model");
    if (hex.len == 0) hex = cli_known_digest(saving, "autov3");
    char *text = hex.len == 64 ? sfti_arena_take(&saving->arena, 66) : NULL;
    if (text) {
        memcpy(text, "0x", 2);
        memcpy(text + 2, hex.data, 64);
        put_pair(saving, spec, "hash_sha256", (sft_span){ text, 66 });
    }
    /* the marker says that the rest is complete */
    sft_span there;
    bool complete = spec->count > 0
        && !header_value(saving, sft_span_cstr("modelspec.sai_model_spec"), &there);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        sft_span key = sft_span_cstr(needed[i]);
        complete = complete && (header_value(saving, key, &there) || will_be_set(spec, key));
    }
    if (complete) put_pair(saving, spec, "sai_model_spec", sft_span_cstr("1.0.1"));
}

/* ── The mark ── */

typedef struct spec_marking {
    const cli_spec *spec;
    cli_spec whole; /* all that is known */
} spec_marking;

/* Not of the one without which the mark is being made. */
static bool is_beside(void *ctx, sft_span origin) {
    const cli_saving *saving = ctx;
    const sft_node *one = cli_origin(saving, origin);
    return one && !(saving->left_out && one == saving->left_out);
}

/* All keys that are known and ours, and those that were and stay although nobody tells them now. */
static sft_code render_keys(cli_saving *saving, void *ctx, sft_buffer *out, sft_error *err) {
    const spec_marking *marking = ctx;
    cli_spec spec = { .was = marking->spec->was, .silent = marking->spec->silent,
                      .is_all = true };
    const sft_file *file = sft_set_shard_at(saving->model->set, 0);
    sft_sink sink = sft_sink_memory(out);
    sfti_json_writer w;
    sft_span old;
    sfti_derived still = { .count = 0 };
    if (header_value(saving, sft_span_cstr(SFTI_DERIVED_HEADER), &old)
        && !sfti_derived_read(old, &saving->arena, is_beside, saving, &still))
        return sfti_fail_memory(err, old.len);
    known_keys(saving, &spec);
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    for (size_t i = 0; i < spec.count; i++) {
        sfti_json_key_span(&w, spec.pairs[i].key);
        sfti_json_span(&w, spec.pairs[i].value);
    }
    for (size_t i = 0; i < sft_file_metadata_count(file); i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        if (will_be_set(&marking->whole, pair.key)
            || !is_ours(&still, saving, pair.key, pair.value))
            continue;
        sfti_json_key_span(&w, pair.key);
        sfti_json_span(&w, pair.value);
    }
    sfti_json_close(&w, '}');
    return sfti_json_done(&w);
}

static bool is_silent(void *ctx, sft_span origin) {
    return cli_origin(ctx, origin) && !cli_origin_tells(ctx, origin);
}

sft_code cli_spec_begin(cli_saving *saving, cli_spec *spec, sft_error *err) {
    sft_buffer origins = { .alloc = saving->c->alloc };
    sfti_derived now;
    sft_span old;
    memset(spec, 0, sizeof *spec);
    if (header_value(saving, sft_span_cstr(SFTI_DERIVED_HEADER), &old)
        && (!sfti_derived_read(old, &saving->arena, NULL, NULL, &spec->was)
            || !sfti_derived_read(old, &saving->arena, is_silent, saving, &spec->silent)))
        return sfti_fail_memory(err, old.len);
    known_keys(saving, spec);
    if (spec->count == 0) return SFT_OK;
    spec_marking marking = { spec, { .was = spec->was, .silent = spec->silent, .is_all = true } };
    known_keys(saving, &marking.whole);
    sft_code code = cli_derive(saving, render_keys, &marking, &origins, &now, err);
    char *text = code ? NULL : sfti_arena_copy(&saving->arena, origins.data, origins.len);
    if (text) spec->mark = (sft_span){ text, origins.len };
    else if (!code) code = sfti_fail_memory(err, origins.len);
    sft_buffer_free(&origins);
    return code;
}
