"""What the default configurations of transformers leave out, and sizes of published models."""

HEADS = {"head_dim": 128}
FORECAST = {"prediction_length": 24, "context_length": 24}
SIZES = (("long", 7), ("mid", 5), ("short", 3))
REDUCE = {"reduce_channel": [1, 1, 0], "return_channel": [1, 1, 0]}
for word, size in SIZES:
    REDUCE["vertical_long_to_small_conv_%sratio" % word] = [[size, 1], [1, 1], [size // 2, 0]]
    REDUCE["horizontal_small_to_long_conv_%sratio" % word] = [[1, size], [1, 1], [0, size // 2]]
    REDUCE["symmetric_conv_long_%sratio" % word] = [[size, size], [1, 1], [size // 2, size // 2]]
ROPES = {kind: {"rope_type": "default", "rope_theta": 10000.0}
         for kind in ("full_attention", "sliding_attention")}
STAGES = {"hidden_sizes": [96, 192, 384, 768]}

# model_type or class: attributes of the configuration; with a dot, of one within it
ARGUMENTS = {
    "autoformer": FORECAST,
    "beit": {"out_indices": [3, 5, 7, 11]},
    "chameleon": {"vocabulary_map": {"<image>": 8711}},
    "cohere_compass": {"text_config.rope_parameters": ROPES},
    "cohere_compass_text": {"rope_parameters": ROPES},
    "convnext": STAGES,
    "convnextv2": STAGES,
    "deepseek_ocr2": {"text_config.mlp_layer_types": ["dense"] + ["sparse"] * 31},
    "diffusion_gemma": {"text_config.num_experts": 128, "text_config.top_k_experts": 8,
                        "text_config.moe_intermediate_size": 704},
    "dots1": {"n_routed_experts": 128, "n_shared_experts": 2, "moe_intermediate_size": 1408,
              "n_group": 1, "topk_group": 1, "num_experts_per_tok": 6,
              "first_k_dense_replace": 1, "routed_scaling_factor": 2.5},
    "emu3": {"vocabulary_map": {"<|extra_200|>": 151847, "<image>": 151851}},
    "esm": {"vocab_size": 33},
    "focalnet": {"embed_dim": 96, "hidden_sizes": [96, 192, 384, 768]},
    "granite4_vision": {"deepstack_layer_map": [[3, 0], [6, 3], [9, 6]],
                        "downsample_rate": "1/2"},
    "hiera": {"decoder_hidden_size": 512, "decoder_depth": 8, "decoder_num_heads": 16},
    "hunyuan_v1_dense": HEADS,
    "hunyuan_v1_moe": HEADS,
    "hunyuan_vl": {"text_config.head_dim": 128},
    "hunyuan_vl_text": HEADS,
    "informer": FORECAST,
    "lfm2_moe": {"layer_types": ["conv", "conv", "full_attention", "conv"] * 8},
    "ministral": HEADS,
    "moonshine_streaming": {"num_key_value_heads": 8},
    "nemotron": {"num_key_value_heads": 8},
    "perception_lm": {"vision_config.architecture": "vit_pe_lang_large_patch14_448",
                      "vision_config.model_args": {"embed_dim": 1024}},
    "pp_ocrv5_server_det": {"intraclass_block_config": REDUCE},
    "pp_ocrv6_medium_det": {"intraclass_block_config": REDUCE},
    "sapiens2": {"head_config.upsample_out_channels": [768, 768],
                 "head_config.upsample_kernel_sizes": [4, 4],
                 "head_config.conv_out_channels": [768, 768],
                 "head_config.conv_kernel_sizes": [1, 1]},
    "ReformerModelWithLMHead": {"is_decoder": True},
    "T5GemmaEncoderModel": {"is_encoder_decoder": False},
    "time_series_transformer": FORECAST,
    "timm_backbone": {"backbone": "resnet50"},
    "vitmatte": {"fusion_hidden_sizes": [256, 128, 64, 32]},
    "wav2vec2-bert": {"vocab_size": 32},
    "wav2vec2-conformer": {"vocab_size": 32},
    "aya_vision": {"vision_config.hidden_size": 1152, "vision_config.num_attention_heads": 16},
}


def llm(hidden, inner, layers, heads, groups, words, **more):
    return {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": groups, "vocab_size": words,
            **more}


def tower(hidden, inner, layers, heads, **more):
    return {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
            "num_attention_heads": heads, **more}


TIED = {"tie_word_embeddings": True}
XXL = {"d_model": 4096, "d_kv": 64, "d_ff": 10240, "num_layers": 24, "num_heads": 64,
       "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}

# (class, name): arguments of its configuration
PUBLISHED = {
    ("LlamaForCausalLM", "llama-2-13b"): llm(5120, 13824, 40, 40, 40, 32000),
    ("LlamaForCausalLM", "llama-3.1-8b"): llm(4096, 14336, 32, 32, 8, 128256),
    ("LlamaForCausalLM", "llama-3.1-70b"): llm(8192, 28672, 80, 64, 8, 128256),
    ("LlamaForCausalLM", "llama-3.2-1b"): llm(2048, 8192, 16, 32, 8, 128256, head_dim=64, **TIED),
    ("LlamaForCausalLM", "tinyllama-1.1b"): llm(2048, 5632, 22, 32, 4, 32000),
    ("LlamaForCausalLM", "smollm2-135m"): llm(576, 1536, 30, 9, 3, 49152, **TIED),
    ("MistralForCausalLM", "mistral-7b-v0.3"): llm(4096, 14336, 32, 32, 8, 32768),
    ("MistralForCausalLM", "mistral-nemo"): llm(5120, 14336, 40, 32, 8, 131072, **HEADS),
    ("Qwen2ForCausalLM", "qwen2.5-0.5b"): llm(896, 4864, 24, 14, 2, 151936, **TIED),
    ("Qwen2ForCausalLM", "qwen2.5-7b"): llm(3584, 18944, 28, 28, 4, 152064),
    ("Qwen3ForCausalLM", "qwen3-0.6b"): llm(1024, 3072, 28, 16, 8, 151936, **HEADS, **TIED),
    ("Qwen3ForCausalLM", "qwen3-4b"): llm(2560, 9728, 36, 32, 8, 151936, **HEADS, **TIED),
    ("Qwen3ForCausalLM", "qwen3-8b"): llm(4096, 12288, 36, 32, 8, 151936, **HEADS),
    ("Qwen3MoeForCausalLM", "qwen3-30b-a3b"): llm(
        2048, 6144, 48, 32, 4, 151936, **HEADS, num_experts=128, moe_intermediate_size=768),
    ("GemmaForCausalLM", "gemma-2b"): llm(2048, 16384, 18, 8, 1, 256000, head_dim=256),
    ("Gemma2ForCausalLM", "gemma-2-9b"): llm(3584, 14336, 42, 16, 8, 256000, head_dim=256),
    ("Gemma3ForCausalLM", "gemma-3-1b"): llm(1152, 6912, 26, 4, 1, 262144, head_dim=256),
    ("PhiForCausalLM", "phi-2"): llm(2560, 10240, 32, 32, 32, 51200),
    ("Phi3ForCausalLM", "phi-4"): llm(5120, 17920, 40, 40, 10, 100352),
    ("OlmoForCausalLM", "olmo-7b"): llm(4096, 11008, 32, 32, 32, 50304),
    ("Olmo2ForCausalLM", "olmo-2-7b"): llm(4096, 11008, 32, 32, 32, 100352),
    ("GraniteForCausalLM", "granite-3.1-8b"): llm(4096, 12800, 40, 32, 8, 49155, **TIED),
    ("GPT2LMHeadModel", "gpt2-xl"): {"n_embd": 1600, "n_layer": 48, "n_head": 25},
    ("FalconForCausalLM", "falcon-7b"): {
        "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
        "vocab_size": 65024, "multi_query": True, "new_decoder_architecture": False},
    ("FalconForCausalLM", "falcon-40b"): {
        "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128,
        "num_kv_heads": 8, "vocab_size": 65024, "new_decoder_architecture": True},
    ("GPTNeoXForCausalLM", "pythia-1b"): tower(2048, 8192, 16, 8, vocab_size=50304),
    ("BertModel", "bert-large"): tower(1024, 4096, 24, 16),
    ("RobertaModel", "roberta-large"): tower(1024, 4096, 24, 16, vocab_size=50265,
                                             max_position_embeddings=514, type_vocab_size=1),
    ("XLMRobertaModel", "xlm-roberta-base"): {"vocab_size": 250002, "type_vocab_size": 1,
                                              "max_position_embeddings": 514},
    ("AlbertModel", "albert-base-v2"): tower(768, 3072, 12, 12),
    ("DebertaV2Model", "deberta-v3-base"): tower(
        768, 3072, 12, 12, vocab_size=128100, relative_attention=True, position_buckets=256,
        norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"],
        type_vocab_size=0, position_biased_input=False),
    ("ViTModel", "vit-l16"): tower(1024, 4096, 24, 16),
    ("Dinov2Model", "dinov2-large"): tower(1024, 4096, 24, 16, patch_size=14, image_size=518),
    ("Dinov2Model", "dinov2-giant"): tower(1536, 4096, 40, 24, patch_size=14, image_size=518,
                                           use_swiglu_ffn=True),
    ("CLIPTextModel", "clip-l"): tower(768, 3072, 12, 12, projection_dim=768),
    ("CLIPTextModelWithProjection", "clip-g"): tower(1280, 5120, 32, 20, projection_dim=1280),
    ("CLIPVisionModelWithProjection", "clip-h"): tower(
        1280, 5120, 32, 16, projection_dim=1024, patch_size=14),
    ("SiglipVisionModel", "siglip-so400m"): tower(1152, 4304, 27, 16, patch_size=14,
                                                  image_size=384),
    ("T5EncoderModel", "t5-v1.1-xxl"): XXL,
    ("UMT5EncoderModel", "umt5-xxl"): {**XXL, "vocab_size": 256384},
    ("T5ForConditionalGeneration", "t5-v1.1-xxl"): XXL,
    ("WhisperForConditionalGeneration", "whisper-large-v3"): {
        "d_model": 1280, "encoder_layers": 32, "decoder_layers": 32, "encoder_ffn_dim": 5120,
        "decoder_ffn_dim": 5120, "encoder_attention_heads": 20, "decoder_attention_heads": 20,
        "num_mel_bins": 128, "vocab_size": 51866},
    ("BartForConditionalGeneration", "bart-base"): {
        "d_model": 768, "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 3072,
        "decoder_ffn_dim": 3072, "encoder_attention_heads": 12, "decoder_attention_heads": 12},
    ("SwinModel", "swin-large"): {"embed_dim": 192, "depths": [2, 2, 18, 2],
                                  "num_heads": [6, 12, 24, 48]},
}
