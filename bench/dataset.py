#!/usr/bin/env python3
"""Compare datasets with the official package's save_file and load_file (one file a shard) and
pyarrow's Parquet, uncompressed, of the same table.

    dataset.py [--only write,rows,read] [--part 1.0] [--repeats 5] [--cpu]
               [--data DIR] [--write [FILE]]

Run it by build/venv/bin/python (make bench-dataset), which has all three. --part: a part of the
full size. Cells, ratios and --write as in compare.py. Floor, by the best (exit status 1 when
missed): not slower than Parquet, nor than save_file with the same digests, nor load_file.
"""
import glob
import hashlib
import os
import sys

from contest import Result, cell, compete, ratio, table
from sections import count_processor_time, options, publish, status_of
from worker import serve

ROWS, KEYED, WIDTH, BATCH = 1_000_000, 200_000, 512, 8192
WHO = ("ours", "official", "Parquet")


def values(count):
    import numpy
    block = numpy.arange(1 << 20, dtype=numpy.float32) % 8191
    return numpy.resize(block, (count, WIDTH))


def arrow(count, keyed):
    import pyarrow
    flat = pyarrow.array(values(count).reshape(-1))
    columns = {"x": pyarrow.FixedSizeListArray.from_arrays(flat, WIDTH)}
    if keyed:
        columns["key"] = pyarrow.array(["sample/%08d" % i for i in range(count)])
    return pyarrow.table(columns)


def sync_all(folder):
    for path in [*glob.glob(os.path.join(folder, "*")), folder]:
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


def empty(folder):
    """And no bytes of others wait for the disk."""
    for path in glob.glob(os.path.join(folder, "**"), recursive=True):
        if os.path.isfile(path):
            os.unlink(path)
    os.sync()


# ── Contestants: dataset.py work WHAT WHO ROWS FOLDER [STATE] ──

def make_write(who, count, folder, state="", keyed=False):
    """state: "sync": durable. "over": over the files of the turn before."""
    count, sync = int(count), state == "sync"
    os.makedirs(folder, exist_ok=True)
    if who == "official":
        save = official_rows(count, folder) if keyed else official_batches(count, folder)
    elif who == "ours":
        save, sync = ours(arrow(count, keyed), folder, keyed, sync), False
    else:
        save = parquet(arrow(count, keyed), folder)

    def run():
        save()
        if sync:
            sync_all(folder)
        return count
    return run, os.sync if state == "over" else lambda: empty(folder)


def ours(rows, folder, keyed, sync):
    from libsafetensors import dataset
    options = {"name_col": "key"} if keyed else {"batch_size": BATCH}

    def run():
        made = dataset.write(rows, folder, mode="overwrite", sync=sync, **options)
        assert made["total_samples"] == rows.num_rows
    return run


def digests(folder):
    """What a dataset's manifest has of each file."""
    for path in glob.glob(os.path.join(folder, "*.safetensors")):
        with open(path, "rb") as file:
            hashlib.file_digest(file, "sha256")


def official_batches(count, folder):
    from safetensors.numpy import save_file
    x = values(count)

    def run():
        for i, begin in enumerate(range(0, count, BATCH)):
            save_file({"x": x[begin:begin + BATCH]},
                      os.path.join(folder, "part-%05d.safetensors" % i))
        digests(folder)
    return run


def official_rows(count, folder):
    from safetensors.numpy import save_file
    x = values(count)
    each = (300 << 20) // (4 * WIDTH)

    def run():
        for i, begin in enumerate(range(0, count, each)):
            save_file({"sample/%08d__x" % j: x[j] for j in range(begin, min(begin + each, count))},
                      os.path.join(folder, "part-%05d.safetensors" % i))
        digests(folder)
    return run


def parquet(rows, folder):
    import pyarrow.parquet
    path = os.path.join(folder, "rows.parquet")
    return lambda: pyarrow.parquet.write_table(rows, path, compression="none",
                                               use_dictionary=False, row_group_size=BATCH)


def make_rows(who, count, folder, state=""):
    return make_write(who, count, folder, state, True)


def total(array):
    import numpy
    return int(array.reshape(-1).view(numpy.uint64).sum(dtype=numpy.uint64))


