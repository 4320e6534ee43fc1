"""Makes the quantised files of tests/quant with the packages that people make them with, and the
values that these packages read from them, in F32.

    quant_oracles.py FOLDER [NAME...]     in the environment that tools/quant_oracles.sh makes

    quant_oracles.py FOLDER write         what convert --quantize is compared with

A case is NAME.safetensors, NAME.values.safetensors and, where a model has one, NAME.json, which is
config.json. The values are exact, or, where the metadata say so, within a part of the greatest; of
0: but for signs of zeros.
"""
import hashlib
import json
import os
import sys

import torch
from safetensors.torch import save_file

CASES = []


def case(function):
    CASES.append(function)
    return function


def weights(rows, columns, seed=1, zero=True):
    """Normal values, with a row, a block and a column of zeros and one that is much larger."""
    random = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, columns, generator=random) * 0.02
    if zero:
        values[1] = 0
        values[2, :32] = 0
    values[3, 5] = 1.5
    values[4] *= 1e-6
    return values


def marked(**what):
    return torch.frombuffer(bytearray(json.dumps(what).encode()), dtype=torch.uint8).clone()


# ── comfy-kitchen ──

def kitchen():
    from comfy_kitchen.backends.eager import quantization
    return quantization


@case
def comfy_fp8():
    k, tensors, values = kitchen(), {}, {}
    for name, dtype, most in (("a", torch.float8_e4m3fn, 448), ("b", torch.float8_e5m2, 57344)):
        x = weights(24, 40)
        scale = x.abs().max() / most
        q = k.quantize_per_tensor_fp8(x, scale, dtype)
        tensors.update({name + ".weight": q, name + ".weight_scale": scale,
                        name + ".input_scale": torch.tensor(0.5), name + ".bias": torch.ones(24),
                        name + ".comfy_quant": marked(format=str(dtype)[6:])})
        values[name + ".weight"] = k.dequantize_per_tensor_fp8(q, scale, torch.float32)
    return tensors, values, {}


@case
def comfy_int8():
    k, tensors, values = kitchen(), {}, {}
    for name, quantise, more in (("a", k.quantize_int8_tensorwise, {}),
                                 ("b", k.quantize_int8_rowwise, {"per_row": True})):
        q, scale = quantise(weights(24, 40))
        tensors.update({name + ".weight": q, name + ".weight_scale": scale,
                        name + ".comfy_quant": marked(format="int8_tensorwise", **more)})
        values[name + ".weight"] = k.dequantize_int8_simple(q, scale.float())
    return tensors, values, {}


@case
def comfy_convrot():
    from comfy_kitchen.backends.eager import convrot_w4a4
    k, tensors, values = kitchen(), {}, {}
    for name, size in (("a", 64), ("b", 256), ("c", 16)):
        x = weights(6, 256)
        h = k._build_hadamard(size)
        q, scale = k.quantize_int8_rowwise(k._rotate_weight(x, h, size))
        tensors.update({name + ".weight": q, name + ".weight_scale": scale, name + ".comfy_quant":
                        marked(format="int8_tensorwise", convrot=True, convrot_groupsize=size)})
        values[name + ".weight"] = k.dequantize_int8_convrot_weight(q, scale, size)
    q, scale = convrot_w4a4.quantize_convrot_w4a4_weight(weights(6, 256), 256)
    tensors.update({"d.weight": q, "d.weight_scale": scale, "d.comfy_quant":
                    marked(format="convrot_w4a4", convrot_groupsize=256, quant_group_size=64,
                           linear_dtype="int4")})
    values["d.weight"] = convrot_w4a4.dequantize_convrot_w4a4_weight(q, scale, 256)
    return tensors, values, {"within": "1e-6"}


