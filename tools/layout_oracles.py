#!/usr/bin/env python3
"""Makes tests/layout/cases.json.gz: tiny models of diffusers, whose single files this command names
(the names of the original code), and what diffusers' own converters make of these, with widths that
they have written in replaced by those of the models. Needs torch, diffusers, transformers; and
build/safetensors. DIFFUSERS_SCRIPTS is the folder scripts/ of diffusers' repository, whose
converters are not all in the package (tools/layout_oracles.sh fetches it).

    layout_oracles.py         writes the cases, and says where a converter and this command differ
    layout_oracles.py NAME... tries these, and writes nothing
"""
import gzip
import hashlib
import inspect
import json
import os
import subprocess
import sys
import tempfile

import diffusers
import torch
from diffusers.loaders import lora_conversion_utils as L
from diffusers.loaders import single_file_utils as S
from safetensors.torch import load_file, save_file

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "layout"))
from run import digest, made  # noqa: E402

CMD = os.path.join(ROOT, "build", "safetensors")
CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


@case
def flux(): return "transformer","flux.1", diffusers.FluxTransformer2DModel(patch_size=1,in_channels=4,num_layers=2,num_single_layers=2,attention_head_dim=8,num_attention_heads=4,joint_attention_dim=16,pooled_projection_dim=8,guidance_embeds=True,axes_dims_rope=[2,2,4])
@case
def chroma(): return "transformer","chroma", diffusers.ChromaTransformer2DModel(patch_size=1,in_channels=4,num_layers=2,num_single_layers=2,attention_head_dim=8,num_attention_heads=4,joint_attention_dim=16,axes_dims_rope=[2,2,4],approximator_num_channels=8,approximator_hidden_dim=16,approximator_layers=2)
@case
def flux2(): return "transformer","flux.2", diffusers.Flux2Transformer2DModel(patch_size=1,in_channels=4,num_layers=2,num_single_layers=2,attention_head_dim=8,num_attention_heads=4,joint_attention_dim=16,timestep_guidance_channels=8,axes_dims_rope=[2,2,2,2])
@case
def hunyuan(): return "transformer","hunyuan-video", diffusers.HunyuanVideoTransformer3DModel(in_channels=4,out_channels=4,num_attention_heads=2,attention_head_dim=10,num_layers=2,num_single_layers=2,num_refiner_layers=2,patch_size=1,patch_size_t=1,guidance_embeds=True,text_embed_dim=16,pooled_projection_dim=8,rope_axes_dim=(2,4,4))
@case
def sd3(): return "transformer","sd-3", diffusers.SD3Transformer2DModel(sample_size=8,patch_size=1,in_channels=4,num_layers=3,attention_head_dim=8,num_attention_heads=4,joint_attention_dim=16,caption_projection_dim=32,pooled_projection_dim=16,out_channels=4,qk_norm="rms_norm",dual_attention_layers=(0,1))
@case
def pixart(): return "transformer","pixart-sigma", diffusers.PixArtTransformer2DModel(num_attention_heads=2,attention_head_dim=8,in_channels=4,out_channels=8,num_layers=2,cross_attention_dim=16,sample_size=8,patch_size=2,caption_channels=12,use_additional_conditions=True,norm_type="ada_norm_single")
@case
def sana(): return "transformer","sana", diffusers.SanaTransformer2DModel(in_channels=4,out_channels=4,num_attention_heads=2,attention_head_dim=4,num_layers=2,num_cross_attention_heads=2,cross_attention_head_dim=4,cross_attention_dim=8,caption_channels=8,sample_size=8)
@case
def auraflow(): return "transformer","auraflow", diffusers.AuraFlowTransformer2DModel(sample_size=8,patch_size=2,in_channels=4,num_mmdit_layers=1,num_single_dit_layers=2,attention_head_dim=8,num_attention_heads=4,joint_attention_dim=16,caption_projection_dim=32,out_channels=4,pos_embed_max_size=16)
@case
def z_image(): return "transformer","z-image", diffusers.ZImageTransformer2DModel(all_patch_size=(2,),all_f_patch_size=(1,),in_channels=4,dim=32,n_layers=2,n_refiner_layers=1,n_heads=2,n_kv_heads=2,qk_norm=True,cap_feat_dim=16,axes_dims=[8,4,4],axes_lens=[16,16,16])
@case
def lumina2(): return "transformer","lumina-2", diffusers.Lumina2Transformer2DModel(sample_size=8,patch_size=2,in_channels=4,hidden_size=24,num_layers=2,num_refiner_layers=1,num_attention_heads=3,num_kv_heads=1,multiple_of=16,ffn_dim_multiplier=None,norm_eps=1e-5,scaling_factor=1.0,axes_dim_rope=(4,2,2),cap_feat_dim=8)
@case
def wan(): return "transformer","wan", diffusers.WanTransformer3DModel(patch_size=(1,2,2),num_attention_heads=2,attention_head_dim=12,in_channels=4,out_channels=4,text_dim=16,freq_dim=16,ffn_dim=32,num_layers=2,cross_attn_norm=True,qk_norm="rms_norm_across_heads",image_dim=8,added_kv_proj_dim=24)
@case
def wan_vace(): return "transformer","wan", diffusers.WanVACETransformer3DModel(patch_size=(1,2,2),num_attention_heads=2,attention_head_dim=12,in_channels=4,out_channels=4,text_dim=16,freq_dim=16,ffn_dim=32,num_layers=3,vace_layers=[0,2],vace_in_channels=12,cross_attn_norm=True,qk_norm="rms_norm_across_heads")
@case
def qwen(): return "transformer","qwen-image", diffusers.QwenImageTransformer2DModel(patch_size=2,in_channels=16,out_channels=4,num_layers=2,attention_head_dim=16,num_attention_heads=2,joint_attention_dim=16,axes_dims_rope=(8,4,4))
@case
def ltx(): return "transformer","ltx-video", diffusers.LTXVideoTransformer3DModel(in_channels=8,out_channels=8,num_attention_heads=2,attention_head_dim=8,cross_attention_dim=16,num_layers=2,caption_channels=16)
@case
def cosmos1(): return "transformer","cosmos-1", diffusers.CosmosTransformer3DModel(in_channels=4,out_channels=4,num_attention_heads=2,attention_head_dim=12,num_layers=2,mlp_ratio=2,text_embed_dim=16,adaln_lora_dim=4,max_size=(4,32,32),patch_size=(1,2,2),rope_scale=(2.0,1.0,1.0),concat_padding_mask=True,extra_pos_embed_type="learnable")
@case
def cosmos2(): return "transformer","cosmos-predict2", diffusers.CosmosTransformer3DModel(in_channels=4,out_channels=4,num_attention_heads=2,attention_head_dim=12,num_layers=2,mlp_ratio=2,text_embed_dim=16,adaln_lora_dim=4,max_size=(4,32,32),patch_size=(1,2,2),rope_scale=(2.0,1.0,1.0),concat_padding_mask=True,extra_pos_embed_type=None)
def unet(**k):
    a=dict(block_out_channels=(32,64,64,64),layers_per_block=2,sample_size=8,in_channels=4,out_channels=4,down_block_types=("CrossAttnDownBlock2D",)*3+("DownBlock2D",),up_block_types=("UpBlock2D",)+("CrossAttnUpBlock2D",)*3,cross_attention_dim=32,attention_head_dim=8); a.update(k)
    return diffusers.UNet2DConditionModel(**a)