def make_read(who, count, folder, how=""):
    """All batches in order; every byte of each is summed."""
    def run_ours():
        from libsafetensors import dataset
        with dataset.open(folder) as rows:
            return sum(total(batch["x"]) for batch in rows.batches()) & (2**64 - 1)

    def run_official():
        from safetensors.numpy import load_file
        return sum(total(load_file(path)["x"]) for path in
                   sorted(glob.glob(os.path.join(folder, "*.safetensors")))) & (2**64 - 1)

    def run_parquet():
        import pyarrow.parquet
        file = pyarrow.parquet.ParquetFile(os.path.join(folder, "rows.parquet"))
        return sum(total(batch.column(0).flatten().to_numpy()) for batch in
                   file.iter_batches(BATCH)) & (2**64 - 1)
    return {"ours": run_ours, "official": run_official, "Parquet": run_parquet}[who], None


WORK = {"write": make_write, "rows": make_rows, "read": make_read}


# ── Tables ──

class Bench:
    def __init__(self, args):
        self.args, self.missed = args, []

    def contest(self, what, title, count, state=""):
        folders = {who: os.path.join(self.args.data, "%s-%s" % (
            "write" if what == "read" else what, who)) for who in WHO}
        got = compete({who: [sys.executable, os.path.abspath(__file__), "work", what, who,
                             str(count), folders[who], state] for who in WHO}, self.args.repeats)
        for who in WHO:
            if not isinstance(got[who], Result):
                raise SystemExit("%s, %s: %s" % (title, who, got[who]))
        if len({frozenset(got[who].sums) for who in WHO}) != 1:
            self.missed.append("%s: the results differ" % title)
        for who in WHO[1:]:
            found = min(got[who].samples) / min(got["ours"].samples)
            if found < 1 and state != "over":
                self.missed.append("%s, %s: %.2f times %s, the floor is 1"
                                   % (what, title, found, who))
        return [title, *(cell(got[who]) for who in WHO), ratio(got["official"], got["ours"]),
                ratio(got["Parquet"], got["ours"])]

    def written(self, what, count, note):
        rows = [self.contest(what, "no sync", count),
                self.contest(what, "on disk", count, "sync"),
                self.contest(what, "over the one before, no sync", count, "over")]
        return table(["", "ours, ms", "save_file, ms", "Parquet, ms", "save_file ÷ ours",
                      "Parquet ÷ ours"], rows) + note + (
            "save_file is followed by the SHA-256 of each file, which ours takes, too. Each writes "
            "into a folder that was emptied before the turn. Over the one before: into a folder "
            "with the dataset of the previous turn, which ours keeps until the new one is complete; "
            "the others replace file by file.\n")

    def write(self):
        count = max(BATCH, int(ROWS * self.args.part))
        return self.written("write", count, (
            "\n%s rows of %d F32 (%d MB) from a table in memory, a file every %d rows (Parquet: "
            "a row group). Ours also commits a manifest; on "
            "disk: the others are followed by fsync of each file and the folder.\n"
            % (format(count, ","), WIDTH, count * WIDTH * 4 // 10**6, BATCH)))

    def rows(self):
        count = max(BATCH, int(KEYED * self.args.part))
        return self.written("rows", count, (
            "\n%s rows, each a tensor of its own of %d F32 (%d MB), files of 300 MiB.\n"
            % (format(count, ","), WIDTH, count * WIDTH * 4 // 10**6)))

    def read(self):
        count = max(BATCH, int(ROWS * self.args.part))
        for who in WHO:
            folder = os.path.join(self.args.data, "write-" + who)
            if not glob.glob(os.path.join(folder, "*")):
                make_write(who, count, folder)[0]()
        rows = [self.contest("read", "batches", count)]
        return table(["", "ours, ms", "load_file, ms", "Parquet, ms", "load_file ÷ ours",
                      "Parquet ÷ ours"], rows) + (
            "\nWhat was written above, opened and read batch by batch, warm cache; every byte "
            "summed by numpy as 64-bit words.\n")


SECTIONS = ("write", "rows", "read")


def main():
    args = options(__doc__, SECTIONS, "dataset", 5, part=True, cpu=True)
    count_processor_time(args.cpu)
    bench = Bench(args)
    for name in args.chosen:
        publish(args, "dataset", name, getattr(bench, name)(), args.cpu)
    return status_of(bench.missed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        serve(*WORK[sys.argv[2]](*sys.argv[3:]))
    else:
        sys.exit(main())
