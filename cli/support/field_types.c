#include "support/field_types.h"

#include "safetensors_info.h"
#include "support/fields.h"
#include "support/words.h"

#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* ── Types ── */

/* Paths in a result, the first that fits; what is in no row is text. Facts stand without
 * "model.". */
static const struct field_row { const char *path; cli_field_type type; } field_rows[] = {
    { "metadata.*", CLI_FIELD_ANY }, { "*others.value", CLI_FIELD_ANY },
    { "conflicts.candidates.value", CLI_FIELD_ANY },
    { "*trust", CLI_FIELD_NUMBER }, { "*coverage", CLI_FIELD_NUMBER },
    { "file.dtypes.*.bytes", CLI_FIELD_BYTES }, { "file.dtypes.*", CLI_FIELD_NUMBER },
    { "file.bytes", CLI_FIELD_BYTES }, { "file.header_bytes", CLI_FIELD_BYTES },
    { "file.data_offset", CLI_FIELD_BYTES }, { "file.data_bytes", CLI_FIELD_BYTES },
    { "file.alignment", CLI_FIELD_BYTES }, { "file.tensors", CLI_FIELD_NUMBER },
    { "file.parameters", CLI_FIELD_NUMBER }, { "file.unaligned", CLI_FIELD_NUMBER },
    { "metadata_cut.*", CLI_FIELD_BYTES }, { "shards.bytes", CLI_FIELD_BYTES },
    { "shards.tensors", CLI_FIELD_NUMBER }, { "set.shard", CLI_FIELD_NUMBER },
    { "set.of", CLI_FIELD_NUMBER }, { "*components.bytes", CLI_FIELD_BYTES },
    { "*components.parameters", CLI_FIELD_NUMBER },
    { "model.rating", CLI_FIELD_NUMBER }, { "model.nsfw_level", CLI_FIELD_NUMBER },
    { "model.parameters", CLI_FIELD_NUMBER }, { "model.vectors", CLI_FIELD_NUMBER },
    { "model.negative", CLI_FIELD_BOOL }, { "model.llm.*", CLI_FIELD_NUMBER },
    { "clip_skip", CLI_FIELD_NUMBER }, { "preferred_weight", CLI_FIELD_NUMBER },
    { "nsfw", CLI_FIELD_BOOL }, { "date", CLI_FIELD_DATE },
    { "adapter.dora", CLI_FIELD_BOOL }, { "adapter.rslora", CLI_FIELD_BOOL },
    { "adapter.alpha.sampled", CLI_FIELD_BOOL }, { "adapter.rank.*", CLI_FIELD_NUMBER },
    { "adapter.alpha.*", CLI_FIELD_NUMBER }, { "adapter.scale", CLI_FIELD_NUMBER },
    { "adapter.conv_rank", CLI_FIELD_NUMBER }, { "adapter.modules", CLI_FIELD_NUMBER },
    { "trigger_words.group", CLI_FIELD_NUMBER }, { "frequent_tags.count", CLI_FIELD_NUMBER },
    { "example_prompts.seed", CLI_FIELD_NUMBER }, { "example_prompts.steps", CLI_FIELD_NUMBER },
    { "example_prompts.cfg", CLI_FIELD_NUMBER }, { "*.model_id", CLI_FIELD_NUMBER },
    { "*.version_id", CLI_FIELD_NUMBER }, { "civitai.matches_file", CLI_FIELD_BOOL },
    { "civitai.published_at", CLI_FIELD_DATE }, { "civitai.permissions.credit", CLI_FIELD_BOOL },
    { "civitai.permissions.derivatives", CLI_FIELD_BOOL },
    { "civitai.permissions.relicense", CLI_FIELD_BOOL },
    { "training.started_at", CLI_FIELD_DATE }, { "training.finished_at", CLI_FIELD_DATE },
    { "training.duration_s", CLI_FIELD_NUMBER }, { "training.epoch", CLI_FIELD_NUMBER },
    { "training.epochs", CLI_FIELD_NUMBER }, { "training.step", CLI_FIELD_NUMBER },
    { "training.steps", CLI_FIELD_NUMBER }, { "training.images", CLI_FIELD_NUMBER },
    { "training.images_with_repeats", CLI_FIELD_NUMBER },
    { "training.regularisation_images", CLI_FIELD_NUMBER },
    { "training.batch_size", CLI_FIELD_NUMBER }, { "training.*learning_rate", CLI_FIELD_NUMBER },
    { "training.*_lr", CLI_FIELD_NUMBER }, { "training.seed", CLI_FIELD_NUMBER },
    { "training.clip_skip", CLI_FIELD_NUMBER }, { "training.noise_offset", CLI_FIELD_NUMBER },
    { "training.network_args.*", CLI_FIELD_ANY },
    { "training.datasets.images", CLI_FIELD_NUMBER },
    { "training.datasets.repeats", CLI_FIELD_NUMBER },
    { "training.datasets.regularisation", CLI_FIELD_BOOL },
    { "training.buckets.count", CLI_FIELD_NUMBER }, { "merge.sources.weight", CLI_FIELD_NUMBER },
    { "merge.recipe.*", CLI_FIELD_ANY },
    { "provenance.workflow", CLI_FIELD_BOOL }, { "provenance.prompt", CLI_FIELD_BOOL },
    { "provenance.loaders.strength_*", CLI_FIELD_NUMBER }, { "previews.bytes", CLI_FIELD_BYTES },
    { "previews.width", CLI_FIELD_NUMBER }, { "previews.height", CLI_FIELD_NUMBER },
    { "ok", CLI_FIELD_BOOL }, { "complete", CLI_FIELD_BOOL },
    { "dataset.bytes", CLI_FIELD_BYTES }, { "dataset.version", CLI_FIELD_NUMBER },
    { "dataset.batch_size", CLI_FIELD_NUMBER }, { "dataset.*samples", CLI_FIELD_NUMBER },
    { "dataset.shards", CLI_FIELD_NUMBER }, { "dataset.tensors", CLI_FIELD_NUMBER },
    { "dataset.shadowed", CLI_FIELD_NUMBER },
};

