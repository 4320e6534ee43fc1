#!/usr/bin/env python3
"""Which matrices records spare (rows "spare" of data/), beside the presets of convert_to_quant,
NVIDIA's Model Optimizer and llm-compressor, on the names of tests/zoo. Each difference is judged in
presets.txt; one that is not there fails, and so does a judgement of no difference.

    presets.py [-v]           standard library only; -v prints what is alike, too

Lines of presets.txt: source, record, "ours" (spared here alone) or "theirs", names with # for
numbers and * for any bytes, why. Lists of names are those of convert_to_quant 1.3.4
(MODEL_FILTERS), of Model Optimizer's examples/diffusers (filter_func_*) and of llm-compressor's
examples (ignore).
"""
import collections
import fnmatch
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "zoo"))
import read

# What convert_to_quant spares of any model.
ANY = """norm bias embed_tokens lm_head shared patch_embedding ref_conv control_adapter
    motion_encoder.enc.net_app face_encoder.conv motion_encoder.enc.fc img_emb.proj
    motion_encoder.dec head.modulation casual_audio_encoder cond_encoder frame_packer tekken_model
    multi_modal_projector patch_conv ln_pre mm_input_projection_weight"""


def ctq(words):
    return "|".join(re.escape(word) for word in (ANY + " " + words).split())


WAN = ctq("""text_embedding time_embedding trainable_cond_mask time_projection head.head
    face_encoder.out_proj face_adapter audio_injector""")
ZIMAGE = """cap_embedder.0 cap_pad_token x_pad_token x_embedder clip_text_pooled_proj final_layer
    cap_embedder.1 adaLN_modulation t_embedder time_text_embed"""
QWEN_BLOCKS = r"^(?!.*transformer_blocks\.)|transformer_blocks\.(0|1|58|59)\."
DEFAULT = ("time_emb_proj|time_embedding|conv_in|conv_out|conv_shortcut|add_embedding|pos_embed|"
           "time_text_embed|context_embedder|norm_out|x_embedder")
