/* What producers call architectures, kinds and predictions, in our words: a table a producer.
 * Parents of architectures are in families.c. */
#include "label/info.h"

#include <string.h>

/* Whether text begins with the prefix and goes on, if at all, with no letter or digit. */
static bool map_begins(sft_span text, const char *prefix) {
    size_t len = strlen(prefix);
    return sfti_starts_with(text, prefix)
        && (text.len == len || !sfti_word_byte(text.data[len]) || (text.data[len] & 0x80));
}

/* ── ss_base_model_version ── */

static const char *const map_bases[][2] = {
    { "sd_v1", "sd-1" }, { "sd_v1_v", "sd-1" }, { "sd_1.5", "sd-1" }, { "sd_1", "sd-1" },
    { "sd1", "sd-1" }, { "sd15", "sd-1" }, { "sd_v2", "sd-2" }, { "sd_v2_v", "sd-2" },
    { "sd_2.1", "sd-2" }, { "sd_2", "sd-2" }, { "sd2", "sd-2" }, { "ssd", "ssd-1b" },
    { "vega", "segmind-vega" }, { "medium", "sd-3-medium" }, { "sd3m", "sd-3-medium" },
    { "5-medium", "sd-3.5-medium" }, { "5-large", "sd-3.5-large" }, { "sd_3", "sd-3" },
    { "sd3", "sd-3" }, { "flux1", "flux.1" }, { "flux.1", "flux.1" }, { "flux", "flux.1" },
    { "flux.1_kontext", "flux.1" }, { "flux_kontext", "flux.1" },
    { "flux_schnell", "flux.1-schnell" }, { "flux2", "flux.2" }, { "flux_2", "flux.2" },
    { "flux.2", "flux.2" }, { "flux_2_dev", "flux.2-dev" },
    { "flux_2_klein_4b", "flux.2-klein-4b" }, { "flux_2_klein_9b", "flux.2-klein-9b" },
    { "flux2_klein_4b", "flux.2-klein-4b" }, { "flux2_klein_9b", "flux.2-klein-9b" },
    { "chroma", "chroma" }, { "chroma_radiance", "chroma-radiance" },
    { "lumina2", "lumina-2" }, { "lumina", "lumina-2" },
    { "hunyuan-image-2.1", "hunyuan-image-2.1" }, { "anima", "anima" },
    { "hunyuan_video", "hunyuan-video" }, { "hunyuan_video_1_5", "hunyuan-video-1.5" },
    { "framepack", "hunyuan-video" }, { "wan", "wan" }, { "wan_2.1", "wan-2.1" },
    { "wan21", "wan-2.1" }, { "wan_2.2_14b", "wan-2.2" }, { "wan_2.2_5b", "wan-2.2" },
    { "wan22", "wan-2.2" }, { "qwen_image", "qwen-image" }, { "qwen_image_edit", "qwen-image" },
    { "qwen_image_edit_plus", "qwen-image" }, { "qwen_image_layered", "qwen-image" },
    { "kandinsky5", "kandinsky-5" }, { "z_image", "z-image" }, { "zimage", "z-image" },
    { "hidream_o1_image", "hidream-o1" }, { "hidream_i1", "hidream-i1" },
    { "hidream", "hidream-i1" }, { "ideogram4", "ideogram-4" }, { "krea2", "krea-2" },
    { "auraflow", "auraflow" }, { "omnigen2", "omnigen-2" }, { "ltx", "ltx-video" },
    { "ltx2", "ltx-2" }, { "boogu_image.0.1", "boogu" }, { "boogu_image_edit.0.1", "boogu" },
    { "mageflow", "mage-flow" }, { "mageflow_edit", "mage-flow" },
    { "prx_pixel", "prx" }, { "minimax_h3", "minimax-h3" }, { "minimax_h3_ref2va", "minimax-h3" },
};

const char *sfti_map_base_version(sft_span text) {
    text = sfti_trim(text);
    const char *architecture = SFTI_MAPPED(text, map_bases, sfti_same_letters);
    return architecture ? architecture : sfti_starts_with(text, "sdxl") ? "sdxl" : NULL;
}

/* ── ss_network_module of sd-scripts and musubi-tuner ── */

static const char *const map_modules[][2] = {
    { "networks.lora_flux", "flux.1" }, { "networks.oft_flux", "flux.1" },
    { "networks.lora_sd3", "sd-3" }, { "networks.lora_lumina", "lumina-2" },
    { "networks.lora_anima", "anima" }, { "networks.lora_wan", "wan" },
    { "networks.lora_hunyuan_image", "hunyuan-image-2.1" },
    { "networks.lora_framepack", "hunyuan-video" }, { "networks.lora_flux_2", "flux.2" },
    { "networks.lora_qwen_image", "qwen-image" }, { "networks.lora_zimage", "z-image" },
    { "networks.lora_kandinsky", "kandinsky-5" },
    { "networks.lora_hv_1_5", "hunyuan-video-1.5" },
};

const char *sfti_map_network_module(sft_span text) {
    return SFTI_MAPPED(text, map_modules, sfti_same_letters);
}

/* ── model_type of OneTrainer ── */

