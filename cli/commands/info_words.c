/* What ids of results are called for people. */
#include "commands/info_label.h"

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
        if (sft_span_equal(id, sft_span_cstr(architecture_names[i].id)))
            return sft_span_cstr(architecture_names[i].words);
    }
    return id;
}

sft_span cli_kind_words(sft_span id) {
    for (size_t i = 0; i < sizeof kind_names / sizeof *kind_names; i++) {
        if (sft_span_equal(id, sft_span_cstr(kind_names[i].id)))
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
        if (sft_span_equal(tool, sft_span_cstr(names[i].id))) return names[i].words;
    }
    return NULL;
}