LLM = r"^lm_head|mlp\.gate\.|shared_expert_gate|router|block_sparse_moe\.gate\."
VISION = r"lm_head|visual|vision_tower|multi_modal_projector|vision_model"
# (source, record, what is spared, models of tests/zoo)
PRESETS = (
    ("ctq flux2", "flux.2", ctq("stream_modulation guidance_in time_in final_layer img_in txt_in"),
     "later/flux.2-dev.raw later/flux.2-klein-4b.raw later/flux.2-klein-9b.raw"),
    ("ctq distillation_large", "chroma",
     ctq("distilled_guidance_layer final_layer img_in txt_in"), "comfy/chroma.raw"),
    ("ctq radiance, nerf_small", "chroma-radiance", ctq("""img_in_patch nerf_final_layer_conv
        __x0__ distilled_guidance_layer nerf_blocks nerf_image_embedder"""),
     "comfy/chroma-radiance.raw later/chroma-radiance-x0.raw"),
    ("ctq wan", "wan", WAN, """comfy/wan-t2v-14b.raw comfy/wan-i2v-14b.raw comfy/wan-vace-14b.raw
        comfy/wan2.2-animate-14b.raw comfy/wan2.2-s2v-14b.raw comfy/wan2.2-ti2v-5b.raw
        comfy/wan-camera-14b.raw comfy/wan-fun-control-14b.raw"""),
    ("ctq hunyuan", "hunyuan-video-1.5", ctq("""layernorm vision_in.proj.0 vision_in.proj.4
        img_in.proj cond_type_embedding"""), "later/hunyuan-video-1.5.raw"),
    ("ctq qwen", "qwen-image", ctq("""time_text_embed img_in norm_out proj_out
        transformer_blocks.0.img_mod.1 txt_in"""), "comfy/qwen-image.raw later/qwen-image-layered.raw"),
    ("ctq zimage", "z-image", ctq(ZIMAGE), "later/z-image.raw later/z-image-omni.raw"),
    ("ctq anima", "anima", ctq("""blocks.0. blocks.1.adaln_modulation final_layer llm_adapter
        t_embedder x_embedder"""), "later/anima.raw"),
    ("ctq lens", "lens", ctq("time_text_embed img_in norm_out proj_out img_mod.1 txt_mod.1 txt_in"),
     "makers/lens"),
    ("ctq krea2", "krea-2", ctq("firs las tml txtfusion last.modulatio tpro"),
     "diffsynth/krea2_dit.1"),
    ("ctq boogu", "boogu", ctq("""image_index_embedding ref_image_patch_embedder time_caption_embed
        x_embedder norm_out.linear_1 norm_out.linear_2"""), "diffsynth/boogu_image_dit.1"),
    ("ctq ideogram4", "ideogram-4", ctq("""embed_image_indicator t_embedding llm_cond_proj
        adaln_proj final_layer input_proj"""), "diffsynth/ideogram4_dit.1"),
    ("ctq minimaxh3", "minimax-h3", ctq("""audio_patch_proj condition_proj final_layer time_embedder
        token_refiner video_patch_proj"""),
     "diffsynth/minimax_h3_dit.1 diffsynth/minimax_h3_dit.2 diffsynth/minimax_h3_dit.3"),
    ("ctq ltxv2", "ltx-2", ctq("""scale_shift_table text_embedding_projection
        audio_embeddings_connector adaln_single patchify_proj proj_out transformer_blocks.0.
        transformer_blocks.1. transformer_blocks.46. transformer_blocks.47.
        video_embeddings_connector to_gate_logits"""), "later/ltx-2.raw later/ltx-2.3.raw"),
    ("ctq gemma4", None, ctq("audio per_layer_input_gate per_layer_projection vision"),
     "transformers/Gemma4ForConditionalGeneration"),
    ("ctq t5xxl", None, ctq(""), "transformers/T5EncoderModel"),
    ("ctq mistral", None, ctq(""), "transformers/MistralForCausalLM"),
    ("modelopt flux", "flux.1", r"^proj_out|time_text_embed|context_embedder|x_embedder|norm_out",
     "diffusers/FluxTransformer2DModel@flux.1-dev"),
    ("modelopt flux", "flux.2", r"^proj_out|time_text_embed|context_embedder|x_embedder|norm_out|"
     "time_guidance_embed|stream_modulation", """diffusers/Flux2Transformer2DModel
        diffusers/Flux2Transformer2DModel@flux.2-klein-9b"""),
    ("modelopt ltx", "ltx-2", r"proj_in|time_embed|caption_projection|proj_out|patchify_proj|"
     r"adaln_single|transformer_blocks\.(0|1|2|45|46|47)\.",
     "diffusers/LTX2VideoTransformer3DModel"),
    ("modelopt ltx", "ltx-video", r"proj_in|time_embed|caption_projection|proj_out|patchify_proj|"
     r"adaln_single|transformer_blocks\.(0|1|2|45|46|47)\.", """diffusers/LTXVideoTransformer3DModel
        diffusers/LTXVideoTransformer3DModel@ltx-video-13b"""),
    ("modelopt wan", "wan", r"patch_embedding|condition_embedder|proj_out|"
     r"blocks\.(0|1|2|37|38|39)\.", """diffusers/WanTransformer3DModel@wan-2.2-i2v-14b
        diffusers/WanTransformer3DModel@wan-2.2-ti2v-5b"""),
    ("modelopt qwen", "qwen-image", QWEN_BLOCKS, "diffusers/QwenImageTransformer2DModel"),
    ("modelopt default", "sd-3", DEFAULT, """diffusers/SD3Transformer2DModel@sd-3-medium
        diffusers/SD3Transformer2DModel@sd-3.5-large"""),
    ("modelopt default", "sdxl", DEFAULT, "diffusers/UNet2DConditionModel@sdxl"),
    ("modelopt default", "sd-1", DEFAULT, "diffusers/UNet2DConditionModel@sd-1"),
    ("llm-compressor", None, LLM, """transformers/LlamaForCausalLM transformers/Qwen3MoeForCausalLM
        transformers/Qwen2MoeForCausalLM transformers/MixtralForCausalLM
        transformers/DeepseekV3ForCausalLM transformers/GraniteMoeForCausalLM"""),
    ("llm-compressor", None, VISION, """transformers/Qwen2_5_VLForConditionalGeneration
        transformers/LlavaForConditionalGeneration transformers/Gemma3ForConditionalGeneration
        transformers/Mistral3ForConditionalGeneration"""),
    ("llm-compressor", "llama-4", VISION, "transformers/Llama4ForConditionalGeneration"),
    ("llm-compressor", "mllama", VISION, "transformers/MllamaForConditionalGeneration"),
)
PREFIXES = ("", "model.diffusion_model.", "diffusion_model.", "net.", "transformer.", "unet.")