static const struct map_onetrainer {
    const char *type, *architecture, *variant;
} map_onetrainer_rows[] = {
    { "STABLE_DIFFUSION_15", "sd-1", NULL },
    { "STABLE_DIFFUSION_15_INPAINTING", "sd-1", "inpaint" },
    { "STABLE_DIFFUSION_20", "sd-2", NULL }, { "STABLE_DIFFUSION_20_BASE", "sd-2", NULL },
    { "STABLE_DIFFUSION_20_INPAINTING", "sd-2", "inpaint" },
    { "STABLE_DIFFUSION_20_DEPTH", "sd-2", "depth" }, { "STABLE_DIFFUSION_21", "sd-2", NULL },
    { "STABLE_DIFFUSION_21_BASE", "sd-2", NULL }, { "STABLE_DIFFUSION_3", "sd-3", NULL },
    { "STABLE_DIFFUSION_35", "sd-3", NULL }, { "STABLE_DIFFUSION_XL_10_BASE", "sdxl", NULL },
    { "STABLE_DIFFUSION_XL_10_BASE_INPAINTING", "sdxl", "inpaint" },
    { "PIXART_ALPHA", "pixart-alpha", NULL }, { "PIXART_SIGMA", "pixart-sigma", NULL },
    { "FLUX_DEV_1", "flux.1-dev", NULL }, { "FLUX_FILL_DEV_1", "flux.1-dev", "fill" },
    { "FLUX_2", "flux.2", NULL }, { "SANA", "sana", NULL },
    { "HUNYUAN_VIDEO", "hunyuan-video", NULL }, { "HI_DREAM_FULL", "hidream-i1", NULL },
    { "CHROMA_1", "chroma", NULL }, { "QWEN", "qwen-image", NULL },
    { "Z_IMAGE", "z-image", NULL },
};

const char *sfti_map_onetrainer(sft_span text, const char **variant) {
    *variant = NULL;
    for (size_t i = 0; i < SFTI_COUNT(map_onetrainer_rows); i++) {
        if (!sfti_same_letters(text, map_onetrainer_rows[i].type)) continue;
        *variant = map_onetrainer_rows[i].variant;
        return map_onetrainer_rows[i].architecture;
    }
    return NULL;
}

/* ── What changes use ── */

static const struct map_derived { const char *text, *variant, *label; } map_derived_rows[] = {
    { "flux.1_kontext", "kontext", "Flux.1 Kontext" },
    { "flux_kontext", "kontext", "Flux.1 Kontext" },
    { "flux.1-kontext", "kontext", "Flux.1 Kontext" },
    { "flux-1-kontext", "kontext", "Flux.1 Kontext" },
    { "flux.1-dev-kontext", "kontext", "Flux.1 Kontext" },
    { "flux-1-dev-kontext", "kontext", "Flux.1 Kontext" },
    { "qwen_image_edit", "edit", NULL }, { "qwen-image-edit", "edit", NULL },
    { "qwen_image_layered", "layered", NULL }, { "qwen-image-layered", "layered", NULL },
    { "boogu_image_edit", "edit", NULL }, { "mageflow_edit", "edit", NULL },
};

const char *sfti_map_derivative(sft_span text, const char **label) {
    text = sfti_trim(text);
    for (size_t i = 0; i < SFTI_COUNT(map_derived_rows); i++) {
        if (!map_begins(text, map_derived_rows[i].text)) continue;
        *label = map_derived_rows[i].label;
        return map_derived_rows[i].variant;
    }
    return NULL;
}

/* ── modelspec.architecture ── */