@case
def sd1(): return "unet","sd-1", unet()
@case
def sd2(): return "unet","sd-2", unet(use_linear_projection=True)
@case
def sdxl(): return "unet","sdxl", unet(block_out_channels=(32,64,64),down_block_types=("DownBlock2D","CrossAttnDownBlock2D","CrossAttnDownBlock2D"),up_block_types=("CrossAttnUpBlock2D","CrossAttnUpBlock2D","UpBlock2D"),transformer_layers_per_block=(1,2,3),addition_embed_type="text_time",addition_time_embed_dim=8,projection_class_embeddings_input_dim=80,use_linear_projection=True)
@case
def vae(): return "vae","", diffusers.AutoencoderKL(block_out_channels=(32,32,64,64),down_block_types=("DownEncoderBlock2D",)*4,up_block_types=("UpDecoderBlock2D",)*4,layers_per_block=2,latent_channels=4,norm_num_groups=8)
@case
def wan_vae(): return "vae","", diffusers.AutoencoderKLWan(base_dim=4,z_dim=4,dim_mult=[1,2,4,4],num_res_blocks=2)
VL=dict(in_channels=3,out_channels=3,latent_channels=8,block_out_channels=(8,8,8,8),decoder_block_out_channels=(8,8,8,8),patch_size=1)
@case
def vae_ltx(): return "vae","", diffusers.AutoencoderKLLTXVideo(in_channels=3,out_channels=3,latent_channels=8,block_out_channels=(8,16,32,32),decoder_block_out_channels=(8,16,32,32),layers_per_block=(1,1,1,1,1),decoder_layers_per_block=(1,1,1,1,1),spatio_temporal_scaling=(True,True,True,False),decoder_spatio_temporal_scaling=(True,True,True,False),decoder_inject_noise=(False,)*5,patch_size=1,patch_size_t=1,encoder_causal=True,decoder_causal=False)
@case
def vae_ltx_091(): return "vae","", diffusers.AutoencoderKLLTXVideo(in_channels=3,out_channels=3,latent_channels=8,block_out_channels=(8,16,32,32),decoder_block_out_channels=(8,16,32),layers_per_block=(1,1,1,1,1),decoder_layers_per_block=(1,1,1,1),spatio_temporal_scaling=(True,True,True,False),decoder_spatio_temporal_scaling=(True,True,True),decoder_inject_noise=(True,True,True,False),upsample_residual=(True,True,True),upsample_factor=(2,2,2),timestep_conditioning=True,patch_size=1,patch_size_t=1,encoder_causal=True,decoder_causal=False)
@case
def vae_ltx_095(): return "vae","", diffusers.AutoencoderKLLTXVideo(in_channels=3,out_channels=3,latent_channels=8,block_out_channels=(8,16,32,64,128),down_block_types=("LTXVideo095DownBlock3D",)*4,decoder_block_out_channels=(16,32,64),layers_per_block=(1,1,1,1,1),decoder_layers_per_block=(1,1,1,1),spatio_temporal_scaling=(True,True,True,True),decoder_spatio_temporal_scaling=(True,True,True),decoder_inject_noise=(False,False,False,False),downsample_type=("spatial","temporal","spatiotemporal","spatiotemporal"),upsample_residual=(True,True,True),upsample_factor=(2,2,2),timestep_conditioning=True,patch_size=1,patch_size_t=1,encoder_causal=True,decoder_causal=False,)
# ── Control networks, video models with sound, cascades, autoencoders ──
def controlnet(**k):
    a=dict(block_out_channels=(32,64,64,64),cross_attention_dim=32,conditioning_embedding_out_channels=(8,8,16,16)); a.update(k)
    return diffusers.ControlNetModel(**a)
