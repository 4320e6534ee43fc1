/* What model an adapter is for, by the names and sizes of the layers it adapts.
 *
 * Clauses as in signatures.h, but about forms: "^double_blocks_#_img_mlp_0$[in=3072|4096]" is
 * text between optional anchors, "#" any number but at the end of a name; with a '.' it is
 * looked for in the name as it is. "te2:" asks the second text encoder, "te:" the only one;
 * else the main part. Conditions, separated by ',': in=, out= (sizes, 0 = not to be seen),
 * in>=1, n>= (first number), t>= (number after transformer_blocks), each (of each number from the
 * first to the last, and so of every form that the pattern fits). "!" denies a clause. */
#include "label/tensors/adapters.h"

#include "base/json_lex.h"

#include <string.h>

/* Blocks of Wan, and attention of a U-Net to the text, of that width. */
#define WAN_WIDTH(n) \
    "^blocks_#_cross_attn_[in=" n "] | ^blocks_#_self_attn_[in=" n "] | " \
    "^blocks_#_attn1_to_[in=" n "] | ^blocks_#_attn2_to_[in=" n "] | ^blocks_#_ffn_0[in=" n "]"
/* Wan calls them q and attn1.to_q. */
#define NOT_DIFFUSERS " ; !^blocks_#_cross_attn_to_ ; !^blocks_#_self_attn_to_"
#define TEXT_WIDTH(n) \
    "_#_transformer_blocks_#_attn2_to_k$[in=" n "] | _#_transformer_blocks_#_attn2_to_v$[in=" n "]"

