/* Language models: their rows, and the sizes that shapes tell. */
#include "info/tensors/signatures.h"

#include <string.h>

const sfti_signature sfti_language_rows[] = {
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
    { "language_model", "deberta", 100, "encoder.rel_embeddings.weight" },
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
    if (!sfti_view_range(view, begin, &from, &to)) return 0;
    for (size_t i = from; i < to; i++) {
        sft_span rest = sfti_from(sfti_view_at(view, i)->name, skip), digits;
        uint64_t number;
        if (sfti_next_piece(&rest, '.', &digits) && digits.len < 6
            && sfti_parse_uint(digits, &number) && number + 1 > layers)
            layers = number + 1;
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

static uint64_t head_size(const sfti_view *view, const char *architecture, uint64_t hidden) {
    const sft_tensor *norm = language_tensor(view, "layers.#.self_attn.q_norm.weight");
    if (norm && norm->rank == 1) return norm->shape[0];
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
