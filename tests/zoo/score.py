"""Ask the command about the models of a library and count what its answers are worth."""
import collections
import json
import os
import shlex
import shutil
import subprocess
import tempfile

import read
from judge import KINDS, OUTCOMES, SURE, Judge  # noqa: F401

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Tally:
    def __init__(self):
        self.outcomes, self.kinds = collections.Counter(), collections.Counter()
        self.confusions, self.said = collections.defaultdict(list), {}
        self.conflicts, self.low = [], set()

    def add(self, entry, outcome, kind, conflicts):
        self.outcomes[outcome[0]] += 1
        self.kinds[kind[0]] += 1
        self.said[entry.name] = list(outcome + kind)
        if outcome[0] == "another":
            self.confusions[outcome[1]].append(entry.name)
        if kind[0] == "wrong":
            self.confusions["kind " + kind[1]].append(entry.name)
        if conflicts:
            self.conflicts.append(entry.name)

    def add_trust(self, entry, outcome, answer):
        """An architecture that is right, but that others need not rely on."""
        architecture = answer["model"]["architecture"]
        if outcome[0] == "itself" and architecture and architecture["trust"] < SURE:
            self.low.add(entry.name)


def command():
    build = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
    return shlex.split(os.environ.get("SFT_COMMAND", os.path.join(build, "safetensors")))


def answers(folder):
    """The answers about all models of a folder, by the name of the model's own folder."""
    fields = "model,adapter,conflicts"
    process = subprocess.run(command() + ["info", "-r", "--jsonl", "-f", fields, folder],
                             capture_output=True, text=True, check=False)
    found = {}
    for line in process.stdout.splitlines():
        answer = json.loads(line)
        found[os.path.basename(os.path.dirname(answer["path"]))] = answer
    if process.returncode:
        raise RuntimeError(process.stderr[-500:])
    return found


def score(library, keep=None, chosen=None, visit=None):
    """{True: tally with config.json, where the library writes one; False: of the tensors alone}.

    visit(files, entries, judge) is called while the files are there."""
    _, entries, _ = read.read(library)
    judge, tallies = Judge(entries), {}
    work = keep and os.path.join(keep, library) or tempfile.mkdtemp(prefix="zoo-")
    entries = [e for e in entries if chosen is None or chosen(e)]
    try:
        # Folders are numbered: a name would be a hint.
        for number, entry in enumerate(entries):
            read.write_folder(os.path.join(work, "%04d" % number), entry)
        if visit:
            visit([os.path.join(work, "%04d" % number, entry.file)
                   for number, entry in enumerate(entries)], entries, judge)
        for declared in (True, False) if any(e.texts for e in entries) else (False,):
            found = answers(work)
            tallies[declared] = tally = Tally()
            for number, entry in enumerate(entries):
                answer = found["%04d" % number]
                outcome = judge.outcome(entry, answer)
                tally.add(entry, outcome, judge.kind(entry, answer), answer["conflicts"])
                tally.add_trust(entry, outcome, answer)
            for number, entry in enumerate(entries) if declared else ():
                for name in entry.texts:
                    os.remove(os.path.join(work, "%04d" % number, name))
    finally:
        if not keep:
            shutil.rmtree(work)
    return tallies
