/* Language models: their rows, and the sizes that shapes tell. */
#include "label/tensors/signatures.h"

#include <string.h>

const sfti_signature sfti_language_rows[] = {
    /* each by names of its own */
    { "language_model", "llama-4", 100,
      "layers.#.feed_forward.shared_expert.gate_proj.weight ; "
      "layers.#.feed_forward.router.weight" },
    { "language_model", "granite-moe-hybrid", 100,
      "layers.#.shared_mlp.input_linear.weight ; layers.#.mamba.in_proj.weight" },
    { "language_model", "granite-moe", 100,
      "layers.#.block_sparse_moe.router.layer.weight ; "
      "layers.#.block_sparse_moe.input_linear.weight ; !layers.#.mamba.in_proj.weight" },
    { "language_model", "glm-4", 100,
      "layers.#.post_self_attn_layernorm.weight ; layers.#.mlp.gate_up_proj.weight ; "
      "^lm_head.weight ; !^model.visual.*" },
    { "language_model", "glm-4", 60,
      "layers.#.post_self_attn_layernorm.weight ; layers.#.mlp.gate_up_proj.weight" },
    { "language_model", "glm", 100,
      "layers.#.mlp.gate_up_proj.weight ; layers.#.self_attn.q_proj.bias ; "
      "layers.#.post_attention_layernorm.weight ; !layers.#.post_self_attn_layernorm.weight" },
    { "language_model", "lfm2-moe", 100,
      "layers.#.operator_norm.weight ; layers.#.feed_forward.expert_bias" },
    { "language_model", "lfm2", 100,
      "layers.#.operator_norm.weight ; layers.#.feed_forward.w1.weight ; embed_tokens.weight ; "
      "!layers.#.feed_forward.experts.0.w1.weight ; !layers.#.post_operator_norm.weight ; "
      "!^vision_tower.* ; !^model.vision_tower.*" },
    { "language_model", "jamba", 100,
      "layers.#.mamba.b_layernorm.weight ; layers.#.mamba.x_proj.weight" },
    { "language_model", "starcoder2", 100,
      "layers.#.mlp.c_fc.weight ; layers.#.self_attn.q_proj.weight ; "
      "layers.#.post_attention_layernorm.bias" },
    { "language_model", "falcon-h1", 100,
      "layers.0.mamba.in_proj.weight ; layers.0.self_attn.q_proj.weight ; "
      "layers.0.pre_ff_layernorm.weight" },
    { "language_model", "bamba", 100,
      "layers.#.mamba.norm.weight ; layers.#.pre_ff_layernorm.weight ; "
      "!layers.0.self_attn.*" },
    { "language_model", "kimi-linear", 100,
      "layers.#.block_sparse_moe.gate_proj.weight ; "
      "layers.#.self_attn.kv_a_proj_with_mqa.weight" },
    { "language_model", "kimi-k2.5", 100,
      "blocks.#.self_attn.kv_a_proj_with_mqa.weight ; blocks.#.mlp.gate.weight" },
    { "language_model", "kimi-k2", 60,
      "layers.#.self_attn.kv_a_proj_with_mqa.weight ; embed_tokens.weight[163840,7168]" },
    { "language_model", "deepseek-v4", 100,
      "layers.#.attn.wkv.weight ; layers.#.attn.wq_a.weight" },
    { "language_model", "qwen3-next", 100,
      "layers.#.linear_attn.in_proj_qkvz.weight ; layers.#.linear_attn.in_proj_ba.weight" },
    { "language_model", "gemma-3n", 100,
      "layers.#.altup.router_norm.weight ; layers.#.laurel.linear_left.weight" },
    { "language_model", "recurrent-gemma", 100,
      "layers.#.temporal_pre_norm.weight ; layers.#.mlp_block.gate_proj.weight" },
    { "language_model", "minimax", 100,
      "layers.#.self_attn.output_gate.weight ; layers.#.block_sparse_moe.gate.weight" },
    { "language_model", "bitnet", 100,
      "layers.#.self_attn.attn_sub_norm.weight ; layers.#.mlp.ffn_sub_norm.weight" },
    { "language_model", "apertus", 100,
      "layers.#.attention_layernorm.weight ; layers.#.feedforward_layernorm.weight" },
    { "language_model", "afmoe", 100,
      "layers.#.pre_mlp_layernorm.weight ; layers.#.self_attn.q_norm.weight" },
    { "language_model", "hunyuan-v1-moe", 100,
      "layers.#.mlp.gate.wg.weight ; layers.#.self_attn.q_proj.weight" },
    { "language_model", "longcat-flash", 100,
      "layers.#.mlps.0.gate_proj.weight ; layers.#.input_layernorm.0.weight" },
    { "language_model", "zamba2", 100, "layers.#.mamba_decoder.mamba.norm.weight" },
    { "language_model", "zamba", 100, "layers.#.shared_transf.self_attn.q_proj.weight" },
    { "language_model", "xlstm", 100, "blocks.#.mlstm_layer.q.weight" },
    { "language_model", "jetmoe", 100,
      "layers.#.self_attention.kv_proj.weight ; layers.#.mlp.router.layer.weight" },
    { "language_model", "gpt-neo", 100, "h.#.attn.attention.q_proj.weight" },
    { "language_model", "codegen", 100, "h.#.attn.qkv_proj.weight" },
    { "language_model", "ctrl", 100, "h.#.multi_head_attention.Wq.weight" },
    { "language_model", "openai-gpt", 100, "positions_embed.weight ; h.#.attn.c_attn.weight" },
    { "language_model", "molmo2", 100,
      "transformer.blocks.#.self_attn.att_proj.weight | blocks.#.self_attn.att_proj.weight" },
    { "language_model", "mllama", 100,
      "layers.#.cross_attn.q_norm.weight ; layers.#.mlp.gate_proj.weight" },
    { "language_model", "cohere", 60,
      "layers.#.input_layernorm.weight ; layers.#.self_attn.q_proj.weight ; "
      "layers.#.mlp.gate_proj.weight ; embed_tokens.weight[256000,*] ; "
      "!layers.#.post_attention_layernorm.weight ; "
      "!layers.#.pre_feedforward_layernorm.weight" },
    /* models that read in both directions, and those that translate */
    { "language_model", "mpnet", 100,
      "encoder.layer.#.attention.attn.q.weight ; encoder.relative_attention_bias.weight" },
    { "language_model", "albert", 100,
      "encoder.albert_layer_groups.0.albert_layers.0.ffn.weight" },
    { "language_model", "deberta", 100,
      "encoder.layer.#.attention.self.in_proj.weight ; "
      "encoder.layer.#.attention.self.q_bias" },
    { "language_model", "deberta-v2", 100,
      "encoder.layer.#.attention.self.query_proj.weight ; embeddings.word_embeddings.weight" },
    { "language_model", "electra", 100,
      "embeddings_project.weight ; encoder.layer.#.attention.self.query.weight" },
    { "language_model", "mobilebert", 100,
      "embeddings.embedding_transformation.weight ; "
      "encoder.layer.#.bottleneck.input.dense.weight" },
    { "language_model", "longformer", 100, "encoder.layer.#.attention.self.query_global.weight" },
    { "language_model", "convbert", 100,
      "encoder.layer.#.attention.self.conv_kernel_layer.weight" },
    { "language_model", "nomic-bert", 100,
      "encoder.layers.#.attn.Wqkv.weight ; encoder.layers.#.mlp.fc11.weight" },
    { "language_model", "gte", 100,
      "encoder.layer.#.mlp.up_gate_proj.weight ; encoder.layer.#.attn_ln.weight" },
    { "language_model", "xlnet", 100,
      "layer.#.rel_attn.layer_norm.weight ; word_embedding.weight" },
    { "language_model", "esm", 100,
      "contact_head.regression.weight ; encoder.layer.#.attention.self.query.weight" },
    { "language_model", "roformer", 100,
      "encoder.embed_positions.weight ; encoder.layer.#.attention.self.query.weight" },
    { "language_model", "fnet", 100, "encoder.layer.#.fourier.output.LayerNorm.weight" },
    { "language_model", "squeezebert", 100, "encoder.layers.#.output.conv1d.weight" },
    { "language_model", "funnel", 100, "encoder.blocks.0.0.attention.k_head.weight" },
    { "language_model", "xlm-roberta-xl", 100,
      "encoder.layer.#.attention.self_attn_layer_norm.weight" },
    { "language_model", "megatron-bert", 100,
      "encoder.ln.weight ; encoder.layer.#.attention.ln.weight" },
    { "language_model", "luke", 100, "entity_embeddings.entity_embeddings.weight" },
    { "language_model", "layoutlmv3", 100,
      "encoder.rel_pos_bias.weight ; encoder.layer.#.attention.self.query.weight" },
    { "language_model", "longt5", 100,
      "encoder.block.#.layer.0.LocalSelfAttention.q.weight | "
      "encoder.block.#.layer.0.TransientGlobalSelfAttention.q.weight" },
    { "language_model", "switch-transformers", 100,
      "encoder.block.#.layer.1.mlp.experts.expert_0.wi.weight" },
    { "language_model", "udop", 100, "encoder.cell_2d_embedding.x_position_embeddings.weight" },
    { "language_model", "nllb-moe", 100, "encoder.layers.#.ffn.router.classifier.weight" },
    { "language_model", "prophetnet", 100,
      "encoder.layers.#.self_attn.key_proj.weight ; encoder.embeddings_layer_norm.weight" },
    { "language_model", "led", 100,
      "encoder.layers.#.self_attn.longformer_self_attn.query.weight" },
    { "language_model", "florence-2", 100,
      "vision_tower.convs.0.conv.weight ; language_model.encoder.layers.0.fc1.weight" },
    { "language_model", "t5gemma", 100,
      "decoder.layers.#.cross_attn.q_proj.weight ; "
      "decoder.layers.#.pre_cross_attn_layernorm.weight" },
    { "language_model", "pegasus-x", 100, "encoder.layers.#.global_self_attn_layer_norm.weight" },
    /* by what several have */
    { "language_model", "mixtral", 60, "layers.#.block_sparse_moe.gate.weight" },
    { "language_model", "deepseek-v3", 60,
      "layers.#.self_attn.kv_a_proj_with_mqa.weight ; layers.#.mlp.gate.e_score_correction_bias" },
    { "language_model", "deepseek-v2", 60, "layers.#.self_attn.kv_a_proj_with_mqa.weight" },
    { "language_model", "gpt-oss", 60, "layers.#.self_attn.sinks" },
    { "language_model", "qwen3-moe", 60,
      "layers.#.self_attn.q_norm.weight ; layers.#.mlp.gate.weight ; "
      "!layers.#.self_attn.q_proj.bias" },
    { "language_model", "qwen2-moe", 100,
      "layers.#.mlp.shared_expert_gate.weight ; layers.#.self_attn.q_proj.bias ; "
      "!layers.#.self_attn.q_norm.weight" },
    { "language_model", "gemma-3", 60,
      "layers.#.self_attn.q_norm.weight ; layers.#.pre_feedforward_layernorm.weight" },
    { "language_model", "gemma-2", 60,
      "layers.#.input_layernorm.weight ; layers.#.pre_feedforward_layernorm.weight | "
      "layers.#.post_feedforward_layernorm.weight ; !layers.#.self_attn.q_norm.weight" },
    { "language_model", "qwen3", 60,
      "layers.#.self_attn.q_norm.weight ; layers.#.self_attn.q_proj.weight ; "
      "layers.#.mlp.gate_proj.weight ; layers.#.input_layernorm.weight | embed_tokens.weight" },
    { "language_model", "qwen2", 60,
      "layers.#.self_attn.q_proj.bias ; layers.#.self_attn.k_proj.bias ; "
      "layers.#.mlp.gate_proj.weight ; !layers.#.self_attn.o_proj.bias" },
    { "language_model", "phi-3", 100,
      "layers.#.self_attn.qkv_proj.weight ; layers.#.mlp.gate_up_proj.weight ; "
      "!embed_tokens_extend.*" },
    { "language_model", "phi", 100,
      "layers.#.self_attn.dense.weight ; layers.#.mlp.fc1.weight" },
    { "language_model", "gemma", 60,
      "embed_tokens.weight[256000,*] ; layers.#.self_attn.q_proj.weight ; "
      "layers.#.mlp.gate_proj.weight ; !lm_head.weight ; !^lm_head.weight" },
    { "language_model", "llama", 60,
      "layers.#.self_attn.q_proj.weight ; layers.#.self_attn.k_proj.weight ; "
      "layers.#.mlp.gate_proj.weight ; layers.#.input_layernorm.weight | embed_tokens.weight" },
    { "language_model", "gpt-2", 60,
      "h.#.attn.c_attn.weight ; h.#.mlp.c_fc.weight | wpe.weight" },
    { "language_model", "gpt-neox", 60,
      "layers.#.attention.query_key_value.weight ; "
      "layers.#.mlp.dense_h_to_4h.weight | embed_in.weight | ^gpt_neox.*" },
    { "language_model", "gpt-j", 100, "h.#.attn.q_proj.weight ; h.#.mlp.fc_in.weight" },
    { "language_model", "bloom", 100,
      "h.#.self_attention.query_key_value.weight ; word_embeddings_layernorm.weight" },
    { "language_model", "falcon", 100,
      "h.#.self_attention.query_key_value.weight ; !word_embeddings_layernorm.weight" },
    { "language_model", "mpt", 100, "blocks.#.attn.Wqkv.weight ; wte.weight" },
    { "language_model", "chatglm", 100,
      "encoder.layers.#.self_attention.query_key_value.weight" },
    { "language_model", "mamba", 60,
      "layers.#.mixer.A_log ; layers.#.mixer.A_log[*,*] | layers.#.mixer.in_proj.weight" },
    { "language_model", "rwkv", 100,
      "blocks.#.att.key.weight | blocks.#.attention.key.weight ; "
      "blocks.#.ffn.key.weight | blocks.#.feed_forward.key.weight | emb.weight | ^rwkv.*" },
    { "language_model", "deberta", 60, "encoder.rel_embeddings.weight" },
    { "language_model", "roberta", 60,
      "embeddings.position_embeddings.weight[514,*] ; "
      "encoder.layer.#.attention.self.query.weight ; embeddings.word_embeddings.weight" },
    { "language_model", "roberta", 60,
      "^roberta.embeddings.word_embeddings.weight ; "
      "^roberta.encoder.layer.#.attention.self.query.weight" },
    { "language_model", "bert", 60,
      "embeddings.word_embeddings.weight ; encoder.layer.#.attention.self.query.weight" },
    { "language_model", "distilbert", 100,
      "transformer.layer.#.attention.q_lin.weight | layer.#.attention.q_lin.weight" },
    { "language_model", "modernbert", 100,
      "layers.#.attn.Wqkv.weight ; embeddings.tok_embeddings.weight" },
    { "language_model", "bart", 60,
      "encoder.layers.#.self_attn.k_proj.weight ; decoder.layers.#.encoder_attn.k_proj.weight | "
      "decoder.layers.#.self_attn.k_proj.weight ; !encoder.conv1.weight" },
    { "language_model", "opt", 60,
      "decoder.layers.#.self_attn.k_proj.weight ; decoder.embed_positions.weight ; "
      "!encoder.*" },
    /* as Meta and Mistral publish theirs (consolidated.safetensors) */
    { "language_model", NULL, 60,
      "tok_embeddings.weight ; layers.#.attention.wq.weight ; layers.#.feed_forward.w1.weight ; "
      "output.weight" },
    /* attention alone, as in a shard or a file of what was quantised */
    { "language_model", NULL, 60,
      "layers.#.self_attn.q_proj.weight ; ^model.layers.#.self_attn.k_proj.weight ; "
      "layers.#.self_attn.o_proj.weight ; !layers.#.mlp.*" },
    { NULL, NULL, 0, NULL },
};

