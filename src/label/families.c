/* Which architecture descends from which, and what two of them have in common. */
#include "label/info.h"

#include "base/json_lex.h"

#include <string.h>

#define FAMILY_DEPTH 4 /* steps up at most, so that no table can make a ring of it */

/* Child and parent: tensors of the child fit the parent, or one name stands for both where
 * nobody says more. A declared child is believed where tensors show its parent. */
static const char *const family_rows[][2] = {
    { "flux.1-dev", "flux.1" }, { "flux.1-schnell", "flux.1" }, { "chroma", "flux.1" },
    { "flux.1-redux", "flux.1" }, { "pulid-flux", "flux.1" }, { "pulid", "sdxl" },
    { "photomaker", "sdxl" }, { "vae-wan-2.2", "vae-wan" },
    { "chroma-radiance", "chroma" }, { "flux.2-dev", "flux.2" },
    { "flux.2-klein-4b", "flux.2" }, { "flux.2-klein-9b", "flux.2" }, { "sd-3-medium", "sd-3" },
    { "sd-3.5-medium", "sd-3" }, { "sd-3.5-large", "sd-3" }, { "wan-2.1", "wan" },
    { "wan-2.2", "wan" }, { "wan-animate-2", "wan" }, { "skyreels-v2", "wan" },
    { "chronoedit", "wan" }, { "anyflow", "wan" }, { "helios", "wan" },
    { "ltx-2", "ltx-video" }, { "sana-wm-ltx2-refiner", "ltx-2" }, { "framepack", "hunyuan-video" },
    { "qwen-image-2.1", "qwen-image" }, { "consisid", "cogvideox" },
    { "bria-fibo", "bria" }, { "bria-fibo-2", "bria-fibo" },
    { "stable-audio-3", "stable-audio" }, { "cosmos-1", "cosmos" }, { "cosmos-3", "cosmos" },
    { "cosmos-predict2", "cosmos" }, { "anima", "cosmos-predict2" },
    { "stable-cascade-a", "stable-cascade" }, { "stable-cascade-b", "stable-cascade" },
    { "stable-cascade-c", "stable-cascade" }, { "pixart-sigma", "pixart-alpha" },
    { "playground-2.5", "sdxl" }, { "ssd-1b", "sdxl" }, { "segmind-vega", "sdxl" },
    { "koala", "sdxl" }, { "kolors", "sdxl" }, { "pony", "sdxl" }, { "illustrious", "sdxl" },
    { "noobai", "sdxl" }, { "newbie", "lumina-2" },
    { "vae-qwen-image", "vae-wan" }, { "vae-qwen-image-2.1", "vae-wan" },
    { "vae-ltx-2", "vae-ltx" }, { "vae-hunyuan-video-1.5", "vae-hunyuan-video" },
    { "vae-svd", "vae-sd" }, { "clip-l", "clip" }, { "clip-g", "clip" }, { "clip-h", "clip" },
    { "siglip2", "siglip" }, { "t5-xxl", "t5" }, { "t5-seq2seq", "t5" }, { "umt5", "t5" },
    { "mt5", "t5-seq2seq" }, { "granite-moe-shared", "granite-moe" }, { "mistral", "llama" },
    { "ministral", "mistral" },
    { "ministral3", "mistral" }, { "mistral3", "mistral" }, { "xlm-roberta", "roberta" },
    { "xlm-roberta-xl", "roberta" }, { "camembert", "roberta" },
    { "roberta-prelayernorm", "roberta" }, { "deberta-v2", "deberta" }, { "mbart", "bart" },
    { "blenderbot-small", "blenderbot" }, { "dinov2_with_registers", "dinov2" },
    { "dinov3_convnext", "convnext" }, { "sam_hq", "sam" }, { "rt_detr_v2", "rt-detr" },
    { "beit", "vit" }, { "cait", "vit" }, { "data2vec-vision", "vit" }, { "deit", "vit" },
    { "deit3", "vit" }, { "dpt", "vit" }, { "eva", "vit" }, { "flava_image_model", "vit" },
    { "internvl_vision", "vit" }, { "pixio", "vit" }, { "timesformer", "vit" },
    { "tipsv2_vision_model", "vit" }, { "vit_mae", "vit" }, { "vit_msn", "vit" },
    { "vivit", "vit" }, { "yolos", "vit" }, { "test_vit", "vit" }, { "seresnet", "resnet" },
    /* timm's names of sizes: of the first part of their name */
    { "beit_", "beit" }, { "cait_", "cait" }, { "deit_", "deit" }, { "deit3_", "deit3" },
    { "convnext_", "convnext" }, { "eva_", "eva" }, { "eva02_", "eva02" }, { "vit_", "vit" },
    { "resnet#", "resnet" }, { "seresnet#", "seresnet" },
    /* quantisations */
    { "nvfp4", "compressed-tensors" }, { "mxfp4", "compressed-tensors" },
    { "compressed-tensors-w4a16", "compressed-tensors" },
    { "compressed-tensors-w8a16", "compressed-tensors" },
    { "compressed-tensors-w8a8", "compressed-tensors" },
    { "compressed-tensors-w4a4", "compressed-tensors" },
    { "compressed-tensors-w4a8", "compressed-tensors" },
};