const sfti_target sfti_target_rows[] = {
    /* HunyuanVideo and Image */
    { "hunyuan-image-2.1", 100, "^byt5_in_ ; ^double_blocks_#_ | ^single_blocks_#_" },
    { "minimax-h3", 100, "^token_refiner_refiner_blocks_#_attn_to_[in=5376]" },
    { "hunyuan-image-2.1", 100,
      "^context_embedder_token_refiner_refiner_blocks_#_attn_to_[in=3584]" },
    { "hunyuan-video-1.5", 100,
      "^context_embedder_token_refiner_refiner_blocks_#_attn_to_[in=2048]" },
    { "qwen-image-2.1", 100,
      "^transformer_blocks_#_img_mlp_gate_layer | ^transformer_blocks_#_img_mlp_proj$" },
    { "nucleus-moe-image", 100,
      "^transformer_blocks_#_encoder_proj | ^transformer_blocks_#_img_mlp_shared_expert_" },
    { "wan-animate-2", 100, "^blocks_#_cross_attn_add_k_proj | ^blocks_#_cross_attn_add_v_proj" },
    { "hunyuan-dit", 100, "^blocks_#_attn1_to_[in=1408] | ^blocks_#_attn2_to_q$[in=1408]" },
    { "latte", 100, "^temporal_transformer_blocks_#_" },
    { "easyanimate", 100, "^transformer_blocks_#_txt_ff_" },
    { "omnigen", 100, "^layers_#_mlp_gate_up_proj ; ^layers_#_self_attn_to_" },
    { "cosmos-3", 100, "^layers_#_self_attn_add_k_proj | ^layers_#_mlp_moe_gen_" },
    { "hunyuan-video", 60, "token_refiner" },
    { "hunyuan-video", 100, "^double_blocks_#_img_mlp_fc1" },
    { "hunyuan-video", 100, "double_blocks.#.img_attn_qkv" },
    { "hunyuan-video", 100,
      "^double_blocks_#_[in=3072,n>=19] | ^single_blocks_#_[in=3072,n>=38] ; "
      "!^double_blocks_#_attn_img_attn" },
    { "hunyuan-video", 60,
      "^transformer_blocks_#_[in=3072,n>=19] | ^single_transformer_blocks_#_[in=3072,n>=38] ; "
      "^single_transformer_blocks_#_ ; ^transformer_blocks_#_ | "
      "^single_transformer_blocks_#_[n>=38] ; !to_qkv_mlp_proj" },
    /* FLUX.2 */
    { "flux.2-dev", 100,
      "to_qkv_mlp_proj[in=6144] | ^double_blocks_#_img_attn_proj[in=6144] | "
      "^double_blocks_#_img_attn_qkv[in=6144] | ^single_blocks_#_linear1[in=6144] | "
      "^txt_in$[in=15360] | ^context_embedder$[in=15360] | ^single_blocks_#_[in=6144,n>=47]" },
    { "flux.2-klein-9b", 100,
      "to_qkv_mlp_proj[in=4096] | ^double_blocks_#_img_attn_proj[in=4096] | "
      "^double_blocks_#_img_attn_qkv[in=4096] | ^single_blocks_#_linear1[in=4096] | "
      "^txt_in$[in=12288] | ^context_embedder$[in=12288]" },
    { "flux.2-klein-4b", 100,
      "to_qkv_mlp_proj[in=3072] | ^transformer_blocks_#_ff_linear_in[in=3072] | "
      "^double_blocks_#_img_mlp_0[in=3072,out=18432] | "
      "^single_blocks_#_linear1[in=3072,out=27648] | "
      "^txt_in$[in=7680] | ^context_embedder$[in=7680]" },
    { "flux.2", 100,
      "to_qkv_mlp_proj | ^transformer_blocks_#_ff_linear_in | double_stream_modulation_img" },
    /* FLUX.1 and Chroma */
    { "chroma-radiance", 100, "^nerf_blocks_#_ | ^nerf_image_embedder" },
    { "chroma", 100, "^distilled_guidance_layer" },
    { "flux.1-dev", 100,
      "^guidance_in_ | guidance_embedder ; ^double_blocks_#_ | ^single_blocks_#_ | "
      "^single_transformer_blocks_#_" },
    { "flux.1", 100, "^double_blocks_#_img_mlp_0[in=0|3072,out=0|12288]" },
    { "flux.1", 100, "^double_blocks_#_[n>=18,in=0|3072|12288] ; "
                     "^single_blocks_#_[n>=37,in=0|3072|12288|15360]" },
    { "flux.3", 100, "^mode_blocks_" },
    { "auraflow", 100, "^joint_transformer_blocks_#_ | ^double_layers_#_attn_w1q" },
    { "flux.1", 60, "^single_transformer_blocks_#_[n>=37,in=0|3072|12288|15360]" },
    { "flux.1", 60,
      "^double_blocks_#_[in=0|3072|12288] | ^single_blocks_#_[in=0|3072|12288|15360] | "
      "^single_transformer_blocks_#_[in=0|3072|12288|15360]" },
    /* Qwen-Image, Stable Diffusion 3 */
    { "qwen-image", 100,
      "^transformer_blocks_#_img_mlp_net_[in=0|3072|12288] | "
      "^transformer_blocks_#_img_mod_[in=0|3072]" },
    { "qwen-image", 100,
      "^transformer_blocks_#_attn_add_k_proj[in=3072,n>=24] ; !^single_transformer_blocks_#_" },
    { "sd-3.5-large", 100,
      "^joint_blocks_#_[n>=24] | ^joint_blocks_#_[in=2432] | "
      "^transformer_blocks_#_attn_add_k_proj[in=2432]" },
    { "sd-3.5-medium", 100,
      "^joint_blocks_#_x_block_attn2_ | ^transformer_blocks_#_attn2_ ; "
      "^joint_blocks_#_ | ^transformer_blocks_#_attn_add_k_proj[in=1536]" },
    { "sd-3", 100, "^joint_blocks_#_" },
    { "sd-3", 60, "^transformer_blocks_#_attn_add_k_proj[in=1536]" },
    /* Wan, Cosmos */
    { "anima", 100, "^llm_adapter_blocks_#_" },
    { "cosmos-1", 100, "^blocks_block" },
    { "cosmos-predict2", 100,
      "^blocks_#_adaln_modulation_cross_attn | ^blocks_#_mlp_layer2 | "
      "^blocks_#_cross_attn_k_proj | ^blocks_#_self_attn_q_proj" },
    { "wan-2.1", 100, WAN_WIDTH("1536") NOT_DIFFUSERS },
    { "wan-2.2", 100, WAN_WIDTH("3072") NOT_DIFFUSERS },
    { "wan", 100,
      "^blocks_#_cross_attn_[in=0|5120] | ^blocks_#_self_attn_[in=0|5120] | "
      "^blocks_#_attn1_to_[in=5120] | ^blocks_#_attn2_to_[in=5120] | "
      "^blocks_#_ffn_0[in=0|5120]" },
    /* Z-Image, Lumina */
    { "z-image", 100,
      "layers_#_attention_[in=3840] | layers_#_feed_forward_w1[in=3840] | "
      "_refiner_#_attention_[in=3840]" },
    { "lumina-2", 100,
      "layers_#_attention_[in=2304] | layers_#_feed_forward_w1[in=2304] | "
      "_refiner_#_attention_[in=2304] | ^layers_#_attn_to_[in=2304]" },
    { "omnigen-2", 100, "^layers_#_attn_to_[in=2520]" },
    /* LTX, Sana; PixArt and the small Sana cannot be told apart */
    { "ltx-2", 100,
      "^transformer_blocks_#_audio_attn1_ | ^transformer_blocks_#_audio_to_video_attn_" },
    { "mochi", 100, "^blocks_#_attn_qkv_x" },
    { "mochi", 60, "^transformer_blocks_#_attn1_add_k_proj" },
    { "sana", 60, "^transformer_blocks_#_attn1_to_[in=2240]" },
    { "cosmos-predict2", 60,
      "^transformer_blocks_#_attn2_to_k$[in=1024] ; "
      "^transformer_blocks_#_attn1_to_k$[in=2048|5120]" },
    { "cosmos-1", 60,
      "^transformer_blocks_#_attn2_to_k$[in=1024] ; ^transformer_blocks_#_attn1_to_k$[in=4096]" },
    { "ltx-video", 100,
      "^transformer_blocks_#_attn1_to_k$[in=2048|4096] ; "
      "^transformer_blocks_#_attn2_to_k$[in=2048|4096]" },
    { "cogvideox", 100,
      "^transformer_blocks_#_attn1_to_[in=1920|3072] ; !^transformer_blocks_#_attn2_to_ ; "
      "!^transformer_blocks_#_attn1_add_ ; !^transformer_blocks_#_txt_ff_" },
    { "ace-step", 100, "^lyric_encoder_" },
    { "stable-audio-3", 100, "^transformer_blocks_#_self_attn_to_qkv" },
    { "ace-step", 60, "^transformer_blocks_#_cross_attn_to_" },
    /* others, each by its own names */
    { "ace-step", 100, "^layers_#_cross_attn_to_ ; ^layers_#_self_attn_to_" },
    { "bria-fibo-2", 100, "^layers_#_cross_attention_to_" },
    { "ernie-image", 100, "^layers_#_self_attention_to_[in=3072]" },
    { "glm-image", 100, "^glyph_projector_ | ^prior_projector_" },
    { "ideogram-4", 100, "^llm_cond_proj | ^adaln_proj" },
    { "kandinsky-3", 100, "^add_time_condition_attention_" },
    { "lumina-next", 100, "^layers_#_attn1_to_k$ ; ^layers_#_attn2_to_k$" },
    { "prx", 100, "^blocks_#_up_proj$ ; ^blocks_#_down_proj$" },
    { "sana-wm", 100, "^blocks_#_plucker_proj" },
    { "amused", 100, "^transformer_layers_#_attn1_to_ | ^transformer_layers_#_ff_net_" },
    { "i2vgen-xl", 100, "^image_latents_temporal_encoder_" },
    { "wuerstchen-prior", 100, "^blocks_#_attention_to_[in=1280]" },
    { "stable-cascade", 100, "^down_blocks_#_#_attention_to_ | ^up_blocks_#_#_attention_to_" },
    { "krea-2", 100, "^txtfusion_ | ^text_fusion_" },
    { "hidream-i1", 100, "^double_stream_blocks_#_ | ^single_stream_blocks_#_" },
    { "kandinsky-6", 100,
      "^visual_transformer_blocks_#_feed_forward_net_ | ^audio_text_transformer_blocks_#_" },
    { "kandinsky-5", 100, "^visual_transformer_blocks_#_feed_forward_in_layer" },
    { "kandinsky-5", 60, "^visual_transformer_blocks_#_" },
    { "hunyuan-dit", 100, "^blocks_#_attn1_Wqkv | ^blocks_#_attn2_kv_proj" },
    { "stable-cascade-c", 100, "_attention_attn_ | _kv_mapper" },
    /* U-Nets: what attends to the text is as wide as the text's encoder */
    { "svd", 100, "_temporal_transformer_blocks_#_" },
    { "sdxl-refiner", 100,
      "^input_blocks_#_#_transformer_blocks_#_attn2_to_k$[in=1280] | "
      "^input_blocks_#_#_transformer_blocks_#_attn2_to_v$[in=1280]" },
    { "sdxl-refiner", 60, TEXT_WIDTH("1280") },
    { "sdxl", 100, TEXT_WIDTH("2048,out=0|640|1280") },
    { "sd-2", 100, TEXT_WIDTH("1024") " ; !_temporal_transformer_blocks_#_ ; !temp_" },
    { "sd-1", 100, TEXT_WIDTH("768") },
    /* else the encoders */
    { "sd-1", 100, "te:self_attn_[in=768]" },
    { "sd-2", 100, "te:self_attn_[in=1024]" },
    { "sdxl", 100, "te1:self_attn_[in=768] ; te2:self_attn_[in=1280]" },
    { "sdxl", 100, "te2:self_attn_[in=1280] ; ^down_blocks_ | ^up_blocks_ | ^mid_block_" },
    { "sd-1", 100, "te1:^#$[in=768]" },
    { "sd-2", 100, "te1:^#$[in=1024] | te1:self_attn_[in=1024]" },
    /* else how the blocks are built */
    { "sdxl", 100,
      "_attentions_#_transformer_blocks_#_[t>=4] | put_blocks_#_#_transformer_blocks_#_[t>=4] | "
      "^middle_block_#_transformer_blocks_#_[t>=4]" },
    { "sdxl", 60,
      "_attentions_#_transformer_blocks_#_[t>=2] | put_blocks_#_#_transformer_blocks_#_[t>=2] | "
      "^middle_block_#_transformer_blocks_#_[t>=2]" },
    { "sdxl", 60, "^input_blocks_#_ | ^output_blocks_#_" },
    { "sd-1", 60,
      "te1:self_attn_[in=768] ; !te2: ; ^down_blocks_ | ^up_blocks_ | ^mid_block_" },
    /* language models */
    { "mixtral", 60, "block_sparse_moe" },
    { "deepseek-v3", 60, "kv_a_proj_with_mqa | self_attn_kv_b_proj" },
    { "phi-3", 60, "layers_#_self_attn_qkv_proj | layers_#_mlp_gate_up_proj ; !self_attn_to_" },
    { "phi", 60, "layers_#_self_attn_dense" },
    { "gpt-2", 60, "^transformer_h_#_attn_c_attn | ^h_#_attn_c_attn" },
    { "gpt-neox", 60, "^gpt_neox_layers_#_attention_query_key_value" },
    { "falcon", 60, "^transformer_h_#_self_attention_query_key_value" },
    { "roberta", 60, "^roberta_encoder_layer_#_" },
    { "bert", 60, "^bert_encoder_layer_#_" },
    { "distilbert", 60, "^distilbert_transformer_layer_#_" },
    { "t5-seq2seq", 60, "encoder_block_#_layer_#_SelfAttention ; decoder_block_#_" },
    { "vit", 60, "^vit_encoder_layer_#_" },
    { "mamba", 60, "layers_#_mixer_in_proj" },
    { "llama", 60,
      "^model_layers_#_self_attn_ | ^model_layers_#_mlp_ | ^layers_#_self_attn_q_proj | "
      "^language_model_model_layers_#_self_attn_ | ^model_language_model_layers_#_self_attn_" },
    { NULL, 0, NULL },
};

