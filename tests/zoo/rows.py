"""Every row of signatures by itself: is what it claims surely claimed of no other model?

Of the rows that hold the one that is over the others decides about a model, so a row that fits too
much may never show. It may hold for models whose records are over its own, and for the parts of
checkpoints. The tool build/tests/rows tries each row on each model. Standard library only.
"""
import collections
import glob
import itertools
import os
import subprocess

from judge import plain

# A row is sure of what it claims, or it is a guess: nothing between.
SURE, GUESS = 90, 60
Row = collections.namedtuple("Row", "table claim trust clauses")


def run(root, arguments, paths=()):
    build = os.environ.get("SFT_BUILD", os.path.join(root, "build"))
    process = subprocess.run([os.path.join(build, "tests", "rows")] + arguments,
                             input="".join(path + "\n" for path in paths),
                             capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(process.stderr[-500:])
    for line in process.stdout.splitlines():
        path, table, claim, trust, clauses = line.split("\t")
        yield path, Row(table, claim, int(trust), clauses)


class Rows:
    def __init__(self, root):
        self.root = root
        self.all = [row for _, row in run(root, ["--list"])]
        self.over = read_over(root)
        self.fitting = collections.defaultdict(set)  # of models, by row
        self.wrong = collections.defaultdict(list)
        self.pairs = collections.defaultdict(list)  # of claims without a relation, surely both

    def visit(self, files, entries, judge):
        """Try every row on the models of these files."""
        of_file, sure = dict(zip(files, entries)), collections.defaultdict(set)
        for path, row in run(self.root, [], files):
            entry = of_file[path]
            self.fitting[row].add(entry.name)
            if row.trust >= SURE and row.table != "family":
                sure[path, row.table].add(plain(row.claim))
            if row.trust >= SURE and not self.may_claim(judge, entry, row):
                self.wrong[row].append(entry.name)

        for (path, _), claims in sure.items():
            for one, other in itertools.combinations(sorted(claims), 2):
                if not ({one, other} & (self.over[one] | self.over[other])
                        or self.over[one] & self.over[other]):
                    self.pairs[one, other].append(of_file[path].name)

    def may_claim(self, judged, entry, row):
        if row.table == "family":
            return judged.is_family(entry, row.claim)
        if row.table == "denoiser" and entry.identity == "none":
            return True  # its layers tell that it is another (strangers.c)
        part = row.table == "vae" and "checkpoint" in entry.tasks
        return part or judged.may_be_sure(entry, row.claim) or any(
            plain(row.claim) in self.over[own] for own in judged.own_ids(entry))


def read_over(root):
    """Of each record what it is over, by itself or by what it is over."""
    over, own = collections.defaultdict(set), None
    for path in glob.glob(os.path.join(root, "data", "models", "**", "*.txt"), recursive=True):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                words = line.split()
                if line.startswith("model "):
                    own = plain(words[1])
                elif words and words[0] == "over":
                    over[own] |= {plain(word) for word in words[1:]}
                elif words and words[0] in ("parent", "sibling"):
                    over[own].add(plain(words[1]))
    for _ in range(4):
        for own in list(over):
            over[own] |= set().union(*(over[other] for other in list(over[own])))
    return over
