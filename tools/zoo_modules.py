#!/usr/bin/env python3
"""The modules of denoisers, with their sizes, as rows `modules` of the model records.

usage: tools/zoo_modules.py [ID ...] [--write]

Reads the lists of tests/zoo (comfy, later, diffusers, diffsynth and, for what none of them has,
trainers), folds numbers and names where sizes are equal, and prints the rows; --write puts them into
data/models, each in the place of the row below the line "# modules: tools/zoo_modules.py".
docs/records.md tells what the rows mean.
"""
import argparse
import collections
import glob
import os
import re
import sys
import textwrap

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "zoo"))

import judge  # noqa: E402
import read  # noqa: E402

MARK = "    # modules: tools/zoo_modules.py"
WIDTH = 100
# Classes whose sizes are nobody's: those that its constructor has.
DEFAULTS = {"SD3Transformer2DModel", "StableCascadeUNet", "PixArtTransformer2DModel",
            "UNet2DConditionModel", "HunyuanDiT2DModel@default", "UNetMotionModel"}
# Entries that are of several models, or of one that their class does not tell.
OF_ENTRY = {
    "WanTransformer3DModel": "wan", "WanVACETransformer3DModel": "wan",
    "WanTransformer3DModel@wan-2.2-i2v-14b": "wan", "wan2.2-i2v-a14b.raw": "wan",
    "WanTransformer3DModel@wan-2.1-t2v-1.3b": "wan-2.1",
    "WanTransformer3DModel@wan-2.1-i2v-14b": "wan-2.1",
    "WanVACETransformer3DModel@wan-2.1-vace-1.3b": "wan-2.1",
    "WanTransformer3DModel@wan-2.2-ti2v-5b": "wan-2.2", "WanAnimateTransformer3DModel": "wan-2.2",
    "Flux2Transformer2DModel": "flux.2-dev",
}
# Models that have all layers of their parent, whatever names their own list has.
HEIRS = {"anima", "anyflow", "chronoedit", "consisid", "flux.1-dev", "framepack", "helios", "humo",
         "lotus", "playground-2.5", "sana-wm-ltx2-refiner", "scail", "skyreels-v2",
         "stable-zero123", "sv3d", "wan-2.1", "wan-2.2", "wan-animate-2", "zeta-chroma"}
# U-Nets that only have the makers' names: residual blocks a level.
UNETS = {"ssd-1b": 2, "segmind-vega": 2, "koala": 1}
# What they have is written by hand.
OTHERS = {"hidream-o1", "longcat-video"}
# Ids of other lists that are records of ours under another name.
OF_IDENTITY = {"hunyuan3d-2": "hunyuan-3d", "hunyuan3d-2.1": "hunyuan-3d"}


class Records:
    """The ids, classes and parents of data/models."""

    def __init__(self):
        self.files, self.ids, self.classes, self.parents = {}, {}, {}, {}
        for path in sorted(glob.glob(os.path.join(ROOT, "data/models/**/*.txt"), recursive=True)):
            with open(path, encoding="utf-8") as file:
                lines = self.files[path] = file.read().split("\n")
            identity = None
            for line in lines:
                words = line.split()
                if line.startswith("model "):
                    identity = words[1]
                    self.ids[identity] = path
                elif line.startswith("    class "):
                    self.classes.update((name, identity) for name in words[1:])
                elif line.startswith("    parent "):
                    self.parents[identity] = words[1], words[2:]

    def identity_of(self, entry, names):
        """The record that an entry of comfy or diffusers belongs to, or None."""
        if entry.name in OF_ENTRY:
            return OF_ENTRY[entry.name]
        if entry.library != "diffusers":
            identity = OF_IDENTITY.get(entry.identity, entry.identity)
            return identity if identity in self.ids.keys() - OTHERS else None
        name, _, published = entry.name.partition("@")
        if entry.name in DEFAULTS:
            return None
        found = [published] + names.get(("diffusers", entry.name), ([], []))[0]
        found += [self.classes.get(name)] + names.get(("diffusers", name), ([], []))[0]
        return next((i for i in found if i in self.ids), None)


