"""Every row of signatures by itself: is what it claims surely claimed of no other model?

The first row that holds decides about a model, so a row that fits too much may never show. The
tool build/tests/rows tries each row on each model. Standard library only.
"""
import collections
import os
import subprocess

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
        self.fitting = collections.defaultdict(set)  # of models, by row
        self.wrong = collections.defaultdict(list)

    def visit(self, files, entries, judge):
        """Try every row on the models of these files."""
        of_file = dict(zip(files, entries))
        for path, row in run(self.root, [], files):
            entry = of_file[path]
            self.fitting[row].add(entry.name)
            if row.trust >= SURE and not may_claim(judge, entry, row):
                self.wrong[row].append(entry.name)


def may_claim(judge, entry, row):
    if row.table == "family":
        return judge.is_family(entry, row.claim)
    return judge.may_be_sure(entry, row.claim)