@case
def controlnet_sd1(): return "controlnet","", controlnet()
@case
def controlnet_sdxl(): return "controlnet","", controlnet(block_out_channels=(32,64,64),down_block_types=("DownBlock2D","CrossAttnDownBlock2D","CrossAttnDownBlock2D"),transformer_layers_per_block=(1,2,3),addition_embed_type="text_time",addition_time_embed_dim=8,projection_class_embeddings_input_dim=80,use_linear_projection=True)
@case
def motion(): return "motion_adapter","", diffusers.MotionAdapter(block_out_channels=(32,32),motion_norm_num_groups=8,motion_num_attention_heads=2)
@case
def hunyuan_15(): return "transformer","hunyuan-video-1.5", diffusers.HunyuanVideo15Transformer3DModel(in_channels=9,out_channels=4,num_attention_heads=2,attention_head_dim=8,num_layers=2,num_refiner_layers=1,text_embed_dim=8,text_embed_2_dim=8,image_embed_dim=8,rope_axes_dim=(2,2,4))
@case
def vae_hunyuan_15(): return "vae","", diffusers.AutoencoderKLHunyuanVideo15(latent_channels=8,block_out_channels=(32,32,32,32,32),layers_per_block=1)
@case
def mochi(): return "transformer","mochi", diffusers.MochiTransformer3DModel(patch_size=2,num_attention_heads=1,attention_head_dim=4,num_layers=48,pooled_projection_dim=4,in_channels=2,text_embed_dim=8,time_embed_dim=4)
@case
def hidream(): return "transformer","hidream-i1", diffusers.HiDreamImageTransformer2DModel(patch_size=2,in_channels=4,num_layers=1,num_single_layers=1,attention_head_dim=8,num_attention_heads=2,caption_channels=[8,8],text_emb_dim=8,num_routed_experts=2,num_activated_experts=1,axes_dims_rope=(4,4),llama_layers=[0,1])
@case
def ernie(): return "transformer","ernie-image", diffusers.ErnieImageTransformer2DModel(hidden_size=16,num_attention_heads=2,num_layers=2,ffn_hidden_size=16,in_channels=4,out_channels=4,text_in_dim=8,rope_axes_dim=(2,2,4))
@case
def krea2(): return "transformer","krea-2", diffusers.Krea2Transformer2DModel(in_channels=4,num_layers=2,attention_head_dim=8,num_attention_heads=2,num_key_value_heads=1,intermediate_size=24,timestep_embed_dim=8,text_hidden_dim=16,num_text_layers=2,text_num_attention_heads=2,text_num_key_value_heads=2,text_intermediate_size=24,num_layerwise_text_blocks=1,num_refiner_text_blocks=1,axes_dims_rope=(2,2,4))
@case
def flux3(): return "transformer","flux.3", diffusers.Flux3Transformer2DModel(in_channels=4,cond_in_channels=4,num_layers=2,num_single_layers=2,attention_head_dim=8,num_attention_heads=2,joint_attention_dim=8,timestep_channels=8,mlp_ratio=2.0,axes_dims_rope=(2,2,2,2),flow_map=True)
@case
def qwen_21(): return "transformer","qwen-image-2.1", diffusers.QwenImage21Transformer2DModel(in_channels=4,out_channels=4,num_layers=2,attention_head_dim=8,num_attention_heads=2,context_in_dim=8,axes_dims_rope=(2,2,4))
@case
def animate_2(): return "transformer","wan-animate-2", diffusers.WanAnimate2Transformer3DModel(in_dim=4,dim=16,ffn_dim=16,freq_dim=8,text_dim=8,out_dim=4,num_heads=2,num_layers=2)
LT=dict(in_channels=4,out_channels=4,num_attention_heads=2,attention_head_dim=4,cross_attention_dim=8,audio_in_channels=4,audio_out_channels=4,audio_num_attention_heads=2,audio_attention_head_dim=4,audio_cross_attention_dim=8,num_layers=1,caption_channels=8)
@case
def ltx2(): return "transformer","ltx-2", diffusers.LTX2VideoTransformer3DModel(**LT)
@case
def vae_ltx2(): return "vae","ltx-2", diffusers.AutoencoderKLLTX2Video(in_channels=3,out_channels=3,latent_channels=8,block_out_channels=(4,8,16,32),decoder_block_out_channels=(8,16,32),layers_per_block=(1,1,1,1,1),decoder_layers_per_block=(1,1,1,1),patch_size=1)
@case
def audio_vae_ltx2(): return "audio_vae","", diffusers.AutoencoderKLLTX2Audio(base_channels=4,ch_mult=(1,2,4),num_res_blocks=1,resolution=16,latent_channels=2)
@case
def cascade_c(): return "prior","stable-cascade-c", diffusers.StableCascadeUNet(in_channels=4,out_channels=4,timestep_ratio_embedding_dim=8,conditioning_dim=16,block_out_channels=(16,16),num_attention_heads=(2,2),down_num_layers_per_block=(2,2),up_num_layers_per_block=(2,2),clip_text_in_channels=8,clip_text_pooled_in_channels=8,clip_image_in_channels=8,switch_level=(False,))
@case
def cascade_b(): return "decoder","stable-cascade-b", diffusers.StableCascadeUNet(in_channels=4,out_channels=4,timestep_ratio_embedding_dim=8,patch_size=2,conditioning_dim=16,block_out_channels=(8,16,16,16),num_attention_heads=(0,0,2,2),down_num_layers_per_block=(1,1,2,2),up_num_layers_per_block=(2,2,1,1),down_blocks_repeat_mappers=(1,1,1,1),up_blocks_repeat_mappers=(3,3,2,2),block_types_per_layer=(("SDCascadeResBlock","SDCascadeTimestepBlock"),("SDCascadeResBlock","SDCascadeTimestepBlock"),("SDCascadeResBlock","SDCascadeTimestepBlock","SDCascadeAttnBlock"),("SDCascadeResBlock","SDCascadeTimestepBlock","SDCascadeAttnBlock")),clip_text_pooled_in_channels=8,effnet_in_channels=4,pixel_mapper_in_channels=3,timestep_conditioning_type=("sca",),dropout=(0.0,0.0,0.0,0.0),self_attn=(True,True,True,True))
DC=dict(attention_head_dim=4,encoder_block_types=("ResBlock","ResBlock","EfficientViTBlock"),decoder_block_types=("ResBlock","ResBlock","EfficientViTBlock"),encoder_block_out_channels=(8,16,16),decoder_block_out_channels=(8,16,16))
@case
def dc_ae(): return "vae","", diffusers.AutoencoderDC(latent_channels=4,encoder_layers_per_block=(1,1,2),decoder_layers_per_block=(1,1,2),encoder_qkv_multiscales=((),(),(5,)),decoder_qkv_multiscales=((),(),(5,)),upsample_block_type="interpolate",downsample_block_type="Conv",**DC)
@case
def dc_ae_cut(): return "vae","", diffusers.AutoencoderDC(latent_channels=8,encoder_layers_per_block=(0,1,2),decoder_layers_per_block=(0,1,2),encoder_qkv_multiscales=((),(),()),decoder_qkv_multiscales=((),(),()),**DC)
@case
def vae_wan_22(): return "vae","", diffusers.AutoencoderKLWan(base_dim=4,decoder_base_dim=8,z_dim=4,dim_mult=[1,2,4,4],num_res_blocks=2,temperal_downsample=[False,True,True],is_residual=True,in_channels=12,out_channels=12,patch_size=2)
CONV={"flux":S.convert_flux_transformer_checkpoint_to_diffusers,"chroma":S.convert_chroma_transformer_checkpoint_to_diffusers,"flux2":S.convert_flux2_transformer_checkpoint_to_diffusers,"hunyuan":S.convert_hunyuan_video_transformer_to_diffusers,"sd3":S.convert_sd3_transformer_checkpoint_to_diffusers,"sana":S.convert_sana_transformer_to_diffusers,"auraflow":S.convert_auraflow_transformer_checkpoint_to_diffusers,"z_image":S.convert_z_image_transformer_checkpoint_to_diffusers,"lumina2":S.convert_lumina2_to_diffusers,"wan":S.convert_wan_transformer_to_diffusers,"wan_vace":S.convert_wan_transformer_to_diffusers,"ltx":S.convert_ltx_transformer_checkpoint_to_diffusers,"cosmos1":S.convert_cosmos_transformer_checkpoint_to_diffusers,"cosmos2":S.convert_cosmos_transformer_checkpoint_to_diffusers,"wan_vae":S.convert_wan_vae_to_diffusers,
"motion":S.convert_animatediff_checkpoint_to_diffusers,"mochi":S.convert_mochi_transformer_checkpoint_to_diffusers,"hidream":S.convert_hidream_transformer_to_diffusers,"ernie":S.convert_ernie_image_transformer_checkpoint_to_diffusers,"krea2":S.convert_krea2_transformer_checkpoint_to_diffusers,"flux3":S.convert_flux3_transformer_checkpoint_to_diffusers,"qwen_21":S.convert_qwen_image21_transformer_checkpoint_to_diffusers,"animate_2":S.convert_wan_animate_2_transformer_to_diffusers,"ltx2":S.convert_ltx2_transformer_to_diffusers,"vae_ltx2":S.convert_ltx2_vae_to_diffusers,"audio_vae_ltx2":S.convert_ltx2_audio_vae_to_diffusers,"cascade_c":S.convert_stable_cascade_unet_single_file_to_diffusers,"cascade_b":S.convert_stable_cascade_unet_single_file_to_diffusers,"dc_ae":S.convert_autoencoder_dc_checkpoint_to_diffusers,"dc_ae_cut":S.convert_autoencoder_dc_checkpoint_to_diffusers}