/* The longest of those that begin alike stands first. */
static const struct map_spec { const char *prefix, *architecture, *variant; } map_specs[] = {
    { "stable-diffusion-v1-inpainting", "sd-1", "inpaint" },
    { "stable-diffusion-v1", "sd-1", NULL },
    { "stable-diffusion-v2-inpainting", "sd-2", "inpaint" },
    { "stable-diffusion-v2-depth", "sd-2", "depth" },
    { "stable-diffusion-v2-unclip", "sd-2", "unclip" },
    { "stable-diffusion-v2", "sd-2", NULL },
    { "stable-diffusion-xl-v1-refiner", "sdxl-refiner", NULL },
    { "stable-diffusion-xl-v1-edit", "sdxl", "edit" },
    { "stable-diffusion-xl-v1-inpainting", "sdxl", "inpaint" },
    { "stable-diffusion-xl", "sdxl", NULL },
    { "stable-diffusion-3-5-medium", "sd-3.5-medium", NULL },
    { "stable-diffusion-3-5-large", "sd-3.5-large", NULL },
    { "stable-diffusion-v3.5-medium", "sd-3.5-medium", NULL },
    { "stable-diffusion-v3.5-large", "sd-3.5-large", NULL },
    { "stable-diffusion-3-5", "sd-3", NULL },
    { "stable-diffusion-3-medium", "sd-3-medium", NULL },
    { "stable-diffusion-v3-medium", "sd-3-medium", NULL },
    { "stable-diffusion-3-m", "sd-3-medium", NULL },
    { "stable-diffusion-3", "sd-3", NULL },
    { "stable-diffusion-v3", "sd-3", NULL },
    { "stable-video-diffusion", "svd", NULL },
    { "stable-cascade-v1-stage-a", "stable-cascade-a", NULL },
    { "stable-cascade-v1-stage-b", "stable-cascade-b", NULL },
    { "stable-cascade-v1-stage-c", "stable-cascade-c", NULL },
    { "gpt-neo-x", "gpt-neox", NULL },
    { "flux-1-dev-fill", "flux.1-dev", "fill" },
    { "flux-1-dev", "flux.1-dev", NULL }, { "flux.1-dev", "flux.1-dev", NULL },
    { "flux-1-schnell", "flux.1-schnell", NULL }, { "flux.1-schnell", "flux.1-schnell", NULL },
    { "flux.1-fill-dev", "flux.1-dev", "fill" },
    { "flux-1", "flux.1", NULL }, { "flux.1", "flux.1", NULL },
    { "flux-2-klein-4b", "flux.2-klein-4b", NULL },
    { "flux.2-klein-4b", "flux.2-klein-4b", NULL },
    { "flux-2-klein-9b", "flux.2-klein-9b", NULL },
    { "flux.2-klein-9b", "flux.2-klein-9b", NULL },
    { "flux-2-dev", "flux.2-dev", NULL }, { "flux.2-dev", "flux.2-dev", NULL },
    { "flux-2", "flux.2", NULL }, { "flux.2", "flux.2", NULL },
    { "chroma-radiance", "chroma-radiance", NULL }, { "chroma", "chroma", NULL },
    { "lumina-2", "lumina-2", NULL }, { "lumina-next", "lumina-next", NULL },
    { "lumina-mgpt", NULL, NULL }, { "lumina", "lumina-2", NULL },
    { "hunyuan-image-3", NULL, NULL }, { "hunyuan-image", "hunyuan-image-2.1", NULL },
    { "hunyuan-video-1.5", "hunyuan-video-1.5", NULL },
    { "hunyuan-video-1_5", "hunyuan-video-1.5", NULL },
    { "hunyuan-video", "hunyuan-video", NULL }, { "framepack", "hunyuan-video", NULL },
    { "anima", "anima", NULL }, { "wan2.1", "wan", NULL }, { "wan2.2", "wan-2.2", NULL },
    { "wan-21-1_3b", "wan-2.1", "1.3b" }, { "wan-21-14b", "wan-2.1", "14b" },
    { "wan-21", "wan-2.1", NULL }, { "wan-22-5b", "wan-2.2", "5b" },
    { "wan-22", "wan-2.2", NULL }, { "qwen-image", "qwen-image", NULL },
    { "kandinsky-5", "kandinsky-5", NULL }, { "kandinsky5", "kandinsky-5", NULL },
    { "z-image", "z-image", NULL }, { "hidream-o1", "hidream-o1", NULL },
    { "hidream-i1", "hidream-i1", NULL }, { "ideogram-4", "ideogram-4", NULL },
    { "krea-2", "krea-2", NULL }, { "lightricks-ltx-video-2", "ltx-2", NULL },
    { "lightricks-ltx-video", "ltx-video", NULL }, { "auraflow", "auraflow", NULL },
    { "omnigen-2", "omnigen-2", NULL }, { "nvidia-cosmos-1", "cosmos-1", NULL },
    { "nvidia-cosmos-predict2", "cosmos-predict2", NULL },
    { "nvidia-sana-video", "sana-video", NULL }, { "nvidia-sana", "sana", NULL },
    { "sana-video", "sana-video", NULL }, { "sana", "sana", NULL },
    { "pixart-ms-sigma", "pixart-sigma", NULL }, { "pixart-sigma", "pixart-sigma", NULL },
    { "pixart-alpha", "pixart-alpha", NULL }, { "genmo-mochi", "mochi", NULL },
    { "ovis", "ovis-image", NULL }, { "longcat-image", "longcat-image", NULL },
    { "segmind-stable-diffusion-1b", "ssd-1b", NULL },
};

static const char *const map_suffixes[][2] = {
    { "lora", "adapter" }, { "lycoris", "adapter" }, { "textual-inversion", "embedding" },
    { "controlnet", "controlnet" }, { "control-lora", "control_lora" }, { "vae", "vae" },
};

const char *sfti_map_modelspec(sft_span text, const char **kind, const char **variant) {
    sft_span id = sfti_trim(text), suffix;
    *kind = *variant = NULL;
    suffix = sfti_find_byte(id, '/');
    id.len -= suffix.len;
    if (suffix.data) *kind = SFTI_MAPPED(sfti_from(suffix, 1), map_suffixes, sfti_same_letters);
    for (size_t i = 0; i < SFTI_COUNT(map_specs); i++) {
        if (!map_begins(id, map_specs[i].prefix)) continue;
        const char *label, *derived = sfti_map_derivative(id, &label);
        *variant = derived ? derived : map_specs[i].variant;
        if (!*kind || strcmp(*kind, "vae") != 0) return map_specs[i].architecture;
        return strncmp(map_specs[i].prefix, "stable-diffusion-", 17) == 0 ? "vae-sd" : NULL;
    }
    return NULL;
}

