#!/usr/bin/env python3
"""Compare TorchBatches with the loaders of MosaicML Streaming, WebDataset, HF datasets and Lance,
on the same rows in the format of each (loaders_sides.py), and measure how each one mixes rows; then
text, bytes and lists beside Parquet, KV mode, workers (loaders_rows.py) and an object store
(loaders_store.py).

    loaders.py [--only wide,narrow,mixing,columns,ragged,kv,workers,store] [--part 1.0]
               [--repeats 5] [--cpu] [--data DIR] [--write [FILE]]

Run it by build/loaders/bin/python (make bench-loaders). Each loader of the first three
is a process with num_workers=0; they take turns, in a new order each round, with what they read in the page cache.
The loop sums every value, and a run fails if the sums of two loaders differ or if a resumed epoch
does not continue with the batch that it should. --part: a part of the full size. --cpu:
processor time, of all threads, instead of time. Floor, by the best (exit status 1 when missed):
TorchBatches is not slower than the fastest of the others.
"""
import importlib.metadata
import os
import shutil
import sys

from contest import Worker, few, table, take_modes
from loaders_rows import Rows
from loaders_store import store
from loaders_sides import (SIDES, Plan, order_of_faces, order_of_mosaic, order_of_ours,
                           order_of_web)
from sections import count_processor_time, options, publish, status_of
from worker import now

RIVALS = {"MosaicML": "mosaicml-streaming", "WebDataset": "webdataset", "HF datasets": "datasets",
          "Lance": "pylance"}
TAKEN = 16  # batches of random rows
SINGLE = 256  # random rows one by one

MODES = {"stored": "in order", "mixed": "rows of %d shards mixed", "full": "all rows shuffled",
         "take": "random rows, %d at a time", "single": "random rows, one at a time"}


def plans(part):
    return {
        "wide": Plan("wide", int(16 * part) * 1024, 4096, 2048, 256, 4),
        "narrow": Plan("narrow", int(32 * part) * 1024, 16, 4096, 256, 4),
    }


# ── One loader: loaders.py work SIDE PLAN PART FOLDER ──

def checked(batch):
    """A sum that tells whether each row has its label, in any order of rows: exact."""
    return int((batch["x"].sum(1).long() * (batch["label"].reshape(-1) + 1)).sum())


def summed(batches):
    return sum(map(checked, batches)) & (2**63 - 1)


def random_rows(plan, count):
    import numpy
    return numpy.random.default_rng(11).integers(0, plan.count, count).tolist()


class Turns:
    """What a loader is told to do, by name. None: it cannot."""

    def __init__(self, side, plan, folder):
        self.side, self.plan = side(plan, folder), plan
        self.state, self.next = None, None

    def epoch(self, how):
        batches = self.side.epoch(how)
        return None if batches is None else summed(batches)

    def take(self):
        if not hasattr(self.side, "take"):
            return None
        numbers, size = random_rows(self.plan, TAKEN * self.plan.batch), self.plan.batch
        return summed(self.side.take(numbers[at:at + size])
                      for at in range(0, len(numbers), size))

    def single(self):
        if not hasattr(self.side, "take"):
            return None
        return summed(self.side.take([row]) for row in random_rows(self.plan, SINGLE))

    def prepare(self):
        self.state, batch = self.side.half("mixed")
        self.next = checked(batch)

    def resume(self):
        """1: continues with that batch; 0: with another one."""
        if not hasattr(self.side, "resume"):
            return None
        return int(checked(next(iter(self.side.resume("mixed", self.state)))) == self.next)

    def run(self, mode):
        return self.epoch(mode) if mode in ("stored", "mixed", "full") else getattr(self, mode)()


def serve(side, plan, part, folder):
    import torch
    torch.set_num_threads(1)
    answers, sys.stdout = sys.stdout, sys.stderr
    turns = Turns(SIDES[side], plans(float(part))[plan], folder)
    print("memory 0 0", file=answers, flush=True)
    for line in sys.stdin:
        mode = line.strip()
        if mode == "resume" and turns.state is None and hasattr(turns.side, "resume"):
            turns.prepare()
        start = now()
        total = turns.run(mode)
        print("%d %d" % (now() - start, -1 if total is None else total),
              file=answers, flush=True)


# ── Tables ──