# Converters that are only in the scripts of diffusers' repository: the function, or, where it fetches
# a model, what it does to one between two lines.
SCRIPTED = {
    "hunyuan_15": ("hunyuan_video1_5", "def convert_hyvideo15_transformer_to_diffusers", None, None),
    "vae_hunyuan_15": ("hunyuan_video1_5", "def convert_hunyuan_video_15_vae_checkpoint_to_diffusers",
                       None, None),
    "vae_wan_22": ("wan", "def convert_vae_22", "    new_state_dict = {}\n",
                   "    with init_empty_weights():\n"),
}


def scripted(name, model, state):
    script, begin, first, last = SCRIPTED[name]
    with open(os.path.join(os.environ["DIFFUSERS_SCRIPTS"], "convert_%s_to_diffusers.py" % script)) as f:
        text = f.read()
    text = text[text.index(begin):]
    text = text[:text.index("\n\n\n")]
    space = {"torch": torch}
    if first:
        text = "def convert(old_state_dict):\n" + text[text.index(first):text.index(last)] \
            + "    return new_state_dict\n"
        exec(text, space)
        return space["convert"](state)
    swap = lambda weight: torch.cat(list(weight.chunk(2, dim=0))[::-1], dim=0)
    space["swap_scale_shift"] = swap
    exec(text.replace("num_layers = 54", "num_layers = 2").replace("num_refiner_blocks = 2",
                                                                  "num_refiner_blocks = 1"), space)
    if name == "hunyuan_15":
        return space["convert_hyvideo15_transformer_to_diffusers"](state, model.config)
    return space["convert_hunyuan_video_15_vae_checkpoint_to_diffusers"](state, [1] * 5, 1)