static const sfti_variant target_variants[] = {
    { "wan*", "i2v", "cross_attn_k_img | attn2_add_k_proj" },
    { "wan*", "1.3b", WAN_WIDTH("1536") },
    { "wan*", "5b", WAN_WIDTH("3072") },
    { "wan*", "14b", WAN_WIDTH("5120") },
    { "flux.1*", "control", "^img_in$[in=128] | ^x_embedder$[in=128]" },
    { "flux.1*", "fill", "^img_in$[in=384] | ^x_embedder$[in=384]" },
    { "ltx-video", "2b", "^transformer_blocks_#_attn1_to_k$[in=2048]" },
    { "ltx-video", "13b", "^transformer_blocks_#_attn1_to_k$[in=4096]" },
    { "cosmos-predict2", "2b",
      "^blocks_#_self_attn_q_proj[in=2048] | ^blocks_#_cross_attn_q_proj[in=2048]" },
    { "cosmos-predict2", "14b",
      "^blocks_#_self_attn_q_proj[in=5120] | ^blocks_#_cross_attn_q_proj[in=5120]" },
    { "cogvideox", "2b", "^transformer_blocks_#_attn1_to_[in=1920]" },
    { "cogvideox", "5b", "^transformer_blocks_#_attn1_to_[in=3072]" },
    { NULL, NULL, NULL },
};

