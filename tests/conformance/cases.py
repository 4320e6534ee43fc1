"""The cases: files of the corpus and probes of headers.tsv, with what a reader should do."""
import hashlib
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CORPUS = os.path.join(ROOT, "tests", "corpus")
sys.path.insert(0, CORPUS)
import driver
import make

# Groups of files that stand for no rule of docs/format.md.
OTHERS = {"accept": "valid", "legacy": "legacy", "foreign": "foreign"}


class Case:
    """verdict: accept, refuse, or either, where the levels of the corpus differ."""

    def __init__(self, name, path, rule, verdict, want):
        self.name, self.path, self.rule, self.verdict, self.want = name, path, rule, verdict, want


def rule_of(name):
    """R7 of refuse/R7-plus.safetensors; else the group of its folder."""
    found = re.match(r"(R\d+)-", os.path.basename(name))
    return found.group(1) if found else OTHERS.get(name.split("/")[0], "valid")


def content(data, tensors, metadata):
    """What a reader must find: by name, dtype, shape, offsets and digest; and the metadata."""
    begin = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, dtype, shape, (first, end) in tensors:
        piece = data[begin + first:begin + end]
        found[name] = (dtype, shape, [first, end], hashlib.sha256(piece).hexdigest())
    return found, metadata or None


def from_corpus():
    with open(os.path.join(CORPUS, "manifest.json"), encoding="utf-8") as f:
        rows = json.load(f)["files"]
    for row in rows:
        path = os.path.join(CORPUS, row["file"])
        verdicts = set(row["verdict"].values()) if isinstance(row["verdict"], dict) else {
            row["verdict"]}
        with open(path, "rb") as f:
            data = f.read()
        want = content(data, row["tensors"], row["metadata"]) if "tensors" in row else None
        yield data, Case(row["file"], path, rule_of(row["file"]),
                         verdicts.pop() if len(verdicts) == 1 else "either", want)


def from_probes(folder, seen):
    """Probes that are no file of the corpus. Their verdict is the official one; ours, at level
    default, says whether refusing is right as well, and which rule it is about."""
    path = driver.shared("conformance", "headers.tsv")
    if not os.path.exists(path):
        return
    os.makedirs(folder, exist_ok=True)
    with open(path, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    rows = [row for row in rows if bytes.fromhex(row[2]) not in seen]
    lines, _ = driver.lines([bytes.fromhex(row[2]) for row in rows], "--level", "default")
    for row, line in zip(rows, lines):
        data, code = bytes.fromhex(row[2]), line.decode().split(" ")[0]
        place = os.path.join(folder, row[0] + ".safetensors")
        with open(place, "wb") as f:
            f.write(data)
        verdict, want = "refuse", None
        if row[3] == "OK":
            found = make.contents(data)
            want = content(data, found["tensors"], found["metadata"])
            verdict = "accept" if code == "ok" else "either"
        rule = "R%d" % make.NUMBERS[code] if code in make.NUMBERS else "valid"
        yield Case("probe %s: %s" % (row[0], row[1]), place, rule, verdict, want)


def load(folder):
    pairs = list(from_corpus())
    return [case for _, case in pairs] + list(from_probes(folder, {data for data, _ in pairs}))


def shape_equal(found, want):
    """A number that has become a float or a boolean is not the number."""
    return found == want and all(type(size) is int for size in found)


def difference(found, want):
    """None, or in a few words what is wrong with the content of an accepted file."""
    tensors, metadata = want
    names = [one[0] for one in found.get("tensors", [])]
    if "tensors" in found and sorted(names) != sorted(tensors):
        return "names"
    for name, dtype, shape, data in found.get("tensors", []):
        if dtype != tensors[name][0]:
            return "dtype"
        if not shape_equal(shape, tensors[name][1]):
            return "shape"
        if data is not None and data not in tensors[name][2:]:
            return "offsets" if isinstance(data, list) else "bytes"
    if "metadata" in found and (found["metadata"] or None) != metadata:
        return "metadata"
    return None


def outcome(case, found):
    """(agrees, accepts, refuses, content or crash; a word on it)."""
    if "crash" in found:
        return "crash", found["crash"]
    if not found["accept"]:
        return ("refuses" if case.verdict == "accept" else "agrees"), found["error"]
    if case.verdict == "refuse":
        return "accepts", ""
    wrong = difference(found, case.want)
    return ("content", wrong) if wrong else ("agrees", "")