def theirs(name,model,single):
    d=dict(single)
    if name in("sd1","sd2","sdxl"): return S.convert_ldm_unet_checkpoint({"model.diffusion_model."+k:v for k,v in d.items()},dict(model.config))
    if name=="vae": return S.convert_ldm_vae_checkpoint({"first_stage_model."+k:v for k,v in d.items()},dict(model.config))
    if name.startswith("controlnet"):
        made=S.convert_controlnet_checkpoint(d,dict(model.config))
        if name=="controlnet_sdxl":  # the converter leaves out what its own table has
            made.update({k:d[v] for k,v in S.DIFFUSERS_TO_LDM_MAPPING["controlnet"]["addition_embed_type"].items()})
        return made
    if name in SCRIPTED: return scripted(name, model, d)
    if name not in CONV and name not in ("vae_ltx","vae_ltx_091","vae_ltx_095"): return None
    if name=="sana": d["pos_embed"]=torch.zeros(1); d["y_embedder.y_embedding"]=torch.zeros(1)
    if name.startswith("vae_ltx_") or name=="vae_ltx":
        src=inspect.getsource(S.convert_ltx_vae_checkpoint_to_diffusers)
        src=src.replace("shape[1] == 2048","shape[1] == %d"%(128 if name=="vae_ltx_095" else 999999))
        ns=dict(S.__dict__); exec(src,ns)
        return ns["convert_ltx_vae_checkpoint_to_diffusers"]({"vae."+k:v for k,v in d.items()})
    if name.startswith("cosmos"): d={"net."+k:v for k,v in d.items()}
    widths={"flux":32,"chroma":32,"hunyuan":20}
    f=CONV[name]
    if name in widths or name in ("lumina2","cosmos1"):
        src=inspect.getsource(f)
        w=widths.get(name,24)
        src=src.replace("3072",str(w)).replace("2304",str(24)).replace("768","8").replace("attn.to_q.0.weight\" in checkpoint","attn.to_q.0.weight\" in converted_state_dict")
        ns=dict(S.__dict__); exec(src,ns); f=ns[f.__name__]
    return f(d)