/* ── Clauses ── */

static bool condition_holds(sft_span condition, const sfti_form *form) {
    if (sfti_is(condition, "each")) return form->times == form->highest - form->lowest + 1;
    static const char *const names[] = { "in=", "out=", "in>=", "n>=", "t>=" };
    uint64_t least = 0;
    for (int i = 0; i < 5; i++) {
        if (!sfti_begins(condition, names[i])) continue;
        sft_span value = sfti_from(condition, strlen(names[i]));
        if (i == 0) return sfti_size_fits(value, form->in);
        if (i == 1) return sfti_size_fits(value, form->out);
        uint64_t has = i == 2 ? form->in : i == 3 ? form->highest : form->inner;
        return sfti_parse_uint(value, &least) && has >= least;
    }
    return false;
}

/* "#" in the pattern stands for the digits of a raw name. */
static bool pattern_at(sft_span pattern, sft_span text, size_t at, size_t *end) {
    size_t i = at;
    for (size_t k = 0; k < pattern.len; k++) {
        if (i >= text.len) return false;
        if (pattern.data[k] == '#' && sfti_lex_digit(text.data[i])) {
            while (i < text.len && sfti_lex_digit(text.data[i])) i++;
            continue;
        }
        if (text.data[i++] != pattern.data[k]) return false;
    }
    *end = i;
    return true;
}