@case
def comfy_w4a8():
    from comfy_kitchen.tensor import w4a8_int8 as module
    tensors, values = {}, {}
    for name, bits, correction in (("a", 4, False), ("b", 4, True), ("c", 6, False)):
        made = module.quantize_w4a8_int8_weight(weights(8, 256), bits=bits)
        q, s_rel, s_channel, codebook = made[:4]
        tensors.update({name + ".weight": q, name + ".weight_s_rel": s_rel,
                        name + ".weight_s_channel": s_channel,
                        name + ".comfy_quant": marked(format="asym_w4a8_int8")})
        if codebook is not None:
            tensors[name + ".weight_codebook"] = codebook
        more = None
        if correction:
            more = torch.randn(256 // 16, 8, generator=torch.Generator().manual_seed(5)) * 1e-3
            tensors[name + ".weight_correction"] = more
        values[name + ".weight"] = module.dequantize_w4a8_int8_weight(
            q, s_rel, s_channel, codebook, more, output_dtype=torch.float32)
    return tensors, values, {"within": "1e-6"}


@case
def comfy_mxfp8():
    k, tensors, values = kitchen(), {}, {}
    for name, rows, columns in (("a", 160, 32), ("b", 40, 70), ("c", 32, 160)):
        q, scale = k.quantize_mxfp8(weights(rows, columns), pad_32x=True)
        tensors.update({name + ".weight": q, name + ".weight_scale": scale,
                        name + ".bias": torch.ones(rows),
                        name + ".comfy_quant": marked(format="mxfp8", orig_shape=[rows, columns])})
        if name == "a":
            tensors[name + ".comfy_quant"] = marked(format="mxfp8")
        values[name + ".weight"] = k.dequantize_mxfp8(q, scale, torch.float32)[:rows, :columns]
    return tensors, values, {}


@case
def comfy_nvfp4():
    k, tensors, values = kitchen(), {}, {}
    for name, rows, columns in (("a", 144, 16), ("b", 20, 96), ("c", 16, 33)):
        x = weights(rows, columns)
        whole = x.abs().max() / (448 * 6)
        q, scale = k.quantize_nvfp4(x, whole, pad_16x=True)
        tensors.update({name + ".weight": q, name + ".weight_scale": scale,
                        name + ".weight_scale_2": whole, name + ".bias": torch.ones(rows),
                        name + ".comfy_quant": marked(format="nvfp4", orig_shape=[rows, columns])})
        values[name + ".weight"] = k.dequantize_nvfp4(
            q, whole, scale, torch.float32)[:rows, :columns]
    return tensors, values, {}


@case
def comfy_awq():
    from comfy_kitchen.tensor import awq_w4a16 as module
    layout = next(getattr(module, name) for name in dir(module) if name.endswith("AWQW4A16Layout"))
    random = torch.Generator().manual_seed(2)
    q = torch.randint(-128, 128, (24, 64), dtype=torch.int8, generator=random)
    scale = torch.randn(2, 24, generator=random).bfloat16() * 0.01
    zeros = torch.randn(2, 24, generator=random).bfloat16()
    params = layout.Params(scale=scale.float(), orig_dtype=torch.float32, orig_shape=(24, 128),
                           zeros=zeros.float(), group_size=64)
    return ({"a.weight": q, "a.weight_scale": scale, "a.weight_zeros": zeros,
             "a.comfy_quant": marked(format="awq_w4a16", group_size=64)},
            {"a.weight": layout.dequantize(q, params)}, {})


# ── compressed-tensors ──

def compressed(format_, make, **arguments):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    args = QuantizationArgs(**arguments)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    compressor = BaseCompressor.get_value_from_registry(format_)
    state = {name: value for name, value in make(args).items() if value is not None}
    packed = compressor.compress(dict(state), scheme)
    # In F32: the packages multiply in the dtype of the scale.
    wide = {name: value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
            for name, value in packed.items()}
    plain = compressor.decompress(wide, scheme)["weight"].float()
    config = {"quant_method": "compressed-tensors", "format": format_, "config_groups": {
        "group_0": {"targets": ["Linear"], "weights": json.loads(args.model_dump_json())}}}
    return packed, plain, {"quantization_config": config}


def affine(x, group, bits, symmetric, dtype=torch.bfloat16):
    """Scales and zero points of groups of columns."""
    parts = x.reshape(x.shape[0], -1, group)
    if symmetric:
        return (parts.abs().amax(-1) / ((1 << bits) - 1) * 2).clamp(min=1e-9).to(dtype), None
    low, high = parts.amin(-1).clamp(max=0), parts.amax(-1).clamp(min=0)
    scale = ((high - low) / ((1 << bits) - 1)).clamp(min=1e-9).to(dtype)
    zero = torch.round(-low / scale.float()) - (1 << (bits - 1))
    return scale, zero.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1).to(torch.int8)


def packed_case(bits, group, rows, columns, symmetric):
    def make(args):
        x = weights(rows, columns)
        scale, zero = affine(x, group, bits, symmetric)
        return {"weight": x.bfloat16(), "weight_scale": scale, "weight_zero_point": zero}
    return compressed("pack-quantized", make, num_bits=bits, type="int", symmetric=symmetric,
                      strategy="group", group_size=group)


