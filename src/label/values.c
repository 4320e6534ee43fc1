/* The vocabularies of docs/json-vocabularies.md: a test compares. */
#include "label/info.h"

static const char *const value_kinds[] = {
    "checkpoint", "diffusion_model", "pipeline", "adapter", "embedding", "text_encoder", "vae",
    "image_encoder", "controlnet", "control_lora", "ip_adapter", "t2i_adapter", "upscaler",
    "motion_module", "language_model", "audio_model", "vision_model", "detector", "unknown",
    "dataset",
    NULL
};

static const char *const value_architectures[] = {
    "sd-1", "sd-2", "sdxl", "sdxl-refiner", "ssd-1b", "segmind-vega", "koala", "playground-2.5",
    "svd", "sd-3", "sd-3-medium", "sd-3.5-medium", "sd-3.5-large", "stable-cascade-a",
    "stable-cascade-b", "stable-cascade-c", "flux.1", "flux.1-dev", "flux.1-schnell", "flux.2",
    "flux.2-dev", "flux.2-klein-4b", "flux.2-klein-9b", "chroma", "chroma-radiance",
    "pixart-alpha", "pixart-sigma", "hunyuan-dit", "hunyuan-video", "hunyuan-video-1.5",
    "hunyuan-image-2.1", "hunyuan-3d", "wan", "wan-2.1", "wan-2.2", "ltx-video", "ltx-2",
    "cosmos-1", "cosmos-predict2", "anima", "lumina-2", "newbie", "z-image", "auraflow",
    "qwen-image", "mochi", "cogvideox", "hidream-i1", "hidream-o1", "omnigen-2", "sana",
    "kandinsky-5", "kolors", "ideogram-4", "krea-2", "longcat-image", "ovis-image", "glm-image",
    "prx", "bria", "bria-fibo", "bria-fibo-2", "kandinsky-3", "cogview-3", "cogview4",
    "omnigen", "stable-cascade", "cosmos", "cosmos-3", "consisid", "framepack", "skyreels-v2",
    "chronoedit", "anyflow", "helios", "wan-animate-2", "qwen-image-2.1", "lens", "minimax-h3",
    "seedvr2", "boogu", "mage-flow", "ernie-image", "flux.3", "sana-video", "kandinsky-6",
    "allegro", "latte", "lumina-next", "easyanimate", "motif-video", "nucleus-moe-image",
    "sana-wm", "i2vgen-xl", "dreamlite", "amused", "unidiffuser", "wuerstchen-prior",
    "wuerstchen-diffnext", "kandinsky-6-sr", "flux.1-redux", "pulid-flux", "pulid",
    "photomaker", "ace-step", "stable-audio", "stable-audio-3", "whisper", "wav2vec2",
    "silero-vad", "vits", "bark", "encodec", "dac", "hubert", "wavlm", "wav2vec2-bert",
    "wav2vec2-conformer", "unispeech", "unispeech-sat", "sew", "speecht5", "moonshine", "dia",
    "musicgen", "clip", "clip-l", "clip-g", "clip-h", "siglip", "dinov2", "t5", "t5-xxl",
    "umt5", "mt5", "ace-step-condition-encoder", "ltx-2-text-connectors", "vae-sd", "vae-flux",
    "vae-flux.2", "vae-wan", "vae-qwen-image", "vae-qwen-image-2.1", "vae-ltx", "vae-ltx-2",
    "vae-hunyuan-video", "vae-hunyuan-video-1.5", "vae-hunyuan-image", "vae-svd", "vae-mochi",
    "vae-cogvideox", "vae-cosmos", "vae-magvit", "vae-stable-audio", "dc-ae", "taesd",
    "vae-wan-2.2", "vae-allegro", "vae-minimax-h3", "vae-same", "mmaudio-vae",
    "ace-step-audio-tokenizer", "ace-step-audio-token-detokenizer", "llama", "mistral",
    "mixtral", "qwen2", "qwen2-moe", "qwen3", "qwen3-moe", "gemma", "gemma-2", "gemma-3", "phi",
    "phi-3", "deepseek-v3", "gpt-2", "gpt-j", "gpt-neox", "gpt-oss", "falcon", "bloom", "mpt",
    "opt", "chatglm", "mamba", "rwkv", "bert", "roberta", "deberta", "distilbert", "modernbert",
    "bart", "t5-seq2seq", "deepseek-v2", "llama-4", "granite-moe-hybrid", "granite-moe",
    "glm-4", "glm", "lfm2-moe", "lfm2", "jamba", "starcoder2", "falcon-h1", "bamba",
    "kimi-linear", "kimi-k2.5", "kimi-k2", "deepseek-v4", "qwen3-next", "gemma-3n",
    "recurrent-gemma", "minimax", "bitnet", "apertus", "afmoe", "hunyuan-v1-moe",
    "longcat-flash", "zamba2", "zamba", "xlstm", "jetmoe", "gpt-neo", "codegen", "ctrl",
    "openai-gpt", "molmo2", "mllama", "cohere", "mpnet", "albert", "deberta-v2", "electra",
    "mobilebert", "longformer", "convbert", "nomic-bert", "gte", "xlnet", "esm", "roformer",
    "fnet", "squeezebert", "funnel", "xlm-roberta-xl", "megatron-bert", "luke", "layoutlmv3",
    "longt5", "switch-transformers", "udop", "nllb-moe", "prophetnet", "led", "florence-2",
    "t5gemma", "pegasus-x", "vit", "swin", "resnet", "depth-anything-3", "yolo", "sam", "sam-3",
    "rt-detr", "yolos", "conditional-detr", "rf-detr", "d-fine", "owlv2", "sam-hq", "sam-2",
    "edgetam", "convnext", "convnextv2", "dinov3", "dinov2-with-registers", "efficientnet",
    "eva02", "segformer", "beit", "deit", "dpt", "swinv2", "hiera", "focalnet", "poolformer",
    "levit", "mobilevit", "mobilevitv2", "mobilenet-v2", "regnet", "bit", "pvt", "pvt-v2",
    "cvt", "zoedepth", "depth-pro", "mask2former", "oneformer", "clipseg", "birefnet", "esrgan",
    "span", "dat", "hat", "swin2sr", "srformer", "swinir", "omnisr", "rcan", "plksr",
    "realplksr", "atd", "gfpgan", "restoreformer", "codeformer", "restormer", "scunet", "drct",
    "safmn", "moesr", "mosr", "nafnet", "realcugan", "ditn", "dncnn", "drunet", "fbcnn", "fdat",
    "fftformer", "femasr", "grl", "craft", "rgt", "lama", "mat", "ddcolor", "aurasr", "ipt",
    "uformer", "seemore", "srvgg", "ltx-2-latent-upsampler", "ltx-latent-upsampler",
    NULL
};

