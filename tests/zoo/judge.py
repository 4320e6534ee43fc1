"""What an answer about a model of the zoo is worth. Standard library only.

names.tsv says how our vocabulary calls what a library calls otherwise, and which ids name a
model's family. structures.tsv says which tensors a family of structures has.

  itself    the architecture is the model's own (of PEFT: the method)
  family    no architecture, or one below SURE, and a family that is right
  none      neither
  another   with trust of at least SURE: the architecture of another model, or a family that the
            tensors do not show
"""
import collections
import os
import re

import read

HERE = os.path.dirname(os.path.abspath(__file__))
SURE = 80
OUTCOMES = ("itself", "family", "none", "another")
KINDS = ("right", "unknown", "wrong", "open")

TEXT = {"language_model", "text_encoder"}
SIGHT = {"vision_model", "image_encoder"}
SOUND = {"audio_model"}
# The kinds that fit a task. A task that is not here leaves the kind open.
OF_TASK = {
    "causal-lm": {"language_model"}, "seq-to-seq-causal-lm": {"language_model"},
    "image-text-to-text": {"language_model"}, "multimodal-lm": {"language_model"},
    "visual-question-answering": {"language_model"} | SIGHT,
    "masked-lm": TEXT, "sequence-classification": TEXT, "token-classification": TEXT,
    "question-answering": TEXT, "multiple-choice": TEXT, "next-sentence-prediction": TEXT,
    "text-encoding": TEXT, "table-question-answering": TEXT,
    "document-question-answering": TEXT | SIGHT,
    "speech-seq-2-seq": SOUND, "ctc": SOUND, "rnnt": SOUND, "tdt": SOUND,
    "audio-classification": SOUND, "audio-frame-classification": SOUND, "audio-xvector": SOUND,
    "text-to-waveform": SOUND, "text-to-spectrogram": SOUND,
    "image": SIGHT, "image-classification": SIGHT, "backbone": SIGHT, "image-matting": SIGHT,
    "image-segmentation": SIGHT, "image-to-image": SIGHT | {"upscaler"},
    "causal-image-modeling": SIGHT, "depth-estimation": SIGHT, "normal-estimation": SIGHT,
    "instance-segmentation": SIGHT, "keypoint-detection": SIGHT | {"detector"},
    "keypoint-matching": SIGHT | {"detector"}, "masked-image-modeling": SIGHT,
    "mask-generation": SIGHT | {"detector"}, "pose-estimation": SIGHT | {"detector"},
    "pointmap-estimation": SIGHT, "semantic-segmentation": SIGHT,
    "universal-segmentation": SIGHT, "video-classification": SIGHT,
    "zero-shot-image-classification": SIGHT | {"text_encoder"},
    "object-detection": SIGHT | {"detector"}, "zero-shot-object-detection": SIGHT | {"detector"},
    "table-recognition": SIGHT | {"detector"}, "text-recognition": SIGHT | {"language_model"},
    "time-series-classification": set(), "time-series-prediction": set(),
    "time-series-regression": set(), "decision": set(),
    "denoiser": {"diffusion_model"}, "vae": {"vae"}, "controlnet": {"controlnet"},
    "checkpoint": {"checkpoint"},
    "adapter": {"adapter", "t2i_adapter", "ip_adapter", "controlnet"},
    "motion": {"motion_module"}, "upscaler": {"upscaler", "vision_model"},
}
# It classifies by the probabilities of two words.
OF_IDENTITY = {"shieldgemma2": SIGHT | {"language_model"}}
OF_LIBRARY = {"timm": SIGHT, "peft": {"adapter"}, "loras": {"adapter"}, "presets": {"adapter"},
              "trainers": {"adapter", "control_lora"}}
# What the adapters of the list are made for.
BASES = {"flux": "FluxTransformer2DModel@flux.1-dev", "unet": "UNet2DConditionModel@sd-1",
         "llama": "LlamaForCausalLM"}