/* ── Sizes ── */

/* Where they are read, by architecture; the first row serves all others. fused: q names
 * query, key and value in one. */
static const struct language_names {
    const char *architecture, *layers, *embed, *q, *k;
    bool fused;
} language_names[] = {
    { "", "layers.", "embed_tokens.weight", "layers.#.self_attn.q_proj.weight",
      "layers.#.self_attn.k_proj.weight", false },
    { "phi-3", "layers.", "embed_tokens.weight", "layers.#.self_attn.qkv_proj.weight", NULL,
      true },
    { "gpt-2", "h.", "wte.weight", NULL, NULL, false },
    { "gpt-j", "h.", "wte.weight", "h.#.attn.q_proj.weight", "h.#.attn.k_proj.weight", false },
    { "gpt-neox", "layers.", "embed_in.weight", "layers.#.attention.query_key_value.weight",
      NULL, true },
    { "falcon", "h.", "word_embeddings.weight", "h.#.self_attention.query_key_value.weight",
      NULL, true },
    { "bloom", "h.", "word_embeddings.weight", "h.#.self_attention.query_key_value.weight",
      NULL, true },
    { "mpt", "blocks.", "wte.weight", "blocks.#.attn.Wqkv.weight", NULL, true },
    { "chatglm", "encoder.layers.", "embedding.word_embeddings.weight", NULL, NULL, false },
    { "mamba", "layers.", "embeddings.weight", NULL, NULL, false },
    { "rwkv", "blocks.", "emb.weight", NULL, NULL, false },
    { "bert", "encoder.layer.", "embeddings.word_embeddings.weight",
      "encoder.layer.#.attention.self.query.weight", "encoder.layer.#.attention.self.key.weight",
      false },
    { "roberta", "encoder.layer.", "embeddings.word_embeddings.weight",
      "encoder.layer.#.attention.self.query.weight", "encoder.layer.#.attention.self.key.weight",
      false },
    { "deberta", "encoder.layer.", "embeddings.word_embeddings.weight", NULL, NULL, false },
    { "distilbert", "transformer.layer.", "embeddings.word_embeddings.weight",
      "transformer.layer.#.attention.q_lin.weight", "transformer.layer.#.attention.k_lin.weight",
      false },
    { "modernbert", "layers.", "embeddings.tok_embeddings.weight", "layers.#.attn.Wqkv.weight",
      NULL, true },
    { "bart", "encoder.layers.", "shared.weight", "encoder.layers.#.self_attn.q_proj.weight",
      "encoder.layers.#.self_attn.k_proj.weight", false },
    { "opt", "decoder.layers.", "decoder.embed_tokens.weight",
      "decoder.layers.#.self_attn.q_proj.weight", "decoder.layers.#.self_attn.k_proj.weight",
      false },
    { "t5*", "encoder.block.", "shared.weight", "encoder.block.#.layer.0.SelfAttention.q.weight",
      "encoder.block.#.layer.0.SelfAttention.k.weight", false },
    { "umt5", "encoder.block.", "shared.weight", "encoder.block.#.layer.0.SelfAttention.q.weight",
      "encoder.block.#.layer.0.SelfAttention.k.weight", false },
};