def spare_rows():
    """{record: patterns}; those of all are of ""."""
    rows, at, inside = collections.defaultdict(list), "", False
    for path in glob.glob(os.path.join(ROOT, "data", "**", "*.txt"), recursive=True):
        with open(path, encoding="utf-8") as file:
            for line in file:
                words = line.split()
                if line[:1] not in (" ", "\n", "#"):
                    at = "" if words[0] == "several" else words[1]
                inside = words[:1] == ["spare"] or (inside and line.startswith("        "))
                if inside and words:
                    rows[at] += [w for w in words if w != "spare"]
    return rows


def fits(patterns, name):
    rests = [name[len(p):] for p in PREFIXES if name.startswith(p)]
    return any(fnmatch.fnmatchcase(rest, p.replace("[", "[[]")) for p in patterns for rest in rests)


def matrices(model, entries):
    library, _, name = model.partition("/")
    if library not in entries:
        entries[library] = {e.name: e for e in read.read(library)[1]}
    for tensor, dtype, shape in entries[library][name].tensors():
        if (tensor.endswith(".weight") and len(shape) == 2 and min(shape) >= 32
                and shape[0] * shape[1] >= 4096 and dtype in ("F32", "F16", "BF16")):
            yield tensor


def main():
    rows, entries, found = spare_rows(), {}, collections.defaultdict(set)
    alike = 0
    for source, record, theirs, models in PRESETS:
        mine = rows[""] + (rows[record] if record else [])
        for model in models.split():
            names = list(matrices(model, entries))
            assert names, model
            for name in names:
                ours, other = fits(mine, name), bool(re.search(theirs, name))
                alike += ours == other
                if ours != other:
                    found[source, record or "-", "ours" if ours else "theirs"].add(
                        re.sub(r"\d+(?=\.|$)", "#", name))
    problems, judged = [], []
    with open(os.path.join(HERE, "presets.txt"), encoding="utf-8") as file:
        judged = [line.rstrip("\n").split("\t") for line in file
                  if line.strip() and not line.startswith("#")]
    used = set()
    for (source, record, side), names in sorted(found.items()):
        for name in sorted(names):
            lines = [i for i, (s, r, w, pattern, _) in enumerate(judged)
                     if (s, r, w) == (source, record, side) and fnmatch.fnmatchcase(name, pattern)]
            used.update(lines)
            if not lines:
                problems.append("not judged: %s\t%s\t%s\t%s" % (source, record, side, name))
    problems += ["no such difference: " + "\t".join(j) for i, j in enumerate(judged)
                 if i not in used]
    print("\n".join(problems))
    if "-v" in sys.argv:
        print("%d matrices alike" % alike)
    good = sum(len(n) for n in found.values()) - len(problems)
    print("%d passed, %d failed" % (max(good, 0) + (alike > 0), len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
