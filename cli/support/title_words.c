/* What people call the ids of a result object. */
#include "support/titles.h"
#include "support/words.h"

#include <string.h>

typedef struct id_words {
    const char *id, *words;
} id_words;

static const id_words architecture_names[] = {
    { "sd-1", "SD 1" }, { "sd-2", "SD 2" }, { "sdxl", "SDXL" },
    { "sdxl-refiner", "SDXL Refiner" }, { "ssd-1b", "SSD-1B" },
    { "segmind-vega", "Segmind Vega" }, { "koala", "KOALA" },
    { "playground-2.5", "Playground 2.5" }, { "svd", "Stable Video Diffusion" },
    { "sd-3", "SD 3" }, { "sd-3-medium", "SD 3 Medium" }, { "sd-3.5-medium", "SD 3.5 Medium" },
    { "sd-3.5-large", "SD 3.5 Large" }, { "stable-cascade", "Stable Cascade" },
    { "stable-cascade-a", "Stable Cascade A" }, { "stable-cascade-b", "Stable Cascade B" },
    { "stable-cascade-c", "Stable Cascade C" }, { "pony", "Pony" },
    { "illustrious", "Illustrious" }, { "noobai", "NoobAI" },
    { "flux.1", "Flux.1" }, { "flux.1-dev", "Flux.1 dev" },
    { "flux.1-schnell", "Flux.1 schnell" }, { "flux.2", "Flux.2" },
    { "flux.2-dev", "Flux.2 dev" }, { "flux.2-klein-4b", "Flux.2 klein 4B" },
    { "flux.2-klein-9b", "Flux.2 klein 9B" }, { "flux.3", "Flux.3" }, { "chroma", "Chroma" },
    { "chroma-radiance", "Chroma Radiance" }, { "pixart-alpha", "PixArt-alpha" },
    { "pixart-sigma", "PixArt-sigma" }, { "hunyuan-dit", "HunyuanDiT" },
    { "hunyuan-video", "HunyuanVideo" }, { "hunyuan-video-1.5", "HunyuanVideo 1.5" },
    { "hunyuan-image", "HunyuanImage" }, { "hunyuan-image-2.1", "HunyuanImage 2.1" },
    { "hunyuan-3d", "Hunyuan3D" }, { "framepack", "FramePack" },
    { "wan", "Wan" }, { "wan-2.1", "Wan 2.1" }, { "wan-2.2", "Wan 2.2" },
    { "wan-animate-2", "Wan Animate 2" }, { "skyreels-v2", "SkyReels V2" },
    { "chronoedit", "ChronoEdit" }, { "anyflow", "AnyFlow" }, { "helios", "Helios" },
    { "ltx", "LTX-Video" }, { "ltx-video", "LTX-Video" }, { "ltx-2", "LTX-2" },
    { "cosmos", "Cosmos" }, { "cosmos-1", "Cosmos 1" }, { "cosmos-3", "Cosmos 3" },
    { "cosmos-predict2", "Cosmos Predict2" }, { "anima", "Anima" }, { "lumina-2", "Lumina 2" },
    { "newbie", "NewBie" }, { "z-image", "Z-Image" }, { "auraflow", "AuraFlow" },
    { "qwen-image", "Qwen-Image" }, { "qwen-image-2.1", "Qwen-Image 2.1" },
    { "mochi", "Mochi" }, { "cogvideox", "CogVideoX" }, { "consisid", "ConsisID" },
    { "cogview-3", "CogView3" }, { "cogview4", "CogView4" }, { "hidream-i1", "HiDream I1" },
    { "hidream-o1", "HiDream O1" }, { "omnigen", "OmniGen" }, { "omnigen-2", "OmniGen2" },
    { "sana", "Sana" }, { "sana-video", "Sana Video" }, { "kandinsky-3", "Kandinsky 3" },
    { "kandinsky-5", "Kandinsky 5" }, { "kandinsky-6", "Kandinsky 6" }, { "kolors", "Kolors" },
    { "ideogram-4", "Ideogram 4" }, { "krea-2", "Krea 2" },
    { "longcat-image", "LongCat-Image" }, { "ovis-image", "Ovis-Image" },
    { "glm-image", "GLM-Image" }, { "prx", "PRX" }, { "bria", "Bria" },
    { "bria-fibo", "Bria FIBO" }, { "bria-fibo-2", "Bria FIBO 2" }, { "seedvr2", "SeedVR2" },
    { "ernie-image", "ERNIE-Image" }, { "mage-flow", "Mage-Flow" },
    { "ace-step", "ACE-Step" }, { "stable-audio", "Stable Audio" },
    { "stable-audio-3", "Stable Audio 3" }, { "whisper", "Whisper" },
    { "wav2vec2", "wav2vec 2.0" }, { "silero-vad", "Silero VAD" },
    { "clip", "CLIP" }, { "clip-l", "CLIP-L" }, { "clip-g", "CLIP-G" }, { "clip-h", "CLIP-H" },
    { "siglip", "SigLIP" }, { "siglip2", "SigLIP 2" }, { "dinov2", "DINOv2" }, { "t5", "T5" },
    { "t5-xxl", "T5-XXL" }, { "umt5", "UMT5" }, { "mt5", "mT5" },
    { "vae-sd", "SD VAE" }, { "vae-flux", "Flux.1 VAE" }, { "vae-flux.2", "Flux.2 VAE" },
    { "vae-wan", "Wan VAE" }, { "dc-ae", "DC-AE" }, { "taesd", "TAESD" },
    { "llama", "Llama" }, { "mistral", "Mistral" }, { "mixtral", "Mixtral" },
    { "qwen2", "Qwen2" }, { "qwen2-moe", "Qwen2 MoE" }, { "qwen3", "Qwen3" },
    { "qwen3-moe", "Qwen3 MoE" }, { "gemma", "Gemma" }, { "gemma-2", "Gemma 2" },
    { "gemma-3", "Gemma 3" }, { "phi", "Phi" }, { "phi-3", "Phi-3" },
    { "deepseek-v2", "DeepSeek V2" }, { "deepseek-v3", "DeepSeek V3" }, { "gpt-2", "GPT-2" },
    { "gpt-j", "GPT-J" }, { "gpt-neox", "GPT-NeoX" }, { "falcon", "Falcon" },
    { "bloom", "BLOOM" }, { "mpt", "MPT" }, { "opt", "OPT" }, { "chatglm", "ChatGLM" },
    { "mamba", "Mamba" }, { "rwkv", "RWKV" }, { "bert", "BERT" }, { "roberta", "RoBERTa" },
    { "deberta", "DeBERTa" }, { "distilbert", "DistilBERT" }, { "modernbert", "ModernBERT" },
    { "bart", "BART" }, { "t5-seq2seq", "T5" },
    { "vit", "ViT" }, { "swin", "Swin" }, { "resnet", "ResNet" },
    { "depth-anything-3", "Depth Anything 3" }, { "yolo", "YOLO" }, { "sam", "SAM" },
    { "sam-3", "SAM 3" }, { "rt-detr", "RT-DETR" },
    { "esrgan", "ESRGAN" }, { "span", "SPAN" }, { "dat", "DAT" }, { "hat", "HAT" },
    { "swin2sr", "Swin2SR" }, { "srformer", "SRFormer" }, { "swinir", "SwinIR" },
    { "omnisr", "OmniSR" }, { "rcan", "RCAN" }, { "plksr", "PLKSR" },
    { "realplksr", "RealPLKSR" }, { "atd", "ATD" }, { "gfpgan", "GFPGAN" },
    { "restoreformer", "RestoreFormer" }, { "codeformer", "CodeFormer" },
    { "restormer", "Restormer" }, { "scunet", "SCUNet" }, { "drct", "DRCT" },
    { "realcugan", "Real-CUGAN" }, { "nafnet", "NAFNet" }, { "lama", "LaMa" },
    { "ddcolor", "DDColor" }, { "srvgg", "SRVGG" },
};