static bool strip_prefix(sft_span *text, const char *prefix) {
    size_t len = strlen(prefix);
    if (text->len <= len || memcmp(text->data, prefix, len) != 0) return false;
    *text = (sft_span){ text->data + len, text->len - len };
    return true;
}

/* The path a name stands for: without "parts.", of a fact without "model." and ".value". */
static sft_span path_of(sft_span field) {
    const char *alias = cli_field_alias(field);
    sft_span path = alias ? sft_span_cstr(alias) : field, fact;
    (void)strip_prefix(&path, "parts.");
    fact = path;
    if (cli_ends_with(path, ".value") && !cli_ends_with(path, "others.value")
        && !cli_ends_with(path, "candidates.value"))
        fact.len -= strlen(".value");
    (void)strip_prefix(&fact, "model.");
    return cli_field_fact(fact) < SFT_FACT_COUNT ? fact : path;
}

cli_field_type cli_field_type_of(sft_span field) {
    sft_span path = path_of(field);
    for (size_t i = 0; i < COUNT(field_rows); i++)
        if (cli_glob_match(sft_span_cstr(field_rows[i].path), path)) return field_rows[i].type;
    return CLI_FIELD_TEXT;
}

bool cli_field_is_joined(sft_span field) {
    return cli_is(path_of(field), "variant");
}

/* ── Words of people ── */