/* Size of a head where an architecture and its hidden size settle it (0: any). */
static const struct language_head {
    const char *architecture;
    uint32_t hidden, size;
} language_heads[] = {
    { "gpt-2", 0, 64 },      { "bert", 0, 64 },       { "roberta", 0, 64 },
    { "distilbert", 0, 64 }, { "modernbert", 0, 64 }, { "bart", 0, 64 },
    { "t5*", 0, 64 },        { "umt5", 0, 64 },
    { "falcon", 0, 64 },     { "mixtral", 0, 128 },
    { "gemma", 0, 256 },     { "gemma-2", 2304, 256 }, { "gemma-2", 3584, 256 },
    { "gemma-2", 4608, 128 }, { "gpt-oss", 2880, 64 }, { "phi", 2048, 64 },
    { "phi", 2560, 80 },     { "phi-3", 3072, 96 },   { "phi-3", 5120, 128 },
    { "qwen2", 896, 64 },    { "qwen2", 1536, 128 },  { "qwen2", 2048, 128 },
    { "qwen2", 3584, 128 },  { "qwen2", 5120, 128 },  { "qwen2", 8192, 128 },
    { "qwen2-moe", 2048, 128 }, { "qwen2-moe", 3584, 128 }, { "llama", 2048, 64 },
    { "llama", 3072, 128 },  { "llama", 4096, 128 },  { "llama", 5120, 128 },
    { "llama", 6656, 128 },  { "llama", 8192, 128 },  { "llama", 16384, 128 },
    { "gpt-neox", 512, 64 }, { "gpt-neox", 768, 64 }, { "gpt-neox", 1024, 64 },
    { "gpt-neox", 2560, 80 }, { "gpt-neox", 4096, 128 }, { "gpt-neox", 5120, 128 },
    { "gpt-neox", 6144, 96 }, { "opt", 0, 64 },
};