/* Before "language model", "vision model" and the like. */
static const id_words family_names[] = {
    { "llama-like", "Llama-like" }, { "moe-llama-like", "Llama-like MoE" },
    { "bart-like", "BART-like" }, { "t5-like", "T5-like" }, { "bert-like", "BERT-like" },
    { "gpt-2-like", "GPT-2-like" }, { "mamba-like", "Mamba-like" },
    { "clip-like", "CLIP-like" }, { "swin-like", "Swin-like" }, { "vit", "ViT" },
    { "convnet", "convolutional" }, { "autoencoder", "autoencoder" }, { "unet", "U-Net" },
    { "dit", "DiT" }, { "flux", "Flux-like" }, { "wan", "Wan-like" },
};

static const id_words kind_names[] = {
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
    { "adalora", "AdaLoRA" }, { "vera", "VeRA" }, { "xlora", "X-LoRA" },
    { "vblora", "VB-LoRA" }, { "randlora", "RandLoRA" }, { "fourierft", "FourierFT" },
    { "hra", "HRA" }, { "shira", "SHiRA" }, { "miss", "MiSS" }, { "c3a", "C3A" },
    { "road", "RoAd" }, { "unilora", "Uni-LoRA" }, { "gralora", "GraLoRA" }, { "hira", "HiRA" },
    { "delora", "DeLoRA" }, { "waveft", "WaveFT" }, { "tinylora", "TinyLoRA" },
    { "full", "full-weight" }, { "mixed", "mixed" },
    { "ln_tuning", "layer norm" }, { "prefix_tuning", "prefix tuning" },
    { "prompt_tuning", "prompt tuning" }, { "p_tuning", "p-tuning" },
};