/* ── CivitAI's baseModel ── */

static const char *const map_civitai_rows[][2] = {
    { "Pony V7", "auraflow" }, { "Pony", "sdxl" }, { "Illustrious", "sdxl" },
    { "NoobAI", "sdxl" }, { "SDXL", "sdxl" }, { "SD 1", "sd-1" }, { "SD 2", "sd-2" },
    { "SD 3.5 Large", "sd-3.5-large" }, { "SD 3.5 Medium", "sd-3.5-medium" },
    { "SD 3", "sd-3" }, { "SD1", "sd-1" }, { "SD2", "sd-2" }, { "SD3", "sd-3" },
    { "Flux.1 S", "flux.1-schnell" }, { "Flux.1 D", "flux.1-dev" }, { "Flux.1", "flux.1" },
    { "Flux.2 D", "flux.2-dev" }, { "Flux.2 Klein 9B", "flux.2-klein-9b" },
    { "Flux.2 Klein 4B", "flux.2-klein-4b" }, { "Flux.2", "flux.2" }, { "Anima", "anima" },
    { "AuraFlow", "auraflow" }, { "Chroma", "chroma" }, { "CogVideoX", "cogvideox" },
    { "Ernie", "ernie-image" }, { "HiDream-O1", "hidream-o1" }, { "HiDream", "hidream-i1" },
    { "Hunyuan 1", "hunyuan-dit" }, { "Hunyuan Video", "hunyuan-video" },
    { "Hunyuan3D", "hunyuan-3d" }, { "Ideogram 4", "ideogram-4" }, { "Boogu", "boogu" },
    { "Kolors", "kolors" }, { "Krea 2", "krea-2" }, { "LTXV2", "ltx-2" },
    { "LTXV 2", "ltx-2" }, { "LTXV", "ltx-video" }, { "Lens", "lens" },
    { "Lumina", "lumina-2" }, { "MageFlow", "mage-flow" }, { "MiniMax H3", "minimax-h3" },
    { "Mochi", "mochi" }, { "PixArt a", "pixart-alpha" }, { "PixArt E", "pixart-sigma" },
    { "Qwen", "qwen-image" }, { "SVD", "svd" }, { "Wan Video 2.2", "wan-2.2" },
    { "Wan Video 2.5", NULL }, { "Wan Video 1.3B", "wan-2.1" },
    { "Wan Video 14B", "wan-2.1" }, { "Wan Video", "wan" }, { "ZImageTurbo", "z-image" },
    { "ZImageBase", "z-image" }, { "ZImage", "z-image" }, { "ACE Audio", "ace-step" },
};

const char *sfti_map_civitai_base(sft_span text) {
    text = sfti_trim(text);
    if (sfti_find_byte(text, '/').data) return NULL; /* a repository: OWNER/NAME */
    if (sfti_starts_with(text, "Qwen-") && !sfti_starts_with(text, "Qwen-Image")) return NULL;
    if (sfti_starts_with(text, "Playground v2.5")) return "playground-2.5";
    return SFTI_MAPPED(text, map_civitai_rows, map_begins);
}

/* ── Tags of model cards ── */

static const struct map_tag { const char *tag, *architecture, *label; } map_tags[] = {
    { "stable-diffusion-xl", "sdxl", NULL }, { "sdxl", "sdxl", NULL },
    { "pony", "sdxl", "Pony" }, { "illustrious", "sdxl", "Illustrious" },
    { "noobai", "sdxl", "NoobAI" }, { "sd3", "sd-3", NULL },
    { "sd3.5-large", "sd-3.5-large", NULL }, { "sd3.5-medium", "sd-3.5-medium", NULL },
    { "flux", "flux.1", NULL }, { "flux.1", "flux.1", NULL }, { "flux.1-dev", "flux.1-dev", NULL },
    { "flux.1-schnell", "flux.1-schnell", NULL }, { "flux2", "flux.2", NULL },
    { "flux.2", "flux.2", NULL }, { "wan", "wan", NULL }, { "wan2.1", "wan-2.1", NULL },
    { "wan2.2", "wan-2.2", NULL }, { "qwen-image", "qwen-image", NULL },
    { "z-image", "z-image", NULL }, { "hunyuan-video", "hunyuan-video", NULL },
    { "ltx-video", "ltx-video", NULL }, { "ltx-2", "ltx-2", NULL },
    { "auraflow", "auraflow", NULL }, { "lumina2", "lumina-2", NULL }, { "sana", "sana", NULL },
};

const char *sfti_map_tag(sft_span tag, const char **label) {
    tag = sfti_trim(tag);
    *label = NULL;
    for (size_t i = 0; i < SFTI_COUNT(map_tags); i++) {
        if (!sfti_same_letters(tag, map_tags[i].tag)) continue;
        *label = map_tags[i].label;
        return map_tags[i].architecture;
    }
    return NULL;
}

/* ── Classes of diffusers and transformers ── */