static const struct field_word { const char *field, *word, *meant; } field_words[] = {
    { "kind", "lora", "adapter" }, { "kind", "locon", "adapter" }, { "kind", "lycoris", "adapter" },
    { "kind", "loha", "adapter" }, { "kind", "lokr", "adapter" }, { "kind", "dora", "adapter" },
    { "kind", "peft", "adapter" }, { "kind", "ckpt", "checkpoint" },
    { "kind", "model", "checkpoint" }, { "kind", "merge", "checkpoint" },
    { "kind", "unet", "diffusion_model" }, { "kind", "transformer", "diffusion_model" },
    { "kind", "dit", "diffusion_model" }, { "kind", "diffusion", "diffusion_model" },
    { "kind", "ti", "embedding" }, { "kind", "textual_inversion", "embedding" },
    { "kind", "textual inversion", "embedding" }, { "kind", "textualinversion", "embedding" },
    { "kind", "llm", "language_model" }, { "kind", "lm", "language_model" },
    { "kind", "clip", "text_encoder" }, { "kind", "t5", "text_encoder" },
    { "kind", "animatediff", "motion_module" }, { "kind", "esrgan", "upscaler" },
    { "kind", "autoencoder", "vae" }, { "kind", "audio", "audio_model" },
    { "kind", "vision", "vision_model" }, { "kind", "diffusers", "pipeline" },
    { "prediction_type", "v_prediction", "v" }, { "prediction_type", "v-prediction", "v" },
    { "prediction_type", "vpred", "v" }, { "prediction_type", "v-pred", "v" },
    { "prediction_type", "v_pred", "v" }, { "prediction_type", "eps", "epsilon" },
    { "prediction_type", "sample", "x0" }, { "prediction_type", "flow_matching", "flow" },
    { "prediction_type", "flow-matching", "flow" },
    { "prediction_type", "rectified_flow", "flow" },
    { "architecture", "sd15", "sd-1" }, { "architecture", "sd1.5", "sd-1" },
    { "architecture", "sd 1.5", "sd-1" }, { "architecture", "sd-1.5", "sd-1" },
    { "architecture", "sd1", "sd-1" }, { "architecture", "sd21", "sd-2" },
    { "architecture", "sd2.1", "sd-2" }, { "architecture", "sd2", "sd-2" },
    { "architecture", "sd-2.1", "sd-2" }, { "architecture", "xl", "sdxl" },
    { "architecture", "sd-xl", "sdxl" }, { "architecture", "sd3", "sd-3" },
    { "architecture", "sd3.5", "sd-3.5-large" }, { "architecture", "flux", "flux.1" },
    { "architecture", "flux1", "flux.1" }, { "architecture", "flux2", "flux.2" },
    { "architecture", "wan2.1", "wan-2.1" }, { "architecture", "wan2.2", "wan-2.2" },
    { "architecture", "qwen", "qwen-image" }, { "architecture", "hunyuan", "hunyuan-video" },
    { "quantization", "nf4", "bnb-nf4" }, { "quantization", "fp4", "bnb-fp4" },
    { "architecture", "pony", "base_model=Pony" },
    { "architecture", "illustrious", "base_model=Illustrious" },
    { "architecture", "noobai", "base_model=NoobAI" },
};

static const char *meant_by(const char *field, sft_span value) {
    for (size_t i = 0; i < COUNT(field_words); i++)
        if (strcmp(field_words[i].field, field) == 0
            && cli_same_letters(value, sft_span_cstr(field_words[i].word)))
            return field_words[i].meant;
    return NULL;
}

/* ── Known values ── */

typedef struct value_search {
    sft_span value;
    bool found;
    cli_guess guess;
    char list[320]; /* "one of", and all with ", " between */
    size_t len;
} value_search;

static bool see_value(void *ctx, const char *known) {
    value_search *search = ctx;
    sft_span text = sft_span_cstr(known);
    search->found = cli_same_letters(search->value, text);
    cli_guess_try(&search->guess, text);
    if (search->len + text.len + 8 < sizeof search->list)
        search->len += (size_t)snprintf(search->list + search->len,
                                        sizeof search->list - search->len, "%s%s",
                                        search->len ? ", " : "one of ", known);
    return !search->found;
}

/* Of a field that is no fact. */
static bool size_values(value_search *search) {
    (void)(see_value(search, "full") && see_value(search, "pruned"));
    return true;
}

static void note_unknown(cli *c, const char *field, sft_span value, const char *guess) {
    if (!*guess) return;
    cli_flush(&c->out);
    cli_printf(&c->err, "safetensors: note: no known %s is called ", field);
    cli_quoted(&c->err, value);
    cli_printf(&c->err, "%s\n", guess);
    cli_flush(&c->err);
}

static const char *guess_of(value_search *search, const char *field) {
    const char *meant = meant_by(field, search->value);
    if (!meant) return cli_guess_text(&search->guess, "\"", "\"");
    snprintf(search->guess.text, sizeof search->guess.text, ": did you mean \"%s\"?", meant);
    return search->guess.text;
}

sft_code cli_field_check(cli *c, sft_span field, sft_span value, sft_error *err) {
    value_search search = { .value = value, .guess = cli_guess_begin(value) };
    sft_span path = path_of(field);
    size_t fact = cli_field_fact(path);
    bool closed = false;
    const char *name = "size";
    if (fact < SFT_FACT_COUNT) {
        name = sft_fact_name((sft_fact)fact);
        closed = sft_fact_values((sft_fact)fact, see_value, &search);
    } else if (cli_is(path, "model.size")) {
        closed = size_values(&search);
    }
    if (search.found || search.len == 0) return SFT_OK;
    const char *guess = guess_of(&search, name);
    if (!closed) {
        note_unknown(c, name, value, guess);
        return SFT_OK;
    }
    return cli_usage_error(err, "expected %s as value of %s, found \"%.*s\"%s",
                           *guess ? "a known word" : search.list, name, (int)value.len,
                           value.data, guess);
}
