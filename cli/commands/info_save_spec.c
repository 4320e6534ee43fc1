/* What is known as the keys of ModelSpec, and of SwarmUI beside them. */
#include "commands/info_save_as.h"
#include "support/nodes.h"
#include "support/words.h"

#include <string.h>

static const char prefix[] = "modelspec.";

static bool header_value(const cli_saving *saving, sft_span key, sft_span *out) {
    return sft_file_metadata_get(sft_set_shard_at(saving->model->set, 0), key, out);
}

/* A key that has another value keeps it, but with --force. */
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
    if (has && sft_span_equal(there, value)) return;
    if (has && !saving->c->set.force) spec->kept[spec->kept_count++] = key;
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

/* The digest of the tensors' bytes, which setting these keys does not change. */
static void put_weights(cli_saving *saving, cli_spec *spec) {
    sft_span hex = cli_known_digest(saving, "sshs_model");
    if (hex.len == 0) hex = cli_known_digest(saving, "autov3");
    char *text = hex.len == 64 ? sfti_arena_take(&saving->arena, 66) : NULL;
    if (!text) return;
    memcpy(text, "0x", 2);
    memcpy(text + 2, hex.data, 64);
    put_pair(saving, spec, "hash_sha256", (sft_span){ text, 66 });
}

static bool will_have(const cli_saving *saving, const cli_spec *spec, const char *key) {
    sft_span value;
    if (header_value(saving, sft_span_cstr(key), &value)) return true;
    for (size_t i = 0; i < spec->count; i++)
        if (cli_is(spec->pairs[i].key, key)) return true;
    return false;
}

/* It says that the rest is complete. */
static void put_marker(cli_saving *saving, cli_spec *spec) {
    static const char *const needed[] = { "modelspec.architecture", "modelspec.implementation",
                                          "modelspec.title", "modelspec.resolution" };
    sft_span there, key = sft_span_cstr("modelspec.sai_model_spec");
    bool complete = spec->count > 0 && !header_value(saving, key, &there);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        complete = complete && will_have(saving, spec, needed[i]);
    if (complete) put_pair(saving, spec, "sai_model_spec", sft_span_cstr("1.0.1"));
}

void cli_spec_begin(cli_saving *saving, cli_spec *spec) {
    static const struct spec_row { const char *key, *fact; } rows[] = {
        { "title", "model.name" }, { "description", "model.description" },
        { "author", "model.author" }, { "date", "model.date" },
        { "license", "model.license" }, { "usage_hint", "model.usage_hint" },
        { "tags", "model.tags" }, { "resolution", "model.resolution" },
        { "encoder_layer", "model.clip_skip" }, { "language", "model.language" },
    };
    const char *implementation = cli_modelspec_implementation(saving);
    memset(spec, 0, sizeof *spec);
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
    put_weights(saving, spec);
    put_marker(saving, spec);
}