def plainly(name):
    """Without a prefix, and the part that says nothing of the layer."""
    return re.sub(r"^(model\.diffusion_model|net)\.|(?<=\.)processor\.", "", name)


def weights(entry):
    """(name, out, in, size of the kernel) of every layer."""
    for name, _, shape in entry.folded:
        if name.endswith(".weight") and len(shape) > 1:
            kernel = 1
            for size in shape[2:]:
                kernel *= size
            for one in read.unfold(name):
                yield plainly(one[:-len(".weight")]), shape[0], shape[1], kernel


# Trainers: what their lists name that no other list does. The dots of kohya's names are lost,
# but for the engine "_" is as good.
UNET_ENDS = (("in_layers.2", "conv1"), ("out_layers.3", "conv2"), ("emb_layers.1", "time_emb_proj"),
             ("skip_connection", "conv_shortcut"))
HALVES = {".lora_down.weight": (".lora_up.weight", 1, 0), ".lora_A.weight": (".lora_B.weight", 1, 0),
          ".lora_A.default.weight": (".lora_B.default.weight", 1, 0)}
PREFIX = re.compile(r"^(lora_unet_|diffusion_model\.|transformer\.|unet\.)")


def trained(entry):
    """The same of the layers that a LoRA adapts; U-Nets are known."""
    shapes = {name: shape for name, _, shape in entry.tensors()}
    for name, down in shapes.items():
        for end, (other, _, _) in HALVES.items():
            stem, up = name.removesuffix(end), shapes.get(name.removesuffix(end) + other)
            if stem == name or not up or name.startswith("lora_te"):
                continue
            kernel = 1
            for size in down[2:]:
                kernel *= size
            stem = PREFIX.sub("", stem)
            if "." not in stem:
                stem = re.sub(r"_(\d+)(?=_)", r".\1.", stem).replace("._", ".")
            yield plainly(stem), up[0], down[1], kernel


def in_diffusers(name, blocks):
    """What diffusers calls a layer of the blocks of a U-Net, or None."""
    side, _, rest = name.partition("_block")
    match = re.match(r"s?\.(\d+)\.(?:(\d+)\.)?(.*)$", rest)
    if side not in ("input", "middle", "output") or not match or name == "input_blocks.0.0":
        return None
    number, part, layer = int(match.group(1)), match.group(2), match.group(3)
    if side == "middle":
        part, index, begin = str(number % 2), number // 2, "mid_block"
        layer = rest.split(".", 2)[2]
    else:
        level, index = divmod(number - (side == "input"), blocks + 1)
        begin = "%s_blocks.%d" % ("down" if side == "input" else "up", level)
    if layer in ("op", "conv"):
        return "%s.%ssamplers.0.conv" % (begin, "down" if layer == "op" else "up")
    if part == "0":
        return "%s.resnets.%d.%s" % (begin, index, dict(UNET_ENDS)[layer])
    return "%s.attentions.%d.%s" % (begin, index, layer)


def plain(name):
    return name.replace(".", "_")