/* Whole names. A row without an architecture is a class of many: it says less than sizes do. */
static const struct map_class { const char *name, *architecture; } map_classes[] = {
    { "UNet2DConditionModel", NULL }, { "UNetMotionModel", NULL }, { "MotionAdapter", NULL },
    { "ControlNetModel", NULL }, { "AutoencoderKL", NULL }, { "VQModel", NULL },
    { "PixArtTransformer2DModel", NULL }, { "T2IAdapter", NULL }, { "CLIPModel", NULL },
    { "ControlNetUnionModel", NULL }, { "CLIPTextModel", NULL },
    { "CLIPTextModelWithProjection", NULL },
    { "CLIPVisionModel", NULL }, { "CLIPVisionModelWithProjection", NULL },
    { "UNetSpatioTemporalConditionModel", "svd" },
    { "FluxTransformer2DModel", "flux.1" }, { "FluxControlNetModel", "flux.1" },
    { "Flux2Transformer2DModel", "flux.2" }, { "SD3Transformer2DModel", "sd-3" },
    { "SD3ControlNetModel", "sd-3" }, { "HunyuanDiT2DModel", "hunyuan-dit" },
    { "HunyuanDiT2DControlNetModel", "hunyuan-dit" },
    { "HunyuanVideoTransformer3DModel", "hunyuan-video" },
    { "HunyuanVideoFramepackTransformer3DModel", "framepack" },
    { "HunyuanVideo15Transformer3DModel", "hunyuan-video-1.5" },
    { "HunyuanImageTransformer2DModel", "hunyuan-image-2.1" },
    { "WanTransformer3DModel", "wan" }, { "WanVACETransformer3DModel", "wan" },
    { "WanAnimateTransformer3DModel", "wan" },
    { "WanAnimate2Transformer3DModel", "wan-animate-2" },
    { "SkyReelsV2Transformer3DModel", "skyreels-v2" },
    { "ChronoEditTransformer3DModel", "chronoedit" },
    { "AnyFlowTransformer3DModel", "anyflow" }, { "AnyFlowFARTransformer3DModel", "anyflow" },
    { "HeliosTransformer3DModel", "helios" },
    { "LTXVideoTransformer3DModel", "ltx-video" }, { "Transformer3DModel", "ltx-video" },
    { "LTX2VideoTransformer3DModel", "ltx-2" }, { "AVTransformer3DModel", "ltx-2" },
    { "Lumina2Transformer2DModel", "lumina-2" }, { "ZImageTransformer2DModel", "z-image" },
    { "ZImageControlNetModel", "z-image" }, { "AuraFlowTransformer2DModel", "auraflow" },
    { "QwenImageTransformer2DModel", "qwen-image" },
    { "QwenImage21Transformer2DModel", "qwen-image-2.1" },
    { "QwenImageControlNetModel", "qwen-image" }, { "MochiTransformer3DModel", "mochi" },
    { "CogVideoXTransformer3DModel", "cogvideox" }, { "ConsisIDTransformer3DModel", "consisid" },
    { "CogView3PlusTransformer2DModel", "cogview-3" },
    { "CogView4Transformer2DModel", "cogview4" },
    { "CosmosTransformer3DModel", "cosmos" }, { "Cosmos3OmniTransformer", "cosmos-3" },
    { "HiDreamImageTransformer2DModel", "hidream-i1" },
    { "OmniGenTransformer2DModel", "omnigen" }, { "OmniGen2Transformer2DModel", "omnigen-2" },
    { "SanaTransformer2DModel", "sana" }, { "SanaControlNetModel", "sana" },
    { "SanaVideoTransformer3DModel", "sana-video" },
    { "ChromaTransformer2DModel", "chroma" }, { "Kandinsky3UNet", "kandinsky-3" },
    { "Kandinsky5Transformer3DModel", "kandinsky-5" },
    { "LongCatImageTransformer2DModel", "longcat-image" },
    { "OvisImageTransformer2DModel", "ovis-image" },
    { "ErnieImageTransformer2DModel", "ernie-image" },
    { "GlmImageTransformer2DModel", "glm-image" },
    { "Ideogram4Transformer2DModel", "ideogram-4" }, { "Krea2Transformer2DModel", "krea-2" },
    { "MiniMaxH3Transformer3DModel", "minimax-h3" }, { "PRXTransformer2DModel", "prx" },
    { "BriaTransformer2DModel", "bria" }, { "BriaFiboTransformer2DModel", "bria-fibo" },
    { "BriaFibo2Transformer2DModel", "bria-fibo-2" },
    { "AceStepTransformer1DModel", "ace-step" }, { "StableAudioDiTModel", "stable-audio" },
    { "StableAudio3DiTModel", "stable-audio-3" }, { "AutoencoderOobleck", "vae-stable-audio" },
    { "StableCascadeUNet", "stable-cascade" }, { "PaellaVQModel", "stable-cascade-a" },
    { "AutoencoderDC", "dc-ae" }, { "AutoencoderTiny", "taesd" },
    { "AutoencoderKLWan", "vae-wan" }, { "AutoencoderKLQwenImage", "vae-qwen-image" },
    { "AutoencoderKLQwenImage21", "vae-qwen-image-2.1" },
    { "AutoencoderKLLTXVideo", "vae-ltx" }, { "CausalVideoAutoencoder", "vae-ltx" },
    { "AutoencoderKLLTX2Video", "vae-ltx-2" },
    { "AutoencoderKLHunyuanVideo", "vae-hunyuan-video" },
    { "AutoencoderKLHunyuanVideo15", "vae-hunyuan-video-1.5" },
    { "AutoencoderKLHunyuanImage", "vae-hunyuan-image" },
    { "AutoencoderKLTemporalDecoder", "vae-svd" }, { "AutoencoderKLFlux2", "vae-flux.2" },
    { "AutoencoderKLMochi", "vae-mochi" }, { "AutoencoderKLCogVideoX", "vae-cogvideox" },
    { "AutoencoderKLCosmos", "vae-cosmos" }, { "AutoencoderKLMagvit", "vae-magvit" },
    { "AutoencoderKLAllegro", "vae-allegro" }, { "AutoencoderKLMiniMaxH3", "vae-minimax-h3" },
    { "AllegroTransformer3DModel", "allegro" }, { "LatteTransformer3DModel", "latte" },
    { "EasyAnimateTransformer3DModel", "easyanimate" },
    { "MotifVideoTransformer3DModel", "motif-video" },
    { "NucleusMoEImageTransformer2DModel", "nucleus-moe-image" },
    { "SanaWMTransformer3DModel", "sana-wm" }, { "SanaVideoTransformer3DModel", "sana-video" },
    { "I2VGenXLUNet", "i2vgen-xl" }, { "DreamLiteUNetModel", "dreamlite" },
    { "UVit2DModel", "amused" }, { "UniDiffuserModel", "unidiffuser" },
    { "LuminaNextDiT2DModel", "lumina-next" },
    { "WuerstchenPrior", "wuerstchen-prior" }, { "WuerstchenDiffNeXt", "wuerstchen-diffnext" },
    { "Kandinsky6SRTransformer3DModel", "kandinsky-6-sr" }, { "AutoencoderSAME", "vae-same" },
    { "MMAudioVAE", "mmaudio-vae" }, { "AceStepAudioTokenizer", "ace-step-audio-tokenizer" },
    { "AceStepAudioTokenDetokenizer", "ace-step-audio-token-detokenizer" },
    { "AceStepConditionEncoder", "ace-step-condition-encoder" },
    { "LTX2TextConnectors", "ltx-2-text-connectors" },
    { "LTXLatentUpsamplerModel", "ltx-latent-upsampler" },
    { "LTX2LatentUpsamplerModel", "ltx-2-latent-upsampler" },
    { "Flux3Transformer2DModel", "flux.3" },
    { "Kandinsky6Transformer3DModel", "kandinsky-6" },
    { "ReduxImageEncoder", "flux.1-redux" }, { "CosmosControlNetModel", "cosmos" },
    { "ControlNetUnionModel", "sdxl" },
    { "SanaWMLTX2RefinerTransformer3DModel", "sana-wm-ltx2-refiner" },
    { "T5EncoderModel", "t5" }, { "UMT5EncoderModel", "umt5" },
    { "T5ForConditionalGeneration", "t5-seq2seq" },
    { "MT5ForConditionalGeneration", "mt5" },
};