def adapters():
    wide, cases = 32, {}

    def shapes(layers, ends, alpha=True, rank=4):
        names = {}
        for name, (rows, cols) in layers.items():
            names[name + ends[0]] = [rows, rank]
            names[name + ends[1]] = [rank, cols]
            if alpha:
                names[name + ".alpha"] = []
        return names

    def add(name, architecture, adapter, ways, convert=None, exact=False):
        want = None
        if convert:
            tensors = filled({k: v for k, v in adapter.items() if v})
            tensors = {k: v.clone().view(torch.bfloat16) for k, v in tensors.items()}
            tensors.update({k: torch.tensor(2.0) for k, v in adapter.items() if not v})
            want = told({k: v.view(torch.int16) if v.dtype == torch.bfloat16 else v
                         for k, v in convert(tensors).items()})
        cases[name] = {"architecture": architecture, "adapter": adapter, "ways": ways,
                       "diffusers": want, "exact": exact}

    kohya, peft = (".lora_up.weight", ".lora_down.weight"), (".lora_B.weight", ".lora_A.weight")
    flat = lambda layers, prefix="lora_unet_": {prefix + k.replace(".", "_"): v
                                                for k, v in layers.items()}
    flux = {}
    for i in range(2):
        for s in ("img", "txt"):
            flux.update({f"double_blocks.{i}.{s}_attn.qkv": (96, 32),
                         f"double_blocks.{i}.{s}_attn.proj": (32, 32),
                         f"double_blocks.{i}.{s}_mlp.0": (128, 32),
                         f"double_blocks.{i}.{s}_mlp.2": (32, 128),
                         f"double_blocks.{i}.{s}_mod.lin": (192, 32)})
        flux.update({f"single_blocks.{i}.linear1": (224, 32), f"single_blocks.{i}.linear2": (32, 160),
                     f"single_blocks.{i}.modulation.lin": (96, 32)})
    source = inspect.getsource(L._convert_kohya_flux_lora_to_diffusers)
    space = dict(L.__dict__)
    exec(source.replace("12288", "128").replace("3072", "32"), space)
    add("flux kohya", "flux.1", shapes(flat(flux), kohya), [["diffusers", "kohya"],
        ["comfy", "kohya"]], space["_convert_kohya_flux_lora_to_diffusers"])
    swapped = {"final_layer.adaLN_modulation.1": (64, 32)}
    add("flux swapped", "flux.1", shapes(flat(swapped), kohya), [["diffusers", "kohya"]])
    pieces = {}
    for i in range(2):
        for q in ("to_q", "to_k", "to_v", "add_q_proj", "add_k_proj", "add_v_proj"):
            pieces[f"transformer.transformer_blocks.{i}.attn.{q}"] = (32, 32)
        for q, rows in (("attn.to_q", 32), ("attn.to_k", 32), ("attn.to_v", 32), ("proj_mlp", 128)):
            pieces[f"transformer.single_transformer_blocks.{i}.{q}"] = (rows, 32)
    add("flux diffusers", "flux.1", shapes(pieces, peft, False), [["kohya", "diffusers"],
        ["comfy", "diffusers"]])
    values = {k: v for k, v in pieces.items() if ".transformer_blocks" in k and "to_v" in k}
    add("flux values", "flux.1", shapes(values, peft, False), [["kohya", "diffusers"]])
    unet, encoder = {}, {}
    for block in ("down_blocks_1_attentions_0", "mid_block_attentions_0", "up_blocks_1_attentions_2"):
        for q in ("attn1_to_q", "attn2_to_k", "attn1_to_out_0", "ff_net_0_proj"):
            unet[f"{block}_transformer_blocks_0_{q}"] = (32, 32)
        unet[block + "_proj_in"] = (32, 32)
    for i in range(2):
        for q in ("self_attn_q_proj", "self_attn_out_proj", "mlp_fc1"):
            encoder[f"text_model_encoder_layers_{i}_{q}"] = (32, 32)
    add("sd-1 kohya", "sd-1", shapes({**flat(unet), **flat(encoder, "lora_te_")}, kohya),
        [["diffusers", "kohya"], ["comfy", "kohya"]])
    xl = {}
    for block in ("input_blocks_4_1", "middle_block_1", "output_blocks_2_1", "output_blocks_5_1"):
        for q in ("attn1_to_q", "attn2_to_out_0", "ff_net_2"):
            xl[f"{block}_transformer_blocks_1_{q}"] = (32, 32)
    xl.update({"output_blocks_2_2_conv": (32, 32), "input_blocks_3_0_op": (32, 32),
               "input_blocks_5_0_in_layers_2": (32, 32)})
    add("sdxl kohya", "sdxl", shapes({**flat(xl), **flat(encoder, "lora_te1_"),
                                      **flat(encoder, "lora_te2_")}, kohya),
        [["diffusers", "kohya"], ["comfy", "kohya"]])
    wan = {f"blocks.0.{a}.{q}": (32, 32) for a in ("self_attn", "cross_attn") for q in "qkvo"}
    wan.update({"blocks.0.ffn.0": (64, 32), "blocks.0.ffn.2": (32, 64)})
    dotted = {"diffusion_model." + k: v for k, v in wan.items()}
    add("wan comfy", "wan-2.1", shapes(dotted, peft, False), [["diffusers", "comfy"],
        ["peft", "comfy"], ["kohya", "comfy"]], L._convert_non_diffusers_wan_lora_to_diffusers, True)
    add("wan musubi", "wan-2.1", shapes(flat(wan), kohya), [["diffusers", "kohya"]],
        L._convert_musubi_wan_lora_to_diffusers)
    z = {f"transformer.layers.{i}.attention.{q}": (32, 32) for i in range(2)
         for q in ("to_q", "to_k", "to_v", "to_out.0")}
    add("z-image", "z-image", shapes(z, peft, False), [["kohya", "diffusers"],
                                                      ["comfy", "diffusers"]])
    lumina = {f"diffusion_model.layers.{i}.attention.qkv": (48, 32) for i in range(2)}
    add("lumina-2", "lumina-2", shapes(lumina, peft, False), [["diffusers", "comfy"]])
    qwen = {f"transformer_blocks.{i}.attn.{q}": (32, 32) for i in range(2)
            for q in ("to_q", "add_k_proj", "to_out.0", "to_add_out")}
    add("qwen-image", "qwen-image", shapes(flat(qwen), kohya), [["diffusers", "kohya"]],
        L._convert_non_diffusers_qwen_lora_to_diffusers)
    sd3 = {f"transformer.transformer_blocks.{i}.attn.{q}": (32, 32) for i in range(2)
           for q in ("to_q", "to_k", "to_v", "add_q_proj", "add_k_proj", "add_v_proj", "to_out.0")}
    add("sd-3", "sd-3", shapes(sd3, peft, False), [["kohya", "diffusers"], ["comfy", "diffusers"]])
    hunyuan = {"double_blocks.0.img_attn_qkv": (96, 32), "single_blocks.0.linear1": (224, 32),
               "single_blocks.0.linear2": (32, 160)}
    add("hunyuan-video", "hunyuan-video",
        shapes({"diffusion_model." + k: v for k, v in hunyuan.items()}, peft, False),
        [["diffusers", "comfy"]])
    return cases


