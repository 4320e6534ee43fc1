"""Quantised models: a model of the zoo, packed by each layout, is never surely another.

Every linear layer of a model is packed, so that a shape which tells two models apart is to be seen
only by what stands beside the weight. Standard library only.
"""
import copy
import os
import tempfile

import judge
import read
import score

GROUP = 64
FLOATS = {"F16", "BF16", "F32"}


def up(size, multiple):
    return -(-size // multiple) * multiple


def half(stem, out, width):
    return (stem + "weight", "U8", [out, width // 2])


def nvfp4(stem, out, width):
    return [half(stem, out, width), (stem + "weight_scale", "F8_E4M3", [out, width // 16]),
            (stem + "weight_scale_2", "F32", []), (stem + "input_scale", "F32", [])]


def nvfp4_comfy(stem, out, width):
    rows, columns = up(out, 16), up(width, 16)
    return [half(stem, rows, columns), (stem + "weight_scale_2", "F32", []),
            (stem + "weight_scale", "F8_E4M3", [up(rows, 128), up(columns // 16, 4)]),
            (stem + "comfy_quant", "U8", [19])]


def nvfp4_packed(stem, out, width):
    return [(stem + "weight_packed", "U8", [out, width // 2]),
            (stem + "weight_scale", "F8_E4M3", [out, width // 16]),
            (stem + "weight_global_scale", "F32", [1])]


def mxfp4_packed(stem, out, width):
    return [(stem + "weight_packed", "U8", [out, width // 2]),
            (stem + "weight_scale", "U8", [out, width // 32])]


def mxfp8_comfy(stem, out, width):
    rows, columns = up(out, 32), up(width, 32)
    return [(stem + "weight", "F8_E4M3", [rows, columns]), (stem + "comfy_quant", "U8", [19]),
            (stem + "weight_scale", "U8", [up(rows, 128), up(columns // 32, 4)])]


def gptq(stem, out, width):
    return [(stem + "qweight", "I32", [width // 8, out]), (stem + "g_idx", "I32", [width]),
            (stem + "qzeros", "I32", [width // GROUP, out // 8]),
            (stem + "scales", "F16", [width // GROUP, out])]


def gptq_plain(stem, out, width):
    return [one for one in gptq(stem, out, width) if not one[0].endswith("g_idx")]


def awq(stem, out, width):
    return [(stem + "qweight", "I32", [width, out // 8]),
            (stem + "qzeros", "I32", [width // GROUP, out // 8]),
            (stem + "scales", "F16", [width // GROUP, out])]


def dense(stem, out, width):
    return [(stem + "weight_packed", "I32", [out, width // 8]),
            (stem + "weight_scale", "BF16", [out, width // GROUP]),
            (stem + "weight_shape", "I64", [2])]


def nf4(stem, out, width):
    return [(stem + "weight", "U8", [out * width // 2, 1]),
            (stem + "weight.absmax", "F32", [out * width // GROUP]),
            (stem + "weight.quant_map", "F32", [16]),
            (stem + "weight.quant_state.bitsandbytes__nf4", "U8", [90])]


def nf4_stored(stem, out, width):
    """In the dtype of the rest, so that trainers can shard it."""
    return [(stem + "weight", "BF16", [out * width // 4, 1])] + nf4(stem, out, width)[1:]


def int8(stem, out, width):
    return [(stem + "weight", "I8", [out, width]), (stem + "SCB", "F32", [out])]


def mlx(stem, out, width):
    return [(stem + "weight", "U32", [out, width // 8]),
            (stem + "scales", "F16", [out, width // GROUP]),
            (stem + "biases", "F16", [out, width // GROUP])]


def mlx_fp4(stem, out, width):
    return [(stem + "weight", "U32", [out, width // 8]), (stem + "scales", "U8", [out, width // 32])]


def hqq(stem, out, width):
    return [(stem + "W_q", "U8", [GROUP // 2, out * width // GROUP]),
            (stem + "scale", "F16", [1, out * width // GROUP]),
            (stem + "zero", "F16", [1, out * width // GROUP]), (stem + "shape", "I32", [2])]


def convrot(stem, out, width):
    return [(stem + "weight", "I8", [out, width // 2]), (stem + "weight_scale", "F32", [out]),
            (stem + "comfy_quant", "U8", [19])]


def asymmetric(stem, out, width):
    return [(stem + "weight", "I8", [out, width // 2]), (stem + "comfy_quant", "U8", [19]),
            (stem + "weight_s_rel", "F8_E4M3", [out, width // 16]),
            (stem + "weight_s_channel", "F32", [out])]


def nunchaku(stem, out, width):
    return [(stem + "qweight", "I8", [out, width // 2]),
            (stem + "wscales", "BF16", [width // GROUP, out])]


LAYOUTS = (nvfp4, nvfp4_comfy, nvfp4_packed, mxfp4_packed, mxfp8_comfy, gptq, gptq_plain, awq, dense,
           nf4, nf4_stored, int8, mlx, mlx_fp4, hqq, convrot, asymmetric, nunchaku)


def packed(entry, layout):
    """The model with its linear layers packed; None where it has none that could be."""
    other, tensors, layers = copy.copy(entry), [], 0
    for name, dtype, shape in entry.folded:
        fits = len(shape) == 2 and shape[0] % 8 == 0 and shape[1] % GROUP == 0
        if name.endswith("weight") and dtype in FLOATS and fits:
            tensors += layout(name.removesuffix("weight"), *shape)
            layers += 1
        else:
            tensors.append((name, dtype, shape))
    other.folded = tensors
    return other if layers else None


def sure(answer):
    told = answer["model"]["architecture"]
    return told["value"] if told and told["trust"] >= judge.SURE else None


def run(entries, layouts_of):
    """[(entry, layout, what it is, what it is when packed)], each an answer."""
    made = []
    with tempfile.TemporaryDirectory(prefix="packed-") as folder:
        for number, entry in enumerate(entries):
            read.write_folder(os.path.join(folder, "%04d-is" % number), entry, declared=False)
            for layout in layouts_of(number):
                one = packed(entry, layout)
                if one:
                    name = "%04d-%s" % (number, layout.__name__)
                    read.write_folder(os.path.join(folder, name), one, declared=False)
                    made.append((entry, layout.__name__, "%04d-is" % number, name))
        answers = score.answers(folder)
    return [(entry, layout, answers[whole], answers[name])
            for entry, layout, whole, name in made]


def wrong(judged, entry, whole, told):
    """Whether it is surely what the model is not, nor was called before it was packed."""
    value = sure(told)
    return value and value != sure(whole) and not judged.may_be_sure(entry, value)


if __name__ == "__main__":
    import collections
    import sys
    counts = collections.Counter()
    for library in sys.argv[2:] or ("comfy", "diffusers", "transformers", "timm", "spandrel"):
        models, bad = read.read(library)[1], []
        every, judged = int(sys.argv[1]), judge.Judge(models)
        models = models[::every]
        for start in range(0, len(models), 50):
            for model, way, before, after in run(models[start:start + 50], lambda n: LAYOUTS):
                kinds = [a["model"]["kind"]["value"] for a in (before, after)]
                if wrong(judged, model, before, after):
                    print(library, model.name, way, sure(before), "is surely", sure(after))
                    counts[way, "WRONG"] += 1
                elif sure(before):
                    told_at = after["model"]["architecture"]
                    how = ("sure" if sure(after) == sure(before) else "other" if sure(after) else
                           "none" if not told_at else "low same" if
                           told_at["value"] == sure(before) else "low other")
                    counts[way, how] += 1
                    if "-v" in os.environ.get("V", "") and how != "sure":
                        print(library, model.name, way, sure(before), how, told_at)
                if after["conflicts"] and not before["conflicts"]:
                    print(library, model.name, way, "contradicts itself")
    for (way, how), number in sorted(counts.items()):
        print(way, how, number)
