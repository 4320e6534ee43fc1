"""Near misses: a model of the zoo, and the same with a little changed.

near.tsv has a case a line: library, model, what it is surely named, the edit, what it is surely
named then, and its family then; `-` stands for none. Edits are separated by " ; ":

  -PATTERN              without the tensors whose names the pattern (a regular expression) fits
  +NAME SHAPE           with one more; {0-31} in its name stands for 32 of them
  =PATTERN SHAPE        those tensors have another shape
  >PATTERN TEXT         the pattern's part of every name is replaced

Standard library only.
"""
import copy
import os
import re
import tempfile

import judge
import read
import score


def shape_of(text):
    return [int(size) for size in text.split(",") if size]


def edited(entry, edits):
    """The model with the edits; one that changes nothing is an error in the table."""
    tensors = entry.tensors()
    for edit in edits.split(" ; "):
        sign, (what, _, value) = edit[0], edit[1:].partition(" ")
        before = list(tensors)
        if sign == "-":
            tensors = [t for t in tensors if not re.search(what, t[0])]
        elif sign == "+":
            tensors += [(name, "F16", shape_of(value)) for name in read.unfold(what)]
        elif sign == "=":
            tensors = [(n, d, shape_of(value) if re.search(what, n) else s) for n, d, s in tensors]
        elif sign == ">":
            tensors = [(re.sub(what, value, n), d, s) for n, d, s in tensors]
        else:
            raise ValueError("no such edit: " + edit)
        if before == tensors:
            raise ValueError("%s changes nothing of %s" % (edit, entry.name))
    other = copy.copy(entry)
    other.folded = tensors
    return other


def said(answer):
    """The architecture that is surely claimed, and the family."""
    architecture, family = answer["model"]["architecture"], answer["model"]["family"]
    sure = architecture and architecture["trust"] >= judge.SURE
    return architecture["value"] if sure else "-", family["value"] if family else "-"


def run():
    """(case, as it is, with the edit) of every line; both are pairs as of said()."""
    cases = list(judge.table("near.tsv"))
    models = {library: {e.name: e for e in read.read(library)[1]}
              for library in {case[0] for case in cases}}
    with tempfile.TemporaryDirectory(prefix="near-") as work:
        for number, (library, model, _, edit, _, _) in enumerate(cases):
            entry = models[library][model]
            for way, one in (("is", entry), ("near", edited(entry, edit))):
                read.write_folder(os.path.join(work, "%s-%03d" % (way, number)), one,
                                  declared=False)
        found = score.answers(work)
    return [(case, said(found["is-%03d" % n]), said(found["near-%03d" % n]))
            for n, case in enumerate(cases)]