static const id_words prediction_names[] = {
    { "epsilon", "epsilon" }, { "v", "v-pred" }, { "edm", "EDM" }, { "edm-v", "EDM v-pred" },
    { "flow", "flow" }, { "x0", "x0-pred" },
};

/* CivitAI's labels that say the same as an architecture, and long ones. */
static const id_words base_names[] = {
    { "SDXL 1.0", "SDXL" }, { "SDXL 1.0 LCM", "SDXL LCM" }, { "Flux.1 D", "Flux.1 dev" },
    { "Flux.1 S", "Flux.1 schnell" }, { "Flux.2 D", "Flux.2 dev" }, { "Qwen", "Qwen-Image" },
    { "ZImageTurbo", "Z-Image Turbo" }, { "ZImageBase", "Z-Image Base" },
    { "Hunyuan Video", "HunyuanVideo" }, { "LTXV", "LTX-Video" }, { "SVD XT", "SVD-XT" },
    { "PixArt a", "PixArt-alpha" }, { "PixArt E", "PixArt-sigma" },
    { "Wan Video", "Wan" }, { "Wan Video 1.3B t2v", "Wan 2.1 T2V 1.3B" },
    { "Wan Video 14B t2v", "Wan 2.1 T2V 14B" },
    { "Wan Video 14B i2v 480p", "Wan 2.1 I2V 14B 480p" },
    { "Wan Video 14B i2v 720p", "Wan 2.1 I2V 14B 720p" },
    { "Wan Video 2.2 T2V-A14B", "Wan 2.2 T2V 14B" },
    { "Wan Video 2.2 I2V-A14B", "Wan 2.2 I2V 14B" },
    { "Wan Video 2.2 TI2V-5B", "Wan 2.2 TI2V 5B" },
};

/* In the order in which they are said: the task, what makes it special, the size. */
static const struct variant_name {
    const char *id, *words;
    bool apart; /* behind a comma */
} variant_names[] = {
    { "t2v", "T2V", false }, { "i2v", "I2V", false }, { "ti2v", "TI2V", false },
    { "flf2v", "FLF2V", false }, { "s2v", "S2V", false }, { "vace", "VACE", false },
    { "animate", "Animate", false }, { "camera", "Camera", false }, { "humo", "HuMo", false },
    { "kontext", "Kontext", false }, { "fill", "Fill", false }, { "inpaint", "inpaint", false },
    { "edit", "Edit", false }, { "layered", "Layered", false }, { "depth", "depth", false },
    { "canny", "canny", false }, { "control", "Control", false }, { "unclip", "unCLIP", false },
    { "upscale", "upscale", false }, { "turbo", "Turbo", false },
    { "lightning", "Lightning", false }, { "hyper", "Hyper", false }, { "lcm", "LCM", false },
    { "1.3b", "1.3B", false }, { "2b", "2B", false }, { "5b", "5B", false },
    { "13b", "13B", false }, { "14b", "14B", false },
    { "high-noise", "high noise", true }, { "low-noise", "low noise", true },
};