static unsigned letter_of(char c) {
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (unsigned)(uint8_t)c : 0;
}

uint64_t sfti_letter_pairs(sft_span text) {
    uint64_t pairs = 0;
    unsigned before = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned letter = letter_of(text.data[i]);
        if (letter && before) pairs |= UINT64_C(1) << (before * 31 + letter * 7) % 64;
        before = letter;
    }
    return pairs;
}

static bool pattern_fits(sft_span pattern, const sfti_form *form) {
    sft_span text = memchr(pattern.data, '.', pattern.len) ? form->raw : form->text;
    bool at_start = pattern.len > 0 && *pattern.data == '^', at_end;
    if (at_start) pattern.data++, pattern.len--;
    at_end = pattern.len > 0 && pattern.data[pattern.len - 1] == '$';
    if (at_end) pattern.len--;
    for (size_t i = 0; i + pattern.len <= text.len || i == 0; i++) {
        size_t end;
        /* to where it may begin */
        if (!at_start && i < text.len && pattern.len > 0 && *pattern.data != '#') {
            const char *next = memchr(text.data + i, *pattern.data, text.len - i);
            if (!next) return false;
            i = (size_t)(next - text.data);
        }
        if (pattern_at(pattern, text, i, &end) && (!at_end || end == text.len)) return true;
        if (at_start) return false;
    }
    return false;
}