def packed_bits(bits):
    def run():
        tensors, values = {}, {}
        for name, symmetric in (("s", True), ("z", False)):
            packed, plain, config = packed_case(bits, 32, 20, 96, symmetric)
            tensors.update({name + "." + leaf: value for leaf, value in packed.items()})
            values[name + ".weight"] = plain
        config["quantization_config"]["config_groups"]["group_0"]["weights"].pop("symmetric")
        return tensors, values, {}, config
    run.__name__ = "ct_pack_%d" % bits
    CASES.append(run)


for bits_ in (2, 3, 4, 5, 8):
    packed_bits(bits_)


@case
def ct_int():
    def make(args):
        x = weights(24, 40)
        return {"weight": x, "weight_scale": x.abs().amax(1, keepdim=True).clamp(min=1e-9) / 127}
    packed, plain, config = compressed("int-quantized", make, num_bits=8, type="int",
                                       strategy="channel", symmetric=True)
    def uneven(args):
        x = weights(24, 40)
        scale, zero = affine(x, 40, 8, False, torch.float32)
        return {"weight": x, "weight_scale": scale, "weight_zero_point": zero}
    more, also, _ = compressed("int-quantized", uneven, num_bits=8, type="int",
                               strategy="channel", symmetric=False)
    return ({**{"a." + k: v for k, v in packed.items()}, **{"b." + k: v for k, v in more.items()}},
            {"a.weight": plain, "b.weight": also}, {}, config)


@case
def ct_float():
    def make(args):
        x = weights(130, 134)
        grid = torch.nn.functional.pad(x, (0, 122, 0, 126)).reshape(2, 128, 2, 128)
        return {"weight": x, "weight_scale": grid.abs().amax((1, 3)).clamp(min=1e-9) / 448}
    packed, plain, config = compressed("float-quantized", make, num_bits=8, type="float",
                                       strategy="block", block_structure=[128, 128])
    return {"a." + k: v for k, v in packed.items()}, {"a.weight": plain}, {}, config


def ct_blocks(format_, bits, group, most):
    def run():
        def make(args):
            x = weights(20, 96).bfloat16()
            scale = x.float().reshape(20, -1, group).abs().amax(-1) / most
            if group == 32:
                return {"weight": x, "weight_scale":
                        torch.exp2(torch.ceil(torch.log2(scale.clamp(min=2.0 ** -40))))}
            whole = 448 * 6 / x.float().abs().max()
            scale = (scale * whole).clamp(min=2.0 ** -6).to(torch.float8_e4m3fn).float()
            return {"weight": x, "weight_scale": scale, "weight_global_scale": whole.reshape(1)}
        packed, plain, config = compressed(
            format_, make, num_bits=bits, type="float", group_size=group,
            strategy="group" if group == 32 else "tensor_group", symmetric=True)
        if group != 32:  # which the package multiplies in BF16
            from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
            codes = unpack_fp4_from_uint8(packed["weight_packed"], 20, 96).float()
            scale = packed["weight_scale"].float() / packed["weight_global_scale"]
            plain = (codes.reshape(20, -1, group) * scale[..., None]).reshape(20, 96)
        tensors = {"a." + k: v for k, v in packed.items()}
        tensors["a.input_global_scale"] = torch.ones(1)
        return tensors, {"a.weight": plain}, {}, config
    run.__name__ = "ct_" + format_.replace("-", "_")
    CASES.append(run)


ct_blocks("nvfp4-pack-quantized", 4, 16, 6)
ct_blocks("mxfp4-pack-quantized", 4, 32, 6)
ct_blocks("mxfp6-pack-quantized", 6, 32, 7.5)
ct_blocks("mxfp8-quantized", 8, 32, 448)


# ── bitsandbytes ──

@case
def bnb_4bit():
    import bitsandbytes.functional as bnb
    tensors, values = {}, {}
    for name, kind, nested, rows, columns in (
            ("a", "nf4", False, 16, 64), ("b", "fp4", False, 8, 128), ("c", "nf4", True, 40, 416),
            ("d", "nf4", False, 5, 52)):
        packed, state = bnb.quantize_4bit(weights(rows, columns), blocksize=64, quant_type=kind,
                                          compress_statistics=nested)
        tensors[name + ".weight"] = packed
        for leaf, value in state.as_dict(packed=True).items():
            tensors[name + ".weight." + leaf] = value
        # Flat, as the format is: the package's own is wrong where a block is in two rows.
        codes = torch.stack([packed.reshape(-1) >> 4, packed.reshape(-1) & 15], -1).reshape(-1)
        scale = state.absmax
        if nested:
            inner = state.state2
            scale = (inner.code[scale.long()] *
                     inner.absmax.repeat_interleave(inner.blocksize)[:len(scale)]) + state.offset
        plain = state.code[codes.long()] * scale.repeat_interleave(64)[:len(codes)]
        values[name + ".weight"] = plain.reshape(rows, columns)
        if columns % 64 == 0 and not nested:
            assert torch.equal(values[name + ".weight"], bnb.dequantize_4bit(packed, state).float())
    return tensors, values, {}


