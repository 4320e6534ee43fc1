/* What a GGUF declares of itself: keys that were kept as gguf.KEY. */
#include "label/header/header.h"

/* general.architecture of llama.cpp and ComfyUI-GGUF. The first names code, not a model: what it
 * calls llama may be a Mistral, so that trust is low. */
static const struct gguf_architecture {
    const char *name, *architecture, *kind;
    int trust;
} gguf_architectures[] = {
    { "llama", "llama", "language_model", 60 },
    { "llama4", "llama-4", "language_model", 80 },
    { "qwen2", "qwen2", "language_model", 80 },
    { "qwen2moe", "qwen2-moe", "language_model", 80 },
    { "qwen3", "qwen3", "language_model", 80 },
    { "qwen3moe", "qwen3-moe", "language_model", 80 },
    { "qwen3next", "qwen3-next", "language_model", 80 },
    { "gemma", "gemma", "language_model", 80 },
    { "gemma2", "gemma-2", "language_model", 80 },
    { "gemma3", "gemma-3", "language_model", 80 },
    { "gemma3n", "gemma-3n", "language_model", 80 },
    { "phi2", "phi", "language_model", 80 },
    { "phi3", "phi-3", "language_model", 60 },
    { "deepseek2", NULL, "language_model", 80 },
    { "gpt2", "gpt-2", "language_model", 80 },
    { "gptj", "gpt-j", "language_model", 80 },
    { "gptneox", "gpt-neox", "language_model", 80 },
    { "gpt-oss", "gpt-oss", "language_model", 80 },
    { "falcon", "falcon", "language_model", 80 },
    { "falcon-h1", "falcon-h1", "language_model", 80 },
    { "bloom", "bloom", "language_model", 80 },
    { "mpt", "mpt", "language_model", 80 },
    { "chatglm", "chatglm", "language_model", 60 },
    { "glm4", "glm-4", "language_model", 80 },
    { "starcoder2", "starcoder2", "language_model", 80 },
    { "mamba", "mamba", "language_model", 80 },
    { "jamba", "jamba", "language_model", 80 },
    { "bert", "bert", "language_model", 60 },
    { "modern-bert", "modernbert", "language_model", 80 },
    { "nomic-bert", "nomic-bert", "language_model", 80 },
    { "t5", "t5", NULL, 80 },
    { "t5encoder", "t5", "text_encoder", 80 },
    { "flux", "flux.1", "diffusion_model", 80 },
    { "sd1", "sd-1", "diffusion_model", 80 },
    { "sdxl", "sdxl", "diffusion_model", 80 },
    { "sd3", "sd-3", "diffusion_model", 80 },
    { "aura", "auraflow", "diffusion_model", 80 },
    { "hidream", "hidream-i1", "diffusion_model", 80 },
    { "cosmos", "cosmos", "diffusion_model", 80 },
    { "ltxv", "ltx-video", "diffusion_model", 80 },
    { "hyvid", "hunyuan-video", "diffusion_model", 80 },
    { "wan", "wan", "diffusion_model", 80 },
    { "lumina2", "lumina-2", "diffusion_model", 80 },
    { "qwen_image", "qwen-image", "diffusion_model", 80 },
};

/* An adapter names the architecture of its base; a projector or a vocabulary that of its model. */
static void gguf_architecture(sfti_cursor *at, const sfti_row *row) {
    sft_span type = { "model", 5 };
    (void)row;
    (void)sfti_info_metadata(at->info, "gguf.general.type", &type);
    bool model = sfti_is(type, "model");
    if (!sfti_at_text(at) || (!model && !sfti_is(type, "adapter"))) return;
    for (size_t i = 0; i < SFTI_COUNT(gguf_architectures); i++) {
        const struct gguf_architecture *known = &gguf_architectures[i];
        if (!sfti_is(at->text, known->name)) continue;
        sfti_put_here(at, SFT_FACT_ARCHITECTURE, known->architecture, known->trust);
        sfti_put_here(at, SFT_FACT_KIND, model ? known->kind : "adapter", 80);
    }
}

static const sfti_row gguf_rows[] = {
    { "architecture", gguf_architecture, 0, 0, NULL },
    { "name", sfti_take_fact, SFT_FACT_NAME, 80, NULL },
    { "version", sfti_take_fact, SFT_FACT_VERSION_NAME, 80, NULL },
    { "author", sfti_take_prose, SFT_FACT_AUTHOR, 80, NULL },
    { "license", sfti_take_prose, SFT_FACT_LICENSE, 80, NULL },
    { "description", sfti_take_prose, SFT_FACT_DESCRIPTION, 80, "words" },
};
const sfti_key_table sfti_gguf_keys = { "gguf.general.", SFTI_ROWS(gguf_rows), false };