/* Stems of pipelines: what follows says what they are used for. */
static const char *const map_pipelines[][2] = {
    { "StableDiffusionXL", "sdxl" }, { "StableDiffusion3", "sd-3" }, { "StableDiffusion", NULL },
    { "StableVideoDiffusion", "svd" }, { "Kolors", "kolors" }, { "Flux2", "flux.2" },
    { "Flux", "flux.1" }, { "PixArtAlpha", "pixart-alpha" }, { "PixArtSigma", "pixart-sigma" },
    { "HunyuanVideo15", "hunyuan-video-1.5" }, { "HunyuanVideo", "hunyuan-video" },
    { "HunyuanDiT", "hunyuan-dit" }, { "HunyuanImage", "hunyuan-image-2.1" }, { "Wan", "wan" },
    { "LTX2", "ltx-2" }, { "LTX", "ltx-video" }, { "Lumina2", "lumina-2" },
    { "ZImage", "z-image" }, { "AuraFlow", "auraflow" }, { "QwenImage", "qwen-image" },
    { "Mochi", "mochi" }, { "CogVideoX", "cogvideox" }, { "HiDreamImage", "hidream-i1" },
    { "OmniGen2", "omnigen-2" }, { "Sana", "sana" }, { "Chroma", "chroma" },
    { "Kandinsky5", "kandinsky-5" }, { "LongCatImage", "longcat-image" },
    { "OvisImage", "ovis-image" },
};

static const char *const map_tasks[] = {
    "Img2Img", "Image2Image", "ImageToImage", "Image2Video", "ImageToVideo", "VideoToVideo",
    "Text2Img", "T2V", "I2V", "T2I", "I2I", "V2V", "Inpainting", "Inpaint", "Upscale", "Depth2Img",
    "InstructPix2Pix", "ControlNet", "Control", "Union", "Kontext", "Fill", "PriorRedux", "Edit",
    "Plus", "Layered", "Condition", "Conditions", "Image", "Video", "VACE", "Animate", "PAG",
    "Adapter", "Turbo", "Sprint", "Framepack", "Skyreels", "Concept", "Omni", "Klein", "XS",
};

