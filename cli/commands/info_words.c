/* What ids of results are called for people, and the key at the beginning of a line. */
#include "commands/info_label.h"
#include "support/words.h"

#include <string.h>

static const struct architecture_words { const char *id, *words; } architecture_names[] = {
    { "sd-1", "SD 1" }, { "sd-2", "SD 2" }, { "sdxl", "SDXL" },
    { "sdxl-refiner", "SDXL Refiner" }, { "ssd-1b", "SSD-1B" }, { "koala", "KOALA" },
    { "svd", "Stable Video Diffusion" }, { "sd-3", "SD 3" }, { "sd-3-medium", "SD 3 Medium" },
    { "sd-3.5-medium", "SD 3.5 Medium" }, { "sd-3.5-large", "SD 3.5 Large" },
    { "flux.1", "FLUX.1" }, { "flux.1-dev", "FLUX.1 dev" },
    { "flux.1-schnell", "FLUX.1 schnell" }, { "flux.2", "FLUX.2" },
    { "flux.2-dev", "FLUX.2 dev" }, { "flux.2-klein-4b", "FLUX.2 klein 4B" },
    { "flux.2-klein-9b", "FLUX.2 klein 9B" }, { "chroma", "Chroma" },
    { "pixart-alpha", "PixArt-alpha" }, { "pixart-sigma", "PixArt-sigma" },
    { "hunyuan-video", "HunyuanVideo" }, { "hunyuan-video-1.5", "HunyuanVideo 1.5" },
    { "hunyuan-image-2.1", "HunyuanImage 2.1" }, { "hunyuan-dit", "HunyuanDiT" },
    { "wan", "Wan" }, { "wan-2.1", "Wan 2.1" }, { "wan-2.2", "Wan 2.2" },
    { "ltx-video", "LTX-Video" }, { "ltx-2", "LTX-2" }, { "lumina-2", "Lumina 2" },
    { "z-image", "Z-Image" }, { "auraflow", "AuraFlow" }, { "qwen-image", "Qwen-Image" },
    { "mochi", "Mochi" }, { "cogvideox", "CogVideoX" }, { "hidream-i1", "HiDream I1" },
    { "sana", "Sana" }, { "kolors", "Kolors" }, { "anima", "Anima" },
    { "llama", "Llama" }, { "qwen2", "Qwen2" }, { "qwen3", "Qwen3" }, { "bert", "BERT" },
    { "clip-l", "CLIP-L" }, { "clip-g", "CLIP-G" }, { "clip-h", "CLIP-H" },
    { "t5-xxl", "T5-XXL" }, { "vae-sd", "SD VAE" }, { "vae-flux", "FLUX VAE" },
};

static const struct kind_words { const char *id, *words; } kind_names[] = {
    { "checkpoint", "checkpoint" }, { "diffusion_model", "diffusion model" },
    { "pipeline", "pipeline" }, { "adapter", "adapter" }, { "embedding", "embedding" },
    { "text_encoder", "text encoder" }, { "vae", "VAE" }, { "image_encoder", "image encoder" },
    { "controlnet", "ControlNet" }, { "control_lora", "Control-LoRA" },
    { "ip_adapter", "IP-Adapter" }, { "t2i_adapter", "T2I-Adapter" },
    { "upscaler", "upscaler" }, { "motion_module", "motion module" },
    { "language_model", "language model" }, { "audio_model", "audio model" },
    { "vision_model", "vision model" }, { "detector", "detector" },
    { "unknown", "model of unknown kind" },
    { "lora", "LoRA" }, { "locon", "LoCon" }, { "loha", "LoHa" }, { "lokr", "LoKr" },
    { "glora", "GLoRA" }, { "ia3", "IA3" }, { "oft", "OFT" }, { "boft", "BOFT" },
    { "full", "full-weight" }, { "mixed", "mixed" },
};

sft_span cli_architecture_words(sft_span id) {
    for (size_t i = 0; i < sizeof architecture_names / sizeof *architecture_names; i++) {
        if (cli_is(id, architecture_names[i].id))
            return sft_span_cstr(architecture_names[i].words);
    }
    return id;
}

sft_span cli_kind_words(sft_span id) {
    for (size_t i = 0; i < sizeof kind_names / sizeof *kind_names; i++) {
        if (cli_is(id, kind_names[i].id))
            return sft_span_cstr(kind_names[i].words);
    }
    return id;
}

const char *cli_tool_words(sft_span tool) {
    static const struct tool_name { const char *id, *words; } names[] = {
        { "sd-scripts", "kohya sd-scripts" }, { "webui", "web UI" },
        { "onetrainer", "OneTrainer" }, { "simpletuner", "SimpleTuner" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (cli_is(tool, names[i].id)) return names[i].words;
    }
    return NULL;
}

/* "header:modelspec.description" is "the description", "sidecar:x.json:/id" is "x.json". */
void cli_source_words(cli_out *out, sft_span source) {
    static const struct source_name { const char *end, *words; } names[] = {
        { "description", "the description" }, { "ssmd_source", "the metadata" },
        { "filename", "the file's name" }, { "online:civitai", "CivitAI itself" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t len = strlen(names[i].end);
        if (source.len < len) continue;
        if (memcmp(source.data + source.len - len, names[i].end, len) != 0) continue;
        cli_text(out, names[i].words);
        return;
    }
    const char *colon = source.len ? memchr(source.data, ':', source.len) : NULL;
    if (colon) {
        size_t used = (size_t)(colon - source.data) + 1;
        source = (sft_span){ source.data + used, source.len - used };
    }
    for (size_t i = 0; i + 1 < source.len; i++) {
        if (source.data[i] == ':' && source.data[i + 1] == '/') source.len = i;
    }
    cli_escaped_cut(out, source, 60);
}

void cli_label_key(cli *c, const char *text) {
    size_t len = strlen(text);
    cli_text(&c->out, "  ");
    cli_styled(&c->out, CLI_DIM, text);
    cli_pad(&c->out, len < CLI_LABEL_COLUMNS - 2 ? CLI_LABEL_COLUMNS - 2 - len : 1);
}