/* Highest number after the text, and 1. */
static uint64_t layers_after(const sfti_view *view, const char *begin) {
    size_t from, to, skip = strlen(view->prefix) + strlen(begin);
    uint64_t layers = 0;
    sft_span last = { NULL, 0 }; /* the same of many */
    if (!sfti_view_range(view, begin, &from, &to)) return 0;
    for (size_t i = from; i < to; i++) {
        sft_span rest = sfti_from(sfti_view_at(view, i)->name, skip), digits;
        uint64_t number;
        if (!sfti_next_piece(&rest, '.', &digits) || digits.len >= 6
            || sft_span_equal(digits, last))
            continue;
        last = digits;
        if (sfti_parse_uint(digits, &number) && number + 1 > layers) layers = number + 1;
    }
    return layers;
}

/* A tensor by a name with "#", or NULL. */
static const sft_tensor *language_tensor(const sfti_view *view, const char *name) {
    sfti_evidence found;
    bool packed;
    if (!name || !sfti_clauses_hold(view, name, &found, &packed)) return NULL;
    return found.count > 0 ? found.tensors[0] : NULL;
}

/* Rows of a linear layer as it was before it was packed, 0 if that is not to be seen. */
static uint64_t rows_of(const sfti_view *view, const sft_tensor *tensor) {
    if (!tensor || tensor->rank != 2) return 0;
    if (!sfti_is_packed(tensor) || tensor->dtype == SFT_U32) return tensor->shape[0];
    if (tensor->dtype == SFT_U8) return tensor->shape[1] == 1 ? 0 : tensor->shape[0];
    /* GPTQ packs rows, AWQ columns */
    bool gptq = language_tensor(view, "layers.#.self_attn.q_proj.g_idx") != NULL;
    return gptq || tensor->shape[1] > UINT64_MAX / 8 ? tensor->shape[1] : tensor->shape[1] * 8;
}