def collect(records):
    """{id: {(name, out, in, kernel)}}."""
    names, found = judge.read_names(), collections.defaultdict(set)
    for library in ("comfy", "later", "diffusers", "diffsynth"):
        for entry in read.read(library)[1]:
            if ("denoiser" in entry.tasks
                    and not entry.name.endswith((".checkpoint", ".prefixed"))):
                identity = records.identity_of(entry, names)
                if identity:
                    found[identity] |= set(weights(entry))
    for identity, blocks in UNETS.items():
        found[identity] |= {(in_diffusers(layer[0], blocks),) + layer[1:]
                            for layer in found[identity] if in_diffusers(layer[0], blocks)}
    more = collections.defaultdict(set)
    known = {identity: {(plain(layer[0]),) + layer[1:] for layer in layers}
             for identity, layers in found.items()}
    for entry in read.read("trainers")[1]:
        identity = OF_IDENTITY.get(entry.identity, entry.identity)
        trainer = entry.name.partition(".")[0]
        if identity not in records.ids or trainer not in ("musubi", "sd-scripts", "diffsynth"):
            continue
        of = {identity, records.parents.get(identity, (None,))[0]}
        of |= {i for i, parent in records.parents.items() if parent[0] == identity}
        seen = set().union(*(known.get(i, set()) for i in of))
        for layer in trained(entry):
            if (plain(layer[0]),) + layer[1:] not in seen:
                more[identity].add(layer)
    for identity, layers in more.items():
        dotted = {(plain(layer[0]),) + layer[1:]: layer
                  for layer in sorted(layers, key=lambda layer: layer[0].count("."))}
        found[identity] |= set(dotted.values())
    return found


# ── Folding ──

NUMBER = re.compile(r"^(block)?(\d+)$")


def split(name):
    """(("double_blocks", "#", "img_attn", "qkv"), (0,)): parts that are numbers, but the last."""
    parts = name.split(".")
    matches = [NUMBER.match(part) for part in parts[:-1]] + [None]
    key = tuple((match.group(1) or "") + "#" if match else part
                for match, part in zip(matches, parts))
    return key, tuple(int(match.group(2)) for match in matches if match)


def is_number(part):
    return part in ("#", "block#")


def boxes(tuples):
    """Products of sets of numbers that make up a set of tuples."""
    if tuples == {()}:
        return [()]
    rest, same = collections.defaultdict(set), collections.defaultdict(set)
    for one in tuples:
        rest[one[0]].add(one[1:])
    for number, others in rest.items():
        same[frozenset(others)].add(number)
    return [(tuple(sorted(numbers)),) + box for others, numbers in same.items()
            for box in boxes(others)]


def ranges(numbers):
    pieces = []
    for number in numbers:
        if pieces and pieces[-1][1] == number - 1:
            pieces[-1][1] = number
        else:
            pieces.append([number, number])
    text = ",".join("%d" % a if a == b else "%d-%d" % (a, b) for a, b in pieces)
    return text if len(numbers) == 1 else "{%s}" % text


def places(layers):
    """{(beginning, its numbers): {(rest of the name, size)}}."""
    numbers, found = collections.defaultdict(set), collections.defaultdict(set)
    for name, out, width, kernel in layers:
        key, values = split(name)
        numbers[key, (out, width) if kernel == 1 else (out, width, kernel)].add(values)
    varying = collections.defaultdict(set)
    for (key, _), values in numbers.items():
        varying[key] |= values
    for (key, size), values in numbers.items():
        # What is one number only, behind the last that varies, belongs to the rest.
        places = [i for i, part in enumerate(key) if is_number(part)]
        while places and len({v[len(places) - 1] for v in varying[key]}) == 1:
            places.pop()
        end, rest = (places[-1] + 1 if places else 0), iter(next(iter(values))[len(places):])
        name = [part.replace("#", str(next(rest))) if is_number(part) else part
                for part in key[end:]]
        for box in boxes({v[:len(places)] for v in values}):
            found[key[:end], box].add((tuple(name), size))
    return found


def alternatives(words):
    words = sorted(words)
    return words[0] if len(words) == 1 else "{%s}" % ",".join(words)


def after_common(names):
    """What tuples of parts begin with in common, and the rest of each, of at least one part."""
    least = min(names)
    common = 0
    while all(len(n) > common + 1 and n[common] == least[common] for n in names):
        common += 1
    return least[:common], [".".join(n[common:]) for n in names]