class Bench:
    def __init__(self, args):
        self.args, self.missed = args, []

    def folders(self, plan):
        """Written once by each, from the same rows."""
        rows, found = None, {}
        for name, side in SIDES.items():
            found[name] = os.path.join(self.args.data, "%s-%d-%s" % (
                plan.name, plan.count, name.replace(" ", "-")))
            if not os.path.exists(os.path.join(found[name], "written")):
                rows = rows or plan.rows()
                shutil.rmtree(found[name], ignore_errors=True)
                os.makedirs(found[name])
                side.write(plan, found[name], *rows)
                open(os.path.join(found[name], "written"), "w").close()
        return found

    def compared(self, plan):
        """{mode: {side: Result, or None if it cannot}}."""
        workers = {side: Worker([sys.executable, os.path.abspath(__file__), "work", side,
                                 plan.name, str(self.args.part), folder])
                   for side, folder in self.folders(plan).items()}
        found = {}
        for mode in (*MODES, "resume"):
            able = {side: (worker, mode) for side, worker in workers.items()
                    if worker.run(mode)[1] != -1}  # warms up, too
            got = take_modes(able, self.args.repeats)
            found[mode] = {side: got.get(side) for side in SIDES}
        for worker in workers.values():
            worker.close()
        return found

    def judged(self, title, results):
        """The fastest of the others, as a ratio to ours."""
        others = {side: got for side, got in results.items() if got and side != "ours"}
        if not others or not results.get("ours"):
            return "–"
        best = min(others, key=lambda side: min(others[side].samples))
        ours, other = results["ours"], others[best]
        found = min(other.samples) / min(ours.samples)
        if found < 1:
            self.missed.append("%s: %.2f times %s, the floor is 1" % (title, found, best))
        return "%s× (%s×), %s" % (few(other.median / ours.median), few(found), best)

    def comparison(self, plan):
        found = self.compared(plan)
        counts = {"take": TAKEN * plan.batch, "single": SINGLE}
        fill = {"mixed": plan.open_shards, "take": plan.batch}
        rows = []
        for mode, title in MODES.items():
            title = title % fill[mode] if mode in fill else title
            got = found[mode]
            if len({frozenset(one.sums) for one in got.values() if one}) != 1:
                self.missed.append("%s, %s: the sums differ" % (plan.name, title))
            each = counts.get(mode, plan.count)
            rows.append([title, *(speed(one, each) for one in got.values()),
                         self.judged("%s, %s" % (plan.name, title), got)])
        got = found["resume"]
        exact = {side: one for side, one in got.items() if one and one.sums == {1}}
        if "ours" not in exact:
            self.missed.append("%s: resumed with another batch" % plan.name)
        rows.append(["resumed: ms until a batch", *(
            "–" if not one else one.cell() + " other rows" * (side not in exact)
            for side, one in got.items()), self.judged(plan.name + ", resumed", exact)])
        return table(["", *SIDES, "fastest other ÷ ours"], rows) + self.told(plan)

    def told(self, plan):
        return ("\nThousands of rows a second, the median and the best of %d rounds. %s rows of %d "
                "F32 and an I64 (%d MB), %d files of %d rows, batches of %d. –: not offered.\n"
                % (self.args.repeats, format(plan.count, ","), plan.width,
                   plan.count * (plan.width * 4 + 8) // 10**6, plan.shards, plan.each, plan.batch))

    def wide(self):
        return self.comparison(plans(self.args.part)["wide"])

    def narrow(self):
        return self.comparison(plans(self.args.part)["narrow"])

    def mixing(self):
        return mixing()

    def columns(self):
        return Rows(self.args, self.missed).columns()

    def ragged(self):
        return Rows(self.args, self.missed).ragged()

    def kv(self):
        return Rows(self.args, self.missed).kv()

    def store(self):
        return store(self.missed)

    def workers(self):
        return Rows(self.args, self.missed).workers(plans(self.args.part)["wide"], self.folders)


def speed(result, rows):
    if not result:
        return "–"
    return "%s (%s)" % tuple(few(rows / ms) for ms in (result.median, min(result.samples)))


# ── Mixing ──

SHARDS, EACH, BATCH = 128, 1024, 100
MIXED = (
    ("libsafetensors, as stored", order_of_ours, False, 1),
    ("libsafetensors, `\"shards\"`", order_of_ours, "shards", 1),
    ("libsafetensors, `\"blocks\"`, 16 shards", order_of_ours, "blocks", 16),
    ("MosaicML, `py1e`, blocks of 16 shards", order_of_mosaic, "py1e", 16),
    ("MosaicML, `py1br`, blocks of 16 shards", order_of_mosaic, "py1br", 16),
    ("WebDataset, buffer of 16 shards", order_of_web, None, 16),
    ("HF datasets, buffer of 16 shards", order_of_faces, None, 16),
    ("MosaicML, `py1s`, one node", order_of_mosaic, "py1s", 16),
    ("libsafetensors, `True`", order_of_ours, True, 1),
)


def mixture(order):
    """Shards in a batch; how far apart in the epoch are two rows that are stored one after the
    other; how many of the rows that follow each other in the epoch are of one shard; the most
    shards that are begun and not finished."""
    import numpy
    if not numpy.array_equal(numpy.sort(order), numpy.arange(SHARDS * EACH)):
        raise SystemExit("not every row once")
    owner = order // EACH
    cut = [owner[at:at + BATCH] for at in range(0, len(owner) - BATCH + 1, BATCH)]
    place = numpy.argsort(order)
    near = numpy.abs(numpy.diff(place.reshape(SHARDS, EACH), axis=1)).mean()
    spans = place.reshape(SHARDS, EACH)
    change = numpy.zeros(len(order) + 1, "i8")
    numpy.add.at(change, spans.min(1), 1)
    numpy.add.at(change, spans.max(1) + 1, -1)
    return ("%.1f" % numpy.mean([len(numpy.unique(one)) for one in cut]), "%.0f" % near,
            "%.1f %%" % (100 * (owner[1:] == owner[:-1]).mean()), int(change.cumsum().max()))


def mixing():
    rows = [[title, *mixture(order(how, SHARDS, EACH, width))]
            for title, order, how, width in MIXED]
    return table(["order", "shards per batch", "distance of neighbours",
                  "same shard as the row before", "shards begun and not finished, at most"],
                 rows) + (
        "\nAn epoch of %d shards of %s rows, batches of %d, one process.\n"
        % (SHARDS, format(EACH, ","), BATCH))


SECTIONS = ("wide", "narrow", "mixing", "columns", "ragged", "kv",
            "workers", "store")


def main():
    args = options(__doc__, SECTIONS, "loaders", 5, part=True, cpu=True)
    count_processor_time(args.cpu)
    versions = ", ".join("%s %s" % (name, importlib.metadata.version(package))
                         for name, package in RIVALS.items())
    bench = Bench(args)
    for name in args.chosen:
        publish(args, "loaders", name, getattr(bench, name)(), args.cpu, versions)
    return status_of(bench.missed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        serve(*sys.argv[2:])
    else:
        sys.exit(main())