/* What ends in "-" begins a name: "Nbit" behind it becomes "N-bit", all else capitals. */
static const id_words quantization_names[] = {
    { "fp8-scaled", "FP8 scaled" }, { "fp8-block", "FP8 block-scaled" }, { "fp8", "FP8" },
    { "bnb-nf4", "NF4" }, { "bnb-fp4", "bitsandbytes FP4" }, { "bnb-int8", "bitsandbytes INT8" },
    { "gptq-", "GPTQ " }, { "awq-", "AWQ " }, { "mlx-", "MLX " }, { "exl2-", "EXL2 " },
    { "exl3-", "EXL3 " }, { "hqq-", "HQQ " }, { "svdquant-int4", "SVDQuant INT4" },
    { "svdquant-fp4", "SVDQuant FP4" }, { "nvfp4", "NVFP4" }, { "mxfp4", "MXFP4" },
    { "mxfp8", "MXFP8" }, { "int8", "INT8" }, { "quanto-", "Quanto " },
    { "torchao-", "torchao " }, { "compressed-tensors-", "compressed-tensors " },
};

#define WORDS_OF(id, table) words_of(id, table, sizeof(table) / sizeof *(table))

static sft_span words_of(sft_span id, const id_words *rows, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (cli_is(id, rows[i].id)) return sft_span_cstr(rows[i].words);
    return id;
}

sft_span cli_architecture_words(sft_span id) {
    return WORDS_OF(id, architecture_names);
}

sft_span cli_family_words(sft_span id) {
    return WORDS_OF(id, family_names);
}

sft_span cli_kind_words(sft_span id) {
    return WORDS_OF(id, kind_names);
}

sft_span cli_prediction_words(sft_span id) {
    return WORDS_OF(id, prediction_names);
}

sft_span cli_base_label_words(sft_span label) {
    while (label.len > 1 && label.data[label.len - 1] == '/') label.len--;
    for (size_t i = 0; i < label.len; i++) {
        bool path = label.data[i] == '/' || label.data[i] == '\\';
        if (!path || i + 1 == label.len) continue;
        label = (sft_span){ label.data + i + 1, label.len - i - 1 };
        i = 0;
    }
    if (cli_ends_with(label, ".safetensors")) label.len -= sizeof ".safetensors" - 1;
    else if (cli_ends_with(label, ".ckpt")) label.len -= sizeof ".ckpt" - 1;
    return WORDS_OF(label, base_names);
}

/* ── Composed ids ── */

static void put_words(char buffer[CLI_TITLE_SIZE], size_t *used, const char *before,
                          sft_span words) {
    size_t room = CLI_TITLE_SIZE - *used, gap = *used ? strlen(before) : 0;
    if (gap + words.len < room) {
        memcpy(buffer + *used, before, gap);
        memcpy(buffer + *used + gap, words.data, words.len);
        *used += gap + words.len;
    }
}

sft_span cli_variant_words(sft_span variant, char buffer[CLI_TITLE_SIZE]) {
    size_t used = 0;
    size_t count = sizeof variant_names / sizeof *variant_names;
    sft_span one, rest;
    for (size_t i = 0; i < count; i++) {
        const struct variant_name *row = &variant_names[i];
        bool has = false;
        for (rest = variant; !has && rest.len && cli_next_part(&rest, '+', &one);)
            has = cli_is(one, row->id);
        if (has) put_words(buffer, &used, row->apart ? ", " : " ", sft_span_cstr(row->words));
    }
    for (rest = variant; rest.len && cli_next_part(&rest, '+', &one);) {
        size_t i = 0;
        while (i < count && !cli_is(one, variant_names[i].id)) i++;
        if (i == count) put_words(buffer, &used, " ", one);
    }
    return (sft_span){ buffer, used };
}

sft_span cli_quantization_words(sft_span id, char buffer[CLI_TITLE_SIZE]) {
    for (size_t i = 0; i < sizeof quantization_names / sizeof *quantization_names; i++) {
        const id_words *row = &quantization_names[i];
        size_t len = strlen(row->id), used = 0;
        bool begins = row->id[len - 1] == '-';
        if (cli_is(id, row->id)) return sft_span_cstr(row->words);
        if (!begins || id.len <= len || memcmp(id.data, row->id, len) != 0) continue;
        sft_span rest = { id.data + len, id.len - len };
        bool bits = cli_ends_with(rest, "bit");
        put_words(buffer, &used, "", sft_span_cstr(row->words));
        if (bits) {
            rest.len -= 3;
            put_words(buffer, &used, "", rest);
            put_words(buffer, &used, "-", sft_span_cstr("bit"));
        } else {
            for (size_t k = 0; k < rest.len; k++) {
                char c = cli_upper(rest.data[k]);
                put_words(buffer, &used, "", (sft_span){ &c, 1 });
            }
        }
        return (sft_span){ buffer, used };
    }
    return id;
}