@case
def bnb_int8():
    import bitsandbytes.functional as bnb
    q, stats, _ = bnb.int8_vectorwise_quant(weights(24, 40).half())
    plain = bnb.int8_vectorwise_dequant(q, stats)
    return ({"a.weight": q, "a.SCB": stats, "a.weight_format": torch.tensor(0, dtype=torch.uint8)},
            {"a.weight": plain.float()}, {})


# ── torchao, HQQ, quanto ──

@case
def torchao():
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor
    from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
    from torchao.quantization import (Float8Tensor, Int8Tensor, IntxUnpackedToInt8Tensor, PerRow,
                                      PerTensor)
    x, e4m3, fp4 = weights(24, 64), torch.float8_e4m3fn, torch.float4_e2m1fn_x2
    made = {
        "a": Float8Tensor.from_hp(x, granularity=PerRow()),
        "b": Float8Tensor.from_hp(x, granularity=PerTensor()),
        "c": Int8Tensor.from_hp(x, granularity=PerRow()),
        "d": IntxUnpackedToInt8Tensor.from_hp(x, block_size=(1, 32), target_dtype=torch.int4),
        "e": MXTensor.to_mx(x, e4m3, 32), "f": MXTensor.to_mx(x, e4m3, 32, is_swizzled_scales=True),
        "g": MXTensor.to_mx(x, fp4, 32), "h": NVFP4Tensor.to_nvfp4(x, 16),
        "i": NVFP4Tensor.to_nvfp4(x, 16, per_tensor_scale=torch.tensor(0.01),
                                  is_swizzled_scales=True)}
    tensors, notes = flatten_tensor_state_dict({n + ".weight": v for n, v in made.items()})
    values = {n + ".weight": v.dequantize(torch.float32) if n != "d" else v.dequantize()
              for n, v in made.items()}
    return tensors, values, {}, None, notes


@case
def hqq():
    from hqq.core.quantize import BaseQuantizeConfig, HQQLinear
    tensors, values = {}, {}
    for name, bits, axis in (("a", 8, 1), ("b", 4, 1), ("c", 3, 1), ("d", 2, 1), ("e", 1, 1),
                             ("f", 4, 0)):
        linear = torch.nn.Linear(96, 16, bias=name != "a")
        linear.weight.data = weights(16, 96)
        made = HQQLinear(linear, BaseQuantizeConfig(nbits=bits, group_size=32, axis=axis),
                         compute_dtype=torch.float32, device="cpu")
        tensors.update({name + "." + k: v for k, v in made.state_dict().items()})
        values[name + ".weight"] = made.dequantize()
    return tensors, values, {}


@case
def quanto():
    from optimum.quanto import freeze, qfloat8, qint8, quantize
    tensors, values = {}, {}
    for name, kind in (("a", qint8), ("b", qfloat8)):
        model = torch.nn.Sequential(torch.nn.Linear(40, 24))
        model[0].weight.data = weights(24, 40)
        quantize(model, weights=kind)
        freeze(model)
        tensors.update({name + k[1:]: v for k, v in model.state_dict().items()})
        values[name + ".weight"] = model[0].weight.dequantize()
    return tensors, values, {}


# ── ModelOpt, gpt-oss, GPTQ, AWQ, MLX ──

@case
def modelopt_nvfp4():
    from modelopt.torch.quantization.qtensor.nvfp4_tensor import NVFP4QTensor
    x = weights(20, 96)
    q, scale, whole = NVFP4QTensor.quantize(x.clone(), 16)
    plain = q.dequantize(torch.float32, scale=scale, double_scale=whole, block_sizes={-1: 16})
    return ({"a.weight": q._quantized_data, "a.weight_scale": scale, "a.weight_scale_2": whole,
             "a.input_scale": torch.tensor(0.5)}, {"a.weight": plain}, {"within": "0"},
            {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4",
                                     "group_size": 16}})