/* Libraries write "qwen3_next", we write "qwen3-next". */
static bool same_id(sft_span a, sft_span b) {
    if (a.len != b.len) return false;
    for (size_t i = 0; i < a.len; i++)
        if ((a.data[i] == '_' ? '-' : a.data[i]) != (b.data[i] == '_' ? '-' : b.data[i]))
            return false;
    return true;
}

/* A name in full; up to an underscore, "vit_" of "vit_base_patch16"; "resnet#" of "resnet18". */
static bool family_fits(sft_span name, const char *child) {
    if (name.len == 0 || name.data[0] != *child) return false;
    size_t len = strlen(child);
    char last = child[len - 1];
    if (last == '_') return name.len > len && sfti_begins(name, child);
    if (last != '#') return same_id(name, sft_span_cstr(child));
    return name.len >= len && memcmp(name.data, child, len - 1) == 0
        && sfti_lex_digit(name.data[len - 1]);
}

static const char *family_parent(sft_span name) {
    return SFTI_MAPPED(name, family_rows, family_fits);
}

const char *sfti_architecture_parent(sft_span name) {
    return family_parent(name);
}

bool sfti_architecture_within(sft_span a, sft_span b) {
    for (int i = 0; i < FAMILY_DEPTH; i++) {
        if (same_id(a, b)) return true;
        const char *parent = family_parent(a);
        if (!parent) return false;
        a = sft_span_cstr(parent);
    }
    return false;
}

bool sfti_related_architectures(sft_span a, sft_span b) {
    return sfti_architecture_within(a, b) || sfti_architecture_within(b, a);
}

const char *sfti_common_architecture(const char *a, const char *b) {
    if (!b) return NULL;
    for (int i = 0; a && i < FAMILY_DEPTH; i++) {
        if (sfti_architecture_within(sft_span_cstr(b), sft_span_cstr(a))) return a;
        a = family_parent(sft_span_cstr(a));
    }
    return NULL;
}

/* ── Layers ── */

/* Families (structures.c) of language models, of which no model of one row has those of another. */
static const char *const family_groups[][3] = {
    { "llama-like", "moe-llama-like", "mla-like" },
    { "bert-like", "", "" },
    { "bart-like", "", "" },
    { "t5-like", "", "" },
    { "gpt-2-like", "", "" },
    { "mamba-like", "", "" },
};

/* Architectures, all of whose models have these. */
static const char *const grouped_rows[][2] = {
    { "llama", "llama-like" }, { "mixtral", "llama-like" }, { "qwen2", "llama-like" },
    { "qwen2-moe", "llama-like" }, { "qwen3", "llama-like" }, { "qwen3-moe", "llama-like" },
    { "gemma", "llama-like" }, { "gemma-2", "llama-like" }, { "phi-3", "llama-like" },
    { "deepseek-v2", "llama-like" }, { "deepseek-v3", "llama-like" }, { "bert", "bert-like" },
    { "roberta", "bert-like" }, { "bart", "bart-like" }, { "t5", "t5-like" },
    { "gpt-2", "gpt-2-like" }, { "mamba", "mamba-like" },
};

static size_t group_of(sft_span family) {
    size_t group = 0, count = SFTI_COUNT(family_groups);
    while (group < count && !SFTI_ONE_OF(family, family_groups[group], sfti_is)) group++;
    return group;
}

bool sfti_architecture_may_have(sft_span name, sft_span family) {
    size_t found = group_of(family);
    for (size_t i = 0; i < SFTI_COUNT(grouped_rows); i++) {
        if (!sfti_architecture_within(name, sft_span_cstr(grouped_rows[i][0]))) continue;
        return found == SFTI_COUNT(family_groups)
            || group_of(sft_span_cstr(grouped_rows[i][1])) == found;
    }
    return true;
}