static const char *const value_variants[] = {
    "inpaint", "edit", "depth", "unclip", "upscale", "fill", "canny", "control", "kontext",
    "layered", "t2v", "i2v", "ti2v", "flf2v", "vace", "s2v", "animate", "camera", "humo",
    "high-noise", "low-noise", "turbo", "lightning", "hyper", "lcm", "2x", "3x", "4x", "8x",
    "1.3b", "2b", "5b", "13b", "14b",
    NULL
};

static const char *const value_families[] = {
    "llama-like", "moe-llama-like", "mla-like", "bart-like", "t5-like", "bert-like",
    "gpt-2-like", "mamba-like", "clip-like", "vit", "swin-like", "convnet", "autoencoder",
    "unet", "dit", "flux", "wan",
    NULL
};

static const char *const value_quantisations[] = {
    "fp8", "fp8-scaled", "fp8-block", "bnb-nf4", "bnb-fp4", "bnb-int8", "svdquant-int4",
    "svdquant-fp4", "nvfp4", "mxfp4", "mxfp8", "int8", "compressed-tensors",
    NULL
};

static const char *const value_predictions[] = {
    "epsilon", "v", "edm", "edm-v", "flow", "x0",
    NULL
};

static const struct value_row {
    sft_fact fact;
    bool closed;
    const char *const *values;
} value_rows[] = {
    { SFT_FACT_KIND, true, value_kinds },
    { SFT_FACT_ARCHITECTURE, false, value_architectures },
    { SFT_FACT_VARIANT, false, value_variants },
    { SFT_FACT_PREDICTION_TYPE, true, value_predictions },
    { SFT_FACT_QUANTIZATION, false, value_quantisations },
    { SFT_FACT_FAMILY, false, value_families },
};

bool sft_fact_values(sft_fact fact, bool (*take)(void *ctx, const char *value), void *ctx) {
    for (size_t i = 0; i < SFTI_COUNT(value_rows); i++) {
        if (value_rows[i].fact != fact) continue;
        const char *const *value = value_rows[i].values;
        while (*value && take(ctx, *value)) value++;
        return value_rows[i].closed;
    }
    return false;
}