# A list whose ids are those of another.
LIKE = {"loras": "diffusers", "diffsynth": "comfy", "forms": "comfy", "later": "comfy",
        "presets": "trainers", "unseen": "trainers", "makers": "comfy"}
# A tower of a larger model, by the name of its class.
PART_OF = re.compile(r"(Text|Vision|Audio|Speech)(LMHead|Encoder|Decoder)?"
                     r"(Model|Transformer)?(WithProjection)?$")
WHOLE = {"aya_vision"}  # its name ends as a tower's
OF_PART = {"Text": TEXT, "Vision": SIGHT, "Audio": SOUND, "Speech": SOUND}
PART = re.compile(r"[-_](text|vision|audio|encoder|decoder|text_model|vision_model|audio_encoder|"
                  r"vision_encoder|language_model|model)$")
# What diffusers appends to the name of a model.
SUFFIX = re.compile(r"(Transformer[123]DModel|TransformerModel|Transformer|ControlNetModel|"
                    r"DiT[123]?D?Model|ControlNet|UNet|DiT|Model)$")
VAE = re.compile(r"^(Asymmetric)?Autoencoder(KL)?")


def plain(text):
    """Ids are compared without case and punctuation: gpt2 is gpt-2."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def table(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                yield line.rstrip("\n").split("\t")


def read_names():
    names = {}
    for library, identity, ids, families in table("names.tsv"):
        names[library, identity] = (ids.split(), families.split())
    return names


def read_structures():
    return {plain(row[0]): [[re.compile(p, re.M) for p in patterns.split()] for patterns in row[1:]]
            for row in table("structures.tsv")}


def in_each_block(patterns, names):
    """Whether all of the patterns match for every number that one stack of blocks has."""
    found, text = [], "\n".join(names)
    for pattern in patterns:
        stacks, last = collections.defaultdict(set), None
        for match in pattern.finditer(text):
            begin = text.rfind("\n", 0, match.start()) + 1
            if begin != last:  # of a name the first match
                stacks[text[begin:match.start(1)]].add(match.group(1))
            last = begin
        found.append(stacks)
    for stack in set.intersection(*map(set, found)):
        blocks = set(re.findall("^" + re.escape(stack) + "([^.\n]*)", text, re.M))
        if all(stacks[stack] == blocks for stacks in found):
            return True
    return False


class Judge:
    def __init__(self, entries):
        self.names, self.structures = read_names(), read_structures()
        self.bases = {}
        self.kinds = collections.defaultdict(set)
        for entry in entries:
            for task in entry.tasks & set(OF_TASK):
                self.kinds[entry.library, root(entry.identity)] |= OF_TASK[task]

    def rows(self, entry):
        """(ids, families) of the table: of the class and of the published model."""
        library, title = LIKE.get(entry.library, entry.library), entry.name
        if entry.library == "loras":
            title = entry.name.rpartition(".")[0]
        elif entry.library == "peft":
            title = entry.name.partition(".")[2]
        if (library, title) in self.names:
            return self.names[library, title]
        ids, families = self.names.get((library, entry.identity), ([], []))
        published = title.partition("@")[2]
        if not published:
            return ids, families
        # The sizes of a published model of diffusers are those of one member of the family.
        return ([published], families + ids) if library == "diffusers" else (
            ids + [published], families)

    def own_ids(self, entry):
        ids, _ = self.rows(entry)
        if entry.library == "peft":
            return {plain(i) for i in ids}
        ids = ids + [entry.identity]
        if entry.library == "transformers":
            ids += [root(entry.identity), entry.name.partition("@")[0]]
        elif entry.library == "spandrel":
            ids.append(entry.name.partition(".")[2])
        elif entry.library in ("diffusers", "loras"):
            ids.append(SUFFIX.sub("", VAE.sub("vae-", entry.identity)))
        return {plain(i) for i in ids} - {""}

    def is_parent(self, entry, value, sure=True):
        """A family with "~" is a sibling: it may be told, but not surely."""
        _, families = self.rows(entry)
        families = [f for f in families if not (sure and f.startswith("~"))]
        if entry.library == "timm":
            families = families + sorted(entry.tasks)
        return plain(value) in {plain(f) for f in families}

    def may_be_sure(self, entry, value):
        """Whether an architecture may be claimed surely: the model's own, or its parent."""
        if entry.library == "peft":
            return True  # its table tells of methods, not of base models
        return plain(value) in self.own_ids(entry) or self.is_parent(entry, value)

    def is_family(self, entry, value):
        if self.is_parent(entry, value):
            return True
        structure = self.structures.get(plain(value))
        if structure is None:
            return False
        names = [name for name, _, _ in self.whole(entry).folded]

        def some(pattern):
            return any(pattern.search(name) for name in names)

        has, lacks, each = structure
        if not all(map(some, has)) or any(map(some, lacks)):
            return False
        return not each or in_each_block(each, [n for name in names for n in read.unfold(name)])

    def whole(self, entry):
        """The model that has the structure: of an adapter, the one it was made for."""
        name = entry.name
        if entry.library == "loras":
            name = name.rpartition(".")[0]
        elif entry.library == "peft":
            name = BASES.get(name.partition(".")[2])
        else:
            return entry
        if not self.bases:
            for library in ("diffusers", "transformers"):
                self.bases.update({base.name: base for base in read.read(library)[1]})
        return self.bases[name] if name else entry

    def outcome(self, entry, answer):
        """One of OUTCOMES, and the claim that it rests on."""
        model = answer["model"]
        architecture, family = model["architecture"], model.get("family")
        wrong = parent = None
        if entry.library == "peft":
            kind = (answer.get("adapter") or {}).get("type")
            if kind and plain(kind) not in (plain(entry.identity), "unknown"):
                return "another", "adapter " + kind
        right = architecture and plain(architecture["value"]) in self.own_ids(entry)
        if architecture and not right:
            if self.is_parent(entry, architecture["value"], architecture["trust"] >= SURE):
                parent = architecture
            elif architecture["trust"] >= SURE:
                wrong = architecture
        if family and not right and not self.is_family(entry, family["value"]):
            wrong = wrong or (family if family["trust"] >= SURE else None)
            family = None
        family = family or parent
        if wrong:
            return "another", "%s (%s, %d)" % (wrong["value"], wrong["source"].split(":/")[0],
                                               wrong["trust"])
        if entry.library == "peft":
            named = (answer.get("adapter") or {}).get("type")
            return ("itself" if named and plain(named) != "unknown" else
                    "family" if family or right else "none"), named
        if right:
            return "itself", architecture["value"]
        return ("family", family["value"]) if family else ("none", None)

    def fitting_kinds(self, entry):
        """The kinds that are right; None where that is open."""
        if entry.library in OF_LIBRARY:
            return OF_LIBRARY[entry.library]
        if entry.identity in OF_IDENTITY:
            return OF_IDENTITY[entry.identity]
        known = entry.tasks & set(OF_TASK)
        part = PART_OF.search(entry.name.partition("@")[0])
        if part and not known and entry.identity not in WHOLE:
            return OF_PART[part.group(1)]
        if known:
            fitting = set().union(*(OF_TASK[task] for task in known))
            # A base model with a table of its own may be what its heads make of it.
            if "base" in entry.tasks:
                fitting |= self.kinds[entry.library, root(entry.identity)]
            return fitting
        return self.kinds.get((entry.library, root(entry.identity)))

    def kind(self, entry, answer):
        """One of KINDS, and what was said."""
        kind = answer["model"]["kind"]
        value = kind["value"] if kind else "unknown"
        fitting = self.fitting_kinds(entry)
        if value == "unknown":
            return "unknown", value
        if fitting is None:
            return "open", value
        if "language_model" in fitting:
            fitting = fitting | {"text_encoder"}
        return ("right" if value in fitting else "wrong"), value


def root(identity):
    """The model that a part belongs to: llama4 of llama4_text."""
    return PART.sub("", identity)