@case
def modelopt_fp8():
    from modelopt.torch.quantization.qtensor.fp8_tensor import FP8QTensor
    q, scale = FP8QTensor.quantize(weights(24, 40))
    plain = q.dequantize(torch.float32, scale=scale)
    return ({"a.weight": q._quantized_data, "a.weight_scale": scale,
             "a.input_scale": torch.tensor(0.5)}, {"a.weight": plain}, {},
            {"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}})


@case
def mxfp4():
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors
    random, tensors, values = torch.Generator().manual_seed(4), {}, {}
    for name, rows, groups in (("experts.gate_up_proj", 20, 3), ("experts.down_proj", 9, 1)):
        blocks = torch.randint(0, 256, (2, rows, groups, 16), generator=random, dtype=torch.uint8)
        scales = torch.randint(97, 140, (2, rows, groups), generator=random, dtype=torch.uint8)
        tensors.update({name + "_blocks": blocks, name + "_scales": scales})
        values[name] = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    return tensors, values, {}, {"quantization_config": {"quant_method": "mxfp4"}}


def installed(package, path):
    """A file of a package whose own import needs more than a processor and old versions."""
    import importlib.metadata
    import importlib.util
    place = importlib.metadata.distribution(package).locate_file(path)
    spec = importlib.util.spec_from_file_location(package.replace("-", "_") + "_file", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@case
def gptq():
    module = installed("auto-gptq", "auto_gptq/nn_modules/qlinear/qlinear_cuda.py")
    random, tensors, values, dynamic = torch.Generator().manual_seed(6), {}, {}, {}
    for name, bits, ordered in (("a", 4, True), ("b", 8, True), ("c", 3, True), ("d", 2, True),
                                ("e", 4, False)):
        linear = torch.nn.Linear(96, 32, bias=False)
        linear.weight.data = weights(32, 96).half()
        scale, zero = affine(weights(32, 96), 32, bits, False, torch.float32)
        zero = (zero.float() + (1 << (bits - 1))).clamp(min=1)
        index = torch.arange(96, dtype=torch.int32) // 32
        if not ordered:
            index = index[torch.randperm(96, generator=random)]
        made = module.QuantLinear(bits, 32, 96, 32, False)
        made.pack(linear, scale.half().float(), zero, index)
        tensors.update({name + "." + k: v for k, v in made.state_dict().items()})
        made.scales = made.scales.float()
        values[name + ".weight"] = made.forward(torch.eye(96)).t()
        dynamic["+:" + name] = {"bits": bits}
    return tensors, values, {"within": "0"}, {"quantization_config": {
        "quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True,
        "checkpoint_format": "gptq", "dynamic": dynamic}}


@case
def awq():
    """Read by compressed-tensors, which takes such files over."""
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.entrypoints.convert.converters import AutoAWQConverter
    random = torch.Generator().manual_seed(7)
    config = {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm",
              "zero_point": True}
    tensors = {"a.qweight": torch.randint(-1 << 31, 1 << 31, (96, 5), generator=random).int(),
               "a.qzeros": torch.randint(-1 << 31, 1 << 31, (3, 5), generator=random).int(),
               "a.scales": (torch.rand(3, 40, generator=random) + 0.5).half() / 64}
    converter = AutoAWQConverter.from_autoawq_config(config)
    packed = converter.process({k: v.float() if "scales" in k else v for k, v in tensors.items()})
    scheme = converter._build_quant_config().config_groups["config_group_0"]
    plain = BaseCompressor.get_value_from_registry("pack-quantized").decompress(
        {k[2:]: v for k, v in packed.items()}, scheme)["weight"]
    return tensors, {"a.weight": plain}, {}, {"quantization_config": config}


@case
def mlx():
    import mlx.core as mx
    import numpy as np
    tensors, values, config = {}, {}, {"bits": 4, "group_size": 64}
    for name, bits, group in (("a", 4, 64), ("b", 8, 32), ("c", 3, 64), ("d", 6, 64), ("e", 2, 128),
                              ("f", 5, 32)):
        x = mx.array(weights(20, 128).numpy()).astype(mx.float16)
        made = mx.quantize(x, group_size=group, bits=bits)
        plain = mx.dequantize(made[0], made[1].astype(mx.float32), made[2].astype(mx.float32),
                              group_size=group, bits=bits)
        tensors.update({name + leaf: torch.from_numpy(np.array(value)) for leaf, value in zip(
            (".weight", ".scales", ".biases"), made)})
        values[name + ".weight"] = torch.from_numpy(np.array(plain))
        config[name] = {"bits": bits, "group_size": group}
    return tensors, values, {}, {"quantization": config}


# ── What convert --quantize writes ──

def write_source():
    """Matrices that need padding, of three dtypes, one of zeros, one of tiny values, one of ties."""
    ties = torch.arange(-512, 512, dtype=torch.float32).reshape(32, 32) / 16
    ties[0, 0] = 448.0
    random = torch.Generator().manual_seed(9)
    tiny = torch.randn(32, 32, generator=random) * 2.0 ** -130
    return {"m.a.weight": weights(160, 64).bfloat16(), "m.b.weight": weights(40, 70, 2),
            "m.c.weight": weights(17, 256, 3).half(), "m.d.weight": weights(20, 272, 4),
            "m.zero.weight": torch.zeros(32, 32), "m.ties.weight": ties, "m.tiny.weight": tiny}


def written(quantise):
    """What comfy-kitchen makes of the source, in F32. What it divides 0 by 0 for (all is zero), or by
    a power of two that it takes for zero, is not compared."""
    tensors = {}
    for name, value in write_source().items():
        made = quantise(value.float()) if "tiny" not in name else None
        if made and "zero" not in name:
            tensors.update({name + leaf: tensor for leaf, tensor in made.items()})
    return tensors


def pair(quantise):
    def run(x):
        q, scale = quantise(x)
        return {"": q, "_scale": scale}
    return run


def nvfp4_pair(x):
    whole = x.abs().max() / (448 * 6)
    q, scale = kitchen().quantize_nvfp4(x, whole, pad_16x=True)
    return {"": q, "_scale": scale, "_scale_2": whole}


def fp8_pair(x):
    scale = x.abs().max() / 448
    return {"": kitchen().quantize_per_tensor_fp8(x, scale), "_scale": scale}


def convrot_pair(x):
    size = 256 if x.shape[1] % 256 == 0 else 64 if x.shape[1] % 64 == 0 else 16
    if x.shape[1] % size:
        return None
    return pair(lambda y: kitchen().quantize_int8_convrot_weight(y, size))(x)


WRITTEN = {
    "fp8": fp8_pair,
    "int8": lambda x: pair(kitchen().quantize_int8_tensorwise)(x),
    "int8-row": lambda x: pair(kitchen().quantize_int8_rowwise)(x),
    "int8-convrot": convrot_pair,
    "mxfp8": lambda x: pair(lambda y: kitchen().quantize_mxfp8(y, pad_32x=True))(x),
    "nvfp4": nvfp4_pair,
}


def put_metadata(path, metadata):
    with open(path, "rb") as file:
        content = file.read()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps({"__metadata__": metadata, **json.loads(content[8:end])},
                        separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header + content[end:])


def main():
    folder, only = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    for make in CASES:
        if only and make.__name__ not in only:
            continue
        torch.manual_seed(0)  # of layers' biases
        tensors, values, notes, config, metadata = (*make(), None, None)[:5]
        stem = os.path.join(folder, make.__name__)
        save_file({k: v.detach().contiguous().clone() for k, v in tensors.items()},
                  stem + ".safetensors")
        if metadata:  # save_file writes it in another order each time
            put_metadata(stem + ".safetensors", metadata)
        save_file({k: v.detach().contiguous() for k, v in values.items()},
                  stem + ".values.safetensors",
                  notes or None)
        if config:
            with open(stem + ".json", "w", encoding="utf-8") as file:
                json.dump(config, file)
        print(make.__name__, sum(os.path.getsize(stem + end) for end in
                                 (".safetensors", ".values.safetensors")))
    if only and "write" not in only:
        return
    save_file({k: v.contiguous() for k, v in write_source().items()},
              os.path.join(folder, "write.source.safetensors"))
    digests = {}
    for name, quantise in WRITTEN.items():
        made = {k: v.contiguous().clone() for k, v in written(quantise).items()}
        if name == "int8-convrot":  # sums in an order that is not told: compared within a step
            save_file({k: v for k, v in made.items() if "m.c." in k},
                      os.path.join(folder, "write.rotated.safetensors"))
            continue
        digests[name] = {k: [str(v.dtype)[6:], list(v.shape), hashlib.sha256(
            bytes(v.reshape(-1).view(torch.uint8).tolist())).hexdigest()] for k, v in made.items()}
    with open(os.path.join(folder, "write.digests.json"), "w", encoding="utf-8") as file:
        json.dump(digests, file, indent=0)


if __name__ == "__main__":
    main()