def folded(names):
    """The names as one word, or one for each set of last parts: what is shorter."""
    begin, rest = after_common(names)
    whole = [".".join(begin + (alternatives(rest),))]
    leaves_of, parents = collections.defaultdict(set), collections.defaultdict(set)
    for name in names:
        last = 2 if len(name) > 2 and name[-1].isdigit() else 1
        leaves_of[name[:-last]].add(".".join(name[-last:]))
    for parent, ends in leaves_of.items():
        parents[frozenset(ends)].add(parent)
    words = []
    for ends, begins in parents.items():
        if () in begins:
            return whole
        if len(begins) > 1:
            begin, rest = after_common(begins)
            words.append(".".join(begin + (alternatives(rest), alternatives(ends))))
        else:
            words.append(".".join(min(begins) + (alternatives(ends),)))
    size = 14  # of sizes and a blank
    return min(whole, sorted(words), key=lambda some: sum(len(w) + size for w in some))


def leaves(found):
    """Words for layers behind one beginning: {(parts, size)}."""
    groups = collections.defaultdict(set)
    for parts, size in found:
        groups[parts[0] if len(parts) > 1 else "", size].add(parts)
    for (_, size), names in sorted(groups.items()):
        for word in folded(names):
            yield word + "[%s]" % ",".join(map(str, size))


def lines(layers):
    """Words of each line: beginnings, which end in a dot, then what stands behind each."""
    same = collections.defaultdict(list)
    for (begin, box), ends in places(layers).items():
        numbers = iter(box)
        text = ".".join(part.replace("#", ranges(next(numbers))) if is_number(part) else part
                        for part in begin)
        same[frozenset(ends)].append(text)
    for ends, begins in sorted(same.items(), key=lambda i: sorted(i[1])):
        yield [begin + "." for begin in sorted(begins) if begin] + list(leaves(ends))


def row(layers, of):
    """The text of a row; a line that is too long goes on behind "|"."""
    head = "    modules" + ("     of=" + of if of else "")
    text, size = [head], 0
    for words in lines(layers):
        if size > 50:  # a row has at most 64 lines
            text, size = text + [head], 0
        wrapped = textwrap.wrap(" ".join(words), WIDTH, initial_indent=" " * 8,
                                subsequent_indent=" " * 8 + "| ", break_long_words=False,
                                break_on_hyphens=False)
        text, size = text + wrapped, size + len(wrapped)
    return "\n".join(text)


def parent_with(records, found, identity):
    """The nearest ancestor that has layers."""
    while identity in records.parents:
        identity, how = records.parents[identity]
        if identity in found:
            return identity, how
    return None, None


def rows(records, found):
    """{id: text}: of a model that has all layers of its parent, what else it has."""
    texts = {}
    for identity, layers in found.items():
        parent, how = parent_with(records, found, identity)
        of = None
        if parent and how != ["other-layers"] and (found[parent] <= layers or identity in HEIRS):
            of, layers = parent, layers - found[parent]
        if layers:
            texts[identity] = row(layers, of)
    return texts


def write(records, texts):
    for path in set(records.ids[identity] for identity in texts):
        lines, out, identity, skip = records.files[path], [], None, False
        for line in lines + [None]:
            if skip and line is not None and line.startswith(("    modules", "        ")):
                continue
            skip = line == MARK
            if line is None or line.startswith(("model ", "several")) or line == "":
                if identity in texts:
                    out += [MARK, texts.pop(identity)]
                identity = None
            if line is not None and line.startswith("model "):
                identity = line.split()[1]
            if line is not None and not skip:
                out.append(line)
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(out))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--write", action="store_true", help="put the rows into data/models")
    given = parser.parse_args()
    records = Records()
    texts = rows(records, collect(records))
    if given.write:
        write(records, texts)
    else:
        for identity in sorted(given.ids or texts):
            print("model %s\n%s" % (identity, texts.get(identity, "")))


if __name__ == "__main__":
    main()
