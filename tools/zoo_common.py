"""What the parts of tools/zoo.py share: an entry, names folded over their numbers, and a pool of
processes that makes one class after the other."""
import collections
import contextlib
import io
import json
import logging
import multiprocessing
import os
import re
import signal
import warnings

NUMBER = re.compile(r"(?<![0-9])(0|[1-9][0-9]*)(?![0-9])")
DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16",
          "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8",
          "bool": "BOOL", "complex64": "C64", "float8_e4m3fn": "F8_E4M3"}
LIMIT = 300     # seconds for one class


class Failure(Exception):
    """Why a class has no entry."""


def entry(name, identity, tasks, tensors, file="model.safetensors", texts=None, metadata=None):
    """tensors: a state dict, or a dict of name to (dtype, shape)."""
    rows = {}
    for key, value in tensors.items():
        if not isinstance(value, tuple):
            value = DTYPES[str(value.dtype).removeprefix("torch.")], list(value.shape)
        rows[key] = value
    if not rows:
        raise Failure("no tensors")
    return {"name": name, "identity": identity, "tasks": sorted(tasks), "file": file,
            "texts": texts or {}, "metadata": metadata or {}, "folded": fold(rows)}


def fold(rows):
    """(name, dtype, shape), with `{a-b}` where names differ in a number alone."""
    groups = collections.defaultdict(list)
    for name, (dtype, shape) in rows.items():
        if "{" in name or "\n" in name:
            raise Failure("a name with a brace or a line end: %r" % name)
        pieces = NUMBER.split(name)
        groups[dtype, tuple(shape), tuple(pieces[::2])].append(
            tuple((int(n), int(n)) for n in pieces[1::2]))
    folded = []
    for (dtype, shape, texts), boxes in groups.items():
        for place in reversed(range(len(texts) - 1)):
            boxes = merge(boxes, place)
        for box in boxes:
            name = texts[0]
            for (first, last), text in zip(box, texts[1:]):
                name += ("%d" % first if first == last else "{%d-%d}" % (first, last)) + text
            folded.append((name, dtype, list(shape)))
    return sorted(folded)


def merge(boxes, place):
    """Boxes that are equal but for neighbouring numbers in one place, as one."""
    lines = collections.defaultdict(list)
    for box in boxes:
        lines[box[:place] + box[place + 1:]].append(box[place])
    merged = []
    for rest, spans in lines.items():
        joined = []
        for first, last in sorted(spans):
            if joined and first == joined[-1][1] + 1:
                joined[-1] = joined[-1][0], last
            else:
                joined.append((first, last))
        merged += [rest[:place] + (span,) + rest[place:] for span in joined]
    return sorted(merged)


def as_json(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def text_of(made):
    """The lines of an entry (tests/zoo/read.py tells what they mean)."""
    lines = ["= %s\t%s\t%s" % (made["name"], made["identity"], ",".join(made["tasks"]))]
    if made["file"] != "model.safetensors":
        lines.append("f " + made["file"])
    lines += ["j %s\t%s" % pair for pair in sorted(made["texts"].items())]
    if made["metadata"]:
        lines.append("m " + as_json(made["metadata"]))
    dtype = None
    for name, its, shape in sorted(made["folded"], key=lambda row: (row[1], row[0])):
        if its != dtype:
            lines.append("d " + its)
            dtype = its
        lines.append("t %s %s" % (",".join(map(str, shape)) or "-", name))
    return "\n".join(lines) + "\n"


def make_one(job):
    """(job's name, text or None, reason or None)."""
    make, name, identity, tasks, arguments = job

    def expire(number, frame):
        raise Failure("took longer than %d s" % LIMIT)

    signal.signal(signal.SIGALRM, expire)
    signal.alarm(LIMIT)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            logging.disable(logging.WARNING)
            return job[:4], text_of(make(name, identity, tasks, *arguments)), None
    except BaseException as error:      # whatever a class throws is the reason
        if isinstance(error, KeyboardInterrupt):
            raise
        said = " ".join(str(error).split())[:160]
        return job[:4], None, "%s: %s" % (type(error).__name__, said)
    finally:
        signal.alarm(0)


def settle_threads():
    import torch
    torch.set_num_threads(1)


def make_all(jobs, processes=2):
    """The text of a library's list, without its first line, and the counts (made, failed)."""
    made, failed = {}, []
    context = multiprocessing.get_context("fork")
    with context.Pool(processes, settle_threads) as pool:
        for job, text, reason in pool.imap_unordered(make_one, jobs, chunksize=1):
            _, name, identity, tasks = job
            if text is None:
                failed.append("x %s\t%s\t%s\t%s\n" % (name, identity, ",".join(sorted(tasks)),
                                                     reason))
            else:
                made[name] = text
    return "".join(made[name] for name in sorted(made)) + "".join(sorted(failed)), \
        (len(made), len(failed))
