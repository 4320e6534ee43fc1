"""Metadata of megabytes, which `info` must read in time that grows with its length alone: one
that grows with the square would not answer for minutes."""
import json
import os
import subprocess

from compose import Model
from parts import sdxl_lora

BYTES = 2 << 20


def repeated(text):
    return text * (BYTES // len(text))


def counted(form):
    return "".join(form % n for n in range(BYTES // (len(form) + 3)))


def tags():
    return json.dumps({"10_a": {"tag%d" % n: 10 for n in range(BYTES // 14)}})


def cases():
    """(name, metadata)"""
    words = counted("word%d, ")
    yield "introductions", {key: repeated("trigger:a ") for key in
                            ("ss_training_comment", "modelspec.description", "modelspec.usage_hint")}
    yield "one introduction a line", {"ss_training_comment": counted("trigger: word%d;\n")}
    yield "words of architecture and base", {
        "model_class": words, "ss_base_model_version": words, "modelspec.title": words}
    yield "many declared words, many tags", {
        "modelspec.trigger_phrase": words, "ss_training_comment": counted("trigger: w%d;\n"),
        "ss_tag_frequency": tags()}
    yield "airs", {"ss_training_comment": counted("urn:air:sdxl:lora:civitai:%d ")}


def check(folder, tally, run):
    os.makedirs(os.path.join(folder, "long"), exist_ok=True)
    for name, metadata in cases():
        path = os.path.join(folder, "long", name.replace(" ", "-") + ".safetensors")
        unknown = "model_class" in metadata  # what tensors say goes before what is declared
        tensors = [("a", "U8", [1], None)] if unknown else sdxl_lora(4, 4)
        Model(tensors, metadata).write(path)
        lines = []
        for options in ([], ["--json"]):
            try:
                done = run(["info", *options, "--", path])
                if done.returncode or not done.stdout:
                    lines.append("exit %d, %d bytes" % (done.returncode, len(done.stdout)))
            except subprocess.TimeoutExpired:
                lines.append("no answer: info " + " ".join(options))
        tally.add("long: " + name, lines)