static sft_span without_tasks(sft_span rest) {
    bool found = true;
    while (rest.len > 0 && found) {
        found = false;
        for (size_t i = 0; i < SFTI_COUNT(map_tasks) && !found; i++) {
            found = sfti_begins(rest, map_tasks[i]);
            if (found) rest = sfti_from(rest, strlen(map_tasks[i]));
        }
    }
    return rest;
}

static bool map_pipeline(sft_span name, const char **architecture) {
    sft_span stem = { name.data, name.len - strlen("Pipeline") };
    for (size_t i = 0; i < SFTI_COUNT(map_pipelines); i++) {
        if (!sfti_begins(stem, map_pipelines[i][0])) continue;
        if (without_tasks(sfti_from(stem, strlen(map_pipelines[i][0]))).len > 0) continue;
        *architecture = map_pipelines[i][1];
        return true;
    }
    return false;
}

/* What part of a class's name says, where that is clear. */
static const struct map_class_kind {
    sfti_text_fits *fits;
    const char *part, *kind;
} map_class_kinds[] = {
    { sfti_ends, "Pipeline", "pipeline" }, { sfti_contains, "controlnet", "controlnet" },
    { sfti_is, "MotionAdapter", "motion_module" }, { sfti_is, "T2IAdapter", "t2i_adapter" },
    { sfti_ends_with, "Transformer1DModel", "diffusion_model" },
    { sfti_ends_with, "Transformer2DModel", "diffusion_model" },
    { sfti_ends_with, "Transformer3DModel", "diffusion_model" },
    { sfti_ends, "DiT2DModel", "diffusion_model" }, { sfti_ends, "DiTModel", "diffusion_model" },
    { sfti_begins, "UNet", "diffusion_model" }, { sfti_ends, "UNet", "diffusion_model" },
    { sfti_contains, "autoencoder", "vae" }, { sfti_ends, "VQModel", "vae" },
    { sfti_is, "CLIPModel", "image_encoder" }, { sfti_is, "SiglipModel", "image_encoder" },
    { sfti_is, "Dinov2Model", "image_encoder" }, { sfti_begins, "CLIPVision", "image_encoder" },
    { sfti_begins, "SiglipVision", "image_encoder" },
    { sfti_begins, "CLIPText", "text_encoder" }, { sfti_begins, "SiglipText", "text_encoder" },
    { sfti_ends, "T5EncoderModel", "text_encoder" },
    { sfti_ends, "T5ForConditionalGeneration", "language_model" },
    { sfti_ends, "ForCausalLM", "language_model" }, { sfti_ends, "LMHeadModel", "language_model" },
    { sfti_ends, "ForMaskedLM", "language_model" },
    { sfti_ends, "ForMultipleChoice", "language_model" },
    { sfti_ends, "ForNextSentencePrediction", "language_model" },
    { sfti_ends, "ForSpeechSeq2Seq", "audio_model" }, { sfti_ends, "ForCTC", "audio_model" },
    { sfti_ends, "ForRNNT", "audio_model" }, { sfti_ends, "ForXVector", "audio_model" },
    { sfti_ends, "ForAudioClassification", "audio_model" },
    { sfti_ends, "ForAudioFrameClassification", "audio_model" },
    { sfti_ends, "ForImageClassification", "vision_model" },
    { sfti_ends, "ForVideoClassification", "vision_model" },
    { sfti_ends, "ForSemanticSegmentation", "vision_model" },
    { sfti_ends, "ForUniversalSegmentation", "vision_model" },
    { sfti_ends, "ForInstanceSegmentation", "vision_model" },
    { sfti_ends, "ForDepthEstimation", "vision_model" },
    { sfti_ends, "ForMaskedImageModeling", "vision_model" },
    { sfti_ends, "Backbone", "vision_model" }, { sfti_ends, "ForObjectDetection", "detector" },
};

/* ── model_type of config.json ── */

