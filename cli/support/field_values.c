/* Known values of fields, and what people mean by other words. */
#include "support/fields.h"

#include "safetensors_info.h"
#include "support/words.h"

#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* ── Words of people ── */

static const struct field_word { const char *field, *word, *meant; } field_words[] = {
    { "kind", "lora", "type=lora" }, { "kind", "locon", "adapter" },
    { "kind", "lycoris", "adapter" },
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
    { "base_model", "sdxl", "architecture=sdxl" }, { "base_model", "xl", "architecture=sdxl" },
    { "base_model", "sd1", "architecture=sd-1" }, { "base_model", "sd15", "architecture=sd-1" },
    { "base_model", "flux", "architecture=flux.1" }, { "base_model", "wan", "architecture~wan" },
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

sft_code cli_field_check(cli *c, const cli_field_place *place, sft_span value, sft_error *err) {
    value_search search = { .value = value, .guess = cli_guess_begin(value) };
    bool closed = false;
    const char *name = "size";
    if (place->fact < SFT_FACT_COUNT) {
        name = sft_fact_name((sft_fact)place->fact);
        closed = sft_fact_values((sft_fact)place->fact, see_value, &search);
    } else if (cli_is(place->path, "model.size")) {
        closed = true;
        (void)(see_value(&search, "full") && see_value(&search, "pruned"));
    }
    const char *meant = meant_by(name, value);
    if (search.found || (search.len == 0 && !meant)) return SFT_OK;
    const char *guess = search.guess.text;
    if (!meant) guess = cli_guess_text(&search.guess, "\"", "\"");
    else
        snprintf(search.guess.text, sizeof search.guess.text, ": did you mean \"%s\"?", meant);
    if (!closed && *guess) {
        cli_flush(&c->out);
        cli_printf(&c->err, "safetensors: note: no known %s is called ", name);
        cli_quoted(&c->err, value);
        cli_printf(&c->err, "%s\n", guess);
        cli_flush(&c->err);
    }
    if (!closed) return SFT_OK;
    return cli_usage_error(err, "expected %s as value of %s, found \"%.*s\"%s",
                           *guess ? "a known word" : search.list, name, (int)value.len,
                           value.data, guess);
}