/* "te1:" before a pattern; the mask of parts meant. */
static unsigned parts_meant(sft_span *pattern) {
    static const struct { const char *prefix; unsigned mask; } rows[] = {
        { "te:", 1u << SFTI_PART_TE }, { "te1:", 1u << SFTI_PART_TE1 },
        { "te2:", 1u << SFTI_PART_TE2 }, { "te3:", 1u << SFTI_PART_TE3 },
    };
    for (size_t i = 0; i < SFTI_COUNT(rows); i++) {
        if (!sfti_begins(*pattern, rows[i].prefix)) continue;
        *pattern = sfti_from(*pattern, strlen(rows[i].prefix));
        return rows[i].mask;
    }
    return 1u << SFTI_PART_MAIN;
}

static bool conditions_hold(sft_span conditions, const sfti_form *form) {
    sft_span condition;
    while (sfti_next_piece(&conditions, ',', &condition))
        if (!condition_holds(condition, form)) return false;
    return true;
}

static const sfti_form *find_form(const sfti_forms *forms, sft_span clause) {
    unsigned parts = parts_meant(&clause);
    sft_span conditions = { NULL, 0 };
    const char *bracket = clause.len > 0 ? memchr(clause.data, '[', clause.len) : NULL;
    if (bracket) {
        conditions = (sft_span){ bracket + 1, clause.len - (size_t)(bracket - clause.data) - 2 };
        clause.len = (size_t)(bracket - clause.data);
    }
    uint64_t pairs = sfti_letter_pairs(clause);
    bool each = sfti_is(conditions, "each");
    const sfti_form *found = NULL;
    for (size_t i = 0; i < forms->count && (each || !found); i++) {
        const sfti_form *form = &forms->forms[i];
        if (pairs & ~form->letters || !(parts >> form->part & 1) || !pattern_fits(clause, form))
            continue;
        bool holds = conditions_hold(conditions, form);
        if (each && !holds) return NULL;
        if (holds && !found) found = form;
    }
    return found;
}

static sfti_truth form_fits(const void *ctx, sft_span text, const sft_tensor **found) {
    const sfti_form *form = find_form(ctx, text);
    if (form) *found = form->tensor;
    return form ? SFTI_TRUE : SFTI_FALSE;
}

bool sfti_forms_hold(const sfti_forms *forms, const char *clauses) {
    return sfti_hold(forms, form_fits, clauses, NULL, NULL);
}

const sfti_form *sfti_forms_find(const sfti_forms *forms, const char *clause) {
    return find_form(forms, sft_span_cstr(clause));
}

/* ── Telling ── */

const char *sfti_forms_target(const sfti_forms *forms) {
    sfti_evidence evidence = { { NULL }, 0 };
    const sfti_target *row = sfti_target_rows;
    while (row->architecture && !sfti_hold(forms, form_fits, row->clauses, &evidence, NULL)) row++;
    for (size_t i = 0; row->architecture && i < evidence.count; i++)
        sfti_add_evidence(forms->info, evidence.tensors[i]);
    if (forms->info->evidence.count == 0) sfti_add_evidence(forms->info, forms->first);
    if (!row->architecture) return NULL;
    const sfti_fact *told = sfti_info_best(forms->info, SFT_FACT_ARCHITECTURE);
    if (!told)
        sfti_add_tensor_fact(forms->info, SFT_FACT_ARCHITECTURE, row->architecture, row->trust);
    sfti_add_variants(forms->info, forms, form_fits, target_variants, row->architecture);
    return row->architecture;
}
