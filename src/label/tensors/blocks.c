/* Which architectures have blocks and layers of a name: what a declaration is held to where the
 * tensors themselves tell no more than the commonest of several models. */
#include "label/tensors/adapters.h"

#include <stdio.h>
#include <string.h>

#define UNETS \
    "sd-1 sd-2 sdxl sdxl-refiner svd i2vgen-xl kandinsky-3 stable-cascade dreamlite " \
    "wuerstchen-diffnext amused"
/* U-Nets with more than one transformer in a block, or attention to a text of that width. */
#define DEEP_UNETS "sdxl sdxl-refiner kandinsky-3 dreamlite"
#define DECODERS \
    "llama mixtral qwen2 qwen2-moe qwen3 qwen3-moe gemma gemma-2 gemma-3 phi phi-3 deepseek-v2 " \
    "deepseek-v3 mamba"

/* A row is seen where a module begins with one of the names, at the top of the main part, or where
 * the clauses (targets.c) hold for the forms of an adapter. It lists every architecture that may
 * have them; parents and children of what is listed are meant too. */
static const struct block_row {
    const char *tops, *clauses, *architectures;
} block_rows[] = {
    { "down_blocks up_blocks mid_block", NULL, UNETS },
    { "input_blocks output_blocks middle_block", NULL, UNETS },
    { "double_blocks single_blocks", NULL,
      "flux.1 flux.2 hunyuan-video hunyuan-video-1.5 hunyuan-image-2.1 hunyuan-3d longcat-image "
      "ovis-image" },
    { "single_transformer_blocks", NULL,
      "flux.1 flux.2 hunyuan-video hunyuan-image-2.1 longcat-image ovis-image auraflow bria "
      "motif-video" },
    { "joint_transformer_blocks double_layers", NULL, "auraflow" },
    { "joint_blocks", NULL, "sd-3" },
    { "transformer_blocks", NULL,
      "flux.1 flux.2 sd-3 qwen-image ltx-video cogvideox pixart-alpha sana sana-video cosmos mochi "
      "hunyuan-video hunyuan-video-1.5 hunyuan-image-2.1 allegro latte easyanimate stable-audio "
      "nucleus-moe-image glm-image longcat-image ovis-image bria cogview-3 cogview4 motif-video "
      "minimax-h3 ace-step" },
    { "blocks", NULL,
      "wan cosmos mochi pixart-alpha hunyuan-dit wuerstchen-prior prx sana sana-wm hunyuan-3d "
      "vit" },
    { "layers noise_refiner context_refiner", NULL,
      "z-image lumina-2 lumina-next omnigen omnigen-2 ace-step cosmos-3 ernie-image bria-fibo-2 "
      "auraflow " DECODERS },
    { "visual_transformer_blocks", NULL, "kandinsky-5 kandinsky-6" },
    { "double_stream_blocks single_stream_blocks", NULL, "hidream-i1" },
    { NULL, "^transformer_blocks_#_attn_add_k_proj[in=1536]",
      "sd-3-medium sd-3.5-medium nucleus-moe-image motif-video easyanimate" },
    { NULL, "^joint_blocks_#_[in=1536]", "sd-3-medium sd-3.5-medium" },
    { NULL, "^transformer_blocks_#_img_mlp_ | ^transformer_blocks_#_img_mod_",
      "qwen-image nucleus-moe-image" },
    { NULL, "^transformer_blocks_#_attn1_to_[in=2240]", "sana sana-video" },
    { NULL, "^transformer_blocks_#_attn2_to_k$[in=1024] ; "
            "^transformer_blocks_#_attn1_to_k$[in=2048|4096|5120]", "cosmos" },
    { NULL, "^down_blocks_#_attentions_#_transformer_blocks_#_attn2_to_k$[in=1280] | "
            "^up_blocks_#_attentions_#_transformer_blocks_#_attn2_to_k$[in=1280] | "
            "^input_blocks_#_#_transformer_blocks_#_attn2_to_k$[in=1280] | "
            "^output_blocks_#_#_transformer_blocks_#_attn2_to_k$[in=1280]",
      "sdxl-refiner kandinsky-3 dreamlite" },
    { NULL, "^down_blocks_#_attentions_#_transformer_blocks_#_[t>=1] | "
            "^up_blocks_#_attentions_#_transformer_blocks_#_[t>=1] | "
            "^mid_block_attentions_#_transformer_blocks_#_[t>=1] | "
            "put_blocks_#_#_transformer_blocks_#_[t>=1] | "
            "^middle_block_#_transformer_blocks_#_[t>=1]", DEEP_UNETS },
    { NULL, "te2:self_attn_[in=1280]", "sdxl sdxl-refiner sd-3 hidream-i1" },
    /* of language */
    { NULL, "^model_layers_#_ | ^language_model_model_layers_#_ | "
            "^model_language_model_layers_#_", DECODERS },
    { NULL, "^transformer_h_#_ | ^h_#_attn_c_", "gpt-2 falcon" },
    { NULL, "^gpt_neox_layers_#_", "gpt-neox" },
    { NULL, "^bert_encoder_layer_#_", "bert" },
    { NULL, "^roberta_encoder_layer_#_", "roberta" },
    { NULL, "^distilbert_transformer_layer_#_", "distilbert" },
    { NULL, "^vit_encoder_layer_#_", "vit" },
    { NULL, "encoder_block_#_layer_#_SelfAttention", "t5" },
};

static bool row_has(const struct block_row *row, sft_span architecture) {
    sft_span rest = sft_span_cstr(row->architectures), id;
    while (sfti_next_piece(&rest, ' ', &id))
        if (sfti_related_architectures(id, architecture)) return true;
    return false;
}

void sfti_blocks_of_forms(const sfti_forms *forms) {
    char clause[64];
    for (size_t i = 0; i < SFTI_COUNT(block_rows); i++) {
        const struct block_row *row = &block_rows[i];
        sft_span rest = sft_span_cstr(row->tops ? row->tops : ""), top;
        bool seen = row->clauses && sfti_forms_hold(forms, row->clauses);
        while (!seen && row->tops && sfti_next_piece(&rest, ' ', &top)) {
            snprintf(clause, sizeof clause, "^%.*s_", (int)top.len, top.data);
            seen = sfti_forms_hold(forms, clause);
        }
        if (seen) forms->info->blocks |= UINT64_C(1) << i;
    }
}

void sfti_blocks_of_model(const sfti_view *at) {
    char begin[64];
    for (size_t i = 0; i < SFTI_COUNT(block_rows); i++) {
        sft_span rest = sft_span_cstr(block_rows[i].tops ? block_rows[i].tops : ""), top;
        while (block_rows[i].tops && sfti_next_piece(&rest, ' ', &top)) {
            snprintf(begin, sizeof begin, "%.*s.", (int)top.len, top.data);
            if (sfti_view_any(at, begin)) at->info->blocks |= UINT64_C(1) << i;
        }
    }
}

/* A row that was seen lacks it, and another row has it. */
bool sfti_tensors_exclude(const sft_info *info, sft_span architecture) {
    bool lacks = false, known = false;
    for (size_t i = 0; info->blocks >> i && !lacks; i++)
        lacks = info->blocks >> i & 1 && !row_has(&block_rows[i], architecture);
    for (size_t i = 0; lacks && i < SFTI_COUNT(block_rows) && !known; i++)
        known = row_has(&block_rows[i], architecture);
    return known;
}