/* What is called otherwise here, or has a kind whatever its class. */
static const struct map_type { const char *type, *architecture, *kind; } map_types[] = {
    { "llama", "llama", "language_model" }, { "mistral", "mistral", "language_model" },
    { "mixtral", "mixtral", "language_model" }, { "qwen2", "qwen2", "language_model" },
    { "qwen2_moe", "qwen2-moe", "language_model" }, { "qwen3", "qwen3", "language_model" },
    { "qwen3_moe", "qwen3-moe", "language_model" }, { "gemma", "gemma", "language_model" },
    { "gemma2", "gemma-2", "language_model" }, { "gemma3_text", "gemma-3", "language_model" },
    { "gemma3", "gemma-3", "language_model" }, { "phi", "phi", "language_model" },
    { "phi3", "phi-3", "language_model" }, { "deepseek_v2", "deepseek-v2", "language_model" },
    { "deepseek_v3", "deepseek-v3", "language_model" },
    { "gpt2", "gpt-2", "language_model" }, { "gptj", "gpt-j", "language_model" },
    { "gpt_neox", "gpt-neox", "language_model" }, { "gpt_oss", "gpt-oss", "language_model" },
    { "falcon", "falcon", "language_model" }, { "bert", "bert", "language_model" },
    { "roberta", "roberta", "language_model" }, { "distilbert", "distilbert", "language_model" },
    { "modernbert", "modernbert", "language_model" }, { "bart", "bart", "language_model" },
    { "mamba", "mamba", "language_model" }, { "rwkv", "rwkv", "language_model" },
    { "whisper", "whisper", "audio_model" }, { "vit", "vit", "vision_model" },
    { "siglip", "siglip", NULL }, { "siglip_vision_model", "siglip", "image_encoder" },
    { "siglip_text_model", "siglip", "text_encoder" },
    { "clip", "clip", NULL }, { "clip_text_model", "clip", "text_encoder" },
    { "clip_vision_model", "clip", "image_encoder" }, { "dinov2", "dinov2", "image_encoder" },
    { "umt5", "umt5", NULL }, { "t5", "t5", NULL },
    { "llama4", "llama-4", "language_model" }, { "llama4_text", "llama-4", "language_model" },
    { "gemma3n", "gemma-3n", "language_model" },
    { "gemma3n_text", "gemma-3n", "language_model" },
    { "glm4", "glm-4", "language_model" }, { "granitemoe", "granite-moe", "language_model" },
    { "granitemoehybrid", "granite-moe-hybrid", "language_model" },
    { "granitemoeshared", "granite-moe-shared", "language_model" },
    { "kimi_k25", "kimi-k2.5", "language_model" },
    { "mllama_text_model", "mllama", "language_model" }, { "florence2", "florence-2", NULL },
    { "dinov3_vit", "dinov3", NULL }, { "dinov3_convnext", "dinov3", NULL },
    { "sam2", "sam-2", NULL }, { "sam2_video", "sam-2", NULL },
    { "rt_detr", "rt-detr", NULL }, { "sam3", "sam-3", NULL },
};

bool sfti_map_model_type(sft_span text, const char **architecture, const char **kind) {
    for (size_t i = 0; i < SFTI_COUNT(map_types); i++) {
        if (!sfti_same_letters(text, map_types[i].type)) continue;
        *architecture = map_types[i].architecture;
        *kind = map_types[i].kind;
        return true;
    }
    return false;
}

/* ── A class ── */

/* Equal but for case and underscores: "GPTNeoX" and "gpt_neox". */
static bool same_model_name(sft_span name, const char *type) {
    size_t at = 0;
    for (; *type; type++) {
        if (*type == '_') continue;
        if (at == name.len || (name.data[at] | 0x20) != (*type | 0x20)) return false;
        at++;
    }
    return at == name.len;
}

/* "Qwen2MoeForCausalLM": a model of transformers and a head. */
static const char *map_model_class(sft_span name) {
    sft_span head = sfti_find_letters(name, "for");
    while (head.len > 3 && !(head.data[0] == 'F' && head.data[3] >= 'A' && head.data[3] <= 'Z'))
        head = sfti_find_letters(sfti_from(head, 1), "for");
    if (head.len > 3) name.len -= head.len;
    else if (sfti_ends(name, "LMHeadModel")) name.len -= strlen("LMHeadModel");
    else if (sfti_ends(name, "Model")) name.len -= strlen("Model");
    for (size_t i = 0; i < SFTI_COUNT(map_types); i++)
        if (same_model_name(name, map_types[i].type)) return map_types[i].architecture;
    return NULL;
}

bool sfti_map_class_name(sft_span name, const char **architecture, const char **kind) {
    name = sfti_trim(name);
    *architecture = *kind = NULL;
    (void)sfti_skip(&name, "Nunchaku");
    for (size_t i = 0; i < SFTI_COUNT(map_class_kinds) && !*kind; i++)
        if (map_class_kinds[i].fits(name, map_class_kinds[i].part))
            *kind = map_class_kinds[i].kind;
    for (size_t i = 0; i < SFTI_COUNT(map_classes); i++) {
        if (!sfti_same_letters(name, map_classes[i].name)) continue;
        *architecture = map_classes[i].architecture;
        return true;
    }
    if (sfti_ends(name, "Pipeline")) return map_pipeline(name, architecture);
    *architecture = map_model_class(name);
    return *architecture != NULL;
}

/* ── Predictions ── */

static const char *const map_predicts[][2] = {
    { "epsilon", "epsilon" }, { "eps", "epsilon" }, { "v", "v" }, { "v_prediction", "v" },
    { "v-prediction", "v" }, { "v_pred", "v" }, { "vpred", "v" }, { "sample", "x0" },
    { "x0", "x0" }, { "flow", "flow" }, { "flow_prediction", "flow" },
    { "flow_matching", "flow" }, { "flow-matching", "flow" }, { "rectified_flow", "flow" },
    { "edm", "edm" }, { "edm-v", "edm-v" }, { "v_prediction_edm", "edm-v" },
    { "edm_vpred", "edm-v" },
};

const char *sfti_map_prediction(sft_span text) {
    return SFTI_MAPPED(sfti_trim(text), map_predicts, sfti_same_letters);
}