/* A norm over all heads at once, as in OLMo 2, is as wide as the query. */
static uint64_t head_size(const sfti_view *view, const char *architecture, uint64_t hidden) {
    const sft_tensor *norm = language_tensor(view, "layers.#.self_attn.q_norm.weight");
    uint64_t q = rows_of(view, language_tensor(view, "layers.#.self_attn.q_proj.weight"));
    if (norm && norm->rank == 1) return norm->shape[0] != q ? norm->shape[0] : 0;
    const sft_tensor *rotary = language_tensor(
        view, "layers.#.self_attn.rotary_emb.inv_freq | layers.#.attention.rotary_emb.inv_freq");
    if (rotary && rotary->rank == 1 && strcmp(architecture, "gpt-neox") != 0
        && rotary->shape[0] < UINT32_MAX)
        return rotary->shape[0] * 2;
    for (size_t i = 0; i < SFTI_COUNT(language_heads); i++)
        if (sfti_architecture_fits(language_heads[i].architecture, architecture)
            && (language_heads[i].hidden == 0 || language_heads[i].hidden == hidden))
            return language_heads[i].size;
    return 0;
}

static void language_heads_of(const sfti_view *view, const struct language_names *names,
                              uint64_t head) {
    sft_info *info = view->info;
    uint64_t hidden = info->llm.hidden, q = rows_of(view, language_tensor(view, names->q));
    if (head == 0) return;
    if (!names->q && hidden % head == 0) { /* as wide as the model: GPT-2 */
        if (strcmp(names->architecture, "gpt-2") == 0)
            info->llm.heads = info->llm.kv_heads = hidden / head;
        return;
    }
    if (names->fused) {
        if (q == 0 || hidden % head || q % head || q < hidden || (q - hidden) % (2 * head)) return;
        info->llm.heads = hidden / head;
        info->llm.kv_heads = (q - hidden) / head / 2;
        return;
    }
    uint64_t k = rows_of(view, language_tensor(view, names->k));
    if (q % head == 0) info->llm.heads = q / head;
    if (k % head == 0) info->llm.kv_heads = k / head;
}

void sfti_language_sizes(const sfti_view *at, const char *architecture) {
    sft_info *info = at->info;
    const struct language_names *names = language_names;
    for (size_t i = 1; architecture && i < SFTI_COUNT(language_names); i++)
        if (sfti_architecture_fits(language_names[i].architecture, architecture))
            names = &language_names[i];
    const sft_tensor *embed = language_tensor(at, names->embed);
    const sft_tensor *norm = sfti_view_find(at, "norm.weight");
    info->has_llm = true;
    info->llm.layers = layers_after(at, names->layers);
    if (embed && embed->rank == 2) {
        info->llm.vocab = embed->shape[0];
        if (!sfti_is_packed(embed)) info->llm.hidden = embed->shape[1];
    }
    if (info->llm.hidden == 0 && norm && norm->rank == 1) info->llm.hidden = norm->shape[0];
    language_heads_of(at, names, head_size(at, architecture ? architecture : "",
                                           info->llm.hidden));
}