def filled(shapes):
    """Tensors by name, with the bytes that tests/layout/run.py gives them, as I16."""
    return {name: torch.frombuffer(bytearray(made(name, shape)) or bytearray(2), dtype=torch.int16)[
        :max(1, len(made(name, shape)) // 2)].reshape(shape) for name, shape in shapes.items()}


def told(tensors):
    return {name: digest(list(t.shape), t.contiguous().numpy().tobytes())
            for name, t in tensors.items()}


def model(name, build):
    component, architecture, net = build()
    with tempfile.TemporaryDirectory() as folder:
        path, out = folder + "/in.safetensors", folder + "/single.safetensors"
        state = {k: v for k, v in net.state_dict().items() if "pos_embed.pe" not in k}
        save_file({k: v.contiguous().to(torch.bfloat16) for k, v in state.items()}, path)
        told_by = ["--architecture", architecture] if architecture else []
        subprocess.run([CMD, "convert", path, "-o", out, "--layout", "single", *told_by],
                       check=True, stdout=subprocess.DEVNULL)
        single = {k: list(v.shape) for k, v in load_file(out).items()}
        mine = {k: list(v.shape) for k, v in state.items()}
    result = theirs(name, net, filled(single))
    want = told(result) if result is not None else None
    if want is not None and {k: v[0] for k, v in want.items() if k in mine} != \
            {k: v for k, v in mine.items() if k in want}:
        print(name, "differs in shapes")
    kept = {}
    if want is None:  # no converter: the names and shapes of the model's own class
        print(name, "has no converter")
        want = {k: [v, None] for k, v in mine.items()}
    return {"architecture": architecture, "single": single, "diffusers": want, "kept": kept}


def main():
    torch.manual_seed(0)
    models = {}
    for name, build in CASES.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        one = model(name, build)
        models[name] = one
    if sys.argv[1:]:
        return
    with gzip.GzipFile(os.path.join(ROOT, "tests", "layout", "cases.json.gz"), "wb", mtime=0) as out:
        out.write(json.dumps({"models": models, "adapters": adapters()}, sort_keys=True).encode())
    print(len(models), "models")


if __name__ == "__main__":
    main()
